"""Rates of decisions at thresholds: those of identities with their gaps, and the sums that say how unequal they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from biasspark.columns import ALL_ROWS, IDENTITY, MODEL, RATES
from biasspark.report.cells import (
    DASH,
    TableCell,
    is_weak,
    shade_gap,
    show_count,
    show_interval,
    show_number,
    sum_cell,
)
from biasspark.report.definitions import DECISIONS, say_reason
from biasspark.report.facts import SUMMED_RATES, NightFacts, Row, choose_thresholds
from biasspark.report.intervals import bound_share
from biasspark.report.ledger import read_level

_MIRRORED = {"tpr", "tnr"}
"""The rates that are 1 less FNR or FPR: so are their intervals, with the sign turned, and are not shown twice."""

_OF_ONE_LABEL = {"tpr", "fpr", "tnr", "fnr"}
"""The rates of rows of one label: they say something of a model whatever the share of positives, which moves others."""

_SIDES = {"fpr": "n_negative", "fnr": "n_positive"}


@dataclass(frozen=True, kw_only=True)
class RateCell:
    """A rate of an identity, and how far it lies from that of the background; the latter gives colour and interval."""

    rate: str
    gap: TableCell


@dataclass(frozen=True, kw_only=True)
class IdentityRates:
    """One identity and model: its right and wrong decisions, and by name its rates."""

    identity: str
    model: str
    counts: Sequence[str]
    cells: Mapping[str, RateCell]


@dataclass(frozen=True, kw_only=True)
class ModelRates:
    """One model: its error rates of all rows, and its sums over identities, by column."""

    model: str
    rates: Mapping[str, TableCell]
    sums: Mapping[str, TableCell]


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
    keys = [(name, model) for name in facts.identities() for model in facts.models() if (name, model) in by_key]
    sizes = {row[MODEL]: row for row in facts.rows("model_summary", slice=ALL_ROWS)}
    return ThresholdRates(
        threshold=threshold,
        rows=[_list_rates(by_key[key]) for key in keys],
        totals=[
            _sum_up(facts, row, sizes.get(row[MODEL], {}))
            for row in facts.rows("threshold_summary", slice=ALL_ROWS, threshold=threshold)
        ],
    )


def _list_rates(row: Row) -> IdentityRates:
    return IdentityRates(
        identity=row[IDENTITY],
        model=row[MODEL],
        counts=[show_count(row[name]) for name in DECISIONS],
        cells={rate: _rate_cell(row, rate) for rate in RATES},
    )


def _rate_cell(row: Row, rate: str) -> RateCell:
    gap, low, high = row[f"{rate}_gap"], row[f"{rate}_gap_low"], row[f"{rate}_gap_high"]
    if row[rate] is None:
        note = say_reason(row["reason"]) if row.get("reason") else "no such rows in the identity"
        return RateCell(rate=DASH, gap=TableCell(text="", note=note, weak=True))
    return RateCell(
        rate=show_number(row[rate]),
        gap=TableCell(
            text="" if gap is None else show_number(gap, signed=True),
            interval="" if rate in _MIRRORED else show_interval(low, high, signed=True),
            shade=shade_gap(gap) if rate in _OF_ONE_LABEL else "",
            value=gap,
            weak=is_weak(low, high),
        ),
    )


def _sum_up(facts: NightFacts, total: Row, sizes: Row) -> ModelRates:
    key = {name: total[name] for name in (MODEL, "threshold")}
    level = read_level(facts.run)
    return ModelRates(
        model=total[MODEL],
        rates={rate: _whole_cell(total[rate], sizes.get(side) or 0, level) for rate, side in _SIDES.items()},
        sums={name: sum_cell(total, name, *facts.count_summed("summed_rates", name, **key)) for name in SUMMED_RATES},
    )


def _whole_cell(rate: float | None, n: int, level: float) -> TableCell:
    """Return a rate of so many rows of one label."""
    if rate is None or not n:
        return TableCell(text=show_number(rate), value=rate, weak=True)
    ends = bound_share(round(rate * n), n, level)
    return TableCell(text=show_number(rate), interval=show_interval(*ends), value=rate, weak=is_weak(*ends))
