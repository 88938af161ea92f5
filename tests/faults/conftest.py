"""What the tests of faults share: the run before the one that fails, and the tables of an undisturbed job."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from biasspark.tables.publish import publish
from biasspark.tables.store import PathStore
from biasspark.workflows import measure as job
from tests.harness.compared_jobs import Place, make_place, read_tables
from tests.harness.running_jobs import run_main
from tests.harness.sample_run import record_of, run_at, suite_tables


@pytest.fixture(scope="session")
def run_before(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with one published run, which no test supersedes."""
    folder = tmp_path_factory.mktemp("before") / "warehouse"
    publish(spark_session, suite_tables(0.6), run_at(1, "r1"), PathStore(str(folder)), record_of())
    return folder


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return make_place(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="session")
def numbers(spark_session: SparkSession, place: Place) -> dict[str, list[str]]:
    """Run the job undisturbed, in this process, and return the tables that every other way of running it must give."""
    assert run_main(job.COMMAND, *place.flags("undisturbed")).code == 0
    return read_tables(place.folder / "undisturbed")
