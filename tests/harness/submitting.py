"""spark-submit as a process of its own, and a Spark cluster on loopback whose machines know no biasspark."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import files
from importlib.util import find_spec
from pathlib import Path
from typing import IO, NamedTuple

import pytest

from scripts.dev.locked_packages import list_dependencies
from scripts.dev.zip_package import write_zip

ROOT = Path(__file__).resolve().parents[2]
MODEST = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
}
PLATFORM = ("pyspark", "numpy", "pandas", "pyarrow", "scipy")
"""What the machines of a cluster have."""


# ---- processes


def clean_environment(**changes: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "PYTHONPATH"))
    }
    return kept | {"SPARK_LOCAL_IP": "127.0.0.1"} | changes


def run_program(*command: object, cwd: Path | str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, without what asks for Spark."""
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=clean_environment(**environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )


def run_python(*arguments: object, cwd: Path | str = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run this Python to its end, with the project on its path and without what asks for Spark."""
    path = {"PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
    return run_program(sys.executable, *arguments, cwd=cwd, **path | environment)


def spark_home() -> Path:
    found = find_spec("pyspark")
    assert found is not None
    assert found.submodule_search_locations is not None
    return Path(found.submodule_search_locations[0])


@contextlib.contextmanager
def submitted(
    *arguments: str, cwd: Path, program: Path | None = None, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """Start spark-submit for a block."""
    options = [option for key, value in MODEST.items() for option in ("--conf", f"{key}={value}")]
    command = [str(program or ROOT / "scripts" / "submit"), *options, *arguments]
    with running(command, cwd, subprocess.PIPE, **environment) as process:
        yield process


@contextlib.contextmanager
def running(command: list[str], cwd: Path, out: int | IO[bytes], **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Start a program in a process group of its own, which does not outlive the block."""
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=clean_environment(**environment),
        start_new_session=True,
        stdout=out,
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
    return end(submitted(*arguments, cwd=cwd, program=program, **environment))


def end(started: contextlib.AbstractContextManager[subprocess.Popen[str]]) -> tuple[int, str]:
    """Wait for the end of what is started, and give its exit code and all that it printed."""
    with started as process:
        printed, _ = process.communicate(timeout=600)
        return process.returncode, printed


def wait_for(process: subprocess.Popen[str], stage: str) -> None:
    """Wait until the job says that a stage begins."""
    assert process.stdout is not None
    for line in process.stdout:
        if f"] {stage}" in line:
            return
    pytest.fail(f"the job ended before {stage}")


# ---- a cluster, whose workers know the package from the zip alone


def make_python(folder: Path, *distributions: str) -> Path:
    """Make an environment that has these packages and what they need, by links, and nothing else; give its Python."""
    venv.create(folder)
    purelib = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
    for name in list_dependencies(distributions):
        tops = {path.parts[0] for path in files(name) or ()} - {"..", "__pycache__"}
        for top in tops:
            (purelib / top).symlink_to(Path(sysconfig.get_path("purelib")) / top)
    return folder / "bin" / "python"


@dataclass(frozen=True)
class Cluster:
    """A Spark of its own, in whose folder its workers work, and the Python of its machines."""

    home: Path
    python: Path
    package: Path

    def submitted(
        self, *arguments: str, cwd: Path, **environment: str
    ) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
        """Start a job; the zip is all that it brings."""
        return submitted(
            *("--master", "local-cluster[2,1,1024]", "--py-files", str(self.package)),
            *arguments,
            cwd=cwd,
            program=self.home / "bin" / "spark-submit",
            SPARK_HOME=str(self.home),
            SPARK_CONF_DIR=str(ROOT / "conf"),
            PYSPARK_PYTHON=str(self.python),
            **environment,
        )


def make_cluster(folder: Path) -> Cluster:
    """Make the Spark, the Python and the zip in a folder, and see that the Python knows no biasspark."""
    home = folder / "spark"
    home.mkdir()
    for entry in spark_home().iterdir():
        (home / entry.name).symlink_to(entry)
    python = make_python(folder / "python", *PLATFORM)
    done = run_program(python, "-c", f"import {', '.join(PLATFORM)}, biasspark", cwd=folder)
    assert "No module named 'biasspark'" in done.stderr, done.stderr
    package = folder / "biasspark.zip"
    write_zip(ROOT / "biasspark", package, ("jinja2", "markupsafe"))
    return Cluster(home, python, package)


# ---- a standalone master with two workers


class Standalone(NamedTuple):
    """A master and two workers of Spark."""

    address: str
    daemons: list[subprocess.Popen[str]]


@contextlib.contextmanager
def standalone(home: Path, folder: Path) -> Iterator[Standalone]:
    """Start a master and two workers, of one core each, that work in a folder and listen on loopback alone."""
    ports = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    light = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1"}
    with contextlib.ExitStack() as stack:

        def start(work: Path, role: str, *options: str) -> tuple[subprocess.Popen[str], Path]:
            return stack.enter_context(daemon(home, work, f"org.apache.spark.deploy.{role}", *ports, *options, **light))

        master, log = start(folder / "master", "master.Master")
        address = read_from(log, r"spark://127\.0\.0\.1:\d+")
        found = Standalone(address, [master])
        for number in range(2):
            work = folder / f"worker-{number}"
            options = ("--cores", "1", "--memory", "1g", "--work-dir", str(work / "work"), address)
            found.daemons.append(start(work, "worker.Worker", *options)[0])
        read_from(log, "Registering worker", times=2)
        yield found


@contextlib.contextmanager
def daemon(
    home: Path, folder: Path, main: str, *arguments: str, **environment: str
) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start a main class by ``spark-class`` for a block; give the process and its log."""
    folder.mkdir()
    log, command = folder / "log", [str(home / "bin" / "spark-class"), main, *arguments]
    with log.open("wb") as out, running(command, folder, out, SPARK_HOME=str(home), **environment) as process:
        yield process, log


def read_from(log: Path, pattern: str, times: int = 1) -> str:
    """Wait until a log says something so many times, and give it."""
    deadline = time.monotonic() + 120
    while len(found := re.findall(pattern, log.read_text("utf-8", errors="replace"))) < times:
        assert time.monotonic() < deadline, log.read_text("utf-8", errors="replace")
        time.sleep(0.05)
    return str(found[0])
