"""What comes of a rule: outcomes against an oracle of their own, and the sentences that say them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from biasspark.config import Rule
from biasspark.metrics.comparisons.differences import Paired
from biasspark.metrics.gate.alerts import Alert, Ruling
from biasspark.metrics.gate.night_rules import Candidate, Pair, judge_candidates
from scripts.drill_intervals import newcombe_gap, wilson_interval

RUN = "r1"


def rule_of(**changes: Any) -> Rule:
    return Rule(**({"name": "floor", "metric": "bpsn_auc", "models": ("m",)} | changes))


def pair_of(auc: float, variance: float = 1e-4, n: int = 2000) -> Pair:
    half = stats.norm.ppf(0.975) * math.sqrt(variance) / (auc * (1 - auc))
    low, high = (1 / (1 + math.exp(sign * half) * (1 - auc) / auc) for sign in (1, -1))
    return Pair(value=auc, variance=variance, n_low=n, n_high=n, low=low, high=high, by_logit=True)


def candidate(identity: str, auc: float, before: float | None = None) -> Candidate:
    earlier = {} if before is None else {"before": pair_of(before), "before_run_id": RUN}
    return Candidate(key=("m", "all", identity), now=pair_of(auc), **earlier)


def by_identity(alerts: list[Alert]) -> dict[str, Alert]:
    found = {alert.identity: alert for alert in alerts}
    assert len(found) == len(alerts)
    return found


def oracle_p(auc: float, bound: float, variance: float = 1e-4) -> float:
    """Of violation of a minimum, by the logit."""
    z = (math.log(auc / (1 - auc)) - math.log(bound / (1 - bound))) * auc * (1 - auc) / math.sqrt(variance)
    return float(stats.norm.cdf(z))


def test_evidence_is_adjusted_over_the_rows_of_the_rule_both_ways() -> None:
    aucs = {"a": 0.70, "b": 0.778, "c": 0.80, "d": 0.823, "e": 0.9}
    alerts = judge_candidates(Ruling(rule_of(min=0.8), 0.05), [candidate(name, auc) for name, auc in aucs.items()])
    assert [alert.identity for alert in alerts] == list(aucs)
    violation = [oracle_p(auc, 0.8) for auc in aucs.values()]
    compliance = [1 - p for p in violation]
    for found, wanted in (
        ([alert.p_violation for alert in alerts], violation),
        ([alert.p_compliance for alert in alerts], compliance),
        ([alert.p_violation_adjusted for alert in alerts], stats.false_discovery_control(violation).tolist()),
        ([alert.p_compliance_adjusted for alert in alerts], stats.false_discovery_control(compliance).tolist()),
    ):
        assert found == pytest.approx(wanted, abs=1e-12)
    assert [alert.outcome for alert in alerts] == [
        *("fail", "fail", "insufficient_evidence", "pass", "pass"),
    ]


def test_one_lucky_row_among_many_fails_nothing() -> None:
    """0.778 alone is shown to be below 0.8; as the lowest of a hundred it is not."""
    assert judge_candidates(Ruling(rule_of(min=0.8), 0.05), [candidate("a", 0.778)])[0].outcome == "fail"
    many = [candidate("a", 0.778), *(candidate(f"b{n}", 0.801) for n in range(99))]
    lucky = by_identity(judge_candidates(Ruling(rule_of(min=0.8), 0.05), many))
    assert lucky["a"].outcome == "insufficient_evidence"
    assert lucky["a"].value_high is not None
    assert lucky["a"].value_high < 0.8
    own = "; below 0.8: significant on its own (p 0.011), but not after correcting for the rule's 100 tests."
    assert lucky["a"].message.endswith(own)
    assert "by itself" not in lucky["b1"].message


def test_a_rule_may_only_warn() -> None:
    (alert,) = judge_candidates(Ruling(rule_of(min=0.8, severity="warn"), 0.05), [candidate("a", 0.6)])
    assert (alert.outcome, alert.severity, alert.bound_kind, alert.bound) == ("warn", "warn", "min", 0.8)


def test_a_gap_is_told_as_a_gap() -> None:
    rule = rule_of(metric="negative_aeg", max_abs=0.1)
    shifted, fair = judge_candidates(Ruling(rule, 0.05), [candidate("a", 0.35), candidate("b", 0.52)])
    assert (shifted.outcome, fair.outcome) == ("fail", "pass")
    assert shifted.value == pytest.approx(-0.15)
    assert shifted.value_low is not None
    assert shifted.value_high is not None
    assert shifted.value_low < -0.15 < shifted.value_high
    assert shifted.message.startswith("negative_aeg of a is -0.1500 (-0.1")
    assert ": further from 0 than 0.1 (adjusted p " in shifted.message
    assert ": no further from 0 than 0.1 (adjusted p " in fair.message
    low, high = (judge_candidates(Ruling(rule_of(metric="positive_aeg", **bound), 0.05), [candidate("a", 0.35)])[0]
                 for bound in ({"min": -0.1}, {"max": -0.1}))  # fmt: skip
    assert (low.outcome, high.outcome) == ("fail", "pass")


def test_a_change_is_measured_from_the_last_accepted_run() -> None:
    ruling = Ruling(rule_of(max_drop=0.02), 0.05)
    rows = [candidate("fell", 0.7, 0.8), candidate("near", 0.79, 0.8), candidate("rose", 0.85, 0.8)]
    alerts = by_identity(judge_candidates(ruling, rows))
    assert {name: alert.outcome for name, alert in alerts.items()} == {
        "fell": "fail", "near": "insufficient_evidence", "rose": "pass",
    }  # fmt: skip
    fell = alerts["fell"]
    assert (fell.baseline_run_id, fell.baseline_value) == (RUN, 0.8)
    assert fell.change == pytest.approx(-0.1)
    assert stats.norm.isf(fell.p_violation) == pytest.approx((0.1 - 0.02) / math.sqrt(2e-4), rel=0.05)
    assert fell.change_low is not None
    assert fell.change_high is not None
    assert fell.change_low < -0.1 < fell.change_high < -0.06
    assert "is 0.7000 (" in fell.message
    assert "after 0.8000 in r1, a change of -0.1000 (-0.1" in fell.message
    assert "): fell by more than 0.02 (adjusted p " in fell.message


def test_a_gap_rises_when_it_moves_away_from_0_to_either_side() -> None:
    ruling = Ruling(rule_of(metric="positive_aeg", max_rise=0.02), 0.05)
    rows = [candidate("mirrored", 0.4, 0.6), candidate("grew", 0.35, 0.55), candidate("shrank", 0.5, 0.65)]
    alerts = by_identity(judge_candidates(ruling, rows))
    assert {name: alert.outcome for name, alert in alerts.items()} == {
        "mirrored": "insufficient_evidence", "grew": "fail", "shrank": "pass",
    }  # fmt: skip
    assert alerts["grew"].change == pytest.approx(0.1)
    assert alerts["shrank"].change == pytest.approx(-0.15)
    assert alerts["mirrored"].change == pytest.approx(0)


def in_bins(auc: float, doubt: float) -> Pair:
    """An AUC that bins leave open by so much to either side."""
    ends = {"at_least": auc - doubt, "at_most": auc + doubt}
    return replace(pair_of(auc), **ends, variance_at_least=1e-4, variance_at_most=1e-4)


def test_where_bins_leave_a_value_on_either_side_of_its_bound_the_sentence_says_between_which_ends() -> None:
    rows = [
        replace(candidate("open", 0.649), now=in_bins(0.649, 0.0012)),
        replace(candidate("settled", 0.64), now=in_bins(0.64, 0.0012)),
        candidate("exact", 0.65),
    ]
    found = by_identity(judge_candidates(Ruling(rule_of(min=0.65), 0.05), rows))
    assert {alert.outcome for alert in found.values()} == {"insufficient_evidence"}
    assert found["open"].message.endswith(
        ": undecided, below 0.65 (adjusted p 1) or at least 0.65 (adjusted p 1); bins leave the value between 0.6478 "
        "and 0.6502."
    )
    assert not [name for name in ("settled", "exact") if "bins" in found[name].message]


def test_what_bins_leave_of_a_gap_and_of_a_change() -> None:
    gap = replace(candidate("a", 0.4), now=in_bins(0.4, 0.001))
    (size,) = judge_candidates(Ruling(rule_of(metric="negative_aeg", max_abs=0.1), 0.05), [gap])
    assert size.message.endswith("; bins leave the value between -0.101 and -0.099.")
    night = replace(candidate("a", 0.78, 0.8), now=in_bins(0.78, 0.001), before=in_bins(0.8, 0.002))
    (fall,) = judge_candidates(Ruling(rule_of(max_drop=0.02), 0.05), [night])
    assert fall.message.endswith("; bins leave the change between -0.023 and -0.017.")
    by_ids = replace(night, paired=by_id("a", 0.78, 0.8).paired)
    (paired,) = judge_candidates(Ruling(rule_of(max_drop=0.02), 0.05), [by_ids])
    assert (paired.paired, "bins" in paired.message) == (True, False)


def by_id(identity: str, auc: float, before: float, sd: float = 0.005, n: int = 2000) -> Candidate:
    """Nights of which the same ids tell that their difference has this standard error."""
    added = candidate(identity, auc, before)
    paired = Paired(n_low=n, n_high=n, value=auc, baseline_value=before, difference_variance=sd**2, sum_variance=4e-4)
    return replace(added, paired=paired)


def test_a_change_is_judged_by_the_ids_that_both_nights_have() -> None:
    ruling = Ruling(rule_of(max_drop=0.02), 0.05)
    rows = [
        by_id("fell", 0.765, 0.8),
        by_id("near", 0.775, 0.8),
        by_id("same", 0.8, 0.8, 0),
        by_id("few", 0.7, 0.8, n=9),
    ]
    found = by_identity(judge_candidates(ruling, rows))
    added = by_identity(judge_candidates(ruling, [replace(row, paired=None) for row in rows]))
    assert {name: (alert.paired, alert.outcome) for name, alert in found.items()} == {
        "fell": (True, "fail"), "near": (True, "insufficient_evidence"), "same": (True, "pass"), "few": (False, "fail"),
    }  # fmt: skip
    assert {name: (alert.paired, alert.outcome) for name, alert in added.items()} == {
        "fell": (False, "insufficient_evidence"), "near": (False, "insufficient_evidence"),
        "same": (False, "insufficient_evidence"), "few": (False, "fail"),
    }  # fmt: skip
    fell, half = found["fell"], stats.norm.ppf(0.975) * 0.005
    assert (fell.p_violation, fell.p_compliance) == pytest.approx((stats.norm.sf(3), stats.norm.cdf(3)), abs=1e-12)
    assert (fell.change, fell.change_low, fell.change_high) == pytest.approx((-0.035, -0.035 - half, -0.035 + half))
    assert (fell.change_at_least, fell.change_at_most) == (fell.change, fell.change)
    assert "after 0.8000 in r1, a change of -0.0350 (-0.0448 to -0.0252), paired by id: fell by more" in fell.message
    same = found["same"]
    assert (same.p_violation, same.p_compliance) == (1, pytest.approx(0.98**2000))
    assert "paired by id" not in added["fell"].message
    assert replace(found["few"], p_violation_adjusted=0, message="") == replace(
        added["few"], p_violation_adjusted=0, message=""
    )


def test_nights_that_are_alike_on_too_few_rows_are_undecided_and_the_sentence_says_why() -> None:
    rows = [by_id("few", 0.8, 0.8, 0, n=30), by_id("many", 0.8, 0.8, 0, n=500), by_id("varied", 0.8, 0.8, n=30)]
    found = by_identity(judge_candidates(Ruling(rule_of(max_drop=0.02), 0.05), rows))
    alike = "; alike row by row, on too few rows to show that the bound is kept."
    assert found["few"].message.endswith(
        "a change of +0.0000 (+0.0000 to +0.0000), paired by id: undecided, fell by more than 0.02 (adjusted p 1) or "
        f"fell by no more than 0.02 (adjusted p 0.55){alike}"
    )
    assert {name: (alert.outcome, alert.message.endswith(alike)) for name, alert in found.items()} == {
        "few": ("insufficient_evidence", True),
        "many": ("pass", False),
        "varied": ("insufficient_evidence", False),
    }
    # No number of rows shows that nothing changed.
    nothing = judge_candidates(Ruling(rule_of(max_drop=0.0), 0.05), rows[:1])[0]
    assert (nothing.outcome, nothing.message.endswith(alike)) == ("insufficient_evidence", False)


def test_the_ids_tell_nothing_of_a_bound_on_the_value() -> None:
    row = by_id("a", 0.7, 0.8)
    assert judge_candidates(Ruling(rule_of(min=0.75), 0.05), [row]) == judge_candidates(
        Ruling(rule_of(min=0.75), 0.05), [replace(row, paired=None)]
    )
    assert judge_candidates(Ruling(rule_of(min=0.75), 0.05), [row])[0].paired is None
    unknown = Candidate(key=("m", "all", "b"), before=pair_of(0.8), before_run_id=RUN, paired=row.paired)
    assert judge_candidates(Ruling(rule_of(max_drop=0.02), 0.05), [unknown])[0].paired is None


def test_a_gap_that_the_ids_tell_of_is_judged_over_all_signs() -> None:
    ends = ((0.005, 0.035), (-0.03, 0.01))
    paired = Paired(
        n_low=500, n_high=400, value=0.02, baseline_value=-0.01, difference_variance=1e-6, sum_variance=4e-6, gaps=ends
    )
    row = replace(candidate("a", 0.52, 0.49), paired=paired)
    (found,) = judge_candidates(Ruling(rule_of(metric="negative_aeg", max_rise=0.02), 0.05, level=0.9), [row])
    # 0.02 - 0.01 if the gap before was below 0, 0.02 + 0.01 if it was above.
    assert found.change == pytest.approx(0.01)
    assert found.p_violation == pytest.approx(stats.norm.sf(-0.01 / 0.002), abs=1e-12)
    assert found.p_compliance == pytest.approx(stats.norm.cdf(0.01 / 0.001), abs=1e-12)
    z = stats.norm.ppf(0.95)
    assert (found.change_low, found.change_high) == pytest.approx((0.01 - z * 0.002, 0.03 + z * 0.001))


def test_of_gaps_near_0_the_size_by_itself_shows_that_the_bound_is_kept() -> None:
    """Both gaps may have either sign, so their sum counts, of which the variance is four times that of either."""
    ends = ((-0.015, 0.025), (-0.01, 0.03))
    paired = Paired(
        n_low=500, n_high=400, value=0.005, baseline_value=0.01, difference_variance=1e-6, sum_variance=4e-4, gaps=ends
    )
    row = replace(candidate("a", 0.505, 0.51), paired=paired)
    rise = {"metric": "negative_aeg", "max_rise": 0.04}
    (by_id,) = judge_candidates(Ruling(rule_of(**rise), 0.05), [row])
    (alone,) = judge_candidates(Ruling(rule_of(metric="negative_aeg", max_abs=0.04), 0.05), [row])
    assert (by_id.paired, by_id.outcome) == (True, "pass")
    assert by_id.p_compliance == alone.p_compliance
    assert (by_id.change_low, by_id.change_high) == pytest.approx((-0.03, 0.025))  # 0.015 is the size to the other side


# ---- rates


def rate_of(*sides: tuple[int, int]) -> Pair:
    """A rate, or the gap of two, of counts, with its interval."""
    if len(sides) == 1:
        value, (low, high) = sides[0][0] / sides[0][1], wilson_interval(*sides[0], 0.95)
    else:
        value, (low, high) = sides[0][0] / sides[0][1] - sides[1][0] / sides[1][1], newcombe_gap(*sides)
    decisions = tuple(float(count) for side in sides for count in side)
    return Pair(value=value, low=low, high=high, at_least=value, at_most=value, decisions=decisions)


def rate_candidate(identity: str, now: Pair, before: Pair | None = None) -> Candidate:
    earlier = {} if before is None else {"before": before, "before_run_id": RUN}
    return Candidate(key=("m", "all", identity), now=now, **earlier)


def rate_rule(**changes: Any) -> Rule:
    return rule_of(**({"name": "loud", "metric": "fpr", "threshold": 0.5} | changes))


def test_a_rate_is_judged_by_the_score_test() -> None:
    counts = {"loud": (50, 200), "near": (22, 200), "quiet": (5, 200)}
    rows = [rate_candidate(name, rate_of(own)) for name, own in counts.items()]
    rows.append(
        Candidate(key=("m", "all", "nobody"), reason="no rows to compute it from", now=Pair(decisions=(0.0, 0.0)))
    )
    alerts = by_identity(judge_candidates(Ruling(rate_rule(max=0.1, worst=True), 0.05), rows))
    assert {name: alert.outcome for name, alert in alerts.items()} == {
        "loud": "fail", "near": "insufficient_evidence", "quiet": "pass", "nobody": "insufficient_evidence",
        "(overall)": "fail",
    }  # fmt: skip
    for name, (x, n) in counts.items():
        z = (x / n - 0.1) / math.sqrt(0.1 * 0.9 / n)
        assert (alerts[name].p_violation, alerts[name].p_compliance) == pytest.approx(
            (stats.norm.sf(z), stats.norm.cdf(z)), rel=1e-9
        )
    assert alerts["loud"].message.startswith("fpr at 0.5 of loud is 0.2500 (0.1951 to 0.3143): above 0.1 (adjusted p ")
    assert alerts["nobody"].message == "fpr at 0.5 of nobody has no value: no rows to compute it from."
    assert alerts["(overall)"].message.startswith(
        "fpr at 0.5 of the worst identity: broken by 1 of 4 identities (loud)"
    )


def test_a_rate_rises_and_falls_by_newcombes_interval() -> None:
    rows = [
        rate_candidate("rose", rate_of((60, 200)), rate_of((20, 200))),
        rate_candidate("same", rate_of((400, 4000)), rate_of((400, 4000))),
        rate_candidate("fell", rate_of((20, 200)), rate_of((60, 200))),
        rate_candidate("new", rate_of((60, 200))),
    ]
    rise, drop = (
        by_identity(judge_candidates(Ruling(rate_rule(**bound), 0.05), rows))
        for bound in ({"max_rise": 0.05}, {"max_drop": 0.05})
    )
    assert [rise[name].outcome for name in ("rose", "same", "fell")] == ["fail", "pass", "pass"]
    assert [drop[name].outcome for name in ("rose", "same", "fell")] == ["pass", "pass", "fail"]
    rose = rise["rose"]
    assert (rose.baseline_run_id, rose.baseline_value, rose.paired) == (RUN, 0.1, False)
    assert rose.change == pytest.approx(0.2)
    assert (rose.change_low, rose.change_high) == pytest.approx(newcombe_gap((60, 200), (20, 200)))
    assert (rose.change_at_least, rose.change_at_most) == (rose.change, rose.change)
    assert "fpr at 0.5 of rose is 0.3000 (" in rose.message
    assert "after 0.1000 in r1, a change of +0.2000 (+0.12" in rose.message
    assert "): rose by more than 0.05 (adjusted p " in rose.message
    assert ": rose by no more than 0.05 (adjusted p " in rise["fell"].message
    assert ": fell by more than 0.05 (adjusted p " in drop["fell"].message
    assert rise["new"].outcome == "insufficient_evidence"
    assert rise["new"].message.endswith("no accepted run before this one has an interval of it to compare with.")


def test_the_gap_of_a_rate_rises_when_it_moves_away_from_0_to_either_side() -> None:
    others = (1000, 10_000)
    rows = [
        rate_candidate("wider", rate_of((10, 500), others), rate_of((60, 500), others)),
        rate_candidate("turned", rate_of((400, 5000), others), rate_of((600, 5000), others)),
    ]
    alerts = by_identity(judge_candidates(Ruling(rate_rule(metric="fpr_gap", max_rise=0.02), 0.05), rows))
    assert {name: alert.outcome for name, alert in alerts.items()} == {"wider": "fail", "turned": "pass"}
    wider = alerts["wider"]
    assert (wider.value, wider.baseline_value, wider.change) == pytest.approx((-0.08, 0.02, 0.06))
    assert wider.change_low is not None
    assert wider.change_high is not None
    assert wider.change_low < 0.06 < wider.change_high
    assert ": moved away from 0 by more than 0.02 (adjusted p " in wider.message


def test_without_a_value_an_interval_or_a_baseline_there_is_no_evidence() -> None:
    withheld = Candidate(key=("m", "all", "a"), reason="withheld")
    single = Candidate(key=("m", "all", "b"), now=Pair(value=0.75, n_low=1, n_high=4))
    alerts = judge_candidates(Ruling(rule_of(min=0.8), 0.05), [withheld, single])
    alerts += judge_candidates(Ruling(rule_of(max_drop=0.1), 0.05), [candidate("c", 0.5)])
    assert {alert.outcome for alert in alerts} == {"insufficient_evidence"}
    assert {alert.p_violation for alert in alerts} == {None}
    assert [alert.message for alert in alerts] == [
        "bpsn_auc of a has no value: withheld.",
        "bpsn_auc of b is 0.7500, without an interval: a cell has fewer than two rows.",
        "bpsn_auc of c is 0.5000: no accepted run before this one has an interval of it to compare with.",
    ]


def test_a_verdict_on_the_worst_identity_names_the_run_only_where_all_are_compared_with_one() -> None:
    old = replace(candidate("b", 0.9, 0.9), before_run_id="r0")
    rows = [candidate("a", 0.9, 0.9), old]
    rule = rule_of(max_drop=0.1, worst=True)
    assert [alert.baseline_run_id for alert in judge_candidates(Ruling(rule, 0.05), rows)] == [RUN, "r0", None]
    assert [alert.baseline_run_id for alert in judge_candidates(Ruling(rule, 0.05), rows[:1])] == [RUN, RUN]


def test_what_a_rule_names_and_a_night_lacks_is_no_pass() -> None:
    rule = rule_of(min=0.8, identities=("a", "b"), models=("m", "n"))
    alerts = judge_candidates(Ruling(rule, 0.05), [candidate("a", 0.95)])
    assert [(alert.model, alert.identity, alert.outcome) for alert in alerts] == [
        ("m", "a", "pass"),
        ("m", "b", "insufficient_evidence"),
        ("n", "a", "insufficient_evidence"),
        ("n", "b", "insufficient_evidence"),
    ]
    assert alerts[1].message == "bpsn_auc of b: the run has no such row."
    (nothing,) = judge_candidates(Ruling(rule_of(min=0.8), 0.05), [])
    assert (nothing.identity, nothing.outcome) == ("(overall)", "insufficient_evidence")


@pytest.mark.parametrize(
    ("insufficient", "outcome"), [("pass", "insufficient_evidence"), ("warn", "warn"), ("fail", "fail")]
)
@pytest.mark.parametrize("severity", ["fail", "warn"])
def test_insufficient_evidence_counts_as_the_configuration_says(insufficient: str, outcome: str, severity: str) -> None:
    """Whatever the severity of the rule, and also in the verdict on the worst identity."""
    rule = rule_of(min=0.8, worst=True, severity=severity)
    rows = [candidate("a", 0.9), candidate("b", 0.8), Candidate(key=("m", "all", "c"), reason="withheld")]
    alerts = by_identity(judge_candidates(Ruling(rule, 0.05, insufficient=insufficient), rows))
    assert {name: (alert.outcome, alert.decided) for name, alert in alerts.items()} == {
        "a": ("pass", True),
        "b": (outcome, False),
        "c": (outcome, False),
        "(overall)": (outcome, False),
    }
    assert "undecided" in alerts["b"].message
    assert "withheld" in alerts["c"].message
    said = f"Insufficient evidence counts as {insufficient}."
    assert {said in alerts[name].message for name in ("b", "c", "(overall)")} == {insufficient != "pass"}


def test_what_is_shown_stays_what_it_is() -> None:
    rows = [candidate("a", 0.9), candidate("b", 0.6)]
    found = [judge_candidates(Ruling(rule_of(min=0.8), 0.05, insufficient=own), rows) for own in ("pass", "fail")]
    assert found[0] == found[1]
    assert [(alert.outcome, alert.decided) for alert in found[0]] == [("pass", True), ("fail", True)]


@pytest.mark.parametrize("severity", ["fail", "warn"])
@pytest.mark.parametrize("bound", [{"min": 0.8}, {"max_drop": 0.05}])
def test_a_model_without_scores_fails_by_every_rule_on_it(severity: str, bound: dict[str, float]) -> None:
    """Whether the night has a row of it or none, and whatever else is undecided."""
    rule = rule_of(**bound, models=("m", "gone"), identities=("a", "b"), worst=True, severity=severity)
    rows = [candidate("a", 0.9, 0.9), Candidate(key=("gone", "all", "a"), reason="no_positives")]
    alerts = judge_candidates(Ruling(rule, 0.05, missing_models=frozenset({"gone"})), rows)
    gone = [alert for alert in alerts if alert.model == "gone"]
    assert [(alert.identity, alert.outcome, alert.decided) for alert in gone] == [
        ("a", "fail", False),
        ("b", "fail", False),
        ("(overall)", "fail", False),
    ]
    assert all("model gone" in alert.message for alert in gone)
    assert [alert.outcome for alert in alerts if alert.model == "m"] == ["pass", *["insufficient_evidence"] * 2]


@pytest.mark.parametrize(
    ("aucs", "outcome", "said"),
    [
        ({"a": 0.9, "b": 0.85}, "pass", "kept by all 2 identities"),
        ({"a": 0.9, "b": 0.8}, "insufficient_evidence", "undecided for 1 of 2 identities (b)"),
        (
            {"a": 0.9, "b": 0.8, "c": 0.7},
            "fail",
            "broken by 1 of 3 identities (c); undecided for 1 of 3 identities (b)",
        ),
        ({f"a{n}": 0.6 for n in range(4)}, "fail", "broken by 4 of 4 identities (a0, a1, a2, ...)"),
    ],
)
def test_the_verdict_on_the_worst_identity_is_one_on_each(aucs: dict[str, float], outcome: str, said: str) -> None:
    rows = [candidate(name, auc) for name, auc in aucs.items()]
    *each, verdict = judge_candidates(Ruling(rule_of(min=0.8, worst=True), 0.05), rows)
    assert each == judge_candidates(Ruling(rule_of(min=0.8), 0.05), rows)
    assert (verdict.identity, verdict.outcome, verdict.value) == ("(overall)", outcome, None)
    assert verdict.message == f"bpsn_auc of the worst identity: {said}."
    assert verdict.p_violation_adjusted == min(alert.p_violation_adjusted or 0 for alert in each)
    assert verdict.p_compliance_adjusted == max(alert.p_compliance_adjusted or 0 for alert in each)


def test_the_worst_of_equal_identities_fails_no_more_often_than_the_level() -> None:
    """The lowest of twenty estimates lies below the bound nearly always; that is no evidence."""
    rng = np.random.default_rng(3)
    failed = []
    for _ in range(400):
        aucs = 1 / (1 + np.exp(-math.log(4) - rng.normal(0, 0.06, 20)))
        pairs = [pair_of(float(auc), float((0.06 * auc * (1 - auc)) ** 2)) for auc in aucs]
        rows = [Candidate(key=("m", "all", f"i{n}"), now=pair) for n, pair in enumerate(pairs)]
        assert min(aucs) < 0.8
        failed.append(judge_candidates(Ruling(rule_of(min=0.8, worst=True), 0.05), rows)[-1].outcome == "fail")
    assert np.mean(failed) < 0.08
