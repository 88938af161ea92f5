"""What the tests of faults share: the night before the one that fails, and what a job gives that nothing disturbs."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from biasspark.cli import job_parser, run_job
from biasspark.tables.publish import publish
from biasspark.tables.store import PathStore
from jobs import bias_metrics as job
from tests.compared_jobs import Place, make_place, read_tables
from tests.sample_night import night_frames, record_of, run_at


@pytest.fixture(scope="session")
def night_before(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with one night that is published; a test that publishes another one does so in a copy of it."""
    folder = tmp_path_factory.mktemp("before") / "warehouse"
    publish(night_frames(spark_session, 0.6), run_at(1, "r1"), PathStore(str(folder)), record_of())
    return folder


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return make_place(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="session")
def numbers(spark_session: SparkSession, place: Place) -> dict[str, list[str]]:
    """Run the job undisturbed, in this process, and give what every other way of running it must give."""
    with contextlib.redirect_stdout(io.StringIO()):
        assert run_job(job.main, job_parser(""), place.flags("undisturbed")) == 0
    return read_tables(place.folder / "undisturbed")
