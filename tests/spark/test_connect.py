"""A run on every engine: the same bits as in a classic session."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from pyspark.sql import SparkSession

from biasspark.workflows import measure as job
from tests.harness.compared_jobs import N_ROWS, Place, make_place, read_tables
from tests.harness.running_jobs import run_main
from tests.harness.spark_effort import IS_3_5, MAX_SPARK_JOBS, watch
from tests.harness.submitting import run_python

REMOTE = """
import sys
from concurrent.futures import ThreadPoolExecutor

from biasspark.cli import run_job
from biasspark.session import build_session, is_connect
from biasspark.workflows import measure as job

spark = build_session("connect", {"spark.sql.shuffle.partitions": "2"})
assert is_connect(spark)
spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
with ThreadPoolExecutor(1) as pool:
    code = pool.submit(run_job, job.main, job.COMMAND.parser(), sys.argv[1:]).result()
assert spark.range(3).count() == 3  # the job has stopped no session of another thread, and given its settings back
assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
spark.stop()
sys.exit(code)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return make_place(tmp_path_factory.mktemp("engines"))


@pytest.fixture(scope="module")
def classic(spark_session: SparkSession, place: Place) -> dict[str, list[str]]:
    """The tables of a run with every part, measured in a classic session by few jobs."""
    with watch(spark_session, N_ROWS) as effort:
        done = run_main(job.COMMAND, *place.flags("classic", corpus={}))
    assert done.code == 0, done.err
    assert effort.n_jobs <= MAX_SPARK_JOBS
    tables = read_tables(place.folder / "classic")
    assert len(tables) >= 10
    return tables


@pytest.fixture(scope="module")
def server(spark_session: SparkSession) -> str:
    """Start a Connect server in the classic session, on this machine only; return its address."""
    if IS_3_5:
        pytest.skip("the pip package of Spark 3.5 lacks the Connect plugin")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = spark_session._jsc.sc()
    for key, value in (("address", "127.0.0.1"), ("port", str(port))):
        context.conf().set(f"spark.connect.grpc.binding.{key}", value)
    jvm: Any = spark_session._jvm
    jvm.org.apache.spark.sql.connect.service.SparkConnectService.start(context)
    return f"sc://127.0.0.1:{port}"


def run_well(*arguments: str, **environment: str) -> None:
    done = run_python(*arguments, **environment)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.classic("compares with a classic session")
def test_connect_gives_the_same_bits_as_a_classic_session(
    spark: SparkSession, server: str, place: Place, classic: dict[str, list[str]]
) -> None:
    run_well("-c", REMOTE, *place.flags("connect", corpus={}), SPARK_REMOTE=server)
    assert read_tables(place.folder / "connect") == classic


@pytest.mark.classic("compares with a classic session")
def test_the_embedded_engine_gives_the_same_bits(
    spark: SparkSession, place: Place, classic: dict[str, list[str]]
) -> None:
    pytest.importorskip("pysail")
    flags = place.flags("embedded", corpus={})  # without options of Parquet, which this engine does not support
    run_well("-m", "biasspark", "measure", "--engine", "embedded", *flags)
    assert read_tables(place.folder / "embedded") == classic
