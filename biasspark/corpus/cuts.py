"""Where the score line is cut into bins for the approximate mode: at quantiles of a sample, and wherever rows count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyspark.sql.functions as F
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame

from biasspark.config import Measures
from biasspark.corpus.eligibility import label_of, row_reason, score_reason, usable_score
from biasspark.corpus.values import column, number

SAMPLED_ROWS = 1 << 18
"""About so many rows are sampled, all of a corpus of no more."""

_SEED, _HASHES = 2019, 1 << 31


def sample_cuts(
    corpus: DataFrame,
    measures: Measures,
    n_rows: int,
    edges: Sequence[NDArray[np.float64]],
    id_column: str | None = None,
) -> list[NDArray[np.float64]]:
    """Return for each model the cut points of its bins, ascending.

    Half of them are quantiles of the sampled negatives and half of the positives, so that each label is cut into parts
    as small, whatever its share of the rows: two cells of one label are told apart as well as two of different ones.

    Parameters
    ----------
    n_rows : int
        Of the corpus.
    edges : sequence of float64 arrays
        For each model, scores at which it is always cut; none, or one array a model.
    id_column : str, optional
        Rows are sampled by a hash of it, the same however the corpus is partitioned; without it at random, by a seed.

    Notes
    -----
    Runs one Spark job when called, on labels and scores alone. The driver receives `bins` doubles a model, never a
    row. Whatever the cut points are, bounds hold; of other ones they are other bounds.
    """
    schema, parts = corpus.schema, (measures.ranking.bins or 0) // 2
    labelled = row_reason(measures.label, schema, None) == 0
    scores = [
        F.when(score_reason(name, schema) == 0, number(name, schema[name].dataType)).alias(f"score_{place}")
        for place, name in enumerate(measures.models.values())
    ]
    rows = corpus.where(_is_sampled(n_rows, id_column) & labelled)
    sample = rows.select(label_of(measures.label, schema).alias("positive"), *scores)
    wanted = [_quantiles(f"score_{place}", parts, label) for place in range(len(scores)) for label in ("NOT ", "")]
    found = [own or [] for own in sample.agg(*wanted).collect()[0]]
    always = edges or [np.empty(0)] * len(scores)
    # -0.0 is 0.0 wherever scores are ranked.
    return [np.unique(np.r_[found[2 * n], found[2 * n + 1], own]) + 0.0 for n, own in enumerate(always)]


def bin_column(model: int) -> str:
    """Return the column that `number_bins` adds for a model."""
    return f"_biasspark_bin_{model}"


def number_bins(corpus: DataFrame, measures: Measures, cuts: Sequence[NDArray[np.float64]]) -> DataFrame:
    """Add for each model the number of the bin that its score is in: 2i + 1 at cut i, 2i in the open interval below it.

    Parameters
    ----------
    cuts : sequence of float64 arrays
        For each model, ascending and unique. Without any nothing is added.

    Notes
    -----
    Lazy, and computed in the JVM where the corpus is scanned: a number of 14 bits crosses to Python in one word with
    all else that is known of the row, where two scores take two words more. A binary search, each step a projection of
    its own, for Spark folds what one expression refers to into it, and would write the first step 4,096 times.
    """
    schema, columns = corpus.schema, tuple(measures.models.values())
    for model, own in enumerate(cuts):
        score, place, steps = f"_biasspark_score_{model}", bin_column(model), 1 << len(own).bit_length()
        # As text, for each literal of a Column is a call to the JVM; Spark folds it into an array once.
        text = ",".join([*map(repr, own.tolist()), *["NaN"] * (steps - len(own))])
        line = F.split(F.lit(text), ",").cast("array<double>")
        corpus = corpus.withColumns({score: usable_score(columns[model], schema), place: F.lit(0)})
        while steps := steps // 2:
            is_below = F.get(line, F.col(place) + (steps - 1)) < F.col(score)
            corpus = corpus.withColumn(place, F.col(place) + F.when(is_below, steps).otherwise(0))
        at_cut = F.get(line, F.col(place)) == F.col(score)
        corpus = corpus.withColumn(place, 2 * F.col(place) + F.when(at_cut, 1).otherwise(0))
    return corpus


def choose_boundaries(cuts: Sequence[NDArray[np.float64]], ranges: int) -> list[NDArray[np.float64]]:
    """Choose for each model cut points at which ranges meet; they only balance the work."""
    return [own[np.unique(np.arange(1, ranges) * len(own) // ranges)] if len(own) else own for own in cuts]


def _is_sampled(n_rows: int, id_column: str | None) -> Column:
    share = SAMPLED_ROWS / n_rows
    if share >= 1:
        return F.lit(True)
    if id_column is None:
        return F.rand(_SEED) < share
    return F.pmod(F.xxhash64(column(id_column)), F.lit(_HASHES)) < int(share * _HASHES)


def _quantiles(score: str, parts: int, label: str) -> Column:
    """Cut the sampled scores of a label into equal parts, exactly; NULL where there is nothing to cut.

    As text, for each literal of a Column is a call to the JVM.
    """
    shares = ", ".join(f"{part / parts!r}D" for part in range(parts + 1))
    return F.expr(f"percentile({score}, array({shares})) FILTER (WHERE {label}positive)")
