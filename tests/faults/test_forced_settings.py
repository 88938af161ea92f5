"""Sessions whose settings are not those that the numbers rely on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import biasspark
from biasspark.session import build_session
from tests.fixtures.edge_case_corpus import frame_of, in_order, make_rows, measures
from tests.harness.running_jobs import changed_settings

FORCED = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "Pacific/Kiritimati",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
    "parquet.page.verify-checksum.enabled": "false",
    "parquet.filter.columnindex.enabled": "true",
}


@pytest.fixture
def forced(spark: SparkSession) -> Iterator[SparkSession]:
    with changed_settings(spark, FORCED):
        yield spark


def test_a_job_sets_what_its_numbers_rely_on_in_a_session_that_was_there(forced: SparkSession) -> None:
    """A notebook's session has ANSI mode off, another time zone and corrupt files ignored: a job sets what its numbers
    rely on.
    """
    build_session("a job in a notebook")
    assert {key: forced.conf.get(key) for key in FORCED} == {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
        "parquet.page.verify-checksum.enabled": "true",
        "parquet.filter.columnindex.enabled": "false",
    }


def test_a_session_of_ones_own_gives_the_same_bits(forced: SparkSession) -> None:
    """The functions are called in a session with such settings: without times and casts in SQL, every number is the
    same to the last bit.
    """
    rows = make_rows()
    found = in_order(biasspark.bias_metrics(frame_of(forced, rows), **measures()).collect())
    build_session("a job in a notebook")
    assert found == in_order(biasspark.bias_metrics(frame_of(forced, rows), **measures()).collect())
