"""Tables that may not be read: what cannot be read is not absent, and nothing is published past it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from biasspark.errors import InputError
from biasspark.tables.ledger import read_ledger, to_run
from biasspark.tables.parquet import find_data_files, list_visible
from biasspark.tables.publish import publish, read_rows
from biasspark.tables.schemas import BIAS_RUNS, U_STATISTICS
from biasspark.tables.store import CatalogStore, PathStore
from biasspark.workflows import accept_run, maintain, print_side_by_side, window
from biasspark.workflows import export_table as export
from biasspark.workflows import measure as bias_metrics
from biasspark.workflows import write_report as report
from biasspark.workflows.maintain import Policy, plan_maintenance
from tests.harness.main_job import (
    RUN_DATE,
    closed,
    list_files,
    make_rows,
    run,
    run_well,
    untouched,
    write_config,
    write_parquet,
)
from tests.harness.running_jobs import run_main
from tests.harness.sample_run import record_of, run_at, suite_tables

NEXT = "2026-01-16"
RULES = [
    {"name": "holds", "metric": "auc", "max_drop": 0.9},
    {"name": "floor", "metric": "auc", "min": 0.1},
]
JOBS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "date": (bias_metrics, ("--run-date", NEXT)),
    "rerun": (bias_metrics, ("--run-date", RUN_DATE)),
    "report": (report, ("--run-date", RUN_DATE, "--out", "page.html")),
    "export": (export, ("--run-date", RUN_DATE, "--table", "bias_metrics", "--out", "rows.csv")),
    "side_by_side": (print_side_by_side, ("--run-date", RUN_DATE, "--models", "m", "n")),
    "window": (window, ("--from", RUN_DATE, "--to", RUN_DATE)),
    "maintain": (maintain, ("--run-date", "2026-06-01")),
}
LEVELS = ("table", "date", "run", "file")


@contextmanager
def damaged(files: list[Path], damage: Callable[[list[Path]], object]) -> Iterator[None]:
    """Damage files for a block."""
    contents = {file: file.read_bytes() for file in files}
    try:
        damage(files)
        yield
    finally:
        for file, content in contents.items():
            file.write_bytes(content)


def cut_short(files: list[Path]) -> None:
    files[0].write_bytes(files[0].read_bytes()[:100])


@pytest.fixture(scope="module")
def accepted(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A configuration, and the warehouse of its one run, which the gate accepted."""
    folder = tmp_path_factory.mktemp("unreadable")
    write_parquet(folder / "corpus", make_rows())
    config = write_config(folder, models={"n": "length"}, gate={"rule": RULES}, state={"keep": True})
    done = run(config)
    assert (done.code, done.summary["status"]) == (0, "accepted"), done.err
    return config, folder / "warehouse"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", JOBS)
def test_no_job_takes_a_ledger_that_may_not_be_read_for_an_empty_one(
    spark: SparkSession, accepted: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, name: str, level: str
) -> None:
    """The ledger cannot be read: every job ends with exit code 3, names it, and writes nothing."""
    config, warehouse = accepted
    (file,) = (warehouse / "bias_runs").rglob("*.parquet")
    path = [file.parents[2], *reversed(file.parents[:2]), file][LEVELS.index(level)]
    job, flags = JOBS[name]
    monkeypatch.chdir(warehouse.parent)
    with untouched(warehouse.parent), closed(path):
        done = run_main(job.COMMAND, "--config", config, *flags)
    assert done.code == 3, done.err
    assert str(path) in done.err


def test_a_baseline_that_may_not_be_read_is_not_gone(spark: SparkSession, accepted: tuple[Path, Path]) -> None:
    """The tables of an accepted run cannot be read: the next run names them, and publishes nothing."""
    config, warehouse = accepted
    (file,) = (warehouse / "u_statistics").rglob("*.parquet")
    with untouched(warehouse), closed(file.parent):
        done = run(config, run_date=NEXT)
    assert done.code == 3, done.err
    assert str(file.parent) in done.err


def test_a_lost_ledger_is_not_taken_for_a_first_run(
    spark: SparkSession, accepted: tuple[Path, Path], tmp_path: Path
) -> None:
    """The ledger is gone and the tables are not: the next run says so, and maintenance keeps the earlier runs."""
    config, warehouse = accepted
    rest = shutil.copytree(warehouse, tmp_path / "rest", ignore=shutil.ignore_patterns("bias_runs"))
    done = run_well(config, "--set", f"output.path={rest}", run_date=NEXT)
    assert any(str(rest) in warning and "ledger" in warning for warning in done.summary["warnings"])
    now = datetime.now(UTC)
    plan = plan_maintenance(spark, PathStore(str(rest)), Policy(now, now), compact=False)
    assert (len(plan.before_ledger), plan.removals) == (1, ())


@pytest.mark.slow
@pytest.mark.spark("writes to a catalog")
def test_a_partition_of_the_ledger_that_is_not_read_is_refused(spark: SparkSession, catalog: CatalogStore) -> None:
    """A partition of the ledger in a catalog is gone or unreadable, and Spark skips it: it is named."""
    earlier, run = run_at(1, "r1"), run_at(2, "r2", "wiki")
    for each in (earlier, run):
        publish(spark, suite_tables(0.6), each, catalog, record_of())
    assert len(catalog.read_ledger(spark)) == 2
    location = Path(catalog._describe(spark, BIAS_RUNS)["Location"].removeprefix("file:"))
    (location / run.partition).rename(location / "elsewhere")
    for dates in ((), (run.run_date, run.run_date)):
        with pytest.raises(InputError, match=run.partition):
            catalog.read_ledger(spark, *dates)


@pytest.mark.slow
@pytest.mark.spark("writes to a catalog")
def test_a_run_with_fewer_rows_than_its_ledger_counts_is_refused(spark: SparkSession, catalog: CatalogStore) -> None:
    """A folder of a run in a catalog is unreadable or empty, and Spark reads no row: the run is refused."""
    for each in (run_at(1, "r1"), run_at(2, "r2", "wiki")):
        publish(spark, suite_tables(0.6), each, catalog, record_of())
    runs = [to_run(row) for row in read_ledger(spark, catalog)]
    rows, there = read_rows(spark, catalog, U_STATISTICS, runs)
    assert (len(rows), there) == (sum(run.table_rows["u_statistics"] for run in runs), runs)
    location = Path(catalog._describe(spark, U_STATISTICS)["Location"].removeprefix("file:"))
    (file,) = (location / runs[0].partition).glob("*.parquet")
    file.unlink()
    with pytest.raises(InputError, match=r"r1`?: 0 of "):
        read_rows(spark, catalog, U_STATISTICS, runs)
    (location / runs[0].partition).rename(location / "elsewhere")
    assert read_rows(spark, catalog, U_STATISTICS, runs)[1] == runs[1:]


def test_a_file_with_a_part_of_its_rows_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """A file of a small table was replaced by one with fewer rows: the run is refused."""
    store = PathStore(str(tmp_path))
    publish(spark, suite_tables(0.6), run_at(1, "r1"), store, record_of())
    runs = [to_run(row) for row in read_ledger(spark, store)]
    (file,) = (tmp_path / "u_statistics").rglob("*.parquet")
    pq.write_table(pq.ParquetFile(file).read().slice(1), file)
    with pytest.raises(InputError, match=str(file.parent)):
        read_rows(spark, store, U_STATISTICS, runs)


def test_no_run_is_accepted_whose_tables_are_damaged(spark: SparkSession, accepted: tuple[Path, Path]) -> None:
    """A table of a run is gone: nobody can accept the run."""
    config, warehouse = accepted
    (file,) = (warehouse / "bias_metrics").rglob("*.parquet")
    with damaged([file], lambda _: file.unlink()):
        done = run(config, "--reason", "seen", job=accept_run)
    assert done.code == 3, done.err
    assert str(file.parent) in done.err


@pytest.mark.spark("Spark takes a file that is gone for one without rows")
@pytest.mark.parametrize(
    ("damage", "named"),
    [
        pytest.param(lambda files: files[0].unlink(), "rows could be read", id="file"),
        pytest.param(cut_short, "score_blocks", id="bytes", marks=pytest.mark.slow),
        pytest.param(
            lambda files: [file.unlink() for file in files], "its files are gone", id="files", marks=pytest.mark.slow
        ),
    ],
)
def test_a_window_takes_no_damaged_state_for_a_whole_one(
    spark: SparkSession, accepted: tuple[Path, Path], damage: Callable[[list[Path]], object], named: str
) -> None:
    """The stored scores of a run lost a file, bytes or all files: the window is refused, and nothing is published."""
    config, warehouse = accepted
    files, before = list((warehouse / "score_blocks").rglob("*.parquet")), list_files(warehouse)
    with damaged(files, damage):
        done = run_main(window.COMMAND, "--config", config, "--from", RUN_DATE, "--to", RUN_DATE)
    assert done.code == 3, done.err
    assert named in done.err
    assert list_files(warehouse).keys() == before.keys()


def test_a_damaged_state_of_an_earlier_run_is_named(spark: SparkSession, accepted: tuple[Path, Path]) -> None:
    """A file of stored scores lost its end: the next run, which takes their boundaries, names its folder."""
    config, warehouse = accepted
    file = max((warehouse / "score_blocks").rglob("*.parquet"))
    with damaged([file], cut_short):
        done = run(config, run_date=NEXT)
    assert done.code == 3, done.err
    assert str(file.parent) in done.err


def test_folders_that_are_not_there_are_empty(tmp_path: Path) -> None:
    """A folder of tables does not exist, or cannot be read: the former counts as empty, the latter is named."""
    (tmp_path / "file").touch()
    assert [list_visible(tmp_path / name) for name in ("missing", "file", "file/below")] == [[], [], []]
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "a.parquet").touch()
    assert list(find_data_files(tmp_path)) == []
    with closed(tmp_path), pytest.raises(InputError, match=str(tmp_path)):
        list(find_data_files(tmp_path))
