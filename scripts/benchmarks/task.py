"""The task of every candidate: the bias suite of two models over 24 identities. Imports no numpy: DuckDB needs none."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from biasspark.columns import CELL_PAIRS
from biasspark.synthetic.wording import read_packaged

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "bench"
SEED = 1
"""The seed of the synthetic corpora."""

IDENTITY_NAMES, MODELS = tuple(read_packaged("civil")["identities"]), ("toxicity_1", "toxicity_6")
"""Annotators saw all identities of a comment or none, so one column says whether a row is annotated."""

LABEL, THRESHOLD = "target", 0.5
COLUMNS = (LABEL, *MODELS, *IDENTITY_NAMES)
"""The columns that the task needs."""

METRICS = ("subgroup_auc", "bpsn_auc", "bnsp_auc", "background_auc", "negative_aeg", "positive_aeg")
PAIRS = dict(zip(METRICS, CELL_PAIRS, strict=True))
"""The (low, high) cells of each metric: P(high scores above low) + P(tie) / 2, less one half for a gap."""


@dataclass(frozen=True)
class Number:
    """A metric of one (model, identity), and its DeLong variance if the candidate computes it."""

    model: str
    identity: str
    metric: str
    value: float | None
    variance: float | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Model, identity and metric."""
        return self.model, self.identity, self.metric


@dataclass(frozen=True)
class Outcome:
    """The result of a candidate."""

    numbers: list[Number] = field(default_factory=list)
    """The suite; empty for candidates that do not compute it."""
    seconds: float | None = None
    """Reported in place of the time of the process; None for that time."""
    details: dict[str, Any] = field(default_factory=dict)
    """Anything else worth keeping."""

    def write(self, path: Path) -> None:
        """Write the outcome as JSON."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def read(path: Path) -> Outcome:
        """Read the outcome that `write` wrote."""
        outcome = json.loads(path.read_text(encoding="utf-8"))
        return Outcome([Number(**number) for number in outcome["numbers"]], outcome["seconds"], outcome["details"])


@dataclass(frozen=True)
class Statistic:
    """The U statistic of two cells, in integers."""

    n_low: int
    n_high: int
    doubled: int
    """2 x the pairs in which the high row scores above the low one, plus the ties."""
    low_squares: int
    high_squares: int
    """Of either cell, the sum over its rows of the square of their share of `doubled`."""

    @property
    def auc(self) -> float | None:
        """Share of pairs in which high is above low, ties half; None if a cell is empty."""
        return self.doubled / (2 * self.n_low * self.n_high) if self.n_low and self.n_high else None

    @property
    def variance(self) -> float | None:
        """DeLong's variance; None if a cell has fewer than two rows."""
        if min(self.n_low, self.n_high) < 2:
            return None
        parts = ((self.n_low, self.n_high, self.low_squares), (self.n_high, self.n_low, self.high_squares))
        return sum((m * squares - self.doubled**2) / (4 * n * n * m * m * (m - 1)) for m, n, squares in parts)


def list_numbers(statistics: Mapping[tuple[str, str, str], Statistic]) -> list[Number]:
    keys = product(MODELS, IDENTITY_NAMES, PAIRS)
    return [Number(*key, metric_of(key[2], statistics[key].auc), statistics[key].variance) for key in keys]


def metric_of(metric: str, auc: float | None) -> float | None:
    """Return a metric from the AUC of its cells: a gap is an AUC less one half."""
    return auc - 0.5 if auc is not None and metric.endswith("_aeg") else auc


def parse_task(description: str | None) -> argparse.Namespace:
    """Read the command line of a candidate: the corpus, and the file of its outcome."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--corpus", required=True, help="a folder of Parquet files")
    parser.add_argument("--outcome", required=True, type=Path, help="the JSON file to write")
    return parser.parse_args()


def positive_int(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}. It must be a whole number above 0, in digits alone.")
    return int(text)


def quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
