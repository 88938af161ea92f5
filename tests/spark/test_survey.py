"""The survey of a corpus: boundaries of ranges, and what is counted, sampled and estimated."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from biasspark.config import parse_measures
from biasspark.corpus.survey import survey_corpus


def test_a_sample_of_so_few_rows_still_cuts_ranges(spark: SparkSession, annotated_path: str) -> None:
    measures = parse_measures({"label": {"column": "toxic"}, "models": ["smooth"], "identities": ["male"]})
    [cuts] = survey_corpus(spark.read.parquet(annotated_path), measures).boundaries(64)
    assert 32 < len(cuts) < 64


def test_only_some_rows_are_counted_if_scores_alone_are_surveyed(spark: SparkSession) -> None:
    """But all rows of small corpora, and all where values of columns are needed as well. Ids are estimated."""
    rows = spark.range(300_000, numPartitions=2).selectExpr("id", "id % 2 = 0 AS toxic", "id / 3e5D AS s", "true AS m")
    measures = parse_measures({"models": ["s"], "label": {"column": "toxic"}, "identities": ["m"]})
    survey = survey_corpus(rows, measures)
    assert 300_000 <= survey.n_rows <= 300_000 + 2 * 1023
    assert survey.rows_text == ("300,000 rows" if survey.is_exact else "about 300,000 rows")
    median = survey.boundaries(2)[0].item()
    assert abs(median - 0.5) < 0.05
    repeated = rows.selectExpr("id DIV if(id < 60000, 2, 1) AS id", "toxic", "s", "m")
    surveys = [survey_corpus(repeated.repartition(n), measures, "id") for n in (2, 7)]
    (first, once), (again, twice) = (survey.ids or (0, 0) for survey in surveys)
    assert first == again
    assert (once / first, twice / first) == pytest.approx((0.9, 0.9), abs=0.01)
    assert "10%" in " ".join(surveys[0].warnings)
    valued = parse_measures({"models": ["s"], "label": {"column": "toxic"}, "identities": {"categorical": ["m"]}})
    for exact in (survey_corpus(rows, valued, "id"), survey_corpus(rows.limit(1000), measures, "id")):
        assert (exact.is_exact, exact.rows_text) == (True, f"{exact.n_rows:,} rows")
        assert exact.warnings == ()
