"""Tables of a declared schema from arrays: NULL, NaN, signs of zeros, and integers beyond 64 bits."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest

from biasspark.tables.schemas import U_STATISTICS, Masked, to_table

COLUMNS = {
    "model": "m",
    "slice": ["all", "short", None],
    "identity": np.array(["a", "b", "c"], object),
    "low_cell": "negative",
    "high_cell": "positive",
    "crossed": np.array([True, False, False]),
    "n_low": np.array([1, 2, 3]),
    "n_high": Masked(np.array([1, 2, 3]), np.array([False, True, False])),
    "u_doubled": np.array([2**100, None, 0], object),
    "low_square_sum": Masked(np.array([2**120, 1, 2], object), np.array([False, False, True])),
    "high_square_sum": None,
    "auc": np.array([0.5, math.nan, -0.0]),
    "auc_variance": Masked([None, math.nan, 0.25], np.array([False, False, False])),
    "reason": Masked(np.array(["why"] * 3, object), np.array([True, False, True])),
}


def test_every_kind_of_column() -> None:
    table = to_table(U_STATISTICS, **COLUMNS)
    assert table.schema.equals(U_STATISTICS.arrow_schema)
    first, second, third = table.to_pylist()
    assert (first["model"], first["slice"], first["identity"], third["slice"]) == ("m", "all", "a", None)
    assert [row["n_high"] for row in (first, second, third)] == [1, None, 3]
    assert [row["u_doubled"] for row in (first, second, third)] == [Decimal(2**100), None, Decimal(0)]
    assert [row["low_square_sum"] for row in (first, second, third)] == [Decimal(2**120), Decimal(1), None]
    assert [row["auc"] for row in (first, second, third)] == [0.5, None, 0.0]
    assert math.copysign(1, third["auc"]) == 1
    assert [row["auc_variance"] for row in (first, second, third)] == [None, None, 0.25]
    assert [row["reason"] for row in (first, second, third)] == [None, "why", None]


def test_columns_must_be_those_that_are_declared() -> None:
    with pytest.raises(ValueError, match="further"):
        to_table(U_STATISTICS, **COLUMNS, further=1)
    with pytest.raises(ValueError, match="auc"):
        to_table(U_STATISTICS, **{name: column for name, column in COLUMNS.items() if name != "auc"})
