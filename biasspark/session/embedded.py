"""The embedded engine: Sail, a server of Spark Connect within this process. It needs no Java."""

from __future__ import annotations

import atexit
import os
from importlib import import_module
from importlib.metadata import version
from threading import Lock
from typing import Any

from pyspark.sql import SparkSession

from biasspark.session.engine_choice import is_embedded

# Read when the server starts.
_ENVIRONMENT = {
    # Rows of a batch that Python functions get. With its default of 8,192 they take several times as long.
    "SAIL_EXECUTION__BATCH_SIZE": "100000",
    # By the statistics of a file whose column has one value and NaN, it would read NaN as that value.
    "SAIL_EXECUTION__COLLECT_STATISTICS": "false",
}
_LOG = {"RUST_LOG": "off"}  # unless the user wants to see it

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


def _start_server() -> Any:
    for name, value in _LOG.items():
        os.environ.setdefault(name, value)
    os.environ.update(_ENVIRONMENT)
    server = import_module("pysail.spark").SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    atexit.register(server.stop)
    return server
