"""Which of two models is better by a metric, and whether that is more than chance. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import erfc, sqrt
from typing import NamedTuple

from biasspark.attribution.significance import SIGNIFICANT, clip, interval
from biasspark.metrics.evidence import adjust

BETTER, WORSE, NO_EVIDENCE, INSUFFICIENT_DATA = "better", "worse", "no_evidence", "insufficient_data"

LEAST_ROWS = 10
"""Of either cell: with fewer rows no verdict is given."""

_ROUNDED = 1e-12
"""Values that differ by less are equal but for rounding."""

Ends = tuple[float | None, float | None]


@dataclass(frozen=True, kw_only=True)
class Paired:
    """One metric of two models on the same rows.

    Attributes
    ----------
    n_low, n_high
        Rows of its two cells.
    value, baseline_value
        Of the model and of the baseline; None where a cell is empty.
    difference_variance, sum_variance
        Of value - baseline_value, and of value + baseline_value; None where no variance can be given.
    gaps
        Of a gap the intervals of value and of baseline_value; None of an AUC.
    """

    n_low: int
    n_high: int
    value: float | None
    baseline_value: float | None
    difference_variance: float | None
    sum_variance: float | None
    gaps: tuple[Ends, Ends] | None = None


class Evidence(NamedTuple):
    """What two models' values of a metric say of their difference.

    Attributes
    ----------
    difference
        value - baseline_value; of a gap |value| - |baseline_value|. None where a value is.
    low, high
        Its interval.
    p_value
        Two-sided, that the difference is 0. As `low` and `high` None where the data are insufficient.
    one_way
        Whether the difference points the same way whatever the signs of the gaps.
    """

    difference: float | None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    one_way: bool = True


def weigh(paired: Paired, level: float) -> Evidence:
    """Return the difference of two models with its interval and p-value, both by the normal distribution.

    The difference of absolute values has a kink where a gap is 0. So of a gap each contrast s·value - t·baseline_value
    is looked at whose signs s and t both gaps' own intervals allow: the interval is that around all of theirs, and the
    p-value the largest.

    Returns
    -------
    Evidence
        Without interval and p-value where a cell has fewer than 10 rows, or where a contrast that is not 0 has
        variance 0. Where difference and variance are both 0 the p-value is 1, and the interval a point.
    """
    if paired.value is None or paired.baseline_value is None:
        return Evidence(None)
    contrasts = _list_contrasts(paired)
    is_gap = paired.gaps is not None
    difference = abs(paired.value) - abs(paired.baseline_value) if is_gap else contrasts[0][0]
    few = min(paired.n_low, paired.n_high) < LEAST_ROWS
    if few or any(_is_unknown(*contrast) for contrast in contrasts):
        return Evidence(difference)
    ends = [interval(one, variance, level) for one, variance in contrasts]
    low, high = clip(_around(ends), *((-0.5, 0.5) if is_gap else (-1.0, 1.0)))
    p_value = max(_normal_p_value(one, variance) for one, variance in contrasts)
    return Evidence(difference, low, high, p_value, one_way=len({one > 0 for one, _ in contrasts}) == 1)


def judge(evidence: Sequence[Evidence], less_is_better: Sequence[bool]) -> list[tuple[float | None, str]]:
    """Return for what is tested together each adjusted p-value and verdict.

    P-values are adjusted by Benjamini and Hochberg; a verdict is `better` or `worse` where the adjusted one is below
    0.05 and the difference points one way, `no_evidence` elsewhere, and `insufficient_data` where there is none.
    """
    adjusted = adjust([own.p_value for own in evidence])
    return [
        (p_adjusted, _say(own, p_adjusted, less))
        for own, p_adjusted, less in zip(evidence, adjusted, less_is_better, strict=True)
    ]


def _list_contrasts(paired: Paired) -> list[tuple[float, float | None]]:
    """Return every difference that may be the true one's estimate, with its variance."""
    value, baseline = paired.value or 0.0, paired.baseline_value or 0.0
    same = (value - baseline, paired.difference_variance)
    if paired.gaps is None or same == (0.0, 0.0):  # alike row by row, two gaps have the same sign
        return [same]
    variances = {1: paired.difference_variance, -1: paired.sum_variance}
    signs = product(*map(_allowed_signs, paired.gaps))
    return [(s * value - t * baseline + 0.0, variances[s * t]) for s, t in signs]  # no -0.0


def _is_unknown(difference: float, variance: float | None) -> bool:
    return variance is None or (variance == 0 and abs(difference) > _ROUNDED)


def _allowed_signs(ends: Ends) -> tuple[int, ...]:
    low, high = ends
    if low is None or high is None or low <= 0 <= high:
        return (1, -1)
    return (1,) if low > 0 else (-1,)


def _around(ends: Sequence[Ends]) -> Ends:
    lows, highs = zip(*ends, strict=True)
    return min(lows), max(highs)


def _normal_p_value(difference: float, variance: float | None) -> float:
    """Return how likely a normal variable of that variance is at least as far from 0."""
    return erfc(abs(difference) / sqrt(2 * variance)) if variance else 1.0


def _say(evidence: Evidence, p_adjusted: float | None, less_is_better: bool) -> str:
    if evidence.difference is None or p_adjusted is None:
        return INSUFFICIENT_DATA
    if p_adjusted >= SIGNIFICANT or not evidence.one_way:
        return NO_EVIDENCE
    return BETTER if (evidence.difference < 0) == less_is_better else WORSE
