"""The models side by side, the worst identities, and the tables of all identities: rows as a page shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from biasspark.columns import ALL_ROWS, IDENTITY, MODEL, OVERALL, SUMMARISED_AUCS, SUMMARISED_GAPS
from biasspark.report.cells import TableCell, is_weak, metric_cell, show_count, sum_cell
from biasspark.report.facts import WORST, NightFacts, Row, find_lowest
from biasspark.report.side_by_side_metrics import COMPARED

MOST_WORST = 8
_PINNED = "pinned_auc_equality_difference"
_MEANS = ("competition_score", *(f"{name}_power_mean" for name in SUMMARISED_AUCS))


@dataclass(frozen=True, kw_only=True)
class SummaryCell:
    """One number of a model: the number, of whom it is or else may be, and whether no other model is better.

    Of a worst value that rests on too few rows the number is the worst with enough rows, where there is one;
    ``unsure`` is the other.
    """

    cell: TableCell
    identity: str = ""
    contenders: Sequence[str] = ()
    best: bool = False
    unsure: SummaryCell | None = None


@dataclass(frozen=True, kw_only=True)
class SummaryRow:
    """One measure of all models, in the order of the models."""

    column: str
    cells: Sequence[SummaryCell]


@dataclass(frozen=True, kw_only=True)
class Worst:
    """One identity of one model: its lowest AUC with its interval, and what it is about."""

    identity: str
    metric: str
    cell: TableCell
    low: float | None
    high: float | None
    value: float
    n_positive: int
    n_negative: int
    gaps: Mapping[str, TableCell]


@dataclass(frozen=True, kw_only=True)
class MetricRow:
    """One identity with the metrics of all models: cells by (metric, model)."""

    identity: str
    n_positive: int | None
    n_negative: int | None
    n_differs: bool
    background: str
    cells: Mapping[tuple[str, str], TableCell]


def summarise_models(facts: NightFacts) -> list[SummaryRow]:
    """Return the measures of all rows, each with a cell per model; the worst identity's value has its own interval."""
    summaries = {row[MODEL]: row for row in facts.rows("model_summary", slice=ALL_ROWS)}
    suite = {(row[MODEL], row[IDENTITY]): row for row in facts.rows("bias_metrics", slice=ALL_ROWS)}
    rows = [SummaryRow(column="auc", cells=_mark_best([_overall(summaries, m) for m in facts.models()], "auc"))]
    for name, column in WORST.items():
        cells = [_worst_sure_of(facts, summaries.get(model), suite, name) for model in facts.models()]
        rows.append(SummaryRow(column=column, cells=_mark_best(cells, column)))
    for column in _MEANS:
        cells = [_mean(facts, summaries.get(model), column) for model in facts.models()]
        rows.append(SummaryRow(column=column, cells=_mark_best(cells, column)))
    return rows


def _overall(summaries: Mapping[str, Row], model: str) -> SummaryCell:
    return SummaryCell(cell=metric_cell(summaries[model], "auc") if model in summaries else TableCell(text="–"))


def _worst_sure_of(
    facts: NightFacts, summary: Row | None, suite: Mapping[tuple[str, str], Row], name: str
) -> SummaryCell:
    worst = _worst_of(summary, suite, name, WORST[name])
    if summary is None or not worst.cell.weak:
        return worst
    of_model: Row = next(iter(facts.rows("summed_aucs", model=summary[MODEL])), {})
    identity = of_model.get(f"{WORST[name]}_sure_identity")
    row = suite.get((summary[MODEL], identity)) if identity else None
    return SummaryCell(cell=metric_cell(row, name), identity=row[IDENTITY], unsure=worst) if row else worst


def _worst_of(summary: Row | None, suite: Mapping[tuple[str, str], Row], name: str, column: str) -> SummaryCell:
    identity = (summary and summary[f"{column}_identity"]) or ""
    row = suite.get((summary[MODEL], identity)) if summary else None
    cell = metric_cell(row, name) if row else TableCell(text="–")
    # Equal exact values are no doubt about whose the worst is.
    contenders = (summary and summary.get(f"{column}_contenders")) or () if cell.bounds else ()
    return SummaryCell(cell=cell, identity=identity, contenders=[own for own in contenders if own != identity])


def _mean(facts: NightFacts, summary: Row | None, column: str) -> SummaryCell:
    return SummaryCell(cell=_sum_up(facts, summary, column) if summary else TableCell(text="–"))


def _sum_up(facts: NightFacts, summary: Row, column: str) -> TableCell:
    return sum_cell(summary, column, *facts.count_summed("summed_aucs", column, model=summary[MODEL]))


def sum_up_pinned(facts: NightFacts) -> dict[str, TableCell]:
    """Return by model how far the pinned AUCs of identities are from that of all rows, summed up."""
    return {row[MODEL]: _sum_up(facts, row, _PINNED) for row in facts.rows("model_summary", slice=ALL_ROWS)}


def _mark_best(cells: Sequence[SummaryCell], column: str) -> list[SummaryCell]:
    """Mark the best number of a row, so far as its digits tell.

    None where all are the same, one is alone or weak, or the worst of a model is of few rows: then the numbers are not
    of the same identities.
    """
    size = -1.0 if column.endswith("_max_abs") else 1.0
    values = [None if own.cell.value is None else round(size * abs(own.cell.value), 3) for own in cells]
    there = [value for value in values if value is not None]
    if len(there) < 2 or min(there) == max(there) or any(own.cell.weak or own.unsure for own in cells):
        return list(cells)
    return [replace(own, best=value == max(there)) for own, value in zip(cells, values, strict=True)]


def _measured(facts: NightFacts, **wanted: object) -> list[Row]:
    """Return the suite of identities."""
    return [row for row in facts.rows("bias_metrics", **wanted) if row[IDENTITY] != OVERALL]


def list_worst(facts: NightFacts, model: str, most: int = MOST_WORST) -> list[Worst]:
    """Return the identities of all rows with the lowest of the three AUCs of a model, the worst first.

    Those with enough rows come first, each by the lowest AUC that has them.
    """
    return _sort_worst(_measured(facts, slice=ALL_ROWS, model=model))[:most]


def count_lower(facts: NightFacts, worst: Worst, model: str) -> int:
    """Return how many identities have an AUC below that of the worst: those have too few rows."""
    rows = _measured(facts, slice=ALL_ROWS, model=model)
    return sum(any(row[name] is not None and row[name] < worst.value for name in SUMMARISED_AUCS) for row in rows)


def list_worst_pairs(facts: NightFacts) -> dict[str, list[Worst]]:
    """Return by model the crossed pairs of all rows that were read, the worst first as identities are."""
    pairs = facts.rows("crossed_pairs")
    models = dict.fromkeys(row[MODEL] for row in pairs)
    return {model: _sort_worst(row for row in pairs if row[MODEL] == model) for model in models}


def _sort_worst(rows: Iterable[Row]) -> list[Worst]:
    found = [(find_lowest(row), row) for row in rows]
    found.sort(key=lambda own: (own[0][:2], own[1][IDENTITY]))
    return [_describe_worst(row, lowest.metric) for lowest, row in found if lowest.metric]


def _describe_worst(row: Row, name: str) -> Worst:
    return Worst(
        identity=row[IDENTITY],
        metric=name,
        cell=metric_cell(row, name),
        low=row[f"{name}_low"],
        high=row[f"{name}_high"],
        value=row[name],
        n_positive=row["n_subgroup_positive"],
        n_negative=row["n_subgroup_negative"],
        gaps={gap: metric_cell(row, gap) for gap in SUMMARISED_GAPS},
    )


def tabulate_metrics(facts: NightFacts, cut: str) -> list[MetricRow]:
    """Return the identities of a slice with all metrics of all models, those with the lowest AUC first."""
    rows = {(row[IDENTITY], row[MODEL]): row for row in facts.rows("bias_metrics", slice=cut)}
    return [_tabulate_identity(name, facts.models(), rows) for name in facts.identities(cut)]


def _tabulate_identity(identity: str, models: Sequence[str], rows: Mapping[tuple[str, str], Row]) -> MetricRow:
    there = [rows[identity, model] for model in models if (identity, model) in rows]
    first = there[0]
    counts = {(row["n_subgroup_positive"], row["n_subgroup_negative"]) for row in there}
    background = (
        f"background: {show_count(first['n_background_positive'])} positives, "
        f"{show_count(first['n_background_negative'])} negatives"
    )
    return MetricRow(
        identity=identity,
        n_positive=first["n_subgroup_positive"],
        n_negative=first["n_subgroup_negative"],
        n_differs=len(counts) > 1,
        background=background,
        cells={
            (name, model): metric_cell(rows[identity, model], name)
            if (identity, model) in rows
            else TableCell(text="–", note="not measured for this model")
            for name in COMPARED
            for model in models
        },
    )


def count_weak(facts: NightFacts, cut: str = ALL_ROWS) -> tuple[int, int]:
    """Return how many metrics of a slice have no value, no interval or a wide one, and how many there are."""
    ends = [(row[f"{name}_low"], row[f"{name}_high"]) for row in _measured(facts, slice=cut) for name in COMPARED]
    return sum(is_weak(low, high) for low, high in ends), len(ends)
