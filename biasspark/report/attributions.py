"""Where a model loses its AUC: crosses as heat maps, trees of segments and of pairs, and tables of segments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from biasspark.columns import ALL_ROWS
from biasspark.report.cells import (
    DASH,
    TableCell,
    is_weak,
    shade_auc,
    shade_gap,
    shade_share_finely,
    show_count,
    show_interval,
    show_name,
    show_number,
    show_p,
    show_percent,
)
from biasspark.report.facts import NightFacts, Row

MOST_GROUPS, MOST_SPACIOUS = 20, 5
"""Of a heat map: how many it shows, and up to how many its cells have room for an interval."""
MOST_SLICES = 10

# What comes after it up to the next "and" compares, as `biasspark.features.say_condition` writes it.
_BETWEEN_CONDITIONS = re.compile(r" and (?=(?:(?! and ).)* (?:is|=|<|<=|>=) )", re.DOTALL)

Shade = Callable[[float | None], str]
Rules: TypeAlias = Mapping[str, str]
"""Of each side of a pair, or of the one side that a segment has, its rule."""


class _Described(NamedTuple):
    """What a row says of its node: its rules, the SQL of them, and how many rows it has."""

    rules: Rules
    predicate: str
    n: str


Describe: TypeAlias = Callable[[Row], _Described]


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """A partition of the rows against itself: positives down, negatives across; cells by (positive, negative).

    Each group has so many positives, and so many negatives; of a cell both make the pairs. A spacious map has room for
    the intervals of its AUCs; those of others are a hover away. The colour of a share goes by its square root, up to
    the largest of the map.
    """

    model: str
    grouping: str
    groups: Sequence[str]
    n_positive: Mapping[str, int]
    n_negative: Mapping[str, int]
    n_left_out: int
    auc: Mapping[tuple[str, str], TableCell]
    headroom: Mapping[tuple[str, str], TableCell]
    most_headroom: float
    is_spacious: bool


@dataclass(frozen=True, kw_only=True)
class DrawnNode:
    """A node of a tree of segments, with those below it."""

    rule: str
    whole_rule: str
    predicate: str
    n: str
    cell: TableCell
    p: str
    loss: str
    is_leaf: bool
    verdict: str
    false_discovery: bool
    children: Sequence[DrawnNode] = ()


@dataclass(frozen=True, kw_only=True)
class DrawnTree:
    """A tree with what it is of."""

    title: str
    best: str
    root: DrawnNode


def list_heat_maps(facts: NightFacts) -> list[HeatMap]:
    """Return the crosses of all rows, one map per model and grouping; of many groups those with the most pairs."""
    rows = facts.rows("auc_crosses", slice=ALL_ROWS)
    keys = dict.fromkeys((row["grouping"], row["model"]) for row in rows)
    return [_draw_map([row for row in rows if (row["grouping"], row["model"]) == key], *key) for key in keys]


def _draw_map(rows: Sequence[Row], grouping: str, model: str) -> HeatMap:
    sizes: Counter[str] = Counter()
    for row in rows:
        sizes[row["positive_group"]] = max(sizes[row["positive_group"]], row["n_positive"])
    for row in rows:
        if row["negative_group"] == row["positive_group"]:
            sizes[row["negative_group"]] += row["n_negative"]
    groups = sorted(sorted(sizes, key=lambda name: (-sizes[name], name))[:MOST_GROUPS])
    shown = [row for row in rows if row["positive_group"] in groups and row["negative_group"] in groups]
    most = max((row["headroom_share"] or 0.0 for row in shown), default=0.0)
    is_spacious = len(groups) <= MOST_SPACIOUS
    aucs = {_key(row): _auc_cell(row, is_spacious=is_spacious) for row in shown}
    return HeatMap(
        model=model,
        grouping=grouping,
        groups=groups,
        n_positive={row["positive_group"]: row["n_positive"] for row in shown},
        n_negative={row["negative_group"]: row["n_negative"] for row in shown},
        n_left_out=len(sizes) - len(groups),
        auc=aucs,
        headroom={_key(row): _headroom_cell(row, most, aucs[_key(row)], 1 if is_spacious else 2) for row in shown},
        most_headroom=most,
        is_spacious=is_spacious,
    )


def _key(row: Row) -> tuple[str, str]:
    return row["positive_group"], row["negative_group"]


def _auc_cell(row: Row, *, is_spacious: bool) -> TableCell:
    """Return the AUC of a cross with its interval, which a run may lack that is older than those."""
    value, low, high = row["auc"], row.get("auc_low"), row.get("auc_high")
    if value is None:
        return TableCell(text=DASH, note="no pairs")
    interval = show_interval(low, high, digits=2)
    counted = f"{show_count(row['n_positive'])} positives, {show_count(row['n_negative'])} negatives"
    return TableCell(
        text=show_number(value, 2),
        interval=interval if is_spacious else "",
        shade=shade_auc(value),
        value=value,
        note=counted if is_spacious else interval or "no interval",
        weak=is_weak(low, high),
    )


def _headroom_cell(row: Row, most: float, auc: TableCell, digits: int) -> TableCell:
    """Return the share of a cross in what is wrongly ordered, in %; few rows tell as little of it as of its AUC."""
    note = f"{row['headroom_pairs']:,.0f} of {show_count(row['n_pairs'])} pairs"
    share = row["headroom_share"]
    text = DASH if share is None else show_number(100 * share, digits)
    return TableCell(text=text, shade=shade_share_finely(share, most), value=share, note=note, weak=auc.weak)


def list_segment_trees(facts: NightFacts) -> list[DrawnTree]:
    """Return the trees of attribution on all rows, one per model or pair of models, and of losses where they are."""
    rows = facts.rows("attribution_segments", slice=ALL_ROWS)
    keys = dict.fromkeys((row["target"], row["baseline_model"], row["model"]) for row in rows)
    trees = []
    for target, baseline, model in sorted(keys, key=lambda key: (key[0] != "auc", key)):
        own = [row for row in rows if (row["target"], row["baseline_model"], row["model"]) == (target, baseline, model)]
        what = "attribution" if target == "auc" else show_name(target)
        title = f"{show_name(model)} minus {show_name(baseline)}, {what}" if baseline else f"{show_name(model)}, {what}"
        best = "0 means equal" if baseline else "0.5 is best, 0.25 is chance" if target == "auc" else "0 is best"
        shade = _choose_shade(target, bool(baseline))
        trees.append(DrawnTree(title=title, best=best, root=_grow(own, _describe_segment, shade)))
    return trees


def list_pair_trees(facts: NightFacts) -> list[DrawnTree]:
    """Return the trees of pairs on all rows, one per model."""
    rows = facts.rows("pair_segments", slice=ALL_ROWS)
    models = dict.fromkeys(row["model"] for row in rows)
    return [
        DrawnTree(
            title=f"{show_name(model)}, pairs",
            best="1 is best, 0.5 is chance",
            root=_grow([row for row in rows if row["model"] == model], _describe_pair, shade_auc),
        )
        for model in models
    ]


def _choose_shade(target: str, is_difference: bool) -> Shade:
    """Return the scale of a tree's values: attributions are half an AUC; losses have no fixed scale."""
    if is_difference:
        return shade_gap
    return _shade_attribution if target == "auc" else _shade_nothing


def _shade_attribution(value: float | None) -> str:
    return shade_auc(None if value is None else 2 * value)


def _shade_nothing(_: float | None) -> str:
    return ""


_LOSSES = ("cross_entropy", "gini_impurity")
_SEGMENT_MEASURES: Mapping[str, Shade] = {
    "auc": shade_auc,
    "mean_normalized_attribution": _shade_attribution,
    **dict.fromkeys(_LOSSES, _shade_nothing),
}
"""What is told of a named segment, each with its scale."""


def _grow(rows: Sequence[Row], describe: Describe, shade: Shade) -> DrawnNode:
    """Return the root with all nodes below it; node k is split into 2k and 2k + 1."""
    return _grow_from({row["node_id"]: row for row in rows}, 1, {}, (describe, shade))


def _grow_from(by_id: Mapping[int, Row], node_id: int, above: Rules, how: tuple[Describe, Shade]) -> DrawnNode:
    row = by_id[node_id]
    describe, shade = how
    said = describe(row)
    children = [_grow_from(by_id, child, said.rules, how) for child in (2 * node_id, 2 * node_id + 1) if child in by_id]
    low, high = row["mean_honest_low"], row["mean_honest_high"]
    cell = TableCell(
        text=show_number(row["mean_honest"]),
        interval=show_interval(low, high),
        shade=shade(row["mean_honest"]),
        value=row["mean_honest"],
        weak=is_weak(low, high),
    )
    return DrawnNode(
        rule=_say_rules(_find_new(said.rules, above)) or _say_rules(said.rules) or "all rows",
        whole_rule=_say_rules(said.rules) or "all rows",
        predicate=said.predicate,
        n=said.n,
        cell=cell,
        p=show_p(row["p_adjusted"]),
        loss=show_percent(row["loss_share"]) if row.get("loss_share") is not None else "",
        is_leaf=row["is_leaf"],
        verdict=_say_verdict(row),
        false_discovery=bool(row["false_discovery"]) and row["is_leaf"],
        children=children,
    )


def _say_verdict(row: Row) -> str:
    """Say whether a leaf or slice tells more than chance."""
    if row["found"]:
        return "found, may be chance" if row["confirmed"] is False else "found"
    return "false discovery" if row["false_discovery"] else "not significant"


def _describe_segment(row: Row) -> _Described:
    n = f"{show_count(row['n_honest'])} rows"
    return _Described({"": row["rule"] or ""}, show_name(row["predicate"]), n)


def _describe_pair(row: Row) -> _Described:
    rules = {"negatives": row["negative_rule"] or "", "positives": row["positive_rule"] or ""}
    n = f"{show_count(row['n_negatives_honest'])} × {show_count(row['n_positives_honest'])} rows"
    predicate = f"negatives: {show_name(row['negative_predicate'])}; positives: {show_name(row['positive_predicate'])}"
    return _Described(rules, predicate, n)


def _say_rules(rules: Rules) -> str:
    """Return the rules that are not about all rows, each with its side."""
    said = {side: " and ".join(_split_rule(rule)) for side, rule in rules.items()}
    return "; ".join(f"{side}: {show_name(rule)}" if side else show_name(rule) for side, rule in said.items() if rule)


def _find_new(rules: Rules, above: Rules) -> Rules:
    """Return of each side the conditions that the node above has not."""
    before = {side: _split_rule(rule) for side, rule in above.items()}
    return {
        side: " and ".join(part for part in _split_rule(rule) if part not in before.get(side, ()))
        for side, rule in rules.items()
    }


def _split_rule(rule: str) -> list[str]:
    """Cut a rule at its conditions. What follows an "and" within a value has no sign of comparison: it is not cut."""
    return [part for part in _BETWEEN_CONDITIONS.split(rule) if part and part not in {"all", "all rows"}]


def tabulate_slices(facts: NightFacts) -> list[dict[str, Any]]:
    """Return the conjunctions that lack most attribution, the first of each model."""
    rows = facts.rows("attribution_slices", slice=ALL_ROWS)
    kept = [row for row in rows if row["rank"] <= MOST_SLICES]
    return [
        {
            "model": row["model"],
            "rank": row["rank"],
            "rule": show_name(row["rule"]),
            "predicate": show_name(row["predicate"]),
            "n": show_count(row["n_honest"]),
            "cell": _attribution_cell(row),
            "loss": show_percent(row["loss_share"]),
            "p": show_p(row["p_adjusted"]),
            "verdict": _say_verdict(row),
            "false_discovery": bool(row["false_discovery"]),
        }
        for row in sorted(kept, key=lambda row: (row["model"], row["rank"]))
    ]


def _attribution_cell(row: Row) -> TableCell:
    value, low, high = row["mean_honest"], row["mean_honest_low"], row["mean_honest_high"]
    return TableCell(
        text=show_number(value),
        interval=show_interval(low, high),
        shade=_shade_attribution(value),
        weak=is_weak(low, high),
    )


def tabulate_segments(facts: NightFacts) -> list[dict[str, Any]]:
    """Return the named segments of all rows with the losses and AUC of each model."""
    rows = facts.rows("loss_by_segment", slice=ALL_ROWS)
    found = []
    for name in sorted({row["segment"] for row in rows}):
        own = {row["model"]: row for row in rows if row["segment"] == name}
        cells = {
            model: {measure: _segment_cell(row, measure) for measure in _SEGMENT_MEASURES} for model, row in own.items()
        }
        predicate = next(iter(own.values()))["predicate"]
        found.append({"segment": name, "predicate": predicate, "models": own, "cells": cells})
    return found


def _segment_cell(row: Row, measure: str) -> TableCell:
    """Return a measure with its interval; a run that is older than the intervals has none."""
    value, low, high = row[measure], row.get(f"{measure}_low"), row.get(f"{measure}_high")
    if value is None:
        return TableCell(text=DASH, note="no rows, or no probabilities" if measure in _LOSSES else "no rows of a label")
    return TableCell(
        text=show_number(value),
        interval=show_interval(low, high),
        shade=_SEGMENT_MEASURES[measure](value),
        value=value,
        weak=is_weak(low, high),
    )
