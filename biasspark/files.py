"""Files and folders of any file system that the session knows: lists, removals, and small files replaced whole.

Those of this machine are Python's. Others are Hadoop's, which classic sessions alone have.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from pyspark.sql import SparkSession

from biasspark.errors import ConfigError, Fault, KeyPath, redact
from biasspark.session import is_connect, is_embedded, sees_files
from biasspark.session.classic import find_files, hadoop_version
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
    on another machine; the embedded engine is on this one.
    """
    if is_embedded(spark):
        return local_folder(path)
    if is_connect(spark) or find_files(spark, path)[0].getUri().getScheme() != "file":
        return None
    return local_folder(path)


def check_file_system(spark: SparkSession, key: KeyPath, path: str) -> None:
    """Raise `ConfigError` if the session has no file system for the scheme of a configured path.

    The fault names the jar that brings it. Of a server of Spark Connect nothing is known.
    """
    if local_folder(path) is not None or not sees_files(spark):
        return
    if is_embedded(spark):
        rule = "The embedded engine reads and writes files of this machine only."
        raise ConfigError(Fault(key, redact(path), rule, "Name a folder of this machine, or run it on Spark."))
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


class FolderEntry(NamedTuple):
    """A file or a folder within another: its name alone, and its bytes."""

    name: str
    is_folder: bool
    n_bytes: int


def list_folder(spark: SparkSession, path: str) -> list[FolderEntry]:
    """Return what is in a folder; nothing where there is none.

    Raises `ConfigError` on a server of Spark Connect, which gives no access to files.
    """
    if folder := shared_folder(spark, path):
        entries = list(os.scandir(folder)) if folder.is_dir() else []
        return [FolderEntry(entry.name, entry.is_dir(), entry.stat().st_size) for entry in entries]
    files, folder_path = find_files(spark, path)
    statuses = files.listStatus(folder_path) if files.exists(folder_path) else ()
    return [FolderEntry(status.getPath().getName(), status.isDirectory(), status.getLen()) for status in statuses]


def try_folder(spark: SparkSession, path: str) -> None:
    """Write an empty file into a folder, made for it if need be, and take both away again; no job.

    Raises `NotADirectoryError` if the folder or one above it is a file, `OSError` if it cannot be written to, and as
    ``list_folder``.
    """
    if folder := shared_folder(spark, path):
        _try_local_folder(folder)
        return
    files, folder_path = find_files(spark, path)
    missing, above = [], files.makeQualified(folder_path)
    while above is not None and not files.exists(above):
        missing.append(above)
        above = above.getParent()
    if above is not None and not files.getFileStatus(above).isDirectory():
        raise NotADirectoryError(f"{above.toUri().getPath()} is a file")
    _, attempt = find_files(spark, f"{path}/_biasspark_{uuid4().hex}")
    try:
        files.create(attempt, False).close()
    finally:
        for made in (attempt, *missing):
            with suppress(Exception):  # a folder stays in which another run has written meanwhile
                files.delete(made, False)


def _try_local_folder(folder: Path) -> None:
    missing = [above for above in (folder, *folder.parents) if not above.exists()]
    above = missing[-1].parent if missing else folder
    if not above.is_dir():
        raise NotADirectoryError(f"{above} is a file")
    attempt = folder / f"_biasspark_{uuid4().hex}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        attempt.touch(exist_ok=False)
    finally:
        with suppress(OSError):  # a folder stays in which another run has written meanwhile
            attempt.unlink(missing_ok=True)
            for made in missing:
                made.rmdir()


def delete_folder(spark: SparkSession, path: str) -> None:
    """Delete a folder with all that is in it; nothing happens where there is none. Raises as ``list_folder``."""
    if folder := shared_folder(spark, path):
        if folder.exists():
            shutil.rmtree(folder)
        return
    files, folder_path = find_files(spark, path)
    if not files.delete(folder_path, True) and files.exists(folder_path):
        raise OSError(f"{path}: it is still there")


def replace_file(spark: SparkSession, folder: str, name: str, content: bytes) -> None:
    """Write a small file, in place of one of that name; folders that are missing are made.

    The content is written to a hidden file in the same folder, which is then renamed: readers see the earlier file or
    the new one, never a part. Disks and HDFS rename in one step; object stores have neither file for a moment.

    Raises `ConfigError` under Connect, if the folder is not on this machine, and Python's or Java's exception if it
    cannot be written.
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
