"""Runs without scores of a model, or with too many rejected rows: no job publishes a result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from biasspark.workflows import attribute as attribution
from biasspark.workflows import compare as compare_models
from tests.harness.main_job import assert_refused, make_rows, run, run_well, write_config, write_parquet
from tests.harness.running_jobs import ask

N_ROWS = 600
ALLOWED = {"allow_missing_models": True}
ON_ALL = {"name": "floor", "metric": "bpsn_auc", "min": 0.2, "worst": True}
RISE = {"name": "fnr holds", "metric": "fnr", "threshold": 0.5, "max_rise": 0.1, "worst": True, "severity": "warn"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows with a score and an empty one; 60 rows have no label."""
    rows = make_rows(N_ROWS)
    rows["target"] = [None if n % 10 == 0 else value for n, value in enumerate(rows["target"])]
    rows["gone"] = [float("nan")] * N_ROWS
    return write_parquet(tmp_path_factory.mktemp("missing") / "corpus", rows)


def configure(folder: Path, corpus: Path, models: dict[str, str], **tables: Any) -> Path:
    return write_config(folder, corpus={"path": str(corpus)}, models={"m": None} | models, **tables)


BOTH = {"new": "score", "n": "gone"}


@pytest.mark.parametrize("engine", ["blocks", pytest.param("windows", marks=pytest.mark.slow)])
def test_a_run_without_the_scores_of_a_model_is_refused(
    spark: SparkSession, tmp_path: Path, corpus: Path, engine: str
) -> None:
    config = configure(tmp_path, corpus, BOTH, ranking={"engine": engine}, gate={"rule": [ON_ALL]})
    done = run(config)
    assert_refused(done, 3, "")
    parts = ("model n", "'gone'", "nan_score 540", "[models]", "allow_missing_models = true")
    assert all(part in done.err for part in parts), done.err
    assert not list((tmp_path / "warehouse").rglob("*.parquet"))


def test_where_a_model_may_be_missing_the_gate_fails_by_every_rule_on_it(
    spark: SparkSession, tmp_path: Path, corpus: Path
) -> None:
    rules = [ON_ALL, RISE, {"name": "of the other", "metric": "auc", "min": 0.2, "model": "new"}]
    tables: dict[str, Any] = {"rejects": ALLOWED, "gate": {"rule": rules}, "thresholds": {"at": [0.5]}}
    done = run(configure(tmp_path, corpus, BOTH, **tables))
    assert done.code == 5, done.err
    assert (done.summary["status"], done.summary["gate"]) == ("published", "fail")
    assert len([warning for warning in done.summary["warnings"] if "model n:" in warning]) == 1
    columns = "rule, model, identity, outcome, decided, message"
    rows = ask(tmp_path / "warehouse", f"SELECT {columns} FROM latest_bias_alerts")
    gone = [row for row in rows if row[1] == "n"]
    assert {(rule, identity) for rule, _, identity, *_ in gone} == {
        (rule, identity) for rule in ("floor", "fnr holds") for identity in ("male", "female", "(overall)")
    }
    assert {(outcome, decided) for *_, outcome, decided, _ in gone} == {("fail", False)}
    assert all("model n has no AUC" in message for *_, message in gone)
    assert {outcome for rule, model, _, outcome, *_ in rows if model == "new" and rule != "fnr holds"} == {"pass"}
    assert ask(tmp_path / "warehouse", "SELECT status FROM bias_runs") == [("published",)]


def test_where_the_baseline_may_be_missing_rules_on_it_fail(spark: SparkSession, tmp_path: Path, corpus: Path) -> None:
    rule = {"name": "no worse", "metric": "bpsn_auc", "max_drop": 0.1, "baseline": "n"}
    tables: dict[str, Any] = {"rejects": ALLOWED, "compare": {"baseline": "n"}, "gate": {"rule": [rule]}}
    done = run(configure(tmp_path, corpus, BOTH, **tables), job=compare_models)
    assert done.code == 5, done.err
    assert (done.summary["status"], done.summary["gate"]) == ("published", "fail")
    rows = ask(tmp_path / "warehouse", "SELECT outcome, decided, message FROM latest_comparison_alerts")
    assert rows
    assert {row[:2] for row in rows} == {("fail", False)}
    assert all("model n has no AUC" in message for *_, message in rows)


def test_attribution_of_the_rest_is_published_where_a_model_may_be_missing(
    spark: SparkSession, tmp_path: Path, corpus: Path
) -> None:
    segments = {"segments": {"long": "length > 100"}, "link": "logit"}
    tables: dict[str, Any] = {"rejects": ALLOWED, "attribution": segments}
    done = run_well(configure(tmp_path, corpus, BOTH, **tables), job=attribution)
    assert not [text for text in done.summary["warnings"] if "`link`" in text]
    assert ask(tmp_path / "warehouse", "SELECT DISTINCT model FROM latest_loss_by_segment") == [("new",)]
