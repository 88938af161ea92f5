"""The tables that a run publishes, declared once: names, types, keys, and what every column means.

Each declaration is the contract that SQL relies on: columns may be added, none is renamed. Whatever writes, checks,
documents or reads a table takes its columns from here. A comment says what a value is, its range, which end is bad, and
what NULL means; it is what a reader sees in the catalog. It has at most 255 characters, which is what metastores keep,
and no semicolon, which would end a statement.
"""

from __future__ import annotations

from biasspark.tables.schemas.attribution_schema import (
    ATTRIBUTION_CORRELATIONS,
    ATTRIBUTION_SEGMENTS,
    ATTRIBUTION_SLICES,
    AUC_CROSSES,
    EXAMPLE_ATTRIBUTIONS,
    LOSS_BY_SEGMENT,
    NAMED_PAIRS,
    PAIR_SEGMENTS,
)
from biasspark.tables.schemas.dsl import CORPUS, RUN_DATE, RUN_ID, Column, Table
from biasspark.tables.schemas.gate_schema import BIAS_ALERTS, COMPARISON_ALERTS, JACKKNIFE_STATISTICS, MODEL_COMPARISONS
from biasspark.tables.schemas.ledger_schema import (
    BIAS_RUNS,
    N_NIGHTS,
    REJECTED_ROWS,
    SCORE_BLOCKS,
    WINDOW_START,
    WINDOW_TABLES,
)
from biasspark.tables.schemas.score_schema import (
    LABEL_BALANCE,
    PINNED_AUC,
    PINNED_SKEW,
    SCORE_HISTOGRAMS,
    TEMPLATE_SCORES,
    THRESHOLD_RATES,
    THRESHOLD_SUMMARY,
    TRAINING_BALANCE,
)
from biasspark.tables.schemas.suite_schema import BIAS_METRICS, MODEL_SUMMARY, U_STATISTICS

__all__ = [
    "ATTRIBUTION_CORRELATIONS",
    "ATTRIBUTION_SEGMENTS",
    "ATTRIBUTION_SLICES",
    "AUC_CROSSES",
    "BIAS_ALERTS",
    "BIAS_METRICS",
    "BIAS_RUNS",
    "COMPARISON_ALERTS",
    "CORPUS",
    "EXAMPLE_ATTRIBUTIONS",
    "JACKKNIFE_STATISTICS",
    "LABEL_BALANCE",
    "LOSS_BY_SEGMENT",
    "MODEL_COMPARISONS",
    "MODEL_SUMMARY",
    "NAMED_PAIRS",
    "N_NIGHTS",
    "PAIR_SEGMENTS",
    "PINNED_AUC",
    "PINNED_SKEW",
    "REJECTED_ROWS",
    "RUN_DATE",
    "RUN_ID",
    "SCORE_BLOCKS",
    "SCORE_HISTOGRAMS",
    "TABLES",
    "TEMPLATE_SCORES",
    "THRESHOLD_RATES",
    "THRESHOLD_SUMMARY",
    "TRAINING_BALANCE",
    "U_STATISTICS",
    "WINDOW_START",
    "WINDOW_TABLES",
    "Column",
    "Table",
    "tables_of",
]

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
