"""The windows engine: exact ranks in pure Spark SQL, one window per cell over the whole score line.

The definition written down, and the way for clusters that allow no Python workers. Every row is repeated for every
identity in whose base it is, so it costs rows times identities, where the blocks engine costs mentions; the fast engine
is tested against this one. A window runs within (model, slice, identity, score range); what lies in lower ranges is an
offset, so no window ever holds a whole corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from biasspark.arrays import Floats
from biasspark.columns import (
    BACKGROUND_NEGATIVE,
    BACKGROUND_POSITIVE,
    CELL_PAIRS,
    CROSSED,
    FOUR_CELLS,
    IDENTITY,
    MODEL,
    NEGATIVE,
    POSITIVE,
    SLICE,
)
from biasspark.corpus.codebook import Codebook
from biasspark.corpus.states import field, name_of, states
from biasspark.corpus.tallies import count_rows
from biasspark.expressions.exploding import each_present

_GROUP = (MODEL, SLICE, IDENTITY)
_RANGE = "score_range"


def rank_windows(examples: DataFrame, codebook: Codebook, boundaries: list[Floats]) -> DataFrame:
    """Return, for each (model, slice, identity, score), how many rows of each cell have it and lie below and above it.

    Parameters
    ----------
    examples : DataFrame
        EXAMPLES, as the codebook describes it.
    boundaries : list of float64 arrays
        For each model, where its ranges meet; no result depends on them.

    Notes
    -----
    Lazy. Cost: one scan, every row repeated for each identity in whose base it is; two shuffles and a sort, of a row
    per identity and distinct score; small shuffles of a row per identity and range.
    """
    memberships = _memberships(_scored(examples, codebook, boundaries), codebook)
    cell_counts = [F.sum(_in_cell(cell)).alias(cell) for cell in FOUR_CELLS]
    counts = memberships.groupBy(*_GROUP, _RANGE, "score").agg(*cell_counts)
    below_in_range = Window.partitionBy(*_GROUP, _RANGE).orderBy("score").rowsBetween(Window.unboundedPreceding, -1)
    # Spark reckons with the size of the files, whatever is exploded after, and would broadcast the counts.
    ranked = counts.join(_offsets(counts).hint("shuffle_hash"), on=[*_GROUP, _RANGE], how="inner")
    for cell in FOUR_CELLS:
        inside = F.coalesce(F.sum(cell).over(below_in_range), F.lit(0))
        ranked = ranked.withColumn(f"{cell}_below", F.col(f"{cell}_lower") + inside)
        ranked = ranked.withColumn(f"{cell}_above", F.col(f"{cell}_total") - F.col(f"{cell}_below") - F.col(cell))
    kept = [name for cell in FOUR_CELLS for name in (cell, f"{cell}_below", f"{cell}_above")]
    return ranked.select(*_GROUP, "score", *kept)


def integer_statistics(ranked: DataFrame, examples: DataFrame, codebook: Codebook) -> DataFrame:
    """Return the integers of the U statistics from ranks, in the form of the blocks engine.

    Notes
    -----
    Lazy. Cost: one pass over the ranks and one shuffle of a row per identity and task; where there are crossed pairs
    also a scan of the corpus, to count their rows.
    """
    sums = ranked.groupBy(*_GROUP).agg(*(column for pair in CELL_PAIRS for column in _pair_sums(*pair)))
    statistics = _every_group(sums, codebook).select(
        *_GROUP, F.explode(F.array(*map(_pair_row, CELL_PAIRS))).alias("pair")
    )
    number, is_overall = F.col(IDENTITY), F.col(IDENTITY) == 0
    background_pair = (F.col("pair.low_cell") == BACKGROUND_NEGATIVE) & (F.col("pair.high_cell") == BACKGROUND_POSITIVE)
    chosen = statistics.where(~is_overall | background_pair)
    return _listed(chosen, examples, codebook).select(
        name_of(F.col(MODEL), codebook.models).alias(MODEL),
        name_of(F.col(SLICE), codebook.slices).alias(SLICE),
        name_of(number, codebook.names).alias(IDENTITY),
        F.when(is_overall, F.lit(NEGATIVE)).otherwise(F.col("pair.low_cell")).alias("low_cell"),
        F.when(is_overall, F.lit(POSITIVE)).otherwise(F.col("pair.high_cell")).alias("high_cell"),
        (number >= codebook.first_pair).alias(CROSSED),
        *(
            F.col(f"pair.{name}").alias(name)
            for name in ("n_low", "n_high", "u_doubled", "low_square_sum", "high_square_sum")
        ),
    )


def reached(ranked: DataFrame, examples: DataFrame, codebook: Codebook, edges: Sequence[Floats]) -> DataFrame:
    """Return for every cell of every identity how many rows reach each edge: see `Ranking.reached`.

    Notes
    -----
    Lazy. Cost: one pass over the ranks and two shuffles, of a row per identity and place between edges; where there are
    crossed pairs also a scan of the corpus, to count their rows.
    """
    place = reduce(
        lambda chosen, n: F.when(F.col(MODEL) == n, _range_of(F.col("score"), edges[n])).otherwise(chosen),
        range(len(edges)),
        F.lit(None),
    )
    counts = ranked.groupBy(*_GROUP, place.alias("place")).agg(*(F.sum(cell).alias(cell) for cell in FOUR_CELLS))
    by_group = counts.groupBy(*_GROUP).agg(F.collect_list(F.struct("place", *FOUR_CELLS)).alias("places"))
    n_edges = F.element_at(F.array(*(F.lit(len(own)) for own in edges)), F.col(MODEL) + 1)
    every = F.sequence(F.lit(0), n_edges)
    return _listed(_every_group(by_group, codebook), examples, codebook).select(
        name_of(F.col(MODEL), codebook.models).alias(MODEL),
        name_of(F.col(SLICE), codebook.slices).alias(SLICE),
        name_of(F.col(IDENTITY), codebook.names).alias(IDENTITY),
        (F.col(IDENTITY) >= codebook.first_pair).alias(CROSSED),
        *(F.transform(every, partial(_sum_from, cell)).alias(cell) for cell in FOUR_CELLS),
    )


def _sum_from(cell: str, place: Column) -> Column:
    """Return how many rows of a cell lie in a place or above it."""
    counts = F.transform("places", lambda one: F.when(one["place"] >= place, one[cell]).otherwise(F.lit(0)))
    return F.coalesce(F.aggregate(counts, F.lit(0).cast("bigint"), lambda total, n: total + n), F.lit(0).cast("bigint"))


def overview(ranked: DataFrame, examples: DataFrame, codebook: Codebook) -> DataFrame:
    """Return the scores of each model, and what was counted: see `Ranking.overview`. Scans the corpus once more."""
    everyone = ranked.where((F.col(SLICE) == 0) & (F.col(IDENTITY) == 0))
    tie = F.col(BACKGROUND_NEGATIVE) + F.col(BACKGROUND_POSITIVE)
    scores = everyone.groupBy(MODEL).agg(
        F.sum(tie).alias("n_rows"),
        F.count(F.lit(1)).alias("n_distinct"),
        F.max(tie).alias("largest_tie"),
        F.min("score").alias("lowest"),
        F.max("score").alias("highest"),
    )
    return scores.unionByName(count_rows(examples, codebook), allowMissingColumns=True)


def _scored(examples: DataFrame, codebook: Codebook, boundaries: list[Floats]) -> DataFrame:
    """One row for each model and slice in which a row of EXAMPLES counts."""
    models = [
        F.when(
            field("score_reason", n, codebook) == 0,
            F.struct(
                F.lit(n).alias(MODEL), F.col(name).alias("score"), _range_of(F.col(name), boundaries[n]).alias(_RANGE)
            ),
        )
        for n, name in enumerate(codebook.score_columns)
    ]
    inside = [F.when(field("slice", n, codebook) == 1, F.lit(n)) for n in range(1, len(codebook.slices))]
    rows = each_present(examples.where(field("row_reason", 0, codebook) == 0), "scored", models)
    return each_present(rows, SLICE, [F.lit(0), *inside]).select("*", "scored.*")


def _memberships(scored: DataFrame, codebook: Codebook) -> DataFrame:
    """One row for each identity of which it is known whether the row is in it."""
    known = [F.struct(F.lit(n).alias(IDENTITY), state.alias("member")) for n, state in enumerate(states(codebook))]
    rows = scored.select(
        MODEL,
        SLICE,
        _RANGE,
        (F.col("score") + F.lit(0.0)).alias("score"),
        (field("label", 0, codebook) == 1).alias("label"),
        F.explode(F.array(*known)).alias("state"),
    )
    return rows.select(MODEL, SLICE, _RANGE, "score", "label", "state.*").where(F.col("member").isNotNull())


def _offsets(counts: DataFrame) -> DataFrame:
    """Rows of each cell in lower ranges and in all: a window over ranges, not over rows."""
    totals = counts.groupBy(*_GROUP, _RANGE).agg(*(F.sum(cell).alias(cell) for cell in FOUR_CELLS))
    lower = Window.partitionBy(*_GROUP).orderBy(_RANGE).rowsBetween(Window.unboundedPreceding, -1)
    every = Window.partitionBy(*_GROUP).rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    columns = []
    for cell in FOUR_CELLS:
        columns.append(F.coalesce(F.sum(cell).over(lower), F.lit(0)).alias(f"{cell}_lower"))
        columns.append(F.sum(cell).over(every).alias(f"{cell}_total"))
    return totals.select(*_GROUP, _RANGE, *columns)


def _pair_sums(low: str, high: str) -> list[Column]:
    high_placement = 2 * F.col(f"{low}_below") + F.col(low)
    low_placement = 2 * F.col(f"{high}_above") + F.col(high)
    name = f"{low} {high}"
    return [
        F.sum(low).alias(f"{name} n_low"),
        F.sum(high).alias(f"{name} n_high"),
        F.sum(_wide(F.col(high)) * _wide(high_placement)).alias(f"{name} u_doubled"),
        F.sum(_wide(F.col(low)) * (_wide(low_placement) * _wide(low_placement))).alias(f"{name} low_square_sum"),
        F.sum(_wide(F.col(high)) * (_wide(high_placement) * _wide(high_placement))).alias(f"{name} high_square_sum"),
    ]


def _pair_row(pair: tuple[str, str]) -> Column:
    low, high = pair
    name = f"{low} {high}"
    counts = [F.coalesce(F.col(f"`{name} {n}`"), F.lit(0)).cast("bigint").alias(n) for n in ("n_low", "n_high")]
    sums = [
        F.coalesce(F.col(f"`{name} {n}`").cast("decimal(38,0)"), F.lit(0).cast("decimal(38,0)")).alias(n)
        for n in ("u_doubled", "low_square_sum", "high_square_sum")
    ]
    return F.struct(F.lit(low).alias("low_cell"), F.lit(high).alias("high_cell"), *counts, *sums)


def _every_group(sums: DataFrame, codebook: Codebook) -> DataFrame:
    """Add the groups of which no row is left: every model and slice has every identity."""
    spark = sums.sparkSession
    frames = [
        spark.range(size).select(F.col("id").cast("int").alias(name))
        for name, size in zip(_GROUP, (len(codebook.models), len(codebook.slices), len(codebook.names)), strict=True)
    ]
    every = frames[0].crossJoin(frames[1]).crossJoin(frames[2])
    return every.join(sums, on=list(_GROUP), how="left")


def _listed(statistics: DataFrame, examples: DataFrame, codebook: Codebook) -> DataFrame:
    """Leave out crossed pairs with too few rows, of all that were read."""
    if not codebook.pairs:
        return statistics
    first = codebook.first_pair_tally
    counts = count_rows(examples, codebook).select(F.posexplode("counts").alias("place", "n_members"))
    enough = counts.where((F.col("place") >= first) & (F.col("n_members") >= codebook.min_rows))
    pairs = enough.select((F.col("place") - first + codebook.first_pair).alias(IDENTITY))
    crossed = statistics.where(F.col(IDENTITY) >= codebook.first_pair).join(pairs, on=IDENTITY, how="left_semi")
    return statistics.where(F.col(IDENTITY) < codebook.first_pair).unionByName(crossed)


def _in_cell(cell: str) -> Column:
    label = F.col("label") if cell.endswith(POSITIVE) else ~F.col("label")
    member = F.col("member") if cell.startswith("subgroup") else ~F.col("member")
    return F.when(label & member, F.lit(1)).otherwise(F.lit(0))


def _range_of(score: Column, boundaries: Floats) -> Column:
    return (
        F.size(F.filter(F.array(*(F.lit(float(edge)) for edge in boundaries)), lambda edge: edge <= score))
        if len(boundaries)
        else F.lit(0)
    )


def _wide(value: Column) -> Column:
    return value.cast("decimal(19,0)")
