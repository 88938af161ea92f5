"""Disks that run full or may not be written, and tasks that fail half-way: the run before stays as it was."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import SparkSession

from biasspark.errors import BiasSparkError
from biasspark.tables.publish import Rows, publish
from biasspark.tables.schemas import REJECTED_ROWS, Table
from biasspark.tables.store import PathStore
from tests.harness.sample_run import RUN_DATE, read_latest, record_of, start_run, suite_tables

BEFORE = [("female", 0.6), ("male", 0.6)]
AFTER = [("female", 0.7), ("male", 0.7)]
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


def latest(disk: Path) -> list[tuple[Any, ...]]:
    return read_latest(disk / "warehouse", "identity, subgroup_auc")


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
    assert re.match(rf"{small_disk}/warehouse/\w+/run_date={RUN_DATE}/run_id=", str(caught.value))
    assert re.search(r"could not be written, (java\.io\.IOException: )?No space left on device", str(caught.value))
    assert latest(small_disk) == BEFORE
    mount("-o", "remount,size=50m", str(small_disk))
    publish(spark, with_rejects(spark, HASH), start_run(), store, record_of())
    assert latest(small_disk) == AFTER
    assert read_latest(small_disk / "warehouse", "count(*)", table="rejected_rows") == [(N_REJECTS,)]


def test_a_disk_that_may_only_be_read_is_named(spark: SparkSession, small_disk: Path) -> None:
    """The disk is read-only: the folder is named, and readers still see the earlier run.

    Root, too, may not write there.
    """
    mount("-o", "remount,ro", str(small_disk))
    with pytest.raises(BiasSparkError) as caught:
        publish(spark, suite_tables(0.7), start_run(), PathStore(f"{small_disk}/warehouse"), record_of())
    assert f"{small_disk}/warehouse/" in str(caught.value)
    assert "could not be written, " in str(caught.value)
    assert "\n" not in str(caught.value)
    assert latest(small_disk) == BEFORE


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
    assert "could not be written, " in str(caught.value)
    assert "[USER_RAISED_EXCEPTION]. Nothing was published." in str(caught.value)
    assert "canary" not in str(caught.value)
    assert latest(tmp_path) == BEFORE
    publish(spark, suite_tables(0.7), start_run(), store, record_of())
    assert latest(tmp_path) == AFTER
