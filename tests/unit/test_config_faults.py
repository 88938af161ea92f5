"""Faults of configurations: where each is and which value it shows, all of them at once, and no secret among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from biasspark.config import parse_config
from biasspark.errors import TOML
from tests.broken_configurations import AGAINST, AT, RULES, TABLES
from tests.gate_rules import LEAST_RULE
from tests.least_configuration import changed, faults_of, key_of, keys_of

BROKEN = TABLES | RULES


@pytest.mark.parametrize("name", BROKEN)
def test_a_fault_has_its_key_and_its_value(name: str) -> None:
    tables, faults = BROKEN[name]
    actual = faults_of(changed(**tables))
    assert [(key_of(fault), fault.value) for fault in actual] == list(faults.items())


@pytest.mark.parametrize("name", BROKEN)
def test_a_fault_states_a_rule_and_a_fix(name: str) -> None:
    for fault in faults_of(changed(**BROKEN[name][0])):
        rule, fix = TOML.text(fault.rule, fault.path), TOML.text(fault.fix, fault.path)
        assert rule.endswith(".")
        assert fix[0].isupper()
        assert fix.endswith((".", "?"))


@pytest.mark.parametrize(
    ("corpus", "output"),
    [
        ("/data/civil", "/data/civil"),
        ("/data/civil/", "file:///data/civil/bias/tables"),
        ("/data/*", "/data/tables"),
        ("s3a://lake/civil", "s3a://lake/civil/tables"),
    ],
)
def test_tables_in_the_corpus_would_be_read_as_rows(corpus: str, output: str) -> None:
    assert keys_of(changed(corpus={"path": corpus}, output={"path": output})) == ["output.path"]


@pytest.mark.parametrize(
    "path", ["/", "//", "/data/..", "file:/", "file:///", "hdfs:///", "hdfs://name-node:8020/", "dbfs:/"]
)
def test_tables_are_not_written_to_the_root_of_a_file_system(path: str) -> None:
    assert keys_of(changed(output={"path": path})) == ["output.path"]


@pytest.mark.parametrize("max_share", [-0.1, 1.1, "half", True])
def test_a_share_of_rejects_lies_between_0_and_1(max_share: object) -> None:
    assert keys_of(changed(rejects={"max_share": max_share})) == ["rejects.max_share"]


@pytest.mark.parametrize("max_share", [0, 0.5, 1])
def test_a_share_of_rejects_may_be_none_or_all(max_share: float) -> None:
    config = parse_config(changed(rejects={"max_share": max_share}), Path())
    assert config.rejects.max_share == max_share


@pytest.mark.parametrize(
    ("tables", "key"),
    [
        # The engine is unknown, so what depends on it is not judged.
        ({"ranking": {"engine": "bined"}, "state": {"keep": True}, "pinned_auc": {"trials": 9}}, "ranking.engine"),
        ({"identities": {"columns": ["male", ""]}, "pinned_skew": {"identity": "female"}}, "identities.columns.2"),
        (
            {
                "thresholds": {"grid": {"steps": 0}},
                "gate": {"rule": [LEAST_RULE, {"name": "e", "metric": "fpr", "threshold": 0.2, "max": 0.1}]},
            },
            "thresholds.grid.steps",
        ),
        ({"models": {"toxicity": None}, "gate": {"rule": [LEAST_RULE | {"model": "m"}]}}, "models"),
    ],
)
def test_what_follows_from_a_fault_is_no_other_fault(tables: dict[str, Any], key: str) -> None:
    assert keys_of(changed(**tables)) == [key]


def test_faults_elsewhere_hide_none() -> None:
    rule = LEAST_RULE | {"identity": "nobody"}
    assert keys_of(changed(slices={"short": 1}, gate={"rule": [rule]})) == ["slices.short", "gate.rule.floor.identity"]


@pytest.mark.parametrize("models", [{"model": "old"}, {}])
def test_a_wrong_baseline_is_one_fault_of_a_rule_however_many_models_it_is_on(models: dict[str, Any]) -> None:
    tables = {"models": {"old": "x", "new": "y", "newer": "z"}, "compare": {"baseline": "old"}}
    rule = AGAINST | models | {"baseline": "toxicity"}
    assert keys_of(changed(gate={"rule": [rule]}, **tables)) == ["gate.rule.no worse.baseline"]


def test_a_rule_without_a_known_metric_has_no_fault_of_its_bound() -> None:
    rule = {"name": "even", "metric": "fpr_gp", "threshold": 0.5, "max_abs": 0.1}
    assert keys_of(changed(gate={"rule": [rule]}, **AT)) == ["gate.rule.even.metric"]


def test_no_fault_shows_the_value_of_an_option_or_under_an_unknown_key() -> None:
    secret = "hunter2"
    options = {"a": [secret], "": secret, "mode": "FAILFAST"}
    faults = faults_of(changed(corpus={"password": secret, "options": options}, password=secret, ranking=secret))
    assert [key_of(fault) for fault in faults] == [
        "password",
        "corpus.password",
        "corpus.options.a",
        "corpus.options.",
        "corpus.options.mode",
        "ranking",
    ]
    assert not any(secret in str(fault) + repr(fault) for fault in faults)


def test_a_fault_shows_no_password_of_a_path() -> None:
    (fault,) = faults_of(changed(output={"path": "s3a://key:hunter2@lake/*"}))
    assert "hunter2" not in str(fault)
