"""COUNTS of small corpora, counted pair by pair: what every table of metrics follows from, without an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from biasspark.columns import FOUR_CELLS
from biasspark.corpus.encoding import RowCounts
from biasspark.ranking.counts import Counts, Groups
from tests.oracle.pairs import Sums
from tests.oracle.suite import PAIRS, cut_cells, ordered_doubled

Key = tuple[str, str, str]
"""Model, slice and identity."""

Corpus = tuple[ArrayLike, ArrayLike, Mapping[str, ArrayLike]]
"""Scores, labels, and for each identity 1 in it, 0 outside of it, NaN where that is not known."""


def count_corpora(
    corpora: Mapping[tuple[str, str], Corpus], edges: Mapping[str, Sequence[float]] | None = None
) -> Counts:
    """Count the corpus of each (model, slice), of one model after another, and its rows at or above edges of scores."""
    sums: dict[Key, list[Sums]] = {}
    reached: dict[str, list[Any]] = {}
    for (model, slice_name), (score, label, identities) in corpora.items():
        for name, inside in {"(overall)": np.zeros(np.shape(score)), **identities}.items():
            cells = cut_cells(score, label, inside)
            sums[model, slice_name, name] = [count_pair(cells[low], cells[high]) for low, high in PAIRS.values()]
            at = [-np.inf, *edges[model]] if edges else []
            reached.setdefault(model, []).append([[np.sum(cells[cell] >= edge) for edge in at] for cell in FOUR_CELLS])
    at_or_above = {model: np.array(of_groups, np.int64).transpose(1, 0, 2) for model, of_groups in reached.items()}
    return counts_of(sums, at_or_above if edges else {})


def count_corpus(score: ArrayLike, label: ArrayLike, identities: Mapping[str, ArrayLike]) -> Counts:
    """Count one corpus, as that of the model ``m`` and all rows."""
    return count_corpora({("m", "all"): (score, label, identities)})


def counts_of(sums: Mapping[Key, Sequence[Sums]], at_or_above: Mapping[str, NDArray[np.int64]] | None = None) -> Counts:
    """Build COUNTS of the sums of each group's six pairs of cells, in the order of `tests.oracle.suite.PAIRS`."""
    model, slice_name, identity = (np.array(names, object) for names in zip(*sums, strict=True))
    sizes = [[pairs[0].n_low, pairs[0].n_high, pairs[3].n_low, pairs[3].n_high] for pairs in sums.values()]
    return Counts(
        groups=Groups(model, slice_name, identity, np.array([" & " in name for name in identity], bool)),
        numbers=np.arange(len(identity)),
        cells=np.array(sizes, np.int64).T,
        sums=np.array([[pair[2:] for pair in pairs] for pairs in sums.values()], object).transpose(1, 2, 0),
        row_counts=RowCounts(0, 0, {}),
        profiles={},
        at_or_above=at_or_above or {},
    )


def count_pair(low: ArrayLike, high: ArrayLike) -> Sums:
    pairs = ordered_doubled(low, high)
    low_squares, high_squares = (int((pairs.sum(axis=axis).astype(object) ** 2).sum()) for axis in (1, 0))
    return Sums(pairs.shape[0], pairs.shape[1], int(pairs.sum()), low_squares, high_squares)
