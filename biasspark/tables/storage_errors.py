"""Failures of storage in one sentence: which path or table, what could not be done, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from biasspark.errors import (
    BiasSparkError,
    ConfigError,
    Fault,
    InputError,
    KeyPath,
    find_condition_of_a_value,
    innermost_cause,
    redact,
)
from biasspark.session import is_embedded
from biasspark.text import closest_match, list_first

_OF_A_CATALOG = "spark.sql.catalog."
NO_CLASS = re.compile(r"ClassNotFound|Cannot find catalog plugin class")
_DENIED = re.compile("AccessDenied|AccessControlException|Permission denied|Invalid directory or I/O error")  # Hadoop's
_MOST_NAMED = 10


@contextmanager
def storage_errors(path: str, act: str) -> Iterator[None]:
    """Turn whatever stops a block into one fault that names the path and the cause.

    It is an `InputError` if the path, which is a folder, file, table or view, cannot be read, and otherwise a
    `BiasSparkError`. Passwords in it are not shown. `act` is what could not be done to it: ``written``, ``read``.
    """
    try:
        yield
    except BiasSparkError:
        raise
    except Exception as error:
        if act == "read" and (isinstance(error, PermissionError) or _DENIED.search(str(error))):
            raise InputError(
                f"{redact(path)}: permission is denied. Let the user of the job read it, and enter the folders above "
                "it."
            ) from error
        if act == "read":
            raise InputError(
                f"{redact(path)}: could not be read, {describe_cause(error)}. Restore it, or remove it and measure the "
                "night again."
            ) from error
        raise BiasSparkError(
            f"{redact(path)}: could not be {act}, {describe_cause(error)}. Nothing was published. Fix the cause, then "
            "run again."
        ) from error


def describe_cause(error: Exception) -> str:
    """Return the innermost cause that the JVM reports, in one line; its condition alone where it quotes a value."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if condition := find_condition_of_a_value(str(error)):
        return f"[{condition}]"
    return innermost_cause(error)


def list_catalogs(spark: SparkSession) -> list[str]:
    """Return the catalogs that the settings of a session name, Spark's own among them."""
    keys = (row["key"] for row in spark.sql("SET").collect())
    named = {key.removeprefix(_OF_A_CATALOG).partition(".")[0] for key in keys if key.startswith(_OF_A_CATALOG)}
    return sorted({"spark_catalog", *named})


@contextmanager
def catalog_errors(spark: SparkSession, path: KeyPath, schema: str, catalog: str) -> Iterator[None]:
    """Raise what stops a block as a fault of a key that names a schema, if the session cannot open its catalog.

    It is a `ConfigError` if the settings of the session name no such catalog, with those that they name; or if its
    classes are missing.
    """
    try:
        yield
    except Exception as error:
        catalogs = list_catalogs(spark)
        if catalog not in catalogs:
            raise ConfigError(unknown_catalog(path, schema, catalog, catalogs)) from error
        if not NO_CLASS.search(cause := describe_cause(error)):
            raise
        rule = f"Catalog '{catalog}' cannot be loaded: {cause}."
        fix = f"Correct {_OF_A_CATALOG}{catalog}, or add its jars with --packages."
        raise ConfigError(Fault(path, schema, rule, fix)) from error


def refuse_embedded(spark: SparkSession, path: KeyPath, value: str) -> None:
    """Raise `ConfigError` for a store that the embedded engine does not have: any but a folder."""
    if is_embedded(spark):
        rule = "The embedded engine writes tables in a folder of this machine."
        raise ConfigError(Fault(path, value, rule, "Set `[output] path`, or run it on Spark."))


def unknown_catalog(path: KeyPath, schema: str, catalog: str, catalogs: list[str]) -> Fault:
    """Return the fault of a key that names a schema of a catalog that the session does not have."""
    rule = f"The session has no catalog '{catalog}'. It has {list_first(catalogs, _MOST_NAMED)}."
    close = closest_match(catalog, catalogs)
    return Fault(
        path, schema, rule, f"Did you mean '{close}'?" if close else f"Configure it by {_OF_A_CATALOG}{catalog}."
    )
