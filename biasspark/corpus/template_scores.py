"""Mean scores by sentence template; sentences of a template differ only in the identity term."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from biasspark.columns import IDENTITY, MODEL, OVERALL, WITHHELD
from biasspark.config import Measures, Privacy
from biasspark.corpus.decode import each_present, field, name_of, scored_by, single_states
from biasspark.corpus.encode import encode_examples
from biasspark.corpus.encoding import Encoding
from biasspark.corpus.values import category, column

TEMPLATES_PASS = "average scores by template (shuffles one row per template and identity)"
_TEMPLATE = "template"
_SCALE = "scale"
_LARGE, _OF_LARGE = 2.0**450, 2.0**-600
"""Scores beyond the first are multiplied by the second, so that their sums and squares are no infinities."""


def template_scores(
    corpus: DataFrame, measures: Measures, encoding: Encoding, id_column: str | None = None
) -> DataFrame:
    """Return the table ``template_scores`` without the columns of the run.

    ``(overall)`` is all rows of the template; crossed pairs are left out, and so are rows whose template is NULL. Mean
    and standard deviation (n - 1) add up distinct scores in ascending order, so the bits depend on no partitioning.

    Lazy. Costs a scan of the corpus, and a shuffle of a row for each distinct score of a (model, template, identity).
    The scores of one of these are held together, which suits test sets.
    """
    assert measures.templates is not None
    name = measures.templates.column
    template = category(column(name), corpus.schema[name].dataType).alias(_TEMPLATE)
    examples = encode_examples(corpus, measures, encoding, id_column, [template])
    _, *states = single_states(encoding)
    members = [F.lit(0), *(F.when(state, F.lit(number)) for number, state in enumerate(states, 1))]  # 0 has all rows
    scored = [scored_by(number, encoding) for number in range(len(encoding.models))]
    rows = examples.where((field("row_reason", 0, encoding) == 0) & F.col(_TEMPLATE).isNotNull())
    rows = each_present(each_present(rows, IDENTITY, members), "scored", scored).select(_TEMPLATE, IDENTITY, "scored.*")
    counts = rows.groupBy(MODEL, _TEMPLATE, IDENTITY, "score").agg(F.count(F.lit(1)).alias("n"))
    scores = counts.groupBy(MODEL, _TEMPLATE, IDENTITY).agg(
        F.sort_array(F.collect_list(F.struct("score", "n"))).alias("scores"), F.sum("n").alias("n_rows")
    )
    largest = F.greatest(*(F.abs(F.element_at("scores", end)["score"]) for end in (1, -1)))
    scores = scores.withColumn(_SCALE, F.when(largest > _LARGE, _OF_LARGE).otherwise(1.0))
    scores = scores.withColumn(
        "scores", F.transform("scores", lambda one: F.struct((one["score"] * F.col(_SCALE)).alias("score"), one["n"]))
    )
    n_rows = F.col("n_rows").cast("double")
    total = F.aggregate("scores", F.lit(0.0), lambda total, one: total + one["score"] * one["n"])
    scores = scores.withColumn("mean_score", total / n_rows)
    named = scores.select(
        name_of(F.col(MODEL), encoding.models).alias(MODEL),
        _TEMPLATE,
        name_of(F.col(IDENTITY), encoding.names[: encoding.first_pair]).alias(IDENTITY),
        "n_rows",
        (F.col("mean_score") / F.col(_SCALE)).alias("mean_score"),
        F.when(n_rows > 1, F.sqrt(_sum_of_squares() / (n_rows - 1)) / F.col(_SCALE)).alias("sd_score"),
    )
    return _suppress(named, measures.privacy)


def _sum_of_squares() -> Column:
    """Return Σ n·d² - (Σ n·d)²/Σ n, with d = score - mean: the second term corrects for the rounding of the mean."""
    # The mean is passed through the aggregation. If the term referred to it by name, the optimizer could inline its
    # expression and compute it again for each score.
    start = F.struct(F.lit(0.0).alias("squares"), F.lit(0.0).alias("total"), F.col("mean_score").alias("mean"))

    def add(state: Column, one: Column) -> Column:
        distance = one["score"] - state["mean"]
        squares, total = state["squares"] + distance**2 * one["n"], state["total"] + distance * one["n"]
        return F.struct(squares.alias("squares"), total.alias("total"), state["mean"].alias("mean"))

    n_rows = F.col("n_rows").cast("double")
    corrected = F.aggregate("scores", start, add, lambda sums: sums["squares"] - sums["total"] * sums["total"] / n_rows)
    return F.greatest(corrected, F.lit(0.0))


def _suppress(rows: DataFrame, privacy: Privacy | None) -> DataFrame:
    """Return the rows without the numbers of small groups, and of groups whose background in ``(overall)`` is small."""
    if privacy is None:
        return rows.withColumn("reason", F.lit(None).cast("string"))
    siblings = Window.partitionBy(MODEL, _TEMPLATE)
    background = F.max(F.when(F.col(IDENTITY) == OVERALL, F.col("n_rows"))).over(siblings) - F.col("n_rows")
    least = privacy.min_group_rows
    small = (F.col("n_rows") < least) | ((background > 0) & (background < least))
    marked = rows.withColumn("reason", F.when(small, F.lit(WITHHELD)))
    numbers = ("n_rows", "mean_score", "sd_score")
    return marked.withColumns({name: F.when(F.col("reason").isNull(), F.col(name)) for name in numbers})
