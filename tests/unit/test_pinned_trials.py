"""Rows drawn at random by ranges, against the same draws from a plain list of rows and a count of all pairs."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from biasspark.columns import FOUR_CELLS
from biasspark.config import PinnedAuc, PinnedSkew
from biasspark.errors import InputError
from biasspark.ranking import sampled_trials
from biasspark.ranking.kernels import pinned_trials, subsets
from biasspark.ranking.kernels.blocks import Block
from biasspark.ranking.kernels.pinned_trials import ALL_KNOWN, BACKGROUND, SUBGROUP, Draw, mean_and_sd
from biasspark.ranking.kernels.reference_sets import ReferenceSets
from biasspark.ranking.kernels.subsets import Subset, stable_number
from biasspark.ranking.sampled_trials import count_pools, list_subsets, sample_pinned_aucs, sum_kept_rows
from biasspark.workflows.pinned_skew import check_identity
from tests.fixtures.local_corpus import LocalCorpus
from tests.harness.ranking_without_spark import array, block_of, category, draw_positions, draw_rows, encoding_of, flags
from tests.oracle.suite import ordered_doubled, weighted_auc

INCLUDED = pytest.mark.parametrize("include", [True, False], ids=["of all", "of the others"])


def measure(corpus: LocalCorpus, pinned: PinnedAuc) -> dict[str, tuple[float, float]]:
    """Give mean and standard deviation of the AUCs of all trials of every identity by name."""
    return dict(zip(corpus.encoding.names, zip(*corpus.sample(pinned).tolist(), strict=True), strict=True))


def names_of(identity: str) -> tuple[str, str, str]:
    return "model 0", "all", identity


def random_corpus(seed: int, levels: int = 12, **options: Any) -> LocalCorpus:
    """Identities of which the last has most rows, and nearly all of them unknown now and then."""
    shares = {"g0": (0.1, 0.6, 0.3), "g1": (0.3, 0.7, 0.0), "g2": (0.7, 0.1, 0.2)}
    return LocalCorpus(*draw_rows(seed, 60, levels, shares), **options)


def trial_by_pairs(corpus: LocalCorpus, pinned: PinnedAuc, number: int) -> list[float]:
    """Draw the places of each trial from the rows in the order (score, label), and count all pairs of the pool."""
    rows = sorted(
        (one.score, one.positive, one.states[number]) for one in corpus.rows() if one.states[number] is not None
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
    corpora = [
        random_corpus(seed, levels, crossed=seed == 1, cuts=cuts) for cuts in ([], [0.3, 0.5], np.arange(0, 3, 0.25))
    ]
    pinned, names = PinnedAuc(trials=5, seed=seed, include_subgroup_in_background=include), corpora[0].encoding.names
    wanted = {name: trial_by_pairs(corpora[0], pinned, number) for number, name in enumerate(names)}
    assert wanted["(overall)"] == []
    assert wanted["g1"]
    for corpus in corpora:
        np.testing.assert_equal(measure(corpus, pinned), {name: mean_and_sd(aucs) for name, aucs in wanted.items()})


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
        assert pinned_trials.choose_draw((2, 3), sizes, include_subgroup=include) == wanted


@INCLUDED
def test_nothing_to_draw(include: bool) -> None:
    nobody, unknown = [False] * 6, [None] * 6
    identities = {"nobody": nobody, "unknown": unknown, "one": [True, *nobody[1:]]}
    corpus = LocalCorpus([0.1, 0.2, 0.3] * 2, [False, True] * 3, identities, cuts=[0.15])
    pinned = PinnedAuc(trials=3, include_subgroup_in_background=include)
    found = measure(corpus, pinned)
    assert np.isnan([found[name] for name in ("(overall)", "nobody", "unknown")]).all()
    negatives = LocalCorpus([0.1, 0.2, 0.3], [False] * 3, {"g": [True, False, True]})
    unannotated = LocalCorpus([0.1, 0.2], [False, True], {"g": [None, None]})
    for one in (negatives, unannotated):
        assert np.isnan(measure(one, pinned)["g"]).all()


def test_everybody_is_in_it() -> None:
    """All of D is the subgroup: every trial is the same, twice the corpus; and there is no background without it."""
    corpus = random_corpus(2)
    everybody = LocalCorpus(corpus.score, corpus.label, {"g": np.ones(len(corpus.score))}, cuts=[1.0])
    auc = weighted_auc(corpus.score, corpus.label, np.ones(len(corpus.score)))
    assert measure(everybody, PinnedAuc(trials=4))["g"] == (auc, 0.0)
    assert np.isnan(measure(everybody, PinnedAuc(trials=4, include_subgroup_in_background=False))["g"]).all()


def test_a_corpus_that_changed_after_it_was_ranked_is_refused() -> None:
    corpus, other = random_corpus(1), random_corpus(2)
    changed = corpus.examples, corpus.encoding, corpus.boundaries, other.rank()
    with pytest.raises(InputError):
        sample_pinned_aucs(*changed, PinnedAuc(trials=1))
    with pytest.raises(InputError):
        sum_kept_rows(*changed, PinnedSkew(identity="g1"))


def test_trials_are_refused_by_the_pairs_that_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled_trials, "_MAX_TRIALS", 15)
    corpus = random_corpus(3, crossed=True)
    corpus.encoding = replace(corpus.encoding, min_rows=1 << 20)
    assert (len(corpus.rank().numbers) - 1, len(corpus.encoding.names) - 1) == (3, 6)
    assert corpus.sample(PinnedAuc(trials=5)).shape == (2, 4)
    with pytest.raises(InputError, match="pairs"):
        corpus.sample(PinnedAuc(trials=6))


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
    total = np.array([n_inside, n_inside, n_outside, n_outside]) // 2
    scores = pinned_trials.RangeScores(*blocks, ReferenceSets.of([0, 0], [1]))
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
    [aucs] = pinned_trials.pool_ranges([counted[None]])
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
    assert pinned_trials.pool_ranges(ranges) == [[5 / 8]]


def test_mean_and_deviation() -> None:
    assert np.isnan(mean_and_sd([])).all()
    assert np.isnan(mean_and_sd([0.7])).tolist() == [False, True]
    values = np.random.default_rng(1).random(50).tolist()
    assert mean_and_sd(values) == mean_and_sd(values[::-1]) == (statistics.fmean(values), statistics.stdev(values))


# ---- rows of a cell that are kept


def keep_by_pairs(corpus: LocalCorpus, skew: PinnedSkew) -> list[tuple[int, int]]:
    """Keep the places of each trial in the order of scores, and count all pairs.

    Twice U of the kept rows and of the rows of the other label in the subgroup, and in the background.
    """

    def scores_of(inside: bool, positive: bool) -> list[float]:
        rows = zip(corpus.score.tolist(), corpus.label.tolist(), corpus.states[skew.identity], strict=True)
        return sorted(score for score, label, state in rows if state is inside and label is positive)

    positive = skew.cell.endswith("positive")
    rows, sums = scores_of(skew.cell.startswith("subgroup"), positive), []
    for subset in list_subsets(skew, "model 0", "all", len(rows)):
        kept = [rows[place] for place in draw_positions(subset, 0, len(rows))]
        sides = [scores_of(inside, not positive) for inside in (True, False)]
        pairs = [ordered_doubled(*((side, kept) if positive else (kept, side))).sum() for side in sides]
        sums.append((int(pairs[0]), int(pairs[1])))
    return sums


@pytest.mark.parametrize("cell", FOUR_CELLS)
@pytest.mark.parametrize("levels", [0, 1, 12], ids=lambda levels: f"{levels or 'all'} scores")
def test_kept_rows_against_all_pairs(cell: str, levels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Subsets are halved down to few rows, so that a tie is counted and not drawn."""
    monkeypatch.setattr(subsets, "FEW", 3)
    rows = draw_rows(5, 80, levels, {"other": (0.2, 0.5, 0.3), "asked": (0.4, 0.4, 0.2)})
    skew = PinnedSkew(identity="asked", cell=cell, fraction=0.3, trials=6)
    wanted = keep_by_pairs(LocalCorpus(*rows), skew)
    assert len(set(wanted)) > 1 or levels == 1
    for cuts in ((), (0.3,), (0.0, 0.25, 0.5, 0.7, 0.9, 2.0)):
        _, sums = LocalCorpus(*rows, cuts=cuts).keep_rows(skew)["model 0", "all"]
        assert [*sums] == wanted


def test_each_trial_keeps_as_many_rows_and_other_rows() -> None:
    skew = PinnedSkew(identity="asked", fraction=0.29, trials=50)
    drawn = [draw_positions(subset, 0, 50).tolist() for subset in list_subsets(skew, "model", "all", 50)]
    assert {len(positions) for positions in drawn} == {50 - 15}
    assert len(set(map(tuple, drawn))) == 50
    for other in (
        list_subsets(skew, "model", "short", 50),
        list_subsets(skew, "other", "all", 50),
        list_subsets(replace(skew, identity="other"), "model", "all", 50),
        list_subsets(replace(skew, cell="subgroup_positive"), "model", "all", 50),
        list_subsets(replace(skew, seed=2), "model", "all", 50),
    ):
        assert draw_positions(next(other), 0, 50).tolist() != drawn[0]


@pytest.mark.parametrize(
    ("fraction", "n_rows", "n_dropped"),
    [
        (0.29, 50, 15),
        (0.285, 9500, 2708),
        (0.5, 1, 1),
        (0.5, 0, 0),
        (1e-07, 5_000_000, 1),
        (0.1, 10**18 + 5, 10**17 + 1),
    ],
)
def test_halves_are_dropped_of_the_decimal_that_was_written(fraction: float, n_rows: int, n_dropped: int) -> None:
    assert PinnedSkew(identity="g", fraction=fraction).n_dropped(n_rows) == n_dropped


def test_sums_of_kept_rows_that_pass_64_bits() -> None:
    """A row above so many others that a few rows' placements add up to more than 2^63."""
    rows = pinned_trials.IdentityScores(np.array([[0, 1000]]), np.array([[0, 0]]))
    far, skew = 10**18, PinnedSkew(identity="g", cell="subgroup_positive", trials=2)
    kept = list_subsets(skew, "model", "all", 1000)
    below, total = [far, 0, 3, 0], [far + 7, 1000, 3, 0]
    sums = pinned_trials.sum_kept(rows, below, total, FOUR_CELLS.index(skew.cell), kept)
    assert sums.tolist() == [[2 * 500 * far, 2 * 500 * 3]] * 2


def test_an_identity_that_does_not_exist_is_refused() -> None:
    encoding = encoding_of(flags("male"), category("race", "Asian", "Black"), array("groups", "gay"))
    for name in ("male", "race=Asian", "gay"):
        check_identity(encoding, name)
    for unknown in ("race=White", "(overall)"):
        with pytest.raises(InputError, match="male, race=Asian, race=Black, gay"):
            check_identity(encoding, unknown)
