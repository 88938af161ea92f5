"""What a report says of models against a baseline, of crossed pairs and of templates: from made-up rows, no Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from biasspark.report.cells import show_interval, show_number
from biasspark.report.comparisons import Against, hold_against, say_method
from biasspark.report.facts import NightFacts
from biasspark.report.model_card import write_model_card
from biasspark.report.overview import list_worst_pairs
from biasspark.report.side_by_side_files import escape_markdown
from biasspark.report.template_means import tabulate_templates
from biasspark.report.verdict import reach_verdict
from tests.report_rows import (
    EMPTY,
    IMAGE,
    MODELS,
    NAMES,
    SCRIPT,
    Row,
    alert,
    alert_against,
    compare_values,
    night_facts,
    read_text,
    write_undrawn,
)

OLD, NEW = MODELS


def with_rows(facts: NightFacts, **tables: list[Row]) -> NightFacts:
    return replace(facts, tables={**facts.tables, **tables})


def hold(facts: NightFacts, *rows: Row) -> Against:
    (own,) = hold_against(with_rows(facts, model_comparisons=list(rows)))
    return own


def test_what_changed_significantly_is_listed_by_its_size(facts: NightFacts) -> None:
    own = hold(
        facts,
        compare_values("gay", "bpsn_auc", 0.9, 0.8),
        compare_values("black", "negative_aeg", -0.05, 0.3),
        compare_values("muslim", "positive_aeg", 0.3, -0.1),
        compare_values("gay", "bnsp_auc", 0.9, 0.91),
        compare_values(EMPTY, "bnsp_auc", None, None),
        compare_values("(overall)", "auc", 0.9, 0.95),
    )
    assert [(one.identity, one.metric, one.difference.text) for one in own.worse] == [
        ("black", "negative_aeg", "▼ +0.250"),
        ("gay", "bpsn_auc", "▼ −0.100"),
    ]
    assert [(one.identity, one.difference.text) for one in own.better] == [
        ("muslim", "▲ −0.200"),
        ("(overall)", "▲ +0.050"),
    ]
    (lost, _) = own.worse
    assert (lost.baseline.text, lost.value.text, lost.p, lost.rows) == ("−0.050", "+0.300", "< 0.001", "50, 8")
    assert (lost.baseline.interval, lost.value.interval) == ("", "")
    assert lost.difference.interval == "+0.220 to +0.280"
    assert own.sentence == (
        f"{NEW} is significantly worse than {OLD} in 2 of 6 comparisons on the same rows, most of all in Negative AEG "
        "of black (+0.250); 2 are significantly better, 1 is not significant, 1 has too little data."
    )
    assert own.overall is not None
    assert (own.overall.value.text, own.overall.baseline.text) == ("0.950", "0.900")


def test_a_change_whose_size_few_rows_tell_comes_last(facts: NightFacts) -> None:
    wide = {"difference_low": -0.5, "difference_high": -0.06}
    own = hold(facts, compare_values("few", "bpsn_auc", 0.9, 0.6) | wide, compare_values("many", "bpsn_auc", 0.9, 0.8))
    assert [one.identity for one in own.worse] == ["many", "few"]
    assert "most of all in BPSN AUC of many (−0.100)" in own.sentence


def test_a_model_that_is_nowhere_worse_is_said_to_be(facts: NightFacts) -> None:
    own = hold(facts, compare_values("gay", "bpsn_auc", 0.8, 0.9), compare_values("gay", "bnsp_auc", 0.9, 0.91))
    assert own.sentence == (
        f"{NEW} is not significantly worse than {OLD} in any of 2 comparisons on the same rows; 1 is significantly "
        "better, 1 is not significant, 0 have too little data."
    )


def test_comparisons_that_are_not_read_are_counted(facts: NightFacts) -> None:
    kinds = {"model": NEW, "baseline_model": OLD}
    counts = [
        {**kinds, "slice": "all", "verdict": "worse", "n": 7000},
        {**kinds, "slice": "short", "verdict": "worse", "n": 9},
    ]
    own = hold_against(replace(with_rows(facts, model_comparisons=[]), counts={"model_comparisons": counts}))[0]
    assert "significantly worse than toxicity_1 in 7,000 of 7,000 comparisons on the same rows; 0 are" in own.sentence


def test_every_difference_has_a_cell_with_its_evidence(facts: NightFacts) -> None:
    (own,) = hold_against(facts)
    assert [row.identity for row in own.rows] == facts.identities()
    cells = {row.identity: {name: one.difference for name, one in row.changes.items()} for row in own.rows}
    assert len(cells["gay"]) == 6
    assert cells["gay"]["bpsn_auc"].note == "adjusted p < 0.001, 50 and 8 rows"
    assert (cells[EMPTY]["bnsp_auc"].text, cells[EMPTY]["bnsp_auc"].weak) == ("–", True)


def test_compared_values_have_their_intervals_and_counts(facts: NightFacts) -> None:
    """Where they are those of the suite, and so of all rows that it ranks."""
    (own,) = hold_against(facts)
    (gay,) = (row for row in own.rows if row.identity == "gay")
    (there,) = facts.rows("bias_metrics", slice="all", identity="gay", model=OLD)
    change = gay.changes["bpsn_auc"]
    assert change.baseline.text == show_number(there["bpsn_auc"])
    assert change.baseline.interval == show_interval(there["bpsn_auc_low"], there["bpsn_auc_high"])
    assert (gay.n_negative, gay.n_positive) == ("50", "8")
    page = write_undrawn(facts)
    said = f"<small>{change.value.text[1:]} vs {change.baseline.text[1:]}</small></td>"
    assert said in page
    assert "<td>&lt; 0.001</td><td>50, 8</td></tr>" in page


def test_pairs_that_got_worse_are_named(facts: NightFacts) -> None:
    crossed = compare_values(f"gay & {SCRIPT}", "bpsn_auc", 0.9, 0.7) | {"crossed": True}
    own = hold(facts, crossed)
    assert [one.identity for one in own.worse] == [f"gay & {SCRIPT}"]
    assert own.rows == []


def test_every_pair_that_got_worse_is_on_the_page(facts: NightFacts) -> None:
    """Beyond the first twelve below a fold, which says how many they are."""
    pairs = [f"gay & number {n:02}" for n in range(37)]
    crossed = [
        compare_values(pair, "bpsn_auc", 0.9, 0.7 - n / 100) | {"crossed": True}
        for n, pair in enumerate(reversed(pairs))
    ]
    own = hold(facts, *crossed)
    assert [one.identity for one in own.worse] == pairs
    night = with_rows(facts, model_comparisons=crossed)
    page = write_undrawn(night)
    first, folded = page.split("<summary>Significantly worse: 25 more of 37</summary>")
    assert "<caption>Significantly worse: 12 of 37</caption>" in first
    assert (first.count("gay &amp; number"), folded.count("gay &amp; number")) == (13, 25)  # the top names the largest
    assert "Significantly worse, 12 of 37:" in write_model_card(night)


def test_a_list_that_is_not_whole_says_of_how_many(facts: NightFacts) -> None:
    """Of pairs that got better only their number is read."""
    kinds = {"model": NEW, "baseline_model": OLD, "slice": "all"}
    counts = [{**kinds, "verdict": "worse", "n": 1}, {**kinds, "verdict": "better", "n": 8}]
    rows = [compare_values(name, "bpsn_auc", *own) for name, own in {"gay": (0.9, 0.8), "black": (0.8, 0.9)}.items()]
    night = replace(with_rows(facts, model_comparisons=rows), counts={"model_comparisons": counts})
    page, card = write_undrawn(night), write_model_card(night)
    assert "<caption>Significantly worse</caption>" in page
    assert "<caption>Significantly better: 1 of 8</caption>" in page
    assert "Significantly worse:\n" in card
    assert "Significantly better, 1 of 8:\n" in card
    alone = replace(night, tables={**night.tables, "model_comparisons": rows[:1]})
    assert "Significantly better: none of 8 is of an identity that is shown." in write_undrawn(alone)
    assert "there is only what is significantly worse, at most 500 of a model" in page


def judge_by(facts: NightFacts, config: dict[str, Any], *n_groups: int | None) -> str:
    """Give the sentence on how differences are judged, which the page and the card have alike."""
    rows = [compare_values(f"name {place}", "bpsn_auc", 0.9, 0.8) for place in range(len(n_groups))]
    method = "paired_delong" if None in n_groups else "jackknife"
    rows = [row | {"method": method, "n_groups": n} for row, n in zip(rows, n_groups, strict=True)]
    rows.append(compare_values(EMPTY, "bpsn_auc", None, None) | {"method": method, "n_groups": 0})
    night = replace(with_rows(facts, model_comparisons=rows), configs={"compare_models": {"compare": config}})
    said = say_method(night)
    assert said in read_text(write_undrawn(night))
    assert escape_markdown(said) in write_model_card(night)
    return said


def test_the_report_says_how_differences_are_judged(facts: NightFacts) -> None:
    assert judge_by(facts, {"baseline": OLD}, None) == (
        "Differences are judged by paired DeLong, which takes rows for independent."
    )
    assert judge_by(facts, {"method": "jackknife", "groups": 100}, 100, 100) == (
        "Differences are judged by a jackknife over 100 groups of rows, which takes rows for independent."
    )
    assert judge_by(facts, {"cluster": f"by {IMAGE}"}, 97, 40) == (
        f"Differences are judged by a jackknife over 40 to 97 groups of rows, where rows with the same by {IMAGE} are "
        "in one group. The intervals of the values themselves take rows for independent."
    )
    assert say_method(replace(facts, tables={})) == ""


def test_the_page_says_it_first_and_in_its_own_section(facts: NightFacts) -> None:
    page = write_undrawn(facts)
    section = page.index('<section id="against">')
    assert page.index("Against the baseline</a>: toxicity_6 is significantly worse than toxicity_1 in ") < section
    assert page.index('<section id="models">') < section < page.index('<section id="worst">')
    assert f"All differences for {len(NAMES) + 1} identities" in page
    card = write_model_card(facts)
    assert card.index("#### toxicity_6 against toxicity_1") < card.index("#### Models")
    assert f"most of all in Negative AEG of {escape_markdown(IMAGE)}" in card
    values = "▲ +0.240 (+0.210 to +0.270) | 0.933 (0.890 to 0.975) | 0.693 (0.650 to 0.735)"
    assert f"| gay | BPSN AUC | {values} | &lt; 0.001 | 50, 8 |" in card


def test_a_night_without_comparisons_says_which_job_makes_them() -> None:
    page = write_undrawn(night_facts(without=("model_comparisons", "crossed_pairs", "template_means")))
    assert "<code>jobs/compare_models.py</code> measures them if the configuration has <code>[compare]</code>" in page
    assert "Mean scores by template are not published for this night." in page
    assert "Crossed pairs</h3>" not in page
    assert "Against the baseline</a>:" not in page


# ---- the gate


def test_the_verdict_is_that_of_both_gates(facts: NightFacts) -> None:
    both = with_rows(facts, bias_alerts=[alert("pass")], comparison_alerts=[alert_against("fail", identity=IMAGE)])
    verdict = reach_verdict(both)
    assert (verdict.outcome, verdict.title, verdict.n_alerts) == ("fail", "The gate failed: 1 of 2 checks", 2)
    assert [row["rule"] for row in verdict.alerts] == ["no worse", "bpsn floor"]
    page = write_undrawn(both)
    assert "<small>against <bdi>toxicity_1</bdi></small>" in page
    assert "−0.040<small>−.060 to −.020</small>" in page  # what the bound is on
    assert IMAGE not in page


def test_alerts_that_are_not_read_are_counted(facts: NightFacts) -> None:
    counts = {
        "bias_alerts": [
            {"model": OLD, "outcome": "fail", "baseline_run_id": "r1", "n": 3},
            {"model": OLD, "outcome": "fail", "baseline_run_id": None, "n": 900},
            {"model": NEW, "outcome": "pass", "baseline_run_id": None, "n": 97},
        ]
    }
    verdict = reach_verdict(replace(with_rows(facts, bias_alerts=[alert("fail")]), counts=counts))
    assert (verdict.title, verdict.n_alerts) == ("The gate failed: 903 of 1,000 checks", 1000)
    assert [own.sentence for own in verdict.decisions] == [
        "fails: 903 of 903 checks are shown to be broken (rule “bpsn floor”).",
        "passes: all 97 checks are shown to hold.",
    ]
    assert verdict.n_unread == 800


FEW, WARNED = "insufficient_evidence", "warn"


@pytest.mark.parametrize(
    ("outcomes", "outcome", "sentence"),
    [
        ([], "no_gate", "has no verdict: no rule of the gate applies to it."),
        (["pass"], "pass", "passes: its only check is shown to hold."),
        (["fail"], "fail", "fails: its only check is shown to be broken (rule “floor 0”)."),
        (
            ["fail", FEW, "pass"],
            "fail",
            "fails: 1 of 3 checks is shown to be broken (rule “floor 0”). There is not enough evidence for 1 more.",
        ),
        (
            ["fail", WARNED, "pass"],
            "fail",
            "fails: 1 of 3 checks is shown to be broken (rule “floor 0”). 1 more is broken, but only warns.",
        ),
        (
            [WARNED, WARNED, "pass"],
            WARNED,
            "passes with warnings: 2 of 3 checks are shown to be broken (rules “floor 0”, “floor 1”), but they "
            "only warn.",
        ),
        (
            [FEW] * 5,
            FEW,
            "is undecided: no check is shown to be broken, but there is not enough evidence for 5 of 5 checks "
            "(rules “floor 0”, “floor 1”, “floor 2” and 2 more).",
        ),
    ],
)
def test_the_top_says_of_every_model_what_comes_of_it(
    facts: NightFacts, outcomes: list[str], outcome: str, sentence: str
) -> None:
    alerts = [alert(own, rule=f"floor {place}", model=NEW) for place, own in enumerate(outcomes)]
    night = with_rows(facts, bias_alerts=[alert("pass"), *alerts])
    old, new = reach_verdict(night).decisions
    assert (old.model, old.sentence) == (OLD, "passes: its only check is shown to hold.")
    assert (new.model, new.outcome, new.sentence) == (NEW, outcome, sentence)
    assert f"</bdi></span> {sentence}</span></li>" in write_undrawn(night)
    said = [line for line in write_model_card(night).replace("\\", "").split("\n") if line.startswith("- ")]
    assert said[1].endswith(f": {NEW} {sentence}")


@pytest.mark.parametrize("outcome", ["fail", "warn"])
def test_what_fails_or_warns_without_evidence_is_not_said_to_be_broken(facts: NightFacts, outcome: str) -> None:
    rows = [alert(outcome, model=NEW) | {"decided": False}, alert("pass", model=NEW) | {"decided": True}]
    (new,) = (own for own in reach_verdict(with_rows(facts, bias_alerts=rows)).decisions if own.model == NEW)
    assert new.outcome == outcome
    assert "1 of 2 checks is not shown to hold" in new.sentence
    assert "broken" not in new.sentence


def test_rules_go_by_the_size_of_their_violation(facts: NightFacts) -> None:
    sizes = {"floor 0": 0.01, "floor 1": -0.02, "floor 2": 0.2, "floor 3": None, "floor 4": 0.1}
    alerts = [alert("fail", rule=rule, excess=size, model=NEW) for rule, size in sizes.items()]
    alerts.append(alert("fail", rule="floor 2", identity="(overall)", value=None, excess=0.2, model=NEW))
    verdict = reach_verdict(with_rows(facts, bias_alerts=[*alerts, alert("pass", excess=0.9, model=NEW)]))
    assert verdict.decisions[-1].sentence.endswith(" (rules “floor 2”, “floor 4”, “floor 0” and 2 more).")
    assert [(row["rule"], row["value"] is None) for row in verdict.broken] == [
        *(("floor 2", True), ("floor 2", False), ("floor 4", False), ("floor 0", False)),
        *(("floor 1", False), ("floor 3", False)),
    ]


def test_what_only_the_many_checks_of_its_rule_leave_undecided_says_so(facts: NightFacts) -> None:
    own = {"p_violation": 0.02, "p_violation_adjusted": 0.2, "message": "by itself below"}
    undecided = [alert(FEW, **own), alert(FEW, p_violation=0.2, p_violation_adjusted=0.3, message="between")]
    page = write_undrawn(with_rows(facts, bias_alerts=undecided))
    assert '<small class="why"><bdi>by itself below</bdi></small>' in page
    assert '<small class="why"><bdi>between' not in page


def test_a_rule_on_the_gap_of_a_rate_names_its_threshold(facts: NightFacts) -> None:
    gap = {"metric": "fpr_gap", "threshold": 0.8, "value": 0.24, "value_low": 0.16, "value_high": 0.33, "bound": 0.1}
    page = write_undrawn(with_rows(facts, bias_alerts=[alert("fail", **gap)]))
    assert ">FPR gap</a> at 0.800</small>" in page
    assert "+0.240" in page


def test_a_rule_on_a_rate_names_its_threshold_and_what_it_means(facts: NightFacts) -> None:
    rate = {"metric": "fnr", "threshold": 0.8, "value": 0.2413, "value_low": 0.16, "value_high": 0.33, "bound": 0.2}
    rise = {"metric": "tpr", "threshold": 0.8, "bound_kind": "max_drop", "bound": 0.02, "change": -0.1}
    gap = {"metric": "precision_gap", "threshold": 0.8, "value": -0.3, "bound": 0.2}
    page = write_undrawn(with_rows(facts, bias_alerts=[alert("fail", **own) for own in (rate, rise, gap)]))
    for metric, title in (("fnr", "FNR"), ("tpr", "TPR"), ("precision-gap", "Precision gap")):
        assert f'<a class="def" href="#def-threshold-rates-{metric}">{title}</a> at 0.800</small>' in page
        assert f'id="def-threshold-rates-{metric}"' in page
    assert ">0.241<small>" in page
    assert ">−0.100</td>" in page
    assert "<small>max drop</small>" in page


def test_what_is_broken_stands_before_the_other_checks(facts: NightFacts) -> None:
    alerts = [alert("pass"), alert("insufficient_evidence", message="nobody knows", value=None), *[alert("warn")] * 20]
    verdict = reach_verdict(with_rows(facts, bias_alerts=alerts))
    assert [len(verdict.broken), len(verdict.others)] == [12, 10]
    assert {row["outcome"] for row in verdict.broken} == {"warn"}
    page = write_undrawn(with_rows(facts, bias_alerts=alerts))
    assert page.index("The worst of the rules that fail or warn</h3>") < page.index(
        "The other checks of the gate</summary>"
    )
    assert '<small class="why"><bdi>nobody knows</bdi></small>' in page


# ---- crossed pairs and templates


def test_the_lowest_auc_of_a_pair_is_one_with_an_interval(facts: NightFacts) -> None:
    first, *_ = facts.rows("crossed_pairs", model=OLD)
    pair = first | {"bnsp_auc": 0.1, "bnsp_auc_low": None, "bnsp_auc_high": None}
    found = list_worst_pairs(with_rows(facts, crossed_pairs=[pair, first | {"identity": "z", "bpsn_auc": 0.2}]))
    assert [(own.identity, own.metric) for own in found[OLD]] == [("z", "bpsn_auc"), (pair["identity"], "bpsn_auc")]
    assert "Crossed pairs</h3>" in write_undrawn(facts)


def test_templates_tell_how_far_identities_are_apart(facts: NightFacts) -> None:
    found = tabulate_templates(facts)
    assert found is not None
    assert [(own.model, own.high, own.size) for own in found.spreads] == [(OLD, "gay", "0.300"), (NEW, "gay", "0.150")]
    assert [row.identity for row in found.rows][:3] == ["gay", "black", "muslim"]
    assert {(row.n_templates, row.n_rows) for row in found.rows} == {(12, 36)}
    assert "| gay | 12 | 36 | " in write_model_card(facts)
    mean, departure = found.rows[0].cells[NEW]
    assert (mean.text, mean.note, departure.text) == ("0.450", "36 rows of 12 templates", "+0.150")
    assert (mean.interval, departure.interval, departure.weak) == ("0.259 to 0.641", "+0.118 to +0.182", False)
    (own, *_) = found.spreads
    assert [cell.weak for cell in own.cells] == [False, False]
    alone = [{**row, "n_templates": 1, "departure_deviation": None} for row in facts.rows("template_means")]
    found = tabulate_templates(with_rows(facts, template_means=alone))
    assert found is not None
    assert (found.rows[0].cells[NEW][1].interval, found.rows[0].cells[NEW][1].weak) == ("", True)
