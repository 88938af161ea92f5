"""Trees grown by the kernels alone, from histograms that numpy makes: what Spark does, in one process."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from biasspark.attribution.block_sums import NodeSums
from biasspark.attribution.segments import MeasuredSet, TreeKey, list_segments
from biasspark.attribution.significance import Moments
from biasspark.attribution.trees import Asked, Node, NodeKey, Tree, grow
from biasspark.config.attribution_settings import TreeSettings
from biasspark.features import Feature

Question = TypeVar("Question")
Answer = TypeVar("Answer")
Result = TypeVar("Result")


def run(search: Generator[Question, Answer, Result], answer: Callable[[Question], Answer]) -> Result:
    """Answer all that a search asks, and return what it finds."""
    try:
        asked = next(search)
        while True:
            asked = search.send(answer(asked))
    except StopIteration as end:
        result: Result = end.value
        return result


class Sample(NamedTuple):
    """Rows of one tree: bins [n, n_features], whole values [n], and which rows only estimate."""

    bins: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]
    honest: npt.NDArray[np.bool_]

    def inside(self, node: Node) -> npt.NDArray[np.bool_]:
        """Say which rows meet a node's condition."""
        inside = np.ones(len(self.values), bool)
        for place, bins in node.condition.items():
            inside &= np.isin(self.bins[:, place], list(bins))
        return inside


def measure_samples(
    samples: Sequence[Sample], features: Sequence[Feature]
) -> Callable[[Asked], Mapping[NodeKey, npt.NDArray[np.int64]]]:
    def histogram(sample: Sample, inside: npt.NDArray[np.bool_], place: int, n_bins: int) -> npt.NDArray[np.int64]:
        training, honest = inside & ~sample.honest, inside & sample.honest
        sums = np.zeros(n_bins, np.int64)
        np.add.at(sums, sample.bins[training, place], sample.values[training])
        counts = (np.bincount(sample.bins[rows, place], minlength=n_bins) for rows in (training, honest))
        return np.stack([next(counts), sums, next(counts)])

    def measure(asked: Asked) -> Mapping[NodeKey, npt.NDArray[np.int64]]:
        nodes = {(number, node.node_id): node for number, tree in enumerate(asked.trees) for node in tree}
        return {
            key: np.concatenate(
                [
                    histogram(samples[key[0]], samples[key[0]].inside(nodes[key]), place, feature.n_bins)
                    for place, feature in enumerate(features)
                ],
                axis=1,
            )
            for key in asked.leaves
        }

    return measure


def grow_samples(samples: Sequence[Sample], features: Sequence[Feature], settings: TreeSettings) -> list[Tree]:
    growing = [sample.values[~sample.honest] for sample in samples]
    square_sums = [float(values.var() * len(values)) if len(values) else 0.0 for values in growing]
    return run(grow(features, settings, square_sums), measure_samples(samples, features))


def judge(tree: Tree, sample: Sample, features: Sequence[Feature], unit: float = 1.0) -> list[SimpleNamespace]:
    """Return what each node shows, of values in these units."""

    def moments(rows: npt.NDArray[np.bool_]) -> Moments:
        values, exact = sample.values[rows].astype(object), Fraction(unit)
        return Moments(len(values), int(values.sum()) * exact, int((values**2).sum()) * exact**2)

    inside = [sample.inside(node) for node in tree]
    sums = [NodeSums(moments(rows & ~sample.honest), moments(rows & sample.honest)) for rows in inside]
    measured = [MeasuredSet(of_node, None) for of_node in sums]
    rows = list_segments(TreeKey("m", "", "all", "auc"), tree, measured, features, 0.95)
    return [SimpleNamespace(**row) for row in rows]
