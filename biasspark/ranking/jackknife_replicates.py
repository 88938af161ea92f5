"""The replicates of the delete-a-group jackknife: EXAMPLES with groups -> U of every model, and U without each group.

EXAMPLES --cut--> blocks by group --one shuffle--> sums by group of ranges --small shuffle--> ``jackknife_statistics``

The algebra is in `kernels.group_replicates`. For the memory of a worker see docs/how-it-works.md; while it measures, it
also holds the rows of one identity's cells by (group, score) at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from biasspark.arrays import Floats
from biasspark.columns import CELL_PAIRS, GROUP, NEGATIVE, POSITIVE
from biasspark.corpus.encoding import Encoding
from biasspark.errors import ABSENT, Fault, InputError
from biasspark.ranking.kernels.group_replicates import GroupedSets, GroupSums, merge_groups, no_sums, sum_groups
from biasspark.ranking.kernels.pair_sums import BACKGROUND_PAIR, CELLS_OF_PAIRS
from biasspark.ranking.kernels.reference_sets import ReferenceSets
from biasspark.ranking.range_job import combine_counts, count_ranges, cut_examples, list_chunks
from biasspark.ranking.task_rows import Key, Kind, Part, Parts, TaskRows, identity_keys, read_blocks, sort_rows
from biasspark.tables.schemas import JACKKNIFE_STATISTICS, to_table

REPLICATES_PASS = "leave out groups of ids (shuffles 9 bytes per score and 24 per row of an identity)"
_KEY_BITS = 63
"""Of a row's group, label and known sources of identities."""
_IDENTITIES_A_CHUNK = 32
"""The sums of a range take some 36 kB for each identity with 100 groups."""


def count_replicates(
    examples: DataFrame, encoding: Encoding, boundaries: Sequence[Floats], identities: Sequence[int], n_groups: int
) -> pa.Table:
    """Return the table ``jackknife_statistics``, less the run's columns: U of every model, and U without each group.

    The examples have an INT column ``jackknife_group``, below `n_groups`. `identities` are numbers in the encoding,
    ascending; 0 is ``(overall)``. Runs one Spark action. Cost: one scan and one shuffle, of 9 bytes per score and 24
    per membership; then arithmetic on each distinct (score, group) for every identity, and a shuffle of some 100
    bytes for each range, identity and group. Without identities, as if a rule names one
    that is not there, the table is empty.
    """
    if not identities:
        return JACKKNIFE_STATISTICS.arrow_schema.empty_table()
    if len(encoding.nullable_sources) + 1 + (n_groups - 1).bit_length() > _KEY_BITS:
        n_sources = len(encoding.nullable_sources)
        rule = f"{n_sources} sources of identities may be unknown: with {n_groups} groups their keys exceed 63 bits."
        raise InputError(Fault(("identities",), ABSENT, rule, "Compare fewer of them at a time."))
    sets = ReferenceSets.of(encoding.known_masks, identities)
    chunks = list_chunks(len(identities), _IDENTITIES_A_CHUNK)

    def cut(rows: TaskRows) -> Iterator[Part]:
        groups = rows.column(GROUP).to_numpy().astype(np.int64)
        keyed = [
            keys._replace(keys=keys.keys * n_groups + (groups if keys.rows is None else groups[keys.rows]))
            for keys in identity_keys(rows, sets)
        ]
        return sort_rows(rows, keyed, boundaries, sets.covers(rows.known))

    def measure(_: Key, parts: Parts) -> Iterator[tuple[int, GroupSums]]:
        cells, memberships = (read_blocks(parts, kind, n_groups) for kind in (Kind.CELLS, Kind.MEMBERSHIPS))
        grouped = GroupedSets(cells, memberships, sets, n_groups)
        return ((chunk.start, sum_groups(grouped, chunk)) for chunk in chunks)

    def combine(_: Key, ranges: Iterator[GroupSums]) -> GroupSums:
        return reduce(merge_groups, ranges)

    counts = count_ranges(cut_examples(examples, encoding, cut, GROUP), boundaries, len(encoding.slices), measure)
    combined = combine_counts(counts, combine, len(encoding.models) * len(encoding.slices) * len(chunks))
    table: list[tuple[Any, ...]] = []
    for model, model_name in enumerate(encoding.models):
        for slice_number, slice_name in enumerate(encoding.slices):
            for chunk in chunks:
                sums = combined.get((model, slice_number, chunk.start)) or no_sums(len(chunk), n_groups)
                for index, number in enumerate(identities[chunk.start : chunk.stop]):
                    group, crossed = (model_name, slice_name, encoding.names[number]), number >= encoding.first_pair
                    pairs = _list_pairs(sums, index, overall=number == 0)
                    table += ((*group, *cells, crossed, *of_pair) for cells, of_pair in pairs)
    columns = zip(JACKKNIFE_STATISTICS.value_columns, map(list, zip(*table, strict=True)), strict=True)
    return to_table(JACKKNIFE_STATISTICS, **dict(columns))


def _list_pairs(sums: GroupSums, index: int, *, overall: bool) -> Iterator[tuple[tuple[str, str], tuple[Any, ...]]]:
    """Yield every pair of cells of an identity, and its sums with all groups and without each.

    ``(overall)`` has only the pair of background cells.
    """
    for pair in [BACKGROUND_PAIR] if overall else range(len(CELL_PAIRS)):
        low, high = (sums.n_rows[index, cell] for cell in CELLS_OF_PAIRS[pair])
        n_low, n_high, two_u = int(low.sum()), int(high.sum()), int(sums.two_u[index, pair])
        left = [(total - of_groups).tolist() for total, of_groups in ((n_low, low), (n_high, high))]
        left.append((two_u - sums.two_u_of_group[index, pair]).tolist())
        yield (NEGATIVE, POSITIVE) if overall else CELL_PAIRS[pair], (n_low, n_high, two_u, *left)
