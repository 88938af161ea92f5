"""COUNTS: everything that a ranking counts in a corpus, as arrays on the driver. numpy only.

COUNTS does not grow with the corpus: its size is models x slices x identities. Every table of a run follows from it by
arithmetic (``biasspark.metrics``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from biasspark.arrays import BigInts, Flags, Floats, Ints, Strings
from biasspark.columns import CELL_PAIRS, FOUR_CELLS, OVERALL
from biasspark.corpus.encoding import Encoding, RowCounts
from biasspark.errors import ConfigError, corpus_changed
from biasspark.ranking.kernels.placements import Profile
from biasspark.ranking.kernels.range_counts import RangeCounts

MAX_COUNTS = 1 << 27
"""The most counts that the driver holds, of all identities and crossed pairs: 2 GB as Python integers."""
_COUNTS_OF_PAIRS = 48
"""Of one identity: two sizes and three sums of two words for each of the six pairs of cells."""


class Groups(NamedTuple):
    """The names of the (model, slice, identity) groups that are measured, ordered by model, slice and identity.

    ``(overall)`` stands for the whole slice. `crossed` is True for the pairs of two identities.
    """

    model: Strings
    slice: Strings
    identity: Strings
    crossed: Flags

    @property
    def is_overall(self) -> Flags:
        """True for the groups of a whole slice."""
        return np.equal(self.identity, OVERALL)


@dataclass(frozen=True)
class Counts:
    """Everything that a ranking counts in a corpus. The groups are along the last axis of the arrays."""

    groups: Groups
    numbers: Ints
    """The numbers of the identities of each (model, slice)."""
    cells: Ints
    """Rows of each cell, in the order of `columns.FOUR_CELLS`, shape (4, groups). For ``(overall)``, all rows are in
    the background."""
    sums: BigInts
    """For each pair of cells, in the order of `columns.CELL_PAIRS`: 2U, and the sums of the squared doubled placements
    of the low cell's rows and of the high cell's, as Python integers, shape (6, 3, groups). ``(overall)`` has only the
    pair of background cells."""
    row_counts: RowCounts
    profiles: Mapping[str, Profile]
    """The score profile of each model that has scores."""
    at_or_above: Mapping[str, Ints] = field(default_factory=dict)
    """By model, the rows of each cell: all rows, then those with a score at or above each edge, shape (4, groups of the
    model, edges + 1). Empty without edges."""
    labels: Ints | None = None
    """Labeled rows of each identity, scored or not, crossed pairs left out: negatives and positives by length bin,
    shape (identities, length bins + 1, 2); bin 0 is for lengths outside all bins. ``(overall)``, the first, counts
    every row. None if labels are not counted."""
    max_range_rows: Mapping[str, int] = field(default_factory=dict)
    """By model, the rows of its largest score range."""
    pair_rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """Rows of every crossed pair of identities, listed or not."""


def list_groups(encoding: Encoding, numbers: Ints) -> Groups:
    """Return the groups of every model and slice with the identities of the given numbers."""
    names = np.asarray(encoding.names, object)[numbers]
    models, slices = np.asarray(encoding.models, object), np.asarray(encoding.slices, object)
    return Groups(
        model=np.repeat(models, len(slices) * len(numbers)),
        slice=np.tile(np.repeat(slices, len(numbers)), len(models)),
        identity=np.tile(names, len(models) * len(slices)),
        crossed=np.tile(numbers >= encoding.first_pair, len(models) * len(slices)),
    )


def make_counts(
    encoding: Encoding,
    row_counts: Sequence[int] | Ints,
    counted: Iterable[tuple[tuple[int, int, int], RangeCounts]],
    edges: Sequence[Floats],
    labels: Ints | None,
) -> Counts:
    """Return COUNTS from the counts of an engine.

    `row_counts` are in the order of `Encoding.count_keys`. `counted` yields the numbers of the model, the slice and the
    first identity of a chunk, and its counts over the whole score line; none where there are no rows. `edges` are those
    of each model at which rows were counted. Raises `ConfigError` if the driver would not hold them.
    """
    row_counts = np.asarray(row_counts, np.int64)
    numbers = np.asarray(encoding.list_identities(row_counts))
    shape = len(encoding.models), len(encoding.slices), len(numbers)
    check_size(*shape, max(map(len, edges), default=0))
    cells = np.zeros((len(FOUR_CELLS), *shape), np.int64)
    sums = np.zeros((len(CELL_PAIRS), 3, *shape), object)
    at_or_above = [np.zeros((len(FOUR_CELLS), *shape[1:], len(model_edges) + 1), np.int64) for model_edges in edges]
    profiles, max_range_rows = {}, {}
    for (model, slice_number, first), counts in counted:
        n_rows = counts.n_rows
        chosen = (numbers >= first) & (numbers < first + n_rows.shape[1])
        inside = numbers[chosen] - first
        cells[:, model, slice_number, chosen] = n_rows[:, inside]
        sums[:, :, model, slice_number, chosen] = np.stack(counts.pairs[2:], axis=1)[:, :, inside]
        if at_or_above:
            from_above = counts.bins[:, inside, ::-1].cumsum(axis=-1)
            at_or_above[model][:, slice_number, chosen] = from_above[:, :, ::-1]
        if slice_number == first == 0:
            profiles[encoding.models[model]] = counts.profile
            max_range_rows[encoding.models[model]] = counts.max_range_rows
    model_counts = (counts.reshape(len(FOUR_CELLS), -1, counts.shape[-1]) for counts in at_or_above)
    return Counts(
        groups=list_groups(encoding, numbers),
        numbers=numbers,
        cells=cells.reshape(len(FOUR_CELLS), -1),
        sums=sums.reshape(len(CELL_PAIRS), 3, -1),
        row_counts=encoding.read_row_counts(row_counts.tolist()),
        profiles=profiles,
        at_or_above=dict(zip(encoding.models, model_counts, strict=False)),
        labels=labels,
        max_range_rows=max_range_rows,
        pair_rows=row_counts[encoding.first_pair_index :],
    )


def refuse_other_corpus(counts: Counts, cells: Ints, chosen: Flags) -> None:
    """Raise `InputError` if the sizes of the cells of chosen groups are not those that were ranked: the corpus changed.

    `cells` are like `Counts.cells`; the values of groups that are not chosen are ignored.
    """
    for group in np.flatnonzero(chosen & (cells != counts.cells).any(axis=0))[:1]:
        model, slice_name, identity, _ = (column[group] for column in counts.groups)
        raise corpus_changed(f"the rows of '{identity}' in slice '{slice_name}' of {model} are not those ranked")


def check_size(n_models: int, n_slices: int, n_identities: int, n_edges: int) -> None:
    """Raise `ConfigError` if there would be more than `MAX_COUNTS` counts: those of pairs with few rows are among them.

    They are dropped only on the driver, which knows the rows of a pair when all are counted.
    """
    n_counts = n_models * n_slices * n_identities * (_COUNTS_OF_PAIRS + len(FOUR_CELLS) * (n_edges + 1))
    if n_counts > MAX_COUNTS:
        raise ConfigError(
            f"{n_models:,} models x {n_slices:,} slices x {n_identities:,} identities and crossed pairs give "
            f"{n_counts:,} counts. The driver holds {MAX_COUNTS:,} at most. Leave out crossed pairs, set fewer "
            "thresholds or bins, or measure fewer models or slices at a time."
        )
