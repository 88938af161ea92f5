"""Differences between two configurations, and those that prevent a comparison of runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from biasspark.config import ConfigDiff, diff_config, list_differences, parse_config
from tests.harness.least_configuration import changed
from tests.unit.test_sketch import SIDES, rules_of


def test_differences_in_words() -> None:
    one = rules_of(label={"threshold": 0.5}, identities={"columns": ["male", "gay"]}, slices={"a": "x > 1"})
    other = rules_of(label={"threshold": 0.8}, identities={"columns": ["male", "trans"]})
    assert list_differences(one, other, SIDES) == [
        "label.threshold is 0.5 in one, 0.8 in the other",
        'identities.columns has ["gay"] only in one and ["trans"] only in the other',
        'slices.a is "x > 1" in one, not set in the other',
    ]
    assert list_differences(one, one, SIDES) == []


@pytest.mark.parametrize(
    ("tables", "differences"),
    [
        ({}, ConfigDiff()),
        ({"label": {"threshold": 0.2}}, ConfigDiff(("label.threshold is not set then, 0.2 now",))),
        ({"identities": {"threshold": 0.2}}, ConfigDiff(("identities.threshold is 0.5 then, 0.2 now",))),
        (
            {"identities": {"unannotated": "background"}},
            ConfigDiff(('identities.unannotated is "exclude" then, "background" now',)),
        ),
        (
            {"identities": {"predicates": {"young": "age < 25"}}},
            ConfigDiff(('identities.predicates.young is "age < 30" then, "age < 25" now',)),
        ),
        (
            {"identities": {"terms": {"column": "text", "list": {"gay": ["gay", "queer"], "more": ["m"]}}}},
            ConfigDiff(('identities.terms.list.gay has ["queer"] only now',)),
        ),
        (
            {"identities": {"terms": {"column": "title", "list": {"gay": ["gay"]}}}},
            ConfigDiff(('identities.terms.column is "text" then, "title" now',)),
        ),
        (
            {"identities": {"columns": [], "predicates": {"male": "male >= 0.9"}}},
            ConfigDiff(('identities.male is "a column" then, "a predicate" now',)),
        ),
        (
            {"models": {"toxicity": "v2"}},
            ConfigDiff(models={"toxicity": ('models.toxicity is "toxicity" then, "v2" now',)}),
        ),
        ({"slices": {"short": "n < 5"}}, ConfigDiff(slices={"short": ('slices.short is "n < 9" then, "n < 5" now',)})),
        # Additions do not change existing values.
        ({"models": {"new": "new"}, "slices": {"long": "n > 9"}}, ConfigDiff()),
        ({"identities": {"columns": ["female", "male"], "categorical": ["race"], "predicates": {}}}, ConfigDiff()),
    ],
    ids=str,
)
def test_what_keeps_a_run_from_being_compared_with_another(tables: dict[str, Any], differences: ConfigDiff) -> None:
    terms = {"column": "text", "list": {"gay": ["gay"]}}
    before = {"identities": {"predicates": {"young": "age < 30"}, "terms": terms}, "slices": {"short": "n < 9"}}
    after = before | {name: before.get(name, {}) | part for name, part in tables.items()}
    then, now = (parse_config(changed(**parts), Path()) for parts in (before, after))
    found = diff_config(then.resolved(), json.loads(now.json), ("then", "now"))
    assert found == differences
    assert len(found.phrases) == (differences != ConfigDiff())
    assert diff_config(then.resolved(), {"corpus": "what no run has"}, SIDES) == ConfigDiff()
