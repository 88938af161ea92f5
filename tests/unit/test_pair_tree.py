"""The tree over pairs, its AUCs and its tests: against all pairs written out."""

from __future__ import annotations

import math
import tracemalloc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import false_discovery_control, norm

from biasspark.attribution.pairs import Examples, Sample, Samples, Sides, grow_and_measure, sort_examples
from biasspark.config.attribution_settings import Pairs
from biasspark.features import Feature
from tests.harness.grown_trees import feature_of
from tests.oracle.pair_trees import PairTree, chance_p_value, labels_of, paired_p_value, select_rows
from tests.oracle.suite import variance_of_pairs

FEATURES = (feature_of("age", 6, numeric=True, nullable=True), feature_of("job", 5, nullable=True))


def draw_examples(rng: np.random.Generator, n_rows: int, positive: bool, features: tuple[Feature, ...]) -> Examples:
    """Scores of one digit, many of them tied, that depend on the features; bins from 0, which is NULL."""
    bins = np.stack([rng.integers(min(feature.bins), feature.n_bins, n_rows) for feature in features])
    scores = rng.normal(1.2 * positive + 0.3 * bins[0] * (bins[-1] > 2), 1).round(1)
    return sort_examples(scores, bins)


def list_nodes(samples: Samples, features: Sides, settings: Pairs) -> list[SimpleNamespace]:
    return [SimpleNamespace(**node) for node in grow_and_measure(samples, features, settings)]


def draw_samples(seed: int, n_negatives: int, n_positives: int, features: tuple[Feature, ...] = FEATURES) -> Samples:
    rng = np.random.default_rng(seed)

    def draw() -> Sample:
        negatives = draw_examples(rng, n_negatives, False, features)
        return negatives, draw_examples(rng, n_positives, True, features)

    return Samples(draw(), draw())


TREES = {
    "one tenth": (Pairs(min_side=5, max_depth=3), (11, 70, 60)),
    "small leaves": (Pairs(min_side=3, min_leaf=40, max_depth=4), (12, 50, 65)),
    "rows decide": (Pairs(min_side=14, min_leaf=1, max_depth=5), (13, 80, 45)),
    "few to one": (Pairs(min_side=6, min_leaf=20, max_depth=3), (14, 150, 16)),
}


@pytest.mark.parametrize("name", TREES)
def test_tree_is_that_of_the_cross_join_and_its_tests_are_their_definitions(name: str) -> None:
    settings, drawn = TREES[name]
    samples = draw_samples(*drawn)
    oracle = PairTree(samples, FEATURES, settings)
    nodes = oracle.grow()
    segments = list_nodes(samples, (FEATURES, FEATURES), settings)
    assert [segment.node_id for segment in segments] == sorted(nodes)
    assert len(segments) >= 5
    for segment in segments:
        node = segment.node_id
        assert (segment.parent_id, segment.depth) == (node // 2 or None, node.bit_length() - 1)
        assert segment.is_leaf == (2 * node not in nodes)
        for sample, of_sample in zip(samples, nodes[node], strict=True):
            selected = select_rows(segment.conditions, sample)
            assert all((mine == its).all() for mine, its in zip(selected, of_sample, strict=True)), segment
        (of_train, of_honest), (chosen, masks) = oracle.labels, nodes[node]
        train, honest = labels_of(of_train, chosen), labels_of(of_honest, masks)
        assert segment.n_pairs_train == train.size
        assert (segment.n_positives_honest, segment.n_negatives_honest) == honest.shape
        assert segment.mean_train == pytest.approx(train.mean(), rel=0, abs=1e-12)
        assert segment.mean_honest == pytest.approx(honest.mean(), rel=0, abs=1e-12)
        assert segment.variance_honest == pytest.approx(variance_of_pairs(honest), rel=1e-12)
        z = (train.mean() - honest.mean()) / math.sqrt(variance_of_pairs(train) + variance_of_pairs(honest))
        assert segment.p_train_honest == pytest.approx(2 * norm.sf(abs(z)), rel=0, abs=1e-12)
        if node == 1:
            assert segment.p_value is segment.p_chance is None
        else:
            assert segment.p_value == pytest.approx(paired_p_value(of_honest, masks), rel=0, abs=1e-12)
            assert segment.p_chance == pytest.approx(chance_p_value(of_honest, masks), rel=0, abs=1e-9)
    leaves: list[Any] = [segment for segment in segments if segment.is_leaf]
    assert any(leaf.found for leaf in leaves)
    adjusted, chances = (
        false_discovery_control([getattr(leaf, name) for leaf in leaves]) for name in ("p_value", "p_chance")
    )
    assert [leaf.p_adjusted for leaf in leaves] == pytest.approx(adjusted, rel=0, abs=1e-12)
    assert [leaf.p_chance_adjusted for leaf in leaves] == pytest.approx(chances, rel=0, abs=1e-9)
    for leaf in leaves:
        assert leaf.false_discovery == (leaf.p_train_honest < 0.05)
        assert leaf.found == (leaf.p_adjusted < 0.05 and not leaf.false_discovery)
        assert leaf.confirmed == (leaf.found and leaf.p_chance_adjusted < 0.05)
    inner = [node for node in segments if not node.is_leaf]
    assert all(node.p_adjusted is node.p_chance_adjusted is node.found is node.confirmed is None for node in inner)


def test_order_of_rows_changes_no_bit() -> None:
    samples = draw_samples(7, 120, 140)
    rng = np.random.default_rng(8)

    def shuffle(side: Examples) -> Examples:
        order = rng.permutation(len(side.scores))
        return sort_examples(side.scores[order], side.bins[:, order])

    shuffled = Samples(*((shuffle(negatives), shuffle(positives)) for negatives, positives in samples))
    settings = Pairs(min_side=10, min_leaf=300)
    segments = list_nodes(samples, (FEATURES, FEATURES), settings)
    assert len(segments) > 9
    assert list_nodes(shuffled, (FEATURES, FEATURES), settings) == segments


def only_root(samples: Samples) -> SimpleNamespace:
    (root,) = list_nodes(samples, (FEATURES, FEATURES), Pairs())
    assert (root.node_id, root.parent_id, root.depth, root.is_leaf) == (1, None, 0, True)
    assert (root.p_value, root.p_adjusted, root.found) == (None, None, False)
    return root


@pytest.mark.parametrize(("n_negatives", "n_positives"), [(500, 29), (29, 500), (59, 59)])
def test_too_few_rows_of_a_side_are_not_split(n_negatives: int, n_positives: int) -> None:
    root: Any = only_root(draw_samples(10, n_negatives, n_positives))
    assert root.n_pairs_train == n_negatives * n_positives
    assert 0.5 < root.mean_honest < 1
    assert 0 <= root.p_train_honest <= 1


def test_the_honest_sample_needs_as_many_rows_of_a_side() -> None:
    train, honest = draw_samples(15, 400, 400)
    fewer = tuple(sort_examples(side.scores[::14], side.bins[:, ::14]) for side in honest)
    assert len(fewer[0].scores) == 29
    only_root(Samples(train, (fewer[0], fewer[1])))


def test_ties_are_one_half_and_explain_nothing() -> None:
    samples = draw_samples(17, 100, 100)
    tied = (tuple(sort_examples(np.zeros(100), side.bins) for side in sample) for sample in samples)
    root = only_root(Samples(*tied))
    assert (root.mean_train, root.mean_honest, root.variance_honest) == (0.5, 0.5, 0.0)
    assert (root.p_train_honest, root.false_discovery) == (1.0, False)


def test_where_nothing_varies_a_difference_is_certain() -> None:
    samples = draw_samples(18, 100, 100)
    below, above = (
        tuple(sort_examples(np.full(100, at), side.bins) for side, at in zip(samples.train, pair, strict=True))
        for pair in ((1.0, 0.0), (0.0, 1.0))
    )
    root = only_root(Samples((below[0], below[1]), (above[0], above[1])))
    assert (root.mean_train, root.mean_honest, root.p_train_honest, root.false_discovery) == (0, 1, 0, True)


def test_without_features_there_is_a_root() -> None:
    bare = (
        tuple(sort_examples(side.scores, side.bins[:0]) for side in sample) for sample in draw_samples(19, 100, 100)
    )
    (root,) = list_nodes(Samples(*bare), ((), ()), Pairs())
    assert root.conditions == ({}, {})


def test_ten_thousand_times_ten_thousand_pairs_take_little_memory() -> None:
    samples = draw_samples(23, 10_000, 10_000)
    tracemalloc.start()
    try:
        segments = list_nodes(samples, (FEATURES, FEATURES), Pairs(min_leaf=5_000_000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(segments) > 5
    assert sum(segment.n_pairs_train for segment in segments if segment.is_leaf) == 10**8
    assert peak < 10**8 / 10  # a tenth of a byte a pair
