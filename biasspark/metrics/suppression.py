"""Small-cell suppression: values that rest on too few rows, and all numbers of groups that are too small.

It removes AUCs and variances before any table is made: all values derived from a missing one are NULL, and it is left
out of every sum, minimum and mean. Tables of counts mask the groups in `UStatistics.suppressed` themselves.

A group is the rows with a label and a score in an identity, in its background, or in all of a slice. If a group is
smaller than the minimum, the counts of its identity are suppressed along with its values: subtracting them from those
of the slice would reveal the group. An empty background reveals nobody. What could be revealed by subtracting other
tables, runs or overlapping identities from each other is not checked.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from biasspark.arrays import Flags, Ints
from biasspark.columns import BELOW_MINIMUM_ROWS, OVERALL_METRIC, WITHHELD
from biasspark.config import MinimumCellRows, Privacy
from biasspark.metrics.suite import SUITE
from biasspark.metrics.u_statistics import OVERALL_PAIR, UStatistics


def require_rows(statistics: UStatistics, evidence: MinimumCellRows | None) -> UStatistics:
    """Return the statistics without AUCs and variances over cells with fewer rows than their metric needs.

    Counts and U stay: they are exact for any number of rows. The reason becomes ``below_minimum_rows`` where there was
    a value.
    """
    if evidence is None:
        return statistics
    needed = np.zeros_like(statistics.n_low)
    for metric in SUITE:
        needed[metric.pair] = np.maximum(needed[metric.pair], evidence.rows_needed(metric.name))
    needed[OVERALL_PAIR, statistics.groups.is_overall] = evidence.rows_needed(OVERALL_METRIC)
    too_few = ~np.isnan(statistics.auc) & (np.minimum(statistics.n_low, statistics.n_high) < needed)
    return statistics.without(too_few, BELOW_MINIMUM_ROWS)


def suppress_statistics(statistics: UStatistics, privacy: Privacy | None) -> UStatistics:
    """Return the statistics without all numbers of identities and slices whose group or background is too small."""
    cells, is_overall = statistics.counts.cells, statistics.groups.is_overall  # which has its rows in the background
    subgroup, background = cells[0] + cells[1], cells[2] + cells[3]
    small = is_small(np.where(is_overall, background, subgroup), np.where(is_overall, 0, background), privacy)
    hidden = np.broadcast_to(small, statistics.auc.shape)
    return replace(statistics.without(hidden, WITHHELD), suppressed=small)


def is_small(group: Ints, background: Ints, privacy: Privacy | None) -> Flags:
    """Return whether a group or its background has too few rows; an empty background does not count."""
    if privacy is None:
        return np.zeros(group.shape, bool)
    least = privacy.min_group_rows
    small: Flags = (group < least) | ((background > 0) & (background < least))
    return small
