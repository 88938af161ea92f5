"""The windows engine: exact ranks in pure Spark SQL, one window per cell over the whole score line.

It defines the ranks in SQL, it serves clusters that allow no Python workers, and the sorted blocks are tested against
it. Every row is repeated for every identity whose known population it is in, so the cost is rows times identities; that
of sorted blocks is memberships. A window runs within (model, slice, identity, score range), and lower ranges add an
offset, so no window ever holds a whole corpus.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from biasspark.arrays import Floats
from biasspark.columns import CELL_PAIRS, FOUR_CELLS, IDENTITY, MODEL, POSITIVE, SLICE
from biasspark.corpus.decode import count_labels, count_rows, each_present, field, scored_by, states
from biasspark.corpus.encoding import Encoding
from biasspark.ranking.counts import Counts, make_counts
from biasspark.ranking.kernels.pair_sums import PairSums
from biasspark.ranking.kernels.placements import Profile
from biasspark.ranking.kernels.range_counts import RangeCounts

WINDOWS_PASS = "rank every score, 4 scans or more (shuffles rows x identities: the slow engine without Python)"
_GROUP = (MODEL, SLICE, IDENTITY)
_RANGE = "score_range"
_SUMS = ("two_u", "low_squares", "high_squares")


def count_windows(
    examples: DataFrame, encoding: Encoding, boundaries: Sequence[Floats], edges: Sequence[Floats]
) -> Counts:
    """Rank by windows, and return the same COUNTS as sorted blocks: see `engine.rank`.

    Runs up to three Spark actions, each with a scan. One counts rows and one counts labels. One ranks every row,
    repeated for each identity whose known population it is in, with three shuffles and a sort of one row per identity
    and distinct score.
    """
    (row_counts,) = count_rows(examples, encoding).collect()
    labels = None if encoding.n_length_bins is None else count_labels(examples, encoding)
    groups: dict[tuple[int, int, int], dict[int, Mapping[str, Any]]] = {}
    for row in _sum_up(rank_windows(examples, encoding, boundaries), edges).collect():
        groups.setdefault((row[MODEL], row[SLICE], 0), {})[row[IDENTITY]] = row.asDict()
    counted = (
        (key, _range_counts(rows, len(encoding.names), len(edges[key[0]]) if edges else 0))
        for key, rows in sorted(groups.items())
    )
    return make_counts(encoding, row_counts["counts"], counted, edges, labels)


def rank_windows(examples: DataFrame, encoding: Encoding, boundaries: Sequence[Floats]) -> DataFrame:
    """Return how many rows of each cell are at, below and above each (model, slice, identity, score).

    Models, slices and identities are by number. Lazy.
    """
    memberships = _memberships(examples, encoding, boundaries)
    cell_counts = [F.sum(_in_cell(cell)).alias(cell) for cell in FOUR_CELLS]
    counts = memberships.groupBy(*_GROUP, _RANGE, "score").agg(*cell_counts)
    below_in_range = Window.partitionBy(*_GROUP, _RANGE).orderBy("score").rowsBetween(Window.unboundedPreceding, -1)
    # Spark estimates from the size of the files, not from the rows after the explode, and would broadcast the counts.
    ranked = counts.join(_offsets(counts).hint("shuffle_hash"), on=[*_GROUP, _RANGE], how="inner")
    for cell in FOUR_CELLS:
        inside = F.coalesce(F.sum(cell).over(below_in_range), F.lit(0))
        ranked = ranked.withColumn(f"{cell}_below", F.col(f"{cell}_lower") + inside)
        ranked = ranked.withColumn(f"{cell}_above", F.col(f"{cell}_total") - F.col(f"{cell}_below") - F.col(cell))
    kept = [name for cell in FOUR_CELLS for name in (cell, f"{cell}_below", f"{cell}_above")]
    return ranked.select(*_GROUP, "score", *kept)


def _sum_up(ranked: DataFrame, edges: Sequence[Floats]) -> DataFrame:
    """Return one row per group: cell sizes, sums of pairs, the profile, and the cell sizes by bin as a list.

    Bins are counted first to keep the list of a group short.
    """
    bins = [F.when(F.col(MODEL) == model, _range_of(F.col("score"), scores)) for model, scores in enumerate(edges)]
    tie = F.col("background_negative") + F.col("background_positive")
    sums = [column for pair in CELL_PAIRS for column in _pair_sums(*pair)]
    by_bin = ranked.groupBy(*_GROUP, F.coalesce(*bins, F.lit(0)).alias("bin")).agg(
        *(F.sum(cell).alias(cell) for cell in FOUR_CELLS),
        *(F.sum(value).alias(name) for name, value in sums),
        F.count(F.lit(1)).alias("n_distinct"),
        F.max(tie).alias("largest_tie"),
        F.min("score").alias("lowest"),
        F.max("score").alias("highest"),
    )
    return by_bin.groupBy(*_GROUP).agg(
        *(F.sum(name).alias(name) for name in (*FOUR_CELLS, *(name for name, _ in sums), "n_distinct")),
        F.max("largest_tie").alias("largest_tie"),
        F.min("lowest").alias("lowest"),
        F.max("highest").alias("highest"),
        F.collect_list(F.struct("bin", *FOUR_CELLS)).alias("bins"),
    )


def _range_counts(rows: Mapping[int, Mapping[str, Any]], n_identities: int, n_edges: int) -> RangeCounts:
    """Return the counts of one (model, slice) from its rows, by identity."""
    n_rows = np.zeros((len(FOUR_CELLS), n_identities), np.int64)
    sums = np.zeros((len(_SUMS), len(CELL_PAIRS), n_identities), object)
    bins = np.zeros((len(FOUR_CELLS), n_identities, n_edges + 1), np.int64)
    for number, row in rows.items():
        n_rows[:, number] = [row[cell] for cell in FOUR_CELLS]
        sums[:, :, number] = [[int(row[f"{low} {high} {name}"]) for low, high in CELL_PAIRS] for name in _SUMS]
        for bin_, *sizes in row["bins"]:
            bins[:, number, bin_] = sizes
    profile = Profile(int(n_rows[:, 0].sum()), *(rows[0][name] for name in Profile._fields[1:]))
    return RangeCounts(PairSums.of_cells(n_rows, sums), 0, bins, profile, 0)


def _memberships(examples: DataFrame, encoding: Encoding, boundaries: Sequence[Floats]) -> DataFrame:
    """Return one row for each model and slice in which a row counts, and identity for which its membership is known."""
    models = [
        scored_by(n, encoding, _range_of(F.col(name), boundaries[n]).alias(_RANGE))
        for n, name in enumerate(encoding.score_columns)
    ]
    inside = [F.when(field("slice", n, encoding) == 1, F.lit(n)) for n in range(1, len(encoding.slices))]
    rows = each_present(examples.where(field("row_reason", 0, encoding) == 0), "scored", models)
    scored = each_present(rows, SLICE, [F.lit(0), *inside]).select("*", "scored.*")
    rows = scored.select(
        MODEL,
        SLICE,
        _RANGE,
        "score",
        (field("label", 0, encoding) == 1).alias("label"),
        F.posexplode(F.array(*states(encoding))).alias(IDENTITY, "member"),
    )
    return rows.where(F.col("member").isNotNull())


def _offsets(counts: DataFrame) -> DataFrame:
    """Return the rows of each cell in lower ranges and in all: a window over ranges, not over rows."""
    totals = counts.groupBy(*_GROUP, _RANGE).agg(*(F.sum(cell).alias(cell) for cell in FOUR_CELLS))
    lower = Window.partitionBy(*_GROUP).orderBy(_RANGE).rowsBetween(Window.unboundedPreceding, -1)
    every = Window.partitionBy(*_GROUP).rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    columns = []
    for cell in FOUR_CELLS:
        columns.append(F.coalesce(F.sum(cell).over(lower), F.lit(0)).alias(f"{cell}_lower"))
        columns.append(F.sum(cell).over(every).alias(f"{cell}_total"))
    return totals.select(*_GROUP, _RANGE, *columns)


def _pair_sums(low: str, high: str) -> list[tuple[str, Column]]:
    """Return the terms whose sums are 2U of a pair and the squared doubled placements of its low and high rows."""
    high_placement = _wide(2 * F.col(f"{low}_below") + F.col(low))
    low_placement = _wide(2 * F.col(f"{high}_above") + F.col(high))
    sums = (
        _wide(F.col(high)) * high_placement,
        _wide(F.col(low)) * (low_placement * low_placement),
        _wide(F.col(high)) * (high_placement * high_placement),
    )
    return [(f"{low} {high} {name}", value) for name, value in zip(_SUMS, sums, strict=True)]


def _in_cell(cell: str) -> Column:
    label = F.col("label") if cell.endswith(POSITIVE) else ~F.col("label")
    member = F.col("member") if cell.startswith("subgroup") else ~F.col("member")
    return F.when(label & member, F.lit(1)).otherwise(F.lit(0))


def _range_of(score: Column, boundaries: Floats) -> Column:
    """Return how many boundaries are at or below a score."""
    if not len(boundaries):
        return F.lit(0)
    return F.size(F.filter(F.array(*(F.lit(float(edge)) for edge in boundaries)), lambda edge: edge <= score))


def _wide(value: Column) -> Column:
    return value.cast("decimal(19,0)")
