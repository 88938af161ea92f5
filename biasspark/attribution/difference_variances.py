"""The variance of the mean difference of two models' attributions, for each set of rows.

    blocks of comparisons --cut at the ranges of the baseline--> rows, placed among regions by the model
        --one shuffle--> rows, placed among regions by both models --> sums of sets

Both models are ranked among the rows that both score, so a row has as many opposite rows for either, and the formulas
for the placements of one model hold for the differences of two. Let E be the difference of the two doubled placements
of a row among all opposite rows, in place of D, and e that among those of the set, in place of d: then the variance is
that of `influence_variance`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from biasspark.arrays import BigInts, Flags, Floats, Ints
from biasspark.attribution.block_sums import Target, meet, rows_with_opposite
from biasspark.attribution.influence import Placed, influence_variance
from biasspark.features import Condition
from biasspark.ranking.kernels.blocks import find_ranges, split_by_range
from biasspark.ranking.kernels.codec import narrow, pack, unpack
from biasspark.ranking.kernels.reference_sets import RankOffsets, count_by_range, place_rows
from biasspark.ranking.kernels.row_block import RowBlock, SmallInts
from biasspark.ranking.range_job import combine_counts, count_ranges, cut_batches, sum_arrays
from biasspark.ranking.row_blocks import BLOCKS_A_TASK, N_GROUPS, Blocks, decode_blocks
from biasspark.ranking.task_rows import Batches, Key, Kind, Part, Parts, list_offsets

MAX_SETS = 16
"""Sets of one job: a row carries 4 or 8 bytes for each of their regions."""

_ROWS_AT_ONCE, _LIMB_BITS = 1 << 16, 18


class Regions(NamedTuple):
    """Disjoint sets of rows, of which nested sets are unions: rows are placed among regions, and placements add up.

    Any two sets nest or exclude each other, and the outer one comes first, as with the nodes of a tree. A region is the
    rows of a set that are in none of the sets within it. `numbers` are the sets whose region has rows. `within`, shape
    (sets, regions), says of which regions each set is the union. `offsets` are by range of the model its rank offsets
    among the rows of each region.
    """

    conditions: Sequence[Condition]
    numbers: Ints
    within: Flags
    offsets: Mapping[int, RankOffsets]

    @classmethod
    def of(
        cls, conditions: Sequence[Condition], offsets: Mapping[int, RankOffsets], chosen: slice = slice(None)
    ) -> Regions:
        """Return the regions of the chosen sets, given the rank offsets of each range among the rows of all sets."""
        conditions = conditions[chosen]
        within = np.array([[_is_within(inner, outer) for inner in conditions] for outer in conditions])

        def count_regions(of_sets: Ints) -> Ints:
            counts: Ints = of_sets.reshape(2, -1)[:, chosen].copy()
            for number in reversed(range(len(conditions))):
                counts[:, number] -= counts[:, number + 1 :][:, within[number, number + 1 :]].sum(axis=1)
            return counts

        of_regions = {number: list(map(count_regions, of_range)) for number, of_range in offsets.items()}
        numbers = np.flatnonzero(next(total for _, total in of_regions.values()).any(axis=0))
        by_range = {
            number: RankOffsets(below[:, numbers].ravel(), total[:, numbers].ravel())
            for number, (below, total) in of_regions.items()
        }
        return cls(conditions, numbers, within[:, numbers], by_range)

    def split(self, bins: SmallInts) -> list[Flags]:
        """Return for each region which cells are in it, given their bins."""
        innermost = np.full(bins.shape[1], -1)
        for number, condition in enumerate(self.conditions):
            innermost[meet(condition, bins)] = number
        return [innermost == number for number in self.numbers]


def _is_within(inner: Condition, outer: Condition) -> bool:
    """Return whether all rows that meet the inner condition meet the outer one."""
    return all(feature in inner and inner[feature] <= bins for feature, bins in outer.items())


def vary_differences(
    blocks: Blocks,
    conditions: Mapping[Target, Sequence[Condition]],
    offsets: Mapping[Target, Mapping[int, RankOffsets]],
    edges: Mapping[int, Floats],
) -> dict[Target, list[float | None]]:
    """Return the variance of the honest mean difference of the rows that meet each condition.

    `conditions` are the sets of comparisons (see `Regions`), `offsets` by target and range of the model its rank
    offsets among the honest rows of each set, and `edges` by number of a comparison the boundaries of its baseline.

    One Spark action for every 16 conditions of a target: a shuffle of the rows of comparisons, of 18 bytes and 4 to 8
    for each region.
    """
    variances: dict[Target, list[float | None]] = {target: [] for target in conditions}
    for start in range(0, max(map(len, conditions.values()), default=0), MAX_SETS):
        chosen = slice(start, start + MAX_SETS)
        regions = {
            target: Regions.of(of_target, offsets[target], chosen)
            for target, of_target in conditions.items()
            if of_target[chosen] and target in offsets
        }
        regions = {target: of_target for target, of_target in regions.items() if len(of_target.numbers)}
        of_chunk = _vary_chunk(blocks, regions, edges) if regions else {}
        for target, of_target in conditions.items():
            variances[target] += of_chunk.get(target, [None] * len(of_target[chosen]))
    return variances


def _vary_chunk(
    blocks: Blocks, regions: Mapping[Target, Regions], edges: Mapping[int, Floats]
) -> dict[Target, list[float | None]]:
    columns = blocks.columns
    n_regions = {(target.model, target.slice): len(of_target.numbers) for target, of_target in regions.items()}

    def cut(batches: Batches) -> Iterator[Part]:
        for model, score_range, block in decode_blocks(batches, columns):
            for target, of_target in regions.items():
                if target.model == model and score_range in of_target.offsets:
                    yield from cut_block(block, target, of_target, of_target.offsets[score_range], edges[model])

    def measure(key: Key, parts: Parts) -> list[tuple[int, bytes]]:
        return [(0, sum_range(parts, n_regions[key[:2]]))] if Kind.ROWS in parts else []

    parts = cut_batches(blocks.frame, cut)
    counts = count_ranges(parts, list(edges.values()), columns.n_slices, measure, BLOCKS_A_TASK)
    combined = combine_counts(counts, sum_arrays, N_GROUPS)
    return {
        target: read_variances(combined.get((target.model, target.slice, 0)), of_target.within)
        for target, of_target in regions.items()
    }


def cut_block(block: RowBlock, target: Target, regions: Regions, offsets: RankOffsets, edges: Floats) -> Iterator[Part]:
    """Place the rows of a block among the regions by the model's scores, and cut them into ranges of the baseline."""
    assert block.baseline is not None
    rows, cells = rows_with_opposite(block, target.slice), block.cells
    if not len(rows):
        return
    number = np.full(cells.size, len(regions.numbers), np.uint8)
    for of_region, inside in enumerate(regions.split(cells.bins)):
        number[inside & cells.honest] = of_region
    region, label, scores = number[block.cell[rows]], block.label[rows], block.baseline.scores[rows]
    placed = place_rows(block.score_index[rows], label, list_regions(region, len(regions.numbers)), offsets)
    known: list[NDArray[Any]] = [scores, label.astype(np.uint8), block.difference(target.slice, rows), region]
    known.append(narrow(placed))
    ranges = find_ranges(scores, edges)
    for score_range, chosen in split_by_range(ranges):
        yield Part(target.model, target.slice, score_range, Kind.ROWS, pack([array[..., chosen] for array in known]))
    sets = (np.flatnonzero((region == index) & (label == value)) for value in (0, 1) for index in range(len(placed)))
    yield from list_offsets(target.model, target.slice, count_by_range(sets, ranges, len(edges) + 1))


def list_regions(region: SmallInts, n_regions: int) -> list[Flags]:
    """Return for each region which rows are in it, given the region of each row."""
    return [region == number for number in range(n_regions)]


def sum_range(parts: Parts, n_regions: int) -> bytes:
    """Place the rows of a range of the baseline among the regions, and return their `multiply_rows`.

    For the negatives, then for the positives, it has the products of each region, and last those of rows in none.
    """
    pieces = zip(*map(unpack, parts[Kind.ROWS]), strict=True)
    arrays = [np.concatenate(of_tasks, axis=-1) for of_tasks in pieces]
    order = np.argsort(arrays[0])
    scores, label, of_all, region, placed = (array[..., order] for array in arrays)
    nobody = np.zeros(2 * n_regions, np.int64)
    offsets = RankOffsets.add_up(parts[Kind.OFFSETS]) if Kind.OFFSETS in parts else RankOffsets(nobody, nobody)
    inside = placed.astype(np.int64) - place_rows(scores, label == 1, list_regions(region, n_regions), offsets)
    products = [
        [
            multiply_rows(of_all[rows], inside[:, rows])
            for rows in (np.flatnonzero((label == value) & (region == number)) for number in range(n_regions + 1))
        ]
        for value in (0, 1)
    ]
    return pack([np.array(products)])


def multiply_rows(of_all: Ints, inside: Ints) -> BigInts:
    """Return the sums over rows of the products of any two of 1, E, and e among each region: Python integers.

    E is `of_all`, int64, shape (n,), and e is `inside`, int64, shape (regions, n); both lie within ±2^36.

    Factors are cut into limbs of 18 bits, so that sums of products over 2^16 rows are whole numbers below 2^53. Doubles
    hold these, and a matrix product of doubles is ten times as fast as one of integers.
    """
    n_factors = 2 + len(inside)
    products = np.zeros((2, n_factors, 2, n_factors), object)
    for start in range(0, len(of_all), _ROWS_AT_ONCE):
        some = slice(start, start + _ROWS_AT_ONCE)
        factors = np.vstack([np.ones_like(of_all[some]), of_all[some], inside[:, some]])
        limbs = np.concatenate([factors & (1 << _LIMB_BITS) - 1, factors >> _LIMB_BITS]).astype(np.float64)
        products += (limbs @ limbs.T).astype(np.int64).astype(object).reshape(products.shape)
    low, high = products
    sums: BigInts = low[:, 0] + (low[:, 1] + high[:, 0] << _LIMB_BITS) + (high[:, 1] << 2 * _LIMB_BITS)
    return sums


def read_variances(data: bytes | None, within: Flags) -> list[float | None]:
    """Return the variance of each set, None where no row counts, given the regions that each set is the union of."""
    if data is None:
        return [None] * len(within)
    [products] = unpack(data)
    return [
        influence_variance(*(_sum_set(of_label, np.flatnonzero(of_set)) for of_label in products)) for of_set in within
    ]


def _sum_set(products: BigInts, regions: Ints) -> Placed:
    """Return the sums over the rows of one label that the variance of a set needs."""
    inside, of_all, members = 2 + regions, products.sum(axis=0), products[regions].sum(axis=0)
    return Placed(
        n=of_all[0, 0],
        k=members[0, 0],
        placed=members[0, 1],
        inside=members[0, inside].sum(),
        squares=members[1, 1],
        crossed=members[1, inside].sum(),
        inside_squares=members[np.ix_(inside, inside)].sum(),
        inside_of_all=of_all[0, inside].sum(),
        inside_squares_of_all=of_all[np.ix_(inside, inside)].sum(),
    )
