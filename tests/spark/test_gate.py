"""Runs with a gate: accepted, failed, compared, accepted by a person; and suppressed small groups."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from biasspark.workflows import accept_run
from tests.harness.main_job import run, write_config
from tests.harness.running_jobs import Done, ask

N_ROWS = 1600
LEAST = 20
RULES = [
    {"name": "shift", "metric": "negative_aeg", "max_abs": 0.2, "identities": ["gay", "male"], "severity": "warn"},
    {"name": "auc holds", "metric": "auc", "max_drop": 0.05},
    {"name": "bpsn holds", "metric": "bpsn_auc", "max_drop": 0.05, "identity": "gay"},
    {"name": "floor", "metric": "bpsn_auc", "min": 0.6, "identity": "gay"},
]
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
    """A third of the comments mention an identity, whose harmless ones score higher; five mention another."""
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


@dataclass(frozen=True)
class Runs:
    config: Path
    good: Done
    bad: Done
    again: Done
    accepted: Done
    after: Done

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        return ask(self.config.parent / "warehouse", query)

    def alerts(self, run_date: str, columns: str = "outcome") -> dict[tuple[str, str], Any]:
        rows = self.ask(f"SELECT rule, identity, {columns} FROM latest_bias_alerts WHERE run_date = '{run_date}'")
        return {(rule, identity): values[0] if len(values) == 1 else values for rule, identity, *values in rows}


@pytest.fixture(scope="module")
def runs(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """A good run; a bad one, and again with suppressed groups; a person accepts it; and one more."""
    folder = tmp_path_factory.mktemp("gate")
    write_corpus(folder / "good", 0)
    write_corpus(folder / "bad", 1.5)
    config = write_config(
        folder,
        corpus={"path": f"{folder}/good", "duplicates": "allow"},
        label={"column": "toxic", "threshold": None},
        identities={"columns": ["gay", "male", "rare", "nearly_all"]},
        gate={"rule": RULES},
    )
    bad = ("--set", f"corpus.path={folder}/bad")
    guarded = [*bad, *(part for change in GUARDED for part in ("--set", change))]
    lenient = (*bad, "--set", "thresholds.at=[0.2, 0.5]", "--set", f"gate.rule=[{', '.join(LENIENT)}]")
    return Runs(
        config,
        good=run(config, run_date="2026-01-01"),
        bad=run(config, *bad, run_date="2026-01-02"),
        again=run(config, *guarded, run_date="2026-01-03"),
        accepted=run(
            config, "--reason", "the model was meant to", "--by", "Ada", run_date="2026-01-03", job=accept_run
        ),
        after=run(config, *lenient, run_date="2026-01-04"),
    )


def test_a_good_first_run_is_accepted_though_nothing_can_be_compared(runs: Runs) -> None:
    assert runs.good.code == 0, runs.good.err
    summary = runs.good.summary
    assert (summary["status"], summary["gate"], summary["tables"]["bias_alerts"]) == (
        *("accepted", "insufficient_evidence", 5),
    )
    assert runs.alerts("2026-01-01") == {
        ("shift", "gay"): "pass",
        ("shift", "male"): "pass",
        ("auc holds", "(overall)"): "insufficient_evidence",
        ("bpsn holds", "gay"): "insufficient_evidence",
        ("floor", "gay"): "pass",
    }
    assert "gate: 2 insufficient_evidence, 3 pass\n" in runs.good.out
    [undecided] = [line for line in runs.good.out.splitlines() if line.startswith("insufficient_evidence")]
    assert "2 checks" in undecided
    assert "auc holds (1), bpsn holds (1)" in undecided
    assert "latest_bias_alerts" in undecided
    messages = runs.ask("SELECT message FROM latest_bias_alerts WHERE rule = 'auc holds' AND run_date = '2026-01-01'")
    assert messages[0][0] not in runs.good.out
    assert "accepted run" in messages[0][0]


def test_a_bad_run_is_published_and_ends_with_5(runs: Runs) -> None:
    assert runs.bad.code == 5, runs.bad.err
    summary, baseline = runs.bad.summary, runs.good.summary["run_id"]
    assert (summary["status"], summary["gate"]) == ("published", "fail")
    found = runs.alerts("2026-01-02", "outcome, baseline_run_id")
    assert found == {
        ("shift", "gay"): ["warn", None],
        ("shift", "male"): ["pass", None],
        ("auc holds", "(overall)"): ["fail", baseline],
        ("bpsn holds", "gay"): ["fail", baseline],
        ("floor", "gay"): ["fail", None],
    }
    lines = runs.bad.out.splitlines()
    shown = [line.split(":")[0] for line in lines[lines.index("gate: 3 fail, 1 warn, 1 pass") + 1 : -1]]
    assert shown == ["fail", "fail", "fail", "warn"]
    assert runs.ask("SELECT status FROM bias_runs WHERE run_date = '2026-01-02'") == [("published",)]


def test_a_person_accepts_a_run_and_the_next_is_compared_with_it(runs: Runs) -> None:
    """A run that failed is never the baseline."""
    assert runs.again.code == 5, runs.again.err
    before = runs.alerts("2026-01-03", "outcome, baseline_run_id")
    assert before["bpsn holds", "gay"] == ["fail", runs.good.summary["run_id"]]
    assert runs.accepted.code == 0, runs.accepted.err
    run_id = runs.again.summary["run_id"]
    assert runs.accepted.summary["accepted_run_id"] == run_id
    columns = "status, n_rows, accepts_run_id, accepted_by, acceptance_note"
    assert runs.ask(f"SELECT {columns} FROM bias_runs WHERE job = 'accept_run'") == [
        ("accepted", 0, run_id, "Ada", "the model was meant to")
    ]
    assert runs.ask("SELECT DISTINCT run_id FROM latest_bias_metrics WHERE run_date = '2026-01-03'") == [(run_id,)]

    assert runs.after.code == 0, runs.after.err
    found = runs.alerts("2026-01-04", "outcome, baseline_run_id, change")
    assert found["bpsn holds", "gay"] == ["pass", run_id, 0]
    # What the accepted run withholds is compared with the run before that was accepted.
    assert found["bpsn holds", "rare"][:2] == ["insufficient_evidence", runs.good.summary["run_id"]]
    assert found["bpsn holds", "(overall)"] == ["insufficient_evidence", None, None]
    assert runs.after.summary["status"] == "accepted"


def test_rates_are_judged_and_compared_with_the_accepted_run(runs: Runs) -> None:
    """The run before had only the threshold 0.5, and suppressed the rare identity."""
    run_id = runs.again.summary["run_id"]
    found = runs.alerts("2026-01-04", "outcome, baseline_run_id, change, paired")
    assert {key: values for key, values in found.items() if key[0] != "bpsn holds"} == {
        ("quiet", "gay"): ["warn", None, None, None],
        ("quiet", "rare"): ["insufficient_evidence", None, None, None],
        ("no louder", "gay"): ["pass", run_id, 0, False],
        ("no louder", "rare"): ["insufficient_evidence", None, None, None],
        ("no wider", "gay"): ["pass", run_id, 0, False],
        ("elsewhere", "gay"): ["insufficient_evidence", None, None, None],
    }
    assert "warn: quiet, m, all: fpr at 0.5 of gay is 0." in runs.after.out


def test_small_groups_and_values_of_few_rows_are_withheld(runs: Runs) -> None:
    """In every table with identities, and in the summaries."""
    run_id = runs.again.summary["run_id"]
    reasons = {"bias_metrics": "bpsn_auc_reason"}
    for table in ("bias_metrics", "u_statistics", "pinned_auc", "threshold_rates", "label_balance"):
        rows = runs.ask(
            f"SELECT DISTINCT identity, {reasons.get(table, 'reason')} FROM {table} "
            f"WHERE run_id = '{run_id}' AND identity IN ('rare', 'nearly_all', 'gay') ORDER BY 1, 2"
        )
        assert {("rare", "withheld"), ("nearly_all", "withheld")} <= set(rows), table
        assert table == "pinned_auc" or ("gay", None) in rows
    bins = runs.ask(f"SELECT DISTINCT identity FROM score_histograms WHERE run_id = '{run_id}' ORDER BY 1")
    assert bins == [("(overall)",), ("gay",), ("male",)]
    summary = "SELECT bpsn_auc_min_identity, auc_reason FROM model_summary WHERE run_id = '{}' ORDER BY slice"
    assert runs.ask(summary.format(run_id)) == [("gay", None), (None, "withheld")]
    few = runs.ask("SELECT bnsp_auc, bnsp_auc_reason, bpsn_auc IS NULL FROM latest_bias_metrics "
                     "WHERE identity = 'gay' AND slice = 'all' AND run_date = '2026-01-03'")  # fmt: skip
    assert few == [(None, "below_minimum_rows", False)]
