"""The main job as a process of its own: by spark-submit, killed, beside another, and cut in other ways."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from biasspark.cli import job_parser, run_job
from biasspark.tables.publish import publish
from biasspark.tables.schemas import BIAS_RUNS, SCORE_BLOCKS, tables_of
from biasspark.tables.store import PathStore
from jobs import bias_metrics as job
from tests.compared_jobs import CANARY, JOB, N_ROWS, NIGHT, Place, list_runs, read_pages, read_tables
from tests.sample_night import night_frames, record_of, start_run
from tests.spark_versions import say_part
from tests.submitting import ROOT, submit, submitted, wait_for

pytestmark = pytest.mark.slow  # each starts Spark several times over

WINDOW_JOB = str(ROOT / "jobs" / "window_metrics.py")
UNASKED = {"template_scores", "jackknife_statistics", "score_blocks"}


def test_submit_runs_the_job_and_no_text_leaves_the_corpus(place: Place, tmp_path: Path) -> None:
    """A secret stands in every comment and in a column that nobody asks for: after nights and windows that succeed it
    is in no table, message, log or event log.

    Spark's event log holds every plan and every message of a task.
    """
    (tmp_path / "events").mkdir()
    events = [
        "spark.eventLog.enabled=true",
        f"spark.eventLog.dir=file://{tmp_path}/events",
        "spark.eventLog.compress=false",
    ]
    options = ("--master", "local[2]", *(word for event in events for word in ("--conf", event)))
    # A night that keeps its state withholds nothing.
    own = ("--config", str(place.config("submitted", privacy="")), "--set", "state.keep=true")
    summaries = []
    for job_flags in ((JOB, *own, "--run-date", NIGHT), (WINDOW_JOB, *own, "--from", NIGHT, "--to", NIGHT)):
        code, printed = submit(*options, *job_flags, cwd=tmp_path)
        assert code == 0, printed
        summaries.append(json.loads(printed.splitlines()[-1]))
        assert "Traceback" not in printed
        assert " WARN " not in printed
        assert " ERROR " not in printed
        assert CANARY not in printed
    assert [summary["n_rows"] for summary in summaries] == [N_ROWS, N_ROWS]
    assert summaries[0]["rejects"] == {"nan_score": 8, "score_not_numeric": 8}
    written = [
        path for folder in (tmp_path, place.folder / "submitted") for path in folder.rglob("*") if path.is_file()
    ]
    assert sum("events" in str(path) and path.stat().st_size > 10_000 for path in written) == 2
    for path in written:
        assert CANARY.encode() not in path.read_bytes(), path
    for table in (*tables_of("bias_metrics"), *tables_of("window_metrics"), BIAS_RUNS):  # pages are compressed
        files = f"{place.folder}/submitted/{table.name}/*/*/*.parquet"
        rows = duckdb.sql(f"SELECT * FROM read_parquet('{files}')").fetchall()
        assert rows or table.name in UNASKED - {SCORE_BLOCKS.name}
        assert CANARY not in repr(rows)


def test_submit_passes_exit_codes_on_and_no_failure_quotes_a_value(place: Place, tmp_path: Path) -> None:
    """A configuration is wrong, and a predicate fails on a comment: exit codes 2 and 3, each fault in plain words, and
    no message quotes a comment.
    """
    bad = ["--set", "label.threshold=high"]
    code, printed = submit("--master", "local[2]", JOB, *place.flags("refused"), *bad, cwd=tmp_path)
    assert code == 2, printed
    (fault,) = (line for line in printed.splitlines() if not line.startswith("WARNING: Using incubator modules"))
    assert fault == (
        'bias_metrics.py: error: [label] threshold = "high". It must be a number, not text. Correct it, or remove the '
        "line."
    )

    bad = ["--set", "slices.numbers=comment_text > 1"]
    code, printed = submit("--master", "local[2]", JOB, *place.flags("refused"), *bad, cwd=tmp_path)
    assert code == 3, printed
    [fault] = [line.partition("error: ")[2] for line in printed.splitlines() if "error: " in line]
    assert fault == (
        '[slices] numbers = "comment_text > 1": a text cannot be cast to the requested type. Use try_cast.'
        + say_part("comment_text > 1")
    )
    assert "Traceback" not in printed
    assert CANARY not in printed
    assert not (place.folder / "refused").exists()


# ---- a driver that dies


def kill_at(
    process: subprocess.Popen[str], stage: str, until: Path | None = None, pattern: str = "", more: int = 1
) -> None:
    """Kill the job and its JVM once a stage begins and, if a folder is given, has written so many more such files."""
    wait_for(process, stage)
    deadline = time.monotonic() + 300
    before = len(list(until.glob(pattern))) if until else 0
    while until and len(list(until.glob(pattern))) < before + more:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(timeout=60) == -signal.SIGKILL


def test_a_killed_job_leaves_nothing_that_is_seen(
    spark: SparkSession, place: Place, numbers: dict[str, list[str]], tmp_path: Path
) -> None:
    """The driver is killed while it ranks, and while it writes: readers go on seeing the night before, and a rerun
    publishes the whole night.
    """
    warehouse = place.folder / "killed"
    flags = place.flags("killed")
    publish(night_frames(spark), start_run("comments"), PathStore(str(warehouse)), record_of())
    before, runs = read_tables(warehouse), list_runs(warehouse)

    with submitted("--master", "local[2]", JOB, *flags, cwd=tmp_path) as process:
        kill_at(process, "ranking")
    assert (read_tables(warehouse), list_runs(warehouse)) == (before, runs)

    with submitted("--master", "local[2]", JOB, *flags, cwd=tmp_path) as process:
        kill_at(process, "publishing", warehouse, "bias_metrics/*/*/*.parquet")
    assert len(list((warehouse / "bias_metrics" / f"run_date={NIGHT}").iterdir())) == 2
    assert (read_tables(warehouse), list_runs(warehouse)) == (before, runs)

    with contextlib.redirect_stdout(io.StringIO()):
        assert run_job(job.main, job_parser(""), flags) == 0
    assert read_tables(warehouse) == numbers
    assert list_runs(warehouse) != runs


def test_a_job_killed_between_its_tables_and_the_ledger_is_run_again(
    place: Place, numbers: dict[str, list[str]], tmp_path: Path
) -> None:
    """The driver is killed when all tables are written but not the ledger: readers see nothing of it, and a rerun
    publishes the whole night.
    """
    warehouse = place.folder / "unpublished"
    flags = place.flags("unpublished")
    with submitted("--master", "local[2]", JOB, *flags, cwd=tmp_path) as process:
        kill_at(process, "publishing", warehouse, "*/*/*/part-*.parquet", more=len(tables_of("bias_metrics")))
    assert not (warehouse / BIAS_RUNS.name).exists()
    with contextlib.redirect_stdout(io.StringIO()):
        assert run_job(job.main, job_parser(""), flags) == 0
    assert read_tables(warehouse) == numbers
    assert len(list_runs(warehouse)) == 1


# ---- two jobs at once


def test_two_jobs_at_once_publish_one_whole_night(place: Place, numbers: dict[str, list[str]], tmp_path: Path) -> None:
    """Two jobs measure the same night at once: readers see one whole night."""
    flags = place.flags("twice")
    with (
        submitted("--master", "local[1]", JOB, *flags, cwd=tmp_path) as one,
        submitted("--master", "local[1]", JOB, *flags, cwd=tmp_path) as other,
    ):
        printed = [process.communicate(timeout=600)[0] for process in (one, other)]
        codes = sorted([one.returncode, other.returncode])
    assert codes in ([0, 4], [0, 0]), printed  # both count where they come to the ledger at the same instant
    assert read_tables(place.folder / "twice") == numbers
    assert len(list_runs(place.folder / "twice")) == 1


# ---- other partitions, cores, orders and settings


def cut_anew(place: Place, files: int) -> Path:
    """Write the rows of the corpus backwards into other files."""
    folder = place.folder / f"corpus-{files}"
    folder.mkdir()
    table = pq.read_table(place.folder / "corpus").take(list(reversed(range(N_ROWS))))
    step = -(-N_ROWS // files)
    for number in range(files):
        pq.write_table(table.slice(number * step, step), folder / f"{files - number}.parquet", row_group_size=23)
    return folder


def test_other_partitions_cores_and_file_orders_give_the_same_bytes(
    place: Place, numbers: dict[str, list[str]], tmp_path: Path
) -> None:
    """The same rows come in other files, another order, other partitions and on more cores: the tables are the same,
    byte for byte.
    """
    code, printed = submit(
        *("--master", "local[3]", "--conf", "spark.sql.shuffle.partitions=7", "--conf", "spark.default.parallelism=5"),
        *("--conf", "spark.sql.files.maxPartitionBytes=4096", "--conf", "spark.sql.adaptive.enabled=false"),
        *(JOB, *place.flags("cut_anew"), "--set", f"corpus.path={cut_anew(place, 7)}"),
        cwd=tmp_path,
    )
    assert code == 0, printed
    assert read_tables(place.folder / "cut_anew") == numbers
    assert read_pages(place.folder / "cut_anew") == read_pages(place.folder / "undisturbed")


FORCED = """
spark.master                          local[2]
spark.sql.ansi.enabled                false
spark.sql.session.timeZone            Pacific/Kiritimati
spark.sql.files.ignoreCorruptFiles    true
spark.sql.files.ignoreMissingFiles    true
spark.sql.parquet.outputTimestampType INT96
spark.sql.storeAssignmentPolicy       LEGACY
spark.sql.caseSensitive               true
"""


def test_a_cluster_that_forces_other_settings_changes_no_number_and_hides_no_bad_file(
    place: Place, numbers: dict[str, list[str]], tmp_path: Path
) -> None:
    """A cluster forces ANSI mode off, another time zone and corrupt files ignored: the tables are the same, byte for
    byte, and a corrupt file is named all the same.

    Settings of spark-defaults.conf, and a machine that lives in another time zone.
    """
    (tmp_path / "forced.conf").write_text(FORCED, encoding="utf-8")
    forced = ("--properties-file", str(tmp_path / "forced.conf"))
    code, printed = submit(*forced, JOB, *place.flags("forced"), cwd=tmp_path, TZ="Pacific/Kiritimati")
    assert code == 0, printed
    assert read_tables(place.folder / "forced") == numbers
    assert read_pages(place.folder / "forced") == read_pages(place.folder / "undisturbed")

    bad = cut_anew(place, 2)
    (bad / "1.parquet").write_bytes(b"no Parquet" * 100)
    other = ("--set", f"corpus.path={bad}")
    code, printed = submit(*forced, JOB, *place.flags("forced"), *other, cwd=tmp_path)
    assert code == 3, printed
    assert "error: corpus: " in printed
    assert f"a file cannot be read. It is corrupt or of another format. Replace it. File: {bad}/1.parquet." in printed
    assert len(list_runs(place.folder / "forced")) == 1
