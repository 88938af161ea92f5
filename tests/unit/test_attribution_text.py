"""What the job of attribution prints."""

from __future__ import annotations

from itertools import product
from typing import Any

import duckdb
import pyarrow as pa

from biasspark.columns import ALL_ROWS, OVERALL
from biasspark.report.console_summary import show_lost
from biasspark.tables.schemas import (
    ATTRIBUTION_CORRELATIONS,
    ATTRIBUTION_SEGMENTS,
    AUC_CROSSES,
    LOSS_BY_SEGMENT,
    PAIR_SEGMENTS,
    Table,
)
from biasspark.workflows.attribute import _within_slices

ALL: dict[str, Any] = {"model": "m", "slice": ALL_ROWS}
LONG = f"(country is not {', '.join(f'country-{n}' for n in range(60))} or null) and age >= 40"


def show(rows: dict[Table, list[dict[str, Any]]]) -> list[list[str]]:
    """Return what is printed of tables, by paragraph and line, without titles and headings."""
    tables = {table: pa.Table.from_pylist(of_table, table.arrow_schema) for table, of_table in rows.items()}
    return [text.splitlines()[2:] for text in show_lost(tables).split("\n\n") if text]


def node(number: int, mean: float | None, **values: Any) -> dict[str, Any]:
    row = ALL | {"baseline_model": "", "target": "auc", "node_id": number, "is_leaf": True}
    return row | {"rule": f"rule {number}", "mean_honest": mean} | values


def test_a_predicate_within_a_slice_that_ends_in_a_comment_is_sql() -> None:
    (row,) = _within_slices([ALL | {"slice": "high", "predicate": "n = 1"}], {"high": "score > 1 -- odd"})
    query = f"SELECT {row['predicate']} FROM (SELECT 2 AS score, 1 AS n)"
    assert duckdb.execute(query).fetchall() == [(True,)]


def test_what_loses_most_comes_first() -> None:
    segments = [node(1, 0.1, is_leaf=False), node(2, None), node(3, 0.3), node(4, 0.2)]
    ends = {5: (0.1, 0.2), 6: (-0.5, -0.3), 7: (None, None), 8: (-0.1, 0.2)}
    segments += [
        node(number, mean, baseline_model="old", mean_honest_low=ends[number][0], mean_honest_high=ends[number][1])
        for number, mean in ((5, 0.15), (6, -0.4), (7, None), (8, 0.05))
    ]
    cross = ALL | {"grouping": "g", "positive_group": "a"}
    crosses = [cross | {"negative_group": str(share), "headroom_share": share} for share in (0.2, None, 0.0, 0.7)]
    leaves, differences, pairs = show({ATTRIBUTION_SEGMENTS: segments, AUC_CROSSES: crosses})
    assert [line.strip() for line in leaves[1::2]] == ["rule 4", "rule 3", "rule 2"]
    assert [line.split()[2] for line in leaves[::2]] == ["4", "3", "2"]
    assert [line.split()[3] for line in differences[::2]] == ["6", "5", "8", "7"]
    intervals = [" ".join(line.split()[-2:]) for line in differences[::2]]
    assert intervals == ["below 0", "above 0", "includes 0", "- missing"]
    assert [line.split()[4] for line in pairs] == ["0.7", "0.2"]


def test_rows_of_other_slices_are_counted() -> None:
    table = pa.Table.from_pylist([node(2, 0.2, slice="long")], ATTRIBUTION_SEGMENTS.arrow_schema)
    assert f"1 more in latest_{ATTRIBUTION_SEGMENTS.name}" in show_lost({ATTRIBUTION_SEGMENTS: table})


def test_why_a_segment_with_a_low_p_value_is_not_found_is_said() -> None:
    tested = {"p_adjusted": 0.0003, "found": False, "confirmed": False}
    segments = [node(2, 0.2, false_discovery=True, **tested), node(3, 0.3, false_discovery=False, **tested)]
    (leaves,) = show({ATTRIBUTION_SEGMENTS: segments})
    assert [line.split()[-2:] for line in leaves[:-1:2]] == [["False*", "False"], ["False", "False"]]
    assert leaves[-1].startswith("* false_discovery: ")
    (leaves,) = show({ATTRIBUTION_SEGMENTS: segments[1:]})
    assert "*" not in "".join(leaves)


def test_no_rule_is_cut() -> None:
    sides = {"negative_rule": LONG, "positive_rule": ""}
    leaves, pairs = show({ATTRIBUTION_SEGMENTS: [node(2, 0.2, rule=LONG)], PAIR_SEGMENTS: [node(3, 0.3) | sides]})
    assert max(map(len, (*leaves, *pairs))) <= 120
    assert " ".join(" ".join(leaves[1:]).split()) == LONG
    assert " ".join(" ".join(pairs[1:]).split()) == f"negatives: {LONG} positives: all"


def test_each_model_has_its_worst_of_all_rows_and_the_rest_is_counted() -> None:
    """Ten lines are shared out, and each model has at least three: one that is bad everywhere does not take them."""
    names = product(["good", "old", "bad", "worse"], [ALL_ROWS, "a slice"], range(1, 6))
    rows = [
        node(n, n / 10 - (model != "good") / 100, model=model, slice=name, negative_rule="", positive_rule="")
        for model, name, n in names
    ]
    differences = [row | {"baseline_model": "old"} for row in rows if row["model"] in ("good", "bad")]
    shown = show({ATTRIBUTION_SEGMENTS: [*rows, *differences], PAIR_SEGMENTS: rows})
    worst_of_four = [(model, str(n)) for model in ("bad", "good", "old", "worse") for n in (1, 2, 3)]
    largest_of_two = [(model, str(n)) for model in ("bad", "good") for n in (5, 4, 3, 2, 1)]
    for lines, expected, n_more in zip(
        shown, (worst_of_four, largest_of_two, worst_of_four), (28, 10, 28), strict=True
    ):
        listed = [line.replace(" old ", " ").split()[:3] for line in lines[:-1] if not line.startswith("    ")]
        assert [(model, number) for model, _, number in listed] == expected
        assert {name for _, name, _ in listed} == {ALL_ROWS}
        assert f"{n_more} more" in lines[-1]


def test_segments_and_correlations_have_models_side_by_side() -> None:
    values = {OVERALL: (0.9, 0.8), "z": (0.95, None), "a": (0.7, 0.8)}
    losses = [
        ALL | {"segment": name, "n_rows": 5, "model": model, "auc": auc}
        for name, aucs in values.items()
        for model, auc in zip("nm", aucs, strict=True)
    ]
    correlations = [
        ALL | {"attribution": "total", "loss": "gini", "model": model, "pearson": value}
        for model, value in (("m", 0.25), ("n", -0.5), ("odds", None))
    ]
    segments, pearson = show({LOSS_BY_SEGMENT: losses, ATTRIBUTION_CORRELATIONS: correlations})
    assert [line.split() for line in segments] == [
        ["auc", OVERALL, "5", "0.9000", "0.8000"],
        ["auc", "z", "5", "0.9500", "+0.0500", "-"],
        ["auc", "a", "5", "0.7000", "-0.2000", "0.8000", "+0.0000"],
    ]
    assert [line.split() for line in pearson] == [["total", "gini", "0.2500", "-0.5000"]]
