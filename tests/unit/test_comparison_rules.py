"""Rules of the gate on a model and a baseline: the evidence by SciPy and by simulation, outcomes, sentences, faults."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, false_discovery_control, norm

from biasspark.config import Rule
from biasspark.metrics.comparisons.differences import Paired, weigh, weigh_margin
from biasspark.metrics.gate.alerts import Alert, Ruling
from biasspark.metrics.gate.comparison_rules import Contender, judge_contenders
from scripts.simulate_comparisons import Setting, estimate

RULE = Rule(name="no worse", metric="bpsn_auc", models=("new",), baseline="old", max_drop=0.02)


def paired_of(value: float | None, baseline: float | None, variance: float | None = 1e-4, n: int = 50) -> Paired:
    return Paired(
        n_low=n, n_high=9 * n, value=value, baseline_value=baseline, difference_variance=variance, sum_variance=3e-4
    )


def gap_of(value: float, baseline: float, half: float = 0.05) -> Paired:
    both = tuple((own - half, own + half) for own in (value, baseline))
    return replace(paired_of(value, baseline), gaps=both)


# ---- evidence


def test_an_auc_is_judged_at_the_margin() -> None:
    found = weigh_margin(paired_of(0.79, 0.8, n=500), "max_drop", 0.03)
    assert found == pytest.approx((norm.sf(-2), norm.sf(2)), abs=1e-12)
    assert weigh_margin(paired_of(0.74, 0.8), "max_drop", 0.03) == pytest.approx((norm.sf(3), norm.cdf(3)), abs=1e-12)


@pytest.mark.parametrize("variance", [1e-4, 1e-9])
def test_few_rows_show_no_margin_to_be_kept_that_few_rows_may_break(variance: float) -> None:
    """Of 50 rows 3 % are as likely as not fewer than two: nothing seems to have changed, nor to vary."""
    found = weigh_margin(paired_of(0.799, 0.8, variance), "max_drop", 0.03)
    binomial = sqrt(0.03 * 0.97 / 50)
    assert found == pytest.approx((norm.cdf(0.029 / sqrt(variance)), norm.cdf(-0.029 / binomial)), abs=1e-12)
    assert binom.cdf(1, 50, 0.03) > 0.5
    assert found is not None
    assert found[1] > 0.05


def test_models_that_are_alike_on_too_few_rows_are_undecided_and_the_sentence_says_why() -> None:
    alike = Contender(key=("new", "all", "a"), paired=paired_of(0.8, 0.8, 0.0, n=30))
    (alert,) = judge_contenders(Ruling(RULE, 0.05), 0.95, [alike])
    assert (alert.outcome, alert.change_low, alert.change_high) == ("insufficient_evidence", 0, 0)
    assert alert.message.endswith("; alike row by row, on too few rows to show that the bound is kept.")


def test_without_a_margin_either_p_value_is_half_of_the_two_sided_one() -> None:
    paired = paired_of(0.77, 0.8)
    p_value, found = weigh(paired, 0.95).p_value, weigh_margin(paired, "max_drop", 0)
    assert found is not None
    assert p_value is not None
    assert found[0] == pytest.approx(p_value / 2, rel=1e-12)
    assert sum(found) == pytest.approx(1, abs=1e-12)


def test_a_gap_of_known_sign_is_worse_the_further_it_is_from_0() -> None:
    for s, t in product((1, -1), (1, -1)):
        sd = sqrt(1e-4 if s == t else 3e-4)
        z = (0.05 - 0.02) / sd
        found = weigh_margin(gap_of(s * 0.2, t * 0.15), "max_rise", 0.02)
        assert found == pytest.approx((norm.sf(z), norm.cdf(z)), abs=1e-12)


def test_of_a_gap_of_unknown_sign_either_p_value_is_the_largest() -> None:
    """The rise is 0.18, or 0.22 if the gap of the baseline lies on the other side."""
    steps = ((0.18 - 0.2) / 0.01, (0.22 - 0.2) / sqrt(3e-4))
    found = weigh_margin(gap_of(0.2, 0.02), "max_rise", 0.2)
    assert found == pytest.approx((max(map(norm.sf, steps)), max(map(norm.cdf, steps))), abs=1e-12)
    assert min(found or ()) > 0.05


@pytest.mark.parametrize("n", [10, 150, 1000])
def test_rows_that_are_placed_alike_keep_a_margin_if_they_are_enough(n: int) -> None:
    paired = paired_of(0.8, 0.8, variance=0.0, n=n)
    assert weigh_margin(paired, "max_drop", 0.02) == pytest.approx((1, binom.pmf(0, n, 0.02)), abs=1e-12)
    assert weigh_margin(paired, "max_drop", 0) == (1, 1)
    gaps = replace(paired, gaps=((0.7, 0.9), (0.7, 0.9)))
    assert weigh_margin(gaps, "max_rise", 0.02) == weigh_margin(paired, "max_drop", 0.02)


@pytest.mark.parametrize(
    "paired", [paired_of(None, None), paired_of(0.7, 0.8, None), paired_of(0.7, 0.8, 0.0), paired_of(0.7, 0.8, n=9)]
)
def test_insufficient_data_are_no_evidence(paired: Paired) -> None:
    assert weigh_margin(paired, "max_drop", 0.02) is None


@pytest.mark.parametrize(
    ("kind", "values", "bound"),
    [
        ("auc", (0.8, 0.85), "max_drop"),
        ("auc", (0.95, 0.97), "max_drop"),
        ("gap", (0.2, 0.15), "max_rise"),
        ("gap", (0.2, -0.15), "max_rise"),
        ("gap", (0.08, 0.02), "max_rise"),
    ],
)
def test_a_model_that_is_worse_by_just_the_margin_seldom_seems_otherwise(
    kind: str, values: tuple[float, float], bound: str
) -> None:
    setting = Setting(kind=kind, values=values, sizes=(200, 200), correlation=0.6)
    sizes = [abs(value) for value in values]
    drawn = estimate(setting, 600, np.random.default_rng(4))
    found = np.array([weigh_margin(paired, bound, abs(sizes[0] - sizes[1])) for paired in drawn])
    assert (found < 0.05).mean(axis=0).max() < 0.08  # 0.05 and three standard errors


# ---- outcomes


def contender(identity: str, change: float, **own: Any) -> Contender:
    return Contender(key=("new", "all", identity), paired=paired_of(0.8 + change, 0.8, **({"n": 500} | own)))


def judge(*contenders: Contender, rule: Rule = RULE) -> list[Alert]:
    return judge_contenders(Ruling(rule, 0.05), 0.95, contenders)


def test_evidence_is_adjusted_over_the_rows_of_the_rule() -> None:
    changes = {"a": -0.08, "b": -0.038, "c": -0.02, "d": 0.0, "e": 0.03}
    alerts = judge(*(contender(name, change) for name, change in reversed(changes.items())))
    assert [alert.identity for alert in alerts] == list(changes)
    violation = norm.cdf([(change + 0.02) / 0.01 for change in changes.values()])
    for found, wanted in (
        ([alert.p_violation for alert in alerts], violation),
        ([alert.p_violation_adjusted for alert in alerts], false_discovery_control(violation)),
        ([alert.p_compliance_adjusted for alert in alerts], false_discovery_control(1 - violation)),
    ):
        assert found == pytest.approx(wanted, abs=1e-12)
    outcomes = [alert.outcome for alert in alerts]
    assert outcomes == ["fail", "insufficient_evidence", "insufficient_evidence", "insufficient_evidence", "pass"]
    assert judge(contender("b", -0.038))[0].outcome == "fail"  # alone it is shown


@pytest.mark.parametrize("missing", ["new", "old"])
def test_without_the_scores_of_either_model_every_row_fails(missing: str) -> None:
    rows = [Contender(key=("new", "all", name), paired=paired_of(None, None, n=0)) for name in "ab"]
    rows.append(contender("c", 0.05))
    ruling = Ruling(RULE, 0.05, missing_models=frozenset({missing}))
    alerts = judge_contenders(ruling, 0.95, rows)
    assert {alert.outcome for alert in alerts} == {"fail"}
    assert all(f"model {missing}" in alert.message for alert in alerts)


def test_insufficient_evidence_counts_as_the_configuration_says() -> None:
    rows = [contender("a", 0.05), contender("b", -0.02)]
    alerts = judge_contenders(Ruling(RULE, 0.05, insufficient="warn"), 0.95, rows)
    assert [(alert.outcome, alert.decided) for alert in alerts] == [("pass", True), ("warn", False)]


def test_sentences_say_both_values() -> None:
    worse, same, alike, few = judge(
        contender("a", -0.08), contender("b", 0.05), contender("c", 0, variance=0.0), contender("d", -0.5, n=3)
    )
    assert (worse.baseline_model, worse.bound_kind, worse.bound, worse.severity) == ("old", "max_drop", 0.02, "fail")
    assert worse.message.startswith("bpsn_auc of a is 0.7200, that of old 0.8000, a change of -0.0800 (-0.0996 to -0.0")
    assert ": lower by more than 0.02 (adjusted p < 0.0001)." in worse.message
    assert ": lower by no more than 0.02 (adjusted p " in same.message
    assert alike.message.startswith("bpsn_auc of c is 0.8000, that of old 0.8000, a change of +0.0000 (+0.0000 to +0")
    assert few.message == (
        "bpsn_auc of d is 0.3000, that of old 0.8000: its cells have 3 and 27 rows, and a verdict takes 10 in each."
    )
    assert (few.change, few.p_violation, few.outcome) == (-0.5, None, "insufficient_evidence")


@pytest.mark.parametrize(
    ("own", "why"),
    [
        ({"n": 9}, "its cells have 9 and 81 rows, and a verdict takes 10 in each."),
        ({"n_groups": 7}, "the 50 and 450 rows of its cells are in 7 groups, and a verdict takes 10."),
        ({"n_groups": 40, "variance": None}, "its cells have 50 and 450 rows, those of one in fewer than 5 groups."),
        (
            {"variance": 0.0},
            "by the 50 and 450 rows of its cells the difference has no variance, so nothing tells how sure it is.",
        ),
    ],
)
def test_without_evidence_the_sentence_names_the_cause(own: dict[str, Any], why: str) -> None:
    known = {name: value for name, value in own.items() if name != "n_groups"}
    paired = replace(paired_of(0.3, 0.8, **known), n_groups=own.get("n_groups"))
    (found,) = judge(Contender(key=("new", "all", "a"), paired=paired))
    assert found.message == f"bpsn_auc of a is 0.3000, that of old 0.8000: {why}"
    assert found.p_violation is None


def test_what_a_rule_names_and_a_run_lacks_is_no_pass() -> None:
    rule = replace(RULE, models=("new", "other"), identities=("a",), worst=True)
    found = judge(contender("a", 0.05), rule=rule)
    assert [(alert.model, alert.identity, alert.outcome) for alert in found] == [
        ("new", "a", "pass"),
        ("other", "a", "insufficient_evidence"),
        ("new", "(overall)", "pass"),
        ("other", "(overall)", "insufficient_evidence"),
    ]
    assert found[1].message == "bpsn_auc of a: the run has no such row."
    assert {alert.baseline_model for alert in found} == {"old"}
    empty = Contender(key=("new", "all", "a"), paired=paired_of(None, None, None, n=0))
    assert judge(empty)[0].message == (
        "bpsn_auc of a has no value: its cells have 0 and 0 rows that both models score."
    )


def test_a_rule_that_warns_fails_nothing() -> None:
    assert judge(contender("a", -0.2), rule=replace(RULE, severity="warn"))[0].outcome == "warn"
