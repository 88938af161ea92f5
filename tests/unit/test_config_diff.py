"""Differences between two configurations, and those that prevent a comparison of runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from biasspark.config import ConfigDiff, diff_config, list_differences, parse_config
from tests.harness.least_configuration import changed
from tests.unit.test_sketch import SIDES, rules_of


def test_differences_name_the_key_and_both_values() -> None:
    one = rules_of(label={"threshold": 0.5}, identities={"columns": ["male", "gay"]}, slices={"a": "x > 1"})
    other = rules_of(label={"threshold": 0.8}, identities={"columns": ["male", "trans"]})
    wanted = [
        ("label.threshold", "0.5 in one", "0.8 in the other"),
        ("identities.columns", '["gay"] only in one', '["trans"] only in the other'),
        ("slices.a", '"x > 1" in one', "not set in the other"),
    ]
    for phrase, words in zip(list_differences(one, other, SIDES), wanted, strict=True):
        assert [word for word in words if word not in phrase] == []
    assert list_differences(one, one, SIDES) == []


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({}, []),
        ({"label": {"threshold": 0.2}}, ["label.threshold", "not set then", "0.2 now"]),
        ({"identities": {"threshold": 0.2}}, ["identities.threshold", "0.5 then", "0.2 now"]),
        ({"identities": {"unannotated": "background"}}, ["identities.unannotated", "exclude", "background"]),
        (
            {"identities": {"predicates": {"young": "age < 25"}}},
            ["identities.predicates.young", "age < 30", "age < 25"],
        ),
        (
            {"identities": {"terms": {"column": "text", "list": {"gay": ["gay", "queer"], "more": ["m"]}}}},
            ["identities.terms.list.gay", '["queer"] only now'],
        ),
        (
            {"identities": {"terms": {"column": "title", "list": {"gay": ["gay"]}}}},
            ["identities.terms.column", "text", "title"],
        ),
        (
            {"identities": {"columns": [], "predicates": {"male": "male >= 0.9"}}},
            ["identities.male", "a column", "a predicate"],
        ),
        ({"models": {"toxicity": "v2"}}, ["models.toxicity", '"toxicity" then', '"v2" now']),
        ({"slices": {"short": "n < 5"}}, ["slices.short", "n < 9", "n < 5"]),
        # Additions do not change existing values.
        ({"models": {"new": "new"}, "slices": {"long": "n > 9"}}, []),
        ({"identities": {"columns": ["female", "male"], "categorical": ["race"], "predicates": {}}}, []),
    ],
    ids=str,
)
def test_what_keeps_a_run_from_being_compared_with_another(tables: dict[str, Any], words: list[str]) -> None:
    terms = {"column": "text", "list": {"gay": ["gay"]}}
    before = {"identities": {"predicates": {"young": "age < 30"}, "terms": terms}, "slices": {"short": "n < 9"}}
    after = before | {name: before.get(name, {}) | part for name, part in tables.items()}
    then, now = (parse_config(changed(**parts), Path()) for parts in (before, after))
    difference = diff_config(then.resolved(), json.loads(now.json), ("then", "now"))
    assert len(difference.phrases) == bool(words)
    assert [word for word in words if word not in difference.phrases[0]] == []
    assert [*difference.models] == ["toxicity"] * ("models.toxicity" in words)
    assert [*difference.slices] == ["short"] * ("slices.short" in words)
    assert diff_config(then.resolved(), {"corpus": "what no run has"}, SIDES) == ConfigDiff()
