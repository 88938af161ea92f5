"""The main job by spark-submit: killed, next to another, cut in other ways, with workers that die, and on clusters."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from biasspark.tables.publish import publish
from biasspark.tables.schemas import BIAS_RUNS
from biasspark.tables.store import PathStore
from biasspark.workflows import measure as job
from tests.harness.compared_jobs import CANARY, JOB, N_ROWS, Place, list_runs, read_pages, read_tables
from tests.harness.listening_sockets import find_descendants, find_listening, open_files
from tests.harness.main_job import RUN_DATE
from tests.harness.running_jobs import run_main
from tests.harness.sample_run import read_latest, record_of, start_run, suite_tables
from tests.harness.spark_effort import IS_3_5
from tests.harness.submitting import ROOT, Cluster, end, make_cluster, standalone, submit, submitted, wait_for

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
    assert fault.count("comment_text > 1") == (1 if IS_3_5 else 2)  # the part that fails, as Spark 4 knows
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


# ---- workers and executors that are killed

DYING_DAEMON = """
import os
import signal
import sys
from pathlib import Path

import pyspark.daemon as daemon

MARKS, CALL, VICTIM = Path(os.environ["DEATH_MARKS"]), int(os.environ["DEATH_CALL"]), os.environ["DEATH_VICTIM"]
EXECUTOR = os.getppid()
run_worker = daemon.worker_main


class Dying:
    '''What a worker writes to: its first write kills the worker or its executor.'''

    def __init__(self, stream):
        self.stream = stream

    def __getattr__(self, name):
        return getattr(self.stream, name)

    def write(self, data):
        (MARKS / "died").touch()
        os.kill(os.getpid() if VICTIM == "worker" else EXECUTOR, signal.SIGKILL)


def count_call():
    for number in range(1, 1000):
        try:
            (MARKS / str(number)).touch(exist_ok=False)
        except FileExistsError:
            continue
        return number


def main(infile, outfile):
    number = count_call()
    run_worker(infile, Dying(outfile) if number == CALL else outfile)


daemon.worker_main = main
if __name__ == "__main__":
    daemon.manager()
"""


@pytest.fixture
def deaths(tmp_path: Path) -> Path:
    """Make a folder in which dying workers count what they do."""
    (tmp_path / "marks").mkdir()
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "dying_daemon.py").write_text(DYING_DAEMON, encoding="utf-8")
    return tmp_path / "marks"


def dying(deaths: Path, victim: str, call: int) -> dict[str, Any]:
    return {
        "DEATH_MARKS": str(deaths),
        "DEATH_CALL": str(call),
        "DEATH_VICTIM": victim,
        "PYTHONPATH": str(deaths.parent / "modules"),
    }


def test_a_killed_python_worker_changes_no_number(place: Place, numbers: dict[str, list[str]], deaths: Path) -> None:
    """A Python worker is killed while it sends its result: Spark starts another, and every number is the same."""
    code, printed = submit(
        *("--master", "local[2,3]", "--conf", "spark.python.daemon.module=dying_daemon"),
        *(JOB, *place.flags("worker_killed")),
        cwd=deaths.parent,
        **dying(deaths, "worker", 2),
    )
    assert code == 0, printed
    assert (deaths / "died").exists()
    assert read_tables(place.folder / "worker_killed") == numbers


def test_a_python_worker_without_memory_ends_the_job_in_plain_words(place: Place, tmp_path: Path) -> None:
    """A Python worker has too little memory: the job ends and says what to set, and nothing is published.

    The limit lets a worker start, and no more.
    """
    code, printed = submit(
        *("--master", "local[2]", "--conf", "spark.executor.pyspark.memory=256m"),
        *(JOB, *place.flags("no_memory")),
        cwd=tmp_path,
    )
    assert code == 1, printed
    assert "Traceback" not in printed
    assert CANARY not in printed
    assert "error: corpus: " in printed
    assert "spark.executor.memoryOverhead" in printed
    assert not (place.folder / "no_memory").exists()


# ---- a cluster, whose workers know the package from the zip alone


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return make_cluster(tmp_path_factory.mktemp("cluster"))


def test_a_cluster_that_has_only_the_zip_gives_the_same_bits(
    place: Place, numbers: dict[str, list[str]], cluster: Cluster, tmp_path: Path
) -> None:
    """The machines of a cluster have only the zip of `--py-files`: every number is the same."""
    code, printed = end(cluster.submitted(JOB, *place.flags("cluster"), cwd=tmp_path))
    assert code == 0, printed
    assert list((cluster.home / "work").glob("app-*/[01]/biasspark.zip"))
    assert read_tables(place.folder / "cluster") == numbers


@pytest.mark.parametrize("call", [1, 3], ids=["while it sorts rows", "while it ranks"])
def test_a_killed_executor_changes_no_number(
    place: Place, numbers: dict[str, list[str]], cluster: Cluster, deaths: Path, call: int
) -> None:
    """An executor is killed while it sorts rows, and while it ranks: Spark runs its tasks again, and every number is
    the same.
    """
    warehouse = f"executor_killed_{call}"
    options = ("--conf", "spark.python.daemon.module=dying_daemon", JOB, *place.flags(warehouse))
    code, printed = end(cluster.submitted(*options, cwd=deaths.parent, **dying(deaths, "executor", call)))
    assert code == 0, printed
    assert (deaths / "died").exists()
    assert read_tables(place.folder / warehouse) == numbers


def find_writer(processes: set[int], warehouse: Path) -> int | None:
    """Find the process that has a file of the warehouse open."""
    for pid in processes:
        if any(name.startswith(str(warehouse)) and ".parquet" in name for name in open_files(pid)):
            return pid
    return None


def test_an_executor_killed_while_it_writes_changes_no_number(
    place: Place, numbers: dict[str, list[str]], cluster: Cluster, tmp_path: Path
) -> None:
    """An executor is killed while it writes a table: the tables are the same, byte for byte."""
    warehouse = place.folder / "writer_killed"
    with cluster.submitted(JOB, *place.flags("writer_killed"), cwd=tmp_path) as process:
        wait_for(process, "publishing")
        executors = find_descendants(process.pid) - {process.pid}
        while (writer := find_writer(executors, warehouse)) is None:
            assert process.poll() is None, "nobody was seen to write"
        os.kill(writer, signal.SIGKILL)
        printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    assert read_tables(warehouse) == numbers
    assert read_pages(warehouse) == read_pages(place.folder / "undisturbed")


# ---- a standalone master with two workers


def test_a_worker_of_a_standalone_master_that_is_killed_changes_no_number(
    place: Place, numbers: dict[str, list[str]], cluster: Cluster, tmp_path: Path
) -> None:
    """A machine of a standalone cluster is killed while it ranks: every number is the same."""
    with (
        standalone(cluster.home, tmp_path) as master,
        cluster.submitted("--master", master.address, JOB, *place.flags("standalone"), cwd=tmp_path) as process,
    ):
        wait_for(process, "ranking")
        started = [*(daemon.pid for daemon in master.daemons), process.pid]
        addresses = find_listening(set().union(*map(find_descendants, started)))
        assert all(address.is_loopback for address in addresses)
        os.killpg(master.daemons[1].pid, signal.SIGKILL)
        printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    assert read_tables(place.folder / "standalone") == numbers
