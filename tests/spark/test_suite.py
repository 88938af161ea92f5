"""The wide row of the suite against brute force."""

from __future__ import annotations

import math

import numpy as np
import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from biasspark.config import Intervals
from biasspark.metrics.statistics import with_auc
from biasspark.metrics.suite import SUITE, bias_metrics
from biasspark.tables.schemas import BIAS_METRICS
from scripts.drill_intervals import logit_interval, newcombe_interval
from tests.oracle.suite import (
    PAIRS,
    STATISTICS_SCHEMA,
    auc_by_pairs,
    cut_cells,
    delong_variance,
    statistics_rows,
)

CELLS = ("subgroup_negative", "subgroup_positive", "background_negative", "background_positive")


def make_corpus(rows: int = 240, seed: int = 5) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Scores with ties, labels, and identities that overlap, are unknown on some rows, small, empty or one-sided."""
    rng = np.random.default_rng(seed)
    label = rng.random(rows) < 0.3
    score = np.round(rng.normal(label * 1.2, 1), 1)
    identities = {"common": (rng.random(rows) < 0.4).astype(float), "rare": (rng.random(rows) < 0.05).astype(float)}
    identities["common & rare"] = identities["common"] * identities["rare"]
    identities["unknown"] = np.where(rng.random(rows) < 0.7, np.nan, rng.random(rows) < 0.5)
    identities["all negative"] = np.where(label, 0.0, identities["common"])
    identities["all positive"] = np.where(label, identities["common"], 0.0)
    identities["nobody"] = np.zeros(rows)
    identities["everybody"] = np.ones(rows)
    identities["never annotated"] = np.full(rows, np.nan)
    identities["one positive"] = (np.arange(rows) == np.flatnonzero(label)[0]).astype(float)
    return score, label, identities


def measure(spark: SparkSession, level: float = 0.95) -> DataFrame:
    statistics = with_auc(spark.createDataFrame(statistics_rows(*make_corpus()), STATISTICS_SCHEMA))
    return bias_metrics(statistics, Intervals(level=level))


@pytest.fixture(scope="module")
def found(spark_session: SparkSession) -> dict[str, Row]:
    return {row.identity: row for row in measure(spark_session).collect()}


def test_one_row_an_identity_and_none_for_the_whole_slice(found: dict[str, Row]) -> None:
    assert set(found) == set(make_corpus()[2])
    assert [name for name, row in found.items() if row.crossed] == ["common & rare"]


def test_columns_stand_in_the_order_of_the_contract(spark: SparkSession) -> None:
    assert tuple(measure(spark).columns) == BIAS_METRICS.value_columns


@pytest.mark.parametrize("identity", list(make_corpus()[2]))
def test_every_number_agrees_with_brute_force(found: dict[str, Row], identity: str) -> None:
    score, label, identities = make_corpus()
    cells, row = cut_cells(score, label, identities[identity]), found[identity]
    assert [row[f"n_{cell}"] for cell in CELLS] == [len(cells[cell]) for cell in CELLS]
    for metric, (low, high) in PAIRS.items():
        offset = 0.5 if metric.endswith("aeg") else 0.0
        auc, variance = auc_by_pairs(cells[low], cells[high]), delong_variance(cells[low], cells[high])
        ends = [row[f"{metric}_low"], row[f"{metric}_high"]]
        if math.isnan(auc):
            assert row[metric] is None
            assert row[f"{metric}_reason"] in {f"no_{low}s", f"no_{high}s"}
        else:
            assert (row[metric], row[f"{metric}_reason"]) == (auc - offset, None)
        if math.isnan(variance):
            assert (*ends, row[f"{metric}_method"]) == (None, None, "none")
        else:
            by_logit = row[f"{metric}_method"] == "logit_delong"
            sizes = (len(cells[low]), len(cells[high]))
            wanted = logit_interval(auc, variance) if by_logit else newcombe_interval(auc, *sizes)
            assert [end + offset for end in ends] == pytest.approx(wanted, abs=1e-12)


def test_rates(found: dict[str, Row]) -> None:
    label = make_corpus()[1]
    assert found["everybody"].subgroup_positive_rate == pytest.approx(label.mean())
    assert found["everybody"].background_positive_rate is None
    assert found["nobody"].subgroup_positive_rate is None
    assert found["all negative"].subgroup_positive_rate == 0.0
    assert found["never annotated"].background_positive_rate is None


def test_the_reason_names_the_empty_cell_the_subgroups_first(found: dict[str, Row]) -> None:
    def reasons(identity: str) -> list[str]:
        return [found[identity][f"{metric}_reason"] for metric in PAIRS]

    assert reasons("nobody") == [
        "no_subgroup_negatives",
        "no_subgroup_negatives",
        "no_subgroup_positives",
        None,
        "no_subgroup_negatives",
        "no_subgroup_positives",
    ]
    assert reasons("everybody") == [
        None,
        "no_background_positives",
        "no_background_negatives",
        "no_background_negatives",
        "no_background_negatives",
        "no_background_positives",
    ]
    assert reasons("never annotated") == [
        "no_subgroup_negatives",
        "no_subgroup_negatives",
        "no_subgroup_positives",
        "no_background_negatives",
        "no_subgroup_negatives",
        "no_subgroup_positives",
    ]
    assert reasons("all negative")[0] == "no_subgroup_positives"
    assert reasons("all positive")[0] == "no_subgroup_negatives"


def test_no_double_is_nan_or_minus_zero(found: dict[str, Row]) -> None:
    for row in found.values():
        for value in row:
            if isinstance(value, float):
                assert not math.isnan(value)
                assert value != 0 or math.copysign(1, value) == 1


def test_all_scores_equal_is_half_and_no_gap(spark: SparkSession) -> None:
    _, label, identities = make_corpus()
    rows = statistics_rows(np.zeros(len(label)), label, {"common": identities["common"]})
    row = bias_metrics(with_auc(spark.createDataFrame(rows, STATISTICS_SCHEMA)), Intervals()).collect()[0]
    assert [row[metric.name] for metric in SUITE] == [0.5, 0.5, 0.5, 0.5, 0.0, 0.0]
    assert {row[f"{metric.name}_method"] for metric in SUITE} == {"newcombe"}
    assert row.negative_aeg_low < 0 < row.negative_aeg_high


def test_models_and_slices_stay_apart(spark: SparkSession) -> None:
    score, label, identities = make_corpus()
    common = {"common": identities["common"]}
    keys = [(model, slice_) for model in ("a", "b") for slice_ in ("all", "short")]
    rows = [row for i, key in enumerate(keys) for row in statistics_rows(score * (-1) ** i, label, common, key)]
    table = bias_metrics(with_auc(spark.createDataFrame(rows, STATISTICS_SCHEMA)), Intervals())
    aucs = {(row.model, row.slice): row.subgroup_auc for row in table.collect()}
    assert set(aucs) == set(keys)
    assert aucs["a", "all"] == aucs["b", "all"] == pytest.approx(1 - aucs["a", "short"])


def test_a_higher_level_is_wider(spark: SparkSession, found: dict[str, Row]) -> None:
    wider = {row.identity: row for row in measure(spark, level=0.99).collect()}["common"]
    for metric in PAIRS:
        assert wider[f"{metric}_low"] < found["common"][f"{metric}_low"] <= found["common"][metric]
        assert wider[f"{metric}_high"] > found["common"][f"{metric}_high"] >= found["common"][metric]


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 3, 17])
def test_the_bits_do_not_depend_on_partitions(spark: SparkSession, found: dict[str, Row], partitions: int) -> None:
    rows = statistics_rows(*make_corpus())
    shuffled = [rows[i] for i in np.random.default_rng(partitions).permutation(len(rows))]
    statistics = with_auc(
        spark.createDataFrame(shuffled, STATISTICS_SCHEMA).repartition(partitions, F.col("u_doubled"))
    )
    again = {row.identity: row for row in bias_metrics(statistics, Intervals()).collect()}
    assert again == found
