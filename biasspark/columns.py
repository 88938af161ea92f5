"""The vocabulary that passes from one stage to the next, declared once."""

from __future__ import annotations

OVERALL = "(overall)"
"""The identity that stands for the whole slice."""

ALL_ROWS = "all"
"""The slice that is always there."""

EVERY_LENGTH = "(all)"
"""The bucket of `label_balance` that holds texts of whatever length."""

PAIR = " & "
"""What joins the two sides of a crossed pair in its name."""

NEGATIVE, POSITIVE = "negative", "positive"
SUBGROUP_NEGATIVE, SUBGROUP_POSITIVE = "subgroup_negative", "subgroup_positive"
BACKGROUND_NEGATIVE, BACKGROUND_POSITIVE = "background_negative", "background_positive"

FOUR_CELLS = (SUBGROUP_NEGATIVE, SUBGROUP_POSITIVE, BACKGROUND_NEGATIVE, BACKGROUND_POSITIVE)
"""The cells of an identity, in the order in which the ranking keeps them. ``(overall)`` has a background alone."""

CELL_PAIRS = (
    (SUBGROUP_NEGATIVE, SUBGROUP_POSITIVE),
    (SUBGROUP_NEGATIVE, BACKGROUND_POSITIVE),
    (BACKGROUND_NEGATIVE, SUBGROUP_POSITIVE),
    (BACKGROUND_NEGATIVE, BACKGROUND_POSITIVE),
    (BACKGROUND_NEGATIVE, SUBGROUP_NEGATIVE),
    (BACKGROUND_POSITIVE, SUBGROUP_POSITIVE),
)
"""The six (low, high) pairs of cells of which the bias suite is made, in the order of u_statistics."""

MALFORMED = "_biasspark_malformed"
"""BOOLEAN column of a corpus from files: which records are none, as lines of CSV with a field too many."""

ROW_REASONS = ("malformed_row", "null_id", "duplicate_id", "null_label", "label_out_of_range")
"""Why a whole row is rejected; the first that applies is given. Its code is its place here plus one."""

SCORE_REASONS = ("null_score", "score_not_numeric", "nan_score", "infinite_score")
"""Why a row is rejected for one model, likewise."""

ANNOTATION_OUT_OF_RANGE = "annotation_out_of_range"
"""Why an identity is unknown on a row that stays."""

MODEL, SLICE, IDENTITY, CROSSED = "model", "slice", "identity", "crossed"
NULL_GROUP, OTHER_GROUP = "(null)", "(other)"
"""The groups of a grouping of the rows that no value gives: NULL, and what is past the limit."""

ROW_ID, REASON = "row_id", "reason"
HONEST, SEGMENTS = "honest", "segments"
LABEL, SCORE, N_OPPOSITE, ORDERED_DOUBLED = "label", "score", "n_opposite", "ordered_doubled"
IN_CROWDS, ORDERED_IN_CROWDS = "in_crowds", "ordered_in_crowds"
GROUP = "jackknife_group"

HEADER_RANGE = -1
"""In `score_blocks` in place of a range: what the state of a model says of itself."""

RATES = ("tpr", "fpr", "tnr", "fnr", "precision", "selection_rate")
RATE_GAPS = tuple(f"{rate}_gap" for rate in RATES)
"""The rates of decisions at a threshold, in the order of `threshold_rates`."""

SUMMARISED_AUCS = ("subgroup_auc", "bpsn_auc", "bnsp_auc")
SUMMARISED_GAPS = ("negative_aeg", "positive_aeg")
"""The metrics of the suite that `model_summary` sums up over identities."""

SUITE_AUCS, SUITE_GAPS = (*SUMMARISED_AUCS, "background_auc"), SUMMARISED_GAPS
"""The metrics of the suite: AUCs of two cells, and gaps, which are such AUCs less 1/2."""

OVERALL_METRIC = "auc"
"""The AUC of a whole slice, as `model_summary` and rules name it."""

WITHHELD, BELOW_MINIMUM_ROWS = "withheld", "below_minimum_rows"
"""Why a value is NULL though its cells have rows: too few to be told of, too few to mean anything."""

PASS, WARN, FAIL, INSUFFICIENT = "pass", "warn", "fail", "insufficient_evidence"
"""What comes of a rule of the gate."""
OUTCOMES = (FAIL, WARN, INSUFFICIENT, PASS)
"""The worst first: the outcome of many is the first that any of them has."""

BETTER, WORSE, NO_EVIDENCE, INSUFFICIENT_DATA = "better", "worse", "no_evidence", "insufficient_data"
"""What comes of comparing two models."""
VERDICTS = (WORSE, BETTER, NO_EVIDENCE, INSUFFICIENT_DATA)
"""Those of `model_comparisons`, in the order in which they are shown."""
