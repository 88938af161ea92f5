"""A small night of made-up rows for every table of the main job, for tests that publish it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from biasspark.tables.runs import Run, RunRecord, new_run
from biasspark.tables.schemas import (
    BIAS_METRICS,
    BIAS_RUNS,
    MODEL_SUMMARY,
    REJECTED_ROWS,
    TABLES,
    U_STATISTICS,
    Table,
    tables_of,
)
from biasspark.tables.views import duckdb_views

NIGHT = date(2026, 1, 15)
TABLES_OF_A_RUN = tables_of("bias_metrics")


def frame_of(spark: SparkSession, table: Table, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """Give rows of a table less the run's columns; what a row does not name is NULL."""
    schema = StructType([column.field for column in (*table.key, *table.values)])
    return spark.createDataFrame([tuple(row.get(name) for name in schema.names) for row in rows], schema)


def night_frames(spark: SparkSession, auc: float = 0.75, rejected: int = 2) -> dict[Table, DataFrame | None]:
    """Give what a run publishes that measured the suite alone."""
    return dict.fromkeys(TABLES_OF_A_RUN) | suite_frames(spark, auc, rejected)


def suite_frames(spark: SparkSession, auc: float = 0.75, rejected: int = 2) -> dict[Table, DataFrame]:
    """Give the frames that such a run computes; `auc` tells the rows of one run from those of another."""
    identities = ("male", "female")
    suite = [{"model": "m", "slice": "all", "identity": name, "crossed": False} for name in identities]
    counts = {"low_cell": "subgroup_negative", "high_cell": "subgroup_positive", "n_low": 2, "n_high": 2}
    squares = {"u_doubled": Decimal(10**37), "low_square_sum": Decimal(7), "high_square_sum": Decimal(9)}
    return {
        U_STATISTICS: frame_of(spark, U_STATISTICS, [row | counts | squares | {"auc": auc} for row in suite]),
        BIAS_METRICS: frame_of(spark, BIAS_METRICS, [row | {"subgroup_auc": auc} for row in suite]),
        MODEL_SUMMARY: frame_of(spark, MODEL_SUMMARY, [{"model": "m", "slice": "all", "auc": auc}]),
        REJECTED_ROWS: frame_of(
            spark, REJECTED_ROWS, [{"row_id": None, "model": None, "reason": "null_id"} for _ in range(rejected)]
        ),
    }


def start_run(corpus: str = "civil", run_date: date = NIGHT) -> Run:
    return new_run(run_date, corpus, "bias_metrics")


def run_at(second: int, run_id: str, corpus: str = "civil") -> Run:
    """Give a run that started at a second of a long past minute."""
    return Run(NIGHT, corpus, "bias_metrics", run_id, datetime(2026, 1, 15, 3, 0, second, tzinfo=UTC))


def record_of(n_rows: int = 100) -> RunRecord:
    return RunRecord(
        n_rows=n_rows,
        n_rejected=2,
        config='{"corpus": "it\'s"}',
        config_hash="ab" * 32,
        code_version="0.1.0",
        spark_version="4.1.4",
        rejects={"null_id": 2},
        warnings=("few distinct scores",),
    )


def read_latest(folder: Path, columns: str, where: str = "true", table: str = "bias_metrics") -> list[tuple[Any, ...]]:
    """Give what a reader sees of the latest published runs, sorted; read by DuckDB, which shares nothing with Spark."""
    asked = (TABLES[table], BIAS_RUNS)
    there = [own for own in asked if list((folder / own.name).glob("run_date=*/run_id=*/*.parquet"))]
    with duckdb.connect() as connection:
        connection.execute(duckdb_views(str(folder), there))
        return connection.execute(f"SELECT {columns} FROM latest_{table} WHERE {where} ORDER BY ALL").fetchall()
