"""The main job in this process, from the command line to the tables: output, tables and counts."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

from biasspark.corpus.read import read_corpus
from biasspark.workflows import corpus_job
from tests.harness.main_job import (
    CANARY,
    N_ROWS,
    RUN_DATE,
    Rows,
    make_rows,
    run,
    run_well,
    write_config,
    write_parquet,
)
from tests.harness.running_jobs import Done, ask

CORPUS = 'o\'brien "x" `y`; DROP TABLE z --\u202e'
MODEL = "model 'one' \\ `a.b`"
SCORE = 'score `one`.two "three"'
IDENTITY = 'it\'s `a` "b".c/d=e 😀'
PREDICATE = '"; DROP TABLE x; -- é'
RACE = "race `x`"
SLICE = "lang = 'en' \\"


class HostileRun(NamedTuple):
    """A run with hostile names and bad rows."""

    warehouse: Path
    done: Done


def hostile_rows() -> Rows:
    """Rows 40 to 47 are bad in different ways; 46 and 47 count for no model."""
    rows = make_rows()
    rows[SCORE] = rows.pop("score")
    rows[IDENTITY] = rows.pop("male")
    rows[RACE] = ["O'Brien", 'a "b" `c`', None, "=x"] * (N_ROWS // 4)
    rows[SCORE][40:46] = [None, None, math.nan, math.inf, -math.inf, math.nan]
    rows["target"][46] = rows["id"][47] = None
    return rows


@pytest.fixture(scope="module")
def hostile_run(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> HostileRun:
    folder = tmp_path_factory.mktemp("runs")
    write_parquet(folder / "corpus", hostile_rows())
    config = write_config(
        folder,
        corpus={"name": CORPUS},
        models={"m": None, MODEL: SCORE, "lengths": "length"},
        identities={"columns": [IDENTITY, "female"], "categorical": [RACE], "predicates": {PREDICATE: "length > 100"}},
        slices={SLICE: "length < 150"},
        thresholds={"at": [0.5, 1.5]},
        histograms={"bins": 10},
        label_balance={"length": "length", "buckets": [50, 100]},
        pinned_auc={},
    )
    return HostileRun(folder / "warehouse", run_well(config))


def test_a_run_prints_a_table_and_one_line_of_json(hostile_run: HostileRun) -> None:
    *table, warning, last = hostile_run.done.out.splitlines()
    summary = json.loads(last)
    assert last.isascii()
    assert table[1].split() == ["model", "slice", "identity", "n_rows", "metric", "value", "low", "high", "bias"]
    assert len(table) == 12
    assert [line.split()[0] for line in table[2:]] == ["lengths"] * 5 + ["model"] * 5
    assert any(IDENTITY[:15] in line for line in table)
    assert warning == f"warning: {summary.pop('warnings')[0]}"  # of lengths in no bucket
    assert summary.pop("seconds") > 0
    assert summary.pop("engine") in ("embedded", "spark")
    assert re.fullmatch(r"r\d{8}T\d{12}_[0-9a-f]{6}", summary.pop("run_id"))
    n_identities = 2 + 3 + 1
    assert summary == {
        "job": "bias_metrics",
        "status": "published",
        "run_date": RUN_DATE,
        "n_rows": N_ROWS,
        "n_rejected": 2,
        "rejects": {"null_id": 1, "null_label": 1, "null_score": 2, "nan_score": 2, "infinite_score": 2},
        "tables": {
            "u_statistics": 2 * 2 * (6 * n_identities + 1),
            "bias_metrics": 2 * 2 * n_identities,
            "model_summary": 4,
            "pinned_auc": 2 * 2 * n_identities,
            "threshold_rates": 2 * 2 * n_identities * 2,
            "threshold_summary": 2 * 2 * 2,
            "score_histograms": len(ask(hostile_run.warehouse, "SELECT 1 FROM score_histograms")),
            "label_balance": (n_identities + 1) * 2,
            "rejected_rows": 8,
        },
        "output": str(hostile_run.warehouse),
        "gate": None,
    }
    stages = [line.split("] ", 1)[1].split()[0] for line in hostile_run.done.err.splitlines()]
    # A stage that takes long is said again.
    assert [stage for stage in stages if stage != "still"] == ["starting", "surveying", "ranking", "publishing", "done"]


def test_no_text_of_a_comment_is_in_any_file(hostile_run: HostileRun) -> None:
    secret = CANARY.encode()
    files = [path for path in hostile_run.warehouse.rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        assert secret not in path.read_bytes()
    tables = [path for path in hostile_run.warehouse.iterdir() if path.is_dir()]
    assert len(tables) == len(hostile_run.done.summary["tables"]) + 1  # and the ledger
    for table in tables:  # pages are compressed
        assert CANARY not in repr(pd.read_parquet(table).to_numpy().tolist())


@pytest.mark.slow
def test_what_fails_after_a_run_is_published_is_a_warning(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError(CANARY)

    monkeypatch.setattr("biasspark.workflows.measure.show_suite", fail)
    write_parquet(tmp_path / "corpus", make_rows(200))
    done = run_well(write_config(tmp_path))
    assert done.summary["status"] == "published"
    [warning] = done.summary["warnings"]
    assert all(part in warning for part in (done.summary["run_id"], "ValueError"))
    assert ask(tmp_path / "warehouse", "SELECT count(*) > 0 FROM latest_bias_metrics") == [(True,)]


def test_a_run_that_is_published_while_the_corpus_is_opened_stays(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_parquet(tmp_path / "corpus", make_rows())
    config = write_config(tmp_path)

    def open_slowly(*arguments: Any, **named: Any) -> DataFrame:
        corpus = read_corpus(*arguments, **named)
        monkeypatch.undo()
        run_well(config)
        return corpus

    monkeypatch.setattr(corpus_job, "read_corpus", open_slowly)
    assert run(config).code == 4
