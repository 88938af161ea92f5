"""The job that writes corpora, by spark-submit as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from tests.harness.submitting import ROOT, submit


@pytest.mark.slow
def test_writes_a_corpus(tmp_path: Path) -> None:
    out = tmp_path / "corpus"
    flags = ["civil", "--rows", "1500", "--seed", "7", "--out", str(out), "--unannotated", "0", "--text"]
    code, printed = submit(str(ROOT / "jobs" / "make_corpus.py"), *flags, "--files", "1", cwd=tmp_path)
    assert code == 0, printed
    summary = json.loads(printed.splitlines()[-1])
    assert summary.pop("seconds") > 0.0
    assert summary == {"corpus": "civil", "rows": 1500, "seed": 7, "path": str(out)}
    assert len(list(out.glob("*.parquet"))) == 1
    counts = "SELECT count(*), count(DISTINCT id), count(male), count(comment_text) FROM read_parquet(?)"
    assert duckdb.execute(counts, [f"{out}/*.parquet"]).fetchall() == [(1500, 1500, 1500, 1500)]
