"""Publishing when something breaks: nothing half-done is ever seen, and the night before is untouched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from biasspark.errors import BiasSparkError, PublishConflict
from biasspark.tables.maintenance import copy_run
from biasspark.tables.publish import publish
from biasspark.tables.runs import Run, new_run
from biasspark.tables.schemas import (
    BIAS_METRICS,
    BIAS_RUNS,
    LABEL_BALANCE,
    MODEL_SUMMARY,
    PINNED_SKEW,
    REJECTED_ROWS,
    U_STATISTICS,
    Table,
    tables_of,
)
from biasspark.tables.store import PathStore
from tests.lake_nights import skew_frame
from tests.sample_night import NIGHT, night_frames, read_latest, record_of, run_at, start_run

ROOT = Path(__file__).resolve().parents[2]
BEFORE = [("female", 0.6), ("male", 0.6)]
AFTER = [("female", 0.7), ("male", 0.7)]


class BrokenStore(PathStore):
    """A store that breaks before or after one write."""

    def __init__(self, path: str, breaks_at: Table, after: bool = False) -> None:
        super().__init__(path)
        self.breaks_at, self.after = breaks_at, after

    def write(self, table: Table, rows: DataFrame, run: Run) -> None:
        if table == self.breaks_at and not self.after:
            raise BiasSparkError(f"{table.name}: broken")
        super().write(table, rows, run)
        if table == self.breaks_at:
            raise BiasSparkError(f"{table.name}: broken")


class ForgetfulStore(PathStore):
    """A store that gives back other rows than it was given."""

    def read(self, spark: SparkSession, table: Table, run: Run) -> DataFrame:
        rows = super().read(spark, table, run)
        return rows.limit(1) if table == BIAS_METRICS else rows


def seen(folder: Path) -> list[tuple[Any, ...]]:
    return read_latest(folder, "identity, subgroup_auc")


# ---- steps that fail


BETWEEN = [pytest.param(table, marks=pytest.mark.slow) for table in (LABEL_BALANCE, REJECTED_ROWS)]


@pytest.mark.parametrize("table", [U_STATISTICS, *BETWEEN, BIAS_RUNS], ids=lambda table: table.name)
def test_a_write_that_fails_publishes_nothing(spark: SparkSession, night_before: Path, table: Table) -> None:
    """The write of a table, first, last or the ledger's, fails: the table is named, and readers go on seeing the night
    before.
    """
    with pytest.raises(BiasSparkError, match=f"{table.name}: broken"):
        publish(night_frames(spark, 0.7), start_run(), BrokenStore(str(night_before), table), record_of())
    assert seen(night_before) == BEFORE


def test_rows_that_do_not_come_back_are_not_published(spark: SparkSession, night_before: Path) -> None:
    """A table comes back with fewer rows than were written: the run is not published."""
    run = start_run()
    with pytest.raises(BiasSparkError) as caught:
        publish(night_frames(spark, 0.7), run, ForgetfulStore(str(night_before)), record_of())
    (fault,) = caught.value.faults
    assert fault.startswith(
        f"{night_before}/bias_metrics/run_date=2026-01-15/run_id={run.run_id}: 1 rows with checksum "
    )
    assert "2 rows with checksum" in fault
    assert seen(night_before) == BEFORE


def test_a_rerun_after_a_failure_is_published(spark: SparkSession, tmp_path: Path) -> None:
    """A night is run again after its write failed: the rerun is published, whatever the failure left behind."""
    store = PathStore(str(tmp_path))
    with pytest.raises(BiasSparkError, match="broken"):
        publish(night_frames(spark, 0.6), start_run(), BrokenStore(str(tmp_path), BIAS_RUNS), record_of())
    assert not (tmp_path / "bias_runs").exists()
    publish(night_frames(spark, 0.7), start_run(), store, record_of())
    assert seen(tmp_path) == AFTER
    assert len(list((tmp_path / "bias_metrics" / "run_date=2026-01-15").iterdir())) == 2


def test_a_run_whose_ledger_row_is_there_is_published_though_its_write_failed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The store reports a failure after the ledger's row was written: the run counts as published, once."""
    run = start_run()
    published = publish(night_frames(spark, 0.7), run, BrokenStore(str(tmp_path), BIAS_RUNS, after=True), record_of())
    assert published.run == run
    assert seen(tmp_path) == AFTER


# ---- two at once


@pytest.mark.slow
def test_of_two_runs_at_once_the_second_to_publish_gives_way(spark: SparkSession, tmp_path: Path) -> None:
    """Another run publishes the same night meanwhile: exit code 4, and the night of the first stays."""
    store = PathStore(str(tmp_path))
    slow, quick = start_run(), start_run()
    elsewhere = start_run(corpus="wiki")
    published = publish(night_frames(spark, 0.7), quick, store, record_of())
    with pytest.raises(PublishConflict) as caught:
        publish(night_frames(spark, 0.6), slow, store, record_of())
    assert caught.value.exit_code == 4
    assert str(caught.value) == (
        f"bias_runs: run {quick.run_id} of bias_metrics for 2026-01-15, corpus 'civil', was published at "
        f"{published.published_at}, after this one started at {slow.started_at}. Of two runs of a night at once the "
        "first to publish counts. Nothing was published. Run again to supersede it."
    )
    assert seen(tmp_path) == AFTER
    publish(night_frames(spark, 0.5), elsewhere, store, record_of())
    assert read_latest(tmp_path, "DISTINCT corpus, subgroup_auc") == [("civil", 0.7), ("wiki", 0.5)]


# ---- a copy at once with a run


class InterruptedStore(PathStore):
    """A store in which something else happens once, before a table is written."""

    def __init__(self, path: str, happens: Callable[[], object]) -> None:
        super().__init__(path)
        self.happens = [happens]

    def write(self, table: Table, rows: DataFrame, run: Run) -> None:
        while self.happens:
            self.happens.pop()()
        super().write(table, rows, run)


def publish_skew(spark: SparkSession, store: PathStore, auc: float) -> Run:
    run = new_run(NIGHT, "civil", PINNED_SKEW.job)
    return publish({PINNED_SKEW: skew_frame(spark, auc)}, run, store, record_of()).run


def seen_skew(folder: Path) -> list[tuple[Any, ...]]:
    return read_latest(folder, "DISTINCT pinned_auc", table=PINNED_SKEW.name)


def test_a_copy_of_an_earlier_run_is_no_other_run(spark: SparkSession, tmp_path: Path) -> None:
    """A night is compacted while it is run again, and once more: the new run is published, and readers see it."""
    store = PathStore(str(tmp_path))
    earlier = publish_skew(spark, store, 0.6)

    def compact() -> None:
        copy_run(spark, store, copy_run(spark, store, earlier))

    publish_skew(spark, InterruptedStore(str(tmp_path), compact), 0.7)
    assert seen_skew(tmp_path) == [(0.7,)]


def test_a_copy_gives_way_to_a_run(spark: SparkSession, tmp_path: Path) -> None:
    """A night is run again while it is compacted: exit code 4 for the copy, and readers see the new run."""
    store = PathStore(str(tmp_path))
    earlier = publish_skew(spark, store, 0.6)
    with pytest.raises(PublishConflict):
        copy_run(spark, InterruptedStore(str(tmp_path), lambda: publish_skew(spark, store, 0.7)), earlier)
    assert seen_skew(tmp_path) == [(0.7,)]


def test_a_copy_does_not_hide_the_run_that_it_is_of(spark: SparkSession, tmp_path: Path) -> None:
    """Another run publishes the same night meanwhile, and is compacted at once: exit code 4 all the same."""
    store = PathStore(str(tmp_path))

    def publish_and_compact() -> None:
        copy_run(spark, store, publish_skew(spark, store, 0.7))

    with pytest.raises(PublishConflict):
        publish_skew(spark, InterruptedStore(str(tmp_path), publish_and_compact), 0.6)
    assert seen_skew(tmp_path) == [(0.7,)]


# ---- places that cannot be written


def test_a_path_below_a_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """The output lies below what is a file: the place is named, in one line."""
    (tmp_path / "file").write_text("no folder")
    place = f"{tmp_path}/file/warehouse/u_statistics/run_date=2026-01-15/run_id=r1"
    with pytest.raises(BiasSparkError) as caught:
        publish(night_frames(spark), run_at(1, "r1"), PathStore(f"{tmp_path}/file/warehouse"), record_of())
    assert caught.value.exit_code == 1
    assert str(caught.value).startswith(f"{place}: could not be written, ")
    assert "directory" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_read_only_folder_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """The output is a folder that may only be read: the place is named."""
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(BiasSparkError, match=f"{tmp_path}/u_statistics/.* could not be written"):
            publish(night_frames(spark), start_run(), PathStore(str(tmp_path)), record_of())
    finally:
        tmp_path.chmod(0o700)


# ---- processes that die

DYING = """
import os, resource, signal, sys

import pyspark.sql.functions as F

from biasspark.errors import BiasSparkError
from biasspark.session import build_session
from biasspark.tables.publish import publish
from biasspark.tables.schemas import REJECTED_ROWS
from biasspark.tables.store import PathStore
from tests.sample_night import night_frames, record_of, start_run

folder, table_of_death, limit = sys.argv[1], sys.argv[2], int(sys.argv[3])


class DyingStore(PathStore):
    def write(self, table, rows, run):
        if table.name == table_of_death:
            os.killpg(0, signal.SIGKILL)
        super().write(table, rows, run)


if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
settings = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.parquet.compression.codec": "uncompressed",  # small on its way, large in the file
}
spark = build_session("dies", settings)
frames = night_frames(spark, 0.7)
if limit:
    ids = F.repeat(F.col("id").cast("string"), 500).alias("row_id")
    frames[REJECTED_ROWS] = spark.range(5000).select(
        ids, F.lit(None).cast("string").alias("model"), F.lit("null_label").alias("reason")
    )
try:
    publish(frames, start_run(), DyingStore(folder), record_of())
except BiasSparkError as error:
    print(error)
    sys.exit(error.exit_code)
"""


def run_dying(folder: Path, table_of_death: str = "", limit: int = 0) -> subprocess.CompletedProcess[str]:
    """Publish in a process of its own, which kills itself and its JVM before a write, or can write no large file."""
    return subprocess.run(
        [sys.executable, "-c", DYING, str(folder), table_of_death, str(limit)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "SPARK_REMOTE"},
        start_new_session=True,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.slow
@pytest.mark.parametrize("table", [MODEL_SUMMARY, BIAS_RUNS], ids=lambda table: table.name)
def test_a_driver_killed_before_a_write_leaves_nothing_that_is_seen(
    spark: SparkSession, night_before: Path, table: Table
) -> None:
    """The driver dies before it writes a table, and before the ledger: readers go on seeing the night before."""

    def runs() -> int:
        return len(list(night_before.glob(f"*/run_date={NIGHT}/run_id=*")))

    before = runs()
    done = run_dying(night_before, table.name)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert table != BIAS_RUNS or runs() == before + len(tables_of("bias_metrics"))
    assert seen(night_before) == BEFORE
    PathStore(str(night_before)).check(spark, [U_STATISTICS, BIAS_METRICS])


@pytest.mark.slow
def test_a_full_disk_is_named_and_publishes_nothing(night_before: Path) -> None:
    """A file may not grow beyond a limit: the place is named, and readers go on seeing the night before.

    A limit on the size of files fails a write half-way, as a full disk does.
    """
    done = run_dying(night_before, limit=1_000_000)
    assert done.returncode == 1, done.stderr
    assert f"{night_before}/rejected_rows/run_date={NIGHT}/run_id=" in done.stdout
    assert "could not be written, java.io.IOException: File too large. Nothing was published." in done.stdout
    assert seen(night_before) == BEFORE
