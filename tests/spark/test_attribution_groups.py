"""Groups, bins and conditions of attribution: which rows they hold, in Spark and in DuckDB."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import duckdb
import pyspark.sql.functions as F
import pytest
from pyspark.sql import SparkSession

import biasspark
from biasspark.config import Attribution, TreeSettings
from biasspark.corpus.feature_columns import bin_columns, flag_rows, only_estimates, survey_features
from biasspark.errors import Fault, InputError, KeyPath
from biasspark.expressions.conditions import MOST_BITS
from biasspark.features import Condition, Feature, write_predicate


def test_each_of_many_conditions_is_met_by_its_rows(spark: SparkSession) -> None:
    """More of them than one word has bits."""
    features = (Feature("x", "x", True, (0.0, 1.0, 2.0), True), Feature("k", "k", False, ("a", "b"), False))
    of_x, of_k = (
        [frozenset(bins) for size in range(1, len(every)) for bins in combinations(every, size)]
        for every in ((0, 1, 2, 3), (1, 2))
    )
    conditions: list[Condition] = [{}, *({0: x} for x in of_x), *({1: k} for k in of_k)]
    conditions += [{0: x, 1: k} for x in of_x for k in of_k] + [{1: k, 0: x} for x in of_x for k in of_k]
    assert MOST_BITS < len(conditions) < 2 * MOST_BITS
    rows = [(n, [None, 0.5, 1.0, 7.0][n % 4], "ab"[n % 3 % 2]) for n in range(60)]
    frame = spark.createDataFrame(rows, "id INT, x DOUBLE, k STRING")
    marked, words = flag_rows(frame, features, "id", TreeSettings(), conditions)
    honest = {row["id"] for row in frame.where(only_estimates("id", TreeSettings())).collect()}
    assert 10 < len(honest) < 50
    for number, *found in marked.select("id", *words).collect():
        bins = {0: number % 4, 1: 1 + number % 3 % 2}
        for place, condition in enumerate(conditions):
            is_met = number in honest and all(bins[feature] in own for feature, own in condition.items())
            assert found[place // MOST_BITS] >> place % MOST_BITS & 1 == is_met, (number, condition)


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
    others = whole["others"]
    assert (others["n_positive"], others["n_negative"], others["n_pairs"]) == (4, 4, 16)
    own = [[float(group + 3 * label) for group in range(4)] for label in (False, True)]
    assert others["ordered_doubled"] == sum(2 * (high > low) + (high == low) for high in own[1] for low in own[0])


def test_values_that_are_written_like_the_groups_of_null_and_others_belong_to_them(spark: SparkSession) -> None:
    values = ["(null)", None, "(other)", "x"]
    frame = spark.createDataFrame(
        [(n, n % 2 == 0, float(n % 7), values[n % 4]) for n in range(40)], "id INT, y BOOLEAN, s DOUBLE, g STRING"
    )
    rows = biasspark.auc_crosses(frame, id="id", models=["s"], label="y", groupings={"g": "g"}).collect()
    groups = {row["positive_group"]: row["n_positive"] for row in rows}
    assert groups == {"(null)": 10, "(other)": 10, "x": 0}
    assert len(rows) == 9


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_both_zeros_are_one_category_and_nan_is_null(spark: SparkSession, kind: str) -> None:
    """In groups, in the bins of a feature, and in the predicate that selects them, in Spark as in DuckDB."""
    levels = [0.0, -0.0, 0.1, math.nan, None]
    rows = [(number, number % 2 == 0, number / 100, levels[number % 5]) for number in range(50)]
    frame = spark.createDataFrame(rows, f"id INT, y BOOLEAN, s DOUBLE, level {kind}")
    found = biasspark.auc_crosses(frame, id="id", models=["s"], label="y", groupings={"g": "level"}).collect()
    assert {row["positive_group"]: row["n_positive"] for row in found} == {"(null)": 10, "0.0": 10, "0.1": 5}

    [feature] = survey_features(frame, Attribution(categorical=("level",)))
    assert feature.values == ("0.0", "0.1")
    [binned] = bin_columns([feature], frame.schema)
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE rows (id INT, level {kind})")
        connection.executemany("INSERT INTO rows VALUES (?, ?)", [(row[0], row[3]) for row in rows])
        for own in range(3):
            predicate = write_predicate({0: frozenset({own})}, [feature])
            wanted = {row["id"] for row in frame.where(binned == own).collect()}
            assert len(wanted) == (20, 20, 10)[own]
            assert {row["id"] for row in frame.where(predicate).collect()} == wanted
            assert {
                number for (number,) in connection.sql(f"SELECT id FROM rows WHERE {predicate}").fetchall()
            } == wanted


def test_columns_that_tell_no_groups_are_refused(spark: SparkSession) -> None:
    """So many categories or groups, since they may be the texts; and a text without numbers as a number."""
    frame = spark.range(1100).selectExpr("id", "id % 2 = 0 AS y", "rand(1) AS s", "concat('text ', id) AS text")
    wrong: list[tuple[Callable[..., object], dict[str, Any], KeyPath]] = [
        (biasspark.attribution_segments, {"categorical": ["text"]}, ("attribution", "categorical")),
        (biasspark.attribution_segments, {"numeric": ["text"]}, ("attribution", "numeric")),
        (biasspark.auc_crosses, {"groupings": {"by": "text"}}, ("attribution", "groupings", "by")),
    ]
    for function, asked, path in wrong:
        with pytest.raises(InputError) as caught:
            function(frame, id="id", models=["s"], label="y", **asked)
        (fault,) = caught.value.faults
        assert isinstance(fault, Fault)
        assert fault.path == path
        assert "text 1" not in str(fault)
