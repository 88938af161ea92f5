"""Storage failures in one sentence: the path or table, what failed, and why."""

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

_CATALOG_PREFIX = "spark.sql.catalog."
NO_CLASS = re.compile(r"ClassNotFound|Cannot find catalog plugin class")
UNWRITABLE = re.compile(r"Mkdirs failed|[Pp]ermission denied|AccessControl|AccessDenied|Read-only|not permitted")
UNUSABLE_PATH = re.compile(
    UNWRITABLE.pattern + r"|UnknownHost|NoSuchBucket|No (?:Abstract)?FileSystem|ClassNotFound|NotADirectory"
    r"|Not a directory|is a file|is not a directory|File name too long"
)
"""Causes that no retry can fix: the path cannot be written to."""
_DENIED = re.compile("AccessDenied|AccessControlException|Permission denied|Invalid directory or I/O error")  # Hadoop's


@contextmanager
def storage_errors(path: str, act: str) -> Iterator[None]:
    """Convert any error of a block to one with the path, without passwords, and the cause.

    It is an `InputError` if `act` is ``read``, and a `BiasSparkError` for other participles: ``written``, ``created``.
    """
    try:
        yield
    except BiasSparkError:
        raise
    except Exception as error:
        shown = redact(path)
        if act == "read" and (isinstance(error, PermissionError) or _DENIED.search(str(error))):
            fix = "Let the user of the job read it, and enter the folders above it."
            raise InputError(f"{shown}: permission is denied. {fix}") from error
        failure = f"{shown}: could not be {act}, {describe_cause(error)}."
        if act == "read":
            raise InputError(f"{failure} Restore it, or remove it and measure that date again.") from error
        raise BiasSparkError(f"{failure} Fix the cause, then run again.") from error


def describe_cause(error: Exception) -> str:
    """Return the innermost cause in one line; only the error condition if the message quotes a value."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if condition := find_condition_of_a_value(str(error)):
        return f"[{condition}]"
    return innermost_cause(error)


@contextmanager
def catalog_errors(spark: SparkSession, path: KeyPath, schema: str, catalog: str) -> Iterator[None]:
    """Raise `ConfigError`, for the key that names a schema, if a block fails because its catalog cannot be opened."""
    try:
        yield
    except Exception as error:
        if catalog != "spark_catalog" and spark.conf.get(_CATALOG_PREFIX + catalog, None) is None:
            raise ConfigError(unknown_catalog(path, schema, catalog)) from error
        if not NO_CLASS.search(cause := describe_cause(error)):
            raise
        rule = f"Catalog '{catalog}' cannot be loaded: {cause}."
        fix = f"Correct {_CATALOG_PREFIX}{catalog}, or add its jars with --packages."
        raise ConfigError(Fault(path, schema, rule, fix)) from error


def refuse_embedded(spark: SparkSession, path: KeyPath, value: str) -> None:
    """Raise `ConfigError` on the embedded engine, which writes tables to folders only."""
    if is_embedded(spark):
        rule = "The embedded engine writes tables to a folder of this machine."
        raise ConfigError(Fault(path, value, rule, "Set `[output] path`, or run it on Spark."))


def unknown_catalog(path: KeyPath, schema: str, catalog: str) -> Fault:
    """Return the fault of a schema in a catalog that the session does not have."""
    fix = f"Name another, or configure it by {_CATALOG_PREFIX}{catalog}."
    return Fault(path, schema, f"The session has no catalog '{catalog}'.", fix)
