"""What the documents print of data that lie beside the project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import biasspark
from tests.harness.documents import blocks_of

NUMERIC = ["age", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
CATEGORICAL = ["workclass", "marital_status", "occupation", "race", "sex", "native_country"]


@pytest.mark.slow
def test_leaves_of_the_census(spark: SparkSession, shared_data: Path) -> None:
    """Each line names a leaf: by its rows, its mean, the interval, and whether it is found."""
    (block,) = blocks_of("text", "leaves of the census")
    leaves = biasspark.attribution_segments(
        spark.read.parquet(str(shared_data / "adult" / "adult_test_scored.parquet")),
        id="row_id",
        label="label",
        models={"lr": "score_lr", "rf": "score_rf", "rf_small": "score_rf_small"},
        numeric=NUMERIC,
        categorical=CATEGORICAL,
        compare=[("rf_small", "lr")],
        tree={"max_depth": 3},
    ).where("is_leaf")
    ends = ("mean_honest", "mean_honest_low", "mean_honest_high")
    found = {
        (row.model, str(row.n_honest), *(f"{row[end]:.4f}" for end in ends), str(row.found)) for row in leaves.collect()
    }
    numbers = re.findall(r"^(\w+) .* (\d+) +(\S+) +(\S+) +(\S+) +(True|False)$", block.text, re.MULTILINE)
    assert len(numbers) == 3
    assert set(numbers) <= found
