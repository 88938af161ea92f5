"""Faults of configurations: the key and the value of each, all at once, without secrets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.broken_configurations import AGAINST, AT, EVEN
from tests.harness.least_configuration import MINIMAL_RULE, changed, faults_of, key_of, keys_of

OLD_AND_NEW = {"models": {"old": "x", "new": "y", "newer": "z"}, "compare": {"baseline": "old"}}
ROOTS = ("/", "//", "/data/..", "file:/", "file:///", "hdfs:///", "hdfs://name-node:8020/", "dbfs:/")
WITHIN = {
    "/data/civil": "/data/civil",
    "/data/civil/": "file:///data/civil/bias/tables",
    "/data/*": "/data/tables",
    "s3a://lake/civil": "s3a://lake/civil/tables",
}
"""Corpora, each with an output in it, whose tables the next run would read as rows."""


@pytest.mark.parametrize(
    ("tables", "keys"),
    [
        *(({"corpus": {"path": corpus}, "output": {"path": path}}, ["output.path"]) for corpus, path in WITHIN.items()),
        *(({"output": {"path": path}}, ["output.path"]) for path in ROOTS),
        *(({"rejects": {"max_share": share}}, ["rejects.max_share"]) for share in (-0.1, 1.1, "half", True)),
        # The engine is unknown, so keys that depend on it are not checked.
        ({"ranking": {"engine": "bined"}, "state": {"keep": True}, "pinned_auc": {"trials": 9}}, ["ranking.engine"]),
        ({"identities": {"columns": ["male", ""]}, "pinned_skew": {"identity": "female"}}, ["identities.columns.2"]),
        (
            {
                "thresholds": {"grid": {"steps": 0}},
                "gate": {"rule": [MINIMAL_RULE, {"name": "e", "metric": "fpr", "threshold": 0.2, "max": 0.1}]},
            },
            ["thresholds.grid.steps"],
        ),
        ({"models": {"toxicity": None}, "gate": {"rule": [MINIMAL_RULE | {"model": "m"}]}}, ["models"]),
        # A wrong baseline is one fault of a rule, for any number of models.
        ({"gate": {"rule": [AGAINST | {"baseline": "toxicity"}]}} | OLD_AND_NEW, ["gate.rule.no worse.baseline"]),
        (
            {"gate": {"rule": [AGAINST | {"model": "old", "baseline": "toxicity"}]}} | OLD_AND_NEW,
            ["gate.rule.no worse.baseline"],
        ),
        # Attribution needs no identities, but trials do.
        ({"corpus": {"id": "id"}, "identities": None, "attribution": {}, "pinned_auc": {"trials": 9}}, ["identities"]),
        # The bounds of an unknown metric are unknown.
        ({"gate": {"rule": [EVEN | {"metric": "fpr_gp"}]}} | AT, ["gate.rule.even.metric"]),
        # Faults elsewhere hide no fault.
        (
            {"slices": {"short": 1}, "gate": {"rule": [MINIMAL_RULE | {"identity": "nobody"}]}},
            ["slices.short", "gate.rule.floor.identity"],
        ),
    ],
    ids=str,
)
def test_what_follows_from_a_fault_is_no_other_fault(tables: dict[str, Any], keys: list[str]) -> None:
    assert keys_of(changed(**tables)) == keys


def test_no_fault_shows_the_value_of_an_option_or_under_an_unknown_key() -> None:
    secret = "hunter2"
    options = {"a": [secret], "": secret, "mode": "FAILFAST"}
    faults = faults_of(changed(corpus={"password": secret, "options": options}, password=secret, ranking=secret))
    of_corpus = [f"corpus.{key}" for key in ("password", "options.a", "options.", "options.mode")]
    assert [key_of(fault) for fault in faults] == ["password", *of_corpus, "ranking"]
    assert not any(secret in str(fault) + repr(fault) for fault in faults)
