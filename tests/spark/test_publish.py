"""Publishing to folders and to a catalog: locations of files, and refused runs."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.sql.functions as F
import pytest
from pyspark.sql import SparkSession

from biasspark.errors import BiasSparkError, ConfigError, InputError
from biasspark.tables import parquet
from biasspark.tables.ledger import read_ledger
from biasspark.tables.publish import publish, read_rows
from biasspark.tables.runs import Run, new_run
from biasspark.tables.schemas import (
    BIAS_METRICS,
    BIAS_RUNS,
    EXAMPLE_ATTRIBUTIONS,
    MODEL_SUMMARY,
    PINNED_SKEW,
    REJECTED_ROWS,
    TABLES,
    U_STATISTICS,
    Table,
)
from biasspark.tables.spark_schemas import to_frame, value_schema
from biasspark.tables.store import CatalogStore, PathStore
from tests.harness.least_configuration import raised_fault
from tests.harness.main_job import untouched
from tests.harness.sample_run import (
    RUN_DATE,
    full_rows,
    read_latest,
    record_of,
    run_at,
    start_run,
    suite_tables,
    table_rows,
)
from tests.harness.spark_effort import watch
from tests.spark.conftest import HOSTILE, Warehouse

TABLES_OF_A_RUN = tuple(suite_tables())


def file_of(folder: Path, table: Table, run: Run) -> Path:
    (file,) = (folder / table.name / run.partition).glob("*.parquet")
    return file


# ---- a run


def test_run_ids_begin_with_a_letter_and_are_never_the_same() -> None:
    runs = [new_run(RUN_DATE, "c", "j") for _ in range(100)]
    assert len({run.run_id for run in runs}) == 100
    assert all(re.fullmatch(r"r\d{8}T\d{12}_[0-9a-f]{6}", run.run_id) for run in runs)
    assert all(run.started_at.tzinfo is UTC for run in runs)


@pytest.mark.parametrize("run_id", ["", "20260115", "../x", "r/1", "r 1", "r=1", "r1\n", "r" * 65])
def test_a_run_id_that_is_no_folder_name_is_refused(run_id: str) -> None:
    with pytest.raises(ValueError, match="is not a run id"):
        Run(RUN_DATE, "c", "j", run_id, datetime.now(UTC))


def test_a_start_without_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        Run(RUN_DATE, "c", "j", "r1", datetime(2026, 1, 15))


# ---- plain paths


def test_each_table_is_one_file_in_the_directory_of_the_run(warehouse: Warehouse) -> None:
    """Tables of parts that are off do not exist; an empty table keeps its schema."""
    folder, published = warehouse
    tables = (*TABLES_OF_A_RUN, BIAS_RUNS)
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == sorted(table.name for table in tables)
    for table in tables:
        file = file_of(folder, table, published)
        assert pq.read_schema(file).names == [n for n in table.names if n not in ("run_date", "run_id")]
    assert pq.read_metadata(file_of(folder, REJECTED_ROWS, published)).num_rows == 0


@pytest.mark.spark("reads schemas by Spark")
def test_files_say_what_columns_mean_in_microseconds(warehouse: Warehouse, spark: SparkSession) -> None:
    file = file_of(warehouse.folder, BIAS_RUNS, warehouse.hostile)
    assert str(pq.read_schema(file).field("published_at").type) == "timestamp[us, tz=UTC]"
    columns = pq.ParquetFile(file).schema
    (index,) = (place for place in range(len(columns)) if columns.column(place).path == "published_at")
    assert columns.column(index).physical_type == "INT64"
    comments = {f.name: f.metadata.get("comment") for f in spark.read.parquet(str(file)).schema}
    assert comments == {c.name: c.comment for c in BIAS_RUNS.columns if c.name not in ("run_date", "run_id")}


@pytest.mark.spark("how Spark reads files")
def test_a_flipped_bit_in_a_small_table_is_noticed(warehouse: Warehouse, spark: SparkSession, tmp_path: Path) -> None:
    """This process verifies the checksums of pages, and so does Spark with our settings."""
    run = warehouse.hostile
    content = bytearray(file_of(warehouse.folder, U_STATISTICS, run).read_bytes())
    content[content.index(b"subgroup_positive") + 3] ^= 1
    folder = tmp_path / "u_statistics" / run.partition
    folder.mkdir(parents=True)
    (folder / "part-0.parquet").write_bytes(content)
    store = PathStore(str(tmp_path))
    with pytest.raises(BiasSparkError, match=rf"^{folder}/part-0\.parquet: .*checksum"):
        store.read_rows(spark, U_STATISTICS, run)
    with pytest.raises(Exception, match="checksum"):
        store.read(spark, U_STATISTICS, run).collect()


def test_rows_come_back_exactly_in_the_order_of_the_contract(warehouse: Warehouse, spark: SparkSession) -> None:
    run = warehouse.hostile
    rows, there = read_rows(spark, warehouse.store, U_STATISTICS, [run])
    assert there == [run]
    assert rows.schema == U_STATISTICS.full_arrow_schema
    assert rows["identity"].to_pylist() == ["female", "male"]
    assert set(rows["corpus"].to_pylist()) == {HOSTILE}
    assert set(rows["u_doubled"].to_pylist()) == {Decimal(10**37)}
    assert set(rows["run_id"].to_pylist()) == {run.run_id}
    assert list(run.table_rows.values()) == [2, 2, 1, 0]
    in_spark = warehouse.store.read(spark, U_STATISTICS, run).select(*U_STATISTICS.names).collect()
    assert [row.asDict() for row in in_spark] == rows.to_pylist()


def test_the_ledger_has_what_the_record_says(warehouse: Warehouse, spark: SparkSession) -> None:
    (row,) = (row for row in read_ledger(spark, warehouse.store, RUN_DATE, RUN_DATE) if row["corpus"] == HOSTILE)
    record = vars(record_of()) | vars(warehouse.hostile) | {"published_at": row["published_at"]}
    assert row == record | {"warnings": list(record["warnings"])}


def test_a_rerun_supersedes_the_date_with_equal_files(spark: SparkSession, tmp_path: Path) -> None:
    store = PathStore(f"file://{tmp_path}/")
    first = publish(spark, suite_tables(), run_at(1, "r1"), store, record_of())
    backwards = {table: rows.take(list(reversed(range(len(rows))))) for table, rows in suite_tables().items()}
    second = publish(spark, backwards, start_run(), store, record_of())
    assert read_latest(tmp_path, "DISTINCT run_id") == [(second.run_id,)]
    for table in TABLES_OF_A_RUN:
        assert file_of(tmp_path, table, first).read_bytes() == file_of(tmp_path, table, second).read_bytes()


def test_published_at_grows_when_the_clock_does_not(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PathStore(str(tmp_path))

    class StoppedClock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> Self:
            return cls(2026, 1, 15, 3, 0, 30, tzinfo=UTC)

    monkeypatch.setattr("biasspark.tables.ledger.datetime", StoppedClock)
    first = publish(spark, suite_tables(0.6), run_at(1, "r2"), store, record_of())
    second = publish(spark, suite_tables(0.7), run_at(31, "r1"), store, record_of())
    published_at = {row["run_id"]: row["published_at"] for row in read_ledger(spark, store)}
    assert published_at[first.run_id] == StoppedClock.now()
    assert published_at[second.run_id] == StoppedClock.now() + timedelta(microseconds=1)
    assert read_latest(tmp_path, "run_id, subgroup_auc", "identity = 'male'") == [("r1", 0.7)]


def test_a_run_is_published_once_and_a_directory_written_once(warehouse: Warehouse, spark: SparkSession) -> None:
    run = warehouse.hostile
    rows = full_rows(U_STATISTICS, suite_tables()[U_STATISTICS], run)
    with untouched(warehouse.folder):
        with pytest.raises(BiasSparkError, match=rf"{run.run_id} .*already"):
            publish(spark, suite_tables(), run, warehouse.store, record_of())
        with pytest.raises(BiasSparkError, match=rf"u_statistics/{run.partition}: .*exists"):
            warehouse.store.write(spark, U_STATISTICS, rows, run)


# ---- Spark jobs


@pytest.mark.classic("Spark Connect does not say what its jobs do")
def test_on_a_local_path_small_tables_take_no_job(spark: SparkSession, tmp_path: Path) -> None:
    store = PathStore(str(tmp_path))
    with watch(spark, 1000) as effort:
        store.check(spark, TABLES.values())
        first = publish(spark, suite_tables(0.6), run_at(1, "r1"), store, record_of())
        store.check(spark, TABLES.values())
        second = publish(spark, suite_tables(0.7), start_run(), store, record_of())
        rows, _ = read_rows(spark, store, BIAS_METRICS, [first, second])
    assert sorted(rows["subgroup_auc"].to_pylist()) == [0.6, 0.6, 0.7, 0.7]
    assert effort.n_jobs == 0


@pytest.mark.classic("Spark Connect does not say what its jobs do")
def test_on_another_file_system_each_table_takes_a_job_and_reading_back_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Hadoop mounts the folder as another file system."""
    mount = f"fs.viewfs.mounttable.{tmp_path.parent.name}.link./lake"
    spark._jsc.hadoopConfiguration().set(mount, f"file://{tmp_path}")
    store, tables = PathStore(f"viewfs://{tmp_path.parent.name}/lake"), suite_tables(rejected=1)
    with watch(spark, 1000) as effort:
        published = publish(spark, tables, run_at(1, "r1"), store, record_of())
    assert effort.n_jobs <= len(tables) + 1 + 1  # one reads back, and one writes the ledger's row
    store.check(spark, tables)
    rows, _ = read_rows(spark, store, U_STATISTICS, [published])
    assert rows.select(U_STATISTICS.value_columns).sort_by("identity").equals(tables[U_STATISTICS].sort_by("identity"))
    assert [row["table_rows"] for row in read_ledger(spark, store)] == [published.table_rows]
    assert store.list_runs(spark, U_STATISTICS) == {(RUN_DATE, "r1")}
    assert read_latest(tmp_path, "identity, subgroup_auc") == [("female", 0.75), ("male", 0.75)]
    for table in (U_STATISTICS, BIAS_RUNS):
        (tmp_path / table.name / "_delta_log").mkdir()
    assert raised_fault(InputError, store.check, spark, tables).path == ("output", "format")
    assert raised_fault(InputError, read_ledger, spark, store).path == ("output", "format")


def test_large_tables_are_frames(spark: SparkSession, tmp_path: Path) -> None:
    """They are counted and hashed while they are written. Keys may repeat if ids do, and NaN is refused."""
    keys = {"model": "m", "slice": "all", "label": True, "score": 0.5}
    rows = table_rows(EXAMPLE_ATTRIBUTIONS, [keys | {"row_id": row_id} for row_id in ("a", "b", "b")])
    frame = to_frame(spark, rows, value_schema(EXAMPLE_ATTRIBUTIONS)).repartition(2, "row_id")
    store, job = PathStore(str(tmp_path)), EXAMPLE_ATTRIBUTIONS.job
    published = publish(spark, {EXAMPLE_ATTRIBUTIONS: frame}, start_run(job=job), store, record_of())
    assert published.table_rows == {"example_attributions": 3}
    assert read_latest(tmp_path, "row_id", table="example_attributions") == [("a",), ("b",), ("b",)]
    hole = frame.withColumn("attribution", F.lit(math.nan))
    with pytest.raises(BiasSparkError, match=r"example_attributions: 3 rows .*NaN"):
        publish(spark, {EXAMPLE_ATTRIBUTIONS: hole}, start_run(job=job), store, record_of())
    repeated = to_frame(spark, suite_tables()[MODEL_SUMMARY], value_schema(MODEL_SUMMARY))
    with pytest.raises(BiasSparkError, match=r"model_summary: 2 rows .*1 key"):
        publish(spark, {MODEL_SUMMARY: repeated.unionAll(repeated)}, start_run(), store, record_of())
    assert len(read_ledger(spark, store)) == 1


# ---- what is refused


def test_repeated_keys_and_nan_are_not_published(spark: SparkSession, tmp_path: Path) -> None:
    row = {"model": "m", "slice": "all", "identity": "male"}
    tables = suite_tables() | {BIAS_METRICS: table_rows(BIAS_METRICS, [row, row | {"bpsn_auc": math.nan}])}
    with pytest.raises(BiasSparkError) as caught:
        publish(spark, tables, start_run(), PathStore(str(tmp_path)), record_of())
    repeated, hole = caught.value.messages
    assert all(part in repeated for part in ("bias_metrics: 2 rows", "1 key"))
    assert all(part in hole for part in ("bias_metrics: 1 row", "NaN"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["/a/*", "/a/b?", "/a[1]", "/{a}", "/a\\b", "/a\nb", "/"])
def test_a_pattern_and_a_root_are_refused(path: str) -> None:
    fault = raised_fault(ConfigError, PathStore, path)
    assert (fault.path, fault.value) == (("output", "path"), path)


def test_catalog_names_are_quoted() -> None:
    assert CatalogStore("lake.bias").name("t") == "`lake`.`bias`.`t`"
    assert CatalogStore("bias").name("t") == "`bias`.`t`"
    assert CatalogStore("a-b.x y; DROP `z`").name("t") == "`a-b`.`x y; DROP ``z```.`t`"


# ---- tables that are there already


def write_file(store: PathStore, table: Table, run: Run, rows: pa.Table) -> None:
    folder = Path(store.location(table, run))
    folder.mkdir(parents=True)
    pq.write_table(rows, folder / "part-0.parquet")


def test_check_takes_tables_that_are_new_or_older(spark: SparkSession, tmp_path: Path) -> None:
    store, run = PathStore(str(tmp_path)), run_at(1, "r1")
    store.check(spark, TABLES.values())
    assert list(tmp_path.iterdir()) == []
    rows = full_rows(BIAS_METRICS, suite_tables()[BIAS_METRICS], run)
    write_file(store, BIAS_METRICS, run, rows.drop_columns(["run_date", "run_id", "positive_aeg_reason", "crossed"]))
    (tmp_path / "u_statistics" / "run_date=2026-01-01" / "run_id=r0" / "_temporary").mkdir(parents=True)
    with untouched(tmp_path):
        store.check(spark, TABLES.values())
    older, _ = read_rows(spark, store, BIAS_METRICS, [run])
    assert older["crossed"].to_pylist() == [None, None]
    assert older["subgroup_auc"].to_pylist() == [0.75, 0.75]


def test_check_refuses_other_types_and_a_missing_key_with_both_lists(spark: SparkSession, tmp_path: Path) -> None:
    store, run = PathStore(str(tmp_path)), run_at(1, "r1")
    metrics, statistics = (full_rows(t, suite_tables()[t], run) for t in (BIAS_METRICS, U_STATISTICS))
    write_file(store, BIAS_METRICS, run, metrics.drop_columns(["identity"]))
    mistyped = statistics.set_column(statistics.column_names.index("u_doubled"), "u_doubled", statistics["auc"])
    write_file(store, U_STATISTICS, run, mistyped)
    with pytest.raises(InputError) as caught:
        store.check(spark, TABLES.values())
    mistyped_fault, keyless_fault = caught.value.messages
    assert mistyped_fault.startswith(f"{tmp_path}/u_statistics: ")
    found, _, declared = mistyped_fault.partition(". The table has ")
    assert "u_doubled DOUBLE" in found
    assert "u_doubled DECIMAL(38,0)" in declared
    assert keyless_fault.startswith(f"{tmp_path}/bias_metrics: ")


@pytest.mark.classic("Spark Connect lists no folders")
def test_check_looks_at_the_last_run_that_has_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Older runs are not read, however many exist."""
    store, run = PathStore(str(tmp_path)), run_at(2, "r2")
    rows = full_rows(BIAS_METRICS, suite_tables()[BIAS_METRICS], run)
    write_file(store, BIAS_METRICS, run, rows.drop_columns(["identity"]))
    (tmp_path / "bias_metrics" / "run_date=2026-01-16" / "run_id=r3" / "_temporary").mkdir(parents=True)
    with pytest.raises(InputError, match=r"columns .* bias_metrics"):
        store.check(spark, [BIAS_METRICS])
    write_file(store, BIAS_METRICS, replace(run_at(4, "r4"), run_date=date(2026, 1, 17)), rows)
    (tmp_path / "bias_metrics" / "run_date=2026-01-01" / "run_id=r1").mkdir(parents=True)
    (tmp_path / "bias_metrics" / "run_date=2026-01-01" / "run_id=r1" / "a.parquet").write_bytes(b"is never read")
    store.check(spark, [BIAS_METRICS])


def test_check_names_a_folder_that_is_no_table(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "bias_metrics").mkdir()
    (tmp_path / "bias_metrics" / "part-0.parquet").write_bytes(b"this is not Parquet")
    with pytest.raises(BiasSparkError, match=rf"^{tmp_path}/bias_metrics(/part-0\.parquet)?: .*read"):
        PathStore(str(tmp_path)).check(spark, TABLES.values())


@pytest.mark.classic("Spark Connect gives no access to files")
@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize(
    ("below", "cause"),
    [("file", "{root}/file "), ("file/x/y", "{root}/file "), (None, "No such file or directory")],
)
def test_check_refuses_a_folder_that_takes_no_file(
    spark: SparkSession, tmp_path: Path, scheme: str, below: str | None, cause: str
) -> None:
    (tmp_path / "file").write_text("x")
    path = f"{scheme}{tmp_path / below if below else '/proc/nope/x'}"
    with pytest.raises(ConfigError) as caught:
        PathStore(path).check(spark, TABLES.values())
    start, _, rest = str(caught.value).partition(": ")
    assert start == f'[output] path = "{path}"'
    assert cause.format(root=tmp_path) in rest
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.classic("Spark Connect gives no access to files")
def test_check_names_another_cause_as_a_write_that_failed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(parquet, "try_folder", fail)
    with pytest.raises(BiasSparkError, match=f"{tmp_path}: .*No space left on device") as caught:
        PathStore(str(tmp_path)).check(spark, TABLES.values())
    assert caught.value.exit_code == 1


# ---- a catalog


@pytest.mark.spark("writes to a catalog")
def test_a_catalog_gets_partitioned_tables_with_comments(spark: SparkSession, catalog: CatalogStore) -> None:
    catalog.check(spark, TABLES.values())
    assert read_ledger(spark, catalog, RUN_DATE, RUN_DATE) == []
    first = publish(spark, suite_tables(0.6), run_at(1, "r1", HOSTILE), catalog, record_of())
    second = publish(spark, suite_tables(0.7, rejected=0), start_run(HOSTILE), catalog, record_of())
    catalog.check(spark, TABLES.values())
    for runs in ([first], [first, second]):
        rows, there = read_rows(spark, catalog, BIAS_METRICS, runs)
        assert there == runs
        by_run = {(row["corpus"], row["run_id"], row["subgroup_auc"]) for row in rows.to_pylist()}
        assert by_run == {(HOSTILE, run.run_id, auc) for run, auc in zip(runs, (0.6, 0.7), strict=False)}
    for table in (*TABLES_OF_A_RUN, BIAS_RUNS):
        stored = spark.table(catalog.name(table.name))
        assert {f.name: f.metadata["comment"] for f in stored.schema} == {c.name: c.comment for c in table.columns}
        partitions = {row[0] for row in spark.sql(f"SHOW PARTITIONS {catalog.name(table.name)}").collect()}
        assert partitions == {f"run_date=2026-01-15/run_id={run.run_id}" for run in (first, second)}
    assert not catalog.has(spark, PINNED_SKEW)
    assert read_rows(spark, catalog, PINNED_SKEW, [first, second])[1] == []
    counted = {row["run_id"]: row["table_rows"] for row in read_ledger(spark, catalog, RUN_DATE, RUN_DATE)}
    assert counted == {published.run_id: published.table_rows for published in (first, second)}


@pytest.mark.spark("writes to a catalog")
def test_a_table_of_a_catalog_gets_new_columns_and_keeps_those_of_a_newer_version(
    spark: SparkSession, catalog: CatalogStore
) -> None:
    spark.sql(f"CREATE SCHEMA {catalog.schema}")
    spark.sql(
        f"CREATE TABLE {catalog.name('bias_metrics')} (run_date DATE, corpus STRING, model STRING, slice STRING, "
        "identity STRING, subgroup_auc DOUBLE, later INT, run_id STRING) "
        "USING parquet PARTITIONED BY (run_date, run_id)"
    )
    catalog.check(spark, TABLES.values())
    publish(spark, suite_tables(0.6), start_run(), catalog, record_of())
    stored = spark.table(catalog.name("bias_metrics"))
    assert set(stored.columns) == {*BIAS_METRICS.names, "later"}
    assert [row[0] for row in stored.select("subgroup_auc").distinct().collect()] == [0.6]


@pytest.mark.spark("writes to a catalog")
def test_check_refuses_what_is_no_table_of_ours_in_a_catalog(spark: SparkSession, catalog: CatalogStore) -> None:
    spark.sql(f"CREATE SCHEMA {catalog.schema}")
    spark.sql(f"CREATE TABLE {catalog.name('u_statistics')} (model STRING) USING csv")
    with pytest.raises(InputError) as caught:
        catalog.check(spark, TABLES.values())
    provider, misfit = caught.value.messages
    assert "csv" in provider.lower()
    assert all(part in misfit for part in ("u_statistics", "model STRING. "))
