"""What else is measured of scores: pinned AUC and its skew, rates at thresholds, histograms, means over templates."""

from __future__ import annotations

from biasspark.columns import RATES, SUMMARIZED_AUCS
from biasspark.tables.schemas.dsl import CROSSED, IDENTITY, MODEL, SLICE, WITHHELD, Table, columns

_WEIGHT = "0 to 1, the four weights add up to 1. NULL where pinned_auc is."
_TERM = "0 to 1. NULL where a cell is empty: then its weight is 0."

PINNED_AUC = Table(
    name="pinned_auc",
    job="bias_metrics",
    comment="Pinned AUC. Its authors advise against it: it moves with the class balance where the model does not. "
    "Prefer bias_metrics.",
    key=(MODEL, SLICE, IDENTITY),
    values=columns(f"""
        {CROSSED}
        pinned_auc DOUBLE: AUC of the identity and equally many rows drawn from all, in the limit of many draws. 0 to 1,
            1 is best. Its authors advise against it: it moves with the class balance. NULL with a reason.
        background_weight DOUBLE: How much background_auc weighs in pinned_auc. {_WEIGHT}
        subgroup_weight DOUBLE: How much subgroup_auc weighs in pinned_auc. {_WEIGHT}
        bpsn_weight DOUBLE: How much bpsn_auc weighs in pinned_auc. {_WEIGHT}
        bnsp_weight DOUBLE: How much bnsp_auc weighs in pinned_auc. {_WEIGHT}
        background_auc DOUBLE: AUC within the background, a term of pinned_auc. {_TERM}
        subgroup_auc DOUBLE: AUC within the identity, a term of pinned_auc. {_TERM}
        bpsn_auc DOUBLE: AUC of background positives and subgroup negatives, a term of pinned_auc. {_TERM}
        bnsp_auc DOUBLE: AUC of background negatives and subgroup positives, a term of pinned_auc. {_TERM}
        overall_auc DOUBLE: AUC of the whole slice. 0 to 1. NULL where a label is missing.
        known_auc DOUBLE: AUC of the rows whose membership in the identity is known, which pinned_auc is compared with:
            it is an AUC of these rows. overall_auc where all are known. 0 to 1. NULL where a label is missing.
        sampled_mean DOUBLE: Mean of the pinned AUC over the sampled trials that have one, as it was published. 0 to 1.
            NULL without trials, or where none has both labels.
        sampled_sd DOUBLE: Standard deviation of the pinned AUC over the sampled trials, 0 or more. NULL with fewer than
            two trials.
        trials INT: Sampled trials, 0 or more, as configured.
        reason STRING: Why pinned_auc is NULL: no_subgroup_negatives, no_subgroup_positives, no_background_negatives,
            no_background_positives, below_minimum_rows, withheld. NULL where it has a value.
    """),
)

_RATES = {
    "tpr": ("True positive rate: decided positive among the positives", "positives"),
    "fpr": ("False positive rate: decided positive among the negatives", "negatives"),
    "tnr": ("True negative rate: decided negative among the negatives", "negatives"),
    "fnr": ("False negative rate: decided negative among the positives", "positives"),
    "precision": ("Positives among those decided positive", "rows decided positive"),
    "selection_rate": ("Rows decided positive among all", "rows"),
}


def _rate(name: str) -> str:
    """Declare a rate of an identity, of its background, and their difference with its interval."""
    what, over = _RATES[name]
    null = f"NULL where either side has no {over}."
    end = "end of the interval of the gap at the configured level, 0.95 unless given, by Newcombe. -1 to 1."
    return f"""
        {name} DOUBLE: {what}, of the identity. 0 to 1. NULL where it has no {over}.
        background_{name} DOUBLE: {what}, of the background. 0 to 1. NULL where it has no {over}.
        {name}_gap DOUBLE: {name} - background_{name}. -1 to 1, 0 is equal. {null}
        {name}_gap_low DOUBLE: Lower {end} {null}
        {name}_gap_high DOUBLE: Upper {end} {null}
    """


def _decisions(prefix: str, whose: str) -> str:
    """Declare the four counts of decisions on one side."""
    return f"""
        {prefix}n_true_positive BIGINT: Positives {whose} that are decided positive, 0 or more.
        {prefix}n_false_positive BIGINT: Negatives {whose} that are decided positive, 0 or more.
        {prefix}n_true_negative BIGINT: Negatives {whose} that are decided negative, 0 or more.
        {prefix}n_false_negative BIGINT: Positives {whose} that are decided negative, 0 or more.
    """


_THRESHOLD = columns("""
    threshold DOUBLE: A row is decided positive where its score is at or above it. A finite number, 0 to 1 for
        probabilities. Never NULL.
""")

THRESHOLD_RATES = Table(
    name="threshold_rates",
    job="bias_metrics",
    comment="For each model, slice, identity and threshold: right and wrong decisions, their rates, and the gaps to "
    "the background.",
    key=(MODEL, SLICE, IDENTITY, *_THRESHOLD),
    values=(
        CROSSED,
        *columns(_decisions("", "of the identity") + _decisions("background_", "of the background")),
        *columns("\n".join(map(_rate, RATES))),
        WITHHELD,
    ),
)


def _equality_difference(kind: str, rate: str) -> str:
    return f"""
        {kind}_equality_difference DOUBLE: Sum over identities, crossed pairs left out, of the absolute difference of
            {rate} of the slice and of the identity. 0 or more, 0 is best. NULL where no identity has the rate.
    """


THRESHOLD_SUMMARY = Table(
    name="threshold_summary",
    job="bias_metrics",
    comment="For each model, slice and threshold: the error rates of the slice, and how unequal they are over "
    "identities.",
    key=(MODEL, SLICE, *_THRESHOLD),
    values=columns(f"""
        fpr DOUBLE: {_RATES["fpr"][0]}, of the whole slice. 0 to 1, 0 is best. NULL without negatives.
        fnr DOUBLE: {_RATES["fnr"][0]}, of the whole slice. 0 to 1, 0 is best. NULL without positives.
        {_equality_difference("false_positive", "fpr")}
        {_equality_difference("false_negative", "fnr")}
    """),
)

SCORE_HISTOGRAMS = Table(
    name="score_histograms",
    job="bias_metrics",
    comment="How the scores of each cell are distributed: exact counts in equal bins over 0 to 1, or over all scores "
    "where some lie outside.",
    key=columns(f"""
        {MODEL}
        {SLICE}
        identity STRING: {IDENTITY.comment} (overall) stands for the whole slice.
        cell STRING: subgroup_ or background_ and then negative or positive, or negative and positive for (overall).
        bin INT: The place of the bin, from 0. Bins without rows are left out.
    """),
    values=columns(f"""
        {CROSSED}
        bin_low DOUBLE: Where the bin begins, itself inside. 0 to 1, or within the extremes of the scores where some lie
            outside. Never NULL.
        bin_high DOUBLE: Where the bin ends, itself outside but for the last bin. 0 to 1, or within the extremes of the
            scores. Never NULL.
        n_rows BIGINT: Rows of the cell with a score in the bin, 1 or more.
    """),
)

TEMPLATE_SCORES = Table(
    name="template_scores",
    job="bias_metrics",
    comment="For each model, sentence template and identity: the mean score of its sentences. A fair model scores a "
    "template alike for all identities.",
    key=columns(f"""
        {MODEL}
        template STRING: The template, as the configured column has it.
        identity STRING: {IDENTITY.comment} (overall) stands for all sentences of the template.
    """),
    values=columns(f"""
        n_rows BIGINT: Rows of the template in the identity that count for the model, 1 or more. NULL where withheld.
        mean_score DOUBLE: Mean of their scores, in the range of the scores (0 to 1 for probabilities). NULL where
            withheld.
        sd_score DOUBLE: Standard deviation of their scores (n - 1), 0 or more. NULL with one row.
        {WITHHELD}
    """),
)

_BALANCE_KEY = columns("""
    identity STRING: The identity, without crossed pairs. (overall) is all rows.
    bucket STRING: Text lengths, as 20-59. (all) is every length, also those outside all buckets and unknown ones.
""")
_BALANCE = columns(f"""
        length_low INT: The least length in the bucket. NULL for (all).
        length_high INT: The greatest length in the bucket. NULL for (all).
        n_rows BIGINT: Rows of the identity with a label and such a length, scored or not, 0 or more.
        n_positive BIGINT: Positives among n_rows, 0 or more.
        positive_rate DOUBLE: n_positive / n_rows. 0 to 1. NULL where there are no rows.
        overall_positive_rate DOUBLE: The same for all rows in the bucket, the goal. 0 to 1. NULL where there are none.
        n_negatives_to_add BIGINT: How many negatives of the identity bring its rate down to the goal. 0 is balanced.
            For (all), the sum over the buckets, also where the rate of all lengths is below the goal. NULL where the
            goal is 0 or NULL.
        {WITHHELD}
""")

LABEL_BALANCE = Table(
    name="label_balance",
    job="bias_metrics",
    comment="For each identity and bucket of text lengths: how many rows, how many positive, and how many negatives "
    "would balance it. Of a mitigation experiment: the training corpus and its plan.",
    key=_BALANCE_KEY,
    values=_BALANCE,
)

TRAINING_BALANCE = Table(
    name="training_balance",
    job="bias_metrics",
    comment="For each model of a mitigation experiment, identity and bucket of text lengths: the balance of what the "
    "model was trained on, and how many rows of it were added to the corpus.",
    key=(MODEL, *_BALANCE_KEY),
    values=(
        *columns("""
            n_added BIGINT: Rows that were added to the training corpus for this model, all of them negatives, 0 or
                more. They are among n_rows. Never NULL.
        """),
        *_BALANCE,
    ),
)


_ADVICE = "Its authors advise against it: it moves with the class balance."

_SUITE = {
    "subgroup_auc": "AUC within the subgroup, all rows kept",
    "bpsn_auc": "AUC of background positives and subgroup negatives, all rows kept",
    "bnsp_auc": "AUC of background negatives and subgroup positives, all rows kept",
}


def _stands_still(name: str) -> str:
    """Declare an AUC of the suite before rows are dropped, and over the trials."""
    return f"""
        {name} DOUBLE: {_SUITE[name]}. 0 to 1, 1 is best. NULL where a cell is empty.
        {name}_sampled_mean DOUBLE: Mean of {name} over the trials. 0 to 1. Close to {name}, since the class balance
            does not move it. NULL where a cell is empty, or empty once rows are dropped.
        {name}_sampled_sd DOUBLE: Standard deviation of {name} over the trials (n - 1), 0 or more. 0 where no row that
            it ranks is dropped. NULL with one trial, or where the mean is.
    """


PINNED_SKEW = Table(
    name="pinned_skew",
    job="pinned_skew",
    comment="Pinned AUC of every identity before and after a random part of one cell of one of them is dropped, beside "
    "the AUCs of the suite. The model is the same: what moves measures the class balance.",
    key=columns(f"""
        {MODEL}
        {SLICE}
        {IDENTITY}
        cell STRING: The cell of skewed_identity from which rows are dropped: subgroup_ or background_ and then negative
            or positive.
    """),
    values=columns(f"""
        skewed_identity STRING: The identity whose cell loses rows. The rows of other identities show what that does to
            them. NULL in runs of older versions, which have it alone.
        fraction DOUBLE: The part of the cell that is dropped, as configured. 0 to 1, both excluded. Never NULL.
        n_rows BIGINT: Rows of the cell before any is dropped, 0 or more.
        n_dropped BIGINT: Rows of the cell that each trial drops: fraction x n_rows, halves rounded up.
        trials INT: How often other rows are dropped, 1 or more, as configured.
        pinned_auc DOUBLE: Pinned AUC of all rows, by its closed form. 0 to 1, 1 is best. {_ADVICE} NULL where a label
            is missing.
        pinned_auc_skewed DOUBLE: Pinned AUC once rows are dropped, by its closed form with the smaller cell. 0 to 1, 1
            is best. {_ADVICE} NULL where a label is then missing.
        pinned_auc_sampled_mean DOUBLE: Mean of the pinned AUC over the trials. 0 to 1, 1 is best. {_ADVICE} NULL where
            pinned_auc_skewed is, and for other identities.
        pinned_auc_sampled_sd DOUBLE: Standard deviation of the pinned AUC over the trials (n - 1), 0 or more. {_ADVICE}
            NULL with one trial, or where the mean is.
    """)
    + columns("\n".join(map(_stands_still, SUMMARIZED_AUCS))),
)
