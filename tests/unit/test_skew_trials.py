"""Rows kept at random, by ranges, against the same draws from a plain list of rows and a count of all pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from biasspark.columns import FOUR_CELLS
from biasspark.config import PinnedSkew
from biasspark.errors import InputError
from biasspark.ranking import subsets
from biasspark.ranking.blocks import Block
from biasspark.ranking.placements import Cell
from biasspark.ranking.skew_trials import SkewTrials, Standing, find_cells, sum_kept
from biasspark.ranking.sorting import CELLS, MEMBERSHIPS
from biasspark.ranking.subsets import draw_places
from tests.oracle.pairs import State
from tests.oracle.suite import ordered_doubled
from tests.ranking_without_spark import codebook_of, draw_rows, flags, membership_fields, pack, sort_batches

OTHER_LABEL = {
    "subgroup_negative": ("subgroup_positive", "background_positive"),
    "subgroup_positive": ("subgroup_negative", "background_negative"),
    "background_negative": ("subgroup_positive", "background_positive"),
    "background_positive": ("subgroup_negative", "background_negative"),
}
Trial = tuple[int, int]


@dataclass(frozen=True)
class Corpus:
    """Scores, labels, and the states of two identities, the second of which is asked for."""

    scores: Sequence[float]
    labels: Sequence[bool]
    states: dict[str, list[State]]

    def scores_of(self, cell: str) -> list[float]:
        inside, positive = cell.startswith("subgroup"), cell.endswith("positive")
        rows = zip(self.scores, self.labels, self.states["asked"], strict=True)
        return sorted(score for score, label, state in rows if state is inside and label is positive)

    def cells(self, cuts: Sequence[float]) -> dict[int, dict[str, Cell]]:
        """Give the four cells of every range that has rows."""
        codebook = codebook_of(flags(*self.states))
        number = codebook.number["asked"]
        blocks: dict[int, dict[int, list[Block]]] = defaultdict(lambda: {CELLS: [], MEMBERSHIPS: []})
        fields = membership_fields(codebook, self.states) | {("label", 0): self.labels}
        for part in sort_batches([pack(codebook, fields, [self.scores])], codebook, [cuts]):
            if part.kind in {CELLS, MEMBERSHIPS}:
                blocks[part.score_range][part.kind].append(Block.decode(part.data))
        mask = codebook.base_masks[number]
        return {
            place: find_cells(held[CELLS], held[MEMBERSHIPS], mask, number) for place, held in sorted(blocks.items())
        }

    def standings(self, cuts: Sequence[float], place: int) -> dict[str, Standing]:
        """Count the rows of every cell in lower ranges, in this one, and in all."""
        found = {}
        for cell in FOUR_CELLS:
            ranges = [sum(cut <= score for cut in cuts) for score in self.scores_of(cell)]
            found[cell] = Standing(sum(one < place for one in ranges), ranges.count(place), len(ranges))
        return found

    def sum_ranges(self, trials: SkewTrials, cuts: Sequence[float]) -> list[Trial]:
        ranges = [
            list(sum_kept(cells, self.standings(cuts, place), trials)) for place, cells in self.cells(cuts).items()
        ]
        return [(sum(one[0] for one in parts), sum(one[1] for one in parts)) for parts in zip(*ranges, strict=True)]

    def count_pairs(self, trials: SkewTrials) -> list[Trial]:
        """Keep the places of each trial in the order of scores, and count all pairs."""
        cell = trials.skew.cell
        rows, found = self.scores_of(cell), []
        for subset in trials.subsets(len(rows)):
            kept = [rows[place] for place in draw_places(subset, 0, len(rows))[0]]
            sums = []
            for name in OTHER_LABEL[cell]:
                others = self.scores_of(name)
                low, high = (kept, others) if cell.endswith("negative") else (others, kept)
                sums.append(int(ordered_doubled(low, high).sum()))
            found.append((sums[0], sums[1]))
        return found


def random_corpus(seed: int, levels: int, rows: int = 80) -> Corpus:
    return Corpus(*draw_rows(seed, rows, levels, {"other": (0.2, 0.5, 0.3), "asked": (0.4, 0.4, 0.2)}))


@pytest.mark.parametrize("cell", FOUR_CELLS)
@pytest.mark.parametrize("levels", [0, 1, 12], ids=lambda levels: f"{levels or 'all'} scores")
def test_against_all_pairs(cell: str, levels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Subsets are halved down to few rows, so that a tie is counted and not drawn."""
    monkeypatch.setattr(subsets, "FEW", 3)
    corpus = random_corpus(5, levels)
    trials = SkewTrials(PinnedSkew(identity="asked", cell=cell, fraction=0.3, trials=6), "model", "all")
    wanted = corpus.count_pairs(trials)
    assert len(set(wanted)) > 1 or levels == 1
    for cuts in ((), (0.3,), (0.0, 0.25, 0.5, 0.7, 0.9, 2.0)):
        assert corpus.sum_ranges(trials, cuts) == wanted


def test_each_trial_keeps_as_many_rows_and_other_rows() -> None:
    skew = PinnedSkew(identity="asked", fraction=0.29, trials=50)
    drawn = [draw_places(subset, 0, 50)[0].tolist() for subset in SkewTrials(skew, "model", "all").subsets(50)]
    assert {len(places) for places in drawn} == {50 - 15}
    assert len(set(map(tuple, drawn))) == 50
    for other in (
        SkewTrials(skew, "model", "short"),
        SkewTrials(skew, "other", "all"),
        SkewTrials(PinnedSkew(identity="other", fraction=0.29), "model", "all"),
        SkewTrials(PinnedSkew(identity="asked", cell="subgroup_positive", fraction=0.29), "model", "all"),
        SkewTrials(PinnedSkew(identity="asked", fraction=0.29, seed=2), "model", "all"),
    ):
        assert draw_places(next(other.subsets(50)), 0, 50)[0].tolist() != drawn[0]


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


def test_sums_that_pass_64_bits() -> None:
    """A row above so many others that a few rows' placements add up to more than 2^63."""
    ties = Cell(np.array([0.5]), np.array([1000]))
    nobody = Cell(np.empty(0), np.empty(0, np.int64))
    cells = dict(zip(FOUR_CELLS, (nobody, ties, nobody, nobody), strict=True))
    far = 10**18
    standings = {
        "subgroup_negative": Standing(far, 0, far + 7),
        "subgroup_positive": Standing(0, 1000, 1000),
        "background_negative": Standing(3, 0, 3),
        "background_positive": Standing(0, 0, 0),
    }
    trials = SkewTrials(PinnedSkew(identity="g", cell="subgroup_positive", trials=2), "model", "all")
    assert list(sum_kept(cells, standings, trials)) == [(2 * 500 * far, 2 * 500 * 3)] * 2


def test_a_range_that_changed_is_refused() -> None:
    corpus = random_corpus(5, 12)
    (cells,) = corpus.cells(()).values()
    standings = corpus.standings((), 0)
    n_rows = standings["background_positive"].here
    standings["background_positive"] = Standing(0, n_rows + 1, n_rows + 1)
    with pytest.raises(InputError) as refused:
        next(sum_kept(cells, standings, SkewTrials(PinnedSkew(identity="asked"), "model", "all")))
    assert str(refused.value) == (
        f"corpus: a range of scores has {n_rows} rows of background_positive, and had {n_rows + 1} when it was ranked. "
        "The corpus must not change while it is read. Run again when it is at rest."
    )
