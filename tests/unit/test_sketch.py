"""When runs merge, in what they differ, and when their scores are cut anew."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from biasspark.config import list_differences, merge_rules, parse_config
from biasspark.windows.sketch import (
    Sketch,
    SketchHeader,
    hash_agreement,
    list_disagreements,
    merge_extremes,
    merge_quantiles,
    reuse_boundaries,
)
from tests.harness.least_configuration import changed

EDGES = np.array([0.25, 0.5, 0.75])
SIDES = ("in one", "in the other")


def rules_of(**tables: Any) -> dict[str, Any]:
    return merge_rules(parse_config(changed(**tables), Path()).resolved())


def header(**parts: Any) -> SketchHeader:
    given: dict[str, Any] = {
        "rules": rules_of(),
        "types": {"race": "string"},
        "values": {"race": ("a", "b")},
        "members": [(1, 2, 7)],
        "n_rows": 400,
        "max_range_rows": 100,
        "extremes": (0.0, 1.0),
        "quantiles": (0.25, 0.5, 0.75),
        "is_single": False,
        "ranges": 4,
        "skewed": False,
    }
    return SketchHeader(**given | parts)


def test_a_header_reads_back() -> None:
    one = header(quantiles=(0.1, 1 / 3), values={"race": ("é", '"')})
    read = SketchHeader.decode(one.encode())
    assert json.loads(read.encode()) == json.loads(one.encode())
    assert hash_agreement(read, EDGES) == hash_agreement(one, EDGES)


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
    assert hash_agreement(header(rules=rules_of(**tables)), EDGES) != hash_agreement(header(), EDGES)
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
    key = hash_agreement(header(), EDGES)
    assert hash_agreement(header(), EDGES[1:]) != key
    assert hash_agreement(header(types={"race": "int"}), EDGES) != key
    found = header(values={"race": ("c",)}, members=[], n_rows=9, max_range_rows=9, extremes=None, quantiles=())
    assert hash_agreement(found, EDGES) == key


def test_the_order_of_slices_says_nothing_and_that_of_identities_does() -> None:
    one, other = {"a": "x > 1", "b": "x > 2"}, {"b": "x > 2", "a": "x > 1"}
    assert rules_of(slices=one) == rules_of(slices=other)
    assert json.dumps(rules_of(slices=one)) == json.dumps(rules_of(slices=other))
    first, second = (rules_of(identities={"columns": columns}) for columns in (["male", "female"], ["female", "male"]))
    [difference] = list_differences(first, second, SIDES)
    assert "identities.columns" in difference


@pytest.mark.parametrize(
    ("now", "ranges", "kept"),
    [
        ({}, 4, True),
        ({"max_range_rows": 400}, 4, True),  # four times the mean
        ({"max_range_rows": 401}, 4, False),
        ({"max_range_rows": 401, "skewed": True}, 4, True),  # ties, which no boundary parts
        ({}, 16, True),
        ({}, 17, False),  # runs have grown
        ({"n_rows": 0, "max_range_rows": 0}, 1, True),
    ],
)
def test_scores_are_cut_anew_where_a_range_has_outgrown_the_others(
    now: dict[str, Any], ranges: int, kept: bool
) -> None:
    cut = reuse_boundaries(Sketch("", EDGES, header(**now)), ranges)
    assert (cut is not None) == kept
    if cut:
        assert (cut.boundaries.tolist(), cut.ranges) == (EDGES.tolist(), 4)


def test_quantiles_of_runs_weigh_as_their_rows() -> None:
    rng = np.random.default_rng(5)
    runs = [rng.normal(0, 1, 300_000), rng.normal(3, 0.5, 100_000)]
    headers = [
        header(n_rows=len(scores), quantiles=np.quantile(scores, np.arange(1, 1024) / 1024).tolist()) for scores in runs
    ]
    joined = merge_quantiles(headers)
    assert len(joined) == 1023
    union = np.sort(np.concatenate(runs))
    assert np.searchsorted(union, joined) / len(union) == pytest.approx(np.arange(1, 1024) / 1024, abs=0.004)


def test_runs_without_a_sample_or_a_score_join() -> None:
    nothing = header(n_rows=0, quantiles=(), extremes=None)
    assert merge_quantiles([nothing]).tolist() == []
    assert set(merge_quantiles([nothing, header(quantiles=(0.5,))])) == {0.5}
    assert merge_extremes([nothing]) is None
    assert merge_extremes([nothing, header(extremes=(0.5, 2.0)), header(extremes=(-1.0, 1.0))]) == (-1.0, 2.0)


def test_state_is_kept_where_the_configuration_says_so() -> None:
    assert parse_config(changed(state={"keep": True}), Path()).state is not None
    assert parse_config(changed(state={"keep": False}), Path()) == parse_config(changed(), Path())
    assert replace(parse_config(changed(state={}), Path())).state is None


# ---- runs that do not merge

DAYS = [date(2026, 1, day) for day in range(1, 6)]


def sketch(edges: np.ndarray = EDGES, **parts: Any) -> Sketch:
    return Sketch(hash_agreement(header(**parts), edges), edges, header(**parts))


def test_runs_that_agree() -> None:
    sketches = {day: {"m": sketch(n_rows=day.day), "more": sketch(EDGES[1:])} for day in DAYS}
    assert list_disagreements(sketches, ("m", "more"), rules_of()) == []


OTHER_RULES, OTHER_EDGES = sketch(rules=rules_of(label={"threshold": 0.8})), sketch(EDGES[1:])
Kept = dict[date, dict[str, Sketch]]


def both_days(**first: Sketch) -> Kept:
    return {DAYS[0]: first, DAYS[1]: {"m": sketch(), "more": sketch()}}


@pytest.mark.parametrize(
    ("kept", "tables", "named"),
    [
        (both_days(m=OTHER_RULES, more=OTHER_RULES), {}, ["label.threshold", "0.8", "2026-01-01"]),
        (both_days(m=OTHER_EDGES, more=sketch()), {}, ["boundaries", "m"]),
        (both_days(m=sketch(types={"race": "int"}), more=sketch()), {}, ["types.race", "int"]),
        (both_days(m=sketch()), {}, ["[models] more", "2026-01-01"]),
        (
            {day: {"m": OTHER_RULES if day in DAYS[:3] else sketch()} for day in DAYS},
            {},
            ["3 runs from 2026-01-01 to 2026-01-03"],
        ),
        (
            {day: {"m": sketch()} for day in DAYS},
            {"identities": {"unannotated": "background"}},
            ["configuration", "identities.unannotated", "background", "2026-01-05"],
        ),
        # They agree, but are of another format.
        ({day: {"m": Sketch("a key of before", EDGES, header())} for day in DAYS}, {}, ["version"]),
    ],
    ids=["rules", "boundaries", "types", "models", "alike", "configuration", "format"],
)
def test_runs_that_differ_alike_are_one_fault(kept: Kept, tables: dict[str, Any], named: list[str]) -> None:
    [fault] = list_disagreements(kept, tuple(kept[max(kept)]), rules_of(**tables))
    assert all(part in fault for part in named)


def test_a_difference_of_a_later_run_is_one_fault() -> None:
    """Earlier runs are those of the configuration, so only the later one is named."""
    sketches = {DAYS[0]: {"m": sketch()}, DAYS[1]: {"m": OTHER_RULES}}
    [fault] = list_disagreements(sketches, ("m",), rules_of())
    assert str(DAYS[1]) in fault
    assert str(DAYS[0]) not in fault


def test_a_header_is_stored_under_the_names_that_published_tables_have() -> None:
    assert {"fullest", "lopsided"} < json.loads(header().encode()).keys()
