"""Nights behind a gate: accepted, failed, compared, accepted by a person; and what privacy leaves of small groups."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession
from scipy.optimize import brentq
from scipy.stats import norm

import biasspark
from biasspark.config import Config, Gate, Intervals, Rule, parse_config
from biasspark.errors import InputError
from biasspark.maps.gate import Verdict, judged
from biasspark.metrics.gate.bias_alerts import Accepted, Before, JudgedNight, bias_alerts, choose_before
from biasspark.metrics.thresholds import DECISIONS
from biasspark.tables.acceptance import Approval, accept, check_latest, list_accepted
from biasspark.tables.publish import append_to_ledger
from biasspark.tables.runs import Run, RunRecord
from biasspark.tables.schemas import JACKKNIFE_STATISTICS, TABLES, U_STATISTICS
from biasspark.tables.store import PathStore
from jobs import accept_run, bias_metrics
from scripts.drill_intervals import newcombe_gap, wilson_interval
from tests.least_configuration import changed
from tests.running_jobs import Done, ask, run_main
from tests.sample_night import frame_of, record_of

N_ROWS = 1600
LEAST = 20
CONFIG = """
[corpus]
name = "comments"
path = "{folder}/good"
id = "id"
duplicates = "allow"
[label]
column = "toxic"
[models]
m = "score"
[identities]
columns = ["gay", "male", "rare", "nearly_all"]
[gate]
[[gate.rule]]
name = "shift"
metric = "negative_aeg"
max_abs = 0.2
identities = ["gay", "male"]
severity = "warn"
[[gate.rule]]
name = "auc holds"
metric = "auc"
max_drop = 0.05
[[gate.rule]]
name = "bpsn holds"
metric = "bpsn_auc"
max_drop = 0.05
identity = "gay"
[[gate.rule]]
name = "floor"
metric = "bpsn_auc"
min = 0.6
identity = "gay"
[output]
path = "{folder}/warehouse"
"""


GUARDED = (
    f"privacy.min_group_rows={LEAST}",
    "evidence.metrics.bnsp_auc=600",
    "slices.few=id < 12",
    "thresholds.at=[0.5]",
    "histograms.bins=4",
    "label_balance={length = 'length', buckets = [0, 50, 100]}",
    "pinned_auc.trials=0",
)


OF_RATES = 'metric="fpr", threshold=0.5, identities=["gay", "rare"]'
LENIENT = (
    '{name="bpsn holds", metric="bpsn_auc", max_drop=0.1, worst=true}',
    f'{{name="quiet", max=0.5, severity="warn", {OF_RATES}}}',
    f'{{name="no louder", max_rise=0.2, {OF_RATES}}}',
    '{name="no wider", metric="fpr_gap", threshold=0.5, max_rise=0.2, identity="gay"}',
    '{name="elsewhere", metric="fpr", threshold=0.2, max_drop=0.2, identity="gay"}',
)


def write_corpus(folder: Path, shift: float) -> None:
    """A third of the comments mention an identity, whose harmless ones score higher by a shift; five are of another."""
    rng = np.random.default_rng(7)
    toxic = rng.random(N_ROWS) < 0.4
    gay = np.arange(N_ROWS) % 3 == 0
    rare = np.arange(N_ROWS) % 320 == 5
    score = rng.normal(np.where(toxic, 1.5, 0), 1) + shift * (gay & ~toxic) - 9.0 * (rare & toxic)
    columns = {
        "id": np.arange(N_ROWS),
        "toxic": toxic,
        "score": score,
        "gay": gay,
        "male": rng.random(N_ROWS) < 0.5,
        "rare": rare,
        "nearly_all": ~rare,
        "length": rng.integers(0, 100, N_ROWS),
    }
    folder.mkdir()
    pq.write_table(pa.table(columns), folder / "part-0.parquet")


def run(job: Any, folder: Path, night: str, *flags: str) -> Done:
    parser = accept_run.accept_parser() if job is accept_run else None
    return run_main(job.main, "--config", f"{folder}/gate.toml", "--run-date", night, *flags, parser=parser)


@dataclass(frozen=True)
class Nights:
    folder: Path
    planned: Done
    good: Done
    bad: Done
    again: Done
    accepted: Done
    after: Done

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        return ask(self.folder / "warehouse", query)

    def alerts(self, night: str, columns: str = "outcome") -> dict[tuple[str, str], Any]:
        rows = self.ask(f"SELECT rule, identity, {columns} FROM latest_bias_alerts WHERE run_date = '{night}'")
        return {(rule, identity): values[0] if len(values) == 1 else values for rule, identity, *values in rows}


@pytest.fixture(scope="module")
def nights(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Nights:
    """A good night; a bad one, and again, its small groups withheld; a person accepts it; and one more."""
    folder = tmp_path_factory.mktemp("gate")
    write_corpus(folder / "good", 0)
    write_corpus(folder / "bad", 1.5)
    (folder / "gate.toml").write_text(CONFIG.format(folder=folder), encoding="utf-8")
    bad = ("--set", f"corpus.path={folder}/bad")
    guarded = [*bad, *(part for change in GUARDED for part in ("--set", change))]
    lenient = (*bad, "--set", "thresholds.at=[0.2, 0.5]", "--set", f"gate.rule=[{', '.join(LENIENT)}]")
    return Nights(
        folder,
        planned=run(bias_metrics, folder, "2026-01-01", "--dry-run"),
        good=run(bias_metrics, folder, "2026-01-01"),
        bad=run(bias_metrics, folder, "2026-01-02", *bad),
        again=run(bias_metrics, folder, "2026-01-03", *guarded),
        accepted=run(accept_run, folder, "2026-01-03", "--reason", "the model was meant to", "--by", "Ada"),
        after=run(bias_metrics, folder, "2026-01-04", *lenient),
    )


def test_a_dry_run_names_the_rules(nights: Nights) -> None:
    assert nights.planned.code == 0
    assert "gate:        shift, auc holds, bpsn holds, floor\n" in nights.planned.out
    assert "bias_alerts" in nights.planned.out


def test_a_good_first_night_is_accepted_though_nothing_can_be_compared(nights: Nights) -> None:
    assert nights.good.code == 0, nights.good.err
    summary = nights.good.summary
    assert (summary["status"], summary["gate"], summary["tables"]["bias_alerts"]) == (
        *("accepted", "insufficient_evidence", 5),
    )
    assert nights.alerts("2026-01-01") == {
        ("shift", "gay"): "pass",
        ("shift", "male"): "pass",
        ("auc holds", "(overall)"): "insufficient_evidence",
        ("bpsn holds", "gay"): "insufficient_evidence",
        ("floor", "gay"): "pass",
    }
    assert "gate: 2 insufficient_evidence, 3 pass\n" in nights.good.out
    assert "insufficient_evidence: auc holds, m, all: auc is 0.8" in nights.good.out
    assert "no accepted run before this one has an interval of it to compare with." in nights.good.out


def test_a_bad_night_is_published_and_ends_with_5(nights: Nights) -> None:
    assert nights.bad.code == 5, nights.bad.err
    summary, baseline = nights.bad.summary, nights.good.summary["run_id"]
    assert (summary["status"], summary["gate"]) == ("published", "fail")
    found = nights.alerts("2026-01-02", "outcome, baseline_run_id")
    assert found == {
        ("shift", "gay"): ["warn", None],
        ("shift", "male"): ["pass", None],
        ("auc holds", "(overall)"): ["fail", baseline],
        ("bpsn holds", "gay"): ["fail", baseline],
        ("floor", "gay"): ["fail", None],
    }
    lines = nights.bad.out.splitlines()
    shown = [line.split(":")[0] for line in lines[lines.index("gate: 3 fail, 1 warn, 1 pass") + 1 : -1]]
    assert shown == ["fail", "fail", "fail", "warn"]
    assert nights.ask("SELECT status FROM bias_runs WHERE run_date = '2026-01-02'") == [("published",)]


def test_alerts_have_the_values_and_intervals_of_the_tables(nights: Nights) -> None:
    joined = nights.ask(
        "SELECT a.value - m.bpsn_auc, a.value_low - m.bpsn_auc_low, a.value_high - m.bpsn_auc_high, "
        "a.change - (m.bpsn_auc - b.bpsn_auc), a.baseline_value - b.bpsn_auc "
        "FROM bias_alerts a JOIN bias_metrics m USING (run_id, model, slice, identity) "
        "JOIN bias_metrics b ON b.run_id = a.baseline_run_id AND b.identity = a.identity AND b.slice = a.slice "
        "WHERE a.rule = 'bpsn holds' AND a.run_date = '2026-01-02'",
    )
    assert joined == [pytest.approx((0, 0, 0, 0, 0), abs=1e-15)]
    ((p, value, low),) = nights.ask(
        "SELECT p_violation, value, value_low FROM bias_alerts WHERE rule = 'shift' AND identity = 'gay' AND "
        "run_date = '2026-01-02'",
    )
    assert value > low > 0.2
    assert 0 < p < 0.025


def test_a_failed_night_is_never_the_baseline(nights: Nights) -> None:
    assert nights.again.code == 5, nights.again.err
    found = nights.alerts("2026-01-03", "outcome, baseline_run_id")
    assert found["bpsn holds", "gay"] == ["fail", nights.good.summary["run_id"]]


def test_a_person_accepts_a_night_and_the_next_is_compared_with_it(nights: Nights) -> None:
    assert nights.accepted.code == 0, nights.accepted.err
    run_id = nights.again.summary["run_id"]
    assert nights.accepted.summary["accepted_run_id"] == run_id
    ((status, n_rows, config),) = nights.ask("SELECT status, n_rows, config FROM bias_runs WHERE job = 'accept_run'")
    assert (status, n_rows) == ("accepted", 0)
    assert json.loads(config) == {
        "accepted_run_id": run_id, "job": "bias_metrics", "reason": "the model was meant to", "by": "Ada",
    }  # fmt: skip
    assert nights.ask("SELECT DISTINCT run_id FROM latest_bias_metrics WHERE run_date = '2026-01-03'") == [(run_id,)]

    assert nights.after.code == 0, nights.after.err
    found = nights.alerts("2026-01-04", "outcome, baseline_run_id, change")
    assert found["bpsn holds", "gay"] == ["pass", run_id, 0]
    # What the accepted night withholds is compared with the night before that was accepted.
    assert found["bpsn holds", "rare"][:2] == ["insufficient_evidence", nights.good.summary["run_id"]]
    assert found["bpsn holds", "(overall)"] == ["insufficient_evidence", None, None]
    assert nights.after.summary["status"] == "accepted"


def test_rates_are_judged_and_compared_with_the_accepted_night(nights: Nights) -> None:
    """The night before had the threshold 0.5 alone, and withheld the rare identity."""
    run_id = nights.again.summary["run_id"]
    found = nights.alerts("2026-01-04", "outcome, baseline_run_id, change, paired")
    assert {key: values for key, values in found.items() if key[0] != "bpsn holds"} == {
        ("quiet", "gay"): ["warn", None, None, None],
        ("quiet", "rare"): ["insufficient_evidence", None, None, None],
        ("no louder", "gay"): ["pass", run_id, 0, False],
        ("no louder", "rare"): ["insufficient_evidence", None, None, None],
        ("no wider", "gay"): ["pass", run_id, 0, False],
        ("elsewhere", "gay"): ["insufficient_evidence", None, None, None],
    }
    ((value, low, high, x, n, p),) = nights.ask(
        "SELECT a.value, a.value_low, a.value_high, r.n_false_positive, r.n_false_positive + r.n_true_negative, "
        "a.p_compliance FROM latest_bias_alerts a JOIN latest_threshold_rates r "
        "USING (run_id, model, slice, identity, threshold) WHERE a.rule = 'quiet' AND identity = 'gay'"
    )
    assert (value, (low, high)) == (x / n, pytest.approx(wilson_interval(x, n, 0.95), abs=1e-12))
    assert p == pytest.approx(norm.cdf((value - 0.5) / math.sqrt(0.25 / n)), rel=1e-9)
    gaps = "SELECT value - fpr_gap, value_low - fpr_gap_low, value_high - fpr_gap_high FROM latest_bias_alerts "
    joined = "JOIN latest_threshold_rates USING (run_id, model, slice, identity, threshold) WHERE rule = 'no wider'"
    assert nights.ask(gaps + joined) == [(0, 0, 0)]
    assert "warn: quiet, m, all: fpr at 0.5 of gay is 0." in nights.after.out


# ---- privacy and minimum evidence

KNOWN = {"crossed", "length_low", "length_high", "overall_positive_rate", "trials"}
KNOWN |= {"overall_auc", "overall_auc_at_least", "overall_auc_at_most"}


def test_small_groups_are_withheld_in_every_table(nights: Nights) -> None:
    run_id = nights.again.summary["run_id"]
    n_seen, small = 0, "identity IN ('rare', 'nearly_all')"
    for table in TABLES.values():
        if table.job != "bias_metrics" or "identity" not in table.key_columns or table.name == "bias_alerts":
            continue
        names = [column.name for column in table.values if column.name not in KNOWN]
        rows = nights.ask(
            f"SELECT {', '.join(names)} FROM {table.name} WHERE run_id = '{run_id}' AND {small}",
        )
        for row in rows:
            found = dict(zip(names, row, strict=True))
            n_seen += 1
            reasons = {value for name, value in found.items() if name.endswith("reason")}
            methods = {value for name, value in found.items() if name.endswith("method")}
            numbers = {value for name, value in found.items() if not name.endswith(("reason", "method"))}
            assert (reasons, methods - {"none"}, numbers) == ({"withheld"}, set(), {None}), (table.name, found)
    assert n_seen == 2 * 2 * (6 + 1 + 1 + 1) + 2 * 3
    assert nights.ask(f"SELECT DISTINCT identity FROM score_histograms WHERE run_id = '{run_id}' ORDER BY 1") == [
        *[("(overall)",), ("gay",), ("male",)],
    ]


def test_no_summary_speaks_of_what_is_withheld(nights: Nights) -> None:
    """The rare identity would be the worst by far, and the slice of twelve rows is too small itself."""
    columns = "slice, n_negative, auc, auc_reason, bnsp_auc_min_identity, bpsn_auc_min_identity, n_identities_undefined"
    rows = nights.ask(
        f"SELECT run_date, {columns} FROM latest_model_summary WHERE run_date < '2026-01-04' ORDER BY run_date, slice",
    )
    found = {(str(night), part): values for night, part, *values in rows}
    assert found["2026-01-02", "all"][3] == "rare"
    assert found["2026-01-03", "all"][2:] == [None, None, "gay", 4]
    assert found["2026-01-03", "few"] == [None, None, "withheld", None, None, 4]
    assert nights.ask(
        "SELECT fpr, fnr FROM latest_threshold_summary WHERE run_date = '2026-01-03' AND slice = 'few'",
    ) == [(None, None)]


def test_a_metric_needs_its_least_rows(nights: Nights) -> None:
    rows = nights.ask(
        "SELECT run_date, n_subgroup_positive > 0, bnsp_auc IS NULL, bnsp_auc_reason, bnsp_auc_method, "
        "bpsn_auc IS NULL FROM latest_bias_metrics WHERE identity = 'gay' AND slice = 'all' AND "
        "run_date < '2026-01-04' ORDER BY run_date",
    )
    assert [row[1:] for row in rows] == [
        (True, False, None, "logit_delong", False),
        (True, False, None, "logit_delong", False),
        (True, True, "below_minimum_rows", "none", False),
    ]
    ((u, auc, reason),) = nights.ask(
        "SELECT u_doubled > 0, auc, reason FROM latest_u_statistics WHERE identity = 'gay' AND slice = 'all' AND "
        "low_cell = 'background_negative' AND high_cell = 'subgroup_positive' AND run_date = '2026-01-03'",
    )
    assert (u, auc, reason) == (True, None, "below_minimum_rows")
    pinned = "SELECT pinned_auc, reason FROM latest_pinned_auc WHERE identity = 'gay' AND slice = 'all' AND run_date = "
    assert nights.ask(f"{pinned}'2026-01-03'") == [(None, "below_minimum_rows")]


# ---- which run was accepted last


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


# ---- what a change is measured against


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


# ---- rates


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


def test_what_is_not_published_is_not_accepted(nights: Nights) -> None:
    done = run(accept_run, nights.folder, "2026-02-01", "--reason", "why not")
    assert done.code == 3
    assert "no run of bias_metrics is published" in done.err
    assert run(accept_run, nights.folder, "2026-01-03", "--reason", " ").code == 2
