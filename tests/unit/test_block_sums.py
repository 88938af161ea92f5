"""What rows add up to, by cell, by set and by bin, and exact moments: against fractions and loops over the rows."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasspark.arrays import Ints
from biasspark.attribution import block_sums
from biasspark.attribution.block_sums import CellSums, SummedValue, Target, add_by_code, join_sums
from biasspark.attribution.moments import LARGEST_BITS, cut_moments, read_moments
from biasspark.attribution.slice_search import count_cells
from biasspark.attribution.trees import measure_bins
from biasspark.config.attribution_settings import TreeSettings
from biasspark.features import Feature
from biasspark.ranking.kernels.exact import dot
from biasspark.ranking.kernels.row_block import RowBlock
from tests.fixtures.ranked_rows import cut_blocks, draw_examples
from tests.harness.grown_trees import Sample, grow_sample
from tests.oracle import attribution as oracle

FEATURES = (
    Feature("x", "x", numeric=True, values=tuple(map(float, range(6))), nullable=True),
    Feature("k", "k", numeric=False, values=tuple("abc"), nullable=True),
)


# ---- exact sums


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


# ---- by cell, by bin, by node


def sum_columns(block: RowBlock, rows: Ints, units: Ints, ceiling: int = 0) -> Ints:
    columns = [np.ones(len(rows), np.int64), units, np.maximum(ceiling - units, 0)]
    return add_by_code(block.cell[rows], columns, block.cells.size)


def test_nodes_and_bins_of_a_deep_tree() -> None:
    """Histograms are of the leaf's rows alone."""
    rows = draw_examples(4, 600, FEATURES)
    values, honest = np.random.default_rng(6).integers(0, 99, 600), np.array([row.honest for row in rows])
    sample = Sample(np.array([row.bins for row in rows]), values, honest)
    tree = grow_sample(sample, FEATURES, TreeSettings(max_depth=9, min_leaf=1))
    leaves = [node for node in tree if node.split is None]
    assert max(leaf.node_id for leaf in leaves) > 1 << 6
    (block,) = cut_blocks(rows).values()
    in_order = np.argsort([row.score for row in rows], kind="stable")
    sample = Sample(sample.bins[in_order], sample.values[in_order], sample.honest[in_order])
    sums = sum_columns(block, np.arange(600), sample.values)
    for leaf in leaves:
        inside = sample.inside(leaf.condition)
        histograms = measure_bins(block.cells, sums, leaf.condition, FEATURES)
        for number, (feature, histogram) in enumerate(zip(FEATURES, histograms, strict=True)):
            for bin_ in range(feature.n_bins):
                of_bin = inside & (sample.bins[:, number] == bin_)
                train = of_bin & ~sample.honest
                expected = train.sum(), sample.values[train].sum(), (of_bin & sample.honest).sum()
                assert tuple(column[bin_] for column in histogram) == expected


def test_rows_are_counted_for_slices() -> None:
    rows = sorted(draw_examples(4, 200, FEATURES), key=lambda row: row.score)
    (block,) = cut_blocks(rows).values()
    inside = block.rows_of(1)
    units = np.random.default_rng(2).integers(-99, 99, len(inside))
    sums = sum_columns(block, inside, units, 40)
    n_train, n_honest, totals, bounds, hashes = count_cells(block.cells, sums, 49 - LARGEST_BITS).tolist()
    values = dict(zip(inside.tolist(), units.tolist(), strict=True))
    fingerprints: dict[tuple[int, ...], set[float]] = {}
    for cell in range(block.cells.size):
        members = [row for row in values if block.cell[row] == cell]
        train = [values[row] for row in members if not rows[row].honest]
        assert (n_train[cell], n_honest[cell]) == (len(train), len(members) - len(train))
        assert (totals[cell], bounds[cell]) == (sum(train), sum(max(40 - value, 0) for value in train))
        if members:
            one = hashes[cell] / len(members)
            assert 0 <= one < 2**50
            fingerprints.setdefault(tuple(block.cells.bins[:, cell].tolist()), set()).add(one)
    # Rows of the same bins have the same hash, whatever else is known of them; others have others.
    assert all(len(of_bins) == 1 for of_bins in fingerprints.values())
    assert len(set.union(*fingerprints.values())) == len(fingerprints)


def add_cells(parts: Iterable[CellSums]) -> dict[tuple[int, ...], dict[SummedValue, Ints]]:
    """The sums of each cell that has rows of a value."""
    totals: dict[tuple[int, ...], dict[SummedValue, Ints]] = {}
    for cells, sums in parts:
        for value, of_value in sums.items():
            for cell, column in zip(map(tuple, cells.values.T.tolist()), of_value.T, strict=True):
                if column[0]:
                    of_cell = totals.setdefault(cell, {})
                    of_cell[value] = of_cell.get(value, 0) + column
    return totals


@pytest.mark.parametrize(("at_once", "n_joined"), [(1, 5), (300, 2), (10_000, 1)])
def test_joined_blocks_have_the_sums_of_all_rows(monkeypatch: pytest.MonkeyPatch, at_once: int, n_joined: int) -> None:
    """However many cells are joined; no row of the first block is in the slice of the second value."""
    monkeypatch.setattr(block_sums, "CELLS_AT_ONCE", at_once)
    values = [SummedValue(Target(0, part, "auc"), 20, 1 << 18) for part in (0, 1)]
    first, *others = cut_blocks(draw_examples(7, 400, FEATURES), [0.2, 0.4, 0.6, 0.8]).values()
    parts = [CellSums.of(first, 0, values[:1]), *(CellSums.of(block, 0, values) for block in others)]
    joined = [*join_sums(parts)]
    assert len(joined) == n_joined
    both = [add_cells(sums) for sums in (parts, joined)]
    expected, actual = ({cell: {v: tuple(s) for v, s in of.items()} for cell, of in one.items()} for one in both)
    assert actual == expected
