"""How often attribution finds something in nothing, by what the simulation left behind."""

from __future__ import annotations

import numpy as np
import pytest

from biasspark.config.attribution import Pairs, SliceSearch, TreeSettings
from scripts.simulate_attribution import AUCS, ROWS, SEARCHES, draw_rows, simulate
from tests.kept_simulations import read_kept


def test_little_is_found_in_a_thousand_runs_of_nothing() -> None:
    """In at most 5 % and three standard errors of them, while there is much that might be.

    Where nearly all pairs are rightly ordered, what is found is more, and what is confirmed is not.
    """
    kept = read_kept("attribution_of_nothing.json")
    assert kept["settings"] == {"rows": ROWS, "runs": 1000, "seed": 20220310}
    assert [(one["kind"], one["auc"]) for one in kept["results"]] == [(kind, auc) for kind in SEARCHES for auc in AUCS]
    assert max(one["found"] for one in kept["results"] if one["auc"] <= 0.9) <= 0.07
    assert max(one["confirmed"] for one in kept["results"]) <= 0.07
    assert min(one["tested"] for one in kept["results"]) > 4
    assert min(one["doubted"] for one in kept["results"]) > 0.1


def test_rows_are_enough_for_the_settings_that_nobody_chose() -> None:
    assert ROWS * TreeSettings.honest_fraction > 2**TreeSettings.max_depth * TreeSettings.min_leaf
    assert ROWS * TreeSettings.honest_fraction > SliceSearch.max_bins * SliceSearch.min_rows
    assert Pairs().min_leaf is None


@pytest.mark.parametrize("kind", SEARCHES)
def test_it_is_the_product_that_searches(kind: str) -> None:
    found = simulate(kind, 0.9, 12, [1])
    assert found["tested"] > 4
    assert found["found"] <= 3 / 12


def test_attributions_are_those_of_the_auc() -> None:
    alone, compared = (draw_rows(np.random.default_rng(2), aucs).values * 2.0**-30 for aucs in ([0.9], [0.9, 0.95]))
    assert alone.mean() == pytest.approx(0.45, abs=0.01)
    assert compared.mean() == pytest.approx(-0.025, abs=0.01)
