"""Random trials on the rows of identities: the sampled pinned AUC, and the class-skew experiment.

EXAMPLES --cut--> blocks and rank offsets --one shuffle--> every trial by range --small shuffle--> the whole score line

Offsets give the ranks at which a range begins, so every range draws its part of each trial independently: see
`kernels.pinned_trials`. Besides what `range_job` lists, a worker that samples the pinned AUC holds `BATCH_ROWS` drawn
rows and 24 bytes for each trial of some identities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from biasspark.arrays import Floats, Ints
from biasspark.columns import FOUR_CELLS
from biasspark.config import PinnedAuc, PinnedSkew
from biasspark.corpus.encoding import Encoding
from biasspark.errors import Fault, InputError
from biasspark.ranking.counts import Counts, refuse_other_corpus
from biasspark.ranking.kernels.pinned_trials import (
    IdentityScores,
    KeptRows,
    RangeScores,
    choose_draw,
    mean_and_sd,
    measure_trials,
    pool_ranges,
    sum_kept,
)
from biasspark.ranking.kernels.reference_sets import RankOffsets, ReferenceSets
from biasspark.ranking.kernels.subsets import Subset, stable_number
from biasspark.ranking.range_job import combine_counts, count_ranges, cut_examples, list_chunks
from biasspark.ranking.task_rows import Key, Kind, Parts, read_blocks, sort_with_offsets

TRIALS_PASS = "sample pinned AUC (shuffles one sorted block per range)"
_TRIALS_A_CHUNK = 1 << 13
"""Trials in one binary value, of 24 bytes each, over several identities: the values of all ranges fit one worker."""

_MAX_TRIALS = 1 << 23
"""More trials, over all identities, would take 200 MB of counts for a single range."""

_Chunk: TypeAlias = tuple[int, tuple[NDArray[Any], Ints]]
"""A chunk, the counts of its trials in a range, and the sizes of the four cells of its identities in all ranges."""

_Draw: TypeAlias = Callable[[str, str, RangeScores, Ints, Ints], Iterable[_Chunk]]
"""Maps the names of model and slice, the rows of the identities at every score of a range, and the sizes of their four
cells in lower ranges and in all, shape (4, identities), to chunks."""


def sample_pinned_aucs(
    examples: DataFrame, encoding: Encoding, boundaries: Sequence[Floats], counts: Counts, pinned: PinnedAuc
) -> Floats:
    """Return mean and standard deviation of the pinned AUC over trials, shape (2, groups) (Mitigating; Pinned).

    A trial pools two sets of k rows, drawn without replacement, and takes the AUC of the pool, ties half: k rows of the
    subgroup Dg, and k rows of D, all rows of the slice on which membership is known, Dg included; or, depending on
    `pinned`, k rows of the background B outside Dg. k is the size of the smaller set, which is taken whole. Trials
    without both labels are left out; without any the mean is NaN, with one the deviation (n - 1) is.

    `counts` are the COUNTS of the corpus. Raises `InputError` if it has changed since it was ranked, or if the trials
    of all identities would not fit a worker. Runs one Spark action. The draws of an identity depend only on the seed
    and on the names of model, slice and identity. Cost: one more scan and shuffle of the corpus, then a lookup for each
    drawn row: trials times the rows of all subgroups.
    """
    numbers = counts.numbers[counts.numbers > 0].tolist()  # (overall) has no subgroup
    if len(numbers) * pinned.trials > _MAX_TRIALS:
        pairs, fix = (", crossed pairs among them", ", or raise min_rows of pairs") if encoding.pairs else ("", "")
        rule = f"At most {_MAX_TRIALS // len(numbers):,} are allowed for {len(numbers):,} identities{pairs}."
        raise InputError(Fault(("pinned_auc", "trials"), pinned.trials, rule, f"Take fewer{fix}."))
    names = tuple(encoding.names[number] for number in numbers)
    chunks = list_chunks(len(names), max(_TRIALS_A_CHUNK // pinned.trials, 1))

    def draw(model: str, slice_name: str, scores: RangeScores, below: Ints, total: Ints) -> Iterator[_Chunk]:
        for chunk in chunks:
            counted = [
                count_pools(pinned, (model, slice_name, names[n]), scores.identity(n), below[:, n], total[:, n])
                for n in chunk
            ]
            yield chunk.start, (np.stack(counted), total[:, chunk.start : chunk.stop])

    def combine(_: Key, ranges: Iterator[tuple[Ints, Ints]]) -> tuple[Floats, Ints]:
        counted, totals = zip(*ranges, strict=True)
        return np.array([mean_and_sd(aucs) for aucs in pool_ranges(counted)]).T, totals[0]

    ranges = _count_trials(examples, encoding, boundaries, numbers, draw)
    shape = len(encoding.models), len(encoding.slices), len(counts.numbers)
    combined = combine_counts(ranges, combine, len(encoding.models) * len(encoding.slices) * len(chunks))
    sampled, cells = np.full((2, *shape), np.nan), np.zeros((len(FOUR_CELLS), *shape), np.int64)
    for (model, slice_number, first), (sampled_chunk, totals) in combined.items():
        chosen = slice(1 + first, 1 + first + sampled_chunk.shape[1])
        sampled[:, model, slice_number, chosen], cells[:, model, slice_number, chosen] = sampled_chunk, totals
    refuse_other_corpus(counts, cells.reshape(len(FOUR_CELLS), -1), ~counts.groups.is_overall)
    return sampled.reshape(2, -1)


def count_pools(pinned: PinnedAuc, names: tuple[str, str, str], rows: IdentityScores, below: Ints, total: Ints) -> Ints:
    """Count the pools of all trials in a range: see `measure_trials`.

    `names` are those of the model, the slice and the identity; only these and the seed fix the draws. `below` and
    `total` are the rows of the four cells of the identity in lower ranges and in all.
    """
    sides = (sizes.reshape(2, 2).sum(axis=1).tolist() for sizes in (below, total))
    draw = choose_draw(*sides, include_subgroup=pinned.include_subgroup_in_background)
    key = (pinned.seed, *map(stable_number, names), draw.source)
    subsets = [Subset(draw.total, draw.size, (*key, trial)) for trial in range(pinned.trials)]
    return measure_trials(rows, draw, subsets)


def sum_kept_rows(
    examples: DataFrame, encoding: Encoding, boundaries: Sequence[Floats], counts: Counts, skew: PinnedSkew
) -> dict[tuple[str, str], KeptRows]:
    """Drop rows of one cell of an identity at random, and place the remaining ones, in every trial.

    Return the kept rows of each (model, slice) that has rows. Raises `InputError` if the corpus has changed since it
    was ranked.

    Runs one Spark action. Each set of that size is equally likely. The draws depend only on the seed and on
    the names of model, slice, identity and cell. Cost: one more scan and shuffle of the corpus, and a lookup for each
    row kept, over all trials.
    """
    cell = FOUR_CELLS.index(skew.cell)

    def draw(model: str, slice_name: str, scores: RangeScores, below: Ints, total: Ints) -> Iterator[_Chunk]:
        n_below, n_all = below[:, 0].tolist(), total[:, 0].tolist()
        subsets = list_subsets(skew, model, slice_name, n_all[cell])
        kept = sum_kept(scores.identity(0), n_below, n_all, cell, subsets)
        yield 0, (kept, total[:, 0])

    def combine(_: Key, ranges: Iterator[tuple[NDArray[Any], Ints]]) -> tuple[NDArray[Any], Ints]:
        sums, totals = zip(*ranges, strict=True)
        return np.sum(sums, axis=0), totals[0]

    ranges = _count_trials(examples, encoding, boundaries, [encoding.number[skew.identity]], draw)
    combined = combine_counts(ranges, combine, len(encoding.models) * len(encoding.slices))
    cells = np.zeros((len(FOUR_CELLS), len(encoding.models), len(encoding.slices)), np.int64)
    kept: dict[tuple[str, str], KeptRows] = {}
    for (model, slice_number, _), (trials, total) in combined.items():
        cells[:, model, slice_number] = total
        doubled = [(int(subgroup), int(background)) for subgroup, background in trials]
        n_dropped = skew.n_dropped(int(total[cell]))
        kept[encoding.models[model], encoding.slices[slice_number]] = n_dropped, doubled
    group_cells, chosen = np.zeros_like(counts.cells), counts.groups.identity == skew.identity
    group_cells[:, chosen] = cells.reshape(len(FOUR_CELLS), -1)
    refuse_other_corpus(counts, group_cells, chosen)
    return kept


def list_subsets(skew: PinnedSkew, model: str, slice_name: str, n_rows: int) -> Iterator[Subset]:
    """Yield the positions, out of `n_rows` rows of the cell, that each trial keeps; only seed and names fix them."""
    key = (skew.seed, *map(stable_number, (model, slice_name, skew.identity, skew.cell)))
    n_kept = n_rows - skew.n_dropped(n_rows)
    return (Subset(n_rows, n_kept, (*key, trial)) for trial in range(1, skew.trials + 1))


def _count_trials(
    examples: DataFrame, encoding: Encoding, boundaries: Sequence[Floats], numbers: Sequence[int], draw: _Draw
) -> DataFrame:
    """Return the counts of the trials of the given identities in every range. Lazy."""
    sets = ReferenceSets.of(encoding.known_masks, numbers)

    def measure(key: Key, parts: Parts) -> Iterator[_Chunk]:
        # A range may have no rows, and offsets are sent only if any row of the score line is in a reference set.
        if {Kind.CELLS, Kind.OFFSETS} <= parts.keys():
            scores = RangeScores(read_blocks(parts, Kind.CELLS), read_blocks(parts, Kind.MEMBERSHIPS), sets)
            below, total = map(sets.count_cells, RankOffsets.add_up(parts[Kind.OFFSETS]))
            yield from draw(encoding.models[key[0]], encoding.slices[key[1]], scores, below, total)

    parts = cut_examples(examples, encoding, lambda rows: sort_with_offsets(rows, boundaries, sets))
    return count_ranges(parts, boundaries, len(encoding.slices), measure)
