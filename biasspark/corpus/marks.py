"""Where on the score line of a model rows are counted: at thresholds, and at the ends of histogram bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from pyspark.sql.types import FloatType, StructType

from biasspark.arrays import Floats
from biasspark.config import Measures, divide
from biasspark.corpus.survey import Survey


@dataclass(frozen=True)
class Marks:
    """The marks of one model.

    Attributes
    ----------
    thresholds
        In the order of the configuration, as the type of the model's column holds them: the float32 that is written
        0.7 is less than 0.7.
    ends
        The ends of the bins, one more than bins; none without histograms.
    """

    thresholds: tuple[float, ...]
    ends: tuple[float, ...]

    @cached_property
    def edges(self) -> Floats:
        """All marks, ascending, each once."""
        return np.unique(np.array([*self.thresholds, *self.ends], np.float64))

    @property
    def of_thresholds(self) -> list[int]:
        """Where in `edges` the thresholds stand."""
        return self._place(self.thresholds)

    @property
    def of_ends(self) -> list[int]:
        """Where in `edges` the ends of the bins stand."""
        return self._place(self.ends)

    def _place(self, marks: Sequence[float]) -> list[int]:
        places: list[int] = np.searchsorted(self.edges, marks).tolist()
        return places


def mark_scores(measures: Measures, survey: Survey, schema: StructType) -> dict[str, Marks]:
    """Return the marks of every model; of none where neither thresholds nor histograms are configured.

    Bins span [0, 1], or from the least to the greatest score of the rows with a label where one lies outside.
    """
    if measures.thresholds is None and measures.histograms is None:
        return {}
    at = measures.thresholds.at if measures.thresholds else ()
    return {
        name: Marks(_as_held(at, column, schema), _ends(measures, survey.extremes.get(name)))
        for name, column in measures.models.items()
    }


def _as_held(thresholds: Sequence[float], column: str, schema: StructType) -> tuple[float, ...]:
    is_single = isinstance(schema[column].dataType, FloatType)
    return tuple(float(np.float32(value)) if is_single else value for value in thresholds)


def _ends(measures: Measures, extremes: tuple[float, float] | None) -> tuple[float, ...]:
    if measures.histograms is None:
        return ()
    lowest, highest = extremes or (0.0, 1.0)
    inside = lowest >= 0 and highest <= 1
    return divide(*((0.0, 1.0) if inside else (lowest, highest)), measures.histograms.bins)
