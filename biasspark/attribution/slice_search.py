"""The best slices, which overlap as segments of a tree cannot, over sums by cell: one query for each level.

    sums by cell --> counts by bin --> counts by conjunction, of two predicates, then of three

A slice is the set of rows that meet a conjunction of predicates on different features. Its score is the attribution
that it lacks against the mean m of all training rows:

    score(S) = Σ_S (m - value) = n_S·(m - mean_S)

Only rows below the mean add to it. They alone would score

    bound(S) = Σ_S max(m - value, 0)

and no part of S scores more: for C within S, score(C) <= bound(C), since no term is above its positive part, and
bound(C) <= bound(S), since no positive part is below 0. The rows of S below the mean are such a part, so no lower bound
holds for all parts. A conjunction is a part of each shorter one that it is made of, so the least of their bounds bounds
its score, as the least of their rows bounds its rows. It is counted only if all of them have enough rows, and that
bound is above the score of the last of the best slices so far (the levels of SliceLine, Sagadeeva and Boehm 2021).

Slices may overlap. Slices of exactly the same rows are one, named by its first conjunction: the one of fewest
predicates, then the earliest. Others are dropped before they are extended, and nothing is lost with them: in a
conjunction the first one of the same rows may stand for any part, and the result has the same rows and is earlier. So
a first conjunction is made of first ones.

A part of a slice that lacks much lacks about as much for each row, so the list would fill with pieces of one slice. A
conjunction is listed only if a row of it lacks, on average, at least a quarter more than a row of every shorter
conjunction T of its predicates, where that lacks anything:

    score(S) / n_S >= 5/4 · score(T) / n_T   for all T of some, not all, of the predicates of S.

Slices that are not listed are extended all the same, and bounds are compared with scores of listed slices. The
conjunctions that a counted conjunction must be compared with were counted before it: it is made of them.

A slice that is wider than an interval would be listed in pieces of one interval each. So when all are counted, listed
slices that differ only in intervals of one number are joined where these adjoin: by one feature after another, in
order, and again until nothing adjoins. Pieces have no row in common, so their scores and their rows add up to those of
the joined slice J. For any T of predicates that all pieces have, the inequality holds for each piece, and so for J. J
is not compared with shorter conjunctions that have its joined interval: they hold its parts in other shares than J
does. The pieces are among the best that were asked for, so fewer may be left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import combinations, islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from biasspark.arrays import Ints
from biasspark.attribution.block_sums import CellSums, SummedValue, add_by_code, hash_bins
from biasspark.attribution.moments import LARGEST_BITS
from biasspark.config.attribution_settings import SliceSearch
from biasspark.features import NULL_BIN, Condition, Feature
from biasspark.ranking.kernels.row_block import Cells, SmallInts
from biasspark.ranking.row_blocks import Query, Search

MAX_CANDIDATES = 100_000
"""The most conjunctions that are counted on a level."""

MIN_RATIO = Fraction(5, 4)
"""Of what a row of a conjunction lacks on average to what a row of each shorter conjunction of its predicates lacks."""


class Predicate(NamedTuple):
    """One condition that slices are made of: consecutive bins of one feature."""

    feature: int
    bins: frozenset[int]


Slice: TypeAlias = tuple[int, ...]
"""Ascending indices of predicates, of which no two are on one feature."""


class SliceCounts(NamedTuple):
    """Integers summed over the rows of a slice: training rows, estimation rows, and the sums below.

    In units, `total` is the sum of the training values, and `bound` that of max(m - value, 0), where m is the mean of
    all of them, rounded up. The fingerprint is the sum of a hash of each row's bins. Slices that agree in all five are
    taken for the same rows: others do so by chance once in 2^40 with two million rows, once in 2^31 with a billion.
    """

    n_train: int
    n_honest: int
    total: int
    bound: int
    fingerprint: int


_Listed: TypeAlias = tuple[Condition, SliceCounts]


def cut_feature(feature: Feature, n_train: Ints, max_bins: int) -> list[frozenset[int]]:
    """Return the bins of each predicate on a feature, given the training rows by bin; no bin is in two.

    Every value has a predicate, and so has NULL. If more than `max_bins` intervals of a numeric feature have training
    rows, those whose middle rows lie in the same of `max_bins` equal parts of the rows that are not NULL are joined. An
    interval without training rows goes with the next below that has some, or if none has with the first.
    """
    parts, known = np.arange(feature.n_bins), n_train[NULL_BIN + 1 :]
    if feature.numeric:
        intervals, full = np.arange(len(known)), np.flatnonzero(known)
        nearest = np.maximum(np.searchsorted(full, intervals, side="right") - 1, 0)
        if len(full) > max_bins:
            middles_doubled = 2 * np.cumsum(known) - known
            intervals = middles_doubled * max_bins // (2 * known.sum())
        parts[NULL_BIN + 1 :] = 1 + (intervals[full[nearest]] if len(full) else 0)
    return [frozenset(np.flatnonzero(parts == part).tolist()) for part in np.unique(parts)]


class BestSlices:
    """The best slices of a target so far. Scores and bounds are held times its training rows: in integers, exactly.

    `whole` are the counts of all rows, and `seen` those and the counts of slices. `best` are the listed slices, the
    highest score first, `parents` the slices of one length that may be extended, the highest bound first, and
    `steepest` is by parent the most that a row lacks on average in it or in a shorter conjunction of its predicates, 0
    or more. `left_out` is the greatest bound of a candidate that was not counted for lack of room. `has_too_few` is
    True if there are rows, but none of the predicates has `min_rows` of either half.
    """

    def __init__(self, by_bin: Sequence[Ints], features: Sequence[Feature], settings: SliceSearch) -> None:
        """Take the slices of one predicate, given by feature the counts of each bin, int64, shape (bins, 5)."""
        self.settings = settings
        self.numeric = [index for index, feature in enumerate(features) if feature.numeric]
        self.predicates = [
            Predicate(index, bins)
            for index, (feature, counts) in enumerate(zip(features, by_bin, strict=True))
            for bins in cut_feature(feature, counts[:, 0], settings.max_bins)
        ]
        self.whole = _add_up(by_bin[0])
        self.best: list[tuple[Slice, SliceCounts]] = []
        self.parents: list[tuple[int, Slice]] = []
        self.steepest: dict[Slice, Fraction] = {(): Fraction(0)}
        self.seen = {self.whole}
        self.left_out = 0
        singles: dict[Slice, SliceCounts] = {
            (n,): _add_up(by_bin[index][sorted(bins)]) for n, (index, bins) in enumerate(self.predicates)
        }
        self.has_too_few = any(self.whole[:2]) and not any(map(self._has_enough, singles.values()))
        self.take(singles)

    @property
    def floor(self) -> int:
        """The score that a slice must exceed to be among the best."""
        return self._score(self.best[-1][1]) if len(self.best) == self.settings.most else 0

    def take(self, counted: Mapping[Slice, SliceCounts]) -> None:
        """Take the slices of one length, and keep the best and those to extend."""
        listed, steepest, bounds = [*self.best], dict[Slice, Fraction](), list[tuple[int, Slice]]()
        for conjunction, counts in sorted(counted.items()):
            bound = self.whole.n_train * counts.bound
            if not self._has_enough(counts) or bound <= self.floor or counts in self.seen:
                continue
            self.seen.add(counts)
            most = max(self.steepest[part] for part in combinations(conjunction, len(conjunction) - 1))
            score = self._score(counts)
            lacks = Fraction(score, counts.n_train)
            steepest[conjunction] = max(lacks, most)
            bounds.append((bound, conjunction))
            if score > 0 and lacks >= MIN_RATIO * most:
                listed.append((conjunction, counts))
        self.best = sorted(listed, key=lambda entry: -self._score(entry[1]))[: self.settings.most]
        above_floor = (entry for entry in bounds if entry[0] > self.floor)
        self.parents = sorted(above_floor, key=lambda entry: (-entry[0], entry[1]))
        self.steepest = {conjunction: steepest[conjunction] for _, conjunction in self.parents}

    def candidates(self) -> list[Slice]:
        """Return the slices longer by one predicate that may be among the best, as many as there is room for.

        If every conjunction might be one of the best, all are candidates: at most (bins·features)³/6. In most data the
        bounds leave few.
        """
        extended = list(islice(_extend(self.parents, self.predicates), MAX_CANDIDATES + 1))
        if len(extended) > MAX_CANDIDATES:
            self.left_out = max(self.left_out, extended.pop()[0])
        return [conjunction for _, conjunction in extended]

    def conditions(self) -> list[Condition]:
        """Return the conditions of the best slices, joined, the highest score first."""
        listed: Sequence[_Listed] = [
            (dict(self.predicates[index] for index in conjunction), counts) for conjunction, counts in self.best
        ]
        n_before = None
        while len(listed) != n_before:
            n_before, listed = len(listed), reduce(_join_on, self.numeric, listed)
        distinct: dict[SliceCounts, Condition] = {}
        for condition, counts in sorted(listed, key=self._rank):
            distinct.setdefault(counts, condition)  # what is joined may have exactly the rows of another
        return [*distinct.values()]

    @property
    def missed(self) -> bool:
        """Whether a slice that was left out for lack of room might be among the best."""
        return self.left_out > self.floor

    def _rank(self, listed: _Listed) -> tuple[int, int, list[tuple[int, int]]]:
        """Return the sort key of a slice: score, number of predicates, then feature and bin of each."""
        condition, counts = listed
        return -self._score(counts), len(condition), sorted((index, min(bins)) for index, bins in condition.items())

    def _has_enough(self, counts: SliceCounts) -> bool:
        return min(counts.n_train, counts.n_honest) >= self.settings.min_rows

    def _score(self, counts: SliceCounts) -> int:
        return counts.n_train * self.whole.total - self.whole.n_train * counts.total


def _extend(parents: Iterable[tuple[int, Slice]], predicates: Sequence[Predicate]) -> Iterator[tuple[int, Slice]]:
    """Yield each conjunction that is longer by one predicate and all of whose parts are among the parents.

    Parents come by descending bound. With each come the conjunctions that it completes, of whose parts it has the least
    bound: so they come by descending bound as well, and the best may be taken without making the others.
    """
    partners: defaultdict[Slice, set[int]] = defaultdict(set)
    for bound, parent in parents:
        parts = list(zip(combinations(parent, len(parent) - 1), reversed(parent), strict=True))
        used_features = {predicates[index].feature for index in parent}
        for partner in sorted(set.intersection(*(partners[part] for part, _ in parts))):
            if predicates[partner].feature not in used_features:
                yield bound, tuple(sorted((*parent, partner)))
        for part, last in parts:
            partners[part].add(last)


def _join_on(listed: Sequence[_Listed], index: int) -> Sequence[_Listed]:
    """Join slices that differ only in intervals of one feature, of which one begins where the other ends."""
    joined: list[_Listed] = []
    for condition, counts in sorted(listed, key=lambda entry: min(entry[0].get(index, {NULL_BIN}))):
        for number, (below, so_far) in enumerate(joined):
            bins, is_alike = below.get(index, frozenset()), {**below, index: condition.get(index)} == condition
            if is_alike and bins and NULL_BIN not in bins and max(bins) + 1 == min(condition[index]):
                summed = SliceCounts(*map(sum, zip(so_far, counts, strict=True)))
                joined[number] = {**below, index: bins | condition[index]}, summed
                break
        else:
            joined.append((condition, counts))
    return joined


def _add_up(counts: Ints) -> SliceCounts:
    return SliceCounts(*counts.sum(axis=0).tolist())


# ---- queries


Count: TypeAlias = Callable[[SmallInts, Ints], list[Ints]]
"""Adds up `SliceCounts`, given by feature the bin of each cell, and what a cell adds to each of the counts."""


def search_slices(features: Sequence[Feature], value: SummedValue, settings: SliceSearch) -> Search[BestSlices]:
    """Find the slices that lack most of a value, by queries about `CellSums`: one for each predicate.

    A cell is counted in the candidates that it is in: at most 100,000 at a time. The driver collects five integers for
    each bin and each candidate.
    """

    def count_bins(bins: SmallInts, counts: Ints) -> list[Ints]:
        return [add_by_code(codes, counts, feature.n_bins).T for codes, feature in zip(bins, features, strict=True)]

    by_bin = yield from _count(value, count_bins)
    nothing = [np.zeros((feature.n_bins, len(SliceCounts._fields)), np.int64) for feature in features]
    best = BestSlices(by_bin or nothing, features, settings)
    for _ in range(1, settings.max_predicates):
        if not (slices := best.candidates()):
            break
        [sums] = yield from _count(value, make_counter(best.predicates, slices), len(slices))
        enough = np.flatnonzero((sums[:2] >= settings.min_rows).all(axis=0)).tolist()
        best.take({slices[index]: SliceCounts(*sums[:, index].tolist()) for index in enough})
    return best


def _count(value: SummedValue, count: Count, size: int = 0) -> Search[list[Ints]]:
    """Return what the cells of all blocks add up to, by one query of this size; nothing if no block has the value."""

    def measure(_: int, _range: int, block: CellSums) -> Iterator[tuple[int, int, list[Ints]]]:
        if value in block.sums:
            counts = count_cells(block.cells, block.sums[value], value.shift)
            yield value.target.slice, 0, count(block.cells.bins, counts)

    answer = yield Query(measure, size=size)
    return next(iter(answer.values()), [])


def count_cells(cells: Cells, sums: Ints, shift: int) -> Ints:
    """Return the five `SliceCounts` by cell, given the sums of `CellSums` of a value.

    Their ceiling is at least the mean of the training rows. The hash of a cell's bins has so many bits that sums over
    all rows have 63 at most.
    """
    (n_rows, totals, bounds), honest = sums, cells.honest
    fingerprints = hash_bins(cells.bins) >> np.uint64(64 - shift - LARGEST_BITS - 1)
    train = [np.where(honest, 0, column) for column in (n_rows, totals, bounds)]
    return np.stack([train[0], n_rows - train[0], *train[1:], n_rows * fingerprints.astype(np.int64)])


def make_counter(predicates: Sequence[Predicate], slices: Sequence[Slice]) -> Count:
    """Return a function that adds up `SliceCounts` by slice: one int64 array, shape (5, slices).

    Slices on the same features are looked up together, by a number whose digits are the indices of their predicates.
    Costs about 40 ns for each cell and set of features that slices are on, whatever the number of slices.
    """
    by_feature: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for number, (feature, bins) in enumerate(predicates):
        by_feature[feature].update(dict.fromkeys(bins, number))
    codes = [np.array([number for _, number in sorted(numbers.items())]) for _, numbers in sorted(by_feature.items())]
    together: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for number, conjunction in enumerate(slices):
        together[tuple(predicates[index].feature for index in conjunction)].append(number)
    lookups = {
        features: (np.array(numbers), pd.Index([_key(slices[number], len(predicates)) for number in numbers]))
        for features, numbers in together.items()
    }

    def count(bins: SmallInts, counts: Ints) -> list[Ints]:
        met = [code[column] for code, column in zip(codes, bins, strict=True)]
        totals = np.zeros((len(counts), len(slices)), np.int64)
        for features, (numbers, keys) in lookups.items():
            indices = keys.get_indexer(_key([met[feature] for feature in features], len(predicates)))
            inside = np.flatnonzero(indices >= 0)
            totals[:, numbers] = add_by_code(indices[inside], counts[:, inside], len(numbers))
        return [totals]

    return count


def _key(digits: Sequence[Any], base: int) -> Any:
    """Return the number that has these digits: one, or an array of them."""
    return reduce(lambda key, digit: key * base + digit, digits)
