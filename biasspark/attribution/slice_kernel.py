"""Slices, searched level by level from counts of their rows, whoever makes those. numpy only.

A slice is the set of rows that meet a conjunction of predicates on different features. Against the mean m of all
training rows it lacks so much attribution:

    score(S) = Σ_S (m - value) = n_S·(m - mean_S)

Only rows below the mean add to it. They alone would score

    bound(S) = Σ_S max(m - value, 0)

and no part of S scores more: for C within S, score(C) <= bound(C), since no term is above its positive part, and
bound(C) <= bound(S), since no positive part is below 0. As the rows of S below the mean are such a part, no lower bound
holds for all of them. A conjunction is a part of each shorter one that it is made of, so the least of their bounds
bounds its score, as the least of their rows bounds its rows. It is counted only if all of them have enough rows, and
that bound is above the score of the last of the best slices so far (the levels of SliceLine, Sagadeeva and Boehm 2021).

Slices may overlap; slices of exactly the same rows are one, which goes by its first conjunction: of fewest predicates,
then of the earliest. Others are dropped before they are extended, and nothing is lost with them: in a conjunction the
first one of the same rows may stand for any part, and what comes out has the same rows and is earlier. So a first
conjunction is made of first ones.

A part of a slice that lacks much lacks about as much for each row, so the list would fill with pieces of one slice. A
conjunction is listed only if a row of it lacks, on average, at least a quarter more than one of every shorter
conjunction T of its predicates, where that lacks anything:

    score(S) / n_S >= 5/4 · score(T) / n_T   for all T of some, not all, of the predicates of S.

Slices that are not listed are extended all the same, and bounds are compared with scores of what is listed. Whatever a
conjunction that is counted must be compared with was counted before it: it is made of nothing else.

A slice that is wider than an interval would be listed in pieces of one interval each. So when all are counted, slices
that are listed and differ in intervals of one number alone are joined where these adjoin: by one feature after another,
in their order, and again until nothing adjoins. Pieces S_k have no row in common, so of a joined slice J

    score(J) = Σ_k score(S_k),   n_J = Σ_k n_{S_k}.

If T is made of predicates that all pieces have, each piece was compared with it, so score(S_k) >= 5/4 · n_{S_k} ·
score(T) / n_T, and the sum over k says the same of J. J is not compared with shorter conjunctions that have its joined
interval: they hold its parts in other shares than J does. The pieces are among the best that were asked for, so fewer
may be left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from typing import NamedTuple, TypeAlias

import numpy as np

from biasspark.arrays import Ints
from biasspark.config.attribution_settings import SliceSearch
from biasspark.features import NULL_BIN, Condition, Feature

MOST_CANDIDATES = 100_000
"""So many conjunctions of a tree are counted on a level at the most, and so many of all trees at a time."""

LEAST_RATIO = Fraction(5, 4)
"""Of what a row of a conjunction lacks on average, to what one of each shorter conjunction of its predicates does."""


class Predicate(NamedTuple):
    """One condition that slices are made of: consecutive bins of one feature."""

    feature: int
    bins: frozenset[int]


Slice: TypeAlias = tuple[int, ...]
"""Places of a tree's predicates, ascending, of which no two are on one feature."""


class Counts(NamedTuple):
    """Whole numbers summed over the rows of a slice.

    Attributes
    ----------
    n_train, n_honest
        Rows that search, and those that estimate.
    total
        Of the training rows' values, in units.
    bound
        Of max(m - value, 0) over training rows, in units; m is the mean of the tree's, rounded up to a unit.
    fingerprint
        Of a hash of each row's bins. Slices that agree in all five are taken for the same rows: others do so by chance
        once in 2^40 with two million rows, once in 2^31 with a billion.
    """

    n_train: int
    n_honest: int
    total: int
    bound: int
    fingerprint: int


_Listed: TypeAlias = tuple[Condition, Counts]


class Candidates(NamedTuple):
    """Slices of one tree to be counted, all of one length."""

    predicates: Sequence[Predicate]
    slices: Sequence[Slice]


Batch: TypeAlias = Mapping[int, Candidates]
"""Candidates by tree."""


class Searched(NamedTuple):
    """What the search of one tree gives.

    Attributes
    ----------
    conditions
        Of the best slices, the greatest score first.
    missed
        No slice that was left out for want of room scores more, in units; 0 if none of them could be among the best.
    """

    conditions: Sequence[Condition]
    missed: int


def search(
    by_bin: Sequence[Sequence[Ints]], features: Sequence[Feature], settings: SliceSearch
) -> Generator[Batch, Mapping[int, Mapping[Slice, Counts]], list[Searched]]:
    """Search the best slices of every tree.

    Parameters
    ----------
    by_bin : sequence of sequences of int64 [n_bins, 5]
        By tree and feature, the `Counts` of each bin's rows.
    features : sequence of Feature
        At least one.
    settings : SliceSearch
        How long conjunctions may be, how many slices are wanted, and the fewest rows of one.

    Yields
    ------
    Batch
        Candidates, whose counts are to be sent, by tree; those with too few rows may be missing. One batch for each
        further predicate, and more only where there are more than 100,000 candidates in all.

    Returns
    -------
    list of Searched
        By tree. Every slice has at least `min_rows` rows of either kind, a score above 0, and lacks at least a quarter
        more per row than each shorter conjunction of its predicates, or is joined from such. Of equal scores the
        shorter conjunction comes first, then the one of earlier predicates: by feature, then by bin.

    Notes
    -----
    If every conjunction might be one of the best, that is all of them: at most (bins·features)³/6. In most data the
    bounds leave few. The driver holds the counts of 100,000 slices, and for each tree those that may be extended.
    """
    searches = [_TreeSearch.of(counts, features, settings) for counts in by_bin]
    for _ in range(1, settings.max_predicates):
        for batch in _batches(searches):
            counted = yield batch
            for tree in batch:
                searches[tree].take(counted.get(tree, {}))
    return [one.result() for one in searches]


def cut_feature(feature: Feature, n_train: Ints, max_bins: int) -> list[frozenset[int]]:
    """Return the bins of each predicate on a feature; no bin is in two.

    Every value is one, and NULL is. Where more than `max_bins` intervals of a numeric feature have training rows, those
    whose middle rows lie in the same of `max_bins` equal parts of the rows that are not NULL are joined. An interval
    without training rows goes with the next below that has some, or where none has with the first.

    Parameters
    ----------
    n_train : int64 [n_bins]
        Training rows by bin.
    """
    parts = np.arange(feature.n_bins)
    if feature.numeric:
        parts[NULL_BIN + 1 :] = 1 + _join_intervals(n_train[NULL_BIN + 1 :], max_bins)
    return [frozenset(np.flatnonzero(parts == part).tolist()) for part in np.unique(parts)]


@dataclass
class _TreeSearch:
    """The search of one tree. Scores and bounds are held times its training rows: whole numbers, so ties are exact.

    Attributes
    ----------
    whole
        Counts of all rows.
    joinable
        The numeric features.
    best
        By score, the greatest first, those that are listed, with their counts; no longer than what is wanted.
    parents
        By bound, the greatest first: the slices of one length that may be extended.
    steepest
        By parent, the most that a row lacks on average in it or in a shorter conjunction of its predicates; 0 or more.
    seen
        What counts slices have. Those that hold for all rows are none.
    left_out
        The greatest bound of a candidate that was not counted for want of room.
    """

    settings: SliceSearch
    predicates: Sequence[Predicate]
    whole: Counts
    joinable: Sequence[int] = ()
    best: list[tuple[Slice, Counts]] = field(default_factory=list)
    parents: list[tuple[int, Slice]] = field(default_factory=list)
    steepest: dict[Slice, Fraction] = field(default_factory=dict)
    seen: set[Counts] = field(default_factory=set)
    left_out: int = 0

    @classmethod
    def of(cls, by_bin: Sequence[Ints], features: Sequence[Feature], settings: SliceSearch) -> _TreeSearch:
        """Return a search that knows the slices of one predicate."""
        predicates = [
            Predicate(index, bins)
            for index, (feature, counts) in enumerate(zip(features, by_bin, strict=True))
            for bins in cut_feature(feature, counts[:, 0], settings.max_bins)
        ]
        whole = _add_up(by_bin[0])
        joinable = [index for index, feature in enumerate(features) if feature.numeric]
        begun = cls(settings, predicates, whole, joinable, seen={whole})
        begun.take({(n,): _add_up(by_bin[index][sorted(bins)]) for n, (index, bins) in enumerate(predicates)})
        return begun

    @property
    def floor(self) -> int:
        """The score that a slice must pass to be among the best."""
        return self._score(self.best[-1][1]) if len(self.best) == self.settings.most else 0

    def take(self, counted: Mapping[Slice, Counts]) -> None:
        """Take the slices of one length, and keep the best and those to extend."""
        fresh = []
        for conjunction, counts in sorted(counted.items()):
            if self._may_matter(counts) and counts not in self.seen:
                self.seen.add(counts)
                fresh.append((conjunction, counts))
        steepest: dict[Slice, Fraction] = {}
        listed = [*self.best]
        for conjunction, counts in fresh:
            score = self._score(counts)
            lacks, most = Fraction(score, counts.n_train), self._steepest_part(conjunction)
            steepest[conjunction] = max(lacks, most)
            if score > 0 and lacks >= LEAST_RATIO * most:
                listed.append((conjunction, counts))
        self.best = sorted(listed, key=lambda entry: -self._score(entry[1]))[: self.settings.most]
        bounds = [(self._bound(counts), conjunction) for conjunction, counts in fresh]
        extendable = [entry for entry in bounds if entry[0] > self.floor]
        self.parents = sorted(extendable, key=lambda entry: (-entry[0], entry[1]))
        self.steepest = {conjunction: steepest[conjunction] for _, conjunction in self.parents}

    def candidates(self) -> Candidates:
        """Return the slices that are longer by one and may be among the best, or as many as there is room for."""
        extended = list(islice(_extend(self.parents, self.predicates), MOST_CANDIDATES + 1))
        if len(extended) > MOST_CANDIDATES:
            self.left_out = max(self.left_out, extended.pop()[0])
        return Candidates(self.predicates, [conjunction for _, conjunction in extended])

    def result(self) -> Searched:
        """Return the best slices, joined."""
        listed = [(dict(self.predicates[one] for one in conjunction), counts) for conjunction, counts in self.best]
        distinct: dict[Counts, Condition] = {}
        for condition, counts in sorted(_join_slices(listed, self.joinable), key=self._rank):
            distinct.setdefault(counts, condition)  # what is joined may have exactly the rows of another
        missed = -(-self.left_out // self.whole.n_train) if self.left_out > self.floor else 0
        return Searched([*distinct.values()], missed)

    def _may_matter(self, counts: Counts) -> bool:
        enough = min(counts.n_train, counts.n_honest) >= self.settings.min_rows
        return enough and self._bound(counts) > self.floor

    def _steepest_part(self, conjunction: Slice) -> Fraction:
        """Return the most that a row lacks on average in a shorter conjunction, 0 at least."""
        parts = (conjunction[:index] + conjunction[index + 1 :] for index in range(len(conjunction)))
        return max((self.steepest[part] for part in parts if part), default=Fraction(0))

    def _rank(self, listed: _Listed) -> tuple[int, int, list[tuple[int, int]]]:
        """Return what slices are ordered by: score, number of predicates, then feature and bin of each."""
        condition, counts = listed
        return -self._score(counts), len(condition), sorted((index, min(bins)) for index, bins in condition.items())

    def _score(self, counts: Counts) -> int:
        return counts.n_train * self.whole.total - self.whole.n_train * counts.total

    def _bound(self, counts: Counts) -> int:
        return self.whole.n_train * counts.bound


def _batches(searches: Sequence[_TreeSearch]) -> Iterator[dict[int, Candidates]]:
    """Give the candidates of all trees, by tree, so many at once that the driver can hold what is counted of them."""
    batch: dict[int, Candidates] = {}
    n_slices = 0
    for tree, tree_search in enumerate(searches):
        candidates = tree_search.candidates()
        if batch and n_slices + len(candidates.slices) > MOST_CANDIDATES:
            yield batch
            batch, n_slices = {}, 0
        if candidates.slices:
            batch[tree] = candidates
            n_slices += len(candidates.slices)
    if batch:
        yield batch


def _extend(parents: Iterable[tuple[int, Slice]], predicates: Sequence[Predicate]) -> Iterator[tuple[int, Slice]]:
    """Give each conjunction that is longer by one predicate and all of whose parts are among the parents.

    Parents come by descending bound. With each come the conjunctions that it completes, and it has the least bound of
    their parts: so they, too, come by descending bound, and the best may be taken without making the others.
    """
    partners: defaultdict[Slice, set[int]] = defaultdict(set)
    for bound, parent in parents:
        parts = [(parent[:index] + parent[index + 1 :], last) for index, last in enumerate(parent)]
        taken = {predicates[index].feature for index in parent}
        for further in sorted(set.intersection(*(partners[part] for part, _ in parts))):
            if predicates[further].feature not in taken:
                yield bound, tuple(sorted((*parent, further)))
        for part, last in parts:
            partners[part].add(last)


def _join_intervals(n_train: Ints, max_bins: int) -> Ints:
    """Return for each interval the number of the one that it becomes part of; numbers ascend, some may be left out."""
    full, parts = np.flatnonzero(n_train), np.arange(len(n_train))
    if not len(full):
        return np.zeros_like(parts)
    if len(full) > max_bins:
        middles_doubled = 2 * np.cumsum(n_train) - n_train
        parts = middles_doubled * max_bins // (2 * n_train.sum())
    nearest = np.searchsorted(full, np.arange(len(n_train)), side="right") - 1
    joined: Ints = parts[full[np.maximum(nearest, 0)]]
    return joined


def _join_slices(listed: Sequence[_Listed], joinable: Sequence[int]) -> Sequence[_Listed]:
    """Join slices that differ in adjoining intervals of one numeric feature, until none do."""
    joined = listed
    for index in joinable:
        joined = _join_on(joined, index)
    return joined if len(joined) == len(listed) else _join_slices(joined, joinable)


def _join_on(listed: Iterable[_Listed], index: int) -> list[_Listed]:
    """Join slices that differ in adjoining intervals of this feature."""
    joined: list[_Listed] = []
    for condition, counts in sorted(listed, key=lambda entry: min(entry[0].get(index, {NULL_BIN}))):
        for number, (below, so_far) in enumerate(joined):
            if _adjoin(below, condition, index):
                bins = below[index] | condition[index]
                joined[number] = {**below, index: bins}, Counts(*map(sum, zip(so_far, counts, strict=True)))
                break
        else:
            joined.append((condition, counts))
    return joined


def _adjoin(below: Condition, above: Condition, index: int) -> bool:
    """Say whether two slices differ in their intervals of a feature alone, of which one begins where the other ends."""
    differ = {*below.items()} ^ {*above.items()}
    bins = below.get(index, frozenset()), above.get(index, frozenset())
    return (
        differ == {(index, of_one) for of_one in bins} and NULL_BIN not in bins[0] and max(bins[0]) + 1 == min(bins[1])
    )


def _add_up(counts: Ints) -> Counts:
    return Counts(*counts.sum(axis=0).tolist())
