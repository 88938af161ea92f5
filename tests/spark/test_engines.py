"""The survey of a corpus in Parquet, and its suite against scikit-learn and SciPy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from scipy.stats import mannwhitneyu, rankdata
from sklearn.metrics import roc_auc_score

import biasspark
from biasspark.config import parse_measures
from biasspark.corpus.survey import survey_corpus
from tests.oracle.intervals import logit_interval
from tests.oracle.suite import PAIRS, cut_cells


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


def test_the_suite_agrees_with_scikit_learn_and_scipy(spark: SparkSession, annotated_path: str) -> None:
    frame = spark.read.parquet(annotated_path)
    identities: dict[str, Any] = {"columns": ["male", "female"], "crossed": {"pairs": True, "min_rows": 10}}
    metrics = biasspark.bias_metrics(frame, models=["tied", "smooth"], label="toxic", identities=identities)
    suite, corpus = metrics.collect(), frame.toPandas()
    states = {name: corpus[name].astype("Float64") >= 0.5 for name in ("male", "female")}  # NA where it is unknown
    states["male & female"] = states["male"] & states["female"]
    assert {(row.model, row.identity) for row in suite} == set(product(("tied", "smooth"), states))
    for row in suite:
        cells = cut_cells(corpus[row.model], corpus["toxic"], states[row.identity].to_numpy(float, na_value=np.nan))
        assert [row[f"n_{cell}"] for cell in cells] == [len(found) for found in cells.values()]
        for metric, (low, high) in PAIRS.items():
            offset = 0.5 if metric.endswith("aeg") else 0.0
            labels = np.repeat([0, 1], [len(cells[low]), len(cells[high])])
            by_sklearn = roc_auc_score(labels, np.r_[cells[low], cells[high]])
            by_scipy = mannwhitneyu(cells[high], cells[low]).statistic / len(cells[low]) / len(cells[high])
            assert row[metric] + offset == pytest.approx(by_sklearn, abs=1e-12, rel=0)
            assert row[metric] + offset == pytest.approx(by_scipy, abs=1e-12, rel=0)
            variance = delong_variance_by_ranks(cells[low], cells[high])
            if 0 < by_sklearn < 1 and variance > 0:
                ends = logit_interval(by_sklearn, variance)
                assert [row[f"{metric}_low"] + offset, row[f"{metric}_high"] + offset] == pytest.approx(ends, abs=1e-12)


def delong_variance_by_ranks(low: np.ndarray, high: np.ndarray) -> float:
    """DeLong's variance from mid-ranks, by the method of Sun and Xu 2014."""
    n, m, together = len(low), len(high), rankdata(np.r_[low, high])
    of_low = 1 - (together[:n] - rankdata(low)) / m
    of_high = (together[n:] - rankdata(high)) / n
    return float(np.var(of_low, ddof=1) / n + np.var(of_high, ddof=1) / m)
