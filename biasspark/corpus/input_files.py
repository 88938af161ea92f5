"""The files of a corpus, and checks that stop a run if Spark would silently skip or misread some of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import date
from itertools import takewhile
from pathlib import Path
from urllib.parse import unquote

import pyspark.sql.functions as F
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from biasspark.config import Corpus
from biasspark.errors import ABSENT, Fault, InputError, Words, has_condition, redact
from biasspark.session import sees_files
from biasspark.session.spark_errors import plain_path
from biasspark.text import format_count, list_first

CORRUPT = "_corrupt_record"
"""The column in which Spark keeps lines of JSON that it cannot read."""

_FILE_FORMATS = {"parquet", "orc", "json", "csv"}
_TABLE_FORMATS = {"delta", "iceberg", "hudi"}  # the log lists the files of the table
_LOGS = {"_delta_log": "Delta", ".hoodie": "Hudi", "metadata/*.metadata.json": "Iceberg"}
_WITHIN_A_TABLE = re.compile(r"(/[^/=]+=[^/]*)*/[^/]*$")  # folders of partitions, and a file
_FILE_OPTIONS = {"pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter", "basepath"}
OF_PATTERNS = "*?[]{},\\"
_MULTILINE_START = r"^[\s\[{]+$"  # a line that holds the beginning of a record of many lines


def list_files(spark: SparkSession, corpus: Corpus, run_date: date) -> tuple[list[str], str]:
    """Return the URIs of all data files, unescaped, in order, and the path to read; no URIs for a table with a log.

    Raises `InputError` for empty files, and for those of a table with a log that is read without it.
    """
    if corpus.file_format in _TABLE_FORMATS:
        return [], str(corpus.path)
    files, path = _open_files(spark, corpus, run_date)
    uris = map(_unescape, files.inputFiles())
    names = sorted(uri for uri in uris if not uri.rsplit("/", 1)[-1].startswith(("_", ".")))
    _refuse_empty_files(files, names, corpus)
    refuse_files_of_tables(spark, names, corpus)
    return names, path


def _open_files(spark: SparkSession, corpus: Corpus, run_date: date) -> tuple[DataFrame, str]:
    """Return a row for each file, of any format, and the path.

    If the column of the run date is among the first partitions, the path is a pattern of the folders of that date, so
    the files of other days are not even listed. All files are listed if the configuration chooses files by itself or
    merges all schemas, or if no folder has the date.
    """
    path, name = str(corpus.path), corpus.run_date_column
    chooses = (_FILE_OPTIONS | {"mergeschema"}) & corpus.lower_options.keys()
    if name and not chooses and not set(path + name) & set(OF_PATTERNS):
        folders = f"{{{','.join(f'{name}={day}' for day in write_date(run_date))}}}*"
        for above in ("", "*=*/", "*=*/*=*/"):
            pattern = f"{path.rstrip('/')}/{above}{folders}"
            if (rows := _list_if_any(spark, pattern)) is not None:
                return rows, pattern
    return _list(spark, path), path


def write_date(day: date) -> list[str]:
    """Return how the names of partitions write a date, also without leading zeros; a time of day may follow."""
    return sorted({day.isoformat(), f"{day.year}-{day.month}-{day.day}"})


def _list(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(path)


def _list_if_any(spark: SparkSession, path: str) -> DataFrame | None:
    try:
        rows = _list(spark, path)
        return rows if rows.inputFiles() else None  # Connect looks for files only when asked
    except AnalysisException as error:
        if has_condition(error, "PATH_NOT_FOUND"):
            return None
        raise


def _refuse_empty_files(files: DataFrame, names: Sequence[str], corpus: Corpus) -> None:
    """Stop at empty files, which Spark silently skips: a failed copy would look like a small run."""
    if all(name.startswith("file:/") for name in names) and sees_files(files.sparkSession):
        paths = {name: Path(plain_path(name)) for name in names}
        with_bytes = {name for name, file in paths.items() if file.exists() and file.stat().st_size}
    else:
        # The format yields no empty file.
        with_bytes = {_one_slash(row["path"]) for row in files.select("path").collect()}
    refuse_empty([name for name in names if name not in with_bytes], corpus)


def refuse_empty(empty: Sequence[str], corpus: Corpus) -> None:
    """Stop at empty files."""
    if empty:
        raise InputError(
            f"{corpus.location}: {format_count(len(empty), 'file')} {'have' if len(empty) > 1 else 'has'} no "
            f"bytes. Data files are never empty: a copy has failed. Replace or remove {_list_files(empty)}."
        )


def refuse_files_of_tables(spark: SparkSession, names: Iterable[str], corpus: Corpus) -> None:
    """Stop at files of a table with a log: deleted and replaced rows would be read as well."""
    folders = {_WITHIN_A_TABLE.sub("", name) for name in names}
    for folder in sorted(folders | {folder.removesuffix("/data") for folder in folders}):
        if kind := _format_of_table(spark, folder):
            rule = (
                f"{corpus.location}: {redact(plain_path(folder))} is the folder of a {kind} table, whose log lists the "
                "files that count. Read without it, deleted and replaced rows would be counted as well."
            )
            call = f"Read it to Arrow with a library for {kind}, and pass that table."
            fix = Words(f'Set `[corpus] format = "{kind.lower()}"`.', call)
            raise InputError(Fault((), ABSENT, rule, fix))


def _format_of_table(spark: SparkSession, folder: str) -> str | None:
    """Return the format of the table in a folder, by its log; None if there is none."""
    if folder.startswith("file:") and sees_files(spark):
        return next((kind for log, kind in _LOGS.items() if any(Path(plain_path(folder)).glob(log))), None)
    rows = _list_if_any(spark, f"{folder}/{{{','.join(_LOGS)}}}")
    names = " ".join(rows.inputFiles()) if rows is not None else ""
    return next((kind for log, kind in _LOGS.items() if f"/{log.partition('/')[0]}/" in names), None)


def refuse_skipped_files(rows: DataFrame, names: Sequence[str], corpus: Corpus) -> None:
    """Stop at files below the path that Spark silently skips, in folders that are not partitions."""
    if corpus.file_format in _FILE_FORMATS and not _FILE_OPTIONS & corpus.lower_options.keys():
        read = set(map(_unescape, rows.inputFiles()))
        refuse_skipped(names, read, rows.columns, corpus)


def refuse_skipped(names: Sequence[str], read: Collection[str], columns: Collection[str], corpus: Corpus) -> None:
    """Stop at files below the path that Spark skips, given those that it reports to read.

    If folders ``column=value`` give one of the `columns`, Spark reads only files in such folders.
    """

    def count_partitions(name: str) -> int:
        folders = takewhile(lambda folder: "=" in folder, reversed(name.split("/")[:-1]))
        return sum(folder.partition("=")[0] in columns for folder in folders)

    depths = {name: count_partitions(name) for name in names}
    deepest = max(depths.values(), default=0)
    if skipped := [name for name in names if name not in read or depths[name] < deepest]:
        rule = (
            f"{corpus.location}: {format_count(len(skipped), 'file')} below it would not be read, since Spark reads "
            "either the files of a folder or those of its partitions, `column=value`. "
        )
        fix = Words(
            "Move them, or on Spark set `options = { recursiveFileLookup = true }` to read all",
            "Move them, or read all with pandas and pass one frame",
        )
        raise InputError(Fault((), ABSENT, (rule, fix, f": {_list_files(skipped)}.")))


def refuse_records_of_many_lines(rows: DataFrame, corpus: Corpus, path: str) -> None:
    """Stop at JSON read one record per line whose first line is not a record: every column would be NULL."""
    is_long = rows.columns == [CORRUPT]
    if corpus.lower_options.get("multiline", "").lower() == "true":
        if is_long:
            raise InputError(f"{corpus.location}: it has no record of JSON. If the files have another format, set it.")
        return
    if corpus.schema or (not is_long and CORRUPT in rows.columns):
        first = rows.sparkSession.read.text(path).where(F.trim("value") != "").limit(1)
        is_long = not first.where(F.col("value").rlike(_MULTILINE_START)).isEmpty()
    if is_long:
        raise InputError(
            f"{corpus.location}: a line of JSON is not a whole record. JSON is read one record per line. Where a "
            "record, or an array of records, spans several lines, set `options = { multiLine = true }`. If the files "
            "have another format, set it. The names of compressed files say so, such as rows.json.gz."
        )


def _list_files(names: Sequence[str]) -> str:
    """Join file names as prose; of many, only the first."""
    return list_first([plain_path(name) for name in names], 20)


def _unescape(uri: str) -> str:
    """Return a URI of Spark as the files in it are named."""
    return unquote(_one_slash(uri))


def _one_slash(name: str) -> str:
    """Return a file's URI with one slash after its scheme: Spark writes file:/ here and file:/// there."""
    return re.sub(r"^(\w+):/+", r"\1:/", name)
