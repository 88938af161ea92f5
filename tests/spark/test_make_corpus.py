"""The job that writes corpora: every kind once, and its faults."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from biasspark.workflows import make_corpus as job
from tests.harness.main_job import untouched
from tests.harness.running_jobs import Done, run_main


def make(*flags: object) -> Done:
    return run_main(job.COMMAND, *flags)


@pytest.mark.parametrize(
    ("flags", "query", "answer"),
    [
        (
            ["shapes", "--rows-per-cell", "20"],
            "SELECT count(*), count(DISTINCT id), count(DISTINCT shape), count_if(label), sum(subgroup), count(score)",
            (640, 640, 8, 330, 320, 640),
        ),
        (
            ["heights", "--rows-per-cell", "20"],
            "SELECT count(*), count(DISTINCT id), count_if(label), count_if(height = 'short'), count(score)",
            (120, 120, 60, 40, 120),
        ),
        (
            ["pinned", "--rows-per-cell", "20"],
            "SELECT count(*), count(DISTINCT id), count_if(label), sum(A), sum(B), sum(C), count(A), count(score)",
            (160, 160, 80, 40, 40, 40, 80, 160),
        ),
        (
            ["madlibs", "--rows", "1100"],
            'SELECT count(*), count(DISTINCT comment_text), count_if(label), sum(gay), sum("middle eastern")',
            (1100, 1100, 550, 22, 22),
        ),
        (
            ["imbalanced", "--rows", "900", "--harmless"],
            "SELECT count(*), count(DISTINCT id), count_if(label), min(length(comment_text)) >= 20",
            (900, 900, 0, True),
        ),
    ],
)
def test_writes_every_kind_once(
    spark: SparkSession, tmp_path: Path, flags: list[str], query: str, answer: tuple[int, ...]
) -> None:
    flags = [*flags, "--seed", "7", "--out", str(tmp_path / "corpus")]
    summary = make(*flags).summary
    assert summary.pop("seconds") >= 0.0
    assert summary == {"corpus": flags[0], "rows": answer[0], "seed": 7, "path": str(tmp_path / "corpus")}
    assert duckdb.execute(f"{query} FROM read_parquet(?)", [f"{tmp_path}/corpus/*.parquet"]).fetchall() == [answer]
    with untouched(tmp_path):
        assert make(*flags).code == 2


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (["civil", "--rows", "0", "--seed", "-1"], "rows: 0."),
        (["civil", "--rows", "9", "--seed", "1", "--files", "0"], "files: 0."),
        (["shapes", "--rows-per-cell", "1", "--seed", "1"], "rows_per_cell: 1."),
        (["heights", "--rows-per-cell", "0", "--seed", "1"], "rows_per_cell: 0."),
        (["pinned", "--rows-per-cell", "1", "--seed", "1"], "rows_per_cell: 1."),
        (["madlibs", "--rows", "0", "--seed", "1"], "rows: 0."),
        (["madlibs", "--rows", "9", "--seed", "1", "--terms", "none.txt"], "none.txt"),
        (["martian", "--rows", "9", "--seed", "1"], "invalid choice: 'martian'"),
    ],
)
def test_wrong_flags_are_refused_without_a_session(tmp_path: Path, flags: list[str], fault: str) -> None:
    done = make(*flags, "--out", tmp_path / "corpus")
    assert done.code == 2
    assert fault in done.err
    assert "starting the engine" not in done.err
    assert not (tmp_path / "corpus").exists()
