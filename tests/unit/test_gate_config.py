"""What `[gate]`, `[evidence]` and `[privacy]` mean, and each of their faults word for word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from biasspark.config import EvidenceSettings, Privacy, Rule, parse_config
from biasspark.metrics.gate.alerts import Ruling
from tests.gate_rules import AUCS, LEAST_RULE, METRICS, gate_faults, gate_of
from tests.least_configuration import changed

FALL = {"name": "fall", "metric": "auc", "max_drop": 0.02}


def rule_faults(**changes: Any) -> tuple[str, ...]:
    return gate_faults(gate={"rule": [LEAST_RULE | changes]})


def test_a_rule_is_on_everything_unless_it_says_otherwise() -> None:
    models = {"models": {"b": "y"}, "slices": {"short": "n < 9"}}
    (rule,) = gate_of(LEAST_RULE, **models).rule
    assert rule == Rule(name="floor", metric="bpsn_auc", models=("toxicity", "b"), slices=("all",), min=0.8)
    assert (rule.kind, rule.bound, rule.is_change, rule.severity) == ("min", 0.8, False, "fail")


def test_selectors_name_one_or_several() -> None:
    tables = {
        "models": {"b": "y"},
        "slices": {"short": "n < 9"},
        "identities": {"columns": ["male", "gay"], "categorical": ["race"], "crossed": {"pairs": True}},
    }
    one, several = gate_of(
        LEAST_RULE | {"model": "b", "slice": "short", "identity": "gay & race=x"},
        {
            "name": "rise",
            "metric": "negative_aeg",
            "max_rise": 0,
            "identities": ["gay", "race=y"],
            "slices": ["all", "short"],
        },
        **tables,
    ).rule
    assert (one.models, one.slices, one.identities) == (("b",), ("short",), ("gay & race=x",))
    assert (several.models, several.slices, several.identities) == (
        ("toxicity", "b"),
        ("all", "short"),
        ("gay", "race=y"),
    )
    assert (several.kind, several.bound, several.is_change) == ("max_rise", 0.0, True)


def test_nights_are_paired_where_that_is_asked_for() -> None:
    config = parse_config(changed(corpus={"id": "id"}, gate={"paired": True, "rule": [LEAST_RULE, FALL]}), Path())
    assert config.gate is not None
    assert (config.gate.paired, [rule.name for rule in config.gate.of_changes]) == (True, ["fall"])
    assert parse_config(json.loads(config.json), Path()) == config
    assert gate_of(LEAST_RULE, FALL).paired is False


def test_a_rule_may_count_insufficient_evidence_otherwise_than_the_gate() -> None:
    rules = [LEAST_RULE, FALL | {"insufficient": "pass"}]
    config = parse_config(changed(gate={"insufficient": "fail", "rule": rules}), Path())
    assert config.gate is not None
    assert (config.gate.insufficient, [rule.insufficient for rule in config.gate.rule]) == ("fail", [None, "pass"])
    rulings = [Ruling.of(rule, config.gate, 0.95, ()) for rule in config.gate.rule]
    assert [ruling.insufficient for ruling in rulings] == ["fail", "pass"]
    assert parse_config(json.loads(config.json), Path()) == config
    assert gate_of(LEAST_RULE).insufficient == "pass"


def test_insufficient_evidence_counts_as_nothing_else() -> None:
    of_rule, of_gate = gate_faults(gate={"insufficient": "failed", "rule": [LEAST_RULE | {"insufficient": True}]})
    for fault, where in ((of_gate, '[gate] insufficient = "failed"'), (of_rule, '"floor" insufficient = true')):
        assert where in fault
        assert '"pass", "warn", "fail"' in fault
    assert "Did you mean fail?" in of_gate


def test_it_reads_back_from_the_ledger() -> None:
    gate = {"alpha": 0.01, "rule": [LEAST_RULE | {"worst": True}, LEAST_RULE | {"name": "b", "identity": "male"}]}
    config = parse_config(changed(gate=gate, privacy={"min_group_rows": 10}, evidence={"metrics": {"auc": 5}}), Path())
    assert parse_config(json.loads(config.json), Path()) == config
    assert config.privacy == Privacy(min_group_rows=10)
    assert config.evidence == EvidenceSettings(min_rows=0, metrics={"auc": 5})


def test_thresholds_that_a_broken_grid_lacks_are_not_missed_by_a_rule() -> None:
    """The grid is mended first."""
    rule = {"name": "even", "metric": "fpr_gap", "threshold": 0.2, "max_abs": 0.1}
    assert gate_faults(thresholds={"grid": {"steps": 0}}, gate={"rule": [rule]}) == (
        "[thresholds.grid] steps = 0. It must lie between 1 and 10000. Remove the line to use the default, 100.",
    )


def test_an_identity_is_asked_for_whatever_faults_other_tables_have() -> None:
    male = LEAST_RULE | {"identity": "nobody"}
    slices, identities = gate_faults(slices={"[identities": 1}, gate={"rule": [male]})
    assert slices.startswith("[slices] ")
    assert identities.startswith('[[gate.rule]] "floor" identity: "nobody": nothing in [identities] gives it.')


def test_what_is_not_configured_is_not_in_the_configuration() -> None:
    config = parse_config(changed(), Path())
    assert (config.gate, config.privacy, config.evidence) == (None, None, None)
    assert not {"gate", "privacy", "evidence"} & set(config.resolved())


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            {"metric": "bpsn"},
            f'metric = "bpsn". It must be one of {METRICS}. Did you mean bpsn_auc?',
        ),
        ({"name": None}, '1 name: missing. It is required. Write, for example, name = "bpsn".'),
        (
            {"max": 0.9},
            ": min and max are given. A rule has exactly one bound: min, max or max_drop. Write one, or split the "
            "rule.",
        ),
        (
            {"max_rise": 0.1},
            ": min and max_rise are given. A rule has exactly one bound: min, max or max_drop. Write one, or split the "
            "rule.",
        ),
        (
            {"min": None},
            ": there is no bound. A rule has exactly one bound: min, max or max_drop. Write, for example, min = 0.8.",
        ),
        (
            {"metric": "positive_aeg", "min": None},
            ": there is no bound. A rule has exactly one bound: min, max, max_abs or max_rise. Write, for example, "
            "max_rise = 0.1.",
        ),
        (
            {"min": 1},
            " min = 1. It must lie between 0.0 and 1.0, both excluded. At the ends every value would pass, or none. "
            "Correct it.",
        ),
        ({"min": None, "max_abs": 0.1}, " max_abs = 0.1. bpsn_auc cannot have this bound. Write max in its place."),
        (
            {"min": None, "max_rise": 0.1},
            " max_rise = 0.1. bpsn_auc cannot have this bound. Write max_drop in its place.",
        ),
        (
            {"metric": "positive_aeg", "min": None, "max_drop": 0.1},
            " max_drop = 0.1. positive_aeg cannot have this bound. Write max_rise in its place.",
        ),
        (
            {"metric": "positive_aeg", "min": 0.6},
            " min = 0.6. It must lie between -0.5 and 0.5, both excluded. At the ends every value would pass, or none. "
            "Correct it.",
        ),
        (
            {"min": None, "max_drop": -0.1},
            " max_drop = -0.1. It must lie between 0.0 and 1.0, the lower end included. At the ends every value would "
            "pass, or none. Correct it.",
        ),
        (
            {"metric": "fpr_gap", "min": None, "max_abs": 0.1},
            " threshold: missing. fpr_gap needs one. Write threshold = 0.5.",
        ),
        (
            {"metric": "fpr_gap", "threshold": 0.5, "min": None, "max_abs": 0.1},
            " threshold = 0.5. [thresholds] is missing. Write [thresholds] at = [0.5] or the like.",
        ),
        ({"threshold": 0.5}, " threshold = 0.5. bpsn_auc has no threshold. Remove it, or take fpr_gap."),
        ({"model": "x"}, ' model: "x": there is no such model. The models are "toxicity". Remove it.'),
        ({"slices": ["sort"]}, ' slice: "sort": there is no such slice. The slices are "all". Remove it.'),
        ({"identities": []}, " identities = []. At least one is required. Remove the line for the default."),
        ({"identities": ["male", "male"]}, ' identities: "male" is listed twice. Remove one.'),
        (
            {"identity": "male", "identities": ["male"]},
            ": identity and identities are both given. They mean the same. Remove one.",
        ),
        (
            {"identity": "mal"},
            ' identity: "mal": nothing in [identities] gives it. There is male. Did you mean male?',
        ),
        (
            {"identity": "male & male"},
            ' identity: "male & male": nothing in [identities] gives it. There is male. Remove it.',
        ),
        (
            {"metric": "auc", "identity": "male", "worst": True},
            " identity and worst: auc is the AUC of a whole slice. Remove it, or take another metric.",
        ),
        (
            {"severity": "panic"},
            ' severity = "panic". It must be one of "fail", "warn". Remove the line to use the default, "fail".',
        ),
        (
            {"minimum": 0.1},
            ' minimum: there is no such key. The keys of [[gate.rule]] "floor" are name, metric, threshold, models, '
            "slices, "
            "baseline, identities, crossed, min, max, max_abs, max_drop, max_rise, worst, severity, insufficient, "
            "identity, slice, model. Did you mean min?",
        ),
    ],
)
def test_each_fault_of_a_rule_word_for_word(changes: dict[str, Any], fault: str) -> None:
    where = "[[gate.rule]] " if fault.startswith("1 ") else '[[gate.rule]] "floor"'
    gap = "" if fault.startswith((" ", ":", "1 ")) else " "
    assert rule_faults(**changes) == (f"{where}{gap}{fault}",)


CROSSED = {
    "columns": ["male", "gay", "a & b"],
    "categorical": ["race"],
    "predicates": {"old": "age > 60"},
    "crossed": {"pairs": True},
}


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("gay & male", 'a pair is named in the order of [identities]. Write "male & gay".'),
        ("old & race=x", 'a pair is named in the order of [identities]. Write "race=x & old".'),
        ("a & b & gay", 'a pair is named in the order of [identities]. Write "gay & a & b".'),
        ("male & male", 'a pair joins two different identities. Write "male", or name another one.'),
        (
            "male & nobody",
            "nothing in [identities] gives it. There is male, gay, a & b, old, race=(a value). Remove it.",
        ),
    ],
)
def test_a_pair_that_no_night_names_is_refused(name: str, fault: str) -> None:
    found = gate_faults(gate={"rule": [LEAST_RULE | {"identity": name}]}, identities=CROSSED)
    assert found == (f'[[gate.rule]] "floor" identity: "{name}": {fault}',)


def test_a_pair_that_a_night_may_name_is_taken() -> None:
    """Which values a column has, and in which order they are crossed, only the night tells."""
    names = ["male & gay", "male & a & b", "gay & race=x", "race=x & old", "race=y & race=x", "race=x & race=x"]
    assert gate_of(LEAST_RULE | {"identities": names}, identities=CROSSED).rule[0].identities == tuple(names)
    anyone = {"columns": ["male"], "array": "groups", "crossed": {"pairs": True}}
    assert gate_of(LEAST_RULE | {"identities": ["b & male", "a & a"]}, identities=anyone).rule[0].identities


EVEN = {"name": "even", "metric": "fpr_gap", "threshold": 0.5, "max_abs": 0.1}
AT = {"thresholds": {"at": [0.2, 0.5]}}


RISE = {"name": "rise", "metric": "fnr", "threshold": 0.2, "max_rise": 0.01}


def test_a_rule_may_be_on_a_rate_its_gap_and_the_change_of_either() -> None:
    rules = (EVEN, LEAST_RULE, RISE, RISE | {"name": "wider", "metric": "fnr_gap"}, FALL)
    gate = gate_of(*rules, **AT)
    assert [rule.name for rule in gate.of_rates] == ["even", "rise", "wider"]
    assert [[rule.name for rule in own] for own in (gate.of_changes, gate.of_rate_changes)] == [
        ["fall"],
        ["rise", "wider"],
    ]
    assert [(rule.threshold, rule.kind, rule.is_gap, rule.of_size) for rule in gate.rule[:4]] == [
        (0.5, "max_abs", True, False),
        (None, "min", False, False),
        (0.2, "max_rise", False, False),
        (0.2, "max_rise", True, True),
    ]
    config = parse_config(changed(gate={"rule": list(rules)}, **AT), Path())
    assert parse_config(json.loads(config.json), Path()) == config


@pytest.mark.parametrize("metric", ["tpr", "fpr", "tnr", "fnr", "precision", "selection_rate"])
@pytest.mark.parametrize("kind", ["min", "max", "max_drop", "max_rise"])
def test_every_rate_may_have_either_bound_of_its_value_and_its_change(metric: str, kind: str) -> None:
    rule = {"name": "rate", "metric": metric, "threshold": 0.5, kind: 0.1}
    assert gate_of(rule, **AT).rule[0].kind == kind


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"threshold": 0.8}, "threshold = 0.8. [thresholds] has 0.2, 0.5. Write [thresholds] at = [0.8] or the like."),
        (
            {"max_abs": None, "max_drop": 0.1},
            "max_drop = 0.1. fpr_gap cannot have this bound. Write max_rise in its place.",
        ),
        ({"metric": "fpr"}, "max_abs = 0.1. fpr cannot have this bound. Write max in its place."),
        (
            {"metric": "fpr", "max_abs": None, "max": 0},
            "max = 0. It must lie between 0.0 and 1.0, both excluded. At the ends every value would pass, or none. "
            "Correct it.",
        ),
        (
            {"metric": "fpr", "max_abs": None, "max_drop": 1},
            "max_drop = 1. It must lie between 0.0 and 1.0, the lower end included. At the ends every value would "
            "pass, or none. Correct it.",
        ),
        (
            {"max_abs": 1.5},
            "max_abs = 1.5. It must lie between 0.0 and 1.0, both excluded. At the ends every value would pass, or "
            "none. Correct it.",
        ),
        (
            {"max_abs": None, "max": -1},
            "max = -1. It must lie between -1.0 and 1.0, both excluded. At the ends every value would pass, or none. "
            "Correct it.",
        ),
        (
            {"metric": "fpr", "max_abs": None, "max_rise": 0.1, "baseline": "old"},
            "baseline: jobs/compare_models.py compares AUCs and their gaps alone. Remove it, or take another metric.",
        ),
    ],
)
def test_each_fault_of_a_rule_on_a_rate_word_for_word(changes: dict[str, Any], fault: str) -> None:
    given = {key: value for key, value in (EVEN | changes).items() if value is not None}
    assert gate_faults(gate={"rule": [given]}, **AT) == (f'[[gate.rule]] "even" {fault}',)


def test_an_unknown_name_that_is_listed_twice_is_unknown_once() -> None:
    found = gate_faults(gate={"rule": [LEAST_RULE | {"models": ["b", "b"]}]})
    assert [fault.partition(": ")[2] for fault in found] == [
        '"b" is listed twice. Remove one.',
        '"b": there is no such model. The models are "toxicity". Remove it.',
    ]


@pytest.mark.parametrize(
    ("tables", "fault"),
    [
        (
            {"gate": {"rule": []}},
            "[gate]: there is no rule. At least one is required. Write, for example, [[gate.rule]] below it.",
        ),
        (
            {"gate": {"alpha": 0.5, "rule": [LEAST_RULE]}},
            "[gate] alpha = 0.5. It must lie between 0 and 0.5, both excluded. Write, for example, alpha = 0.05.",
        ),
        (
            {"gate": {"rule": [LEAST_RULE, LEAST_RULE]}},
            '[gate]: two rules are named "floor". Alerts tell rules by name. Rename one.',
        ),
        (
            {"gate": {"rule": [3]}},
            '[[gate.rule]] 1: this is a whole number. It must be a table. Write, for example, name = "bpsn", metric = '
            '"bpsn_auc".',
        ),
        (
            {"corpus": {"id": "id"}, "gate": {"paired": True, "rule": [LEAST_RULE]}},
            "[gate] paired = true. No rule is on a change of an AUC since the last accepted run. Remove the line, or "
            "write one with max_drop or max_rise.",
        ),
        (
            {
                "corpus": {"id": "id"},
                "models": {"old": "x"},
                "compare": {"baseline": "old"},
                "gate": {"paired": True, "rule": [FALL | {"baseline": "old"}]},
            },
            "[gate] paired = true. No rule is on a change of an AUC since the last accepted run. Remove the line, or "
            "write one with max_drop or max_rise.",
        ),
        (
            {"corpus": {"id": "id"}, "gate": {"paired": True, "rule": [RISE]}, **AT},
            "[gate] paired = true. No rule is on a change of an AUC since the last accepted run. Remove the line, or "
            "write one with max_drop or max_rise.",
        ),
        (
            {"gate": {"paired": True, "rule": [FALL]}},
            '[corpus] id: missing. [gate] paired groups by it. Write, for example, id = "row_id".',
        ),
        (
            {"corpus": {"id": "id"}, "ranking": {"engine": "binned"}, "gate": {"paired": True, "rule": [FALL]}},
            '[gate] paired: the engine is "binned", and bins hold no single rows. Set [ranking] engine = "blocks", '
            "or remove the line.",
        ),
        (
            {"corpus": {"id": "id"}, "privacy": {}, "gate": {"paired": True, "rule": [FALL]}},
            "[privacy] and [gate] paired are both given. Pairs are counted without one group of rows after another, "
            "which reveals single rows. Remove one of them.",
        ),
        (
            {"privacy": {"min_group_rows": 0}},
            "[privacy] min_group_rows = 0. It must lie between 1 and 9223372036854775807. Remove the line to use the "
            "default, 10.",
        ),
        (
            {"evidence": {"metrics": {"bpsn": 3}}},
            f"[evidence.metrics] bpsn: there is no such key. The keys of [evidence.metrics] are "
            f"{AUCS.replace(chr(34), '')}. Did you mean bpsn_auc?",
        ),
        (
            {"corpus": {"id": "id"}, "privacy": {"min_group_rows": 5}, "attribution": {}},
            "[privacy] and [attribution] are both given. Attribution publishes numbers of single rows and of whatever "
            "segments it finds, and withholds none. Keep it in a configuration of its own.",
        ),
        (
            {"models": {"a": "a", "b": "b"}, "privacy": {"min_group_rows": 5}, "compare": {"baseline": "a"}},
            "[privacy] and [compare] are both given. A comparison publishes numbers of every identity, and withholds "
            "none. Keep it in a configuration of its own.",
        ),
        (
            {"privacy": {"min_group_rows": 5}, "state": {"keep": True}},
            "[privacy] and [state] are both given. The state is the score, label and identities of every row, those of "
            "small groups too. Keep it by a configuration of its own, where few may read, and write [privacy] in that "
            "of the windows.",
        ),
    ],
)
def test_each_other_fault_word_for_word(tables: dict[str, Any], fault: str) -> None:
    assert gate_faults(**tables) == (fault,)


def test_without_a_model_nothing_is_said_of_models_that_rules_name() -> None:
    rules = [
        LEAST_RULE | {"name": "one", "model": "m"},
        {"name": "two", "metric": "auc", "max_drop": 0.1, "baseline": "m"},
    ]
    found = gate_faults(models={"toxicity": None}, gate={"rule": rules}, compare={"baseline": "m"})
    assert [fault for fault in found if "models are" in fault or "one model" in fault] == []
    assert found[0].startswith("[models]")
