"""Tuples of arrays as bytes, to travel between Python workers. numpy only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DTYPES = tuple(np.dtype(name) for name in ("i8", "f8", "u1", "u2", "u4", "u8"))
_ALIGNMENT = 8


def pack(arrays: Sequence[NDArray[Any]]) -> bytes:
    """Return arrays of int64, float64 or unsigned integers as bytes: their types and shapes, then their entries."""
    header = [number for array in arrays for number in (_DTYPES.index(array.dtype), array.ndim, *array.shape)]
    parts: list[Any] = [np.array([len(arrays), len(header), *header], np.int64).data]
    for array in arrays:
        parts += [np.ascontiguousarray(array).data, bytes(-array.nbytes % _ALIGNMENT)]
    return b"".join(parts)


def unpack(data: bytes | memoryview) -> list[NDArray[Any]]:
    """Return the arrays that `pack` wrote, as read-only views."""
    n_arrays, n_header = (int(size) for size in np.frombuffer(data, np.int64, 2))
    header = np.frombuffer(data, np.int64, n_header, offset=16).tolist()
    arrays: list[NDArray[Any]] = []
    offset = 16 + 8 * n_header
    for _ in range(n_arrays):
        dtype, n_axes, *header = header
        shape, header = header[:n_axes], header[n_axes:]
        array = np.frombuffer(data, _DTYPES[dtype], int(np.prod(shape)), offset=offset).reshape(shape)
        arrays.append(array)
        offset += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    return arrays


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Return non-negative integers in the narrowest unsigned type that holds them; most counts fit one byte."""
    return values.astype(np.min_scalar_type(values.max(initial=0)))
