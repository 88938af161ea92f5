"""U without one group of rows after another, against corpora that lack the group."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from biasspark.columns import CELL_PAIRS, FOUR_CELLS, GROUP
from biasspark.ranking.crowd_blocks import cut_examples
from biasspark.ranking.crowds import Crowds
from biasspark.ranking.fields import Fields
from biasspark.ranking.grouped_blocks import GroupSums, combine_groups, sum_groups
from tests.oracle.suite import ordered_doubled
from tests.ranking_without_spark import find_states
from tests.unit.test_paired_blocks import make_examples

G = 5


@pytest.mark.parametrize("edges", [[], [-0.5, 0.0, 0.5]])
def test_what_a_group_touches_is_what_the_corpus_loses_without_it(edges: list[float]) -> None:
    """Each model has its own rows: the first scores some that the second does not."""
    book, batch, (label, of_both, short, *scores) = make_examples(11)
    of_first = Fields.of(pa.Table.from_batches([batch]), book).usable[0]
    assert of_both.sum() < of_first.sum() < len(label)
    states, groups = np.array(find_states(book, batch), object), np.random.default_rng(2).integers(0, G, len(label))
    table = pa.Table.from_batches([batch]).append_column(GROUP, pa.array(groups, pa.int32()))
    crowds = Crowds.of(book, range(len(book.names)))
    boundaries = [np.array(edges), np.array(edges)]
    parts = [
        part
        for one in table.to_batches(max_chunksize=40)
        for part in cut_examples([one], book, crowds, boundaries, [GROUP])
    ]
    for model, number in ((0, 0), (1, 0), (0, 1), (1, 1)):
        own = [part for part in parts if (part.model, part.slice) == (model, number)]
        blocks = [[part.data for part in own if part.score_range == r] for r in sorted({p.score_range for p in own})]
        ranges = [GroupSums.decode(sum_groups(data, crowds, G).encode(), len(book.names), G) for data in blocks]
        found = combine_groups(ranges, len(book.names), G)
        inside = (of_both if model else of_first) & (short if number else True)
        for place in range(1, len(book.names)):
            for pair, names in enumerate(CELL_PAIRS):
                low, high = (
                    inside & (states[:, place] == cell.startswith("subgroup")) & (label == cell.endswith("positive"))
                    for cell in names
                )
                whole = ordered_doubled(scores[model][low], scores[model][high]).sum()
                assert found.u_doubled[place, pair] == whole
                assert (
                    found.n[place, FOUR_CELLS.index(names[0])].tolist()
                    == np.bincount(groups[low], minlength=G).tolist()
                )
                for group in range(G):
                    kept = groups != group
                    left = ordered_doubled(scores[model][low & kept], scores[model][high & kept]).sum()
                    assert found.u_doubled[place, pair] - found.touched[place, pair, group] == left


def test_sums_of_a_large_corpus_do_not_wrap_around() -> None:
    n = np.full((1, 4, 2), 1 << 40)
    one = GroupSums(n, np.zeros((1, 6), np.int64), np.zeros((1, 6, 2), np.int64))
    found = combine_groups([one, one], 1, 2)
    assert found.u_doubled[0, 0] == 2 * (1 << 41) ** 2
    assert found.touched[0, 0].tolist() == [2 * 3 * (1 << 80)] * 2
