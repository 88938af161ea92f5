"""U without one group of rows after another, against corpora that lack the group."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from biasspark.columns import GROUP
from biasspark.corpus.encoding import Source
from biasspark.errors import InputError
from biasspark.ranking import jackknife_replicates
from biasspark.ranking.jackknife_replicates import count_replicates
from biasspark.ranking.kernels.group_replicates import GroupSums, merge_groups
from biasspark.ranking.task_rows import TaskRows
from tests.harness.ranking_without_spark import find_states, frame_of
from tests.oracle.suite import ordered_doubled
from tests.unit.test_paired_placements import make_examples

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
