"""The views: what readers see of several nights, corpora and reruns, in Spark, in DuckDB and in a catalog."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import duckdb
import pyspark
import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession

from biasspark.tables.acceptance import Approval, accept
from biasspark.tables.publish import publish
from biasspark.tables.runs import ACCEPTED, Run
from biasspark.tables.schemas import (
    ATTRIBUTION_SLICES,
    BIAS_METRICS,
    BIAS_RUNS,
    MODEL_COMPARISONS,
    MODEL_SUMMARY,
    WINDOW_TABLES,
    Table,
)
from biasspark.tables.store import CatalogStore, PathStore
from biasspark.tables.views import DUCKDB_FILE, SPARK_FILE, duckdb_views, refresh_views, spark_views
from tests.conftest import compiling
from tests.sample_night import NIGHT, TABLES_OF_A_RUN, night_frames, record_of, run_at, start_run, suite_frames

NEXT_NIGHT = date(2026, 1, 16)
SEEN = [
    (NIGHT, "civil", 0.7),
    (NIGHT, "wiki", 0.8),
    (NEXT_NIGHT, "civil", 0.9),
]


def publish_nights(spark: SparkSession, store: PathStore | CatalogStore) -> None:
    """Two corpora and two nights; the first night of civil is run again, and once more by a run that never finishes."""
    publish(night_frames(spark, 0.6), run_at(1, "r9_first", "civil"), store, record_of())
    publish(night_frames(spark, 0.7), start_run("civil"), store, record_of())
    publish(night_frames(spark, 0.8), start_run("wiki"), store, record_of())
    publish(night_frames(spark, 0.9), start_run("civil", NEXT_NIGHT), store, record_of())
    crashed = run_at(2, "rz_crashed", "civil")
    store.write(BIAS_METRICS, with_run(suite_frames(spark, 0.1)[BIAS_METRICS], crashed), crashed)


def with_run(frame: DataFrame, run: Run) -> DataFrame:
    return frame.coalesce(1).withColumns(
        {"corpus": F.lit(run.corpus), "run_date": F.lit(run.run_date), "run_id": F.lit(run.run_id)}
    )


@pytest.fixture(scope="module")
def warehouse(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nights") / 'ware\'s "house"; `é'
    publish_nights(spark_session, PathStore(str(folder)))
    leftover = folder / "model_summary" / "run_date=2026-01-15" / "run_id=r_dead" / "_temporary" / "0"
    leftover.mkdir(parents=True)
    (leftover / "part-00000.snappy.parquet").write_bytes(b"half a file")
    assert refresh_views(spark_session, PathStore(str(folder))) == ()
    return folder


def views_of(table: Table) -> list[str]:
    """Name the views of a table of the main job, and of the ledger."""
    return (
        [table.name] if table == BIAS_RUNS else [f"{view}{table.name}" for view in ("", "latest_", "latest_accepted_")]
    )


def make_spark_views(spark: SparkSession, warehouse: Path, names: str) -> SparkSession:
    """Run the statements of the file that make views of such names."""
    *statements, end = (warehouse / SPARK_FILE).read_text("utf-8").split(";")
    for statement in statements:
        if re.search(rf"VIEW (latest_(accepted_)?)?({names})", statement):
            spark.sql(statement)
    assert end.strip() == ""
    return spark


@pytest.fixture
def spark_views_made(spark: SparkSession, warehouse: Path) -> SparkSession:
    return make_spark_views(spark, warehouse, "bias_metrics|bias_runs")


@pytest.fixture
def duck(warehouse: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute((warehouse / DUCKDB_FILE).read_text("utf-8"))
        yield connection


LATEST = "SELECT DISTINCT run_date, corpus, subgroup_auc FROM latest_bias_metrics ORDER BY 1, 2"

# ---- Spark on plain paths


def test_spark_sees_the_latest_published_run_of_each_night_and_corpus(spark_views_made: SparkSession) -> None:
    assert [tuple(row) for row in spark_views_made.sql(LATEST).collect()] == SEEN


def test_spark_views_have_the_columns_and_comments_of_the_contract(spark: SparkSession, warehouse: Path) -> None:
    make_spark_views(spark, warehouse, r"\w")
    for table in (*TABLES_OF_A_RUN, BIAS_RUNS):
        for view in views_of(table):
            found = spark.table(view).schema
            assert [(f.name, f.dataType) for f in found] == [(f.name, f.dataType) for f in table.schema], view
            assert [f.metadata.get("comment") for f in found] == [c.comment for c in table.columns], view


def scans_of_one_night(spark: SparkSession, view: str) -> list[bool]:
    """Give for each scan of files whether its partitions are those of the night that is asked for."""
    with compiling(spark):  # the night of the ledger is inferred from that of the rows
        plan = str(spark.sql(f"EXPLAIN SELECT * FROM {view} WHERE run_date = DATE'2026-01-16'").collect()[0][0])
    return ["2026-01-16" in line.split("PartitionFilters")[1] for line in plan.splitlines() if "FileScan" in line]


def test_spark_reads_one_night_of_rows_and_of_the_ledger(spark_views_made: SparkSession) -> None:
    for view in ("latest_bias_metrics", "latest_accepted_bias_metrics"):
        scans = scans_of_one_night(spark_views_made, view)
        assert len(scans) >= 2
        assert all(scans)


def test_all_runs_are_in_the_table_itself(spark_views_made: SparkSession) -> None:
    runs = spark_views_made.sql("SELECT DISTINCT run_id FROM bias_metrics WHERE corpus = 'civil'").collect()
    assert {"r9_first", "rz_crashed"} < {row[0] for row in runs}


@pytest.mark.slow
def test_the_file_works_in_the_sql_shell(warehouse: Path, tmp_path: Path) -> None:
    shell = Path(pyspark.__file__).parent / "bin" / "spark-sql"
    settings = ("spark.sql.catalogImplementation=in-memory", "spark.ui.enabled=false", "spark.sql.session.timeZone=UTC")
    conf = [word for setting in settings for word in ("--conf", setting)]
    query = "SELECT run_date, corpus, subgroup_auc FROM latest_bias_metrics WHERE identity = 'male' ORDER BY 1, 2"
    done = subprocess.run(
        [shell, "--master", "local[1]", *conf, "-i", warehouse / SPARK_FILE, "-e", query],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(Path(pyspark.__file__).parent)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3:] == ["\t".join(map(str, row)) for row in SEEN]


# ---- DuckDB on plain paths


def test_duckdb_sees_the_same(duck: duckdb.DuckDBPyConnection) -> None:
    assert duck.execute(LATEST).fetchall() == SEEN


def test_duckdb_views_have_the_columns_of_the_contract(duck: duckdb.DuckDBPyConnection) -> None:
    for table in TABLES_OF_A_RUN:
        for view in views_of(table):
            assert tuple(column[0] for column in duck.execute(f"DESCRIBE {view}").fetchall()) == table.names
    types = {row[0]: row[1] for row in duck.execute("DESCRIBE bias_runs").fetchall()}
    assert (types["run_date"], types["run_id"]) == ("DATE", "VARCHAR")
    assert (types["rejects"], types["warnings"]) == ("MAP(VARCHAR, BIGINT)", "VARCHAR[]")
    assert types["published_at"] == "TIMESTAMP WITH TIME ZONE"


def test_duckdb_reads_one_night_of_rows_and_of_the_ledger(duck: duckdb.DuckDBPyConnection) -> None:
    for view in ("latest_bias_metrics", "latest_accepted_bias_metrics"):
        query = f"EXPLAIN SELECT identity FROM {view} WHERE run_date = DATE '2026-01-16'"
        plan = duck.execute(query).fetchall()[0][1]
        assert sorted(re.findall(r"Scanning Files: (\d+)/(\d+)", plan)) == [("1", "4"), ("1", "5")]


def test_duckdb_finds_a_folder_that_has_moved(warehouse: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved's"
    moved.symlink_to(warehouse)
    text = duckdb_views("/no/such/folder", (*TABLES_OF_A_RUN, BIAS_RUNS))
    with duckdb.connect() as connection:
        connection.execute("SET VARIABLE warehouse = ?", [str(moved)])
        connection.execute(text)
        assert connection.execute(LATEST).fetchall() == SEEN


def test_columns_that_files_lack_are_null(spark: SparkSession, tmp_path: Path) -> None:
    store = PathStore(str(tmp_path))
    run = run_at(1, "r1")
    older = with_run(night_frames(spark, 0.6)[BIAS_METRICS], run).drop("crossed", "positive_aeg")
    store.write(BIAS_METRICS, older, run)
    query = "SELECT DISTINCT subgroup_auc, crossed, positive_aeg FROM bias_metrics"
    with duckdb.connect() as connection:
        connection.execute(duckdb_views(str(tmp_path), [BIAS_METRICS]))
        assert connection.execute(query).fetchall() == [(0.6, None, None)]
    for statement in spark_views(str(tmp_path), [BIAS_METRICS]).split(";")[:-1]:
        spark.sql(statement)
    assert [tuple(row) for row in spark.sql(query).collect()] == [(0.6, None, None)]


# ---- accepted runs

ACCEPTED_ROWS = LATEST.replace("latest_", "latest_accepted_")


def publish_judged_nights(spark: SparkSession, store: PathStore | CatalogStore) -> None:
    """Publish one night: civil passes, then fails; wiki fails twice, and a person accepts the first; tail fails.

    Another night of civil passes, passes again, and fails. `auc` tells the runs apart.
    """
    runs = [("civil", NIGHT, 0.61, True), ("civil", NIGHT, 0.62, False), ("wiki", NIGHT, 0.71, False)]
    runs += [("tail", NIGHT, 0.81, False)]
    runs += [("civil", NEXT_NIGHT, auc, passed) for auc, passed in ((0.63, True), (0.64, True), (0.65, False))]
    for corpus, run_date, auc, passed in runs:
        run, record = start_run(corpus, run_date), record_of()
        publish(night_frames(spark, auc), run, store, replace(record, status=ACCEPTED) if passed else record)
        if corpus == "wiki":
            for _ in range(2):  # twice means what once means
                accept(spark, store, run, Approval('"accepted_run_id": "r1"; it\'s known', "A. Turing"))
            publish(night_frames(spark, 0.72), start_run(corpus), store, record)


ACCEPTED_SEEN = [(NIGHT, "civil", 0.61), (NIGHT, "wiki", 0.71), (NEXT_NIGHT, "civil", 0.64)]
LATEST_SEEN = [(NIGHT, "civil", 0.62), (NIGHT, "tail", 0.81), (NIGHT, "wiki", 0.72), (NEXT_NIGHT, "civil", 0.65)]


def test_a_run_that_failed_does_not_replace_the_accepted_one(spark: SparkSession, tmp_path: Path) -> None:
    """Of each night and corpus the last run is there that the gate or a person accepted; each row once."""
    publish_judged_nights(spark, PathStore(str(tmp_path)))
    assert refresh_views(spark, PathStore(str(tmp_path))) == ()
    make_spark_views(spark, tmp_path, "bias_metrics|bias_runs")
    with duckdb.connect() as connection:
        connection.execute((tmp_path / DUCKDB_FILE).read_text("utf-8"))
        for query, wanted in ((ACCEPTED_ROWS, ACCEPTED_SEEN), (LATEST, LATEST_SEEN)):
            assert connection.execute(query).fetchall() == wanted
            assert [tuple(row) for row in spark.sql(query).collect()] == wanted
        count = "SELECT count(*) FROM latest_accepted_bias_metrics"
        assert connection.execute(count).fetchall() == [(6,)]  # two identities of each run
        assert spark.sql(count).collect()[0][0] == 6


def test_without_an_accepted_run_nothing_is_there(
    spark_views_made: SparkSession, duck: duckdb.DuckDBPyConnection
) -> None:
    assert duck.execute(ACCEPTED_ROWS).fetchall() == []
    assert spark_views_made.sql(ACCEPTED_ROWS).collect() == []


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
    assert "latest_bias_metrics AS" not in (tmp_path / SPARK_FILE).read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bias_metrics", DUCKDB_FILE, SPARK_FILE]


def test_a_file_that_cannot_be_written_is_a_warning(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / SPARK_FILE).mkdir()
    (warning,) = refresh_views(spark, PathStore(str(tmp_path)))
    assert "the views could not be written" in warning
    assert sorted(path.name for path in tmp_path.iterdir()) == [SPARK_FILE]


@pytest.mark.parametrize("path", ["s3a://bucket/warehouse", "hdfs:/warehouse", "/no/such/folder"])
def test_a_folder_of_another_machine_is_a_warning(path: str, spark: SparkSession) -> None:
    (warning,) = refresh_views(spark, PathStore(path))
    assert warning.startswith(f"views.spark.sql, views.duckdb.sql: not written, {path} is no folder of this machine.")


# ---- a catalog


@pytest.mark.slow
def test_a_catalog_holds_the_views(spark: SparkSession, catalog: CatalogStore) -> None:
    publish_nights(spark, catalog)
    assert refresh_views(spark, catalog) == ()
    view = catalog.name("latest_bias_metrics")
    assert [tuple(row) for row in spark.sql(LATEST.replace("latest_bias_metrics", view)).collect()] == SEEN
    found = spark.table(view).schema
    assert found.names == list(BIAS_METRICS.names)
    assert [f.metadata["comment"] for f in found] == [c.comment for c in BIAS_METRICS.columns]
    details = {row[0]: row[1] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {view}").collect()}
    assert details["Comment"].startswith(BIAS_METRICS.comment)
    scans = scans_of_one_night(spark, view)
    assert len(scans) >= 2
    assert all(scans)

    assert spark.table(catalog.name("latest_accepted_bias_metrics")).columns == list(BIAS_METRICS.names)

    created = details["Created Time"]
    assert refresh_views(spark, catalog) == ()
    again = {row[0]: row[1] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {view}").collect()}
    assert again["Created Time"] == created

    spark.sql(f"CREATE OR REPLACE VIEW {view} AS SELECT 1 AS x")
    assert refresh_views(spark, catalog) == ()
    assert spark.table(view).columns == list(BIAS_METRICS.names)


def test_a_catalog_shows_accepted_runs(spark: SparkSession, catalog: CatalogStore) -> None:
    publish_judged_nights(spark, catalog)
    assert refresh_views(spark, catalog) == ()
    view = catalog.name("latest_accepted_bias_metrics")
    query = ACCEPTED_ROWS.replace("latest_accepted_bias_metrics", view)
    assert [tuple(row) for row in spark.sql(query).collect()] == ACCEPTED_SEEN
    details = {row[0]: row[1] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {view}").collect()}
    assert "accepted" in details["Comment"]


def test_a_view_that_cannot_be_made_is_a_warning(spark: SparkSession, catalog: CatalogStore) -> None:
    publish(night_frames(spark), start_run(), catalog, record_of())
    spark.sql(f"CREATE TABLE {catalog.name('latest_model_summary')} (x INT) USING parquet")
    (warning,) = refresh_views(spark, catalog)
    assert warning.startswith(f"{catalog.name('latest_model_summary')}: could not be created, ")
    assert spark.table(catalog.name("latest_bias_metrics")).count() == 2
