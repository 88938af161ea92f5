"""Windows that end with the same night each have a latest run of their own; no JVM."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from biasspark.tables.schemas import BIAS_RUNS, MODEL_SUMMARY, WINDOW_TABLES, Table
from biasspark.tables.views import duckdb_views, spark_views

LAST = date(2026, 1, 28)
SUMMARY = WINDOW_TABLES[MODEL_SUMMARY]


def write(folder: Path, table: Table, run_id: str, **row: object) -> None:
    place = folder / table.name / f"run_date={LAST}" / f"run_id={run_id}"
    place.mkdir(parents=True)
    pq.write_table(pa.table({name: [value] for name, value in {"corpus": "civil", **row}.items()}), place / "0.parquet")


def publish(folder: Path, run_id: str, first_day: int, second: int) -> None:
    start = date(2026, 1, first_day)
    write(folder, SUMMARY, run_id, window_start=start, model="m", slice="all", n_nights=1 + LAST.day - first_day)
    at = datetime(2026, 1, 29, 3, 0, second, tzinfo=UTC)
    write(folder, BIAS_RUNS, run_id, job="window_metrics", published_at=at, window_start=start)


def test_the_latest_run_of_each_window_is_shown(tmp_path: Path) -> None:
    publish(tmp_path, "r1", 22, 1)
    publish(tmp_path, "r2", 22, 2)
    publish(tmp_path, "r3", 1, 3)
    with duckdb.connect() as connection:
        connection.execute(duckdb_views(str(tmp_path), [SUMMARY, BIAS_RUNS]))
        rows = "SELECT window_start, n_nights, run_id FROM latest_window_model_summary ORDER BY run_id"
        assert connection.execute(rows).fetchall() == [(date(2026, 1, 22), 7, "r2"), (date(2026, 1, 1), 28, "r3")]


def test_only_tables_of_windows_group_by_their_first_night() -> None:
    _, *views = spark_views("/w", [SUMMARY, MODEL_SUMMARY, BIAS_RUNS]).split("VIEW latest_")
    groups = [[line.strip() for line in view.splitlines() if "GROUP BY" in line][-1] for view in views]
    assert groups == ["GROUP BY run_date, corpus, window_start", *["GROUP BY run_date, corpus"] * 2]
