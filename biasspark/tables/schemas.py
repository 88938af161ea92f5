"""The published tables: names, types, keys, and the meaning of every column.

These declarations are the contract that SQL relies on: columns may be added, none is renamed. Code that writes, checks,
documents or reads a table takes its columns from here. A comment says what a value is, its range, which end is bad, and
what NULL means. The catalog shows it. It has at most 255 characters, which is what metastores keep, and no semicolon,
which would end a statement.
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
    """One column: its name, its type as Spark SQL writes it, and its meaning."""

    name: str
    type: str
    comment: str

    def __str__(self) -> str:
        return f"{self.name} {self.type}: {self.comment}"

    @property
    def arrow_type(self) -> pa.DataType:
        """The type in Arrow."""
        return ARROW_TYPES[self.type]


def columns(declarations: str) -> tuple[Column, ...]:
    """Parse columns from lines ``name TYPE: comment``, the form of ``str(column)``. Other lines continue a comment."""
    declared: list[Column] = []
    for line in filter(None, map(str.strip, declarations.splitlines())):
        if match := re.fullmatch(r"(\w+) ([A-Z][A-Z0-9(),<>]+): (.+)", line):
            declared.append(Column(*match.groups()))
        else:
            last = declared.pop()
            declared.append(replace(last, comment=f"{last.comment} {line}"))
    return tuple(declared)


RUN_DATE, CORPUS, RUN_ID = columns("""
    run_date DATE: The run date, as given to the job. A partition of the table.
    corpus STRING: The name of the corpus in the configuration.
    run_id STRING: The run that wrote the row, new for every attempt. A partition of the table. The row counts once
        bias_runs has the run.
""")


@dataclass(frozen=True)
class Table:
    """One published table. Its views show the latest published run of its ``job``.

    ``comment`` says what a row is. ``key`` identifies a row within a run, next to ``run_date`` and ``corpus``; only
    where the table is ``unique`` no two rows share it. A ``per_row`` table has rows for each row of the corpus, and so
    takes more than one file.
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
        """The names of the columns that a stage computes: all but run_date, corpus and run_id."""
        return self.names[2:-1]

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The names of the key within one run."""
        return tuple(column.name for column in self.key)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns that a stage computes: all but run_date, corpus and run_id."""
        return pa.schema([(column.name, column.arrow_type) for column in self.columns[2:-1]])

    @property
    def full_arrow_schema(self) -> pa.Schema:
        """All columns."""
        return pa.schema([(column.name, column.arrow_type) for column in self.columns])


TABLES: dict[str, Table] = {}
"""Every table by its name, in the order of their declarations."""


def _declare(text: str) -> Table:
    """Declare a table: a line ``TABLE name BY job``, the comment, the columns after KEY, and those after VALUES."""
    head, key, values = re.split(r"^ *(?:KEY|VALUES)\b", text, flags=re.MULTILINE)
    title, _, comment = head.strip().partition("\n")
    parts = re.fullmatch(r"TABLE (\w+) BY (.+?)( PER ROW)?( NOT UNIQUE)?", title)
    assert parts is not None  # as all declarations below
    name, job, per_row, repeats = parts.groups()
    comment = " ".join(comment.split())
    TABLES[name] = Table(name, job, comment, columns(key), columns(values), not repeats, bool(per_row))
    return TABLES[name]


MODEL, SLICE, IDENTITY, CROSSED = columns("""
    model STRING: The name of the model in the configuration. Higher scores mean more likely positive.
    slice STRING: The name of the slice, rows of the corpus that are measured on their own. all is every row.
    identity STRING: The identity: a column, column=value, a term or a group of terms, a predicate, or a & b for the
        rows in both.
    crossed BOOLEAN: True for a crossed pair of identities, which summaries over identities leave out.
""")
_MODEL_SLICE = f"{MODEL}\n{SLICE}"
_MODEL_SLICE_IDENTITY = f"{_MODEL_SLICE}\n{IDENTITY}"
_WITHHELD = """
    reason STRING: withheld where the rows are fewer than [privacy] min_group_rows. All numbers of the row are NULL
        then. NULL elsewhere.
"""


def _interval(name: str, interval: str, rest: str) -> str:
    return f"""
        {name}_low DOUBLE: Lower end of {interval}. {rest}
        {name}_high DOUBLE: Upper end of {interval}. {rest}
    """


# ---- the suite

_LEVEL = "at the configured level, 0.95 unless given"


def _describe_value(name: str) -> str:
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
"""The reasons that the two cells of each value give."""

_SUITE = {
    "subgroup_auc": """AUC within the subgroup: how often a positive of the identity scores above a negative of it, ties
        half. 0 to 1, 1 is best, 0.5 is chance. Low: the identity is ranked badly.""",
    "bpsn_auc": """Background positive, subgroup negative AUC: how often a positive of the background scores above a
        negative of the identity, ties half. 0 to 1, 1 is best. Low: false positives on the identity.""",
    "bnsp_auc": """Background negative, subgroup positive AUC: how often a positive of the identity scores above a
        negative of the background, ties half. 0 to 1, 1 is best. Low: false negatives on the identity.""",
    "background_auc": """AUC within the background, the rows known to be outside the identity: how often a positive
        scores above a negative, ties half. 0 to 1, 1 is best. Compare subgroup_auc with it.""",
    "negative_aeg": """Negative average equality gap: how often a negative of the identity scores above a negative of
        the background, ties half, less 1/2. -0.5 to 0.5, 0 is best. Above 0: scored higher, toward false positives.""",
    "positive_aeg": """Positive average equality gap: how often a positive of the identity scores above a positive of
        the background, ties half, less 1/2. -0.5 to 0.5, 0 is best. Below 0: scored lower, toward false negatives.""",
}


def _measure(name: str) -> str:
    ends = "-0.5 to 0.5" if name in SUMMARIZED_GAPS else "0 to 1"
    return f"""
        {name} DOUBLE: {_SUITE[name]} NULL where a cell is empty.
        {_interval(name, f"the interval of {name} {_LEVEL}", f"{ends}. NULL where there is none, see {name}_method.")}
        {_describe_value(name)}
    """


_CELLS = f"""
    {_MODEL_SLICE}
    identity STRING: {IDENTITY.comment} (overall) stands for the whole slice.
    low_cell STRING: The cell that should score lower: subgroup_ or background_ and then negative or positive, or
        negative for (overall).
    high_cell STRING: The cell that should score higher: subgroup_ or background_ and then negative or positive, or
        positive for (overall).
"""
_U = """
    n_low BIGINT: Rows of the low cell, 0 or more.
    n_high BIGINT: Rows of the high cell, 0 or more.
    u_doubled DECIMAL(38,0): Twice U, a whole number: 2 x the pairs with the score of the high cell above that of the
        low cell, plus the ties. 0 to 2 x n_low x n_high.
"""

U_STATISTICS = _declare(f"""
    TABLE u_statistics BY bias_metrics
    For every identity the Mann-Whitney U of its six pairs of cells, from which all metrics follow.
    KEY {_CELLS}
    VALUES {CROSSED}
    {_U}
    low_square_sum DECIMAL(38,0): Sum over the rows of the low cell of the square of (2 x the rows of the high cell that
        score above it, plus ties). The DeLong variance needs it.
    high_square_sum DECIMAL(38,0): Sum over the rows of the high cell of the square of (2 x the rows of the low cell
        that score below it, plus ties). The DeLong variance needs it.
    auc DOUBLE: u_doubled / 2 / n_low / n_high: how often the high cell scores above the low one, ties half. 0 to 1.
        NULL where a cell is empty.
    auc_variance DOUBLE: The DeLong variance of auc, 0 or more. NULL where a cell has fewer than two rows.
    reason STRING: Why auc is NULL: no_ and the name of an empty cell, below_minimum_rows, withheld. If withheld, all
        counts are NULL, too. NULL where auc has a value.
""")

BIAS_METRICS = _declare(f"""
    TABLE bias_metrics BY bias_metrics
    For each model, slice and identity: how well the model ranks the rows of the identity against all others.
    KEY {_MODEL_SLICE_IDENTITY}
    VALUES {CROSSED}
    subgroup_size BIGINT: Rows in the identity with a label and a score, 0 or more.
    n_subgroup_negative BIGINT: Rows in the identity with a negative label and a score, 0 or more.
    n_subgroup_positive BIGINT: Rows in the identity with a positive label and a score, 0 or more.
    n_background_negative BIGINT: Rows known to be outside the identity with a negative label and a score.
    n_background_positive BIGINT: Rows known to be outside the identity with a positive label and a score.
    subgroup_positive_rate DOUBLE: Positives among the rows in the identity, 0 to 1. NULL where it has no rows.
    background_positive_rate DOUBLE: Positives among the rows of the background, 0 to 1. NULL where it has no rows.
    {"".join(map(_measure, _SUITE))}
    bias STRING: The bias that the intervals show: {", ".join(BIASES)}. NULL where no metric has a value.
    bias_size STRING: large where the subgroup, BPSN or BNSP AUC is below the background AUC by 0.05 or more, with
        evidence. small where only the gaps show the bias. NULL where bias is no_evidence or NULL.
""")

_NO_VALUE = "NULL where no identity has a value."


def _summarize_auc(name: str) -> str:
    return f"""
        {name}_min DOUBLE: The lowest {name} of an identity, the worst. 0 to 1. {_NO_VALUE}
        {name}_min_identity STRING: The identity with the lowest {name}, the first by name if several are equal.
            {_NO_VALUE}
        {name}_max DOUBLE: The highest {name} of an identity. 0 to 1. {_NO_VALUE}
        {name}_power_mean DOUBLE: Generalised mean of {name} over identities with power -5, in which the worst weigh
            most. 0 to 1, 1 is best, 0 if one of them is 0. {_NO_VALUE}
    """


def _summarize_gap(name: str) -> str:
    return f"""
        {name}_max_abs DOUBLE: The largest absolute {name} of an identity, the worst. 0 to 0.5. {_NO_VALUE}
        {name}_max_abs_identity STRING: The identity with the largest absolute {name}, the first by name if several are
            equal. {_NO_VALUE}
    """


MODEL_SUMMARY = _declare(f"""
    TABLE model_summary BY bias_metrics
    For each model and slice: the overall AUC, and the suite summarized over identities without crossed pairs.
    KEY {_MODEL_SLICE}
    VALUES
    n_negative BIGINT: Rows of the slice with a negative label and a score, 0 or more.
    n_positive BIGINT: Rows of the slice with a positive label and a score, 0 or more.
    auc DOUBLE: How often a positive of the slice scores above a negative, ties half. 0 to 1, 1 is best, 0.5 is chance.
        NULL without positives or negatives, see auc_reason.
    {_interval("auc", f"the interval of auc {_LEVEL}", "0 to 1. NULL where there is none, see auc_method.")}
    auc_variance DOUBLE: The DeLong variance of auc, 0 or more. NULL with fewer than two rows of a label.
    {_describe_value("auc")}
    {"".join((*map(_summarize_auc, SUMMARIZED_AUCS), *map(_summarize_gap, SUMMARIZED_GAPS)))}
    n_identities_undefined BIGINT: Identities that lack at least one of the five metrics, and are left out of its
        aggregates. 0 is best.
    competition_score DOUBLE: The score of the public competition on unintended bias: a quarter each of auc and of the
        power means of subgroup_auc, bpsn_auc and bnsp_auc. 0 to 1, 1 is best. NULL where a part is NULL.
    pinned_auc_equality_difference DOUBLE: Sum over identities of |AUC - pinned AUC|, both of the rows on which the
        identity is known, 0 or more, 0 is best. The authors of pinned AUC advise against it: it moves with the class
        balance. NULL where no identity has one.
""")


# ---- optional metrics of scores and labels

_ADVICE = "Its authors advise against it: it moves with the class balance."
_WEIGHT = "0 to 1, the four weights add up to 1. NULL where pinned_auc is."
_TERM = "0 to 1. NULL where a cell is empty: then its weight is 0."

PINNED_AUC = _declare(f"""
    TABLE pinned_auc BY bias_metrics
    Pinned AUC. Its authors advise against it: it moves with the class balance where the model does not. Prefer
    bias_metrics.
    KEY {_MODEL_SLICE_IDENTITY}
    VALUES {CROSSED}
    pinned_auc DOUBLE: AUC of the identity and equally many rows drawn from all, in the limit of many draws. 0 to 1, 1
        is best. {_ADVICE} NULL with a reason.
    background_weight DOUBLE: The weight of background_auc in pinned_auc. {_WEIGHT}
    subgroup_weight DOUBLE: The weight of subgroup_auc in pinned_auc. {_WEIGHT}
    bpsn_weight DOUBLE: The weight of bpsn_auc in pinned_auc. {_WEIGHT}
    bnsp_weight DOUBLE: The weight of bnsp_auc in pinned_auc. {_WEIGHT}
    background_auc DOUBLE: AUC within the background, a term of pinned_auc. {_TERM}
    subgroup_auc DOUBLE: AUC within the identity, a term of pinned_auc. {_TERM}
    bpsn_auc DOUBLE: AUC of background positives and subgroup negatives, a term of pinned_auc. {_TERM}
    bnsp_auc DOUBLE: AUC of background negatives and subgroup positives, a term of pinned_auc. {_TERM}
    overall_auc DOUBLE: AUC of the whole slice. 0 to 1. NULL where a label is missing.
    known_auc DOUBLE: AUC of the rows whose membership in the identity is known, which pinned_auc is compared with.
        overall_auc where all are known. 0 to 1. NULL where a label is missing.
    sampled_mean DOUBLE: Mean of the pinned AUC over the sampled trials that have one, as it was published. 0 to 1. NULL
        without trials, or where none has both labels.
    sampled_sd DOUBLE: Standard deviation of the pinned AUC over the sampled trials, 0 or more. NULL with fewer than two
        trials.
    trials INT: Sampled trials, 0 or more, as configured.
    reason STRING: Why pinned_auc is NULL: no_subgroup_negatives, no_subgroup_positives, no_background_negatives,
        no_background_positives, below_minimum_rows, withheld. NULL where it has a value.
""")

_RATES = {
    "tpr": ("True positive rate: decided positive among the positives", "positives"),
    "fpr": ("False positive rate: decided positive among the negatives", "negatives"),
    "tnr": ("True negative rate: decided negative among the negatives", "negatives"),
    "fnr": ("False negative rate: decided negative among the positives", "positives"),
    "precision": ("Positives among those decided positive", "rows decided positive"),
    "selection_rate": ("Rows decided positive among all", "rows"),
}


def _rate(name: str) -> str:
    what, over = _RATES[name]
    null = f"NULL where either side has no {over}."
    return f"""
        {name} DOUBLE: {what}, of the identity. 0 to 1. NULL where it has no {over}.
        background_{name} DOUBLE: {what}, of the background. 0 to 1. NULL where it has no {over}.
        {name}_gap DOUBLE: {name} - background_{name}. -1 to 1, 0 is equal. {null}
        {_interval(f"{name}_gap", f"the interval of the gap {_LEVEL}, by Newcombe", f"-1 to 1. {null}")}
    """


def _decisions(prefix: str, side: str) -> str:
    return f"""
        {prefix}n_true_positive BIGINT: Positives of the {side} that are decided positive, 0 or more.
        {prefix}n_false_positive BIGINT: Negatives of the {side} that are decided positive, 0 or more.
        {prefix}n_true_negative BIGINT: Negatives of the {side} that are decided negative, 0 or more.
        {prefix}n_false_negative BIGINT: Positives of the {side} that are decided negative, 0 or more.
    """


_THRESHOLD = """
    threshold DOUBLE: A row is decided positive where its score is at or above it. A finite number, 0 to 1 for
        probabilities. Never NULL.
"""

THRESHOLD_RATES = _declare(f"""
    TABLE threshold_rates BY bias_metrics
    For each model, slice, identity and threshold: right and wrong decisions, their rates, and the gaps to the
    background.
    KEY {_MODEL_SLICE_IDENTITY}
    {_THRESHOLD}
    VALUES {CROSSED}
    {_decisions("", "identity")}
    {_decisions("background_", "background")}
    {"".join(map(_rate, RATES))}
    {_WITHHELD}
""")


def _equality_difference(kind: str, rate: str) -> str:
    return f"""
        {kind}_equality_difference DOUBLE: Sum over identities, crossed pairs left out, of the absolute difference of
            {rate} of the slice and of the identity. 0 or more, 0 is best. NULL where no identity has the rate.
    """


THRESHOLD_SUMMARY = _declare(f"""
    TABLE threshold_summary BY bias_metrics
    For each model, slice and threshold: the error rates of the slice, and how unequal they are over identities.
    KEY {_MODEL_SLICE}
    {_THRESHOLD}
    VALUES
    fpr DOUBLE: {_RATES["fpr"][0]}, of the whole slice. 0 to 1, 0 is best. NULL without negatives.
    fnr DOUBLE: {_RATES["fnr"][0]}, of the whole slice. 0 to 1, 0 is best. NULL without positives.
    {_equality_difference("false_positive", "fpr")}
    {_equality_difference("false_negative", "fnr")}
""")

SCORE_HISTOGRAMS = _declare(f"""
    TABLE score_histograms BY bias_metrics
    The distribution of the scores of each cell: exact counts in equal bins over 0 to 1, or over all scores where some
    lie outside.
    KEY {_MODEL_SLICE}
    identity STRING: {IDENTITY.comment} (overall) stands for the whole slice.
    cell STRING: subgroup_ or background_ and then negative or positive, or negative and positive for (overall).
    bin INT: The index of the bin, from 0. Bins without rows are left out.
    VALUES {CROSSED}
    bin_low DOUBLE: The lower edge of the bin, inclusive. 0 to 1, or within the extremes of the scores where some lie
        outside. Never NULL.
    bin_high DOUBLE: The upper edge of the bin, exclusive except for the last bin. 0 to 1, or within the extremes of the
        scores. Never NULL.
    n_rows BIGINT: Rows of the cell with a score in the bin, 1 or more.
""")

TEMPLATE_SCORES = _declare(f"""
    TABLE template_scores BY bias_metrics
    For each model, sentence template and identity: the mean score of its sentences. A fair model scores a template
    alike for all identities.
    KEY {MODEL}
    template STRING: The template, as the configured column has it.
    identity STRING: {IDENTITY.comment} (overall) stands for all sentences of the template.
    VALUES
    n_rows BIGINT: Rows of the template in the identity that count for the model, 1 or more. NULL where withheld.
    mean_score DOUBLE: Mean of their scores, in the range of the scores (0 to 1 for probabilities). NULL where withheld.
    sd_score DOUBLE: Standard deviation of their scores (n - 1), 0 or more. NULL with one row.
    {_WITHHELD}
""")

_BALANCE_KEY = """
    identity STRING: The identity, without crossed pairs. (overall) is all rows.
    bucket STRING: Text lengths, as 20-59. (all) is every length, also those outside all buckets and unknown ones.
"""
_BALANCE = f"""
    length_low INT: The least length in the bucket. NULL for (all).
    length_high INT: The greatest length in the bucket. NULL for (all).
    n_rows BIGINT: Rows of the identity with a label and such a length, scored or not, 0 or more.
    n_positive BIGINT: Positives among n_rows, 0 or more.
    positive_rate DOUBLE: n_positive / n_rows. 0 to 1. NULL where there are no rows.
    overall_positive_rate DOUBLE: The same for all rows in the bucket, the goal. 0 to 1. NULL where there are none.
    n_negatives_to_add BIGINT: How many negatives of the identity bring its rate down to the goal. 0 is balanced. For
        (all), the sum over the buckets, also where the rate of all lengths is below the goal. NULL where the goal is 0
        or NULL.
    {_WITHHELD}
"""

LABEL_BALANCE = _declare(f"""
    TABLE label_balance BY bias_metrics
    For each identity and bucket of text lengths: how many rows, how many positive, and how many negatives would balance
    it. In a mitigation experiment: the training corpus and its plan.
    KEY {_BALANCE_KEY}
    VALUES {_BALANCE}
""")

TRAINING_BALANCE = _declare(f"""
    TABLE training_balance BY bias_metrics
    For each model of a mitigation experiment, identity and bucket of text lengths: the balance of what the model was
    trained on, and how many rows of it were added to the corpus.
    KEY {MODEL}
    {_BALANCE_KEY}
    VALUES
    n_added BIGINT: Rows that were added to the training corpus for this model, all of them negatives, 0 or more. They
        are among n_rows. Never NULL.
    {_BALANCE}
""")

_KEPT = {
    "subgroup_auc": "AUC within the subgroup, all rows kept",
    "bpsn_auc": "AUC of background positives and subgroup negatives, all rows kept",
    "bnsp_auc": "AUC of background negatives and subgroup positives, all rows kept",
}


def _auc_over_trials(name: str) -> str:
    return f"""
        {name} DOUBLE: {_KEPT[name]}. 0 to 1, 1 is best. NULL where a cell is empty.
        {name}_sampled_mean DOUBLE: Mean of {name} over the trials. 0 to 1. Close to {name}, since the class balance
            does not move it. NULL where a cell is empty, or empty once rows are dropped.
        {name}_sampled_sd DOUBLE: Standard deviation of {name} over the trials (n - 1), 0 or more. 0 where no row that
            it ranks is dropped. NULL with one trial, or where the mean is.
    """


PINNED_SKEW = _declare(f"""
    TABLE pinned_skew BY pinned_skew
    Pinned AUC of every identity before and after a random part of one cell of one of them is dropped, next to the AUCs
    of the suite. The model is the same: what moves measures the class balance.
    KEY {_MODEL_SLICE_IDENTITY}
    cell STRING: The cell of skewed_identity from which rows are dropped: subgroup_ or background_ and then negative or
        positive.
    VALUES
    skewed_identity STRING: The identity whose cell loses rows. The rows of other identities show the effect on them.
        NULL in runs of older versions, which have it alone.
    fraction DOUBLE: The part of the cell that is dropped, as configured. 0 to 1, both excluded. Never NULL.
    n_rows BIGINT: Rows of the cell before any is dropped, 0 or more.
    n_dropped BIGINT: Rows of the cell that each trial drops: fraction x n_rows, halves rounded up.
    trials INT: Trials, each of which drops other rows, 1 or more, as configured.
    pinned_auc DOUBLE: Pinned AUC of all rows, by its closed form. 0 to 1, 1 is best. {_ADVICE} NULL where a label is
        missing.
    pinned_auc_skewed DOUBLE: Pinned AUC once rows are dropped, by its closed form with the smaller cell. 0 to 1, 1 is
        best. {_ADVICE} NULL where a label is then missing.
    pinned_auc_sampled_mean DOUBLE: Mean of the pinned AUC over the trials. 0 to 1, 1 is best. {_ADVICE} NULL where
        pinned_auc_skewed is, and for other identities.
    pinned_auc_sampled_sd DOUBLE: Standard deviation of the pinned AUC over the trials (n - 1), 0 or more. {_ADVICE}
        NULL with one trial, or where the mean is.
    {"".join(map(_auc_over_trials, SUMMARIZED_AUCS))}
""")


# ---- rejected rows, the ledger, and windows of runs

REJECTED_ROWS = _declare("""
    TABLE rejected_rows BY bias_metrics NOT UNIQUE
    Rows that a run did not use, and why, up to a number per reason. bias_runs counts all. Holds no text.
    KEY
    row_id STRING: The id of the row in the corpus. NULL where it has none.
    model STRING: The model for which the row is rejected. NULL where it is for all.
    reason STRING: The first that applies: malformed_row, null_id, duplicate_id, null_label (missing or unreadable),
        label_out_of_range, null_score, score_not_numeric, nan_score, infinite_score. With annotation_out_of_range the
        row stays, an identity unknown.
    VALUES
""")

BIAS_RUNS = _declare("""
    TABLE bias_runs BY (every job)
    The ledger: a row here publishes all rows of its run. Rows are only ever added.
    KEY
    job STRING: The job that ran, and so the tables that it wrote.
    VALUES
    status STRING: published, or accepted: by its gate, which found no rule broken, or by a person, in a row of the job
        accept_run whose accepts_run_id names the run.
    n_rows BIGINT: Rows read from the corpus.
    n_rejected BIGINT: Rows rejected for all models.
    rejects MAP<STRING,BIGINT>: How often each reason was given, complete. A score counts for each model it lacks.
    warnings ARRAY<STRING>: What a reader of the numbers should know, one sentence each. None is best.
    config STRING: The configuration as JSON, defaults filled in, values of options redacted.
    config_hash STRING: SHA-256 of config. Runs with the same hash measured the same thing in the same way.
    code_version STRING: The version of biasspark.
    spark_version STRING: The version of Spark. For the embedded engine the compatible version of Spark, and its own.
    started_at TIMESTAMP: When the run started.
    published_at TIMESTAMP: When the run was published, later than every earlier run of the same run_date, corpus and
        job.
    window_start DATE: The first date of a window that ends with run_date. NULL for a single date.
    merged_run_ids ARRAY<STRING>: The runs that a window merged, in the order of their dates. NULL for a single date.
    table_rows MAP<STRING,BIGINT>: The tables that the run wrote, with their rows. A table that is not listed belongs to
        a part that was off. NULL in runs of older versions.
    copied_from_run_id STRING: The run whose rows this run has in fewer files, the first one where a copy was copied.
        NULL for all others.
    accepts_run_id STRING: The run that a person accepts by this row. NULL for all others.
    accepted_by STRING: Who accepts it. NULL for all others.
    acceptance_note STRING: Why it is accepted, in the words of that person. NULL for all others.
""")

WINDOW_START, N_NIGHTS = columns("""
    window_start DATE: The first date of the window. run_date is its last.
    n_nights INT: Nights that were merged, 1 or more. Fewer than there are days where nights were missing, see the
        warnings in bias_runs.
""")

SCORE_BLOCKS = _declare(f"""
    TABLE score_blocks BY bias_metrics PER ROW
    The sorted scores of a run, by identity, from which windows are measured. Holds per-row scores: restrict access.
    KEY {_MODEL_SLICE}
    score_range INT: The range of scores, from 0. -1 is a description of the state, as JSON, once per model.
    part INT: The index of the block within its range, from 0.
    VALUES
    state_key STRING: A hash of what must agree for blocks to merge: label, identities, slices, rule for unknowns,
        boundaries. Only rows of one state_key merge.
    boundaries ARRAY<DOUBLE>: The boundaries between the ranges of the model, ascending. Chosen in the first run, then
        kept until a range has four times the mean rows of a range.
    block BINARY: Scores and how many rows have each, ascending, by label and membership. 4 MiB at most.
""")


_OF_NIGHTS = (U_STATISTICS, BIAS_METRICS, MODEL_SUMMARY, PINNED_AUC, THRESHOLD_RATES, THRESHOLD_SUMMARY)
WINDOW_TABLES = {
    table: Table(
        f"window_{table.name}",
        "window_metrics",
        f"A window of runs, merged: {table.comment[0].lower()}{table.comment[1:]}",
        (WINDOW_START, *table.key),
        (N_NIGHTS, *table.values),
    )
    for table in (*_OF_NIGHTS, SCORE_HISTOGRAMS)
}
"""The tables of windows, by the table of a single run."""
TABLES |= {table.name: table for table in WINDOW_TABLES.values()}


# ---- comparisons and the gate

_SIGNED = "-1 to 1, for a gap -0.5 to 0.5."

MODEL_COMPARISONS = _declare(f"""
    TABLE model_comparisons BY compare_models
    For each slice, identity and metric: by how much a model differs from a baseline on the rows that both score, and
    whether that is more than chance.
    KEY {SLICE}
    identity STRING: {IDENTITY.comment} (overall) stands for the whole slice, with the metric auc.
    metric STRING: subgroup_auc, bpsn_auc, bnsp_auc, background_auc, negative_aeg or positive_aeg, as in bias_metrics.
        auc for (overall).
    model STRING: The name of the model in the configuration.
    baseline_model STRING: The name of the model that it is compared with.
    VALUES {CROSSED}
    n_low BIGINT: Rows of the cell that should score lower (for a gap, the background), scored by both models. 0 or
        more.
    n_high BIGINT: Rows of the cell that should score higher (for a gap, the subgroup), scored by both models. 0 or
        more.
    value DOUBLE: The metric of the model, on these rows. 0 to 1, for a gap -0.5 to 0.5. NULL where a cell is empty.
    baseline_value DOUBLE: The metric of the baseline, on the same rows. 0 to 1, for a gap -0.5 to 0.5. NULL where a
        cell is empty.
    difference DOUBLE: value - baseline_value, more is better. For a gap |value| - |baseline_value|, less is better.
        {_SIGNED} NULL where a value is.
    difference_low DOUBLE: Lower end of its interval {_LEVEL}. For a gap over all signs that both intervals allow, and
        no lower than minus the largest |baseline_value| allowed. {_SIGNED} NULL where data are insufficient.
    difference_high DOUBLE: Upper end of its interval, for a gap no higher than the largest |value| that its interval
        allows. {_SIGNED} NULL where data are insufficient.
    p_value DOUBLE: Two-sided, for the hypothesis that both models are equally good. 0 to 1. For a gap the largest over
        these signs. 1 where they score these rows alike. NULL where data are insufficient.
    p_adjusted DOUBLE: p_value after Benjamini-Hochberg over the metrics and identities of the slice and the two models,
        crossed pairs by themselves. 0 to 1. NULL where data are insufficient.
    verdict STRING: better or worse, where p_adjusted is below 0.05. no_evidence, where it is not. insufficient_data,
        with fewer than 10 rows in a cell, with the jackknife fewer than 10 groups or 5 in a cell, or without variance
        of the difference.
    method STRING: How variances were made: paired_delong, from the placements of rows. jackknife, from leaving out
        groups of rows.
    n_groups INT: With the jackknife, the groups with a row in either cell. Intervals and p-values are from the t
        distribution with one degree of freedom less. 0 or more. NULL with DeLong.
""")

_METRIC = "-0.5 to 0.5 for gaps of AUCs, -1 to 1 for those of rates, else 0 to 1."
_ADJUSTED = "adjusted by Benjamini-Hochberg over the rows of the rule. 0 to 1. For a verdict on the worst identity"

_RULE = "rule STRING: The name of the rule in the configuration."
_IDENTITY_METRIC = """
    identity STRING: The identity, as in bias_metrics. (overall) is the whole slice, or the verdict on the worst
        identity of a rule that asks for it.
    metric STRING: The metric: a column of bias_metrics, auc of model_summary, or with a threshold a column of
        threshold_rates.
"""
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
    {_interval("change", "the interval of change, at the configured level", "-1 to 1. NULL where there is none.")}
    p_violation DOUBLE: How likely such a value is if the bound is kept. 0 to 1, low is evidence that it is broken. NULL
        without an interval.
    p_compliance DOUBLE: How likely such a value is if the bound is broken. 0 to 1, low is evidence that it is kept.
        NULL without an interval.
    p_violation_adjusted DOUBLE: p_violation, {_ADJUSTED} the least of its identities. NULL where p_violation is.
    p_compliance_adjusted DOUBLE: p_compliance, {_ADJUSTED} the largest of its identities. NULL where one has none.
"""
_VALUE_INTERVAL = "the interval of value, as in the table of the metric, for a rate by Wilson"

BIAS_ALERTS = _declare(f"""
    TABLE bias_alerts BY bias_metrics
    The outcome of each rule of the gate, for each model, slice and identity that it applies to. Empty without a gate.
    KEY {_RULE}
    {_MODEL_SLICE}
    {_IDENTITY_METRIC}
    VALUES
    value DOUBLE: The metric of this run. {_METRIC} NULL where it has none, and for a verdict on the worst identity.
    {_interval("value", _VALUE_INTERVAL, f"{_METRIC} NULL where there is none.")}
    bound DOUBLE: The bound of the rule, of the value or of its change, see bound_kind. -1 to 1. Never NULL.
    baseline_run_id STRING: The run that a change is measured against: the latest accepted one before that has an
        interval of the metric. NULL where there is none, for bounds of the value, and for a verdict on identities with
        different baselines.
    {_OUTCOME}
    bound_kind STRING: min, max or max_abs for the value, max_drop for the fall of an AUC or a rate since the baseline,
        max_rise for the rise of a rate or of the size of a gap since the baseline.
    baseline_value DOUBLE: The metric of the baseline. {_METRIC} NULL where there is none.
    change DOUBLE: value - baseline_value, for a gap |value| - |baseline_value|. -1 to 1. NULL where there is no
        baseline_value.
    {_EVIDENCE}
    paired BOOLEAN: True where a change is judged by leaving the same groups of ids out of both runs, false where the
        variances of both are added. NULL where no change is judged.
    threshold DOUBLE: For a rate or its gap, the threshold of its decisions. A finite number, 0 to 1 for probabilities.
        NULL for other metrics.
    {_DECIDED}
""")

JACKKNIFE_STATISTICS = _declare(f"""
    TABLE jackknife_statistics BY bias_metrics
    For each pair of cells in rules on changes: U, and U without each of 100 groups of rows, by a hash of the id. Two
    runs are paired by them. Empty without [gate] paired. Differences to u_doubled reveal single rows: restrict access.
    KEY {_CELLS}
    VALUES {CROSSED}
    {_U}
    n_low_left ARRAY<BIGINT>: By group: rows of the low cell that are not in it.
    n_high_left ARRAY<BIGINT>: By group: rows of the high cell that are not in it.
    u_doubled_left ARRAY<DECIMAL(38,0)>: By group: u_doubled of the rows that are not in it.
""")

COMPARISON_ALERTS = _declare(f"""
    TABLE comparison_alerts BY compare_models
    The outcome of each rule of the gate on a model and a baseline, for each slice and identity, on the rows that both
    score. Empty without such rules.
    KEY {_RULE}
    {MODEL}
    baseline_model STRING: The name of the model that it is compared with.
    {SLICE}
    {_IDENTITY_METRIC}
    VALUES
    value DOUBLE: The metric of the model. {_METRIC} NULL where a cell is empty, and for a verdict on the worst
        identity.
    bound DOUBLE: The bound of the rule, on the change. 0 to 1. Never NULL.
    {_OUTCOME}
    bound_kind STRING: max_drop, how far an AUC may lie below that of the baseline. max_rise, how much further from 0 a
        gap may lie.
    baseline_value DOUBLE: The metric of the baseline, on the same rows. {_METRIC} NULL where value is.
    change DOUBLE: value - baseline_value for an AUC, |value| - |baseline_value| for a gap. -1 to 1. NULL where value
        is.
    {_EVIDENCE}
    {_DECIDED}
""")


# ---- attribution: which rows, segments, slices and pairs cost a model its AUC

EXAMPLE_ATTRIBUTIONS = _declare(f"""
    TABLE example_attributions BY attribution PER ROW NOT UNIQUE
    For each model, slice and row: its share of the AUC. Half the credit of each correctly ordered pair goes to either
    of its rows.
    KEY {_MODEL_SLICE}
    row_id STRING: The id of the row, as text.
    VALUES
    label BOOLEAN: Whether the row is positive. Never NULL.
    score DOUBLE: The score of the row by the model, 0 to 1 for probabilities. Never NULL.
    n_opposite BIGINT: Rows of the slice with the other label, 0 or more.
    ordered_doubled BIGINT: Twice the opposite rows with which the row is correctly ordered, plus its ties. 0 to 2
        n_opposite.
    attribution DOUBLE: ordered_doubled / 4, half a credit for each correctly ordered pair. 0 or more, more is better.
        The sum over a slice is AUC x positives x negatives. Never NULL.
    normalized_attribution DOUBLE: attribution / n_opposite. 0 to 0.5, 0.5 is best. Its mean over the positives, as over
        the negatives, is AUC / 2. NULL where n_opposite is 0.
""")

ATTRIBUTION_CORRELATIONS = _declare(f"""
    TABLE attribution_correlations BY attribution
    For each model and slice: the correlation of the attributions of rows with their losses.
    KEY {_MODEL_SLICE}
    attribution STRING: total (the attribution of a row) or normalized (divided by its opposite rows).
    loss STRING: cross_entropy or gini, of the single row.
    VALUES
    pearson DOUBLE: Pearson correlation over all rows. -1 to 1. NULL where either does not vary, or a score is no
        probability.
    n_rows BIGINT: Rows of the slice that count for the model, 0 or more.
""")

_FALSE_DISCOVERY = """
    false_discovery BOOLEAN: True where p_train_honest is below 0.05: the two samples tell different stories.
"""
_CONFIRMED = """confirmed BOOLEAN: True where found, and p_chance_adjusted is below 0.05, too: what to act on where
    nearly all pairs are correctly ordered."""


def _estimates(what: str, whole: str) -> str:
    """Declare what is estimated of a part of the rows, by those that found it and by the others."""
    untested = "NULL where nothing is tested."
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
        p_value DOUBLE: Welch test of the honest rows in the {what} against those outside it. 0 to 1. NULL for {whole}.
        p_adjusted DOUBLE: p_value after Benjamini-Hochberg. 0 to 1. {untested}
        p_train_honest DOUBLE: Welch test of the rows that searched against the honest ones. 0 to 1. NULL with fewer
            than two of either.
        {_FALSE_DISCOVERY}
        found BOOLEAN: True where p_adjusted is below 0.05, and it is no false discovery. {untested}
        loss_share DOUBLE: Share of all wrongly ordered pairs that falls on the rows of the {what}, half of each pair on
            each of its rows. 0 to 1, less is better. NULL where the AUC is 1.
        p_chance DOUBLE: Test of mean_honest against the mean of as many rows that are drawn at random from all honest
            ones. 0 to 1. NULL for {whole}.
        p_chance_adjusted DOUBLE: p_chance after Benjamini-Hochberg. 0 to 1. {untested}
        {_CONFIRMED} {untested}
    """


_NODE_ID = "node_id INT: The node: 1 is the root, and 2k and 2k + 1 are what node k is split into."

_NODE = """
    parent_id INT: The node that was split into this one. NULL for the root.
    depth INT: Splits above the node, 0 for the root.
    is_leaf BOOLEAN: True where the node is not split. The leaves are the segments.
"""

ATTRIBUTION_SEGMENTS = _declare(f"""
    TABLE attribution_segments BY attribution
    For each model and slice: the tree that finds where a model gains and loses its AUC, one row per node.
    KEY {MODEL}
    baseline_model STRING: The model whose attribution is subtracted. Empty where none is.
    {SLICE}
    target STRING: What the tree predicts: auc (the normalized attribution, or its difference to that of the baseline),
        cross_entropy or gini (losses, less is better).
    {_NODE_ID}
    VALUES {_NODE}
    {_estimates("node", "the root")}
""")

ATTRIBUTION_SLICES = _declare(f"""
    TABLE attribution_slices BY attribution
    For each model and slice: the conjunctions of up to three conditions that lack most attribution, each at least a
    quarter more per row than any shorter one of its conditions. Adjoining intervals of a number are joined. Slices may
    overlap, unlike the leaves of a tree.
    KEY {_MODEL_SLICE}
    rank INT: The rank by score among those of the model and slice, 1 is where most is lost.
    VALUES
    score DOUBLE: Size times loss, of the rows that searched: n_train x (mean of all - mean_train). Above 0 to n_train /
        2, more is worse. Never NULL.
    {_estimates("conjunction", "all rows")}
""")

PAIR_SEGMENTS = _declare(f"""
    TABLE pair_segments BY attribution
    For each model and slice: the tree that finds which negatives are wrongly ordered with which positives, one row per
    node.
    KEY {_MODEL_SLICE}
    {_NODE_ID}
    VALUES {_NODE}
    negative_rule STRING: Which negatives, in words.
    positive_rule STRING: Which positives, in words.
    negative_predicate STRING: Which negatives, as a predicate of Spark SQL. Never NULL.
    positive_predicate STRING: Which positives, as a predicate of Spark SQL. Never NULL.
    n_pairs_train BIGINT: Sampled pairs of the node that grew the tree, 0 or more.
    mean_train DOUBLE: Their share of correctly ordered ones, ties half. 0 to 1. Too extreme, since the tree chose it.
        NULL without pairs.
    n_negatives_honest BIGINT: Other sampled negatives in the node, that only estimate, 0 or more.
    n_positives_honest BIGINT: Other sampled positives in the node, that only estimate, 0 or more.
    mean_honest DOUBLE: AUC of those positives against those negatives. 0 to 1, 1 is best. NULL where either is missing.
    {_interval("mean_honest", "its interval by DeLong", "0 to 1. NULL where mean_honest is.")}
    p_value DOUBLE: Test of mean_honest against the AUC of all honest rows, by paired placements. 0 to 1. NULL for the
        root.
    p_adjusted DOUBLE: p_value after Benjamini-Hochberg over the leaves. 0 to 1. NULL for inner nodes.
    p_train_honest DOUBLE: Test of the AUC of the sample that grew the tree against mean_honest. 0 to 1. NULL where
        either has no variance.
    {_FALSE_DISCOVERY}
    found BOOLEAN: True where p_adjusted is below 0.05, and it is no false discovery. NULL for inner nodes.
    p_chance DOUBLE: Test of mean_honest against the AUC of as many negatives and positives that are drawn at random
        from all honest rows. 0 to 1. NULL for the root.
    p_chance_adjusted DOUBLE: p_chance after Benjamini-Hochberg over the leaves. 0 to 1. NULL for inner nodes.
    {_CONFIRMED} NULL for inner nodes.
""")


def _auc_interval(side: str) -> str:
    return f"""
        {_interval("auc", "the interval of auc at the configured level", "0 to 1. NULL where there is none.")}
        auc_variance DOUBLE: The DeLong variance of auc, 0 or more. NULL with fewer than two rows of {side}.
        auc_method STRING: How the interval of auc was made, as in bias_metrics. NULL where auc is.
    """


def _pairs_of_rows(of_all: str, side: str) -> str:
    return f"""
        n_pairs DECIMAL(38,0): n_positive x n_negative.
        ordered_doubled DECIMAL(38,0): Twice the correctly ordered pairs, plus ties. 0 to 2 n_pairs.{of_all}
        auc DOUBLE: ordered_doubled / (2 n_pairs), the share of correctly ordered pairs. 0 to 1, 1 is best. NULL without
            pairs.
        {_auc_interval(f"either {side}")}
        headroom_pairs DOUBLE: Wrongly ordered pairs, ties half. 0 or more, less is better. Never NULL.
        headroom_share DOUBLE: Their share of all wrongly ordered pairs of the slice. 0 to 1. NULL where the AUC is 1.
    """


AUC_CROSSES = _declare(f"""
    TABLE auc_crosses BY attribution
    For each model, slice and grouping: how positives of one group are ordered with negatives of another, over all
    pairs.
    KEY {_MODEL_SLICE}
    grouping STRING: The name of the grouping in the configuration.
    positive_group STRING: The group of the positives. (null) is NULL, (other) is all but the 200 most frequent values.
    negative_group STRING: The group of the negatives, likewise.
    VALUES
    n_positive BIGINT: Positives in positive_group, 0 or more.
    n_negative BIGINT: Negatives in negative_group, 0 or more.
    {_pairs_of_rows(" Adds up to that of the whole slice.", "group")}
""")

NAMED_PAIRS = _declare(f"""
    TABLE named_pairs BY attribution
    For each model, slice and named pair: how these positives are ordered with these negatives, over all pairs.
    KEY {_MODEL_SLICE}
    pair STRING: The name of the pair in the configuration.
    VALUES
    negative_predicate STRING: The predicate of the negatives. Never NULL.
    positive_predicate STRING: The predicate of the positives. Never NULL.
    n_positive BIGINT: Positives that meet positive_predicate, 0 or more.
    n_negative BIGINT: Negatives that meet negative_predicate, 0 or more.
    {_pairs_of_rows("", "side")}
""")

_ONE_ROW = "NULL with one row."

LOSS_BY_SEGMENT = _declare(f"""
    TABLE loss_by_segment BY attribution
    For each model, slice and named segment: its losses, its AUC, and its share in the AUC.
    KEY {_MODEL_SLICE}
    segment STRING: The name of the segment in the configuration. (overall) is all rows of the slice.
    VALUES
    predicate STRING: The predicate of the segment. NULL for (overall).
    n_rows BIGINT: Rows of the segment that count for the model, 0 or more.
    n_positive BIGINT: Positives among n_rows, 0 or more.
    cross_entropy DOUBLE: Mean cross-entropy, natural logarithm, scores clipped to 1e-15 from 0 and 1. 0 or more, 0 is
        best. NULL without rows, or where scores are no probabilities.
    {_interval("cross_entropy", "its interval at the configured level", f"0 or more. {_ONE_ROW}")}
    gini_impurity DOUBLE: Mean of 1 - the probability of the true label. 0 to 1, 0 is best. NULL without rows, or where
        scores are no probabilities.
    {_interval("gini_impurity", "its interval at the configured level", f"0 to 1. {_ONE_ROW}")}
    auc DOUBLE: AUC within the segment. 0 to 1, 1 is best. NULL where a label is missing.
    {_auc_interval("a label")}
    mean_normalized_attribution DOUBLE: Mean normalized attribution of its rows in the slice. 0 to 0.5, 0.5 is best.
        NULL without rows, or where the slice lacks a label.
    {
    _interval(
        "mean_normalized_attribution",
        "its interval, which counts the opposite class as sampled, too",
        f"0 to 0.5. {_ONE_ROW}",
    )
}
""")


# ---- using tables


def tables_of(job: str) -> tuple[Table, ...]:
    """Return the tables that a job writes, except the ledger."""
    return tuple(table for table in TABLES.values() if table.job == job)


class Masked(NamedTuple):
    """Values of a column, some of which are NULL."""

    values: Any
    is_null: Flags | None = None


def to_table(table: Table, **columns: Any) -> pa.Table:
    """Build the rows of a declared table, without run_date, corpus and run_id.

    Each column is an array, a list, `Masked` values, or one value for all rows. None and NaN become NULL, and -0.0
    becomes 0.0. Raises `ValueError` if a column is missing or not declared.
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
