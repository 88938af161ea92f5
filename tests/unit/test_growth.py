"""Trees grown from histograms, against a grower that loops over rows; what is found where there is nothing."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from biasspark.arrays import Ints
from biasspark.attribution import trees
from biasspark.attribution.trees import Tree, measure_bins
from biasspark.config.attribution_settings import TreeSettings
from biasspark.features import Feature
from biasspark.ranking.kernels.row_block import Cells
from tests.oracle.grown_trees import Sample, grow_samples, judge
from tests.oracle.trees import GrowingRow, grow_by_loops


def make_feature(numeric: bool, n_values: int, nullable: bool = True) -> Feature:
    values: Any = tuple(map(float, range(n_values))) if numeric else tuple(f"v{place}" for place in range(n_values))
    return Feature(f"x{n_values}", f"x{n_values}", numeric, values, nullable)


def rows_of_nodes(tree: Tree, sample: Sample) -> dict[int, list[int]]:
    return {node.node_id: np.flatnonzero(sample.inside(node.condition)).tolist() for node in tree}


def loop(sample: Sample, features: list[Feature], asked: TreeSettings) -> dict[int, list[int]]:
    rows = [
        GrowingRow(tuple(bins), bool(honest), Fraction(int(value)))
        for bins, honest, value in zip(sample.bins.tolist(), sample.honest, sample.values, strict=True)
    ]
    return grow_by_loops(rows, features, asked)


# ---- against loops


@given(
    seed=st.integers(0, 2**32),
    kinds=st.lists(st.tuples(st.booleans(), st.integers(1, 5), st.booleans()), min_size=1, max_size=3),
    few_values=st.booleans(),
    min_leaf=st.integers(1, 6),
    min_gain=st.sampled_from([0.0, 0.0625]),
)
def test_trees_are_those_of_loops(
    seed: int, kinds: list[tuple[bool, int, bool]], few_values: bool, min_leaf: int, min_gain: float
) -> None:
    """Ties, NULLs, features of one value, bins in which only honest rows are."""
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
    return [Sample(bins[place], values[place], rng.random(400) < 0.5) for place in range(2)]


FEATURES = [make_feature(True, 4), make_feature(False, 4), make_feature(True, 4)]


def test_nodes_partition_their_rows(two_samples: list[Sample]) -> None:
    grown = grow_samples(two_samples, FEATURES, TreeSettings(max_depth=4, min_leaf=10))
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
    together = grow_samples(two_samples, FEATURES, asked)
    alone = [grow_samples([sample], FEATURES, asked)[0] for sample in two_samples]
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
    (tree,) = grow_samples([sample], FEATURES, TreeSettings(max_depth=3, min_leaf=10))
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
    (tree,) = grow_samples(two_samples[:1], FEATURES, asked)
    assert [(node.node_id, node.parent_id, node.is_leaf) for node in tree] == [(1, None, True)]
    (judged,) = judge(tree, two_samples[0], FEATURES)
    assert (judged.rule, judged.predicate, judged.found) == ("all rows", "TRUE", False)
    assert judged.p_value is judged.p_adjusted is judged.loss_share is None


def test_no_feature_and_no_row() -> None:
    nothing = Sample(np.empty((0, 3), np.int64), np.empty(0, np.int64), np.empty(0, bool))
    for features in ([], FEATURES):
        (tree,) = grow_samples([nothing], features, TreeSettings(min_leaf=1))
        assert [node.node_id for node in tree] == [1]
        assert judge(tree, nothing, features) == []


# ---- what is found


def test_what_nodes_show_is_that_of_scipy(two_samples: list[Sample]) -> None:
    for sample in two_samples:
        (tree,) = grow_samples([sample], FEATURES, TreeSettings(max_depth=3, min_leaf=10))
        judged = judge(tree, sample, FEATURES)
        leaves = [node for node in judged if node.is_leaf]
        assert any(leaf.found for leaf in leaves)
        adjusted, chances = (
            stats.false_discovery_control([getattr(leaf, name) for leaf in leaves]) for name in ("p_value", "p_chance")
        )
        assert [leaf.p_adjusted for leaf in leaves] == pytest.approx(adjusted.tolist(), rel=1e-9)
        assert [leaf.p_chance_adjusted for leaf in leaves] == pytest.approx(chances.tolist(), rel=1e-9)
        for node, said in zip(tree, judged, strict=True):
            inside = sample.inside(node.condition)
            train, honest = (sample.values[inside & (sample.honest == kind)] for kind in (False, True))
            p_train_honest = stats.ttest_ind(train, honest, equal_var=False).pvalue
            assert (said.n_train, said.n_honest) == (len(train), len(honest))
            assert (said.mean_train, said.mean_honest) == pytest.approx((train.mean(), honest.mean()), rel=1e-12)
            assert said.p_train_honest == pytest.approx(p_train_honest, rel=1e-9)
            assert said.false_discovery == (p_train_honest < 0.05)
            if node.parent_id is not None:
                p_value = stats.ttest_ind(honest, sample.values[~inside & sample.honest], equal_var=False).pvalue
                assert said.p_value == pytest.approx(p_value, rel=1e-9)
            if said.p_adjusted is None or said.p_chance_adjusted is None:
                assert not node.is_leaf
                assert said.p_adjusted is said.p_chance_adjusted is said.found is said.confirmed is None
            else:
                assert said.found == (said.p_adjusted < 0.05 and not said.false_discovery)
                assert said.confirmed == (said.found and said.p_chance_adjusted < 0.05)


def draw_null(rng: np.random.Generator, n: int) -> Sample:
    """Normalized attributions of rows whose features say nothing of them, in units of 2^-40."""
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
