"""Two models' placements and their products, and U without each group of rows, against loops over all pairs."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from biasspark.columns import FOUR_CELLS, GROUP
from biasspark.corpus.encoding import Encoding, Source
from biasspark.errors import InputError
from biasspark.ranking import jackknife_replicates
from biasspark.ranking.jackknife_replicates import count_replicates
from biasspark.ranking.kernels.group_replicates import GroupSums, merge_groups
from biasspark.ranking.paired_placements import sum_paired_placements
from biasspark.ranking.task_rows import TaskRows
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
                x, y = (ordered_doubled(one[cells[among]], one[cells[cell]]).sum(axis=0).tolist() for one in scores)
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


# ---- without one group of rows after another

G = 5


def test_more_sources_than_the_keys_of_rows_hold_are_refused() -> None:
    encoding, batch, _ = make_examples(11)
    many = tuple(Source(f"c{n}", "category", True, (f"c{n}=x",)) for n in range(60))
    with pytest.raises(InputError, match="identities"):
        count_replicates(frame_of([batch]), replace(encoding, sources=many), [np.empty(0)] * 2, [1], 100)


@pytest.mark.parametrize("edges", [[], [-0.5, 0.0, 0.5]])
def test_a_replicate_is_the_corpus_without_the_group(edges: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each model has its own rows: the first scores some that the second does not."""
    monkeypatch.setattr(jackknife_replicates, "_IDENTITIES_A_CHUNK", 2)
    encoding, batch, (label, of_both, short, *scores) = make_examples(11)
    of_first = TaskRows(pa.Table.from_batches([batch]), encoding).stays
    assert of_both.sum() < of_first.sum() < len(label)
    states, groups = np.array(find_states(encoding, batch), object), np.random.default_rng(2).integers(0, G, len(label))
    grouped = batch.append_column(GROUP, pa.array(groups, pa.int32()))
    tasks = frame_of(*([grouped.slice(start, 40)] for start in range(0, len(label), 40)))
    rows = count_replicates(tasks, encoding, [np.array(edges)] * 2, range(len(encoding.names)), G).to_pylist()
    assert len(rows) == 4 * (1 + 6 * (len(encoding.names) - 1))
    for row in rows:
        model = encoding.models.index(row["model"])
        inside = (of_both if model else of_first) & (short if row["slice"] != "all" else True)
        state = states[:, encoding.names.index(row["identity"])]
        low, high = (
            inside & (state == cell.startswith("subgroup")) & (label == cell.endswith("positive"))
            for cell in (row["low_cell"], row["high_cell"])
        )
        for group in [None, *range(G)]:
            kept = groups != group
            cells = [scores[model][cell & kept] for cell in (low, high)]
            wanted = (len(cells[0]), len(cells[1]), int(ordered_doubled(*cells).sum()))
            if group is None:
                assert (row["n_low"], row["n_high"], row["u_doubled"]) == wanted
            else:
                left = (row[f"{name}_left"][group] for name in ("n_low", "n_high", "u_doubled"))
                assert tuple(left) == wanted


def test_without_identities_there_is_nothing_to_leave_out() -> None:
    encoding, batch, _ = make_examples(11)
    rows = batch.append_column(GROUP, pa.array(np.zeros(len(batch)), pa.int32()))
    assert not len(count_replicates(frame_of([rows]), encoding, [np.array([])] * 2, [], G))


def test_sums_of_a_large_corpus_do_not_wrap_around() -> None:
    n_rows = np.full((1, 4, 2), 1 << 40, object)
    one = GroupSums(n_rows, np.zeros((1, 6), object), np.zeros((1, 6, 2), object))
    total = merge_groups(one, one)
    assert total.two_u[0, 0] == 2 * (1 << 41) ** 2
    assert total.two_u_of_group[0, 0].tolist() == [2 * 3 * (1 << 80)] * 2
