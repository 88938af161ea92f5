"""Where a model loses its AUC: pairs of groups as heat maps, trees of segments and of pairs, and tables of segments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from biasspark.columns import ALL_ROWS, OVERALL
from biasspark.report.cells import (
    DASH,
    Row,
    TableCell,
    auc_color,
    gap_color,
    interval_cell,
    is_weak,
    root_share_color,
    show_count,
    show_interval,
    show_name,
    show_number,
)
from biasspark.report.report_data import ReportData, Rows, group_rows

MAX_GROUPS, MAX_SPACIOUS = 20, 5
"""How many groups a heat map shows, and up to how many its cells have room for an interval."""
MAX_SLICES, MAX_CROSSES = 10, 10
MAX_ENDS = 3
"""How many leaves of pairs are listed from either end."""

# An "and" between conditions: up to the next "and" there is a comparison, as `biasspark.features.describe_condition`
# writes it. An "and" within a value is followed by none.
_BETWEEN_CONDITIONS = re.compile(r" and (?=(?:(?! and ).)* (?:is|=|<|<=|>=) )", re.DOTALL)

_LOSSES = ("cross_entropy", "gini_impurity")

ABOVE_ZERO, BELOW_ZERO = "above 0", "below 0"

T = TypeVar("T")
ColorOf = Callable[[float | None], str]
Rules: TypeAlias = Mapping[str, str]
"""The rule of each side of a pair; of a segment one rule, under an empty name."""


class HeatMap(NamedTuple):
    """The groups of a partition against each other: positives down, negatives across.

    Cells are by (positive group, negative group); headroom is colored by its square root, up to ``max_headroom``. If
    they are spacious, they have room for intervals, which else are in the hover. ``n_hidden`` smaller groups are not
    shown.
    """

    model: str
    grouping: str
    groups: Sequence[str]
    n_positive: Mapping[str, int]
    n_negative: Mapping[str, int]
    n_hidden: int
    auc: Mapping[tuple[str, str], TableCell]
    headroom: Mapping[tuple[str, str], TableCell]
    max_headroom: float
    is_spacious: bool


class TreeNode(NamedTuple):
    """A node of a tree of segments or pairs: its row, and the rules that select its rows.

    ``rule`` is what its split adds to the nodes above, ``whole_rule`` is all of it, ``predicate`` is it as SQL.
    """

    row: Row
    rule: str
    whole_rule: str
    predicate: str
    n: str
    cell: TableCell
    children: Sequence[TreeNode] = ()

    @property
    def is_contradicted(self) -> bool:
        """Whether it is a leaf and a false discovery."""
        return bool(self.row["false_discovery"]) and self.row["is_leaf"]

    @property
    def is_found(self) -> bool:
        """Whether a leaf or slice differs by more than chance, and if it is of a difference its interval excludes 0."""
        return bool(self.row["found"]) and not self.may_be_zero

    @property
    def may_be_zero(self) -> bool:
        """Whether it is of a difference, and its interval does not exclude 0."""
        return self.is_of_difference and describe_zero(self.row) not in {ABOVE_ZERO, BELOW_ZERO}

    @property
    def is_of_difference(self) -> bool:
        """Whether its mean is the difference of two models."""
        return bool(self.row.get("baseline_model"))

    @property
    def verdict(self) -> str:
        """Whether a leaf or slice differs from the rest by more than chance, and if it is of a difference, from 0."""
        if self.row["found"]:
            words = "differs from the rest" if self.is_of_difference else "found"
            words += ", may be chance" if self.row["confirmed"] is False else ""
        else:
            words = "false discovery" if self.row["false_discovery"] else "not significant"
        return f"{words}; interval {describe_zero(self.row)}" if self.is_of_difference else words

    def leaves(self) -> Iterator[TreeNode]:
        """Return the leaves at and below the node, from left to right."""
        if self.row["is_leaf"]:
            yield self
        for child in self.children:
            yield from child.leaves()


class Tree(NamedTuple):
    """A tree, its title, and which values are good."""

    title: str
    best: str
    root: TreeNode


def list_heat_maps(report: ReportData) -> list[HeatMap]:
    """Return a map of all rows for each grouping and model, of the groups with the most rows."""
    groups = group_rows(report.rows("auc_crosses", slice=ALL_ROWS), "grouping", "model")
    return [_heat_map(rows, *key) for key, rows in groups.items()]


def _heat_map(rows: Rows, grouping: str, model: str) -> HeatMap:
    sizes: Counter[str] = Counter({row["positive_group"]: row["n_positive"] for row in rows})
    for row in rows:
        if row["negative_group"] == row["positive_group"]:
            sizes[row["negative_group"]] += row["n_negative"]
    groups = sorted(sorted(sizes, key=lambda name: (-sizes[name], name))[:MAX_GROUPS])
    shown = [row for row in rows if row["positive_group"] in groups and row["negative_group"] in groups]
    largest = max((row["headroom_share"] or 0.0 for row in shown), default=0.0)
    is_spacious = len(groups) <= MAX_SPACIOUS
    aucs = {_pair(row): _auc_cell(row, is_spacious) for row in shown}
    return HeatMap(
        model=model,
        grouping=grouping,
        groups=groups,
        n_positive={row["positive_group"]: row["n_positive"] for row in shown},
        n_negative={row["negative_group"]: row["n_negative"] for row in shown},
        n_hidden=len(sizes) - len(groups),
        auc=aucs,
        headroom={_pair(row): _headroom_cell(row, largest, aucs[_pair(row)].weak, is_spacious) for row in shown},
        max_headroom=largest,
        is_spacious=is_spacious,
    )


def list_worst_crosses(one: HeatMap) -> list[tuple[str, str]]:
    """Return the pairs of groups with the largest headroom of a map, the largest first."""
    return sorted(one.headroom, key=lambda pair: (-(one.headroom[pair].value or 0.0), pair))[:MAX_CROSSES]


def _pair(row: Row) -> tuple[str, str]:
    return row["positive_group"], row["negative_group"]


def _auc_cell(row: Row, is_spacious: bool, digits: int = 2) -> TableCell:
    if row["auc"] is None:
        return TableCell(text=DASH, note="no pairs")
    interval = show_interval(row["auc_low"], row["auc_high"], digits=digits)
    counts = f"{show_count(row['n_positive'])} positives, {show_count(row['n_negative'])} negatives"
    return TableCell(
        text=show_number(row["auc"], digits),
        interval=interval if is_spacious else "",
        color=auc_color(row["auc"]),
        value=row["auc"],
        note=counts if is_spacious else interval or "no interval",
        weak=is_weak(row["auc_low"], row["auc_high"]),
    )


def _headroom_cell(row: Row, largest: float, weak: bool, is_spacious: bool) -> TableCell:
    """Return the share of a cross in all wrongly ordered pairs, in %. It is as uncertain as the AUC of the cross."""
    share = row["headroom_share"]
    return TableCell(
        text=DASH if share is None else show_number(100 * share, 1 if is_spacious else 2),
        color=root_share_color(share, largest),
        value=share,
        note=f"{row['headroom_pairs']:,.0f} of {show_count(row['n_pairs'])} pairs",
        weak=weak,
    )


def list_segment_trees(report: ReportData) -> list[Tree]:
    """Return the trees on all rows: per model or pair of models that of attribution, then those of losses."""
    rows = report.rows("attribution_segments", slice=ALL_ROWS)
    groups = group_rows(rows, "target", "baseline_model", "model")
    trees = []
    for target, baseline, model in sorted(groups, key=lambda key: (key[0] != "auc", key)):
        subject = f"{show_name(model)} minus {show_name(baseline)}" if baseline else show_name(model)
        title = f"{subject}, {'attribution' if target == 'auc' else show_name(target)}"
        best = "0 means equal" if baseline else "0.5 is best, 0.25 is chance" if target == "auc" else "0 is best"
        color = gap_color if baseline else _attribution_color if target == "auc" else _no_color
        trees.append(Tree(title, best, _grow(groups[target, baseline, model], color)))
    return trees


def list_pair_trees(report: ReportData) -> list[Tree]:
    """Return the trees of pairs on all rows, one per model."""
    groups = group_rows(report.rows("pair_segments", slice=ALL_ROWS), "model")
    best = "1 is best, 0.5 is chance"
    return [Tree(f"{show_name(model)}, pairs", best, _grow(rows, auc_color)) for (model,), rows in groups.items()]


def list_pair_ends(report: ReportData) -> dict[str, list[TreeNode]]:
    """Return by model the leaves of the tree of pairs with the lowest and the highest AUC, ascending."""
    ends = {}
    for (model,), rows in group_rows(report.rows("pair_segments", slice=ALL_ROWS), "model").items():
        leaves = [leaf for leaf in _grow(rows, auc_color).leaves() if leaf.cell.value is not None]
        leaves.sort(key=lambda leaf: (leaf.cell.value, leaf.row["node_id"]))
        ends[model] = pick_ends(leaves)
    return ends


def pick_ends(ascending: Sequence[T]) -> list[T]:
    """Return the first and the last of a sequence, all of a short one."""
    n_low = min(MAX_ENDS, len(ascending))
    return [*ascending[:n_low], *ascending[max(n_low, len(ascending) - MAX_ENDS) :]]


def describe_zero(row: Row) -> str:
    """Return on which side of 0 the interval of a mean difference lies."""
    low, high = row["mean_honest_low"], row["mean_honest_high"]
    if low is None or high is None:
        return "missing"
    return ABOVE_ZERO if low > 0 else BELOW_ZERO if high < 0 else "holds 0"


def _attribution_color(value: float | None) -> str:
    """Return the color of a mean attribution, which is half an AUC."""
    return auc_color(None if value is None else 2 * value)


def _no_color(_: float | None) -> str:
    return ""


def _grow(rows: Rows, color: ColorOf) -> TreeNode:
    """Return the root with all nodes below; node k is split into 2k and 2k + 1."""
    by_id = {row["node_id"]: row for row in rows}

    def grow(node_id: int, above: Rules) -> TreeNode:
        row = by_id[node_id]
        rules = _rules_of(row)
        whole_rule = _join_rules(rules) or "all rows"
        children = [grow(child, rules) for child in (2 * node_id, 2 * node_id + 1) if child in by_id]
        mean, low, high = (row[f"mean_honest{end}"] for end in ("", "_low", "_high"))
        return TreeNode(
            row=row,
            rule=_join_rules(_added_conditions(rules, above)) or whole_rule,
            whole_rule=whole_rule,
            predicate="; ".join(_with_side(side, row[f"{side[:-1]}_predicate".lstrip("_")]) for side in rules),
            n=" × ".join(show_count(row["_".join(filter(None, ("n", side, "honest")))]) for side in rules),
            cell=interval_cell(mean, low, high, color=color(mean)),
            children=children,
        )

    return grow(1, {})


def _rules_of(row: Row) -> Rules:
    if "negative_rule" in row:
        return {"negatives": row["negative_rule"] or "", "positives": row["positive_rule"] or ""}
    return {"": row["rule"] or ""}


def _with_side(side: str, text: str | None) -> str:
    return f"{side}: {show_name(text)}" if side else show_name(text)


def _join_rules(rules: Rules) -> str:
    """Return the rules that are not of all rows, each with its side."""
    joined = {side: " and ".join(_conditions(rule)) for side, rule in rules.items()}
    return "; ".join(_with_side(side, rule) for side, rule in joined.items() if rule)


def _added_conditions(rules: Rules, above: Rules) -> Rules:
    """Return the conditions of each side that the node above does not have."""
    return {
        side: " and ".join(part for part in _conditions(rule) if part not in _conditions(above.get(side, "")))
        for side, rule in rules.items()
    }


def _conditions(rule: str) -> list[str]:
    return [part for part in _BETWEEN_CONDITIONS.split(rule) if part and part not in {"all", "all rows"}]


def list_losing_slices(report: ReportData) -> list[TreeNode]:
    """Return the conjunctions of conditions that lose the most attribution, the first of each model, as leaves."""
    rows = [row for row in report.rows("attribution_slices", slice=ALL_ROWS) if row["rank"] <= MAX_SLICES]
    return [
        _grow([{**row, "node_id": 1, "is_leaf": True}], _attribution_color)
        for row in sorted(rows, key=lambda row: (row["model"], row["rank"]))
    ]


SEGMENT_COLORS: Mapping[str, ColorOf] = {
    "auc": auc_color,
    **dict.fromkeys(_LOSSES, _no_color),
    "mean_normalized_attribution": _attribution_color,
}
"""The measures of a named segment, and their colors."""
SEGMENT_TITLES = dict(zip(SEGMENT_COLORS, ("AUC", "Cross-entropy", "Gini impurity", "Mean attribution"), strict=True))


class NamedSegment(NamedTuple):
    """A named segment, and what it measures by (measure, model): the value, and its difference from all rows."""

    name: str
    first: Row
    n_rows: str
    n_positive: str
    cells: Mapping[tuple[str, str], tuple[TableCell, str]]


def list_named_segments(report: ReportData) -> list[NamedSegment]:
    """Return all rows, and the named segments in the order of the configuration."""
    groups = group_rows(report.rows("loss_by_segment", slice=ALL_ROWS), "segment")
    overall = {row["model"]: row for row in groups.get((OVERALL,), ())}
    names = _in_configured_order(report, "segments", [name for (name,) in groups])
    return [_describe_segment(name, groups[name,], overall) for name in names]


def _in_configured_order(report: ReportData, key: str, names: Sequence[str]) -> list[str]:
    """Return names as a table of ``[attribution]`` has them, all rows first."""
    part = report.configs.get("attribution", {}).get("attribution") or {}
    order = [OVERALL, *(part.get(key) or {})]
    return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))


def _describe_segment(name: str, rows: Rows, overall: Mapping[str, Row]) -> NamedSegment:
    n_rows, n_positive = (
        "/".join(map(show_count, dict.fromkeys(row[column] for row in rows))) for column in ("n_rows", "n_positive")
    )
    cells = {
        (measure, row["model"]): (segment_cell(row, measure), _show_difference(row, overall, measure))
        for row in rows
        for measure in SEGMENT_COLORS
    }
    return NamedSegment(name, rows[0], n_rows, n_positive, cells)


def list_measures(segments: Sequence[NamedSegment]) -> list[str]:
    """Return the measures that have a value anywhere: without probabilities there are no losses."""
    return [
        name
        for name in SEGMENT_COLORS
        if any(one[0].value is not None for row in segments for key, one in row.cells.items() if key[0] == name)
    ]


def list_segment_models(segments: Sequence[NamedSegment]) -> list[str]:
    """Return the models of the named segments."""
    return sorted({model for row in segments for _, model in row.cells})


def segment_cell(row: Row, column: str) -> TableCell:
    """Return a measure of a named segment."""
    value = row[column]
    if value is None:
        return TableCell(text=DASH, note="no rows, or no probabilities" if column in _LOSSES else "no rows of a label")
    return interval_cell(value, row[f"{column}_low"], row[f"{column}_high"], color=SEGMENT_COLORS[column](value))


def subtract_overall(row: Row, overall: Row | None, measure: str) -> float | None:
    """Return by how much a measure of a named segment differs from that of all rows; None of all rows."""
    if overall is None or row["segment"] == OVERALL or row[measure] is None or overall[measure] is None:
        return None
    return float(row[measure] - overall[measure])


def _show_difference(row: Row, overall: Mapping[str, Row], measure: str) -> str:
    difference = subtract_overall(row, overall.get(row["model"]), measure)
    return "" if difference is None else show_number(difference, signed=True)


class NamedPairs(NamedTuple):
    """Named pairs in the order of the configuration: by name and model the row, its AUC and its share of headroom."""

    models: Sequence[str]
    pairs: Mapping[str, Mapping[str, tuple[Row, TableCell, TableCell]]]


def list_named_pairs(report: ReportData) -> NamedPairs | None:
    """Return the AUC of the negatives of each named pair against its positives; None without any."""
    rows = report.rows("named_pairs", slice=ALL_ROWS)
    cells = {id(row): _auc_cell(row, is_spacious=True, digits=3) for row in rows}
    shares = {id(row): _headroom_cell(row, 0.0, cells[id(row)].weak, is_spacious=True) for row in rows}
    groups = group_rows(rows, "pair")
    pairs = {
        name: {row["model"]: (row, cells[id(row)], shares[id(row)]) for row in groups[name,]}
        for name in _in_configured_order(report, "pairs_of", [name for (name,) in groups])
    }
    return NamedPairs(sorted({row["model"] for row in rows}), pairs) if rows else None


class Correlations(NamedTuple):
    """Correlations by (attribution, loss, model)."""

    models: Sequence[str]
    cells: Mapping[tuple[str, str, str], TableCell]


def list_correlations(report: ReportData) -> Correlations | None:
    """Return how attributions correlate with losses on all rows; None without any correlation."""
    rows = report.rows("attribution_correlations", slice=ALL_ROWS)
    models = list(dict.fromkeys(row["model"] for row in rows if row["pearson"] is not None))
    cells = {
        (row["attribution"], row["loss"], row["model"]): TableCell(
            text=show_number(row["pearson"], signed=True),
            value=row["pearson"],
            note=f"{show_count(row['n_rows'])} rows",
        )
        for row in rows
    }
    return Correlations(models, cells) if models else None
