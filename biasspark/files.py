"""Small files that are replaced whole, on any file system that Spark can write."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from biasspark.errors import ConfigError, Fault, KeyPath, redact
from biasspark.session import find_files, hadoop_version, is_connect
from biasspark.text import show_value

_LOCAL = re.compile(r"(?:file:/*(?=/))?(?![A-Za-z][A-Za-z0-9+.-]+:)(.*)", re.DOTALL)
_HADOOP = "org.apache.hadoop.fs"
_NO_FILE_SYSTEM = re.compile(r"No (?:Abstract)?FileSystem for scheme|ClassNotFound")
_JARS = {  # of the file systems that Spark does not bring; those of Hadoop have the version of Hadoop
    "s3a": "org.apache.hadoop:hadoop-aws",
    "abfs": "org.apache.hadoop:hadoop-azure",
    "abfss": "org.apache.hadoop:hadoop-azure",
    "gs": "com.google.cloud.bigdataoss:gcs-connector",
}


def local_folder(path: str) -> Path | None:
    """Return a folder as Python sees it, None where its scheme names another file system."""
    local = _LOCAL.fullmatch(path)
    return Path(local[1]).absolute() if local else None


def shared_folder(spark: SparkSession, path: str) -> Path | None:
    """Return a folder that this process and the session see alike; None if there may be none.

    A path without a scheme is on the file system that Hadoop is configured for. The server of a Connect session may be
    on another machine.
    """
    if is_connect(spark) or find_files(spark, path)[0].getUri().getScheme() != "file":
        return None
    return local_folder(path)


def check_file_system(spark: SparkSession, key: KeyPath, path: str) -> None:
    """Raise `ConfigError` if the session has no file system for the scheme of a configured path. Nothing under Connect.

    The fault names the jar that brings it.
    """
    if is_connect(spark) or local_folder(path) is not None:
        return
    try:
        find_files(spark, path)
    except Exception as error:
        if not _NO_FILE_SYSTEM.search(str(error)):
            raise
        scheme = path.partition(":")[0]
        jar, close = _JARS.get(scheme), "s3a" if scheme in ("s3", "s3n") else None
        if jar and jar.startswith("org.apache.hadoop:"):
            jar += f":{hadoop_version(spark)}"
        fix = f"Give spark-submit --packages {jar}." if jar else "Add the jar that brings it with --packages."
        rule = f"The session has no file system for {scheme}://."
        raise ConfigError(Fault(key, path, rule, f"Write {close}://." if close else fix)) from error


def replace_file(spark: SparkSession, folder: str, name: str, content: bytes) -> None:
    """Write a small file, in place of one of that name; folders that are missing are made.

    The content is written to a hidden file in the same folder, which is then renamed: readers see the earlier file or
    the new one, never a part. Disks and HDFS rename in one step; object stores have neither file for a moment.

    Raises
    ------
    ConfigError
        Under Connect, if the folder is not on this machine.
    Exception
        Python's or Java's, if it cannot be written.
    """
    local = local_folder(folder) if is_connect(spark) else shared_folder(spark, folder)
    if local is not None:  # Hadoop would write a file of checksums for each
        local.mkdir(parents=True, exist_ok=True)
        replace_local_file(local / name, content)
    elif is_connect(spark):
        raise ConfigError(
            f"{show_value(redact(folder))}: a session of Spark Connect writes files to folders of this machine only. "
            "Name such a folder, or start the job without SPARK_REMOTE."
        )
    else:
        _replace_hadoop_file(spark, folder, name, content)


def replace_local_file(file: Path, content: bytes) -> None:
    """Write a file in a folder that is there, in place of one of that name, in one step."""
    draft = file.with_name(f".{file.name}.{uuid4().hex}")
    try:
        draft.write_bytes(content)
        draft.replace(file)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def _replace_hadoop_file(spark: SparkSession, folder: str, name: str, content: bytes) -> None:
    files, target = find_files(spark, f"{folder}/{name}")
    _, draft = find_files(spark, f"{folder}/.{name}.{uuid4().hex}")
    try:
        stream = files.create(draft, False)
        try:
            stream.write(content)
        finally:
            stream.close()
        _rename(spark, files, draft, files.makeQualified(target))
    except BaseException:
        with suppress(Exception):  # the first failure is the one to report
            files.delete(draft, False)
        raise


def _rename(spark: SparkSession, files: Any, source: Any, target: Any) -> None:
    """Rename a file, in place of one of the new name."""
    context: Any = spark.sparkContext
    options = getattr(context._jvm, f"{_HADOOP}.Options$Rename")
    overwrite = context._gateway.new_array(options, 1)
    overwrite[0] = options.OVERWRITE
    try:
        contexts = getattr(context._jvm, f"{_HADOOP}.FileContext")
        contexts.getFileContext(target.toUri(), context._jsc.hadoopConfiguration()).rename(source, target, overwrite)
    except Exception as error:  # py4j's, which a Connect client need not have
        # A file system may have one of Hadoop's two interfaces alone, and this one cannot replace a file.
        if "UnsupportedFileSystemException" not in str(error):
            raise
        files.delete(target, False)
        if not files.rename(source, target):
            raise OSError(f"{source.getName()} could not be renamed") from None
