"""What the tests of faults share: the night before the one that fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from biasspark.tables.publish import publish
from biasspark.tables.store import PathStore
from tests.sample_night import night_frames, record_of, run_at


@pytest.fixture(scope="session")
def night_before(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with one night that is published; a test that publishes another one does so in a copy of it."""
    folder = tmp_path_factory.mktemp("before") / "warehouse"
    publish(night_frames(spark_session, 0.6), run_at(1, "r1"), PathStore(str(folder)), record_of())
    return folder
