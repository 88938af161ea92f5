"""Windows of runs merged by the jobs, compared with a ranking of the union of their rows."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from biasspark.tables.schemas import SCORE_BLOCKS, WINDOW_TABLES
from biasspark.tables.spark_schemas import no_rows
from biasspark.workflows import export_table
from biasspark.workflows import window as window_metrics
from biasspark.workflows.sketches import read_score_blocks
from tests.fixtures.edge_case_corpus import COLUMNS, make_rows
from tests.harness.main_job import run, write_config
from tests.harness.running_jobs import Done, ask, run_main

N_ROWS = 6000
FIRST, SECOND, LAST = "2026-01-14", "2026-01-15", "2026-01-16"
TYPES = {"s2": pa.float32(), "groups": pa.list_(pa.string()), "k": pa.int32(), "id": pa.int32(), "cat": pa.string()}


def merge(config: Path, first: str, last: str, *flags: str) -> Done:
    return run_main(window_metrics.COMMAND, "--config", config, "--from", first, "--to", last, *flags)


def test_a_window_may_have_many_runs(spark: SparkSession) -> None:
    """The engine recurses over a plan, and the process ends if one is some hundreds of unions deep."""
    store = Mock(read=lambda *_: no_rows(spark, SCORE_BLOCKS))
    blocks = read_score_blocks(spark, store, [Mock()] * 400)
    assert blocks.count() == 0


def copy_warehouse(place: Place, folder: Path) -> tuple[str, str]:
    """Copy the shared tables; return the flags of a job that publishes into the copy."""
    return "--set", f"output.path={shutil.copytree(place.warehouse, folder / 'warehouse')}"


def write_rows(folder: Path, rows: list[tuple[Any, ...]], date_of: Callable[[Mapping[str, Any]], str]) -> Path:
    """Write rows of the edge case corpus, each with its date."""
    named = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    columns = {name: pa.array([row[name] for row in named], TYPES.get(name)) for name in COLUMNS}
    folder.mkdir()
    columns |= {"same": [1.7] * len(rows), "day": [date_of(row) for row in named]}
    pq.write_table(pa.table(columns), folder / "part.parquet")
    return folder


def configure(folder: Path, **tables: Any) -> Path:
    asked: dict[str, Any] = {
        "corpus": {"name": "awkward", "run_date_column": "day"},
        "models": {"m": None, "tied": "s1", "narrow": "s2", "same": "same"},
        "identities": {
            "columns": ["c1", "c2"],
            "categorical": ["cat"],
            "array": "groups",
            "crossed": {"pairs": True, "min_rows": 280},
        },
        "slices": {"odd": "k % 2 = 1"},
        "ranking": {"ranges": 3},
        "thresholds": {"at": [0.3, 0.7]},
        "histograms": {"bins": 7},
        "pinned_auc": {},
        "state": {"keep": True},
    }
    return write_config(folder, **asked | tables)


@dataclass(frozen=True)
class Place:
    folder: Path
    config: Path
    backfill: Done
    window: Done
    union: Done

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"


@pytest.fixture(scope="module")
def place(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Two dates, of which one alone has the category `b c` and the other `a`; the date between them has no rows.

    When they are merged their corpus is gone.
    """
    folder = tmp_path_factory.mktemp("windows")
    write_rows(folder / "corpus", make_rows(N_ROWS), lambda row: FIRST if row["cat"] == "a" else LAST)
    config = configure(folder)
    whole = configure(folder, corpus={"name": "union"}, ranking={"ranges": 2})
    backfill = run(config, run_date=f"{FIRST}..{LAST}")
    union = run(whole, run_date=LAST)
    (folder / "corpus").rename(folder / "gone")
    window = merge(config, FIRST, LAST, "--allow-missing")
    return Place(folder, config, backfill, window, union)


def test_a_range_is_measured_date_by_date(place: Place) -> None:
    """The date without rows fails and is reported. The others are measured."""
    assert place.backfill.code == 3
    first, empty, last, whole = map(json.loads, (line for line in place.backfill.out.splitlines() if line[:1] == "{"))
    assert [one["run_date"] for one in (first, empty, last)] == [FIRST, SECOND, LAST]
    assert (empty["status"], empty["exit_code"]) == ("failed", 3)
    assert any(line.startswith(f"{SECOND}: error: ") for line in place.backfill.err.splitlines())
    assert (whole["status"], whole["dates"], whole["skipped"]) == ("failed", 3, [])
    assert [one["run_id"] for one in whole["published"]] == [first["run_id"], last["run_id"]]
    assert whole["failed"] == [{"run_date": SECOND, "exit_code": 3}]


@pytest.mark.parametrize("table", WINDOW_TABLES, ids=lambda table: table.name)
def test_a_window_is_its_union_ranked_at_once(place: Place, table: Any) -> None:
    """It reads nothing of the corpus, which is gone by then."""
    assert (place.window.code, place.union.code) == (0, 0), place.window.err
    assert not (place.folder / "corpus").exists()
    columns = ", ".join(f'"{name}"' for name in table.value_columns)
    found = ask(place.warehouse, f"SELECT {columns} FROM latest_window_{table.name} ORDER BY ALL")
    wanted = ask(place.warehouse, f"SELECT {columns} FROM latest_{table.name} WHERE corpus = 'union' ORDER BY ALL")
    assert len(wanted) > 3
    assert found == wanted


def test_crossed_pairs_are_filtered_once_runs_are_merged(place: Place) -> None:
    """Some pairs have enough rows only in both runs together, some have a value that one run lacks."""
    pairs = "SELECT DISTINCT identity FROM latest_{}u_statistics WHERE crossed AND corpus = 'awkward'{}"
    window = {name for (name,) in ask(place.warehouse, pairs.format("window_", ""))}
    first, last = (
        {name for (name,) in ask(place.warehouse, pairs.format("", f" AND run_date = DATE '{day}'"))}
        for day in (FIRST, LAST)
    )
    assert window > first | last
    assert "c1 & c2" in window - first - last
    assert any("cat=b c" in name for name in window - first)


def test_a_window_is_told_apart_by_its_first_date(place: Place) -> None:
    days = (date.fromisoformat(FIRST), date.fromisoformat(LAST))
    query = "SELECT DISTINCT window_start, run_date, n_nights FROM latest_window_bias_metrics"
    assert ask(place.warehouse, query) == [(*days, 2)]
    ledger = "SELECT window_start, n_rows, merged_run_ids, unnest(warnings) FROM bias_runs WHERE job = 'window_metrics'"
    merged = [one["run_id"] for one in place.backfill.summary["published"]]
    ((*row, warning),) = ask(place.warehouse, ledger)
    assert row == [days[0], N_ROWS + 5, merged]
    assert SECOND in warning
    assert ask(place.warehouse, "SELECT DISTINCT merged_run_ids FROM bias_runs WHERE job = 'bias_metrics'") == [(None,)]
    assert place.window.summary["missing"] == [SECOND]
    assert place.window.summary["runs"] == 2


def test_all_windows_that_end_on_a_date_are_exported(place: Place, tmp_path: Path) -> None:
    copied, out = copy_warehouse(place, tmp_path), tmp_path / "metrics.csv"
    assert merge(configure(place.folder, thresholds=None), LAST, LAST, *copied).code == 0
    flags = ("--config", place.config, "--run-date", LAST, *copied, "--out", out)
    done = run_main(export_table.COMMAND, *flags, "--table", "window_bias_metrics")
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert done.summary["rows"] == len(rows)
    assert done.summary["window_starts"] == [FIRST, LAST]
    assert [start for start, _ in groupby(row["window_start"] for row in rows)] == [FIRST, LAST]
    rates = run_main(export_table.COMMAND, *flags, "--table", "window_threshold_rates")
    assert rates.summary["window_starts"] == [FIRST]
    (warning,) = rates.summary["warnings"]
    assert "window_threshold_rates" in warning
    assert f"warning: {warning}\n" in rates.err


def test_missing_runs_and_those_that_differ_are_listed_together(place: Place) -> None:
    done = merge(place.config, "2026-01-13", LAST, "--set", "label.threshold=0.7")
    assert done.code == 3
    missing, differing = (line for line in done.err.splitlines() if ": error: " in line)
    assert all(part in missing for part in ("2 of 4 dates", "2026-01-13", SECOND, "--allow-missing"))
    assert "label.threshold" in differing


@pytest.mark.parametrize("is_dated", [True, False])
def test_runs_that_may_have_measured_the_same_rows_are_a_warning(place: Place, is_dated: bool, tmp_path: Path) -> None:
    config = place.config if is_dated else configure(place.folder, corpus={"name": "awkward"})
    done = merge(config, FIRST, LAST, "--allow-missing", *copy_warehouse(place, tmp_path))
    assert done.code == 0, done.err
    assert any("run_date_column" in warning for warning in done.summary["warnings"]) != is_dated


def test_where_no_run_is_there_none_can_be_left_out(place: Place) -> None:
    done = merge(place.config, "2026-01-03", "2026-01-04", "--allow-missing")
    assert done.code == 3
    assert all(day in done.err for day in ("2026-01-03", "2026-01-04"))
    assert "--allow-missing" not in done.err
