"""The score distributions of Nuanced, Table 2, block by block, without Spark."""

from __future__ import annotations

import tomllib
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from scipy import stats

from biasspark.synthetic.blocks import BLOCK_ROWS, make_table
from biasspark.synthetic.shapes import (
    SHAPES,
    SLICES,
    ScoreShape,
    ShapesRequest,
    open_unit,
    truncated_normal,
)

ROOT = Path(__file__).resolve().parents[2]
ROWS = 5_000
BY_NAME = {shape.name: shape for shape in SHAPES}


def cell_scores(table: pa.Table, name: str, subgroup: int, label: int) -> npt.NDArray[np.float64]:
    columns = {column: table[column].to_numpy() for column in table.column_names}
    rows = (columns["shape"] == name) & (columns["subgroup"] == subgroup) & (columns["label"] == bool(label))
    scores: npt.NDArray[np.float64] = columns["score"][rows]
    return scores


@pytest.fixture(scope="module")
def drawn() -> pa.Table:
    return make_table(ShapesRequest(seed=1, rows_per_cell=ROWS))


def test_a_seed_gives_these_very_scores(drawn: pa.Table) -> None:
    # Another number here is another corpus for every user.
    whole = np.rint(drawn["score"].to_numpy() * 1e8).astype("<i8")
    assert zlib.crc32(whole.tobytes()) == 3745296469


def test_shapes_are_those_of_the_configuration() -> None:
    assert list(BY_NAME) == ["none", *"ABCDEFG"]
    assert tomllib.loads((ROOT / "conf" / "shapes.toml").read_text("utf-8"))["slices"] == SLICES


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("subgroup", [0, 1])
@pytest.mark.parametrize("label", [0, 1])
def test_scores_are_truncated_normals(drawn: pa.Table, name: str, subgroup: int, label: int) -> None:
    shape = BY_NAME[name]
    mean = (shape.background, shape.subgroup)[subgroup][label]
    sd = (shape.background_sd, shape.subgroup_sd)[subgroup]
    wanted = stats.truncnorm((0.0 - mean) / sd, (1.0 - mean) / sd, mean, sd)
    # 64 cells: all of them pass with a chance of 99.9 % where the distribution is right.
    assert stats.kstest(cell_scores(drawn, name, subgroup, label), wanted.cdf).pvalue > 1e-5


def test_nothing_is_clipped(drawn: pa.Table) -> None:
    scores = drawn["score"].to_numpy()
    assert scores.min() > 0.0
    assert scores.max() < 1.0
    assert np.array_equal(np.rint(scores * 1e8) / 1e8, scores)


def test_ends_of_the_uniform_numbers() -> None:
    bits = np.array([0, 2**64 - 1], dtype=np.uint64)
    ends = open_unit(bits)
    assert 0.0 < ends[0] < ends[1] < 1.0
    for mean, sd in ((0.2, 0.05), (0.95, 0.05), (0.3, 0.2), (0.05, 0.05)):
        low, high = truncated_normal(ends, mean, sd)
        assert 0.0 <= low < mean < high <= 1.0
        assert not np.signbit(low)
    # A truncation that cuts through the middle.
    assert truncated_normal(np.array([0.5]), 0.0, 0.1)[0] == pytest.approx(0.1 * stats.norm.ppf(0.75), abs=1e-8)


def test_cells_have_their_sizes(drawn: pa.Table) -> None:
    for name in BY_NAME:
        sizes = [len(cell_scores(drawn, name, *divmod(cell, 2))) for cell in range(4)]
        subgroup = [ROWS // 2, 3 * ROWS // 2] if name == "C" else [ROWS, ROWS]
        assert sizes == [ROWS, ROWS, *subgroup], name
    for rows in (2, 3, 5, 1_001):
        sizes = BY_NAME["C"].cell_sizes(rows)
        assert sizes == (rows, rows, rows // 2, 2 * rows - rows // 2)
    assert drawn["id"].to_pylist() == list(range(8 * 4 * ROWS))


def test_a_smaller_cell_is_the_beginning_of_a_larger_one(drawn: pa.Table) -> None:
    small, large = (make_table(ShapesRequest(1, rows, SHAPES[3:5])) for rows in (700, BLOCK_ROWS + 900))
    assert large["id"].to_pylist() == list(range(2 * 4 * (BLOCK_ROWS + 900)))
    for name in "CD":
        for cell in range(4):
            few, some, many = (cell_scores(table, name, *divmod(cell, 2)) for table in (small, drawn, large))
            assert len(few) < len(some) < len(many)
            assert np.array_equal(few, some[: len(few)])
            assert np.array_equal(some, many[: len(some)])
            assert len(np.unique(many)) > 0.99 * len(many)


def test_every_fault_is_named() -> None:
    assert ShapesRequest(-1, 1, ()).find_faults() == [
        "seed: -1. A seed is a whole number from 0. Leave out the sign.",
        "rows_per_cell: 1. Shape C has half as many negatives in its subgroup, and no cell may be empty. "
        "Ask for 2 or more.",
        "shapes: none. A corpus has at least one shape. Leave the argument out for all eight.",
    ]
    assert ShapesRequest(0, 2, (ScoreShape("own", (0.1, 0.2), (0.3, 0.4)),)).find_faults() == []
