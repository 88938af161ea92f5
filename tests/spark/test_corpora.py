"""What holds of every synthetic corpus on Spark: the same rows however the work is cut up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from biasspark.errors import ConfigError
from biasspark.synthetic.blocks import BLOCK_ROWS, Request, generate, make_table, map_blocks
from biasspark.synthetic.civil_rows import CivilShape
from biasspark.synthetic.heights import HeightsRequest
from biasspark.synthetic.imbalanced import ImbalancedRequest
from biasspark.synthetic.madlibs import MadlibsRequest
from biasspark.synthetic.shapes import ShapesRequest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SMALL = (
    CivilShape(rows=50, seed=11),
    ImbalancedRequest(rows=50, seed=11),
    MadlibsRequest(rows=50, seed=11),
)
CELLS = (
    ShapesRequest(seed=11, rows_per_cell=50),
    HeightsRequest(seed=11, rows_per_cell=50),
)
LARGE = (
    CivilShape(rows=2 * BLOCK_ROWS + 5, seed=11),
    ImbalancedRequest(rows=BLOCK_ROWS + 5, seed=11),
    MadlibsRequest(rows=2 * BLOCK_ROWS + 5, seed=11, terms=("gay", "african", "african american", "american")),
)
EITHER = [*CELLS, *(pytest.param(asked, marks=pytest.mark.slow) for asked in LARGE)]


def name_of(asked: object) -> str | None:
    return type(asked).__name__ if hasattr(asked, "make_block") else None


def assert_rows(corpus: DataFrame, asked: Request) -> None:
    wanted = make_table(asked)
    assert corpus.columns == wanted.column_names
    found = [tuple(row) for row in corpus.orderBy("id").collect()]
    assert found == list(zip(*(column.to_pylist() for column in wanted.columns), strict=True))


@pytest.mark.parametrize("asked", EITHER, ids=name_of)
@pytest.mark.parametrize("partitions", [1, 5])
def test_rows_do_not_depend_on_partitions(spark: SparkSession, asked: Request, partitions: int) -> None:
    # From the last block to the first, and some partitions without any.
    assert_rows(map_blocks(spark.range(asked.n_blocks - 1, -1, -1, partitions), asked), asked)


@pytest.mark.parametrize("asked", [*SMALL, *CELLS], ids=name_of)
def test_a_corpus_is_what_its_request_makes(spark: SparkSession, asked: Request) -> None:
    assert_rows(generate(spark, asked), asked)


@pytest.mark.parametrize(
    ("asked", "faults"),
    [
        (CivilShape(0, 1, unannotated=1.5), r"rows: 0\. .*\nunannotated: 1\.5\. "),
        (ImbalancedRequest(0, 1, imbalanced=(("tall", 0.1),)), r'rows: 0\. .*\nimbalanced: "tall"\. '),
        (MadlibsRequest(0, 1, terms=("gay", "teacher")), r'rows: 0\. .*\nterms: "teacher"\. '),
        (ShapesRequest(1, rows_per_cell=1, shapes=()), r"rows_per_cell: 1\. .*\nshapes: none\. "),
        (HeightsRequest(1, rows_per_cell=0), r"rows_per_cell: 0\. "),
    ],
    ids=name_of,
)
def test_wrong_arguments_are_refused_before_any_work(spark: SparkSession, asked: Request, faults: str) -> None:
    with pytest.raises(ConfigError, match=f"^{faults}"):
        generate(spark, asked)
