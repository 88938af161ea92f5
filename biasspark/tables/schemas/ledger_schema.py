"""What a run leaves about itself and for windows of nights; and the tables of a window."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from biasspark.tables.schemas.dsl import MODEL, SLICE, Table, columns
from biasspark.tables.schemas.score_schema import PINNED_AUC, SCORE_HISTOGRAMS, THRESHOLD_RATES, THRESHOLD_SUMMARY
from biasspark.tables.schemas.suite_schema import BIAS_METRICS, MODEL_SUMMARY, U_STATISTICS

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
