"""Rows kept at random, by ranges, against the same draws from a plain list of rows and a count of all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from biasspark.columns import FOUR_CELLS
from biasspark.config import PinnedSkew
from biasspark.errors import InputError
from biasspark.ranking.kernels import subsets
from biasspark.ranking.kernels.pinned_trials import IdentityScores, sum_kept
from biasspark.ranking.sampled_trials import list_subsets, sum_kept_rows
from biasspark.workflows.pinned_skew import check_identity
from tests.harness.drawn_positions import draw_positions
from tests.harness.ranking_without_spark import (
    array,
    category,
    draw_rows,
    encoding_of,
    flags,
    frame_of,
    membership_fields,
    pack,
    rank_batches,
)
from tests.oracle.pairs import State
from tests.oracle.suite import ordered_doubled

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

    def sum_ranges(self, skew: PinnedSkew, cuts: Sequence[float]) -> list[Trial]:
        """Run the job in two tasks, cut at the boundaries."""
        encoding, boundaries = encoding_of(flags(*self.states)), [np.asarray(cuts, float)]
        fields = membership_fields(encoding, self.states) | {("label", 0): self.labels}
        batch = pack(encoding, fields, [self.scores])
        counts, tasks = rank_batches([batch], encoding), frame_of([batch.slice(0, 30)], [batch.slice(30)])
        return [*sum_kept_rows(tasks, encoding, boundaries, counts, skew)["model 0", "all"][1]]

    def count_pairs(self, skew: PinnedSkew) -> list[Trial]:
        """Keep the places of each trial in the order of scores, and count all pairs."""
        rows, found = self.scores_of(skew.cell), []
        for subset in list_subsets(skew, "model 0", "all", len(rows)):
            kept = [rows[place] for place in draw_positions(subset, 0, len(rows))]
            sums = []
            for name in OTHER_LABEL[skew.cell]:
                opposite = self.scores_of(name)
                low, high = (kept, opposite) if skew.cell.endswith("negative") else (opposite, kept)
                sums.append(int(ordered_doubled(low, high).sum()))
            found.append((sums[0], sums[1]))
        return found


@pytest.mark.parametrize("cell", FOUR_CELLS)
@pytest.mark.parametrize("levels", [0, 1, 12], ids=lambda levels: f"{levels or 'all'} scores")
def test_against_all_pairs(cell: str, levels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Subsets are halved down to few rows, so that a tie is counted and not drawn."""
    monkeypatch.setattr(subsets, "FEW", 3)
    corpus = Corpus(*draw_rows(5, 80, levels, {"other": (0.2, 0.5, 0.3), "asked": (0.4, 0.4, 0.2)}))
    skew = PinnedSkew(identity="asked", cell=cell, fraction=0.3, trials=6)
    wanted = corpus.count_pairs(skew)
    assert len(set(wanted)) > 1 or levels == 1
    for cuts in ((), (0.3,), (0.0, 0.25, 0.5, 0.7, 0.9, 2.0)):
        assert corpus.sum_ranges(skew, cuts) == wanted


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


def test_sums_that_pass_64_bits() -> None:
    """A row above so many others that a few rows' placements add up to more than 2^63."""
    rows = IdentityScores(np.array([[0, 1000]]), np.array([[0, 0]]))
    far, skew = 10**18, PinnedSkew(identity="g", cell="subgroup_positive", trials=2)
    kept = list_subsets(skew, "model", "all", 1000)
    below, total = [far, 0, 3, 0], [far + 7, 1000, 3, 0]
    sums = sum_kept(rows, below, total, FOUR_CELLS.index(skew.cell), kept)
    assert sums.tolist() == [[2 * 500 * far, 2 * 500 * 3]] * 2


def test_a_corpus_that_changed_after_it_was_ranked_is_refused() -> None:
    encoding = encoding_of(flags("asked"))
    batch = pack(encoding, membership_fields(encoding, {"asked": [True] * 4}), [[0.1, 0.2, 0.3, 0.4]])
    counts = rank_batches([batch.slice(1)], encoding)
    with pytest.raises(InputError):
        sum_kept_rows(frame_of([batch]), encoding, [np.empty(0)], counts, PinnedSkew(identity="asked"))


def test_an_identity_that_does_not_exist_is_refused() -> None:
    encoding = encoding_of(flags("male"), category("race", "Asian", "Black"), array("groups", "gay"))
    for name in ("male", "race=Asian", "gay"):
        check_identity(encoding, name)
    for unknown in ("race=White", "(overall)"):
        with pytest.raises(InputError, match="male, race=Asian, race=Black, gay"):
            check_identity(encoding, unknown)
