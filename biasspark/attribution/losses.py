"""Losses of single rows, by segment, and how they correlate with attributions (Attributing, Tables 1 and 3).

Everything is a sum over the rows of a (model, slice, segment, label), and so one job measures it. A total attribution
is the normalised one times the opposite rows, whose number is one for all rows of a label.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Row

from biasspark.attribution.moments import read_moments, read_whole, sum_moments, sum_whole
from biasspark.attribution.significance import Moments
from biasspark.columns import LABEL, MODEL, N_OPPOSITE, ORDERED_DOUBLED, OVERALL, SCORE, SEGMENTS, SLICE
from biasspark.config.wording import show_key

CLIP = 1e-15
"""How close to 0 and 1 a probability may be: a certain and wrong prediction would cost infinitely much."""

_LOSSES = ("cross_entropy", "gini")
_VALUES = ("normalized", "cross_entropy", "gini", "normalized_cross_entropy", "normalized_gini")


@dataclass(frozen=True)
class LabelSums:
    """Sums over rows of one label.

    Attributes
    ----------
    n, n_opposite
        Rows, and rows of the other label in the slice.
    ordered_doubled
        Twice the pairs with the latter that are rightly ordered, plus ties.
    moments
        By name: of the normalised attribution, of either loss, and of the sums of the attribution and either loss.
    lowest, highest
        Of the scores.
    """

    n: int
    n_opposite: int
    ordered_doubled: int
    moments: Mapping[str, Moments]
    lowest: float
    highest: float


Losses = Mapping[tuple[str, str, str], Mapping[bool, LabelSums]]
"""By model, slice and segment, `OVERALL` for all rows, the sums of either label that is there."""


def normalized_attribution() -> Column:
    """Return a row's share of rightly ordered pairs, ties half, halved: 0 to 0.5; NULL without opposite rows."""
    return F.try_divide(F.col(ORDERED_DOUBLED).cast("double"), 4 * F.col(N_OPPOSITE))


def cross_entropy(links: Mapping[str, str]) -> Column:
    """Return -[y ln q + (1 - y) ln(1 - q)] of a row, q being the probability that is clipped to 1e-15 from 0 and 1."""
    clipped = F.greatest(F.least(_probability(links), F.lit(1 - CLIP)), F.lit(CLIP))
    return -F.when(F.col(LABEL), F.log(clipped)).otherwise(F.log(1 - clipped))


def gini(links: Mapping[str, str]) -> Column:
    """Return 1 - the probability of the true label, the Gini impurity of a row: 0 to 1."""
    inside = F.greatest(F.least(_probability(links), F.lit(1.0)), F.lit(0.0))
    return F.when(F.col(LABEL), 1 - inside).otherwise(inside)


def measure_losses(ranked: DataFrame, segments: Mapping[str, str], links: Mapping[str, str]) -> Losses:
    """Add up attributions and losses of every segment, exactly.

    Parameters
    ----------
    ranked : DataFrame
        RANKED rows with ``segments``, BIGINT: bit k is set in the k-th segment.
    segments : mapping of str to str
        Their names and predicates.
    links : mapping of str to str
        Model to what makes probabilities of its scores, where they are none.

    Notes
    -----
    One job; the driver collects a row for each (model, slice, segment, label).
    """
    names = [OVERALL, *segments]
    inside = [F.when(F.getbit(SEGMENTS, F.lit(place)) == 1, F.lit(place + 1)) for place in range(len(segments))]
    values = {
        "normalized": F.coalesce(normalized_attribution(), F.lit(0.0)),
        "cross_entropy": cross_entropy(links),
        "gini": gini(links),
    }
    rows = ranked.select(
        *(MODEL, SLICE, LABEL, SCORE, N_OPPOSITE, ORDERED_DOUBLED),
        *(value.alias(name) for name, value in values.items()),
        F.explode(F.array_compact(F.array(F.lit(0), *inside))).alias("segment"),
    )
    for loss in _LOSSES:
        rows = rows.withColumn(f"normalized_{loss}", F.col("normalized") + F.col(loss))
    sums = rows.groupBy(MODEL, SLICE, "segment", LABEL).agg(
        F.count(F.lit(1)).alias("n"),
        F.max(N_OPPOSITE).alias("n_opposite"),
        *sum_whole(F.col(ORDERED_DOUBLED), ORDERED_DOUBLED),
        F.min(SCORE).alias("lowest"),
        F.max(SCORE).alias("highest"),
        *(column for name in _VALUES for column in sum_moments(F.col(name), name)),
    )
    found: dict[tuple[str, str, str], dict[bool, LabelSums]] = {}
    for row in sums.collect():
        found.setdefault((row[MODEL], row[SLICE], names[row["segment"]]), {})[row[LABEL]] = _read(row)
    return found


def lie_within_0_and_1(losses: Losses, model: str) -> bool:
    """Say whether all scores of a model may be probabilities as they are."""
    own = [sums for (name, *_), both in losses.items() if name == model for sums in both.values()]
    return all(sums.lowest >= 0 and sums.highest <= 1 for sums in own)


def say_what_link_does(losses: Losses, model: str, link: str | None) -> str | None:
    """Say how the scores of a model become probabilities, where that is probably not what somebody wants."""
    within = lie_within_0_and_1(losses, model)
    if link is not None and within:
        return (
            f"model {model}: all its scores lie within 0 to 1, and `[attribution] link` takes them for log-odds. "
            "If they are probabilities, name the models of log-odds alone."
        )
    if link is None and not within:
        return (
            f"model {model}: some scores lie outside 0 to 1, so its cross-entropy and Gini impurity are NULL. "
            f'`[attribution] link = {{ {show_key(model)} = "logit" }}` makes probabilities of log-odds.'
        )
    return None


def list_correlations(losses: Losses, probable: Mapping[str, bool]) -> list[dict[str, Any]]:
    """Return the rows of ``attribution_correlations``: Pearson correlations of attributions with losses.

    Parameters
    ----------
    probable
        By model, whether its scores are probabilities.
    """
    return [
        {
            MODEL: model,
            SLICE: name,
            "attribution": attribution,
            "loss": loss,
            "pearson": _pearson(both, attribution == "total", loss) if probable[model] else None,
            "n_rows": sum(sums.n for sums in both.values()),
        }
        for (model, name, segment), both in sorted(losses.items())
        if segment == OVERALL
        for attribution in ("total", "normalized")
        for loss in _LOSSES
    ]


def list_losses(
    losses: Losses,
    predicates: Mapping[str, str],
    aucs: Mapping[tuple[str, str, str], float | None],
    probable: Mapping[str, bool],
) -> list[dict[str, Any]]:
    """Return the rows of ``loss_by_segment``, also of segments without rows.

    Parameters
    ----------
    predicates
        By name of the segment.
    aucs
        By model, slice and segment, `OVERALL` left out: that follows from the attributions.
    probable
        By model, whether its scores are probabilities.
    """
    return [
        _list_segment((model, name, segment), losses, predicates, aucs, probable[model])
        for model, name, whole in sorted(losses)
        if whole == OVERALL
        for segment in (OVERALL, *predicates)
    ]


def _list_segment(
    key: tuple[str, str, str],
    losses: Losses,
    predicates: Mapping[str, str],
    aucs: Mapping[tuple[str, str, str], float | None],
    probable: bool,
) -> dict[str, Any]:
    model, name, segment = key
    both = losses.get(key, {})
    overall = losses[model, name, OVERALL]
    n_rows = sum(sums.n for sums in both.values())
    defined = len(overall) == 2
    means = {value: _mean(both, value) for value in ("cross_entropy", "gini", "normalized")}
    return {
        MODEL: model,
        SLICE: name,
        "segment": segment,
        "predicate": predicates.get(segment),
        "n_rows": n_rows,
        "n_positive": both[True].n if True in both else 0,
        "cross_entropy": means["cross_entropy"] if probable else None,
        "gini_impurity": means["gini"] if probable else None,
        "auc": _auc(overall[True]) if segment == OVERALL and defined else aucs.get(key),
        "mean_normalized_attribution": means["normalized"] if defined else None,
    }


def _auc(positives: LabelSums) -> float:
    return float(Fraction(positives.ordered_doubled, 2 * positives.n * positives.n_opposite))


def _mean(both: Mapping[bool, LabelSums], name: str) -> float | None:
    n = sum(sums.n for sums in both.values())
    total = sum((Fraction(sums.moments[name].total) for sums in both.values()), Fraction())
    return float(total / n) if n else None


def _pearson(both: Mapping[bool, LabelSums], total: bool, loss: str) -> float | None:
    """Return the correlation from exact sums, with Σxy = (Σ(x + y)² - Σx² - Σy²)/2; None where either does not vary."""
    if len(both) < 2:
        return None
    n = sum(sums.n for sums in both.values())
    x = x_squares = y = y_squares = products = Fraction()
    for sums in both.values():
        weight = sums.n_opposite if total else 1
        own, other, sum_of = (sums.moments[name] for name in ("normalized", loss, f"normalized_{loss}"))
        own_squares, other_squares = Fraction(own.squares), Fraction(other.squares)
        x += weight * Fraction(own.total)
        x_squares += weight**2 * own_squares
        y += Fraction(other.total)
        y_squares += other_squares
        products += weight * (Fraction(sum_of.squares) - own_squares - other_squares) / 2
    spread = (n * x_squares - x**2) * (n * y_squares - y**2)
    return float(n * products - x * y) / sqrt(spread) if spread > 0 else None


def _probability(links: Mapping[str, str]) -> Column:
    score = F.col(SCORE)
    of_log_odds = [model for model, link in links.items() if link == "logit"]
    return F.when(F.col(MODEL).isin(of_log_odds), 1 / (1 + F.exp(-score))).otherwise(score) if links else score


def _read(row: Row) -> LabelSums:
    moments = {name: read_moments(row, name, row["n"]) for name in _VALUES}
    ordered = read_whole(row, ORDERED_DOUBLED)
    return LabelSums(row["n"], row["n_opposite"], ordered, moments, row["lowest"], row["highest"])
