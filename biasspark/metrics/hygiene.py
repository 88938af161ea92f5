"""Scores and identities that are probably not what somebody thinks they are: what to look at before any metric."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
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
)
from biasspark.config import list_first, show_value
from biasspark.expressions.sql import write_name
from biasspark.metrics.statistics import ends_of
from biasspark.metrics.suite import BY_NAME

FEW_DISTINCT = 100
GIANT_TIE = 0.5
MOST_NAMED = 10
MANY_REJECTED = 0.01
FEW_ROWS = 30

_LABEL_OF_NONE = {"no_positives": "positive", "no_negatives": "negative"}


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
    """Return a sentence for each peculiarity of each model's scores, with what it probably means.

    Notes
    -----
    Of fewer than `FEW_ROWS` scores nothing is said but that there are none, or none of one label: of two one is half,
    and what looks peculiar is chance or an example that somebody wrote by hand.
    """
    return tuple(f"model {profile.model}: {fault}" for profile in profiles for fault in _peculiarities(profile))


def reject_warnings(who: str, what: str, n_all: int, rejects: Mapping[str, int]) -> tuple[str, ...]:
    """Return a sentence for each reason that is given to more than `MANY_REJECTED` of some rows or scores.

    Of fewer than `FEW_ROWS` nothing is said, as of their scores.
    """
    return tuple(
        f"{who}: {count / n_all:.0%} of its {n_all:,} {what} are counted as {reason}. Is that meant?"
        for reason, count in rejects.items()
        if n_all >= FEW_ROWS and count > MANY_REJECTED * n_all
    )


def label_warnings(counts: Mapping[str, tuple[int, int]]) -> tuple[str, ...]:
    """Return a sentence on each model whose rows all have one label, given its rows and the positives among them."""
    return tuple(
        f"model {model}: {_say_no_row('negative' if n_positive else 'positive')}"
        for model, (n_rows, n_positive) in counts.items()
        if n_rows and n_positive in (0, n_rows)
    )


def annotation_warnings(unreadable: Mapping[str, int]) -> tuple[str, ...]:
    """Return a sentence on the annotations that are neither numbers nor booleans, given how many by column."""
    if not unreadable:
        return ()
    counts = [f"{count:,} of '{name}'" for name, count in unreadable.items()]
    return (
        "identities: values that are neither numbers nor booleans count as missing: "
        f"{list_first(counts, MOST_NAMED)}. If each value is an identity, name the column in `categorical`; if one is, "
        f"write a predicate such as {write_name(next(iter(unreadable)))} = 'yes'.",
    )


def identity_warnings(
    identities: Sequence[str], no_subgroup: Collection[str], no_background: Collection[str]
) -> tuple[str, ...]:
    """Return a sentence on the identities that lack a subgroup, a background, or both: their metrics have no value.

    Parameters
    ----------
    identities
        All of them, in order.
    no_subgroup
        Those in which no row is.
    no_background
        Those that no row is outside of.
    """
    unknown = [name for name in identities if name in no_subgroup and name in no_background]
    absent = [name for name in identities if name in no_subgroup and name not in no_background]
    everywhere = [name for name in identities if name in no_background and name not in no_subgroup]
    peculiarities = (
        (unknown, "is", "are", "unknown in every usable row", "Is a column empty, or the wrong one named?"),
        (
            absent,
            *("has", "have", "no usable row"),
            "Is a name, a term or a predicate misspelt, or the threshold too high?",
        ),
        (
            everywhere,
            *("has", "have", "no background, since no usable row is outside"),
            'Only Subgroup AUC has a value. Where NULL means "not mentioned", set `unannotated = "background"`.',
        ),
    )
    return tuple(
        f"identities: {len(names):,} of {len(identities):,} identities {one if len(names) == 1 else many} {what}: "
        f"{_name(names)}. {mend}"
        for names, one, many, what, mend in peculiarities
        if names
    )


def slice_warnings(slices: Sequence[str], no_rows: Collection[str]) -> tuple[str, ...]:
    """Return a sentence on the slices that no usable row is in.

    Parameters
    ----------
    slices
        All of them, in order, that of all rows among them or not.
    no_rows
        Those in which no row is.
    """
    slices = [name for name in slices if name != ALL_ROWS]
    empty = [name for name in slices if name in no_rows]
    if not empty:
        return ()
    return (
        f"slices: {len(empty):,} of {len(slices):,} slices {'has' if len(empty) == 1 else 'have'} no usable row: "
        f"{_name(empty)}. Is a predicate misspelt?",
    )


def threshold_warnings(profiles: Iterable[ScoreProfile], thresholds: Sequence[float]) -> tuple[str, ...]:
    """Return a sentence on each model whose scores are all on one side of all thresholds, which decide nothing then.

    Of fewer than `FEW_ROWS` scores nothing is said.
    """
    return tuple(
        f"model {profile.model}: all its scores are {side}, so all rows are decided alike. "
        "Are thresholds and scores on the same scale?"
        for profile in profiles
        if profile.n_rows >= FEW_ROWS and (side := _find_side(profile, thresholds))
    )


def side_warnings(identities: Sequence[str], sides: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Return the warnings of `identity_warnings`, given the usable rows in each identity and outside of it."""
    counted = list(zip(identities, sides, strict=True))
    no_subgroup = [name for name, (inside, _) in counted if not inside]
    no_background = [name for name, (_, outside) in counted if not outside]
    return identity_warnings(identities, no_subgroup, no_background)


def sum_up_aucs(statistics: DataFrame) -> DataFrame:
    """Return ``model, best, reason, no_subgroup, no_background, no_rows``, crossed pairs left out.

    They are of all rows the most that a subgroup AUC may be, why all rows together have no AUC, and the identities
    without either; and the slices without a row.
    """
    within, outside = BY_NAME["subgroup_auc"].is_of_row, BY_NAME["background_auc"].is_of_row
    has_none = F.col("n_low") + F.col("n_high") == 0
    everyone, overall = F.col(SLICE) == ALL_ROWS, F.col(IDENTITY) == OVERALL
    return (
        statistics.where((everyone | overall) & ~F.col(CROSSED))
        .groupBy(MODEL)
        .agg(
            F.max(F.when(everyone & within, F.col(f"auc{ends_of(statistics)[-1]}"))).alias("best"),
            F.max(F.when(everyone & overall, F.col("reason"))).alias("reason"),
            F.collect_set(F.when(everyone & within & has_none, F.col(IDENTITY))).alias("no_subgroup"),
            F.collect_set(F.when(everyone & outside & has_none, F.col(IDENTITY))).alias("no_background"),
            F.collect_set(F.when(overall & has_none, F.col(SLICE))).alias("no_rows"),
        )
    )


def _name(names: Sequence[str]) -> str:
    return list_first([show_value(name) for name in names], MOST_NAMED)


def _find_side(profile: ScoreProfile, thresholds: Sequence[float]) -> str | None:
    """Say on which side of all thresholds the scores are; None where they are on either, or there are no thresholds."""
    if not thresholds or profile.lowest is None or profile.highest is None:
        return None
    least, greatest = min(thresholds), max(thresholds)
    if profile.highest < least:
        return f"below the least threshold, {least:g}"
    return f"above the greatest threshold, {greatest:g}" if profile.lowest > greatest else None


def _say_no_row(label: str) -> str:
    return f"no row with a score is {label}, so no AUC has a value. Check [label]."


def _peculiarities(profile: ScoreProfile) -> Sequence[str]:
    if profile.n_rows == 0:
        return ("no row has a usable score. Check the score column and the label; rejected_rows gives the reasons.",)
    found = []
    if profile.reason in _LABEL_OF_NONE:
        found.append(_say_no_row(_LABEL_OF_NONE[profile.reason]))
    if profile.n_rows < FEW_ROWS:
        return found
    share = profile.largest_tie / profile.n_rows
    if profile.n_distinct <= 2 and {profile.lowest, profile.highest} <= {0.0, 1.0}:
        found.append("its scores are only 0 and 1, like decisions. An AUC of decisions says little. Use the scores.")
    elif 1 < profile.n_distinct < FEW_DISTINCT < profile.n_rows:  # a single one is a tie, of which below
        found.append(
            f"its {profile.n_rows:,} scores have only {profile.n_distinct} distinct values. Were they rounded?"
        )
    if share >= GIANT_TIE:
        found.append(f"{share:.0%} of its scores are the same value. Is that a default for rows that were not scored?")
    if profile.best_subgroup_auc is not None and profile.best_subgroup_auc < 0.5:
        found.append("its subgroup AUC is below 0.5 for every identity. Does a higher score mean less likely positive?")
    return found
