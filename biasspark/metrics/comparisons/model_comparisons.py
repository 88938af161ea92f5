"""The table ``model_comparisons``: sums over rows that two models placed -> AUCs of both, differences, verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.columns import CROSSED, IDENTITY, MODEL, SLICE
from biasspark.ddl import column_names
from biasspark.metrics.comparisons.differences import Paired, weigh
from biasspark.metrics.comparisons.paired import PAIRED_AUCS, PairedAucs, delong_aucs
from biasspark.metrics.comparisons.verdicts import judge_differences
from biasspark.metrics.intervals import auc_interval
from biasspark.metrics.suite import BY_NAME, Auc, Gap
from biasspark.ranking.paired_blocks import Products
from biasspark.tables.schemas import MODEL_COMPARISONS

PAIRED_DELONG = "paired_delong"

_METRICS = {(metric.low, metric.high): metric for metric in BY_NAME.values()}
_KEY = f"{SLICE} STRING, {IDENTITY} STRING, {CROSSED} BOOLEAN"
PAIRED = f"{_KEY}, low_cell STRING, high_cell STRING, {PAIRED_AUCS}"
"""The schema of both models' AUCs of every pair of cells."""

_NAMED = (MODEL, "baseline_model", SLICE)
_KEPT = (*_NAMED, IDENTITY, CROSSED, "n_low", "n_high", "method", "n_groups")
"""What a comparison has of both models' AUCs as it stands."""


def paired_by_delong(sums: DataFrame) -> DataFrame:
    """Return both models' AUCs of every pair of cells, with variances by DeLong.

    Parameters
    ----------
    sums : DataFrame
        ``slice, identity, crossed, cell, among``, each two cells of every identity, and the fields of `Products`.

    Returns
    -------
    DataFrame
        ``slice, identity, crossed, low_cell, high_cell``, and the fields of `PairedAucs`. Lazy.
    """
    return sums.groupBy(SLICE).applyInPandas(_pair_cells, PAIRED)


def name_models(paired: DataFrame, models: tuple[str, str], level: float, method: str) -> DataFrame:
    """Return both models' AUCs with whose they are, how their variances were made, and their own intervals.

    These are by `auc_interval`, so by the normal distribution, also of a variance of few groups: they tell only which
    signs gaps may have. With the same few clusters, intervals of differences of gaps cover them no more than 1.1 % less
    often than those of AUCs do (``scripts/simulate_comparisons.py``).

    Parameters
    ----------
    paired : DataFrame
        Both models' AUCs of every pair of cells, in the schema `PAIRED`.
    models : (str, str)
        The model and the baseline.
    level : float
        Of the intervals, which tell the signs of gaps.
    method : str
        How the variances were made.
    """
    model, baseline = models
    named = {MODEL: F.lit(model), "baseline_model": F.lit(baseline), "method": F.lit(method)}
    variances = {"auc": "auc_variance", "baseline_auc": "baseline_variance"}
    intervals = {f"{auc}_interval": _interval(auc, variance, level) for auc, variance in variances.items()}
    ends = {f"{auc}_{end}": F.col(f"{auc}_interval")[end] for auc in variances for end in ("low", "high")}
    return paired.withColumns({**named, **intervals}).withColumns(ends).drop(*intervals)


def model_comparisons(compared: DataFrame, level: float) -> DataFrame:
    """Return the table ``model_comparisons``, less the run's columns.

    Parameters
    ----------
    compared : DataFrame
        Both models' AUCs of any pairs of models, from `name_models`.
    level : float
        Of the intervals.

    Notes
    -----
    Lazy. P-values are adjusted over all metrics and identities of a slice and two models, those of crossed pairs among
    themselves. One Python task per slice and two models, whose rows are metrics times identities.
    """
    return compared.groupBy(*_NAMED).applyInPandas(_compare(level), MODEL_COMPARISONS.value_schema)


def _interval(auc: str, variance: str, level: float) -> Column:
    pair = F.struct(F.col(auc).alias("auc"), F.col(variance).alias("auc_variance"), "n_low", "n_high")
    return auc_interval(pair, level)


def _pair_cells(sums: pd.DataFrame) -> pd.DataFrame:
    """Pair the cells of all identities of a slice."""
    fields = Products._fields
    cells = {
        (row[IDENTITY], row["cell"], row["among"]): (row, Products(*(int(row[name]) for name in fields)))
        for row in sums.to_dict("records")
    }
    rows = [
        (row[SLICE], identity, row[CROSSED], low, high, *delong_aucs(placed, cells[identity, high, low][1]))
        for (identity, low, high), (row, placed) in cells.items()
        if (low, high) in _METRICS
    ]
    return pd.DataFrame(rows, columns=column_names(PAIRED))


def _compare(level: float) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Compare both models by every metric of all identities of a slice."""

    def run(paired: pd.DataFrame) -> pd.DataFrame:
        rows: list[dict[Any, Any]] = paired.to_dict("records")
        rows.sort(key=lambda row: (row[IDENTITY], row["low_cell"], row["high_cell"]))
        families = ([row for row in rows if row[CROSSED] == crossed] for crossed in (False, True))
        found = [line for family in families for line in _judge_all(family, level)]
        return pd.DataFrame(found, columns=list(MODEL_COMPARISONS.value_columns))

    return run


def _judge_all(rows: Sequence[dict[Any, Any]], level: float) -> Iterator[dict[str, Any]]:
    """Compare what is adjusted together."""
    paired = list(map(read_paired, rows))
    evidence = [weigh(own, level) for own in paired]
    verdicts = judge_differences(evidence, [own.gaps is not None for own in paired])
    for row, own, weighed, (p_adjusted, verdict) in zip(rows, paired, evidence, verdicts, strict=True):
        yield {
            **{name: row[name] for name in _KEPT},
            "metric": find_metric(row).name,
            "value": own.value,
            "baseline_value": own.baseline_value,
            "difference": weighed.difference,
            "difference_low": weighed.low,
            "difference_high": weighed.high,
            "p_value": weighed.p_value,
            "p_adjusted": p_adjusted,
            "verdict": verdict,
        }


def find_metric(row: Mapping[Any, Any]) -> Auc:
    """Return the metric that a pair of cells is of."""
    return _METRICS[row["low_cell"], row["high_cell"]]


def read_paired(row: Mapping[Any, Any]) -> Paired:
    """Read a row that pandas holds, in which NULL may be NaN, as a metric of two models."""

    def known(name: str) -> Any:
        return None if row[name] is None or math.isnan(row[name]) else row[name]

    ends = ((known("auc_low"), known("auc_high")), (known("baseline_auc_low"), known("baseline_auc_high")))
    return Paired.of(PairedAucs(*map(known, PairedAucs._fields)), ends, isinstance(find_metric(row), Gap))
