"""Models against a baseline on the rows that both score: significant differences, and all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from biasspark import columns
from biasspark.report import cells
from biasspark.report.cells import DASH, Row, TableCell
from biasspark.report.definitions import title_of
from biasspark.report.report_data import ReportData
from biasspark.text import format_count, show_visibly

METRICS = (*columns.SUITE_AUCS, *columns.SUITE_GAPS)
MAX_DIFFERENCES = 12
_ARROWS = {columns.WORSE: "▼ ", columns.BETTER: "▲ "}


class Difference(NamedTuple):
    """A row of ``model_comparisons`` as cells. A value has an interval if ``bias_metrics`` has it on the same rows."""

    row: Row
    value: TableCell
    baseline: TableCell
    difference: TableCell


@dataclass(frozen=True, kw_only=True)
class BaselineComparison:
    """The differences between a model and a baseline on all rows.

    ``counts`` has the number of comparisons by verdict, shown or not. ``worse`` and ``better`` are the significant
    differences, sorted by the end of the interval that is nearest to 0, the largest first: this much is shown. ``rows``
    are those of each shown identity by metric.
    """

    model: str
    baseline: str
    counts: Mapping[str, int]
    worse: Sequence[Difference]
    better: Sequence[Difference]
    overall: Difference | None
    rows: Mapping[str, Mapping[str, Difference]]

    @property
    def sentence(self) -> str:
        """The sentence that says whether the model is significantly worse anywhere."""
        model, baseline, n = show_visibly(self.model), show_visibly(self.baseline), self.counts
        total = f"{sum(n.values()):,} comparisons on the same rows"
        rest = f"{format_count(n[columns.BETTER], 'is', 'are')} significantly better, "
        rest += f"{format_count(n[columns.NO_EVIDENCE], 'is', 'are')} not significant, "
        rest += f"{format_count(n[columns.INSUFFICIENT_DATA], 'has', 'have')} too little data."
        if not n[columns.WORSE]:
            return f"{model} is not significantly worse than {baseline} in any of {total}; {rest}"
        largest = ""
        if self.worse:
            row = self.worse[0].row
            low, high = row["difference_low"], row["difference_high"]
            size = cells.show_number(row["difference"], signed=True)
            size += f", interval {cells.show_interval(low, high, signed=True)}" if low is not None else ""
            largest = f", most of all in {title_of(row['metric'])} of {name_or_all_rows(row['identity'])} ({size})"
        return f"{model} is significantly worse than {baseline} in {n[columns.WORSE]:,} of {total}{largest}; {rest}"


def describe_method(report: ReportData) -> str:
    """Return how differences are tested: the method, the groups of rows, and the column of clusters."""
    rows = report.rows("model_comparisons", slice=columns.ALL_ROWS)
    if not rows:
        return ""
    if all(row["method"] != "jackknife" for row in rows):
        return "Differences are tested by paired DeLong, which treats rows as independent."
    sizes = sorted({row["n_groups"] for row in rows if row["p_value"] is not None})
    groups = " to ".join(f"{n:,}" for n in dict.fromkeys((sizes[0], sizes[-1]))) + " groups" if sizes else "groups"
    method = f"Differences are tested by a jackknife over {groups} of rows"
    cluster = (report.configs.get("compare_models", {}).get("compare") or {}).get("cluster")
    if cluster is None:
        return f"{method}, which treats rows as independent."
    method += f", where rows with the same {show_visibly(cluster)} are in one group"
    return f"{method}. The intervals of the values themselves treat rows as independent."


def compare_with_baselines(report: ReportData) -> list[BaselineComparison]:
    """Return one comparison for each pair of models that was compared."""
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for (slice_name, model, baseline, verdict), n in sorted(report.counts.get("model_comparisons", {}).items()):
        if slice_name == columns.ALL_ROWS:
            counts.setdefault((model, baseline), dict.fromkeys(columns.VERDICTS, 0))[verdict] = n
    return [_compare(report, *pair, counts_of_pair) for pair, counts_of_pair in counts.items()]


def _compare(report: ReportData, model: str, baseline: str, counts: Mapping[str, int]) -> BaselineComparison:
    rows = report.rows("model_comparisons", slice=columns.ALL_ROWS, model=model, baseline_model=baseline)
    suite = report.suite() | {(row["model"], row["identity"]): row for row in report.rows("crossed_pairs")}
    suite |= {(name, columns.OVERALL): row for name, row in report.summaries().items()}
    differences = [
        Difference(
            row,
            value=_value_cell(row, "value", model, suite),
            baseline=_value_cell(row, "baseline_value", baseline, suite),
            difference=_difference_cell(row),
        )
        for row in rows
    ]
    by_identity: dict[str, dict[str, Difference]] = {}
    for difference in differences:
        by_identity.setdefault(difference.row["identity"], {})[difference.row["metric"]] = difference

    def largest_first(difference: Difference) -> tuple[bool, float, float, str, str]:
        row, low, high = difference.row, difference.row["difference_low"], difference.row["difference_high"]
        shown = 0.0 if low is None or high is None else max(low, -high)
        return low is None, -shown, -abs(row["difference"]), row["identity"], row["metric"]

    worse, better = (
        sorted((difference for difference in differences if difference.row["verdict"] == verdict), key=largest_first)
        for verdict in (columns.WORSE, columns.BETTER)
    )
    return BaselineComparison(
        model=model,
        baseline=baseline,
        counts=counts,
        worse=worse,
        better=better,
        overall=by_identity.get(columns.OVERALL, {}).get("auc"),
        rows={name: by_identity[name] for name in report.identities() if name in by_identity},
    )


def _value_cell(row: Row, column: str, model: str, suite: Mapping[tuple[str, str], Row]) -> TableCell:
    """Return a value on the rows that both models score, with the interval of the suite if that has the same value."""
    value, cell = row[column], cells.metric_cell(suite.get((model, row["identity"])), row["metric"])
    if value is not None and cell.value is not None and math.isclose(value, cell.value, abs_tol=1e-9):
        return replace(cell, color="")
    text = cells.show_number(value, signed=row["metric"] in columns.SUITE_GAPS)
    return TableCell(text=text, value=value, weak=value is None)


def _difference_cell(row: Row) -> TableCell:
    if row["difference"] is None:
        return TableCell(text=DASH, note="no rows in a cell", weak=True)
    verdict, rows = row["verdict"], f"{cells.show_count(row['n_low'])} and {cells.show_count(row['n_high'])} rows"
    weak = verdict == columns.INSUFFICIENT_DATA
    evidence = "too little data to tell" if weak else f"adjusted p {cells.show_p(row['p_adjusted'])}"
    return TableCell(
        text=_ARROWS.get(verdict, "") + cells.show_number(row["difference"], signed=True),
        interval=cells.show_interval(row["difference_low"], row["difference_high"], signed=True),
        color=verdict if verdict in _ARROWS else "",
        value=row["difference"],
        note=f"{evidence}, {rows}",
        weak=weak,
    )


def name_or_all_rows(identity: str) -> str:
    """Return the name of an identity, or ``all rows`` for the whole slice."""
    return "all rows" if identity == columns.OVERALL else show_visibly(identity)
