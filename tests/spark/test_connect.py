"""A run on every engine, and the public functions on Spark Connect: the same bits as in a classic session."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import biasspark
from biasspark.workflows import measure as job
from tests.harness.compared_jobs import N_ROWS, Place, make_place, read_tables
from tests.harness.running_jobs import run_main
from tests.harness.spark_effort import MOST_SPARK_JOBS, Effort, watch
from tests.harness.spark_versions import IS_3_5
from tests.harness.submitting import run_python

MEASURES: dict[str, Any] = {
    "models": {"one": "score", "lengths": "length"},
    "label": "target",
    "label_threshold": 0.5,
    "identities": {
        "columns": ["male", "female"],
        "terms": {"column": "comment_text", "list": ["gay", "christian: christian, catholic"]},
        "crossed": {"pairs": True, "min_rows": 20},
    },
    "slices": {"short": "length < 100"},
    "ranges": 3,
}
FUNCTIONS = ("bias_metrics", "u_statistics", "model_summary")

REMOTE = """
import json
import sys
from concurrent.futures import ThreadPoolExecutor

from biasspark.cli import run_job
from biasspark.session import build_session, is_connect
from biasspark.workflows import measure as job
from tests.spark.test_connect import measure_all

spark = build_session("connect", {"spark.sql.shuffle.partitions": "2"})
assert is_connect(spark)
corpus, functions, *flags = sys.argv[1:]
found = measure_all(spark, corpus, functions.split())
spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
with ThreadPoolExecutor(1) as pool:
    code = pool.submit(run_job, job.main, job.COMMAND.parser(), flags).result()
assert spark.range(3).count() == 3  # the job has stopped no session of another thread, and given its settings back
assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
print(json.dumps({"found": found, "code": code}))
spark.stop()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return make_place(tmp_path_factory.mktemp("engines"))


def flags_of(place: Place, engine: str) -> list[str]:
    """Return the flags of the job; the embedded engine does not support Parquet options."""
    return [*place.flags(engine), "--set", "corpus.options={}"]


@pytest.fixture(scope="module")
def classic(spark_session: SparkSession, place: Place) -> dict[str, list[str]]:
    """The tables of a run with every part, measured in a classic session by few jobs."""
    efforts: list[Effort] = []
    with watch(spark_session, N_ROWS, efforts):
        done = run_main(job.COMMAND, *flags_of(place, "classic"))
    assert done.code == 0, done.err
    assert efforts[0].n_jobs <= MOST_SPARK_JOBS
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
    spark_session._jvm.org.apache.spark.sql.connect.service.SparkConnectService.start(context)
    return f"sc://127.0.0.1:{port}"


def run_well(*arguments: str, **environment: str) -> str:
    done = run_python(*arguments, **environment)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout.splitlines()[-1]


def measure_all(spark: SparkSession, corpus: str, functions: Sequence[str]) -> dict[str, list[str]]:
    """Return the rows of the public functions, with exact doubles."""

    def rows_of(frame: DataFrame) -> list[str]:
        return sorted(repr(tuple(row)) for row in frame.collect())

    rows = spark.read.parquet(corpus)
    return {name: rows_of(getattr(biasspark, name)(rows, **MEASURES)) for name in functions}


@pytest.mark.classic("compares with a classic session")
@pytest.mark.parametrize("functions", [(), pytest.param(FUNCTIONS, id="functions", marks=pytest.mark.slow)])
def test_connect_gives_the_same_bits_as_a_classic_session(
    spark: SparkSession, server: str, place: Place, classic: dict[str, list[str]], functions: Sequence[str]
) -> None:
    corpus, flags = f"{place.folder}/corpus", flags_of(place, f"connect{len(functions)}")
    result = json.loads(run_well("-c", REMOTE, corpus, " ".join(functions), *flags, SPARK_REMOTE=server))
    assert result["code"] == 0
    assert result["found"] == measure_all(spark, corpus, functions)
    assert all(len(rows) >= 4 for rows in result["found"].values())
    assert read_tables(place.folder / f"connect{len(functions)}") == classic


@pytest.mark.classic("compares with a classic session")
def test_the_embedded_engine_gives_the_same_bits(
    spark: SparkSession, place: Place, classic: dict[str, list[str]]
) -> None:
    pytest.importorskip("pysail")
    run_well("-m", "biasspark", "measure", "--engine", "embedded", *flags_of(place, "embedded"))
    assert read_tables(place.folder / "embedded") == classic
