"""Run a part of the tests, and all jobs on two small nights, in each environment of scripts/matrix.toml."""

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
import venv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "build" / "matrix"
RESULTS = PLACE / "results"
SHOWN = ("pyspark", "python", "pandas", "numpy", "pyarrow")
VERSIONS = """
import json, platform, sys
from importlib.metadata import version
from importlib.util import find_spec
found = {name: version(name) for name in sys.argv[1:] if name != "python"} | {"python": platform.python_version()}
print(json.dumps({"versions": found, "home": find_spec("pyspark").submodule_search_locations[0]}))
"""
FAILED, NOT_HAD = 1, 3


class NotHadError(Exception):
    """An environment cannot be had here: its packages, or the Java that it runs on."""


@dataclass(frozen=True)
class Leg:
    """One environment and one kind of session; ``is_open`` where some package of its own names no version."""

    environment: str
    session: str
    packages: tuple[str, ...]
    newest_java: int | None
    is_open: bool = False

    @property
    def name(self) -> str:
        """The environment, and its session unless it is a classic one."""
        return self.environment if self.session == "classic" else f"{self.environment}/{self.session}"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return PLACE / self.environment / "bin" / "python" if self.packages else Path(sys.executable)


@dataclass(frozen=True)
class Result:
    """What came of a leg; ``tables`` says how those of its nights compare with those of the first leg."""

    name: str
    versions: Mapping[str, str]
    passed: int
    failed: int
    skipped: int
    tables: str
    seconds: int

    @property
    def is_good(self) -> bool:
        """Whether nothing failed."""
        return not self.failed and self.passed > 0 and self.tables in ("equal", "the first")


# ---- what is asked for


def read_legs(declared: Mapping[str, object]) -> list[Leg]:
    """Return every environment with every session of it, in order."""
    environments, tests = declared["environments"], declared["tests"]
    assert isinstance(environments, dict)
    assert isinstance(tests, dict)
    return [
        Leg(
            environment=name,
            session=session,
            packages=(*own["packages"], *tests["packages"]) if "packages" in own else (),
            newest_java=own.get("newest_java"),
            is_open=any("==" not in package for package in own.get("packages", ())),
        )
        for name, own in environments.items()
        for session in own["sessions"]
    ]


def choose(legs: Sequence[Leg], names: Sequence[str]) -> list[Leg]:
    """Return the legs that are named, by themselves or by their environment; all where none is."""
    known = [leg.name for leg in legs] + [leg.environment for leg in legs]
    for name in names:
        if name not in known:
            sys.exit(f"scripts/matrix: {name} is not declared. Known: {', '.join(dict.fromkeys(known))}.")
    return [leg for leg in legs if not names or {leg.name, leg.environment} & set(names)]


# ---- environments


def prepare(leg: Leg, today: date) -> None:
    """Build the environment of a leg unless it is there as it is declared, and look at Java."""
    if leg.newest_java and (java := find_java_version()) > leg.newest_java:
        raise NotHadError(f"its Spark runs on Java {leg.newest_java} at the most, and JAVA_HOME has {java}")
    stamp, wanted = PLACE / leg.environment / "built", "\n".join(leg.packages)
    if leg.is_open:
        wanted += f"\n{today:%G-W%V}"
    if leg.packages and not (stamp.is_file() and stamp.read_text("utf-8") == wanted):
        build(leg)
        stamp.write_text(wanted, encoding="utf-8")
    if leg.packages:  # each time, for the checkout may have moved
        (library,) = (PLACE / leg.environment / "lib").glob("python3*")
        (library / "site-packages" / "biasspark.pth").write_text(f"{ROOT}\n", encoding="utf-8")


def build(leg: Leg) -> None:
    """Make the environment of a leg anew."""
    print(f"building {leg.environment}", file=sys.stderr, flush=True)
    venv.create(PLACE / leg.environment, clear=True)
    pip = [sys.executable, "-m", "pip", "--python", str(leg.python)]
    install = [*pip, "install", "--quiet", "--disable-pip-version-check", *leg.packages]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotHadError(f"pip: {(done.stderr.strip().splitlines() or ['no word'])[-1]}")


def find_java_version() -> int:
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else Path("java")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


@contextlib.contextmanager
def environment_of(leg: Leg, home: str, log: Path) -> Iterator[dict[str, str]]:
    """Give the environment variables under which Python and Spark of a leg run; with a server, while it runs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    own = {
        "SPARK_HOME": home,
        "SPARK_CONF_DIR": str(ROOT / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(leg.python),
    }
    if leg.session == "classic":
        yield kept | own
    elif leg.session == "connect":
        yield kept | own | {"SPARK_REMOTE": "local[2]", "SPARK_TESTING": "1"}  # which gives the server a free port
    else:
        with serve(home, kept | own, log) as address:
            yield kept | own | {"SPARK_REMOTE": address}


@contextlib.contextmanager
def serve(home: str, environment: dict[str, str], log: Path) -> Iterator[str]:
    """Run a Connect server on loopback, and give its address."""
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
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise NotHadError("the Connect server does not start") from None
            time.sleep(0.2)
        else:
            return


# ---- running


def run(leg: Leg, tests: Sequence[str], first: Path | None) -> Result:
    """Run the nights and the tests of a leg, and compare its tables with those of the first."""
    started, folder = time.monotonic(), RESULTS / leg.name.replace("/", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    prepare(leg, date.today())
    asked = [str(leg.python), "-c", VERSIONS, *SHOWN]
    found = json.loads(subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=True).stdout)
    with environment_of(leg, found["home"], folder / "server.log") as environment:
        call([str(leg.python), "-m", "scripts.matrix_night", str(folder / "night")], environment, folder / "night.log")
        report = folder / "tests.xml"
        # Warnings are errors in the locked environment alone: elsewhere packages warn of each other's age.
        quietly = ["-W", "default", "-W", "ignore::ResourceWarning"]
        pytest = ["-m", "pytest", *quietly, "-m", "not slow", "-p", "no:cacheprovider"]
        call([str(leg.python), *pytest, f"--junitxml={report}", *tests], environment, folder / "tests.log")
    tables = compare_tables(folder, first)
    return Result(leg.name, found["versions"], *count_tests(report), tables, round(time.monotonic() - started))


def call(command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    """Run a command at the project's root, with all that it prints in a file; what came of it is in other files."""
    with log.open("wb") as out:
        subprocess.run(command, env=environment, cwd=ROOT, stdout=out, stderr=out, check=False)


def count_tests(report: Path) -> tuple[int, int, int]:
    """Return how many tests passed, failed and were skipped; one failure where there is no report."""
    if not report.is_file():
        return 0, 1, 0
    (suite,) = ElementTree.parse(report).iter("testsuite")
    ran, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
    failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    return ran - failed - skipped, failed, skipped


def compare_tables(folder: Path, first: Path | None) -> str:
    """Say whether the tables of a leg are byte for byte those of the first, and where they are not."""
    own = read_tables(folder)
    if not own:
        return "none: see night.log"
    if first is None:
        return "the first"
    other = read_tables(first)
    differing = [name for name in sorted(own | other) if own.get(name) != other.get(name)]
    return f"differ: {', '.join(differing)}" if differing else "equal"


def read_tables(folder: Path) -> dict[str, bytes]:
    """Return the tables of a leg as they were written out."""
    return {table.stem: table.read_bytes() for table in (folder / "night" / "tables").glob("*.csv")}


# ---- saying what came of it


def format_results(results: Sequence[Result]) -> str:
    """Lay the results out as a table of Markdown."""
    head = ["environment", *SHOWN, "passed", "failed", "skipped", "tables"]
    rows = [
        [
            one.name,
            *(one.versions[name] for name in SHOWN),
            *map(str, (one.passed, one.failed, one.skipped)),
            one.tables,
        ]
        for one in results
    ]
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> int:
    """Run what is asked for, print a line for each leg and the table, and keep both."""
    declared = tomllib.loads((ROOT / "scripts" / "matrix.toml").read_text("utf-8"))
    parser = argparse.ArgumentParser(prog="scripts/matrix", description=__doc__)
    parser.add_argument("--part", default="fast", choices=declared["parts"])
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []
    not_had = False
    for leg in choose(read_legs(declared), arguments.names):
        first = RESULTS / results[0].name.replace("/", "-") if results else None
        try:
            result = run(leg, declared["parts"][arguments.part], first)
        except NotHadError as error:
            not_had = True
            print(f"scripts/matrix: {leg.name}: NOT TESTED, {error}.", file=sys.stderr, flush=True)
            continue
        counts = f"{result.passed} passed, {result.failed} failed, {result.skipped} skipped"
        print(f"{leg.name}: {counts}; tables: {result.tables}; {result.seconds} s", flush=True)
        results.append(result)
    (RESULTS / "results.json").write_text(json.dumps([asdict(one) for one in results], indent=2) + "\n", "utf-8")
    (RESULTS / "results.md").write_text(format_results(results), "utf-8")
    print(f"\n{format_results(results)}")
    if not all(result.is_good for result in results):
        return FAILED
    return NOT_HAD if not_had else 0


if __name__ == "__main__":
    sys.exit(main())
