"""The main job as a process of its own: killed, its workers and executors killed, on a cluster, by spark-submit."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from biasspark.cli import job_parser, run_job
from biasspark.tables.publish import publish
from biasspark.tables.schemas import BIAS_RUNS, tables_of
from biasspark.tables.store import PathStore
from jobs import bias_metrics as job
from tests.sample_night import night_frames, read_latest, record_of, start_run

pytestmark = pytest.mark.slow  # each starts Spark several times over

ROOT = Path(__file__).resolve().parents[2]
NIGHT = "2026-01-15"
CANARY = "canary7e2d"
N_ROWS = 400
MODEST = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
}
CONFIG = """
[corpus]
name = "comments"
path = "corpus"
id = "id"
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

[privacy]
min_group_rows = 5

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
UNASKED = {"template_scores", "score_blocks"}


@dataclass(frozen=True)
class Place:
    """A folder with a corpus, and configurations that write into warehouses beside it."""

    folder: Path

    def config(self, warehouse: str) -> Path:
        path = self.folder / f"{warehouse}.toml"
        path.write_text(CONFIG.format(warehouse=self.folder / warehouse), encoding="utf-8")
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


# ---- processes


def clean_environment(**changes: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "PYTHONPATH"))
    }
    return kept | {"SPARK_LOCAL_IP": "127.0.0.1"} | changes


def spark_home() -> Path:
    found = find_spec("pyspark")
    assert found is not None
    assert found.submodule_search_locations is not None
    return Path(found.submodule_search_locations[0])


@contextlib.contextmanager
def submitted(
    *arguments: str, cwd: Path, program: Path | None = None, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """Start spark-submit in a process group of its own, which does not outlive the block."""
    options = [option for key, value in MODEST.items() for option in ("--conf", f"{key}={value}")]
    process = subprocess.Popen(
        [str(program or ROOT / "scripts" / "submit"), *options, *arguments],
        cwd=cwd,
        env=clean_environment(**environment),
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def submit(*arguments: str, cwd: Path, program: Path | None = None, **environment: str) -> tuple[int, str]:
    """Run spark-submit to its end, and give its exit code and all that it printed."""
    with submitted(*arguments, cwd=cwd, program=program, **environment) as process:
        printed, _ = process.communicate(timeout=600)
        return process.returncode, printed


JOB = str(ROOT / "jobs" / "bias_metrics.py")


# ---- scripts/submit, end to end


def test_submit_runs_the_job_and_no_text_leaves_the_corpus(
    place: Place, numbers: dict[str, list[str]], tmp_path: Path
) -> None:
    """Spark's event log holds every plan and every message of a task."""
    (tmp_path / "events").mkdir()
    events = [
        "spark.eventLog.enabled=true",
        f"spark.eventLog.dir=file://{tmp_path}/events",
        "spark.eventLog.compress=false",
    ]
    code, printed = submit(
        *("--master", "local[2]"),
        *(option for event in events for option in ("--conf", event)),
        *(JOB, *place.flags("submitted")),
        cwd=tmp_path,
    )
    assert code == 0, printed
    summary = json.loads(printed.splitlines()[-1])
    assert summary["n_rows"] == N_ROWS
    assert summary["rejects"] == {"nan_score": 8, "score_not_numeric": 8}
    assert "Traceback" not in printed
    assert " WARN " not in printed
    assert " ERROR " not in printed
    assert CANARY not in printed
    assert read_tables(place.folder / "submitted") == numbers

    written = [
        path for folder in (tmp_path, place.folder / "submitted") for path in folder.rglob("*") if path.is_file()
    ]
    assert any("events" in str(path) and path.stat().st_size > 10_000 for path in written)
    for path in written:
        assert CANARY.encode() not in path.read_bytes(), path
    for table in (*tables_of("bias_metrics"), BIAS_RUNS):  # pages of Parquet are compressed
        files = f"{place.folder}/submitted/{table.name}/*/*/*.parquet"
        rows = duckdb.sql(f"SELECT * FROM read_parquet('{files}')").fetchall()
        assert rows or table.name in UNASKED
        assert CANARY not in repr(rows)


def test_submit_passes_exit_codes_on_and_no_failure_quotes_a_value(place: Place, tmp_path: Path) -> None:
    bad = ["--set", "label.threshold=high"]
    code, printed = submit("--master", "local[2]", JOB, *place.flags("refused"), *bad, cwd=tmp_path)
    assert code == 2, printed
    (fault,) = (line for line in printed.splitlines() if not line.startswith("WARNING: Using incubator modules"))
    assert fault.startswith('bias_metrics.py: error: [label] threshold = "high". It must be a number, not text.')

    bad = ["--set", "slices.numbers=comment_text > 1"]
    code, printed = submit("--master", "local[2]", JOB, *place.flags("refused"), *bad, cwd=tmp_path)
    assert code == 3, printed
    assert "error: corpus: a predicate casts a text that is none of that type." in printed
    assert "Traceback" not in printed
    assert CANARY not in printed
    assert not (place.folder / "refused").exists()


# ---- a driver that dies


def kill_at(process: subprocess.Popen[str], stage: str, until: Path | None = None, pattern: str = "") -> None:
    """Kill the job and its JVM once it says that a stage begins and, if a folder is given, has written such a file."""
    assert process.stdout is not None
    for line in process.stdout:
        if f"] {stage}" in line:
            break
    else:
        pytest.fail(f"the job ended before {stage}")
    deadline = time.monotonic() + 300
    before = len(list(until.glob(pattern))) if until else 0
    while until and len(list(until.glob(pattern))) == before:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(timeout=60) == -signal.SIGKILL


def test_a_killed_job_leaves_nothing_that_is_seen(
    spark: SparkSession, place: Place, numbers: dict[str, list[str]], tmp_path: Path
) -> None:
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
    code, printed = submit(
        *("--master", "local[2,3]", "--conf", "spark.python.daemon.module=dying_daemon"),
        *(JOB, *place.flags("worker_killed")),
        cwd=marks.parent,
        **dying(marks, "worker", 2),
    )
    assert code == 0, printed
    assert (marks / "died").exists()
    assert read_tables(place.folder / "worker_killed") == numbers


# ---- a cluster, whose workers know the package from the zip alone


@dataclass(frozen=True)
class Cluster:
    """A Spark of its own, in whose folder its workers work, and a Python that knows all packages but this one."""

    home: Path
    python: Path
    package: Path

    def submit(self, *arguments: str, cwd: Path, **environment: str) -> tuple[int, str]:
        return submit(
            *("--master", "local-cluster[2,1,1024]", "--py-files", str(self.package)),
            *arguments,
            cwd=cwd,
            program=self.home / "bin" / "spark-submit",
            SPARK_HOME=str(self.home),
            SPARK_CONF_DIR=str(ROOT / "conf"),
            PYSPARK_PYTHON=str(self.python),
            **environment,
        )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    folder = tmp_path_factory.mktemp("cluster")
    home = folder / "spark"
    home.mkdir()
    for entry in spark_home().iterdir():
        (home / entry.name).symlink_to(entry)

    # -S leaves out site-packages and with it the .pth file that leads to the project.
    python = folder / "python"
    packages = sysconfig.get_path("purelib")
    python.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}{packages}"\nexec {sys.executable} -S "$@"\n'
    )
    python.chmod(0o755)
    alone = [str(python), "-c", "import pandas, pyspark, biasspark"]
    done = subprocess.run(alone, cwd=folder, env=clean_environment(), capture_output=True, text=True, check=False)
    assert "No module named 'biasspark'" in done.stderr

    package = folder / "biasspark.zip"
    subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "zip_package.py"), str(ROOT / "biasspark"), str(package)], check=True
    )
    return Cluster(home, python, package)


def test_a_cluster_that_has_only_the_zip_gives_the_same_bits(
    place: Place, numbers: dict[str, list[str]], cluster: Cluster, tmp_path: Path
) -> None:
    code, printed = cluster.submit(JOB, *place.flags("cluster"), cwd=tmp_path)
    assert code == 0, printed
    assert list((cluster.home / "work").glob("app-*/[01]/biasspark.zip"))
    assert read_tables(place.folder / "cluster") == numbers


@pytest.mark.parametrize("call", [1, 3], ids=["while it sorts rows", "while it ranks"])
def test_a_killed_executor_changes_no_number(
    place: Place, numbers: dict[str, list[str]], cluster: Cluster, marks: Path, call: int
) -> None:
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
