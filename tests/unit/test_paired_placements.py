"""Two models' placements of the same rows and their products, against loops over all pairs, cut in any way."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from biasspark.columns import FOUR_CELLS
from biasspark.corpus.encoding import Encoding
from biasspark.errors import InputError
from biasspark.ranking.paired_placements import sum_paired_placements
from tests.harness.ranking_without_spark import (
    array,
    encoding_of,
    find_states,
    flags,
    frame_of,
    membership_fields,
    pack,
)
from tests.oracle.suite import ordered_doubled

N = 90


def make_examples(seed: int, crossed: bool = False) -> tuple[Encoding, pa.RecordBatch, list[np.ndarray]]:
    """Rows with many ties, some rejected for one model, identities unknown on some of them, and values of an array."""
    rng = np.random.default_rng(seed)
    encoding = encoding_of(
        flags("a", "b"), array("group", "x", "y", nullable=False), models=2, slices=2, crossed=crossed
    )
    drawn = {name: rng.choice(3, N, p=[0.3, 0.5, 0.2]) for name in "ab"}
    states = {name: [(True, False, None)[state] for state in column] for name, column in drawn.items()}
    values = {1: [list(rng.choice(["x", "y"], rng.integers(0, 3))) for _ in range(N)]}
    fields = membership_fields(encoding, states, values)
    fields |= {("label", 0): rng.random(N) < 0.4, ("slice", 1): rng.random(N) < 0.6}
    fields |= {("row_reason", 0): rng.random(N) < 0.1, ("score_reason", 1): 2 * (rng.random(N) < 0.1)}
    scores = [np.round(rng.normal(size=N) + fields["label", 0], 0), np.round(rng.normal(size=N), 1)]
    batch = pack(encoding, fields, scores, values)
    usable = ~fields["row_reason", 0] & (fields["score_reason", 1] == 0)
    return encoding, batch, [fields["label", 0], usable, fields["slice", 1], *scores]


@pytest.mark.parametrize("crossed", [False, True])
def test_sums_are_those_of_all_pairs_whatever_the_cut(crossed: bool) -> None:
    encoding, batch, (label, usable, short, *scores) = make_examples(7, crossed)
    states = np.array(find_states(encoding, batch), object)
    both = batch.filter(pa.array(usable))  # both models score a row
    everyone = range(len(encoding.names))
    whole = sum_paired_placements(frame_of([both]), encoding, [np.empty(0)] * 2, everyone)
    tasks = frame_of(*([both.slice(start, 17)] for start in range(0, len(both), 17)))
    boundaries = [np.array([-0.5, 0.5, 1.0]), np.array([0.0, 0.3])]
    assert (sum_paired_placements(tasks, encoding, boundaries, everyone) == whole).all()
    for number, identity in product(range(2), everyone):
        inside = usable & (short if number else True)
        cells = {
            cell: np.flatnonzero(
                inside & (states[:, identity] == cell.startswith("subgroup")) & (label == cell.endswith("positive"))
            )
            for cell in FOUR_CELLS
        }
        for (n, cell), (m, among) in product(enumerate(FOUR_CELLS), enumerate(FOUR_CELLS)):
            if cell != among and (identity or "subgroup" not in cell + among):
                x, y = (ordered_doubled(own[cells[among]], own[cells[cell]]).sum(axis=0).tolist() for own in scores)
                squares = (sum(a * b for a, b in zip(u, v, strict=True)) for u, v in ((x, x), (y, y), (x, y)))
                assert whole[number, identity, n, m].tolist() == [len(x), sum(x), sum(y), *squares]


def test_some_identities_alone_have_the_sums_that_they_have_among_all() -> None:
    encoding, batch, _ = make_examples(8)
    boundaries = [np.zeros(1)] * 2
    every = sum_paired_placements(frame_of([batch]), encoding, boundaries, range(5))
    some = sum_paired_placements(frame_of([batch]), encoding, boundaries, [2, 3])
    assert (some == every[:, 2:4]).all()


def test_more_rows_of_a_range_than_a_worker_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("biasspark.ranking.row_blocks.MAX_ROWS_A_RANGE", 20)
    encoding, batch, _ = make_examples(8)
    with pytest.raises(InputError, match="share one score"):
        sum_paired_placements(frame_of([batch]), encoding, [np.empty(0)] * 2, range(2))
