"""Score shapes on Spark: the same rows however the work is cut up, measured as conf/shapes.toml says."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import biasspark
from biasspark.config import load_config
from biasspark.errors import ConfigError
from biasspark.synthetic.blocks import map_blocks
from biasspark.synthetic.shapes import (
    COLUMNS,
    SCHEMA,
    SLICES,
    ShapesRequest,
    score_shapes,
    shape_block,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).resolve().parents[2]
REQUEST = ShapesRequest(seed=11, rows_per_cell=50)
N_BLOCKS = 8 * 4


def ordered(corpus: DataFrame) -> list[tuple[object, ...]]:
    return [tuple(row) for row in corpus.orderBy("id").collect()]


def from_the_kernel(request: ShapesRequest) -> list[tuple[object, ...]]:
    table = pa.Table.from_batches([shape_block(block, request) for block in range(N_BLOCKS)])
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 5])
def test_rows_do_not_depend_on_partitions(spark: SparkSession, partitions: int) -> None:
    blocks = spark.range(N_BLOCKS - 1, -1, -1, partitions)
    assert ordered(map_blocks(blocks, partial(shape_block, request=REQUEST), COLUMNS)) == from_the_kernel(REQUEST)


def test_corpus_is_that_of_the_kernel(spark: SparkSession) -> None:
    corpus = score_shapes(spark, 11, rows_per_cell=50)
    assert ordered(corpus) == from_the_kernel(REQUEST)
    assert ", ".join(f"{name} {kind.upper()}" for name, kind in corpus.dtypes) == COLUMNS
    assert corpus.columns == SCHEMA.names


@pytest.mark.slow
def test_configuration_measures_every_shape(spark: SparkSession) -> None:
    config = load_config(ROOT / "conf" / "shapes.toml")
    suite = biasspark.bias_metrics(
        score_shapes(spark, 1, rows_per_cell=40),
        models=config.models,
        label=config.label.column,
        identities=config.identities,
        slices=config.slices,
    )
    cells = ("n_background_negative", "n_background_positive", "n_subgroup_negative", "n_subgroup_positive")
    found = {row["slice"]: tuple(row[cell] for cell in cells) for row in suite.where("identity = 'subgroup'").collect()}
    assert found.pop("all") == (320, 320, 300, 340)
    assert found == dict.fromkeys(SLICES, (40, 40, 40, 40)) | {"C": (40, 40, 20, 60)}


def test_wrong_arguments_are_refused_before_any_work(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match=r"^seed: -1\. .*\nrows_per_cell: 0\. "):
        score_shapes(spark, -1, rows_per_cell=0)
