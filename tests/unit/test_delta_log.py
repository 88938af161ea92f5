"""Delta tables in a folder with delta-rs: commits, checks, concurrent runs, and maintenance. No engine is started."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biasspark.tables.delta import DeltaFolder, DeltaLog
from biasspark.tables.schemas import BIAS_METRICS, BIAS_RUNS, MODEL_SUMMARY, TABLES, U_STATISTICS, Table
from biasspark.tables.spark_schemas import required_columns, spark_schema
from tests.harness.sample_run import RUN_DATE, full_rows, start_run, suite_tables

deltalake = pytest.importorskip("deltalake")
NEXT_DATE = RUN_DATE + timedelta(days=1)


def log_of(folder: Path, table: Table = U_STATISTICS) -> DeltaLog:
    log = DeltaLog(folder / table.name, table)
    log.prepare()
    return log


def append(log: DeltaLog, auc: float = 0.5, run_date: date = RUN_DATE) -> str:
    """Append the rows of a run, and return its id."""
    run = start_run(run_date=run_date)
    log.append(full_rows(log.table, suite_tables(auc)[log.table], run), run)
    return run.run_id


def change(rows: pa.Table, name: str, value: Any) -> pa.Table:
    position = rows.column_names.index(name)
    return rows.set_column(position, name, pa.array([value] * len(rows), rows[name].type))


VALUES = {
    "BIGINT": 2**62 + 1,
    "BINARY": b"a\0\xff",
    "BOOLEAN": False,
    "DATE": RUN_DATE,
    "DECIMAL(38,0)": Decimal(10**37 + 1),
    "DOUBLE": 0.1,
    "INT": -(2**31),
    "MAP<STRING,BIGINT>": [("it's", 7)],
    "STRING": "é\n'",
    "TIMESTAMP": datetime(2026, 1, 15, 1, 2, 3, 456789, tzinfo=UTC),
}


def value_of(kind: str) -> Any:
    return [value_of(kind[6:-1]), None] if kind.startswith("ARRAY<") else VALUES[kind]


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_table_comes_back_with_its_types_and_comments(tmp_path: Path, table: Table) -> None:
    log, run = log_of(tmp_path, table), start_run()
    full = {column.name: value_of(column.type) for column in table.columns} | {"run_id": run.run_id}
    bare = {name: value if name in required_columns(table) else None for name, value in full.items()}
    parts = [pa.Table.from_pylist([row], table.full_arrow_schema) for row in (full, bare)]
    for rows in parts:
        log.append(rows, run)
    stored = log.read()
    log.optimize(datetime.now(UTC) - timedelta(hours=2))
    assert len(log.list_files()) == 1
    assert sorted(map(repr, log.read().to_pylist())) == sorted(map(repr, stored.to_pylist()))
    assert stored == pa.concat_tables(parts if stored.slice(0, 1) == parts[0] else parts[::-1])
    assert log.types() == {column.name: column.type for column in table.columns}
    fields = deltalake.DeltaTable(log.folder).schema().fields
    assert {field.name: field.metadata["comment"] for field in fields} == {c.name: c.comment for c in table.columns}


def test_rows_of_runs_and_dates_are_found(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    first, second, last = append(log, 0.1), append(log, 0.2), append(log, 0.3, NEXT_DATE)
    assert log.list_runs() == {(RUN_DATE, first), (RUN_DATE, second), (NEXT_DATE, last)}
    assert len(log.list_files([RUN_DATE], [second])) == 1
    rows = log.read([RUN_DATE], [second])
    assert rows["auc"].to_pylist() == [0.2] * 2
    assert rows["u_doubled"].to_pylist() == [10**37] * 2
    assert log.read([NEXT_DATE])["run_id"].to_pylist() == [last] * 2
    assert len(log.read()) == 6


@pytest.mark.parametrize(("name", "value"), [("auc", math.nan), ("model", None)])
def test_a_row_that_no_table_may_have_is_not_committed(tmp_path: Path, name: str, value: Any) -> None:
    """Nor by other writers: that of delta-rs accepts NULL, but neither NaN nor NULL in a key."""
    log, run = log_of(tmp_path), start_run()
    rows = full_rows(U_STATISTICS, suite_tables()[U_STATISTICS], run)
    with pytest.raises(ValueError, match=f" in {name}, which "):
        log.append(change(rows, name, value), run)
    with pytest.raises(deltalake.exceptions.DeltaError):
        deltalake.write_deltalake(log.folder, change(rows, name, value), mode="append")
    deltalake.write_deltalake(log.folder, change(rows, "auc", None), mode="append")
    assert log.read()["auc"].to_pylist() == [None, None]


def test_new_columns_are_added_with_their_checks_and_those_of_later_versions_stay(tmp_path: Path) -> None:
    older, run = replace(MODEL_SUMMARY, values=MODEL_SUMMARY.values[:-1]), start_run()
    missing = MODEL_SUMMARY.values[-1].name
    rows = full_rows(MODEL_SUMMARY, suite_tables()[MODEL_SUMMARY], run)
    log_of(tmp_path, older).append(rows.drop_columns([missing]), run)
    deltalake.DeltaTable(tmp_path / "model_summary").alter.add_columns(
        [deltalake.Field("of_tomorrow", "double", nullable=True)]
    )
    log = log_of(tmp_path, MODEL_SUMMARY)
    append(log)
    assert set(log.types() or ()) == {*MODEL_SUMMARY.names, "of_tomorrow"}
    assert log.read().column_names == list(MODEL_SUMMARY.names)
    version = deltalake.DeltaTable(log.folder).version()
    log.prepare()
    assert deltalake.DeltaTable(log.folder).version() == version


def test_a_table_that_died_before_its_checks_gets_them(tmp_path: Path) -> None:
    log = log_of(tmp_path, BIAS_METRICS)
    table = deltalake.DeltaTable(log.folder)
    (name,) = table.metadata().configuration
    table.alter.drop_constraint(name.removeprefix("delta.constraints."))
    log.prepare()
    assert set(deltalake.DeltaTable(log.folder).metadata().configuration) == {name}


def test_many_runs_at_once_are_all_committed(tmp_path: Path) -> None:
    def publish(number: int) -> str:
        return append(log_of(tmp_path), number / 100)

    with ThreadPoolExecutor(12) as pool:
        runs = list(pool.map(publish, range(24)))
    log = log_of(tmp_path)
    assert {run_id for _, run_id in log.list_runs()} == set(runs)
    assert len(log.read()) == 2 * len(runs)


def test_a_writer_that_dies_before_its_commit_leaves_nothing_to_see(tmp_path: Path) -> None:
    log, run = log_of(tmp_path), start_run()
    append(log)
    file = log.new_path(run, ".parquet")
    pq.write_table(full_rows(U_STATISTICS, suite_tables()[U_STATISTICS], run), file)
    assert len(log.read()) == 2
    log.optimize(datetime.now(UTC) - timedelta(hours=2))
    assert file.exists()  # a writer may be using it
    os.utime(file, (time.time() - 3 * 3600,) * 2)
    log.optimize(datetime.now(UTC) - timedelta(hours=2))
    assert not file.exists()
    assert len(log.read()) == 2


def test_a_run_is_removed_from_files_of_several_and_values_stay(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    runs = [append(log, auc) for auc in (0.1, 0.2, 0.3)]
    before = log.read([RUN_DATE], runs[1:])
    log.optimize(datetime.now(UTC) - timedelta(hours=2))
    assert len(log.list_files()) == 1
    log.remove(replace(start_run(), run_id=runs[0]))
    assert log.list_runs() == {(RUN_DATE, run_id) for run_id in runs[1:]}
    keys = [(name, "ascending") for name in ("run_id", *U_STATISTICS.key_columns)]
    assert log.read().sort_by(keys) == before.sort_by(keys)
    for action in pa.table(deltalake.DeltaTable(log.folder).get_add_actions()).to_pylist():
        assert action["min"]["u_doubled"] is None  # the statistics of the library are wrong


def test_statistics_are_those_of_ids_alone(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    run_id = append(log)
    (line,) = (
        line
        for line in (log.folder / "_delta_log" / f"{2:020}.json").read_text("utf-8").splitlines()
        if '"add"' in line
    )
    statistics = json.loads(json.loads(line)["add"]["stats"])
    assert statistics == {
        "numRecords": 2,
        "minValues": {"run_id": run_id},
        "maxValues": {"run_id": run_id},
        "nullCount": {"run_id": 0},
    }


def add_feature(folder: Path, name: str) -> None:
    feature = getattr(deltalake.TableFeatures, name)
    deltalake.DeltaTable(folder).alter.add_feature(feature, allow_protocol_versions_increase=True)


def add_check(folder: Path, name: str) -> None:
    deltalake.DeltaTable(folder).alter.add_constraint({name: "corpus <> ''"})


@pytest.mark.parametrize(
    ("ask", "name", "listed"),
    [
        (add_feature, "ChangeDataFeed", "changeDataFeed"),
        (add_feature, "DeletionVectors", "deletionVectors"),
        (add_check, "of_mine", "delta.constraints.of_mine"),
    ],
)
def test_what_a_table_asks_of_writers_and_is_not_done_is_named(
    tmp_path: Path, ask: Callable[[Path, str], None], name: str, listed: str
) -> None:
    log = log_of(tmp_path)
    assert log.list_unsupported() == []
    ask(log.folder, name)
    assert listed in log.list_unsupported()


def test_where_there_is_no_table(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "nowhere", BIAS_RUNS)
    assert (log.types(), log.list_runs(), log.list_unsupported()) == (None, set(), [])
    with pytest.raises(FileNotFoundError):
        log.read()
    log.remove(start_run())
    log.optimize(datetime.now(UTC))
    assert not (tmp_path / "nowhere").exists()


def test_a_table_on_a_file_system_that_only_the_session_sees_is_not_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The path has no scheme, and the default file system of the session is not that of this machine."""
    session: Any = SimpleNamespace(table=lambda _: SimpleNamespace(schema=spark_schema(U_STATISTICS)))
    monkeypatch.setattr("biasspark.tables.delta.shared_folder", lambda *_: None)
    assert DeltaFolder("/warehouse").has(session, U_STATISTICS)
