"""Trials of the pinned AUC by ranges, against the same draws from a plain list of rows and a count of all pairs."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from biasspark.config import PinnedAuc
from biasspark.corpus.codebook import Codebook
from biasspark.errors import InputError
from biasspark.ranking import pinned_trials, subsets
from biasspark.ranking.blocks import Block
from biasspark.ranking.pinned_trials import (
    ALL_KNOWN,
    BACKGROUND,
    SUBGROUP,
    Draw,
    Standings,
    Trials,
    mean_and_sd,
    measure_trials,
    pool_ranges,
)
from biasspark.ranking.sorting import CELLS, MEMBERSHIPS
from biasspark.ranking.subsets import draw_places
from tests.oracle.pairs import Example, State, cross_all
from tests.oracle.suite import ordered_doubled, weighted_auc
from tests.ranking_without_spark import codebook_of, draw_rows, flags, membership_fields, pack, sort_batches

INCLUDED = pytest.mark.parametrize("include", [True, False], ids=["of all", "of the others"])


@dataclass(frozen=True)
class Corpus:
    """Scores, labels, and the states of each identity by name."""

    scores: Sequence[float]
    labels: Sequence[bool]
    states: dict[str, list[State]]
    crossed: bool = False

    @property
    def codebook(self) -> Codebook:
        return codebook_of(flags(*self.states), crossed=self.crossed)

    def examples(self) -> list[Example]:
        """Give the rows with the state of every identity by number: (overall), the configured ones, the pairs."""
        rows = zip(*self.states.values(), strict=True)
        singles = [cross_all(states) if self.crossed else states for states in rows]
        return [
            Example(score, label, (False, *states))
            for score, label, states in zip(self.scores, self.labels, singles, strict=True)
        ]

    def blocks(self, cuts: Sequence[float]) -> dict[int, tuple[list[Block], list[Block]]]:
        """Give the blocks of cells and of memberships of every range that has rows."""
        fields = membership_fields(self.codebook, self.states) | {("label", 0): self.labels}
        found: dict[int, tuple[list[Block], list[Block]]] = defaultdict(lambda: ([], []))
        for part in sort_batches([pack(self.codebook, fields, [self.scores])], self.codebook, [cuts]):
            if part.kind in {CELLS, MEMBERSHIPS}:
                found[part.score_range][part.kind].append(Block.decode(part.data))
        return dict(sorted(found.items()))

    def standings(self, cuts: Sequence[float]) -> dict[int, Standings]:
        """Count the rows of every range and identity one by one."""
        here = np.zeros((len(cuts) + 1, 2, len(self.codebook.names)), np.int64)
        for example in self.examples():
            score_range = sum(cut <= example.score for cut in cuts)
            for number, state in enumerate(example.states):
                if state is not None:
                    here[score_range, 0 if state else 1, number] += 1
        return {
            place: Standings(here[:place].sum(axis=0), here[place], here.sum(axis=0)) for place in range(len(cuts) + 1)
        }

    def measure(self, pinned: PinnedAuc, cuts: Sequence[float] = ()) -> dict[str, list[float]]:
        """Give the AUCs of all trials of every identity by name, as the ranges make them."""
        book, standings = self.codebook, self.standings(cuts)
        trials = Trials(pinned, "model", "all", book.names)
        ranges = [
            np.stack(list(measure_trials(*blocks, book.base_masks, standings[place], trials)))
            for place, blocks in self.blocks(cuts).items()
        ]
        return dict(zip(book.names, pool_ranges(ranges), strict=True))


def random_corpus(seed: int, rows: int = 60, levels: int = 12, crossed: bool = False) -> Corpus:
    """Identities of which the last has most rows, and nearly all of them unknown now and then."""
    shares = {"g0": (0.1, 0.6, 0.3), "g1": (0.3, 0.7, 0.0), "g2": (0.7, 0.1, 0.2)}
    return Corpus(*draw_rows(seed, rows, levels, shares), crossed)


def trial_by_pairs(corpus: Corpus, pinned: PinnedAuc, number: int) -> list[float]:
    """Draw the places of each trial from the rows in the order (score, label), and count all pairs of the pool."""
    rows = sorted(
        (one.score, one.positive, one.states[number]) for one in corpus.examples() if one.states[number] is not None
    )
    inside, outside = [row for row in rows if row[2]], [row for row in rows if not row[2]]
    if pinned.include_subgroup_in_background:
        source, pooled, drawn = ALL_KNOWN, inside, rows
    elif len(inside) <= len(outside):
        source, pooled, drawn = BACKGROUND, inside, outside
    else:
        source, pooled, drawn = SUBGROUP, outside, inside
    drawn = sorted(row[:2] for row in drawn)
    aucs = []
    trials = Trials(pinned, "model", "all", corpus.codebook.names)
    for subset in trials.subsets(number, Draw(source, len(drawn), 0, len(pooled))):
        places, _ = draw_places(subset, 0, len(drawn))
        assert len(places) == len(pooled)
        pool = [row[:2] for row in pooled] + [drawn[place] for place in places]
        pairs = ordered_doubled(
            [score for score, positive in pool if not positive], [score for score, positive in pool if positive]
        )
        if pairs.size:
            aucs.append(int(pairs.sum()) / (2 * pairs.size))
    return aucs


@INCLUDED
@pytest.mark.parametrize("levels", [0, 1, 3, 12], ids=lambda levels: f"{levels or 'all'} scores")
@pytest.mark.parametrize("seed", range(4))
def test_against_all_pairs(seed: int, levels: int, include: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Subsets are halved down to few rows, so that a tie is counted and not drawn, and batches hold few trials."""
    monkeypatch.setattr(subsets, "FEW", 2 + 3 * (seed % 2))
    monkeypatch.setattr(pinned_trials, "BATCH_ROWS", 1 + 40 * (seed % 3))
    corpus = random_corpus(seed, levels=levels, crossed=seed == 1)
    pinned = PinnedAuc(trials=5, seed=seed, include_subgroup_in_background=include)
    wanted = {name: trial_by_pairs(corpus, pinned, number) for number, name in enumerate(corpus.codebook.names)}
    assert wanted["(overall)"] == []
    assert wanted["g1"]
    for cuts in ([], [0.3, 0.5], np.arange(0.0, 3.0, 0.25)):
        assert corpus.measure(pinned, np.asarray(cuts, float).tolist()) == wanted


@pytest.mark.parametrize(
    ("sizes", "of_all", "of_others"),
    [
        ((4, 5), Draw(ALL_KNOWN, 9, 5, 4), Draw(BACKGROUND, 5, 3, 4)),
        ((5, 5), Draw(ALL_KNOWN, 10, 5, 5), Draw(BACKGROUND, 5, 3, 5)),
        ((6, 5), Draw(ALL_KNOWN, 11, 5, 6), Draw(SUBGROUP, 6, 2, 5)),
        ((6, 0), Draw(ALL_KNOWN, 6, 5, 6), Draw(SUBGROUP, 6, 2, 0)),
        ((0, 5), Draw(ALL_KNOWN, 5, 5, 0), Draw(BACKGROUND, 5, 3, 0)),
    ],
)
def test_the_larger_set_is_drawn_from(sizes: tuple[int, int], of_all: Draw, of_others: Draw) -> None:
    below, total = np.array([[2], [3]]), np.array(sizes)[:, None]
    for include, wanted in ((True, of_all), (False, of_others)):
        trials = Trials(PinnedAuc(trials=1, include_subgroup_in_background=include), "m", "all", ("g",))
        assert trials.choose(Standings(below, below, total), 0) == wanted


@INCLUDED
def test_pools_of_one_label_have_no_auc(include: bool) -> None:
    """No positives among three rows in thirty: some trials draw none."""
    labels = [place > 26 for place in range(30)]
    corpus = Corpus([0.1 * place for place in range(30)], labels, {"g": [place < 3 for place in range(30)]})
    pinned = PinnedAuc(trials=40, include_subgroup_in_background=include)
    aucs = corpus.measure(pinned, [1.0])["g"]
    assert 0 < len(aucs) < 40
    assert aucs == trial_by_pairs(corpus, pinned, 1)


@INCLUDED
def test_nothing_to_draw(include: bool) -> None:
    nobody, unknown = [False] * 6, [None] * 6
    corpus = Corpus(
        [0.1, 0.2, 0.3] * 2, [False, True] * 3, {"nobody": nobody, "unknown": unknown, "one": [True, *nobody[1:]]}
    )
    found = corpus.measure(PinnedAuc(trials=3, include_subgroup_in_background=include), [0.15])
    assert [found[name] for name in ("(overall)", "nobody", "unknown")] == [[], [], []]
    negatives = Corpus([0.1, 0.2, 0.3], [False] * 3, {"g": [True, False, True]})
    assert negatives.measure(PinnedAuc(trials=3, include_subgroup_in_background=include))["g"] == []


def test_everybody_is_in_it() -> None:
    """All of D is the subgroup: every trial is the same, twice the corpus; and there is no background without it."""
    corpus = random_corpus(2)
    everybody = Corpus(corpus.scores, corpus.labels, {"g": [True] * len(corpus.scores)})
    aucs = everybody.measure(PinnedAuc(trials=4), [1.0])["g"]
    assert aucs == [weighted_auc(corpus.scores, corpus.labels, [1.0] * len(corpus.scores))] * 4
    assert mean_and_sd(aucs) == (aucs[0], 0.0)
    assert everybody.measure(PinnedAuc(trials=4, include_subgroup_in_background=False))["g"] == []


@INCLUDED
def test_the_mean_of_many_trials_is_the_closed_form(include: bool) -> None:
    corpus = random_corpus(5, rows=800, levels=40)
    pinned = PinnedAuc(trials=500, include_subgroup_in_background=include)
    found = corpus.measure(pinned, [2.0, 5.0])
    for name, states in corpus.states.items():
        known = np.array([state is not None for state in states])
        inside = np.array(states)[known] == True  # noqa: E712 - an array of objects
        of_subgroup, of_others = inside.mean(), inside.sum() / (~inside).sum()
        weight = inside + of_subgroup if include else np.where(inside, 1.0, of_others)
        exact = weighted_auc(np.array(corpus.scores)[known], np.array(corpus.labels)[known], weight)
        mean, sd = mean_and_sd(found[name])
        assert mean is not None
        assert sd is not None
        assert abs(mean - exact) < 4 * sd / math.sqrt(len(found[name]))
        assert sd > 0.001


def test_another_identity_model_or_order_changes_no_draw() -> None:
    corpus = random_corpus(4)
    pinned = PinnedAuc(trials=3)
    found = corpus.measure(pinned)
    fewer = Corpus(corpus.scores, corpus.labels, {name: corpus.states[name] for name in ("g2", "g0")})
    # g1 is known on every row: without it, the base of the others has fewer rows, and their sets have the same.
    assert {name: fewer.measure(pinned)[name] for name in fewer.states} == {name: found[name] for name in fewer.states}
    assert corpus.measure(PinnedAuc(trials=3, seed=2)) != found
    assert corpus.measure(PinnedAuc(trials=5))["g0"][:3] == found["g0"]


def test_blocks_in_any_order_and_cut_in_any_way() -> None:
    corpus, pinned = random_corpus(6, rows=300), PinnedAuc(trials=4)
    book, standings = corpus.codebook, corpus.standings([])[0]
    pieces = [
        Corpus(
            corpus.scores[place::3],
            corpus.labels[place::3],
            {name: one[place::3] for name, one in corpus.states.items()},
        ).blocks([])[0]
        for place in (2, 0, 1)
    ]
    cells, memberships = ([block for blocks in kind for block in blocks] for kind in zip(*pieces, strict=True))
    trials = Trials(pinned, "model", "all", book.names)
    counts = np.stack(list(measure_trials(cells, memberships, book.base_masks, standings, trials)))
    assert pool_ranges([counts]) == list(corpus.measure(pinned).values())


# ---- sizes


def blocks_of(counts: dict[tuple[float, bool, bool], int]) -> tuple[list[Block], list[Block]]:
    """Give the blocks of so many rows of each (score, label, whether in identity 1)."""

    def block(entries: dict[tuple[int, float], int]) -> Block:
        keys, lengths = np.unique([key for key, _ in sorted(entries)], return_counts=True)
        scores = np.array([score for _, score in sorted(entries)])
        return Block(keys, lengths, scores, np.array([entries[entry] for entry in sorted(entries)]))

    cells: dict[tuple[int, float], int] = defaultdict(int)
    for (score, label, _), rows in counts.items():
        cells[int(label), score] += rows
    members = {(4 + int(label), score): rows for (score, label, inside), rows in counts.items() if inside}
    return [block(cells)], [block(members)]


@INCLUDED
def test_ties_of_hundreds_of_millions_of_rows(include: bool) -> None:
    """Half of 1.6e9 rows are in the identity; of two scores, one holds three quarters of the positives."""
    quarter = 10**8
    counts = {
        (score, label, inside): quarter * (3 if label == (score > 0.5) else 1)
        for score in (0.25, 0.75)
        for label in (False, True)
        for inside in (False, True)
    }
    total = np.array([[0, 8 * quarter], [16 * quarter, 8 * quarter]])
    standings = Standings(np.zeros((2, 2), np.int64), total, total)
    trials = Trials(PinnedAuc(trials=3, include_subgroup_in_background=include), "m", "all", ("(overall)", "g"))
    counted = np.stack(list(measure_trials(*blocks_of(counts), [0, 0], standings, trials)))
    assert counted[1, :2].sum(axis=0).tolist() == [16 * quarter] * 3
    [_, aucs] = pool_ranges([counted])
    assert aucs == pytest.approx([0.75] * 3, abs=1e-4)
    assert len(set(aucs)) == (3 if include else 1)


def test_the_largest_range_that_is_ranked() -> None:
    """2^30 - 1 rows of each label in one range, all in the identity: twice U is 2 (2^31 - 2)^2, just within 63 bits."""
    most = 2**30 - 1
    standings = Standings(
        np.zeros((2, 2), np.int64), np.array([[0, 2 * most], [2 * most, 0]]), np.array([[0, 2 * most], [2 * most, 0]])
    )
    trials = Trials(PinnedAuc(trials=1), "m", "all", ("(overall)", "g"))
    blocks = blocks_of({(0.25, False, True): most, (0.75, True, True): most})
    [_, counted] = measure_trials(*blocks, [0, 0], standings, trials)
    assert counted[:, 0].tolist() == [2 * most, 2 * most, 2 * (2 * most) ** 2]


def test_pairs_across_ranges_pass_63_bits() -> None:
    rows = 5 * 10**9
    ranges = [np.array([[[rows], [0], [0]]]), np.array([[[rows], [3 * rows], [0]]]), np.array([[[0], [rows], [0]]])]
    # Of the pairs, 2 x 3 within a range are all wrong; the others are across ranges and right.
    assert pool_ranges(ranges) == [[5 / 8]]


def test_mean_and_deviation() -> None:
    assert mean_and_sd([]) == (None, None)
    assert mean_and_sd([0.7]) == (0.7, None)
    assert mean_and_sd([0.7] * 3) == (0.7, 0.0)
    values = np.random.default_rng(1).random(50).tolist()
    assert mean_and_sd(values) == pytest.approx((np.mean(values), np.std(values, ddof=1)), abs=1e-15)
    assert mean_and_sd(values[::-1]) == mean_and_sd(values)
    assert mean_and_sd(values)[0] == statistics.fmean(values)


# ---- what travels


def test_standings_of_several_chunks_read_back() -> None:
    one, other = (Standings(*np.arange(6 * size).reshape(3, 2, size)) for size in (2, 3))
    found = Standings.decode([one.encode(), other.encode()])
    for column, parts in zip(found, zip(one, other, strict=True), strict=True):
        assert column.tolist() == np.concatenate(parts, axis=1).tolist()


def test_a_corpus_that_changed_is_refused() -> None:
    corpus = random_corpus(1)
    standings = corpus.standings([])[0]
    standings.here[:, 2] += (1, -1)
    trials = Trials(PinnedAuc(trials=1), "model", "all", corpus.codebook.names)
    inside, outside = (sum(state is wanted for state in corpus.states["g1"]) for wanted in (True, False))
    with pytest.raises(InputError) as refused:
        list(measure_trials(*corpus.blocks([])[0], corpus.codebook.base_masks, standings, trials))
    assert str(refused.value) == (
        f"corpus: a range of scores has {inside} rows in 'g1' and {outside} outside, and had {inside + 1} and "
        f"{outside - 1} when it was ranked. The corpus must not change while it is read. Run again when it is at rest."
    )
