"""When nights merge, in what they differ, and when their scores are cut anew."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biasspark.config import Otherwise, find_otherwise, list_differences, merge_rules, parse_config
from biasspark.errors import ConfigError
from biasspark.ranking.state_header import (
    Header,
    State,
    is_lopsided,
    join_extremes,
    join_quantiles,
    name_state,
    reuse_cut,
)
from tests.least_configuration import changed

EDGES = np.array([0.25, 0.5, 0.75])
SIDES = ("in one", "in the other")


def rules_of(**tables: Any) -> dict[str, Any]:
    return merge_rules(parse_config(changed(**tables), Path()).resolved())


def header(**parts: Any) -> Header:
    given: dict[str, Any] = {
        "rules": rules_of(),
        "types": {"race": "string"},
        "values": {"race": ("a", "b")},
        "members": [(1, 2, 7)],
        "n_rows": 400,
        "fullest": 100,
        "extremes": (0.0, 1.0),
        "quantiles": (0.25, 0.5, 0.75),
        "is_single": False,
        "ranges": 4,
        "lopsided": False,
    }
    return Header(**given | parts)


def test_a_header_reads_back() -> None:
    one = header(quantiles=(0.1, 1 / 3), values={"race": ("é", '"')})
    read = Header.decode(one.encode())
    assert json.loads(read.encode()) == json.loads(one.encode())
    assert name_state(read, EDGES) == name_state(one, EDGES)


@pytest.mark.parametrize(
    "tables",
    [
        {"label": {"threshold": 0.6}},
        {"identities": {"columns": ["female", "male"]}},
        {"identities": {"unannotated": "background"}},
        {"identities": {"categorical": ["race"]}},
        {"identities": {"predicates": {"young": "age < 30"}}},
        {"identities": {"crossed": {"pairs": True}}},
        {"slices": {"short": "length < 100"}},
        {"corpus": {"filter": "lang = 'en'"}},
        {"corpus": {"id": "id", "duplicates": "reject"}},
    ],
    ids=str,
)
def test_what_must_agree(tables: dict[str, Any]) -> None:
    assert name_state(header(rules=rules_of(**tables)), EDGES) != name_state(header(), EDGES)
    assert len(list_differences(rules_of(), rules_of(**tables), SIDES)) == 1


@pytest.mark.parametrize(
    "tables",
    [
        {"models": {"another": "score"}},
        {"identities": {"crossed": {"min_rows": 5, "max_pairs": 9}}},
        {"intervals": {"level": 0.9}},
        {"thresholds": {"at": [0.5]}},
        {"corpus": {"path": "/data/later", "id": "id"}},
        {"output": {"path": "/elsewhere"}},
        {"ranking": {"ranges": 7}},
    ],
    ids=str,
)
def test_what_need_not_agree(tables: dict[str, Any]) -> None:
    assert rules_of(**tables) == rules_of()


def test_boundaries_and_types_must_agree_and_what_was_found_need_not() -> None:
    key = name_state(header(), EDGES)
    assert name_state(header(), EDGES[1:]) != key
    assert name_state(header(types={"race": "int"}), EDGES) != key
    found = header(values={"race": ("c",)}, members=[], n_rows=9, fullest=9, extremes=None, quantiles=())
    assert name_state(found, EDGES) == key


def test_the_order_of_slices_says_nothing_and_that_of_identities_does() -> None:
    one, other = {"a": "x > 1", "b": "x > 2"}, {"b": "x > 2", "a": "x > 1"}
    assert rules_of(slices=one) == rules_of(slices=other)
    assert json.dumps(rules_of(slices=one)) == json.dumps(rules_of(slices=other))
    ordered = (rules_of(identities={"columns": columns}) for columns in (["male", "female"], ["female", "male"]))
    assert list_differences(*ordered, SIDES) == ["identities.columns is in another order in one than in the other"]


def test_differences_in_words() -> None:
    one = rules_of(label={"threshold": 0.5}, identities={"columns": ["male", "gay"]}, slices={"a": "x > 1"})
    other = rules_of(label={"threshold": 0.8}, identities={"columns": ["male", "trans"]})
    assert list_differences(one, other, SIDES) == [
        "label.threshold is 0.5 in one, 0.8 in the other",
        'identities.columns has ["gay"] in one alone and ["trans"] in the other alone',
        'slices.a is "x > 1" in one, not set in the other',
    ]
    assert list_differences(one, one, SIDES) == []


@pytest.mark.parametrize(
    ("tables", "everywhere", "models", "slices"),
    [
        ({}, [], {}, {}),
        ({"label": {"threshold": 0.2}}, ["label.threshold is not set then, 0.2 now"], {}, {}),
        ({"identities": {"threshold": 0.2}}, ["identities.threshold is 0.5 then, 0.2 now"], {}, {}),
        (
            {"identities": {"unannotated": "background"}},
            ['identities.unannotated is "exclude" then, "background" now'],
            {},
            {},
        ),
        (
            {"identities": {"predicates": {"young": "age < 25"}}},
            ['identities.predicates.young is "age < 30" then, "age < 25" now'],
            {},
            {},
        ),
        (
            {"identities": {"terms": {"column": "text", "list": {"gay": ["gay", "queer"], "more": ["m"]}}}},
            ['identities.terms.list.gay has ["queer"] now alone'],
            {},
            {},
        ),
        (
            {"identities": {"terms": {"column": "title", "list": {"gay": ["gay"]}}}},
            ['identities.terms.column is "text" then, "title" now'],
            {},
            {},
        ),
        ({"models": {"toxicity": "v2"}}, [], {"toxicity": ('models.toxicity is "toxicity" then, "v2" now',)}, {}),
        ({"slices": {"short": "n < 5"}}, [], {}, {"short": ('slices.short is "n < 9" then, "n < 5" now',)}),
        # What is added changes nothing of what was there.
        ({"models": {"toxicity": "toxicity", "new": "new"}, "slices": {"short": "n < 9", "long": "n > 9"}}, [], {}, {}),
        ({"identities": {"columns": ["female", "male"], "categorical": ["race"], "predicates": {}}}, [], {}, {}),
    ],
    ids=str,
)
def test_what_keeps_a_night_from_being_compared_with_another(
    tables: dict[str, Any], everywhere: list[str], models: dict[str, Any], slices: dict[str, Any]
) -> None:
    terms = {"column": "text", "list": {"gay": ["gay"]}}
    before = {"identities": {"predicates": {"young": "age < 30"}, "terms": terms}, "slices": {"short": "n < 9"}}
    then, now = (parse_config(changed(**before), Path()), parse_config(_with(changed(**before), tables), Path()))
    found = find_otherwise(then.resolved(), json.loads(now.json), ("then", "now"))
    assert found == Otherwise(tuple(everywhere), models, slices)
    assert len(found.phrases) == len(everywhere) + len(models) + len(slices)
    assert find_otherwise(then.resolved(), {"corpus": "what no run has"}, SIDES) == Otherwise()


def _with(given: dict[str, Any], tables: dict[str, Any]) -> dict[str, Any]:
    return given | {name: given.get(name, {}) | part for name, part in tables.items()}


@pytest.mark.parametrize(
    ("now", "ranges", "kept"),
    [
        ({}, 4, True),
        ({"fullest": 400}, 4, True),  # four times the mean
        ({"fullest": 401}, 4, False),
        ({"fullest": 401, "lopsided": True}, 4, True),  # ties, which no boundary parts
        ({}, 16, True),
        ({}, 17, False),  # nights have grown
        ({"n_rows": 0, "fullest": 0}, 1, True),
    ],
)
def test_scores_are_cut_anew_where_a_range_has_outgrown_the_others(
    now: dict[str, Any], ranges: int, kept: bool
) -> None:
    cut = reuse_cut(State("", EDGES, header(**now)), ranges)
    assert (cut is not None) == kept
    if cut:
        assert (cut.boundaries.tolist(), cut.ranges) == (EDGES.tolist(), 4)


def test_the_one_range_of_a_small_night_is_never_lopsided() -> None:
    assert not is_lopsided(1000, 1000, np.empty(0))


def test_quantiles_of_nights_weigh_as_their_rows() -> None:
    rng = np.random.default_rng(5)
    nights = [rng.normal(0, 1, 300_000), rng.normal(3, 0.5, 100_000)]
    headers = [
        header(n_rows=len(scores), quantiles=np.quantile(scores, np.arange(1, 1024) / 1024).tolist())
        for scores in nights
    ]
    joined = join_quantiles(headers)
    assert len(joined) == 1023
    union = np.sort(np.concatenate(nights))
    assert np.searchsorted(union, joined) / len(union) == pytest.approx(np.arange(1, 1024) / 1024, abs=0.004)


def test_nights_without_a_sample_or_a_score_join() -> None:
    nothing = header(n_rows=0, quantiles=(), extremes=None)
    assert join_quantiles([nothing]).tolist() == []
    assert set(join_quantiles([nothing, header(quantiles=(0.5,))])) == {0.5}
    assert join_extremes([nothing]) is None
    assert join_extremes([nothing, header(extremes=(0.5, 2.0)), header(extremes=(-1.0, 1.0))]) == (-1.0, 2.0)


def test_state_needs_blocks() -> None:
    table = changed(state={"keep": True}, ranking={"engine": "windows"})
    with pytest.raises(ConfigError) as caught:
        parse_config(table, Path())
    assert caught.value.faults == (
        '[state] keep = true. The engine is "windows", which sorts no blocks. Set [ranking] engine = "blocks", or keep '
        "none.",
    )


def test_state_is_kept_where_the_configuration_says_so() -> None:
    assert parse_config(changed(state={"keep": True}), Path()).state is not None
    assert parse_config(changed(state={"keep": False}), Path()) == parse_config(changed(), Path())
    assert replace(parse_config(changed(state={}), Path())).state is None
