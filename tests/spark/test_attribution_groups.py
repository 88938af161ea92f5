"""Groups, bins and samples of attribution: which rows they hold, in Spark and in DuckDB."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pyspark.sql.functions as F
import pytest
from pyspark.sql import SparkSession

import biasspark
from biasspark.columns import HONEST
from biasspark.config import Attribution, Label, Pairs, TreeSettings
from biasspark.errors import InputError, KeyPath
from biasspark.features import DRAW, write_predicate
from biasspark.ranking import value_counts
from biasspark.ranking.feature_columns import cut_into_bins, row_columns, survey_values
from tests.harness.least_configuration import raised_fault


@pytest.mark.parametrize("kind", ["INT", "BIGINT", "DECIMAL(20,0)"])
def test_ids_of_any_type_split_and_draw_the_same_rows(spark: SparkSession, kind: str) -> None:
    """By hashes of the seed and the id as text."""
    frame = spark.range(200).selectExpr(f"CAST(id AS {kind}) AS id", "CAST(id AS STRING) AS text")
    attribution = Attribution(tree=TreeSettings(honest_fraction=0.25, seed=5), pairs=Pairs(seed=7))
    columns = row_columns(attribution, (), frame, "id", Label(column="label"))
    rows = frame.select("text", *columns.values(), F.expr("xxhash64(5L, text)"), F.expr("xxhash64(7L, text)")).collect()
    assert list(columns) == [HONEST, DRAW]
    assert [row[2] for row in rows] == [row[4] for row in rows]
    assert [row[1] for row in rows] == [row[3] % 2**30 < 2**28 for row in rows]
    assert 30 < sum(row[1] for row in rows) < 70


def test_past_200_groups_the_rest_is_one(spark: SparkSession) -> None:
    """Of 204 values: g000 to g003 have a positive and a negative, the others one more of either."""
    rows = [
        (f"g{group:03}", label, float(group % 7 + 3 * label))
        for group in range(204)
        for label in (False, True)
        for _ in range(1 + (group > 3))
    ]
    frame = spark.createDataFrame(
        [(place, *row) for place, row in enumerate(rows)], "id INT, g STRING, y BOOLEAN, s DOUBLE"
    )
    crosses = biasspark.auc_crosses(frame, id="id", models=["s"], label="y", groupings={"g": "g"})
    sides = [F.collect_set(f"{side}_group").alias(side) for side in ("positive", "negative")]
    counts = ("n_positive", "n_negative", "n_pairs", "ordered_doubled")
    of_others = F.when(F.expr("positive_group = '(other)' AND negative_group = '(other)'"), F.struct(*counts))
    sums = (F.sum("n_pairs"), F.sum("ordered_doubled"), F.sum("headroom_share"))
    [whole] = crosses.agg(*sides, *sums, F.max(of_others).alias("others")).collect()
    assert set(whole["positive"]) == set(whole["negative"]) == {"(other)", *(f"g{group:03}" for group in range(4, 204))}
    negatives, positives = ([score for _, label, score in rows if label == side] for side in (False, True))
    ordered = sum(2 * (high > low) + (high == low) for high in positives for low in negatives)
    assert (whole[2], whole[3]) == (404 * 404, ordered)
    assert whole[4] == pytest.approx(1, abs=1e-12)
    rest = whole["others"]
    assert (rest["n_positive"], rest["n_negative"], rest["n_pairs"]) == (4, 4, 16)
    scores = [[float(group + 3 * label) for group in range(4)] for label in (False, True)]
    assert rest["ordered_doubled"] == sum(2 * (high > low) + (high == low) for high in scores[1] for low in scores[0])


@pytest.mark.parametrize(
    ("kind", "values", "groups"),
    [
        ("STRING", ["(null)", None, "(other)", "x", "x"], {"(null)": 10, "(other)": 5, "x": 10}),
        ("FLOAT", [0.0, -0.0, 0.1, math.nan, None], {"(null)": 10, "0.0": 10, "0.1": 5}),
    ],
    ids=["written like those groups", "zeros and NaN"],
)
def test_values_belong_to_the_groups_of_null_and_others(
    spark: SparkSession, kind: str, values: list[Any], groups: dict[str, int]
) -> None:
    rows = [(number, number % 2 == 0, number / 100, values[number % 5]) for number in range(50)]
    frame = spark.createDataFrame(rows, f"id INT, y BOOLEAN, s DOUBLE, g {kind}")
    crosses = biasspark.auc_crosses(frame, id="id", models=["s"], label="y", groupings={"g": "g"}).collect()
    assert {row["positive_group"]: row["n_positive"] for row in crosses} == groups
    assert len(crosses) == len(groups) ** 2


HOSTILE = ("it's", "\\", "a\\nb", "${x} $1", 'say "so"\n', "", "' OR 1=1 --", "null", "ünï 😀")


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_a_bin_is_what_its_predicate_selects(spark: SparkSession, kind: str) -> None:
    """In Spark as in DuckDB. Both zeros are one value. NaN is NULL as a category, and above all others as a number."""
    levels = [0.0, -0.0, 0.1, math.nan, None]
    rows = [(number, levels[number % 5], (*HOSTILE, None)[number % 10]) for number in range(50)]
    frame = spark.createDataFrame(rows, f"id INT, level {kind}, `job's` STRING")
    features = survey_values(
        frame, Attribution(numeric=("level",), categorical=("level", "job's"), tree=TreeSettings())
    ).features
    assert features[1].values == ("0.0", "0.1")
    assert set(features[2].values) == set(HOSTILE)
    columns = row_columns(Attribution(), features, frame, "id", Label(column="label")).values()
    kinds = [pa.float64() if feature.numeric else pa.string() for feature in features]
    values = zip(*frame.orderBy("id").select(*columns).collect(), strict=True)
    bins = [
        cut_into_bins(pa.array(column, arrow_kind), feature).tolist()
        for column, arrow_kind, feature in zip(values, kinds, features, strict=True)
    ]
    assert [len(set(of_feature)) for of_feature in bins] == [4, 3, 10]
    predicates = {
        write_predicate({index: frozenset({number})}, features): {
            row for row in range(50) if bins[index][row] == number
        }
        for index, feature in enumerate(features)
        for number in feature.bins
    }
    flags = frame.orderBy("id").select(*(F.expr(predicate) for predicate in predicates)).collect()
    for number, (predicate, inside) in enumerate(predicates.items()):
        assert {row for row in range(50) if flags[row][number]} == inside, predicate
    with duckdb.connect() as connection:
        connection.execute(f"""CREATE TABLE rows (id INT, level {kind}, "job's" VARCHAR)""")
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", rows)
        for predicate, inside in predicates.items():
            written = predicate.replace("`job's`", '"job\'s"')
            assert {row for (row,) in connection.sql(f"SELECT id FROM rows WHERE {written}").fetchall()} == inside


def test_columns_that_tell_no_groups_are_refused(spark: SparkSession) -> None:
    """So many categories or groups, since they may be the texts; and a text without numbers as a number."""
    frame = spark.range(1100).selectExpr("id", "id % 2 = 0 AS y", "rand(1) AS s", "concat('text ', id) AS text")
    wrong: list[tuple[Callable[..., object], dict[str, Any], KeyPath]] = [
        (biasspark.attribution_segments, {"categorical": ["text"]}, ("attribution", "categorical")),
        (biasspark.attribution_segments, {"numeric": ["text"]}, ("attribution", "numeric")),
        (biasspark.auc_crosses, {"groupings": {"by": "text"}}, ("attribution", "groupings", "by")),
    ]
    for function, asked, path in wrong:
        fault = raised_fault(InputError, function, frame, id="id", models=["s"], label="y", **asked)
        assert fault.path == path
        assert "text 1" not in str(fault)


def test_very_many_numbers_are_counted_by_range(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bins as where a task counts them all."""
    frame = spark.range(0, 5000, 1, 3).selectExpr(
        "id", "IF(id % 9 = 0, NULL, (id * 7919) % 3001 / 7D) AS x", "id % 3 AS y"
    )
    attribution = Attribution(numeric=("x", "y"), tree=TreeSettings(max_bins=40))
    x, y = survey_values(frame, attribution).features
    monkeypatch.setattr(value_counts, "MAX_NUMBERS", 320)
    monkeypatch.setattr(value_counts, "_ROWS_A_RANGE", 600)
    assert survey_values(frame, attribution).features == (x, y)
    assert (len(x.values), y.values, x.nullable, y.nullable) == (40, (0.0, 1.0, 2.0), True, False)
