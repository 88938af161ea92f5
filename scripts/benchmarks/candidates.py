"""The candidates of a benchmark: how each is started, and where it leaves its numbers."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.dataset as ds

from scripts.benchmarks.corpora import BUILD, ROOT
from scripts.benchmarks.event_log import log_into, read_tasks
from scripts.benchmarks.measured_process import Measured, run_measured
from scripts.benchmarks.task import PAIRS, Number, Outcome

FURTHER = (
    "thresholds.at=[0.5,0.8]",
    "histograms.bins=100",
    "label_balance.length='comment_length'",
    "pinned_auc.trials=0",
)
"""What turns the further tables of the job on."""

EVENTS = "events"

METRIC_OF = {pair: metric for metric, pair in PAIRS.items()}


@dataclass(frozen=True)
class Setting:
    """What the candidates of one benchmark are given.

    Attributes
    ----------
    corpora
        The corpus, and by the name of a group of cases the second one that it needs.
    """

    corpora: dict[str, Path]
    repeat: int
    driver_memory: str


@dataclass(frozen=True)
class Run:
    """One run of a candidate."""

    measured: Measured
    outcome: Outcome

    @property
    def seconds(self) -> float:
        """What counts: the time of the process, or what the candidate says in its place."""
        return self.measured.seconds if self.outcome.seconds is None else self.outcome.seconds


@dataclass(frozen=True)
class Candidate:
    """A way to compute the suite.

    Attributes
    ----------
    tolerance
        How far its values may lie from the others.
    has_cases
        Whether it runs several cases in one session, and repeats them itself.
    """

    name: str
    text: str
    start: Callable[[Setting, Path], Sequence[str | Path]]
    uses_java: bool = False
    has_cases: bool = False
    tolerance: float = 1e-12

    def run(self, setting: Setting, number: int) -> Run:
        """Run it once, in a folder of its own, and read what it found."""
        folder = BUILD / "runs" / f"{self.name}-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        heap_log = folder / "gc.log" if self.uses_java else None
        measured = run_measured(
            [str(part) for part in self.start(setting, folder)],
            {"PYTHONPATH": str(ROOT)},
            folder / "output.txt",
            heap_log,
        )
        outcome = _read_outcome(folder)
        if (folder / EVENTS).exists():
            outcome.details["tasks"] = read_tasks(folder / EVENTS)
        return Run(measured, outcome)


def _read_outcome(folder: Path) -> Outcome:
    if (folder / "outcome.json").exists():
        return Outcome.read(folder / "outcome.json")
    return _read_tables(folder / "warehouse")


def _read_tables(warehouse: Path) -> Outcome:
    """Read what the job published."""
    statistics = ds.dataset(warehouse / "u_statistics", partitioning="hive").to_table().to_pylist()
    key = ("model", "identity", "low_cell", "high_cell")
    variances = {tuple(row[name] for name in key): row["auc_variance"] for row in statistics}
    rows = ds.dataset(warehouse / "bias_metrics", partitioning="hive").to_table().to_pylist()
    return Outcome(
        [
            Number(row["model"], row["identity"], metric, row[metric], variances[row["model"], row["identity"], *pair])
            for row in rows
            for pair, metric in METRIC_OF.items()
        ]
    )


def _submit(setting: Setting, folder: Path, *job: str | Path) -> list[str | Path]:
    log = f"spark.driver.extraJavaOptions=-Xlog:gc:file={folder / 'gc.log'}"
    return [ROOT / "scripts" / "submit", "--driver-memory", setting.driver_memory, "--conf", log, *job]


def _start_job(*overrides: str) -> Callable[[Setting, Path], Sequence[str | Path]]:
    def start(setting: Setting, folder: Path) -> Sequence[str | Path]:
        places = (f"corpus.path='{setting.corpora['']}'", f"output.path='{folder / 'warehouse'}'")
        return _submit(
            setting,
            folder,
            ROOT / "jobs" / "bias_metrics.py",
            *("--config", ROOT / "scripts" / "benchmarks" / "job.toml", "--run-date", "2026-01-15"),
            *(option for override in (*places, *overrides) for option in ("--set", override)),
        )

    return start


def _start_script(name: str) -> Callable[[Setting, Path], Sequence[str | Path]]:
    def start(setting: Setting, folder: Path) -> Sequence[str | Path]:
        options = ("--corpus", setting.corpora[""], "--outcome", folder / "outcome.json")
        return [sys.executable, "-m", f"scripts.benchmarks.{name}", *options]

    return start


def _start_evaluator(setting: Setting, folder: Path) -> Sequence[str | Path]:
    script = ROOT / "scripts" / "benchmarks" / "spark_evaluator.py"
    return _submit(setting, folder, script, "--corpus", setting.corpora[""], "--outcome", folder / "outcome.json")


def _start_session(group: str) -> Callable[[Setting, Path], Sequence[str | Path]]:
    def start(setting: Setting, folder: Path) -> Sequence[str | Path]:
        script = ROOT / "scripts" / "benchmarks" / "spark_session.py"
        corpora = [setting.corpora[name] for name in ("", group) if name in setting.corpora]
        options = [option for corpus in corpora for option in ("--corpus", corpus)]
        repeat = ("--repeat", str(setting.repeat))
        (folder / EVENTS).mkdir()
        # A session works for many minutes, unlike a job: both of Java's compilers, and its own choice of a collector.
        settings = log_into(folder / EVENTS) | {"spark.driver.defaultJavaOptions": ""}
        return _submit(
            setting,
            folder,
            *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
            *(script, "--group", group, *options, *repeat, "--outcome", folder / "outcome.json"),
        )

    return start


CANDIDATES = {
    candidate.name: candidate
    for candidate in (
        Candidate("job", "spark-submit jobs/bias_metrics.py, whole", _start_job(), uses_java=True),
        Candidate(
            "further",
            "the same with thresholds, histograms, label balance and pinned AUC",
            _start_job(*FURTHER),
            uses_java=True,
        ),
        Candidate("pandas", "pandas, scikit-learn and SciPy in a loop", _start_script("pandas_loop")),
        Candidate(
            "evaluator",
            "Spark's BinaryClassificationEvaluator in a loop, 2 identities of 24, extrapolated",
            _start_evaluator,
            uses_java=True,
            tolerance=1e-9,  # it adds up rates of a million thresholds in floating point
        ),
        Candidate("numpy", "numpy by hand in one process", _start_script("numpy_sorted")),
        Candidate("duckdb", "DuckDB SQL", _start_script("duckdb_sql")),
        *(
            Candidate(group, text, _start_session(group), uses_java=True, has_cases=True)
            for group, text in (
                ("session", "one Spark session: suite, sort, scan"),
                ("binned", "one Spark session: the suite by 4,096 bins, approximate, the suite, scan"),
                ("array", "one Spark session: 24 and 240 identities in an array, at the same number of mentions"),
                ("columns", "one Spark session: 24 and 240 columns of identities, at the same number of mentions"),
                ("unannotated", "one Spark session: the corpus, and one with 75 % of its rows unannotated"),
                ("crossed", "one Spark session: without and with crossed pairs"),
                ("comparison", "one Spark session: two models compared by DeLong and by the jackknife, suite"),
                ("attribution", "one Spark session: attribution of every row, sort, crosses of 50 groups, suite"),
                ("window", "one Spark session: 7 nights that kept their state merged, and their rows measured again"),
                ("growth", "one Spark session: more rows, identities, models and slices, each while the others stay"),
                ("templates", "one Spark session: scores of 20 templates by 24 identities, in ever more rows"),
            )
        ),
    )
}
