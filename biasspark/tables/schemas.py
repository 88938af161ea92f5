"""The tables that a run publishes, declared once: names, types, keys, and what every column means.

Each declaration is the contract that SQL relies on: columns may be added, none is renamed. Whatever writes, checks,
documents or reads a table takes its columns from here. A comment says what a value is, its range, which end is bad, and
what NULL means; it is what a reader sees in the catalog. It has at most 255 characters, which is what metastores keep,
and no semicolon, which would end a statement.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from biasspark.columns import SUMMARISED_AUCS, SUMMARISED_GAPS

# Spark parses DDL in a JVM; a table is declared without one.
_TYPES: dict[str, DataType] = {
    "ARRAY<STRING>": ArrayType(StringType()),
    "BIGINT": LongType(),
    "BOOLEAN": BooleanType(),
    "DATE": DateType(),
    "DECIMAL(38,0)": DecimalType(38, 0),
    "DOUBLE": DoubleType(),
    "MAP<STRING,BIGINT>": MapType(StringType(), LongType()),
    "STRING": StringType(),
    "TIMESTAMP": TimestampType(),
}


@dataclass(frozen=True)
class Column:
    """One column: its name, its type as Spark SQL writes it, and what it means."""

    name: str
    type: str
    comment: str

    @property
    def field(self) -> StructField:
        """The column as a nullable Spark field with its comment."""
        return StructField(self.name, _TYPES[self.type], True, {"comment": self.comment})


def columns(declarations: str) -> tuple[Column, ...]:
    """Read columns from lines of ``name TYPE: comment``; what does not begin so continues the line above."""
    found: list[Column] = []
    for line in filter(None, map(str.strip, declarations.splitlines())):
        if declared := re.fullmatch(r"(\w+) ([A-Z][A-Z0-9(),<>]+): (.+)", line):
            found.append(Column(*declared.groups()))
        else:
            begun = found.pop()
            found.append(Column(begun.name, begun.type, f"{begun.comment} {line}"))
    return tuple(found)


RUN_DATE, CORPUS, RUN_ID = columns("""
    run_date DATE: The night that the run is for, as given to the job. A partition of the table.
    corpus STRING: The name of the corpus in the configuration.
    run_id STRING: The attempt that wrote the row, new for every attempt. A partition of the table. The row counts once
        bias_runs has the run.
""")


@dataclass(frozen=True)
class Table:
    """One published table.

    Parameters
    ----------
    name : str
        Its name in the folder or the catalog.
    job : str
        The job that writes it; its views show the latest published run of that job.
    comment : str
        What a row is.
    key : tuple of Column
        What tells rows of one run apart, after ``run_date`` and ``corpus``.
    values : tuple of Column
        The other columns.
    unique : bool
        Whether the key tells every two rows apart.
    """

    name: str
    job: str
    comment: str
    key: tuple[Column, ...]
    values: tuple[Column, ...]
    unique: bool = True

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
    def schema(self) -> StructType:
        """All columns as a Spark schema, comments included."""
        return StructType([column.field for column in self.columns])


_MODEL, _SLICE, _IDENTITY, _CROSSED = columns("""
    model STRING: The name of the model in the configuration. Higher scores mean more likely positive.
    slice STRING: The name of the slice, rows of the corpus that are measured on their own. all is every row.
    identity STRING: The identity: a column, column=value, a term or a group of terms, a predicate, or a & b for the
        rows in both.
    crossed BOOLEAN: True for a crossed pair of identities, which summaries over identities leave out.
""")


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
    ends = ("-0.5", "0.5") if name in SUMMARISED_GAPS else ("0", "1")
    return f"{name} DOUBLE: {_SUITE[name]}{_interval(name, *ends)}{_wording(name)}"


U_STATISTICS = Table(
    name="u_statistics",
    job="bias_metrics",
    comment="For every identity the Mann-Whitney U of its six pairs of cells, exact: what all metrics follow from.",
    key=(
        _MODEL,
        _SLICE,
        *columns(f"""
            identity STRING: {_IDENTITY.comment} (overall) stands for the whole slice.
            low_cell STRING: The cell that should score lower: subgroup_ or background_ and then negative or positive,
                or negative for (overall).
            high_cell STRING: The cell that should score higher: subgroup_ or background_ and then negative or positive,
                or positive for (overall).
        """),
    ),
    values=(
        _CROSSED,
        *columns("""
            n_low BIGINT: Rows of the low cell, 0 or more.
            n_high BIGINT: Rows of the high cell, 0 or more.
            u_doubled DECIMAL(38,0): Twice U, a whole number: 2 x the pairs with the score of the high cell above that
                of the low cell, plus the ties. 0 to 2 x n_low x n_high.
            low_square_sum DECIMAL(38,0): Sum over the rows of the low cell of the square of (2 x the rows of the high
                cell that score above it, plus ties). The DeLong variance needs it.
            high_square_sum DECIMAL(38,0): Sum over the rows of the high cell of the square of (2 x the rows of the low
                cell that score below it, plus ties). The DeLong variance needs it.
            auc DOUBLE: u_doubled / 2 / n_low / n_high: how often the high cell scores above the low one, ties half. 0
                to 1. NULL where a cell is empty.
            auc_variance DOUBLE: The DeLong variance of auc, 0 or more. NULL where a cell has fewer than two rows.
        """),
    ),
)

BIAS_METRICS = Table(
    name="bias_metrics",
    job="bias_metrics",
    comment="For each model, slice and identity: how well the model ranks the rows of the identity against all others.",
    key=(_MODEL, _SLICE, _IDENTITY),
    values=(
        _CROSSED,
        *columns("""
            n_subgroup_negative BIGINT: Rows in the identity with a negative label and a score, 0 or more.
            n_subgroup_positive BIGINT: Rows in the identity with a positive label and a score, 0 or more.
            n_background_negative BIGINT: Rows known to be outside the identity with a negative label and a score.
            n_background_positive BIGINT: Rows known to be outside the identity with a positive label and a score.
            subgroup_positive_rate DOUBLE: Positives among the rows in the identity, 0 to 1. NULL where it has no rows.
            background_positive_rate DOUBLE: Positives among the rows of the background, 0 to 1. NULL where it has no
                rows.
        """),
        *columns("\n".join(map(_measure, _SUITE))),
    ),
)


def _sum_up_auc(name: str) -> str:
    """Declare the aggregates over identities of one AUC of the suite."""
    null = "NULL where no identity has a value."
    return f"""
        {name}_min DOUBLE: The lowest {name} of an identity, the worst. 0 to 1. {null}
        {name}_min_identity STRING: The identity with the lowest {name}, of equals the first by name. {null}
        {name}_max DOUBLE: The highest {name} of an identity. 0 to 1. {null}
        {name}_power_mean DOUBLE: Generalised mean of {name} over identities with power -5, in which the worst weigh
            most. 0 to 1, 1 is best, 0 where one of them is 0. {null}
    """


def _sum_up_gap(name: str) -> str:
    """Declare the aggregates over identities of one gap of the suite."""
    null = "NULL where no identity has a value."
    return f"""
        {name}_max_abs DOUBLE: The largest absolute {name} of an identity, the worst. 0 to 0.5. {null}
        {name}_max_abs_identity STRING: The identity with the largest absolute {name}, of equals the first by name.
            {null}
    """


MODEL_SUMMARY = Table(
    name="model_summary",
    job="bias_metrics",
    comment="For each model and slice: the overall AUC, and the suite summed up over identities without crossed pairs.",
    key=(_MODEL, _SLICE),
    values=(
        *columns(f"""
            n_negative BIGINT: Rows of the slice with a negative label and a score, 0 or more.
            n_positive BIGINT: Rows of the slice with a positive label and a score, 0 or more.
            auc DOUBLE: How often a positive of the slice scores above a negative, ties half. 0 to 1, 1 is best, 0.5 is
                chance. NULL without positives or negatives, see auc_reason.
            {_interval("auc", "0", "1")}
            auc_variance DOUBLE: The DeLong variance of auc, 0 or more. NULL with fewer than two rows of a label.
            {_wording("auc")}
        """),
        *columns("\n".join((*map(_sum_up_auc, SUMMARISED_AUCS), *map(_sum_up_gap, SUMMARISED_GAPS)))),
        *columns("""
            n_identities_undefined BIGINT: Identities that lack at least one of the five metrics, and are left out of
                its aggregates. 0 is best.
            competition_score DOUBLE: The score of the public competition on unintended bias: a quarter each of auc and
                of the power means of subgroup_auc, bpsn_auc and bnsp_auc. 0 to 1, 1 is best. NULL where a part is NULL.
            pinned_auc_equality_difference DOUBLE: Sum over identities of |auc - pinned AUC|, 0 or more, 0 is best. The
                authors of pinned AUC advise against it: it moves with the class balance. Prefer the five metrics. NULL
                where no identity has one.
        """),
    ),
)

REJECTED_ROWS = Table(
    name="rejected_rows",
    job="bias_metrics",
    comment="Rows that a run did not use, and why, up to a number a reason. bias_runs counts them all. Holds no text.",
    key=columns("""
        row_id STRING: The id of the row in the corpus. NULL where it has none.
        model STRING: The model for which the row is rejected. NULL where it is for all.
        reason STRING: The first that applies: null_id, duplicate_id, null_label, label_out_of_range, null_score,
            score_not_numeric, nan_score, infinite_score. With annotation_out_of_range the row stays, an identity
            unknown.
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
        status STRING: published, or accepted where a person has accepted what a gate refused.
        n_rows BIGINT: Rows read from the corpus.
        n_rejected BIGINT: Rows rejected for all models.
        rejects MAP<STRING,BIGINT>: How often each reason was given, complete. A score counts for each model it lacks.
        warnings ARRAY<STRING>: What a reader of the numbers should know, one sentence each. None is best.
        config STRING: The configuration as JSON, defaults filled in, values of options redacted.
        config_hash STRING: SHA-256 of config. Runs with the same hash measured the same thing in the same way.
        code_version STRING: The version of biasspark.
        spark_version STRING: The version of Spark.
        started_at TIMESTAMP: When the run started.
        published_at TIMESTAMP: When the run was published, later than every earlier run of the same run_date, corpus
            and job.
    """),
)

TABLES = {table.name: table for table in (U_STATISTICS, BIAS_METRICS, MODEL_SUMMARY, REJECTED_ROWS, BIAS_RUNS)}
"""Every table by its name."""
