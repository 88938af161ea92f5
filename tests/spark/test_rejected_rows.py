"""What is rejected and why, and that all of it is counted."""

from __future__ import annotations

import math
from collections import Counter

import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession

from biasspark.config import parse_measures
from biasspark.corpus.eligibility import rejected_rows
from biasspark.corpus.encoding import RowCounts
from biasspark.workflows.corpus_steps import survey_for_ranking
from tests.harness.small_corpora import count_and_reject, measures_of

NAN, INFINITY = math.nan, math.inf
REJECT_ROWS = [
    (None, None, 0.5, 0.5, 0.5),
    (1, None, None, 0.5, 0.5),
    (2, 7.0, 0.5, 0.5, 0.5),
    (3, 1.0, None, 0.5, 0.5),
    (4, 1.0, NAN, 0.5, 0.5),
    (5, 1.0, INFINITY, None, 0.5),
    (6, 1.0, 0.5, 0.5, 9.0),
    (7, None, 0.5, 0.5, 9.0),
    (8, 1.0, NAN, 0.5, -9.0),
    *((number, float(number % 2), number / 40, -number / 40, 0.5) for number in range(9, 40)),
    (40, NAN, 0.5, 0.5, 0.5),
    (41, 0.0, None, -INFINITY, 0.5),
]


@pytest.mark.parametrize("engine", ["blocks", pytest.param("windows", marks=pytest.mark.slow)])
def test_every_reason_is_counted_and_written_once_a_row_and_model(spark: SparkSession, engine: str) -> None:
    corpus = spark.createDataFrame(REJECT_ROWS, "id INT, y DOUBLE, a DOUBLE, b DOUBLE, u DOUBLE").repartition(3)
    measures = parse_measures(
        {
            "label": {"column": "y", "threshold": 0.5, "range": [0, 1]},
            "models": {"one": "a", "two": "b"},
            "identities": {"columns": ["u"], "range": [0, 1]},
            "ranking": {"engine": engine},
        }
    )
    counts, rejects = count_and_reject(corpus, measures)
    assert rejects == Counter(
        [
            (None, None, "null_id"),
            ("1", None, "null_label"),
            ("2", None, "label_out_of_range"),
            ("3", "one", "null_score"),
            ("4", "one", "nan_score"),
            ("5", "one", "infinite_score"),
            ("5", "two", "null_score"),
            ("6", None, "annotation_out_of_range"),
            ("7", None, "null_label"),
            ("8", "one", "nan_score"),
            ("8", None, "annotation_out_of_range"),
            ("40", None, "null_label"),
            ("41", "one", "null_score"),
            ("41", "two", "infinite_score"),
        ]
    )
    assert counts == RowCounts(
        n_rows=len(REJECT_ROWS),
        n_rejected=7,  # five for their label or id, and two that no model scores
        rejects=dict(Counter(reason for _, _, reason in rejects.elements())),
        n_eligible={"one": len(REJECT_ROWS) - 5 - 5, "two": len(REJECT_ROWS) - 5 - 2},
    )


def test_duplicate_ids_are_all_rejected_and_scores_that_are_no_numbers(spark: SparkSession) -> None:
    ids = [1, 2, 2, 3, 3, 3, None, None, 4, 5]
    rows = [(id_, None if n == 1 else n % 2 == 0, f"{n / 8}" if n else "high", 1.0) for n, id_ in enumerate(ids)]
    corpus = spark.createDataFrame(rows, "id INT, y BOOLEAN, s STRING, u DOUBLE").repartition(4)
    counts, rejects = count_and_reject(corpus, measures_of(), duplicates="reject")
    duplicates = {("2", None, "duplicate_id"): 2, ("3", None, "duplicate_id"): 3, (None, None, "null_id"): 2}
    assert rejects == duplicates | {("1", "s", "score_not_numeric"): 1}
    assert counts.rejects == {"duplicate_id": 5, "null_id": 2, "score_not_numeric": 1}
    assert counts.n_eligible == {"s": 2}


def test_bins_span_the_scores_of_rows_that_count(spark: SparkSession) -> None:
    rows = [(1, 9.0), (1, -6.0), (None, 7.0), *((n, n / 60) for n in range(2, 60))]
    corpus = spark.createDataFrame(rows, "id INT, s DOUBLE").selectExpr("*", "s > 0.5 AS y", "1.0D AS u")
    measures = measures_of(histograms={"bins": 2})
    with survey_for_ranking(corpus, measures, "id", "reject") as surveyed:
        assert surveyed.cutpoints["s"].bin_edges == (0.0, 0.5, 1.0)


def rejected_range(spark: SparkSession, n_rows: int, partitions: int) -> DataFrame:
    """Return many rows without a label, and a few without a score."""
    return spark.range(0, n_rows, 1, partitions).selectExpr(
        "concat('row ', id) AS id", "if(id < 30, true, null) AS y", "if(id < 20, null, 0.5D) AS s", "1.0D AS u"
    )


def keep(corpus: DataFrame, max_rows: int) -> list[tuple[str, str, str]]:
    rejects = rejected_rows(corpus, measures_of(), "id", max_rows)
    return sorted((row.row_id, row.model, row.reason) for row in rejects.fillna("").collect())


@pytest.mark.slow
def test_the_rows_that_are_kept_of_many_are_fixed_by_id(spark: SparkSession) -> None:
    kept, same = (
        keep(rejected_range(spark, 50_000, partitions).orderBy(F.expr(order)), 12)
        for partitions, order in ((1, "id"), (5, "hash(id)"))
    )
    assert kept == same
    assert Counter(reason for *_, reason in kept) == {"null_label": 12, "null_score": 12}
    assert len({row_id for row_id, *_ in kept}) == 24
    assert set(kept) <= set(keep(rejected_range(spark, 50_000, 2), 100))


@pytest.mark.parametrize("identifier", ["null", "'same'"])
def test_as_many_rows_are_kept_where_ids_are_alike(spark: SparkSession, identifier: str) -> None:
    corpus = rejected_range(spark, 20_000, 2).withColumn("id", F.expr(f"cast({identifier} AS STRING)"))
    reason = "null_id" if identifier == "null" else "null_label"
    assert [of_row for *_, of_row in keep(corpus, 12)].count(reason) == 12
