"""Files and folders on any file system of a session: list, delete, and replace small files atomically.

Local files are handled by Python, others by Hadoop, which only classic sessions have.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from pyspark.sql import SparkSession

from biasspark.errors import ConfigError, Fault, KeyPath, redact
from biasspark.replaced_files import replace_local_file
from biasspark.session import is_connect, is_embedded, sees_files
from biasspark.text import show_value

_LOCAL = re.compile(r"(?:file:/*(?=/))?(?![A-Za-z][A-Za-z0-9+.-]+:)(.*)", re.DOTALL)
_HADOOP = "org.apache.hadoop.fs"
_NO_FILE_SYSTEM = re.compile(r"No (?:Abstract)?FileSystem for scheme|ClassNotFound")
_JARS = {  # of file systems that Spark does not include; those of Hadoop have the session's version of Hadoop
    "s3a": "org.apache.hadoop:hadoop-aws",
    "abfs": "org.apache.hadoop:hadoop-azure",
    "abfss": "org.apache.hadoop:hadoop-azure",
    "gs": "com.google.cloud.bigdataoss:gcs-connector",
}


def open_hadoop_path(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Return the file system of a path, and the path, as JVM objects."""
    if is_connect(spark):
        raise ConfigError(
            "SPARK_REMOTE: a session of Spark Connect cannot list or delete files. Maintenance of folders needs a "
            "classic session. Start the job without it."
        )
    context: Any = spark.sparkContext
    hadoop_path = getattr(context._jvm, f"{_HADOOP}.Path")(path)
    return hadoop_path.getFileSystem(context._jsc.hadoopConfiguration()), hadoop_path


def local_folder(path: str) -> Path | None:
    """Return a folder as a local path, None if its scheme is that of another file system."""
    local = _LOCAL.fullmatch(path)
    return Path(local[1]).absolute() if local else None


def shared_folder(spark: SparkSession, path: str) -> Path | None:
    """Return a path as a local folder if the session sees the same files, else None: a server may be elsewhere."""
    if not is_connect(spark) and open_hadoop_path(spark, path)[0].getUri().getScheme() != "file":
        return None
    return local_folder(path) if sees_files(spark) else None


def check_file_system(spark: SparkSession, key: KeyPath, path: str) -> None:
    """Raise `ConfigError`, with the missing jar, if the session has no file system for a path. Skip remote servers."""
    if local_folder(path) is not None or not sees_files(spark):
        return
    if is_embedded(spark):
        rule = "The embedded engine reads and writes files of this machine only."
        raise ConfigError(Fault(key, redact(path), rule, "Name a folder of this machine, or run it on Spark."))
    try:
        open_hadoop_path(spark, path)
    except Exception as error:
        if not _NO_FILE_SYSTEM.search(str(error)):
            raise
        scheme = path.partition(":")[0]
        jar, close = _JARS.get(scheme), "s3a" if scheme in ("s3", "s3n") else None
        if jar and jar.startswith("org.apache.hadoop:"):
            jvm: Any = spark.sparkContext._jvm
            jar += f":{jvm.org.apache.hadoop.util.VersionInfo.getVersion()}"
        fix = f"Give spark-submit --packages {jar}." if jar else "Add its jar with --packages."
        rule = f"The session has no file system for {scheme}://."
        raise ConfigError(Fault(key, path, rule, f"Write {close}://." if close else fix)) from error


class FolderEntry(NamedTuple):
    """A file or folder in a folder: its base name and size, 0 of a folder."""

    name: str
    is_folder: bool
    n_bytes: int


def list_folder(spark: SparkSession, path: str) -> list[FolderEntry]:
    """List a folder; [] if there is none. Raises `ConfigError` on a Spark Connect server, which has no file access."""
    if folder := shared_folder(spark, path):
        entries = list(os.scandir(folder)) if folder.is_dir() else []
        return [
            FolderEntry(entry.name, is_folder := entry.is_dir(), 0 if is_folder else entry.stat().st_size)
            for entry in entries
        ]
    file_system, folder_path = open_hadoop_path(spark, path)
    statuses = file_system.listStatus(folder_path) if file_system.exists(folder_path) else ()
    return [FolderEntry(status.getPath().getName(), status.isDirectory(), status.getLen()) for status in statuses]


def try_folder(spark: SparkSession, path: str) -> None:
    """Check that a folder is writable, or can be created: write an empty file, and remove it. No job.

    Raises `NotADirectoryError` if the folder or a parent is a file, and `OSError` if it is not writable.
    """
    if folder := shared_folder(spark, path):
        above = next(parent for parent in (folder, *folder.parents) if parent.exists())
        if not above.is_dir():
            raise NotADirectoryError(f"{above} is a file")
        local_attempt = above / f"_biasspark_{uuid4().hex}"
        local_attempt.touch(exist_ok=False)
        local_attempt.unlink()
        return
    file_system, folder_path = open_hadoop_path(spark, path)
    missing, above = [], file_system.makeQualified(folder_path)
    while above is not None and not file_system.exists(above):
        missing.append(above)
        above = above.getParent()
    if above is not None and not file_system.getFileStatus(above).isDirectory():
        raise NotADirectoryError(f"{above.toUri().getPath()} is a file")
    _, attempt = open_hadoop_path(spark, f"{path}/_biasspark_{uuid4().hex}")
    try:
        file_system.create(attempt, False).close()
    finally:
        for made in (attempt, *missing):
            with suppress(Exception):  # another run may have written into the folder
                file_system.delete(made, False)


def delete_folder(spark: SparkSession, path: str) -> None:
    """Delete a folder and its contents, if it exists. Raises as `list_folder`."""
    if folder := shared_folder(spark, path):
        while folder.exists():
            with suppress(FileNotFoundError):  # another job deletes it, too
                shutil.rmtree(folder)
        return
    file_system, folder_path = open_hadoop_path(spark, path)
    if not file_system.delete(folder_path, True) and file_system.exists(folder_path):
        raise OSError(f"{path}: it is still there")


def replace_file(spark: SparkSession, folder: str, name: str, content: bytes) -> None:
    """Write or replace a small file. Missing folders are created.

    The content is written to a hidden file in the same folder, which is then renamed: readers see the old or the new
    file, never a part. Disks and HDFS rename atomically; object stores have neither file for a moment.

    Raises `ConfigError` under Connect if the folder is not local, and an exception of Python or Java if writing fails.
    """
    local = local_folder(folder) if is_connect(spark) else shared_folder(spark, folder)
    if local is not None:  # Hadoop would add a checksum file
        local.mkdir(parents=True, exist_ok=True)
        replace_local_file(local / name, content)
    elif is_connect(spark):
        raise ConfigError(
            f"{show_value(redact(folder))}: a session of Spark Connect writes files to local folders only. Name such a "
            "folder, or start the job without SPARK_REMOTE."
        )
    else:
        _replace_hadoop_file(spark, folder, name, content)


def _replace_hadoop_file(spark: SparkSession, folder: str, name: str, content: bytes) -> None:
    file_system, target = open_hadoop_path(spark, f"{folder}/{name}")
    _, draft = open_hadoop_path(spark, f"{folder}/.{name}.{uuid4().hex}")
    try:
        with closing(file_system.create(draft, False)) as stream:
            stream.write(content)
        _rename(spark, file_system, draft, file_system.makeQualified(target))
    except BaseException:
        with suppress(Exception):  # the first failure is the one to report
            file_system.delete(draft, False)
        raise


def _rename(spark: SparkSession, file_system: Any, source: Any, target: Any) -> None:
    context: Any = spark.sparkContext
    options = getattr(context._jvm, f"{_HADOOP}.Options$Rename")
    overwrite = context._gateway.new_array(options, 1)
    overwrite[0] = options.OVERWRITE
    try:
        contexts = getattr(context._jvm, f"{_HADOOP}.FileContext")
        contexts.getFileContext(target.toUri(), context._jsc.hadoopConfiguration()).rename(source, target, overwrite)
    except Exception as error:  # of py4j, which a Connect client may lack
        # A file system may have only the other interface of Hadoop, which cannot replace a file.
        if "UnsupportedFileSystemException" not in str(error):
            raise
        file_system.delete(target, False)
        if not file_system.rename(source, target):
            raise OSError(f"{source.getName()} could not be renamed") from None
