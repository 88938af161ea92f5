"""What is asked of delta-rs, the package ``deltalake``, wherever Delta is read or written without Spark."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

_READERS, _WRITERS = 1, 3
"""Up to these versions of the protocol a table has no features but NOT NULL and checks."""


def is_installed() -> bool:
    """Return whether the library is there."""
    return find_spec("deltalake") is not None


def list_features(log: Any, *, reading: bool = False) -> set[str]:
    """Return the features of a table that those who write it must know, or those who read it.

    Before features had names a version of the protocol stood for several: such a version is given in their place.
    """
    protocol = log.protocol()
    named = {*(protocol.reader_features or ()), *(() if reading else protocol.writer_features or ())}
    versions = f"version {protocol.min_reader_version}, {protocol.min_writer_version} of the protocol"
    is_plain = protocol.min_reader_version <= _READERS and (reading or protocol.min_writer_version <= _WRITERS)
    return named or (set() if is_plain else {versions})
