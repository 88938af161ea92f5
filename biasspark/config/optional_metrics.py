"""Optional parts of a configuration. Each table turns its part on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Self

from biasspark.columns import FOUR_CELLS, OVERALL_METRIC, SUITE_AUCS, SUITE_GAPS
from biasspark.config import kinds
from biasspark.config.declaration import REQUIRED, Kind, Section, Spot, is_finite_number, setting, unknown
from biasspark.text import show_value

SUITE_METRICS = (*SUITE_AUCS, OVERALL_METRIC, *SUITE_GAPS)
MAX_TRIALS = 100_000
MAX_THRESHOLDS = 10_001
MAX_BUCKETS = 100
JACKKNIFE = "jackknife"
JACKKNIFE_GROUPS = 100


@dataclass(frozen=True, kw_only=True)
class PinnedAuc(Section):
    """Pinned AUC in closed form, and with `trials` also sampled, as it was published."""

    trials: int = setting(0, kinds.whole(0, MAX_TRIALS))
    """How often the pinned set is also drawn."""
    seed: int = setting(1, kinds.whole())
    """The seed of the draws."""
    include_subgroup_in_background: bool = setting(True, kinds.flag())
    """True draws the background from all rows, as the papers say; false from the rows outside the subgroup, as the
    authors' published code does."""


@dataclass(frozen=True, kw_only=True)
class PinnedSkew(Section):
    """An experiment that drops rows of one cell of an identity: pinned AUC changes, although the model does not."""

    identity: str = setting(REQUIRED, kinds.string(), example="gay")
    """The identity, which cannot be a crossed pair."""
    cell: str = setting(FOUR_CELLS[0], kinds.choice(*FOUR_CELLS))
    """The cell whose rows are dropped."""
    fraction: float = setting(0.5, kinds.number(0, 1))
    """The part of the cell that is dropped."""
    trials: int = setting(100, kinds.whole(1, MAX_TRIALS))
    """How often rows are dropped."""
    seed: int = setting(1, kinds.whole())
    """The seed of the choice of dropped rows."""

    def n_dropped(self, n_rows: int) -> int:
        """Return the fraction of `n_rows`, halves rounded up.

        The decimal that was written counts: 0.29 of 50 is 14.5, a little less with the double next to 0.29.
        """
        return math.floor(Fraction(repr(self.fraction)) * n_rows + Fraction(1, 2))


@dataclass(frozen=True, kw_only=True)
class Grid(Section):
    """Equally spaced thresholds, both ends included."""

    low: float = setting(0.0, kinds.number())
    """The lowest threshold."""
    high: float = setting(1.0, kinds.number())
    """The highest threshold."""
    steps: int = setting(100, kinds.whole(1, MAX_THRESHOLDS - 1))
    """The number of steps between them."""

    def check(self, written: Spot) -> None:
        """Report a grid without width."""
        if not self.low < self.high and written.sound("low", "high"):
            what = f"low = {show_value(self.low)} is not below high = {show_value(self.high)}."
            written.complain(what, "Swap them.")


@dataclass(frozen=True, kw_only=True)
class Thresholds(Section):
    """The thresholds of decisions. A score at or above a threshold is decided positive.

    After reading, ``at`` holds all of them, ascending.
    """

    at: tuple[float, ...] = setting((), kinds.list_of(kinds.number(), nonempty=True), example=[0.5, 0.8])
    """Single thresholds. Give these, a grid, or both."""
    grid: Grid | None = setting(None, kinds.table(Grid), example={"steps": 100})
    """Equally spaced thresholds, both ends included."""

    def check(self, written: Spot) -> None:
        """Report missing thresholds, and too many of them."""
        if "at" not in written and "grid" not in written:
            written["at"].complain("a threshold is required, in it or in grid.", written.write(at=[0.5]))
        if (n_thresholds := len(self._all())) > MAX_THRESHOLDS:
            what = f"there are {n_thresholds:,} thresholds. At most {MAX_THRESHOLDS:,} are allowed."
            written.complain(what, "Take a coarser grid.")

    def resolve(self) -> Self:
        """Return all thresholds as a list."""
        return replace(self, at=self._all(), grid=None)

    def _all(self) -> tuple[float, ...]:
        grid = divide(self.grid.low, self.grid.high, self.grid.steps) if self.grid else ()
        return tuple(sorted({*(threshold + 0.0 for threshold in self.at), *grid}))


@dataclass(frozen=True, kw_only=True)
class Histograms(Section):
    """Histograms of the scores of each model, in bins of equal width."""

    bins: int = setting(100, kinds.whole(1, 10_000))
    """The number of bins; fewer where scores hardly differ."""


def _read_buckets(spot: Spot) -> Any:
    edges = spot.value if isinstance(spot.value, list | tuple) else ()
    whole_edges = all(is_finite_number(edge) and edge == int(edge) and 0 <= edge < 2**31 for edge in edges)
    if whole_edges and 1 < len(edges) <= MAX_BUCKETS and all(low < high for low, high in pairwise(edges)):
        return tuple(map(int, edges))
    return spot.refuse(
        f"It must be a list of 2 to {MAX_BUCKETS} whole numbers from 0 to 2,147,483,647, in ascending order."
    )


@dataclass(frozen=True, kw_only=True)
class LabelBalance(Section):
    """Label balance, by text length where `text` or `length` is given. Without `[models]` nothing else is measured."""

    text: str | None = setting(None, kinds.string())
    """The column of the text, whose length counts."""
    length: str | None = setting(None, kinds.string())
    """The column of the length. Give this or `text`."""
    buckets: tuple[int, ...] = setting(
        (20, 60, 180, 540, 1620, 4860), Kind("list of whole numbers", _read_buckets), example=[20, 60, 180]
    )
    """The edges of the buckets, ascending: each begins a bucket, except the last, which ends one."""

    def check(self, written: Spot) -> None:
        """Report lengths from two columns, and buckets without lengths."""
        if "text" in written and "length" in written:
            written.complain("text and length are both given. A length comes from one of them.", "Remove one.")
        if self.buckets != LabelBalance.buckets and "text" not in written and "length" not in written:
            fix = written.write(text="comment_text")
            written["buckets"].refuse("They are buckets of lengths, and neither text nor length is given.", fix)


@dataclass(frozen=True, kw_only=True)
class Templates(Section):
    """The mean score of each template and identity."""

    column: str = setting(REQUIRED, kinds.string(), example="template")
    """The column of the template from which the text of a row was made."""


@dataclass(frozen=True, kw_only=True)
class MinimumCellRows(Section):
    """The fewest rows that both cells of a metric need for it to have a value."""

    min_rows: int = setting(0, kinds.whole())
    """For every suite metric, and for `auc`."""
    metrics: dict[str, int] = setting({}, kinds.named("a metric", kinds.whole()))
    """For single metrics, in place of `min_rows`."""

    def check(self, written: Spot) -> None:
        """Report metrics that are not in the suite."""
        for name in [name for name in self.metrics if name not in SUITE_METRICS]:
            written["metrics"][name].refuse(*unknown("metric", name, SUITE_METRICS))

    def resolve(self) -> Self:
        """Return the settings with the metrics in the order of the suite."""
        return replace(self, metrics={name: self.metrics[name] for name in SUITE_METRICS if name in self.metrics})

    def rows_needed(self, metric: str) -> int:
        """Return the fewest rows that a cell of this metric needs."""
        return self.metrics.get(metric, self.min_rows)


@dataclass(frozen=True, kw_only=True)
class Privacy(Section):
    """Small-cell suppression: the numbers of smaller groups are not published."""

    min_group_rows: int = setting(10, kinds.whole(1))
    """The fewest rows of a group whose numbers are published."""


@dataclass(frozen=True, kw_only=True)
class Compare(Section):
    """Which models are compared with a baseline."""

    baseline: str = setting(REQUIRED, kinds.string(), example="old")
    """The model to compare with: its values are subtracted."""
    models: tuple[str, ...] = setting(
        (),
        kinds.list_of(nonempty=True),
        default_text="all but the baseline",
        fix="Leave it out to compare all with the baseline.",
    )
    """Models to compare with the baseline, each on the rows that both score; by default all others."""
    method: str = setting("delong", kinds.choice("delong", JACKKNIFE))
    """How variances are estimated: `delong`, from the placements of rows, or `jackknife`, by leaving out each group of
    rows in turn."""
    groups: int | None = setting(
        None, kinds.whole(10, 1000), default_text=f"{JACKKNIFE_GROUPS} with the jackknife", example=JACKKNIFE_GROUPS
    )
    """The number of groups of the jackknife, into which rows are divided by a hash. `delong` has none."""
    cluster: str | None = setting(None, kinds.string(), example="author")
    """A column, such as the author. The jackknife keeps rows with equal values in one group; rows with NULL or NaN are
    independent. Leave it out if all rows are independent."""

    def compared(self, models: Sequence[str]) -> tuple[str, ...]:
        """Return the models to compare with the baseline, given all models."""
        return self.models or tuple(name for name in models if name != self.baseline)

    def check(self, written: Spot) -> None:
        """Report keys that the method does not use."""
        for key in ("groups", "cluster"):
            if key in written and self.method != JACKKNIFE and written.sound("method", key):
                written[key].refuse("Only the jackknife uses it.", 'Set method = "jackknife", or leave it out.')

    def resolve(self) -> Self:
        """Return the settings with the number of groups of the jackknife."""
        return replace(self, groups=(self.groups or JACKKNIFE_GROUPS) if self.method == JACKKNIFE else None)

    def check_models(self, written: Spot, models: Sequence[str]) -> None:
        """Report models that do not exist."""
        candidates = [name for name in models if name != self.baseline]
        if self.baseline and self.baseline not in models:
            written["baseline"].refuse(*unknown("model", self.baseline, models, "Name one of them."))
        if "models" not in written and not candidates:
            written["baseline"].complain("there is no other model to compare with it.", "Add another model.")
        for name in [name for name in dict.fromkeys(self.models) if name not in candidates]:
            written.refuse_entry("models", name, *unknown("other model", name, candidates))


def divide(low: float, high: float, parts: int) -> tuple[float, ...]:
    """Return the ascending ends of equal parts of an interval: low + k (high - low) / parts.

    It is computed with the decimals that `low` and `high` are written with, and rounded once: from 0.1 to 0.7 in six
    parts, 0.6 is an end. There are fewer parts if there are fewer doubles between `low` and `high`, and one if both are
    equal.
    """
    first, last = (Fraction(repr(float(end))) for end in (low, high))
    inside = {float(first + (last - first) * part / parts) for part in range(1, parts)} - {low, high}
    return (low, *sorted(inside), high)
