"""Scores that are probably not what somebody thinks they are: what a person should look at before any metric."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark.columns import (
    ALL_ROWS,
    CROSSED,
    IDENTITY,
    MODEL,
    OVERALL,
    SLICE,
    SUBGROUP_NEGATIVE,
    SUBGROUP_POSITIVE,
)
from biasspark.metrics.statistics import ends_of

FEW_DISTINCT = 100
GIANT_TIE = 0.5

_ONE_LABEL = {"no_positives": "positive", "no_negatives": "negative"}


@dataclass(frozen=True)
class ScoreProfile:
    """The scores of one model over all rows that count.

    Attributes
    ----------
    n_rows, n_distinct, largest_tie
        Rows, distinct scores, and rows that share the most frequent score.
    lowest, highest
        None where no row counts.
    best_subgroup_auc
        The largest subgroup AUC over identities, or the most that it may be. None where none is defined.
    reason
        Why all rows together have no AUC; None where they have one.
    """

    model: str
    n_rows: int
    n_distinct: int
    largest_tie: int
    lowest: float | None = None
    highest: float | None = None
    best_subgroup_auc: float | None = None
    reason: str | None = None


def score_warnings(profiles: Iterable[ScoreProfile]) -> tuple[str, ...]:
    """Return a sentence for each peculiarity of each model's scores, with what it probably means."""
    return tuple(f"model {profile.model}: {fault}" for profile in profiles for fault in _peculiarities(profile))


def sum_up_aucs(statistics: DataFrame) -> DataFrame:
    """Return ``model, best, reason`` of all rows, crossed pairs left out.

    They are the most that a subgroup AUC may be, and why all rows together have no AUC.
    """
    within = (F.col("low_cell") == SUBGROUP_NEGATIVE) & (F.col("high_cell") == SUBGROUP_POSITIVE)
    everyone = statistics.where((F.col(SLICE) == ALL_ROWS) & ~F.col(CROSSED))
    return everyone.groupBy(MODEL).agg(
        F.max(F.when(within, F.col(f"auc{ends_of(everyone)[-1]}"))).alias("best"),
        F.max(F.when(F.col(IDENTITY) == OVERALL, F.col("reason"))).alias("reason"),
    )


def _peculiarities(profile: ScoreProfile) -> Sequence[str]:
    if profile.n_rows == 0:
        return ("no row has a usable score. Check the score column and the label; rejected_rows gives the reasons.",)
    found = []
    if profile.reason in _ONE_LABEL:
        found.append(f"no row with a score is {_ONE_LABEL[profile.reason]}, so no AUC has a value. Check [label].")
    share = profile.largest_tie / profile.n_rows
    if profile.n_distinct <= 2 and {profile.lowest, profile.highest} <= {0.0, 1.0}:
        found.append("its scores are only 0 and 1, like decisions. An AUC of decisions says little. Use the scores.")
    elif 1 < profile.n_distinct < FEW_DISTINCT < profile.n_rows:  # a single one is a tie, of which below
        found.append(f"its {profile.n_rows:,} scores have {profile.n_distinct} distinct values. Were they rounded?")
    if share >= GIANT_TIE and profile.n_rows > 1:
        found.append(
            f"{share:.0%} of its scores are one and the same value. Is that a default for what was not scored?"
        )
    if profile.best_subgroup_auc is not None and profile.best_subgroup_auc < 0.5:
        found.append("its subgroup AUC is below 0.5 for every identity. Is a higher score less likely positive?")
    return found
