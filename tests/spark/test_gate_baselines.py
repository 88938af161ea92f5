"""The baselines of the gate: the last accepted run, comparable runs, and existing tables."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from biasspark.cli import Progress
from biasspark.config import Config, parse_config
from biasspark.errors import InputError
from biasspark.gate.gate_result import GateResult
from biasspark.tables.ledger import append_to_ledger
from biasspark.tables.publish import publish
from biasspark.tables.runs import Run, RunRecord
from biasspark.tables.schemas import JACKKNIFE_STATISTICS, U_STATISTICS
from biasspark.tables.store import PathStore
from biasspark.workflows.corpus_job import RunContext
from biasspark.workflows.judge import judge
from tests.harness.least_configuration import changed
from tests.harness.sample_run import record_of


def accepted_record(config: Config) -> RunRecord:
    return replace(record_of(), status="accepted", config=config.json)


def run_of(day: int, run_id: str = "now", corpus: str = "civil") -> Run:
    return Run(date(2026, 1, day), corpus, "bias_metrics", run_id, datetime.now(UTC))


# ---- accepted runs

HOLDS = {"name": "auc holds", "metric": "auc", "max_drop": 0.05, "slices": ["all", "short"]}


def settings_of(**changes: Any) -> Config:
    return parse_config(changed(**{"slices": {"short": "length < 9"}, "gate": {"rule": [HOLDS]}} | changes), Path())


def statistics_of(auc: float | None) -> pa.Table:
    row: dict[str, Any] = {
        "model": "toxicity",
        "identity": "(overall)",
        "low_cell": "negative",
        "high_cell": "positive",
    }
    row |= {"n_low": 400, "n_high": 400, "crossed": False, "auc": auc}
    row |= {"reason": "below_minimum_rows"} if auc is None else {"auc_variance": 1e-4}
    return pa.Table.from_pylist([row | {"slice": part} for part in ("all", "short")], U_STATISTICS.arrow_schema)


@pytest.fixture(scope="module")
def store(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> PathStore:
    """A good run, and one without evidence because of too few rows; both are accepted."""
    store = PathStore(str(tmp_path_factory.mktemp("made_up")))
    accepted = accepted_record(settings_of())
    for day, run_id, auc in ((1, "good", 0.9), (2, "tiny", None)):
        publish(spark_session, {U_STATISTICS: statistics_of(auc)}, run_of(day, run_id), store, accepted)
    return store


def judge_run(
    spark: SparkSession, store: PathStore, config: Config, jackknife: pa.Table | None = None, day: int = 3
) -> tuple[list[Any], GateResult]:
    context = RunContext(spark, config, store, run_of(day), Progress())
    gate_result = judge({U_STATISTICS: statistics_of(0.48)}, jackknife, (), context)
    assert gate_result.alerts is not None
    return [
        (row["slice"], row["outcome"], row["baseline_run_id"]) for row in gate_result.alerts.to_pylist()
    ], gate_result


def test_a_run_of_which_nothing_is_known_is_nothing_to_compare_with(spark: SparkSession, store: PathStore) -> None:
    alerts, gate_result = judge_run(spark, store, settings_of())
    assert alerts == [("all", "fail", "good"), ("short", "fail", "good")]
    assert (gate_result.status, gate_result.outcome, gate_result.warnings) == ("published", "fail", ())


@pytest.mark.parametrize(
    ("changes", "baselines", "words"),
    [
        ({"label": {"threshold": 0.2}}, {"all": None, "short": None}, "label.threshold"),
        ({"slices": {"short": "length < 5"}}, {"all": "good", "short": None}, "slices.short"),
    ],
)
def test_a_run_is_not_compared_with_one_that_was_measured_differently(
    spark: SparkSession, store: PathStore, changes: Any, baselines: Any, words: str
) -> None:
    alerts, gate_result = judge_run(spark, store, settings_of(**changes))
    assert {part: run_id for part, _, run_id in alerts} == baselines
    assert {outcome for _, outcome, run_id in alerts if run_id is None} == {"insufficient_evidence"}
    warning, *undecided = gate_result.warnings
    assert all(word in warning for word in ("2 accepted runs", "2026-01-01", "2026-01-02", words))
    assert len(undecided) == all(run_id is None for run_id in baselines.values())


def test_a_run_that_kept_nothing_of_its_ids_is_compared_as_ever(spark: SparkSession, store: PathStore) -> None:
    config = settings_of(corpus={"id": "id"}, gate={"paired": True, "rule": [HOLDS]})
    alerts, gate_result = judge_run(spark, store, config, JACKKNIFE_STATISTICS.arrow_schema.empty_table())
    assert {run_id for *_, run_id in alerts} == {"good"}
    assert gate_result.alerts is not None
    assert gate_result.alerts["paired"].to_pylist() == [False, False]
    (warning,) = gate_result.warnings
    assert "good" in warning
    assert "paired" in warning


def test_a_baseline_that_is_gone_is_no_first_run(spark: SparkSession, tmp_path: Path) -> None:
    """No earlier run takes its place. An old run that is gone is only named."""
    store, accepted = PathStore(str(tmp_path)), accepted_record(settings_of())

    def lose(*runs: tuple[int, str]) -> None:
        for day, run_id in runs:
            append_to_ledger(spark, store, replace(run_of(day, run_id), table_rows={"u_statistics": 2}), accepted)

    lose((1, "gone"))
    floor = settings_of(gate={"rule": [{"name": "floor", "metric": "auc", "min": 0.2}]})
    with pytest.raises(InputError, match="run_id=gone:"):
        judge_run(spark, store, settings_of())
    (warning,) = judge_run(spark, store, floor)[1].warnings  # which compares with nothing
    assert "run_id=gone:" in warning
    publish(spark, {U_STATISTICS: statistics_of(0.9)}, run_of(2, "good"), store, accepted)
    alerts, gate_result = judge_run(spark, store, settings_of())
    assert {run_id for *_, run_id in alerts} == {"good"}
    (warning,) = gate_result.warnings
    assert "run_id=gone:" in warning
    lose((3, "lost"), (4, "lost_too"))
    with pytest.raises(InputError) as caught:
        judge_run(spark, store, settings_of(), day=5)
    assert ["run_id=lost_too:" in fault for fault in caught.value.messages] == [True, False]
    other = settings_of(label={"threshold": 0.2})
    publish(spark, {U_STATISTICS: statistics_of(0.9)}, run_of(5, "other"), store, accepted_record(other))
    assert {run_id for *_, run_id in judge_run(spark, store, other, day=6)[0]} == {"other"}


def test_groups_of_a_baseline_that_are_gone_are_not_left_out(spark: SparkSession, tmp_path: Path) -> None:
    """A paired change is not silently judged with added variances."""
    store, config = PathStore(str(tmp_path)), settings_of(corpus={"id": "id"}, gate={"paired": True, "rule": [HOLDS]})
    schema = JACKKNIFE_STATISTICS.arrow_schema
    groups = pa.Table.from_pylist([{"model": "toxicity"}], schema)
    tables = {U_STATISTICS: statistics_of(0.9), JACKKNIFE_STATISTICS: groups}
    publish(spark, tables, run_of(1, "paired"), store, accepted_record(config))
    shutil.rmtree(store.location(JACKKNIFE_STATISTICS, run_of(1, "paired")))
    with pytest.raises(InputError, match=r"jackknife_statistics/.*run_id=paired:"):
        judge_run(spark, store, config, schema.empty_table())


# ---- what a run lacks


def rename(statistics: pa.Table, **names: str) -> pa.Table:
    return pa.Table.from_pylist([row | names for row in statistics.to_pylist()], U_STATISTICS.arrow_schema)


@pytest.mark.parametrize("rule", [HOLDS, {"name": "floor", "metric": "auc", "min": 0.2}], ids=["change", "floor"])
def test_what_the_last_accepted_run_had_and_the_date_lacks_is_named(
    spark: SparkSession, tmp_path: Path, rule: dict[str, Any]
) -> None:
    store, config = PathStore(str(tmp_path)), settings_of(gate={"rule": [rule]})
    statistics, of_gay = (rename(statistics_of(0.9), identity=name) for name in ("(overall)", "gay"))
    pair = rename(of_gay.set_column(of_gay.column_names.index("crossed"), "crossed", [[True] * 2]), identity="a & b")
    last = pa.concat_tables([statistics, of_gay, pair, rename(statistics, model="older")])
    earlier = pa.concat_tables([last, rename(statistics, model="oldest")])
    for day, run_id, table in ((1, "earlier", earlier), (2, "last", last)):
        publish(spark, {U_STATISTICS: table}, run_of(day, run_id), store, accepted_record(config))
    _, gate_result = judge_run(spark, store, config)
    model, identity = gate_result.warnings
    assert all(name in model for name in ("1 model ", '"older"', "last", "2026-01-02"))
    assert all(name in identity for name in ("1 identity ", '"gay"', "last"))


def test_identities_of_rules_that_the_corpus_lacks_are_named(spark: SparkSession, tmp_path: Path) -> None:
    """One warning per rule, and another since the gate decides nothing."""
    rule = {"name": "bpsn", "metric": "bpsn_auc", "min": 0.5, "identities": ["race=black", "race=white"]}
    config = settings_of(identities={"columns": None, "categorical": ["race"]}, gate={"rule": [rule]})
    store = PathStore(str(tmp_path))
    last = pa.concat_tables([rename(statistics_of(0.9), identity=name) for name in ("(overall)", "race=black")])
    publish(spark, {U_STATISTICS: last}, run_of(1, "last"), store, accepted_record(config))
    _, gate_result = judge_run(spark, store, config)
    unknown, nothing_decided = gate_result.warnings
    assert all(name in unknown for name in ('"bpsn"', '"race=black"', '"race=white"'))
    assert "no check" in nothing_decided
    assert gate_result.alerts is not None
    assert not any(gate_result.alerts["decided"].to_pylist())
