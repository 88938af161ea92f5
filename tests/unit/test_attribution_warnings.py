"""Warnings about searches without enough rows, whatever they predict."""

from __future__ import annotations

import numpy as np
import pytest

from biasspark.attribution.attribution_warnings import feature_warnings, search_warnings
from biasspark.attribution.measured_sets import MeasuredSet
from biasspark.attribution.moments import Moments
from biasspark.attribution.segments import TreeKey
from biasspark.attribution.slice_search import BestSlices
from biasspark.config import Attribution
from biasspark.config.attribution_settings import SliceSearch
from biasspark.features import Feature
from biasspark.ranking.feature_columns import SurveyedValues

GINI, AUC, COMPARED = TreeKey("m", "", "all", "gini"), TreeKey("m", "", "all", "auc"), TreeKey("m", "b", "all", "auc")


@pytest.mark.parametrize(("keys", "name"), [([GINI, AUC], "m"), ([GINI], "m"), ([COMPARED], "m against b")])
def test_each_model_is_warned_about_once(keys: list[TreeKey], name: str) -> None:
    for n_train, n_honest, n_few in ((90, 60, 1), (150, 0, 1), (900, 900, 0), (0, 0, COMPARED in keys)):
        roots = dict.fromkeys(keys, MeasuredSet(Moments(n_train), Moments(n_honest)))
        warnings = list(search_warnings(Attribution(), roots, {}, []))
        assert len(warnings) == n_few
        assert all(f"`{'tree' if n_train else 'compare'}`" in text and name in text for text in warnings)


def test_a_search_of_slices_is_warned_about_once() -> None:
    best = BestSlices([np.ones((2, 5), np.int64)], [Feature("k", "k", False, ("a",), True)], SliceSearch())
    of_slice = {AUC._replace(slice="short"): best}
    asked = Attribution(slice_search=SliceSearch())
    (text,) = search_warnings(asked, {}, {AUC: best, **of_slice, AUC._replace(model="n"): best}, [])
    assert "`slice_search` of m, n:" in text
    assert not [*search_warnings(asked, {}, of_slice, [])]
    best.left_out = 1
    assert len([*search_warnings(asked, {}, of_slice, [])]) == 1


@pytest.mark.parametrize("nullable", [False, True])
def test_rare_values_are_still_split_from_null(nullable: bool) -> None:
    rare = Feature("k", "k", numeric=False, values=("a", "b"), nullable=nullable, rare=frozenset({1, 2}))
    warnings = feature_warnings(SurveyedValues((rare,), (rare,), (), {}))
    assert any("`min_leaf`" in text for text in warnings) != nullable
