"""How the scores of every cell are distributed: exact counts in bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.columns import (
    BACKGROUND_NEGATIVE,
    BACKGROUND_POSITIVE,
    CROSSED,
    FOUR_CELLS,
    IDENTITY,
    MODEL,
    NEGATIVE,
    OVERALL,
    POSITIVE,
    SLICE,
)
from biasspark.metrics.statistics import list_by_model


@dataclass(frozen=True)
class Bins:
    """The bins of one model: their ends, one more than bins, and the place of each end among the edges.

    No score lies outside.
    """

    ends: Sequence[float]
    places: Sequence[int]


def score_histograms(reached: DataFrame, bins: Mapping[str, Bins]) -> DataFrame:
    """Return one row for each (model, slice, identity, cell, bin) that has rows.

    Parameters
    ----------
    reached : DataFrame
        `Ranking.reached`.
    bins : mapping of str to Bins
        By model.

    Returns
    -------
    DataFrame
        The table ``score_histograms``, less the run's columns. A bin holds the scores from its low end, with it, to its
        high end, without it; the last bin with it. ``(overall)`` has the cells ``negative`` and ``positive``.

    Notes
    -----
    The Positive AEG is the area under the curve of the share of subgroup positives at or above a bin against that of
    background positives, less 1/2 (Nuanced, figure 2); by bins it is off by what ties within a bin hide. Lazy; no
    shuffle.
    """
    is_overall = F.col(IDENTITY) == OVERALL
    of_identity = [F.when(~is_overall, _cell(name, name)) for name in FOUR_CELLS]
    of_slice = [
        F.when(is_overall, _cell(name, cell))
        for name, cell in ((NEGATIVE, BACKGROUND_NEGATIVE), (POSITIVE, BACKGROUND_POSITIVE))
    ]
    cells = F.array_compact(F.array(*of_identity, *of_slice))
    keys = (MODEL, SLICE, IDENTITY, CROSSED)
    by_cell = reached.select(*keys, F.explode(cells).alias("counted"))
    by_bin = by_cell.select(*keys, "counted.*", F.explode(_bins_of_model(bins)).alias("one"))
    n_rows = F.element_at("reaching", F.col("one.here")) - F.element_at("reaching", F.col("one.next"))
    named = by_bin.select(*keys, "cell", "one.bin", "one.bin_low", "one.bin_high", n_rows.alias("n_rows"))
    return named.where(F.col("n_rows") > 0)


def _cell(name: str, column: str) -> Column:
    """Return a cell and its counts, with a last one for what lies above every score."""
    reaching = F.concat(F.col(column), F.array(F.lit(0).cast("bigint")))
    return F.struct(F.lit(name).alias("cell"), reaching.alias("reaching"))


def _bins_of_model(bins: Mapping[str, Bins]) -> Column:
    """Return the bins of a row's model, and which counts begin and follow them.

    The first count is of all rows, the second of those that reach place 0. After the last bin comes the last count.
    """
    written = {}
    for model, own in bins.items():
        begins = [place + 2 for place in own.places]
        ends = zip(own.ends, own.ends[1:], begins, [*begins[1:-1], -1], strict=False)
        written[model] = [
            f"named_struct('bin', {n}, 'bin_low', {low!r}D, 'bin_high', {high!r}D, 'here', {here}, 'next', {then})"
            for n, (low, high, here, then) in enumerate(ends)
        ]
    return list_by_model(written)
