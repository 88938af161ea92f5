"""The parts of a configuration that are measured only where it has them: each a table that turns its part on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

from biasspark.columns import FOUR_CELLS
from biasspark.config.attribution import read_attribution
from biasspark.config.compare import read_compare
from biasspark.config.faults import Faults
from biasspark.config.gate import SUITE_METRICS
from biasspark.config.identities import Identities, say_unknown_identity
from biasspark.config.section import Section, keys_of
from biasspark.config.wording import show_value

FURTHER = (
    *("pinned_auc", "thresholds", "histograms", "label_balance", "templates", "pinned_skew", "attribution"),
    *("compare", "evidence", "privacy"),
)
MOST_TRIALS = 100_000
MOST_THRESHOLDS = 10_001
MOST_BINS = 10_000
MOST_BUCKETS = 100
LONGEST = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class PinnedAuc:
    """Pinned AUC: always by its closed form, and with ``trials`` also sampled, as it was published.

    ``seed`` fixes the draws. ``include_subgroup_in_background`` draws the background from all rows, as the papers say;
    false draws it from the rows outside the subgroup, as the authors' published code does.
    """

    trials: int = 0
    seed: int = 1
    include_subgroup_in_background: bool = True


@dataclass(frozen=True, kw_only=True)
class PinnedSkew:
    """How pinned AUC moves though the model does not: a ``fraction`` of one ``cell`` of an ``identity`` is dropped.

    Rows are dropped at random, ``trials`` times; ``seed`` fixes which. The identity cannot be a crossed pair.
    """

    identity: str
    cell: str = FOUR_CELLS[0]
    fraction: float = 0.5
    trials: int = 100
    seed: int = 1

    def n_dropped(self, n_rows: int) -> int:
        """Return the fraction of so many rows, halves rounded up, of the decimal that was written.

        0.29 of 50 is 14.5, of the binary number next to 0.29 a little less.
        """
        return math.floor(Fraction(repr(self.fraction)) * n_rows + Fraction(1, 2))


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """The thresholds ``at`` which rows are decided, ascending; a score equal to one is decided positive."""

    at: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Histograms:
    """The number of equal ``bins`` in which the scores of a model are counted; fewer where scores hardly differ."""

    bins: int = 100


@dataclass(frozen=True, kw_only=True)
class LabelBalance:
    """Label balance by text length: the length of column ``text``, or the number in column ``length``.

    With neither, no balance by length is computed. ``buckets`` are the cuts between lengths, ascending: each begins a
    bucket, and the last one ends the bucket before it.
    """

    text: str | None = None
    length: str | None = None
    buckets: tuple[int, ...] = (20, 60, 180, 540, 1620, 4860)


@dataclass(frozen=True, kw_only=True)
class Templates:
    """The ``column`` that holds the template from which a row's text was made."""

    column: str


@dataclass(frozen=True, kw_only=True)
class EvidenceSettings:
    """The fewest rows that each of the two cells of a metric must have for the metric to have a value.

    ``min_rows`` applies to every suite metric and to ``auc``; ``metrics`` overrides it for single metrics.
    """

    min_rows: int = 0
    metrics: dict[str, int] = field(default_factory=dict)

    def least_rows(self, metric: str) -> int:
        """Return what a cell of this metric needs."""
        return self.metrics.get(metric, self.min_rows)


@dataclass(frozen=True, kw_only=True)
class Privacy:
    """The fewest rows of a group whose numbers are published; those of smaller groups are withheld."""

    min_group_rows: int = 10


def read_further(table: Mapping[str, Any], measures: Mapping[str, Any], faults: Faults) -> dict[str, Any]:
    """Read the parts that the configuration has; None for the others. ``measures`` are the parts that all have."""
    readers: tuple[Callable[..., Any], ...] = (
        _read_pinned_auc,
        _read_thresholds,
        _read_histograms,
        _read_label_balance,
        _read_templates,
        _read_pinned_skew,
        partial(read_attribution, models=measures["models"]),
        partial(read_compare, models=measures["models"]),
        _read_evidence,
        _read_privacy,
    )
    given = {name: table.get(name) for name in FURTHER}
    further: dict[str, Any] = {
        name: None if given[name] is None else read(value=given[name], faults=faults)
        for name, read in zip(FURTHER, readers, strict=True)
    }
    engine = measures["ranking"].engine
    _check_trials(further["pinned_auc"], engine, faults)
    _check_identity(further["pinned_skew"], measures["identities"], faults)
    _refuse_together(further, engine, faults)
    return further


def _refuse_together(further: Mapping[str, Any], engine: str, faults: Faults) -> None:
    """Note the parts that do not go with the engine or with each other."""
    if engine == "binned":
        for name in ("pinned_skew", "attribution", "compare"):
            if further[name]:
                faults.note(
                    name,
                    f'[{name}]: the engine is "binned", and bins hold no single rows. Set [ranking] engine = '
                    f'"blocks", or keep [{name}] in a configuration of its own.',
                )
    if further["privacy"] and further["attribution"]:
        faults.note(
            "privacy",
            "[privacy] and [attribution] are both given. Attribution publishes numbers of single rows and of whatever "
            "segments it finds, and withholds none. Keep it in a configuration of its own.",
        )
    if further["privacy"] and further["compare"]:
        faults.note(
            "privacy",
            "[privacy] and [compare] are both given. A comparison publishes numbers of every identity, and withholds "
            "none. Keep it in a configuration of its own.",
        )


def _check_trials(pinned: PinnedAuc | None, engine: str, faults: Faults) -> None:
    """Refuse to sample where nothing is sorted."""
    if pinned and pinned.trials and engine != "blocks":
        alone = "exact value" if engine == "windows" else "value in the limit"
        faults.note(
            "pinned_auc",
            f'[pinned_auc] trials = {pinned.trials}: the engine is "{engine}". Trials are drawn from sorted '
            f'blocks. Remove the line to have the {alone} alone, or set [ranking] engine = "blocks".',
        )


def _check_identity(skew: PinnedSkew | None, identities: Identities, faults: Faults) -> None:
    """Refuse an identity that nothing in ``[identities]`` can give; faults there may be why, and are mended first."""
    if not (skew and skew.identity) or faults.lie_in("identities"):
        return
    if not identities.can_give(skew.identity):
        faults.note("pinned_skew", say_unknown_identity("[pinned_skew]", skew.identity, identities.shown_names))


def _read_pinned_auc(value: object, faults: Faults) -> PinnedAuc:
    section = Section("[pinned_auc]", value, keys_of(PinnedAuc), faults)
    return PinnedAuc(
        trials=section.whole("trials", PinnedAuc.trials, MOST_TRIALS),
        seed=section.whole("seed", PinnedAuc.seed),
        include_subgroup_in_background=section.flag(
            "include_subgroup_in_background", PinnedAuc.include_subgroup_in_background
        ),
    )


def _read_thresholds(value: object, faults: Faults) -> Thresholds:
    section = Section("[thresholds]", value, ("at", "grid"), faults)
    named, grid = section.numbers("at"), _read_grid(section.table.get("grid"), faults)
    if section.usable and not {"at", "grid"} & set(section.table):
        section.complain("", "neither at nor grid is given. A threshold is required. Write, for example, at = [0.5].")
    elif isinstance(given := section.table.get("at"), list | tuple) and not given:
        section.refuse("at", "At least one threshold is required.", "Write, for example, at = [0.5].")
    section.refuse_repeated("at", named, "Thresholds must differ. Remove one.")
    at = tuple(sorted({*named, *grid}))
    if len(at) > MOST_THRESHOLDS:
        section.complain("", f"{len(at):,} thresholds. At most {MOST_THRESHOLDS:,} are allowed. Take a coarser grid.")
    return Thresholds(at=at)


def _read_grid(value: object, faults: Faults) -> tuple[float, ...]:
    """Read a grid of thresholds, both ends among them: low + (high - low)·k / steps."""
    if value is None:
        return ()
    section = Section("[thresholds.grid]", value, ("low", "high", "steps"), faults)
    low, high = section.number("low", 0.0), section.number("high", 1.0)
    steps = section.whole("steps", 100, MOST_THRESHOLDS - 1, least=1)
    if not low < high:
        section.complain("", f"low = {show_value(low)} is not below high = {show_value(high)}. Swap them.")
    return divide(low, high, steps)


def divide(low: float, high: float, parts: int) -> tuple[float, ...]:
    """Return the ends of equal parts of an interval, both of its own exactly, and of [0, 1] the numbers k / parts.

    They ascend. Where there are fewer numbers between ``low`` and ``high`` there are fewer parts, and one if both are
    one number.
    """
    rounded = (low * (1 - part / parts) + high * (part / parts) for part in range(1, parts))
    inside = {end for end in rounded if low < end < high}
    return (low, *sorted(inside), high)


def _read_histograms(value: object, faults: Faults) -> Histograms:
    section = Section("[histograms]", value, keys_of(Histograms), faults)
    return Histograms(bins=section.whole("bins", Histograms.bins, MOST_BINS, least=1))


def _read_label_balance(value: object, faults: Faults) -> LabelBalance:
    section = Section("[label_balance]", value, keys_of(LabelBalance), faults)
    if "text" in section.table and "length" in section.table:
        section.complain("", "text and length are both given. A length comes from one of them. Remove one.")
    if "buckets" in section.table and not {"text", "length"} & set(section.table):
        section.refuse("buckets", "Without text or length nothing is put into them.", 'Add text = "comment_text".')
    return LabelBalance(
        text=section.optional_text("text"), length=section.optional_text("length"), buckets=_read_buckets(section)
    )


def _read_buckets(section: Section) -> tuple[int, ...]:
    edges = section.numbers("buckets") if "buckets" in section.table else LabelBalance.buckets
    whole = all(edge == int(edge) and 0 <= edge <= LONGEST for edge in edges)
    if not (whole and 1 < len(edges) <= MOST_BUCKETS and all(low < high for low, high in pairwise(edges))):
        section.refuse(
            "buckets",
            f"It must be a list of 2 to {MOST_BUCKETS:,} whole numbers, not negative and ascending.",
            "Write, for example, buckets = [20, 60, 180].",
        )
        return LabelBalance.buckets
    return tuple(map(int, edges))


def _read_pinned_skew(value: object, faults: Faults) -> PinnedSkew:
    section = Section("[pinned_skew]", value, keys_of(PinnedSkew), faults, 'identity = "gay"')
    return PinnedSkew(
        identity=section.text("identity", "gay"),
        cell=section.choice("cell", FOUR_CELLS),
        fraction=section.fraction("fraction", PinnedSkew.fraction),
        trials=section.whole("trials", PinnedSkew.trials, MOST_TRIALS, least=1),
        seed=section.whole("seed", PinnedSkew.seed),
    )


def _read_templates(value: object, faults: Faults) -> Templates:
    section = Section("[templates]", value, keys_of(Templates), faults, 'column = "template"')
    return Templates(column=section.text("column", "template"))


def _read_evidence(value: object, faults: Faults) -> EvidenceSettings:
    section = Section("[evidence]", value, keys_of(EvidenceSettings), faults)
    own = Section("[evidence.metrics]", section.table.get("metrics"), SUITE_METRICS, faults)
    return EvidenceSettings(
        min_rows=section.whole("min_rows", EvidenceSettings.min_rows),
        metrics={
            metric: own.whole(metric, EvidenceSettings.min_rows) for metric in SUITE_METRICS if metric in own.table
        },
    )


def _read_privacy(value: object, faults: Faults) -> Privacy:
    section = Section("[privacy]", value, keys_of(Privacy), faults)
    return Privacy(min_group_rows=section.whole("min_group_rows", Privacy.min_group_rows, least=1))
