"""The bias of an identity by name, from the intervals of its metrics. Nuanced leaves the taxonomy open (section 5).

Every value of the suite says how often one of two rows scores above the other. So all have the same unit, pairs in a
hundred, and share one margin (`MARGIN`):

shifted
    A label of the identity is *shifted* up or down where its average equality gap, whose sign is the direction
    (definition 3), is at least the margin away from 0, and its interval excludes 0 or the shift lowers its AUC.
    Negatives that are shifted up lower the BPSN AUC, positives that are shifted down the BNSP AUC.
lowered
    An AUC is *lowered* where it is below the background AUC by at least the margin, and the intervals of the two do not
    overlap. The background AUC is what all three would be if the identity made no difference. A bias is *large* where
    an AUC is lowered, "so that negative examples from the subgroup are mis-ordered with positive examples from the
    overall distribution", and else *small*, as only the gaps show it (section 3.3, A and B).
lowered by spread
    Where scores are shifted and equally spread, normal on some scale, the probits z add up: z(BPSN) = z(background) -
    z(1/2 + Negative AEG), z(BNSP) = z(background) + z(1/2 + Positive AEG), and the subgroup AUC loses by both shifts.
    What a lowered AUC loses beyond that is due to *spread*; it counts if it exceeds the larger of the two shifts. All
    values are taken at the ends of their intervals that explain most, so that neither small samples nor complete
    separation are called wide.

The first that applies gives the name, here with the shapes of Table 2:

1. ``wide`` (G): an AUC is lowered by spread.
2. ``poorly_separated`` (E): the subgroup AUC is lowered, and no label is shifted, or negatives up and positives down.
3. ``wide``: no label is shifted, and the BPSN or BNSP AUC is lowered.
4. The directions in which the labels are shifted (A to D): see `_BY_SHIFTS`. ``no_evidence`` (F) if neither is.

So a name never contradicts the sign of a gap: if it says up, the gap of each label that it names is positive. A metric
without a value or an interval is no evidence. Without any value there is no name.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from statistics import NormalDist

import numpy as np

from biasspark.arrays import ROUNDING, Flags, Floats, Ints, Strings, apply
from biasspark.columns import LARGE, NO_BIAS, POORLY_SEPARATED, SMALL, SUMMARIZED_AUCS, SUMMARIZED_GAPS, WIDE

MARGIN = 0.05
"""A smaller difference, of fewer than 5 pairs in 100, gets no name even if it is significant.

It is close to the 0.06 below which Vargha and Delaney 2000 call P(X > Y) + P(X = Y)/2 - 1/2 negligible.
"""

_LEAST = MARGIN - ROUNDING
"""A difference of exactly the margin, of 0.45 from 0.5 or of 0.5 from 0.55, may be less as a double."""

_FARTHEST = 1e-12
"""Probabilities are clipped to this distance from 0 and 1, where probits are infinite."""

_BY_SHIFTS = {
    (1, 1): "shifted_up",
    (1, 0): "negatives_shifted_up",
    (0, 1): "positives_shifted_up",
    (-1, -1): "shifted_down",
    (-1, 0): "negatives_shifted_down",
    (0, -1): "positives_shifted_down",
    (1, -1): "closer_together",
    (-1, 1): "farther_apart",
    (0, 0): NO_BIAS,
}
"""Names by the directions in which negatives and positives are shifted."""


def name_bias(metrics: Mapping[str, Floats]) -> tuple[Strings, Strings]:
    """Return the name of the bias of each identity, and whether it is ``small`` or ``large``.

    `metrics` has ``X``, ``X_low`` and ``X_high`` of the five metrics and of the background AUC, NaN where there is
    none. The name is None if none of the five has a value; the size is None without a name, or if it is
    ``no_evidence``.
    """
    background = metrics["background_auc"]
    with np.errstate(invalid="ignore"):
        lowered = {
            name: (metrics[f"{name}_high"] < metrics["background_auc_low"]) & (background - metrics[name] >= _LEAST)
            for name in SUMMARIZED_AUCS
        }
        negatives = _direction(metrics, "negative_aeg", lowers_auc_up=lowered["bpsn_auc"])
        positives = _direction(metrics, "positive_aeg", lowers_auc_down=lowered["bnsp_auc"])
    shifts = zip(negatives.tolist(), positives.tolist(), strict=True)
    names = np.array([_BY_SHIFTS[both] for both in shifts], object)
    none = (negatives == 0) & (positives == 0)
    names[none & (lowered["bpsn_auc"] | lowered["bnsp_auc"])] = WIDE
    names[(none | ((negatives == 1) & (positives == -1))) & lowered["subgroup_auc"]] = POORLY_SEPARATED
    names[_lowered_by_spread(metrics, lowered)] = WIDE
    sizes = np.where(np.any(list(lowered.values()), axis=0), LARGE, SMALL).astype(object)
    undefined = np.all([np.isnan(metrics[name]) for name in SUMMARIZED_AUCS + SUMMARIZED_GAPS], axis=0)
    sizes[undefined | (names == NO_BIAS)] = None
    names[undefined] = None
    return names, sizes


def _direction(
    metrics: Mapping[str, Floats], name: str, lowers_auc_up: Flags | bool = False, lowers_auc_down: Flags | bool = False
) -> Ints:
    """Return 1 where a label is shifted up and -1 where down, with the interval of its gap or the AUC as evidence."""
    gap, low, high = (metrics[f"{name}{end}"] for end in ("", "_low", "_high"))
    up = (gap >= _LEAST) & ((low > 0) | lowers_auc_up)
    down = (gap <= -_LEAST) & ((high < 0) | lowers_auc_down)
    return up.astype(np.int64) - down


def _lowered_by_spread(metrics: Mapping[str, Floats], lowered: Mapping[str, Flags]) -> Flags:
    """Return whether some lowered AUC loses more than the shifts explain, by more than the larger shift."""
    wide = np.zeros(len(metrics["background_auc"]), bool)
    rows = np.flatnonzero(np.any(list(lowered.values()), axis=0))
    background = _probits(metrics["background_auc_low"][rows])
    ends = {
        name: [_probits(0.5 + metrics[f"{name}_{end}"][rows]) for end in ("low", "high")] for name in SUMMARIZED_GAPS
    }
    up, down = np.maximum(ends["negative_aeg"][1], 0), np.maximum(-ends["positive_aeg"][0], 0)
    largest = np.fmax.reduce([np.abs(end) for gap in ends.values() for end in gap])
    for name, explained in (("subgroup_auc", up + down), ("bpsn_auc", up), ("bnsp_auc", down)):
        lost = background - _probits(metrics[f"{name}_high"][rows])
        wide[rows] |= lowered[name][rows] & (lost - explained > largest)
    return wide


def _probits(probabilities: Floats) -> Floats:
    within = np.clip(probabilities, _FARTHEST, 1 - _FARTHEST)
    return apply(lambda value: value if isnan(value) else NormalDist().inv_cdf(value), within)
