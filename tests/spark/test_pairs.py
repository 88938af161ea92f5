"""Pair segments on Spark: samples, nodes by a cross join of the rows that their predicates select, and edges."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from biasspark.attribution.pairs import pair_segments, sample_examples
from biasspark.config.attribution_settings import Pairs
from biasspark.expressions.sql import write_name
from biasspark.features import Feature
from tests.oracle.intervals import logit_interval, newcombe_interval

HOSTILE = (
    "",
    "'",
    "it's",
    "'); DROP TABLE x; --",
    "back\\slash\\'",
    "${spark.home}",
    "$1",
    "a, b",
    "new\nline",
    '"',
    "null",
    "%s {0}",
    "ünï 😀",
)
JOB = "job `of` 'last' year"
FEATURES = (
    Feature("age", "age", True, (0.0, 20.0, 40.0, 60.0), True),
    Feature(JOB, write_name(JOB), False, HOSTILE, True),
)
SCHEMA = (
    f"model STRING, slice STRING, row_id STRING, label BOOLEAN, score DOUBLE, bin_0 INT, bin_1 INT, "
    f"age DOUBLE, {write_name(JOB)} STRING"
)
SETTINGS = Pairs(positives=120, negatives=150, max_depth=3, min_side=12, seed=7)
SIDE = ("model", "slice", "label")


def make_rows(n_rows: int = 700) -> list[tuple[Any, ...]]:
    """Two models; the slice `few` has fewer rows than are asked for. Jobs from the seventh on are hard to rank."""
    rng = random.Random(31)
    rows = []
    for number in range(n_rows):
        label, age = rng.random() < 0.4, rng.choice([None, *range(80)])
        job = rng.choice([None, *range(len(HOSTILE))])
        easy = job is not None and job < 6
        bins = (0 if age is None else age // 20 + 1, 0 if job is None else job + 1)
        values = (*bins, None if age is None else float(age), None if job is None else HOSTILE[job])
        for model, digits in (("coarse", 1), ("fine", 9)):
            score = round(rng.gauss(label * (2.0 if easy else 0.2) + (age or 0) / 80, 1), digits)
            names = ("all", "few") if number < n_rows // 3 else ("all",)
            rows += [(model, name, f"row {number}", label, score, *values) for name in names]
    rng.shuffle(rows)
    return rows


def draw_by_sorting(ranked: DataFrame, settings: Pairs) -> dict[tuple[Any, ...], tuple[list[str], list[str]]]:
    """By model, slice and label, the ids that grow and those that estimate: all rows in the order of their hashes."""
    draw = F.xxhash64(F.lit(settings.seed).cast("bigint"), "row_id").alias("draw")
    every = defaultdict(list)
    for row in ranked.select(*SIDE, draw, "row_id").collect():
        every[row.model, row.slice, row.label].append((row.draw, row.row_id))
    drawn = {}
    for side, rows in every.items():
        size = min(settings.positives if side[2] else settings.negatives, len(rows) // 2)
        ids = [row_id for _, row_id in sorted(rows)]
        drawn[side] = ids[:size], ids[size : 2 * size]
    return drawn


def test_samples_are_the_rows_with_the_lowest_hashes(spark: SparkSession) -> None:
    """Of many rows few, of few half; every id has a score of its own, by which it is known again."""
    n_rows = 6_001
    ids = spark.range(n_rows, numPartitions=3).select(
        F.lit("model").alias("model"),
        F.explode(F.array([F.lit(name) for name in ("all", "tenth", "positive")])).alias("slice"),
        F.col("id").cast("string").alias("row_id"),
        (F.col("id") % 3 == 0).alias("label"),
        F.col("id").cast("double").alias("score"),
        F.lit(1).alias("bin_0"),
    )
    ranked = ids.where((F.col("slice") == "all") | (F.col("slice") == "tenth") & (F.col("row_id") % 10 == 0)).union(
        ids.where((F.col("slice") == "positive") & F.col("label"))
    )
    settings = Pairs(positives=300, negatives=500, seed=3)
    drawn: dict[tuple[Any, ...], tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for row in sample_examples(ranked, 1, settings).collect():
        drawn[row.model, row.slice, row.label][row.honest].append(str(int(row.score)))
    expected = draw_by_sorting(ranked, settings)
    assert len(expected) == 5
    assert {side: tuple(map(sorted, parts)) for side, parts in drawn.items()} == {
        side: tuple(map(sorted, parts)) for side, parts in expected.items()
    }
    assert [len(drawn["model", name, True][0]) for name in ("all", "tenth", "positive")] == [300, 100, 300]
    assert len(drawn["model", "tenth", False][1]) == 200


@pytest.mark.parametrize("kind", ["INT", "BIGINT", "DECIMAL(20,0)"])
def test_ids_of_any_type_draw_the_same_rows(spark: SparkSession, kind: str) -> None:
    columns = ("'model' AS model", "'all' AS slice", "id % 3 = 0 AS label", "double(id) AS score", "1 AS bin_0")
    ranked = spark.range(900, numPartitions=2).selectExpr("id AS row_id", *columns)
    settings = Pairs(positives=30, negatives=50, seed=3)
    texts, others = (
        sorted(sample_examples(ranked.withColumn("row_id", F.col("row_id").cast(one)), 1, settings).collect())
        for one in ("string", kind)
    )
    assert len(texts) == 2 * 30 + 2 * 50
    assert others == texts


def cross_join(ranked: DataFrame, nodes: list[Row], honest: dict[bool, list[str]]) -> Row:
    """For each node: pairs and mean label of all pairs of the rows that its predicates select."""
    of_group = ranked.where((F.col("model") == nodes[0].model) & (F.col("slice") == nodes[0].slice))
    sides = []
    for name, label in (("negative", False), ("positive", True)):
        selected = [F.expr(node[f"{name}_predicate"]).alias(f"{name}_{node.node_id}") for node in nodes]
        rows = of_group.where((F.col("label") == label) & F.col("row_id").isin(honest[label]))
        sides.append(rows.select(F.col("score").alias(name), *selected))
    negatives, positives = sides
    order = F.when(F.col("positive") > F.col("negative"), 1.0).when(F.col("positive") < F.col("negative"), 0.0)
    pairs = negatives.crossJoin(positives).withColumn("pair", order.otherwise(0.5))
    measured = []
    for node in nodes:
        inside = F.col(f"negative_{node.node_id}") & F.col(f"positive_{node.node_id}")
        measured += [F.count_if(inside).alias(f"n_{node.node_id}"), F.avg(F.when(inside, F.col("pair")))]
    [counted] = pairs.agg(*measured).collect()
    return counted


def grow_pairs(ranked: DataFrame, settings: Pairs = SETTINGS) -> list[Row]:
    rows = pair_segments(ranked, FEATURES, settings, 0.9).to_pylist()
    return [Row(**row) for row in sorted(rows, key=lambda row: (row["model"], row["slice"], row["node_id"]))]


def test_nodes_are_those_of_the_cross_join(spark: SparkSession) -> None:
    """And no bit depends on the partitions."""
    rows = make_rows()
    ranked = spark.createDataFrame(rows, SCHEMA)
    segments = grow_pairs(ranked.repartition(5, "score"))
    assert segments == grow_pairs(ranked.coalesce(1))
    drawn = draw_by_sorting(ranked, SETTINGS)
    for model, name in (("coarse", "all"), ("fine", "few")):
        nodes = [row for row in segments if (row.model, row.slice) == (model, name)]
        assert len(nodes) > 3
        honest = {label: drawn[model, name, label][1] for label in (False, True)}
        joined = iter(cross_join(ranked, nodes, honest))
        for node in nodes:
            n_pairs, mean = next(joined), next(joined)
            assert node.n_negatives_honest * node.n_positives_honest == n_pairs
            assert node.mean_honest == pytest.approx(mean, rel=0, abs=1e-12)
        assert nodes[0].n_pairs_train == len(honest[False]) * len(honest[True])
    root, *others = (row for row in segments if (row.model, row.slice) == ("fine", "all"))
    assert (root.negative_rule, root.positive_predicate, root.parent_id) == ("all rows", "TRUE", None)
    assert any(JOB in row.negative_rule + row.positive_rule for row in others)
    assert any(row.found for row in others)
    for leaf in (row for row in segments if row.is_leaf and row.node_id > 1):
        assert leaf.found == (leaf.p_adjusted < 0.05 <= leaf.p_train_honest)
        assert leaf.confirmed == (leaf.found and leaf.p_chance_adjusted < 0.05)


def test_intervals_are_those_of_an_auc(spark: SparkSession) -> None:
    """Of scores in three heights; DeLong's variance by its definition."""
    ranked = spark.createDataFrame(
        [
            (
                "model",
                name,
                str(number),
                number % 2 == 0,
                (number % 7 // 3) + shift * (number % 2 == 0),
                1,
                1,
                None,
                None,
            )
            for name, n_rows, shift in (("all", 600, 0.5), ("few", 44, 5.0))
            for number in range(n_rows)
        ],
        SCHEMA,
    )
    settings = replace(SETTINGS, max_depth=0)
    scores = {(row.slice, row.label, row.row_id): row.score for row in ranked.collect()}
    drawn = draw_by_sorting(ranked, settings)
    roots = {row.slice: row for row in grow_pairs(ranked, settings)}
    assert roots.keys() == {"all", "few"}
    for name, root in roots.items():
        negatives, positives = (
            [scores[name, label, row_id] for row_id in drawn["model", name, label][1]] for label in (False, True)
        )
        m, n = len(negatives), len(positives)
        above = [sum((p > q) + (p == q) / 2 for p in positives) / n for q in negatives]
        below = [sum((p > q) + (p == q) / 2 for q in negatives) / m for p in positives]
        auc = sum(above) / m
        variance = sum((v - auc) ** 2 for v in above) / m / (m - 1) + sum((v - auc) ** 2 for v in below) / n / (n - 1)
        ends = logit_interval(auc, variance, 0.9) if name == "all" else newcombe_interval(auc, m, n, 0.9)
        assert root.mean_honest == pytest.approx(auc, rel=0, abs=1e-12)
        assert (root.mean_honest_low, root.mean_honest_high) == pytest.approx(ends, rel=0, abs=1e-12)


def test_what_cannot_be_paired_is_null(spark: SparkSession) -> None:
    """One label alone, one row on a side, and one row in all."""
    sizes = {"no positives": (80, 0), "one positive": (80, 3), "one row": (1, 0), "one of each": (1, 1)}
    ranked = spark.createDataFrame(
        [
            ("model", name, f"{label} {number}", label, float(number), 1, 1, 1.0, HOSTILE[0])
            for name, both in sizes.items()
            for label, n_rows in zip((False, True), both, strict=True)
            for number in range(n_rows)
        ],
        SCHEMA,
    )
    roots = {row.slice: row for row in grow_pairs(ranked)}
    assert roots.keys() == {"no positives", "one positive"}
    for root in roots.values():
        assert (root.node_id, root.parent_id, root.depth, root.is_leaf, root.found) == (1, None, 0, True, False)
        assert (root.mean_honest_low, root.mean_honest_high) == (None, None)
        assert (root.p_value, root.p_adjusted, root.p_chance, root.p_chance_adjusted) == (None, None, None, None)
        assert (root.p_train_honest, root.false_discovery) == (None, None)
    alone, one = roots["no positives"], roots["one positive"]
    assert (alone.n_pairs_train, alone.n_negatives_honest, alone.n_positives_honest) == (0, 40, 0)
    assert (alone.mean_train, alone.mean_honest) == (None, None)
    assert (one.n_pairs_train, one.n_negatives_honest, one.n_positives_honest) == (40, 40, 1)
    assert 0 <= one.mean_honest <= 1
