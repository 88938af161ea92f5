"""Which rows of published tables a report shows, counts and sums up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasspark.report.baseline_comparison import compare_with_baselines
from biasspark.report.gate_summary import build_gate_summary
from biasspark.report.report_data import (
    ReportData,
    count_rows,
    filter_tables,
    list_identities,
    mean_over_templates,
    merge_bins,
)
from biasspark.tables.schemas import SCORE_HISTOGRAMS, TABLES
from tests.fixtures.made_up_report import (
    MODELS,
    RUN_DATE,
    Row,
    alert,
    compare_values,
    comparison_alert,
    ledger_row,
    make_report,
)

N, N_WEAK = 400, 5
NAMES = [f"i{number:03}" for number in range(N)]


def to_table(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), TABLES[name].full_arrow_schema)


def many_metrics(base: Mapping[str, Row]) -> Iterator[Row]:
    """Return many identities and pairs of them; the first few identities have wide intervals, which end highest."""
    for row in base.values():
        for number, name in enumerate(NAMES):
            auc = 0.5 + number / 1000
            aucs: Row = {"subgroup_auc": None, "bpsn_auc": auc, "bnsp_auc": 0.4 if number == 77 else None}
            aucs |= {"bpsn_auc_low": auc - 0.01, "bpsn_auc_high": auc + 0.01}
            aucs |= {"slice": "all", "bnsp_auc_low": None, "bnsp_auc_high": None}
            ends = {"bpsn_auc_low": 0.1, "bpsn_auc_high": 0.95} if number < N_WEAK else {}
            yield row | aucs | ends | {"identity": name}
            yield row | aucs | {"identity": f"{name} & b", "crossed": True}


@pytest.fixture(scope="module")
def run_tables() -> dict[str, pa.Table]:
    """One run with many identities, pairs of them, alerts, comparisons and templates."""
    tables = make_report(identities=("gay",), n_runs=1).tables
    compared = [compare_values(name, "bpsn_auc", 0.9, 0.8) for name in NAMES]
    compared += [compare_values(f"{name} & b", "bpsn_auc", 0.9, 0.8) | {"crossed": True} for name in NAMES]
    scores = [
        {"model": MODELS[0], "template": str(t), "identity": name, "n_rows": 2, "mean_score": 0.1 * t + number / 1000}
        for t in range(3)
        for number, name in enumerate(["(overall)", *NAMES])
    ]
    rows = {
        "bias_metrics": list(many_metrics({row["model"]: dict(row) for row in tables["bias_metrics"]})),
        "model_summary": tables["model_summary"],
        "bias_alerts": [alert("fail", identity=name, value=0.77 - number / 1000) for number, name in enumerate(NAMES)],
        "comparison_alerts": [comparison_alert("pass", identity=name) for name in NAMES],
        "model_comparisons": compared,
        "template_scores": scores,
    }
    return {name: to_table(name, of_table) for name, of_table in rows.items()}


@pytest.fixture(scope="module")
def shown(run_tables: dict[str, pa.Table]) -> ReportData:
    return ReportData(
        corpus="civil",
        run_date=RUN_DATE,
        run=ledger_row(),
        tables=filter_tables(run_tables, {}),
        counts=count_rows(run_tables),
    )


def test_the_worst_identities_are_shown(run_tables: dict[str, pa.Table], shown: ReportData) -> None:
    assert shown.identities() == NAMES[N_WEAK : N_WEAK + 100]
    assert len(list_identities(run_tables["bias_metrics"])) == N
    n_rows = {name: len(rows) for name, rows in shown.tables.items()}
    assert (n_rows["bias_metrics"], n_rows["bias_alerts"], n_rows["comparison_alerts"]) == (2 * 100, 200, 200)
    assert (n_rows["model_comparisons"], n_rows["template_means"]) == (100 + 500, 100)


def test_what_is_not_shown_is_counted(shown: ReportData) -> None:
    assert build_gate_summary(shown).title == f"The gate failed: {N} of {2 * N} checks"
    assert [row["identity"] for row in shown.alerts()[:3]] == NAMES[:-4:-1]
    (pair,) = compare_with_baselines(shown)
    assert pair.counts == {"worse": 2 * N, "better": 0, "no_evidence": 0, "insufficient_data": 0}
    assert (len(pair.rows), len(pair.worse)) == (100, 600)
    worst = [row["identity"] for row in shown.rows("crossed_pairs", model=MODELS[0])]
    assert worst == [f"{name} & b" for name in NAMES[:8]]  # the lowest of i077 has no interval
    (sums,) = shown.rows("model_summary", model=MODELS[0], slice="all")
    assert (sums["competition_score_weak"], sums["competition_score_n"]) == (N_WEAK + 1, N)
    assert (sums["bnsp_auc_power_mean_weak"], sums["bnsp_auc_power_mean_n"]) == (1, 1)


def test_means_over_templates() -> None:
    scores = [("(overall)", "s", 0.5), ("(overall)", "t", 0.1), ("a", "t", 0.2), ("a", "s", 0.8), ("a", "u", 0.9)]
    rows = [
        {"model": "m", "identity": identity, "template": template, "n_rows": 2, "mean_score": score}
        for identity, template, score in [*scores, ("b", "s", None), ("c", "s", 0.5)]
    ]
    a, c = mean_over_templates(rows)
    assert (a["identity"], a["n_templates"], a["n_rows"], c["identity"]) == ("a", 2, 4, "c")
    assert (a["mean_score"], a["mean_departure"]) == pytest.approx((0.5, 0.2))
    assert (a["score_deviation"], a["departure_deviation"]) == pytest.approx((0.18**0.5, 0.02**0.5))
    assert (a["lowest_score"], a["highest_score"], c["score_deviation"]) == (0.2, 0.8, None)


def test_scores_whose_differences_pass_the_largest_double_have_no_mean_over_templates() -> None:
    rows = [
        {"model": "m", "identity": identity, "template": template, "n_rows": 2, "mean_score": score}
        for template, highest in (("s", 1.7e308), ("t", 1.7e308))
        for identity, score in (("(overall)", -highest), ("a", highest), ("b", 0.0))
    ]
    assert mean_over_templates(rows) == []


@given(counts=st.dictionaries(st.integers(0, 199), st.integers(1, 9), min_size=1), n_merged=st.integers(1, 12))
def test_merged_bins_lose_no_row_and_lie_on_their_grid(counts: dict[int, int], n_merged: int) -> None:
    rows = [
        {"model": "m", "slice": "all", "identity": "a", "cell": "negative", "bin": number, "n_rows": n}
        | {"bin_low": number / 200, "bin_high": (number + 1) / 200}
        for number, n in counts.items()
    ]
    merged = merge_bins(to_table(SCORE_HISTOGRAMS.name, rows), n_merged).to_pylist()
    assert sum(row["n_rows"] for row in merged) == sum(counts.values())
    assert {row["bin"] for row in merged} == {number // n_merged for number in counts}
    for row in merged:
        assert row["bin_low"] == pytest.approx(row["bin"] * n_merged / 200)
        assert row["bin_high"] == pytest.approx((row["bin"] + 1) * n_merged / 200)


def test_identities_are_those_of_one_run() -> None:
    rows = make_report(identities=("gay", "black"), n_runs=1).rows("bias_metrics")
    metrics = to_table("bias_metrics", [row | {"run_id": run} for run in ("r1", "r2") for row in rows])
    assert list_identities(metrics, "r2") == {"gay", "black", "unmentioned"}
    assert list_identities(metrics, "r3") == set()
