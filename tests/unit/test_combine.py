"""From single ranges to the whole score line, against all ranges in one."""

from __future__ import annotations

import numpy as np
import pytest

from biasspark.columns import CELL_PAIRS
from biasspark.ranking.blocks import sort_cells, sort_memberships
from biasspark.ranking.combine import combine_ranges, decode_sums, encode_sums
from biasspark.ranking.placements import CELLS_OF_PAIRS, PairSums, RangeSums, measure_range, membership_key, no_sums
from tests.oracle.pairs import CELLS, Example, count_identity, count_pairs
from tests.ranking_without_spark import six_pairs


def random_examples(seed: int, rows: int, identities: int = 3) -> list[Example]:
    rng = np.random.default_rng(seed)
    return [
        Example(
            float(rng.integers(0, 12)) / 4,
            bool(rng.random() < 0.4),
            tuple(bool(state) for state in rng.random(identities) < 0.3),
        )
        for _ in range(rows)
    ]


def measure(examples: list[Example], boundaries: np.ndarray, identities: int = 3) -> list[RangeSums]:
    """Measure every range on its own; all identities are known on all rows."""
    scores = np.array([example.score for example in examples])
    labels = np.array([example.positive for example in examples], np.int64)
    members = np.array([example.states for example in examples], bool)
    row, identity = np.nonzero(members)
    keys = membership_key(identity, np.zeros_like(identity), labels[row])
    memberships = dict(sort_memberships(keys, scores[row], boundaries))
    return [
        measure_range([block], [memberships[place]] if place in memberships else [], [0] * identities)[0]
        for place, block in sort_cells(labels, scores, boundaries)
    ]


def sums_of(value: int, identities: int = 2) -> RangeSums:
    """Sums in which every number differs, the first being `value`."""
    numbers = iter(range(value, value + 22 * identities))
    cells = [np.array([next(numbers) for _ in range(identities)], object) for _ in range(22)]
    return RangeSums(tuple(cells[:4]), tuple(PairSums(*cells[place : place + 3]) for place in range(4, 22, 3)))


def flatten(sums: RangeSums) -> list[list[int]]:
    return [column.tolist() for column in (*sums.cells, *(column for pair in sums.pairs for column in pair))]


def test_pairs_stand_in_the_order_of_the_table() -> None:
    assert tuple((CELLS[low], CELLS[high]) for low, high in CELLS_OF_PAIRS) == CELL_PAIRS


@pytest.mark.parametrize("cuts", [[], [1.0], [0.25, 0.5, 0.75], np.arange(0, 3, 0.25), [-5.0, 1.1, 50.0]], ids=len)
@pytest.mark.parametrize("seed", range(6))
def test_any_cut_gives_what_the_pairs_give(seed: int, cuts: list[float]) -> None:
    examples = random_examples(seed, 40)
    sums = combine_ranges(measure(examples, np.asarray(cuts, float)))
    for identity in range(3):
        assert six_pairs(sums, identity) == count_identity(examples, identity)


def test_an_identity_in_one_range_only_has_its_background_everywhere() -> None:
    examples = [Example(float(place), place % 2 == 0, (place == 3, False, True)) for place in range(8)]
    sums = combine_ranges(measure(examples, np.arange(1.0, 8)))
    for identity in range(3):
        assert six_pairs(sums, identity) == count_identity(examples, identity)


def test_one_range_is_left_as_it_is() -> None:
    [alone] = measure(random_examples(1, 20), np.empty(0))
    assert flatten(combine_ranges([alone])) == flatten(alone)


def test_pairs_across_ranges_of_thousands_of_millions_of_rows() -> None:
    """Each range a tie of one label and state: all that differs between ranges is offsets."""
    rows = [3 * 10**9, 7 * 10**9, 10**10, 2 * 10**9]
    labels, states = [False, True, False, True], [True, True, False, False]
    examples = [
        Example(float(place), label, (state,), count)
        for place, (label, state, count) in enumerate(zip(labels, states, rows, strict=True))
    ]
    ranges = []
    for place, (label, state) in enumerate(zip(labels, states, strict=True)):
        sums = no_sums(1)
        cell = (0 if state else 2) + label
        sums.cells[cell][0] = rows[place]
        ranges.append(sums)
    assert six_pairs(combine_ranges(ranges), 0) == count_identity(examples, 0)
    subgroup = six_pairs(combine_ranges(ranges), 0)[0]
    assert subgroup == count_pairs(examples[:1], examples[1:2])
    assert subgroup.u_doubled == 2 * 3 * 10**9 * 7 * 10**9 > 2**64  # U itself passes 63 bits


@pytest.mark.parametrize("value", [0, 1, 2**31 - 5, 2**62 - 20, 2**63 - 20, 2**64, 2**100, 2**125 - 100])
def test_sums_of_any_size_read_back(value: int) -> None:
    assert flatten(decode_sums(encode_sums(sums_of(value), range(2)))) == flatten(sums_of(value))


def test_sums_are_read_back_as_python_integers() -> None:
    found = decode_sums(encode_sums(sums_of(7), range(2)))
    assert {type(value) for column in flatten(found) for value in column} == {int}
    assert len(encode_sums(sums_of(7), range(2))) == 2 * 8 * 22 * 2


def test_sums_of_some_identities_read_back() -> None:
    sums = sums_of(2**63, identities=5)
    found = decode_sums(encode_sums(sums, range(1, 4)))
    assert flatten(found) == [column[1:4] for column in flatten(sums)]


def test_a_score_line_without_rows() -> None:
    assert flatten(no_sums(3)) == [[0, 0, 0]] * 22
    [alone] = measure(random_examples(1, 20), np.empty(0))
    assert flatten(combine_ranges([no_sums(3), alone, no_sums(3)])) == flatten(alone)
