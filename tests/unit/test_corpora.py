"""What holds of every synthetic corpus, block by block, without Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from biasspark.errors import ConfigError
from biasspark.synthetic.blocks import BLOCK_ROWS, check_request, make_table
from biasspark.synthetic.civil_rows import CivilShape
from biasspark.synthetic.heights import HeightsRequest
from biasspark.synthetic.imbalanced import ImbalancedRequest
from biasspark.synthetic.madlibs import MadlibsRequest
from biasspark.synthetic.shapes import ShapesRequest

OF_CELLS = (ShapesRequest(3, 2 * BLOCK_ROWS), HeightsRequest(3, 2 * BLOCK_ROWS))
OF_ROWS = tuple(kind(BLOCK_ROWS + 50, 3) for kind in (CivilShape, ImbalancedRequest, MadlibsRequest))


def name_of(request: object) -> str:
    return type(request).__name__


@pytest.mark.parametrize("asked", [*OF_ROWS, *OF_CELLS], ids=name_of)
def test_blocks_depend_on_seed_and_number_only(asked: Any) -> None:
    first, later = map(asked.make_block, (0, 1))
    assert asked.make_block(0).equals(first)
    assert not replace(asked, seed=4).make_block(1).equals(later)
    assert later["id"][0].as_py() == first.num_rows == BLOCK_ROWS


@pytest.mark.parametrize("longer", OF_ROWS, ids=name_of)
def test_a_shorter_corpus_is_the_beginning_of_a_longer_one(longer: Any) -> None:
    whole = make_table(longer)
    assert whole["id"].to_pylist() == list(range(BLOCK_ROWS + 50))
    for rows in (BLOCK_ROWS + 7, 17):
        assert make_table(replace(longer, rows=rows)).equals(whole.slice(0, rows))


def test_what_cannot_be_generated_is_refused() -> None:
    check_request(HeightsRequest(0, 1))
    with pytest.raises(ConfigError) as caught:
        check_request(HeightsRequest(-1, 0))
    assert list(caught.value.faults) == HeightsRequest(-1, 0).find_faults()
