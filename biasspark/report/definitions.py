"""What every number of the report means: the comments of the published tables, said once and shown beside numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from biasspark.columns import RATE_GAPS, RATES
from biasspark.report.side_by_side_metrics import SUITE_TITLES
from biasspark.tables.schemas import TABLES

_REASONS = {
    "no_subgroup_positives": "no positives in the identity",
    "no_subgroup_negatives": "no negatives in the identity",
    "no_background_positives": "no positives in the background",
    "no_background_negatives": "no negatives in the background",
    "no_positives": "no positives",
    "no_negatives": "no negatives",
    "below_minimum_rows": "fewer rows than the configured minimum",
    "withheld": "withheld: too few rows to be shown",
}

DECISIONS = ("n_true_positive", "n_false_negative", "n_false_positive", "n_true_negative")
"""The counts that every rate at a threshold is of: those of positives, then those of negatives."""

METHODS = {
    "newcombe": "Newcombe’s score interval, for small or separated cells",
    "none": "no interval is possible, for example with one row in a cell",
}
"""How an interval was made, where not as all others: by DeLong's variance on the logit scale."""

TITLES: Mapping[str, str] = {
    **SUITE_TITLES,
    "auc": "Overall AUC",
    "background_auc": "Background AUC",
    "competition_score": "Competition score",
    "n_identities_undefined": "Identities missing a metric",
    "pinned_auc_equality_difference": "Pinned AUC equality difference",
    "subgroup_auc_power_mean": "Mean Subgroup AUC",
    "bpsn_auc_power_mean": "Mean BPSN AUC",
    "bnsp_auc_power_mean": "Mean BNSP AUC",
    "subgroup_auc_min": "Lowest Subgroup AUC",
    "bpsn_auc_min": "Lowest BPSN AUC",
    "bnsp_auc_min": "Lowest BNSP AUC",
    "negative_aeg_max_abs": "Largest |Negative AEG|",
    "positive_aeg_max_abs": "Largest |Positive AEG|",
    "n_positive": "Positives",
    "n_negative": "Negatives",
    "n_subgroup_negative": "Negatives of the identity",
    "n_subgroup_positive": "Positives of the identity",
    "n_background_negative": "Negatives of the background",
    "n_background_positive": "Positives of the background",
    "n_negatives_to_add": "Negatives to add",
    "n_negatives_honest": "Negatives used to estimate",
    "n_positives_honest": "Positives used to estimate",
    "n_honest": "Rows used to estimate",
    "mean_honest": "Mean over the rows used to estimate",
    "n_pairs": "Pairs",
    "n_rows": "Rows",
    "n_rejected": "Rejected rows",
    "tpr": "TPR",
    "fpr": "FPR",
    "tnr": "TNR",
    "fnr": "FNR",
    "precision": "Precision",
    "selection_rate": "Selected",
    "tpr_gap": "TPR gap",
    "fpr_gap": "FPR gap",
    "tnr_gap": "TNR gap",
    "fnr_gap": "FNR gap",
    "precision_gap": "Precision gap",
    "selection_rate_gap": "Selected gap",
    "n_true_positive": "TP",
    "n_false_negative": "FN",
    "n_false_positive": "FP",
    "n_true_negative": "TN",
    "pinned_auc": "Pinned AUC",
    "p_adjusted": "Adjusted p",
    "baseline_value": "Baseline value",
    "n_low": "Rows of the low cell",
    "n_high": "Rows of the high cell",
}
"""The headings of the columns that have one other than their name."""

PROBLEMS = {
    "subgroup_auc": "poor ranking within the identity",
    "bpsn_auc": "false alarms",
    "bnsp_auc": "misses",
}
"""What a low AUC of the suite is a sign of, in a word or two."""


@dataclass(frozen=True)
class Definition:
    """What a column of a published table means."""

    anchor: str
    title: str
    text: str
    source: str


_TITLES_BY_TABLE = {
    ("auc_crosses", "auc"): "AUC of a cross",
    ("loss_by_segment", "auc"): "AUC of a segment",
}


def define(table: str, column: str, title: str = "") -> Definition:
    """Return the definition of a column: the comment of the table, which the catalog shows, too."""
    (found,) = (own for own in TABLES[table].columns if own.name == column)
    plain = (
        title or _TITLES_BY_TABLE.get((table, column)) or TITLES.get(column) or column.replace("_", " ").capitalize()
    )
    return Definition(f"def-{table}-{column}".replace("_", "-"), plain, found.comment, f"{table}.{column}")


_LISTED = {
    "bias_metrics": (
        *("subgroup_auc", "bpsn_auc", "bnsp_auc", "negative_aeg", "positive_aeg", "background_auc"),
        *("n_subgroup_negative", "n_subgroup_positive", "n_background_negative", "n_background_positive"),
        "subgroup_positive_rate",
    ),
    "model_summary": (
        *(
            "auc",
            "n_positive",
            "n_negative",
            "subgroup_auc_min",
            "bpsn_auc_min",
            "bnsp_auc_min",
            "negative_aeg_max_abs",
            "positive_aeg_max_abs",
        ),
        *("subgroup_auc_power_mean", "bpsn_auc_power_mean", "bnsp_auc_power_mean"),
        *("competition_score", "n_identities_undefined", "pinned_auc_equality_difference"),
    ),
    "model_comparisons": ("value", "baseline_value", "difference", "p_adjusted", "verdict", "n_low", "n_high"),
    "score_histograms": ("n_rows",),
    "threshold_rates": ("threshold", *RATES, "fpr_gap", *DECISIONS),
    "threshold_summary": ("fpr", "fnr", "false_positive_equality_difference", "false_negative_equality_difference"),
    "auc_crosses": ("auc", "headroom_pairs", "headroom_share", "n_pairs"),
    "attribution_segments": (
        "mean_honest",
        "n_honest",
        "loss_share",
        "found",
        "false_discovery",
        "confirmed",
        "predicate",
    ),
    "attribution_slices": ("mean_honest", "loss_share"),
    "pair_segments": ("mean_honest", "n_negatives_honest", "n_positives_honest", "found", "false_discovery"),
    "loss_by_segment": ("auc", "cross_entropy", "gini_impurity", "mean_normalized_attribution"),
    "template_scores": ("mean_score", "n_rows"),
    "label_balance": ("positive_rate", "overall_positive_rate", "n_negatives_to_add"),
    "pinned_auc": ("pinned_auc", "sampled_mean", "background_weight"),
    "bias_runs": ("n_rows", "n_rejected", "config_hash"),
}


def list_definitions(judged: Collection[str] = ()) -> dict[str, list[Definition]]:
    """Return the definitions of all that a report shows, by table.

    Of the gaps of rates one stands for all, but each is defined that is among the metrics that are `judged`.
    """
    gaps = [gap for gap in RATE_GAPS if gap in judged]
    listed = _LISTED | {"threshold_rates": dict.fromkeys((*_LISTED["threshold_rates"], *gaps))}
    return {table: [define(table, column) for column in columns] for table, columns in listed.items()}


def say_reason(reason: str | None) -> str:
    """Say in words why there is no value."""
    return "not measured" if reason is None else _REASONS.get(reason, reason.replace("_", " "))
