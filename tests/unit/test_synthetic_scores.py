"""The score distributions of Nuanced, Table 2, and tall, average and short people, without Spark."""

from __future__ import annotations

import tomllib
import zlib
from pathlib import Path
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from scipy import stats

from biasspark.ddl import arrow_schema
from biasspark.synthetic.chunks import CHUNK_ROWS, make_table
from biasspark.synthetic.score_cells import (
    DISTRIBUTIONS,
    LOWEST_MEAN,
    SD,
    SEPARATION,
    SHIFTS,
    SLICES,
    UNIT,
    ScoreDistribution,
    ScoreDistributionsRequest,
    TallAverageShortRequest,
    open_unit,
    truncated_normal,
)

ROOT = Path(__file__).resolve().parents[2]
ROWS = 5_000
TRUNCATED = 1e-6
"""More than what lies outside of [0, 1] before truncation of the scores by height."""

BY_NAME = {shape.name: shape for shape in DISTRIBUTIONS}


def scores_of(table: pa.Table, **cell: object) -> npt.NDArray[np.float64]:
    rows = np.all([table[name].to_numpy() == value for name, value in cell.items()], axis=0)
    scores: npt.NDArray[np.float64] = table["score"].to_numpy()[rows]
    return scores


def cell_scores(table: pa.Table, name: str, subgroup: int, label: int) -> npt.NDArray[np.float64]:
    return scores_of(table, shape=name, subgroup=subgroup, label=bool(label))


def checksum(table: pa.Table) -> int:
    return zlib.crc32(np.rint(table["score"].to_numpy() * 1e8).astype("<i8").tobytes())


@pytest.fixture(scope="module")
def drawn() -> pa.Table:
    return make_table(ScoreDistributionsRequest(seed=1, rows_per_cell=ROWS))


def test_a_seed_gives_these_very_scores(drawn: pa.Table) -> None:
    # Another number here is another corpus for every user.
    assert checksum(drawn) == 3745296469
    assert checksum(make_table(TallAverageShortRequest(1, 500))) == 1769677731


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
    # 64 cells: all of them pass with a chance of 99.9% where the distribution is right.
    assert stats.kstest(cell_scores(drawn, name, subgroup, label), wanted.cdf).pvalue > 1e-5


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
        request = ScoreDistributionsRequest(1, rows, distributions=(BY_NAME["C"],))
        assert [cell.n_rows for cell in request.cells] == [rows, rows, rows // 2, 2 * rows - rows // 2]
    assert drawn["id"].to_pylist() == list(range(8 * 4 * ROWS))
    mine = ScoreDistribution("mine", (0.2, 0.6), (0.2, 0.6), subgroup_positives=0.9)
    request = ScoreDistributionsRequest(1, 1_000, distributions=(mine,))
    assert [cell.n_rows for cell in request.cells] == [1_000, 1_000, 200, 1_800]


def test_a_smaller_cell_is_the_beginning_of_a_larger_one(drawn: pa.Table) -> None:
    small, large = (
        make_table(ScoreDistributionsRequest(1, rows, DISTRIBUTIONS[3:5])) for rows in (700, CHUNK_ROWS + 900)
    )
    assert large["id"].to_pylist() == list(range(2 * 4 * (CHUNK_ROWS + 900)))
    for name in "CD":
        for cell in range(4):
            few, some, many = (cell_scores(table, name, *divmod(cell, 2)) for table in (small, drawn, large))
            assert len(few) < len(some) < len(many)
            assert np.array_equal(few, some[: len(few)])
            assert np.array_equal(some, many[: len(some)])
            assert len(np.unique(many)) > 0.99 * len(many)


@pytest.mark.parametrize("rows", [1, 7, 1_000, CHUNK_ROWS + 900])
@pytest.mark.parametrize("seed", [1, 2])
def test_no_share_is_off_by_more_than_one_row(rows: int, seed: int) -> None:
    """Every score of a cell lies in its own nth part of a normal distribution."""
    table = make_table(TallAverageShortRequest(seed, rows))
    assert table["id"].to_pylist() == list(range(6 * rows))
    for height, shift in SHIFTS.items():
        for label in (False, True):
            scores = scores_of(table, height=height, label=label)
            wanted = NormalDist(LOWEST_MEAN + (shift + SEPARATION * label) * UNIT, SD)
            shares = np.array([wanted.cdf(score) for score in scores])
            positions = np.arange(rows)
            assert len(scores) == rows
            assert np.all(shares > positions / rows - TRUNCATED)
            assert np.all(shares < (positions + 1) / rows + TRUNCATED)


def test_configuration_of_heights_reads_every_column() -> None:
    config = tomllib.loads((ROOT / "conf" / "heights.toml").read_text("utf-8"))
    names = arrow_schema(TallAverageShortRequest.columns).names
    used = [config["corpus"]["id"], config["label"]["column"], *config["identities"]["categorical"]]
    assert sorted([*used, *config["models"].values()]) == sorted(names)
