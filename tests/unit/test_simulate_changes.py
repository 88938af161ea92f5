"""The simulation behind rules on changes, by what it left behind."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kept_simulations import read_kept


@pytest.fixture(scope="module")
def results() -> list[dict[str, Any]]:
    return list(read_kept("change_errors.json")["results"])


def test_a_change_of_just_the_bound_seldom_seems_otherwise(results: list[dict[str, Any]]) -> None:
    at_bound = [one for one in results if one["change"] != "nothing"]
    assert len(at_bound) == 13
    assert {one["common"] for one in at_bound} == {1.0, 0.5, 0.0}
    assert max(max(one["violation"], one["compliance"]) for one in at_bound) < 0.07


def test_of_few_rows_the_jackknife_alone_would_show_too_much(results: list[dict[str, Any]]) -> None:
    few = [one for one in results if one["change"] == "few rows"]
    assert min(one["compliance_by_jackknife_alone"] for one in few) > 0.07
    assert max(one["compliance_by_jackknife_alone"] for one in few) > 0.15
    assert max(one["compliance"] for one in few) < 0.05


def test_the_same_ids_show_that_nothing_changed_where_others_cannot(results: list[dict[str, Any]]) -> None:
    kept = {(one["bound"], tuple(one["rows"])): one for one in results if one["change"] == "nothing"}
    for place in ((0.01, (1000, 1000)), (0.02, (300, 300))):
        assert kept[place]["compliance"] > 0.95
        assert kept[place]["compliance_added"] < 0.05
    assert max(one["violation"] for one in kept.values()) == 0
