"""The normalized attribution and the losses of single rows. numpy only."""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

import numpy as np

from biasspark.arrays import Floats, Ints, apply
from biasspark.ranking.kernels.row_block import RowBlock
from biasspark.ranking.kernels.sorted_runs import find_starts

AUC, CROSS_ENTROPY, GINI = "auc", "cross_entropy", "gini"

CLIP = 1e-15
"""The least distance of a probability from 0 and 1: a certain and wrong prediction would cost infinitely much."""

_LEAST_LOG_ODDS = -700.0
"""e^700 is nearly the largest double."""


class Target(NamedTuple):
    """What is predicted for the rows of a model, or of a comparison, in a slice, both by number.

    `name` is one of `config.attribution_settings.TARGETS`. Under the `link` "logit" scores are log-odds.
    """

    model: int
    slice: int
    name: str
    link: str | None = None


def opposite_rows(block: RowBlock, slice_number: int, rows: Ints) -> Ints:
    """Return for each row the number of rows of the slice with the other label."""
    n_opposite: Ints = block.totals[1 - block.label[rows].astype(np.int64), slice_number]
    return n_opposite


def rows_with_opposite(block: RowBlock, slice_number: int) -> Ints:
    """Return the indices of the rows of a slice that have an attribution: none where the slice lacks a label."""
    return block.rows_of(slice_number) if block.totals[:, slice_number].all() else np.zeros(0, np.int64)


def losses(scores: Floats, label: int, link: str | None) -> tuple[Floats, Floats]:
    """Return the cross-entropy and the Gini impurity of rows of one label with these scores.

    With q the probability, y the label:

        cross-entropy = -[y ln q + (1 - y) ln(1 - q)],  q kept 1e-15 away from 0 and 1;
        Gini impurity = 1 - the probability of the true label, 0 to 1.

    Under the `link` "logit" scores are log-odds.
    """
    probability = apply(_logistic, scores) if link == "logit" else scores
    clipped = np.maximum(np.minimum(probability, 1 - CLIP), CLIP)
    inside = np.maximum(np.minimum(probability, 1.0), 0.0)
    return -apply(log, clipped if label else 1 - clipped), 1 - inside if label else inside


def target_values(block: RowBlock, target: Target, rows: Ints) -> Floats:
    """Return the normalized attribution, the cross-entropy or the Gini impurity of some rows of a slice.

    The normalized attribution, of a slice with both labels, is half of the share of correctly ordered pairs of a row,
    ties half: 0 to 1/2. With a baseline, it is the difference of the two models, -1/2 to 1/2: above 0 the model is
    better.
    """
    if target.name == AUC:
        shares: Floats = block.difference(target.slice, rows) / (4 * opposite_rows(block, target.slice, rows))
        return shares
    values = np.empty(len(rows))
    for label in (0, 1):
        of_label = np.flatnonzero(block.label[rows] == label)
        scores = block.scores[rows[of_label]]
        starts = find_starts(scores)
        of_scores = losses(scores[starts], label, target.link)[(CROSS_ENTROPY, GINI).index(target.name)]
        values[of_label] = np.repeat(of_scores, np.diff(np.append(starts, len(scores))))
    return values


def _logistic(log_odds: float) -> float:
    """Return 1 / (1 + e^-x)."""
    return 1 / (1 + exp(-log_odds)) if log_odds > _LEAST_LOG_ODDS else 0.0
