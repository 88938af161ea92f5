"""How often the maps beside the main one scan a corpus of which repeated ids are rejected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from biasspark.config import Config, parse_config
from biasspark.maps.attribution import attribute
from biasspark.maps.comparisons import compare
from tests.spark_effort import Effort, watch

N_ROWS = 2_000
PARTS: dict[str, Any] = {
    "label": {"column": "y"},
    "models": {"old": "old", "new": "new"},
    "identities": {"columns": ["male"]},
    "output": {"path": "/warehouse"},
}

pytestmark = pytest.mark.classic("Spark Connect tells of no stage")


@pytest.fixture(scope="module")
def corpus(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("scans") / "corpus")
    rows = spark_session.range(N_ROWS).selectExpr(
        *(
            "CAST(greatest(id, 1) AS STRING) AS id",
            "id % 3 = 0 AS y",
            "pmod(id, 7) / 7 AS old",
            "pmod(id, 5) / 5 AS new",
        ),
        *("CAST(id % 2 AS DOUBLE) AS male", "id % 11 AS length", "concat('g', id % 4) AS colour"),
    )
    rows.coalesce(1).write.parquet(path)
    return path


def configure(corpus: str, **parts: Any) -> Config:
    return parse_config(PARTS | parts | {"corpus": {"name": "c", "path": corpus, "id": "id"}}, Path())


def test_attribution_surveys_the_corpus_before_ids_are_joined_to_it(spark: SparkSession, corpus: str) -> None:
    config = configure(corpus, attribution={"numeric": ["length"], "groupings": {"colour": "colour"}, "tree": {}})
    efforts: list[Effort] = []
    with watch(spark, N_ROWS, efforts):
        attribute(spark.read.parquet(corpus), config, "id", "reject")
    with watch(spark, N_ROWS, efforts):
        attribute(spark.read.parquet(corpus), config, "id", "allow")
    assert efforts[0].n_scans == efforts[1].n_scans > 0


def test_comparing_surveys_the_corpus_before_ids_are_joined_to_it(spark: SparkSession, corpus: str) -> None:
    efforts: list[Effort] = []
    with watch(spark, N_ROWS, efforts):
        comparison = compare(spark.read.parquet(corpus), configure(corpus, compare={"baseline": "old"}), "id", "reject")
    assert efforts[0].n_scans == 3  # survey, and rows beside their ids
    assert comparison.tally.rejects["duplicate_id"] == 2
