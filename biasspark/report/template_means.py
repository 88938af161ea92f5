"""Sentences of templates, which differ in an identity alone: how far apart a model scores the identities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from biasspark.columns import IDENTITY, MODEL
from biasspark.report.cells import (
    DASH,
    TableCell,
    is_weak,
    shade_gap,
    show_count,
    show_interval,
    show_number,
)
from biasspark.report.facts import NightFacts, Row
from biasspark.report.intervals import bound_mean
from biasspark.report.ledger import read_level


@dataclass(frozen=True, kw_only=True)
class _Scale:
    """How the means of a model are bounded: the level of their intervals, and whether its scores are probabilities."""

    level: float
    of_probabilities: bool

    def bound(self, row: Row, name: str, lowest: float) -> tuple[float, float] | tuple[None, None]:
        """Return the interval of a mean over templates; of probabilities it lies between ``lowest`` and 1."""
        within = (lowest, 1.0) if self.of_probabilities else (-math.inf, math.inf)
        return bound_mean(row[f"mean_{name}"], row[f"{name}_deviation"], row["n_templates"], self.level, within)


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The identities that a model scores lowest and highest within a template, and how far they are apart."""

    model: str
    low: str
    high: str
    cells: Sequence[TableCell]
    size: str


@dataclass(frozen=True, kw_only=True)
class TemplateRow:
    """One identity: by model its mean score, and how far it departs from the mean of each template.

    The counts are those of the first model that scores it.
    """

    identity: str
    n_templates: int
    n_rows: int
    cells: Mapping[str, Sequence[TableCell]]


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
    scales = {model: _find_scale([row for row in found if row[MODEL] == model], facts) for model in models}
    cells = {
        (name, model): [_mean_score(row, scales[model]), _departure(row, scales[model])]
        for (name, model), row in by_key.items()
        if model in scales
    }
    nothing = [TableCell(text=DASH)] * 2
    first = {row[IDENTITY]: row for row in reversed(found)}
    rows = [
        TemplateRow(
            identity=name,
            n_templates=first[name]["n_templates"],
            n_rows=first[name]["n_rows"],
            cells={model: cells.get((name, model), nothing) for model in models},
        )
        for name in names
    ]
    return TemplateScores(spreads=[_spread(model, found, scales[model]) for model in models], rows=rows)


def _find_scale(rows: Sequence[Row], facts: NightFacts) -> _Scale:
    """Return the scale of a model's scores: probabilities, where no template has a mean below 0 or above 1."""
    of_probabilities = all(row["lowest_score"] >= 0 and row["highest_score"] <= 1 for row in rows)
    return _Scale(level=read_level(facts.run), of_probabilities=of_probabilities)


def _spread(model: str, rows: Sequence[Row], scale: _Scale) -> Spread:
    own = sorted((row for row in rows if row[MODEL] == model), key=lambda row: (row["mean_departure"], row[IDENTITY]))
    ends = lowest, highest = own[0], own[-1]
    size = show_number(highest["mean_departure"] - lowest["mean_departure"])
    cells = [_departure(row, scale) for row in ends]
    return Spread(model=model, low=lowest[IDENTITY], high=highest[IDENTITY], cells=cells, size=size)


def _mean_score(row: Row, scale: _Scale) -> TableCell:
    value, ends = row["mean_score"], scale.bound(row, "score", 0.0)
    note = f"{show_count(row['n_rows'])} rows of {show_count(row['n_templates'])} templates"
    return TableCell(
        text=show_number(value), interval=show_interval(*ends), value=value, note=note, weak=is_weak(*ends)
    )


def _departure(row: Row, scale: _Scale) -> TableCell:
    value, (low, high) = row["mean_departure"], scale.bound(row, "departure", -1.0)
    return TableCell(
        text=show_number(value, signed=True),
        interval=show_interval(low, high, signed=True),
        shade=shade_gap(value),
        value=value,
        weak=is_weak(low, high),
    )
