"""Who is in which identity, against one row and one identity at a time."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from biasspark.corpus.encoding import Encoding, Source, any_term
from biasspark.errors import InputError
from biasspark.ranking.memberships import Memberships, read_annotations
from biasspark.ranking.task_rows import TaskRows
from tests.harness import ranking_without_spark as local
from tests.harness.ranking_without_spark import array, category, encoding_of, flags
from tests.oracle.pairs import State, cross_all


def spellings(terms: Mapping[str, Sequence[str]]) -> Source:
    return Source("terms", "terms", True, tuple(terms), tuple(map(any_term, terms.values())))


def batch_of(
    encoding: Encoding, states: Mapping[str, Sequence[State]], values: Mapping[int, Sequence[Any]]
) -> pa.RecordBatch:
    rows = max(map(len, [*states.values(), *values.values()]))
    return local.pack(encoding, local.membership_fields(encoding, states, values), [np.zeros(rows)], values)


def memberships_of(encoding: Encoding, batch: pa.RecordBatch) -> Memberships:
    return TaskRows(pa.Table.from_batches([batch]), encoding).memberships


def want_states(encoding: Encoding, singles: Mapping[str, Sequence[State]]) -> list[list[State]]:
    """Give what the states of the single identities say of all, pairs included; nobody is in number 0."""
    rows = [list(row) for row in zip(*(singles[name] for name in encoding.singles), strict=True)]
    return [[False, *(cross_all(row) if encoding.pairs else row)] for row in rows]


def random_states(rng: np.random.Generator, rows: int, unknown: float) -> list[State]:
    return [None if rng.random() < unknown else bool(rng.random() < 0.4) for _ in range(rows)]


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("n_identities", [25, 31, 32, 70, 130])
def test_more_flags_than_a_word_has_bits(n_identities: int, nullable: bool) -> None:
    """Of which one is the highest where each flag has a single bit."""
    rng = np.random.default_rng(n_identities)
    names = [f"i{n}" for n in range(n_identities)]
    encoding = encoding_of(flags(*names, nullable=nullable), slices=4)
    states = {name: random_states(rng, 12, 0.3 * nullable) for name in names}
    assert len(encoding.word_columns) == -(-((1 + nullable) * n_identities + 8 + 2) // 63)
    assert nullable or n_identities < 63 or 62 in {field.shift for field in encoding.fields.values()}
    assert local.find_states(encoding, batch_of(encoding, states, {})) == want_states(encoding, states)


def test_no_rows_and_no_members() -> None:
    encoding = encoding_of(flags("a"), category("c", "x"), array("g", "u"), spellings({"t": ["t"]}), crossed=True)
    rows: list[dict[int, list[Any]]] = [
        {1: [], 2: [], 3: []},
        {1: [None], 2: [None], 3: [None]},
        {1: [None], 2: [[]], 3: [[]]},
    ]
    for values in rows:
        states = {"a": [False] * len(values[1])}
        entries = memberships_of(encoding, batch_of(encoding, states, values))
        assert entries.row.tolist() == []
        assert {column.dtype for column in entries} == {np.dtype(np.int64)}


@pytest.mark.parametrize(
    ("source", "column", "wanted"),
    [
        (
            category("race", "Asian", ""),
            ["Asian", None, "", "Asian"],
            {"race=Asian": [True, None, False, True], "race=": [False, None, True, False]},
        ),
        (
            array("groups", "u", "v"),
            [["u", "u", "v"], None, [], [None], [None, "v", None], ["u"]],
            {"u": [True, None, False, False, False, True], "v": [True, None, False, False, True, False]},
        ),
        (category("c", "x", nullable=False), ["x", None], {"c=x": [True, False]}),
        (array("g", "u", nullable=False), [None, ["u"]], {"u": [False, True]}),
        # The scan reports the longest term at each place in the text, and each place by itself.
        (
            spellings({name: [name] for name in ("african", "american", "african american")}),
            [["African American", "American"], ["african"], ["AMERICAN"], [], None],
            {
                "african": [True, True, False, False, None],
                "american": [True, False, True, False, None],
                "african american": [True, False, False, False, None],
            },
        ),
        (
            spellings({"women": ["woman", "girl"], "young": ["girl", "boy"], "c": ["c"], "c++": ["c++"]}),
            [["Girl"], ["woman", "boy"], ["C++"], ["c", "c", "girl"]],
            {
                "women": [True, True, False, True],
                "young": [True, True, False, True],
                "c": [False, False, True, True],
                "c++": [False, False, True, False],
            },
        ),
        (
            spellings({"ab": ["ab"], "ab cd": ["ab cd"], "abc": ["abc"]}),
            [["abc"], ["Ab Cd"]],
            {"ab": [False, True], "ab cd": [False, True], "abc": [True, False]},
        ),
    ],
    ids=["category", "array", "category, known", "array, known", "nested terms", "groups", "whole words"],
)
def test_who_has_a_value_or_a_term(source: Source, column: list[Any], wanted: dict[str, list[State]]) -> None:
    encoding = encoding_of(source)
    assert local.find_states(encoding, batch_of(encoding, {}, {0: column})) == want_states(encoding, wanted)


@pytest.mark.parametrize(
    "source", [category("race", "Asian", "Black"), array("race", "Asian", "Black")], ids=lambda source: source.kind
)
def test_a_value_that_the_survey_did_not_see(source: Source) -> None:
    encoding = encoding_of(source)
    column = ["Asian", "secret value"] if source.kind == "category" else [["Asian"], ["Black", "secret value"]]
    with pytest.raises(InputError) as caught:
        local.find_states(encoding, batch_of(encoding, {}, {0: column}))
    assert "'race'" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_columns_that_are_slices_of_longer_ones() -> None:
    encoding = encoding_of(category("c", "x", "y"), array("g", "u", "v"))
    columns: dict[int, list[Any]] = {0: ["x", "y", None, "x", "y"], 1: [["u"], None, ["v", "u"], [], ["v"]]}
    whole = batch_of(encoding, {}, columns)
    part = batch_of(encoding, {}, {place: column[2:4] for place, column in columns.items()})
    assert local.find_states(encoding, whole.slice(2, 2)) == local.find_states(encoding, part)


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_sources_that_are_unknown_on_different_rows_and_their_pairs(seed: int, crossed: bool) -> None:
    """Entries of single identities come in the order of rows and identities."""
    rng = np.random.default_rng(seed)
    sources = [
        flags("a", "b"),
        category("c", "x", "y"),
        array("g", "u", "v"),
        flags("p", nullable=False, name="predicates"),
        spellings({"gay": ["gay"], "gay_man": ["gay man"]}),
    ]
    encoding, rows = encoding_of(*sources, crossed=crossed), 60
    states = {name: random_states(rng, rows, 0.4) for name in "ab"} | {"p": random_states(rng, rows, 0)}
    values: dict[int, list[Any]] = {
        1: rng.choice(np.array([None, "x", "y"], object), rows).tolist(),
        2: [[None, [], ["u"], ["v", "u", "v"], ["u", None]][rng.integers(5)] for _ in range(rows)],
        4: [[None, [], ["Gay"], ["gay man", "GAY"]][rng.integers(4)] for _ in range(rows)],
    }
    singles = dict(states)
    singles |= {f"c={name}": [value and value == name for value in values[1]] for name in "xy"}
    singles |= {name: [None if held is None else name in held for held in values[2]] for name in "uv"}
    singles |= {
        name: [None if held is None else any(re.match(pattern, text, re.I) for text in held) for held in values[4]]
        for name, pattern in (("gay", "gay"), ("gay_man", "gay man"))
    }
    batch = batch_of(encoding, states, values)
    assert local.find_states(encoding, batch) == want_states(encoding, singles)
    entries = memberships_of(encoding, batch)
    pairs = list(zip(entries.row.tolist(), entries.identity.tolist(), strict=True))
    assert crossed or pairs == sorted(pairs)


@pytest.mark.parametrize("odd", [[], [None], [math.nan], [1.5, -0.1, 0.7], [None, math.nan, math.inf]])
def test_numbers_are_members_from_the_lowest_value_on(odd: list[float | None]) -> None:
    values = [0.2, 0.0, 0.5, 1.0, *odd, -0.0]
    column = pa.array([9.0, *values], pa.float64()).slice(1)  # with an offset
    batches = [pa.record_batch({"x": part}) for part in (column, column.slice(0, 0), column)]
    all_unknown = np.ones(2 * len(values), bool)
    annotations = read_annotations(batches, {3: ("x", 0.5)}, all_unknown)
    twice = values * 2
    unknown = [value is None or math.isnan(value) for value in twice]
    known = [(row, value) for row, value in enumerate(twice) if value is not None and not math.isnan(value)]
    assert annotations.unknown.tolist() == unknown
    assert annotations.by_identity[3].members.tolist() == [row for row, value in known if value >= 0.5]
    assert annotations.by_identity[3].off_scale.tolist() == [row for row, value in known if not 0 <= value <= 1]
    assert annotations.by_identity[3].unknown.tolist() == []
