"""Objects as bytes, to travel between the processes of a run. numpy only."""

from __future__ import annotations

import copyreg
import pickle
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ALIGNMENT = 8


def dump(value: Any) -> bytes:
    """Return an object as bytes: its pickle, then the entries of its arrays.

    Arrays are written as here, so the driver and the workers may have different versions of numpy; its scalars are not.
    """
    buffers: list[pickle.PickleBuffer] = []
    pickled = BytesIO()
    pickler = pickle.Pickler(pickled, 5, buffer_callback=buffers.append)
    pickler.dispatch_table = {**copyreg.dispatch_table, np.ndarray: _reduce}
    pickler.dump(value)
    parts = [pickled.getbuffer(), *(buffer.raw() for buffer in buffers)]
    sizes = np.array([len(parts), *map(len, parts)], np.int64)
    return b"".join([sizes.data, *(piece for part in parts for piece in (part, bytes(-len(part) % _ALIGNMENT)))])


def load(data: bytes | memoryview) -> Any:
    """Return the object that `dump` wrote. Its arrays are read-only views, except those of Python integers.

    Reading a pickle can run any code, so the bytes are always those of a process of the same run: never those of a
    table, a corpus or a file that a user names.
    """
    n_parts = int(np.frombuffer(data, np.int64, 1)[0])
    parts, offset = [], 8 * (1 + n_parts)
    for size in np.frombuffer(data, np.int64, n_parts, offset=8).tolist():
        parts.append(memoryview(data)[offset : offset + size])
        offset += -(-size // _ALIGNMENT) * _ALIGNMENT
    return pickle.loads(parts[0], buffers=parts[1:])


def _reduce(array: NDArray[Any]) -> tuple[Any, ...]:
    entries = array.ravel().tolist() if array.dtype.hasobject else pickle.PickleBuffer(np.ascontiguousarray(array).data)
    return _restore, (entries, array.dtype.str, array.shape)


def _restore(entries: Any, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    array = np.array(entries, object) if dtype == "|O" else np.frombuffer(entries, dtype)
    return array.reshape(shape)


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Return non-negative integers in the narrowest unsigned type that holds them; most counts fit one byte."""
    return values.astype(np.min_scalar_type(values.max(initial=0)))
