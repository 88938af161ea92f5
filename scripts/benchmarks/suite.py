"""The bias suite as the benchmarks within a session ask for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

import biasspark
from biasspark.api.keywords import Engine
from biasspark.synthetic.civil_shape import MODELS
from scripts.benchmarks.task import LABEL, THRESHOLD


def suite(
    corpus: DataFrame,
    engine: Engine = "blocks",
    *,
    models: Sequence[str] = MODELS,
    slices: Mapping[str, str] | None = None,
    **identities: Any,
) -> DataFrame:
    """Return the suite of models over the identities that these keys of ``[identities]`` name."""
    return biasspark.bias_metrics(
        corpus,
        models=list(models),
        label=LABEL,
        label_threshold=THRESHOLD,
        identities={"threshold": THRESHOLD, **identities},
        slices=slices,
        engine=engine,
    )
