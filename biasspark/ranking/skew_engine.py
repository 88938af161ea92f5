"""The class-skew experiment on Spark: parts and RANKED -> twice U over the rows that each trial keeps.

    RANKED --small shuffle--> standings --+
    parts ---------------------------------+--cogroup--> twice U by trial and range --small shuffle--> by trial

RANKED says where the rows of each range stand on the score line, and so every range draws its part of each trial alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark.columns import FOUR_CELLS
from biasspark.config import PinnedSkew
from biasspark.corpus.codebook import Codebook
from biasspark.ddl import column_names
from biasspark.ranking.block_engine import Beside, Group, group_by_identities, measure_beside, read_group
from biasspark.ranking.blocks import Block
from biasspark.ranking.combine import decode_sums
from biasspark.ranking.ranges import RANGE_KEY
from biasspark.ranking.skew_trials import SkewTrials, Standing, find_cells, sum_kept

_STANDINGS = "model INT, slice INT, score_range INT, below ARRAY<BIGINT>, here ARRAY<BIGINT>, total ARRAY<BIGINT>"
_KEPT = (
    "model STRING, slice STRING, trial INT, n_dropped BIGINT, "
    "subgroup_doubled DECIMAL(38,0), background_doubled DECIMAL(38,0)"
)


def sum_kept_rows(parts: DataFrame, ranked: DataFrame, codebook: Codebook, skew: PinnedSkew) -> DataFrame:
    """Drop rows of one cell of an identity at random, and place those that are kept, in every trial.

    Parameters
    ----------
    parts : DataFrame
        What `block_engine.sort_into_parts` returned; best persisted, or the corpus is scanned and shuffled once more.
    ranked : DataFrame
        What `block_engine.rank_blocks` made of it; best persisted.
    skew : PinnedSkew
        Identity, cell, how much of it is dropped how often, and the seed.

    Returns
    -------
    DataFrame
        ``model, slice, trial, n_dropped, subgroup_doubled, background_doubled``: the rows of the cell that a trial
        drops, and twice U (2 x pairs with the positive above, + ties) between those that it keeps and all rows of the
        other label, in the subgroup and in the background. Slices without rows are missing.

    Raises
    ------
    InputError
        When it is computed, if the corpus is not as it was when it was ranked.

    Notes
    -----
    Each set of so many rows is equally likely. The same integers for any partitions and ranges; the draws depend on the
    seed and on the names of model, slice, identity and cell. Cost: as many rows are looked up as are kept, in all
    trials together; no row of the corpus is shuffled anew where the parts are persisted.
    """
    standings = group_by_identities(ranked, codebook).applyInPandas(_find_standings(codebook, skew), _STANDINGS)
    kept = measure_beside(parts, standings, _keep(codebook, skew), _KEPT)
    sums = (F.sum(name).cast("decimal(38,0)").alias(name) for name in ("subgroup_doubled", "background_doubled"))
    return kept.groupBy("model", "slice", "trial").agg(F.max("n_dropped").alias("n_dropped"), *sums)


def _find_standings(codebook: Codebook, skew: PinnedSkew) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Say of every range how many rows of the four cells of the identity lie in it, below it, and in all."""

    def run(ranked: pd.DataFrame) -> pd.DataFrame:
        group, number = read_group(ranked, codebook), codebook.number[skew.identity]
        rows = _list_standings(group, group.identities.index(number)) if number in group.identities else []
        return pd.DataFrame(rows, columns=column_names(_STANDINGS))

    return run


def _list_standings(group: Group, place: int) -> list[tuple[Any, ...]]:
    cells = [[column[place] for column in decode_sums(data).cells] for data in group.ranges["data"]]
    here = np.array(cells, np.int64).reshape(-1, len(FOUR_CELLS))
    below, total = here.cumsum(axis=0) - here, np.broadcast_to(here.sum(axis=0), here.shape)
    keys = group.ranges[list(RANGE_KEY)].itertuples(index=False)
    return [(*key, *counts) for key, *counts in zip(keys, below, here, total, strict=True)]


def _keep(codebook: Codebook, skew: PinnedSkew) -> Beside:
    identity = codebook.number[skew.identity]

    def run(
        key: tuple[int, int, int], cells: list[Block], memberships: list[Block], standings: pd.DataFrame
    ) -> Iterator[tuple[Any, ...]]:
        group = codebook.models[key[0]], codebook.slices[key[1]]
        own, stand = find_cells(cells, memberships, codebook.base_masks[identity], identity), _read_standings(standings)
        n_dropped = skew.n_dropped(stand[skew.cell].total)
        doubled = sum_kept(own, stand, SkewTrials(skew, *group))
        return ((*group, trial, n_dropped, *map(Decimal, both)) for trial, both in enumerate(doubled, 1))

    return run


def _read_standings(standings: pd.DataFrame) -> dict[str, Standing]:
    counts = zip(*(map(int, standings[name].iloc[0]) for name in Standing._fields), strict=True)
    return {cell: Standing(*of_cell) for cell, of_cell in zip(FOUR_CELLS, counts, strict=True)}
