"""Which engine runs a job, and of which kind a session is."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, cast

import pyspark
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from biasspark.errors import ConfigError
from biasspark.session_request import GET_AN_ENGINE, Engine, SessionRequest

_OF_SPARK = {"PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS"}
"""Set by spark-submit, and by those who give arguments of it."""
_LOOPBACK = {"localhost", "127.0.0.1", "::1", "[::1]"}


def choose_engine(request: SessionRequest, configured_master: str | None = None) -> Engine:
    """Return the engine of a session that is to be started.

    The first that applies: what the request forces; Spark, where a server, a master or arguments of spark-submit are
    given; the embedded engine, if it is installed; local Spark, if it is installed. Raises `ConfigError` if the request
    contradicts itself, or no engine is installed.

    Parameters
    ----------
    request
    configured_master
        The master that the settings of the session name.
    """
    remote = request.remote or os.environ.get("SPARK_REMOTE")
    has_cluster = bool(remote or request.master or configured_master or _OF_SPARK & os.environ.keys())
    if request.engine == "embedded":
        if request.remote or request.master:
            raise ConfigError("--engine embedded: it has no server and no master. Leave out --remote and --master.")
        if not is_embedded_installed():
            raise ConfigError(f"--engine embedded: it is not installed. {GET_AN_ENGINE}.")
        return "embedded"
    if has_cluster:
        return "spark"
    if request.engine is None and is_embedded_installed():
        return "embedded"
    if is_spark_installed():
        return "spark"
    missing = "--engine spark: Spark is not installed" if request.engine else "No engine is installed"
    raise ConfigError(f"{missing}. {GET_AN_ENGINE}.")


def is_embedded_installed() -> bool:
    """Return whether there is an embedded engine, and a client that speaks to it."""
    return find_spec("pysail") is not None and find_spec("grpc") is not None


def is_spark_installed() -> bool:
    """Return whether there is a Spark that can be started here, and not only its client."""
    return find_spec("py4j") is not None


def is_session_there() -> bool:
    """Return whether the builder would find a session, or a context to make one of, whichever thread made it."""
    if getattr(getattr(pyspark, "SparkContext", None), "_active_spark_context", None) is not None:
        return True
    try:
        # A classic one without a context was stopped, and the builder makes another.
        return is_connect(SparkSession.active())
    except PySparkRuntimeError:
        return False


def find_session() -> SparkSession:
    """Return the session that is there, whichever thread made it."""
    if getattr(getattr(pyspark, "SparkContext", None), "_active_spark_context", None) is not None:
        return SparkSession.builder.getOrCreate()
    return SparkSession.active()


def is_connect(spark: SparkSession) -> bool:
    """Return whether the session talks to a Spark Connect server; the embedded engine is one."""
    return "connect" in type(spark).__module__


def is_embedded(spark: SparkSession) -> bool:
    """Return whether the session's engine is embedded: a server on this machine that is no Spark, and has no master."""
    if not is_connect(spark):
        return False
    with suppress(Exception):  # servers without access to such settings
        session = cast("Any", spark)
        return session.client.host in _LOOPBACK and session.conf.get("spark.master", None) is None
    return False


def sees_files(spark: SparkSession) -> bool:
    """Return whether a session gives access to the files of its paths: any but one of a Spark Connect server."""
    return not is_connect(spark) or is_embedded(spark)
