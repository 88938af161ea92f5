"""Sentences of templates, which differ in an identity alone: how far apart a model scores the identities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from biasspark.columns import IDENTITY, MODEL
from biasspark.report.cells import DASH, Cell, is_weak, shade_gap, show_count, show_interval, show_number
from biasspark.report.facts import NightFacts, Row
from biasspark.report.intervals import bound_mean
from biasspark.report.ledger import read_level


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
    level = read_level(facts.run)
    cells = {key: [_mean_score(row, level), _departure(row, level)] for key, row in by_key.items()}
    nothing = [Cell(text=DASH)] * 2
    rows = [TemplateRow(identity=name, cells={m: cells.get((name, m), nothing) for m in models}) for name in names]
    return TemplateScores(spreads=[_spread(model, found, level) for model in models], rows=rows)


def _spread(model: str, rows: Sequence[Row], level: float) -> Spread:
    own = sorted((row for row in rows if row[MODEL] == model), key=lambda row: (row["mean_departure"], row[IDENTITY]))
    ends = lowest, highest = own[0], own[-1]
    size = show_number(highest["mean_departure"] - lowest["mean_departure"])
    cells = [_departure(row, level) for row in ends]
    return Spread(model=model, low=lowest[IDENTITY], high=highest[IDENTITY], cells=cells, size=size)


def _mean_score(row: Row, level: float) -> Cell:
    low, high = bound_mean(row["mean_score"], row["score_deviation"], row["n_templates"], level)
    note = f"{show_count(row['n_rows'])} rows of {show_count(row['n_templates'])} templates"
    interval = show_interval(low, high)
    return Cell(text=show_number(row["mean_score"]), interval=interval, value=row["mean_score"], note=note)


def _departure(row: Row, level: float) -> Cell:
    value = row["mean_departure"]
    low, high = bound_mean(value, row["departure_deviation"], row["n_templates"], level)
    return Cell(
        text=show_number(value, signed=True),
        interval=show_interval(low, high, signed=True),
        shade=shade_gap(value),
        value=value,
        weak=is_weak(low, high),
    )
