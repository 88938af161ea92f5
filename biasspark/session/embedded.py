"""The embedded engine: Sail, a server of Spark Connect within this process. It needs no Java."""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any

from pyspark.sql import SparkSession

from biasspark.errors import InputError
from biasspark.session.engine_choice import is_embedded
from biasspark.text import format_count

# Read when the server starts.
_ENVIRONMENT = {
    # Rows of a batch that Python functions get. With its default of 8,192 they take several times as long.
    "SAIL_EXECUTION__BATCH_SIZE": "100000",
    # By the statistics of a file whose column has one value and NaN, it would read NaN as that value.
    "SAIL_EXECUTION__COLLECT_STATISTICS": "false",
}
_LOG = {"RUST_LOG": "off"}  # unless the user wants to see it

BYTES_A_SCORE, BYTES_AN_ATTRIBUTION, _BYTES_OF_AN_ENGINE = 48, 160, 600 * 2**20
"""Measured from 1.8 to 18 million rows of two models: a score is held when it is cut, sorted and ranked."""
_MEMORY, _CONTAINER = Path("/proc/meminfo"), Path("/sys/fs/cgroup")

_STARTING = Lock()
_servers: list[Any] = []


def embedded_session(settings: dict[str, str]) -> SparkSession:
    """Return a session of the embedded engine, whose server is started once in a process and stopped at its end.

    It listens on loopback alone, on a port that the system chooses.
    """
    with _STARTING:
        if not _servers:
            _servers.append(_start_server())
    host, port = _servers[0].listening_address
    builder = SparkSession.builder.remote(f"sc://{host}:{port}")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    return spark


def engine_version(spark: SparkSession) -> str:
    """Return the version of Spark that runs; of the embedded engine the one that it is compatible with, and its own."""
    return f"{spark.version} (pysail {version('pysail')})" if is_embedded(spark) else spark.version


def refuse_too_many(spark: SparkSession, n_rows: int, n_models: int, bytes_a_score: int = BYTES_A_SCORE) -> None:
    """Raise `InputError` if the embedded engine would need more memory than this machine has left to rank so many rows.

    Ranges and slices are not in the estimate, so a run that passes may still need more.
    """
    needed = _BYTES_OF_AN_ENGINE + bytes_a_score * n_rows * n_models
    if not is_embedded(spark) or (available := available_memory()) is None or needed <= available:
        return
    raise InputError(
        f"corpus: {n_rows:,} rows and {format_count(n_models, 'model')} need about {needed / 2**30:.1f} GiB, and "
        f"{available / 2**30:.1f} GiB are free. The embedded engine holds all scores in memory. Run it on Spark "
        "(--engine spark), measure fewer models at a time, or free memory."
    )


def available_memory() -> int | None:
    """Return the bytes that this process may still take, within the limit of its container; None where not known."""
    if not _MEMORY.exists():
        return None
    fields = dict(line.split(":", 1) for line in _MEMORY.read_text("ascii").splitlines())
    free = int(fields["MemAvailable"].split()[0]) * 1024
    with suppress(OSError, ValueError):  # no container, or one without a limit
        limit = int((_CONTAINER / "memory.max").read_text("ascii"))
        used = dict(line.split() for line in (_CONTAINER / "memory.stat").read_text("ascii").splitlines())
        free = min(free, limit - int(used["anon"]))
    return free


def _start_server() -> Any:
    for name, value in _LOG.items():
        os.environ.setdefault(name, value)
    os.environ.update(_ENVIRONMENT)
    server = import_module("pysail.spark").SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    atexit.register(server.stop)
    return server
