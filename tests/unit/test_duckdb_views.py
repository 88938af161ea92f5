"""The DuckDB views of all tables, of windows and of older versions. No JVM is started."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from biasspark.tables.schemas import BIAS_RUNS, MODEL_SUMMARY, TABLES, WINDOW_TABLES, Table
from biasspark.tables.views import duckdb_views, spark_views

LAST = date(2026, 1, 28)
SUMMARY = WINDOW_TABLES[MODEL_SUMMARY]
PARTITION = ("run_date", "run_id")


def write(folder: Path, table: Table, run_id: str, rows: pa.Table) -> None:
    place = folder / table.name / f"run_date={LAST}" / f"run_id={run_id}"
    place.mkdir(parents=True)
    pq.write_table(rows, place / "0.parquet")


def publish(folder: Path, run_id: str, first_day: int, second: int) -> None:
    """Write one row of each table of a run, without most columns, as older versions did."""
    row = {"corpus": "civil", "window_start": date(2026, 1, first_day)}
    summary = row | {"model": "m", "slice": "all", "n_nights": 1 + LAST.day - first_day}
    ledger = row | {"job": "window_metrics", "published_at": datetime(2026, 1, 29, 3, 0, second, tzinfo=UTC)}
    for table, of_table in ((SUMMARY, summary), (BIAS_RUNS, ledger)):
        write(folder, table, run_id, pa.Table.from_pylist([of_table]))


def ask(folder: Path, tables: list[Table], *queries: str) -> list[list[tuple[object, ...]]]:
    with duckdb.connect() as connection:
        connection.execute(duckdb_views(str(folder), tables))
        return [connection.execute(query).fetchall() for query in queries]


def test_every_table_and_its_views_can_be_asked(tmp_path: Path) -> None:
    tables = list(TABLES.values())
    for table in tables:
        schema = pa.schema([field for field in table.full_arrow_schema if field.name not in PARTITION])
        write(tmp_path, table, "r1", schema.empty_table())
    [views] = ask(tmp_path, tables, "SELECT view_name FROM duckdb_views() WHERE NOT internal")
    latest = {str(name) for (name,) in views} - TABLES.keys()
    assert {
        "latest_suite",
        "latest_accepted_suite",
        *(f"latest_{name}" for name in TABLES.keys() - {"bias_runs"}),
    } <= latest
    counts = ask(tmp_path, tables, *(f"SELECT count(*) FROM {name}" for name in (*TABLES, *latest)))
    assert counts == [[(0,)]] * len(TABLES.keys() | latest)


def test_the_latest_run_of_each_window_is_shown(tmp_path: Path) -> None:
    publish(tmp_path, "r1", 22, 1)
    publish(tmp_path, "r2", 22, 2)
    publish(tmp_path, "r3", 1, 3)
    query = "SELECT window_start, n_nights, run_id FROM latest_window_model_summary ORDER BY run_id"
    [rows] = ask(tmp_path, [SUMMARY, BIAS_RUNS], query)
    assert rows == [(date(2026, 1, 22), 7, "r2"), (date(2026, 1, 1), 28, "r3")]


def test_only_tables_of_windows_group_by_their_first_run() -> None:
    _, *views = spark_views("/w", [SUMMARY, MODEL_SUMMARY, BIAS_RUNS]).split("VIEW latest_")
    groups = [[line.strip() for line in view.splitlines() if "GROUP BY" in line][-1] for view in views]
    assert groups == ["GROUP BY run_date, corpus, window_start", *["GROUP BY run_date, corpus"] * 2]
