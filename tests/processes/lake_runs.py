"""Runs on Delta and Iceberg with their real runtimes; test_lake.py runs it in a process of its own.

The session has the settings of conf/lake-*.conf, with all below one folder, and the runtimes of the Spark that runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pyarrow as pa
import pyspark
import pyspark.sql.functions as F
import pytest
from pyspark.sql import SparkSession

from biasspark.cli import Progress
from biasspark.errors import BiasSparkError, InputError
from biasspark.expressions.sql import quote_name
from biasspark.session import build_session
from biasspark.tables import delta
from biasspark.tables.lake import LakeStore
from biasspark.tables.ledger import read_ledger
from biasspark.tables.parquet import read_files
from biasspark.tables.publish import publish, read_rows
from biasspark.tables.runs import Run
from biasspark.tables.schemas import BIAS_METRICS, BIAS_RUNS, MODEL_SUMMARY, PINNED_SKEW, THRESHOLD_RATES, U_STATISTICS
from biasspark.tables.store import CatalogStore, DeltaFolder, DeltaStore, IcebergStore, PathStore, Store
from biasspark.tables.views import refresh_views
from biasspark.workflows import measure as bias_metrics
from biasspark.workflows.maintain import Policy, optimize_tables, plan_maintenance, remove_runs
from scripts.dev.proof import prove
from scripts.dev.soak_test import write_corpus
from tests.harness.main_job import write_config
from tests.harness.running_jobs import ask, run_main
from tests.harness.sample_run import RUN_DATE, breaking, full_rows, record_of, skew_tables, start_run
from tests.harness.spark_effort import MAX_SPARK_JOBS, watch
from tests.harness.submitting import ROOT, run_python
from tests.oracle.run_tables import KEYS

SPARK = ".".join(pyspark.__version__.split(".")[:2])
SPARK_OF_THE_FILES = "4.1"
RUNS_PAGE = (ROOT / "docs" / "runs.md").read_text("utf-8")
RUNTIMES = {
    name: dict(re.findall(rf"^\| ([\d.]+)\b.*`(\S*{name}-spark\S*)`", RUNS_PAGE, re.MULTILINE))
    for name in ("delta", "iceberg")
}
"""By version of Spark."""
FORMATS = {
    name: runtimes
    for name, runtimes in RUNTIMES.items()
    if SPARK in runtimes and pyspark.__version__ not in {"3.5.0", "3.5.1"}
}
"""Those that have a runtime for this Spark; those of 3.5 ask for classes that it has since 3.5.2."""
NEXT_DATE = RUN_DATE + timedelta(days=1)
STORES: dict[str, Callable[[Path], LakeStore]] = {
    "delta folder": lambda folder: DeltaFolder(f"{folder}/it's a `folder`"),
    "delta by spark": lambda folder: DeltaFolder(f"{folder}/by spark"),
    "delta catalog": lambda _: DeltaStore("spark_catalog.bias"),
    "iceberg jdbc": lambda _: IcebergStore("lake.bias"),
    "iceberg hadoop": lambda _: IcebergStore("plain.bias"),
    "iceberg hadoop, views elsewhere": lambda _: IcebergStore("plain.elsewhere", "spark_catalog.views"),
    "iceberg hive": lambda _: IcebergStore("hive.ice"),
}
KINDS = [kind for kind in STORES if kind.split()[0] in FORMATS]
LOST = "lost"
"""A catalog whose list of tables lies in a folder that is not there."""
JOB_CORPUS, JOB_CONFIG, JOB_ROWS = "corpus.parquet", "job.toml", 4000
DELTA_CORPUS = "delta corpus"
COMPARED = (U_STATISTICS, BIAS_METRICS, MODEL_SUMMARY, THRESHOLD_RATES)
QUESTION = ROOT / "conf" / "sql" / "worst_identities.sql"
ANSWERED = ("model", "slice", "place", "identity", "metric")
OUTPUTS: dict[str, tuple[Callable[[Path], Store], str]] = {
    "parquet": (lambda folder: PathStore(f"{folder}/parquet"), 'path = "{folder}/parquet"'),
    "delta folder": (lambda folder: DeltaFolder(f"{folder}/delta"), 'path = "{folder}/delta", format = "delta"'),
    "delta by spark": (lambda folder: DeltaFolder(f"{folder}/spark"), 'path = "{folder}/spark", format = "delta"'),
    "iceberg jdbc": (lambda _: IcebergStore("lake.job"), 'catalog = "lake.job", format = "iceberg"'),
}
"""Where the job publishes to, by kind: the store, and its configuration."""
WITH_JOB = [kind for kind in KINDS if kind in OUTPUTS]
"""Those in which the job runs, and nothing is compacted, which takes Spark as long as the runs."""

iceberg = pytest.mark.skipif("iceberg" not in FORMATS, reason=f"Iceberg has no runtime for Spark {SPARK}")


def read_conf(name: str) -> dict[str, str]:
    """Return the settings of conf/lake-*.conf for a format, with its runtime for the Spark that runs."""
    artifacts, text = FORMATS[name], (ROOT / "conf" / f"lake-{name}.conf").read_text("utf-8")
    assert text.count(artifacts[SPARK_OF_THE_FILES]) == 1
    lines = text.replace(artifacts[SPARK_OF_THE_FILES], artifacts[SPARK]).splitlines()
    return dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))


def read_settings(folder: Path) -> dict[str, str]:
    """Return the settings of both files in one, as a session that speaks both formats has them, and more catalogs."""
    settings: dict[str, str] = {}
    for name in FORMATS:
        for key, value in read_conf(name).items():
            together = settings.get(key) if key in ("spark.jars.packages", "spark.sql.extensions") else None
            settings[key] = f"{together},{value}" if together else value
    if IcebergStore.provider in FORMATS:
        settings |= catalog_settings(folder)
    settings |= {
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.catalogImplementation": "hive",
    }
    return settings


def catalog_settings(folder: Path) -> dict[str, str]:
    """Return the settings of Iceberg's catalogs."""
    catalog = "org.apache.iceberg.spark.SparkCatalog"
    return {
        "spark.sql.catalog.plain": catalog,
        "spark.sql.catalog.plain.type": "hadoop",
        "spark.sql.catalog.plain.warehouse": f"{folder}/plain",
        "spark.sql.catalog.hive": catalog,
        "spark.sql.catalog.hive.type": "hive",
        "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",  # its pool of connections is not among PySpark's jars
        f"spark.sql.catalog.{LOST}": catalog,
        f"spark.sql.catalog.{LOST}.type": "jdbc",
        f"spark.sql.catalog.{LOST}.uri": f"jdbc:sqlite:{folder}/nowhere/lake.db",
        f"spark.sql.catalog.{LOST}.warehouse": "build/lake",
        "spark.sql.catalog.lake.uri": f"jdbc:sqlite:{folder}/lake.db",
        "spark.sql.catalog.lake.warehouse": f"{folder}/lake",
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def lake(folder: Path) -> Iterator[SparkSession]:
    session = build_session("lake runs", read_settings(folder))
    yield session
    session.stop()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "delta by spark":  # without delta-rs Spark does all in folders of Delta
        monkeypatch.setattr(delta, "is_installed", lambda: False)
    return str(request.param)


# ---- tables


def read_latest(spark: SparkSession, store: CatalogStore) -> list[tuple[str, float]]:
    """Return what a reader sees through the view: of the file, of the catalog, or of the SQL that the warning gives."""
    view = f"latest_{PINNED_SKEW.name}"
    if isinstance(store, DeltaFolder):
        assert store.local_folder is not None
        for statement in (store.local_folder / "views.spark.sql").read_text("utf-8").split(";")[:-1]:
            spark.sql(statement)
    elif warnings := refresh_views(spark, store):
        spark.sql(warnings[0][warnings[0].index("CREATE") :].partition(";")[0])
    else:
        view = store.view_name(view)
    rows = spark.sql(f"SELECT DISTINCT run_date, pinned_auc FROM {view} ORDER BY 1").collect()
    return [(str(row[0]), row[1]) for row in rows]


BEFORE_LAST = [("2026-01-15", 0.7), ("2026-01-16", 0.9)]


def test_tables_are_published_seen_and_kept_in_order(lake: SparkSession, folder: Path, kind: str) -> None:
    """Two dates are published, one of them twice and once more in vain.

    The tables were made without their last columns, and get one more of a version to come.
    """
    store = STORES[kind](folder)
    store.check(lake, (PINNED_SKEW, BIAS_RUNS))
    with patch.object(store, "_constraints", return_value=[]):  # of runs that were killed before they added any
        for table in (PINNED_SKEW, BIAS_RUNS):
            store._prepare(lake, replace(table, values=table.values[:-1]))
            store._prepare(lake, table)

    def publish_skew(run: Run, auc: float) -> None:
        publish(lake, skew_tables(auc), replace(run, started_at=datetime.now(UTC)), store, record_of())

    first = start_run(job=PINNED_SKEW.job)
    publish_skew(first, 0.6)
    dates = (RUN_DATE, RUN_DATE, RUN_DATE, NEXT_DATE)
    second, broken, dead, last = (start_run(run_date=run_date, job=PINNED_SKEW.job) for run_date in dates)
    publish_skew(second, 0.7)
    with breaking(store, BIAS_RUNS):
        for run in (broken, dead):
            with pytest.raises(BiasSparkError, match=r"^bias_runs: broken$"):
                publish_skew(run, 0.1)
    with pytest.raises(BiasSparkError, match="already"):
        publish_skew(second, 0.7)
    with pytest.raises(BiasSparkError, match=r"4 rows .*2 rows"):  # with those that the run left when it died
        publish_skew(dead, 0.1)
    lake.sql(f"ALTER TABLE {store.name(PINNED_SKEW.name)} ADD COLUMNS (of_tomorrow DOUBLE)")
    publish_skew(last, 0.9)
    assert store.read_rows(lake, PINNED_SKEW, second)["pinned_auc"].to_pylist() == [0.7, 0.7]
    warnings = refresh_views(lake, store)
    assert read_latest(lake, store) == BEFORE_LAST
    runs = {run.run_id for run in (first, second, broken, dead, last)}
    assert {run_id for _, run_id in store.list_runs(lake, PINNED_SKEW)} == runs
    check_table(lake, store)

    tomorrow = datetime.now(UTC) + timedelta(days=1)
    young = plan_maintenance(lake, store, Policy(tomorrow, tomorrow - timedelta(days=2)), compact=True)
    removed = {removal.run_id for removal in young.removals}
    assert (first.run_id in removed, {broken.run_id, dead.run_id} & removed) == (True, set())
    plan = plan_maintenance(lake, store, Policy(tomorrow, tomorrow), compact=True)
    reasons = {removal.run_id: removal.reason for removal in plan.removals}
    gone = {first.run_id: "superseded", broken.run_id: "failed", dead.run_id: "failed"}
    assert gone.items() <= reasons.items()
    remove_runs(lake, store, plan.removals)
    if kind not in WITH_JOB:
        optimize_tables(lake, store, Policy(tomorrow, started_until=datetime.now(UTC)), Progress())
    assert {run_id for _, run_id in store.list_runs(lake, PINNED_SKEW)} == {second.run_id, last.run_id}
    assert read_latest(lake, store) == BEFORE_LAST
    assert sorted(row["run_id"] for row in read_ledger(lake, store)) == sorted(
        run.run_id for run in (first, second, last)
    )
    if kind == "iceberg jdbc":
        assert len(list(folder.glob("lake/bias/pinned_skew/metadata/*.metadata.json"))) <= 11
    elif kind == "iceberg hadoop":
        (warning,) = warnings
        assert warning.startswith("`plain`.`bias`: its catalog holds no views. Set [output] views")
    elif "elsewhere" in kind:
        assert warnings == ()


def check_table(spark: SparkSession, store: LakeStore) -> None:
    """Check what a table says of itself, and what it refuses: other types, NULL in a key, and with Delta NaN."""
    name, key = store.name(PINNED_SKEW.name), {"run_date", "corpus", *PINNED_SKEW.key_columns, "run_id"}
    schema = spark.table(name).schema
    comments = {column.name: column.comment for column in PINNED_SKEW.columns} | {"of_tomorrow": None}
    assert {field.name: field.metadata.get("comment") for field in schema} == comments
    assert {field.name for field in schema if not field.nullable} == key
    details = {row[0]: row[1] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()}
    assert details.get("Comment") == PINNED_SKEW.comment
    if isinstance(store, IcebergStore):
        (fields,) = re.findall(r"identifier-fields=\[(.*?)\]", details["Table Properties"])
        assert set(fields.split(",")) == key
        assert "write.metadata.delete-after-commit.enabled=true" in details["Table Properties"]

    values = (replace(column, type="STRING") if column.name == "trials" else column for column in PINNED_SKEW.values)
    with pytest.raises(InputError, match=r"pinned_skew.*corpus STRING, model STRING"):
        store.check(spark, [replace(PINNED_SKEW, values=tuple(values))])
    run = start_run(job=PINNED_SKEW.job)
    rows = full_rows(PINNED_SKEW, skew_tables(0.5)[PINNED_SKEW], run)
    nan, hole = (
        rows.set_column(rows.column_names.index(name), name, pa.array([value] * len(rows), rows[name].type))
        for name, value in (("pinned_auc", math.nan), ("model", None))
    )
    words = "no_nan_from_fraction|NaN in pinned_auc"  # by Spark, and by delta-rs
    with nullcontext() if isinstance(store, IcebergStore) else pytest.raises(BiasSparkError, match=words):
        store.write(spark, PINNED_SKEW, nan, run)
    with pytest.raises(BiasSparkError, match=r"NOT.NULL|non-nullable field"):  # the latter is Spark 3.5's own
        store.write(spark, PINNED_SKEW, hole, run)


# ---- the job


class JobRuns(NamedTuple):
    """The last of some runs of the job row by row, every digit of a number showing, and the Spark jobs of each."""

    tables: dict[str, list[list[str]]]
    counted: dict[str, int]
    n_jobs: list[int]


def run_job(spark: SparkSession, folder: Path, kind: str) -> JobRuns:
    """Measure two dates of a small corpus as jobs/bias_metrics.py does."""
    make_store, output = OUTPUTS[kind]
    output = f"output={{ {output.format(folder=folder)} }}"
    n_jobs = []
    for run_date in (RUN_DATE - timedelta(days=1), RUN_DATE):
        with watch(spark, JOB_ROWS) as effort:
            flags = ("--config", folder / JOB_CONFIG, "--run-date", run_date, "--set", output)
            done = run_main(bias_metrics.COMMAND, *flags)
        n_jobs.append(effort.n_jobs)
        assert done.code == 0, done.err
    run, tables = replace(start_run(), run_id=done.summary["run_id"]), {}
    for table in COMPARED:
        rows, _ = read_rows(spark, make_store(folder), table, [run])
        tables[table.name] = write_out(rows.select(table.value_columns))
        assert len(rows) >= 4
    return JobRuns(tables, done.summary["tables"], n_jobs)


def write_out(rows: pa.Table) -> list[list[str]]:
    return sorted(list(map(repr, row.values())) for row in rows.to_pylist())


@pytest.fixture(scope="module")
def on_parquet(lake: SparkSession, folder: Path) -> JobRuns:
    """Write the small corpus, and a configuration with nearly every part, and run the job."""
    corpus = folder / JOB_CORPUS
    write_corpus(corpus, rows=JOB_ROWS, seed=1)
    drop = {"name": "drop", "metric": "auc", "max_drop": 0.5}
    written = write_config(
        folder,
        corpus={"name": "civil", "path": str(corpus)},
        models={"m": None, "toxicity_1": "toxicity_1", "toxicity_6": "toxicity_6"},
        identities={"columns": ["female", "muslim", "other_gender"], "threshold": 0.5},
        slices={"short": "comment_length < 100"},
        thresholds={"at": [0.5, 0.8]},
        histograms={"bins": 10},
        label_balance={"length": "comment_length"},
        pinned_auc={},
        gate={"rule": [{"name": "floor", "metric": "bpsn_auc", "min": 0.1}, drop]},
        output={"path": f"{corpus}.warehouse"},
    )
    written.rename(folder / JOB_CONFIG)
    return run_job(lake, folder, "parquet")


@pytest.mark.parametrize("kind", WITH_JOB, indirect=True)
def test_the_job_publishes_what_it_does_on_parquet_by_few_spark_jobs(
    lake: SparkSession, folder: Path, on_parquet: JobRuns, kind: str
) -> None:
    """Of the first run of a warehouse, and of the next. On Parquet and Delta in a folder of this machine no table costs
    any.

    On Iceberg one writes each table, one reads them back, and a few look at the ledger and at the run before, and add
    the row of the ledger. Delta by Spark alone reads the log of each table for itself, and makes none without a job;
    the number differs by a few from run to run.
    """
    job = run_job(lake, folder, kind)
    assert (job.counted, job.tables) == (on_parquet.counted, on_parquet.tables)
    n_written = sum(n_rows > 0 for n_rows in job.counted.values())
    more = {"delta folder": 0, "delta by spark": 5 * (n_written + 1), "iceberg jdbc": n_written + 7}[kind]
    assert max(on_parquet.n_jobs) <= 7
    assert max(job.n_jobs) <= max(on_parquet.n_jobs) + more
    assert kind == "delta by spark" or max(job.n_jobs) <= MAX_SPARK_JOBS
    if kind == "iceberg jdbc":  # a question is asked in the catalog as on the path
        lake.sql("USE lake.job")
        worst = [[row[name] for name in ANSWERED] for row in lake.sql(QUESTION.read_text("utf-8")).collect()]
        lake.sql("USE spark_catalog.default")
        query = QUESTION.read_text("utf-8").rstrip("\n;")
        assert worst == list(map(list, ask(folder / "parquet", f"SELECT {', '.join(ANSWERED)} FROM ({query})"))) != []


def test_what_the_job_published_is_proved(folder: Path, on_parquet: JobRuns) -> None:
    """By an oracle, on a run that was really measured."""
    proof = prove(folder / "parquet", {RUN_DATE: folder / JOB_CORPUS}, folder / JOB_CONFIG)
    assert proof.numbers.keys() == KEYS.keys()


@pytest.mark.skipif("delta" not in FORMATS, reason=f"Delta has no runtime for Spark {SPARK}")
@pytest.mark.usefixtures("on_parquet")
def test_a_corpus_of_delta_is_measured_without_spark_as_with_it(lake: SparkSession, folder: Path) -> None:
    """With partitions whose names Spark escapes, and rows that are gone."""
    pytest.importorskip("pysail")
    pytest.importorskip("deltalake")
    cities = F.array(*(F.lit(city) for city in ("New York", "a/b", "10:00", "%41", "é", None)))
    rows = lake.read.parquet(str(folder / JOB_CORPUS)).withColumn(
        "city", F.element_at(cities, F.expr("int(id % 6 + 1)"))
    )
    rows.write.format("delta").partitionBy("city").save(str(folder / DELTA_CORPUS))
    lake.sql(f"DELETE FROM delta.{quote_name(str(folder / DELTA_CORPUS))} WHERE toxicity_1 > 0.8")
    done = run_main(bias_metrics.COMMAND, *delta_corpus_flags(folder, "measured by spark"))
    assert done.code == 0, done.err
    assert 0 < done.summary["n_rows"] < JOB_ROWS
    flags = delta_corpus_flags(folder, "measured without")
    embedded = run_python("-m", "biasspark", "measure", "--engine", "embedded", *flags)
    assert embedded.returncode == 0, embedded.stderr
    by_spark, without = (
        write_out(read_files(U_STATISTICS, (folder / out).glob("u_statistics/*/*")).drop_columns(["run_id"]))
        for out in ("measured by spark", "measured without")
    )
    assert by_spark == without != []


def delta_corpus_flags(folder: Path, out: str) -> list[str]:
    """Return the flags of the job that measures the corpus of Delta."""
    changes = [
        f'corpus.path="{folder}/{DELTA_CORPUS}"',
        'corpus.format="delta"',
        f'output={{ path = "{folder}/{out}" }}',
    ]
    slices = {"york": "city = 'New York'", "odd": "city IN ('a/b', '%41', 'é')", "nowhere": "city IS NULL"}
    changes += [f'slices.{name}="{predicate}"' for name, predicate in slices.items()]
    flags = ["--config", f"{folder}/{JOB_CONFIG}", "--run-date", str(RUN_DATE)]
    return [*flags, *(flag for change in changes for flag in ("--set", change))]


@iceberg
def test_a_catalog_that_is_nowhere_is_named(lake: SparkSession) -> None:
    with pytest.raises(BiasSparkError, match=f"^catalog {LOST}: could not be opened, "):
        IcebergStore(f"{LOST}.bias").check(lake, ())
