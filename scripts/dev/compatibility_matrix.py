"""Run a part of the tests, and all jobs on two small dates, in each environment of compatibility_matrix.toml.

Used by scripts/dev/matrix.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
DECLARED = Path(__file__).with_suffix(".toml")
ENVIRONMENTS = ROOT / "build" / "matrix"
RESULTS = ENVIRONMENTS / "results"
SHOWN = ("pyspark", "python", "pandas", "numpy", "pyarrow")
VERSIONS = """
import json, platform, sys
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
names = {name: packages_distributions()[name][0] for name in sys.argv[1:] if name != "python"}
versions = {name: version(of) for name, of in names.items()} | {"python": platform.python_version()}
print(json.dumps({"versions": versions, "home": find_spec("pyspark").submodule_search_locations[0]}))
"""
FAILED, UNAVAILABLE = 1, 3


class UnavailableError(Exception):
    """An environment that cannot run here: its packages cannot be installed, or there is no Java for it."""


class ServerError(Exception):
    """A Connect server that does not start."""


@dataclass(frozen=True)
class Leg:
    """One environment and one kind of session.

    ``is_open`` if a package of the environment has no fixed version, ``made_by`` the Python that makes it, such as
    ``python3.13``, if it is not the one that runs this.
    """

    environment: str
    session: str
    packages: tuple[str, ...]
    newest_java: int | None
    is_open: bool = False
    made_by: str | None = None

    @property
    def name(self) -> str:
        """The environment, and the session unless it is classic."""
        return self.environment if self.session == "classic" else f"{self.environment}/{self.session}"

    @property
    def python(self) -> Path:
        """The interpreter."""
        return ENVIRONMENTS / self.environment / "bin" / "python" if self.packages else Path(sys.executable)

    @property
    def engine(self) -> str:
        """The engine of its sessions."""
        return "embedded" if self.session == "embedded" else "spark"

    @property
    def results(self) -> Path:
        """The folder of logs and tables."""
        return RESULTS / self.name.replace("/", "-")


@dataclass(frozen=True)
class Result:
    """The result of a leg; ``tables`` is how its tables compare with those of the first leg."""

    name: str
    versions: Mapping[str, str]
    passed: int
    failed: int
    skipped: int
    tables: str
    seconds: int

    @property
    def is_good(self) -> bool:
        """Whether tests passed, none failed, and the tables are equal."""
        return not self.failed and self.passed > 0 and self.tables in ("equal", "the first")


def read_legs(declared: Mapping[str, Any]) -> list[Leg]:
    """Return every environment with each of its sessions, in order."""
    legs = []
    for name, environment in declared["environments"].items():
        versions = declared["versions"][environment["versions"]] if "versions" in environment else ()
        packages = (*environment.get("packages", ()), *versions)
        legs += [
            Leg(
                environment=name,
                session=session,
                packages=(*packages, *declared["tests"]["packages"]) if packages else (),
                newest_java=environment.get("newest_java"),
                is_open=any("==" not in package for package in packages),
                made_by=environment.get("python"),
            )
            for session in environment["sessions"]
        ]
    return legs


def choose(legs: Sequence[Leg], names: Sequence[str]) -> list[Leg]:
    """Return the legs of these names or environments, or all without names."""
    known = [leg.name for leg in legs] + [leg.environment for leg in legs]
    for name in names:
        if name not in known:
            sys.exit(f"scripts/dev/matrix: {name} is not declared. Known: {', '.join(dict.fromkeys(known))}.")
    return [leg for leg in legs if not names or {leg.name, leg.environment} & set(names)]


# ---- environments


def prepare(leg: Leg, today: date) -> None:
    """Build the environment of a leg unless it exists as declared, and check the version of Java."""
    if leg.newest_java and (java := java_version()) > leg.newest_java:
        raise UnavailableError(f"its Spark needs Java {leg.newest_java} or older, and JAVA_HOME has {java}")
    stamp, wanted = ENVIRONMENTS / leg.environment / "built", "\n".join(leg.packages)
    if leg.is_open:
        wanted += f"\n{today:%G-W%V}"
    if leg.packages and not (stamp.is_file() and stamp.read_text("utf-8") == wanted):
        build(leg)
        stamp.write_text(wanted, encoding="utf-8")
    if leg.packages:  # each time, since the checkout may have moved
        (library,) = (ENVIRONMENTS / leg.environment / "lib").glob("python3*")
        (library / "site-packages" / "biasspark.pth").write_text(f"{ROOT}\n", encoding="utf-8")


def build(leg: Leg) -> None:
    print(f"building {leg.environment}", file=sys.stderr, flush=True)
    python = sys.executable if leg.made_by is None else find_python(leg.made_by)
    if python is None:
        raise UnavailableError(f"{leg.made_by} is not installed")
    subprocess.run([python, "-m", "venv", "--without-pip", "--clear", ENVIRONMENTS / leg.environment], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(leg.python)]
    install = [*pip, "install", "--quiet", "--disable-pip-version-check", *leg.packages]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnavailableError(f"pip: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")


def find_python(name: str) -> str | None:
    """Return the first working interpreter of this name, on the path or in pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    listed = pyenv.glob(f"versions/{name.removeprefix('python')}.*/bin/python")
    for candidate in [shutil.which(name), *sorted(map(str, listed), reverse=True)]:
        if candidate and not subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode:
            return candidate
    return None


def java_version() -> int:
    """Return the major version of Java, 0 without Java."""
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else Path("java")
    output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    match = re.search(r'version "(\d+)', output)
    return int(match[1]) if match else 0


@contextlib.contextmanager
def environment_of(leg: Leg, home: str, log: Path) -> Iterator[dict[str, str]]:
    """Yield the environment variables of a leg, while its `server` runs. The embedded engine gets no Java."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    variables |= {
        "SPARK_HOME": home,
        "SPARK_CONF_DIR": str(ROOT / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(leg.python),
    }
    if leg.engine == "embedded":
        yield {name: value for name, value in variables.items() if not name.startswith(("SPARK_", "JAVA_"))}
    elif leg.session == "classic":
        yield variables
    elif leg.session == "connect":
        yield variables | {"SPARK_REMOTE": "local[2]", "SPARK_TESTING": "1"}  # which gives the server a free port
    else:
        with serve(home, variables, log) as address:
            yield variables | {"SPARK_REMOTE": address}


@contextlib.contextmanager
def serve(home: str, environment: dict[str, str], log: Path) -> Iterator[str]:
    """Run a Connect server on loopback, and yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(log.with_suffix(".warehouse")),
    }
    options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    kind = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = [f"{home}/bin/spark-submit", "--master", "local[2]", "--class", kind, *options, "spark-internal"]
    with log.open("wb") as out:
        server = subprocess.Popen(
            command, env=environment, cwd=log.parent, stdout=out, stderr=out, start_new_session=True
        )
    try:
        wait_until_open(port, server)
        yield f"sc://127.0.0.1:{port}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def wait_until_open(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while True:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        if server.poll() is not None or time.monotonic() > deadline:
            raise ServerError("the Connect server does not start, see server.log")
        time.sleep(0.2)


# ---- running


def run(leg: Leg, tests: Sequence[str], first: Path | None) -> Result:
    """Run the jobs and the tests of a leg, and compare its tables with those of the first leg."""
    started, folder = time.monotonic(), leg.results
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    prepare(leg, date.today())
    query = [str(leg.python), "-c", VERSIONS, *SHOWN]
    installed = json.loads(subprocess.run(query, cwd=folder, capture_output=True, text=True, check=True).stdout)
    jobs = [str(leg.python), "-m", "scripts.dev.matrix_tables", str(folder / "jobs"), leg.engine]
    report = folder / "tests.xml"
    # Warnings are errors in the locked environment only: elsewhere packages warn of the age of others.
    pytest = [str(leg.python), "-m", "pytest", "-W", "default", "-W", "ignore::ResourceWarning"]
    pytest += ["-m", "not slow" if leg.engine == "spark" else "not (slow or spark or classic)"]
    pytest += ["-p", "no:cacheprovider", f"--junitxml={report}", f"--engine={leg.engine}", *tests]
    try:
        with environment_of(leg, installed["home"], folder / "server.log") as environment:
            call(jobs, environment, folder / "jobs.log")
            call(pytest, environment, folder / "tests.log")
    except ServerError as error:  # without a report it counts as a failure
        print(f"{leg.name}: {error}", file=sys.stderr, flush=True)
    tables = compare_tables(folder, first)
    return Result(leg.name, installed["versions"], *count_tests(report), tables, round(time.monotonic() - started))


def call(command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    """Run a command at the root of the project, with its output in a file. Its results are other files."""
    with log.open("wb") as out:
        subprocess.run(command, env=environment, cwd=ROOT, stdout=out, stderr=out, check=False)


def count_tests(report: Path) -> tuple[int, int, int]:
    """Return how many tests passed, failed and were skipped; one failure without a report."""
    if not report.is_file():
        return 0, 1, 0
    (suite,) = ElementTree.parse(report).iter("testsuite")
    ran, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
    failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    return ran - failed - skipped, failed, skipped


def compare_tables(folder: Path, first: Path | None) -> str:
    """Return whether the tables of a leg equal those of the first byte for byte, and which do not."""
    tables, expected = (
        {table.stem: table.read_bytes() for table in (leg / "jobs" / "tables").glob("*.csv")} if leg else {}
        for leg in (folder, first)
    )
    if not tables:
        return "none: see jobs.log"
    if first is None:
        return "the first"
    different = [name for name in sorted(tables | expected) if tables.get(name) != expected.get(name)]
    return f"differ: {', '.join(different)}" if different else "equal"


def format_results(results: Sequence[Result]) -> str:
    head = ["environment", *SHOWN, "passed", "failed", "skipped", "tables"]
    lines: list[list[object]] = [[*head], ["---"] * len(head)]
    for each in results:
        versions = (each.versions[name] for name in SHOWN)
        lines.append([each.name, *versions, each.passed, each.failed, each.skipped, each.tables])
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def main() -> int:
    declared = tomllib.loads(DECLARED.read_text("utf-8"))
    parser = argparse.ArgumentParser(prog="scripts/dev/matrix", description=__doc__)
    parser.add_argument("--part", default="fast", choices=declared["parts"])
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []
    first: Path | None = None
    unavailable = False
    for leg in choose(read_legs(declared), arguments.names):
        try:
            result = run(leg, declared["parts"][arguments.part], first)
        except UnavailableError as error:
            unavailable = True
            print(f"scripts/dev/matrix: {leg.name}: NOT TESTED, {error}.", file=sys.stderr, flush=True)
            continue
        if result.tables == "the first":
            first = leg.results
        counts = f"{result.passed} passed, {result.failed} failed, {result.skipped} skipped"
        print(f"{leg.name}: {counts}; tables: {result.tables}; {result.seconds} s", flush=True)
        results.append(result)
    (RESULTS / "results.json").write_text(json.dumps([asdict(result) for result in results], indent=2) + "\n", "utf-8")
    (RESULTS / "results.md").write_text(format_results(results), "utf-8")
    print(f"\n{format_results(results)}")
    if not all(result.is_good for result in results):
        return FAILED
    return UNAVAILABLE if unavailable else 0


if __name__ == "__main__":
    sys.exit(main())
