"""Spark Connect: the same bits as on a classic session, from the public functions and from the job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import biasspark
from biasspark.tables.schemas import TABLES
from tests.harness.sample_night import read_latest

ROOT = Path(__file__).resolve().parents[2]
N_ROWS = 400
MEASURES: dict[str, Any] = {
    "models": {"one": "score", "lengths": "length"},
    "label": "target",
    "label_threshold": 0.5,
    "identities": {
        "columns": ["male", "female"],
        "categorical": ["race"],
        "terms": {"column": "comment_text", "list": ["gay", "christian: christian, catholic"]},
        "crossed": {"pairs": True, "min_rows": 20},
    },
    "slices": {"short": "length < 100"},
    "ranges": 3,
}
CONFIG = """
corpus = {{ name = "comments", path = "{folder}/corpus", id = "id" }}
label = {{ column = "target", threshold = 0.5 }}
models = {{ one = "score", lengths = "length" }}
slices = {{ short = "length < 100" }}
output = {{ path = "{folder}/warehouse" }}
[identities]
columns = ["male", "female"]
categorical = ["race"]
terms = {{ column = "comment_text", list = ["gay", "christian: christian, catholic"] }}
crossed = {{ pairs = true, min_rows = 20 }}
"""
FUNCTIONS = ("bias_metrics", "u_statistics", "model_summary")

REMOTE = """
import json
import sys
from concurrent.futures import ThreadPoolExecutor

from biasspark.cli import run_job
from biasspark.session import build_session, is_connect
from biasspark.workflows import measure as job
from tests.spark.test_connect import measure_all

spark = build_session("connect", {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"})
assert is_connect(spark)
folder = sys.argv[1]
found = measure_all(spark, folder)
spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
with ThreadPoolExecutor(1) as pool:
    flags = ["--config", f"{folder}/job.toml", "--run-date", "2026-01-15"]
    code = pool.submit(run_job, job.main, job.COMMAND.parser(), flags).result()
assert spark.range(3).count() == 3  # the job has stopped no session of another thread, and given its settings back
assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
print(json.dumps({"found": found, "code": code}))
spark.stop()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(31)
    positive, unasked = rng.random(N_ROWS) < 0.4, rng.random(N_ROWS) < 0.2
    table = pa.table(
        {
            "id": [f"c{number}" for number in range(N_ROWS)],
            "target": np.where(positive, 0.9, 0.2),
            "score": np.where(np.arange(N_ROWS) % 50 == 7, np.nan, np.round(rng.normal(positive, 1), 2)),
            "male": pa.array(rng.random(N_ROWS), mask=unasked),
            "female": pa.array(rng.random(N_ROWS), mask=unasked),
            "race": pa.array(rng.choice(["Asian", "Black"], N_ROWS), mask=unasked),
            "length": rng.integers(1, 200, N_ROWS),
            "comment_text": rng.choice(["gay", "Christian or gay", "a catholic", "nobody"], N_ROWS),
        }
    )
    found = tmp_path_factory.mktemp("connect")
    (found / "corpus").mkdir()
    pq.write_table(table, found / "corpus" / "part-0.parquet")
    (found / "job.toml").write_text(CONFIG.format(folder=found), encoding="utf-8")
    return found


def list_rows(frame: DataFrame) -> list[str]:
    """Write rows out, doubles to the last bit."""
    return sorted(repr(tuple(row)) for row in frame.collect())


def measure_all(spark: SparkSession, folder: str) -> dict[str, list[str]]:
    corpus = spark.read.parquet(f"{folder}/corpus")
    return {name: list_rows(getattr(biasspark, name)(corpus, **MEASURES)) for name in FUNCTIONS}


@pytest.mark.slow
@pytest.mark.classic("compares with a classic session")
def test_connect_gives_the_same_bits_as_a_classic_session(spark: SparkSession, folder: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    # SPARK_TESTING gives the server a free port.
    remote = {"SPARK_REMOTE": "local[2]", "SPARK_TESTING": "1"}
    done = subprocess.run(
        [sys.executable, "-c", REMOTE, str(folder)],
        cwd=ROOT,
        env=kept | remote | {"SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["code"] == 0, done.stderr
    classic = measure_all(spark, str(folder))
    assert result["found"] == classic
    assert len(classic["bias_metrics"]) > 20
    for name in FUNCTIONS:
        is_dropped = "_method" if name == "bias_metrics" else "."  # which the function leaves out
        columns = ", ".join(column for column in TABLES[name].value_columns if not column.endswith(is_dropped))
        assert sorted(map(repr, read_latest(folder / "warehouse", columns, table=name))) == classic[name]
