"""Corpus -> REJECTS: the rows that no metric counts, with their reasons and without their text."""

from __future__ import annotations

from collections.abc import Mapping

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql.types import StructType

from biasspark.columns import ANNOTATION_OUT_OF_RANGE, MODEL, REASON, ROW_ID, ROW_REASONS, SCORE_REASONS
from biasspark.config import Measures
from biasspark.corpus.eligibility import row_reason, score_reason
from biasspark.corpus.identities import annotation_out_of_range
from biasspark.corpus.values import column

_BUCKETS = 64
"""Parts in which the rows of a reason are narrowed down before they come together."""


def rejected_rows(
    corpus: DataFrame, measures: Measures, id_column: str | None, counts: Mapping[str, int], max_rows: int
) -> DataFrame | None:
    """Return rejected rows as (row_id, model, reason), up to `max_rows` for each reason; None where there are none.

    Parameters
    ----------
    counts : mapping of str to int
        How many rows each reason has, as the ranking counted them; without any the corpus is not read.

    Notes
    -----
    Which rows are kept depends on their ids alone: those with the smallest hash. Cost: one scan, a shuffle of what is
    rejected, and one of a few times `max_rows` rows.
    """
    if not sum(counts.values()) or not max_rows:
        return None
    reasons = corpus.select(
        (column(id_column).cast("string") if id_column else F.lit(None).cast("string")).alias(ROW_ID),
        F.explode(_reasons(measures, corpus.schema, id_column)).alias("reject"),
    ).select(ROW_ID, F.col("reject.model").alias(MODEL), F.col("reject.reason").alias(REASON))
    hashed = reasons.withColumn("_hash", F.xxhash64(ROW_ID)).withColumn("_bucket", _bucket())
    kept = _smallest(hashed, max_rows, REASON, "_bucket")
    return _smallest(kept, max_rows, REASON).select(ROW_ID, MODEL, REASON)


def _smallest(rows: DataFrame, most: int, *group: str) -> DataFrame:
    """Keep so many rows of each group, by hash."""
    by_hash = Window.partitionBy(*group).orderBy("_hash", ROW_ID, MODEL)
    return rows.withColumn("_place", F.row_number().over(by_hash)).where(F.col("_place") <= most)


def _bucket() -> Column:
    """Spread rows by hash; those without an id are alike, so that chance may spread them."""
    by_chance = F.floor(F.rand(0) * _BUCKETS)
    return F.when(F.col(ROW_ID).isNull(), by_chance).otherwise(F.pmod("_hash", F.lit(_BUCKETS)))


def _reasons(measures: Measures, schema: StructType, id_column: str | None) -> Column:
    """Return the rejects of a row: of the whole row one, else of each model, and of its annotations."""
    whole = row_reason(measures.label, schema, id_column)
    models = [
        F.when(
            (whole == 0) & (score_reason(name, schema) > 0),
            _reject(model, _named(score_reason(name, schema), SCORE_REASONS)),
        )
        for model, name in measures.models.items()
    ]
    return F.array_compact(
        F.array(
            F.when(whole > 0, _reject(None, _named(whole, ROW_REASONS))),
            *models,
            F.when(
                (whole == 0) & annotation_out_of_range(measures.identities, schema),
                _reject(None, F.lit(ANNOTATION_OUT_OF_RANGE)),
            ),
        )
    )


def _named(code: Column, reasons: tuple[str, ...]) -> Column:
    return F.element_at(F.array(*map(F.lit, reasons)), F.greatest(code, F.lit(1)))


def _reject(model: str | None, reason: Column) -> Column:
    return F.struct(F.lit(model).cast("string").alias(MODEL), reason.alias(REASON))
