"""Pair segments over row blocks: which positives a model fails to tell from which negatives (Attributing, section 6.4).

blocks --lowest hashes of each--> one task for each model and slice --lowest hashes of all--> samples --> tree
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biasspark.arrays import Flags, Floats, Ints
from biasspark.attribution.block_sums import hash_bins
from biasspark.attribution.pair_kernel import Samples, mark_rare_of_sides, segment_pairs, sort_examples
from biasspark.columns import MODEL, NEGATIVE, POSITIVE, SLICE
from biasspark.config.attribution_settings import Pairs
from biasspark.features import Feature, describe_condition, write_predicate
from biasspark.metrics.intervals import auc_interval
from biasspark.ranking.kernels.row_block import RowBlock, SmallInts
from biasspark.ranking.row_blocks import Query, Search
from biasspark.ranking.task_rows import Key


def pair_segments(
    features: Sequence[Feature], names: Mapping[tuple[int, int], tuple[str, str]], settings: Pairs, level: float = 0.95
) -> Search[list[dict[str, Any]]]:
    """Find the rows of the table ``pair_segments``, less the run's columns: for each model and slice a tree over pairs.

    `names` are those of models and slices by their numbers. If no label has two rows, there is no row. No task forms a
    pair: see `pair_kernel`.

    Of each label the rows with the lowest hashes of (seed, row id as text) are drawn: the first `positives`
    (`negatives`) grow the tree, as many others estimate. Fewer than twice as many are halved; an odd one is left out.
    Rows of equal hashes, such as those that repeat an id, are ordered by a hash of their bins and score. So the draw
    depends on the rows alone, and models and slices draw the same rows if they have them and ids do not repeat.

    One query. Of each block and label, at most twice as many rows as a sample holds are shuffled. A task holds those of
    its models and slices.
    """
    most = settings.negatives, settings.positives

    def measure(_: int, _range: int, block: RowBlock) -> Iterator[tuple[int, int, tuple[NDArray[Any], ...]]]:
        for slice_number in range(block.cells.columns.n_slices):
            yield slice_number, 0, _draw_lowest(block, block.rows_of(slice_number), most)

    def combine(key: Key, ranges: Iterator[tuple[NDArray[Any], ...]]) -> list[dict[str, Any]]:
        n_rows, label, drawn, scores, bins = (np.concatenate(arrays, axis=-1) for arrays in zip(*ranges, strict=True))
        n_labels = n_rows.reshape(-1, 2).sum(axis=0).tolist()
        sizes = tuple(min(size, n // 2) for size, n in zip(most, n_labels, strict=True))
        samples = _split_samples(label, drawn, scores, bins, sizes)
        model, name = names[key[:2]]
        marked = mark_rare_of_sides(samples, features, settings)
        nodes = segment_pairs(samples, marked, settings) if any(sizes) else []
        for node in nodes:
            node |= {MODEL: model, SLICE: name}
            for side, condition, one_side in zip((NEGATIVE, POSITIVE), node.pop("conditions"), marked, strict=True):
                node[f"{side}_rule"] = describe_condition(condition, one_side)
                node[f"{side}_predicate"] = write_predicate(condition, one_side)
        return nodes

    combined = yield Query(measure, combine)
    nodes = [node for _, of_slice in sorted(combined.items()) for node in of_slice]
    auc, variance = (np.array([node[f"{name}_honest"] for node in nodes], np.float64) for name in ("mean", "variance"))
    n_low, n_high = (np.array([node[f"n_{side}s_honest"] for node in nodes], np.int64) for side in (NEGATIVE, POSITIVE))
    low, high, _ = auc_interval(auc, variance, n_low, n_high, level)
    for node, *ends in zip(nodes, low.tolist(), high.tolist(), strict=True):
        node["mean_honest_low"], node["mean_honest_high"] = ends
    return nodes


def _draw_lowest(block: RowBlock, rows: Ints, most: tuple[int, int]) -> tuple[NDArray[Any], ...]:
    """Return the rows of either label with the lowest hashes, twice as many as a sample holds."""
    n_rows, chosen = [], []
    for label, size in zip((False, True), most, strict=True):
        candidates = rows[block.label[rows] == label]
        n_rows.append(len(candidates))
        if len(candidates) > 2 * size:
            hashes = block.draws[candidates]
            candidates = candidates[hashes <= np.partition(hashes, 2 * size - 1)[2 * size - 1]]
            bins = block.cells.bins[:, block.cell[candidates]]
            candidates = candidates[_order(block.draws[candidates], block.scores[candidates], bins)[: 2 * size]]
        chosen.append(candidates)
    drawn = np.concatenate(chosen)
    bins, labels = block.cells.bins[:, block.cell[drawn]], block.label[drawn]
    return np.array(n_rows), labels, block.draws[drawn], block.scores[drawn], bins


def _order(drawn: Ints, scores: Floats, bins: SmallInts) -> Ints:
    """Return the order of rows by hash. Rows of equal hashes are in one that has nothing to do with their scores."""
    used = np.vstack([bins.astype(np.uint64), scores.view(np.uint64)])
    return np.lexsort([*bins[::-1], scores, hash_bins(used), drawn])  # the last key counts first


def _split_samples(label: Flags, drawn: Ints, scores: Floats, bins: SmallInts, sizes: tuple[int, ...]) -> Samples:
    """Return the rows of each label with the lowest hashes, which grow the tree, and the next, which estimate."""
    order = _order(drawn, scores, bins)
    by_label = [order[label[order] == value] for value in (False, True)]
    train, honest = (
        [
            sort_examples(scores[chosen], bins[:, chosen])
            for ordered, size in zip(by_label, sizes, strict=True)
            for chosen in [ordered[first * size : (first + 1) * size]]
        ]
        for first in (0, 1)
    )
    return Samples(train, honest)
