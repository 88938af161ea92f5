"""Pinned AUC as a table: each identity with the four AUCs that it is a weighted mean of, and how sure those are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from biasspark.columns import ALL_ROWS, IDENTITY, MODEL
from biasspark.report.cells import DASH, TableCell, metric_cell, say_bounds, show_bounds, show_number
from biasspark.report.definitions import say_reason
from biasspark.report.facts import NightFacts, Row

PARTS = ("background", "subgroup", "bpsn", "bnsp")
"""The AUCs that pinned AUC is made of, as prefixes of columns."""


@dataclass(frozen=True, kw_only=True)
class PinnedRow:
    """One identity and model: pinned AUC, ◦ where one of its parts is, what sampling gave, and the parts with weights.

    Pinned AUC has no interval of its own.
    """

    identity: str
    model: str
    n_positive: int | None
    n_negative: int | None
    cell: TableCell
    sampled: str
    parts: Sequence[tuple[TableCell, str]]


def tabulate_pinned(facts: NightFacts) -> list[PinnedRow]:
    """Return the rows of pinned AUC in the order of the other tables."""
    places = {name: place for place, name in enumerate(facts.identities())}
    suite = {(row[IDENTITY], row[MODEL]): row for row in facts.rows("bias_metrics", slice=ALL_ROWS)}
    rows = [row for row in facts.rows("pinned_auc", slice=ALL_ROWS) if row[IDENTITY] in places]
    rows.sort(key=lambda row: (places[row[IDENTITY]], row[MODEL]))
    return [_describe(row, suite.get((row[IDENTITY], row[MODEL]), {})) for row in rows]


def _describe(row: Row, suite: Row) -> PinnedRow:
    parts = [_describe_part(row, suite, part) for part in PARTS]
    sampled = [row[name] for name in ("sampled_mean", "sampled_sd")]
    return PinnedRow(
        identity=row[IDENTITY],
        model=row[MODEL],
        n_positive=suite.get("n_subgroup_positive"),
        n_negative=suite.get("n_subgroup_negative"),
        cell=TableCell(
            text=show_number(row["pinned_auc"]),
            value=row["pinned_auc"],
            note=say_reason(row["reason"]) if row["reason"] else say_bounds(row, "pinned_auc"),
            bounds=show_bounds(row, "pinned_auc"),
            weak=row["pinned_auc"] is None or any(cell.weak for cell, _ in parts),
        ),
        sampled=DASH if sampled[0] is None else ", ".join(map(show_number, sampled)),
        parts=parts,
    )


def _describe_part(row: Row, suite: Mapping[str, object], part: str) -> tuple[TableCell, str]:
    """Return an AUC with the interval that the suite gives it, and its weight."""
    name, weight = f"{part}_auc", row[f"{part}_weight"]
    if not weight:
        return TableCell(text=DASH), ""
    if f"{name}_low" not in suite:
        return TableCell(text=show_number(row[name]), value=row[name], weak=True), show_number(weight, 2)
    return replace(metric_cell(suite, name), shade=""), show_number(weight, 2)
