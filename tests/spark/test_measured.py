"""`biasspark.measure`: many tables of one survey and one ranking."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession

import biasspark
from tests.harness.small_corpora import rows_of
from tests.harness.spark_effort import Effort, watch

N_ROWS = 3000
MEASURED: dict[str, Any] = {
    "models": ["toxicity_1", "toxicity_6"],
    "label": "target",
    "label_threshold": 0.5,
    "identities": ["male", "female"],
}
SUITE = ("bias_metrics", "model_summary", "u_statistics")
FURTHER: dict[str, dict[str, Any]] = {
    "pinned_auc": {},
    "threshold_rates": {"at": [0.3, 0.5]},
    "threshold_summary": {"at": [0.3, 0.5]},
    "score_histograms": {"bins": 4},
    "label_balance": {"text": "text"},
    "template_scores": {"template": "template"},
}
TURNED_ON: dict[str, Any] = {
    "thresholds": [0.3, 0.5],
    "histograms": 4,
    "label_balance": "text",
    "templates": "template",
}


@pytest.fixture(scope="module")
def corpus_path(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("measured") / "corpus")
    share = [F.pmod(F.xxhash64("id", F.lit(seed)), F.lit(100)) / 100 for seed in range(5)]
    spark_session.range(N_ROWS, numPartitions=1).select(
        "id",
        F.when(F.col("id") % 50 > 0, share[0]).alias("target"),
        F.round((share[0] + 2 * share[1]) / 3, 2).alias("toxicity_1"),
        ((2 * share[0] + share[1]) / 3).alias("toxicity_6"),
        F.when(F.col("id") % 3 > 0, share[3]).alias("male"),
        F.when(F.col("id") % 3 > 0, share[4]).alias("female"),
        F.expr("repeat('word ', CAST(id % 90 AS INT))").alias("text"),
        F.concat(F.lit("t"), F.col("id") % 7).alias("template"),
    ).write.parquet(path)
    return path


@pytest.fixture
def comments(spark: SparkSession, corpus_path: str) -> DataFrame:
    return spark.read.parquet(corpus_path)


def test_the_tables_are_those_of_the_single_functions(comments: DataFrame) -> None:
    with biasspark.measure(comments, **MEASURED, thresholds=[0.3, 0.5]) as measured:
        for name in (*SUITE, "threshold_rates"):
            assert_alike(measured, name, comments)
        assert (measured.n_rows, measured.rejects) == (N_ROWS, {"null_label": N_ROWS // 50})
        assert [text.split(":")[0] for text in measured.warnings] == ["model toxicity_1", "corpus"]
        assert "3,000 rows" in repr(measured)
        summary = rows_of(measured.model_summary())
    assert rows_of(measured.model_summary()) == summary


@pytest.mark.slow
def test_further_tables_are_those_of_the_single_functions(comments: DataFrame) -> None:
    with biasspark.measure(comments, **MEASURED, **TURNED_ON) as measured:
        for name in FURTHER:
            assert_alike(measured, name, comments)


def assert_alike(measured: biasspark.MeasuredCorpus, name: str, comments: DataFrame) -> None:
    frame, alone = getattr(measured, name)(), getattr(biasspark, name)(comments, **FURTHER.get(name, {}), **MEASURED)
    assert frame.columns == alone.columns, name
    assert rows_of(frame) == rows_of(alone), name


@pytest.mark.slow
@pytest.mark.classic("Spark Connect does not say what its jobs read")
def test_scans_are_those_that_the_guide_says(spark: SparkSession, comments: DataFrame) -> None:
    """Many tables of `measure` are scanned for once, nothing is cached, and most of what is returned is computed."""
    by_row = {name: MEASURED[name] for name in ("models", "label", "label_threshold")} | {"id": "id"}
    calls: dict[str, tuple[int, Callable[[], DataFrame]]] = {
        "measure": (2, lambda: biasspark.measure(comments, **MEASURED, thresholds=[0.5]).threshold_rates()),
        "bias_metrics": (2, lambda: biasspark.bias_metrics(comments, **MEASURED)),
        "pinned_skew": (3, lambda: biasspark.pinned_skew(comments, identity="male", trials=2, **MEASURED)),
        "label_balance": (3, lambda: biasspark.label_balance(comments, text="text", **MEASURED)),
        "template_scores": (3, lambda: biasspark.template_scores(comments, template="template", **MEASURED)),
        "model_comparisons": (3, lambda: biasspark.model_comparisons(comments, baseline="toxicity_1", **MEASURED)),
        "auc_crosses": (3, lambda: biasspark.auc_crosses(comments, groupings={"by": "template"}, **by_row)),
        "pair_segments": (3, lambda: biasspark.pair_segments(comments, numeric=["male"], **by_row)),
        "loss_by_segment": (2, lambda: biasspark.loss_by_segment(comments, **by_row)),
        "example_attributions": (2, lambda: biasspark.example_attributions(comments, **by_row)),
    }
    frames, counted = {}, {}
    for name, (_, call) in calls.items():
        efforts: list[Effort] = []
        with watch(spark, N_ROWS, efforts):
            frames[name] = call()
        counted[name] = efforts[0].n_scans
    assert counted == {name: n_scans for name, (n_scans, _) in calls.items()}
    assert spark.sparkContext._jsc.getPersistentRDDs().isEmpty()
    computed = [name for name in frames if name != "example_attributions"]
    with watch(spark, N_ROWS, efforts):
        for name in computed:
            assert rows_of(frames[name])
    assert efforts[-1].n_scans == 0


def test_it_warns_at_the_line_that_asks(comments: DataFrame) -> None:
    outside = comments.withColumn("female", F.lit(None).cast("double"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        measured = biasspark.measure(outside, **MEASURED)
    ours = [warning for warning in caught if warning.category is biasspark.InputWarning]
    assert [str(warning.message) for warning in ours] == list(measured.warnings)
    assert any("female" in warning for warning in measured.warnings)
    assert {warning.filename for warning in ours} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error", biasspark.InputWarning)
        with pytest.raises(biasspark.InputWarning):
            biasspark.measure(outside, **MEASURED)


def test_a_table_that_was_not_asked_for_names_the_keyword(comments: DataFrame) -> None:
    keywords = {
        "threshold_rates": "thresholds=[0.5]",
        "threshold_summary": "thresholds=[0.5]",
        "score_histograms": "histograms=100",
        "label_balance": "label_balance=True",
        "template_scores": 'templates="template"',
    }
    measured = biasspark.measure(comments, **MEASURED)
    for name, keyword in keywords.items():
        with pytest.raises(biasspark.ConfigError, match=f"^{name}: ") as caught:
            getattr(measured, name)()
        assert keyword in str(caught.value)


def test_evidence_and_privacy_withhold_what_they_do_in_the_job(comments: DataFrame) -> None:
    few = comments.withColumn("male", F.when(F.col("id") < 9, 1.0).otherwise(F.lit(0.0)))
    with biasspark.measure(few, **MEASURED, privacy=10, evidence=500) as measured:
        reasons = {(row.identity, row.subgroup_auc_reason) for row in measured.bias_metrics().collect()}
    assert reasons == {("male", "withheld"), ("female", "below_minimum_rows")}
