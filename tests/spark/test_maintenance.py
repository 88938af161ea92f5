"""Maintenance of plain Parquet: removed and kept runs, and unchanged views."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from biasspark.errors import InputError, PublishConflict
from biasspark.session.files import delete_folder, list_folder
from biasspark.tables.ledger import accept, find_acceptance, read_ledger, to_run
from biasspark.tables.publish import publish
from biasspark.tables.runs import Run, RunRecord
from biasspark.tables.schemas import BIAS_RUNS, EXAMPLE_ATTRIBUTIONS, LOSS_BY_SEGMENT, PINNED_SKEW
from biasspark.tables.spark_schemas import to_frame, value_schema
from biasspark.tables.store import CatalogStore, PathStore, Store
from biasspark.workflows import maintain as job
from biasspark.workflows.maintain import Policy, copy_run, plan_maintenance, remove_runs
from tests.harness.main_job import run, write_config
from tests.harness.running_jobs import Done
from tests.harness.sample_run import RUN_DATE, publish_skew, read_latest, record_of, start_run, table_rows

LISTING = pytest.mark.classic("Spark Connect lists and deletes no files")
TOMORROW = datetime.now(UTC) + timedelta(days=1)
EAGER = Policy(TOMORROW, TOMORROW)
RECENT = Policy(datetime(2025, 12, 21, tzinfo=UTC), datetime(2026, 1, 20, tzinfo=UTC))


def publish_examples(spark: SparkSession, store: Store) -> Run:
    """Publish a run with a table in several files, and a small one."""
    table, key = EXAMPLE_ATTRIBUTIONS, {"model": "m", "slice": "all"}
    rows = [key | {"row_id": str(n), "label": n % 2 == 0, "score": n / 8} for n in range(8)]
    frame = to_frame(spark, table_rows(table, rows), value_schema(table)).repartition(4, "row_id")
    losses = table_rows(LOSS_BY_SEGMENT, [key | {"segment": "old"}])
    return publish(spark, {table: frame, LOSS_BY_SEGMENT: losses}, start_run(job=table.job), store, record_of())


def leave_behind(folder: Path) -> str:
    """Write the files of a run that was killed during its write."""
    run = start_run(job=PINNED_SKEW.job)
    unfinished = folder / PINNED_SKEW.name / run.partition / "_temporary" / "0"
    unfinished.mkdir(parents=True)
    (unfinished / "part-0.parquet").write_bytes(b"half a file")
    return run.run_id


def latest(folder: Path) -> list[tuple[object, ...]]:
    return read_latest(folder, "identity, pinned_auc", table=PINNED_SKEW.name)


def maintain(tmp_path: Path, folder: Path, *flags: str, **maintenance: int) -> Done:
    config = write_config(
        tmp_path / "jobs", corpus={"name": "civil"}, output={"path": str(folder)}, maintenance=maintenance
    )
    return run(config, *flags, run_date=TOMORROW.date(), job=job)


@LISTING
def test_the_job_plans_and_removes_what_nobody_sees(spark: SparkSession, tmp_path: Path) -> None:
    """A date measured twice, and by a killed run. Its folder has another folder that cannot be that of a run."""
    folder = tmp_path / "ware house"
    store = PathStore(str(folder))
    old, current = (publish_skew(spark, store, auc).run_id for auc in (0.6, 0.7))
    dead = leave_behind(folder)
    date_folder = folder / PINNED_SKEW.name / "run_date=2026-01-15"
    (date_folder / "run_id=mine").mkdir()
    (folder / PINNED_SKEW.name / "notes").mkdir()
    before, ledger = latest(folder), sorted(path.name for path in (folder / "bias_runs").glob("*/*"))

    # What is younger than a month, or may still be running, stays.
    assert maintain(tmp_path, folder).summary["removals"] == 0
    assert {path.name for path in date_folder.iterdir()} == {f"run_id={name}" for name in (old, current, dead, "mine")}
    planned = maintain(tmp_path, folder, "--keep-days", "0", "--dry-run").summary
    assert (planned["status"], planned["runs"], planned["undated"]) == ("planned", [old], ["mine"])

    plan = plan_maintenance(spark, store, EAGER, compact=True)
    assert [(removal.run_id, removal.reason, removal.table) for removal in plan.removals] == [
        (old, "superseded", "pinned_skew"),
        (dead, "failed", "pinned_skew"),
    ]
    # Killed after the first, the next goes on where it stopped.
    assert maintain(tmp_path, folder, "--keep-days", "0").summary["runs"] == [old]
    assert [removal.run_id for removal in plan_maintenance(spark, store, EAGER, compact=True).removals] == [dead]
    remove_runs(spark, store, plan.removals)
    assert {path.name for path in date_folder.iterdir()} == {f"run_id={current}", "run_id=mine"}
    assert latest(folder) == before == [("a", 0.7), ("b", 0.7)]
    assert sorted(path.name for path in (folder / "bias_runs").glob("*/*")) == ledger


@pytest.mark.spark("the embedded engine writes one file")
@LISTING
def test_a_run_in_many_small_files_is_copied_and_superseded(spark: SparkSession, tmp_path: Path) -> None:
    store, table = PathStore(str(tmp_path)), EXAMPLE_ATTRIBUTIONS
    run = publish_examples(spark, store)
    accept(spark, store, run, "known", "Ada")
    assert len(store.file_sizes(spark, table, [run])[0]) > 2
    for policy in (RECENT, EAGER):
        plan = plan_maintenance(spark, store, policy, compact=True)
        assert [fragmented.run_id for fragmented in plan.fragmented] == [run.run_id]
    assert plan_maintenance(spark, store, RECENT, compact=False).fragmented == ()
    before = read_latest(tmp_path, "row_id, score", table=table.name)
    copy = copy_run(spark, store, run)
    assert len(store.file_sizes(spark, table, [copy])[0]) == 1
    assert read_latest(tmp_path, "row_id, score", table=table.name) == before
    assert plan_maintenance(spark, store, RECENT, compact=True).fragmented == ()
    again = copy_run(spark, store, copy)
    ledger = {row["run_id"]: row for row in read_ledger(spark, store, RUN_DATE, RUN_DATE)}
    original = {"config_hash", "warnings", "table_rows", "n_rows"}
    for run_id in (copy.run_id, again.run_id):
        assert {name: ledger[run_id][name] for name in original} == {
            name: ledger[run.run_id][name] for name in original
        }
        assert ledger[run_id]["copied_from_run_id"] == run.run_id
    assert ledger[run.run_id]["copied_from_run_id"] is None
    acceptance = find_acceptance(spark, store, again)
    assert acceptance is not None
    assert (acceptance["acceptance_note"], acceptance["accepted_by"]) == ("known", "Ada")


def test_a_copy_is_accepted_before_it_is_seen(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PathStore(str(tmp_path))
    run = publish_skew(spark, store, 0.6)
    accept(spark, store, run, "known", "Ada")
    accepted: list[Any] = []

    def publish_accepted(spark: SparkSession, tables: Any, copy: Run, store: Store, record: RunRecord) -> Run:
        accepted.append(find_acceptance(spark, store, copy))
        return publish(spark, tables, copy, store, record)

    monkeypatch.setattr(job, "publish", publish_accepted)
    copy_run(spark, store, run)
    assert [acceptance["accepted_by"] for acceptance in accepted] == ["Ada"]


@LISTING
def test_a_date_that_is_measured_during_maintenance_does_not_stop_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PathStore(str(tmp_path / "tables"))
    first, second = publish_skew(spark, store, 0.6), publish_examples(spark, store)

    def fragment(*arguments: Any, **named: Any) -> job.MaintenancePlan:
        return replace(plan_maintenance(*arguments, **named), fragmented=(first, second))

    def copy_second(spark: SparkSession, store: Store, run: Run) -> Run:
        if run == first:
            raise PublishConflict("measured again")
        return copy_run(spark, store, run)

    monkeypatch.setattr(job, "plan_maintenance", fragment)
    monkeypatch.setattr(job, "copy_run", copy_second)
    done = maintain(tmp_path, tmp_path / "tables")
    assert done.code == 0, done.err
    assert len(done.summary["copies"]) == 1
    assert first.run_id in done.summary["warnings"][0]


@pytest.mark.spark("the embedded engine writes one file")
@LISTING
def test_a_run_of_which_files_are_lost_is_not_copied(spark: SparkSession, tmp_path: Path) -> None:
    store = PathStore(str(tmp_path))
    run = publish_examples(spark, store)
    max(tmp_path.glob(f"{EXAMPLE_ATTRIBUTIONS.name}/*/*/*.parquet")).unlink()
    with pytest.raises(InputError, match="8 rows"):
        copy_run(spark, store, run)
    store.remove_run(spark, LOSS_BY_SEGMENT, run)
    plan = plan_maintenance(spark, store, RECENT, compact=True)
    assert (plan.fragmented, plan.lost) == ((), {run.run_id: [LOSS_BY_SEGMENT.name]})


@LISTING
def test_a_run_of_which_a_newer_version_wrote_a_table_is_not_copied(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, store = publish_skew(spark, PathStore(str(tmp_path)), 0.6), PathStore(str(tmp_path))
    monkeypatch.setattr(PathStore, "file_sizes", lambda *_: [[1, 1, 1]])
    monkeypatch.setattr(job, "TABLES", {PINNED_SKEW.name: replace(PINNED_SKEW, per_row=True)})
    assert plan_maintenance(spark, store, RECENT, compact=True).fragmented == (run,)
    rows = {PINNED_SKEW.name: 1, "table_of_a_newer_version": 1}
    monkeypatch.setattr(job, "to_run", lambda row: replace(to_run(row), table_rows=rows))
    plan = plan_maintenance(spark, store, RECENT, compact=True)
    assert (plan.fragmented, plan.lost) == ((), {})


@LISTING
def test_a_folder_that_another_job_deletes_at_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it is deleted here, and between its listing and the look at its size."""
    folder, remove, scan = tmp_path / "run", shutil.rmtree, os.scandir

    def remove_twice(path: Path) -> None:
        remove(path)
        remove(path)

    folder.mkdir()
    monkeypatch.setattr(shutil, "rmtree", remove_twice)
    delete_folder(spark, str(folder))
    assert not folder.exists()

    folder.mkdir()
    with scan(tmp_path) as listed:
        entries = list(listed)
    folder.rmdir()
    monkeypatch.setattr(os, "scandir", lambda _: entries)
    assert list_folder(spark, str(tmp_path)) == [("run", True, 0)]


@LISTING
def test_without_a_ledger_nothing_is_removed(spark: SparkSession, tmp_path: Path) -> None:
    leave_behind(tmp_path)
    with pytest.raises(InputError, match="bias_runs"):
        plan_maintenance(spark, PathStore(str(tmp_path)), EAGER, compact=True)
    for flags in ((), ("--dry-run",)):
        done = maintain(tmp_path, tmp_path / "misspelled", *flags)
        assert (done.code, done.out) == (3, "")
        assert "[output]: " in done.err


@pytest.mark.slow
@pytest.mark.spark("writes to a catalog")
@LISTING
def test_partitions_of_a_catalog_go_with_their_directories(spark: SparkSession, catalog: CatalogStore) -> None:
    old, current = (publish_skew(spark, catalog, auc) for auc in (0.6, 0.7))
    described = spark.sql(f"DESCRIBE TABLE EXTENDED {catalog.name(PINNED_SKEW.name)}").where("col_name = 'Location'")
    folder = Path(described.collect()[0].data_type.removeprefix("file:"))
    dead = leave_behind(folder.parent)
    plan = plan_maintenance(spark, catalog, EAGER, compact=True)
    assert [removal.run_id for removal in plan.removals] == [old.run_id, dead]
    remove_runs(spark, catalog, plan.removals)
    assert catalog.list_runs(spark, PINNED_SKEW) == {(RUN_DATE, current.run_id)}
    assert {path.name for path in (folder / "run_date=2026-01-15").iterdir()} == {f"run_id={current.run_id}"}
    assert catalog.read(spark, PINNED_SKEW, current).count() == 2
    assert spark.table(catalog.name(PINNED_SKEW.name)).count() == 2
    assert catalog.list_runs(spark, BIAS_RUNS) == {(RUN_DATE, run.run_id) for run in (old, current)}
