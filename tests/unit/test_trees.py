"""Trees, of samples and over row blocks, against a grower that loops over rows, and SciPy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from biasspark.attribution.block_sums import SummedValue, Target, sum_blocks
from biasspark.attribution.trees import grow_tree
from biasspark.config.attribution_settings import TreeSettings
from biasspark.ranking.row_blocks import run_searches
from tests.fixtures.ranked_rows import N_ROWS, Ranked, blocks_of, draw_examples
from tests.harness.grown_trees import Sample, feature_of, grow_sample, judge
from tests.oracle.attribution import Example, round_to_units, target_values
from tests.oracle.trees import GrowingRow, grow_by_loops

FEATURES = (
    feature_of("age", 4, True, nullable=True),
    feature_of("work", 7, nullable=True),
    feature_of("same", 1, True),
)
SETTINGS = TreeSettings(max_depth=3, min_leaf=15)


def grow_rows(members: Sequence[Example], target: Target) -> dict[int, set[Example]]:
    # Sums of up to 511 values within 2^6 have 62 bits.
    values = [round_to_units(value, 62 - 9 - 6) for value in target_values(members, target.name, target.link)]
    growing = [GrowingRow(row.bins, row.honest, value) for row, value in zip(members, values, strict=True)]
    nodes = grow_by_loops(growing, FEATURES, SETTINGS)
    return {node_id: {members[index] for index in inside} for node_id, inside in nodes.items()}


def test_trees_over_blocks_are_those_of_loops() -> None:
    """The last two targets have no rows: a slice without positives, and a model without rows."""
    first, second = draw_examples(1, 400, FEATURES), draw_examples(2, 300, FEATURES)
    compared = draw_examples(3, 350, FEATURES, baseline=True)
    models = [Ranked(first, [0.3, 0.5]), Ranked(second), Ranked(compared, [0.6])]
    blocks = blocks_of(models, n_tasks=3)
    targets = [
        *(Target(0, 0, "auc"), Target(0, 1, "auc"), Target(0, 0, "gini"), Target(1, 0, "cross_entropy", "logit")),
        *(Target(2, 0, "auc"), Target(2, 1, "auc"), Target(0, 2, "auc"), Target(3, 0, "auc")),
    ]
    values = [SummedValue.of(target, N_ROWS) for target in targets]
    grown = run_searches(sum_blocks(blocks, values, 1), [grow_tree(FEATURES, value, SETTINGS, 0.0) for value in values])
    for tree, target in zip(grown[:-2], targets[:-2], strict=True):
        members = [row for row in models[target.model].rows if row.in_slice(target.slice)]
        nodes = {node.node_id: {row for row in members if row.meets(node.condition)} for node in tree}
        assert nodes == grow_rows(members, target), target
        assert len(nodes) > 3
    assert [len(tree) for tree in grown[-2:]] == [1, 1]


def test_each_level_is_announced_before_it_runs() -> None:
    rows = draw_examples(4, 300, FEATURES)
    blocks = blocks_of([Ranked(rows)])
    steps: list[int] = []
    value = SummedValue.of(Target(0, 0, "auc"), len(rows))
    search = grow_tree(FEATURES, value, TreeSettings(max_depth=3, min_leaf=5), 0.0)
    [tree] = run_searches(sum_blocks(blocks, [value], 1), [search], steps.append)
    assert steps == [1, 2, 3] == [*range(1, 1 + max(node.node_id.bit_length() - 1 for node in tree))]


@given(
    seed=st.integers(0, 2**32),
    kinds=st.lists(st.tuples(st.integers(1, 5), st.booleans(), st.booleans()), min_size=1, max_size=3),
    few_values=st.booleans(),
    min_leaf=st.integers(1, 6),
    min_gain=st.sampled_from([0.0, 0.0625]),
)
def test_trees_of_samples_are_those_of_loops(
    seed: int, kinds: list[tuple[int, bool, bool]], few_values: bool, min_leaf: int, min_gain: float
) -> None:
    """Include ties, NULLs, features with one value, and bins that have honest rows only."""
    rng = np.random.default_rng(seed)
    features = [feature_of("x", *kind) for kind in kinds]
    bins = np.stack([rng.integers(1 - feature.nullable, feature.n_bins, 70) for feature in features], axis=1)
    values = rng.integers(0, 3 if few_values else 1000, 70) + 500 * (bins[:, 0] > 2)
    sample = Sample(bins, values, rng.random(70) < 0.5)
    asked = TreeSettings(max_depth=8, min_leaf=min_leaf, min_gain=min_gain)
    tree = grow_sample(sample, features, asked)
    nodes = grow_by_loops(sample.growing_rows(), features, asked)
    assert {node.node_id: np.flatnonzero(sample.inside(node.condition)).tolist() for node in tree} == nodes
    for node in tree:
        assert (node.split is None) == (2 * node.node_id not in nodes)


@pytest.fixture(scope="module")
def two_samples() -> list[Sample]:
    rng = np.random.default_rng(1)
    bins = rng.integers(0, 5, (2, 400, 3))
    values = rng.integers(0, 1000, (2, 400)) + 300 * (bins[:, :, 1] == 3) + 200 * (bins[:, :, 0] > 2)
    return [Sample(bins[number], values[number], rng.random(400) < 0.5) for number in range(2)]


SAMPLE_FEATURES = [feature_of("x", 4, numeric, nullable=True) for numeric in (True, False, True)]


@pytest.mark.parametrize(
    "asked", [TreeSettings(max_depth=0, min_leaf=1), TreeSettings(min_leaf=120), TreeSettings(min_leaf=1, min_gain=1.0)]
)
def test_a_root_alone(two_samples: list[Sample], asked: TreeSettings) -> None:
    tree = grow_sample(two_samples[0], SAMPLE_FEATURES, asked)
    assert [(node.node_id, node.split) for node in tree] == [(1, None)]
    (judged,) = judge(tree, two_samples[0], SAMPLE_FEATURES)
    assert (judged.rule, judged.predicate, judged.found) == ("all rows", "TRUE", False)
    assert judged.p_value is judged.p_adjusted is judged.loss_share is None


def test_no_row() -> None:
    nothing = Sample(np.empty((0, 3), np.int64), np.empty(0, np.int64), np.empty(0, bool))
    tree = grow_sample(nothing, SAMPLE_FEATURES, TreeSettings(min_leaf=1))
    assert [node.node_id for node in tree] == [1]
    assert judge(tree, nothing, SAMPLE_FEATURES) == []


def test_the_tests_of_nodes_are_those_of_scipy(two_samples: list[Sample]) -> None:
    for sample in two_samples:
        tree = grow_sample(sample, SAMPLE_FEATURES, TreeSettings(max_depth=3, min_leaf=10))
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
            if node.node_id > 1:
                p_value = stats.ttest_ind(honest, sample.values[~inside & sample.honest], equal_var=False).pvalue
                assert row.p_value == pytest.approx(p_value, rel=1e-9)
                everyone = sample.values[sample.honest]
                spread = everyone.std(ddof=1) * math.sqrt(1 / len(honest) - 1 / len(everyone))
                p_chance = 2 * stats.norm.sf(abs(honest.mean() - everyone.mean()) / spread)
                assert row.p_chance == pytest.approx(p_chance, rel=1e-9)
            if row.p_adjusted is None or row.p_chance_adjusted is None:
                assert node.split
                assert row.p_adjusted is row.p_chance_adjusted is row.found is row.confirmed is None
            else:
                assert row.found == (row.p_adjusted < 0.05 and not row.false_discovery)
                assert row.confirmed == (row.found and row.p_chance_adjusted < 0.05)
