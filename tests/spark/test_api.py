"""The public functions as a notebook calls them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession

import biasspark
from biasspark.api.computed import hold
from biasspark.errors import ConfigError
from biasspark.tables.schemas import BIAS_METRICS, MODEL_SUMMARY, U_STATISTICS
from tests.small_corpora import rows_of

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
        frame = function(comments, **MEASURED)
        assert tuple(frame.columns) == table.value_columns
        wanted = {column.name: column.field.dataType for column in (*table.key, *table.values)}
        assert {field.name: field.dataType for field in frame.schema} == wanted


def test_one_row_for_every_model_slice_and_identity(comments: DataFrame) -> None:
    metrics = biasspark.bias_metrics(comments, slices={"news": "board = 'news'"}, **MEASURED).collect()
    keys = {(row.model, row.slice, row.identity) for row in metrics}
    models, slices, identities = ("toxicity_1", "toxicity_6"), ("all", "news"), ("male", "female")
    assert keys == {(model, name, identity) for model in models for name in slices for identity in identities}
    assert len(metrics) == len(keys)
    assert not any(row.crossed for row in metrics)
    for row in metrics:
        cells = [row.n_subgroup_negative, row.n_subgroup_positive, row.n_background_negative, row.n_background_positive]
        assert sum(cells) == (200 if row.slice == "all" else 100)


@pytest.mark.slow
def test_models_and_identities_in_any_form(comments: DataFrame) -> None:
    named = biasspark.bias_metrics(comments, **MEASURED | {"models": {"new": "toxicity_6"}})
    listed = biasspark.bias_metrics(comments, **MEASURED | {"models": ("toxicity_6",)})
    assert rows_of(named.drop("model")) == rows_of(listed.drop("model"))
    assert {row.model for row in named.collect()} == {"new"}
    for identities in (
        {"columns": ["male", "female"], "threshold": 0.5},
        biasspark.Identities(columns=("male", "female")),
        ("male", "female"),
    ):
        as_listed = biasspark.bias_metrics(comments, **MEASURED | {"models": ["toxicity_6"], "identities": identities})
        assert rows_of(as_listed) == rows_of(listed)


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


@pytest.mark.slow
def test_both_engines(comments: DataFrame) -> None:
    blocks, windows = (
        biasspark.u_statistics(comments, engine=engine, ranges=3, **MEASURED) for engine in ("blocks", "windows")
    )
    assert rows_of(blocks) == rows_of(windows)


@pytest.mark.slow
def test_the_summary_is_of_the_same_numbers(comments: DataFrame) -> None:
    summary = {row.model: row for row in biasspark.model_summary(comments, **MEASURED).collect()}
    metrics = biasspark.bias_metrics(comments, **MEASURED).collect()
    assert set(summary) == {"toxicity_1", "toxicity_6"}
    for model, row in summary.items():
        assert row.n_negative + row.n_positive == 300
        aucs = {metric.identity: metric.bpsn_auc for metric in metrics if metric.model == model}
        assert row.bpsn_auc_min == min(aucs.values())
        assert aucs[row.bpsn_auc_min_identity] == row.bpsn_auc_min
    assert summary["toxicity_6"].auc > summary["toxicity_1"].auc


def test_frames_that_hold_their_rows_keep_values_and_types(spark: SparkSession) -> None:
    numbers = "-0.0D AS zero, CAST('NaN' AS DOUBLE) AS nan, 9223372036854775807 AS large, CAST(NULL AS BIGINT) AS none"
    decimals = (
        f"{'9' * 38} AS whole, array({'8' * 38}, NULL) AS wholes, CAST(NULL AS ARRAY<DECIMAL(38,0)>) AS no_wholes"
    )
    frame = spark.sql(f"SELECT id, {numbers}, {decimals}, id = 1 AS flag, 'µ' AS text FROM range(2)")
    for computed in (frame, frame.where("id < 0")):
        held = hold(computed)
        assert held.schema == computed.schema
        assert list(map(str, held.collect())) == list(map(str, computed.collect()))  # NaN is not itself
        assert held.selectExpr("hash(*)").collect() == computed.selectExpr("hash(*)").collect()
    assert hold(frame).first().whole == Decimal("9" * 38)


def test_models_that_stand_side_by_side_are_there(comments: DataFrame) -> None:
    metrics = biasspark.bias_metrics(comments, **MEASURED)
    assert biasspark.side_by_side(metrics, "toxicity_6", "toxicity_1").count() == 2
    with pytest.raises(biasspark.InputError) as caught:
        biasspark.side_by_side(metrics, "toxicty_1", "Toxicity_6")
    for fault, named in zip(caught.value.faults, ("toxicty_1", "Toxicity_6"), strict=True):
        assert all(f'"{name}"' in fault for name in (named, "toxicity_1", "toxicity_6"))
    with pytest.raises(biasspark.InputError, match="no row"):
        biasspark.side_by_side(metrics.where("model IS NULL"), "toxicity_1", "toxicity_6")


def test_an_expression_that_fails_on_a_row_is_named(comments: DataFrame) -> None:
    with pytest.raises(biasspark.InputError, match="slices broken") as caught:
        biasspark.label_balance(comments, slices={"broken": "assert_true(id < 9) IS NULL"}, **MEASURED)
    assert len(caught.value.faults) == 1


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


def test_faults_of_what_is_asked(comments: DataFrame) -> None:
    with pytest.raises(biasspark.ConfigError) as caught:
        biasspark.bias_metrics(comments, models=[], label="target", identities=[], engine="fast", level=2)
    assert caught.value.faults == (
        'models: no model is named. At least one is required. Write, for example, models = ["toxicity"].',
        "identities: no identity is named. At least one of columns, categorical, array, predicates, terms is "
        'required. Write, for example, identities = ["male", "female"].',
        'engine = "fast". It must be one of "blocks", "windows", "binned". Leave it out to use the default, "blocks".',
        "level = 2. It must lie between 0 and 1, both excluded. Write, for example, level = 0.95.",
    )


def test_faults_of_the_columns_are_all_said_at_once(comments: DataFrame) -> None:
    with pytest.raises(biasspark.InputError) as caught:
        biasspark.bias_metrics(comments, models=["toxicity"], label="target", identities=["board", "women"])
    columns = "id, target, toxicity_1, toxicity_6, male, female, board"
    assert str(caught.value).splitlines() == [
        f"models toxicity: the corpus has no column 'toxicity'. It has: {columns}. Did you mean 'toxicity_6'?",
        "identities: the corpus has no column 'women'. Name one that it has.",
        'label = "target": it is of type double, and there is no threshold. A number is a label only with '
        "one. Set `label_threshold` (0.5), or `label_positive` to the values that are positive.",
    ]


def test_the_columns_are_named_where_none_of_them_is_asked_for(spark: SparkSession) -> None:
    with pytest.raises(biasspark.InputError) as caught:
        biasspark.bias_metrics(spark.createDataFrame([("1", "2")], ["_c0", "_c1"]), **MEASURED | {"models": "score"})
    assert str(caught.value).splitlines()[0] == (
        "label: the corpus has no column 'target'. It has: _c0, _c1. Name one that it has."
    )


def test_an_unknown_keyword_is_refused(comments: DataFrame) -> None:
    with pytest.raises(TypeError, match="threshold"):
        biasspark.bias_metrics(comments, threshold=0.5, **MEASURED)


def test_no_rows(comments: DataFrame) -> None:
    with pytest.raises(biasspark.InputError) as caught:
        biasspark.model_summary(comments.where("id < 0"), **MEASURED)
    assert str(caught.value) == ("df: no rows, so there is nothing to measure.")


@pytest.mark.classic("Spark Connect makes columns without a JVM")
def test_columns_are_made_of_classes_that_are_looked_for_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_for: list[str] = []
    classes = type(spark.sparkContext._jvm)
    look = classes.__getattr__

    def look_for(jvm: object, name: str) -> object:
        looked_for.append(name)
        return look(jvm, name)

    monkeypatch.setattr(classes, "__getattr__", look_for)
    F.coalesce(F.sum("a") + 1, F.when(F.col("b").isin(1, 2), F.lit(0)))
    assert looked_for == []
    assert spark.sparkContext._jvm.java.lang.Math.abs(-1) == 1
    assert looked_for == ["java"]


def test_the_public_names() -> None:
    assert {"bias_metrics", "model_summary", "u_statistics", "Identities"} <= set(dir(biasspark))
    assert all(getattr(biasspark, name) for name in biasspark.__all__)
    with pytest.raises(AttributeError, match="module 'biasspark' has no attribute 'nothing'"):
        _ = biasspark.nothing


def test_what_is_no_list_of_columns_is_refused_and_nothing_is_ignored(comments: DataFrame) -> None:
    for wrong, fault in (
        (
            {"identities": 5},
            'identities = 5. It must be a list of text, not a whole number. Write identities = ["...", "..."].',
        ),
        ({"slices": ["board"]}, 'slices: this is a list. It must be a dict. Write slices = {"name": "board"}.'),
        (
            {"identities": {"columns": ["male"]}, "unannotated": "background"},
            "unannotated = 'background': identities is a dict here, which has its own "
            "threshold and unannotated. Set them there.",
        ),
    ):
        with pytest.raises(ConfigError) as caught:
            biasspark.bias_metrics(comments, **MEASURED | wrong)
        assert str(caught.value) == fault
