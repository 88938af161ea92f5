"""Pair segments without pairs: which positives a model fails to tell from which negatives (Attributing, section 6.4).

    blocks --lowest hashes of each--> one task for each model and slice --lowest hashes of all--> samples --> tree

A pair is a negative and a positive. Its label is 1 if the positive scores higher, 0 if it scores lower, and 1/2 if they
tie. The tree explains labels by least squares, so a tie pulls the mean of its node towards 1/2. Labels are kept
doubled, as 2, 0 and 1.

A node is a set of negatives times a set of positives. The doubled labels of its pairs whose positive is in bin b of a
feature add up to the doubled placements of those positives among the node's negatives,

    Σ_{i positive in b} d_i,  d_i = 2·#{j: s_j < s_i} + #{j: s_j = s_i},

and those whose negative is in b likewise to Σ_{j negative in b} d_j, d_j = 2·#{i: s_i > s_j} + #{i: s_i = s_j}. Cuts
are chosen by these sums alone. So a tree over 10,000 times 10,000 pairs is grown by looking up 20,000 scores in sorted
ones, and is the tree that the cross join would give. The mean label of a node is the AUC of its positives against its
negatives.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from biasspark.arrays import Flags, Floats, Ints
from biasspark.attribution.block_sums import hash_bins
from biasspark.attribution.influence import NEGATIVES, POSITIVES
from biasspark.attribution.pair_significance import Draws, PlacedAuc, compare_samples, compare_with_all
from biasspark.attribution.segments import decide
from biasspark.attribution.trees import ROOT, BinSums, Split, best_split, list_node_columns
from biasspark.columns import MODEL, NEGATIVE, POSITIVE, SLICE
from biasspark.config.attribution_settings import Pairs
from biasspark.features import Condition, Feature, list_rule, mark_rare
from biasspark.metrics.intervals import delong_part, interval_of_auc
from biasspark.ranking.kernels.row_block import RowBlock, SmallInts
from biasspark.ranking.kernels.sorted_runs import place_among
from biasspark.ranking.row_blocks import Query, Search
from biasspark.ranking.task_rows import Key


class Examples(NamedTuple):
    """Examples of one label, ascending by score. Bins have the shape (features, rows); `rows` are by number."""

    scores: Floats
    bins: SmallInts
    rows: Ints


Sample: TypeAlias = Sequence[Examples]
"""Negatives and positives."""
Sides: TypeAlias = Sequence[Sequence[Feature]]
"""The features of negatives and of positives: the same, except for the values that are rare."""


class Samples(NamedTuple):
    """Independent samples: one grows the tree, the other estimates."""

    train: Sample
    honest: Sample


class PairNode(NamedTuple):
    """A condition on negatives and one on positives, and the examples of both samples that meet them."""

    node_id: int
    is_leaf: bool
    conditions: Sequence[Condition]
    samples: Samples


def sort_examples(scores: Floats, bins: SmallInts) -> Examples:
    """Sort the examples of one label by score, and number them."""
    order = np.argsort(scores, kind="stable")
    return Examples(scores[order], bins[:, order], np.arange(len(order)))


def grow_and_measure(samples: Samples, features: Sides, settings: Pairs) -> list[dict[str, Any]]:
    """Grow a tree over all pairs of the training sample, and estimate and test its nodes on the honest one.

    Returns every node by number, the root first: the columns of ``pair_segments``, with ``conditions`` in place of
    their texts, and ``variance_honest``. The same for any order of the rows. If a sample lacks a label, only the root,
    with None for what cannot be computed. A sample has up to a million rows per side: sums of squared placements are
    kept in 63 bits.

    A split is on one feature of one side: of all features of the negatives, then of the positives, the first whose
    best cut explains most.

    Leaves are decided on together: see `segments.decide`. A leaf that cannot be tested is not found.

    Time: for each node a search of its rows' scores, and a count of their bins. Memory: the examples of each node of a
    path, never a pair.
    """
    overall = measure_auc(samples.honest)
    draws = Draws.of(overall, *(side.scores for side in samples.honest))
    segments = [_measure(node, overall, draws) for node in _grow_tree(samples, features, settings)]
    return decide(sorted(segments, key=itemgetter("node_id")))


def _grow_tree(samples: Samples, features: Sides, settings: Pairs) -> Iterator[PairNode]:
    """Yield every node, depth first, so that few are held at a time."""
    n_pairs = math.prod(len(side.scores) for side in samples.train)
    min_pairs = -(-n_pairs // 10) if settings.min_leaf is None else settings.min_leaf
    waiting = [PairNode(ROOT, True, ({}, {}), samples)]
    while waiting:
        node = waiting.pop()
        is_deepest = node.node_id.bit_length() > settings.max_depth
        best = None if is_deepest else _best_split(node, features, min_pairs, max(settings.min_side, 1))
        yield node._replace(is_leaf=best is None)
        if best:
            waiting += _divide(node, *best)


def measure_auc(sample: Sample) -> PlacedAuc:
    """Return the AUC of these positives against these negatives, and its variance by DeLong, of parts rounded once.

    With doubled placements d of either side against the rows of the other, U = Σd / 2 from either side.
    """
    placements = _place(sample)
    sizes = n_negatives, n_positives = len(placements[NEGATIVES]), len(placements[POSITIVES])
    total, variance = int(placements[POSITIVES].sum()), None
    if min(sizes) >= 2:
        negative_part, positive_part = (
            float(delong_part(len(d), n_opposite, total, int(np.square(d).sum())))
            for d, n_opposite in zip(placements, reversed(sizes), strict=True)
        )
        variance = negative_part + positive_part
    return PlacedAuc(placements, total / (2 * n_negatives * n_positives) if min(sizes) else None, variance)


def _place(sample: Sample) -> tuple[Ints, Ints]:
    """Return the doubled placements of the negatives, counted from above, and of the positives."""
    negatives, positives = (side.scores for side in sample)
    return 2 * len(positives) - place_among(negatives, positives), place_among(positives, negatives)


def _best_split(node: PairNode, features: Sides, min_pairs: int, min_rows: int) -> tuple[int, Split] | None:
    """Return the side and the best split that leaves enough training pairs, and rows per side in both samples."""
    if min(len(side.scores) for sample in node.samples for side in sample) < min_rows:
        return None
    splits: list[tuple[int, Split]] = []
    train = node.samples.train
    for side, placements in enumerate(_place(train)):
        n_opposite = len(train[1 - side].scores)
        sums = []
        for feature, *bins in zip(features[side], *(sample[side].bins for sample in node.samples), strict=True):
            held = np.stack([np.bincount(column, minlength=feature.n_bins) for column in bins], axis=1)
            # Sums of fewer than 2^53 units: a double holds them exactly.
            placed = np.bincount(bins[0], placements, feature.n_bins).astype(np.int64)
            sums.append(BinSums(held[:, 0] * n_opposite, placed, held))
        least = np.array([max(min_rows, -(-min_pairs // n_opposite)), min_rows])
        split = best_split(features[side], sums, least, node.conditions[side])
        if split:
            splits.append((side, split))
    return max(splits, key=lambda choice: choice[1].gain, default=None)


def _divide(node: PairNode, side: int, split: Split) -> Iterator[PairNode]:
    for child_id, bins in enumerate((split.left, split.right), 2 * node.node_id):
        conditions, samples = list(node.conditions), [list(sample) for sample in node.samples]
        conditions[side] = {**conditions[side], split.feature: bins}
        for sample in samples:
            scores, all_bins, rows = sample[side]
            inside = np.isin(all_bins[split.feature], list(bins))
            sample[side] = Examples(scores[inside], all_bins[:, inside], rows[inside])
        yield PairNode(child_id, True, conditions, Samples(*samples))


def _measure(node: PairNode, overall: PlacedAuc, draws: Draws | None) -> dict[str, Any]:
    train, honest = map(measure_auc, node.samples)
    is_root = node.node_id == ROOT
    n_honest = len(honest.placements[NEGATIVES]), len(honest.placements[POSITIVES])
    return {
        **list_node_columns(node.node_id, node.is_leaf),
        "conditions": node.conditions,
        "n_pairs_train": math.prod(map(len, train.placements)),
        "mean_train": train.value,
        "n_negatives_honest": n_honest[NEGATIVES],
        "n_positives_honest": n_honest[POSITIVES],
        "mean_honest": honest.value,
        "variance_honest": honest.variance,
        "p_value": None if is_root else compare_with_all(honest, overall, [side.rows for side in node.samples.honest]),
        "p_train_honest": compare_samples(train, honest),
        "p_chance": None if is_root or honest.value is None or not draws else draws.p_value(honest.value, n_honest),
    }


# ---- samples of blocks


def pair_segments(
    features: Sequence[Feature], names: Mapping[tuple[int, int], tuple[str, str]], settings: Pairs, level: float = 0.95
) -> Search[list[dict[str, Any]]]:
    """Find the rows of the table ``pair_segments``, less the run's columns: for each model and slice a tree over pairs.

    `names` are those of models and slices by their numbers. If no label has two rows, there is no row.

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
        label, drawn, scores, bins = (np.concatenate(arrays, axis=-1) for arrays in zip(*ranges, strict=True))
        samples = _split_samples(label, drawn, scores, bins, most)
        model, name = names[key[:2]]
        marked = [
            [
                mark_rare(feature, np.bincount(bins, minlength=feature.n_bins).tolist(), settings.min_side)
                for feature, bins in zip(features, side.bins, strict=True)
            ]
            for side in samples.train
        ]
        nodes = grow_and_measure(samples, marked, settings) if any(len(side.scores) for side in samples.train) else []
        for node in nodes:
            n_rows = node["n_negatives_honest"], node["n_positives_honest"]
            low, high, _ = interval_of_auc(node["mean_honest"], node["variance_honest"], *n_rows, level)
            node |= {MODEL: model, SLICE: name, "mean_honest_low": low, "mean_honest_high": high}
            for side, condition, one_side in zip((NEGATIVE, POSITIVE), node.pop("conditions"), marked, strict=True):
                node.update(list_rule(condition, one_side, f"{side}_"))
        return nodes

    combined = yield Query(measure, combine)
    return [node for _, nodes in sorted(combined.items()) for node in nodes]


def _draw_lowest(block: RowBlock, rows: Ints, most: tuple[int, int]) -> tuple[NDArray[Any], ...]:
    """Return the rows of either label with the lowest hashes, twice as many as a sample holds."""
    chosen = []
    for label, size in zip((False, True), most, strict=True):
        candidates = rows[block.label[rows] == label]
        if len(candidates) > 2 * size:
            hashes = block.draws[candidates]
            candidates = candidates[hashes <= np.partition(hashes, 2 * size - 1)[2 * size - 1]]
            bins = block.cells.bins[:, block.cell[candidates]]
            candidates = candidates[_order(block.draws[candidates], block.scores[candidates], bins)[: 2 * size]]
        chosen.append(candidates)
    drawn = np.concatenate(chosen)
    return block.label[drawn], block.draws[drawn], block.scores[drawn], block.cells.bins[:, block.cell[drawn]]


def _order(drawn: Ints, scores: Floats, bins: SmallInts) -> Ints:
    """Return the order of rows by hash. Rows of equal hashes are in one that has nothing to do with their scores."""
    used = np.vstack([bins.astype(np.uint64), scores.view(np.uint64)])
    return np.lexsort([*bins[::-1], scores, hash_bins(used), drawn])  # the last key counts first


def _split_samples(label: Flags, drawn: Ints, scores: Floats, bins: SmallInts, most: tuple[int, int]) -> Samples:
    """Return the rows of each label with the lowest hashes, which grow the tree, and the next, which estimate."""
    order = _order(drawn, scores, bins)
    halves: tuple[list[Examples], list[Examples]] = ([], [])
    for value, size in zip((False, True), most, strict=True):
        ordered = order[label[order] == value]
        n_rows = min(size, len(ordered) // 2)
        for half, chosen in zip(halves, (ordered[:n_rows], ordered[n_rows : 2 * n_rows]), strict=True):
            half.append(sort_examples(scores[chosen], bins[:, chosen]))
    return Samples(*halves)
