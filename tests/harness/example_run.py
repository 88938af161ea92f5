"""A small published run with made-up rows for every table that the documents ask, written without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from biasspark.columns import OVERALL
from biasspark.tables.runs import Run
from biasspark.tables.schemas import (
    BIAS_METRICS,
    BIAS_RUNS,
    MODEL_SUMMARY,
    N_RUNS,
    TABLES,
    WINDOW_START,
    WINDOW_TABLES,
    Table,
)
from biasspark.tables.views import duckdb_views, spark_views
from tests.fixtures.made_up_report import MODELS, RUN_DATE, alert, compare_values, ledger_row, make_report, node

Rows = Sequence[Mapping[str, Any]]

CORPUS = "civil"
STARTED = datetime(2026, 1, 15, 3, tzinfo=UTC)
IDENTITIES = ("gay", "black", "muslim", "transgender", "male", "female")
WINDOW = 28


def write_run(folder: Path) -> None:
    """Write every table, an empty one too, and the views."""
    tables, made_up = list(TABLES.values()), made_up_rows()
    rows = {name: made_up.get(name, []) for name in TABLES if name != BIAS_RUNS.name}
    for job in {TABLES[name].job for name in rows}:
        first = RUN_DATE - timedelta(days=WINDOW - 1) if job == "window_metrics" else None
        of_job = {name: of_table for name, of_table in rows.items() if TABLES[name].job == job}
        add_run(folder, Run(RUN_DATE, CORPUS, job, f"r_{job}", STARTED, first), of_job, **ledger_row())
    (folder / "views.spark.sql").write_text(spark_views(str(folder), tables), "utf-8")
    (folder / "views.duckdb.sql").write_text(duckdb_views(str(folder), tables), "utf-8")


def write_history(folder: Path) -> None:
    """Write the suite of three runs before, each accepted, which the report compares the run with."""
    for past in make_report(identities=IDENTITIES).history:
        tables = {BIAS_METRICS.name: past.metrics, MODEL_SUMMARY.name: past.summaries}
        run = Run(past.run_date, CORPUS, BIAS_METRICS.job, past.run_id, STARTED)
        add_run(folder, run, tables, **ledger_row() | {"status": "accepted"})


def add_run(folder: Path, run: Run, tables: Mapping[str, Rows], gone: Sequence[str] = (), **ledger: Any) -> None:
    """Write the tables of a run and its row of the ledger, which counts a row of each table whose files are gone."""
    for name, rows in tables.items():
        write_table(folder, TABLES[name], rows, run)
    row: dict[str, Any] = {"job": run.job, "status": "published", "config": "{}", "n_rows": 100, "n_rejected": 2}
    row |= {"started_at": run.started_at, "published_at": run.started_at, "rejects": {}, "warnings": []}
    row |= {"table_rows": {name: len(rows) for name, rows in tables.items()} | dict.fromkeys(gone, 1)}
    write_table(folder, BIAS_RUNS, [row | {"window_start": run.window_start} | ledger], run)


def write_table(folder: Path, table: Table, rows: Rows, run: Run) -> None:
    """Write the rows of a run, less the columns of the partition; what a row does not name is NULL."""
    schema = pa.schema([field for field in table.full_arrow_schema if field.name not in ("run_date", "run_id")])
    filled = [{name: run.corpus if name == "corpus" else row.get(name) for name in schema.names} for row in rows]
    folder = folder / table.name / run.partition
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(filled, schema), folder / "part.parquet")


def made_up_rows() -> dict[str, Rows]:
    """Give the rows of each table by its name; of one that is not named there are none."""
    tables: dict[str, Rows] = dict(make_report(identities=IDENTITIES).tables)
    rates = [{**row, "threshold": at} for row in tables["threshold_rates"] for at in (0.5, 0.8)]
    old, new = MODELS  # of which the new one is significantly worse in this leaf
    leaf = node(8, "black >= 0.5", -0.05) | {"model": new, "baseline_model": old, "slice": "all", "target": "auc"}
    window = {WINDOW_START.name: RUN_DATE - timedelta(days=WINDOW - 1), N_RUNS.name: WINDOW}
    merged = {of_run.name: table.name for of_run, table in WINDOW_TABLES.items()}
    scores = [
        {
            "model": model,
            "template": str(place),
            "identity": name,
            "n_rows": 3,
            "mean_score": 0.2 + place / 10 + number / 50,
        }
        for model in MODELS
        for place in range(4)
        for number, name in enumerate((OVERALL, *IDENTITIES))
    ]
    return {
        **tables,
        "threshold_rates": rates,
        "attribution_segments": [*tables["attribution_segments"], leaf],
        "template_scores": scores,
        "model_comparisons": [compare_values(name, "bpsn_auc", 0.9, 0.8) for name in IDENTITIES],
        "bias_alerts": [alert("fail"), alert("warn", rule="bpsn of black", identity="black")],
        **{merged[name]: [{**row, **window} for row in rows] for name, rows in tables.items() if name in merged},
    }
