"""The candidates of a benchmark: how each is started, and where its outcome is."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.dataset as ds

from scripts.benchmarks.corpora import BUILD, ROOT
from scripts.benchmarks.event_log import log_into, read_tasks
from scripts.benchmarks.measured_process import Measured, run_measured
from scripts.benchmarks.task import PAIRS, Number, Outcome

MORE_TABLES = (
    "thresholds.at=[0.5,0.8]",
    "histograms.bins=100",
    "label_balance.length='comment_length'",
    "pinned_auc.trials=0",
)
"""The settings that turn further tables of the job on."""

SCRIPTS = Path(__file__).parent
EVENTS = "events"
METRIC_OF = {pair: metric for metric, pair in PAIRS.items()}


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
    uses_java: bool = True
    repeats: bool = False
    """Whether it repeats its work itself, in one process."""
    portable: bool = False
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
            {"PYTHONPATH": str(self.root)},
            folder / "output.txt",
            folder / "gc.log" if self.uses_java else None,
        )
        outcome = _read_outcome(folder)
        if (folder / EVENTS).exists():
            outcome.details["tasks"] = read_tasks(folder / EVENTS)
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
    if not (folder / "warehouse" / "u_statistics").exists():
        return Outcome([])
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
            for pair, metric in METRIC_OF.items()
        ]
    )


def _submit(candidate: Candidate, setting: Setting, folder: Path, *job: str | Path) -> Command:
    gc_log = f"spark.driver.extraJavaOptions=-Xlog:gc:file={folder / 'gc.log'}"
    submit = candidate.root / "scripts" / "submit"
    return [submit, "--driver-memory", setting.driver_memory, "--conf", gc_log, *job]


def _task(setting: Setting, folder: Path) -> Command:
    return ["--corpus", setting.corpora[""], "--outcome", folder / "outcome.json"]


MEASURE, ATTRIBUTE = "scripts/benchmarks/job.toml", "conf/attribution.toml"
"""The configurations of jobs."""


def _run_options(config: Path, setting: Setting, folder: Path, *overrides: str) -> Command:
    paths = (f"corpus.path='{setting.corpora['']}'", f"output.path='{folder / 'warehouse'}'")
    options = [option for override in (*paths, *overrides) for option in ("--set", override)]
    return ["--config", config, "--run-date", "2026-01-15", *options]


def _start_job(job: str, config: str, *overrides: str) -> Start:
    def start(candidate: Candidate, setting: Setting, folder: Path) -> Command:
        options = _run_options(candidate.root / config, setting, folder, *overrides)
        return _submit(candidate, setting, folder, candidate.root / "jobs" / job, *options)

    return start


def _start_embedded(command: str, config: str) -> Start:
    def start(candidate: Candidate, setting: Setting, folder: Path) -> Command:
        # -P: the package is that of the candidate's root, and not what lies in this folder.
        engine = [sys.executable, "-P", "-m", "biasspark", command, "--engine", "embedded"]
        return [*engine, *_run_options(candidate.root / config, setting, folder)]

    return start


def _start_python(script: str) -> Start:
    def start(_: Candidate, setting: Setting, folder: Path) -> Command:
        return [sys.executable, SCRIPTS / script, *_task(setting, folder)]

    return start


def _start_floor(candidate: Candidate, setting: Setting, folder: Path) -> Command:
    return _submit(candidate, setting, folder, SCRIPTS / "floor.py", *_task(setting, folder))


def _start_warm(candidate: Candidate, setting: Setting, folder: Path) -> Command:
    options = ("--root", candidate.root, "--repeat", str(setting.repeat), *_task(setting, folder))
    return _submit(candidate, setting, folder, SCRIPTS / "warm_session.py", *options)


def _start_session(candidate: Candidate, setting: Setting, folder: Path) -> Command:
    group = candidate.name
    second: Command = ["--corpus", setting.corpora[group]] if group in setting.corpora else []
    (folder / EVENTS).mkdir()
    # A session works for many minutes, unlike a job: both compilers of Java, and its own choice of a collector.
    settings = log_into(folder / EVENTS) | {"spark.driver.defaultJavaOptions": ""}
    conf = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    script: Command = [SCRIPTS / "session.py", "--group", group, "--repeat", str(setting.repeat)]
    return _submit(candidate, setting, folder, *conf, *script, *_task(setting, folder), *second)


SESSIONS = {
    "session": "the suite, a bare sort, a bare scan",
    "array": "24 and 240 identities in an array, with the same number of mentions",
    "columns": "24 and 240 columns of identities, with the same number of mentions",
    "unannotated": "the corpus, and one with 75 % of its rows unannotated",
    "comparison": "two models compared by DeLong and by the jackknife, the suite",
    "attribution": "the attribution of every row, a bare sort, crosses of 50 groups, the suite",
    "window": "7 runs that kept their scores, merged, against a measurement of their rows",
    "growth": "more rows, identities, models and slices, each while the others stay",
    "templates": "scores of 20 templates by 24 identities, in ever more rows",
}

CANDIDATES = {
    candidate.name: candidate
    for candidate in (
        Candidate(
            "job", "spark-submit jobs/bias_metrics.py, whole", _start_job("bias_metrics.py", MEASURE), portable=True
        ),
        Candidate(
            "embedded",
            "biasspark measure on the embedded engine, whole",
            _start_embedded("measure", MEASURE),
            uses_java=False,
            portable=True,
        ),
        Candidate(
            "attribute",
            "spark-submit jobs/attribution.py with conf/attribution.toml, whole",
            _start_job("attribution.py", ATTRIBUTE),
            portable=True,
        ),
        Candidate(
            "attribute_embedded",
            "biasspark attribute with conf/attribution.toml on the embedded engine, whole",
            _start_embedded("attribute", ATTRIBUTE),
            uses_java=False,
            portable=True,
        ),
        Candidate(
            "further",
            "the same with thresholds, histograms, label balance and pinned AUC",
            _start_job("bias_metrics.py", MEASURE, *MORE_TABLES),
            portable=True,
        ),
        Candidate(
            "floor",
            "spark-submit of a session that aggregates a column, maps two in Python and writes a file",
            _start_floor,
            portable=True,
        ),
        Candidate(
            "warm",
            "another run of conf/demo.toml in one Spark session",
            _start_warm,
            repeats=True,
            portable=True,
        ),
        Candidate(
            "pandas", "pandas, scikit-learn and SciPy in a loop", _start_python("pandas_loop.py"), uses_java=False
        ),
        Candidate("numpy", "numpy by hand in one process", _start_python("numpy_sorted.py"), uses_java=False),
        Candidate("duckdb", "DuckDB SQL", _start_python("duckdb_sql.py"), uses_java=False),
        *(
            Candidate(name, f"one Spark session: {text}", _start_session, repeats=True)
            for name, text in SESSIONS.items()
        ),
    )
}
