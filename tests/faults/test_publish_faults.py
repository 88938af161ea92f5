"""Publishing when a step, a disk or a task fails: nothing half-done is ever seen, and the run before is untouched."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession

from biasspark.errors import BiasSparkError, PublishConflict
from biasspark.tables.ledger import read_ledger
from biasspark.tables.publish import Rows, publish
from biasspark.tables.runs import Run
from biasspark.tables.schemas import (
    BIAS_METRICS,
    BIAS_RUNS,
    PINNED_SKEW,
    REJECTED_ROWS,
    Table,
)
from biasspark.tables.spark_schemas import to_frame, value_schema
from biasspark.tables.store import PathStore
from biasspark.text import show_time
from biasspark.workflows.maintain import copy_run
from tests.harness.sample_run import (
    RUN_DATE,
    breaking,
    publish_skew,
    read_latest,
    record_of,
    run_at,
    start_run,
    suite_tables,
)
from tests.harness.submitting import run_python

BEFORE = [("female", 0.6), ("male", 0.6)]
AFTER = [("female", 0.7), ("male", 0.7)]


class ChangingStore(PathStore):
    """A store that returns other rows than it was given."""

    def __init__(self, path: str, change: Callable[[Any], Any]) -> None:
        super().__init__(path)
        self.change = change

    def read_rows(self, spark: SparkSession, table: Table, *runs: Run) -> pa.Table:
        rows = super().read_rows(spark, table, *runs)
        return self.change(rows) if table == BIAS_METRICS else rows

    def read(self, spark: SparkSession, table: Table, *runs: Run) -> DataFrame:
        changed: DataFrame = self.change(super().read(spark, table, *runs))
        return changed


def latest(folder: Path) -> list[tuple[Any, ...]]:
    return read_latest(folder, "identity, subgroup_auc")


def nudge(rows: pa.Table) -> pa.Table:
    """Return rows with one value off by its last bit."""
    auc = [0.7000000000000001, *rows["subgroup_auc"].to_pylist()[1:]]
    return rows.set_column(rows.column_names.index("subgroup_auc"), "subgroup_auc", [auc])


# ---- steps that fail


@pytest.mark.parametrize("table", [*suite_tables(), BIAS_RUNS], ids=lambda table: table.name)
def test_a_write_that_fails_publishes_nothing(spark: SparkSession, run_before: Path, table: Table) -> None:
    """The write of the first table, the last, or the ledger fails: the table is named, and readers still see the
    earlier run.
    """
    store = PathStore(str(run_before))
    with pytest.raises(BiasSparkError, match=f"{table.name}: broken"), breaking(store, table):
        publish(spark, suite_tables(0.7), start_run(), store, record_of())
    assert latest(run_before) == BEFORE


@pytest.mark.parametrize("change", [lambda rows: rows.slice(1), nudge], ids=["a row fewer", "a bit flipped"])
def test_rows_that_do_not_come_back_are_not_published(
    spark: SparkSession, run_before: Path, change: Callable[[Any], Any]
) -> None:
    """A table is read back with fewer rows than were written, or another value: the run is not published."""
    run = start_run()
    with pytest.raises(BiasSparkError) as caught:
        publish(spark, suite_tables(0.7), run, ChangingStore(str(run_before), change), record_of())
    (fault,) = caught.value.messages
    assert fault.startswith(f"{run_before}/bias_metrics/{run.partition}: ")
    assert f" {2 if change is nudge else 1} rows " in fault
    assert latest(run_before) == BEFORE


CHANGES = {"a row": (lambda rows: rows.limit(1), 1), "a value": (lambda rows: rows.withColumn("reason", F.lit("x")), 3)}


@pytest.mark.parametrize("change", CHANGES)
def test_rows_of_a_large_table_that_do_not_come_back_are_not_published(
    spark: SparkSession, run_before: Path, change: str
) -> None:
    """A table that grows with the corpus is read back with fewer rows, or another value: the run is not published."""
    frame = to_frame(spark, suite_tables(rejected=3)[REJECTED_ROWS], value_schema(REJECTED_ROWS))
    apply, n_rows = CHANGES[change]
    run, store = start_run(), ChangingStore(str(run_before), apply)
    with pytest.raises(BiasSparkError) as caught:
        publish(spark, {REJECTED_ROWS: frame}, run, store, record_of())
    (fault,) = caught.value.messages
    assert fault.startswith(f"{run_before}/rejected_rows/{run.partition}: {n_rows} rows ")
    assert " 3 rows " in fault
    assert latest(run_before) == BEFORE


def test_a_rerun_after_a_failure_is_published(spark: SparkSession, tmp_path: Path) -> None:
    """A date is measured again after its write failed: the rerun is published, whatever the failure left behind."""
    store = PathStore(str(tmp_path))
    with pytest.raises(BiasSparkError, match="broken"), breaking(store, BIAS_RUNS):
        publish(spark, suite_tables(0.6), start_run(), store, record_of())
    assert not (tmp_path / "bias_runs").exists()
    publish(spark, suite_tables(0.7), start_run(), store, record_of())
    assert latest(tmp_path) == AFTER
    assert len(list((tmp_path / "bias_metrics" / "run_date=2026-01-15").iterdir())) == 2


def test_a_run_whose_ledger_row_is_there_is_published_though_its_write_failed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The store reports a failure after the ledger's row was written: the run counts as published, once."""
    run, store = start_run(), PathStore(str(tmp_path))
    with breaking(store, BIAS_RUNS, after=True):
        assert publish(spark, suite_tables(0.7), run, store, record_of()) == run
    assert latest(tmp_path) == AFTER


def test_a_failed_write_of_the_ledger_is_named_if_it_cannot_be_read_either(spark: SparkSession, tmp_path: Path) -> None:
    """The ledger's row cannot be written, nor the ledger read to check for it: the error is that of the write."""
    store, empty = PathStore(str(tmp_path)), BIAS_RUNS.full_arrow_schema.empty_table()
    read = patch.object(store, "read_ledger", side_effect=[empty, empty, BiasSparkError("unreadable")])
    with pytest.raises(BiasSparkError, match="bias_runs: broken"), breaking(store, BIAS_RUNS), read:
        publish(spark, suite_tables(), start_run(), store, record_of())


# ---- two at once


class InterruptedStore(PathStore):
    """A store in which something else happens once, before a table is written."""

    def __init__(self, path: str, happens: Callable[[], object]) -> None:
        super().__init__(path)
        self.happens = [happens]

    def write(self, spark: SparkSession, table: Table, rows: Rows, run: Run) -> None:
        while self.happens:
            self.happens.pop()()
        super().write(spark, table, rows, run)


def latest_skew(folder: Path) -> list[tuple[Any, ...]]:
    return read_latest(folder, "DISTINCT pinned_auc", table=PINNED_SKEW.name)


def test_of_two_runs_at_once_the_second_to_publish_gives_way(spark: SparkSession, tmp_path: Path) -> None:
    """Another run publishes the same date meanwhile: exit code 4, and the first run stays.

    It may have come before the run writes its tables, or while it does.
    """
    store = PathStore(str(tmp_path))
    slow, elsewhere = start_run(), start_run(corpus="wiki")
    quick = publish(spark, suite_tables(0.6), start_run(), store, record_of())
    with pytest.raises(PublishConflict) as caught:
        publish(spark, suite_tables(0.1), slow, store, record_of())
    assert caught.value.exit_code == 4
    (row,) = read_ledger(spark, store)
    times = map(show_time, (row["published_at"], slow.started_at))
    assert all(known in str(caught.value) for known in (quick.run_id, *times))
    assert not (tmp_path / "bias_metrics" / slow.partition).exists()

    later = InterruptedStore(str(tmp_path), lambda: publish(spark, suite_tables(0.7), start_run(), store, record_of()))
    with pytest.raises(PublishConflict):
        publish(spark, suite_tables(0.1), start_run(), later, record_of())
    publish(spark, suite_tables(0.5), elsewhere, store, record_of())
    assert read_latest(tmp_path, "DISTINCT corpus, subgroup_auc") == [("civil", 0.7), ("wiki", 0.5)]


def test_a_copy_of_an_earlier_run_is_no_other_run(spark: SparkSession, tmp_path: Path) -> None:
    """A run is compacted while its date is measured again, and once more: the new run is published and seen."""
    store = PathStore(str(tmp_path))
    earlier = publish_skew(spark, store, 0.6)

    def compact() -> None:
        copy_run(spark, store, copy_run(spark, store, earlier))

    publish_skew(spark, InterruptedStore(str(tmp_path), compact), 0.7)
    assert latest_skew(tmp_path) == [(0.7,)]


def test_a_copy_gives_way_to_a_run(spark: SparkSession, tmp_path: Path) -> None:
    """A date is measured again while its run is compacted: exit code 4 for the copy, and readers see the new run."""
    store = PathStore(str(tmp_path))
    earlier = publish_skew(spark, store, 0.6)
    with pytest.raises(PublishConflict):
        copy_run(spark, InterruptedStore(str(tmp_path), lambda: publish_skew(spark, store, 0.7)), earlier)
    assert latest_skew(tmp_path) == [(0.7,)]


def test_a_copy_does_not_hide_the_run_that_it_is_of(spark: SparkSession, tmp_path: Path) -> None:
    """Another run publishes the same date meanwhile, and is compacted at once: exit code 4 all the same."""
    store = PathStore(str(tmp_path))

    def publish_and_compact() -> None:
        copy_run(spark, store, publish_skew(spark, store, 0.7))

    with pytest.raises(PublishConflict):
        publish_skew(spark, InterruptedStore(str(tmp_path), publish_and_compact), 0.6)
    assert latest_skew(tmp_path) == [(0.7,)]


# ---- places that cannot be written


def test_a_path_below_a_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """The output path lies below a file: it is named, in one line."""
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(BiasSparkError) as caught:
        publish(spark, suite_tables(), run_at(1, "r1"), PathStore(f"{tmp_path}/file/warehouse"), record_of())
    assert caught.value.exit_code == 1
    path = f"{tmp_path}/file/warehouse/u_statistics/run_date=2026-01-15/run_id=r1"
    assert str(caught.value).startswith(f"{path}: ")
    assert "Not a directory" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_read_only_folder_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """The output folder is read-only: it is named."""
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(BiasSparkError, match=f"{tmp_path}/u_statistics/.*written"):
            publish(spark, suite_tables(), start_run(), PathStore(str(tmp_path)), record_of())
    finally:
        tmp_path.chmod(0o700)


# ---- a file that may not grow

LIMITED = """
import resource, sys

import pyspark.sql.functions as F

from biasspark.errors import BiasSparkError
from biasspark.session import build_session
from biasspark.tables.publish import publish
from biasspark.tables.schemas import REJECTED_ROWS
from biasspark.tables.store import PathStore
from tests.harness.sample_run import record_of, start_run, suite_tables

resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
settings = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.parquet.compression.codec": "uncompressed",  # small on its way, large in the file
}
spark = build_session("file size", settings)
ids = F.repeat(F.col("id").cast("string"), 500).alias("row_id")
no_model, reason = F.lit(None).cast("string").alias("model"), F.lit("null_label").alias("reason")
rejects = spark.range(5000).select(ids, no_model, reason)
try:
    publish(spark, suite_tables(0.7) | {REJECTED_ROWS: rejects}, start_run(), PathStore(sys.argv[1]), record_of())
except BiasSparkError as error:
    print(error)
    sys.exit(error.exit_code)
"""


@pytest.mark.slow
def test_a_full_disk_is_named_and_publishes_nothing(run_before: Path) -> None:
    """A file cannot grow beyond a limit: the folder is named, and readers still see the earlier run.

    A limit on the size of files fails a write half-way, as a full disk does.
    """
    done = run_python("-c", LIMITED, run_before)
    assert done.returncode == 1, done.stderr
    assert f"{run_before}/rejected_rows/run_date={RUN_DATE}/run_id=" in done.stdout
    assert "File too large" in done.stdout
    assert latest(run_before) == BEFORE


# ---- disks that run full or may not be written, and tasks that fail half-way

N_REJECTS = 15_000


def mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this user may mount nothing: {done.stderr.strip()}")


@pytest.fixture
def small_disk(run_before: Path, tmp_path: Path) -> Iterator[Path]:
    """Return a warehouse with one run on a disk of its own, with room for little more."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount("-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(folder))
    try:
        copytree(run_before, folder / "warehouse")
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def with_rejects(spark: SparkSession, row_id: str) -> dict[Table, Rows]:
    """Return the tables of a run in which many rows are rejected."""
    rejects = spark.range(0, N_REJECTS, 1, 1).select(
        F.expr(row_id).alias("row_id"), F.lit(None).cast("string").alias("model"), F.lit("null_label").alias("reason")
    )
    return suite_tables(0.7) | {REJECTED_ROWS: rejects}


HASH = "sha2(cast(id AS STRING), 512)"


@pytest.mark.spark("what Spark says of a full disk")
def test_a_disk_that_runs_full_publishes_nothing_and_the_rerun_is_whole(spark: SparkSession, small_disk: Path) -> None:
    """The disk runs full: a folder is named, readers see the earlier run, and a rerun with more room publishes
    everything.

    Tables are written side by side, so it may be that of any table.
    """
    store = PathStore(f"{small_disk}/warehouse")
    with pytest.raises(BiasSparkError) as caught:
        publish(spark, with_rejects(spark, HASH), start_run(), store, record_of())
    fault = rf"{small_disk}/warehouse/\w+/run_date={RUN_DATE}/run_id=.*No space left on device"
    assert re.match(fault, str(caught.value))
    assert latest(small_disk / "warehouse") == BEFORE
    mount("-o", "remount,size=50m", str(small_disk))
    publish(spark, with_rejects(spark, HASH), start_run(), store, record_of())
    assert latest(small_disk / "warehouse") == AFTER
    assert read_latest(small_disk / "warehouse", "count(*)", table="rejected_rows") == [(N_REJECTS,)]


def test_a_disk_that_may_only_be_read_is_named(spark: SparkSession, small_disk: Path) -> None:
    """The disk is read-only: the folder is named, and readers still see the earlier run.

    Root, too, may not write there.
    """
    mount("-o", "remount,ro", str(small_disk))
    with pytest.raises(BiasSparkError) as caught:
        publish(spark, suite_tables(0.7), start_run(), PathStore(f"{small_disk}/warehouse"), record_of())
    assert f"{small_disk}/warehouse/" in str(caught.value)
    assert "written" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert latest(small_disk / "warehouse") == BEFORE


@pytest.mark.spark("a task of Spark fails")
def test_a_task_that_fails_in_the_middle_of_a_file_publishes_nothing(
    spark: SparkSession, run_before: Path, tmp_path: Path
) -> None:
    """A task fails in the middle of a file: the table is named without the value it failed on, and readers still see
    the earlier run.

    It has written thousands of rows by then.
    """
    copytree(run_before, tmp_path / "warehouse")
    store = PathStore(str(tmp_path / "warehouse"))
    half_way = f"if(id < {N_REJECTS // 2}, {HASH}, raise_error('canary-42'))"
    with pytest.raises(BiasSparkError) as caught:
        publish(spark, with_rejects(spark, half_way), start_run(), store, record_of())
    assert f"{tmp_path}/warehouse/rejected_rows/" in str(caught.value)
    assert "written" in str(caught.value)
    assert "[USER_RAISED_EXCEPTION]" in str(caught.value)
    assert "canary" not in str(caught.value)
    assert latest(tmp_path / "warehouse") == BEFORE
    publish(spark, suite_tables(0.7), start_run(), store, record_of())
    assert latest(tmp_path / "warehouse") == AFTER
