"""What a night keeps for windows of nights, and the tables of a window: those of a night, with its first night."""

from __future__ import annotations

from dataclasses import replace

from biasspark.tables.schemas.dsl import MODEL, SLICE, Table, columns
from biasspark.tables.schemas.score_schema import PINNED_AUC, SCORE_HISTOGRAMS, THRESHOLD_RATES, THRESHOLD_SUMMARY
from biasspark.tables.schemas.suite_schema import BIAS_METRICS, MODEL_SUMMARY, U_STATISTICS

JOB = "window_metrics"

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
    return replace(
        table,
        name=f"window_{table.name}",
        job=JOB,
        comment=comment,
        key=(WINDOW_START, *table.key),
        values=(N_NIGHTS, *table.values),
    )


WINDOW_TABLES = {
    table: _over_window(table)
    for table in (
        U_STATISTICS,
        BIAS_METRICS,
        MODEL_SUMMARY,
        PINNED_AUC,
        THRESHOLD_RATES,
        THRESHOLD_SUMMARY,
        SCORE_HISTOGRAMS,
    )
}
"""By the table of a night, that of a window."""
