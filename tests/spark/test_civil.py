"""The synthetic comment corpus on Spark: its columns, its annotations and its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from biasspark.synthetic.blocks import BLOCK_ROWS, generate
from biasspark.synthetic.civil_rows import CivilShape
from biasspark.synthetic.civil_shape import IDENTITY_NAMES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_columns_and_types(spark: SparkSession) -> None:
    names = ["id", "created_date", "target", *IDENTITY_NAMES, "comment_length", "toxicity_1", "toxicity_6"]
    plain = generate(spark, CivilShape(10, 1))
    assert plain.columns == names
    assert dict(plain.dtypes) == dict.fromkeys(names, "double") | {
        "id": "bigint",
        "created_date": "date",
        "comment_length": "int",
    }
    assert generate(spark, CivilShape(10, 1, text=True)).dtypes == [*plain.dtypes, ("comment_text", "string")]


def test_annotations_are_all_there_or_all_missing(spark: SparkSession) -> None:
    import pyspark.sql.functions as F

    def annotated(unannotated: float) -> list[int]:
        corpus = generate(spark, CivilShape(BLOCK_ROWS, 1, unannotated))
        mentions = [F.count_if(F.col(name) >= 0.5) for name in IDENTITY_NAMES]
        known = [F.count(name) for name in IDENTITY_NAMES]
        row = corpus.agg(*known, *mentions).first()
        assert row is not None
        return list(row)

    every, quarter = annotated(0.0), annotated(0.75)
    identities = len(IDENTITY_NAMES)
    assert every[:identities] == [BLOCK_ROWS] * identities
    assert len(set(quarter[:identities])) == 1
    assert abs(quarter[0] / BLOCK_ROWS - 0.25) < 0.02
    assert quarter[identities:] == every[identities:]


def test_text(spark: SparkSession) -> None:
    import pyspark.sql.functions as F

    corpus = generate(spark, CivilShape(2_000, 1, text=True))
    assert corpus.where(F.length("comment_text") != F.col("comment_length")).isEmpty()
    gay = F.col("comment_text").rlike(r"(?i)\b(gay|lesbian|homosexual)\b")
    assert corpus.where(gay != (F.coalesce("homosexual_gay_or_lesbian", F.lit(0.0)) >= 0.5)).isEmpty()
