"""People of three heights on Spark, measured as conf/heights.toml says."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import biasspark
from biasspark.config import load_config
from biasspark.synthetic.blocks import generate
from biasspark.synthetic.heights import HEIGHTS, HeightsRequest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_configuration_measures_every_height(spark: SparkSession) -> None:
    config = load_config(ROOT / "conf" / "heights.toml")
    suite = biasspark.bias_metrics(
        generate(spark, HeightsRequest(1, rows_per_cell=40)),
        models=config.models,
        label=config.label.column,
        identities=config.identities,
    )
    found = {row.identity: (row.n_subgroup_negative, row.n_subgroup_positive) for row in suite.collect()}
    assert found == dict.fromkeys((f"height={height}" for height in HEIGHTS), (40, 40))
