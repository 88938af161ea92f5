"""The files of a corpus: which there are, and a stop where some are empty or would be passed over in silence."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import date
from itertools import takewhile
from typing import NamedTuple
from urllib.parse import unquote

import pyspark.sql.functions as F
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from biasspark.config import Corpus, list_first, redact
from biasspark.errors import InputError, has_condition

_FILE_FORMATS = {"parquet", "orc", "json", "csv"}
_CHOOSING = {"pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter", "basepath"}  # which are read
_LOGGED = {"delta", "iceberg", "hudi"}  # which say by a log of their own what their files are
_OF_PATTERNS = "*?[]{},\\"
_BEGINS_ALONE = r"^[\s\[{]+$"  # a line on which a record begins that ends on another


def list_files(files: DataFrame) -> list[str]:
    """Return the URIs of all data files that a frame would read, escaped, in order."""
    names = map(_one_slash, files.inputFiles())
    return sorted(name for name in names if not name.rsplit("/", 1)[-1].startswith(("_", ".")))


class Files(NamedTuple):
    """The files of a corpus.

    Attributes
    ----------
    rows
        One row per file, of any format; None of a format that says by a log of its own what its files are.
    path
        Where they lie: the path of the corpus, or a pattern of the folders of a run date.
    """

    rows: DataFrame | None
    path: str


def open_files(spark: SparkSession, corpus: Corpus, run_date: date) -> Files:
    """Return the files of the run date, where its column is among the first partitions of the path, otherwise all.

    So the files of other nights are not even listed. They are if the configuration chooses files by itself or wants
    the columns of all of them, and where no folder is of the date.
    """
    path, name = str(corpus.path), corpus.run_date_column
    if corpus.format.lower() in _LOGGED:
        return Files(None, path)
    chosen = (_CHOOSING | {"mergeschema"}) & {key.lower() for key in corpus.options}
    if name and not chosen and not set(path + name) & set(_OF_PATTERNS):
        # A folder may be of a moment, and of a date without zeros.
        dates = (run_date.isoformat(), f"{run_date.year}-{run_date.month}-{run_date.day}")
        folders = f"{{{','.join(f'{name}={one}' for one in dict.fromkeys(dates))}}}*"
        for above in ("", "*=*/", "*=*/*=*/"):
            pattern = f"{path.rstrip('/')}/{above}{folders}"
            if (rows := _list_if_there(spark, pattern)) is not None:
                return Files(rows, pattern)
    return Files(_list(spark, path), path)


def _list(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(path)


def _list_if_there(spark: SparkSession, path: str) -> DataFrame | None:
    try:
        rows = _list(spark, path)
        return rows if rows.inputFiles() else None  # Connect looks when it is asked
    except AnalysisException as error:
        if has_condition(error, "PATH_NOT_FOUND"):
            return None
        raise


def refuse_empty_files(files: DataFrame, names: Sequence[str], path: str) -> None:
    """Stop at files of no bytes, which Spark skips in silence: a copy that failed would look like a small night."""
    with_bytes = {_one_slash(row["path"]) for row in files.select("path").collect()}  # the format yields no empty file
    empty = [name for name in names if unquote(name) not in with_bytes]  # escaped, unlike the column
    if empty:
        raise InputError(
            f"corpus: path {redact(path)}: {_count_files(empty)} {'have' if len(empty) > 1 else 'has'} no bytes. "
            f"Data files are never empty: a copy has failed. Replace or remove {_name_files(empty)}."
        )


def refuse_unread_files(rows: DataFrame, names: Sequence[str], corpus: Corpus) -> None:
    """Stop at files below the path that Spark passes over in silence, as folders that are no partitions hold."""
    if corpus.format.lower() not in _FILE_FORMATS or _CHOOSING & {key.lower() for key in corpus.options}:
        return
    unread = find_unread(names, {_one_slash(name) for name in rows.inputFiles()}, rows.columns)
    if unread:
        raise InputError(
            f"corpus: path {redact(str(corpus.path))}: {_count_files(unread)} below it would not be read, since Spark "
            "reads either the files of a folder or those of its partitions, `column=value`. Move them, or set `options "
            f"= {{ recursiveFileLookup = true }}` to read all: {_name_files(unread)}."
        )


def find_unread(names: Sequence[str], there: Collection[str], columns: Collection[str]) -> list[str]:
    """Return the files that Spark passes over.

    Parameters
    ----------
    names
        The URIs of all files below the path, escaped.
    there
        Those that Spark says are the corpus.
    columns
        Of the corpus. Where folders ``column=value`` give one, only files within such folders are read after all.
    """
    depths = {name: _count_partitions(name, columns) for name in names}
    deepest = max(depths.values(), default=0)
    return [name for name in names if name not in there or depths[name] < deepest]


def _count_partitions(name: str, columns: Collection[str]) -> int:
    """Return how many folders around a file give columns of the corpus."""
    folders = reversed(unquote(name).split("/")[:-1])
    partitions = takewhile(lambda folder: "=" in folder, folders)
    return sum(folder.partition("=")[0] in columns for folder in partitions)


def refuse_records_of_many_lines(spark: SparkSession, rows: DataFrame, corpus: Corpus, path: str) -> None:
    """Stop at JSON that is read a record a line though its first line is none: every column would be NULL."""
    options = {key.lower(): value for key, value in corpus.options.items()}
    if options.get("multiline") == "true":
        return
    is_none = rows.columns == ["_corrupt_record"]
    if corpus.schema or (not is_none and "_corrupt_record" in rows.columns):
        first = spark.read.text(path).where(F.trim("value") != "").limit(1)
        is_none = not first.where(F.col("value").rlike(_BEGINS_ALONE)).isEmpty()
    if is_none:
        raise InputError(
            f"corpus: path {redact(str(corpus.path))}: a line of JSON is not a whole record. JSON is read one record "
            "per line. Where a record, or an array of records, spans several lines, set `options = { multiLine = "
            "true }`."
        )


def plain_path(name: str) -> str:
    """Return a file's URI as a person writes it: a local one without its scheme."""
    return re.sub("^file:/+", "/", name)


def _count_files(names: Sequence[str]) -> str:
    return f"{len(names):,} {'files' if len(names) > 1 else 'file'}"


def _name_files(names: Sequence[str]) -> str:
    """List files as a person writes them, the first of many."""
    return list_first([plain_path(unquote(name)) for name in names], 20)


def _one_slash(name: str) -> str:
    """Return a file's URI with one slash after its scheme: Spark writes file:/ here and file:/// there."""
    return re.sub(r"^(\w+):/+", r"\1:/", name)
