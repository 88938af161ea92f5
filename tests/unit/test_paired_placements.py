"""Two models' placements and their products, and U without each group of rows, against loops over all pairs."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from biasspark.columns import FOUR_CELLS, GROUP
from biasspark.errors import InputError
from biasspark.ranking import jackknife_replicates
from biasspark.ranking.jackknife_replicates import count_replicates
from biasspark.ranking.kernels.group_replicates import GroupSums, merge_groups
from biasspark.ranking.paired_placements import sum_paired_placements
from tests.harness.ranking_without_spark import category, frame_of
from tests.oracle.suite import ordered_doubled
from tests.unit.test_task_rows import random_corpus


@pytest.mark.parametrize("crossed", [False, True])
def test_sums_are_those_of_all_pairs_whatever_the_cut(crossed: bool) -> None:
    corpus = random_corpus(7, crossed=crossed)
    encoding, label, states = corpus.encoding, corpus.label, np.array(corpus.states, object)
    usable = corpus.usable.all(axis=0)  # both models score a row
    both = corpus.batch.filter(pa.array(usable))
    everyone = range(len(encoding.names))
    whole = sum_paired_placements(frame_of([both]), encoding, [np.empty(0)] * 2, everyone)
    tasks = frame_of(*([both.slice(start, 17)] for start in range(0, len(both), 17)))
    boundaries = [np.array([-0.5, 0.5, 1.0]), np.array([0.0, 0.3])]
    assert (sum_paired_placements(tasks, encoding, boundaries, everyone) == whole).all()
    for number, identity in product(range(2), everyone):
        inside = usable & (corpus.inside if number else True)
        cells = {
            cell: np.flatnonzero(
                inside & (states[:, identity] == cell.startswith("subgroup")) & (label == cell.endswith("positive"))
            )
            for cell in FOUR_CELLS
        }
        for (n, cell), (m, among) in product(enumerate(FOUR_CELLS), enumerate(FOUR_CELLS)):
            if cell != among and (identity or "subgroup" not in cell + among):
                x, y = (
                    ordered_doubled(one[cells[among]], one[cells[cell]]).sum(axis=0).tolist() for one in corpus.scores
                )
                squares = (sum(a * b for a, b in zip(u, v, strict=True)) for u, v in ((x, x), (y, y), (x, y)))
                assert whole[number, identity, n, m].tolist() == [len(x), sum(x), sum(y), *squares]


def test_some_identities_alone_have_the_sums_that_they_have_among_all() -> None:
    corpus, boundaries = random_corpus(crossed=False), [np.zeros(1)] * 2
    every, some = (
        sum_paired_placements(frame_of([corpus.batch]), corpus.encoding, boundaries, identities)
        for identities in (range(5), [2, 3])
    )
    assert (some == every[:, 2:4]).all()


def test_more_rows_of_a_range_than_a_worker_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("biasspark.ranking.row_blocks.MAX_ROWS_A_RANGE", 20)
    corpus = random_corpus()
    with pytest.raises(InputError, match="share one score"):
        sum_paired_placements(frame_of([corpus.batch]), corpus.encoding, [np.empty(0)] * 2, range(2))


# ---- without one group of rows after another

G = 5


def test_more_sources_than_the_keys_of_rows_hold_are_refused() -> None:
    corpus, many = random_corpus(), tuple(category(f"c{n}", "x") for n in range(60))
    with pytest.raises(InputError, match="identities"):
        count_replicates(frame_of([corpus.batch]), replace(corpus.encoding, sources=many), [np.empty(0)] * 2, [1], 100)


@pytest.mark.parametrize("edges", [[], [-0.5, 0.0, 0.5]])
def test_a_replicate_is_the_corpus_without_the_group(edges: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each model has its own rows."""
    monkeypatch.setattr(jackknife_replicates, "_IDENTITIES_A_CHUNK", 2)
    corpus = random_corpus(11, crossed=False)
    encoding, label, states = corpus.encoding, corpus.label, np.array(corpus.states, object)
    groups = np.random.default_rng(2).integers(0, G, len(label))
    grouped = corpus.batch.append_column(GROUP, pa.array(groups, pa.int32()))
    tasks = frame_of(*([grouped.slice(start, 40)] for start in range(0, len(label), 40)))
    rows = count_replicates(tasks, encoding, [np.array(edges)] * 2, range(len(encoding.names)), G).to_pylist()
    assert len(rows) == 4 * (1 + 6 * (len(encoding.names) - 1))
    for row in rows:
        model = encoding.models.index(row["model"])
        inside = corpus.usable[model] & (corpus.inside if row["slice"] != "all" else True)
        state = states[:, encoding.names.index(row["identity"])]
        low, high = (
            inside & (state == cell.startswith("subgroup")) & (label == cell.endswith("positive"))
            for cell in (row["low_cell"], row["high_cell"])
        )
        for group in [None, *range(G)]:
            kept = groups != group
            cells = [corpus.scores[model][cell & kept] for cell in (low, high)]
            wanted = (len(cells[0]), len(cells[1]), int(ordered_doubled(*cells).sum()))
            if group is None:
                assert (row["n_low"], row["n_high"], row["u_doubled"]) == wanted
            else:
                left = (row[f"{name}_left"][group] for name in ("n_low", "n_high", "u_doubled"))
                assert tuple(left) == wanted


def test_without_identities_there_is_nothing_to_leave_out() -> None:
    corpus = random_corpus()
    rows = corpus.batch.append_column(GROUP, pa.array(np.zeros(len(corpus.batch)), pa.int32()))
    assert not len(count_replicates(frame_of([rows]), corpus.encoding, [np.array([])] * 2, [], G))


def test_sums_of_a_large_corpus_do_not_wrap_around() -> None:
    n_rows = np.full((1, 4, 2), 1 << 40, object)
    one = GroupSums(n_rows, np.zeros((1, 6), object), np.zeros((1, 6, 2), object))
    total = merge_groups(one, one)
    assert total.two_u[0, 0] == 2 * (1 << 41) ** 2
    assert total.two_u_of_group[0, 0].tolist() == [2 * 3 * (1 << 80)] * 2
