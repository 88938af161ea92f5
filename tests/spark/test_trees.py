"""Trees grown by Spark, against a grower that loops over rows; their sums, and the SQL of their nodes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from statistics import fmean
from typing import NamedTuple

import numpy as np
import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession
from scipy import stats
from sklearn.tree import DecisionTreeRegressor

from biasspark.attribution.evidence import NodeSums, judge_nodes
from biasspark.attribution.growth import GrownTree, NodeKey
from biasspark.attribution.leaves import leaf_of
from biasspark.attribution.trees import grow_trees, measure_nodes
from biasspark.config.attribution_settings import TreeSettings
from biasspark.features import Feature
from tests.oracle.grown_trees import Sample, grow_samples
from tests.oracle.trees import Asked, GrowingRow, grow_by_loops, square_sum

AGES = (18.0, 30.0, 45.5, 60.0)
WORK = ("it's", "\\", "a\\nb", "${x} $1", 'say "so"\n', "plain", "' OR 1=1 --")
FEATURES = (
    Feature("age", "age", numeric=True, values=AGES, nullable=True),
    Feature("work", "work", numeric=False, values=WORK, nullable=True),
    Feature("same", "same", numeric=True, values=(1.0,), nullable=False),
)
SCHEMA = (
    "tree INT, age DOUBLE, work STRING, same DOUBLE, honest BOOLEAN, label BOOLEAN, value DOUBLE, loss_doubled BIGINT, "
    "bin_0 INT, bin_1 INT, bin_2 INT"
)
SETTINGS = TreeSettings(max_depth=3, min_leaf=20)
N_ROWS = 400


class Row(NamedTuple):
    tree: int
    age: float | None
    work: str | None
    same: float
    honest: bool
    label: bool
    value: float
    loss_doubled: int

    @property
    def bins(self) -> tuple[int, ...]:
        age = 0 if self.age is None else sum(start <= self.age for start in AGES)
        return age, 0 if self.work is None else WORK.index(self.work) + 1, 1


def make_rows(unit: float) -> list[Row]:
    """Whole values, so many units each, with ties. They depend on work in one tree, on age in the other."""
    rng = random.Random(3)
    rows = []
    for tree in (0, 1):
        for _ in range(N_ROWS):
            age, work = rng.choice([None, *AGES, 75.25]), rng.choice([None, *WORK])
            depends = age is None or age > 50 if tree else work in WORK[:3]
            value = rng.randrange(20) + 8 * depends - 3 * (age == 30.0)
            rows.append(Row(tree, age, work, 1.0, rng.random() < 0.5, rng.random() < 0.3, value * unit, 7 * value + 21))
    return rows


def frame_of(spark: SparkSession, rows: Sequence[Row], partitions: int = 2) -> DataFrame:
    frame = spark.createDataFrame([(*row, *row.bins) for row in rows], SCHEMA)
    return frame.repartition(partitions).persist()


def rows_of(tree: GrownTree, rows: Sequence[Row]) -> dict[int, list[int]]:
    """Give the places of each node's rows by its condition."""
    mine = [place for place, row in enumerate(rows) if row.tree == tree.number]
    return {
        node.node_id: [
            place
            for place in mine
            if all(rows[place].bins[feature] in bins for feature, bins in node.condition.items())
        ]
        for node in tree.nodes
    }


def loop(rows: Sequence[Row], tree: int, asked: TreeSettings) -> dict[int, list[int]]:
    places = [place for place, row in enumerate(rows) if row.tree == tree]
    growing = [GrowingRow(rows[place].bins, rows[place].honest, Fraction(rows[place].value)) for place in places]
    numeric, bins = tuple(feature.numeric for feature in FEATURES), tuple(feature.bins for feature in FEATURES)
    nodes = grow_by_loops(growing, Asked(numeric, bins, asked.max_depth, asked.min_leaf, Fraction(asked.min_gain)))
    return {node_id: [places[place] for place in inside] for node_id, inside in nodes.items()}


class Grown(NamedTuple):
    rows: list[Row]
    frame: DataFrame
    trees: list[GrownTree]
    sums: dict[NodeKey, NodeSums]


@pytest.fixture(scope="module")
def grown(spark_session: SparkSession) -> Grown:
    """Two trees, and a third of which there is no row."""
    rows = make_rows(unit=2.0**-10)
    frame = frame_of(spark_session, rows)
    trees = grow_trees(frame, 3, FEATURES, SETTINGS, len(rows))
    return Grown(rows, frame, trees, measure_nodes(frame, trees))


def test_trees_are_those_of_loops(grown: Grown) -> None:
    for tree in grown.trees:
        nodes = rows_of(tree, grown.rows)
        assert nodes == loop(grown.rows, tree.number, SETTINGS)
        assert (len(nodes) > 5) == (tree.number < 2)


def test_sums_of_every_node(grown: Grown) -> None:
    assert grown.sums.keys() == {(tree.number, node.node_id) for tree in grown.trees for node in tree.nodes}
    for tree in grown.trees:
        for node_id, places in rows_of(tree, grown.rows).items():
            sums, inside = grown.sums[tree.number, node_id], [grown.rows[place] for place in places]
            for moments, honest in ((sums.train, False), (sums.honest, True)):
                values = [Fraction(row.value) for row in inside if row.honest == honest]
                assert (moments.n, Fraction(moments.total)) == (len(values), sum(values))
                assert Fraction(moments.squares) == sum(value**2 for value in values)
            for losses, label in ((sums.honest_negative, False), (sums.honest_positive, True)):
                of_label = [row.loss_doubled for row in inside if row.honest and row.label == label]
                squares = sum(loss**2 for loss in of_label)
                assert (losses.n, losses.total, losses.squares) == (len(of_label), sum(of_label), squares)
                ordered = sum((2 * 5000 - loss) ** 2 for loss in of_label)
                assert losses.ordered_square_sum(5000) == ordered
            assert sums.loss_doubled == sum(row.loss_doubled for row in inside)


def test_predicates_select_exactly_their_rows(grown: Grown) -> None:
    """Also of texts that end texts, start escapes or name variables; and `leaf_of` says the same."""
    frame = grown.frame.withColumn("leaf", leaf_of(grown.trees))
    asked, wanted = [], []
    for tree in grown.trees:
        for node, said in zip(tree.nodes, judge_nodes(tree, grown.sums, FEATURES), strict=True):
            selected = (F.col("tree") == tree.number) & F.expr(said.predicate)
            wrong = F.col("leaf") != node.node_id if node.is_leaf else F.lit(False)
            asked += [F.count_if(selected), F.count_if(selected & wrong), F.count_if(F.expr(said.predicate).isNull())]
            wanted += [said.n_train + said.n_honest, 0, 0]
            assert said.n_train + said.n_honest == len(rows_of(tree, grown.rows)[node.node_id])
    assert list(frame.agg(*(count.alias(f"count_{place}") for place, count in enumerate(asked))).collect()[0]) == wanted


def test_leaves_of_deep_trees(spark: SparkSession) -> None:
    """Of more leaves than a BIGINT has bits; of some of them; and of a tree that is not given."""
    rng = np.random.default_rng(6)
    bins, honest = rng.integers(0, 40, (3, 600, 2)), rng.random((3, 600)) < 0.5
    features = tuple(
        Feature(f"x{place}", f"x{place}", numeric=True, values=tuple(map(float, range(39))), nullable=True)
        for place in range(2)
    )
    samples = [Sample(bins[tree], rng.integers(0, 99, 600), honest[tree]) for tree in range(3)]
    trees = grow_samples(samples, features, TreeSettings(max_depth=9, min_leaf=1))
    leaves = [(tree.number, node.node_id) for tree in trees for node in tree.nodes if node.is_leaf]
    assert len(leaves) > 3 * 62
    some = set(leaves[::3])
    frame = spark.createDataFrame(
        [(tree, place, *bins[tree, place].tolist()) for tree in range(3) for place in range(600)],
        "tree INT, place INT, bin_0 INT, bin_1 INT",
    )
    asked = leaf_of([trees[0], trees[2]]).alias("leaf"), leaf_of(trees, some).alias("some")
    inside = {
        (tree.number, int(place)): node.node_id
        for tree in trees
        for node in tree.nodes
        if node.is_leaf
        for place in np.flatnonzero(samples[tree.number].inside(node))
    }
    for row in frame.select("tree", "place", *asked).collect():
        leaf = inside[row.tree, row.place]
        assert row.leaf == (None if row.tree == 1 else leaf)
        assert row.some == (leaf if (row.tree, leaf) in some else None)


def test_what_nodes_show(grown: Grown) -> None:
    for tree in grown.trees[:2]:
        judged = judge_nodes(tree, grown.sums, FEATURES)
        nodes = {
            node_id: [grown.rows[place] for place in places] for node_id, places in rows_of(tree, grown.rows).items()
        }
        leaves = [node for node in judged if node.is_leaf]
        p_adjusted = stats.false_discovery_control([leaf.p_value for leaf in leaves])
        assert [leaf.p_adjusted for leaf in leaves] == pytest.approx(p_adjusted.tolist(), abs=1e-12)
        assert sum(leaf.loss_share or 0.0 for leaf in leaves) == pytest.approx(1.0, abs=1e-12)
        for node in judged:
            inside = nodes[node.node_id]
            train, honest = ([row.value for row in inside if row.honest == kind] for kind in (False, True))
            others = [row.value for row in nodes[1] if row.honest and row not in inside]
            assert node.mean_train == pytest.approx(fmean(train), abs=1e-12)
            assert node.mean_honest == pytest.approx(fmean(honest), abs=1e-12)
            p_train_honest = stats.ttest_ind(train, honest, equal_var=False).pvalue
            assert node.p_train_honest == pytest.approx(p_train_honest, abs=1e-12)
            assert node.false_discovery == (p_train_honest < 0.05)
            if node.parent_id is not None:
                p_value = stats.ttest_ind(honest, others, equal_var=False).pvalue
                assert node.p_value == pytest.approx(p_value, abs=1e-12)
            if node.is_leaf:
                assert node.p_adjusted is not None
                assert node.p_chance_adjusted is not None
                assert node.found == (node.p_adjusted < 0.05 and not node.false_discovery)
                assert node.confirmed == (node.found and node.p_chance_adjusted < 0.05)
            else:
                assert node.p_adjusted is node.p_chance_adjusted is node.found is node.confirmed is None
        assert any(leaf.found for leaf in leaves)


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 7])
def test_the_same_bits_however_rows_are_cut_and_ordered(spark: SparkSession, partitions: int) -> None:
    """Of values that no binary fraction holds, whose float sums do depend on order."""
    rows = [row._replace(value=row.value / 3 + 1e-9 * place) for place, row in enumerate(make_rows(unit=0.1))]
    asked = TreeSettings(max_depth=2, min_leaf=20, min_gain=0.001)

    def measure(frame: DataFrame) -> tuple[list[GrownTree], dict[NodeKey, NodeSums]]:
        trees = grow_trees(frame, 2, FEATURES, asked, len(rows))
        return trees, measure_nodes(frame, trees)

    shuffled = random.Random(partitions).sample(rows, len(rows))
    assert measure(frame_of(spark, shuffled, partitions)) == measure(frame_of(spark, rows, 2))


def test_a_split_explains_its_share_of_the_variance(grown: Grown) -> None:
    """Just below and just above what the first split explains."""
    (first, *_), rows = grown.trees, [row for row in grown.rows if row.tree == 0 and not row.honest]
    split = first.nodes[0].split
    assert split is not None
    sides = [
        [GrowingRow(row.bins, False, Fraction(row.value)) for row in rows if row.bins[split.feature] in bins]
        for bins in (split.left, split.right)
    ]
    total = square_sum(sides[0] + sides[1])
    share = float((total - square_sum(sides[0]) - square_sum(sides[1])) / total)
    for min_gain, n_nodes in ((share * (1 - 1e-9), 3), (share * (1 + 1e-9), 1)):
        asked = TreeSettings(max_depth=1, min_leaf=20, min_gain=min_gain)
        (tree,) = grow_trees(grown.frame, 1, FEATURES, asked, N_ROWS)
        assert len(tree.nodes) == n_nodes


def test_the_first_split_explains_as_much_as_scikit_learns(spark: SparkSession) -> None:
    rng = np.random.default_rng(4)
    bins = rng.integers(1, [9, 30, 4], (600, 3))
    values, honest = rng.integers(0, 50, 600) + 9 * (bins[:, 1] > 17), np.arange(600) >= 300
    features = tuple(
        Feature(f"x{place}", f"x{place}", numeric=True, values=tuple(map(float, range(1, size))), nullable=False)
        for place, size in enumerate((9, 30, 4))
    )
    frame = spark.createDataFrame(
        [
            (0, bool(is_honest), value / 64, *row)
            for is_honest, value, row in zip(honest, values.tolist(), bins.tolist(), strict=True)
        ],
        "tree INT, honest BOOLEAN, value DOUBLE, bin_0 INT, bin_1 INT, bin_2 INT",
    )
    (tree,) = grow_trees(frame, 1, features, TreeSettings(max_depth=1, min_leaf=30), 600)
    theirs = DecisionTreeRegressor(max_depth=1, min_samples_leaf=30).fit(bins[:300], values[:300] / 64)
    split = tree.nodes[0].split
    assert split is not None
    left = np.isin(bins[:300, split.feature], list(split.left))
    square_sums = [float(side.var() * len(side)) for side in (values[:300][left] / 64, values[:300][~left] / 64)]
    their_sums = [theirs.tree_.impurity[child] * theirs.tree_.n_node_samples[child] for child in (1, 2)]
    assert sum(square_sums) == pytest.approx(sum(their_sums), rel=1e-12)
    assert sorted(theirs.tree_.n_node_samples[1:]) == sorted([left.sum(), (~left).sum()])


def test_moments_are_exact_within_the_range(spark: SparkSession) -> None:
    """A value is taken as the nearest multiple of 2^-57; of equal values the variance is exactly 0."""
    values = [64.0, -64.0, 34.538776394910684, -1 / 3, 1e-15, 2.0**-57, -(2.0**-58), 0.0, 63.99999999999999]
    rows = [Row(0, None, None, 1.0, False, True, value, 2**31) for value in values]
    rows += [Row(0, None, None, 1.0, True, False, 1 / 3, 0)] * 7
    frame = frame_of(spark, rows)
    sums = measure_nodes(frame, grow_trees(frame, 1, (), SETTINGS, len(rows)))[0, 1]
    exact = [Fraction(round(Fraction(value) * 2**57), 2**57) for value in values]
    assert Fraction(sums.train.total) == sum(exact)
    assert Fraction(sums.train.squares) == sum(value**2 for value in exact)
    assert (sums.honest.mean, sums.honest.variance) == (1 / 3, 0.0)
    assert sums.loss_doubled == 9 * 2**31
