"""A small run of made-up rows for tables of the main job, for tests that publish it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import duckdb
import pyarrow as pa

from biasspark.errors import BiasSparkError
from biasspark.tables.publish import publish
from biasspark.tables.runs import Run, RunRecord, new_run
from biasspark.tables.schemas import (
    BIAS_METRICS,
    BIAS_RUNS,
    MODEL_SUMMARY,
    PINNED_SKEW,
    REJECTED_ROWS,
    TABLES,
    U_STATISTICS,
    Table,
)
from biasspark.tables.views import duckdb_views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from biasspark.tables.store import Store

RUN_DATE = date(2026, 1, 15)
AUC = 0.75


def table_rows(table: Table, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return rows of a table less the run's columns; what a row does not name is NULL."""
    return pa.Table.from_pylist([dict(row) for row in rows], table.arrow_schema)


def suite_tables(auc: float = AUC, rejected: int = 2) -> dict[Table, pa.Table]:
    """Return what a run publishes that measured the suite alone; `auc` tells the rows of two runs apart."""
    identities = ("male", "female")
    suite = [{"model": "m", "slice": "all", "identity": name, "crossed": False} for name in identities]
    counts = {"low_cell": "subgroup_negative", "high_cell": "subgroup_positive", "n_low": 2, "n_high": 2}
    squares = {"u_doubled": Decimal(10**37), "low_square_sum": Decimal(7), "high_square_sum": Decimal(9)}
    cells = {"n_subgroup_negative": 60, "n_subgroup_positive": 40, "subgroup_auc": auc, "subgroup_auc_low": auc / 2}
    return {
        U_STATISTICS: table_rows(U_STATISTICS, [row | counts | squares | {"auc": auc} for row in suite]),
        BIAS_METRICS: table_rows(BIAS_METRICS, [row | cells for row in suite]),
        MODEL_SUMMARY: table_rows(MODEL_SUMMARY, [{"model": "m", "slice": "all", "auc": auc}]),
        REJECTED_ROWS: table_rows(REJECTED_ROWS, [{"reason": "null_id"}] * rejected),
    }


def skew_tables(auc: float) -> dict[Table, pa.Table]:
    """Return what a run of the job with a single table publishes."""
    keys = ({"model": "m", "slice": "all", "identity": name, "cell": "subgroup_negative"} for name in ("a", "b"))
    return {
        PINNED_SKEW: table_rows(PINNED_SKEW, [key | {"fraction": 0.5, "trials": 1, "pinned_auc": auc} for key in keys])
    }


def publish_skew(spark: SparkSession, store: Store, auc: float) -> Run:
    return publish(spark, skew_tables(auc), start_run(job=PINNED_SKEW.job), store, record_of())


def full_rows(table: Table, rows: pa.Table, run: Run) -> pa.Table:
    """Return rows with the columns of a run, for a store to write."""
    columns = {name: rows[name] for name in rows.column_names}
    columns |= {name: [getattr(run, name)] * len(rows) for name in ("run_date", "corpus", "run_id")}
    return pa.table([columns[name] for name in table.names], schema=table.full_arrow_schema)


def start_run(corpus: str = "civil", run_date: date = RUN_DATE, job: str = BIAS_METRICS.job) -> Run:
    return new_run(run_date, corpus, job)


def run_at(second: int, run_id: str, corpus: str = "civil") -> Run:
    """Return a run that started at a second of a long past minute."""
    return Run(RUN_DATE, corpus, BIAS_METRICS.job, run_id, datetime(2026, 1, 15, 3, 0, second, tzinfo=UTC))


def record_of() -> RunRecord:
    return RunRecord(
        n_rows=100,
        n_rejected=2,
        config='{"corpus": "it\'s"}',
        config_hash="ab" * 32,
        code_version="0.1.0",
        spark_version="4.1.4",
        rejects={"null_id": 2},
        warnings=("few distinct scores",),
    )


def read_latest(folder: Path, columns: str, where: str = "true", table: str = "bias_metrics") -> list[tuple[Any, ...]]:
    """Return what a reader sees of the latest published runs, sorted, by DuckDB, which shares nothing with Spark."""
    asked = (TABLES[table], BIAS_RUNS)
    there = [one for one in asked if list((folder / one.name).glob("run_date=*/run_id=*/*.parquet"))]
    with duckdb.connect() as connection:
        connection.execute(duckdb_views(str(folder), there))
        return connection.execute(f"SELECT {columns} FROM latest_{table} WHERE {where} ORDER BY ALL").fetchall()


def breaking(store: Store, broken: Table, after: bool = False) -> AbstractContextManager[object]:
    """Have a store fail for a block before or after it writes one table."""
    write = store.write

    def fail(spark: SparkSession, table: Table, rows: pa.Table | DataFrame, run: Run) -> None:
        if table != broken or after:
            write(spark, table, rows, run)
        if table == broken:
            raise BiasSparkError(f"{table.name}: broken")

    return patch.object(store, "write", fail)
