"""Run the candidates in turn, compare their numbers, and save the times. Started by scripts/bench.

Supports docs/performance.md: every figure.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds

from scripts.benchmarks.candidates import CANDIDATES, Candidate, Run, Setting
from scripts.benchmarks.measured_process import CandidateError
from scripts.benchmarks.report import all_agree, format_json, format_report, summarize
from scripts.benchmarks.task import BUILD, IDENTITY_NAMES, ROOT, SEED, positive_int

RESULTS = BUILD / "results"
PACKAGES = ("duckdb", "numpy", "pandas", "pyarrow", "pyspark", "scikit-learn", "scipy")
DEFAULT = ["job", "embedded", "further", "floor", "warm", "pandas", "numpy", "duckdb", "session"]


def parse_arguments() -> argparse.Namespace:
    """Read the command line; scripts/bench describes it."""
    parser = argparse.ArgumentParser(prog="scripts/bench", add_help=False, allow_abbrev=False)
    parser.add_argument("--rows", type=positive_int)
    parser.add_argument("--corpus", type=_corpus)
    parser.add_argument("--only", type=_names, default=DEFAULT)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--repeat", type=positive_int, default=3)
    parser.add_argument("--cores", type=positive_int, default=2)
    parser.add_argument("--driver-memory", default="1g")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.rows and arguments.corpus:
        parser.error("--rows and --corpus: both name a corpus. Leave one out.")
    if arguments.against and not (arguments.against / "jobs" / "bias_metrics.py").exists():
        parser.error(f"--against {arguments.against}: it has no jobs/bias_metrics.py. Name a checkout of the project.")
    if arguments.cores > len(os.sched_getaffinity(0)):
        parser.error(f"--cores {arguments.cores}: there are {len(os.sched_getaffinity(0))}. Ask for fewer.")
    return arguments


def _names(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in CANDIDATES]
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)} is unknown. Known: {', '.join(CANDIDATES)}.")
    return [name for name in CANDIDATES if name in names]


def _corpus(text: str) -> Path:
    corpus = Path(text).resolve()
    if not any(corpus.glob("*.parquet")):
        raise argparse.ArgumentTypeError(f"{text} has no Parquet files. Name a folder that jobs/make_corpus.py wrote.")
    return corpus


def civil_corpus(rows: int) -> Path:
    """Return a corpus whose rows are all annotated, made when first needed, kept until one of that size replaces it."""
    sources = [*sorted((ROOT / "biasspark" / "synthetic").glob("*.*")), ROOT / "jobs" / "make_corpus.py"]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    folder = BUILD / f"civil-{rows}-{digest}"
    if not (folder / "_SUCCESS").exists():
        print(f"making {folder.relative_to(ROOT)}", file=sys.stderr, flush=True)
        for older in BUILD.glob(f"civil-{rows}-*"):
            shutil.rmtree(older)
        command = f"scripts/submit jobs/make_corpus.py civil --rows {rows} --seed {SEED} --unannotated 0 --out".split()
        subprocess.run([*command, folder], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return folder


def describe_corpus(corpus: Path) -> dict[str, int]:
    """Return the rows of a corpus, those with annotations, and the bytes of its files."""
    rows = ds.dataset(corpus)
    return {
        "rows": int(rows.count_rows()),
        "bytes": sum(path.stat().st_size for path in corpus.glob("*.parquet")),
        "annotated_rows": int(rows.count_rows(filter=pc.is_valid(pc.field(IDENTITY_NAMES[0])))),
    }


def read_once(corpus: Path) -> None:
    """Read all files, so that no candidate waits for the disk."""
    for path in corpus.glob("*.parquet"):
        with path.open("rb") as file:
            while file.read(1 << 24):
                pass


def choose(names: Sequence[str], against: Path | None) -> list[Candidate]:
    """Return the candidates of these names, each followed by the same at the other checkout if it can run there."""
    chosen = []
    for candidate in map(CANDIDATES.__getitem__, names):
        chosen.append(candidate)
        if against and candidate.portable:
            chosen.append(candidate.at(against.resolve()))
    return chosen


def run_in_turn(candidates: Sequence[Candidate], setting: Setting) -> dict[str, list[Run]]:
    """Run A B C, A B C, ..., so that other work of the machine affects all of them alike."""
    runs: dict[str, list[Run]] = {candidate.name: [] for candidate in candidates}
    for number in range(setting.repeat):
        for candidate in candidates:
            if candidate.repeats and number:
                continue
            run = candidate.run(setting, number)
            runs[candidate.name].append(run)
            print(f"{candidate.name}: {run.seconds:.2f} s, {run.measured.peak_mb:.0f} MB", file=sys.stderr, flush=True)
    return runs


def describe_machine() -> dict[str, object]:
    """Return what the numbers depend on besides the code; nothing that identifies the machine or its user."""
    java = f"{os.environ['JAVA_HOME']}/bin/java" if os.environ.get("JAVA_HOME") else "java"
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_model() or platform.machine(),
        "cores": os.cpu_count(),
        "cores_used": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load_at_start": round(os.getloadavg()[0], 2),
        "os": platform.platform(),
        "numpy_disabled_features": os.environ.get("NPY_DISABLE_CPU_FEATURES", ""),
        "java": _first_line(java, "-version"),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "commit": _git("rev-parse", "HEAD"),
        "commit_is_clean": _git("status", "--porcelain", "--", ":/", ":/!scripts/benchmarks/results") == "",
    }


def _git(*arguments: str) -> str | None:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    return None if done.returncode else done.stdout.strip()


def _first_line(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).partition("\n")[0]


def _cpu_model() -> str | None:
    match = re.search(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    return match and match[1]


def main() -> int:
    """Run the benchmark, print its tables, save its JSON; 1 if numbers differ or a candidate fails."""
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # like Ctrl-C: it also ends what runs
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.cores])
    machine = describe_machine()
    BUILD.mkdir(parents=True, exist_ok=True)
    try:
        corpus = arguments.corpus or civil_corpus(arguments.rows or 1_800_000)
        read_once(corpus)
        setting = Setting(corpus, arguments.repeat, arguments.driver_memory)
        runs = run_in_turn(choose(arguments.only, arguments.against), setting)
    except (CandidateError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    description = describe_corpus(corpus)
    rows = description["rows"]
    head = {"machine": machine, "corpus": description, "repeat": setting.repeat, "driver_memory": setting.driver_memory}
    summary: dict[str, Any] = head | summarize(runs, rows)
    names = [] if arguments.only == DEFAULT else arguments.only
    names = [*names, "against", arguments.against.resolve().name] if arguments.against else names
    out = arguments.out or RESULTS / f"{'-'.join(['civil', str(rows), *names])}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(format_json(summary), encoding="utf-8")
    print(f"{rows:,} rows, {machine['cores_used']} cores of {machine['cpu']}, {out}\n\n{format_report(summary)}")
    return 0 if all_agree(summary) else 1


if __name__ == "__main__":
    sys.exit(main())
