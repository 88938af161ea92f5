"""What every candidate computes: the bias suite of two models over 24 identities. Standard library alone."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from biasspark.synthetic.civil_shape import IDENTITY_NAMES, MODELS

LABEL, THRESHOLD = "target", 0.5
NEEDED = (LABEL, *MODELS, *IDENTITY_NAMES)
"""The columns that anybody has to read."""

PAIRS = {
    "subgroup_auc": ("subgroup_negative", "subgroup_positive"),
    "bpsn_auc": ("subgroup_negative", "background_positive"),
    "bnsp_auc": ("background_negative", "subgroup_positive"),
    "background_auc": ("background_negative", "background_positive"),
    "negative_aeg": ("background_negative", "subgroup_negative"),
    "positive_aeg": ("background_positive", "subgroup_positive"),
}
"""The (low, high) cells of each metric: P(high scores above low) + P(tie) / 2, an AEG less one half."""


@dataclass(frozen=True)
class Number:
    """A metric of one (model, identity), and the DeLong variance where the candidate has one."""

    model: str
    identity: str
    metric: str
    value: float | None
    variance: float | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What the number is of."""
        return self.model, self.identity, self.metric


@dataclass(frozen=True)
class Outcome:
    """What a candidate found.

    Attributes
    ----------
    seconds
        What is reported in place of the time of its process; None for that time.
    details
        Whatever else is worth keeping.
    """

    numbers: list[Number] = field(default_factory=list)
    seconds: float | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def read(path: Path) -> Outcome:
        """Read what `write` wrote."""
        found = json.loads(path.read_text(encoding="utf-8"))
        return Outcome([Number(**number) for number in found["numbers"]], found["seconds"], found["details"])


@dataclass(frozen=True)
class Statistic:
    """The U statistic of two cells, whole numbers.

    Attributes
    ----------
    doubled
        2 x the pairs in which the high row scores above the low one, plus the ties.
    low_squares, high_squares
        Sum over the rows of a cell of the square of its part in `doubled`.
    """

    n_low: int
    n_high: int
    doubled: int
    low_squares: int
    high_squares: int

    @property
    def auc(self) -> float | None:
        """How often high is above low, ties half; None where a cell is empty."""
        return self.doubled / (2 * self.n_low * self.n_high) if self.n_low and self.n_high else None

    @property
    def variance(self) -> float | None:
        """DeLong's variance; None where a cell has fewer than two rows."""
        if min(self.n_low, self.n_high) < 2:
            return None
        return self._part(self.n_low, self.n_high, self.low_squares) + self._part(
            self.n_high, self.n_low, self.high_squares
        )

    def _part(self, m: int, n: int, squares: int) -> float:
        return (m * squares - self.doubled**2) / (4 * n * n * m * m * (m - 1))


def list_numbers(statistics: Mapping[tuple[str, str, str], Statistic]) -> list[Number]:
    """Turn the U statistics of every (model, identity, metric) into numbers."""
    found = []
    for key in product(MODELS, IDENTITY_NAMES, PAIRS):
        statistic = statistics[key]
        found.append(Number(*key, gap_of(key[2], statistic.auc), statistic.variance))
    return found


def gap_of(metric: str, auc: float | None) -> float | None:
    """Return an AUC as the metric has it: a gap is an AUC less one half."""
    return auc - 0.5 if auc is not None and metric.endswith("_aeg") else auc


def parse_task(description: str | None) -> argparse.Namespace:
    """Read the command line of a candidate: where the corpus is, and where its outcome goes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--corpus", required=True, help="a folder of Parquet files")
    parser.add_argument("--outcome", required=True, type=Path, help="the JSON file to write")
    return parser.parse_args()


def whole(text: str) -> int:
    """Read a number of things on a command line."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}. It must be a whole number above 0, in digits alone.")
    return int(text)


def quoted(names: Iterable[str]) -> str:
    """List columns as SQL does."""
    return ", ".join(f'"{name}"' for name in names)
