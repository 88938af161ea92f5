"""Losses of single rows, by segment, and how they correlate with attributions (Attributing, Tables 1 and 3).

Everything is a sum over the rows of a (model, slice, segment, label), and so one job measures it. A total attribution
is the normalised one times the number of opposite rows, which is the same for all rows of a label.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import inf, isqrt, sqrt
from typing import Any, NamedTuple

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Row

from biasspark.attribution.influence import CellPair, RankedSegment, influence_variance
from biasspark.attribution.moments import read_moments, read_whole, sum_moments, sum_whole
from biasspark.attribution.significance import NO_ROWS, Moments
from biasspark.attribution.subgroups import Pairs, read_cells
from biasspark.columns import LABEL, MODEL, N_OPPOSITE, ORDERED_DOUBLED, OVERALL, SCORE, SEGMENTS, SLICE
from biasspark.corpus.decode import each_present
from biasspark.errors import InputError
from biasspark.metrics.multiple_testing import clip, interval
from biasspark.text import show_key

CLIP = 1e-15
"""How close to 0 and 1 a probability may be: a certain and wrong prediction would cost infinitely much."""

MOST_OPPOSITE = isqrt(2**63 - 1) // 2
"""Beyond so many rows of a label the square of a doubled placement passes a BIGINT."""

_LOSSES = ("cross_entropy", "gini")
_SQUARES = "ordered_square"
_VALUES = ("normalized", "cross_entropy", "gini", "normalized_cross_entropy", "normalized_gini")


@dataclass(frozen=True)
class LabelSums:
    """Sums over rows of one label.

    Attributes
    ----------
    n, n_opposite
        Rows, and rows of the other label in the slice.
    ordered_doubled, ordered_square_sum
        Twice the pairs with the latter that are rightly ordered, plus ties; and the sum of the squares of each row's.
    moments
        By name: of the normalised attribution, of either loss, and of the sums of the attribution and either loss.
    lowest, highest
        Of the scores.
    """

    n: int
    n_opposite: int
    ordered_doubled: int
    ordered_square_sum: int
    moments: Mapping[str, Moments]
    lowest: float
    highest: float


Losses = Mapping[tuple[str, str, str], Mapping[bool, LabelSums]]
"""By model, slice and segment, `OVERALL` for all rows, the sums of either label that is there."""


def normalized_attribution() -> Column:
    """Return a row's share of rightly ordered pairs, ties half, halved: 0 to 0.5; NULL without opposite rows."""
    return F.col(ORDERED_DOUBLED).cast("double") / F.nullif(4 * F.col(N_OPPOSITE), F.lit(0))


def cross_entropy(links: Mapping[str, str]) -> Column:
    """Return -[y ln q + (1 - y) ln(1 - q)] of a row, q being its probability, kept 1e-15 away from 0 and 1."""
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

    Raises
    ------
    InputError
        If one label has more than `MOST_OPPOSITE` rows. Whatever squares placements or differences of them comes after
        this.

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
        *(MODEL, SLICE, LABEL, SCORE, N_OPPOSITE, ORDERED_DOUBLED, *([SEGMENTS] if segments else [])),
        *(value.alias(name) for name, value in values.items()),
    )
    rows = each_present(rows, "segment", [F.lit(0), *inside])
    for loss in _LOSSES:
        rows = rows.withColumn(f"normalized_{loss}", F.col("normalized") + F.col(loss))
    square = F.col(ORDERED_DOUBLED) * F.col(ORDERED_DOUBLED)
    sums = rows.groupBy(MODEL, SLICE, "segment", LABEL).agg(
        F.count(F.lit(1)).alias("n"),
        F.max(N_OPPOSITE).alias("n_opposite"),
        *sum_whole(F.col(ORDERED_DOUBLED), ORDERED_DOUBLED),
        *sum_whole(F.when(F.col(N_OPPOSITE) <= MOST_OPPOSITE, square), _SQUARES),  # no other fits into a BIGINT
        F.min(SCORE).alias("lowest"),
        F.max(SCORE).alias("highest"),
        *(column for name in _VALUES for column in sum_moments(F.col(name), name)),
    )
    found: dict[tuple[str, str, str], dict[bool, LabelSums]] = {}
    for row in sums.collect():
        _refuse_too_many(row)
        found.setdefault((row[MODEL], row[SLICE], names[row["segment"]]), {})[row[LABEL]] = _read(row)
    return found


def _refuse_too_many(row: Row) -> None:
    """Stop where squares of placements would be wrong."""
    if (row["n_opposite"] or 0) > MOST_OPPOSITE:
        raise InputError(
            f"corpus: {row[MODEL]}, {row[SLICE]}: more than {MOST_OPPOSITE:,} rows of one label. Attributions are "
            "summed up with the squares of placements among them, which pass the integers that hold them. Attribute a "
            "sample of the rows, by a `filter`."
        )


def lie_within_0_and_1(losses: Losses, model: str) -> bool:
    """Say whether all scores of a model may be probabilities as they are."""
    own = [sums for (name, *_), both in losses.items() if name == model for sums in both.values()]
    return all(sums.lowest >= 0 and sums.highest <= 1 for sums in own)


def say_what_link_does(losses: Losses, model: str, link: str | None) -> str | None:
    """Say how the scores of a model become probabilities, where that is probably not what is wanted."""
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
    named: Mapping[tuple[str, str, str], Pairs],
    probable: Mapping[str, bool],
    level: float,
) -> list[dict[str, Any]]:
    """Return the rows of ``loss_by_segment``, also of segments without rows; the AUC has none yet.

    Parameters
    ----------
    predicates
        By name of the segment.
    named
        By model, slice and segment what ranking it as an identity says; without `OVERALL`, which follows from the
        attributions.
    probable
        By model, whether its scores are probabilities.
    level
        Of the intervals.
    """
    return [
        _list_segment(_gather((model, name, segment), losses, named), predicates, probable[model], level)
        for model, name, whole in sorted(losses)
        if whole == OVERALL
        for segment in (OVERALL, *predicates)
    ]


class _Gathered(NamedTuple):
    """What is known of one segment: its key, its sums by label, those of the slice, and how its cells are ordered."""

    key: tuple[str, str, str]
    both: Mapping[bool, LabelSums]
    overall: Mapping[bool, LabelSums]
    ranked: RankedSegment | None


def _gather(key: tuple[str, str, str], losses: Losses, named: Mapping[tuple[str, str, str], Pairs]) -> _Gathered:
    model, name, segment = key
    both, overall = losses.get(key, {}), losses[model, name, OVERALL]
    return _Gathered(key, both, overall, _rank_all(overall) if segment == OVERALL else _rank(both, named.get(key)))


def _rank(both: Mapping[bool, LabelSums], pairs: Pairs | None) -> RankedSegment | None:
    if pairs is None:
        return None
    negatives, positives = (both[label].ordered_square_sum if label in both else 0 for label in (False, True))
    return RankedSegment(*read_cells(pairs), negatives, positives)


def _rank_all(both: Mapping[bool, LabelSums]) -> RankedSegment | None:
    """Return the segment of all rows: there are no others."""
    if len(both) < 2:
        return None
    low, high = both[False], both[True]
    pair = CellPair(low.n, high.n, high.ordered_doubled, low.ordered_square_sum, high.ordered_square_sum)
    nobody = (CellPair(low.n, 0, 0, 0, 0), CellPair(0, high.n, 0, 0, 0))
    return RankedSegment(pair, *nobody, low.ordered_square_sum, high.ordered_square_sum)


def _list_segment(found: _Gathered, predicates: Mapping[str, str], probable: bool, level: float) -> dict[str, Any]:
    (model, name, segment), both, overall, ranked = found
    defined = len(overall) == 2
    means = {value: _mean(both, value) for value in ("cross_entropy", "gini", "normalized")}
    cross_entropy, gini = (
        (means[loss], _variance_of_mean(both, loss)) if probable else (None, None) for loss in _LOSSES
    )
    attribution = (means["normalized"], influence_variance(ranked) if ranked else None) if defined else (None, None)
    within = ranked.subgroup if ranked else None
    return {
        MODEL: model,
        SLICE: name,
        "segment": segment,
        "predicate": predicates.get(segment),
        "n_rows": sum(sums.n for sums in both.values()),
        "n_positive": both[True].n if True in both else 0,
        **_with_ends("cross_entropy", cross_entropy, (0.0, inf), level),
        **_with_ends("gini_impurity", gini, (0.0, 1.0), level),
        "auc": within and within.auc,
        "auc_low": None,
        "auc_high": None,
        "auc_variance": within and within.auc_variance,
        "auc_method": None,
        **_with_ends("mean_normalized_attribution", attribution, (0.0, 0.5), level),
    }


def _with_ends(
    name: str, found: tuple[float | None, float | None], extent: tuple[float, float], level: float
) -> dict[str, float | None]:
    """Return a mean with its interval, from its variance."""
    low, high = clip(interval(*found, level), *extent)
    return {name: found[0], f"{name}_low": low, f"{name}_high": high}


def _variance_of_mean(both: Mapping[bool, LabelSums], name: str) -> float | None:
    moments = reduce(Moments.__add__, (sums.moments[name] for sums in both.values()), NO_ROWS)
    return None if moments.variance is None else moments.variance / moments.n


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
    squares = read_whole(row, _SQUARES)
    return LabelSums(row["n"], row["n_opposite"], ordered, squares, moments, row["lowest"], row["highest"])
