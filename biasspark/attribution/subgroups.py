"""What the ranking engine says of segments that were ranked as identities: AUCs, and variances of their means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from biasspark.attribution.evidence import NodeSums
from biasspark.attribution.influence import CellPair, RankedSegment, influence_variance
from biasspark.columns import (
    BACKGROUND_NEGATIVE,
    BACKGROUND_POSITIVE,
    IDENTITY,
    MODEL,
    SLICE,
    SUBGROUP_NEGATIVE,
    SUBGROUP_POSITIVE,
)
from biasspark.features import Condition

WITHIN = (SUBGROUP_NEGATIVE, SUBGROUP_POSITIVE)
_BPSN = (SUBGROUP_NEGATIVE, BACKGROUND_POSITIVE)
_BNSP = (BACKGROUND_NEGATIVE, SUBGROUP_POSITIVE)

Pairs = Mapping[tuple[str, str], Mapping[str, Any]]
"""Rows of ``u_statistics`` by (low_cell, high_cell)."""

ConditionNames = Mapping[frozenset[tuple[int, frozenset[int]]], str]


@dataclass(frozen=True)
class Subgroups:
    """What was ranked.

    Attributes
    ----------
    named
        By model, slice and identity.
    names
        The identity that stands for the honest rows which meet a condition.
    """

    named: Mapping[tuple[str, str, str], Pairs]
    names: ConditionNames

    def variance(self, place: tuple[str, str, Condition], sums: NodeSums) -> float | None:
        """Return the variance of the mean attribution of the honest rows of a (model, slice) that meet a condition."""
        model, name, condition = place
        return variance_of_mean(self.named[model, name, self.names[frozenset(condition.items())]], sums)


def name_conditions(conditions: Iterable[Condition]) -> ConditionNames:
    """Name every condition; equal ones have one name."""
    different = dict.fromkeys(frozenset(condition.items()) for condition in conditions)
    return {condition: f"biasspark condition {number}" for number, condition in enumerate(different)}


def read_statistics(statistics: pa.Table) -> dict[tuple[str, str, str], dict[tuple[str, str], Mapping[str, Any]]]:
    """Return the rows of ``u_statistics`` by (model, slice, identity) and (low_cell, high_cell)."""
    found: dict[tuple[str, str, str], dict[tuple[str, str], Mapping[str, Any]]] = {}
    for row in statistics.to_pylist():
        found.setdefault((row[MODEL], row[SLICE], row[IDENTITY]), {})[row["low_cell"], row["high_cell"]] = row
    return found


def variance_of_mean(pairs: Pairs, sums: NodeSums) -> float | None:
    """Return the variance of the mean normalised attribution of a segment's honest rows: see `influence_variance`."""
    subgroup, bpsn, bnsp = read_cells(pairs)
    negative_square_sum = sums.honest_negative.ordered_square_sum(subgroup.n_high + bpsn.n_high)
    positive_square_sum = sums.honest_positive.ordered_square_sum(subgroup.n_low + bnsp.n_low)
    return influence_variance(RankedSegment(subgroup, bpsn, bnsp, negative_square_sum, positive_square_sum))


def read_cells(pairs: Pairs) -> tuple[CellPair, CellPair, CellPair]:
    """Return the pairs of cells that a `RankedSegment` has: within the segment, and of either cell with all others."""
    subgroup, bpsn, bnsp = (
        CellPair(*(int(pairs[cells][name]) for name in CellPair._fields)) for cells in (WITHIN, _BPSN, _BNSP)
    )
    return subgroup, bpsn, bnsp
