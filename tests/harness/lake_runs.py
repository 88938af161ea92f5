"""A few runs on Delta or Iceberg, in a process of its own whose session has the runtimes; the results as JSON.

``python -m tests.harness.lake_runs OUT FOLDER KIND...`` with kinds of ``STORES``. The settings are those of
conf/lake-*.conf, with everything below FOLDER, and with the runtimes of the Spark that runs.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyspark
import pyspark.sql.functions as F
from pyspark.sql import SparkSession

from biasspark.cli import Progress
from biasspark.errors import BiasSparkError
from biasspark.expressions.sql import quote_name
from biasspark.session import build_session
from biasspark.tables import delta
from biasspark.tables.lake import LakeStore
from biasspark.tables.ledger import read_ledger
from biasspark.tables.publish import publish, read_rows
from biasspark.tables.runs import Run
from biasspark.tables.schemas import (
    BIAS_METRICS,
    BIAS_RUNS,
    MODEL_SUMMARY,
    PINNED_SKEW,
    THRESHOLD_RATES,
    U_STATISTICS,
    Table,
)
from biasspark.tables.store import CatalogStore, DeltaFolder, DeltaStore, IcebergStore, PathStore, Store
from biasspark.tables.views import refresh_views
from biasspark.workflows import measure as bias_metrics
from biasspark.workflows.maintain import Policy, optimize_tables, plan_maintenance, remove_runs
from scripts.dev.soak_test import write_corpus
from tests.harness.main_job import write_config
from tests.harness.running_jobs import run_main
from tests.harness.sample_run import RUN_DATE, breaking, full_rows, record_of, skew_tables, start_run
from tests.harness.spark_effort import watch

ROOT = Path(__file__).resolve().parents[2]
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
LOST = "lost"
"""A catalog whose list of tables lies in a folder that is not there."""
JOB_CORPUS, JOB_CONFIG, JOB_ROWS = "corpus.parquet", "job.toml", 4000
DELTA_CORPUS = "delta corpus"
COMPARED = (U_STATISTICS, BIAS_METRICS, MODEL_SUMMARY, THRESHOLD_RATES)
QUESTION, ANSWERED = "worst_identities", ("model", "slice", "place", "identity", "metric")
OUTPUTS: dict[str, tuple[Callable[[Path], Store], str]] = {
    "parquet": (lambda folder: PathStore(f"{folder}/parquet"), 'path = "{folder}/parquet"'),
    "delta folder": (lambda folder: DeltaFolder(f"{folder}/delta"), 'path = "{folder}/delta", format = "delta"'),
    "delta by spark": (lambda folder: DeltaFolder(f"{folder}/spark"), 'path = "{folder}/spark", format = "delta"'),
    "iceberg jdbc": (lambda _: IcebergStore("lake.job"), 'catalog = "lake.job", format = "iceberg"'),
}
"""Where the job publishes to, by kind: the store, and its configuration."""
WITH_JOB = ("iceberg jdbc", "delta folder", "delta by spark")
"""Those in which the job runs, and nothing is compacted, which takes Spark as long as the runs."""


def read_conf(name: str) -> dict[str, str]:
    """Return the settings of conf/lake-*.conf for a format, with its runtime for the Spark that runs."""
    artifacts, text = FORMATS[name], (ROOT / "conf" / f"lake-{name}.conf").read_text("utf-8")
    assert text.count(artifacts[SPARK_OF_THE_FILES]) == 1
    lines = text.replace(artifacts[SPARK_OF_THE_FILES], artifacts[SPARK]).splitlines()
    return dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))


def read_settings(folder: Path, kinds: list[str]) -> dict[str, str]:
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
    }
    if any("catalog" in kind or "elsewhere" in kind or "hive" in kind for kind in kinds):
        settings["spark.sql.catalogImplementation"] = "hive"
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


def write_job(folder: Path) -> None:
    """Write the small corpus, and a configuration with nearly every part."""
    corpus, output = folder / JOB_CORPUS, {"path": f"{folder}/{JOB_CORPUS}.warehouse"}
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
        output=output,
    )
    written.rename(folder / JOB_CONFIG)


def run_job(spark: SparkSession, folder: Path, kind: str, run_dates: Sequence[date]) -> dict[str, Any]:
    """Measure dates of a small corpus as jobs/bias_metrics.py does; return the last, row by row."""
    config = folder / JOB_CONFIG
    if not config.exists():
        write_job(folder)
    make_store, output = OUTPUTS[kind]
    output = f"output={{ {output.format(folder=folder)} }}"
    n_jobs = []
    for run_date in run_dates:
        with watch(spark, JOB_ROWS) as effort:
            done = run_main(bias_metrics.COMMAND, "--config", config, "--run-date", run_date, "--set", output)
        n_jobs.append(effort.n_jobs)
        if done.code:
            return {"fault": done.err}
    run = replace(start_run(), run_id=done.summary["run_id"])
    tables = {table.name: read_values(spark, make_store(folder), table, run) for table in COMPARED}
    return {"tables": tables, "counted": done.summary["tables"], "spark jobs": n_jobs}


def measure_delta_corpus(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Write a corpus of Delta, with partitions whose names Spark escapes and rows that are gone, and measure it."""
    corpus = folder / DELTA_CORPUS
    cities = F.array(*(F.lit(city) for city in ("New York", "a/b", "10:00", "%41", "é", None)))
    rows = spark.read.parquet(str(folder / JOB_CORPUS)).withColumn(
        "city", F.element_at(cities, F.expr("int(id % 6 + 1)"))
    )
    rows.write.format("delta").partitionBy("city").save(str(corpus))
    spark.sql(f"DELETE FROM delta.{quote_name(str(corpus))} WHERE toxicity_1 > 0.8")
    flags = delta_corpus_flags(folder, f"{DELTA_CORPUS} by spark")
    done = run_main(bias_metrics.COMMAND, *flags)
    if done.code:
        return {"fault": done.err}
    run, store = replace(start_run(), run_id=done.summary["run_id"]), PathStore(f"{folder}/{DELTA_CORPUS} by spark")
    return {"n_rows": done.summary["n_rows"], "u": read_values(spark, store, U_STATISTICS, run)}


def delta_corpus_flags(folder: Path, out: str) -> list[str]:
    """Return the flags of the job that measures the corpus of Delta."""
    changes = [
        f'corpus.path="{folder}/{DELTA_CORPUS}"',
        'corpus.format="delta"',
        f'output={{ path = "{folder}/{out}" }}',
    ]
    slices = {"york": "city = 'New York'", "odd": "city IN ('a/b', '%41', 'é')", "nowhere": "city IS NULL"}
    changes += [f'slices.{name}="{predicate}"' for name, predicate in slices.items()]
    return [
        "--config",
        f"{folder}/{JOB_CONFIG}",
        "--run-date",
        str(RUN_DATE),
        *(f for c in changes for f in ("--set", c)),
    ]


def ask_catalog(spark: SparkSession) -> list[list[Any]]:
    """Ask a question of conf/sql of the views in the catalog that the job published to."""
    spark.sql("USE lake.job")
    try:
        rows = spark.sql((ROOT / "conf" / "sql" / f"{QUESTION}.sql").read_text("utf-8")).collect()
    finally:
        spark.sql("USE spark_catalog.default")
    return [[row[name] for name in ANSWERED] for row in rows]


def read_values(spark: SparkSession, store: Store, table: Table, run: Run) -> list[list[str]]:
    """Return the rows of a table, sorted, without the run's id; every digit of a number shows."""
    rows, _ = read_rows(spark, store, table, [run])
    return sorted(list(map(repr, row.values())) for row in rows.select(table.value_columns).to_pylist())


def fault_of(act: Callable[[], object]) -> str:
    try:
        act()
    except BiasSparkError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def live(spark: SparkSession, store: LakeStore, *, optimize: bool) -> dict[str, Any]:
    """Publish two dates, one of them twice and once more in vain; change the table's columns; keep it in order."""
    seen: dict[str, Any] = {}
    store.check(spark, (PINNED_SKEW, BIAS_RUNS))
    with patch.object(store, "_constraints", return_value=[]):  # of runs that were killed before they added any
        for table in (PINNED_SKEW, BIAS_RUNS):
            store._prepare(spark, replace(table, values=table.values[:-1]))
            store._prepare(spark, table)

    def start(run_date: date) -> Run:
        return start_run(run_date=run_date, job=PINNED_SKEW.job)

    def publish_skew(run: Run, auc: float) -> None:
        publish(spark, skew_tables(auc), replace(run, started_at=datetime.now(UTC)), store, record_of())

    first = start(RUN_DATE)
    publish_skew(first, 0.6)
    runs = [first, *map(start, (RUN_DATE, RUN_DATE, RUN_DATE, NEXT_DATE))]
    _, second, broken, dead, last = runs
    publish_skew(second, 0.7)
    with breaking(store, BIAS_RUNS):
        seen["broken"] = fault_of(lambda: publish_skew(broken, 0.1))
        fault_of(lambda: publish_skew(dead, 0.1))
    seen["published twice"] = fault_of(lambda: publish_skew(second, 0.7))
    seen["written twice"] = fault_of(lambda: publish_skew(dead, 0.1))
    spark.sql(f"ALTER TABLE {store.name(PINNED_SKEW.name)} ADD COLUMNS (of_tomorrow DOUBLE)")
    publish_skew(last, 0.9)
    seen["runs"] = [run.run_id for run in runs]
    rows = store.read_rows(spark, PINNED_SKEW, second)
    seen["rows"] = sorted(zip(rows["identity"].to_pylist(), rows["pinned_auc"].to_pylist(), strict=True))
    seen["warnings"] = refresh_views(spark, store)
    seen["latest"] = read_latest(spark, store)
    seen["stored"] = sorted(run_id for _, run_id in store.list_runs(spark, PINNED_SKEW))
    seen |= describe_table(spark, store) | refuse(spark, store) | keep_in_order(spark, store, optimize)
    seen["latest after"] = read_latest(spark, store)
    seen["ledger after"] = sorted(row["run_id"] for row in read_ledger(spark, store))
    return seen


def read_latest(spark: SparkSession, store: CatalogStore) -> list[list[Any]]:
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
    return [[str(row[0]), row[1]] for row in rows]


def describe_table(spark: SparkSession, store: CatalogStore) -> dict[str, Any]:
    name = store.name(PINNED_SKEW.name)
    schema = spark.table(name).schema
    details = {row[0]: row[1] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()}
    return {
        "comments": {field.name: field.metadata.get("comment") for field in schema},
        "required": sorted(field.name for field in schema if not field.nullable),
        "comment": details.get("Comment"),
        "properties": details["Table Properties"],
    }


def refuse(spark: SparkSession, store: CatalogStore) -> dict[str, Any]:
    """Ask for what must be refused."""
    values = (replace(column, type="STRING") if column.name == "trials" else column for column in PINNED_SKEW.values)
    wrong, run = replace(PINNED_SKEW, values=tuple(values)), start_run(job=PINNED_SKEW.job)
    rows = full_rows(PINNED_SKEW, skew_tables(0.5)[PINNED_SKEW], run)
    nan, hole = (
        rows.set_column(rows.column_names.index(name), name, pa.array([value] * len(rows), rows[name].type))
        for name, value in (("pinned_auc", math.nan), ("model", None))
    )
    return {
        "misfit": fault_of(lambda: store.check(spark, [wrong])),
        "nan": fault_of(lambda: store.write(spark, PINNED_SKEW, nan, run)),
        "null key": fault_of(lambda: store.write(spark, PINNED_SKEW, hole, run)),
    }


def keep_in_order(spark: SparkSession, store: LakeStore, optimize: bool) -> dict[str, Any]:
    """Maintain the tables as of tomorrow, keeping nothing that may go."""
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    young = plan_maintenance(spark, store, Policy(tomorrow, tomorrow - timedelta(days=2)), compact=True)
    plan = plan_maintenance(spark, store, Policy(tomorrow, tomorrow), compact=True)
    remove_runs(spark, store, plan.removals)
    if optimize:
        optimize_tables(spark, store, Policy(tomorrow, started_until=datetime.now(UTC)), Progress())
    return {
        "would remove while young": [[removal.run_id, removal.reason] for removal in young.removals],
        "removed": sorted([removal.run_id, removal.reason] for removal in plan.removals),
        "kept": sorted(run_id for _, run_id in store.list_runs(spark, PINNED_SKEW)),
    }


def main(out: str, folder: str, *kinds: str) -> None:
    seen: dict[str, dict[str, Any]] = {kind: {} for kind in kinds}
    place = Path(folder)
    run_dates = [RUN_DATE - timedelta(days=1), RUN_DATE]
    spark = build_session("lake runs", read_settings(place, list(kinds)))
    for kind in kinds:
        # Without delta-rs Spark does all in folders of Delta.
        with patch.object(delta, "is_installed", lambda: False) if kind == "delta by spark" else nullcontext():
            seen[kind] = live(spark, STORES[kind](place), optimize=kind not in WITH_JOB)
            if kind in WITH_JOB:
                seen[kind]["job"] = run_job(spark, place, kind, run_dates)
    seen["parquet"] = {"job": run_job(spark, place, "parquet", run_dates)}
    if "delta folder" in kinds:
        seen[DELTA_CORPUS] = measure_delta_corpus(spark, place)
    if "iceberg jdbc" in kinds:
        seen["iceberg jdbc"]["worst"] = ask_catalog(spark)
        seen[LOST] = {"fault": fault_of(lambda: IcebergStore(f"{LOST}.bias").check(spark, ()))}
    Path(out).write_text(json.dumps(seen, default=str), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
