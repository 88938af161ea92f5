"""Tall, average and short people, block by block, without Spark."""

from __future__ import annotations

import tomllib
import zlib
from pathlib import Path
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from biasspark.synthetic.blocks import BLOCK_ROWS, make_table
from biasspark.synthetic.heights import (
    HEIGHTS,
    LOWEST_MEAN,
    SCHEMA,
    SD,
    SEPARATION,
    SHIFTS,
    UNIT,
    HeightsRequest,
)

ROOT = Path(__file__).resolve().parents[2]
TRUNCATED = 1e-6
"""More than what lies outside of [0, 1] before truncation."""


def cell_scores(table: pa.Table, height: str, label: bool) -> npt.NDArray[np.float64]:
    rows = (table["height"].to_numpy() == height) & (table["label"].to_numpy() == label)
    scores: npt.NDArray[np.float64] = table["score"].to_numpy()[rows]
    return scores


def test_a_seed_gives_these_very_scores() -> None:
    # Another number here is another corpus for every user.
    whole = np.rint(make_table(HeightsRequest(1, 500))["score"].to_numpy() * 1e8).astype("<i8")
    assert zlib.crc32(whole.tobytes()) == 1769677731


@pytest.mark.parametrize("rows", [1, 7, 1_000, BLOCK_ROWS + 900])
@pytest.mark.parametrize("seed", [1, 2])
def test_no_share_is_off_by_more_than_one_row(rows: int, seed: int) -> None:
    """Every score of a cell lies in its own nth part of a normal distribution."""
    table = make_table(HeightsRequest(seed, rows))
    assert table["id"].to_pylist() == list(range(6 * rows))
    for height, shift in zip(HEIGHTS, SHIFTS, strict=True):
        for label in (False, True):
            scores = cell_scores(table, height, label)
            wanted = NormalDist(LOWEST_MEAN + (shift + SEPARATION * label) * UNIT, SD)
            shares = np.array([wanted.cdf(score) for score in scores])
            places = np.arange(rows)
            assert len(scores) == rows
            assert np.all(shares > places / rows - TRUNCATED)
            assert np.all(shares < (places + 1) / rows + TRUNCATED)


def test_heights_of_the_same_scores_are_drawn_apart() -> None:
    table = make_table(HeightsRequest(3, 50))
    assert not np.array_equal(*(cell_scores(table, height, True) for height in ("tall", "average")))


def test_configuration_reads_what_is_written() -> None:
    config = tomllib.loads((ROOT / "conf" / "heights.toml").read_text("utf-8"))
    names = SCHEMA.names
    used = [config["corpus"]["id"], config["label"]["column"], *config["identities"]["categorical"]]
    assert sorted([*used, *config["models"].values()]) == sorted(names)


def test_every_fault_is_named() -> None:
    assert HeightsRequest(-1, 0).find_faults() == [
        "seed: -1. A seed is a whole number from 0. Leave out the sign.",
        "rows_per_cell: 0. No cell may be empty. Ask for 1 or more.",
    ]
    assert HeightsRequest(0, 1).find_faults() == []
