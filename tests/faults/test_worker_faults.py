"""The main job whose workers and executors are killed, and on clusters that know the package from its zip alone."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.harness.compared_jobs import CANARY, JOB, Place, read_pages, read_tables
from tests.harness.listening_sockets import find_descendants, find_listening, open_files
from tests.harness.submitting import Cluster, make_cluster, standalone, submit, wait_for

# Each starts Spark several times over.
pytestmark = [pytest.mark.slow, pytest.mark.spark("runs by spark-submit")]

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


def dying(marks: Path, victim: str, call: int) -> dict[str, Any]:
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
    assert "error: corpus: a Python worker has run out of memory, or was killed." in printed
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
        started = [*(daemon.pid for daemon in master.daemons), process.pid]
        addresses = find_listening(set().union(*map(find_descendants, started)))
        assert all(address.is_loopback for address in addresses)
        os.killpg(master.daemons[1].pid, signal.SIGKILL)
        printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    assert read_tables(place.folder / "standalone") == numbers
