"""The tree over pairs grown on all pairs written out, and its tests by their definitions, row by row.

Of the product it takes the samples and the settings, and nothing that computes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from scipy.stats import norm

from biasspark.attribution.pairs import Sample, Samples
from biasspark.config.attribution_settings import Pairs
from biasspark.features import Condition, Feature
from tests.oracle.trees import list_left_sides


def write_out_pairs(sample: Sample) -> Any:
    """Labels of all pairs, [positives, negatives]."""
    negatives, positives = (np.array([float(score) for score in side.scores]) for side in sample)
    return (np.sign(positives[:, np.newaxis] - negatives[np.newaxis, :]) + 1) / 2


def labels_of(labels: np.ndarray, masks: tuple[np.ndarray, np.ndarray]) -> Any:
    return labels[np.ix_(masks[1], masks[0])]


def squared_error(labels: np.ndarray) -> float:
    return float(np.square(labels - labels.mean()).sum()) if labels.size else 0.0


class PairTree:
    """Grows the tree on the cross join."""

    def __init__(self, samples: Samples, features: tuple[Feature, ...], settings: Pairs) -> None:
        self.samples, self.features, self.settings = samples, features, settings
        self.labels = [write_out_pairs(sample) for sample in samples]
        self.min_leaf = settings.min_leaf or self.labels[0].size / 10

    def grow(self) -> dict[int, list[tuple[np.ndarray, np.ndarray]]]:
        """By node, the masks of its rows in training and honest sample."""
        whole = [tuple(np.ones(len(side.scores), bool) for side in sample) for sample in self.samples]
        return dict(self._descend(1, whole, 0))

    def _descend(self, node: int, masks: list[Any], depth: int) -> Iterator[tuple[int, Any]]:
        yield node, masks
        candidates = list(self._candidates(masks)) if depth < self.settings.max_depth else []
        if candidates:
            _, children = max(candidates, key=lambda candidate: candidate[0])
            for number, child in enumerate(children):
                yield from self._descend(2 * node + number, child, depth + 1)

    def _candidates(self, masks: list[Any]) -> Iterator[tuple[float, list[Any]]]:
        before = squared_error(labels_of(self.labels[0], masks[0]))
        for side in (0, 1):
            for place, feature in enumerate(self.features):
                for left in self._cuts(masks, side, place, feature):
                    children = [self._keep(masks, side, place, left, inside) for inside in (True, False)]
                    if not all(self._is_enough(child) for child in children):
                        continue
                    after = sum(squared_error(labels_of(self.labels[0], child[0])) for child in children)
                    if before - after > 1e-9:
                        yield before - after, children

    def _cuts(self, masks: list[Any], side: int, place: int, feature: Feature) -> Iterator[frozenset[int]]:
        bins, mask = self.samples.train[side].bins[place], masks[0][side]
        by_bin: dict[int, np.ndarray] = {}
        for value in set(bins[mask].tolist()):
            of_bin = [masks[0][0], masks[0][1]]
            of_bin[side] = mask & (bins == value)
            by_bin[value] = labels_of(self.labels[0], (of_bin[0], of_bin[1]))
        pairs_by_bin = {value: labels.size for value, labels in by_bin.items()}
        means = {value: labels.mean() for value, labels in by_bin.items()}
        return list_left_sides(means, pairs_by_bin, frozenset(feature.bins), feature.numeric)

    def _keep(self, masks: list[Any], side: int, place: int, left: frozenset[int], inside: bool) -> list[Any]:
        kept = []
        for sample, (negatives, positives) in zip(self.samples, masks, strict=True):
            chosen = np.isin(sample[side].bins[place], list(left)) == inside
            kept.append((negatives & chosen, positives) if side == 0 else (negatives, positives & chosen))
        return kept

    def _is_enough(self, masks: list[Any]) -> bool:
        rows = [int(mask.sum()) for mask in chain(*masks)]
        return labels_of(self.labels[0], masks[0]).size >= self.min_leaf and min(rows) >= self.settings.min_side


def paired_p_value(labels: np.ndarray, masks: tuple[np.ndarray, np.ndarray]) -> float:
    """The influences of the docstring, row by row."""
    leaf = labels_of(labels, masks)
    variance = 0.0
    for axis, mask in ((1, masks[1]), (0, masks[0])):
        of_leaf, of_all = iter(leaf.mean(axis=axis)), labels.mean(axis=axis)
        k, m = mask.sum(), len(mask)
        for row in range(m):
            influence = -(of_all[row] - labels.mean()) / math.sqrt(m * (m - 1))
            if mask[row]:
                influence += (next(of_leaf) - leaf.mean()) / math.sqrt(k * (k - 1))
            variance += influence**2
    return float(2 * norm.sf(abs(leaf.mean() - labels.mean()) / math.sqrt(variance)))


def chance_p_value(labels: np.ndarray, masks: tuple[np.ndarray, np.ndarray]) -> float:
    """The moments of the docstring from the parts of all pairs, and Wilson and Hilferty's cube root."""
    a, b = labels.mean(axis=1) - labels.mean(), labels.mean(axis=0) - labels.mean()
    c = labels - labels.mean() - a[:, np.newaxis] - b[np.newaxis, :]
    of_a, of_b = (
        ((m - k) / (k * m * (m - 1)), (m - k) * (m - 2 * k) / (k**2 * m * (m - 1) * (m - 2)))
        for m, k in ((len(mask), int(mask.sum())) for mask in (masks[1], masks[0]))
    )
    variance = of_a[0] * (a**2).sum() + of_b[0] * (b**2).sum() + of_a[0] * of_b[0] * (c**2).sum()
    third = of_a[1] * (a**3).sum() + of_b[1] * (b**3).sum() + 6 * of_a[0] * of_b[0] * (np.outer(a, b) * c).sum()
    skewness = third / variance**1.5
    z = (labels_of(labels, masks).mean() - labels.mean()) / math.sqrt(variance)
    return float(2 * norm.sf(abs(6 / skewness * (np.cbrt(1 + skewness * z / 2) - 1) + skewness / 6)))


def select_rows(conditions: tuple[Condition, Condition], sample: Sample) -> tuple[np.ndarray, np.ndarray]:
    negatives, positives = (
        np.logical_and.reduce(
            [np.isin(side.bins[place], list(bins)) for place, bins in condition.items()]
            or [np.ones(len(side.scores), bool)]
        ).astype(bool)
        for condition, side in zip(conditions, sample, strict=True)
    )
    return negatives, positives
