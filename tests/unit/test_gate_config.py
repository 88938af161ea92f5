"""The meaning of gate rules, and the rules for runs, changes and comparisons."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from biasspark.config import Rule, load_config, parse_config
from tests.harness.broken_configurations import AGAINST, AT, CROSSED, EVEN, FALL, THREE, TWO
from tests.harness.least_configuration import MINIMAL_RULE, changed, gate_of

ROOT = Path(__file__).parents[2]
RISE = {"name": "rise", "metric": "fnr", "threshold": 0.2, "max_rise": 0.01}


def test_a_rule_is_on_everything_and_passes_without_evidence_unless_it_says_otherwise() -> None:
    gate = gate_of(MINIMAL_RULE, models={"b": "y"}, slices={"short": "n < 9"})
    (rule,) = gate.rule
    assert rule == Rule(name="floor", metric="bpsn_auc", models=("toxicity", "b"), slices=("all",), min=0.8)
    assert (rule.kind, rule.bound, rule.is_change, rule.severity) == ("min", 0.8, False, "fail")
    assert (gate.insufficient, rule.insufficient) == ("pass", None)


def test_selectors_name_one_or_several() -> None:
    tables = {
        "models": {"b": "y"},
        "slices": {"short": "n < 9"},
        "identities": {"columns": ["male", "gay"], "categorical": ["race"], "crossed": {"pairs": True}},
    }
    single = MINIMAL_RULE | {"model": "b", "slice": "short", "identity": "gay & race=x"}
    plural = {"name": "rise", "metric": "negative_aeg", "max_rise": 0, "identities": ["gay", "race=y"]}
    one, several = gate_of(single, plural | {"slices": ["all", "short"]}, **tables).rule
    assert (one.models, one.slices, one.identities) == (("b",), ("short",), ("gay & race=x",))
    assert (several.models, several.slices) == (("toxicity", "b"), ("all", "short"))
    assert several.identities == ("gay", "race=y")
    assert (several.kind, several.bound, several.is_change) == ("max_rise", 0.0, True)


def test_a_gate_with_every_key_reads_back_from_the_ledger() -> None:
    rules = [MINIMAL_RULE | {"worst": True, "insufficient": "pass"}, FALL]
    gate = {"alpha": 0.01, "insufficient": "fail", "paired": True, "rule": rules}
    config = parse_config(changed(corpus={"id": "id"}, gate=gate, evidence={"min_rows": 3}), Path())
    assert parse_config(json.loads(config.json), Path()) == config


def test_a_pair_that_a_run_may_name_is_taken() -> None:
    """Only the corpus shows the values of a column, and the order in which they are crossed."""
    names = ["male & gay", "male & a & b", "gay & race=x", "race=x & old", "race=y & race=x", "race=x & race=x"]
    assert gate_of(MINIMAL_RULE | {"identities": names}, identities=CROSSED).rule[0].identities == tuple(names)
    anyone = {"columns": ["male"], "array": "groups", "crossed": {"pairs": True}}
    assert gate_of(MINIMAL_RULE | {"identities": ["b & male", "a & a"]}, identities=anyone).rule[0].identities


def test_a_rule_may_be_on_a_rate_its_gap_and_the_change_of_either() -> None:
    gate = gate_of(EVEN, MINIMAL_RULE, RISE, RISE | {"name": "wider", "metric": "fnr_gap"}, FALL, **AT)
    groups = (gate.change_rules, gate.rate_change_rules)
    assert [[rule.name for rule in group] for group in groups] == [["fall"], ["rise", "wider"]]
    assert [(rule.threshold, rule.kind, rule.is_gap, rule.is_size_change) for rule in gate.rule[:4]] == [
        (0.5, "max_abs", True, False),
        (None, "min", False, False),
        (0.2, "max_rise", False, False),
        (0.2, "max_rise", True, True),
    ]


@pytest.mark.parametrize("metric", ["tpr", "fpr", "tnr", "fnr", "precision", "selection_rate"])
@pytest.mark.parametrize("kind", ["min", "max", "max_drop", "max_rise"])
def test_every_rate_may_have_either_bound_of_its_value_and_its_change(metric: str, kind: str) -> None:
    rule = {"name": "rate", "metric": metric, "threshold": 0.5, kind: 0.1}
    assert gate_of(rule, **AT).rule[0].kind == kind


def test_a_rule_may_compare_models_with_a_baseline() -> None:
    gate = gate_of(MINIMAL_RULE, AGAINST, AGAINST | {"name": "b", "model": "toxicity"}, **TWO)
    alone, every, named = gate.rule
    assert (gate.run_rules, gate.comparison_rules) == ((alone,), (every, named))
    assert (every.models, every.baseline, every.kind) == (("toxicity",), "old", "max_drop")
    assert (named.models, alone.models) == (("toxicity",), ("toxicity", "old"))
    assert gate_of(AGAINST, **THREE).rule[0].models == ("new",)


def test_the_rule_that_the_example_of_comparisons_shows_is_one(tmp_path: Path) -> None:
    shown = (ROOT / "conf" / "compare.toml").read_text(encoding="utf-8")
    _, rule = shown.partition("[corpus]")[0].split("# [[gate.rule]]")
    path = tmp_path / "compare.toml"
    lines = [line.removeprefix("# ") for line in rule.splitlines()]
    path.write_text("\n".join([shown, "[[gate.rule]]", *lines]), encoding="utf-8")
    gate = load_config(path).gate
    assert gate is not None
    assert [(rule.baseline, rule.models, rule.kind) for rule in gate.comparison_rules] == [
        ("toxicity_1", ("toxicity_6",), "max_drop")
    ]
