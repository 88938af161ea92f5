"""A borrowed session is returned running, with its settings restored; and Python workers start in the background."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from biasspark.session import job_session, starting_workers
from tests.harness.running_jobs import changed_settings

SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "Pacific/Kiritimati",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "77",
    "spark.app.name": "a notebook",
}
UNSET = ("parquet.page.verify-checksum.enabled", "spark.sql.of.a.job")
ASKED = {"spark.sql.of.a.job": "1", "spark.sql.execution.arrow.maxRecordsPerBatch": "64"}
LOGGER = "org.apache.spark.executor.Executor"
NOTEBOOK = SETTINGS | dict.fromkeys(UNSET)


def read_settings(spark: SparkSession) -> dict[str, str | None]:
    return {key: spark.conf.get(key, None) for key in NOTEBOOK}


@pytest.fixture
def borrowed(spark: SparkSession) -> Iterator[SparkSession]:
    with changed_settings(spark, NOTEBOOK):
        yield spark


def test_a_job_in_a_worker_thread_gives_back_the_session_of_the_process(borrowed: SparkSession) -> None:
    """The active session belongs to a thread; the builder returns that of the process."""

    def work() -> None:
        with job_session("a job", ASKED) as spark:
            assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
            assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "64"
            assert spark.range(3).count() == 3

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()
    assert borrowed.range(3).count() == 3
    assert read_settings(borrowed) == NOTEBOOK


def test_a_job_that_fails_gives_the_settings_back(borrowed: SparkSession) -> None:
    with pytest.raises(ZeroDivisionError), job_session("a job", ASKED):
        1 / 0  # noqa: B018
    assert read_settings(borrowed) == NOTEBOOK


def test_of_two_jobs_at_once_the_last_gives_the_settings_back(borrowed: SparkSession) -> None:
    """The first to end must not change settings that the other needs."""
    first, second = job_session("one"), job_session("another", ASKED)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert borrowed.conf.get("spark.sql.ansi.enabled") == "true"
    assert borrowed.conf.get("spark.sql.session.timeZone") == "UTC"
    second.__exit__(None, None, None)
    assert read_settings(borrowed) == NOTEBOOK


@pytest.mark.classic("a session of Connect has no logs")
def test_the_logs_of_a_borrowed_session_are_its_owners(borrowed: SparkSession) -> None:
    log4j: Any = borrowed.sparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]  # it is running
    manager, levels, configure = log4j.LogManager, log4j.Level, log4j.core.config.Configurator
    before = manager.getRootLogger().getLevel(), manager.getLogger(LOGGER).getLevel()
    try:
        configure.setRootLevel(levels.FATAL)
        configure.setLevel(LOGGER, levels.WARN)
        with job_session("a job"):
            found = [manager.getRootLogger().getLevel(), manager.getLogger(LOGGER).getLevel()]
        assert list(map(str, found)) == ["FATAL", "WARN"]
    finally:
        configure.setRootLevel(before[0])
        configure.setLevel(LOGGER, before[1])


@pytest.mark.classic("only Spark on this machine has workers that start early")
def test_workers_import_a_module_in_the_background(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "leaves_a_mark.py").write_text(f"import pathlib\n\npathlib.Path({str(tmp_path / 'mark')!r}).touch()\n")
    spark.sparkContext.addPyFile(str(tmp_path / "leaves_a_mark.py"))
    for module in ("leaves_a_mark", "no_such_module"):  # a failure is left to the job that needs the workers
        with starting_workers(spark, module):
            pass
    assert (tmp_path / "mark").exists()
