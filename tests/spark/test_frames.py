"""Frames of other libraries in a session of Spark: the bits of a file, in the kind that was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

import biasspark
from biasspark.api.frame_kinds import spark_rows
from biasspark.api.keywords import Keywords
from tests.embedded.measure_frames import bits, kind

pytestmark = pytest.mark.spark("frames of Spark")


def odd_frame() -> pd.DataFrame:
    """Columns as pandas has them where values are missing, and of other types than scores usually have."""
    rng = np.random.default_rng(5)
    toxic = rng.random(600) < 0.4
    score = np.round(rng.normal(toxic, 1), 1)
    return pd.DataFrame(
        {
            "toxic": pd.Series(np.where(rng.random(600) < 0.1, np.nan, toxic.astype(object)), dtype=object),
            "half": score.astype(np.float16),
            "nullable": pd.Series(score, dtype="Float32").mask(rng.random(600) < 0.1),
            "unsigned": (10 * score + 100).astype(np.uint64),
            "male": pd.Series(rng.random(600) < 0.5).astype("boolean").mask(rng.random(600) < 0.2),
            "female": pd.Series(rng.random(600), dtype=object).mask(rng.random(600) < 0.2, None),
            "language": pd.Series(rng.choice(["en", "de"], 600), dtype="category"),
            "at": pd.Timestamp("2026-01-15") + pd.to_timedelta(rng.integers(0, 10**15, 600), "ns"),
            "nothing": pd.Series([None] * 600, dtype=object),
        },
        index=rng.permutation(600),
    )


ASKED: dict[str, Any] = {
    "models": ["half", "nullable", "unsigned"],
    "label": "toxic",
    "identities": ["male", "female"],
    "slices": {"en": "language = 'en'", "early": "at < TIMESTAMP'2026-01-20'", "none": "nothing IS NULL"},
}


def test_pandas_gives_the_bits_of_its_file(spark: SparkSession, tmp_path: Path) -> None:
    frame = odd_frame()
    file = frame.assign(half=frame["half"].astype(np.float32), at=frame["at"].astype("datetime64[us]"))
    file.to_parquet(tmp_path / "rows.parquet")
    expected = biasspark.bias_metrics(spark.read.parquet(str(tmp_path / "rows.parquet")), **ASKED)
    metrics = biasspark.bias_metrics(frame, **ASKED)
    assert kind(metrics) == "pandas"
    assert {"Int64", "boolean", "float64"} <= set(map(str, metrics.dtypes))
    assert bits(metrics) == bits(expected)


def test_rows_that_the_driver_sends_are_in_several_partitions(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("biasspark.api.frame_kinds.is_connect", lambda _: True)
    with spark_rows(odd_frame(), Keywords(ASKED).measures()) as rows:
        assert rows.count() == 600
        assert rows.rdd.getNumPartitions() > 1
