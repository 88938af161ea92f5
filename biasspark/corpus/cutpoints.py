"""Cutpoints of each model, the scores at which its rows are counted: thresholds, and the edges of histogram bins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from pyspark.sql.types import FloatType, StructType

from biasspark.arrays import Floats
from biasspark.config import Measures, divide
from biasspark.corpus.survey import Survey


@dataclass(frozen=True)
class Cutpoints:
    """The cutpoints of one model.

    Attributes
    ----------
    thresholds
        In the order of the configuration, rounded to the type of the model's column: the float32 0.7 is less than 0.7.
    bin_edges
        One more than bins, ascending; empty without histograms.
    """

    thresholds: tuple[float, ...]
    bin_edges: tuple[float, ...]

    @cached_property
    def scores(self) -> Floats:
        """All cutpoints, ascending, each once."""
        return np.unique(np.array([*self.thresholds, *self.bin_edges], np.float64))

    @property
    def threshold_index(self) -> list[int]:
        """Index in `scores` of each threshold."""
        return list(np.searchsorted(self.scores, self.thresholds).tolist())

    @property
    def bin_edge_index(self) -> list[int]:
        """Index in `scores` of each bin edge."""
        return list(np.searchsorted(self.scores, self.bin_edges).tolist())


def place_cutpoints(measures: Measures, survey: Survey, schema: StructType) -> dict[str, Cutpoints]:
    """Return the cutpoints of every model; an empty dict if neither thresholds nor histograms are configured.

    Bins span [0, 1], or, if a score of a labelled row lies outside, the range from the lowest to the highest score.
    """
    if measures.thresholds is None and measures.histograms is None:
        return {}
    at = measures.thresholds.at if measures.thresholds else ()
    cutpoints = {}
    for model, column in measures.models.items():
        is_single = isinstance(schema[column].dataType, FloatType)
        thresholds = tuple(float(np.float32(value)) if is_single else value for value in at)
        cutpoints[model] = Cutpoints(thresholds, _bin_edges(measures, survey.extremes.get(model, (0.0, 1.0))))
    return cutpoints


def _bin_edges(measures: Measures, extremes: tuple[float, float]) -> tuple[float, ...]:
    if measures.histograms is None:
        return ()
    low, high = extremes if extremes[0] < 0 or extremes[1] > 1 else (0.0, 1.0)
    return divide(low, high, measures.histograms.bins)
