"""The main job as a process of its own: by spark-submit, killed, beside another, and cut in other ways."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from biasspark.tables.publish import publish
from biasspark.tables.schemas import BIAS_RUNS
from biasspark.tables.store import PathStore
from biasspark.workflows import measure as job
from tests.harness.compared_jobs import CANARY, JOB, N_ROWS, Place, list_runs, read_pages, read_tables
from tests.harness.main_job import RUN_DATE
from tests.harness.running_jobs import run_main
from tests.harness.sample_run import read_latest, record_of, start_run, suite_tables
from tests.harness.spark_versions import say_part
from tests.harness.submitting import ROOT, submit, submitted, wait_for

# Each starts Spark several times over.
pytestmark = [pytest.mark.slow, pytest.mark.spark("runs by spark-submit")]

WINDOW_JOB = str(ROOT / "jobs" / "window_metrics.py")
DYING_JOB = """
import os, signal, sys

from biasspark.cli import run_job
from biasspark.tables.store import PathStore
from biasspark.workflows import measure as bias_metrics

write = PathStore.write


def die(store, spark, table, rows, run):
    if table.name == os.environ["DIES_BEFORE"]:
        os.killpg(0, signal.SIGKILL)
    write(store, spark, table, rows, run)


PathStore.write = die
sys.exit(run_job(bias_metrics.main, bias_metrics.COMMAND.parser()))
"""
"""The job whose driver and JVM are killed as a table is about to be written."""


def test_submit_runs_the_job_and_no_text_leaves_the_corpus(place: Place, tmp_path: Path) -> None:
    """A secret is in every comment and in an unused column: after runs and windows that succeed it is in no table,
    message, log or event log.

    Spark's event log holds every plan and every message of a task.
    """
    (tmp_path / "events").mkdir()
    events = [
        "spark.eventLog.enabled=true",
        f"spark.eventLog.dir=file://{tmp_path}/events",
        "spark.eventLog.compress=false",
    ]
    options = ("--master", "local[2]", *(word for event in events for word in ("--conf", event)))
    # A run that keeps its state withholds nothing.
    flags = place.flags("submitted", privacy=None, state={"keep": True})
    summaries = []
    for job_flags in ((JOB, *flags), (WINDOW_JOB, *flags[:2], "--from", RUN_DATE, "--to", RUN_DATE)):
        code, printed = submit(*options, *job_flags, cwd=tmp_path)
        assert code == 0, printed
        summaries.append(json.loads(printed.splitlines()[-1]))
        assert "Traceback" not in printed
        assert " WARN " not in printed
        assert " ERROR " not in printed
        assert CANARY not in printed
    assert [summary["n_rows"] for summary in summaries] == [N_ROWS, N_ROWS]
    assert summaries[0]["rejects"] == {"nan_score": 8, "score_not_numeric": 8}
    written = [
        path for folder in (tmp_path, place.folder / "submitted") for path in folder.rglob("*") if path.is_file()
    ]
    assert sum("events" in str(path) and path.stat().st_size > 10_000 for path in written) == 2
    for path in written:
        assert CANARY.encode() not in path.read_bytes(), path
    written_tables = {name for summary in summaries for name in summary["tables"]}
    assert {"score_blocks", "window_u_statistics"} < written_tables
    for name in (*written_tables, BIAS_RUNS.name):  # pages are compressed
        query = f"SELECT * FROM read_parquet('{place.folder}/submitted/{name}/*/*/*.parquet')"
        rows = duckdb.execute(query).fetchall()
        assert rows
        assert CANARY not in repr(rows)


def test_a_predicate_that_fails_quotes_no_value(place: Place, tmp_path: Path) -> None:
    """A predicate fails on a comment: exit code 3, a clear message, and no message quotes a comment."""
    bad = ["--set", "slices.numbers=comment_text > 1"]
    code, printed = submit("--master", "local[2]", JOB, *place.flags("refused"), *bad, cwd=tmp_path)
    assert code == 3, printed
    [fault] = [line.partition("error: ")[2] for line in printed.splitlines() if "error: " in line]
    assert fault.startswith('[slices] numbers = "comment_text > 1"')
    assert fault.endswith(say_part("comment_text > 1"))
    assert "Traceback" not in printed
    assert CANARY not in printed
    assert not (place.folder / "refused").exists()


# ---- a driver that dies


def test_a_killed_job_leaves_nothing_that_is_seen(
    spark: SparkSession, place: Place, numbers: dict[str, list[str]], tmp_path: Path
) -> None:
    """The driver is killed while it ranks, while it writes, and before the ledger: readers still see the earlier run,
    and a rerun publishes everything.
    """
    warehouse, flags = place.folder / "killed", place.flags("killed")
    publish(spark, suite_tables(), start_run("comments"), PathStore(str(warehouse)), record_of())
    before, runs = read_latest(warehouse, "*"), list_runs(warehouse)

    with submitted("--master", "local[2]", JOB, *flags, cwd=tmp_path) as process:
        wait_for(process, "ranking")
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait(timeout=60) == -signal.SIGKILL
    (tmp_path / "dying.py").write_text(DYING_JOB, encoding="utf-8")
    for table in ("threshold_rates", BIAS_RUNS.name):
        options = ("--master", "local[2]", str(tmp_path / "dying.py"))
        code, printed = submit(*options, *flags, cwd=tmp_path, DIES_BEFORE=table, PYTHONPATH=str(ROOT))
        assert code == -signal.SIGKILL, printed
    assert len(list((warehouse / "u_statistics" / f"run_date={RUN_DATE}").iterdir())) >= 2
    assert (read_latest(warehouse, "*"), list_runs(warehouse)) == (before, runs)

    assert run_main(job.COMMAND, *flags).code == 0
    assert read_tables(warehouse) == numbers
    assert list_runs(warehouse) != runs


# ---- two jobs at once


def test_two_jobs_at_once_publish_one_whole_run(place: Place, numbers: dict[str, list[str]], tmp_path: Path) -> None:
    """Two jobs measure the same date at once: readers see one whole run."""
    flags = place.flags("twice")
    with (
        submitted("--master", "local[1]", JOB, *flags, cwd=tmp_path) as one,
        submitted("--master", "local[1]", JOB, *flags, cwd=tmp_path) as other,
    ):
        printed = [process.communicate(timeout=600)[0] for process in (one, other)]
        codes = sorted([one.returncode, other.returncode])
    assert codes in ([0, 4], [0, 0]), printed  # both count where they come to the ledger at the same instant
    assert read_tables(place.folder / "twice") == numbers
    assert len(list_runs(place.folder / "twice")) == 1


# ---- other partitions, cores, orders and settings


FORCED = """
spark.master                          local[3]
spark.sql.files.maxPartitionBytes     4096
spark.sql.adaptive.enabled            false
spark.sql.ansi.enabled                false
spark.sql.session.timeZone            Pacific/Kiritimati
spark.sql.files.ignoreCorruptFiles    true
spark.sql.files.ignoreMissingFiles    true
spark.sql.parquet.outputTimestampType INT96
spark.sql.storeAssignmentPolicy       LEGACY
spark.sql.caseSensitive               true
"""


def repartition(place: Place, n_files: int) -> Path:
    """Write the rows of the corpus backwards into other files."""
    folder = place.folder / f"corpus-{n_files}"
    folder.mkdir()
    table = pq.read_table(place.folder / "corpus").take(list(reversed(range(N_ROWS))))
    step = -(-N_ROWS // n_files)
    for number in range(n_files):
        pq.write_table(table.slice(number * step, step), folder / f"{n_files - number}.parquet", row_group_size=23)
    return folder


def test_other_partitions_orders_and_settings_of_a_cluster_give_the_same_bytes(
    place: Place, numbers: dict[str, list[str]], tmp_path: Path
) -> None:
    """The same rows come in other files, another order and other partitions, on more cores and with settings that a
    cluster forces (ANSI mode off, another time zone, corrupt files ignored): the tables are the same, byte for byte.

    Settings of spark-defaults.conf, and a machine that lives in another time zone.
    """
    (tmp_path / "forced.conf").write_text(FORCED, encoding="utf-8")
    code, printed = submit(
        *("--properties-file", str(tmp_path / "forced.conf")),
        *("--conf", "spark.sql.shuffle.partitions=7", "--conf", "spark.default.parallelism=5"),
        *(JOB, *place.flags("forced"), "--set", f"corpus.path={repartition(place, 7)}"),
        cwd=tmp_path,
        TZ="Pacific/Kiritimati",
    )
    assert code == 0, printed
    assert read_tables(place.folder / "forced") == numbers
    assert read_pages(place.folder / "forced") == read_pages(place.folder / "undisturbed")
