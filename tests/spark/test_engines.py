"""Both engines on a corpus of everything, against each other, the definitions, and scikit-learn and SciPy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from scipy.stats import mannwhitneyu, rankdata
from sklearn.metrics import roc_auc_score

import biasspark
from biasspark.columns import CELL_PAIRS, FOUR_CELLS, OVERALL
from biasspark.config import Measures, parse_measures
from biasspark.corpus.encode import build_encoding, encode_examples
from biasspark.corpus.survey import survey_corpus
from biasspark.ranking.counts import Counts
from biasspark.ranking.engine import rank
from tests.fixtures.edge_case_corpus import (
    IDENTITIES,
    MODELS,
    SLICES,
    edge_cases,
    frame_of,
    is_crossed,
    make_rows,
)
from tests.oracle.counts import count_corpora
from tests.oracle.intervals import logit_interval
from tests.oracle.suite import PAIRS, cut_cells


def measures_of(identities: dict[str, Any], **changes: Any) -> Measures:
    table = {
        "label": {"column": "target", "threshold": 0.5},
        "models": {"tied": MODELS["tied"]},
        "identities": identities,
        "slices": SLICES,
    }
    return parse_measures(table | changes)


def by_key(counts: Counts) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Everything that u_statistics holds but AUC and variance, by key."""
    found = {}
    for group, (*names, crossed) in enumerate(zip(*counts.groups, strict=True)):
        for pair, cells in enumerate(CELL_PAIRS):
            if names[-1] == OVERALL and cells != CELL_PAIRS[3]:
                continue
            sizes = (int(counts.cells[FOUR_CELLS.index(cell), group]) for cell in cells)
            shown = ("negative", "positive") if names[-1] == OVERALL else cells
            found[*names, *shown] = (bool(crossed), *sizes, *map(int, counts.sums[pair, :, group]))
    return found


def rank_rows(corpus: DataFrame, measures: Measures, engine: str, cuts: Sequence[float]) -> Counts:
    encoding = build_encoding(measures, survey_corpus(corpus, measures), corpus)
    examples = encode_examples(corpus, measures, encoding, None)
    return rank(examples, encoding, [np.array(cuts)] * len(measures.models), ranking_engine=engine)


# ---- the engines against the definitions


@pytest.mark.parametrize("unannotated", ["exclude", "background"])
def test_both_engines_count_what_all_pairs_of_rows_tell(spark: SparkSession, unannotated: str) -> None:
    """Every kind of identity, slices, and crossed pairs, some of which have too few rows to be listed."""
    measures = measures_of(IDENTITIES | {"unannotated": unannotated})
    corpus = frame_of(spark, make_rows())
    blocks, windows = (
        rank_rows(corpus, measures, engine, cuts) for engine, cuts in (("blocks", [0.0, 0.5]), ("windows", [0.3]))
    )
    wanted = {key: row for key, row in by_key(edge_cases(unannotated).counts).items() if key[0] == "tied"}
    assert any(is_crossed(key[2]) for key in wanted)
    assert by_key(blocks) == by_key(windows) == wanted
    assert (blocks.row_counts, blocks.profiles) == (windows.row_counts, windows.profiles)


def test_more_identities_than_are_combined_at_a_time(spark: SparkSession) -> None:
    n_rows, n_groups = 3000, 1300
    corpus = spark.range(n_rows, numPartitions=2).selectExpr(
        "id % 3 = 0 AS toxic",
        "pmod(xxhash64(id), 50) / 50.0D AS score",
        f"array(format_string('g%04d', id % {n_groups}), 'g0000') AS groups",
    )
    measures = measures_of({"array": "groups"}, label={"column": "toxic"}, models={"score": "score"}, slices={})
    found = by_key(rank_rows(corpus, measures, "blocks", [0.5]))
    assert len(found) == 1 + 6 * n_groups
    rows = corpus.collect()
    checked = {
        name: [float(name in row.groups) for row in rows] for name in ("g0000", "g0511", "g0512", "g1024", "g1299")
    }
    scores, labels = [row.score for row in rows], [row.toxic for row in rows]
    wanted = by_key(count_corpora({("score", "all"): (scores, labels, checked)}))
    assert {key: found[key] for key in wanted} == wanted


# ---- the same bits, however the rows lie


MEASURED: dict[str, Any] = {
    "models": ["tied", "smooth"],
    "label": "toxic",
    "identities": {"columns": ["male", "female"], "crossed": {"pairs": True, "min_rows": 10}},
}


def suite_rows(corpus: DataFrame, **changes: Any) -> list[Row]:
    metrics: DataFrame = biasspark.bias_metrics(corpus, **(MEASURED | changes))
    return metrics.orderBy("model", "slice", "identity").collect()


@pytest.fixture(scope="module")
def suite(spark_session: SparkSession, annotated_path: str) -> list[Row]:
    return suite_rows(spark_session.read.parquet(annotated_path))


@pytest.mark.parametrize(("partitions", "ranges"), [(3, 7), (1, 1), (17, 64)])
def test_partitions_and_ranges_change_no_bit(
    spark: SparkSession, annotated_path: str, suite: list[Row], partitions: int, ranges: int
) -> None:
    corpus = spark.read.parquet(annotated_path).repartition(partitions)
    assert suite_rows(corpus, ranges=ranges) == suite


def test_the_order_of_the_rows_changes_no_bit(spark: SparkSession, annotated_path: str, suite: list[Row]) -> None:
    corpus = spark.read.parquet(annotated_path).orderBy(F.xxhash64("id", F.lit("another order")))
    assert suite_rows(corpus, ranges=3) == suite


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


def test_the_suite_agrees_with_scikit_learn_and_scipy(
    spark: SparkSession, annotated_path: str, suite: list[Row]
) -> None:
    corpus = spark.read.parquet(annotated_path).toPandas()
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
