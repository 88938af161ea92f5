"""Objects read back from bytes, with every entry, type and shape of their arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from biasspark.ranking.kernels.codec import dump, load
from biasspark.ranking.kernels.placements import Profile

ARRAYS = {
    "integers": np.array([-(2**63), 2**63 - 1]),
    "bytes": np.array([1, 2, 255], np.uint8),
    "numbers": np.array([5e-324, -0.0, np.inf, np.nan]),
    "flags": np.array([True, False, True]),
    "one": np.array(7),
    "empty": np.zeros((0, 3), np.int64),
    "every second": np.arange(9)[::2],
    "transposed": np.arange(6).reshape(2, 3).T,
    "beyond 64 bits": np.array([[2**124, -(2**130)], [0, 1]], object),
    "no Python integers": np.zeros((2, 0), object),
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_arrays_read_back(array: np.ndarray) -> None:
    read = load(memoryview(dump(array)))
    np.testing.assert_array_equal(read, array)
    assert (read.dtype, read.shape) == (array.dtype, array.shape)
    assert read.dtype == object or read.flags.c_contiguous
    assert all(type(value) is int for value in read.ravel() if read.dtype == object)


def test_objects_read_back() -> None:
    value: dict[str, Any] = {"profile": Profile(7, 5, 2, -1.5, 0.1), "arrays": list(ARRAYS.values()), "text": "\ud800"}
    read = load(dump(value))
    assert (read["profile"], read["text"]) == (value["profile"], value["text"])
    np.testing.assert_equal(read["arrays"], value["arrays"])


def test_no_version_of_numpy_has_a_say() -> None:
    """Its own pickles name modules that other versions lack."""
    assert b"numpy" not in dump(list(ARRAYS.values()))


def test_bytes_are_aligned_one_after_another() -> None:
    assert {len(dump(array)) % 8 for array in ARRAYS.values()} == {0}
