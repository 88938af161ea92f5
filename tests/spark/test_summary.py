"""The summary over identities against brute force."""

from __future__ import annotations

import contextlib
import io
import math
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from biasspark.config import Intervals, PinnedAuc
from biasspark.metrics.statistics import with_auc
from biasspark.metrics.summary import model_summary
from biasspark.tables.schemas import MODEL_SUMMARY
from scripts.drill_intervals import logit_interval
from tests.oracle.suite import (
    PAIRS,
    STATISTICS_SCHEMA,
    auc_by_pairs,
    cut_cells,
    delong_variance,
    pinned_auc,
    power_mean,
    statistics_rows,
)

AUCS = ("subgroup_auc", "bpsn_auc", "bnsp_auc")
GAPS = ("negative_aeg", "positive_aeg")
Corpus = tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]


def make_corpus(seed: int, rows: int = 500) -> Corpus:
    rng = np.random.default_rng(seed)
    label = rng.random(rows) < 0.25
    score = np.round(rng.normal(label * 1.5, 1), 1)
    identities = {f"i{k}": (rng.random(rows) < 0.1 * k).astype(float) for k in range(1, 6)}
    identities["i1 & i2"] = 1 - identities["i1"]  # far from all others: it must not count
    identities["unknown"] = np.where(rng.random(rows) < 0.6, np.nan, rng.random(rows) < 0.4)
    identities["all negative"] = np.where(label, 0.0, identities["i3"])
    identities["nobody"] = np.zeros(rows)
    identities["everybody"] = np.ones(rows)
    return score, label, identities


def summarise(spark: SparkSession, rows: list[tuple[object, ...]], partitions: int = 2) -> DataFrame:
    statistics = spark.createDataFrame(rows, STATISTICS_SCHEMA).repartition(partitions, "u_doubled")
    return model_summary(with_auc(statistics), Intervals(), PinnedAuc())


def expect(score: np.ndarray, label: np.ndarray, identities: dict[str, np.ndarray]) -> dict[str, Any]:
    names = sorted(name for name in identities if " & " not in name)
    overall = auc_by_pairs(score[~label], score[label])
    values: dict[str, dict[str, float]] = {metric: {} for metric in PAIRS}
    for name in names:
        cells = cut_cells(score, label, identities[name])
        for metric, (low, high) in PAIRS.items():
            auc = auc_by_pairs(cells[low], cells[high])
            if not math.isnan(auc):
                values[metric][name] = auc - 0.5 * (metric in GAPS)
    wanted: dict[str, Any] = {"auc": overall, "auc_variance": delong_variance(score[~label], score[label])}
    for metric in AUCS:
        found = values[metric]
        wanted[f"{metric}_min"], wanted[f"{metric}_min_identity"] = min((v, k) for k, v in found.items())
        wanted[f"{metric}_max"], wanted[f"{metric}_power_mean"] = max(found.values()), power_mean(list(found.values()))
    for metric in GAPS:
        size, name = min((-abs(v), k) for k, v in values[metric].items())
        wanted[f"{metric}_max_abs"], wanted[f"{metric}_max_abs_identity"] = -size, name
    wanted["n_identities_undefined"] = sum(any(name not in values[m] for m in AUCS + GAPS) for name in names)
    wanted["competition_score"] = 0.25 * (overall + sum(wanted[f"{metric}_power_mean"] for metric in AUCS))
    pinned = [pinned_auc(score, label, identities[name]) for name in names]
    wanted["pinned_auc_equality_difference"] = sum(abs(overall - p) for p in pinned if not math.isnan(p))
    return wanted


def cases() -> dict[str, Corpus]:
    """Corpora by the name of the slice as which each is summarised, all in one query."""
    score, label, identities = make_corpus(1)
    halves = np.array([1.0, 1.0, 0.0, 0.0])
    one_sided = {"below": np.array([1.0, 1, 0, 0, 0, 0, 0, 0]), "inner": np.eye(8)[4]}
    lacking = {"no negatives": [True, True], "no positives": [False, False], "no rows": []}
    return {
        "seed 1": (score, label, identities),
        "seed 2": make_corpus(2),
        "no identities": (score, label, {}),
        "a zero": (
            np.array([3.0, 1.0, 2.0, 4.0]),
            np.array([False, True, False, True]),
            {"worst": halves, "best": 1 - halves},
        ),
        "twins": (score, label, dict.fromkeys(("zoe", "amy", "Zoe"), identities["i3"])),
        "below": (np.arange(8.0), np.zeros(8, bool), one_sided),
        "tied": (np.zeros(6), np.arange(6) % 2 == 0, {"i": (np.arange(6) < 3).astype(float)}),
        **{
            name: (np.arange(len(labels), dtype=float), np.array(labels, bool), {"i": np.ones(len(labels))})
            for name, labels in lacking.items()
        },
    }


@pytest.fixture(scope="module")
def found(spark_session: SparkSession) -> dict[str, Row]:
    rows = [row for name, corpus in cases().items() for row in statistics_rows(*corpus, ("m", name))]
    return {row.slice: row for row in summarise(spark_session, rows).collect()}


@pytest.mark.parametrize("name", ["seed 1", "seed 2"])
def test_every_aggregate_agrees_with_brute_force(found: dict[str, Row], name: str) -> None:
    row, (score, label, identities) = found[name].asDict(), cases()[name]
    for column, value in expect(score, label, identities).items():
        assert row[column] == (pytest.approx(value, abs=1e-12) if isinstance(value, float) else value), column
    assert (row["n_negative"], row["n_positive"]) == ((~label).sum(), label.sum())
    assert (row["auc_method"], row["auc_reason"]) == ("logit_delong", None)
    wanted = logit_interval(row["auc"], row["auc_variance"])
    assert (row["auc_low"], row["auc_high"]) == pytest.approx(wanted, abs=1e-12)


def test_columns_stand_in_the_order_of_the_contract(found: dict[str, Row]) -> None:
    assert tuple(found["seed 1"].asDict()) == MODEL_SUMMARY.value_columns


def test_a_slice_without_identities_has_its_overall_auc_and_nothing_else(found: dict[str, Row]) -> None:
    score, label, _ = make_corpus(1)
    row = found["no identities"].asDict()
    assert row["auc"] == auc_by_pairs(score[~label], score[label])
    assert row["n_identities_undefined"] == 0
    aggregates = [column for column in row if column.startswith((*AUCS, *GAPS, "competition", "pinned"))]
    assert {row[column] for column in aggregates} == {None}


@pytest.mark.parametrize(
    ("name", "reason"),
    [("no negatives", "no_negatives"), ("no positives", "no_positives"), ("no rows", "no_negatives")],
)
def test_a_slice_that_lacks_a_class_says_so(found: dict[str, Row], name: str, reason: str) -> None:
    row = found[name]
    assert (row.auc, row.auc_low, row.auc_method, row.auc_reason) == (None, None, "none", reason)
    assert (row.competition_score, row.pinned_auc_equality_difference, row.subgroup_auc_min) == (None, None, None)
    assert row.n_identities_undefined == 1


def test_a_power_mean_over_a_zero_is_zero(found: dict[str, Row]) -> None:
    row = found["a zero"]
    assert (row.subgroup_auc_min, row.subgroup_auc_min_identity, row.subgroup_auc_max) == (0.0, "worst", 1.0)
    assert row.subgroup_auc_power_mean == 0.0


def test_equal_identities_are_told_apart_by_name(found: dict[str, Row]) -> None:
    row = found["twins"]
    named = {row[f"{metric}_min_identity"] for metric in AUCS} | {row[f"{metric}_max_abs_identity"] for metric in GAPS}
    assert named == {"Zoe"}


def test_a_gap_counts_by_its_size_whatever_its_sign(found: dict[str, Row]) -> None:
    row = found["below"]
    assert (row.negative_aeg_max_abs, row.negative_aeg_max_abs_identity) == (0.5, "below")
    assert row.positive_aeg_max_abs is None


def test_no_double_is_nan_or_minus_zero(found: dict[str, Row]) -> None:
    assert set(found) == set(cases())
    for row in found.values():
        for value in row:
            assert not isinstance(value, float) or (
                not math.isnan(value) and (value or math.copysign(1, value) == 1)
            ), row.slice


@pytest.mark.slow
def test_models_and_slices_stay_apart_and_bits_do_not_depend_on_partitions(spark: SparkSession) -> None:
    rows = [
        row
        for seed, key in enumerate([("a", "all"), ("a", "short"), ("b", "all")])
        for row in statistics_rows(*make_corpus(seed), key)
    ]
    tables = []
    for partitions in (1, 3, 17):
        shuffled = [rows[i] for i in np.random.default_rng(partitions).permutation(len(rows))]
        tables.append(sorted(summarise(spark, shuffled, partitions).collect()))
    assert tables[0] == tables[1] == tables[2]
    assert [(row.model, row.slice) for row in tables[0]] == [("a", "all"), ("a", "short"), ("b", "all")]
    for row, seed in zip(tables[0], range(3), strict=True):
        assert row.competition_score == pytest.approx(expect(*make_corpus(seed))["competition_score"], abs=1e-12)


def test_one_shuffle_besides_the_readers_own(spark: SparkSession) -> None:
    statistics = with_auc(spark.createDataFrame(statistics_rows(*make_corpus(1)), STATISTICS_SCHEMA))
    plan = io.StringIO()
    with contextlib.redirect_stdout(plan):
        model_summary(statistics, Intervals(), PinnedAuc()).explain()
    assert plan.getvalue().count("Exchange") == 0
