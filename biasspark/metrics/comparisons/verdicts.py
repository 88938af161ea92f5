"""Which of two models is better by a metric, and whether that is more than chance. No Spark."""

from __future__ import annotations

from collections.abc import Sequence

from biasspark.columns import BETTER, INSUFFICIENT_DATA, NO_EVIDENCE, WORSE
from biasspark.metrics.comparisons.differences import WeighedDifference
from biasspark.metrics.testing import SIGNIFICANT, adjust


def judge_differences(
    evidence: Sequence[WeighedDifference], less_is_better: Sequence[bool]
) -> list[tuple[float | None, str]]:
    """Return for what is tested together each adjusted p-value and verdict.

    P-values are adjusted by Benjamini and Hochberg; a verdict is `better` or `worse` where the adjusted one is below
    0.05 and the difference points one way, `no_evidence` elsewhere, and `insufficient_data` where there is none.
    """
    adjusted = adjust([own.p_value for own in evidence])
    return [
        (p_adjusted, _say(own, p_adjusted, less))
        for own, p_adjusted, less in zip(evidence, adjusted, less_is_better, strict=True)
    ]


def _say(evidence: WeighedDifference, p_adjusted: float | None, less_is_better: bool) -> str:
    if evidence.difference is None or p_adjusted is None:
        return INSUFFICIENT_DATA
    if p_adjusted >= SIGNIFICANT or not evidence.one_way:
        return NO_EVIDENCE
    return BETTER if (evidence.difference < 0) == less_is_better else WORSE
