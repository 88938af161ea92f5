"""Score shapes on Spark, measured as conf/shapes.toml says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import biasspark
from biasspark.config import load_config
from biasspark.synthetic.blocks import generate
from biasspark.synthetic.shapes import SLICES, ShapesRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_configuration_measures_every_shape(spark: SparkSession) -> None:
    config = load_config(ROOT / "conf" / "shapes.toml")
    suite = biasspark.bias_metrics(
        generate(spark, ShapesRequest(1, rows_per_cell=40)),
        models=config.models,
        label=config.label.column,
        identities=config.identities,
        slices=config.slices,
    )
    cells = ("n_background_negative", "n_background_positive", "n_subgroup_negative", "n_subgroup_positive")
    found = {row["slice"]: tuple(row[cell] for cell in cells) for row in suite.where("identity = 'subgroup'").collect()}
    assert found.pop("all") == (320, 320, 300, 340)
    assert found == dict.fromkeys(SLICES, (40, 40, 40, 40)) | {"C": (40, 40, 20, 60)}
