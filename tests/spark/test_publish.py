"""Publishing on plain paths and in a catalog: what lies where, and what is refused before it can do harm."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pyspark.sql.functions as F
import pytest
from pyspark.sql import SparkSession

from biasspark.errors import BiasSparkError, ConfigError, InputError
from biasspark.tables import parquet
from biasspark.tables.formats import ICEBERG
from biasspark.tables.lake import DeltaFolder, LakeStore
from biasspark.tables.publish import PublishedRun, publish
from biasspark.tables.runs import Run, new_run
from biasspark.tables.schemas import (
    BIAS_METRICS,
    BIAS_RUNS,
    PINNED_SKEW,
    REJECTED_ROWS,
    TABLES,
    U_STATISTICS,
    Table,
)
from biasspark.tables.store import CatalogStore, PathStore
from tests.main_job import untouched
from tests.sample_night import (
    NIGHT,
    TABLES_OF_A_RUN,
    frame_of,
    night_frames,
    read_latest,
    record_of,
    run_at,
    start_run,
    suite_frames,
)

HOSTILE = 'it\'s `a` "b"; DROP TABLE x --\n../../x/y=z\u202e\x00é'


@pytest.fixture(scope="module")
def warehouse(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PublishedRun]:
    """One run, published under a path with characters that quoting must survive."""
    folder = tmp_path_factory.mktemp('o\'brien; "x" `y` é%20') / "ware house"
    frames = night_frames(spark_session, rejected=0)
    return folder, publish(frames, start_run(corpus=HOSTILE), PathStore(str(folder)), record_of())


def file_of(folder: Path, table: Table, run: Run) -> Path:
    (file,) = (folder / table.name / f"run_date={run.run_date}" / f"run_id={run.run_id}").glob("*.parquet")
    return file


# ---- a run


def test_run_ids_begin_with_a_letter_and_are_never_the_same() -> None:
    runs = [new_run(NIGHT, "c", "j") for _ in range(100)]
    assert len({run.run_id for run in runs}) == 100
    assert all(re.fullmatch(r"r\d{8}T\d{12}_[0-9a-f]{6}", run.run_id) for run in runs)
    assert all(run.started_at.tzinfo is UTC for run in runs)


@pytest.mark.parametrize("run_id", ["", "20260115", "../x", "r/1", "r 1", "r=1", "r1\n", "r" * 65])
def test_a_run_id_that_is_no_folder_name_is_refused(run_id: str) -> None:
    with pytest.raises(ValueError, match="is not a run id"):
        Run(NIGHT, "c", "j", run_id, datetime.now(UTC))


def test_a_start_without_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        Run(NIGHT, "c", "j", "r1", datetime(2026, 1, 15))


# ---- plain paths


def test_each_table_is_one_file_in_the_directory_of_the_run(warehouse: tuple[Path, PublishedRun]) -> None:
    folder, published = warehouse
    tables = (*TABLES_OF_A_RUN, BIAS_RUNS)
    assert sorted(path.name for path in folder.iterdir()) == sorted(table.name for table in tables)
    for table in tables:
        file = file_of(folder, table, published.run)
        assert pq.read_schema(file).names == [n for n in table.names if n not in ("run_date", "run_id")]


def test_an_empty_table_keeps_its_schema(warehouse: tuple[Path, PublishedRun]) -> None:
    folder, published = warehouse
    stored = pq.read_table(file_of(folder, REJECTED_ROWS, published.run))
    assert stored.num_rows == 0
    assert stored.schema.names == ["corpus", "row_id", "model", "reason"]


def test_files_say_what_columns_mean_in_microseconds(warehouse: tuple[Path, PublishedRun], spark: SparkSession) -> None:
    folder, published = warehouse
    file = file_of(folder, BIAS_RUNS, published.run)
    assert str(pq.read_schema(file).field("published_at").type) == "timestamp[us, tz=UTC]"
    assert pq.ParquetFile(file).schema.column(13).physical_type == "INT64"
    comments = {f.name: f.metadata.get("comment") for f in spark.read.parquet(str(file)).schema}
    assert comments == {c.name: c.comment for c in BIAS_RUNS.columns if c.name not in ("run_date", "run_id")}


def test_rows_come_back_exactly_in_the_order_of_the_contract(
    warehouse: tuple[Path, PublishedRun], spark: SparkSession
) -> None:
    folder, published = warehouse
    rows = PathStore(str(folder)).read(spark, U_STATISTICS, published.run).select(*U_STATISTICS.names).collect()
    assert [row["identity"] for row in rows] == ["female", "male"]
    assert {row["corpus"] for row in rows} == {HOSTILE}
    assert {row["u_doubled"] for row in rows} == {Decimal(10**37)}
    assert {(row["run_date"], row["run_id"]) for row in rows} == {(NIGHT, published.run.run_id)}
    some = {"u_statistics": 2, "bias_metrics": 2, "model_summary": 1}
    assert published.n_rows == {table.name: some.get(table.name, 0) for table in TABLES_OF_A_RUN}


def test_the_ledger_has_what_the_record_says(warehouse: tuple[Path, PublishedRun], spark: SparkSession) -> None:
    folder, published = warehouse
    ledger = PathStore(str(folder)).read_ledger(spark, NIGHT)
    micros = [F.unix_micros(name).alias(name) for name in ("started_at", "published_at")]
    (row,) = ledger.select("corpus", "job", "status", "rejects", "warnings", "config", "run_id", *micros).collect()
    assert row["corpus"] == HOSTILE
    assert (row["job"], row["status"], row["run_id"]) == ("bias_metrics", "published", published.run.run_id)
    assert (row["rejects"], row["warnings"]) == ({"null_id": 2}, ["few distinct scores"])
    assert row["config"] == '{"corpus": "it\'s"}'
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert epoch + timedelta(microseconds=row["started_at"]) == published.run.started_at
    assert epoch + timedelta(microseconds=row["published_at"]) == published.published_at


def test_pandas_reads_the_folder_as_it_is(warehouse: tuple[Path, PublishedRun]) -> None:
    folder, published = warehouse
    rows = pd.read_parquet(folder / "bias_metrics")
    assert list(rows["identity"]) == ["female", "male"]
    assert set(rows["run_id"]) == {published.run.run_id}
    assert set(rows["run_date"].astype(str)) == {"2026-01-15"}


def test_readers_see_the_run_of_a_hostile_corpus(warehouse: tuple[Path, PublishedRun]) -> None:
    assert read_latest(warehouse[0], "corpus, identity") == [(HOSTILE, "female"), (HOSTILE, "male")]


def test_a_rerun_supersedes_the_night_with_equal_files(spark: SparkSession, tmp_path: Path) -> None:
    store = PathStore(f"file://{tmp_path}/")
    first = publish(night_frames(spark), run_at(1, "r1"), store, record_of())
    kept = file_of(tmp_path, BIAS_METRICS, first.run).read_bytes()
    shuffled = {table: frame.orderBy(F.rand()) for table, frame in suite_frames(spark).items()}
    second = publish(night_frames(spark) | shuffled, start_run(), store, record_of())
    assert read_latest(tmp_path, "DISTINCT run_id") == [(second.run.run_id,)]
    assert second.published_at > first.published_at
    for table in TABLES_OF_A_RUN:
        assert file_of(tmp_path, table, first.run).read_bytes() == file_of(tmp_path, table, second.run).read_bytes()
    assert file_of(tmp_path, BIAS_METRICS, first.run).read_bytes() == kept


@pytest.mark.slow
def test_published_at_grows_when_the_clock_does_not(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PathStore(str(tmp_path))
    long_ago = datetime(2026, 1, 15, 3, 0, 30, tzinfo=UTC)

    class StoppedClock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:
            return long_ago

    monkeypatch.setattr("biasspark.tables.publish.datetime", StoppedClock)
    first = publish(night_frames(spark, 0.6), run_at(1, "r2"), store, record_of())
    second = publish(night_frames(spark, 0.7), run_at(31, "r1"), store, record_of())
    assert first.published_at == long_ago
    assert second.published_at == long_ago + timedelta(microseconds=1)
    assert read_latest(tmp_path, "run_id, subgroup_auc", "identity = 'male'") == [("r1", 0.7)]


def test_one_run_id_is_written_once(warehouse: tuple[Path, PublishedRun], spark: SparkSession) -> None:
    folder, published = warehouse
    place = f"u_statistics/run_date=2026-01-15/run_id={published.run.run_id}"
    with pytest.raises(BiasSparkError, match=rf"{place}: could not be written.*exists"):
        publish(night_frames(spark), published.run, PathStore(str(folder)), record_of())


# ---- what is refused


def test_frames_that_are_not_the_tables_are_refused_with_both_lists(spark: SparkSession, tmp_path: Path) -> None:
    frames = suite_frames(spark)
    del frames[REJECTED_ROWS]
    frames[U_STATISTICS] = frames[U_STATISTICS].withColumn("n_low", F.col("n_low").cast("int")).drop("auc")
    with pytest.raises(BiasSparkError) as caught:
        publish(frames, start_run(), PathStore(str(tmp_path)), record_of())
    few, wrong = caught.value.faults
    assert few == (
        "bias_metrics: its frames are bias_metrics, model_summary, u_statistics. A run writes every table of its job: "
        f"{', '.join(sorted(table.name for table in TABLES_OF_A_RUN))}. Give each of them a frame, or None where it is "
        "empty."
    )
    assert wrong.startswith("u_statistics: the frame has model STRING, slice STRING, identity STRING")
    assert "n_low INT, n_high BIGINT" in wrong
    assert "The table has model STRING" in wrong
    assert "n_low BIGINT, n_high BIGINT" in wrong
    assert not list(tmp_path.iterdir())


def test_repeated_keys_and_nan_are_not_published(spark: SparkSession, tmp_path: Path) -> None:
    row = {"model": "m", "slice": "all", "identity": "male"}
    frames = night_frames(spark)
    frames[BIAS_METRICS] = frame_of(spark, BIAS_METRICS, [row, row | {"bpsn_auc": math.nan}])
    with pytest.raises(BiasSparkError) as caught:
        publish(frames, start_run(), PathStore(str(tmp_path)), record_of())
    assert caught.value.faults == (
        "bias_metrics: 2 rows have 1 keys. Each row has its own model, slice, identity. Nothing was published.",
        "bias_metrics: 1 rows hold NaN. An undefined value is NULL. Nothing was published.",
    )
    assert not (tmp_path / "bias_runs").exists()


@pytest.mark.parametrize(
    ("path", "found"),
    [("/a/*", "*"), ("/a/b?", "?"), ("/a[1]", "[ ]"), ("/{a}", "{ }"), ("/a\\b", "\\"), ("/a\nb", "\\n")],
)
def test_a_path_that_is_a_pattern_is_refused(path: str, found: str) -> None:
    with pytest.raises(ConfigError) as caught:
        PathStore(path)
    assert str(caught.value) == (
        f"output.path = {json.dumps(path)}. It has {found}, and readers take such a path for a pattern. Choose one "
        "without * ? [ ] { } \\ and control characters."
    )


def test_the_root_of_a_file_system_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        PathStore("/")
    assert str(caught.value) == (
        'output.path = "/". It is the root of a file system, where tables would lie among all else. Name a folder in '
        "it."
    )


@pytest.mark.parametrize("catalog", ["", ".", "a..b", "a.", "`a", "a`b`"])
def test_a_catalog_that_is_no_name_is_refused(catalog: str) -> None:
    with pytest.raises(ConfigError, match=r"output\.catalog: .* is not the name"):
        CatalogStore(catalog)


def test_catalog_names_are_quoted() -> None:
    assert CatalogStore("lake.bias").name("t") == "`lake`.`bias`.`t`"
    assert CatalogStore("bias").name("t") == "`bias`.`t`"
    assert CatalogStore("`a.b`.x y; DROP").name("t") == "`a.b`.`x y; DROP`.`t`"


# ---- tables that are there already


def test_check_takes_tables_that_are_new_or_older(spark: SparkSession, tmp_path: Path) -> None:
    store = PathStore(str(tmp_path))
    store.check(spark, TABLES.values())
    assert list(tmp_path.iterdir()) == []
    older = suite_frames(spark)[BIAS_METRICS].withColumn("corpus", F.lit("c")).drop("positive_aeg_reason", "crossed")
    older.write.parquet(store.place(BIAS_METRICS, run_at(1, "r1")))
    (tmp_path / "u_statistics" / "run_date=2026-01-01" / "run_id=r0" / "_temporary").mkdir(parents=True)
    with untouched(tmp_path):
        store.check(spark, TABLES.values())


def test_check_refuses_other_types_and_a_missing_key_with_both_lists(spark: SparkSession, tmp_path: Path) -> None:
    store = PathStore(str(tmp_path))
    frames = {table: frame.withColumn("corpus", F.lit("c")) for table, frame in suite_frames(spark).items()}
    frames[BIAS_METRICS].drop("identity").write.parquet(store.place(BIAS_METRICS, run_at(1, "r1")))
    mistyped = frames[U_STATISTICS].withColumn("u_doubled", F.lit(1.0))
    mistyped.write.parquet(store.place(U_STATISTICS, run_at(1, "r1")))
    with pytest.raises(InputError) as caught:
        store.check(spark, TABLES.values())
    mistyped_fault, keyless_fault = caught.value.faults
    assert mistyped_fault.startswith(f"{tmp_path}/u_statistics: its columns are not those of u_statistics. It has ")
    assert "u_doubled DOUBLE" in mistyped_fault
    assert "u_doubled DECIMAL(38,0)" in mistyped_fault
    assert keyless_fault.startswith(f"{tmp_path}/bias_metrics: its columns are not those of bias_metrics.")


@pytest.mark.classic("Spark Connect lists no folders")
def test_check_looks_at_the_last_night_that_has_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Older nights are not opened, however many there are."""
    store = PathStore(str(tmp_path))
    rows = suite_frames(spark)[BIAS_METRICS].withColumn("corpus", F.lit("c"))
    rows.drop("identity").write.parquet(store.place(BIAS_METRICS, run_at(2, "r2")))
    (tmp_path / "bias_metrics" / "run_date=2026-01-16" / "run_id=r3" / "_temporary").mkdir(parents=True)
    with pytest.raises(InputError, match="its columns are not those of bias_metrics"):
        store.check(spark, [BIAS_METRICS])
    rows.write.parquet(store.place(BIAS_METRICS, replace(run_at(4, "r4"), run_date=date(2026, 1, 17))))
    (tmp_path / "bias_metrics" / "run_date=2026-01-01" / "run_id=r1").mkdir(parents=True)
    (tmp_path / "bias_metrics" / "run_date=2026-01-01" / "run_id=r1" / "a.parquet").write_bytes(b"is never read")
    store.check(spark, [BIAS_METRICS])


def test_check_names_a_folder_that_is_no_table(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "bias_metrics").mkdir()
    (tmp_path / "bias_metrics" / "part-0.parquet").write_bytes(b"this is not Parquet")
    with pytest.raises(BiasSparkError, match=f"{tmp_path}/bias_metrics: could not be read, .*not a Parquet file"):
        PathStore(str(tmp_path)).check(spark, TABLES.values())


@pytest.mark.classic("Spark Connect gives no access to files")
@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize(
    ("below", "cause"),
    [("file", "{root}/file is a file"), ("file/x/y", "{root}/file is a file"), (None, "Mkdirs failed to create .*")],
)
def test_check_refuses_a_place_that_takes_no_file(
    spark: SparkSession, tmp_path: Path, scheme: str, below: str | None, cause: str
) -> None:
    (tmp_path / "file").write_text("x")
    path = f"{scheme}{tmp_path / below if below else '/proc/nope/x'}"
    with pytest.raises(ConfigError) as caught:
        PathStore(path).check(spark, TABLES.values())
    assert re.fullmatch(
        rf'\[output\] path = "{path}": nothing can be written there, {cause.format(root=tmp_path)}\. '
        r"It must be a folder to which this user may write, or one that can be made\. Name another, or change its "
        r"permissions\.",
        str(caught.value),
    )
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_check_leaves_nothing_behind(spark: SparkSession, tmp_path: Path) -> None:
    PathStore(f"{tmp_path}/new/er/warehouse").check(spark, TABLES.values())
    assert list(tmp_path.iterdir()) == []
    PathStore(str(tmp_path)).check(spark, TABLES.values())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.classic("Spark Connect gives no access to files")
def test_check_names_another_cause_as_a_write_that_failed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(parquet, "try_folder", fail)
    with pytest.raises(BiasSparkError, match=f"{tmp_path}: could not be written, No space left on device") as caught:
        PathStore(str(tmp_path)).check(spark, TABLES.values())
    assert caught.value.exit_code == 1


def test_check_refuses_a_session_with_int96_timestamps(spark: SparkSession, tmp_path: Path) -> None:
    key = "spark.sql.parquet.outputTimestampType"
    spark.conf.set(key, "INT96")
    try:
        with pytest.raises(ConfigError, match=f"{key}: INT96"):
            PathStore(str(tmp_path)).check(spark, TABLES.values())
    finally:
        spark.conf.set(key, "TIMESTAMP_MICROS")


def test_a_password_in_a_path_is_not_repeated(spark: SparkSession) -> None:
    store = PathStore("nosuch://me:secret@host/warehouse")
    with pytest.raises(BiasSparkError) as caught:
        store.check(spark, [BIAS_METRICS])
    assert re.match(r"nosuch://\(redacted\)@host/warehouse(/bias_metrics)?: could not be read", str(caught.value))
    assert "secret" not in str(caught.value)


# ---- a catalog


def test_a_catalog_gets_partitioned_tables_with_comments(spark: SparkSession, catalog: CatalogStore) -> None:
    catalog.check(spark, TABLES.values())
    assert catalog.read_ledger(spark, NIGHT).count() == 0
    first = publish(night_frames(spark, 0.6), run_at(1, "r1", HOSTILE), catalog, record_of())
    second = publish(night_frames(spark, 0.7, rejected=0), start_run(HOSTILE), catalog, record_of())
    catalog.check(spark, TABLES.values())
    for runs in ([first.run], [first.run, second.run]):
        rows = catalog.read_runs(spark, BIAS_METRICS, runs).select("run_id", "subgroup_auc").distinct().collect()
        assert sorted(map(tuple, rows)) == sorted(zip([run.run_id for run in runs], (0.6, 0.7), strict=False))
    for table in (*TABLES_OF_A_RUN, BIAS_RUNS):
        stored = spark.table(catalog.name(table.name))
        assert {f.name: f.metadata["comment"] for f in stored.schema} == {c.name: c.comment for c in table.columns}
        partitions = {row[0] for row in spark.sql(f"SHOW PARTITIONS {catalog.name(table.name)}").collect()}
        assert partitions == {f"run_date=2026-01-15/run_id={run.run_id}" for run in (first.run, second.run)}
    rows = spark.table(catalog.name("bias_metrics")).select("corpus", "subgroup_auc", "run_id").distinct().collect()
    assert {tuple(row) for row in rows} == {(HOSTILE, 0.6, "r1"), (HOSTILE, 0.7, second.run.run_id)}
    assert catalog.read_ledger(spark, NIGHT).count() == 2


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
    publish(night_frames(spark, 0.6), start_run(), catalog, record_of())
    stored = spark.table(catalog.name("bias_metrics"))
    assert set(stored.columns) == {*BIAS_METRICS.names, "later"}
    assert [row[0] for row in stored.select("subgroup_auc").distinct().collect()] == [0.6]


def test_check_refuses_what_is_no_table_of_ours_in_a_catalog(spark: SparkSession, catalog: CatalogStore) -> None:
    spark.sql(f"CREATE SCHEMA {catalog.schema}")
    spark.sql(f"CREATE TABLE {catalog.name('u_statistics')} (model STRING) USING csv")
    with pytest.raises(InputError) as caught:
        catalog.check(spark, TABLES.values())
    provider, misfit = caught.value.faults
    assert "it is csv. Tables are Parquet." in provider.lower().replace("tables are parquet", "Tables are Parquet")
    assert "its columns are not those of u_statistics. It has model STRING." in misfit


# ---- a table format


def test_a_session_without_the_runtime_is_told_the_flags(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        LakeStore("lake.bias", ICEBERG).check(spark, [PINNED_SKEW])
    (fault,) = caught.value.faults
    assert fault.startswith(
        f'output.format: "iceberg", but the session of Spark {spark.version} lacks spark.sql.extensions and '
        "spark.sql.catalog.lake. A table format needs its runtime. Give spark-submit --properties-file "
        "conf/lake-iceberg.conf, or --packages "
    )
    assert fault.endswith(
        "--conf spark.sql.extensions=org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions "
        "--conf spark.sql.catalog.lake=org.apache.iceberg.spark.SparkCatalog "
        "--conf spark.sql.catalog.lake.type=hadoop --conf spark.sql.catalog.lake.warehouse=PATH"
    )
    with pytest.raises(ConfigError, match=r"lacks spark\.sql\.extensions and spark\.sql\.catalog\.spark_catalog\. "):
        DeltaFolder(str(tmp_path)).check(spark, [PINNED_SKEW])
