"""Sampled trials of the pinned AUC on Spark: parts and RANKED -> mean and standard deviation of every identity.

    RANKED --small shuffle--> standings --+
    parts ---------------------------------+--cogroup--> counts of every trial by range --small shuffle--> mean, sd

RANKED says where the rows of each range stand on the score line, and so every range draws its part of each trial alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame

from biasspark.arrays import Ints
from biasspark.config import PinnedAuc
from biasspark.corpus.codebook import Codebook
from biasspark.ddl import column_names
from biasspark.errors import InputError
from biasspark.ranking.block_engine import Beside, group_by_identities, measure_beside, read_group
from biasspark.ranking.blocks import Block
from biasspark.ranking.combine import decode_sums
from biasspark.ranking.pinned_trials import Standings, Trials, mean_and_sd, measure_trials, pool_ranges
from biasspark.ranking.ranges import gather

_BY_RANGE = "model INT, slice INT, score_range INT, first_identity INT, data BINARY"
_SAMPLED = "model STRING, slice STRING, identity STRING, sampled_mean DOUBLE, sampled_sd DOUBLE"

_TRIALS_A_ROW = 1 << 13
"""Trials of so many identities together, of 24 bytes each, are one binary value: all ranges of it fit one worker."""

_MOST_TRIALS = 1 << 23
"""More trials, of all identities together, would be 200 MB of counts for a single range."""


def sampled_pinned_auc(parts: DataFrame, ranked: DataFrame, codebook: Codebook, pinned: PinnedAuc) -> DataFrame:
    """Return mean and standard deviation of the pinned AUC over trials (Mitigating; Pinned).

    A trial pools two sets of k rows, drawn without replacement, and takes the AUC of the pool, ties half: k rows of the
    subgroup Dg, and k of all rows D of the slice on which membership is known, Dg among them; or of the rows outside
    Dg, the background B, as `pinned` says. k is the size of the smaller set, which is taken whole.

    Parameters
    ----------
    parts : DataFrame
        What `block_engine.sort_into_parts` returned.
    ranked : DataFrame
        What `block_engine.rank_blocks` made of it; best persisted.
    pinned : PinnedAuc
        Seed, number of trials, and whether the background includes the subgroup.

    Returns
    -------
    DataFrame
        ``model, slice, identity, sampled_mean, sampled_sd``: over the trials that have both labels, n - 1. NULL where
        there are none, and the deviation NULL where there is one. Slices without rows are missing; of crossed pairs
        with too few rows there may be rows, of NULLs.

    Raises
    ------
    InputError
        If so many trials of so many identities would not fit a worker; and, when it is computed, if the corpus is not
        as it was when it was ranked.

    Notes
    -----
    The same bits for any partitions and ranges; the draws of an identity depend on the seed and on the names of model,
    slice and identity, not on what else is configured. Cost: the parts are computed again, one more scan and shuffle of
    the corpus; then as many rows are looked up as are drawn, trials times the rows of all subgroups.
    """
    _refuse_too_many(codebook, pinned)
    standings = group_by_identities(ranked, codebook).applyInPandas(_find_standings(codebook), _BY_RANGE)
    drawn = measure_beside(parts, standings, _draw(codebook, pinned), _BY_RANGE)
    keys = ("model", "slice", "first_identity")
    rows = -(-len(codebook.names) // _identities_a_row(pinned))
    drawn = gather(drawn, len(codebook.models) * len(codebook.slices) * rows, *keys)
    return drawn.groupBy(*keys).applyInPandas(_summarise(codebook, pinned), _SAMPLED)


def _refuse_too_many(codebook: Codebook, pinned: PinnedAuc) -> None:
    n_identities = len(codebook.names) - 1
    if n_identities * pinned.trials > _MOST_TRIALS:
        pairs, mend = (", crossed pairs among them", ", or leave out crossed pairs") if codebook.pairs else ("", "")
        raise InputError(
            f"[pinned_auc] trials = {pinned.trials:,} for {n_identities:,} identities{pairs}. "
            f"At most {_MOST_TRIALS // n_identities:,} trials are allowed for so many. Take fewer{mend}."
        )


def _identities_a_row(pinned: PinnedAuc) -> int:
    return max(_TRIALS_A_ROW // pinned.trials, 1)


def _find_standings(codebook: Codebook) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Number the rows of every range; identities that are not listed get none, for nobody asks for their trials."""

    def run(ranked: pd.DataFrame) -> pd.DataFrame:
        group = read_group(ranked, codebook)
        listed = np.array([number in group.listed for number in group.identities])
        here = [_sizes(data) for data in group.ranges["data"]]
        total = np.asarray(sum(here)) * listed
        below = np.cumsum([np.zeros_like(total), *here], axis=0)
        data = [Standings(*columns, total).encode() for columns in zip(below[:-1], here, strict=True)]
        return group.ranges[["model", "slice", "score_range", "first_identity"]].assign(data=data)

    return run


def _sizes(data: bytes) -> Ints:
    """Return the rows of a range in subgroup and background of each identity."""
    cells = np.stack(decode_sums(data).cells).astype(np.int64)
    return cells[::2] + cells[1::2]


def _draw(codebook: Codebook, pinned: PinnedAuc) -> Beside:
    def run(
        key: tuple[int, int, int], cells: list[Block], memberships: list[Block], standings: pd.DataFrame
    ) -> Iterator[tuple[Any, ...]]:
        model, number, _ = key
        trials = Trials(pinned, codebook.models[model], codebook.slices[number], codebook.names)
        every_standing = Standings.decode(standings.sort_values("first_identity")["data"])
        counted = measure_trials(cells, memberships, codebook.base_masks, every_standing, trials)
        return ((*key, first, data) for first, data in _bundle(counted, _identities_a_row(pinned)))

    return run


def _bundle(counted: Iterable[Ints], size: int) -> Iterable[tuple[int, bytes]]:
    """Join the counts of so many identities at a time, and give the number of the first."""
    held: list[bytes] = []
    for number, counts in enumerate(counted):
        held.append(counts.tobytes())
        if len(held) == size:
            yield number + 1 - size, b"".join(held)
            held = []
    if held:
        yield number + 1 - len(held), b"".join(held)


def _summarise(codebook: Codebook, pinned: PinnedAuc) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def run(drawn: pd.DataFrame) -> pd.DataFrame:
        drawn = drawn.sort_values("score_range")
        model, number, first = (int(drawn[name].iloc[0]) for name in ("model", "slice", "first_identity"))
        aucs = pool_ranges(np.frombuffer(data, np.int64).reshape(-1, 3, pinned.trials) for data in drawn["data"])
        rows = [
            (codebook.models[model], codebook.slices[number], codebook.names[identity], *mean_and_sd(values))
            for identity, values in enumerate(aucs, first)
            if identity  # (overall) has no subgroup
        ]
        return pd.DataFrame(rows, columns=column_names(_SAMPLED))

    return run
