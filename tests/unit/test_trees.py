"""Trees, of samples and over row blocks, against a grower that loops over rows, scikit-learn and SciPy."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.tree import DecisionTreeRegressor

from biasspark.arrays import Ints
from biasspark.attribution import trees
from biasspark.attribution.block_sums import Target, sum_blocks
from biasspark.attribution.trees import Tree, grow_trees, list_tree_values, measure_bins
from biasspark.config.attribution_settings import TreeSettings
from biasspark.features import Feature
from biasspark.ranking.kernels.row_block import Cells
from biasspark.ranking.row_blocks import Blocks, run_searches
from tests.fixtures.ranked_rows import Ranked, blocks_of, draw_examples, find_by_cell
from tests.oracle.attribution import Example, round_to_units, target_values
from tests.oracle.grown_trees import Sample, grow_samples, judge
from tests.oracle.trees import GrowingRow, grow_by_loops, square_sum

FEATURES = (
    Feature("age", "age", numeric=True, values=(18.0, 30.0, 45.5, 60.0), nullable=True),
    Feature("work", "work", numeric=False, values=tuple("abcdefg"), nullable=True),
    Feature("same", "same", numeric=True, values=(1.0,), nullable=False),
)
SETTINGS = TreeSettings(max_depth=3, min_leaf=15)


def grow_blocks(
    blocks: Blocks, targets: Sequence[Target], settings: TreeSettings, square_sums: Sequence[float] | None = None
) -> list[Tree]:
    values = list_tree_values(targets, blocks.n_rows)
    search = grow_trees(blocks.features, values, settings, square_sums or [0.0] * len(targets))
    return find_by_cell(blocks, values, search)


def grow_rows(rows: Sequence[Example], target: Target, settings: TreeSettings) -> dict[int, set[Example]]:
    """Return the rows of each node, grown by loops."""
    members = [row for row in rows if row.in_slice(target.slice)]
    # Sums of up to 511 values within 2^6 have 62 bits.
    values = [round_to_units(value, 62 - 9 - 6) for value in target_values(members, target.name, target.link)]
    members = members if values else []
    growing = [GrowingRow(row.bins, row.honest, value) for row, value in zip(members, values, strict=True)]
    nodes = grow_by_loops(growing, FEATURES, settings)
    return {node_id: {members[index] for index in inside} for node_id, inside in nodes.items()}


def rows_of(tree: Tree, rows: Sequence[Example], slice_number: int) -> dict[int, set[Example]]:
    members = [row for row in rows if row.in_slice(slice_number)]
    return {node.node_id: {row for row in members if row.meets(node.condition)} for node in tree}


def test_trees_over_blocks_are_those_of_loops() -> None:
    """The last two targets have no rows: a slice without positives, and a model without rows."""
    first, second = draw_examples(1, 400, FEATURES), draw_examples(2, 300, FEATURES)
    compared = draw_examples(3, 350, FEATURES, baseline=True)
    models = [Ranked(first, [0.3, 0.5]), Ranked(second), Ranked(compared, [0.6])]
    blocks = blocks_of(models, FEATURES, n_tasks=3)
    targets = [
        *(Target(0, 0, "auc"), Target(0, 1, "auc"), Target(0, 0, "gini"), Target(1, 0, "cross_entropy", "logit")),
        *(Target(2, 0, "auc"), Target(2, 1, "auc"), Target(0, 2, "auc"), Target(3, 0, "auc")),
    ]
    grown = grow_blocks(blocks, targets, SETTINGS)
    for tree, target in zip(grown[:-2], targets[:-2], strict=True):
        rows = models[target.model].rows
        nodes = rows_of(tree, rows, target.slice)
        assert nodes == grow_rows(rows, target, SETTINGS), target
        assert len(nodes) > 3
    assert [len(tree) for tree in grown[-2:]] == [1, 1]


def valued_rows(values: np.ndarray, bins: np.ndarray, honest: np.ndarray) -> list[Example]:
    """Return rows with these Gini impurities, from 0 to 1."""
    return [
        Example(1 - value if number % 3 == 0 else value, number % 3 == 0, is_honest, tuple(of_row))
        for number, (value, of_row, is_honest) in enumerate(
            zip(values.tolist(), bins.tolist(), honest.tolist(), strict=True)
        )
    ]


def interval_features(*sizes: int) -> tuple[Feature, ...]:
    return tuple(
        Feature(f"x{number}", f"x{number}", True, tuple(map(float, range(1, size))), nullable=False)
        for number, size in enumerate(sizes)
    )


def test_the_first_split_explains_as_much_as_scikit_learns() -> None:
    rng = np.random.default_rng(4)
    bins = rng.integers(1, [9, 30, 4], (600, 3))
    values, honest = (rng.integers(0, 50, 600) + 9 * (bins[:, 1] > 17)) / 64, np.arange(600) >= 300
    blocks = blocks_of([Ranked(valued_rows(values, bins, honest), [0.25, 0.5])], interval_features(9, 30, 4))
    (tree,) = grow_blocks(blocks, [Target(0, 0, "gini")], TreeSettings(max_depth=1, min_leaf=30))
    theirs = DecisionTreeRegressor(max_depth=1, min_samples_leaf=30).fit(bins[:300], values[:300])
    split = tree[0].split
    assert split is not None
    left = np.isin(bins[:300, split.feature], list(split.left))
    square_sums = [float(side.var() * len(side)) for side in (values[:300][left], values[:300][~left])]
    their_sums = [theirs.tree_.impurity[child] * theirs.tree_.n_node_samples[child] for child in (1, 2)]
    assert sum(square_sums) == pytest.approx(sum(their_sums), rel=1e-12)
    assert sorted(theirs.tree_.n_node_samples[1:]) == sorted([left.sum(), (~left).sum()])


def test_a_split_explains_its_share_of_the_variance() -> None:
    """Try `min_gain` just below and just above what the first split explains."""
    rows, target = draw_examples(1, 300, FEATURES), Target(0, 0, "auc")
    blocks = blocks_of([Ranked(rows)], FEATURES)
    (tree,) = grow_blocks(blocks, [target], SETTINGS)
    split = tree[0].split
    assert split is not None
    values = target_values(rows, "auc")
    growing = [GrowingRow(row.bins, False, Fraction(x)) for row, x in zip(rows, values, strict=True) if not row.honest]
    sides = [[row for row in growing if row.bins[split.feature] in bins] for bins in (split.left, split.right)]
    total = square_sum(growing)
    share = float((total - square_sum(sides[0]) - square_sum(sides[1])) / total)
    for min_gain, n_nodes in ((share * (1 - 1e-9), 3), (share * (1 + 1e-9), 1)):
        settings = TreeSettings(max_depth=1, min_leaf=15, min_gain=min_gain)
        (tree,) = grow_blocks(blocks, [target], settings, [float(total)])
        assert len(tree) == n_nodes


def test_each_level_is_announced_before_it_runs() -> None:
    rows = draw_examples(4, 300, FEATURES)
    blocks = blocks_of([Ranked(rows)], FEATURES)
    steps: list[int] = []
    values = list_tree_values([Target(0, 0, "auc")], len(rows))
    search = grow_trees(FEATURES, values, TreeSettings(max_depth=3, min_leaf=5), [0.0])
    [[tree]] = run_searches(sum_blocks(blocks, values), [search], steps.append)
    assert steps == [1, 2, 3] == [*range(1, 1 + max(node.depth for node in tree))]


def make_feature(numeric: bool, n_values: int, nullable: bool = True) -> Feature:
    values: Any = tuple(map(float, range(n_values))) if numeric else tuple(f"v{number}" for number in range(n_values))
    return Feature(f"x{n_values}", f"x{n_values}", numeric, values, nullable)


def rows_of_nodes(tree: Tree, sample: Sample) -> dict[int, list[int]]:
    return {node.node_id: np.flatnonzero(sample.inside(node.condition)).tolist() for node in tree}


def loop(sample: Sample, features: list[Feature], asked: TreeSettings) -> dict[int, list[int]]:
    rows = [
        GrowingRow(tuple(bins), bool(honest), Fraction(int(value)))
        for bins, honest, value in zip(sample.bins.tolist(), sample.honest, sample.values, strict=True)
    ]
    return grow_by_loops(rows, features, asked)


# ---- samples, against loops


@given(
    seed=st.integers(0, 2**32),
    kinds=st.lists(st.tuples(st.booleans(), st.integers(1, 5), st.booleans()), min_size=1, max_size=3),
    few_values=st.booleans(),
    min_leaf=st.integers(1, 6),
    min_gain=st.sampled_from([0.0, 0.0625]),
)
def test_trees_of_samples_are_those_of_loops(
    seed: int, kinds: list[tuple[bool, int, bool]], few_values: bool, min_leaf: int, min_gain: float
) -> None:
    """Include ties, NULLs, features with one value, and bins that have honest rows only."""
    rng = np.random.default_rng(seed)
    features = [make_feature(*kind) for kind in kinds]
    bins = np.stack([rng.integers(1 - feature.nullable, feature.n_bins, 70) for feature in features], axis=1)
    values = rng.integers(0, 3 if few_values else 1000, 70) + 500 * (bins[:, 0] > 2)
    sample = Sample(bins, values, rng.random(70) < 0.5)
    asked = TreeSettings(max_depth=3, min_leaf=min_leaf, min_gain=min_gain)
    (tree,) = grow_samples([sample], features, asked)
    assert rows_of_nodes(tree, sample) == loop(sample, features, asked)


@pytest.fixture(scope="module")
def two_samples() -> list[Sample]:
    rng = np.random.default_rng(1)
    bins = rng.integers(0, 5, (2, 400, 3))
    values = rng.integers(0, 1000, (2, 400)) + 300 * (bins[:, :, 1] == 3) + 200 * (bins[:, :, 0] > 2)
    return [Sample(bins[number], values[number], rng.random(400) < 0.5) for number in range(2)]


SAMPLE_FEATURES = [make_feature(True, 4), make_feature(False, 4), make_feature(True, 4)]


def test_nodes_partition_their_rows(two_samples: list[Sample]) -> None:
    grown = grow_samples(two_samples, SAMPLE_FEATURES, TreeSettings(max_depth=4, min_leaf=10))
    for tree, sample in zip(grown, two_samples, strict=True):
        rows = rows_of_nodes(tree, sample)
        assert len(rows) > 7
        assert list(rows) == sorted(rows)
        for node in tree:
            assert node.parent_id == (node.node_id // 2 or None)
            assert node.depth == node.node_id.bit_length() - 1
            children = rows.get(2 * node.node_id, []) + rows.get(2 * node.node_id + 1, [])
            assert sorted(children) == ([] if node.is_leaf else rows[node.node_id])
            n_honest = int(sample.honest[rows[node.node_id]].sum())
            assert min(n_honest, len(rows[node.node_id]) - n_honest) >= 10


def test_trees_do_not_depend_on_one_another(two_samples: list[Sample]) -> None:
    asked = TreeSettings(max_depth=3, min_leaf=10)
    together = grow_samples(two_samples, SAMPLE_FEATURES, asked)
    alone = [grow_samples([sample], SAMPLE_FEATURES, asked)[0] for sample in two_samples]
    assert together == alone


def test_each_level_measures_the_smaller_side_of_each_split(
    two_samples: list[Sample], monkeypatch: pytest.MonkeyPatch
) -> None:
    levels: list[Sequence[int]] = []

    def measure(cells: Cells, sums: Ints, leaf: Ints, asked: Sequence[int], features: Sequence[Feature]) -> list[Ints]:
        levels.append(asked)
        return measure_bins(cells, sums, leaf, asked, features)

    monkeypatch.setattr(trees, "measure_bins", measure)
    sample = two_samples[0]
    (tree,) = grow_samples([sample], SAMPLE_FEATURES, TreeSettings(max_depth=3, min_leaf=10))
    assert len(levels) == 3
    assert levels[0] == [1]
    rows = rows_of_nodes(tree, sample)
    for node_ids in levels[1:]:
        assert len({node_id // 2 for node_id in node_ids}) == len(node_ids)
        for node_id in node_ids:
            assert len(rows[node_id]) <= len(rows[node_id ^ 1])


@pytest.mark.parametrize(
    "asked", [TreeSettings(max_depth=0, min_leaf=1), TreeSettings(min_leaf=120), TreeSettings(min_leaf=1, min_gain=1.0)]
)
def test_a_root_alone(two_samples: list[Sample], asked: TreeSettings) -> None:
    (tree,) = grow_samples(two_samples[:1], SAMPLE_FEATURES, asked)
    assert [(node.node_id, node.parent_id, node.is_leaf) for node in tree] == [(1, None, True)]
    (judged,) = judge(tree, two_samples[0], SAMPLE_FEATURES)
    assert (judged.rule, judged.predicate, judged.found) == ("all rows", "TRUE", False)
    assert judged.p_value is judged.p_adjusted is judged.loss_share is None


def test_no_feature_and_no_row() -> None:
    nothing = Sample(np.empty((0, 3), np.int64), np.empty(0, np.int64), np.empty(0, bool))
    for features in ([], SAMPLE_FEATURES):
        (tree,) = grow_samples([nothing], features, TreeSettings(min_leaf=1))
        assert [node.node_id for node in tree] == [1]
        assert judge(tree, nothing, features) == []


# ---- the tests of nodes


def test_the_tests_of_nodes_are_those_of_scipy(two_samples: list[Sample]) -> None:
    for sample in two_samples:
        (tree,) = grow_samples([sample], SAMPLE_FEATURES, TreeSettings(max_depth=3, min_leaf=10))
        judged = judge(tree, sample, SAMPLE_FEATURES)
        leaves = [node for node in judged if node.is_leaf]
        assert any(leaf.found for leaf in leaves)
        adjusted, chances = (
            stats.false_discovery_control([getattr(leaf, name) for leaf in leaves]) for name in ("p_value", "p_chance")
        )
        assert [leaf.p_adjusted for leaf in leaves] == pytest.approx(adjusted.tolist(), rel=1e-9)
        assert [leaf.p_chance_adjusted for leaf in leaves] == pytest.approx(chances.tolist(), rel=1e-9)
        for node, row in zip(tree, judged, strict=True):
            inside = sample.inside(node.condition)
            train, honest = (sample.values[inside & (sample.honest == kind)] for kind in (False, True))
            p_train_honest = stats.ttest_ind(train, honest, equal_var=False).pvalue
            assert (row.n_train, row.n_honest) == (len(train), len(honest))
            assert (row.mean_train, row.mean_honest) == pytest.approx((train.mean(), honest.mean()), rel=1e-12)
            assert row.p_train_honest == pytest.approx(p_train_honest, rel=1e-9)
            assert row.false_discovery == (p_train_honest < 0.05)
            if node.parent_id is not None:
                p_value = stats.ttest_ind(honest, sample.values[~inside & sample.honest], equal_var=False).pvalue
                assert row.p_value == pytest.approx(p_value, rel=1e-9)
            if row.p_adjusted is None or row.p_chance_adjusted is None:
                assert not node.is_leaf
                assert row.p_adjusted is row.p_chance_adjusted is row.found is row.confirmed is None
            else:
                assert row.found == (row.p_adjusted < 0.05 and not row.false_discovery)
                assert row.confirmed == (row.found and row.p_chance_adjusted < 0.05)


def draw_null(rng: np.random.Generator, n: int) -> Sample:
    """Draw normalized attributions that do not depend on the features, in units of 2^-40."""
    positive = rng.random(n) < 0.4
    scores = rng.normal(positive * 1.0)
    placed = [np.searchsorted(np.sort(scores[positive == other]), scores) for other in (False, True)]
    right = np.where(positive, placed[0] / (~positive).sum(), 1 - placed[1] / positive.sum())
    bins = np.stack([rng.integers(1, 13, n), rng.integers(0, 9, n), rng.integers(0, 5, n), rng.integers(1, 11, n)], 1)
    return Sample(bins, np.rint(right / 2 * 2**40).astype(np.int64), rng.random(n) < 0.5)


NULL_FEATURES = [
    make_feature(True, 12, nullable=False),
    make_feature(True, 8),
    make_feature(False, 4),
    make_feature(False, 10, nullable=False),
]


def test_a_segment_that_differs_is_found() -> None:
    rng = np.random.default_rng(2)
    sample = draw_null(rng, 4000)
    differs = np.isin(sample.bins[:, 3], [2, 7])
    sample = sample._replace(values=sample.values - differs * 2**37)
    (tree,) = grow_samples([sample], NULL_FEATURES, TreeSettings(max_depth=1))
    root, worse, better = judge(tree, sample, NULL_FEATURES, 2.0**-40)
    assert (root.found, worse.found, better.found) == (None, True, True)
    assert worse.rule == "(x10 is v1 or v6)"
    assert worse.predicate == "x10 IN ('v1', 'v6')"
    assert worse.n_train + worse.n_honest == differs.sum()
    assert worse.mean_honest is not None
    assert better.mean_honest is not None
    assert worse.mean_honest < better.mean_honest - 0.1
    assert worse.p_value == better.p_value == worse.p_adjusted
