"""The table ``model_comparisons``: sums over rows that two models placed -> AUCs of both, differences, verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pandas as pd
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.attribution.paired import PairedAucs, PlacedTwice, pair_by_delong, pair_by_jackknife
from biasspark.attribution.verdicts import Paired, judge, weigh
from biasspark.columns import CROSSED, IDENTITY, NEGATIVE, POSITIVE, SLICE
from biasspark.metrics.intervals import auc_interval
from biasspark.metrics.suite import SUITE, Auc, Gap

PAIRED_DELONG, JACKKNIFE = "paired_delong", "jackknife"

_METRICS = {(metric.low, metric.high): metric for metric in (*SUITE, Auc("auc", low=NEGATIVE, high=POSITIVE))}
_KEY = f"{SLICE} STRING, {IDENTITY} STRING, {CROSSED} BOOLEAN"
PAIRED = f"{_KEY}, low_cell STRING, high_cell STRING, " + ", ".join(
    f"{name} {'BIGINT' if name.startswith('n_') else 'DOUBLE'}" for name in PairedAucs._fields
)
"""The schema of both models' AUCs of every pair of cells."""

_COUNTS = ("n_low", "n_high", "u_doubled", "baseline_u_doubled")
_COMPARED = f"{_KEY}, metric STRING, n_low BIGINT, n_high BIGINT, " + ", ".join(
    f"{name} DOUBLE"
    for name in ("value", "baseline_value", "difference", "difference_low", "difference_high", "p_value", "p_adjusted")
)
_COMPARED += ", verdict STRING"


def paired_by_delong(sums: DataFrame) -> DataFrame:
    """Return both models' AUCs of every pair of cells, with variances by DeLong.

    Parameters
    ----------
    sums : DataFrame
        ``slice, identity, crossed, cell, among``, each two cells of every identity, and the fields of `PlacedTwice`.

    Returns
    -------
    DataFrame
        ``slice, identity, crossed, low_cell, high_cell``, and the fields of `PairedAucs`. Lazy.
    """
    return sums.groupBy(SLICE).applyInPandas(_pair_cells, PAIRED)


def paired_by_jackknife(grouped: DataFrame) -> DataFrame:
    """Return both models' AUCs of every pair of cells, with variances by the jackknife.

    Parameters
    ----------
    grouped : DataFrame
        ``slice, identity, crossed, low_cell, high_cell, n_low, n_high, u_doubled, baseline_u_doubled``, and as arrays
        by group what is left of the last four without it, named so with ``_left``.

    Returns
    -------
    DataFrame
        As `paired_by_delong`.
    """
    return grouped.groupBy(SLICE).applyInPandas(_pair_groups, PAIRED)


def model_comparisons(paired: DataFrame, models: tuple[str, str], level: float, method: str) -> DataFrame:
    """Return the table ``model_comparisons``, less the run's columns, of one pair of models.

    Parameters
    ----------
    paired : DataFrame
        Both models' AUCs of every pair of cells, in the schema `PAIRED`.
    models : (str, str)
        The model and the baseline.
    level : float
        Of the intervals, also of those that tell the signs of gaps.
    method : str
        How the variances were made.

    Notes
    -----
    Lazy. P-values are adjusted over all metrics and identities of a slice, those of crossed pairs among themselves. One
    Python task a slice, whose rows are metrics times identities.
    """
    ends = {**_interval("auc", "auc_variance", level), **_interval("baseline_auc", "baseline_variance", level)}
    compared = paired.withColumns(ends).groupBy(SLICE)
    model, baseline = models
    return compared.applyInPandas(_compare(level), _COMPARED).withColumns(
        {"model": F.lit(model), "baseline_model": F.lit(baseline), "method": F.lit(method)}
    )


def _interval(auc: str, variance: str, level: float) -> dict[str, Column]:
    pair = F.struct(F.col(auc).alias("auc"), F.col(variance).alias("auc_variance"), "n_low", "n_high")
    return {f"{auc}_{end}": auc_interval(pair, level)[end] for end in ("low", "high")}


def _pair_cells(sums: pd.DataFrame) -> pd.DataFrame:
    """Pair the cells of all identities of a slice."""
    fields = list(PlacedTwice._fields)
    cells = {
        (row[IDENTITY], row["cell"], row["among"]): (row, PlacedTwice(*(int(row[name]) for name in fields)))
        for row in sums.to_dict("records")
    }
    rows = [
        (row[SLICE], identity, row[CROSSED], low, high, *pair_by_delong(placed, cells[identity, high, low][1]))
        for (identity, low, high), (row, placed) in cells.items()
        if (low, high) in _METRICS
    ]
    return pd.DataFrame(rows, columns=_names(PAIRED))


def _pair_groups(grouped: pd.DataFrame) -> pd.DataFrame:
    """Take the AUCs of both models from what is left without each group."""
    rows = []
    for row in grouped.to_dict("records"):
        left = list(zip(*(map(int, row[f"{name}_left"]) for name in _COUNTS), strict=True))
        n_low, n_high, *doubled = (int(row[name]) for name in _COUNTS)
        pair = pair_by_jackknife((n_low, n_high), (doubled[0], doubled[1]), left)
        rows.append((*(row[name] for name in (SLICE, IDENTITY, CROSSED, "low_cell", "high_cell")), *pair))
    return pd.DataFrame(rows, columns=_names(PAIRED))


def _compare(level: float) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Compare both models by every metric of all identities of a slice."""

    def run(paired: pd.DataFrame) -> pd.DataFrame:
        rows = [{str(name): _known(value) for name, value in row.items()} for row in paired.to_dict("records")]
        rows.sort(key=lambda row: (row[IDENTITY], row["low_cell"], row["high_cell"]))
        families = ([row for row in rows if row[CROSSED] == crossed] for crossed in (False, True))
        found = [line for family in families for line in _judge_all(family, level)]
        return pd.DataFrame(found, columns=_names(_COMPARED))

    return run


def _judge_all(rows: Sequence[dict[str, Any]], level: float) -> Iterator[tuple[Any, ...]]:
    """Compare what is adjusted together."""
    metrics = [_METRICS[row["low_cell"], row["high_cell"]] for row in rows]
    paired = [_read(row, metric) for row, metric in zip(rows, metrics, strict=True)]
    evidence = [weigh(own, level) for own in paired]
    verdicts = judge(evidence, [isinstance(metric, Gap) for metric in metrics])
    for row, metric, own, weighed, verdict in zip(rows, metrics, paired, evidence, verdicts, strict=True):
        key = (row[SLICE], row[IDENTITY], row[CROSSED], metric.name)
        yield *key, own.n_low, own.n_high, own.value, own.baseline_value, *weighed[:4], *verdict


def _read(row: dict[str, Any], metric: Auc) -> Paired:
    def shift(name: str) -> float | None:
        return None if row[name] is None else row[name] - metric.offset

    gaps = ((shift("auc_low"), shift("auc_high")), (shift("baseline_auc_low"), shift("baseline_auc_high")))
    return Paired(
        n_low=row["n_low"],
        n_high=row["n_high"],
        value=shift("auc"),
        baseline_value=shift("baseline_auc"),
        difference_variance=row["difference_variance"],
        sum_variance=row["sum_variance"],
        gaps=gaps if isinstance(metric, Gap) else None,
    )


def _known(value: Any) -> Any:
    """Return None for NaN, which is what pandas makes of NULL."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _names(schema: str) -> list[str]:
    return [column.split()[0] for column in schema.split(", ")]
