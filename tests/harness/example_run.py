"""A small published run with made-up rows for every table that the documents ask, written without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from biasspark.columns import OVERALL
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
IDENTITIES = ("gay", "black", "muslim", "transgender", "male", "female")
WINDOW = 28


def write_run(folder: Path) -> None:
    """Write every table, an empty one too, and the views."""
    tables = list(TABLES.values())
    made_up = made_up_rows()
    rows = {table.name: made_up.get(table.name, []) for table in tables if table != BIAS_RUNS}
    for name, listed in rows.items():
        write_table(folder, TABLES[name], listed, RUN_DATE, f"r_{TABLES[name].job}")
    for job in {TABLES[name].job for name in rows}:
        write_table(folder, BIAS_RUNS, [ledger_of(job, rows)], RUN_DATE, f"r_{job}")
    (folder / "views.spark.sql").write_text(spark_views(str(folder), tables), "utf-8")
    (folder / "views.duckdb.sql").write_text(duckdb_views(str(folder), tables), "utf-8")


def write_history(folder: Path) -> None:
    """Write the suite of three runs before, each accepted, which the report compares the run with."""
    for past in make_report(identities=IDENTITIES).history:
        tables = {BIAS_METRICS.name: past.metrics, MODEL_SUMMARY.name: past.summaries}
        for name, rows in tables.items():
            write_table(folder, TABLES[name], rows, past.run_date, past.run_id)
        accepted = ledger_of(BIAS_METRICS.job, tables) | {"status": "accepted"}
        write_table(folder, BIAS_RUNS, [accepted], past.run_date, past.run_id)


def write_table(folder: Path, table: Table, rows: Rows, run_date: date, run_id: str) -> None:
    """Write the rows of a run, less the columns of the partition; what a row does not name is NULL."""
    schema = pa.schema([field for field in table.full_arrow_schema if field.name not in ("run_date", "run_id")])
    filled = [{name: CORPUS if name == "corpus" else row.get(name) for name in schema.names} for row in rows]
    folder = folder / table.name / f"run_date={run_date}" / f"run_id={run_id}"
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


def ledger_of(job: str, tables: Mapping[str, Rows]) -> dict[str, Any]:
    """Give the ledger's row of a job's run that has written tables."""
    first = RUN_DATE - timedelta(days=WINDOW - 1) if job == "window_metrics" else None
    table_rows = [(name, len(rows)) for name, rows in tables.items() if TABLES[name].job == job]
    return ledger_row() | {"job": job, "status": "published", "window_start": first, "table_rows": table_rows}
