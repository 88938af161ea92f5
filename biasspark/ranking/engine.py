"""EXAMPLES -> U statistics, by either engine, in the same integers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row

from biasspark.corpus.codebook import Codebook, Tally
from biasspark.ranking import block_engine, window_engine
from biasspark.ranking.blocks import Floats
from biasspark.ranking.placements import Profile


@dataclass(frozen=True)
class Ranking:
    """What one ranking of a corpus gives; all lazy.

    Attributes
    ----------
    ranked
        What the others come of: persist it to rank once for all of them.
    statistics
        The integers of the U statistics: six rows an identity, and one for the whole slice.
    overview
        A few rows: `model`, by its number, `n_rows`, `n_distinct`, `largest_tie`, `lowest` and `highest` of a part of
        its scores; and on some of them `counts`, rows read and rejected, in the order of `Codebook.tallies`.
    """

    ranked: DataFrame
    statistics: DataFrame
    overview: DataFrame


def rank(examples: DataFrame, codebook: Codebook, boundaries: list[Floats], engine: str = "blocks") -> Ranking:
    """Rank every score of every model and slice.

    Parameters
    ----------
    examples : DataFrame
        EXAMPLES, as the codebook describes it.
    boundaries : list of float64 arrays
        For each model, where its score ranges meet; no result depends on them.
    engine : {"blocks", "windows"}
        Sorted score blocks in numpy, or rank windows in pure Spark SQL for clusters without Python workers.
    """
    if engine == "windows":
        ranked = window_engine.rank_windows(examples, codebook, boundaries)
        return Ranking(
            ranked=ranked,
            statistics=window_engine.integer_statistics(ranked, examples, codebook),
            overview=window_engine.overview(ranked, examples, codebook),
        )
    ranked = block_engine.rank_blocks(examples, codebook, boundaries)
    return Ranking(
        ranked=ranked,
        statistics=block_engine.integer_statistics(ranked, codebook),
        overview=block_engine.overview(ranked),
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
