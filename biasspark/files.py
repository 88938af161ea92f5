"""Small files that are replaced whole, on any file system that Spark can write."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from biasspark.config import redact, show_value
from biasspark.errors import ConfigError
from biasspark.session import find_files, is_connect

_LOCAL = re.compile(r"(?:file:/*(?=/))?(?![A-Za-z][A-Za-z0-9+.-]+:)(.*)", re.DOTALL)
_HADOOP = "org.apache.hadoop.fs"


def replace_file(spark: SparkSession, folder: str, name: str, content: bytes) -> None:
    """Write a small file, in place of one of that name; folders that are missing are made.

    The content is written to a hidden file beside it, which is then renamed: readers see the earlier file or the new
    one, never a part. Disks and HDFS rename in one step; object stores have neither file for a moment.

    Raises
    ------
    ConfigError
        Under Connect, if the folder is not on this machine.
    Exception
        Python's or Java's, if it cannot be written.
    """
    hidden = f".{name}.{uuid4().hex}"
    if is_connect(spark):
        _replace_local_file(_find_local_folder(folder), name, hidden, content)
        return
    files, place = find_files(spark, f"{folder}/{name}")
    if files.getUri().getScheme() == "file":  # Hadoop would write a file of checksums beside each
        _replace_local_file(Path(place.getParent().toUri().getPath()), name, hidden, content)
        return
    _, unfinished = find_files(spark, f"{folder}/{hidden}")
    try:
        stream = files.create(unfinished, False)
        try:
            stream.write(content)
        finally:
            stream.close()
        _rename(spark, files, unfinished, files.makeQualified(place))
    except BaseException:
        with suppress(Exception):  # the first failure is the one to report
            files.delete(unfinished, False)
        raise


def _rename(spark: SparkSession, files: Any, source: Any, target: Any) -> None:
    """Rename a file, in place of one of the new name."""
    context: Any = spark.sparkContext
    options = getattr(context._jvm, f"{_HADOOP}.Options$Rename")
    instead = context._gateway.new_array(options, 1)
    instead[0] = options.OVERWRITE
    try:
        contexts = getattr(context._jvm, f"{_HADOOP}.FileContext")
        contexts.getFileContext(target.toUri(), context._jsc.hadoopConfiguration()).rename(source, target, instead)
    except Exception as error:  # py4j's, which a Connect client need not have
        # A file system may have one of Hadoop's two interfaces alone, and this one cannot replace a file.
        if "UnsupportedFileSystemException" not in str(error):
            raise
        files.delete(target, False)
        if not files.rename(source, target):
            raise OSError(f"{source.getName()} could not be renamed") from None


def _find_local_folder(folder: str) -> Path:
    if local := _LOCAL.fullmatch(folder):
        return Path(local[1]).absolute()
    raise ConfigError(
        f"{show_value(redact(folder))}: a session of Spark Connect writes files to folders of this machine only. Name "
        "such a folder, or start the job without SPARK_REMOTE."
    )


def _replace_local_file(folder: Path, name: str, hidden: str, content: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        (folder / hidden).write_bytes(content)
        (folder / hidden).replace(folder / name)
    except BaseException:
        (folder / hidden).unlink(missing_ok=True)
        raise
