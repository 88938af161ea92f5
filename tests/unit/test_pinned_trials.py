"""Trials of the pinned AUC by ranges, against the same draws from a plain list of rows and a count of all pairs."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest

from biasspark.config import PinnedAuc
from biasspark.corpus.encoding import Encoding
from biasspark.errors import InputError
from biasspark.ranking import sampled_trials
from biasspark.ranking.engine import rank
from biasspark.ranking.kernels import pinned_trials, subsets
from biasspark.ranking.kernels.blocks import Block
from biasspark.ranking.kernels.pinned_trials import (
    ALL_KNOWN,
    BACKGROUND,
    SUBGROUP,
    Draw,
    RangeScores,
    choose_draw,
    mean_and_sd,
    pool_ranges,
)
from biasspark.ranking.kernels.reference_sets import ReferenceSets
from biasspark.ranking.kernels.subsets import Subset, stable_number
from biasspark.ranking.sampled_trials import count_pools, sample_pinned_aucs
from tests.harness.drawn_positions import draw_positions
from tests.harness.ranking_without_spark import (
    block_of,
    draw_rows,
    encoding_of,
    flags,
    frame_of,
    membership_fields,
    pack,
    rank_batches,
)
from tests.oracle.pairs import Example, State, cross_all
from tests.oracle.suite import ordered_doubled, weighted_auc

INCLUDED = pytest.mark.parametrize("include", [True, False], ids=["of all", "of the others"])


@dataclass(frozen=True)
class Corpus:
    """Scores, labels, and the states of each identity by name."""

    scores: Sequence[float]
    labels: Sequence[bool]
    states: dict[str, list[State]]
    crossed: bool = False

    @property
    def encoding(self) -> Encoding:
        return encoding_of(flags(*self.states), crossed=self.crossed)

    def examples(self) -> list[Example]:
        """Give the rows with the state of every identity by number: (overall), the configured ones, the pairs."""
        rows = zip(*self.states.values(), strict=True)
        singles = [cross_all(states) if self.crossed else states for states in rows]
        return [
            Example(score, label, (False, *states))
            for score, label, states in zip(self.scores, self.labels, singles, strict=True)
        ]

    @property
    def batch(self) -> pa.RecordBatch:
        fields = membership_fields(self.encoding, self.states) | {("label", 0): self.labels}
        return pack(self.encoding, fields, [self.scores])

    def measure(self, pinned: PinnedAuc, cuts: Sequence[float] = ()) -> dict[str, tuple[float, float]]:
        """Give mean and standard deviation of the AUCs of all trials of every identity by name."""
        encoding, boundaries, half = self.encoding, [np.asarray(cuts, float)], len(self.scores) // 2
        counts = rank_batches([self.batch], encoding, boundaries)
        tasks = frame_of([self.batch.slice(0, half)], [self.batch.slice(half)])
        sampled = sample_pinned_aucs(tasks, encoding, boundaries, counts, pinned)
        return dict(zip(encoding.names, zip(*sampled.tolist(), strict=True), strict=True))


def names_of(identity: str) -> tuple[str, str, str]:
    return "model 0", "all", identity


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
    places_of = sorted(row[:2] for row in drawn)
    aucs = []
    key = (pinned.seed, *map(stable_number, names_of(corpus.encoding.names[number])), source)
    for trial in range(pinned.trials):
        positions = draw_positions(Subset(len(places_of), len(pooled), (*key, trial)), 0, len(places_of))
        assert len(positions) == len(pooled)
        pool = [row[:2] for row in pooled] + [places_of[place] for place in positions]
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
    wanted = {name: trial_by_pairs(corpus, pinned, number) for number, name in enumerate(corpus.encoding.names)}
    assert wanted["(overall)"] == []
    assert wanted["g1"]
    expected = {name: mean_and_sd(aucs) for name, aucs in wanted.items()}
    for cuts in ([], [0.3, 0.5], np.arange(0.0, 3.0, 0.25).tolist()):
        np.testing.assert_equal(corpus.measure(pinned, cuts), expected)


@pytest.mark.parametrize(
    ("sizes", "of_all", "of_others"),
    [
        ((4, 5), Draw(ALL_KNOWN, 9, 5, 4), Draw(BACKGROUND, 5, 3, 4)),
        ((5, 5), Draw(ALL_KNOWN, 10, 5, 5), Draw(BACKGROUND, 5, 3, 5)),
        ((6, 5), Draw(ALL_KNOWN, 11, 5, 6), Draw(SUBGROUP, 6, 2, 5)),
    ],
)
def test_the_larger_set_is_drawn_from(sizes: tuple[int, int], of_all: Draw, of_others: Draw) -> None:
    for include, wanted in ((True, of_all), (False, of_others)):
        assert choose_draw((2, 3), sizes, include_subgroup=include) == wanted


@INCLUDED
def test_nothing_to_draw(include: bool) -> None:
    nobody: list[State] = [False] * 6
    unknown: list[State] = [None] * 6
    corpus = Corpus(
        [0.1, 0.2, 0.3] * 2, [False, True] * 3, {"nobody": nobody, "unknown": unknown, "one": [True, *nobody[1:]]}
    )
    found = corpus.measure(PinnedAuc(trials=3, include_subgroup_in_background=include), [0.15])
    assert np.isnan([found[name] for name in ("(overall)", "nobody", "unknown")]).all()
    negatives = Corpus([0.1, 0.2, 0.3], [False] * 3, {"g": [True, False, True]})
    assert np.isnan(negatives.measure(PinnedAuc(trials=3, include_subgroup_in_background=include))["g"]).all()


def test_everybody_is_in_it() -> None:
    """All of D is the subgroup: every trial is the same, twice the corpus; and there is no background without it."""
    corpus = random_corpus(2)
    everybody = Corpus(corpus.scores, corpus.labels, {"g": [True] * len(corpus.scores)})
    auc = weighted_auc(corpus.scores, corpus.labels, [1.0] * len(corpus.scores))
    assert everybody.measure(PinnedAuc(trials=4), [1.0])["g"] == (auc, 0.0)
    assert np.isnan(everybody.measure(PinnedAuc(trials=4, include_subgroup_in_background=False))["g"]).all()


def test_a_corpus_without_annotated_rows_has_no_trials() -> None:
    corpus = Corpus((0.1, 0.2), (False, True), {"g0": [None, None]})
    counts = rank_batches([corpus.batch], corpus.encoding)
    sampled = sample_pinned_aucs(frame_of([corpus.batch]), corpus.encoding, [np.empty(0)], counts, PinnedAuc(trials=2))
    assert np.isnan(sampled).all()


def test_a_corpus_that_changed_after_it_was_ranked_is_refused() -> None:
    corpus = random_corpus(1)
    counts = rank(frame_of([corpus.batch.slice(1)]), corpus.encoding, [np.empty(0)])
    with pytest.raises(InputError):
        sample_pinned_aucs(frame_of([corpus.batch]), corpus.encoding, [np.empty(0)], counts, PinnedAuc(trials=1))


def test_more_trials_than_a_worker_holds_are_refused() -> None:
    corpus = random_corpus(1)
    counts = rank_batches([corpus.batch], corpus.encoding)
    with pytest.raises(InputError):
        sample_pinned_aucs(frame_of(), corpus.encoding, [np.empty(0)], counts, PinnedAuc(trials=4_000_000))


def test_trials_are_refused_by_the_pairs_that_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled_trials, "_MAX_TRIALS", 15)
    corpus = random_corpus(3, crossed=True)
    encoding = replace(corpus.encoding, min_rows=1 << 20)
    counts, pinned = rank_batches([corpus.batch], encoding), PinnedAuc(trials=5)
    assert (len(counts.numbers) - 1, len(encoding.names) - 1) == (3, 6)
    assert sample_pinned_aucs(frame_of([corpus.batch]), encoding, [np.empty(0)], counts, pinned).shape == (2, 4)
    with pytest.raises(InputError, match="pairs"):
        sample_pinned_aucs(frame_of([corpus.batch]), encoding, [np.empty(0)], counts, PinnedAuc(trials=6))


# ---- sizes


def blocks_of(counts: dict[tuple[float, bool, bool], int]) -> tuple[list[Block], list[Block]]:
    """Give the blocks of so many rows of each (score, label, whether in identity 1)."""
    cells: dict[tuple[int, float], int] = defaultdict(int)
    for (score, label, _), rows in counts.items():
        cells[int(label), score] += rows
    members = {(4 + int(label), score): rows for (score, label, inside), rows in counts.items() if inside}
    return [block_of(cells)], [block_of(members)]


def measure_blocks(
    blocks: tuple[list[Block], list[Block]], n_inside: int, n_outside: int, pinned: PinnedAuc
) -> np.ndarray:
    """Measure the only range, half of whose rows are positive, of one identity."""
    total = np.array([n_inside, n_inside, n_outside, n_outside]) // 2
    scores = RangeScores(*blocks, ReferenceSets.of([0, 0], [1]))
    return count_pools(pinned, names_of("g"), scores.identity(0), np.zeros_like(total), total)


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
    pinned = PinnedAuc(trials=3, include_subgroup_in_background=include)
    counted = measure_blocks(blocks_of(counts), 8 * quarter, 8 * quarter, pinned)
    assert counted[:2].sum(axis=0).tolist() == [16 * quarter] * 3
    [aucs] = pool_ranges([counted[None]])
    assert aucs == pytest.approx([0.75] * 3, abs=1e-4)
    assert len(set(aucs)) == (3 if include else 1)


def test_the_largest_range_that_is_ranked() -> None:
    """2^30 - 1 rows of each label in one range, all in the identity: twice U is 2 (2^31 - 2)^2, just within 63 bits."""
    most = 2**30 - 1
    blocks = blocks_of({(0.25, False, True): most, (0.75, True, True): most})
    counted = measure_blocks(blocks, 2 * most, 0, PinnedAuc(trials=1))
    assert counted[:, 0].tolist() == [2 * most, 2 * most, 2 * (2 * most) ** 2]


def test_pairs_across_ranges_pass_63_bits() -> None:
    rows = 5 * 10**9
    ranges = [np.array([[[rows], [0], [0]]]), np.array([[[rows], [3 * rows], [0]]]), np.array([[[0], [rows], [0]]])]
    # Of the pairs, 2 x 3 within a range are all wrong; the others are across ranges and right.
    assert pool_ranges(ranges) == [[5 / 8]]


def test_mean_and_deviation() -> None:
    assert np.isnan(mean_and_sd([])).all()
    assert np.isnan(mean_and_sd([0.7])).tolist() == [False, True]
    assert mean_and_sd([0.7] * 3) == (0.7, 0.0)
    values = np.random.default_rng(1).random(50).tolist()
    assert mean_and_sd(values) == pytest.approx((np.mean(values), np.std(values, ddof=1)), abs=1e-15)
    assert mean_and_sd(values[::-1]) == mean_and_sd(values)
    assert mean_and_sd(values)[0] == statistics.fmean(values)
