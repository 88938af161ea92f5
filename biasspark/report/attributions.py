"""Where a model loses AUC: heat maps of group pairs, trees of segments and of pairs, and tables of named segments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from biasspark.columns import ALL_ROWS, OVERALL
from biasspark.report import cells
from biasspark.report.cells import DASH, Row, TableCell
from biasspark.report.report_data import ReportData, Rows, group_rows
from biasspark.text import show_visibly

MAX_GROUPS, MAX_SPACIOUS = 20, 5
"""The most groups in a heat map, and the most for which cells have room for an interval."""
MAX_SLICES, MAX_CROSSES = 10, 10
MAX_ENDS = 3
"""Leaves of a tree of pairs that are listed from either end."""

_LOSSES = ("cross_entropy", "gini_impurity")

T = TypeVar("T")
ColorOf = Callable[[float | None], str]


class HeatMap(NamedTuple):
    """The groups of a grouping against each other, with cells by (positive group, negative group).

    Headroom is colored by its square root, up to ``max_headroom``. Spacious cells have room for intervals, which are
    otherwise shown on hover. ``n_hidden`` smaller groups are left out.
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
    """A node of a tree. ``rule`` is what its split adds to ``whole_rule``, and ``predicate`` is the latter as SQL."""

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
    def is_difference(self) -> bool:
        """Whether it has a difference of two models."""
        return bool(self.row.get("baseline_model"))

    @property
    def may_be_zero(self) -> bool:
        """Whether it has a difference of two models whose interval does not exclude 0."""
        return self.is_difference and describe_zero(self.row) in {"includes 0", "missing"}

    @property
    def verdict(self) -> str:
        """Whether it differs from the rest by more than chance, and a difference of two models also from 0."""
        if self.row["found"]:
            words = "differs from the rest" if self.is_difference else "found"
            words += ", may be chance" if self.row["confirmed"] is False else ""
        else:
            words = "false discovery" if self.row["false_discovery"] else "not significant"
        return f"{words}; interval {describe_zero(self.row)}" if self.is_difference else words

    def nodes(self) -> Iterator[TreeNode]:
        """Return the node and those below it, from left to right."""
        yield self
        for child in self.children:
            yield from child.nodes()

    def leaves(self) -> Iterator[TreeNode]:
        """Return the leaves at and below the node, from left to right."""
        return (node for node in self.nodes() if node.row["is_leaf"])


class Tree(NamedTuple):
    """A tree, its title, and which values are good."""

    title: str
    best: str
    root: TreeNode

    def list_ends(self) -> list[TreeNode]:
        """Return the leaves with the lowest and the highest values, ascending."""
        known = [leaf for leaf in self.root.leaves() if leaf.cell.value is not None]
        return pick_ends(sorted(known, key=lambda leaf: (leaf.cell.value, leaf.row["node_id"])))


def list_heat_maps(crosses: Rows) -> list[HeatMap]:
    """Return a heat map for each grouping and model in ``auc_crosses`` of a slice, of the groups with the most rows."""
    maps = []
    for (grouping, model), rows in group_rows(crosses, "grouping", "model").items():
        n_positive = {row["positive_group"]: row["n_positive"] for row in rows}
        n_negative = {row["negative_group"]: row["n_negative"] for row in rows}
        sizes = {name: n + n_negative.get(name, 0) for name, n in n_positive.items()}
        groups = sorted(sorted(sizes, key=lambda name: (-sizes[name], name))[:MAX_GROUPS])
        chosen = [row for row in rows if {row["positive_group"], row["negative_group"]} <= {*groups}]
        pairs = {(row["positive_group"], row["negative_group"]): row for row in chosen}
        largest = max((row["headroom_share"] or 0.0 for row in pairs.values()), default=0.0)
        is_spacious = len(groups) <= MAX_SPACIOUS
        heat_map = HeatMap(
            model=model,
            grouping=grouping,
            groups=groups,
            n_positive=n_positive,
            n_negative=n_negative,
            n_hidden=len(sizes) - len(groups),
            auc={pair: _auc_cell(row, is_spacious) for pair, row in pairs.items()},
            headroom={pair: _headroom_cell(row, largest) for pair, row in pairs.items()},
            max_headroom=largest,
            is_spacious=is_spacious,
        )
        maps.append(heat_map)
    return maps


def list_worst_crosses(heat_map: HeatMap) -> list[tuple[str, str]]:
    """Return the pairs of groups with the largest headroom, the largest first."""
    return sorted(heat_map.headroom, key=lambda pair: (-(heat_map.headroom[pair].value or 0.0), pair))[:MAX_CROSSES]


def _auc_cell(row: Row, is_spacious: bool, digits: int = 2) -> TableCell:
    if row["auc"] is None:
        return TableCell(text=DASH, note="no pairs")
    interval = cells.show_interval(row["auc_low"], row["auc_high"], digits=digits)
    counts = cells.show_labels(row["n_positive"], row["n_negative"])
    return TableCell(
        text=cells.show_number(row["auc"], digits),
        interval=interval if is_spacious else "",
        color=cells.auc_color(row["auc"]),
        value=row["auc"],
        note=counts if is_spacious else interval or "no interval",
        weak=cells.is_weak(row, "auc"),
    )


def _headroom_cell(row: Row, largest: float) -> TableCell:
    """Return a cross's share of all wrongly ordered pairs, in percent. It is as uncertain as the AUC of the cross."""
    share = row["headroom_share"]
    return TableCell(
        text=DASH if share is None else cells.show_number(100 * share, 2),
        color=cells.root_share_color(share, largest),
        value=share,
        note=f"{row['headroom_pairs']:,.0f} of {cells.show_count(row['n_pairs'])} pairs",
        weak=row["auc"] is not None and cells.is_weak(row, "auc"),
    )


def list_segment_trees(segments: Rows) -> list[Tree]:
    """Return the trees in ``attribution_segments`` of a slice: those of attribution, then those of losses."""
    groups = group_rows(segments, "target", "baseline_model", "model")
    trees = []
    for target, baseline, model in sorted(groups, key=lambda key: (key[0] != "auc", key)):
        subject = f"{show_visibly(model)} minus {show_visibly(baseline)}" if baseline else show_visibly(model)
        title = f"{subject}, {'attribution' if target == 'auc' else show_visibly(target)}"
        best = "0 means equal" if baseline else "0.5 is best, 0.25 is chance" if target == "auc" else "0 is best"
        measure = "mean_normalized_attribution" if target == "auc" else "gini_impurity"
        color = cells.gap_color if baseline else SEGMENT_COLORS[measure]
        trees.append(Tree(title, best, _grow(groups[target, baseline, model], color)))
    return trees


def list_pair_trees(segments: Rows) -> list[Tree]:
    """Return the trees in ``pair_segments`` of a slice, one per model."""
    best = "1 is best, 0.5 is chance"
    return [
        Tree(f"{show_visibly(model)}, pairs", best, _grow(rows, cells.auc_color))
        for (model,), rows in group_rows(segments, "model").items()
    ]


def pick_ends(ascending: Sequence[T]) -> list[T]:
    """Return the first and the last items of a sequence, or all of a short one."""
    n_low = min(MAX_ENDS, len(ascending))
    return [*ascending[:n_low], *ascending[max(n_low, len(ascending) - MAX_ENDS) :]]


def describe_zero(row: Row) -> str:
    """Return on which side of 0 the interval of a mean difference lies."""
    low, high = row["mean_honest_low"], row["mean_honest_high"]
    if low is None or high is None:
        return "missing"
    return "above 0" if low > 0 else "below 0" if high < 0 else "includes 0"


def _grow(rows: Rows, color: ColorOf) -> TreeNode:
    """Return the root with all nodes below it. The children of node k are 2k and 2k + 1."""
    by_id = {row["node_id"]: row for row in rows}
    sides = ("negative", "positive") if "negative_rule" in rows[0] else ("",)  # a segment has one side without a name

    def join(texts: Iterable[str]) -> str:
        named = zip(sides, map(show_visibly, texts), strict=True)
        return "; ".join(f"{side}s: {text}" if side else text for side, text in named if text)

    def grow(node_id: int, above: Sequence[Sequence[str]]) -> TreeNode:
        row = by_id[node_id]
        rules = [row[f"{side}_rule".lstrip("_")] or "" for side in sides]
        conditions = [_split_rule(rule, parts) for rule, parts in zip(rules, above, strict=True)]
        added = [[part for part in parts if part not in known] for parts, known in zip(conditions, above, strict=True)]
        whole_rule = join(map(" and ".join, conditions)) or "all rows"
        mean, low, high = (row[f"mean_honest{end}"] for end in ("", "_low", "_high"))
        return TreeNode(
            row=row,
            rule=join(map(" and ".join, added)) or whole_rule,
            whole_rule=whole_rule,
            predicate=join(row[f"{side}_predicate".lstrip("_")] for side in sides),
            n=" × ".join(cells.show_count(row[f"n_{side}s_honest" if side else "n_honest"]) for side in sides),
            cell=cells.interval_cell(mean, low, high, color=color(mean)),
            children=[grow(child, conditions) for child in (2 * node_id, 2 * node_id + 1) if child in by_id],
        )

    return grow(1, [()] * len(sides))


def _split_rule(rule: str, above: Sequence[str]) -> Sequence[str]:
    """Return the conditions of a rule, given those of the parent, of which a split adds one or narrows one.

    So each is known whatever its values are: they may have an "and", too.
    """
    if rule in {"", "all", "all rows", " and ".join(above)}:
        return above
    added, narrowed = [(n, n) for n in range(len(above) + 1)], [(n, n + 1) for n in range(len(above))]
    for start, stop in added + narrowed:
        before = "".join(f"{part} and " for part in above[:start])
        after = "".join(f" and {part}" for part in above[stop:])
        if rule.startswith(before) and rule.endswith(after) and len(rule) > len(before) + len(after):
            return [*above[:start], rule[len(before) : len(rule) - len(after)], *above[stop:]]
    return [rule]


SEGMENT_COLORS: Mapping[str, ColorOf] = {
    "auc": cells.auc_color,
    **dict.fromkeys(_LOSSES, lambda _: ""),
    # The mean attribution of all rows is half the AUC.
    "mean_normalized_attribution": lambda value: cells.auc_color(value and 2 * value),
}
"""The measures of a named segment, and their colors."""
SEGMENT_TITLES = dict(zip(SEGMENT_COLORS, ("AUC", "Cross-entropy", "Gini impurity", "Mean attribution"), strict=True))


def list_losing_slices(report: ReportData) -> list[TreeNode]:
    """Return the conjunctions of conditions that lose the most attribution, the first ones of each model, as leaves."""
    rows = [row for row in report.rows("attribution_slices", slice=ALL_ROWS) if row["rank"] <= MAX_SLICES]
    return [
        _grow([{**row, "node_id": 1, "is_leaf": True}], SEGMENT_COLORS["mean_normalized_attribution"])
        for row in sorted(rows, key=lambda row: (row["model"], row["rank"]))
    ]


def list_named_segments(report: ReportData) -> dict[str, dict[str, Row]]:
    """Return the rows of ``loss_by_segment`` by segment and model: all rows, then segments as they are configured."""
    groups = group_rows(report.rows("loss_by_segment", slice=ALL_ROWS), "segment")
    names = _in_configured_order(report, "segments", [name for (name,) in groups])
    return {name: {row["model"]: row for row in groups[name,]} for name in names}


def _in_configured_order(report: ReportData, key: str, names: Sequence[str]) -> list[str]:
    """Return names in the order of a table in ``[attribution]``, all rows first."""
    part = report.configs.get("attribution", {}).get("attribution") or {}
    order = [OVERALL, *(part.get(key) or {})]
    return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))


def list_measures(rows: Rows) -> list[str]:
    """Return the measures of named segments that have any value. Without probabilities there are no losses."""
    return [name for name in SEGMENT_COLORS if any(row[name] is not None for row in rows)]


def segment_cell(row: Row, column: str, overall: Row) -> TableCell:
    """Return a measure of a named segment, with its difference from that of all rows."""
    value, difference = row[column], subtract_overall(row, overall, column)
    if value is None:
        return TableCell(text=DASH, note="no rows, or no probabilities" if column in _LOSSES else "no rows of a label")
    cell = cells.interval_cell(value, row[f"{column}_low"], row[f"{column}_high"], color=SEGMENT_COLORS[column](value))
    return replace(cell, difference="" if difference is None else cells.show_number(difference, signed=True))


def subtract_overall(row: Row, overall: Row, measure: str) -> float | None:
    """Return a measure of a named segment minus that of all rows; None for all rows themselves."""
    if row["segment"] == OVERALL or row[measure] is None or overall[measure] is None:
        return None
    return float(row[measure] - overall[measure])


def list_named_pairs(report: ReportData) -> dict[str, dict[str, tuple[Row, TableCell, TableCell]]]:
    """Return the row, the AUC and the headroom of each named pair, in the order of the configuration, by model."""
    rows = report.rows("named_pairs", slice=ALL_ROWS)
    names = _in_configured_order(report, "pairs_of", list(dict.fromkeys(row["pair"] for row in rows)))
    pairs: dict[str, dict[str, tuple[Row, TableCell, TableCell]]] = {name: {} for name in names}
    for row in rows:
        auc, headroom = _auc_cell(row, is_spacious=True, digits=3), _headroom_cell(row, 0.0)
        pairs[row["pair"]][row["model"]] = row, auc, headroom
    return pairs


def list_correlations(report: ReportData) -> dict[tuple[str, str, str], TableCell]:
    """Return the correlations on all rows by (attribution, loss, model), for the models that have any."""
    rows = report.rows("attribution_correlations", slice=ALL_ROWS)
    models = {row["model"] for row in rows if row["pearson"] is not None}
    return {
        (row["attribution"], row["loss"], row["model"]): TableCell(
            text=cells.show_number(row["pearson"], signed=True),
            value=row["pearson"],
            note=f"{cells.show_count(row['n_rows'])} rows",
        )
        for row in rows
        if row["model"] in models
    }
