"""What the job of attribution prints: where the AUC is lost, with every rule in full."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pyarrow as pa

from biasspark.cli import format_table
from biasspark.columns import ALL_ROWS, OVERALL
from biasspark.report.attributions import SEGMENT_COLORS, describe_zero, pick_ends, subtract_overall
from biasspark.report.cells import Row
from biasspark.report.console_summary import SCREEN_WIDTH, nulls_last
from biasspark.report.report_data import group_rows
from biasspark.tables import schemas
from biasspark.tables.schemas import Table
from biasspark.text import show_visibly

_INDENT = " " * 4
_ESTIMATE = ("mean_honest", "mean_honest_low", "mean_honest_high", "p_adjusted", "found", "confirmed")
_HEADINGS = {
    "node_id": "node",
    "n_negatives_honest": "n_negatives",
    "n_positives_honest": "n_positives",
    "auc_low": "low",
    "auc_high": "high",
    "mean_honest_low": "low",
    "mean_honest_high": "high",
}
_SIDES = ("negative_rule", "positive_rule")


@dataclass(frozen=True)
class Excerpt:
    """Some rows of a table: which ones, sorted by a column or a value with None last, and how many of their columns.

    Below each row stand its ``rules``, in full.
    """

    title: str
    table: Table
    columns: tuple[str, ...]
    by: str | Callable[[Row], Any] = "mean_honest"
    where: Callable[[Row], Any] = bool
    n: int = 5
    rules: tuple[str, ...] = ()

    def show(self, tables: Mapping[Table, pa.Table]) -> str:
        """Return the rows below the title, equal ones in the order of the key; nothing without rows."""
        rows = self.select(tables)[: self.n]
        return f"{self.title}:\n{format_with_rules(rows, self.columns, self.rules)}" if rows else ""

    def select(self, tables: Mapping[Table, pa.Table]) -> list[Row]:
        """Return all rows of the table that are asked for, in order."""
        by = itemgetter(self.by) if isinstance(self.by, str) else self.by
        rows = [row for row in _rows(tables, self.table) if self.where(row)]
        return sorted(rows, key=lambda row: nulls_last(by(row), *(row[name] for name in self.table.key_columns)))


_LEAVES = Excerpt(
    "leaves by mean attribution, lowest first; 0.5 is best, 0.25 is chance",
    schemas.ATTRIBUTION_SEGMENTS,
    ("model", "slice", "node_id", "n_honest", *_ESTIMATE),
    where=lambda row: row["is_leaf"] and row["target"] == "auc" and not row["baseline_model"],
    n=10,
    rules=("rule",),
)
_DIFFERENCES = Excerpt(
    "leaves of model minus baseline, largest difference first; found: differs from the rest",
    schemas.ATTRIBUTION_SEGMENTS,
    ("model", "baseline_model", "slice", "node_id", "n_honest", *_ESTIMATE, "interval"),
    by=lambda row: None if row["mean_honest"] is None else -abs(row["mean_honest"]),
    where=lambda row: row["is_leaf"] and row["target"] == "auc" and row["baseline_model"],
    n=10,
    rules=("rule",),
)
_SLICES = Excerpt(
    "slices by size times loss, worst of each model first",
    schemas.ATTRIBUTION_SLICES,
    ("model", "slice", "rank", "n_honest", *_ESTIMATE),
    by="rank",
    rules=("rule",),
)
_PAIRS = Excerpt(
    "leaves of pairs by AUC, the lowest and the highest of each model",
    schemas.PAIR_SEGMENTS,
    ("model", "slice", "node_id", "n_negatives_honest", "n_positives_honest", *_ESTIMATE),
    where=itemgetter("is_leaf"),
)
_CROSSES = Excerpt(
    "pairs of groups by share of all wrongly ordered pairs, largest first",
    schemas.AUC_CROSSES,
    ("model", "slice", "grouping", "positive_group", "negative_group", "n_pairs", "auc", "headroom_share"),
    by=lambda row: -row["headroom_share"],
    where=itemgetter("headroom_share"),
)
_NAMED_PAIRS = Excerpt(
    "AUC of these negatives against these positives, lowest first",
    schemas.NAMED_PAIRS,
    ("model", "slice", "pair", "n_negative", "n_positive", "auc", "auc_low", "auc_high", "headroom_share"),
    by="auc",
    n=20,
    rules=("negative_predicate", "positive_predicate"),
)


def show_lost(tables: Mapping[Table, pa.Table], rare: str = "") -> str:
    """Return tables of the leaves, slices, pairs and groups that lose most, of named segments, and of correlations.

    Below the leaves of trees stands what is ``rare`` in them.
    """
    rare = textwrap.fill(rare, SCREEN_WIDTH, break_long_words=False, break_on_hyphens=False)
    trees = (_LEAVES.show(tables), _DIFFERENCES.show(tables))
    searched = (*trees, rare if any(trees) else "", _SLICES.show(tables), _show_pairs(tables))
    parts = (
        *searched,
        _NAMED_PAIRS.show(tables),
        _CROSSES.show(tables),
        _show_segments(tables),
        _show_correlations(tables),
    )
    return "\n\n".join(filter(None, parts))


def format_with_rules(rows: Sequence[Row], columns: Sequence[str], rules: Sequence[str]) -> str:
    """Lay out rows as a table, with the rules of each below it: wrapped, never cut."""
    shown = [{_HEADINGS.get(name, name): value for name, value in row.items()} for row in rows]
    if "interval" in columns:
        shown = [{**row, "interval": describe_zero(full)} for row, full in zip(shown, rows, strict=True)]
    heading, *lines = format_table(shown, [_HEADINGS.get(name, name) for name in columns]).split("\n")
    return "\n".join([heading, *(line for one in zip(lines, rows, strict=True) for line in _add_rules(*one, rules))])


def _add_rules(line: str, row: Row, rules: Sequence[str]) -> Iterable[str]:
    yield line
    for name in rules:
        side = "" if name == "rule" else f"{name.partition('_')[0]}s: "
        text = show_visibly(f"{side}{row[name] or 'all'}")
        yield textwrap.fill(
            text,
            SCREEN_WIDTH,
            initial_indent=_INDENT,
            subsequent_indent=_INDENT + " " * max(len(side), 2),
            break_long_words=False,
            break_on_hyphens=False,
        )


def _show_pairs(tables: Mapping[Table, pa.Table]) -> str:
    """Return of each model and slice the leaves of the lowest and of the highest AUC."""
    leaves = group_rows(_PAIRS.select(tables), "model", "slice")
    chosen = [row for _, rows in sorted(leaves.items()) for row in pick_ends(rows)]
    return f"{_PAIRS.title}:\n{format_with_rules(chosen, _PAIRS.columns, _SIDES)}" if chosen else ""


def _show_segments(tables: Mapping[Table, pa.Table]) -> str:
    """Return the measures of the named segments, models side by side, each with its difference from all rows."""
    rows = [row for row in _rows(tables, schemas.LOSS_BY_SEGMENT) if row["slice"] == ALL_ROWS]
    overall = {row["model"]: row for row in rows if row["segment"] == OVERALL}
    lines = [
        {
            "measure": measure,
            "segment": segment,
            "n_rows": "/".join(map(str, sorted({row["n_rows"] for row in of_all}))),
        }
        | {f"model {row['model']}": _show_difference(row, overall[row["model"]], measure) for row in of_all}
        for measure in SEGMENT_COLORS
        if any(row[measure] is not None for row in rows)
        for (segment,), of_all in group_rows(rows, "segment").items()
    ]
    columns = ("measure", "segment", "n_rows", *(f"model {model}" for model in overall))
    return f"segments, and their difference from all rows:\n{format_table(lines, columns)}" if lines else ""


def _show_difference(row: Row, overall: Row, measure: str) -> str:
    difference = subtract_overall(row, overall, measure)
    shown = "-" if row[measure] is None else f"{row[measure]:.4f}"
    return shown if difference is None else f"{shown} {difference:+z.4f}"


def _show_correlations(tables: Mapping[Table, pa.Table]) -> str:
    """Return how the attributions of all rows correlate with losses, models side by side."""
    rows = [row for row in _rows(tables, schemas.ATTRIBUTION_CORRELATIONS) if row["slice"] == ALL_ROWS]
    rows = [row for row in rows if row["pearson"] is not None]
    lines = [
        {"attribution": attribution, "loss": loss} | {f"model {row['model']}": row["pearson"] for row in of_all}
        for (attribution, loss), of_all in group_rows(rows, "attribution", "loss").items()
    ]
    columns = ("attribution", "loss", *dict.fromkeys(f"model {row['model']}" for row in rows))
    return f"correlations of attributions with losses:\n{format_table(lines, columns)}" if lines else ""


def _rows(tables: Mapping[Table, pa.Table], table: Table) -> list[Row]:
    rows: list[Row] = tables[table].to_pylist() if table in tables else []
    return rows
