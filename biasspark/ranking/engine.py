"""EXAMPLES -> U statistics: by either exact engine in the same integers, or by bins with bounds around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row

from biasspark.arrays import Floats
from biasspark.corpus.codebook import Codebook, Tally
from biasspark.corpus.labels import label_counts
from biasspark.ranking import block_engine, window_engine
from biasspark.ranking.bins import bins_of
from biasspark.ranking.placements import Profile


@dataclass(frozen=True)
class Ranking:
    """What one ranking of a corpus gives; all lazy.

    Attributes
    ----------
    ranked
        What the others come of: persist it to rank once for all of them.
    statistics
        The integers of the U statistics: six rows per identity, and one for the whole slice. Of bins with the least and
        the most that each of the sums may be, ``u_doubled_at_least`` to ``high_square_sum_at_most``.
    reached
        Of each (model, slice, identity) and each of its four cells, BIGINT arrays: all rows of the cell, and then how
        many have a score at or above each edge. ``(overall)`` has its rows in the background. None without edges.
    labels
        ``identity, bucket, n_negative, n_positive``: the labelled rows, scored or not, of every identity and bucket of
        text lengths, crossed pairs left out; bucket 0 is outside all, and ``(overall)`` counts every row. None where
        the codebook counts none.
    parts
        The sorted blocks of which the blocks engine ranks; None of the other engines.
    overview
        A few rows: `model`, by its number, `n_rows`, `n_distinct`, `largest_tie`, `lowest` and `highest` of a part of
        its scores; and on some of them `counts`, rows read and rejected, in the order of `Codebook.tallies`.
    """

    ranked: DataFrame
    statistics: DataFrame
    overview: DataFrame
    reached: DataFrame | None
    labels: DataFrame | None
    parts: DataFrame | None


def rank(
    examples: DataFrame,
    codebook: Codebook,
    boundaries: list[Floats],
    edges: Sequence[Floats] = (),
    engine: str = "blocks",
) -> Ranking:
    """Rank every score of every model and slice.

    Parameters
    ----------
    examples : DataFrame
        EXAMPLES, as the codebook describes it.
    boundaries : list of float64 arrays
        For each model, where its score ranges meet; no result depends on them.
    edges : sequence of float64 arrays
        For each model, ascending, the scores at which rows are counted; none where they are not.
    engine : {"blocks", "windows"}
        Sorted score blocks in numpy, or rank windows in pure Spark SQL for clusters without Python workers.
    """
    if engine == "windows":
        ranked = window_engine.rank_windows(examples, codebook, boundaries)
        return Ranking(
            ranked=ranked,
            statistics=window_engine.integer_statistics(ranked, examples, codebook),
            overview=window_engine.overview(ranked, examples, codebook),
            reached=window_engine.reached(ranked, examples, codebook, edges) if edges else None,
            labels=None if codebook.n_buckets is None else label_counts(examples, codebook),
            parts=None,
        )
    return rank_parts(block_engine.sort_into_parts(examples, codebook, boundaries), codebook, edges)


def rank_bins(
    examples: DataFrame,
    codebook: Codebook,
    cuts: Sequence[Floats],
    boundaries: list[Floats],
    edges: Sequence[Floats] = (),
) -> Ranking:
    """Rank every score of every model and slice as far as bins tell scores apart.

    Parameters
    ----------
    examples : DataFrame
        EXAMPLES, as the codebook, which knows how many bins there are, describes it.
    cuts : sequence of float64 arrays
        For each model, ascending, the cut points of its bins: see `bins`.
    boundaries : list of float64 arrays
        For each model, which of them ranges meet at; no result depends on them.
    edges : sequence of float64 arrays
        For each model, which of them rows are counted at, exactly; none where they are not.
    """
    counted = [bins_of(ends, own) for ends, own in zip(edges, cuts, strict=True)] if edges else []
    parts = block_engine.sort_into_parts(examples, codebook, boundaries, cuts)
    return _give(block_engine.rank_blocks(parts, codebook, counted, cuts), codebook, counted, None)


def rank_parts(parts: DataFrame, codebook: Codebook, edges: Sequence[Floats] = ()) -> Ranking:
    """Rank scores that are sorted into parts already: see `rank`."""
    ranked = block_engine.rank_blocks(parts, codebook, edges)
    return _give(ranked, codebook, edges, parts)


def _give(ranked: DataFrame, codebook: Codebook, edges: Sequence[Floats], parts: DataFrame | None) -> Ranking:
    """Return what comes of RANKED."""
    return Ranking(
        ranked=ranked,
        statistics=block_engine.integer_statistics(ranked, codebook),
        overview=block_engine.overview(ranked),
        reached=block_engine.reached(ranked, codebook, edges) if edges else None,
        labels=None if codebook.n_buckets is None else block_engine.label_counts(ranked, codebook),
        parts=parts,
    )


def read_overview(rows: Iterable[Row], codebook: Codebook) -> tuple[Tally, dict[str, Profile]]:
    """Return what `Ranking.overview` says: the rows that count, and the scores of each model that has any."""
    found = list(rows)
    counts = next(row["counts"] for row in found if row["counts"] is not None)
    parts = {
        name: [row for row in found if row["model"] == number and row["n_rows"]]
        for number, name in enumerate(codebook.models)
    }
    profiles = {
        name: Profile(
            n_rows=sum(part["n_rows"] for part in own),
            n_distinct=sum(part["n_distinct"] for part in own),
            largest_tie=max(part["largest_tie"] for part in own),
            lowest=min(part["lowest"] for part in own),
            highest=max(part["highest"] for part in own),
        )
        for name, own in parts.items()
        if own
    }
    return codebook.read_tally(counts), profiles
