"""From the tables of a run, and of accepted runs before it, to the alerts of every rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import brentq

from biasspark.config import Gate, Rule
from biasspark.gate.alerts import Baselines, alert_order, bias_alerts, choose_latest, measure_rules, pair_runs
from biasspark.metrics.thresholds import Thresholds, threshold_rates
from biasspark.metrics.u_statistics import u_statistics
from biasspark.tables.schemas import BIAS_ALERTS, THRESHOLD_RATES, U_STATISTICS, Table
from tests.fixtures.local_corpus import draw_corpus
from tests.fixtures.made_up_report import alert
from tests.oracle.counts import count_corpora
from tests.oracle.intervals import newcombe_gap
from tests.oracle.suite import PAIRS, cut_cells
from tests.unit.test_paired_aucs import leave_out, row_of

NO_EVIDENCE = "insufficient_evidence"
NO_BASELINES = Baselines()


def alerts_of(
    tables: dict[Table, pa.Table], *rules: Rule, baselines: Baselines = NO_BASELINES
) -> dict[tuple[str, str], dict[str, Any]]:
    table = bias_alerts(tables, baselines, Gate(rule=rules), 0.95, ())
    assert tuple(table.column_names) == BIAS_ALERTS.value_columns
    return {(row["rule"], row["identity"]): row for row in table.to_pylist()}


def of_run(table: pa.Table, run_id: str) -> pa.Table:
    return table.append_column("run_id", pa.array([run_id] * len(table)))


# ---- AUCs and gaps


@pytest.fixture(scope="module")
def statistics() -> pa.Table:
    score, label, identities = draw_corpus()
    corpora = {(model, part): (score, label, identities) for model in "mn" for part in ("all", "short")}
    return u_statistics(count_corpora(corpora)).table()


def test_alerts_have_the_values_and_intervals_of_the_tables(statistics: pa.Table) -> None:
    rules = (
        Rule(name="floor", metric="bpsn_auc", models=("m",), min=0.6, crossed=True),
        Rule(name="shift", metric="negative_aeg", models=("m",), slices=("short",), max_abs=0.2),
        Rule(name="overall", metric="auc", models=("m", "n"), min=0.5),
        Rule(name="left to the comparison", metric="bpsn_auc", models=("m",), baseline="n", max_drop=0.1),
    )
    alerts = alerts_of({U_STATISTICS: statistics}, *rules)
    identities = draw_corpus()[2]
    assert {name for rule, name in alerts if rule == "floor"} == set(identities)
    assert {name for rule, name in alerts if rule == "shift"} == set(identities) - {"common & rare"}
    assert [name for rule, name in alerts if rule not in ("floor", "shift")] == ["(overall)"]  # of both models
    floor, shift = alerts["floor", "common"], alerts["shift", "common"]
    rows = {(row["slice"], row["identity"], row["low_cell"], row["high_cell"]): row for row in statistics.to_pylist()}
    auc = rows["all", "common", "subgroup_negative", "background_positive"]["auc"]
    gap = rows["short", "common", "background_negative", "subgroup_negative"]["auc"] - 0.5
    assert (floor["value"], shift["value"]) == (auc, gap)
    assert floor["value_low"] < auc < floor["value_high"]
    assert (floor["outcome"], floor["slice"], shift["slice"]) == ("pass", "all", "short")
    nobody = alerts["floor", "nobody"]
    assert (nobody["outcome"], nobody["value"]) == (NO_EVIDENCE, None)
    assert "no_subgroup_negatives" in nobody["message"]


def jackknife(score: np.ndarray, n_groups: int = 12) -> pa.Table:
    """``jackknife_statistics`` of one identity, without each group of every twelfth row."""
    _, label, identities = draw_corpus()
    cells, groups = (
        cut_cells(values, label, identities["common"]) for values in (score, np.arange(len(score)) % n_groups)
    )
    key = {"model": "m", "slice": "all", "identity": "common"}
    runs = {
        (low, high): leave_out(cells[low], cells[high], (groups[low], groups[high]), n_groups)
        for low, high in PAIRS.values()
    }
    return pa.Table.from_pylist(
        [key | {"low_cell": low, "high_cell": high} | row_of(run) for (low, high), run in runs.items()]
    )


def test_changes_are_paired_by_the_groups_of_ids_where_both_runs_kept_them(statistics: pa.Table) -> None:
    score, label, identities = draw_corpus()
    earlier = score + np.random.default_rng(3).normal(0, 0.05, len(score))
    before = u_statistics(count_corpora({("m", "all"): (earlier, label, identities)})).table()
    rules = (
        Rule(name="drop", metric="bpsn_auc", models=("m",), identities=("common", "rare"), max_drop=0.1),
        Rule(name="rise", metric="negative_aeg", models=("m",), identities=("common",), max_rise=0.1),
    )
    latest = choose_latest(measure_rules({U_STATISTICS: of_run(before, "r1")}, rules, 0.95))
    old = jackknife(earlier)
    paired = pair_runs(jackknife(score), pa.concat_tables([of_run(old, "r0"), of_run(old, "r1")]), latest)
    run = {U_STATISTICS: statistics}
    added, by_id = (alerts_of(run, *rules, baselines=Baselines(latest, pairs)) for pairs in ({}, paired))
    assert [row["paired"] for row in added.values()] == [False] * 3
    assert {key[1]: row["paired"] for key, row in by_id.items() if key[0] == "drop"} == {"common": True, "rare": False}
    for key in (("drop", "common"), ("rise", "common")):
        assert by_id[key]["baseline_run_id"] == added[key]["baseline_run_id"] == "r1"
        assert by_id[key]["change"] == pytest.approx(added[key]["change"], abs=1e-15)
    widths = [row["drop", "common"]["change_high"] - row["drop", "common"]["change_low"] for row in (by_id, added)]
    assert widths[0] < 0.8 * widths[1]  # the same rows, nearly the same scores
    assert pair_runs(jackknife(score), of_run(old, "r0"), latest) == {}


def test_a_run_without_an_interval_is_nothing_to_compare_with(statistics: pa.Table) -> None:
    """A later run that lacks one is passed over, metric by metric."""
    score, label, identities = draw_corpus()
    rule = Rule(name="drop", metric="bpsn_auc", models=("m",), max_drop=0.1)
    full = u_statistics(count_corpora({("m", "all"): (score - label / 9, label, identities)})).table()
    tiny = full.filter(pa.compute.field("identity") != "rare")
    tiny = tiny.set_column(
        tiny.column_names.index("auc_variance"),
        "auc_variance",
        pa.compute.if_else(pa.compute.equal(tiny["identity"], "common"), tiny["auc_variance"], None),
    )
    runs = of_run(tiny, "late"), of_run(full, "r1")
    measured = [row for rows in runs for row in measure_rules({U_STATISTICS: rows}, [rule], 0.95)]
    alerts = alerts_of({U_STATISTICS: statistics}, rule, baselines=Baselines(choose_latest(measured)))
    assert {name: alerts["drop", name]["baseline_run_id"] for name in ("common", "rare", "unknown", "nobody")} == {
        "common": "late", "rare": "r1", "unknown": "r1", "nobody": None,
    }  # fmt: skip


# ---- rates and their gaps

FALSE_ALARMS = {"loud": (30, 60), "quiet": (1, 80), "alike": (13, 130), "nobody": (0, 0)}
"""Of the negatives of each identity, how many reach the threshold; of the 200 others 20 do."""


def rates_of(false_alarms: dict[str, tuple[int, int]], withheld: str = "") -> pa.Table:
    """``threshold_rates`` of disjoint identities of negatives, and of a positive."""
    groups = [*false_alarms.values(), (20, 200)]
    score = np.concatenate([(np.arange(n) < reached).astype(float) for reached, n in groups] + [np.ones(1)])
    member = np.repeat(np.arange(len(groups) + 1), [*(n for _, n in groups), 1])
    identities = {name: (member == number).astype(float) for number, name in enumerate(false_alarms)}
    counts = count_corpora({("m", "all"): (score, member == len(groups), identities)}, {"m": [0.2, 0.5]})
    suppressed = counts.groups.identity == withheld
    return threshold_rates(counts, Thresholds([0.2, 0.5], {"m": [0, 1]}), suppressed, 0.95)


def p_value(one: tuple[int, int], other: tuple[int, int], bound: float) -> float:
    """That of the claim that the gap is below a bound: 1/2 less half the level at which its interval ends there."""
    above = one[0] / one[1] - other[0] / other[1] > bound
    level = float(brentq(lambda level: newcombe_gap(one, other, level)[not above] - bound, 1e-9, 1 - 1e-15, xtol=1e-15))
    return (1 + level) / 2 if above else (1 - level) / 2


def rate_rule(name: str, metric: str, **bound: Any) -> Rule:
    return Rule(name=name, metric=metric, threshold=0.5, models=("m",), **bound)


def test_gaps_of_rates_are_tested_by_the_inverse_of_their_intervals(statistics: pa.Table) -> None:
    rules = rate_rule("not louder", "fpr_gap", max=0.1, worst=True), rate_rule("even", "fpr_gap", max_abs=0.15)
    alerts = alerts_of({U_STATISTICS: statistics, THRESHOLD_RATES: rates_of(FALSE_ALARMS)}, *rules)
    assert {key: row["outcome"] for key, row in alerts.items()} == {
        ("not louder", "loud"): "fail", ("not louder", "quiet"): "pass", ("not louder", "alike"): "pass",
        ("not louder", "nobody"): NO_EVIDENCE, ("not louder", "(overall)"): "fail",
        ("even", "loud"): "fail", ("even", "quiet"): NO_EVIDENCE, ("even", "alike"): "pass",
        ("even", "nobody"): NO_EVIDENCE,
    }  # fmt: skip
    everyone = [*FALSE_ALARMS.values(), (20, 200)]
    for name in ("loud", "quiet", "alike"):
        group, row = FALSE_ALARMS[name], alerts["not louder", name]
        background = (sum(n for n, _ in everyone) - group[0], sum(n for _, n in everyone) - group[1])
        assert (row["threshold"], row["metric"], row["paired"]) == (0.5, "fpr_gap", None)
        assert row["value"] == pytest.approx(group[0] / group[1] - background[0] / background[1], abs=1e-15)
        assert (row["value_low"], row["value_high"]) == pytest.approx(newcombe_gap(group, background), abs=1e-12)
        assert row["p_compliance"] == pytest.approx(p_value(group, background, 0.1), rel=1e-6)
        assert row["p_violation"] == pytest.approx(1 - row["p_compliance"], abs=1e-12)
    assert "no rows" in alerts["even", "nobody"]["message"]
    assert "fpr_gap at 0.5 of loud" in alerts["even", "loud"]["message"]


def test_each_rate_is_compared_with_the_latest_accepted_run_that_has_it(statistics: pa.Table) -> None:
    """The later of two withheld one identity; the earlier had half as many false alarms of every one."""
    rules = rate_rule("rise", "fpr", max_rise=0.1), rate_rule("gap", "fpr_gap", max_rise=0.1)
    half = {name: (reached // 2, n) for name, (reached, n) in FALSE_ALARMS.items()}
    runs = of_run(rates_of(FALSE_ALARMS, withheld="loud"), "r1"), of_run(rates_of(half), "r2")
    before = [row for rates in runs for row in measure_rules({THRESHOLD_RATES: rates}, rules, 0.95)]
    tables = {U_STATISTICS: statistics, THRESHOLD_RATES: rates_of(FALSE_ALARMS)}
    alerts = alerts_of(tables, *rules, baselines=Baselines(choose_latest(before)))
    for rule in ("rise", "gap"):
        baselines = [alerts[rule, name]["baseline_run_id"] for name in FALSE_ALARMS]
        assert baselines == ["r2", "r1", "r1", None]
    loud, gap = alerts["rise", "loud"], alerts["gap", "loud"]
    assert gap["change"] == abs(gap["value"]) - abs(gap["baseline_value"])
    assert gap["change_low"] < gap["change"] < gap["change_high"]
    assert [alerts["rise", name]["change"] for name in FALSE_ALARMS] == [0.25, 0, 0, None]
    ends = newcombe_gap((30, 60), (15, 60))
    assert (loud["change_low"], loud["change_high"]) == pytest.approx(ends, abs=1e-12)
    assert loud["p_violation"] == pytest.approx(1 - p_value((30, 60), (15, 60), 0.1), rel=1e-6)


def test_alerts_are_sorted_by_outcome_p_value_and_distance_from_the_bound() -> None:
    best_first = [
        *(alert("pass", p_violation_adjusted=1.0, value=value) for value in (0.9, 0.81)),
        alert("fail", p_violation_adjusted=None, value=None),
        *(alert("fail", change=change, bound=0.1) for change in (-0.2, -0.3)),
        *(alert("fail", p_violation_adjusted=0.0, value=value) for value in (0.7, 0.5)),
        alert("fail", p_violation_adjusted=0.0, value=None, identity="(overall)"),
    ]
    assert sorted(best_first, key=alert_order) == best_first[::-1]


@pytest.mark.parametrize(
    ("kind", "worst_first"), [("min", (0.1, 0.79, 0.95)), ("max", (0.95, 0.79, 0.1)), ("max_abs", (-0.95, 0.79, 0.1))]
)
def test_undecided_alerts_are_sorted_by_the_side_of_their_bound(kind: str, worst_first: tuple[float, ...]) -> None:
    last_first = [
        alert("insufficient_evidence", value=value, bound_kind=kind, bound=0.8) for value in worst_first[::-1]
    ]
    assert [row["value"] for row in sorted(last_first, key=alert_order)] == [*worst_first]
