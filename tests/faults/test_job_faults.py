"""The main job as a process of its own: killed, its workers and executors killed, on a cluster, by spark-submit."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from biasspark.cli import job_parser, run_job
from biasspark.tables.publish import publish
from biasspark.tables.schemas import BIAS_RUNS, SCORE_BLOCKS, tables_of
from biasspark.tables.store import PathStore
from jobs import bias_metrics as job
from tests.listening_sockets import find_descendants, find_listening, open_files
from tests.sample_night import night_frames, read_latest, record_of, start_run
from tests.spark_versions import say_part
from tests.submitting import ROOT, Cluster, make_cluster, standalone, submit, submitted, wait_for

pytestmark = pytest.mark.slow  # each starts Spark several times over

NIGHT = "2026-01-15"
CANARY = "canary7e2d"
N_ROWS = 400
CONFIG = """
[corpus]
name = "comments"
path = "corpus"
id = "id"
options = {{ password = "canary7e2d" }}
[label]
column = "target"
threshold = 0.5
[models]
one = "score"
two = "score_text"
[identities]
columns = ["male", "female"]
terms = {{ column = "comment_text", list = ["gay", "christian: christian, catholic"] }}
crossed = {{ pairs = true, min_rows = 10 }}
[slices]
short = "length < 100"
mentions = "comment_text LIKE '%gay%'"
[thresholds]
at = [0.5]

[histograms]
bins = 20

[label_balance]
text = "comment_text"
buckets = [5, 20, 50]

[pinned_auc]
trials = 5

{privacy}
[gate]
[[gate.rule]]
name = "floor"
metric = "bpsn_auc"
min = 0.01
[[gate.rule]]
name = "no step back"
metric = "auc"
max_drop = 0.1

[output]
path = "{warehouse}"
"""
PRIVACY = """
[privacy]
min_group_rows = 5
"""
UNASKED = {"template_scores", "jackknife_statistics", "score_blocks"}


@dataclass(frozen=True)
class Place:
    """A folder with a corpus, and configurations that write into warehouses beside it."""

    folder: Path

    def config(self, warehouse: str, privacy: str = PRIVACY) -> Path:
        path = self.folder / f"{warehouse}.toml"
        path.write_text(CONFIG.format(warehouse=self.folder / warehouse, privacy=privacy), encoding="utf-8")
        return path

    def flags(self, warehouse: str) -> list[str]:
        return ["--config", str(self.config(warehouse)), "--run-date", NIGHT]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Make a corpus of two files whose text, and a column that nothing asks for, hold a secret in every row."""
    rng = np.random.default_rng(23)
    positive = rng.random(N_ROWS) < 0.4
    unasked = rng.random(N_ROWS) < 0.2
    words = rng.choice(["gay", "Christian", "a catholic", "nobody"], N_ROWS)
    table = pa.table(
        {
            "id": [f"c{number}" for number in range(N_ROWS)],
            "target": np.where(positive, 0.9, 0.2),
            "score": np.where(np.arange(N_ROWS) % 50 == 7, np.nan, np.round(rng.normal(positive, 1), 2)),
            "score_text": [f"{CANARY}!" if number % 50 == 9 else str(number % 7) for number in range(N_ROWS)],
            "male": pa.array(rng.random(N_ROWS), mask=unasked),
            "female": pa.array(rng.random(N_ROWS), mask=unasked),
            "length": rng.integers(1, 200, N_ROWS),
            "comment_text": [f"{word}, {CANARY} {number}" for number, word in enumerate(words)],
            "author": [f"{CANARY}@example.org"] * N_ROWS,
        }
    )
    folder = tmp_path_factory.mktemp("faults")
    (folder / "corpus").mkdir()
    for part in range(2):
        pq.write_table(table.slice(part * N_ROWS // 2, N_ROWS // 2), folder / "corpus" / f"part-{part}.parquet")
    return Place(folder)


@pytest.fixture(scope="module")
def numbers(spark_session: SparkSession, place: Place) -> dict[str, list[str]]:
    """Run the job undisturbed, in this process, and give what every other way of running it must give."""
    with contextlib.redirect_stdout(io.StringIO()):
        assert run_job(job.main, job_parser(""), place.flags("undisturbed")) == 0
    return read_tables(place.folder / "undisturbed")


def read_tables(warehouse: Path) -> dict[str, list[str]]:
    """Give the latest rows of every table of numbers, less the run's columns, doubles written out to the last bit."""
    return {
        table.name: [repr(row) for row in read_latest(warehouse, ", ".join(table.value_columns), table=table.name)]
        for table in tables_of("bias_metrics")
    }


def list_runs(warehouse: Path) -> list[str]:
    return [run_id for (run_id,) in read_latest(warehouse, "DISTINCT run_id")]


JOB = str(ROOT / "jobs" / "bias_metrics.py")
WINDOW_JOB = str(ROOT / "jobs" / "window_metrics.py")


# ---- scripts/submit, end to end


def test_submit_runs_the_job_and_no_text_leaves_the_corpus(place: Place, tmp_path: Path) -> None:
    """A secret stands in every comment and in a column that nobody asks for: after nights and windows that succeed it
    is in no table, message, log or event log.

    Spark's event log holds every plan and every message of a task.
    """
    (tmp_path / "events").mkdir()
    events = [
        "spark.eventLog.enabled=true",
        f"spark.eventLog.dir=file://{tmp_path}/events",
        "spark.eventLog.compress=false",
    ]
    options = ("--master", "local[2]", *(word for event in events for word in ("--conf", event)))
    # A night that keeps its state withholds nothing.
    own = ("--config", str(place.config("submitted", privacy="")), "--set", "state.keep=true")
    summaries = []
    for job_flags in ((JOB, *own, "--run-date", NIGHT), (WINDOW_JOB, *own, "--from", NIGHT, "--to", NIGHT)):
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
    for table in (*tables_of("bias_metrics"), *tables_of("window_metrics"), BIAS_RUNS):  # pages are compressed
        files = f"{place.folder}/submitted/{table.name}/*/*/*.parquet"
        rows = duckdb.sql(f"SELECT * FROM read_parquet('{files}')").fetchall()
        assert rows or table.name in UNASKED - {SCORE_BLOCKS.name}
        assert CANARY not in repr(rows)


def test_submit_passes_exit_codes_on_and_no_failure_quotes_a_value(place: Place, tmp_path: Path) -> None:
    """A configuration is wrong, and a predicate fails on a comment: exit codes 2 and 3, each fault in plain words, and
    no message quotes a comment.
    """
    bad = ["--set", "label.threshold=high"]
    code, printed = submit("--master", "local[2]", JOB, *place.flags("refused"), *bad, cwd=tmp_path)
    assert code == 2, printed
    (fault,) = (line for line in printed.splitlines() if not line.startswith("WARNING: Using incubator modules"))
    assert fault == (
        'bias_metrics.py: error: [label] threshold = "high". It must be a number, not text. Correct it, or remove the '
        "line."
    )

    bad = ["--set", "slices.numbers=comment_text > 1"]
    code, printed = submit("--master", "local[2]", JOB, *place.flags("refused"), *bad, cwd=tmp_path)
    assert code == 3, printed
    [fault] = [line.partition("error: ")[2] for line in printed.splitlines() if "error: " in line]
    assert fault == (
        '[slices] numbers = "comment_text > 1": a text cannot be cast to the requested type. Use try_cast.'
        + say_part("comment_text > 1")
    )
    assert "Traceback" not in printed
    assert CANARY not in printed
    assert not (place.folder / "refused").exists()


# ---- a driver that dies


def kill_at(
    process: subprocess.Popen[str], stage: str, until: Path | None = None, pattern: str = "", more: int = 1
) -> None:
    """Kill the job and its JVM once a stage begins and, if a folder is given, has written so many more such files."""
    wait_for(process, stage)
    deadline = time.monotonic() + 300
    before = len(list(until.glob(pattern))) if until else 0
    while until and len(list(until.glob(pattern))) < before + more:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(timeout=60) == -signal.SIGKILL


def test_a_killed_job_leaves_nothing_that_is_seen(
    spark: SparkSession, place: Place, numbers: dict[str, list[str]], tmp_path: Path
) -> None:
    """The driver is killed while it ranks, and while it writes: readers go on seeing the night before, and a rerun
    publishes the whole night.
    """
    warehouse = place.folder / "killed"
    flags = place.flags("killed")
    publish(night_frames(spark), start_run("comments"), PathStore(str(warehouse)), record_of())
    before, runs = read_tables(warehouse), list_runs(warehouse)

    with submitted("--master", "local[2]", JOB, *flags, cwd=tmp_path) as process:
        kill_at(process, "ranking")
    assert (read_tables(warehouse), list_runs(warehouse)) == (before, runs)

    with submitted("--master", "local[2]", JOB, *flags, cwd=tmp_path) as process:
        kill_at(process, "publishing", warehouse, "bias_metrics/*/*/*.parquet")
    assert len(list((warehouse / "bias_metrics" / f"run_date={NIGHT}").iterdir())) == 2
    assert (read_tables(warehouse), list_runs(warehouse)) == (before, runs)

    with contextlib.redirect_stdout(io.StringIO()):
        assert run_job(job.main, job_parser(""), flags) == 0
    assert read_tables(warehouse) == numbers
    assert list_runs(warehouse) != runs


def test_a_job_killed_between_its_tables_and_the_ledger_is_run_again(
    place: Place, numbers: dict[str, list[str]], tmp_path: Path
) -> None:
    """The driver is killed when all tables are written but not the ledger: readers see nothing of it, and a rerun
    publishes the whole night.
    """
    warehouse = place.folder / "unpublished"
    flags = place.flags("unpublished")
    with submitted("--master", "local[2]", JOB, *flags, cwd=tmp_path) as process:
        kill_at(process, "publishing", warehouse, "*/*/*/part-*.parquet", more=len(tables_of("bias_metrics")))
    assert not (warehouse / BIAS_RUNS.name).exists()
    with contextlib.redirect_stdout(io.StringIO()):
        assert run_job(job.main, job_parser(""), flags) == 0
    assert read_tables(warehouse) == numbers
    assert len(list_runs(warehouse)) == 1


# ---- two jobs at once


def test_two_jobs_at_once_publish_one_whole_night(place: Place, numbers: dict[str, list[str]], tmp_path: Path) -> None:
    """Two jobs measure the same night at once: readers see one whole night."""
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


def read_pages(warehouse: Path) -> dict[str, list[bytes]]:
    """Give the files of every table of numbers, byte for byte, up to the footer.

    In the footer Parquet lists the encodings of a column in an order that differs from one JVM to the next.
    """
    return {
        table.name: [
            without_footer(file.read_bytes()) for file in sorted((warehouse / table.name).glob("*/*/*.parquet"))
        ]
        for table in tables_of("bias_metrics")
    }


def without_footer(data: bytes) -> bytes:
    """Its length stands in the four bytes before the closing magic ones."""
    return data[: -8 - int.from_bytes(data[-8:-4], "little")]


def cut_anew(place: Place, files: int) -> Path:
    """Write the rows of the corpus backwards into other files."""
    folder = place.folder / f"corpus-{files}"
    folder.mkdir()
    table = pq.read_table(place.folder / "corpus").take(list(reversed(range(N_ROWS))))
    step = -(-N_ROWS // files)
    for number in range(files):
        pq.write_table(table.slice(number * step, step), folder / f"{files - number}.parquet", row_group_size=23)
    return folder


def test_other_partitions_cores_and_file_orders_give_the_same_bytes(
    place: Place, numbers: dict[str, list[str]], tmp_path: Path
) -> None:
    """The same rows come in other files, another order, other partitions and on more cores: the tables are the same,
    byte for byte.
    """
    code, printed = submit(
        *("--master", "local[3]", "--conf", "spark.sql.shuffle.partitions=7", "--conf", "spark.default.parallelism=5"),
        *("--conf", "spark.sql.files.maxPartitionBytes=4096", "--conf", "spark.sql.adaptive.enabled=false"),
        *(JOB, *place.flags("cut_anew"), "--set", f"corpus.path={cut_anew(place, 7)}"),
        cwd=tmp_path,
    )
    assert code == 0, printed
    assert read_tables(place.folder / "cut_anew") == numbers
    assert read_pages(place.folder / "cut_anew") == read_pages(place.folder / "undisturbed")


FORCED = """
spark.master                          local[2]
spark.sql.ansi.enabled                false
spark.sql.session.timeZone            Pacific/Kiritimati
spark.sql.files.ignoreCorruptFiles    true
spark.sql.files.ignoreMissingFiles    true
spark.sql.parquet.outputTimestampType INT96
spark.sql.storeAssignmentPolicy       LEGACY
spark.sql.caseSensitive               true
"""


def test_a_cluster_that_forces_other_settings_changes_no_number_and_hides_no_bad_file(
    place: Place, numbers: dict[str, list[str]], tmp_path: Path
) -> None:
    """A cluster forces ANSI mode off, another time zone and corrupt files ignored: the tables are the same, byte for
    byte, and a corrupt file is named all the same.

    Settings of spark-defaults.conf, and a machine that lives in another time zone.
    """
    (tmp_path / "forced.conf").write_text(FORCED, encoding="utf-8")
    forced = ("--properties-file", str(tmp_path / "forced.conf"))
    code, printed = submit(*forced, JOB, *place.flags("forced"), cwd=tmp_path, TZ="Pacific/Kiritimati")
    assert code == 0, printed
    assert read_tables(place.folder / "forced") == numbers
    assert read_pages(place.folder / "forced") == read_pages(place.folder / "undisturbed")

    bad = cut_anew(place, 2)
    (bad / "1.parquet").write_bytes(b"no Parquet" * 100)
    other = ("--set", f"corpus.path={bad}")
    code, printed = submit(*forced, JOB, *place.flags("forced"), *other, cwd=tmp_path)
    assert code == 3, printed
    assert "error: corpus: " in printed
    assert f"a file cannot be read. It is corrupt or of another format. Replace it. File: {bad}/1.parquet." in printed
    assert len(list_runs(place.folder / "forced")) == 1


# ---- workers and executors that die

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
def marks(tmp_path: Path) -> Path:
    """Make a folder in which dying workers count what they do."""
    (tmp_path / "marks").mkdir()
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "dying_daemon.py").write_text(DYING_DAEMON, encoding="utf-8")
    return tmp_path / "marks"


def dying(marks: Path, victim: str, call: int) -> dict[str, str]:
    return {
        "DEATH_MARKS": str(marks),
        "DEATH_CALL": str(call),
        "DEATH_VICTIM": victim,
        "PYTHONPATH": str(marks.parent / "modules"),
    }


def test_a_killed_python_worker_changes_no_number(place: Place, numbers: dict[str, list[str]], marks: Path) -> None:
    """A Python worker is killed while it sends its result: Spark starts another, and every number is the same."""
    code, printed = submit(
        *("--master", "local[2,3]", "--conf", "spark.python.daemon.module=dying_daemon"),
        *(JOB, *place.flags("worker_killed")),
        cwd=marks.parent,
        **dying(marks, "worker", 2),
    )
    assert code == 0, printed
    assert (marks / "died").exists()
    assert read_tables(place.folder / "worker_killed") == numbers


def test_a_python_worker_without_memory_ends_the_job_in_plain_words(place: Place, tmp_path: Path) -> None:
    """A Python worker has too little memory: the job ends with what to set, and nothing is published.

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
    assert (
        "error: corpus: a Python worker has run out of memory, or was killed. Give workers more "
        "(spark.executor.pyspark.memory where it is set, else spark.executor.memoryOverhead), or set `[ranking] "
        "ranges` higher, so that a task holds less." in printed
    )
    assert not (place.folder / "no_memory").exists()


# ---- a cluster, whose workers know the package from the zip alone


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return make_cluster(tmp_path_factory.mktemp("cluster"))


def test_a_cluster_that_has_only_the_zip_gives_the_same_bits(
    place: Place, numbers: dict[str, list[str]], cluster: Cluster, tmp_path: Path
) -> None:
    """The machines of a cluster have no biasspark but the zip of `--py-files`: every number is the same."""
    code, printed = cluster.submit(JOB, *place.flags("cluster"), cwd=tmp_path)
    assert code == 0, printed
    assert list((cluster.home / "work").glob("app-*/[01]/biasspark.zip"))
    assert read_tables(place.folder / "cluster") == numbers


@pytest.mark.parametrize("call", [1, 3], ids=["while it sorts rows", "while it ranks"])
def test_a_killed_executor_changes_no_number(
    place: Place, numbers: dict[str, list[str]], cluster: Cluster, marks: Path, call: int
) -> None:
    """An executor is killed while it sorts rows, and while it ranks: Spark runs its tasks again, and every number is
    the same.
    """
    warehouse = f"executor_killed_{call}"
    code, printed = cluster.submit(
        *("--conf", "spark.python.daemon.module=dying_daemon"),
        *(JOB, *place.flags(warehouse)),
        cwd=marks.parent,
        **dying(marks, "executor", call),
    )
    assert code == 0, printed
    assert (marks / "died").exists()
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
        own = set().union(*(find_descendants(one.pid) for one in (*master.daemons, process)))
        assert all(address.is_loopback for address in find_listening(own))
        os.killpg(master.workers[0].pid, signal.SIGKILL)
        printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    assert read_tables(place.folder / "standalone") == numbers
