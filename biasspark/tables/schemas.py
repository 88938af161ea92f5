"""The tables that a run publishes, declared once: names, types, keys, and what every column means.

Each declaration is the contract that SQL relies on: columns may be added, none is renamed. Whatever writes, checks,
documents or reads a table takes its columns from here. A comment says what a value is, its range, which end is bad, and
what NULL means; it is what a reader sees in the catalog. It has at most 255 characters, which is what metastores keep,
and no semicolon, which would end a statement.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from biasspark.arrays import Flags
from biasspark.columns import BIASES, RATES, SUMMARIZED_AUCS, SUMMARIZED_GAPS
from biasspark.ddl import ARROW_TYPES

# ---- how a table is declared


@dataclass(frozen=True)
class Column:
    """One column: its name, its type as Spark SQL writes it, and what it means."""

    name: str
    type: str
    comment: str

    def __str__(self) -> str:
        return f"{self.name} {self.type}: {self.comment}"

    @property
    def arrow_type(self) -> pa.DataType:
        """Its type in Arrow."""
        return ARROW_TYPES[self.type]


def columns(declarations: str) -> tuple[Column, ...]:
    """Read columns from lines of ``name TYPE: comment``, as which a column is written; others continue a comment."""
    declared: list[Column] = []
    for line in filter(None, map(str.strip, declarations.splitlines())):
        if match := re.fullmatch(r"(\w+) ([A-Z][A-Z0-9(),<>]+): (.+)", line):
            declared.append(Column(*match.groups()))
        else:
            last = declared.pop()
            declared.append(replace(last, comment=f"{last.comment} {line}"))
    return tuple(declared)


RUN_DATE, CORPUS, RUN_ID = columns("""
    run_date DATE: The night that the run is for, as given to the job. A partition of the table.
    corpus STRING: The name of the corpus in the configuration.
    run_id STRING: The attempt that wrote the row, new for every attempt. A partition of the table. The row counts once
        bias_runs has the run.
""")


@dataclass(frozen=True)
class Table:
    """One published table; the latest published run of its ``job`` is what its views show.

    The ``comment`` says what a row is. The ``key`` tells rows of one run apart, after ``run_date`` and ``corpus``,
    every two where it is ``unique``. A table that is ``per_row`` has rows for each row of the corpus, and so takes more
    than one file.
    """

    name: str
    job: str
    comment: str
    key: tuple[Column, ...]
    values: tuple[Column, ...]
    unique: bool = True
    per_row: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns in the order of the contract: run_date, corpus, the rest of the key, values, run_id."""
        return (RUN_DATE, CORPUS, *self.key, *self.values, RUN_ID)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(column.name for column in self.columns)

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The names that a stage computes: all but the run's own run_date, corpus and run_id."""
        return tuple(column.name for column in (*self.key, *self.values))

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The names of the key within one run."""
        return tuple(column.name for column in self.key)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns that a stage computes: all but the run's own run_date, corpus and run_id."""
        return pa.schema([(column.name, column.arrow_type) for column in (*self.key, *self.values)])

    @property
    def full_arrow_schema(self) -> pa.Schema:
        """All columns."""
        return pa.schema([(column.name, column.arrow_type) for column in self.columns])


MODEL, SLICE, IDENTITY, CROSSED = columns("""
    model STRING: The name of the model in the configuration. Higher scores mean more likely positive.
    slice STRING: The name of the slice, rows of the corpus that are measured on their own. all is every row.
    identity STRING: The identity: a column, column=value, a term or a group of terms, a predicate, or a & b for the
        rows in both.
    crossed BOOLEAN: True for a crossed pair of identities, which summaries over identities leave out.
""")

(WITHHELD,) = columns("""
    reason STRING: withheld where the rows are fewer than [privacy] min_group_rows. All numbers of the row are NULL
        then. NULL elsewhere.
""")


# ---- the suite


def _interval(name: str, lowest: str, highest: str) -> str:
    """Declare the two ends of the interval of a value."""
    level = f"of the interval of {name} at the configured level, 0.95 unless given"
    return f"""
        {name}_low DOUBLE: Lower end {level}. {lowest} or more. NULL where there is none, see {name}_method.
        {name}_high DOUBLE: Upper end {level}. {highest} or less. NULL where there is none, see {name}_method.
    """


def _wording(name: str) -> str:
    """Declare how the interval of a value was made, and why there is no value."""
    return f"""
        {name}_method STRING: How the interval of {name} was made: logit_delong, the DeLong variance on the logit scale.
            newcombe, a score interval for small or separated cells. none, no interval can be given, as with one row in
            a cell.
        {name}_reason STRING: Why {name} is NULL: {_EMPTY[name]}, below_minimum_rows, withheld. NULL where it has a
            value.
    """


_EMPTY = {
    "auc": "no_negatives, no_positives",
    "subgroup_auc": "no_subgroup_negatives, no_subgroup_positives",
    "bpsn_auc": "no_subgroup_negatives, no_background_positives",
    "bnsp_auc": "no_background_negatives, no_subgroup_positives",
    "background_auc": "no_background_negatives, no_background_positives",
    "negative_aeg": "no_background_negatives, no_subgroup_negatives",
    "positive_aeg": "no_background_positives, no_subgroup_positives",
}
"""The reasons that its two cells give each value."""

_SUITE = {
    "subgroup_auc": """AUC within the subgroup: how often a positive of the identity scores above a negative of it, ties
        half. 0 to 1, 1 is best, 0.5 is chance. Low: the identity is ranked badly. NULL where a cell is empty.""",
    "bpsn_auc": """Background positive, subgroup negative AUC: how often a positive of the background scores above a
        negative of the identity, ties half. 0 to 1, 1 is best. Low: false positives on the identity. NULL where a cell
        is empty.""",
    "bnsp_auc": """Background negative, subgroup positive AUC: how often a positive of the identity scores above a
        negative of the background, ties half. 0 to 1, 1 is best. Low: false negatives on the identity. NULL where a
        cell is empty.""",
    "background_auc": """AUC within the background, the rows known to be outside the identity: how often a positive
        scores above a negative, ties half. 0 to 1, 1 is best. Compare subgroup_auc with it. NULL where a cell is
        empty.""",
    "negative_aeg": """Negative average equality gap: how often a negative of the identity scores above a negative of
        the background, ties half, less 1/2. -0.5 to 0.5, 0 is best. Above 0: scored higher, towards false positives.
        NULL where a cell is empty.""",
    "positive_aeg": """Positive average equality gap: how often a positive of the identity scores above a positive of
        the background, ties half, less 1/2. -0.5 to 0.5, 0 is best. Below 0: scored lower, towards false negatives.
        NULL where a cell is empty.""",
}


def _measure(name: str) -> str:
    """Declare the five columns of a metric of the suite."""
    return f"{name} DOUBLE: {_SUITE[name]}{_interval(name, *_ends(name))}{_wording(name)}"


def _ends(name: str) -> tuple[str, str]:
    return ("-0.5", "0.5") if name in SUMMARIZED_GAPS else ("0", "1")


U_STATISTICS = Table(
    name="u_statistics",
    job="bias_metrics",
    comment="For every identity the Mann-Whitney U of its six pairs of cells, from which all metrics follow.",
    key=columns(f"""
        {MODEL}
        {SLICE}
        identity STRING: {IDENTITY.comment} (overall) stands for the whole slice.
        low_cell STRING: The cell that should score lower: subgroup_ or background_ and then negative or positive, or
            negative for (overall).
        high_cell STRING: The cell that should score higher: subgroup_ or background_ and then negative or positive, or
            positive for (overall).
    """),
    values=columns(f"""
        {CROSSED}
        n_low BIGINT: Rows of the low cell, 0 or more.
        n_high BIGINT: Rows of the high cell, 0 or more.
        u_doubled DECIMAL(38,0): Twice U, a whole number: 2 x the pairs with the score of the high cell above that of
            the low cell, plus the ties. 0 to 2 x n_low x n_high.
        low_square_sum DECIMAL(38,0): Sum over the rows of the low cell of the square of (2 x the rows of the high cell
            that score above it, plus ties). The DeLong variance needs it.
        high_square_sum DECIMAL(38,0): Sum over the rows of the high cell of the square of (2 x the rows of the low cell
            that score below it, plus ties). The DeLong variance needs it.
        auc DOUBLE: u_doubled / 2 / n_low / n_high: how often the high cell scores above the low one, ties half. 0 to 1.
            NULL where a cell is empty.
        auc_variance DOUBLE: The DeLong variance of auc, 0 or more. NULL where a cell has fewer than two rows.
        reason STRING: Why auc is NULL: no_ and the name of an empty cell, below_minimum_rows, withheld. If withheld,
            all counts are NULL, too. NULL where auc has a value.
    """),
)

BIAS_METRICS = Table(
    name="bias_metrics",
    job="bias_metrics",
    comment="For each model, slice and identity: how well the model ranks the rows of the identity against all others.",
    key=(MODEL, SLICE, IDENTITY),
    values=columns(f"""
        {CROSSED}
        subgroup_size BIGINT: Rows in the identity with a label and a score, 0 or more.
        n_subgroup_negative BIGINT: Rows in the identity with a negative label and a score, 0 or more.
        n_subgroup_positive BIGINT: Rows in the identity with a positive label and a score, 0 or more.
        n_background_negative BIGINT: Rows known to be outside the identity with a negative label and a score.
        n_background_positive BIGINT: Rows known to be outside the identity with a positive label and a score.
        subgroup_positive_rate DOUBLE: Positives among the rows in the identity, 0 to 1. NULL where it has no rows.
        background_positive_rate DOUBLE: Positives among the rows of the background, 0 to 1. NULL where it has no rows.
    """)
    + columns("\n".join(map(_measure, _SUITE)))
    + columns(f"""
        bias STRING: The bias that the intervals show: {", ".join(BIASES)}. NULL where no metric has a value.
        bias_size STRING: large where the subgroup, BPSN or BNSP AUC is below the background AUC by 0.05 or more, with
            evidence. small where only the gaps show the bias. NULL where bias is no_evidence or NULL.
    """),
)


def _sum_up_auc(name: str) -> str:
    """Declare the aggregates over identities of one AUC of the suite."""
    null = "NULL where no identity has a value."
    return f"""
        {name}_min DOUBLE: The lowest {name} of an identity, the worst. 0 to 1. {null}
        {name}_min_identity STRING: The identity with the lowest {name}, the first by name if several are equal. {null}
        {name}_max DOUBLE: The highest {name} of an identity. 0 to 1. {null}
        {name}_power_mean DOUBLE: Generalised mean of {name} over identities with power -5, in which the worst weigh
            most. 0 to 1, 1 is best, 0 if one of them is 0. {null}
    """


def _sum_up_gap(name: str) -> str:
    """Declare the aggregates over identities of one gap of the suite."""
    null = "NULL where no identity has a value."
    return f"""
        {name}_max_abs DOUBLE: The largest absolute {name} of an identity, the worst. 0 to 0.5. {null}
        {name}_max_abs_identity STRING: The identity with the largest absolute {name}, the first by name if several are
            equal. {null}
    """


MODEL_SUMMARY = Table(
    name="model_summary",
    job="bias_metrics",
    comment="For each model and slice: the overall AUC, and the suite summed up over identities without crossed pairs.",
    key=(MODEL, SLICE),
    values=columns(f"""
        n_negative BIGINT: Rows of the slice with a negative label and a score, 0 or more.
        n_positive BIGINT: Rows of the slice with a positive label and a score, 0 or more.
        auc DOUBLE: How often a positive of the slice scores above a negative, ties half. 0 to 1, 1 is best, 0.5 is
            chance. NULL without positives or negatives, see auc_reason.
        {_interval("auc", "0", "1")}
        auc_variance DOUBLE: The DeLong variance of auc, 0 or more. NULL with fewer than two rows of a label.
        {_wording("auc")}
    """)
    + columns("\n".join((*map(_sum_up_auc, SUMMARIZED_AUCS), *map(_sum_up_gap, SUMMARIZED_GAPS))))
    + columns("""
        n_identities_undefined BIGINT: Identities that lack at least one of the five metrics, and are left out of its
            aggregates. 0 is best.
        competition_score DOUBLE: The score of the public competition on unintended bias: a quarter each of auc and of
            the power means of subgroup_auc, bpsn_auc and bnsp_auc. 0 to 1, 1 is best. NULL where a part is NULL.
        pinned_auc_equality_difference DOUBLE: Sum over identities of |AUC - pinned AUC|, both of the rows on which the
            identity is known, 0 or more, 0 is best. The authors of pinned AUC advise against it: it moves with the
            class balance. NULL where no identity has one.
    """),
)


# ---- what else is measured of scores


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

_SUITE_AUCS = {
    "subgroup_auc": "AUC within the subgroup, all rows kept",
    "bpsn_auc": "AUC of background positives and subgroup negatives, all rows kept",
    "bnsp_auc": "AUC of background negatives and subgroup positives, all rows kept",
}


def _stands_still(name: str) -> str:
    """Declare an AUC of the suite before rows are dropped, and over the trials."""
    return f"""
        {name} DOUBLE: {_SUITE_AUCS[name]}. 0 to 1, 1 is best. NULL where a cell is empty.
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


# ---- what a run leaves about itself, and windows of nights


REJECTED_ROWS = Table(
    name="rejected_rows",
    job="bias_metrics",
    comment="Rows that a run did not use, and why, up to a number per reason. bias_runs counts all. Holds no text.",
    key=columns("""
        row_id STRING: The id of the row in the corpus. NULL where it has none.
        model STRING: The model for which the row is rejected. NULL where it is for all.
        reason STRING: The first that applies: malformed_row, null_id, duplicate_id, null_label (missing or unreadable),
            label_out_of_range, null_score, score_not_numeric, nan_score, infinite_score. With annotation_out_of_range
            the row stays, an identity unknown.
    """),
    values=(),
    unique=False,
)

BIAS_RUNS = Table(
    name="bias_runs",
    job="(every job)",
    comment="The ledger: a row here publishes all rows of its run. Rows are only ever added.",
    key=columns("""
        job STRING: The job that ran, and so the tables that it wrote.
    """),
    values=columns("""
        status STRING: published, or accepted: by its gate, which found no rule broken, or by a person, in a row of the
            job accept_run whose accepts_run_id names the run.
        n_rows BIGINT: Rows read from the corpus.
        n_rejected BIGINT: Rows rejected for all models.
        rejects MAP<STRING,BIGINT>: How often each reason was given, complete. A score counts for each model it lacks.
        warnings ARRAY<STRING>: What a reader of the numbers should know, one sentence each. None is best.
        config STRING: The configuration as JSON, defaults filled in, values of options redacted.
        config_hash STRING: SHA-256 of config. Runs with the same hash measured the same thing in the same way.
        code_version STRING: The version of biasspark.
        spark_version STRING: The version of Spark. Of the embedded engine the one that it speaks, and its own version.
        started_at TIMESTAMP: When the run started.
        published_at TIMESTAMP: When the run was published, later than every earlier run of the same run_date, corpus
            and job.
        window_start DATE: The first night of a window of nights that ends with run_date. NULL for a single night.
        merged_run_ids ARRAY<STRING>: The runs of the nights that a window merged, in the order of the nights. NULL for
            a single night.
        table_rows MAP<STRING,BIGINT>: The tables that the run wrote, with their rows. A table that is not listed
            belongs to a part that was off. NULL in runs of older versions.
        copied_from_run_id STRING: The run whose rows this run has in fewer files, the first one where a copy was
            copied. NULL for all others.
        accepts_run_id STRING: The run that a person accepts by this row. NULL for all others.
        accepted_by STRING: Who accepts it. NULL for all others.
        acceptance_note STRING: Why it is accepted, in the words of that person. NULL for all others.
    """),
)


WINDOW_START, N_NIGHTS = columns("""
    window_start DATE: The first night of the window, run_date being its last.
    n_nights INT: Nights that were merged, 1 or more. Fewer than there are days where nights were missing, see the
        warnings in bias_runs.
""")

SCORE_BLOCKS = Table(
    name="score_blocks",
    job="bias_metrics",
    comment="The sorted scores of a night, by identity, from which windows of nights are measured. Holds per-row "
    "scores: restrict access.",
    key=columns(f"""
        {MODEL}
        {SLICE}
        score_range INT: The range of scores, from 0. -1 is a description of the state, as JSON, once per model.
        part INT: The place of the block within its range, from 0.
    """),
    values=columns("""
        state_key STRING: A hash of what must agree for blocks to merge: label, identities, slices, rule for unknowns,
            boundaries. Only rows of one state_key merge.
        boundaries ARRAY<DOUBLE>: Where the ranges of the model meet, ascending. Found on the first night, then kept
            until a range has four times the mean rows of a range.
        block BINARY: Scores and how many rows have each, ascending, by label and membership. 4 MiB at most.
    """),
    per_row=True,
)


def _over_window(table: Table) -> Table:
    comment = f"A window of nights, merged: {table.comment[0].lower()}{table.comment[1:]}"
    changes: dict[str, Any] = {"name": f"window_{table.name}", "job": "window_metrics", "comment": comment}
    return replace(table, **changes, key=(WINDOW_START, *table.key), values=(N_NIGHTS, *table.values))


_OF_NIGHTS = (U_STATISTICS, BIAS_METRICS, MODEL_SUMMARY, PINNED_AUC, THRESHOLD_RATES, THRESHOLD_SUMMARY)
WINDOW_TABLES = {table: _over_window(table) for table in (*_OF_NIGHTS, SCORE_HISTOGRAMS)}
"""By the table of a night, that of a window."""


# ---- comparisons and the gate


MODEL_COMPARISONS = Table(
    name="model_comparisons",
    job="compare_models",
    comment="For each slice, identity and metric: by how much a model differs from a baseline on the rows that both "
    "score, and whether that is more than chance.",
    key=columns(f"""
        {SLICE}
        identity STRING: {IDENTITY.comment} (overall) stands for the whole slice, with the metric auc.
        metric STRING: subgroup_auc, bpsn_auc, bnsp_auc, background_auc, negative_aeg or positive_aeg, as in
            bias_metrics. auc for (overall).
        model STRING: The name of the model in the configuration.
        baseline_model STRING: The name of the model that it is compared with.
    """),
    values=columns(f"""
        {CROSSED}
        n_low BIGINT: Rows of the cell that should score lower (for a gap, the background), scored by both models. 0 or
            more.
        n_high BIGINT: Rows of the cell that should score higher (for a gap, the subgroup), scored by both models. 0 or
            more.
        value DOUBLE: The metric of the model, on these rows. 0 to 1, for a gap -0.5 to 0.5. NULL where a cell is empty.
        baseline_value DOUBLE: The metric of the baseline, on the same rows. 0 to 1, for a gap -0.5 to 0.5. NULL where a
            cell is empty.
        difference DOUBLE: value - baseline_value, more is better. For a gap |value| - |baseline_value|, less is better.
            -1 to 1, for a gap -0.5 to 0.5. NULL where a value is.
        difference_low DOUBLE: Lower end of its interval at the configured level, 0.95 unless given. For a gap over all
            signs that both intervals allow, and no lower than minus the largest |baseline_value| allowed. -1 to 1, for
            a gap -0.5 to 0.5. NULL where data are insufficient.
        difference_high DOUBLE: Upper end of its interval, for a gap no higher than the largest |value| that its
            interval allows. -1 to 1, for a gap -0.5 to 0.5. NULL where data are insufficient.
        p_value DOUBLE: Two-sided, for the hypothesis that both models are equally good. 0 to 1. For a gap the largest
            over these signs. 1 where they score these rows alike. NULL where data are insufficient.
        p_adjusted DOUBLE: p_value after Benjamini-Hochberg over the metrics and identities of the slice and the two
            models, crossed pairs by themselves. 0 to 1. NULL where data are insufficient.
        verdict STRING: better or worse, where p_adjusted is below 0.05. no_evidence, where it is not.
            insufficient_data, with fewer than 10 rows in a cell, with the jackknife fewer than 10 groups or 5 in a
            cell, or without variance of the difference.
        method STRING: How variances were made: paired_delong, from the placements of rows. jackknife, from leaving out
            groups of rows.
        n_groups INT: With the jackknife, the groups with a row in either cell. Intervals and p-values are from the t
            distribution with one degree of freedom less. 0 or more. NULL with DeLong.
    """),
)


_METRIC = "-0.5 to 0.5 for gaps of AUCs, -1 to 1 for those of rates, else 0 to 1."
_ADJUSTED = "adjusted by Benjamini-Hochberg over the rows of the rule. 0 to 1."
_WORST = "For a verdict on the worst identity"

_RULE, _IDENTITY, _METRIC_OF_RULE = columns("""
    rule STRING: The name of the rule in the configuration.
    identity STRING: The identity, as in bias_metrics. (overall) is the whole slice, or the verdict on the worst
        identity of a rule that asks for it.
    metric STRING: The metric: a column of bias_metrics, auc of model_summary, or with a threshold a column of
        threshold_rates.
""")

_OUTCOME = """
    outcome STRING: fail or warn where the bound is shown to be broken, pass where it is shown to be kept, else
        insufficient_evidence, or what [gate] insufficient makes of that: fail or warn. fail where the model has no
        usable score.
    message STRING: The same in a sentence.
    severity STRING: The outcome if the rule is broken, fail or warn. Only fail keeps a run from being accepted.
"""

_DECIDED = """
    decided BOOLEAN: True where the bound is shown to be broken or kept. False where evidence is insufficient or the
        model has no usable score, whatever the outcome. NULL in runs of older versions.
"""

_EVIDENCE = f"""
    change_low DOUBLE: Lower end of the interval of change, at the configured level. -1 to 1. NULL where there is none.
    change_high DOUBLE: Upper end of the interval of change, at the configured level. -1 to 1. NULL where there is none.
    p_violation DOUBLE: How likely such a value is if the bound is kept. 0 to 1, low is evidence that it is broken.
        NULL without an interval.
    p_compliance DOUBLE: How likely such a value is if the bound is broken. 0 to 1, low is evidence that it is kept.
        NULL without an interval.
    p_violation_adjusted DOUBLE: p_violation, {_ADJUSTED} {_WORST} the least of its identities. NULL where p_violation
        is.
    p_compliance_adjusted DOUBLE: p_compliance, {_ADJUSTED} {_WORST} the largest of its identities. NULL where one has
        none.
"""

BIAS_ALERTS = Table(
    name="bias_alerts",
    job="bias_metrics",
    comment="The outcome of each rule of the gate, for each model, slice and identity that it applies to. Empty "
    "without a gate.",
    key=(_RULE, MODEL, SLICE, _IDENTITY, _METRIC_OF_RULE),
    values=columns(f"""
        value DOUBLE: The metric of this run. {_METRIC} NULL where it has none, and for a verdict on the worst identity.
        value_low DOUBLE: Lower end of the interval of value, as in the table of the metric, for a rate by Wilson.
            {_METRIC} NULL where there is none.
        value_high DOUBLE: Upper end of the interval of value, as in the table of the metric, for a rate by Wilson.
            {_METRIC} NULL where there is none.
        bound DOUBLE: The bound of the rule, of the value or of its change, see bound_kind. -1 to 1. Never NULL.
        baseline_run_id STRING: The run that a change is measured against: the latest accepted one before that has an
            interval of the metric. NULL where there is none, for bounds of the value, and for a verdict on identities
            with different baselines.
        {_OUTCOME}
        bound_kind STRING: min, max or max_abs for the value, max_drop for the fall of an AUC or a rate since the
            baseline, max_rise for the rise of a rate or of the size of a gap since the baseline.
        baseline_value DOUBLE: The metric of the baseline. {_METRIC} NULL where there is none.
        change DOUBLE: value - baseline_value, for a gap |value| - |baseline_value|. -1 to 1. NULL where there is no
            baseline_value.
        {_EVIDENCE}
    """)
    + columns(f"""
        paired BOOLEAN: True where a change is judged by leaving the same groups of ids out of both runs, false where
            the variances of both are added. NULL where no change is judged.
        threshold DOUBLE: For a rate or its gap, the threshold of its decisions. A finite number, 0 to 1 for
            probabilities. NULL for other metrics.
        {_DECIDED}
    """),
)

JACKKNIFE_STATISTICS = Table(
    name="jackknife_statistics",
    job="bias_metrics",
    comment="For each pair of cells that rules on changes look at: U, and what is left of it without each of 100 "
    "groups of rows, by a hash of the id. Two nights are paired by them. Empty without [gate] paired. "
    "Differences to u_doubled reveal single rows: restrict access.",
    key=U_STATISTICS.key,
    values=(
        CROSSED,
        *(column for column in U_STATISTICS.values if column.name in ("n_low", "n_high", "u_doubled")),
        *columns("""
            n_low_left ARRAY<BIGINT>: By group: rows of the low cell that are not in it.
            n_high_left ARRAY<BIGINT>: By group: rows of the high cell that are not in it.
            u_doubled_left ARRAY<DECIMAL(38,0)>: By group: u_doubled of the rows that are not in it.
        """),
    ),
)

COMPARISON_ALERTS = Table(
    name="comparison_alerts",
    job="compare_models",
    comment="The outcome of each rule of the gate on a model and a baseline, for each slice and identity, on the rows "
    "that both score. Empty without such rules.",
    key=columns(f"""
        {_RULE}
        {MODEL}
        baseline_model STRING: The name of the model that it is compared with.
        {SLICE}
        {_IDENTITY}
        {_METRIC_OF_RULE}
    """),
    values=columns(f"""
        value DOUBLE: The metric of the model. {_METRIC} NULL where a cell is empty, and for a verdict on the worst
            identity.
        bound DOUBLE: The bound of the rule, on the change. 0 to 1. Never NULL.
        {_OUTCOME}
        bound_kind STRING: max_drop, how far an AUC may lie below that of the baseline. max_rise, how much further from
            0 a gap may lie.
        baseline_value DOUBLE: The metric of the baseline, on the same rows. {_METRIC} NULL where value is.
        change DOUBLE: value - baseline_value for an AUC, |value| - |baseline_value| for a gap. -1 to 1. NULL where
            value is.
        {_EVIDENCE}
        {_DECIDED}
    """),
)


# ---- attribution: which rows, segments, slices and pairs cost a model its AUC


EXAMPLE_ATTRIBUTIONS = Table(
    name="example_attributions",
    job="attribution",
    comment="For each model, slice and row: its share of the AUC. Half the credit of each rightly ordered pair goes to "
    "either of its rows.",
    key=(MODEL, SLICE, *columns("row_id STRING: The id of the row, as text.")),
    values=columns("""
        label BOOLEAN: Whether the row is positive. Never NULL.
        score DOUBLE: The score of the row by the model, 0 to 1 for probabilities. Never NULL.
        n_opposite BIGINT: Rows of the slice with the other label, 0 or more.
        ordered_doubled BIGINT: Twice the opposite rows with which the row is rightly ordered, plus its ties. 0 to 2
            n_opposite.
        attribution DOUBLE: ordered_doubled / 4, half a credit for each rightly ordered pair. 0 or more, more is better.
            The sum over a slice is AUC x positives x negatives. Never NULL.
        normalized_attribution DOUBLE: attribution / n_opposite. 0 to 0.5, 0.5 is best. Its mean over the positives, as
            over the negatives, is AUC / 2. NULL where n_opposite is 0.
    """),
    unique=False,
    per_row=True,
)

ATTRIBUTION_CORRELATIONS = Table(
    name="attribution_correlations",
    job="attribution",
    comment="For each model and slice: how the attributions of rows correlate with their losses.",
    key=columns(f"""
        {MODEL}
        {SLICE}
        attribution STRING: total (the attribution of a row) or normalized (divided by its opposite rows).
        loss STRING: cross_entropy or gini, of the single row.
    """),
    values=columns("""
        pearson DOUBLE: Pearson correlation over all rows. -1 to 1. NULL where either does not vary, or a score is no
            probability.
        n_rows BIGINT: Rows of the slice that count for the model, 0 or more.
    """),
)


def _estimates(what: str, whole: str) -> str:
    """Declare what is estimated of a part of the rows, by those that found it and by the others."""
    return f"""
        rule STRING: Which rows they are, in words.
        predicate STRING: The same as a predicate of Spark SQL: of the rows that count for the model, it is true on
            exactly these. Never NULL.
        n_train BIGINT: Rows of the {what} among those that searched, 0 or more.
        mean_train DOUBLE: Their mean of what is predicted, 0 to 0.5 for attribution. Too extreme, since the search
            chose it. NULL without rows.
        n_honest BIGINT: Rows of the {what} among those that only estimate, 0 or more.
        mean_honest DOUBLE: Their mean of what is predicted, the number to read. 0 to 0.5 for the attribution of one
            model, 0.5 is best. NULL without rows.
        mean_honest_low DOUBLE: Lower end of its interval. For attributions it counts the opposite class as sampled,
            too. 0 to 0.5, for a difference -0.5 to 0.5. NULL where it cannot be estimated.
        mean_honest_high DOUBLE: Upper end of its interval. 0 to 0.5 for attribution, for a difference -0.5 to 0.5. NULL
            where it cannot be estimated.
        p_value DOUBLE: Welch test of the honest rows in the {what} against those outside it. 0 to 1. NULL for
            {whole}.
        p_adjusted DOUBLE: p_value after Benjamini-Hochberg. 0 to 1. NULL where nothing is tested.
        p_train_honest DOUBLE: Welch test of the rows that searched against the honest ones. 0 to 1. NULL with fewer
            than two of either.
        false_discovery BOOLEAN: True where p_train_honest is below 0.05: the two samples tell different stories.
        found BOOLEAN: True where p_adjusted is below 0.05, and it is no false discovery. NULL where nothing is tested.
        loss_share DOUBLE: Share of all wrongly ordered pairs that falls on the rows of the {what}, half of each pair on
            each of its rows. 0 to 1, less is better. NULL where the AUC is 1.
        p_chance DOUBLE: Test of mean_honest against the mean of as many rows that are drawn at random from all honest
            ones. 0 to 1. NULL for {whole}.
        p_chance_adjusted DOUBLE: p_chance after Benjamini-Hochberg. 0 to 1. NULL where nothing is tested.
        confirmed BOOLEAN: True where found, and p_chance_adjusted is below 0.05, too: what to act on where nearly all
            pairs are rightly ordered. NULL where nothing is tested.
    """


_NODE_ID = "node_id INT: The node: 1 is the root, and 2k and 2k + 1 are what node k is split into."

_NODE = """
    parent_id INT: The node that was split into this one. NULL for the root.
    depth INT: Splits above the node, 0 for the root.
    is_leaf BOOLEAN: True where the node is not split. The leaves are the segments.
"""

ATTRIBUTION_SEGMENTS = Table(
    name="attribution_segments",
    job="attribution",
    comment="For each model and slice: the tree that finds where a model gains and loses its AUC, one row per node.",
    key=columns(f"""
        model STRING: {MODEL.comment}
        baseline_model STRING: The model whose attribution is subtracted. Empty where none is.
        slice STRING: {SLICE.comment}
        target STRING: What the tree predicts: auc (the normalized attribution, or its difference to that of the
            baseline), cross_entropy or gini (losses, less is better).
        {_NODE_ID}
    """),
    values=columns(_NODE + _estimates("node", "the root")),
)

ATTRIBUTION_SLICES = Table(
    name="attribution_slices",
    job="attribution",
    comment="For each model and slice: the conjunctions of up to three conditions that lack most attribution, each at "
    "least a quarter more per row than any shorter one of its conditions. Adjoining intervals of a number are joined. "
    "Slices may overlap, unlike the leaves of a tree.",
    key=columns(f"""
        {MODEL}
        {SLICE}
        rank INT: The place by score among those of the model and slice, 1 is where most is lost.
    """),
    values=columns(
        """
        score DOUBLE: Size times loss, of the rows that searched: n_train x (mean of all - mean_train). Above 0 to
            n_train / 2, more is worse. Never NULL.
        """
        + _estimates("conjunction", "all rows")
    ),
)

PAIR_SEGMENTS = Table(
    name="pair_segments",
    job="attribution",
    comment="For each model and slice: the tree that finds which negatives are wrongly ordered with which positives, "
    "one row per node.",
    key=(MODEL, SLICE, *columns(_NODE_ID)),
    values=columns(
        _NODE
        + """
        negative_rule STRING: Which negatives, in words.
        positive_rule STRING: Which positives, in words.
        negative_predicate STRING: Which negatives, as a predicate of Spark SQL. Never NULL.
        positive_predicate STRING: Which positives, as a predicate of Spark SQL. Never NULL.
        n_pairs_train BIGINT: Sampled pairs of the node that grew the tree, 0 or more.
        mean_train DOUBLE: Their share of rightly ordered ones, ties half. 0 to 1. Too extreme, since the tree chose it.
            NULL without pairs.
        n_negatives_honest BIGINT: Other sampled negatives in the node, that only estimate, 0 or more.
        n_positives_honest BIGINT: Other sampled positives in the node, that only estimate, 0 or more.
        mean_honest DOUBLE: AUC of those positives against those negatives. 0 to 1, 1 is best. NULL where either is
            missing.
        mean_honest_low DOUBLE: Lower end of its interval by DeLong. 0 to 1. NULL where mean_honest is.
        mean_honest_high DOUBLE: Upper end of its interval by DeLong. 0 to 1. NULL where mean_honest is.
        p_value DOUBLE: Test of mean_honest against the AUC of all honest rows, by paired placements. 0 to 1. NULL for
            the root.
        p_adjusted DOUBLE: p_value after Benjamini-Hochberg over the leaves. 0 to 1. NULL for inner nodes.
        p_train_honest DOUBLE: Test of the AUC of the sample that grew the tree against mean_honest. 0 to 1. NULL where
            either has no variance.
        false_discovery BOOLEAN: True where p_train_honest is below 0.05: the two samples tell different stories.
        found BOOLEAN: True where p_adjusted is below 0.05, and it is no false discovery. NULL for inner nodes.
        p_chance DOUBLE: Test of mean_honest against the AUC of as many negatives and positives that are drawn at
            random from all honest rows. 0 to 1. NULL for the root.
        p_chance_adjusted DOUBLE: p_chance after Benjamini-Hochberg over the leaves. 0 to 1. NULL for inner nodes.
        confirmed BOOLEAN: True where found, and p_chance_adjusted is below 0.05, too: what to act on where nearly all
            pairs are rightly ordered. NULL for inner nodes.
        """
    ),
)

_PAIRS_OF_ROWS = """
    n_pairs DECIMAL(38,0): n_positive x n_negative.
    ordered_doubled DECIMAL(38,0): Twice the rightly ordered pairs, plus ties. 0 to 2 n_pairs.{of_all}
    auc DOUBLE: ordered_doubled / (2 n_pairs), the share of rightly ordered pairs. 0 to 1, 1 is best. NULL without
        pairs.
    auc_low DOUBLE: Lower end of the interval of auc at the configured level. 0 to 1. NULL where there is none.
    auc_high DOUBLE: Upper end of the interval of auc at the configured level. 0 to 1. NULL where there is none.
    auc_variance DOUBLE: The DeLong variance of auc, 0 or more. NULL with fewer than two rows of either {side}.
    auc_method STRING: How the interval of auc was made, as in bias_metrics. NULL where auc is.
    headroom_pairs DOUBLE: Wrongly ordered pairs, ties half. 0 or more, less is better. Never NULL.
    headroom_share DOUBLE: Their share of all wrongly ordered pairs of the slice. 0 to 1. NULL where the AUC is 1.
"""

AUC_CROSSES = Table(
    name="auc_crosses",
    job="attribution",
    comment="For each model, slice and grouping: how positives of one group are ordered with negatives of another, "
    "over all pairs.",
    key=columns(f"""
        {MODEL}
        {SLICE}
        grouping STRING: The name of the grouping in the configuration.
        positive_group STRING: The group of the positives. (null) is NULL, (other) is all but the 200 most frequent
            values.
        negative_group STRING: The group of the negatives, likewise.
    """),
    values=columns(
        """
        n_positive BIGINT: Positives in positive_group, 0 or more.
        n_negative BIGINT: Negatives in negative_group, 0 or more.
        """
        + _PAIRS_OF_ROWS.format(of_all=" Adds up to that of the whole slice.", side="group")
    ),
)

NAMED_PAIRS = Table(
    name="named_pairs",
    job="attribution",
    comment="For each model, slice and named pair: how these positives are ordered with these negatives, over all "
    "pairs.",
    key=columns(f"""
        {MODEL}
        {SLICE}
        pair STRING: The name of the pair in the configuration.
    """),
    values=columns(
        """
        negative_predicate STRING: The predicate of the negatives. Never NULL.
        positive_predicate STRING: The predicate of the positives. Never NULL.
        n_positive BIGINT: Positives that meet positive_predicate, 0 or more.
        n_negative BIGINT: Negatives that meet negative_predicate, 0 or more.
        """
        + _PAIRS_OF_ROWS.format(of_all="", side="side")
    ),
)

LOSS_BY_SEGMENT = Table(
    name="loss_by_segment",
    job="attribution",
    comment="For each model, slice and named segment: its losses, its AUC, and its share in the AUC.",
    key=columns(f"""
        {MODEL}
        {SLICE}
        segment STRING: The name of the segment in the configuration. (overall) is all rows of the slice.
    """),
    values=columns("""
        predicate STRING: The predicate of the segment. NULL for (overall).
        n_rows BIGINT: Rows of the segment that count for the model, 0 or more.
        n_positive BIGINT: Positives among n_rows, 0 or more.
        cross_entropy DOUBLE: Mean cross-entropy, natural logarithm, scores clipped to 1e-15 from 0 and 1. 0 or more, 0
            is best. NULL without rows, or where scores are no probabilities.
        cross_entropy_low DOUBLE: Lower end of its interval at the configured level. 0 or more. NULL with one row.
        cross_entropy_high DOUBLE: Upper end of its interval at the configured level. 0 or more. NULL with one row.
        gini_impurity DOUBLE: Mean of 1 - the probability of the true label. 0 to 1, 0 is best. NULL without rows, or
            where scores are no probabilities.
        gini_impurity_low DOUBLE: Lower end of its interval at the configured level. 0 to 1. NULL with one row.
        gini_impurity_high DOUBLE: Upper end of its interval at the configured level. 0 to 1. NULL with one row.
        auc DOUBLE: AUC within the segment. 0 to 1, 1 is best. NULL where a label is missing.
        auc_low DOUBLE: Lower end of the interval of auc at the configured level. 0 to 1. NULL where there is none.
        auc_high DOUBLE: Upper end of the interval of auc at the configured level. 0 to 1. NULL where there is none.
        auc_variance DOUBLE: The DeLong variance of auc, 0 or more. NULL with fewer than two rows of a label.
        auc_method STRING: How the interval of auc was made, as in bias_metrics. NULL where auc is.
        mean_normalized_attribution DOUBLE: Mean normalized attribution of its rows in the slice. 0 to 0.5, 0.5 is best.
            NULL without rows, or where the slice lacks a label.
        mean_normalized_attribution_low DOUBLE: Lower end of its interval, which counts the opposite class as sampled,
            too. 0 to 0.5. NULL with one row.
        mean_normalized_attribution_high DOUBLE: Upper end of its interval, likewise. 0 to 0.5. NULL with one row.
    """),
)


# ---- all of them

TABLES = {
    table.name: table
    for table in (
        *WINDOW_TABLES,  # those of a night that windows have, too
        TEMPLATE_SCORES,
        LABEL_BALANCE,
        TRAINING_BALANCE,
        BIAS_ALERTS,
        JACKKNIFE_STATISTICS,
        REJECTED_ROWS,
        SCORE_BLOCKS,
        *WINDOW_TABLES.values(),
        PINNED_SKEW,
        MODEL_COMPARISONS,
        COMPARISON_ALERTS,
        EXAMPLE_ATTRIBUTIONS,
        ATTRIBUTION_CORRELATIONS,
        ATTRIBUTION_SEGMENTS,
        ATTRIBUTION_SLICES,
        PAIR_SEGMENTS,
        NAMED_PAIRS,
        AUC_CROSSES,
        LOSS_BY_SEGMENT,
        BIAS_RUNS,
    )
}
"""Every table by its name."""


def tables_of(job: str) -> tuple[Table, ...]:
    """Return the tables that a job writes, the ledger left out."""
    return tuple(table for table in TABLES.values() if table.job == job)


class Masked(NamedTuple):
    """Values of a column of which some are NULL."""

    values: Any
    is_null: Flags | None = None


def to_table(table: Table, **columns: Any) -> pa.Table:
    """Return rows of a declared table, less the columns of the run, in the order of its columns.

    The values of each column are an array, a list, `Masked` values, or one value for all rows. None and NaN are NULL,
    and zeros have no sign. A column that is missing or not declared is a `ValueError`.
    """
    schema = table.arrow_schema
    if set(columns) != set(schema.names):
        raise ValueError(f"{table.name}: columns {sorted(set(columns) ^ set(schema.names))} do not fit.")
    given = {name: column if isinstance(column, Masked) else Masked(column) for name, column in columns.items()}
    n_rows = max((len(values) for values, _ in given.values() if isinstance(values, np.ndarray | list)), default=1)
    arrays = []
    for field in schema:
        values, is_null = given[field.name]
        if not isinstance(values, np.ndarray | list):
            values = [values] * n_rows
        if pa.types.is_floating(field.type):
            values = np.asarray(values, np.float64) + 0.0  # no -0.0
            is_null = np.isnan(values) if is_null is None else np.isnan(values) | is_null
        arrays.append(pa.array(values, field.type, mask=is_null))
    return pa.table(arrays, schema=schema)
