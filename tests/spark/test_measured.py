"""The public functions as a notebook calls them, and `biasspark.measure`: many tables of one survey and one ranking."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import biasspark
from biasspark.tables.schemas import BIAS_METRICS
from biasspark.tables.spark_schemas import to_arrow, to_frame, value_schema
from tests.harness.small_corpora import rows_of
from tests.harness.spark_effort import watch

N_ROWS = 3000
MEASURED: dict[str, Any] = {
    "models": ["toxicity_1", "toxicity_6"],
    "label": "target",
    "label_threshold": 0.5,
    "identities": ["male", "female"],
}
MORE_KEYWORDS: dict[str, dict[str, Any]] = {
    "pinned_auc": {},
    "threshold_rates": {"at": [0.3, 0.5]},
    "threshold_summary": {"at": [0.3, 0.5]},
    "score_histograms": {"bins": 4},
    "label_balance": {"text": "text"},
    "template_scores": {"template": "template"},
}


@pytest.fixture(scope="module")
def corpus_path(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("measured") / "corpus")
    share = [F.pmod(F.xxhash64("id", F.lit(seed)), F.lit(100)) / 100 for seed in range(5)]
    spark_session.range(N_ROWS, numPartitions=1).select(
        "id",
        F.when(F.col("id") % 50 > 0, share[0]).alias("target"),
        F.round((share[0] + 2 * share[1]) / 3, 2).cast("float").alias("toxicity_1"),
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


@pytest.mark.slow
def test_further_tables_are_those_of_the_single_functions(comments: DataFrame) -> None:
    turned_on: dict[str, Any] = {"thresholds": [0.3, 0.5], "histograms": 4, "label_balance": "text"}
    measured = biasspark.measure(comments, **MEASURED, **turned_on, templates="template")
    for name, asked in MORE_KEYWORDS.items():
        frame, alone = getattr(measured, name)(), getattr(biasspark, name)(comments, **asked, **MEASURED)
        assert frame.columns == alone.columns, name
        assert rows_of(frame) == rows_of(alone), name


@pytest.mark.slow
@pytest.mark.classic("Spark Connect does not say what its jobs read")
def test_scans_are_few(spark: SparkSession, comments: DataFrame) -> None:
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
        with watch(spark, N_ROWS) as effort:
            frames[name] = call()
        counted[name] = effort.n_scans
    assert counted == {name: n_scans for name, (n_scans, _) in calls.items()}
    assert spark.sparkContext._jsc.getPersistentRDDs().isEmpty()
    computed = [name for name in frames if name != "example_attributions"]
    with watch(spark, N_ROWS) as effort:
        for name in computed:
            assert rows_of(frames[name])
    assert effort.n_scans == 0


def test_a_measured_corpus_shows_its_rows_and_names_the_keyword_of_a_table_that_it_lacks(comments: DataFrame) -> None:
    keywords = {
        "threshold_rates": "thresholds=[0.5]",
        "threshold_summary": "thresholds=[0.5]",
        "score_histograms": "histograms=100",
        "label_balance": "label_balance=True",
        "template_scores": 'templates="template"',
    }
    measured = biasspark.measure(comments, **MEASURED)
    assert (measured.n_rows, measured.rejects) == (N_ROWS, {"null_label": N_ROWS // 50})
    assert [text.split(":")[0] for text in measured.warnings] == ["model toxicity_1", "corpus"]
    assert "3,000 rows" in repr(measured)
    for name, keyword in keywords.items():
        with pytest.raises(biasspark.ConfigError, match=f"^{name}: ") as caught:
            getattr(measured, name)()
        assert keyword in str(caught.value)


# ---- the functions of a single table


def test_the_table_of_the_job_less_the_columns_of_the_run_and_of_methods(comments: DataFrame) -> None:
    frame, schema = biasspark.bias_metrics(comments, **MEASURED), value_schema(BIAS_METRICS)
    assert frame.columns == [name for name in schema.names if not name.endswith("_method")]
    assert [field.dataType for field in frame.schema] == [schema[name].dataType for name in frame.columns]


def test_every_option_reaches_the_numbers(comments: DataFrame) -> None:
    options = {
        "identity_threshold": 0.9,
        "unannotated": "background",
        "level": 0.5,
        "ranges": 5,
        "label_threshold": None,
        "label_positive": [1.0],
        "label": "toxic",
        "models": ["toxicity_6"],
    }
    corpus = comments.withColumn("toxic", (F.col("target") >= 0.5).cast("double"))
    row, plain = (
        biasspark.bias_metrics(frame, **MEASURED | asked).where("identity = 'male'").collect()[0]
        for frame, asked in ((corpus, options), (comments, {"models": ["toxicity_6"]}))
    )
    n_rows = row.n_subgroup_negative + row.n_subgroup_positive + row.n_background_negative + row.n_background_positive
    members = comments.where("male >= 0.9 and target IS NOT NULL").count()
    assert (n_rows, row.n_subgroup_negative + row.n_subgroup_positive) == (N_ROWS - N_ROWS // 50, members)
    assert row.n_subgroup_positive == comments.where("male >= 0.9 and target >= 0.5").count()
    assert row.background_auc_high - row.background_auc_low < (plain.background_auc_high - plain.background_auc_low) / 2


def test_frames_that_hold_their_rows_keep_values_and_types(spark: SparkSession) -> None:
    wide = pa.decimal128(38, 0)
    columns = {
        "zero": pa.array([-0.0, float("nan")]),
        "large": pa.array([2**63 - 1, None]),
        "whole": pa.array([Decimal("9" * 38)] * 2, wide),
        "wholes": pa.array([[Decimal("8" * 38), None], None], pa.list_(wide)),
        "flag": pa.array([True, None]),
        "text": pa.array(["µ", None]),
    }
    rows = pa.table(columns)
    for part in (rows, rows.slice(0, 0)):
        held = to_frame(spark, part, from_arrow_schema(rows.schema))
        assert held.schema == from_arrow_schema(rows.schema)
        assert str(to_arrow(held, rows.schema).to_pylist()) == str(part.to_pylist())  # NaN is not itself


@pytest.mark.classic("Spark Connect makes columns without a JVM")
def test_the_public_names() -> None:
    assert {"bias_metrics", "model_summary", "u_statistics", "Identities"} <= set(dir(biasspark))
    assert all(getattr(biasspark, name) for name in biasspark.__all__)
    with pytest.raises(AttributeError, match="module 'biasspark' has no attribute 'nothing'"):
        _ = biasspark.nothing
