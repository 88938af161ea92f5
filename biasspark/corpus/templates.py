"""Mean scores by sentence template: each real text is unique, but sentences of a template differ in names alone."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.columns import IDENTITY, MODEL
from biasspark.config import Measures
from biasspark.corpus.codebook import Codebook
from biasspark.corpus.examples import label_examples
from biasspark.corpus.states import field, name_of, single_states
from biasspark.corpus.values import category
from biasspark.expressions.exploding import each_present
from biasspark.expressions.sums import add_up, add_up_about

_TEMPLATE = "template"


def template_scores(
    corpus: DataFrame, measures: Measures, codebook: Codebook, template: str, id_column: str | None = None
) -> DataFrame:
    """Return one row for each (model, template, identity) that has rows: how many, their mean score and its deviation.

    Parameters
    ----------
    template : str
        The column with the template of a row; rows where it is NULL are left out.

    Returns
    -------
    DataFrame
        The table ``template_scores``, less the run's columns. ``(overall)`` is all rows of the template, crossed pairs
        are left out.

    Notes
    -----
    Mean and standard deviation (n - 1) add up distinct scores in ascending order, so that the bits depend on no
    partitioning. Costs a scan of the corpus, and a shuffle of a row for each distinct score of a (model, template,
    identity). The scores of one of these are held together, which suits test sets. The time is linear in their number.
    """
    kind = corpus.schema[template].dataType
    examples = label_examples(corpus, measures, codebook, id_column, [category(template, kind).alias(_TEMPLATE)])
    counts = examples.where((field("row_reason", 0, codebook) == 0) & F.col(_TEMPLATE).isNotNull())
    counts = each_present(counts, IDENTITY, _members(codebook))
    counts = each_present(counts, "scored", _scored(codebook)).select(_TEMPLATE, IDENTITY, "scored.*")
    counts = counts.groupBy(MODEL, _TEMPLATE, IDENTITY, "score").agg(F.count(F.lit(1)).alias("n"))
    scores = counts.groupBy(MODEL, _TEMPLATE, IDENTITY).agg(
        F.sort_array(F.collect_list(F.struct("score", "n"))).alias("scores"), F.sum("n").alias("n_rows")
    )
    n_rows = F.col("n_rows").cast("double")
    scores = scores.withColumn("mean_score", add_up("scores", lambda one: one["score"] * one["n"]) / n_rows)
    squares = add_up_about("scores", F.col("mean_score"), lambda one, mean: (one["score"] - mean) ** 2 * one["n"])
    return scores.select(
        name_of(F.col(MODEL), codebook.models).alias(MODEL),
        _TEMPLATE,
        name_of(F.col(IDENTITY), codebook.names[: codebook.first_pair]).alias(IDENTITY),
        "n_rows",
        "mean_score",
        F.sqrt(F.try_divide(squares, n_rows - 1)).alias("sd_score"),
    )


def _members(codebook: Codebook) -> list[Column]:
    """Return for every identity its number, if a row is in it; ``(overall)``, the first, has all rows."""
    _, *states = single_states(codebook)
    return [F.lit(0), *(F.when(state, F.lit(number)) for number, state in enumerate(states, 1))]


def _scored(codebook: Codebook) -> list[Column]:
    """Return for every model its number and the score of a row, if it has one."""
    return [
        F.when(
            field("score_reason", number, codebook) == 0,
            F.struct(F.lit(number).alias(MODEL), (F.col(name) + F.lit(0.0)).alias("score")),
        )
        for number, name in enumerate(codebook.score_columns)
    ]
