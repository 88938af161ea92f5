"""Pinned AUC against brute force over all pairs of weighted rows, and its sampling against another one."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

import biasspark
from biasspark.errors import ConfigError
from biasspark.tables.schemas import PINNED_AUC
from tests.awkward_corpus import (
    Case,
    Meaning,
    assert_rows,
    frame_of,
    in_order,
    is_crossed,
    make_rows,
    measures,
    shuffled,
)
from tests.oracle import further

ROWS = make_rows()
TRIALS = 300
MODELS = {"tied": "s1", "logit": "s3"}


def cases_of(unannotated: str) -> list[Case]:
    return [case for case in Meaning(ROWS, unannotated).cases() if case.model in MODELS]


def wanted_rows(unannotated: str, include_subgroup: bool) -> list[dict[str, Any]]:
    rows = []
    for case in cases_of(unannotated):
        overall = further.overall_auc(case.score, case.label)
        for identity, inside in case.identities.items():
            values = further.pinned_auc(case.score, case.label, inside, include_subgroup)
            key = case.key | {"identity": identity, "crossed": is_crossed(identity)}
            rows.append(key | values | {"overall_auc": overall})
    return rows


SAMPLED = {"trials", "sampled_mean", "sampled_sd"}


@pytest.fixture(scope="module")
def sampled(spark_session: SparkSession) -> list[Row]:
    frame, asked = frame_of(spark_session, ROWS, 3), measures(models=MODELS)
    return biasspark.pinned_auc(frame, trials=TRIALS, seed=5, ranges=3, **asked).collect()


def test_value_weights_and_terms(sampled: list[Row]) -> None:
    assert_rows(sampled, wanted_rows("exclude", True), PINNED_AUC, SAMPLED)
    assert {"nobody", "big"} <= {row.identity for row in sampled if row.pinned_auc is None}
    assert {row.trials for row in sampled} == {TRIALS}


@pytest.mark.parametrize("engine", ["blocks", pytest.param("windows", marks=pytest.mark.slow)])
def test_background_without_the_subgroup_and_no_trials(spark: SparkSession, engine: str) -> None:
    frame = biasspark.pinned_auc(
        frame_of(spark, shuffled(ROWS), 1),
        include_subgroup_in_background=False,
        **measures("background", engine=engine, ranges=3, models={"tied": "s1"}),
    )
    wanted = [row for row in wanted_rows("background", False) if row["model"] == "tied"]
    found = frame.collect()
    assert_rows(found, wanted, PINNED_AUC, SAMPLED)
    assert {(row.trials, row.sampled_mean, row.sampled_sd) for row in found} == {(0, None, None)}


def test_weights_add_up_to_1(sampled: list[Row]) -> None:
    for row in sampled:
        weights = [row[f"{term}_weight"] for term in ("background", "subgroup", "bpsn", "bnsp")]
        assert weights == [None] * 4 if row.pinned_auc is None else abs(sum(weights) - 1.0) < 1e-12


def test_everybody_is_pinned_to_the_whole_slice(sampled: list[Row]) -> None:
    """With an empty background all rows are drawn from the subgroup: its AUC is all there is."""
    rows = [row for row in sampled if row.identity == "everybody" and row.slice != "nowhere"]
    assert rows
    for row in rows:
        assert (row.subgroup_weight, row.background_weight) == (1.0, 0.0)
        assert row.pinned_auc == row.subgroup_auc
        assert row.bpsn_auc is row.bnsp_auc is row.background_auc is None


def test_trials_vary_as_draws_without_replacement_do(sampled: list[Row]) -> None:
    """Mean and spread of 300 trials are those of 300 others, drawn by numpy."""
    by_key = {(row.model, row.slice, row.identity): row for row in sampled}
    for case in cases_of("exclude"):
        if case.slice != "all":
            continue
        for identity in ("c1", "big", "gay", "u & v"):
            row = by_key[case.model, case.slice, identity]
            others = further.sample_pinned_aucs(case.score, case.label, case.identities[identity], TRIALS, True)
            error = stdev(others) * (2 / TRIALS) ** 0.5
            assert abs(row.sampled_mean - fmean(others)) < 4 * error, (case.model, identity)
            # The standard error of a standard deviation of 300 normal draws is a twenty-fourth of it.
            assert 0.8 < row.sampled_sd / stdev(others) < 1.25, (case.model, identity)
            assert abs(row.sampled_mean - row.pinned_auc) < 4 * error + 0.005


def test_no_trial_where_there_is_no_subgroup_or_no_row(sampled: list[Row]) -> None:
    for row in sampled:
        if row.slice == "nowhere" or row.identity == "nobody":
            assert (row.sampled_mean, row.sampled_sd) == (None, None)


@pytest.mark.slow
def test_trials_follow_from_the_seed_alone(spark: SparkSession) -> None:
    few = measures(models={"narrow": "s2"}, slices=None)

    def draw(partitions: int, seed: int, **changes: Any) -> list[tuple[Any, ...]]:
        return in_order(
            biasspark.pinned_auc(
                frame_of(spark, shuffled(ROWS, partitions), partitions), trials=5, seed=seed, **few | changes
            ).collect()
        )

    once = draw(1, 7)
    assert draw(3, 7, ranges=7) == once
    other = draw(1, 8)
    assert other != once
    assert [row[:3] for row in other] == [row[:3] for row in once]


def test_drawn_from_the_rows_outside_of_the_subgroup(spark: SparkSession) -> None:
    """As the authors' published code draws; of `gay`, which is most rows, as many as there are others."""
    asked = measures("background", models={"tied": "s1"}, slices=None)
    found = biasspark.pinned_auc(
        frame_of(spark, ROWS), trials=TRIALS, include_subgroup_in_background=False, **asked
    ).collect()
    by_key = {(row.model, row.slice, row.identity): row for row in found}
    case, *_ = cases_of("background")
    for identity in ("c1", "gay", "big"):
        row, inside = by_key["tied", "all", identity], case.identities[identity]
        others = further.sample_pinned_aucs(case.score, case.label, inside, TRIALS, False)
        assert abs(row.sampled_mean - fmean(others)) < 4 * stdev(others) * (2 / TRIALS) ** 0.5, identity
        assert 0.8 < row.sampled_sd / stdev(others) < 1.25, identity


def test_summary_adds_up_what_the_table_says(spark: SparkSession, sampled: list[Row]) -> None:
    """The pinned AUC equality difference: the sum over identities of |AUC - pinned AUC|."""
    summary = biasspark.model_summary(frame_of(spark, ROWS), **measures(models=MODELS)).collect()
    assert len(summary) == 6
    for row in summary:
        own = [one for one in sampled if (one.model, one.slice) == (row.model, row.slice) and not one.crossed]
        terms = [abs(one.overall_auc - one.pinned_auc) for one in own if one.pinned_auc is not None]
        if terms:
            assert row.pinned_auc_equality_difference == pytest.approx(sum(terms), abs=1e-12)
        else:
            assert row.pinned_auc_equality_difference is None


def test_trials_want_blocks(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match=r'^trials = 3: the engine is "windows"'):
        biasspark.pinned_auc(frame_of(spark, ROWS[:9]), trials=3, **measures(engine="windows"))
