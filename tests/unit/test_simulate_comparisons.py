"""The simulation behind the intervals of comparisons, by what it left behind."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kept_simulations import read_kept


@pytest.fixture(scope="module")
def results() -> list[dict[str, Any]]:
    return list(read_kept("comparison_coverage.json")["results"])


def test_intervals_cover_from_30_rows_on(results: list[dict[str, Any]]) -> None:
    large = [one for one in results if min(one["rows"]) >= 30 and not one["clusters"]]
    assert len(large) == 78
    assert min(one["coverage"] for one in large) > 0.925
    assert sum(one["coverage"] for one in large) / len(large) > 0.95


def test_equally_good_models_seldom_seem_to_differ(results: list[dict[str, Any]]) -> None:
    equal = [one for one in results if len({abs(value) for value in one["values"]}) == 1 and not one["clusters"]]
    assert max(one["seen"] for one in equal if min(one["rows"]) >= 30) < 0.07
    assert max(one["seen"] for one in equal) < 0.09
    alike = [one for one in equal if one["values"] == [0.0, 0.0]]
    assert max(one["seen"] for one in alike) < 0.01


def test_clusters_need_the_jackknife(results: list[dict[str, Any]]) -> None:
    seen = {one["method"]: one["seen"] for one in results if one["clusters"] == "apart" and one["rows"] == [500, 500]}
    assert seen["jackknife"] < 0.05
    assert seen["delong"] > 0.35


def test_few_clusters_do_not_seem_to_be_certain(results: list[dict[str, Any]]) -> None:
    few = [one for one in results if one["clusters"] and one["rows"] != [500, 500]]
    assert len(few) == 21
    assert max(one["insufficient"] for one in few) == 0
    opposite = [one for one in few if one["values"][0] * one["values"][1] < 0]
    others = [one for one in few if one not in opposite]
    assert min(one["coverage"] for one in others) > 0.925
    equal = [one["seen"] for one in others if one["values"][0] == one["values"][1]]
    assert len(equal) == 12
    assert max(equal) < 0.075


def test_gaps_of_opposite_signs_seem_different_a_little_too_often_with_few_clusters(
    results: list[dict[str, Any]],
) -> None:
    opposite = [one for one in results if one["clusters"] and one["values"][0] * one["values"][1] < 0]
    assert [one["rows"] for one in opposite] == [[50, 600], [100, 600], [150, 600]]
    assert min(one["coverage"] for one in opposite) > 0.915
    assert max(one["seen"] for one in opposite) < 0.085
