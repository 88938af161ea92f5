"""What holds of every synthetic corpus on Spark: the same rows however the work is cut up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from biasspark.errors import ConfigError
from biasspark.synthetic.blocks import BLOCK_ROWS, Request, make_table, map_blocks
from biasspark.synthetic.civil import civil_corpus
from biasspark.synthetic.civil_rows import CivilShape
from biasspark.synthetic.heights import HeightsRequest, heights_corpus
from biasspark.synthetic.imbalanced import ImbalancedRequest, imbalanced_corpus
from biasspark.synthetic.madlibs import MadlibsRequest, madlibs_corpus
from biasspark.synthetic.shapes import ShapesRequest, score_shapes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SMALL = (
    (civil_corpus, CivilShape(rows=50, seed=11)),
    (imbalanced_corpus, ImbalancedRequest(rows=50, seed=11)),
    (madlibs_corpus, MadlibsRequest(rows=50, seed=11)),
)
CELLS = (
    (score_shapes, ShapesRequest(seed=11, rows_per_cell=50)),
    (heights_corpus, HeightsRequest(seed=11, rows_per_cell=50)),
)
LARGE = (
    CivilShape(rows=2 * BLOCK_ROWS + 5, seed=11),
    ImbalancedRequest(rows=BLOCK_ROWS + 5, seed=11),
    MadlibsRequest(rows=2 * BLOCK_ROWS + 5, seed=11, terms=("gay", "african", "african american", "american")),
)
EITHER = [*(asked for _, asked in CELLS), *(pytest.param(asked, marks=pytest.mark.slow) for asked in LARGE)]


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


@pytest.mark.parametrize(("generate", "asked"), SMALL, ids=name_of)
def test_so_many_rows_are_those_of_their_request(
    spark: SparkSession, generate: Callable[..., DataFrame], asked: Request
) -> None:
    assert_rows(generate(spark, 50, 11), asked)


@pytest.mark.parametrize(("generate", "asked"), CELLS, ids=name_of)
def test_cells_are_those_of_their_request(
    spark: SparkSession, generate: Callable[..., DataFrame], asked: Request
) -> None:
    assert_rows(generate(spark, 11, rows_per_cell=50), asked)


@pytest.mark.parametrize(
    ("generate", "asked", "faults"),
    [
        (civil_corpus, {"rows": 0, "unannotated": 1.5}, r"rows: 0\. .*\nunannotated: 1\.5\. "),
        (imbalanced_corpus, {"rows": 0, "imbalanced": {"tall": 0.1}}, r'rows: 0\. .*\nimbalanced: "tall"\. '),
        (madlibs_corpus, {"rows": 0, "terms": ["gay", "teacher"]}, r'rows: 0\. .*\nterms: "teacher"\. '),
        (score_shapes, {"rows_per_cell": 1, "shapes": ()}, r"rows_per_cell: 1\. .*\nshapes: none\. "),
        (heights_corpus, {"rows_per_cell": 0}, r"rows_per_cell: 0\. "),
    ],
)
def test_wrong_arguments_are_refused_before_any_work(
    spark: SparkSession, generate: Callable[..., DataFrame], asked: dict[str, object], faults: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{faults}"):
        generate(spark, seed=1, **asked)
