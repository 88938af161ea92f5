"""What "Attributing AUC-ROC to Analyze Binary Classifier Performance" reports, on the census and loan data it used.

The scores are those of models of the same kinds, fitted anew: figures differ from the paper's, its findings do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import biasspark
from tests.harness.documents import blocks_of

CENSUS: dict[str, Any] = {
    "id": "row_id",
    "label": "label",
    "models": {"lr": "score_lr", "rf": "score_rf", "rf_small": "score_rf_small"},
}
LR = CENSUS | {"models": {"lr": "score_lr"}}
NUMERIC = ["age", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
CATEGORICAL = ["workclass", "education", "marital_status", "occupation", "race", "sex", "native_country"]
FEATURES: dict[str, Any] = {"numeric": NUMERIC, "categorical": CATEGORICAL}
MARRIED = "marital_status = 'Married-civ-spouse'"
AUCS = {"lr": 0.9052, "rf": 0.8895, "rf_small": 0.7904}


@pytest.fixture(scope="module")
def census(spark_session: SparkSession, shared_data: Path) -> DataFrame:
    return spark_session.read.parquet(str(shared_data / "adult" / "adult_test_scored.parquet"))


def test_losses_of_the_forest_and_the_regression(census: DataFrame) -> None:
    """Table 1: the forest has the worse cross-entropy and the better Gini impurity."""
    segments = {"young": "age <= 25", "older": "age > 25", "middle": "age > 25 AND age < 34"}
    rows = biasspark.loss_by_segment(census, segments=segments, **CENSUS).collect()
    found = {(row["model"], row["segment"]): row for row in rows}
    for model, auc in AUCS.items():
        assert found[model, "(overall)"]["auc"] == pytest.approx(auc, abs=5e-5)
    assert found["rf", "(overall)"]["cross_entropy"] == pytest.approx(0.473, abs=5e-4)
    assert found["rf", "(overall)"]["gini_impurity"] == pytest.approx(0.192, abs=5e-4)
    assert found["lr", "(overall)"]["cross_entropy"] == pytest.approx(0.318, abs=5e-4)
    assert found["lr", "(overall)"]["gini_impurity"] == pytest.approx(0.203, abs=5e-4)
    for segment in ("(overall)", "older", "middle"):
        forest, regression = found["rf", segment], found["lr", segment]
        assert forest["cross_entropy"] > regression["cross_entropy"]
        assert forest["gini_impurity"] < regression["gini_impurity"]


@pytest.mark.slow
def test_the_documents_print_leaves_of_the_census(census: DataFrame) -> None:
    """Each line names a leaf: by its rows, its mean, the interval, and whether it is found."""
    (block,) = blocks_of("text", "leaves of the census")
    features = FEATURES | {"categorical": [name for name in CATEGORICAL if name != "education"]}
    leaves = biasspark.attribution_segments(
        census, compare=[("rf_small", "lr")], tree={"max_depth": 3}, **features, **CENSUS
    ).where("is_leaf")
    ends = ("mean_honest", "mean_honest_low", "mean_honest_high")
    found = {
        (row.model, str(row.n_honest), *(f"{row[end]:.4f}" for end in ends), str(row.found)) for row in leaves.collect()
    }
    numbers = re.findall(r"^(\w+) .* (\d+) +(\S+) +(\S+) +(\S+) +(True|False)$", block.text, re.MULTILINE)
    assert len(numbers) == 3
    assert set(numbers) <= found


def test_pairs_with_married_negatives_are_worst(census: DataFrame) -> None:
    """Section 6.4: 1,000 rows a side grow the tree, and as many others estimate."""
    rows = biasspark.pair_segments(census, **FEATURES, **LR).collect()
    leaves = sorted((row for row in rows if row["is_leaf"]), key=lambda row: row["mean_honest"])
    assert len(leaves) > 4
    assert all(leaf["p_chance"] is not None for leaf in leaves)
    worst = leaves[0]
    assert worst["found"]
    assert worst["mean_honest"] < 0.7
    assert census.where(f"NOT label AND ({worst['negative_predicate']})").where(f"NOT ({MARRIED})").count() == 0
    assert leaves[-1]["found"]
    assert leaves[-1]["mean_honest"] > 0.97


def auc_over(rows: list[Any], positive: Callable[[str], bool], negative: Callable[[str], bool]) -> float:
    """AUC of the union of some crosses: pairs and ordered pairs add up."""
    chosen = [row for row in rows if positive(row["positive_group"]) and negative(row["negative_group"])]
    return float(sum(row["ordered_doubled"] for row in chosen)) / 2 / float(sum(row["n_pairs"] for row in chosen))


def test_crosses_of_marriage_and_relationship(census: DataFrame) -> None:
    """Sections 6.1 to 6.3: figures 2 and 4."""
    groupings = {"married": MARRIED, "relationship": "relationship"}
    rows = biasspark.auc_crosses(census, groupings=groupings, **LR).collect()
    married = {(row["positive_group"], row["negative_group"]): row for row in rows if row["grouping"] == "married"}
    assert married["true", "false"]["auc"] > 0.96
    assert 0.45 <= married["false", "true"]["auc"] <= 0.65
    kinds = [row for row in rows if row["grouping"] == "relationship"]
    most = max(kinds, key=lambda row: row["headroom_share"])
    assert (most["positive_group"], most["negative_group"]) == ("Husband", "Husband")
    assert sum(row["headroom_share"] for row in kinds if row["negative_group"] == "Husband") > 0.5
    assert sum(row["headroom_share"] for row in kinds) == pytest.approx(1, abs=1e-12)


def test_named_pairs_are_those_of_table_7_in_its_order(census: DataFrame) -> None:
    """The AUC of each is that of the crosses that it is the union of."""
    pairs = {
        "1": (MARRIED, "education_num <= 10 AND capital_gain <= 5056"),
        "2": (MARRIED, f"education_num > 10 AND NOT ({MARRIED})"),
        "3": (f"NOT ({MARRIED}) AND capital_gain <= 4533", f"NOT ({MARRIED}) AND education_num <= 12"),
        "4": (f"NOT ({MARRIED}) AND capital_gain <= 4533", MARRIED),
    }
    asked = {name: {"negatives": low, "positives": high} for name, (low, high) in pairs.items()}
    found = {row["pair"]: row for row in biasspark.named_pairs(census, pairs_of=asked, **LR).collect()}
    sides = [f"CAST(({text}) AS STRING)" for pair in pairs.values() for text in pair]
    cell = f"concat_ws('', {', '.join(f'left({side}, 1)' for side in sides)})"
    rows = biasspark.auc_crosses(census, groupings={"cell": cell}, **LR).collect()
    for number, name in enumerate(pairs):
        auc = auc_over(rows, lambda g, n=number: g[2 * n + 1] == "t", lambda g, n=number: g[2 * n] == "t")  # type: ignore[misc]
        assert found[name]["auc"] == pytest.approx(auc, abs=1e-15)
        assert found[name]["auc_low"] < auc < found[name]["auc_high"]
    aucs = [row["auc"] for row in found.values()]
    assert aucs == sorted(aucs)
    assert aucs[0] < 0.75
    assert 0.8 < aucs[2] < 0.97 < aucs[3]


def test_grades_of_loans(spark: SparkSession, shared_data: Path) -> None:
    """Figure 2: the AUC of loans of grade A that are charged off and those of G that are not, and the reverse."""
    path = shared_data / "lending_club_2007_2011" / "loans.parquet"
    loans = spark.read.parquet(str(path)).where("split = 'test'")
    rows = biasspark.auc_crosses(
        loans, id="row_id", models={"lr": "score_lr"}, label="label", groupings={"grade": "grade"}
    )
    found = {(row["positive_group"], row["negative_group"]): row["auc"] for row in rows.collect()}
    assert [found["A", "G"], found["G", "A"]] == pytest.approx([0.018, 1.000], abs=5e-4)


def test_the_example_of_table_2(spark: SparkSession) -> None:
    """AUC 8/9 where the slices have 1, 0 and 1. Once B is scored well by itself, AUC falls to 7/9 (section 5.1)."""
    ids, labels, slices = range(6), (0, 1, 0, 1, 0, 1), "AABBCC"
    scores = ((0.1, 0.5, *of_b, 0.1, 0.5) for of_b in ((0.3, 0.2), (0.6, 0.7)))
    frame = spark.createDataFrame(
        list(zip(ids, labels, *scores, slices, strict=True)), "id INT, y INT, s DOUBLE, mended DOUBLE, p STRING"
    )
    given: dict[str, Any] = {"id": "id", "models": ["s", "mended"], "label": "y", "label_threshold": 1.0}
    found = biasspark.loss_by_segment(frame, segments={name: f"p = '{name}'" for name in "ABC"}, **given).collect()
    for model, within_b, auc in (("s", 0.0, 8 / 9), ("mended", 1.0, 7 / 9)):
        aucs = {row["segment"]: row["auc"] for row in found if row["model"] == model}
        assert aucs == {"(overall)": pytest.approx(auc, abs=1e-15), "A": 1.0, "B": within_b, "C": 1.0}
