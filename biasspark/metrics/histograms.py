"""How the scores of every cell are distributed: exact counts in bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from biasspark.arrays import Flags
from biasspark.columns import FOUR_CELLS, NEGATIVE, POSITIVE
from biasspark.ranking.counts import Counts
from biasspark.tables.schemas import SCORE_HISTOGRAMS, to_table

_CELL_NAMES = np.array([FOUR_CELLS, (NEGATIVE, POSITIVE, NEGATIVE, POSITIVE)], object)
"""The names of the four cells, of an identity and of a whole slice."""


class Bins(NamedTuple):
    """The bins of one model: their edges, ascending, and the index of each among the edges at which rows were counted.

    There is one edge more than bins. No score lies outside.
    """

    edges: Sequence[float]
    indices: Sequence[int]


def score_histograms(counts: Counts, bins: Mapping[str, Bins], suppressed: Flags) -> pa.Table:
    """Return the table ``score_histograms``: one row for each (model, slice, identity, cell, bin) that has rows.

    A bin holds the scores from its low edge, with it, to its high edge, without it; the last bin with it. ``(overall)``
    has the cells ``negative`` and ``positive``. Suppressed groups have no rows.

    Notes
    -----
    The Positive AEG is the area under the curve of the share of subgroup positives at or above a bin against that of
    background positives, less 1/2 (Nuanced, figure 2); by bins it is off by what ties within a bin hide.
    """
    groups, parts = counts.groups, []
    for model, (edges, indices) in bins.items():
        of_model = np.flatnonzero(groups.model == model)
        from_edge = counts.at_or_above[model][:, :, np.array(indices, np.int64) + 1]
        from_edge[:, :, -1] = 0  # nothing lies above the last bin, which holds its high edge
        n_rows = from_edge[:, :, :-1] - from_edge[:, :, 1:]
        n_rows[:, suppressed[of_model]] = 0
        group, cell, bin_ = np.nonzero(n_rows.transpose(1, 0, 2))
        rows, ends = of_model[group], np.array(edges, np.float64)
        parts.append(
            to_table(
                SCORE_HISTOGRAMS,
                **{name: values[rows] for name, values in groups._asdict().items()},
                cell=_CELL_NAMES[groups.is_overall[rows].astype(np.int64), cell],
                bin=bin_.astype(np.int32),
                bin_low=ends[bin_],
                bin_high=ends[bin_ + 1],
                n_rows=n_rows[cell, group, bin_],
            )
        )
    return pa.concat_tables(parts)
