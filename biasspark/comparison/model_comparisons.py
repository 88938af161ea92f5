"""The table ``model_comparisons``: AUCs of two models on the same rows -> differences and verdicts, and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from biasspark.columns import BETTER, INSUFFICIENT_DATA, NO_EVIDENCE, SUITE_GAPS, WORSE
from biasspark.comparison.differences import (
    MIN_GROUPS,
    DifferenceEstimate,
    Ends,
    PairedMetric,
    estimate_difference,
)
from biasspark.config import JACKKNIFE_GROUPS, Compare
from biasspark.metrics.intervals import SIGNIFICANT, auc_interval, benjamini_hochberg
from biasspark.metrics.suite import METRIC_OF_CELLS
from biasspark.tables.schemas import MODEL_COMPARISONS, table_of_rows
from biasspark.text import format_share, list_first


class Scope(NamedTuple):
    """The rows with a label that a model and the baseline both score; clusters and positives are None if uncounted."""

    model: str
    n_rows: int
    n_groups: int | None = None
    n_positive: int | None = None


def scope_warnings(compare: Compare, scopes: Sequence[Scope]) -> Iterator[str]:
    """Yield a sentence on models that share no row, or only one label, with the baseline, and on too few clusters."""
    shared = [scope for scope in scopes if scope.n_rows]
    if apart := [scope.model for scope in scopes if not scope.n_rows]:
        yield f"compare: {_pair(compare, apart)}: no row with a label is scored by both, so nothing is compared."
    for label, share in (("positive", 0), ("negative", 1)):
        if alike := [scope.model for scope in shared if scope.n_positive == share * scope.n_rows]:
            yield (
                f"compare: {_pair(compare, alike)}: no row that both score is {label}, so no AUC has a value. "
                "Check the label."
            )
    n_groups = {scope.model: scope.n_groups for scope in shared if scope.n_groups is not None}
    if few := {model: n for model, n in n_groups.items() if n < MIN_GROUPS}:
        yield (
            f"compare: {_pair(compare, [*few])}: '{compare.cluster}' has so few values that only {max(few.values())} "
            f"of {compare.groups or JACKKNIFE_GROUPS} groups have rows, and a verdict needs {MIN_GROUPS}. Name another "
            "column, or take more `groups` if it has more values."
        )


def unclustered_warnings(cluster: str | None, n_unclustered: int, n_rows: int) -> Iterator[str]:
    """Yield a sentence on the rows without a cluster, if there are any."""
    if cluster is not None and n_unclustered:
        share = format_share(n_unclustered, n_rows)
        yield (
            f"compare: '{cluster}' has no value on {n_unclustered:,} of {n_rows:,} rows ({share}). "
            "Each of them is a cluster of its own."
        )


def _pair(compare: Compare, names: Sequence[str]) -> str:
    return f"{list_first(names)} with {compare.baseline}"


# ---- differences and verdicts


PAIRED_DELONG = "paired_delong"


class CellPair(NamedTuple):
    """One pair of cells of an identity."""

    slice: str
    identity: str
    crossed: bool
    low_cell: str
    high_cell: str


class ComparedPair(NamedTuple):
    """A metric of a model and of its baseline on the same rows, and the method of the variances."""

    model: str
    baseline_model: str
    slice: str
    identity: str
    crossed: bool
    metric: str
    paired: PairedMetric
    method: str


def name_models(
    aucs: Mapping[CellPair, PairedMetric], models: tuple[str, str], level: float, method: str
) -> list[ComparedPair]:
    """Return the metrics of a model and its baseline, given the AUCs of their pairs of cells.

    The intervals of gaps are by `auc_interval`, so by the normal distribution, even for a variance from few groups:
    they only decide which signs gaps may have. With the same few clusters, intervals of differences of gaps cover at
    most 1.1% less often than those of AUCs (``scripts/simulations/comparison_coverage.py``).
    """

    def list_gap_ends(prefix: str) -> list[Ends]:
        names = (f"{prefix}value", f"{prefix}variance", "n_low", "n_high")
        value, variance, n_low, n_high = (
            np.array([getattr(both, name) for both in aucs.values()], np.float64) for name in names
        )
        low, high, _ = auc_interval(value, variance, n_low, n_high, level)
        ends = zip((low - 0.5).tolist(), (high - 0.5).tolist(), strict=True)
        return [(None, None) if isnan(low) else (low, high) for low, high in ends]

    compared = []
    for (pair, both), *ends in zip(aucs.items(), list_gap_ends(""), list_gap_ends("baseline_"), strict=True):
        metric = METRIC_OF_CELLS[pair.low_cell, pair.high_cell]
        paired = both.as_gap(*ends) if metric in SUITE_GAPS else both
        compared.append(ComparedPair(*models, pair.slice, pair.identity, pair.crossed, metric, paired, method))
    return compared


def model_comparisons(compared: Sequence[ComparedPair], level: float) -> pa.Table:
    """Return the table ``model_comparisons``.

    P-values are adjusted over all metrics and identities of a slice and two models, those of crossed pairs separately.
    """
    families: dict[tuple[Any, ...], list[ComparedPair]] = {}
    for row in compared:
        families.setdefault((row.model, row.baseline_model, row.slice, row.crossed), []).append(row)
    rows: list[dict[str, Any]] = []
    for family in families.values():
        estimates = [estimate_difference(row.paired, level) for row in family]
        adjusted = benjamini_hochberg([estimate.p_value for estimate in estimates])
        for row, estimate, p_adjusted in zip(family, estimates, adjusted, strict=True):
            ends = {"difference_low": estimate.low, "difference_high": estimate.high}
            tested = {"p_adjusted": p_adjusted, "verdict": judge_difference(estimate, p_adjusted, row.paired.is_gap)}
            rows.append(row._asdict() | row.paired._asdict() | estimate._asdict() | ends | tested)
    return table_of_rows(MODEL_COMPARISONS, rows)


def judge_difference(estimate: DifferenceEstimate, p_adjusted: float | None, less_is_better: bool) -> str:
    """Return whether a significant difference that points one way is better or worse, or why there is no verdict."""
    if estimate.difference is None or p_adjusted is None:
        return INSUFFICIENT_DATA
    if p_adjusted >= SIGNIFICANT or not estimate.one_sided:
        return NO_EVIDENCE
    return BETTER if (estimate.difference < 0) == less_is_better else WORSE
