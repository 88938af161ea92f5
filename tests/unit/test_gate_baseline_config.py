"""What a rule with a baseline means, which models it is on, and each of its faults word for word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from biasspark.config import load_config, parse_config
from tests.gate_rules import AUCS, LEAST_RULE, METRICS, gate_faults, gate_of
from tests.least_configuration import changed

ROOT = Path(__file__).parents[2]
AGAINST = {"name": "no worse", "metric": "bpsn_auc", "baseline": "old", "max_drop": 0.02}
TWO = {"models": {"old": "x"}, "compare": {"baseline": "old"}}


def test_a_rule_may_hold_models_against_a_baseline() -> None:
    gate = gate_of(LEAST_RULE, AGAINST, AGAINST | {"name": "b", "model": "toxicity"}, **TWO)
    own, every, named = gate.rule
    assert (gate.of_nights, gate.of_comparisons) == ((own,), (every, named))
    assert (every.models, every.baseline, every.kind) == (("toxicity",), "old", "max_drop")
    assert named.models == ("toxicity",)
    assert own.models == ("toxicity", "old")
    config = parse_config(changed(gate={"rule": [LEAST_RULE, AGAINST]}, **TWO), Path())
    assert parse_config(json.loads(config.json), Path()) == config
    three = {"models": {"old": "x", "new": "y"}, "compare": {"baseline": "old", "models": ["new"]}}
    assert gate_of(AGAINST, **three).rule[0].models == ("new",)


@pytest.mark.parametrize(
    ("changes", "tables", "fault"),
    [
        (
            {"baseline": "odl"},
            TWO,
            'baseline: "odl": there is no such model. The models are "toxicity", "old". Did you mean old?',
        ),
        (
            {"models": ["toxicity", "old"]},
            TWO,
            'baseline: "old": it is also the model. A model is compared with a different one. Name another.',
        ),
        (
            {"max_drop": None, "min": 0.8},
            TWO,
            "min = 0.8. A rule with a baseline bounds how much worse a model is than it. Write max_drop in its place, "
            "or remove baseline.",
        ),
        (
            {"max_drop": None, "max_abs": 0.1},
            TWO,
            "max_abs = 0.1. A rule with a baseline bounds how much worse a model is than it. Write max_drop in its "
            "place, or remove baseline.",
        ),
        (
            {"metric": "negative_aeg", "max_drop": None, "max_abs": 0.1},
            TWO,
            "max_abs = 0.1. A rule with a baseline bounds how much worse a model is than it. Write max_rise in its "
            "place, or remove baseline.",
        ),
        (
            {"model": "toxicity"},
            TWO | {"compare": None},
            "baseline: [compare] is missing. jobs/compare_models.py judges the rule by it. Write, for example, "
            '[compare] baseline = "old".',
        ),
        (
            {"model": "toxicity"},
            {"models": {"old": "x", "new": "y"}, "compare": {"baseline": "old", "models": ["new"]}},
            'models: "toxicity": [compare] compares "new" with "old", and nothing else. Name what it compares, or '
            "change [compare].",
        ),
        ({"baseline": ""}, TWO, 'baseline = "". It must not be empty. Write, for example, baseline = "old".'),
    ],
)
def test_each_fault_of_a_baseline_word_for_word(changes: dict[str, Any], tables: dict[str, Any], fault: str) -> None:
    assert gate_faults(gate={"rule": [AGAINST | changes]}, **tables) == (f'[[gate.rule]] "no worse" {fault}',)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"min": 0.8, "max_rise": 0.1}, "min and max_rise are given. {one}: max_drop. Write one, or split the rule."),
        ({}, "there is no bound. {one}: max_drop. Write, for example, max_drop = 0.1."),
        ({"metric": "negative_aeg"}, "there is no bound. {one}: max_rise. Write, for example, max_rise = 0.1."),
    ],
)
def test_a_rule_with_a_baseline_and_without_its_one_bound_has_one_fault(changes: dict[str, Any], fault: str) -> None:
    said = fault.format(one="A rule has exactly one bound")
    assert gate_faults(gate={"rule": [AGAINST | {"max_drop": None} | changes]}, **TWO) == (
        f'[[gate.rule]] "no worse": {said}',
    )


@pytest.mark.parametrize("models", [{"model": "old"}, {}])
def test_a_wrong_baseline_is_one_fault_of_a_rule_however_many_models_it_is_on(models: dict[str, Any]) -> None:
    several = {"models": {"old": "x", "new": "y", "newer": "z"}, "compare": {"baseline": "old"}}
    assert gate_faults(gate={"rule": [AGAINST | models | {"baseline": "toxicity"}]}, **several) == (
        '[[gate.rule]] "no worse": baseline = "toxicity", but [compare] baseline is "old". Write baseline = "old", or '
        "change [compare].",
    )


def test_models_that_are_not_compared_are_one_fault_of_a_rule() -> None:
    several = {"models": {"old": "x", "new": "y", "newer": "z"}, "compare": {"baseline": "old", "models": ["new"]}}
    assert gate_faults(gate={"rule": [AGAINST | {"models": ["new", "toxicity", "newer"]}]}, **several) == (
        '[[gate.rule]] "no worse" models: "toxicity", "newer": [compare] compares "new" with "old", and nothing else. '
        "Name what it compares, or change [compare].",
    )


@pytest.mark.parametrize(
    ("rule", "said", "known"),
    [(AGAINST, "compared", AUCS), (LEAST_RULE, "judged by the gate", METRICS)],
)
def test_pinned_auc_is_no_metric_of_a_rule(rule: dict[str, Any], said: str, known: str) -> None:
    assert gate_faults(gate={"rule": [rule | {"metric": "pinned_auc"}]}, **TWO) == (
        f'[[gate.rule]] "{rule["name"]}" metric = "pinned_auc". Pinned AUC is not {said}. It must be one of {known}. '
        "Name one of them.",
    )


def test_the_rule_that_the_example_of_comparisons_shows_is_one(tmp_path: Path) -> None:
    shown = (ROOT / "conf" / "compare.toml").read_text(encoding="utf-8")
    _, rule = shown.partition("[corpus]")[0].split("# [[gate.rule]]")
    path = tmp_path / "compare.toml"
    lines = [line.removeprefix("# ") for line in rule.splitlines()]
    path.write_text("\n".join([shown, "[[gate.rule]]", *lines]), encoding="utf-8")
    gate = load_config(path).gate
    assert gate is not None
    assert [(own.baseline, own.models, own.kind) for own in gate.of_comparisons] == [
        ("toxicity_1", ("toxicity_6",), "max_drop")
    ]
