"""Where the score line is cut into bins for the approximate mode: at quantiles of a sample, and wherever rows count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.arrays import Floats
from biasspark.config import Measures
from biasspark.corpus.eligibility import known_score, label_of, row_reason
from biasspark.corpus.values import column

SAMPLED_ROWS = 1 << 18
"""About so many rows are sampled, all of a corpus of no more."""

_SEED, _HASHES = 2019, 1 << 31


def sample_cuts(
    corpus: DataFrame,
    measures: Measures,
    n_rows: int,
    edges: Sequence[Floats],
    id_column: str | None = None,
) -> list[Floats]:
    """Return for each model the cut points of its bins, ascending.

    Half of them are quantiles of the sampled negatives and half of the positives, so that each label is cut into parts
    as small, whatever its share of the rows: two cells of one label are told apart as well as two of different ones.

    Parameters
    ----------
    n_rows : int
        Of the corpus.
    edges : sequence of float64 arrays
        For each model, scores at which it is always cut; none, or one array per model.
    id_column : str, optional
        Rows are sampled by a hash of it as text, the same however the corpus is partitioned; without it at random, by a
        seed.

    Notes
    -----
    Runs one Spark job when called, on labels and scores alone. The driver receives `bins` doubles per model, never a
    row. Whatever the cut points are, bounds hold; of other ones they are other bounds.
    """
    schema, parts = corpus.schema, (measures.ranking.bins or 0) // 2
    labelled = row_reason(measures.label, schema, None) == 0
    scores = [known_score(name, schema).alias(f"score_{place}") for place, name in enumerate(measures.models.values())]
    rows = corpus.where(_is_sampled(n_rows, id_column) & labelled)
    sample = rows.select(label_of(measures.label, schema).alias("positive"), *scores)
    wanted = [
        _quantiles(F.when(F.col("positive") == label, F.col(f"score_{place}")), parts)
        for place in range(len(scores))
        for label in (False, True)
    ]
    found = [own or [] for own in sample.agg(*wanted).collect()[0]]
    always = edges or [np.empty(0)] * len(scores)
    # -0.0 is 0.0 wherever scores are ranked.
    return [np.unique(np.r_[found[2 * n], found[2 * n + 1], own]) + 0.0 for n, own in enumerate(always)]


def choose_boundaries(cuts: Sequence[Floats], ranges: int) -> list[Floats]:
    """Choose for each model cut points at which ranges meet; they only balance the work."""
    return [own[np.unique(np.arange(1, ranges) * len(own) // ranges)] if len(own) else own for own in cuts]


def _is_sampled(n_rows: int, id_column: str | None) -> Column:
    share = SAMPLED_ROWS / n_rows
    if share >= 1:
        return F.lit(True)
    if id_column is None:
        return F.rand(_SEED) < share
    return F.pmod(F.xxhash64(column(id_column).cast("string")), F.lit(_HASHES)) < int(share * _HASHES)


def _quantiles(score: Column, parts: int) -> Column:
    """Cut the scores that are not NULL into equal parts: their first, and every (n / parts)-th from there on.

    Spark's ``percentile`` would go through all n scores for each part.
    """
    n_scores = F.count(score)
    ascending = F.sort_array(F.collect_list(score))
    return F.filter(ascending, lambda _, place: place.cast("bigint") * parts % n_scores < parts)
