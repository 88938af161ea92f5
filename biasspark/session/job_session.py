"""The session of a job: one that is there, or one that is started for it and stopped afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from pyspark.sql import SparkSession

from biasspark.errors import ConfigError
from biasspark.session.classic import remember_classes, silence_failures, stop, use_driver_python_on_local_masters
from biasspark.session.embedded import embedded_session
from biasspark.session.engine_choice import (
    choose_engine,
    find_session,
    is_connect,
    is_embedded,
    is_session_there,
)
from biasspark.session.spark_settings import borrow, list_settings
from biasspark.session.startup import find_runtime_fault, list_jars, silence_query_context, start_faults
from biasspark.session_request import SessionRequest, current_request


def local() -> SparkSession:
    """Return a session of the embedded engine: within this process, without Java.

    Its server listens on a random port of this machine alone, and is stopped when the process ends. Every call returns
    the same session.

    Raises
    ------
    ConfigError
        If the engine is not installed, or a session of another engine is there.
    """
    return build_session("biasspark", request=SessionRequest(engine="embedded"))


def build_session(
    app_name: str, settings: Mapping[str, str] | None = None, request: SessionRequest | None = None
) -> SparkSession:
    """Return the session of a job, with the settings that the numbers and their speed rely on.

    One that is there already is given these settings; its name and its logs stay as they are. Otherwise `choose_engine`
    says which engine is started.

    Parameters
    ----------
    app_name : str
        What the Spark UI and the cluster's list of applications show.
    settings : mapping, optional
        More Spark settings; they win over the defaults.
    request : SessionRequest, optional
        What the session is to be; what the command line asks for, if None.

    Raises
    ------
    ConfigError
        If no engine is installed, there is no Java that Spark can use, the session is of another engine than is asked
        for, or it has the runtime of Delta or Iceberg for another Spark.

    Notes
    -----
    On local masters, and on a Connect server that ``SPARK_REMOTE=local`` starts, the workers run the driver's
    interpreter, also when its environment is not activated. On a cluster ``PYSPARK_PYTHON`` is left alone: an archive
    of the cluster's own may name another one.
    """
    request, settings = request or current_request(), dict(settings or {})
    is_own = not is_session_there()
    if is_own and choose_engine(request, settings.get("spark.master")) == "embedded":
        silence_query_context()
        with start_faults():
            return embedded_session(list_settings(settings))
    spark = _start_spark(app_name, settings, request) if is_own else _current_session(settings)
    if not is_own:
        _refuse_other_engine(spark, request)
    jars = list_jars(spark.conf if is_connect(spark) else spark.sparkContext.getConf())
    if fault := find_runtime_fault(jars, spark.version):
        if is_own:
            stop(spark)
        raise ConfigError(fault)
    if is_connect(spark):
        return spark
    if is_own:
        spark.sparkContext.setLogLevel(spark.conf.get("spark.log.level", "ERROR") or "ERROR")
        silence_failures(spark)
    remember_classes(spark)
    return spark


def _start_spark(app_name: str, settings: Mapping[str, str], request: SessionRequest) -> SparkSession:
    """Start a session of Spark with all settings."""
    builder = SparkSession.builder.appName(app_name)
    asked = {**settings, **({"spark.master": request.master} if request.master else {})}
    if request.remote:
        builder = builder.remote(request.remote)
    elif "SPARK_REMOTE" not in os.environ:
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)  # PySpark leaves it when a session of Connect stops
    use_driver_python_on_local_masters(asked)
    silence_query_context()
    for key, value in list_settings(asked).items():
        builder = builder.config(key, value)
    with start_faults():
        spark: SparkSession = builder.getOrCreate()
    return spark


def _current_session(settings: Mapping[str, str]) -> SparkSession:
    """Return the session that is there, with all settings that it takes."""
    spark = find_session()
    for key, value in list_settings(settings).items():
        if spark.conf.get(key, None) != value:
            with suppress(Exception):  # a static one stays as it is
                spark.conf.set(key, value)
    return spark


def _refuse_other_engine(spark: SparkSession, request: SessionRequest) -> None:
    """Raise `ConfigError` if the session that is there is not of the engine that is asked for."""
    engine = "embedded" if is_embedded(spark) else "spark"
    if request.engine not in (None, engine):
        raise ConfigError(
            f"engine = {request.engine}: a session of the engine {engine} is there already, and a process has one at a "
            "time. Stop it first, or start another process."
        )


@contextmanager
def job_session(app_name: str, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Give a job its session, and stop it afterwards.

    One that was there before, as in a notebook, is left running, with the settings that it had.
    """
    if is_session_there():
        with borrow(find_session(), list(list_settings(settings))):
            yield build_session(app_name, settings)
        return
    spark = build_session(app_name, settings)
    try:
        yield spark
    finally:
        stop(spark)
