"""Names and values that stages share. No Spark."""

from __future__ import annotations

OVERALL = "(overall)"
"""The identity that stands for the whole slice."""

ALL_ROWS = "all"
"""The slice of all rows."""

EVERY_LENGTH = "(all)"
"""The bucket of `label_balance` for texts of any length."""

PAIR = " & "
"""Joins the two sides of a crossed pair in its name."""

NEGATIVE, POSITIVE = "negative", "positive"
SUBGROUP_NEGATIVE, SUBGROUP_POSITIVE = "subgroup_negative", "subgroup_positive"
BACKGROUND_NEGATIVE, BACKGROUND_POSITIVE = "background_negative", "background_positive"

FOUR_CELLS = (SUBGROUP_NEGATIVE, SUBGROUP_POSITIVE, BACKGROUND_NEGATIVE, BACKGROUND_POSITIVE)
"""The cells of an identity, in the order of the ranking. ``(overall)`` has only a background."""

CELL_PAIRS = (
    (SUBGROUP_NEGATIVE, SUBGROUP_POSITIVE),
    (SUBGROUP_NEGATIVE, BACKGROUND_POSITIVE),
    (BACKGROUND_NEGATIVE, SUBGROUP_POSITIVE),
    (BACKGROUND_NEGATIVE, BACKGROUND_POSITIVE),
    (BACKGROUND_NEGATIVE, SUBGROUP_NEGATIVE),
    (BACKGROUND_POSITIVE, SUBGROUP_POSITIVE),
)
"""The six (low, high) pairs of cells of the bias suite, in the order of u_statistics."""

MALFORMED = "_biasspark_malformed"
"""BOOLEAN column of a corpus from files: true for malformed records, such as lines of CSV with too many fields."""

ROW_REASONS = ("malformed_row", "null_id", "duplicate_id", "null_label", "label_out_of_range")
"""Why a whole row is rejected: the first that applies. Its code is its index here plus one."""

NOT_NUMERIC = "score_not_numeric"
SCORE_REASONS = ("null_score", NOT_NUMERIC, "nan_score", "infinite_score")
"""Why a row is rejected for one model: the first that applies. Its code is its index here plus one."""

ANNOTATION_OUT_OF_RANGE = "annotation_out_of_range"
"""Why an identity is unknown on a row that is not rejected."""

MODEL, SLICE, IDENTITY, CROSSED = "model", "slice", "identity", "crossed"
NULL_GROUP, OTHER_GROUP = "(null)", "(other)"
"""Groups of a grouping for NULL, and for all values beyond the limit."""

ROW_ID, REASON = "row_id", "reason"
HONEST = "honest"
LABEL, SCORE, N_OPPOSITE, ORDERED_DOUBLED = "label", "score", "n_opposite", "ordered_doubled"
GROUP = "jackknife_group"

HEADER_RANGE = -1
"""The range of the row of `score_blocks` that holds the header of a model."""

RATES = ("tpr", "fpr", "tnr", "fnr", "precision", "selection_rate")
"""The rates of decisions at a threshold, in the order of `threshold_rates`."""
RATE_GAPS = tuple(f"{rate}_gap" for rate in RATES)

SUMMARIZED_AUCS = ("subgroup_auc", "bpsn_auc", "bnsp_auc")
SUMMARIZED_GAPS = ("negative_aeg", "positive_aeg")
"""The metrics of the suite that `model_summary` summarizes over identities."""

SUITE_AUCS, SUITE_GAPS = (*SUMMARIZED_AUCS, "background_auc"), SUMMARIZED_GAPS
"""The metrics of the suite: AUCs of two cells, and gaps, which are AUCs less 1/2."""

OVERALL_METRIC = "auc"
"""The AUC of a whole slice in `model_summary` and in rules."""

WITHHELD, BELOW_MINIMUM_ROWS = "withheld", "below_minimum_rows"
"""Why a value is NULL although its cells have rows: suppressed, or too few rows for the metric."""

PASS, WARN, FAIL, INSUFFICIENT = "pass", "warn", "fail", "insufficient_evidence"
"""The outcomes of a rule of the gate."""
OUTCOMES = (FAIL, WARN, INSUFFICIENT, PASS)
"""From worst to best: the outcome of several rules is the first that any of them has."""

BETTER, WORSE, NO_EVIDENCE, INSUFFICIENT_DATA = "better", "worse", "no_evidence", "insufficient_data"
"""The verdicts of a comparison of two models."""
VERDICTS = (WORSE, BETTER, NO_EVIDENCE, INSUFFICIENT_DATA)
"""The verdicts of `model_comparisons`, in display order."""

POORLY_SEPARATED, WIDE, NO_BIAS = "poorly_separated", "wide", "no_evidence"
BIASES = (
    *("shifted_up", "negatives_shifted_up", "positives_shifted_up"),
    *("shifted_down", "negatives_shifted_down", "positives_shifted_down"),
    *(POORLY_SEPARATED, "closer_together", "farther_apart", WIDE, NO_BIAS),
)
"""The names of biases in `bias_metrics`: see `biasspark.metrics.bias_names`."""
SMALL, LARGE = "small", "large"
"""The sizes of biases: whether they lower an AUC."""
