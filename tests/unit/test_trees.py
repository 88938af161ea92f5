"""Trees over row blocks, against a grower that loops over rows, and against scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from biasspark.attribution.block_sums import Target, sum_blocks
from biasspark.attribution.trees import Tree, grow_trees, list_tree_values
from biasspark.config.attribution_settings import TreeSettings
from biasspark.features import Feature
from biasspark.ranking.row_blocks import Blocks, run_searches
from tests.fixtures.ranked_rows import Ranked, blocks_of, draw_examples, find_by_cell
from tests.oracle.attribution import Example, round_to_units, target_values
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
    """The rows of each node, grown by loops."""
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


def test_trees_are_those_of_loops() -> None:
    """Of attributions, losses and a comparison; one in a slice without positives, and one of a model without rows."""
    first, second = draw_examples(1, 400, FEATURES), draw_examples(2, 300, FEATURES)
    compared = draw_examples(3, 350, FEATURES, baseline=True)
    models = [Ranked(first, [0.3, 0.5]), Ranked(second), Ranked(compared, [0.6])]
    blocks = blocks_of(models, FEATURES, n_tasks=3)
    targets = [
        *(Target(0, 0, "auc"), Target(0, 1, "auc"), Target(0, 0, "gini"), Target(1, 0, "cross_entropy", "logit")),
        *(Target(2, 0, "auc"), Target(2, 1, "auc"), Target(0, 2, "auc"), Target(3, 0, "auc")),
    ]
    trees = grow_blocks(blocks, targets, SETTINGS)
    for tree, target in zip(trees[:-2], targets[:-2], strict=True):
        rows = models[target.model].rows
        nodes = rows_of(tree, rows, target.slice)
        assert nodes == grow_rows(rows, target, SETTINGS), target
        assert len(nodes) > 3
    assert [len(tree) for tree in trees[-2:]] == [1, 1]


def valued_rows(values: np.ndarray, bins: np.ndarray, honest: np.ndarray) -> list[Example]:
    """Rows of these Gini impurities, in 0 to 1."""
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
    """Just below and just above what the first split explains."""
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


def test_the_number_of_each_job_is_told_before_it_runs() -> None:
    rows = draw_examples(4, 300, FEATURES)
    blocks = blocks_of([Ranked(rows)], FEATURES)
    steps: list[int] = []
    values = list_tree_values([Target(0, 0, "auc")], len(rows))
    search = grow_trees(FEATURES, values, TreeSettings(max_depth=3, min_leaf=5), [0.0])
    [[tree]] = run_searches(sum_blocks(blocks, values), [search], steps.append)
    assert steps == [1, 2, 3] == [*range(1, 1 + max(node.depth for node in tree))]
