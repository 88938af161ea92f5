"""Exact moments, products and sums by cell, against fractions."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasspark.attribution.block_sums import CellSums, SummedValue, Target, count_block_cells
from biasspark.attribution.moments import LARGEST_BITS, cut_moments, read_moments
from biasspark.attribution.slice_search import count_cells
from biasspark.ranking.kernels.exact import dot
from tests.fixtures.ranked_rows import Ranked, blocks_of, cut_blocks, draw_examples, find
from tests.harness.grown_trees import feature_of
from tests.oracle import attribution as oracle


@given(values=st.lists(st.floats(-64, 64) | st.sampled_from([64.0, -64.0, 1e-300, 2.0**-58, -1 / 3]), max_size=20))
def test_moments_are_exact(values: list[float]) -> None:
    """Of the nearest multiples of 2^-57."""
    rounded = [oracle.round_to_units(value, 57) for value in values]
    moments = read_moments(cut_moments(np.array(values, np.float64)).sum(axis=1), len(values))
    assert (moments.n, Fraction(moments.total)) == (len(values), sum(rounded))
    assert Fraction(moments.squares) == sum(value**2 for value in rounded)


@pytest.mark.parametrize("value", [64.0, -64.0, 34.538776394910684, 1 / 3])
def test_equal_values_do_not_vary_however_many(value: float) -> None:
    """The limbs of 2^31 rows fit int64."""
    n = 2**31
    sums = cut_moments(np.array([value]))[:, 0].tolist()
    assert max(map(abs, sums)) * n < 2**63
    moments = read_moments([limb * n for limb in sums], n)
    assert (moments.mean, moments.variance) == (value, 0.0)


@pytest.mark.parametrize("bits", [8, 30, 31, 61, 62])
@given(data=st.data())
def test_products_are_exact(bits: int, data: st.DataObject) -> None:
    """Those whose sum fits 63 bits, those that fit alone, and those that do not."""
    factors = st.integers(-(2**bits), 2**bits)
    pairs = data.draw(st.lists(st.tuples(factors, factors), max_size=30))
    first, second = (np.array([pair[n] for pair in pairs], np.int64) for n in (0, 1))
    assert dot(first, second) == sum(a * b for a, b in pairs)


def test_cells_of_all_blocks_are_joined_and_split_into_parts() -> None:
    """A cell is in one part, whatever the blocks, and has the rows of its bins and of its half."""
    features = feature_of("x", 6, numeric=True, nullable=True), feature_of("k", 3, nullable=True)
    rows, value = draw_examples(4, 200, features), SummedValue(Target(0, 0, "auc"), 20, 1 << 18)
    wholes, blocks = ([*cut_blocks(rows, edges).values()] for edges in ([], [0.3, 0.6]))
    whole, several = (
        CellSums.join([CellSums.of(block, 0, [value]) for block in listed]) for listed in (wholes, blocks)
    )
    parts = [sums_by_cell(part, value) for _, part in several.split(3)]
    assert {cell: sums for part in parts for cell, sums in part.items()} == sums_by_cell(whole, value)
    assert sum(map(len, parts)) == whole.cells.size < sum(block.cells.size for block in blocks)
    n_rows = {cell: sums[0] for part in parts for cell, sums in part.items()}
    assert n_rows == Counter((row.honest, *row.bins) for row in rows)
    assert find(blocks_of([Ranked(rows, [0.3, 0.6])]), count_block_cells()) == sum(block.cells.size for block in blocks)


def sums_by_cell(part: CellSums, value: SummedValue) -> dict[tuple[int, ...], list[int]]:
    keys = zip(part.cells.honest.tolist(), *part.cells.bins.tolist(), strict=True)
    return dict(zip(keys, part.sums[value].T.tolist(), strict=True))


def test_cells_are_counted_for_slices() -> None:
    """Cells of the same bins have the same hash, of 50 bits, whatever else differs; cells of other bins have others."""
    features = feature_of("x", 6, numeric=True, nullable=True), feature_of("k", 3, nullable=True)
    (block,) = cut_blocks(draw_examples(4, 200, features)).values()
    value, cells = SummedValue(Target(0, 0, "auc"), 20, 1 << 18), block.cells
    sums = CellSums.of(block, 0, [value]).sums[value]
    *counts, hashes = count_cells(cells, sums, 49 - LARGEST_BITS)
    train = np.where(cells.honest, 0, sums)
    assert np.array_equal(counts, [train[0], sums[0] - train[0], *train[1:]])
    pairs = set(zip(map(tuple, cells.bins.T.tolist()), (hashes // sums[0]).tolist(), strict=True))
    assert len(pairs) == len({bins for bins, _ in pairs}) == len({one for _, one in pairs}) < cells.size
    assert max(one for _, one in pairs) < 2**50
