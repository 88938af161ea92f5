"""The table ``comparison_alerts``: both models' AUCs of every pair of cells -> what comes of the rules on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame

from biasspark.columns import IDENTITY, MODEL, SLICE
from biasspark.config import Gate
from biasspark.metrics.comparisons.model_comparisons import read_paired
from biasspark.metrics.gate.alerts import Alert, Ruling
from biasspark.metrics.gate.bias_alerts import judge_rules
from biasspark.metrics.gate.comparison_rules import Contender, judge_contenders
from biasspark.metrics.suite import metric_of_pair
from biasspark.tables.schemas import COMPARISON_ALERTS


def comparison_alerts(compared: DataFrame, gate: Gate, level: float, missing_models: Collection[str] = ()) -> DataFrame:
    """Return the table ``comparison_alerts``, less the run's columns.

    Parameters
    ----------
    compared : DataFrame
        Both models' AUCs of every pair of cells, from `biasspark.metrics.comparisons.model_comparisons.name_models`.
    gate : Gate
        The rules; those that name no baseline are left out.
    level : float
        Of the intervals.
    missing_models : collection of str
        Models without one usable score.

    Notes
    -----
    Lazy. One Python task, which takes the rules one after the other: a row for each rule, model, slice and identity.
    """

    def judge_rows(ruling: Ruling, rows: Iterable[Mapping[Any, Any]]) -> list[Alert]:
        found = [Contender(key=(row[MODEL], row[SLICE], row[IDENTITY]), paired=read_paired(row)) for row in rows]
        return judge_contenders(ruling, level, found)

    rulings = [Ruling.of(rule, gate, level, missing_models) for rule in gate.of_comparisons]
    return judge_rules(compared.withColumn("metric", metric_of_pair()), rulings, judge_rows, COMPARISON_ALERTS)
