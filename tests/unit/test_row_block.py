"""Cells of what rows have in common, and blocks, against tuples in Python."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from biasspark.config import Attribution, Pairs
from biasspark.config.attribution_settings import NamedPair
from biasspark.corpus.encoding import Encoding
from biasspark.errors import InputError
from biasspark.features import NULL_BIN, Feature
from biasspark.ranking.feature_columns import RowDescription, SurveyedValues, cut_into_bins, find_groups
from biasspark.ranking.kernels.row_block import join_cells, keep_cells, number_cells
from biasspark.ranking.task_rows import TaskRows

NAN = float("nan")
WIDE = np.array([[first, *[65_535] * 7] for first in (0, 1)])
"""Rows that differ by a digit beyond 64 bits."""
TABLES = st.integers(1, 8).flatmap(
    lambda n_columns: st.lists(
        st.tuples(*[st.one_of(st.integers(0, 2), st.sampled_from([1000, 65_535]))] * n_columns), max_size=30
    ).map(lambda rows: np.array(rows, np.int64).reshape(-1, n_columns))
)


def read_cells(cell: np.ndarray, values: np.ndarray) -> list[list[int]]:
    assert (str(cell.dtype), str(values.dtype)) == ("uint32", "uint16")
    assert len({*map(tuple, values.T.tolist())}) == values.shape[1]
    rows: list[list[int]] = values.T[cell].tolist()
    return rows


@example(rows=WIDE, cuts=[1])
@given(rows=TABLES, cuts=st.lists(st.integers(0, 30), max_size=3).map(sorted))
def test_cells_say_what_rows_have(rows: np.ndarray, cuts: list[int]) -> None:
    whole = number_cells(list(rows.T))
    assert read_cells(*whole) == rows.tolist()
    assert whole[1].shape[1] == len({*map(tuple, rows.tolist())})
    parts = [number_cells(list(part.T)) for part in np.split(rows, cuts)]
    joined = join_cells(parts)
    assert read_cells(*joined) == rows.tolist()
    assert joined[1].tolist() == whole[1].tolist()


@given(rows=TABLES, chosen=st.lists(st.integers(0, 29), max_size=10))
def test_cells_without_rows_are_left_out(rows: np.ndarray, chosen: list[int]) -> None:
    cell, values = number_cells(list(rows.T))
    indices = [index for index in chosen if index < len(rows)]
    kept = keep_cells(cell[indices], values)
    assert read_cells(*kept) == rows[indices].tolist()
    assert kept[1].shape[1] == len({*map(tuple, rows[indices].tolist())})


def test_numbers_are_in_the_bin_that_begins_at_or_below_them() -> None:
    """NaN is above all numbers, and has a bin where a row has it."""
    values = pa.array([None, -1.5, -0.1, -0.0, 0.0, 5e-324, 1.9, 2.0, float("inf"), NAN], pa.float64())
    for starts, bin_of_nan in (((-1.5, 0.0, 2.0), 3), ((-1.5, 0.0, 2.0, NAN), 4)):
        feature = Feature("x", "x", numeric=True, values=starts, nullable=True)
        assert cut_into_bins(values, feature).tolist() == [NULL_BIN, 1, 1, 2, 2, 2, 2, 3, 3, bin_of_nan]
        assert cut_into_bins(values[:0], feature).tolist() == []
    without = Feature("x", "x", numeric=True, values=(), nullable=True)
    assert cut_into_bins(values[:1], without).tolist() == [NULL_BIN]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_texts_are_in_the_bin_or_the_group_of_their_value(kind: pa.DataType) -> None:
    """Those that are not listed are in the last group."""
    values = pa.array(["b", None, "", "é", "B", "new"], kind)
    feature = Feature("k", "k", numeric=False, values=("", "b", "é"), nullable=True)
    assert cut_into_bins(values[:4], feature).tolist() == [2, NULL_BIN, 1, 3]
    assert find_groups(values, ("(null)", "", "b", "é", "(other)")).tolist() == [2, 0, 1, 3, 4, 4]
    assert find_groups(values, ("(null)", "(other)")).tolist() == [1, 0, 1, 1, 1, 1]


def test_values_that_were_not_surveyed_are_refused() -> None:
    text = Feature("k", "k", numeric=False, values=("a",), nullable=True)
    with pytest.raises(InputError):
        cut_into_bins(pa.array([None, "new"]), text)
    with pytest.raises(InputError):
        cut_into_bins(pa.array([None, 0.5]), Feature("x", "x", numeric=True, values=(1.0, 2.0), nullable=True))


def test_rows_have_their_pairs_and_their_hashes_if_they_are_drawn() -> None:
    encoding = Encoding(models=("m",), slices=("all",), sources=())
    label = encoding.fields["label", 0].shift
    table = pa.table({"word_0": [1 << label, 0, 1 << label], "pair_0": [False, True, True], "draw": [3, -1, 7]})
    bare = Attribution(pairs_of={"p": NamedPair(negatives="TRUE", positives="TRUE")})
    drawn = replace(bare, pairs=Pairs())
    for attribution, names, hashes in ((bare, ["pair_0"], []), (drawn, ["pair_0", "draw"], [3, -1, 7])):
        description = RowDescription(attribution, SurveyedValues((), (), (), {}), n_slices=1)
        assert description.names == names
        cell, values, draws = description.describe(TaskRows(table, encoding))
        assert read_cells(cell, values) == [[1, 0, 0], [0, 0, 1], [1, 0, 1]]
        assert draws.tolist() == hashes
