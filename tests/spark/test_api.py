"""The public functions as a notebook calls them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import biasspark
from biasspark.tables.schemas import BIAS_METRICS, MODEL_SUMMARY, U_STATISTICS
from biasspark.tables.spark_schemas import to_arrow, to_frame, value_schema

MEASURED: dict[str, Any] = {
    "models": ["toxicity_1", "toxicity_6"],
    "label": "target",
    "label_threshold": 0.5,
    "identities": ["male", "female"],
}


@pytest.fixture
def comments(spark: SparkSession) -> DataFrame:
    """Two models of which the second is the better, two overlapping identities unknown on a third of the rows."""
    share = [F.pmod(F.xxhash64("id", F.lit(seed)), F.lit(100)) / 100 for seed in range(5)]
    annotated = F.col("id") % 3 > 0
    return spark.range(300, numPartitions=2).select(
        "id",
        share[0].alias("target"),
        F.round((share[0] + 2 * share[1]) / 3, 1).cast("float").alias("toxicity_1"),
        ((2 * share[0] + share[1]) / 3).alias("toxicity_6"),
        F.when(annotated, share[3]).alias("male"),
        F.when(annotated, share[4]).alias("female"),
        F.element_at(F.array(F.lit("news"), F.lit("sports")), (1 + F.col("id") % 2).cast("int")).alias("board"),
    )


def test_the_tables_of_the_job_less_the_columns_of_the_run(comments: DataFrame) -> None:
    for function, table in (
        (biasspark.bias_metrics, BIAS_METRICS),
        (biasspark.model_summary, MODEL_SUMMARY),
        (biasspark.u_statistics, U_STATISTICS),
    ):
        frame, schema = function(comments, **MEASURED), value_schema(table)
        of_intervals = {name for name in schema.names if name.endswith("_method") and table is BIAS_METRICS}
        assert frame.columns == [name for name in schema.names if name not in of_intervals]
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
    row = biasspark.bias_metrics(corpus, **MEASURED | options).where("identity = 'male'").collect()[0]
    plain = (
        biasspark.bias_metrics(comments, **MEASURED | {"models": ["toxicity_6"]})
        .where("identity = 'male'")
        .collect()[0]
    )
    n_rows = row.n_subgroup_negative + row.n_subgroup_positive + row.n_background_negative + row.n_background_positive
    members = comments.where("male >= 0.9").count()
    assert (n_rows, row.n_subgroup_negative + row.n_subgroup_positive) == (300, members)
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


def test_an_expression_that_fails_on_a_row_is_named(comments: DataFrame) -> None:
    with pytest.raises(biasspark.InputError, match=r'slices."broken".') as caught:
        biasspark.label_balance(comments, slices={"broken": "assert_true(id < 9) IS NULL"}, **MEASURED)
    assert len(caught.value.faults) == 1


@pytest.mark.spark("the embedded engine says that it keeps every frame")
def test_what_comes_back_is_a_frame_that_can_be_queried(comments: DataFrame) -> None:
    worst = (
        biasspark.bias_metrics(comments, **MEASURED)
        .where("model = 'toxicity_1'")
        .orderBy("subgroup_auc")
        .select("identity", F.round("subgroup_auc", 3).alias("auc"))
        .limit(1)
        .collect()
    )
    assert len(worst) == 1
    assert not biasspark.u_statistics(comments, **MEASURED).storageLevel.useMemory


def test_faults_of_the_columns_are_all_found_at_once(comments: DataFrame) -> None:
    with pytest.raises(biasspark.InputError) as caught:
        biasspark.bias_metrics(comments, models=["toxicity"], label="target", identities=["board", "women"])
    keys = [re.split(r"[:.] ", message)[0] for message in caught.value.messages]
    assert keys == ['models["toxicity"]', "identities", 'label = "target"']
    assert "id, target, toxicity_1, toxicity_6, male, female, board" in caught.value.messages[0]


def test_the_columns_are_named_where_none_of_them_is_asked_for(spark: SparkSession) -> None:
    with pytest.raises(biasspark.InputError) as caught:
        biasspark.bias_metrics(spark.createDataFrame([("1", "2")], ["_c0", "_c1"]), **MEASURED | {"models": "score"})
    assert "_c0, _c1" in caught.value.messages[0]


@pytest.mark.classic("Spark Connect makes columns without a JVM")
def test_columns_are_made_of_classes_that_are_looked_for_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_for: list[str] = []
    jvm: Any = spark.sparkContext._jvm
    classes: Any = type(jvm)
    look = classes.__getattr__

    def look_for(gateway: object, name: str) -> object:
        looked_for.append(name)
        return look(gateway, name)

    monkeypatch.setattr(classes, "__getattr__", look_for)
    F.coalesce(F.sum("a") + 1, F.when(F.col("b").isin(1, 2), F.lit(0)))
    assert looked_for == []
    assert jvm.java.lang.Math.abs(-1) == 1
    assert looked_for == ["java"]


def test_the_public_names() -> None:
    assert {"bias_metrics", "model_summary", "u_statistics", "Identities"} <= set(dir(biasspark))
    assert all(getattr(biasspark, name) for name in biasspark.__all__)
    with pytest.raises(AttributeError, match="module 'biasspark' has no attribute 'nothing'"):
        _ = biasspark.nothing
