"""Features of delta-rs, the package ``deltalake``, which reads and writes Delta without Spark."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any


def is_installed() -> bool:
    """Return whether the library is installed."""
    return find_spec("deltalake") is not None


def list_features(log: Any, *, reading: bool = False) -> set[str]:
    """Return the features that writers, or readers, of a table must support, or the version of an old protocol."""
    protocol = log.protocol()
    named = {*(protocol.reader_features or ()), *(() if reading else protocol.writer_features or ())}
    versions = f"version {protocol.min_reader_version}, {protocol.min_writer_version} of the protocol"
    # Up to these versions, the only features are NOT NULL and checks.
    is_plain = protocol.min_reader_version <= 1 and (reading or protocol.min_writer_version <= 3)
    return named or (set() if is_plain else {versions})
