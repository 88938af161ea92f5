"""The titles and definitions of what a report shows. Definitions are the comments of the published tables."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from biasspark.columns import RATE_GAPS, RATES, SUMMARIZED_AUCS, SUMMARIZED_GAPS
from biasspark.metrics import suite
from biasspark.tables.schemas import TABLES

SUITE = (*SUMMARIZED_AUCS, *SUMMARIZED_GAPS)
"""The five metrics, in the order of the papers."""

_ABBREVIATIONS = re.compile(r"\b(?:auc|aeg|bpsn|bnsp)\b", re.IGNORECASE)


def _words(column: str) -> str:
    return _ABBREVIATIONS.sub(lambda word: word[0].upper(), column.removeprefix("n_").replace("_", " ").capitalize())


SUITE_TITLES = {name: _words(name) for name in SUITE}

_REASONS = {
    "no_subgroup_positives": "no positives in the identity",
    "no_subgroup_negatives": "no negatives in the identity",
    "no_background_positives": "no positives in the background",
    "no_background_negatives": "no negatives in the background",
    "below_minimum_rows": "fewer rows than the configured minimum",
    "withheld": "withheld: too few rows to be shown",
}

DECISIONS = ("n_true_positive", "n_false_negative", "n_false_positive", "n_true_negative")
"""The counts from which all rates at a threshold follow."""

METHODS = {
    "newcombe": "Newcombe’s score interval, for small or separated cells",
    "none": "no interval is possible, for example with one row in a cell",
}
"""Interval methods other than the usual one, DeLong's variance on the logit scale."""

_RATE_TITLES = dict(zip(RATES, ("TPR", "FPR", "TNR", "FNR", "Precision", "Selected"), strict=True))
_TITLES: Mapping[str, str] = {
    "auc": "Overall AUC",
    "n_identities_undefined": "Identities missing a metric",
    **{f"{name}_power_mean": f"Mean {SUITE_TITLES[name]}" for name in SUMMARIZED_AUCS},
    **{f"{name}_min": f"Lowest {SUITE_TITLES[name]}" for name in SUMMARIZED_AUCS},
    **{f"{name}_max_abs": f"Largest |{SUITE_TITLES[name]}|" for name in SUMMARIZED_GAPS},
    "n_positive": "Positives",
    "n_negative": "Negatives",
    "n_subgroup_negative": "Negatives of the identity",
    "n_subgroup_positive": "Positives of the identity",
    "n_background_negative": "Negatives of the background",
    "n_background_positive": "Positives of the background",
    "n_negatives_honest": "Negatives used to estimate",
    "n_positives_honest": "Positives used to estimate",
    "n_honest": "Rows used to estimate",
    "mean_honest": "Mean over the rows used to estimate",
    "n_rejected": "Rejected rows",
    **_RATE_TITLES,
    **{f"{rate}_gap": f"{title} gap" for rate, title in _RATE_TITLES.items()},
    "n_true_positive": "TP",
    "n_false_negative": "FN",
    "n_false_positive": "FP",
    "n_true_negative": "TN",
    "p_adjusted": "Adjusted p",
    "n_low": "Rows of the low cell",
    "n_high": "Rows of the high cell",
    "auc_crosses.auc": "AUC of a cross",
    "loss_by_segment.auc": "AUC of a segment",
    "named_pairs.auc": "AUC of a named pair",
}
"""Titles of columns, of any table or of one. The title of any other column is its name."""

_BIASES = {"poorly_separated": "poorly separated within", "wide": "wide scores"}
"""Words for biases whose names are not plain words."""

CELLS = {metric.name: (metric.low, metric.high) for metric in suite.SUITE}
"""The two cells that each metric of the suite compares."""


class Definition(NamedTuple):
    """The meaning of a column of a published table."""

    anchor: str
    title: str
    text: str
    table: str
    column: str


def title_of(column: str, table: str = "") -> str:
    """Return the title of a column."""
    return _TITLES.get(f"{table}.{column}") or _TITLES.get(column) or _words(column)


def define(table: str, column: str, title: str = "") -> Definition:
    """Return the definition of a column, which is its comment."""
    (declared,) = (declared for declared in TABLES[table].columns if declared.name == column)
    anchor = f"def-{table}-{column}".replace("_", "-")
    return Definition(anchor, title or title_of(column, table), declared.comment, table, column)


_DEFINED = {
    "bias_metrics": (
        *(*SUITE, "background_auc", "bias", "bias_size"),
        *("n_subgroup_negative", "n_subgroup_positive", "n_background_negative", "n_background_positive"),
        "subgroup_positive_rate",
    ),
    "model_summary": (
        *("auc", "n_positive", "n_negative"),
        *(f"{name}_min" for name in SUMMARIZED_AUCS),
        *(f"{name}_max_abs" for name in SUMMARIZED_GAPS),
        *(f"{name}_power_mean" for name in SUMMARIZED_AUCS),
        *("competition_score", "n_identities_undefined", "pinned_auc_equality_difference"),
    ),
    "model_comparisons": ("value", "baseline_value", "difference", "p_adjusted", "verdict", "n_low", "n_high"),
    "score_histograms": ("n_rows",),
    "threshold_rates": ("threshold", *RATES, *RATE_GAPS, *DECISIONS),
    "threshold_summary": ("fpr", "fnr", "false_positive_equality_difference", "false_negative_equality_difference"),
    "auc_crosses": ("auc", "headroom_pairs", "headroom_share", "n_pairs"),
    "attribution_segments": (
        *("mean_honest", "n_honest", "loss_share", "found", "false_discovery", "confirmed", "predicate"),
    ),
    "attribution_slices": ("mean_honest", "loss_share"),
    "pair_segments": ("mean_honest", "n_negatives_honest", "n_positives_honest", "found", "false_discovery"),
    "named_pairs": ("auc", "headroom_share"),
    "attribution_correlations": ("pearson", "attribution", "loss"),
    "loss_by_segment": ("auc", "cross_entropy", "gini_impurity", "mean_normalized_attribution"),
    "template_scores": ("mean_score", "n_rows"),
    "training_balance": ("n_added",),
    "label_balance": ("positive_rate", "overall_positive_rate", "n_negatives_to_add"),
    "pinned_auc": ("pinned_auc", "sampled_mean", "background_weight"),
    "pinned_skew": ("pinned_auc", "pinned_auc_skewed", "cell"),
    "bias_runs": ("n_rows", "n_rejected", "config_hash"),
}


def list_definitions(tables: Collection[str] = tuple(_DEFINED)) -> dict[str, list[Definition]]:
    """Return by table the definitions of the columns that a report shows."""
    return {name: [define(name, column) for column in columns] for name, columns in _DEFINED.items() if name in tables}


def describe_bias(row: Mapping[str, Any], side: str = "") -> str:
    """Return the bias of a row in words, if any; with a ``side``, of the ``_first`` or ``_second`` model."""
    name, size = row.get(f"bias{side}"), row.get(f"bias_size{side}")
    words = _BIASES.get(name, name.replace("_", " ")) if name else ""
    return f"{words}, {size}" if size else words


def describe_reason(reason: str | None) -> str:
    """Return why there is no value, in words."""
    return "not measured" if reason is None else _REASONS.get(reason, reason.replace("_", " "))
