"""The share of positives of every identity by text length, and the negatives that would balance it (Mitigating)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from biasspark.arrays import Flags, Ints, divide
from biasspark.columns import EVERY_LENGTH, WITHHELD
from biasspark.config import Privacy
from biasspark.metrics.suppression import is_small
from biasspark.tables.schemas import LABEL_BALANCE, Masked, to_table


def label_balance(
    labels: Ints, identities: Sequence[str], length_bins: Sequence[tuple[int, int]], privacy: Privacy | None = None
) -> pa.Table:
    """Return the table ``label_balance``: one row for each (identity, length bin), with the mitigation plan.

    `labels` are negatives and positives by length bin, as in `ranking.counts.Counts`; `length_bins` the minimum and
    maximum length of every bin. The bin ``(all)`` holds every labeled row of any length. Its plan (`negatives_to_add`)
    is the sum over the bins; without bins, the plan of all rows. It is withheld with the plan of any bin that has rows.
    """
    counted = np.concatenate([labels[:, 1:], labels.sum(axis=1, keepdims=True)], axis=1)  # the bins, then (all)
    n_rows, n_positive = counted.sum(axis=2), counted[:, :, 1]
    planned = np.frompyfunc(negatives_to_add, 4, 1)(n_rows, n_positive, n_rows[0], n_positive[0])
    if length_bins and n_positive[0, -1] > 0:
        planned[:, -1] = [sum(filter(None, bins)) for bins in planned[:, :-1]]
    is_hidden = is_small(n_rows, n_rows[0] - n_rows, privacy)
    is_hidden[:, :-1] = _hide_bins(labels.sum(axis=2), privacy)[:, 1:]
    is_plan_hidden = is_hidden.copy()
    is_plan_hidden[:, -1] |= (is_hidden & (n_rows > 0))[:, :-1].any(axis=1)
    hidden, rate, n_identities = is_hidden.ravel(), divide(n_positive, n_rows), len(identities)
    low, high = zip(*length_bins, (None, None), strict=True)
    return to_table(
        LABEL_BALANCE,
        identity=np.repeat(np.array(identities, object), len(low)),
        bucket=[*(f"{low}-{high}" for low, high in length_bins), EVERY_LENGTH] * n_identities,
        length_low=[*low] * n_identities,
        length_high=[*high] * n_identities,
        n_rows=Masked(n_rows.ravel(), hidden),
        n_positive=Masked(n_positive.ravel(), hidden),
        positive_rate=Masked(rate.ravel(), hidden),
        overall_positive_rate=Masked(np.tile(rate[0], n_identities), hidden),
        n_negatives_to_add=Masked(planned.ravel(), is_plan_hidden.ravel()),
        reason=Masked(np.full(len(hidden), WITHHELD, object), ~hidden),
    )


def _hide_bins(n_rows: Ints, privacy: Privacy | None) -> Flags:
    """Return which length bins of each identity are withheld, shape (identities, length bins + 1).

    Bin 0, of the rows in no bin, is in no table. More than the small bins are withheld, the smallest first, where
    ``(all)`` less the other bins would tell the size of a small group; and in every identity those of ``(overall)``,
    whose rates every identity has.
    """
    background = n_rows[0] - n_rows
    hidden = is_small(n_rows, background, privacy)
    hidden[:, 0] = True
    if privacy is None:
        return hidden
    for hidden_bins, inside, outside in zip(hidden, n_rows, background, strict=True):
        hidden_bins[hidden[0]] = True
        for length_bin in np.argsort(inside, kind="stable"):
            if not any(0 < rows[hidden_bins].sum() < privacy.min_group_rows for rows in (inside, outside)):
                break
            hidden_bins[length_bin] = True
    return hidden


def negatives_to_add(n_rows: int, n_positive: int, n_all: int, n_all_positive: int) -> int | None:
    """Return how many more negatives bring the share of positives of an identity down to the share in all rows.

    The smallest a >= 0 with P/(n + a) <= P*/n*: max(0, ceil(P·n* / P*) - n), in integers, with n and P of the identity,
    n* and P* of all rows. None if P* is 0: no number of negatives is enough.
    """
    if n_all_positive == 0:
        return None
    return max(0, -(-n_positive * n_all // n_all_positive) - n_rows)
