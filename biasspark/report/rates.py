"""Error rates at thresholds: those of identities with their gaps, and the sums that say how unequal they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from biasspark.columns import ALL_ROWS, IDENTITY, MODEL
from biasspark.report.cells import Cell, is_weak, shade_gap, show_count, show_interval, show_number, sum_cell
from biasspark.report.definitions import say_reason
from biasspark.report.facts import SUMMED_RATES, NightFacts, Row, choose_thresholds

RATES = {"fpr": ("n_false_positive", "n_true_negative"), "fnr": ("n_false_negative", "n_true_positive")}
"""The error rates, each with the counts of wrong and right decisions that it is of."""


@dataclass(frozen=True, kw_only=True)
class IdentityRates:
    """One identity: by model its rates and gaps, by column."""

    identity: str
    cells: Mapping[str, Mapping[str, Cell]]


@dataclass(frozen=True, kw_only=True)
class ModelRates:
    """One model: its row of ``threshold_summary``, and its sums over identities, by column."""

    row: Row
    cells: Mapping[str, Cell]


@dataclass(frozen=True, kw_only=True)
class ThresholdRates:
    """What is decided at one threshold."""

    threshold: float
    rows: Sequence[IdentityRates]
    totals: Sequence[ModelRates]


def list_rates(facts: NightFacts) -> list[ThresholdRates]:
    """Return the rates of all rows at the thresholds that are shown; none where the night has none."""
    return [_tabulate(facts, at) for at in choose_thresholds(facts.rows("threshold_rates"))]


def _tabulate(facts: NightFacts, threshold: float) -> ThresholdRates:
    rows = facts.rows("threshold_rates", slice=ALL_ROWS, threshold=threshold)
    by_key = {(row[IDENTITY], row[MODEL]): row for row in rows}
    names = [name for name in facts.identities() if any((name, model) in by_key for model in facts.models())]
    return ThresholdRates(
        threshold=threshold,
        rows=[
            IdentityRates(identity=name, cells={m: _rate_cells(by_key.get((name, m))) for m in facts.models()})
            for name in names
        ],
        totals=[_sum_up(facts, row) for row in facts.rows("threshold_summary", slice=ALL_ROWS, threshold=threshold)],
    )


def _rate_cells(row: Row | None) -> dict[str, Cell]:
    if row is None or row.get("reason"):
        note = say_reason(row["reason"]) if row else "not measured for this model"
        empty = Cell(text="–", note=note, weak=row is not None)
        return {name: empty for rate in RATES for name in (rate, f"{rate}_gap")}
    found = {}
    for rate, (wrong, right) in RATES.items():
        gap, low, high = row[f"{rate}_gap"], row[f"{rate}_gap_low"], row[f"{rate}_gap_high"]
        n = show_count(row[wrong] + row[right])
        found[rate] = Cell(text=show_number(row[rate]), value=row[rate], interval=f"{show_count(row[wrong])} of {n}")
        found[f"{rate}_gap"] = Cell(
            text=show_number(gap, signed=True),
            interval=show_interval(low, high, signed=True),
            shade=shade_gap(gap),
            value=gap,
            weak=is_weak(low, high),
        )
    return found


def _sum_up(facts: NightFacts, total: Row) -> ModelRates:
    key = {name: total[name] for name in (MODEL, "threshold")}
    return ModelRates(
        row=total,
        cells={name: sum_cell(total[name], *facts.count_summed("summed_rates", name, **key)) for name in SUMMED_RATES},
    )
