"""Nights behind a gate: accepted, failed, compared, accepted by a person; and what privacy leaves of small groups."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from scipy.stats import norm

from biasspark.tables.schemas import TABLES
from jobs import accept_run, bias_metrics
from scripts.drill_intervals import wilson_interval
from tests.running_jobs import Done, ask, run_main

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
    [undecided] = [line for line in nights.good.out.splitlines() if line.startswith("insufficient_evidence")]
    assert "2 checks" in undecided
    assert "auc holds (1), bpsn holds (1)" in undecided
    assert "latest_bias_alerts" in undecided
    said = nights.ask("SELECT message FROM latest_bias_alerts WHERE rule = 'auc holds' AND run_date = '2026-01-01'")
    assert said[0][0] not in nights.good.out
    assert "no accepted run before this one has an interval of it to compare with." in said[0][0]


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


def test_what_is_not_published_is_not_accepted(nights: Nights) -> None:
    done = run(accept_run, nights.folder, "2026-02-01", "--reason", "why not")
    assert done.code == 3
    assert "no run of bias_metrics is published" in done.err
    assert run(accept_run, nights.folder, "2026-01-03", "--reason", " ").code == 2
