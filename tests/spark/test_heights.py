"""People of three heights on Spark: the same rows however the work is cut up, measured as conf/heights.toml says."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import biasspark
from biasspark.config import load_config
from biasspark.errors import ConfigError
from biasspark.synthetic.blocks import map_blocks
from biasspark.synthetic.heights import (
    COLUMNS,
    HEIGHTS,
    HeightsRequest,
    heights_block,
    heights_corpus,
)

ROOT = Path(__file__).resolve().parents[2]
REQUEST = HeightsRequest(seed=11, rows_per_cell=50)


def ordered(corpus: DataFrame) -> list[tuple[object, ...]]:
    return [tuple(row) for row in corpus.orderBy("id").collect()]


def test_corpus_is_that_of_the_kernel_whatever_the_partitions(spark: SparkSession) -> None:
    table = pa.Table.from_batches([heights_block(block, REQUEST) for block in range(REQUEST.n_blocks)])
    wanted = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    corpus = heights_corpus(spark, 11, rows_per_cell=50)
    assert ", ".join(f"{name} {kind.upper()}" for name, kind in corpus.dtypes) == COLUMNS
    assert ordered(corpus) == wanted
    backwards = spark.range(REQUEST.n_blocks - 1, -1, -1, 4)
    assert ordered(map_blocks(backwards, partial(heights_block, request=REQUEST), COLUMNS)) == wanted


@pytest.mark.slow
def test_configuration_measures_every_height(spark: SparkSession) -> None:
    config = load_config(ROOT / "conf" / "heights.toml")
    suite = biasspark.bias_metrics(
        heights_corpus(spark, 1, rows_per_cell=40),
        models=config.models,
        label=config.label.column,
        identities=config.identities,
    )
    found = {row.identity: (row.n_subgroup_negative, row.n_subgroup_positive) for row in suite.collect()}
    assert found == dict.fromkeys((f"height={height}" for height in HEIGHTS), (40, 40))


def test_wrong_arguments_are_refused_before_any_work(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match=r"^seed: -1\. .*\nrows_per_cell: 0\. "):
        heights_corpus(spark, -1, rows_per_cell=0)
