"""The job that writes corpora, by spark-submit as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pytest

ROOT = Path(__file__).resolve().parents[2]


def submit(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the job; spark-submit joins its stderr to its stdout."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.submodule_search_locations is not None
    home = found.submodule_search_locations[0]
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYSPARK", "SPARK_REMOTE", "SPARK_CONNECT_MODE"))
    }
    return subprocess.run(
        [f"{home}/bin/spark-submit", "--master", "local[2]", str(ROOT / "jobs" / "make_corpus.py"), *arguments],
        env=environment
        | {
            "SPARK_HOME": home,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
def test_writes_a_corpus_once(tmp_path: Path) -> None:
    out = tmp_path / "corpus"
    flags = ["civil", "--rows", "1500", "--seed", "7", "--out", str(out), "--unannotated", "0", "--text"]
    done = submit(*flags, "--files", "1")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary.pop("seconds") > 0.0
    assert summary == {"corpus": "civil", "rows": 1500, "seed": 7, "path": str(out)}
    assert f"civil: 1,500 rows into {out}" in done.stdout
    assert len(list(out.glob("*.parquet"))) == 1

    before = sorted(out.iterdir())
    counts = "SELECT count(*), count(DISTINCT id), count(male), count(comment_text) FROM read_parquet(?)"
    assert duckdb.execute(counts, [f"{out}/*.parquet"]).fetchall() == [(1500, 1500, 1500, 1500)]

    again = submit(*flags)
    assert again.returncode == 2
    assert f"error: out: {out} exists. A corpus is never overwritten. Name a new folder." in again.stdout
    assert "Traceback" not in again.stdout + again.stderr
    assert sorted(out.iterdir()) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "rows", "query", "answer"),
    [
        (
            ["shapes", "--rows-per-cell", "20"],
            640,
            "SELECT count(DISTINCT id), count(DISTINCT shape), count_if(label), sum(subgroup), count(score)",
            (640, 8, 330, 320, 640),
        ),
        (
            ["heights", "--rows-per-cell", "20"],
            120,
            "SELECT count(DISTINCT id), count_if(label), count_if(height = 'short'), count(score)",
            (120, 60, 40, 120),
        ),
        (
            ["madlibs", "--rows", "1100"],
            1100,
            'SELECT count(DISTINCT comment_text), count_if(label), sum(gay), sum("middle eastern"), sum(african)',
            (1100, 550, 22, 22, 44),
        ),
        (
            ["imbalanced", "--rows", "900", "--harmless"],
            900,
            "SELECT count(DISTINCT id), count_if(label), min(length(comment_text)) >= 20",
            (900, 0, True),
        ),
    ],
)
def test_writes_every_kind(tmp_path: Path, flags: list[str], rows: int, query: str, answer: tuple[int, ...]) -> None:
    out = tmp_path / "corpus"
    done = submit(*flags, "--seed", "7", "--out", str(out))
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary.pop("seconds") > 0.0
    assert summary == {"corpus": flags[0], "rows": rows, "seed": 7, "path": str(out)}
    assert duckdb.execute(f"{query} FROM read_parquet(?)", [f"{out}/*.parquet"]).fetchall() == [answer]


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (["civil", "--rows", "0", "--seed", "-1"], "rows: 0. A corpus has at least one row. Ask for 1 or more."),
        (["civil", "--rows", "9", "--seed", "1", "--files", "0"], "files: 0. A corpus has at least one file."),
        (["shapes", "--rows-per-cell", "1", "--seed", "1"], "rows_per_cell: 1. Shape C has half as many negatives in "),
        (["heights", "--rows-per-cell", "0", "--seed", "1"], "rows_per_cell: 0. No cell may be empty. Ask for 1 or "),
        (["madlibs", "--rows", "0", "--seed", "1"], "rows: 0. A corpus has at least one row. Ask for 1 or more."),
        (["madlibs", "--rows", "9", "--seed", "1", "--terms", "none.txt"], "none.txt"),
        (["martian", "--rows", "9", "--seed", "1"], "invalid choice: 'martian'"),
    ],
)
def test_wrong_flags_are_refused_without_a_session(tmp_path: Path, flags: list[str], fault: str) -> None:
    out = tmp_path / "corpus"
    done = subprocess.run(
        [sys.executable, str(ROOT / "jobs" / "make_corpus.py"), *flags, "--out", str(out)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert fault in done.stderr
    assert "Traceback" not in done.stderr
    assert "starting Spark" not in done.stderr
    assert not out.exists()
