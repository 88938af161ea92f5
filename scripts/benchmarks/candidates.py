"""The candidates of a benchmark: how each is started, and where its outcome is."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow.dataset as ds

from scripts.benchmarks.cases import GROUPS
from scripts.benchmarks.event_log import log_into, read_tasks
from scripts.benchmarks.measured_process import CandidateError, Measured, run_measured
from scripts.benchmarks.task import BUILD, PAIRS, ROOT, Number, Outcome

MORE_TABLES = (
    "thresholds.at=[0.5,0.8]",
    "histograms.bins=100",
    "label_balance.length='comment_length'",
    "pinned_auc.trials=0",
)
"""The settings that turn further tables of the job on."""

SCRIPTS = Path(__file__).parent
EVENTS, GC_LOG = "events", "gc.log"


@dataclass(frozen=True)
class Setting:
    """What all candidates share."""

    corpus: Path
    repeat: int
    driver_memory: str


Command = Sequence[str | Path]
Start = Callable[["Candidate", Setting, Path], Command]
"""Returns the command of a candidate, given its folder."""


@dataclass(frozen=True)
class Candidate:
    """A way to compute the suite, or something to compare it with."""

    name: str
    text: str
    start: Start
    repeats: bool = False
    """Whether it repeats its work itself, in one process."""
    portable: bool = True
    """Whether it can run at another checkout of the project."""
    root: Path = ROOT
    """The checkout that it runs at."""

    def at(self, root: Path) -> Candidate:
        """Return the candidate at another checkout."""
        return replace(self, name=f"{self.name}@{root.name}", text=f"{self.text}, at {root.name}", root=root)

    def run(self, setting: Setting, number: int) -> Run:
        """Run it once, in a folder of its own, and read its outcome."""
        folder = BUILD / "runs" / f"{self.name}-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        measured = run_measured(
            [str(part) for part in self.start(self, setting, folder)],
            self.root,
            folder / "output.txt",
            folder / GC_LOG,
        )
        outcome = _read_outcome(folder)
        if (folder / EVENTS).exists():
            outcome.details["tasks"] = read_tasks(folder / EVENTS)
        shutil.rmtree(folder)
        return Run(self, measured, outcome)


@dataclass(frozen=True)
class Run:
    """One run of a candidate."""

    candidate: Candidate
    measured: Measured
    outcome: Outcome

    @property
    def seconds(self) -> float:
        """The time that counts: the process time unless the candidate reports another."""
        return self.measured.seconds if self.outcome.seconds is None else self.outcome.seconds


def _read_outcome(folder: Path) -> Outcome:
    if (folder / "outcome.json").exists():
        return Outcome.read(folder / "outcome.json")
    if any(folder.glob("warehouse/attribution_*")):
        return Outcome([])
    if not (folder / "warehouse" / "u_statistics").exists():
        raise CandidateError(f"{folder} has no tables, though the job ended with exit code 0.")
    tables = {
        name: ds.dataset(folder / "warehouse" / name, partitioning="hive").to_table().to_pylist()
        for name in ("u_statistics", "bias_metrics")
    }
    key = ("model", "identity", "low_cell", "high_cell")
    variances = {tuple(row[name] for name in key): row["auc_variance"] for row in tables["u_statistics"]}
    return Outcome(
        [
            Number(row["model"], row["identity"], metric, row[metric], variances[row["model"], row["identity"], *pair])
            for row in tables["bias_metrics"]
            for metric, pair in PAIRS.items()
        ]
    )


def _submit(setting: Setting, folder: Path, *job: str | Path) -> Command:
    # Always the script of this checkout, which starts Spark with the packages of this checkout.
    gc_log = f'spark.driver.extraJavaOptions=-Xlog:gc:file="{folder / GC_LOG}"'
    return [ROOT / "scripts" / "submit", "--driver-memory", setting.driver_memory, "--conf", gc_log, *job]


def _task(setting: Setting, folder: Path) -> Command:
    return ["--corpus", setting.corpus, "--outcome", folder / "outcome.json"]


class _Job(NamedTuple):
    command: str
    file: str
    config: str
    overrides: Sequence[str] = ()


_MEASURE = _Job("measure", "bias_metrics.py", "scripts/benchmarks/job.toml")
_ATTRIBUTE = _Job("attribute", "attribution.py", "conf/attribution.toml")


def _start_job(candidate: Candidate, setting: Setting, folder: Path, job: _Job, embedded: bool = False) -> Command:
    paths = (f"corpus.path='{setting.corpus}'", f"output.path='{folder / 'warehouse'}'")
    options: list[str | Path] = ["--config", candidate.root / job.config, "--run-date", "2026-01-15"]
    options += [option for override in (*paths, *job.overrides) for option in ("--set", override)]
    if embedded:  # -P: the package is that of the candidate's root, and not what lies in this folder.
        return [sys.executable, "-P", "-m", "biasspark", job.command, "--engine", "embedded", *options]
    return _submit(setting, folder, candidate.root / "jobs" / job.file, *options)


def _start_python(_: Candidate, setting: Setting, folder: Path, script: str) -> Command:
    return [sys.executable, SCRIPTS / script, *_task(setting, folder)]


def _start_floor(_: Candidate, setting: Setting, folder: Path) -> Command:
    return _submit(setting, folder, SCRIPTS / "floor.py", *_task(setting, folder))


def _start_warm(candidate: Candidate, setting: Setting, folder: Path) -> Command:
    options = ("--root", candidate.root, "--repeat", str(setting.repeat), *_task(setting, folder))
    return _submit(setting, folder, SCRIPTS / "warm_session.py", *options)


def _start_session(candidate: Candidate, setting: Setting, folder: Path) -> Command:
    (folder / EVENTS).mkdir()
    # A session works for many minutes, unlike a job: both compilers of Java, and its own choice of a collector.
    settings = log_into(folder / EVENTS) | {"spark.driver.defaultJavaOptions": ""}
    conf = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    script: Command = [SCRIPTS / "session.py", "--group", candidate.name, "--repeat", str(setting.repeat)]
    return _submit(setting, folder, *conf, *script, *_task(setting, folder))


_LISTED = (
    Candidate("job", "spark-submit jobs/bias_metrics.py, whole", partial(_start_job, job=_MEASURE)),
    Candidate(
        "embedded",
        "biasspark measure on the embedded engine, whole",
        partial(_start_job, job=_MEASURE, embedded=True),
    ),
    Candidate(
        "attribute",
        "spark-submit jobs/attribution.py with conf/attribution.toml, whole",
        partial(_start_job, job=_ATTRIBUTE),
    ),
    Candidate(
        "attribute_embedded",
        "biasspark attribute with conf/attribution.toml on the embedded engine, whole",
        partial(_start_job, job=_ATTRIBUTE, embedded=True),
    ),
    Candidate(
        "further",
        "spark-submit jobs/bias_metrics.py with thresholds, histograms, label balance and pinned AUC, whole",
        partial(_start_job, job=_MEASURE._replace(overrides=MORE_TABLES)),
    ),
    Candidate(
        "floor",
        "spark-submit of a session that aggregates a column, maps two in Python and writes a file",
        _start_floor,
    ),
    Candidate("warm", "another run of conf/demo.toml in one Spark session", _start_warm, repeats=True),
    *(
        Candidate(name, text, partial(_start_python, script=script), portable=False)
        for name, text, script in (
            ("pandas", "pandas, scikit-learn and SciPy in a loop", "pandas_loop.py"),
            ("numpy", "numpy by hand in one process", "numpy_sorted.py"),
            ("duckdb", "DuckDB SQL", "duckdb_sql.py"),
        )
    ),
    *(
        Candidate(name, f"One Spark session. {group.__doc__}", _start_session, repeats=True, portable=False)
        for name, group in GROUPS.items()
    ),
)
CANDIDATES = {candidate.name: candidate for candidate in _LISTED}
