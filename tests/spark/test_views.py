"""The views of several runs, corpora and reruns, in Spark, in DuckDB and in a catalog."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from biasspark.tables.ledger import accept
from biasspark.tables.publish import publish
from biasspark.tables.runs import ACCEPTED
from biasspark.tables.schemas import (
    ATTRIBUTION_SLICES,
    BIAS_METRICS,
    BIAS_RUNS,
    MODEL_COMPARISONS,
    MODEL_SUMMARY,
    PINNED_AUC,
    WINDOW_TABLES,
)
from biasspark.tables.spark_schemas import spark_schema
from biasspark.tables.store import CatalogStore, PathStore, Store
from biasspark.tables.views import DUCKDB_FILE, SPARK_FILE, duckdb_views, refresh_views, spark_views
from tests.harness.running_jobs import ask, open_views
from tests.harness.sample_run import RUN_DATE, record_of, start_run, suite_tables
from tests.spark.conftest import HOSTILE, NEXT_DATE, Warehouse, publish_runs

pytestmark = pytest.mark.spark("views for Spark")

SEEN = [(RUN_DATE, "civil", 0.7), (RUN_DATE, HOSTILE, 0.8), (NEXT_DATE, "civil", 0.9)]
TABLES_OF_A_RUN = tuple(suite_tables())
SUITE = ("subgroup_auc", "bpsn_auc", "bnsp_auc", "negative_aeg", "positive_aeg")
LATEST_SUITE = (
    *("run_date", "corpus", "model", "slice", "identity", "n_rows", "n_positive"),
    *(f"{name}{end}" for name in SUITE for end in ("", "_low", "_high")),
    *("bias", "bias_size", "run_id"),
)


def make_spark_views(spark: SparkSession, folder: Path, names: str) -> SparkSession:
    """Run the statements of the file that create these views."""
    *statements, end = (folder / SPARK_FILE).read_text("utf-8").split(";")
    for statement in statements:
        if re.search(rf"VIEW (latest_(accepted_)?)?({names})", statement):
            spark.sql(statement)
    assert end.strip() == ""
    return spark


@pytest.fixture
def duck(warehouse: Warehouse) -> duckdb.DuckDBPyConnection:
    return open_views(warehouse.folder)


LATEST = "SELECT DISTINCT run_date, corpus, subgroup_auc FROM latest_bias_metrics ORDER BY 1, 3"
ACCEPTED_ROWS = LATEST.replace("latest_", "latest_accepted_")
NARROW = (
    "SELECT identity, n_rows, n_positive, subgroup_auc, subgroup_auc_low, bpsn_auc FROM latest_suite "
    "WHERE corpus = 'civil' AND run_date = DATE'2026-01-15' ORDER BY 1"
)
NARROW_SEEN = [("female", 100, 40, 0.7, 0.35, None), ("male", 100, 40, 0.7, 0.35, None)]

# ---- Spark on plain paths


def test_spark_views_have_the_columns_and_comments_of_the_contract(spark: SparkSession, warehouse: Warehouse) -> None:
    make_spark_views(spark, warehouse.folder, r"\w")
    for table in (*TABLES_OF_A_RUN, BIAS_RUNS):
        for view in ("",) if table == BIAS_RUNS else ("", "latest_", "latest_accepted_"):
            assert spark.table(f"{view}{table.name}").schema == spark_schema(table), view


def scans_of_one_date(spark: SparkSession, view: str) -> list[bool]:
    """Return for each scan of files whether it reads only the partitions of the requested date."""
    plan = str(spark.sql(f"EXPLAIN SELECT * FROM {view} WHERE run_date = DATE'2026-01-16'").collect()[0][0])
    return ["2026-01-16" in line.split("PartitionFilters")[1] for line in plan.splitlines() if "FileScan" in line]


VIEWS = ("latest_bias_metrics", "latest_accepted_bias_metrics", "latest_suite", "latest_accepted_suite")


def test_spark_sees_the_latest_run_of_each_date_and_corpus(spark: SparkSession, warehouse: Warehouse) -> None:
    """All runs are in the table itself; of a date one run is read, of rows and of the ledger."""
    make_spark_views(spark, warehouse.folder, "bias_metrics|bias_runs|suite")
    assert [tuple(row) for row in spark.sql(LATEST).collect()] == SEEN
    assert spark.sql(ACCEPTED_ROWS).collect() == []
    for view in VIEWS:
        scans = scans_of_one_date(spark, view)
        assert len(scans) >= 2, view
        assert all(scans), view
    runs = spark.sql("SELECT DISTINCT run_id FROM bias_metrics WHERE corpus = 'civil'").collect()
    assert {"r9_first", "rz_crashed"} < {row[0] for row in runs}
    assert tuple(spark.table("latest_suite").columns) == LATEST_SUITE
    assert [tuple(row) for row in spark.sql(NARROW).collect()] == NARROW_SEEN


# ---- DuckDB on plain paths


def test_duckdb_sees_the_same(duck: duckdb.DuckDBPyConnection) -> None:
    assert duck.execute(LATEST).fetchall() == SEEN
    assert duck.execute(ACCEPTED_ROWS).fetchall() == []
    assert tuple(column[0] for column in duck.execute("DESCRIBE latest_suite").fetchall()) == LATEST_SUITE
    assert duck.execute(NARROW).fetchall() == NARROW_SEEN


@pytest.mark.parametrize("view", VIEWS)
def test_duckdb_reads_one_run_of_rows_and_of_the_ledger(duck: duckdb.DuckDBPyConnection, view: str) -> None:
    plan = duck.execute(f"EXPLAIN SELECT identity FROM {view} WHERE run_date = DATE '2026-01-16'").fetchall()[0][1]
    assert sorted(re.findall(r"Scanning Files: (\d+)/(\d+)", plan)) == [("1", "4"), ("1", "5")]


def test_duckdb_finds_a_folder_that_has_moved(warehouse: Warehouse, tmp_path: Path) -> None:
    moved = tmp_path / "moved's"
    moved.symlink_to(warehouse.folder)
    text = duckdb_views("/no/such/folder", (*TABLES_OF_A_RUN, BIAS_RUNS))
    with duckdb.connect() as connection:
        connection.execute("SET VARIABLE warehouse = ?", [str(moved)])
        connection.execute(text)
        assert connection.execute(LATEST).fetchall() == SEEN


def test_columns_that_files_lack_are_null(spark: SparkSession, tmp_path: Path) -> None:
    older = suite_tables(0.6)[BIAS_METRICS].drop_columns(["crossed", "positive_aeg"])
    folder = tmp_path / BIAS_METRICS.name / f"run_date={RUN_DATE}" / "run_id=r1"
    folder.mkdir(parents=True)
    pq.write_table(older.append_column("corpus", [["civil"] * len(older)]), folder / "part-0.parquet")
    query = "SELECT DISTINCT subgroup_auc, crossed, positive_aeg FROM bias_metrics"
    with duckdb.connect() as connection:
        connection.execute(duckdb_views(str(tmp_path), [BIAS_METRICS]))
        assert connection.execute(query).fetchall() == [(0.6, None, None)]
    for statement in spark_views(str(tmp_path), [BIAS_METRICS]).split(";")[:-1]:
        spark.sql(statement)
    assert [tuple(row) for row in spark.sql(query).collect()] == [(0.6, None, None)]


# ---- accepted runs


def publish_judged_runs(spark: SparkSession, store: Store) -> None:
    """Publish runs of one date: civil passes, then fails; wiki fails twice, and a person accepts the first; tail fails.

    On another date civil passes, passes again, and fails. `auc` tells the runs apart.
    """
    runs = [("civil", RUN_DATE, 0.61, True), ("civil", RUN_DATE, 0.62, False), ("wiki", RUN_DATE, 0.71, False)]
    runs += [("tail", RUN_DATE, 0.81, False)]
    runs += [("civil", NEXT_DATE, auc, passed) for auc, passed in ((0.63, True), (0.64, True), (0.65, False))]
    for corpus, run_date, auc, passed in runs:
        run, record = start_run(corpus, run_date), record_of()
        publish(spark, suite_tables(auc), run, store, replace(record, status=ACCEPTED) if passed else record)
        if corpus == "wiki":
            for _ in range(2):  # twice means what once means
                accept(spark, store, run, '"accepted_run_id": "r1"; it\'s known', "A. Turing")
            publish(spark, suite_tables(0.72), start_run(corpus), store, record)


ACCEPTED_SEEN = [(RUN_DATE, "civil", 0.61), (RUN_DATE, "wiki", 0.71), (NEXT_DATE, "civil", 0.64)]
LATEST_SEEN = [
    (RUN_DATE, "civil", 0.62),
    (RUN_DATE, "wiki", 0.72),
    (RUN_DATE, "tail", 0.81),
    (NEXT_DATE, "civil", 0.65),
]


def test_a_run_that_failed_does_not_replace_the_accepted_one(spark: SparkSession, tmp_path: Path) -> None:
    """The last accepted run of each run date and corpus is visible, each row once."""
    publish_judged_runs(spark, PathStore(str(tmp_path)))
    assert refresh_views(spark, PathStore(str(tmp_path))) == ()
    make_spark_views(spark, tmp_path, "bias_metrics|bias_runs")
    count = "SELECT count(*) FROM latest_accepted_bias_metrics"  # two identities of each run
    for query, expected in ((ACCEPTED_ROWS, ACCEPTED_SEEN), (LATEST, LATEST_SEEN), (count, [(6,)])):
        assert ask(tmp_path, query) == expected
        assert [tuple(row) for row in spark.sql(query).collect()] == expected


def test_only_tables_of_a_job_with_a_gate_have_accepted_runs() -> None:
    ungated = (WINDOW_TABLES[MODEL_SUMMARY], ATTRIBUTION_SLICES)
    for make in (spark_views, duckdb_views):
        text = make("/w", [MODEL_SUMMARY, MODEL_COMPARISONS, *ungated, BIAS_RUNS])
        views = re.findall(r"VIEW (latest_accepted_\w+)", text)
        assert views == ["latest_accepted_model_summary", "latest_accepted_model_comparisons"]


# ---- the files


def test_only_tables_that_are_there_have_views(tmp_path: Path, spark: SparkSession) -> None:
    directory = tmp_path / "bias_metrics" / "run_date=2026-01-15" / "run_id=r1"
    directory.mkdir(parents=True)
    assert refresh_views(spark, PathStore(str(tmp_path))) == ()
    assert "CREATE" not in (tmp_path / DUCKDB_FILE).read_text()
    (directory / "part-0.parquet").touch()
    assert refresh_views(spark, PathStore(str(tmp_path))) == ()
    assert "CREATE OR REPLACE VIEW bias_metrics AS" in (tmp_path / DUCKDB_FILE).read_text()
    # Without a ledger nothing is published.
    assert "VIEW latest_" not in (tmp_path / SPARK_FILE).read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bias_metrics", DUCKDB_FILE, SPARK_FILE]


def test_a_file_that_cannot_be_written_is_a_warning(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / SPARK_FILE).mkdir()
    (warning,) = refresh_views(spark, PathStore(str(tmp_path)))
    assert SPARK_FILE in warning
    assert sorted(path.name for path in tmp_path.iterdir()) == [SPARK_FILE]


@pytest.mark.parametrize("path", ["s3a://bucket/warehouse", "hdfs:/warehouse", "/no/such/folder"])
def test_a_folder_of_another_machine_is_a_warning(path: str, spark: SparkSession) -> None:
    (warning,) = refresh_views(spark, PathStore(path))
    assert f"{path} " in warning


# ---- a catalog


def describe(spark: SparkSession, view: str) -> dict[str, str]:
    return {row[0]: row[1] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {view}").collect()}


@pytest.mark.slow
def test_a_catalog_holds_the_views(spark: SparkSession, catalog: CatalogStore) -> None:
    publish_runs(spark, catalog)
    assert refresh_views(spark, catalog) == ()
    view = catalog.name("latest_bias_metrics")
    assert [tuple(row) for row in spark.sql(LATEST.replace("latest_bias_metrics", view)).collect()] == SEEN
    assert spark.table(view).schema == spark_schema(BIAS_METRICS)
    details = describe(spark, view)
    assert details["Comment"].startswith(BIAS_METRICS.comment)
    scans = scans_of_one_date(spark, view)
    assert len(scans) >= 2
    assert all(scans)
    assert spark.table(catalog.name("latest_accepted_bias_metrics")).columns == list(BIAS_METRICS.names)
    assert tuple(spark.table(catalog.name("latest_suite")).columns) == LATEST_SUITE

    assert refresh_views(spark, catalog) == ()
    assert describe(spark, view)["Created Time"] == details["Created Time"]

    # One of other columns is made anew, and so is one of another query or comment, as an older version wrote it.
    commented = ", ".join(f"{name} COMMENT 'old'" for name in BIAS_METRICS.names)
    for older in (
        "AS SELECT 1 AS x",
        f"AS SELECT {', '.join(BIAS_METRICS.names)} FROM {catalog.name('bias_metrics')}",
        f"({commented}) AS {details['View Text']}",
    ):
        spark.sql(f"CREATE OR REPLACE VIEW {view} {older}")
        assert refresh_views(spark, catalog) == ()
        assert describe(spark, view)["View Text"] == details["View Text"]
        assert spark.table(view).schema == spark_schema(BIAS_METRICS)


@pytest.mark.slow
def test_a_catalog_shows_accepted_runs(spark: SparkSession, catalog: CatalogStore) -> None:
    publish(spark, suite_tables(0.61), start_run(), catalog, replace(record_of(), status=ACCEPTED))
    publish(spark, suite_tables(0.62), start_run(), catalog, record_of())
    assert refresh_views(spark, catalog) == ()
    view = catalog.name("latest_accepted_bias_metrics")
    query = ACCEPTED_ROWS.replace("latest_accepted_bias_metrics", view)
    assert [tuple(row) for row in spark.sql(query).collect()] == [(RUN_DATE, "civil", 0.61)]
    assert "accepted" in describe(spark, view)["Comment"]


@pytest.mark.slow
def test_columns_that_a_table_of_a_catalog_lacks_are_null(spark: SparkSession, catalog: CatalogStore) -> None:
    """An older version created the table, and no run has written it since."""
    publish(spark, suite_tables(), start_run(), catalog, record_of())
    spark.sql(
        f"CREATE TABLE {catalog.name('pinned_auc')} (run_date DATE, corpus STRING, model STRING, slice STRING, "
        "identity STRING, run_id STRING) USING parquet PARTITIONED BY (run_date, run_id)"
    )
    assert refresh_views(spark, catalog) == ()
    assert spark.table(catalog.name("latest_pinned_auc")).schema == spark_schema(PINNED_AUC)


@pytest.mark.slow
def test_a_view_that_cannot_be_made_is_a_warning(spark: SparkSession, catalog: CatalogStore) -> None:
    publish(spark, suite_tables(), start_run(), catalog, record_of())
    spark.sql(f"CREATE TABLE {catalog.name('latest_model_summary')} (x INT) USING parquet")
    (warning,) = refresh_views(spark, catalog)
    assert warning.startswith(f"{catalog.name('latest_model_summary')}: ")
    assert "run again" not in warning
    assert spark.table(catalog.name("latest_bias_metrics")).count() == 2
