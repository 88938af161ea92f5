"""Lake table -> corpus: the rows that the configuration names, with every fault of the input in plain words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from itertools import takewhile
from urllib.parse import unquote

import pyspark.sql.functions as F
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import DateType, StringType, TimestampNTZType, TimestampType

from biasspark.config import Corpus, Measures, redact
from biasspark.corpus.check import check_schema, show_columns
from biasspark.corpus.eligibility import DUPLICATE
from biasspark.corpus.values import analyse_condition, column
from biasspark.errors import BiasSparkError, InputError, find_error_condition
from biasspark.sql import quote_name

# RFC 4180, where Spark's own default would split a text with quotes at its commas, and one with line ends into rows.
_DEFAULT_OPTIONS = {"csv": {"header": "true", "escape": '"', "multiLine": "true", "enforceSchema": "false"}}

_CORRUPT = "a file cannot be read. It is corrupt or of another format. Replace it"
_UNREADABLE = "a column is of a type that Spark cannot read. Write it as another (times: microseconds)"
_OTHER_TYPE = "a column has another type in one file than in others. Write that file anew"
_BAD_OPTION = "Spark refuses an option. Check `[corpus] options`"
_SAYINGS = {
    "PATH_NOT_FOUND": "there is nothing at this path. Check the path",
    "UNABLE_TO_INFER_SCHEMA": "there are no data files here. Check the path and the format",
    "NO_FILE_SYSTEM": "Spark cannot open such a path. Check its scheme and host, and the jars of the session",
    "DATA_SOURCE_NOT_FOUND": "Spark knows no such format. Check `[corpus] format` and the jars of the session",
    "TABLE_OR_VIEW_NOT_FOUND": "there is no such table. Check `[corpus] table` and the catalogs of the session",
    "MALFORMED_OPTION": _BAD_OPTION,
    "INVALID_DELIMITER_VALUE": _BAD_OPTION,
    "CHARSET": _BAD_OPTION,
    "UNSUPPORTED_DATATYPE": "the `schema` names a type that Spark does not have. Correct it",
    "COLUMN_ALREADY_EXISTS": "two of its columns differ in case alone. Spark cannot tell them apart. Rename one",
    "PARQUET_TYPE_ILLEGAL": _UNREADABLE,
    "CANNOT_READ_FILE_FOOTER": _CORRUPT,
    "PARQUET_COLUMN_DATA_TYPE_MISMATCH": _OTHER_TYPE,
    "CANNOT_MERGE_SCHEMAS": _OTHER_TYPE,
    "FAILED_READ_FILE": _CORRUPT,
    "CSV_HEADER": (
        "the header line of a CSV file names other columns than that of the first file (or than the `schema`), or the "
        "same in another order, and values would end up in the wrong columns. Write the file anew, or set `options = { "
        "enforceSchema = true }` where columns are meant by their place alone"
    ),
    "UNSUPPORTED_TIME_TYPE": _UNREADABLE,
    "MALFORMED_RECORD_IN_PARSING": "a record does not fit the table. Take the mode FAILFAST from its options",
    "PARSE_SYNTAX_ERROR": "this is no Spark SQL",
    "CONFLICTING_PARTITION_COLUMN_NAMES": (
        "its folders are partitions of different columns, or of different depths. Bring them into one form"
    ),
    "LEFT_TO_CHANCE": (
        "it is left to chance, and the corpus is read more than once. Use a hash, as in pmod(xxhash64(id), 10) = 0"
    ),
    "UNRESOLVED_COLUMN": "a column that it names is not there",
}
_SAYINGS_OF_EXPRESSIONS = {  # which fail on a value
    "CAST_INVALID_INPUT": "a text is cast to a type that it is none of. Use try_cast",
    "CAST_OVERFLOW": "a number is cast to a type that is too narrow for it. Use try_cast",
    "ARITHMETIC_OVERFLOW": "a sum or product overflows. Use try_add, try_multiply or a wider type",
    "DIVIDE_BY_ZERO": "something is divided by zero. Use try_divide",
    "INVALID_ARRAY_INDEX": "an array has no such place. Use get",
    "USER_RAISED_EXCEPTION": "an error is raised. Correct the expression",
    "MALFORMED_PATTERN": "a regular expression is none. Correct it",
}
_ALL_SAYINGS = _SAYINGS | _SAYINGS_OF_EXPRESSIONS
_BEFORE_CONDITIONS = {  # what Spark says where it gives no condition
    "is not a Parquet file": "CANNOT_READ_FILE_FOOTER",
    "Could not read footer": "CANNOT_READ_FILE_FOOTER",
    "Malformed ORC file": "CANNOT_READ_FILE_FOOTER",
    "Cannot read": "FAILED_READ_FILE",
    "Checksum error": "FAILED_READ_FILE",
    "CSV header does not conform": "CSV_HEADER",
    "Number of column in CSV header": "CSV_HEADER",
    "Failed to find data source": "DATA_SOURCE_NOT_FOUND",
    "No FileSystem for scheme": "NO_FILE_SYSTEM",
    "ClassNotFoundException: Class org.apache.hadoop.fs": "NO_FILE_SYSTEM",
    "UnknownHostException": "NO_FILE_SYSTEM",
    "URISyntaxException": "NO_FILE_SYSTEM",
    "flag can be true or false": "MALFORMED_OPTION",
    "eterministic expression": "LEFT_TO_CHANCE",
    "PatternSyntaxException": "MALFORMED_PATTERN",
    "INVALID_PARAMETER_VALUE.PATTERN": "MALFORMED_PATTERN",
}
_FILE = re.compile(r"((?:file|hdfs|s3a?|gs|abfss?|wasbs?|dbfs):[^\s,\"']*[^\s,\"'.:;)\]])")
_NAMED = {  # what Spark's sentences name, and how a fault repeats it
    r"Parquet column \[(.*?)\]\. Expected Spark type (\w+), actual Parquet type (\w+)": "Column: {0}, {2} for {1}",
    r"The column `(.*?)` already exists": "Column: {0}",
    r"Illegal Parquet type: (.*?)\. SQLSTATE": "Type: {0}",
    r"The data type (\w+) is not supported": "Type: {0}",
}
_FILE_FORMATS = {"parquet", "orc", "json", "csv"}
_CHOOSING = {"pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter", "basepath"}  # which are read
_BEGINS_ALONE = r"^[\s\[{]+$"  # a line on which a record begins that ends on another
_PATTERN_FAULT = re.compile(r"PatternSyntaxException: ([A-Z][a-z ]+ near index \d+)")
_WORKER_DIED = re.compile(
    r"(?<!OutOf)MemoryError|[Cc]annot allocate memory|failed to map segment|Python worker exited unexpectedly"
)
_DATA_EXCEPTION = re.compile(r"SQLSTATE: 22\w{3}")  # a value does not suit what is computed of it


class ExpressionFault(InputError):
    """An expression, probably of the configuration, fails on a value."""


def read_corpus(spark: SparkSession, corpus: Corpus, run_date: date, measures: Measures | None = None) -> DataFrame:
    """Return the corpus of a run: lazy, all columns of the source, the configured rows.

    Unless ``options`` says otherwise a CSV file has a header line, and is as RFC 4180 has it: quotes within quotes are
    doubled, and lines may end there. Its columns are read as text and cast where they are used, so that a bad value
    costs its own row and no other.

    Parameters
    ----------
    measures : Measures, optional
        What is to be measured; given, the schema is checked for it (`check_schema`) with all else.

    Raises
    ------
    InputError
        If the source cannot be found or opened or holds an empty file; or with every column that is missing or
        mistyped and every predicate that does not fit.
    """
    source = f"table {corpus.table}" if corpus.table else f"path {redact(corpus.path or '')}"
    with input_faults(f"corpus: {source}"):
        rows = _load(spark, corpus)
        rows.schema  # noqa: B018 - Connect looks at a source only when its schema is asked for
    faults: list[str] = []
    chosen = rows
    with _gathered(faults):
        chosen = _of_the_day(chosen, corpus, run_date)
    with _gathered(faults):
        chosen = _filtered(chosen, corpus)
    with _gathered(faults):
        if measures is not None:
            check_schema(rows, measures, corpus.id)
    if faults:
        raise InputError(*faults)
    return chosen


def mark_duplicates(corpus: DataFrame, id_column: str) -> tuple[DataFrame, DataFrame]:
    """Mark every row whose id another row has, too; return the rows, and the ids that repeat.

    Notes
    -----
    Cost: one more scan, of the ids alone, and a shuffle of them; persist the ids to use the rows twice. Rows are
    shuffled only where too many ids repeat for the list of them to be sent to every executor.
    """
    repeated = (
        corpus.select(column(id_column).alias("_biasspark_id"))
        .groupBy("_biasspark_id")
        .count()
        .where("count > 1")
        .select("_biasspark_id", F.lit(True).alias(DUPLICATE))
    )
    marked = corpus.join(repeated, column(id_column) == F.col("_biasspark_id"), "left").drop("_biasspark_id")
    return marked, repeated


@contextmanager
def input_faults(where: str) -> Iterator[None]:
    """Turn what Spark says of the input into an `InputError` that names files and columns, and no value of a row.

    A Python worker that dies is a `BiasSparkError`: the input is not to blame.
    """
    try:
        yield
    except PySparkException as error:
        raise _in_plain_words(where, error) from None
    except Exception as error:
        if type(error).__name__ != "Py4JJavaError":
            raise
        raise _in_plain_words(where, error) from None


@contextmanager
def _gathered(faults: list[str]) -> Iterator[None]:
    """Note the faults of the input that a block finds, and go on."""
    try:
        yield
    except InputError as error:
        faults += error.faults


def _of_the_day(rows: DataFrame, corpus: Corpus, run_date: date) -> DataFrame:
    name = corpus.run_date_column
    if name is None:
        return rows
    _need_column(rows, name, corpus)
    is_text = isinstance(rows.schema[name].dataType, StringType)
    day = F.expr(f"try_cast({quote_name(name)} AS DATE)") if is_text else F.to_date(column(name))
    return rows.where(day == F.lit(run_date))


def _filtered(rows: DataFrame, corpus: Corpus) -> DataFrame:
    if corpus.filter is None:
        return rows
    try:
        with input_faults(f'[corpus] filter = "{corpus.filter}"'):
            analyse_condition(rows, F.expr(corpus.filter))
            kept = rows.where(F.expr(corpus.filter))
    except InputError as error:
        shown = _show_columns(rows, corpus)
        raise InputError(*(f"{fault} {shown}" for fault in error.faults)) from None
    return kept


def _load(spark: SparkSession, corpus: Corpus) -> DataFrame:
    if corpus.table is not None:
        return spark.table(corpus.table)
    assert corpus.path is not None
    files = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(corpus.path)
    names = _list_files(files)
    _refuse_empty_files(files, names, corpus.path)
    rows = _reader(spark, corpus).load(corpus.path)
    _refuse_unread_files(rows, names, corpus)
    if corpus.format.lower() == "json":
        _refuse_records_of_many_lines(spark, rows, corpus)
    return rows


def _refuse_unread_files(rows: DataFrame, names: Sequence[str], corpus: Corpus) -> None:
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


def _refuse_records_of_many_lines(spark: SparkSession, rows: DataFrame, corpus: Corpus) -> None:
    """Stop at JSON that is read a record a line though its first line is none: every column would be NULL."""
    options = {key.lower(): value for key, value in corpus.options.items()}
    if options.get("multiline") == "true":
        return
    is_none = rows.columns == ["_corrupt_record"]
    if corpus.schema or (not is_none and "_corrupt_record" in rows.columns):
        first = spark.read.text(str(corpus.path)).where(F.trim("value") != "").limit(1)
        is_none = not first.where(F.col("value").rlike(_BEGINS_ALONE)).isEmpty()
    if is_none:
        raise InputError(
            f"corpus: path {redact(str(corpus.path))}: a line of JSON is no record by itself. JSON is read a record a "
            "line. Where records, or one array of them, go over many lines, set `options = { multiLine = true }`."
        )


def _reader(spark: SparkSession, corpus: Corpus) -> DataFrameReader:
    reader = spark.read.format(corpus.format)
    for key, value in (_DEFAULT_OPTIONS.get(corpus.format.lower(), {}) | corpus.options).items():
        reader = reader.option(key, value)
    return reader.schema(corpus.schema) if corpus.schema else reader


def _refuse_empty_files(files: DataFrame, names: Sequence[str], path: str) -> None:
    """Stop at files of no bytes, which Spark skips in silence: a copy that failed would look like a small night."""
    with_bytes = {_one_slash(row["path"]) for row in files.select("path").collect()}  # the format yields no empty file
    empty = [name for name in names if unquote(name) not in with_bytes]  # escaped, unlike the column
    if empty:
        raise InputError(
            f"corpus: path {redact(path)}: {_count_files(empty)} {'have' if len(empty) > 1 else 'has'} no bytes. "
            f"Data files are never empty: a copy has failed. Replace or remove {_name_files(empty)}."
        )


def _list_files(files: DataFrame) -> list[str]:
    """Return the URIs of all data files that a frame would read, escaped, in order."""
    names = map(_one_slash, files.inputFiles())
    return sorted(name for name in names if not name.rsplit("/", 1)[-1].startswith(("_", ".")))


def _count_files(names: Sequence[str]) -> str:
    return f"{len(names):,} {'files' if len(names) > 1 else 'file'}"


def _name_files(names: Sequence[str]) -> str:
    """List files as a person writes them, the first of many."""
    more = f" and {len(names) - 20:,} more" if len(names) > 20 else ""
    return ", ".join(_plain_path(unquote(name)) for name in names[:20]) + more


def _one_slash(name: str) -> str:
    """Return a file's URI with one slash after its scheme: Spark writes file:/ here and file:/// there."""
    return re.sub(r"^(\w+):/+", r"\1:/", name)


def _plain_path(name: str) -> str:
    """Return a file's URI as a person writes it: a local one without its scheme."""
    return re.sub("^file:/+", "/", name)


def _need_column(rows: DataFrame, name: str, corpus: Corpus) -> None:
    if name not in rows.columns:
        raise InputError(
            f'[corpus] run_date_column = "{name}": the corpus has no such column. {_show_columns(rows, corpus)} '
            "Name one that it has, or remove the line to read all rows."
        )
    kind = rows.schema[name].dataType
    if not isinstance(kind, DateType | TimestampType | TimestampNTZType | StringType):
        raise InputError(
            f'[corpus] run_date_column = "{name}": it is of type {kind.simpleString()}. It must be a date, a time, or '
            "a text that holds a date. Name another column, or cast it."
        )


def _show_columns(rows: DataFrame, corpus: Corpus) -> str:
    has_names = corpus.table is not None or corpus.format.lower() != "csv"
    return show_columns(rows.columns, rows.columns if has_names else [corpus.id])


def _in_plain_words(where: str, error: Exception) -> Exception:
    text = str(error)
    if "biasspark.errors.InputError: " in text:  # raised by our own code on an executor
        return InputError(text.split("biasspark.errors.InputError: ", 1)[1].splitlines()[0])
    if _WORKER_DIED.search(text):
        return BiasSparkError(
            f"{where}: a Python worker has run out of memory, or was killed. Give workers more "
            "(spark.executor.pyspark.memory where it is set, else spark.executor.memoryOverhead), or set `[ranking] "
            "ranges` higher, so that a task holds less."
        )
    named = re.findall(r"\[([A-Z][A-Z0-9_]+)(?:\.([A-Z][A-Z0-9_]+))?\]", text)
    conditions = [name for pair in named for name in reversed(pair) if name in _ALL_SAYINGS]
    conditions += [condition for words, condition in _BEFORE_CONDITIONS.items() if words in text]
    conditions.sort(key="FAILED_READ_FILE".__eq__)  # any other tells more
    is_refused = isinstance(error, AnalysisException | ParseException)
    if not (conditions or is_refused or _DATA_EXCEPTION.search(text)):
        return error
    condition = conditions[0] if conditions else ""
    saying = _ALL_SAYINGS.get(condition, f"Spark refuses it ({find_error_condition(error) or type(error).__name__})")
    fault = f"{where}: {saying}.{''.join(f' {detail}.' for detail in _details(condition, text, error))}"
    is_of_a_value = condition in _SAYINGS_OF_EXPRESSIONS or not (conditions or is_refused)
    return (ExpressionFault if is_of_a_value else InputError)(fault)


def _details(condition: str, text: str, error: Exception) -> Iterator[str]:
    """Name the file, the column or the expression that a fault is about."""
    for sentence, detail in _NAMED.items():
        if found := re.search(sentence, text):
            yield detail.format(*found.groups())
    if condition == "MALFORMED_PATTERN" and (found := _PATTERN_FAULT.search(text)):
        yield found[1]
    if condition in ("CANNOT_READ_FILE_FOOTER", "FAILED_READ_FILE", "CSV_HEADER", "PARQUET_COLUMN_DATA_TYPE_MISMATCH"):
        files = {_plain_path(name) for name in _FILE.findall(text)}
        yield from (f"File: {name}" for name in sorted(files)[:3])
    contexts = error.getQueryContext() if hasattr(error, "getQueryContext") else []  # Spark 4's
    yield from (f"Predicate: {context.fragment()}" for context in contexts[:1] if context.contextType().name == "SQL")
