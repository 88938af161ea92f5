"""Sentences of templates, which differ in an identity alone: how far apart a model scores the identities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from biasspark.columns import IDENTITY, MODEL
from biasspark.report.cells import Cell, shade_gap, show_count, show_number
from biasspark.report.facts import NightFacts, Row


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The identities that a model scores lowest and highest within a template, and how far they are apart."""

    model: str
    low: str
    high: str
    cells: Sequence[Cell]
    size: str


@dataclass(frozen=True, kw_only=True)
class TemplateRow:
    """One identity: by model its mean score, and how far it departs from the mean of each template."""

    identity: str
    cells: Mapping[str, Sequence[Cell]]


@dataclass(frozen=True, kw_only=True)
class TemplateScores:
    """What the models make of templates, the identities that depart most first."""

    spreads: Sequence[Spread]
    rows: Sequence[TemplateRow]


def tabulate_templates(facts: NightFacts) -> TemplateScores | None:
    """Return mean scores over templates; None where the night has none."""
    found = facts.rows("template_means")
    if not found:
        return None
    by_key = {(row[IDENTITY], row[MODEL]): row for row in found}
    models = [model for model in facts.models() if any(row[MODEL] == model for row in found)]
    farthest: dict[str, float] = {}
    for row in found:
        farthest[row[IDENTITY]] = max(farthest.get(row[IDENTITY], 0.0), abs(row["mean_departure"]))
    names = sorted(farthest, key=lambda name: (-farthest[name], name))
    rows = [TemplateRow(identity=name, cells={m: _list_cells(by_key.get((name, m))) for m in models}) for name in names]
    return TemplateScores(spreads=[_spread(model, found) for model in models], rows=rows)


def _spread(model: str, rows: Sequence[Row]) -> Spread:
    own = sorted((row["mean_departure"], row[IDENTITY]) for row in rows if row[MODEL] == model)
    (low, lowest), (high, highest) = own[0], own[-1]
    cells = [_departure(end) for end in (low, high)]
    return Spread(model=model, low=lowest, high=highest, cells=cells, size=show_number(high - low))


def _list_cells(row: Row | None) -> list[Cell]:
    if row is None:
        return [Cell(text="–"), Cell(text="–")]
    note = f"{show_count(row['n_rows'])} rows of {show_count(row['n_templates'])} templates"
    mean = Cell(text=show_number(row["mean_score"]), value=row["mean_score"], note=note)
    return [mean, _departure(row["mean_departure"])]


def _departure(value: float) -> Cell:
    return Cell(text=show_number(value, signed=True), shade=shade_gap(value), value=value)
