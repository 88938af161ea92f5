"""Maintenance of plain Parquet: what goes, what stays, and that readers see the same before and after."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from biasspark.cli import run_job
from biasspark.errors import InputError
from biasspark.tables.maintenance import copy_run, plan_maintenance, remove_runs
from biasspark.tables.publish import publish
from biasspark.tables.retention import Policy
from biasspark.tables.runs import Run, new_run
from biasspark.tables.schemas import BIAS_RUNS, EXAMPLE_ATTRIBUTIONS, PINNED_SKEW, tables_of
from biasspark.tables.store import CatalogStore, PathStore, Store
from jobs import maintain as job
from tests.lake_nights import skew_frame
from tests.sample_night import NIGHT, frame_of, read_latest, record_of

LISTING = pytest.mark.classic("Spark Connect lists and deletes no files")
EAGER = Policy(datetime.now(UTC) + timedelta(days=1), timedelta(0), timedelta(0))


def publish_skew(spark: SparkSession, store: Store, auc: float) -> Run:
    return publish(
        {PINNED_SKEW: skew_frame(spark, auc)}, new_run(NIGHT, "civil", PINNED_SKEW.job), store, record_of()
    ).run


def leave_behind(folder: Path) -> str:
    """Leave what a run leaves that was killed in the middle of its write."""
    run = new_run(NIGHT, "civil", PINNED_SKEW.job)
    unfinished = folder / PINNED_SKEW.name / run.partition / "_temporary" / "0"
    unfinished.mkdir(parents=True)
    (unfinished / "part-0.parquet").write_bytes(b"half a file")
    return run.run_id


def seen(folder: Path) -> list[tuple[object, ...]]:
    return read_latest(folder, "identity, pinned_auc", table=PINNED_SKEW.name)


@pytest.fixture(scope="module")
def warehouse(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A night measured twice, and once more by a run that died; beside it a folder that is nobody's run."""
    folder = tmp_path_factory.mktemp("kept") / "ware house"
    store = PathStore(str(folder))
    runs = [publish_skew(spark_session, store, auc).run_id for auc in (0.6, 0.7)] + [leave_behind(folder)]
    (folder / PINNED_SKEW.name / "run_date=2026-01-15" / "run_id=mine").mkdir()
    (folder / PINNED_SKEW.name / "notes").mkdir()
    return folder, runs


def write_config(tmp_path: Path, folder: Path, maintenance: str = "") -> Path:
    file = tmp_path / "night.toml"
    file.write_text(
        '[corpus]\nname = "civil"\npath = "x"\n[label]\ncolumn = "y"\n'
        '[models]\nm = "m"\n[identities]\ncolumns = ["a"]\n'
        f'[output]\npath = "{folder}"\n[maintenance]\n{maintenance}',
        encoding="utf-8",
    )
    return file


def run_maintenance(*flags: str) -> int:
    return run_job(job.main, job.maintenance_parser(), flags)


@LISTING
def test_the_job_says_what_would_go_and_then_lets_it_go(
    spark: SparkSession, warehouse: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, (old, latest, dead) = warehouse
    before, ledger = seen(folder), sorted(path.name for path in (folder / "bias_runs").glob("*/*"))
    night = folder / PINNED_SKEW.name / "run_date=2026-01-15"
    flags = ("--config", str(write_config(tmp_path, folder)), "--run-date", "2030-01-01")

    # What is younger than a month, or may still be running, stays.
    assert run_maintenance(*flags) == 0
    assert '"removals": 0' in capsys.readouterr().out
    assert {path.name for path in night.iterdir()} == {f"run_id={name}" for name in (old, latest, dead, "mine")}

    store, plan = PathStore(str(folder)), plan_maintenance(spark, PathStore(str(folder)), EAGER, compact=True)
    assert [(one.run_id, one.reason, one.table) for one in plan.removals] == [
        (old, "superseded", "pinned_skew"),
        (dead, "failed", "pinned_skew"),
    ]
    assert plan.nameless == ("mine",)
    # Killed after the first, the next goes on where it stopped.
    remove_runs(spark, store, plan.removals[:1])
    assert [one.run_id for one in plan_maintenance(spark, store, EAGER, compact=True).removals] == [dead]
    remove_runs(spark, store, plan.removals)
    assert {path.name for path in night.iterdir()} == {f"run_id={latest}", "run_id=mine"}
    assert seen(folder) == before == [("a", 0.7), ("b", 0.7)]
    assert sorted(path.name for path in (folder / "bias_runs").glob("*/*")) == ledger


@LISTING
def test_a_run_in_many_small_files_is_copied_and_superseded(spark: SparkSession, tmp_path: Path) -> None:
    store = PathStore(str(tmp_path))
    rows = [{"model": "m", "slice": "all", "row_id": str(n), "label": n % 2 == 0, "score": n / 8} for n in range(8)]
    frames = dict.fromkeys(tables_of(EXAMPLE_ATTRIBUTIONS.job))
    frames[EXAMPLE_ATTRIBUTIONS] = frame_of(spark, EXAMPLE_ATTRIBUTIONS, rows).repartition(4, "row_id")
    run = publish(frames, new_run(NIGHT, "civil", EXAMPLE_ATTRIBUTIONS.job), store, record_of()).run
    assert len(store.count_files(spark, EXAMPLE_ATTRIBUTIONS, run)) > 2
    policy = replace(EAGER, now=datetime(2026, 1, 20, tzinfo=UTC), keep=timedelta(days=30))
    plan = plan_maintenance(spark, store, policy, compact=True)
    assert [one.run_id for one in plan.scattered] == [run.run_id]
    assert plan_maintenance(spark, store, policy, compact=False).scattered == ()
    before = read_latest(tmp_path, "row_id, score", table=EXAMPLE_ATTRIBUTIONS.name)
    copy = copy_run(spark, store, plan.scattered[0])
    assert len(store.count_files(spark, EXAMPLE_ATTRIBUTIONS, copy)) == 1
    assert read_latest(tmp_path, "row_id, score", table=EXAMPLE_ATTRIBUTIONS.name) == before
    said = {row["run_id"]: row for row in store.read_ledger(spark, NIGHT).collect()}
    assert said[copy.run_id]["warnings"] == ["few distinct scores", f"a copy of {run.run_id} in fewer files"]
    assert said[copy.run_id]["config_hash"] == said[run.run_id]["config_hash"]
    assert plan_maintenance(spark, store, policy, compact=True).scattered == ()


@LISTING
def test_without_a_ledger_nothing_is_removed(spark: SparkSession, tmp_path: Path) -> None:
    leave_behind(tmp_path)
    with pytest.raises(InputError, match="bias_runs has no row, yet tables hold rows of runs"):
        plan_maintenance(spark, PathStore(str(tmp_path)), EAGER, compact=True)


@LISTING
def test_partitions_of_a_catalog_go_with_their_directories(spark: SparkSession, catalog: CatalogStore) -> None:
    old, latest = (publish_skew(spark, catalog, auc) for auc in (0.6, 0.7))
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {catalog.name(PINNED_SKEW.name)}").where("col_name = 'Location'")
    folder = Path(described.collect()[0].data_type.removeprefix("file:"))
    dead = leave_behind(folder.parent)
    plan = plan_maintenance(spark, catalog, EAGER, compact=True)
    assert [one.run_id for one in plan.removals] == [old.run_id, dead]
    remove_runs(spark, catalog, plan.removals)
    assert catalog.list_runs(spark, PINNED_SKEW) == {(NIGHT, latest.run_id)}
    assert {path.name for path in (folder / "run_date=2026-01-15").iterdir()} == {f"run_id={latest.run_id}"}
    assert catalog.read(spark, PINNED_SKEW, latest).count() == 2
    assert spark.table(catalog.name(PINNED_SKEW.name)).count() == 2
    assert catalog.list_runs(spark, BIAS_RUNS) == {(NIGHT, run.run_id) for run in (old, latest)}


def test_keys_of_maintenance_are_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(tmp_path, tmp_path, "keep_days = -1\ngrace_hours = 0\ncompact = 1\nkeep = 2\n")
    assert run_maintenance("--config", str(config), "--run-date", "2026-01-15") == 2
    faults = capsys.readouterr().err
    for fault in ("keep_days = -1", "grace_hours = 0", "compact = 1", "keep"):
        assert f"[maintenance] {fault}" in faults
