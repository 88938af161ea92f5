"""Plans of label balance, and lengths that are withheld."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasspark.config import Privacy
from biasspark.metrics.label_balance import label_balance, negatives_to_add


def test_where_no_bin_holds_a_positive_nothing_is_lacking() -> None:
    labels = np.array([[[0, 1], [1, 0]]] * 2)  # a positive outside of all bins
    plans = [row["n_negatives_to_add"] for row in label_balance(labels, ["(overall)", "g"], [(20, 59)]).to_pylist()]
    assert plans == [None, 0] * 2


def test_small_groups_and_what_is_left_without_them_are_suppressed() -> None:
    """Of (all): ten rows are enough, nine are not, nor are nine outside; nobody outside reveals nobody."""
    labels = np.array([[[40, 10]], [[5, 5]], [[5, 4]], [[35, 6]], [[40, 10]]])
    names = ["(overall)", "ten", "nine", "all but nine", "everybody"]
    rows = {row["identity"]: row for row in label_balance(labels, names, [], Privacy(min_group_rows=10)).to_pylist()}
    assert {name for name, row in rows.items() if row["reason"] == "withheld"} == {"nine", "all but nine"}
    numbers = ("n_rows", "n_positive", "positive_rate", "overall_positive_rate", "n_negatives_to_add")
    for row in rows.values():
        assert {row[name] is None for name in numbers} == {row["reason"] is not None}


LENGTHS_OF_G = [
    ([0, 60, 60, 60], [0, 40, 20, 3], [False, True, True], True),
    ([0, 60, 60, 60], [0, 57, 20, 30], [True, True, False], True),
    ([0, 60, 60, 60], [0, 40, 4, 8], [False, True, True], True),  # 12 together
    ([0, 60, 60, 60], [0, 40, 20, 0], [False, False, True], False),  # nobody is given away
    ([0, 60, 60, 60], [0, 3, 0, 0], [True, True, True], True),
    ([60] * 4, [3, 40, 30, 50], [False, True, False], True),  # 3 of no length
    ([60] * 4, [20, 40, 30, 3], [False, False, True], True),  # 3 with 20 of no length
    ([0, 5, 50, 1000], [0, 0, 30, 40], [True, True, False], True),  # as (overall)
]
"""By length, of none first: all rows and those of g; which lengths of g are withheld, and if the plan of all is."""


@pytest.mark.parametrize(("of_all", "of_g", "withheld", "is_plan_withheld"), LENGTHS_OF_G)
def test_no_withheld_length_is_all_less_the_others(
    of_all: list[int], of_g: list[int], withheld: list[bool], is_plan_withheld: bool
) -> None:
    labels = np.array([[[n - n // 2, n // 2] for n in counts] for counts in (of_all, of_g)])
    bins = [(0, 9), (10, 19), (20, 29)]
    table = label_balance(labels, ["(overall)", "g"], bins, Privacy()).slice(4, 4)
    counts, plans = table["n_rows"].to_pylist(), table["n_negatives_to_add"].to_pylist()
    assert [reason == "withheld" for reason in table["reason"].to_pylist()[:3]] == withheld
    assert [count is None for count in counts[:3]] == withheld
    assert plans[3] is None if is_plan_withheld else plans[3] == sum(filter(None, plans[:3]))


COUNT = st.integers(0, 2**61)


@given(COUNT, COUNT, COUNT, COUNT)
def test_the_plan_reaches_the_goal_and_one_fewer_would_not(n: int, p: int, n_others: int, p_others: int) -> None:
    n_rows, n_all, n_all_positive = n + p, n + p + n_others + p_others, p + p_others
    added = negatives_to_add(n_rows, p, n_all, n_all_positive)
    if n_all_positive == 0:
        assert added is None
        return
    assert added is not None
    assert added >= 0
    assert p * n_all <= n_all_positive * (n_rows + added)
    assert added == 0 or p * n_all > n_all_positive * (n_rows + added - 1)
