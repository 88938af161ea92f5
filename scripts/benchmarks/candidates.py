"""The candidates of a benchmark: how each is started, and where its outcome is."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow.dataset as ds

from scripts.benchmarks.cases import GROUPS
from scripts.benchmarks.corpora import BUILD, ROOT
from scripts.benchmarks.event_log import log_into, read_tasks
from scripts.benchmarks.measured_process import CandidateError, Measured, run_measured
from scripts.benchmarks.task import PAIRS, Number, Outcome

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

    corpora: dict[str, Path]
    """The corpus at "", and the second corpora of groups of cases by their names."""
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
    return ["--corpus", setting.corpora[""], "--outcome", folder / "outcome.json"]


_JOBS = {
    "measure": ("bias_metrics.py", "scripts/benchmarks/job.toml"),
    "attribute": ("attribution.py", "conf/attribution.toml"),
}
"""The file and the configuration of a job, by its command."""


def _run_options(
    candidate: Candidate, setting: Setting, folder: Path, command: str, overrides: Sequence[str] = ()
) -> Command:
    paths = (f"corpus.path='{setting.corpora['']}'", f"output.path='{folder / 'warehouse'}'")
    options = [option for override in (*paths, *overrides) for option in ("--set", override)]
    return ["--config", candidate.root / _JOBS[command][1], "--run-date", "2026-01-15", *options]


def _start_job(
    candidate: Candidate, setting: Setting, folder: Path, command: str, overrides: Sequence[str] = ()
) -> Command:
    job = candidate.root / "jobs" / _JOBS[command][0]
    return _submit(setting, folder, job, *_run_options(candidate, setting, folder, command, overrides))


def _start_embedded(candidate: Candidate, setting: Setting, folder: Path, command: str) -> Command:
    # -P: the package is that of the candidate's root, and not what lies in this folder.
    engine = [sys.executable, "-P", "-m", "biasspark", command, "--engine", "embedded"]
    return [*engine, *_run_options(candidate, setting, folder, command)]


def _start_python(_: Candidate, setting: Setting, folder: Path, script: str) -> Command:
    return [sys.executable, SCRIPTS / script, *_task(setting, folder)]


def _start_floor(_: Candidate, setting: Setting, folder: Path) -> Command:
    return _submit(setting, folder, SCRIPTS / "floor.py", *_task(setting, folder))


def _start_warm(candidate: Candidate, setting: Setting, folder: Path) -> Command:
    options = ("--root", candidate.root, "--repeat", str(setting.repeat), *_task(setting, folder))
    return _submit(setting, folder, SCRIPTS / "warm_session.py", *options)


def _start_session(candidate: Candidate, setting: Setting, folder: Path) -> Command:
    group = candidate.name
    second: Command = ["--corpus", setting.corpora[group]] if group in setting.corpora else []
    (folder / EVENTS).mkdir()
    # A session works for many minutes, unlike a job: both compilers of Java, and its own choice of a collector.
    settings = log_into(folder / EVENTS) | {"spark.driver.defaultJavaOptions": ""}
    conf = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    script: Command = [SCRIPTS / "session.py", "--group", group, "--repeat", str(setting.repeat)]
    return _submit(setting, folder, *conf, *script, *_task(setting, folder), *second)


_LISTED = (
    Candidate("job", "spark-submit jobs/bias_metrics.py, whole", partial(_start_job, command="measure")),
    Candidate(
        "embedded", "biasspark measure on the embedded engine, whole", partial(_start_embedded, command="measure")
    ),
    Candidate(
        "attribute",
        "spark-submit jobs/attribution.py with conf/attribution.toml, whole",
        partial(_start_job, command="attribute"),
    ),
    Candidate(
        "attribute_embedded",
        "biasspark attribute with conf/attribution.toml on the embedded engine, whole",
        partial(_start_embedded, command="attribute"),
    ),
    Candidate(
        "further",
        "spark-submit jobs/bias_metrics.py with thresholds, histograms, label balance and pinned AUC, whole",
        partial(_start_job, command="measure", overrides=MORE_TABLES),
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
