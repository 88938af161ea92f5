"""OpenLineage by configuration alone: the real listener reports what a run reads and writes, and quotes no record."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biasspark.tables.schemas import BIAS_METRICS, BIAS_RUNS
from tests.harness.submitting import ROOT, submit

CANARY = "canary-5c7e"
CONFIG = """
corpus = {{ name = "lineage", path = "{folder}/corpus" }}
label = {{ column = "toxic" }}
models = {{ one = "score" }}
identities = {{ terms = {{ column = "comment", file = "{folder}/terms.txt" }} }}
output = {{ path = "viewfs://lineage/warehouse" }}
"""
FAILING = """
import sys
from pyspark.sql import SparkSession

corpus, place = sys.argv[1:]
SparkSession.builder.getOrCreate().read.parquet(corpus).selectExpr("CAST(comment AS INT) AS n").write.parquet(place)
"""


def run(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Run a program with the listener where comments hold the canary: exit code, what is printed, events."""
    (folder / "corpus").mkdir()
    rows = {"toxic": [False, True] * 4, "score": [0.1, 0.9] * 4, "comment": [f"gay {CANARY}", "straight"] * 4}
    pq.write_table(pa.table(rows), folder / "corpus" / "part.parquet")
    events = folder / "events.jsonl"
    code, printed = submit(
        *("--properties-file", str(ROOT / "conf" / "openlineage.conf")),
        *("--conf", f"spark.openlineage.transport.location={events}"),
        *arguments,
        cwd=folder,
    )
    if "unresolved dependency" in printed:
        pytest.skip("the listener of conf/openlineage.conf cannot be had here: no repository of Maven answers")
    return code, printed, events.read_text("utf-8")


@pytest.mark.slow
def test_lineage_names_the_corpus_and_every_table_but_not_what_they_hold(tmp_path: Path) -> None:
    """The output counts as another file system: on a local one the driver writes small tables, unseen by Spark."""
    (tmp_path / "terms.txt").write_text("gay\nstraight\n", encoding="utf-8")
    (tmp_path / "job.toml").write_text(CONFIG.format(folder=tmp_path), encoding="utf-8")
    mount = f"spark.hadoop.fs.viewfs.mounttable.lineage.link./warehouse=file://{tmp_path}/warehouse"
    (tmp_path / "warehouse").mkdir()
    job = [str(ROOT / "jobs" / "bias_metrics.py"), "--config", str(tmp_path / "job.toml"), "--run-date", "2026-01-15"]
    code, printed, events = run(tmp_path, "--conf", mount, *job)
    assert code == 0, printed
    assert "Exception" not in printed
    completed = [event for event in map(json.loads, events.splitlines()) if event["eventType"] == "COMPLETE"]
    written = {output["name"] for event in completed for output in event["outputs"]}
    tables = json.loads(printed.splitlines()[-1])["tables"]
    assert written == {f"/warehouse/{name}" for name in (*tables, BIAS_RUNS.name)}
    assert BIAS_METRICS.name in tables
    assert str(tmp_path / "corpus") in {read["name"] for event in completed for read in event["inputs"]}
    assert CANARY not in events
    assert CANARY not in printed


@pytest.mark.slow
def test_lineage_of_a_write_that_fails_does_not_quote_the_row(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(FAILING, encoding="utf-8")
    program, corpus, place = (str(tmp_path / name) for name in ("failing.py", "corpus", "numbers"))
    code, printed, events = run(tmp_path, program, corpus, place)
    assert code == 1
    assert CANARY in printed  # Spark itself quotes it
    assert '"FAIL"' in events
    assert CANARY not in events
