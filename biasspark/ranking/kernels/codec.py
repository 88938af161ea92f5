"""Tuples of arrays as bytes, to travel between Python workers. numpy only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from biasspark.ranking.kernels.exact import join_wide, split_wide

_DTYPES = tuple(np.dtype(name) for name in ("i8", "f8", "u1", "u2", "u4", "u8", "O"))
_ALIGNMENT = 8


def pack(arrays: Sequence[NDArray[Any]]) -> bytes:
    """Return arrays as bytes: their types and shapes, then their entries.

    Entries are int64, float64, unsigned integers, or Python integers in (-2^125, 2^125), which take 16 bytes.
    """
    header = [number for array in arrays for number in (_DTYPES.index(array.dtype), array.ndim, *array.shape)]
    parts: list[Any] = [np.array([len(arrays), len(header), *header], np.int64).data]
    for array in arrays:
        stored = split_wide(array) if array.dtype.hasobject else array
        parts += [np.ascontiguousarray(stored).data, bytes(-stored.nbytes % _ALIGNMENT)]
    return b"".join(parts)


def unpack(data: bytes | memoryview) -> list[NDArray[Any]]:
    """Return the arrays that `pack` wrote, as read-only views, except Python integers."""
    n_arrays, n_header = (int(size) for size in np.frombuffer(data, np.int64, 2))
    header = np.frombuffer(data, np.int64, n_header, offset=16).tolist()
    arrays: list[NDArray[Any]] = []
    offset = 16 + 8 * n_header
    for _ in range(n_arrays):
        number, n_axes, *header = header
        shape, header, dtype = header[:n_axes], header[n_axes:], _DTYPES[number]
        if is_wide := dtype.hasobject:
            shape, dtype = [2, *shape], np.dtype(np.int64)
        array = np.frombuffer(data, dtype, int(np.prod(shape)), offset=offset).reshape(shape)
        arrays.append(join_wide(array) if is_wide else array)
        offset += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    return arrays


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Return non-negative integers in the narrowest unsigned type that holds them; most counts fit one byte."""
    return values.astype(np.min_scalar_type(values.max(initial=0)))
