"""What the gate compares a night with: the run accepted last, one that was measured alike, and rates that are there."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession
from scipy.optimize import brentq

import biasspark
from biasspark.config import Config, Gate, Intervals, Rule, parse_config
from biasspark.errors import InputError
from biasspark.maps.gate import Verdict, judged
from biasspark.metrics.gate.bias_alerts import Accepted, Before, JudgedNight, bias_alerts, choose_before
from biasspark.metrics.thresholds import DECISIONS
from biasspark.tables.acceptance import Approval, accept, check_latest, list_accepted
from biasspark.tables.publish import append_to_ledger
from biasspark.tables.runs import Run, RunRecord
from biasspark.tables.schemas import JACKKNIFE_STATISTICS, U_STATISTICS
from biasspark.tables.store import PathStore
from scripts.drill_intervals import newcombe_gap
from tests.least_configuration import changed
from tests.sample_night import frame_of, record_of


def record(status: str) -> RunRecord:
    return RunRecord(**(vars(record_of()) | {"status": status}))


@pytest.fixture(scope="module")
def ledger(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> PathStore:
    """Three nights: accepted; failed; accepted, then rerun and failed. Another corpus is accepted on the last."""
    store = PathStore(str(tmp_path_factory.mktemp("ledger")))
    for day, run_id, status, corpus in (
        (1, "a", "accepted", "civil"),
        (2, "b", "published", "civil"),
        (3, "c", "accepted", "civil"),
        (3, "d", "published", "civil"),
        (3, "e", "accepted", "other"),
    ):
        append_to_ledger(spark_session, run_of(day, run_id, corpus), store, record(status))
    return store


def run_of(day: int, run_id: str = "now", corpus: str = "civil") -> Run:
    return Run(date(2026, 1, day), corpus, "bias_metrics", run_id, datetime.now(UTC))


def test_the_accepted_runs_of_the_nights_before(spark: SparkSession, ledger: PathStore) -> None:
    def find(day: int, most: int = 9) -> list[str]:
        return [found.run.run_id for found in list_accepted(spark, ledger, run_of(day), most)]

    # A night that is run again is held against the nights before it.
    assert [find(day) for day in (1, 2, 3, 4)] == [[], ["a"], ["a"], ["c", "a"]]
    assert find(4, 1) == ["c"]
    assert list_accepted(spark, ledger, Run(date(2026, 1, 9), "civil", "other_job", "x", datetime.now(UTC))) == []

    for _ in range(2):  # twice means what once does
        accept(spark, ledger, run_of(3, "d"), Approval("checked", "Ada"))
    assert [find(day) for day in (2, 4)] == [["a"], ["d", "a"]]

    check_latest(spark, ledger, run_of(3, "d"), "d")
    with pytest.raises(
        InputError, match=r'run_id: "c", a later one has superseded it for 2026-01-03, corpus "civil"\.'
    ):
        check_latest(spark, ledger, run_of(3, "d"), "c")
    with pytest.raises(InputError, match=r'run_id: "x", no such run of bias_metrics is published'):
        check_latest(spark, ledger, run_of(3, "d"), "x")


HOLDS = {"name": "auc holds", "metric": "auc", "max_drop": 0.05, "slices": ["all", "short"]}


def settings_of(**changes: Any) -> Config:
    parts = {"slices": {"short": "length < 9"}, "gate": {"rule": [HOLDS]}} | changes
    return parse_config(changed(**parts), Path())


@pytest.fixture(scope="module")
def made_up(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> PathStore:
    """A night that is good, and one of which nothing is known, for want of rows: both are accepted."""
    store = PathStore(str(tmp_path_factory.mktemp("made_up")))
    config = settings_of().json
    for day, run_id, auc in ((1, "good", 0.9), (2, "tiny", None)):
        run = run_of(day, run_id)
        own = {"corpus": F.lit(run.corpus), "run_date": F.lit(run.run_date), "run_id": F.lit(run_id)}
        store.write(U_STATISTICS, statistics_of(spark_session, auc).withColumns(own), run)
        append_to_ledger(spark_session, run, store, replace(record("accepted"), config=config))
    return store


def statistics_of(spark: SparkSession, auc: float | None) -> DataFrame:
    sizes = {"n_low": 400, "n_high": 400, "crossed": False}
    pair = {"identity": "(overall)", "low_cell": "negative", "high_cell": "positive", **sizes, "auc": auc}
    pair |= {"reason": "below_minimum_rows"} if auc is None else {"auc_variance": 1e-4}
    places = [{"model": "toxicity", "slice": cut} for cut in ("all", "short")]
    return frame_of(spark, U_STATISTICS, [place | pair for place in places]).coalesce(1)


def judge(spark: SparkSession, store: PathStore, config: Config, auc: float) -> tuple[list[Any], Verdict]:
    with judged(JudgedNight(statistics_of(spark, auc)), config, store, run_of(3)) as verdict:
        assert verdict.alerts is not None
        rows = verdict.alerts.orderBy("slice").select("slice", "outcome", "baseline_run_id").collect()
        return [tuple(row) for row in rows], verdict


def test_a_night_of_which_nothing_is_known_is_nothing_to_compare_with(spark: SparkSession, made_up: PathStore) -> None:
    alerts, verdict = judge(spark, made_up, settings_of(), 0.48)
    assert alerts == [("all", "fail", "good"), ("short", "fail", "good")]
    assert (verdict.status, verdict.exit_code, verdict.warnings) == ("published", 5, ())


def test_a_night_is_not_compared_with_one_that_was_measured_otherwise(spark: SparkSession, made_up: PathStore) -> None:
    said = "gate: 2 accepted runs from 2026-01-01 to 2026-01-02 were measured differently: "
    end = " No change is measured against what differs."
    alerts, verdict = judge(spark, made_up, settings_of(label={"threshold": 0.2}), 0.48)
    assert alerts == [("all", "insufficient_evidence", None), ("short", "insufficient_evidence", None)]
    assert verdict.warnings == (f"{said}label.threshold is 0.2 tonight, not set then.{end}",)

    alerts, verdict = judge(spark, made_up, settings_of(slices={"short": "length < 5"}), 0.48)
    assert alerts == [("all", "fail", "good"), ("short", "insufficient_evidence", None)]
    assert verdict.warnings == (f'{said}slices.short is "length < 5" tonight, "length < 9" then.{end}',)


def test_a_night_that_kept_nothing_of_its_ids_is_compared_as_ever(spark: SparkSession, made_up: PathStore) -> None:
    config = settings_of(corpus={"id": "id"}, gate={"paired": True, "rule": [HOLDS]})
    kept = frame_of(spark, JACKKNIFE_STATISTICS, [])
    with judged(JudgedNight(statistics_of(spark, 0.48), left_out=kept), config, made_up, run_of(3)) as verdict:
        assert verdict.alerts is not None
        rows = verdict.alerts.select("outcome", "baseline_run_id", "paired").collect()
    said = "gate: paired, but the baseline good did not keep tonight's ids: there variances are added."
    assert (list(map(tuple, rows)), verdict.warnings) == ([("fail", "good", False)] * 2, (said,))


def test_a_night_does_not_fail_because_an_old_one_is_gone(spark: SparkSession, made_up: PathStore) -> None:
    config = settings_of().json
    for run in (run_of(3, "gone"), run_of(4, "gone_too")):
        append_to_ledger(spark, run, made_up, replace(record("accepted"), config=config))
    with judged(JudgedNight(statistics_of(spark, 0.48)), settings_of(), made_up, run_of(5)) as verdict:
        assert verdict.alerts is not None
        assert {row["baseline_run_id"] for row in verdict.alerts.collect()} == {"good"}
    assert [warning.partition(":")[0].rpartition("run_id=")[2] for warning in verdict.warnings] == ["gone_too", "gone"]
    assert verdict.warnings[0].endswith(
        "its files are gone. The ledger has the run. Restore them, or measure the night again."
    )


FALSE_ALARMS = {"loud": (30, 60), "quiet": (1, 80), "alike": (13, 130), "nobody": (0, 0)}
"""Of the negatives of each identity, how many reach the threshold; of the 200 others 20 do."""


@pytest.fixture(scope="module")
def rates(spark_session: SparkSession) -> DataFrame:
    """Rates of a corpus that is ranked once."""
    groups = {**FALSE_ALARMS, None: (20, 200)}
    rows = [
        (False, float(n < reached), *(name == own for own in FALSE_ALARMS))
        for name, (reached, total) in groups.items()
        for n in range(total)
    ]
    schema = ", ".join(["toxic BOOLEAN", "score DOUBLE", *(f"{name} BOOLEAN" for name in FALSE_ALARMS)])
    frame = spark_session.createDataFrame([*rows, (True, 1.0, *[False] * len(FALSE_ALARMS))], schema)
    names = list(FALSE_ALARMS)
    found = biasspark.threshold_rates(frame, models=["score"], label="toxic", identities=names, at=[0.2, 0.5])
    return spark_session.createDataFrame(found.collect(), found.schema).coalesce(1)


def p_value(one: tuple[int, int], other: tuple[int, int], bound: float) -> float:
    """That of the claim that the gap is below a bound: 1/2 less half the level at which its interval ends there."""
    above = one[0] / one[1] - other[0] / other[1] > bound
    level = brentq(lambda level: newcombe_gap(one, other, level)[not above] - bound, 1e-9, 1 - 1e-15, xtol=1e-15)
    return (1 + level) / 2 if above else (1 - level) / 2


def test_gaps_of_rates_are_judged_by_the_inverse_of_their_intervals(spark: SparkSession, rates: DataFrame) -> None:
    asked = {"metric": "fpr_gap", "threshold": 0.5, "models": ("score",), "worst": True}
    rules = (Rule(name="not louder", max=0.1, **asked), Rule(name="even", max_abs=0.15, **asked))
    found = bias_alerts(JudgedNight(statistics_of(spark, 0.9), rates), Before(), Gate(rule=rules), Intervals())
    alerts = {(row.rule, row.identity): row for row in found.collect()}
    outcomes = {name: [alerts[rule.name, name].outcome for rule in rules] for name in (*FALSE_ALARMS, "(overall)")}
    assert outcomes == {
        "loud": ["fail", "fail"],
        "quiet": ["pass", "insufficient_evidence"],
        "alike": ["pass", "pass"],
        "nobody": ["insufficient_evidence", "insufficient_evidence"],
        "(overall)": ["fail", "fail"],
    }
    everyone = [*FALSE_ALARMS.values(), (20, 200)]
    for name in ("loud", "quiet", "alike"):
        own, row = FALSE_ALARMS[name], alerts["not louder", name]
        others = (sum(n for n, _ in everyone) - own[0], sum(n for _, n in everyone) - own[1])
        assert (row.threshold, row.metric, row.paired) == (0.5, "fpr_gap", None)
        assert row.value == pytest.approx(own[0] / own[1] - others[0] / others[1], abs=1e-15)
        assert (row.value_low, row.value_high) == pytest.approx(newcombe_gap(own, others), abs=1e-12)
        assert row.p_compliance == pytest.approx(p_value(own, others, 0.1), rel=1e-6)
        assert row.p_violation == pytest.approx(1 - row.p_compliance, abs=1e-12)
    assert alerts["even", "nobody"].message == "fpr_gap at 0.5 of nobody has no value: no rows to compute it from."
    assert alerts["even", "loud"].message.startswith("fpr_gap at 0.5 of loud is 0.4")
    assert alerts["even", "(overall)"].message.startswith("fpr_gap at 0.5 of the worst identity: broken by 1 of 4")


def test_each_rate_is_compared_with_the_latest_accepted_run_that_has_it(spark: SparkSession, rates: DataFrame) -> None:
    """The later of two withheld one identity; the earlier found fewer false alarms of every one."""
    nothing = F.lit(None).cast("double")
    lacking = {name: F.when(F.col("identity") != "loud", F.col(name)) for name in ("fpr", "fpr_gap", *DECISIONS)}
    fewer = F.col("n_false_positive") - F.expr("div(n_false_positive, 2)")
    reached = fewer / (F.col("n_false_positive") + F.col("n_true_negative"))
    earlier = {
        "n_true_negative": F.col("n_true_negative") + F.expr("div(n_false_positive, 2)"),
        "n_false_positive": fewer,
        "fpr": F.when(F.col("n_false_positive") + F.col("n_true_negative") > 0, reached).otherwise(nothing),
    }
    own = [{"run_id": F.lit(f"r{place}"), "place": F.lit(place)} for place in (1, 2)]
    accepted = rates.withColumns(lacking | own[0]).unionByName(rates.withColumns(earlier).withColumns(own[1]))
    asked = {"threshold": 0.5, "models": ("score",), "max_rise": 0.1}
    rules = (Rule(name="rise", metric="fpr", **asked), Rule(name="gap", metric="fpr_gap", **asked))
    gate = Gate(rule=rules)
    before = choose_before(Accepted(rates=accepted), gate, Intervals())
    found = bias_alerts(JudgedNight(statistics_of(spark, 0.9), rates), before, gate, Intervals())
    alerts = {(row.rule, row.identity): row for row in found.collect()}
    names = [name for name in FALSE_ALARMS if name != "nobody"]
    assert [alerts["rise", name].baseline_run_id for name in names] == ["r2", "r1", "r1"]
    assert [alerts["gap", name].baseline_run_id for name in names] == ["r2", "r1", "r1"]
    assert [alerts["rise", name].change for name in names] == [0.25, 0, 0]
    loud = alerts["rise", "loud"]
    assert (loud.change_low, loud.change_high) == pytest.approx(newcombe_gap((30, 60), (15, 60)), abs=1e-12)
    assert loud.p_violation == pytest.approx(1 - p_value((30, 60), (15, 60), 0.1), rel=1e-6)
    assert alerts["rise", "nobody"].message == "fpr at 0.5 of nobody has no value: no rows to compute it from."
