"""A few nights on Delta or Iceberg, in a process of its own whose session has the runtimes; what came of it, in JSON.

``python -m tests.lake_nights OUT FOLDER KIND...`` with kinds of ``STORES``. The settings are those of conf/lake-*.conf,
with everything below FOLDER, and with the runtimes of the Spark that runs.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyspark
import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

from biasspark.errors import BiasSparkError
from biasspark.session import build_session
from biasspark.tables.formats import DELTA, ICEBERG
from biasspark.tables.maintenance import plan_maintenance, remove_runs, tidy_tables
from biasspark.tables.publish import publish
from biasspark.tables.retention import Policy
from biasspark.tables.runs import Run, new_run
from biasspark.tables.schemas import (
    BIAS_METRICS,
    BIAS_RUNS,
    MODEL_SUMMARY,
    PINNED_SKEW,
    THRESHOLD_RATES,
    U_STATISTICS,
    Column,
    Table,
)
from biasspark.tables.store import CatalogStore, DeltaFolder, LakeStore, PathStore
from biasspark.tables.views import refresh_views
from jobs import bias_metrics
from scripts.nightly_drill import write_corpus
from tests.hurrying import HURRIED_JAVA, INTERPRETED, hurry_java, hurry_python
from tests.running_jobs import run_main
from tests.sample_night import NIGHT, frame_of, record_of

ROOT = Path(__file__).resolve().parents[1]
SPARK = ".".join(pyspark.__version__.split(".")[:2])
SPARK_OF_THE_FILES = "4.1"
FORMATS = {
    kind.name: kind
    for kind in (DELTA, ICEBERG)
    if SPARK in kind.artifacts and pyspark.__version__ not in {"3.5.0", "3.5.1"}
}
"""Those that have a runtime for this Spark; those of 3.5 ask for classes that it has since 3.5.2."""
NEXT_NIGHT = NIGHT + timedelta(days=1)
STORES: dict[str, Callable[[Path], CatalogStore]] = {
    "delta folder": lambda folder: DeltaFolder(f"{folder}/it's a `folder`"),
    "delta catalog": lambda _: LakeStore("spark_catalog.bias", DELTA),
    "iceberg jdbc": lambda _: LakeStore("lake.bias", ICEBERG),
    "iceberg hadoop": lambda _: LakeStore("plain.bias", ICEBERG),
    "iceberg hadoop, views elsewhere": lambda _: LakeStore("plain.elsewhere", ICEBERG, "spark_catalog.views"),
    "iceberg hive": lambda _: LakeStore("hive.ice", ICEBERG),
}
LOST = "lost"
"""A catalog whose list of tables lies in a folder that is not there."""
JOB_CORPUS, JOB_CONFIG = "corpus.parquet", "night.toml"
CONFIG = """
[corpus]
name = "civil"
path = "{corpus}"
id = "id"
[label]
column = "target"
threshold = 0.5
[models]
toxicity_1 = "toxicity_1"
toxicity_6 = "toxicity_6"
[identities]
columns = ["female", "muslim", "other_gender"]
threshold = 0.5
[slices]
short = "comment_length < 100"
[thresholds]
at = [0.5, 0.8]
[histograms]
bins = 10
[label_balance]
length = "comment_length"
[pinned_auc]
[output]
path = "{corpus}.warehouse"
"""
COMPARED = (U_STATISTICS, BIAS_METRICS, MODEL_SUMMARY, THRESHOLD_RATES)
QUESTION, ANSWERED = "worst_identities", ("model", "slice", "place", "identity", "metric")
OUTPUTS = {
    "parquet": 'output={{ path = "{folder}/parquet" }}',
    "delta folder": 'output={{ path = "{folder}/delta", format = "delta" }}',
    "iceberg jdbc": 'output={{ catalog = "lake.job", format = "iceberg" }}',
}
"""Where the job publishes to, by kind."""
QUICK = ("iceberg jdbc", "delta folder")
"""Those in which nothing is compacted, which takes as long as the nights."""


def read_settings(folder: Path, kinds: list[str]) -> dict[str, str]:
    """Give the settings of both files in one, as a session that speaks both formats has them, and further catalogs."""
    settings: dict[str, str] = {}
    for kind in FORMATS.values():
        text = (ROOT / "conf" / f"lake-{kind.name}.conf").read_text("utf-8")
        assert text.count(kind.artifacts[SPARK_OF_THE_FILES]) == 1
        lines = text.replace(kind.artifacts[SPARK_OF_THE_FILES], kind.artifacts[SPARK]).splitlines()
        for key, value in (line.split(None, 1) for line in lines if line and not line.startswith("#")):
            together = settings.get(key) if key in ("spark.jars.packages", "spark.sql.extensions") else None
            settings[key] = f"{together},{value}" if together else value
    if ICEBERG.name in FORMATS:
        settings |= name_catalogs(folder)
    settings |= {
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        # Of a few rows, compiling what runs once takes nearly all the time.
        "spark.driver.extraJavaOptions": HURRIED_JAVA,
        **INTERPRETED,
    }
    if any("catalog" in kind or "elsewhere" in kind or "hive" in kind for kind in kinds):
        settings["spark.sql.catalogImplementation"] = "hive"
    return settings


def name_catalogs(folder: Path) -> dict[str, str]:
    """Give the settings of Iceberg's catalogs."""
    plain = {"": ICEBERG.catalog[""], ".type": "hadoop", ".warehouse": f"{folder}/plain"}
    return {f"spark.sql.catalog.plain{key}": value for key, value in plain.items()} | {
        "spark.sql.catalog.hive": ICEBERG.catalog[""],
        "spark.sql.catalog.hive.type": "hive",
        "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",  # its pool of connections is not among PySpark's jars
        f"spark.sql.catalog.{LOST}": ICEBERG.catalog[""],
        f"spark.sql.catalog.{LOST}.type": "jdbc",
        f"spark.sql.catalog.{LOST}.uri": f"jdbc:sqlite:{folder}/nowhere/lake.db",
        f"spark.sql.catalog.{LOST}.warehouse": "build/lake",
        "spark.sql.catalog.lake.uri": f"jdbc:sqlite:{folder}/lake.db",
        "spark.sql.catalog.lake.warehouse": f"{folder}/lake",
    }


def skew_frame(spark: SparkSession, auc: float) -> DataFrame:
    keys = ({"model": "m", "slice": "all", "identity": name, "cell": "subgroup_negative"} for name in ("a", "b"))
    return frame_of(spark, PINNED_SKEW, [key | {"fraction": 0.5, "trials": 1, "pinned_auc": auc} for key in keys])


@contextmanager
def breaking(store: CatalogStore, broken: Table) -> Iterator[CatalogStore]:
    """Have a store fail before it writes one table."""
    write = store.write

    def fail(table: Table, rows: DataFrame, run: Run) -> None:
        if table == broken:
            raise BiasSparkError(f"{table.name}: broken")
        write(table, rows, run)

    store.write = fail  # type: ignore[method-assign]  # until the block ends
    try:
        yield store
    finally:
        store.write = write  # type: ignore[method-assign]  # as it was


def run_job(spark: SparkSession, folder: Path, kind: str) -> dict[str, Any]:
    """Measure a night of a small corpus as jobs/bias_metrics.py does; give what was published, row by row."""
    config, corpus = folder / JOB_CONFIG, folder / JOB_CORPUS
    if not config.exists():
        config.write_text(CONFIG.format(corpus=corpus), encoding="utf-8")
        write_corpus(corpus, rows=800, seed=1)
    output = OUTPUTS[kind].format(folder=folder)
    done = run_main(bias_metrics.main, "--config", config, "--run-date", NIGHT, "--set", output)
    if done.code:
        return {"fault": done.err}
    run = replace(new_run(NIGHT, "civil", "bias_metrics"), run_id=done.summary["run_id"])
    stores = {
        "parquet": lambda: PathStore(f"{folder}/parquet"),
        "delta folder": lambda: DeltaFolder(f"{folder}/delta"),
        "iceberg jdbc": lambda: LakeStore("lake.job", ICEBERG),
    }
    store = stores[kind]()
    return {table.name: read_published(store.read(spark, table, run), table) for table in COMPARED}


def ask_catalog(spark: SparkSession) -> list[list[Any]]:
    """Ask a question of conf/sql of the views in the catalog that the job published to."""
    spark.sql("USE lake.job")
    try:
        rows = spark.sql((ROOT / "conf" / "sql" / f"{QUESTION}.sql").read_text("utf-8")).collect()
    finally:
        spark.sql("USE spark_catalog.default")
    return [[row[name] for name in ANSWERED] for row in rows]


def read_published(rows: DataFrame, table: Table) -> list[list[str]]:
    """Give the rows of a table, sorted, without the run's id; every digit of a number shows."""
    return sorted(list(map(repr, row)) for row in rows.select(*table.key_columns, *table.value_columns).collect())


def fault_of(act: Callable[[], object]) -> str:
    try:
        act()
    except BiasSparkError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def live(spark: SparkSession, store: CatalogStore, *, tidy: bool) -> dict[str, Any]:
    """Publish two nights, one of them twice and once more in vain; change the table's columns; keep it in order."""
    said: dict[str, Any] = {}
    store.check(spark, (PINNED_SKEW, BIAS_RUNS))
    for table in (PINNED_SKEW, BIAS_RUNS):
        store._prepare(spark, replace(table, values=table.values[:-1]))
    runs = []

    def publish_skew(auc: float, night: date = NIGHT) -> None:
        runs.append(new_run(night, "civil", PINNED_SKEW.job))
        publish({PINNED_SKEW: skew_frame(spark, auc)}, runs[-1], store, record_of())

    publish_skew(0.6)
    publish_skew(0.7)
    with breaking(store, BIAS_RUNS):
        said["broken"] = fault_of(lambda: publish_skew(0.1))
    frames = {PINNED_SKEW: skew_frame(spark, 0.7)}
    said["written twice"] = fault_of(lambda: publish(frames, runs[1], store, record_of()))
    spark.sql(f"ALTER TABLE {store.name(PINNED_SKEW.name)} ADD COLUMNS (of_tomorrow DOUBLE)")
    publish_skew(0.9, NEXT_NIGHT)
    said["runs"] = [run.run_id for run in runs]
    said["rows"] = rows_of(store.read(spark, PINNED_SKEW, runs[1]))
    said["warnings"] = refresh_views(spark, store)
    said["latest"] = read_latest(spark, store)
    said["stored"] = sorted(run_id for _, run_id in store.list_runs(spark, PINNED_SKEW))
    said |= describe_table(spark, store) | refuse(spark, store) | keep_in_order(spark, store, tidy)
    said["latest after"] = read_latest(spark, store)
    said["ledger after"] = sorted(row["run_id"] for row in store.read_ledger(spark, None).collect())
    return said


def rows_of(frame: DataFrame) -> list[list[Any]]:
    return sorted([row["identity"], row["pinned_auc"]] for row in frame.collect())


def read_latest(spark: SparkSession, store: CatalogStore) -> list[list[Any]]:
    """Give what a reader sees through the view: of the file, of the catalog, or of the SQL that the warning gives."""
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
        "provider": details["Provider"],
        "properties": details["Table Properties"],
    }


def refuse(spark: SparkSession, store: CatalogStore) -> dict[str, Any]:
    """Ask for what must be refused."""
    wrong = replace(PINNED_SKEW, values=(Column("trials", "STRING", "wrong"), *PINNED_SKEW.values))
    run = new_run(NIGHT, "civil", PINNED_SKEW.job)
    own = {"run_date": F.lit(run.run_date), "corpus": F.lit("civil"), "run_id": F.lit(run.run_id)}
    rows = skew_frame(spark, 0.5).withColumns(own)
    holes = rows.withColumn("model", F.when(F.col("identity") == "a", F.col("model")))
    return {
        "misfit": fault_of(lambda: store.check(spark, [wrong])),
        "nan": fault_of(lambda: store.write(PINNED_SKEW, rows.withColumn("pinned_auc", F.lit(float("nan"))), run)),
        "null key": fault_of(lambda: store.write(PINNED_SKEW, holes, new_run(NIGHT, "civil", PINNED_SKEW.job))),
    }


def keep_in_order(spark: SparkSession, store: CatalogStore, tidy: bool) -> dict[str, Any]:
    """Maintain the tables as of tomorrow, keeping nothing that may go."""
    policy = Policy(datetime.now(UTC) + timedelta(days=1), timedelta(0), timedelta(days=2))
    young = plan_maintenance(spark, store, policy, compact=True)
    policy = replace(policy, grace=timedelta(0))
    plan = plan_maintenance(spark, store, policy, compact=True)
    remove_runs(spark, store, plan.removals)
    if tidy:
        tidy_tables(spark, store, replace(policy, now=datetime.now(UTC)))
    return {
        "would remove while young": [[one.run_id, one.reason] for one in young.removals],
        "removed": sorted([one.run_id, one.reason] for one in plan.removals),
        "kept": sorted(run_id for _, run_id in store.list_runs(spark, PINNED_SKEW)),
    }


def main(out: str, folder: str, *kinds: str) -> None:
    hurry_python()
    spark = build_session("biasspark tests", read_settings(Path(folder), list(kinds)))
    hurry_java(spark)
    said = {}
    for kind in kinds:
        started = time.monotonic()
        said[kind] = live(spark, STORES[kind](Path(folder)), tidy=kind not in QUICK)
        lived = time.monotonic()
        if kind in QUICK:
            said[kind]["job"] = run_job(spark, Path(folder), kind)
        measured = time.monotonic()
        print(f"{kind}: {lived - started:.1f} s, the job {measured - lived:.1f} s", file=sys.stderr, flush=True)
    if set(QUICK) & set(kinds):
        said["parquet"] = {"job": run_job(spark, Path(folder), "parquet")}
    if "iceberg jdbc" in kinds:
        said["iceberg jdbc"]["worst"] = ask_catalog(spark)
        said[LOST] = {"fault": fault_of(lambda: LakeStore(f"{LOST}.bias", ICEBERG).check(spark, ()))}
    Path(out).write_text(json.dumps(said, default=str), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
