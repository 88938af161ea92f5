"""EXAMPLES -> U statistics, by either engine, in the same integers."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from biasspark.corpus.codebook import Codebook
from biasspark.ranking import block_engine, window_engine
from biasspark.ranking.blocks import Floats


@dataclass(frozen=True)
class Ranking:
    """What one ranking of a corpus gives; all lazy.

    Attributes
    ----------
    ranked
        What the others come of: persist it to rank once for all of them.
    statistics
        The integers of the U statistics: six rows an identity, and one for the whole slice.
    tallies
        One row, `counts`: rows read and rejected, in the order of `Codebook.tallies`.
    profiles
        One row a model, by its number: `n_rows`, `n_distinct`, `largest_tie`, `lowest`, `highest` of its scores.
    """

    ranked: DataFrame
    statistics: DataFrame
    tallies: DataFrame
    profiles: DataFrame


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
            tallies=window_engine.tallies(examples, codebook),
            profiles=window_engine.score_profiles(ranked),
        )
    ranked = block_engine.rank_blocks(examples, codebook, boundaries)
    return Ranking(
        ranked=ranked,
        statistics=block_engine.integer_statistics(ranked, codebook),
        tallies=block_engine.tallies(ranked),
        profiles=block_engine.score_profiles(ranked),
    )
