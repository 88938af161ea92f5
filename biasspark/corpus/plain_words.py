"""What Spark says of the input, in plain words: the place, the fault and its mend, and no value of a row."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath

from pyspark.errors import AnalysisException, ParseException, PySparkException

from biasspark.config import find_close, redact
from biasspark.corpus.files import plain_path
from biasspark.corpus.other_format import format_of_ending, may_be_other_format
from biasspark.errors import BiasSparkError, ConfigError, InputError, find_condition_of_a_value, find_error_condition

_CORRUPT = "a file cannot be read. It is corrupt or of another format. Replace it"
_UNREADABLE = "a column is of a type that Spark cannot read. Write it as another (times: microseconds)"
_OTHER_TYPE = (
    "a column has another type in one file than in others. Write those of the wrong type anew, or have Spark 4 "
    "read numbers as the wider type by a `schema`"
)
_NO_CATALOG = (
    "the session has no such catalog. Check `[corpus] table`, the catalogs of the session (spark.sql.catalog.NAME) and "
    "their jars"
)
_BAD_OPTION = "Spark refuses an option. Check `[corpus] options`"
_MORE_ROWS = "it looks at more than its own row, as aggregates, windows and generators do"
_SAYINGS = {
    "ACCESS_DENIED": "permission is denied. Let the user or role of the job read it, and enter the folders above it",
    "PATH_NOT_FOUND": "there is nothing at this path. Check the path",
    "UNABLE_TO_INFER_SCHEMA": "there are no data files here. Check the path and the format",
    "NO_FILE_SYSTEM": "Spark cannot open such a path. Check its scheme and host, and the jars of the session",
    "DATA_SOURCE_NOT_FOUND": "Spark knows no such format. Check `[corpus] format` and the jars of the session",
    "TABLE_OR_VIEW_NOT_FOUND": "there is no such table. Check `[corpus] table` and the catalogs of the session",
    "REQUIRES_SINGLE_PART_NAMESPACE": _NO_CATALOG,
    "CATALOG_NOT_FOUND": _NO_CATALOG,
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
    "PARSE_SYNTAX_ERROR": "this is not valid Spark SQL",
    "CONFLICTING_PARTITION_COLUMN_NAMES": (
        "its folders are partitions of different columns, or of different depths. Bring them into one form"
    ),
    "LEFT_TO_CHANCE": (
        "it is left to chance, and the corpus is read more than once. Use a hash, as in pmod(xxhash64(id), 10) = 0"
    ),
    "UNRESOLVED_COLUMN": "a column that it names is not there",
    "INVALID_WHERE_CONDITION": _MORE_ROWS,
    "NESTED_AGGREGATE_FUNCTION": _MORE_ROWS,
    "UNSUPPORTED_GENERATOR": _MORE_ROWS,
}
_SAYINGS_OF_EXPRESSIONS = {  # which fail on a value
    "CAST_INVALID_INPUT": "a text cannot be cast to the requested type. Use try_cast",
    "CAST_OVERFLOW": "a number is cast to a type that is too narrow for it. Use try_cast",
    "ARITHMETIC_OVERFLOW": "a sum or product overflows. Use try_add, try_multiply or a wider type",
    "DIVIDE_BY_ZERO": "something is divided by zero. Use try_divide",
    "INVALID_ARRAY_INDEX": "an array has no such place. Use get",
    "USER_RAISED_EXCEPTION": "an error is raised. Correct the expression",
    "MALFORMED_PATTERN": "a regular expression is invalid. Correct it",
    "CANNOT_PARSE_TIMESTAMP": "a text is not a date or time in that pattern. Use try_to_timestamp",
}
_ALL_SAYINGS = _SAYINGS | _SAYINGS_OF_EXPRESSIONS
_BEFORE_CONDITIONS = {  # what Spark says where it gives no condition
    "catalog plugin class": "CATALOG_NOT_FOUND",
    "is not a Parquet file": "CANNOT_READ_FILE_FOOTER",
    "Could not read footer": "CANNOT_READ_FILE_FOOTER",
    "Malformed ORC file": "CANNOT_READ_FILE_FOOTER",
    "Cannot read": "FAILED_READ_FILE",
    "Encountered error while reading file": "FAILED_READ_FILE",
    "Parquet column cannot be converted in file": "PARQUET_COLUMN_DATA_TYPE_MISMATCH",
    "Checksum error": "FAILED_READ_FILE",
    "Illegal Parquet type": "PARQUET_TYPE_ILLEGAL",
    "Conflicting partition column names": "CONFLICTING_PARTITION_COLUMN_NAMES",
    "CSV header does not conform": "CSV_HEADER",
    "Number of column in CSV header": "CSV_HEADER",
    "Failed to find data source": "DATA_SOURCE_NOT_FOUND",
    "No FileSystem for scheme": "NO_FILE_SYSTEM",
    "ClassNotFoundException: Class org.apache.hadoop.fs": "NO_FILE_SYSTEM",
    "UnknownHostException": "NO_FILE_SYSTEM",
    "URISyntaxException": "NO_FILE_SYSTEM",
    "flag can be true or false": "MALFORMED_OPTION",
    "eterministic expression": "LEFT_TO_CHANCE",
    "window functions inside WHERE": "INVALID_WHERE_CONDITION",
    "window function inside an aggregate": "INVALID_WHERE_CONDITION",
    "PatternSyntaxException": "MALFORMED_PATTERN",
    "INVALID_PARAMETER_VALUE.PATTERN": "MALFORMED_PATTERN",
}
_DENIED = re.compile(  # what Java and the file systems say, and of which path
    r"AccessDeniedException: (?P<local>/[^\n]*?)(?:: Permission denied)?(?=\n|$)"
    r"|AccessDeniedException: (?P<store>\w+://[^\s:]*)"
    r"|FileNotFoundException: (?P<file>[^\n]*?) \(Permission denied\)"
    r"|AccessControlException: Permission denied: [^\n]*?inode=\"(?P<inode>[^\"\n]*)\""
    r"|AccessDeniedException|AccessControlException|AuthorizationPermissionMismatch|403 Forbidden"
)
_MISSING_PATH = re.compile(r"Path does not exist: (?:file:/*(?=/))?(/.*?)\.(?: SQLSTATE|\s*\n|$)")
_FILE = re.compile(r"((?:file|hdfs|s3a?|gs|abfss?|wasbs?|dbfs):[^\s,\"']*[^\s,\"'.:;)\]])")
_SAY_LITTLE = {"FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER"}  # any other condition tells more
_NAMED = {  # what Spark's sentences name, and how a fault repeats it
    r"Parquet column \[(.*?)\]\. Expected Spark type (\w+), actual Parquet type (\w+)": "Column: {0}, {2} for {1}",
    r"Column: \[(.*?)\], Expected: (\w+), Found: (\w+)": "Column: {0}, {2} for {1}",
    r"The column `(.*?)` already exists": "Column: {0}",
    r"Illegal Parquet type: (.*?)\.(?: SQLSTATE|\s*\n|$)": "Type: {0}",
    r"The data type (\w+) is not supported": "Type: {0}",
    r"Failed to find (?:the )?data source: ([\w.]*\w)": "Format: {0}",
    r"with name (`.*?`) cannot be resolved": "Column: {0}",
}
_FORMATS = ("parquet", "orc", "json", "csv", "avro", "delta", "iceberg")  # which a misspelt one may stand for
_PATTERN_FAULT = re.compile(r"PatternSyntaxException: ([A-Z][a-z ]+ near index \d+)")
_NO_WORKER = {  # why the Python of the executors will not do
    r'Cannot run program "([^"\n]+)"': "executors cannot run {0}",
    r"Python in worker has different version:? ([\d.]+) than that in driver:? ([\d.]+\d)": (
        "executors run Python {0}, and the driver runs {1}"
    ),
    r"ModuleNotFoundError: No module named '([\w.]+)'": "the Python of the executors lacks the package {0}",
}
_WORKER_DIED = re.compile(
    r"(?<!OutOf)MemoryError|[Cc]annot allocate memory|failed to map segment|Python worker exited unexpectedly"
)


class ExpressionFault(InputError):
    """An expression, probably of the configuration, fails on a value."""


@contextmanager
def input_faults(where: str) -> Iterator[None]:
    """Turn what Spark says of the input into an `InputError` that names files and columns, and no value of a row.

    A Python worker that dies is a `BiasSparkError`, one that cannot be started a `ConfigError`: the input is not to
    blame.
    """
    try:
        yield
    except PySparkException as error:
        raise _in_plain_words(where, error) from None
    except Exception as error:
        if type(error).__name__ != "Py4JJavaError":
            raise
        raise _in_plain_words(where, error) from None


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
    of_a_value = find_condition_of_a_value(text)
    for sentence, fault in () if of_a_value else _NO_WORKER.items():
        if found := re.search(sentence, text):
            return ConfigError(
                f"PYSPARK_PYTHON: {fault.format(*found.groups())}. Executors need the driver's version of Python, with "
                "numpy, pandas, pyarrow and biasspark. Set PYSPARK_PYTHON to one that all of them have, or send one "
                "along: docs/platforms.md."
            )
    named = re.findall(r"\[([A-Z][A-Z0-9_]+)(?:\.([A-Z][A-Z0-9_]+))?\]", text)
    conditions = [name for pair in named for name in reversed(pair) if name in _ALL_SAYINGS]
    conditions += [condition for words, condition in _BEFORE_CONDITIONS.items() if words in text]
    conditions += [of_a_value] if of_a_value in _ALL_SAYINGS else []
    conditions += ["ACCESS_DENIED"] if not of_a_value and _DENIED.search(text) else []
    conditions.sort(key=_SAY_LITTLE.__contains__)
    is_refused = isinstance(error, AnalysisException | ParseException)
    if not (conditions or is_refused or of_a_value):
        return error
    condition = conditions[0] if conditions else ""
    refused = find_error_condition(error) or of_a_value or type(error).__name__
    saying = _ALL_SAYINGS.get(condition, f"Spark refuses it ({refused})")
    details = (detail + ("" if detail.endswith("?") else ".") for detail in _details(condition, text, error))
    fault = " ".join((f"{where}: {saying}.", *details))
    is_of_a_value = condition in _SAYINGS_OF_EXPRESSIONS or not (conditions or is_refused)
    return (ExpressionFault if is_of_a_value else InputError)(fault)


def _details(condition: str, text: str, error: Exception) -> Iterator[str]:
    """Name the file, the column or the expression that a fault is about."""
    for sentence, detail in _NAMED.items():
        if found := re.search(sentence, text):
            yield detail.format(*found.groups())
    if condition == "DATA_SOURCE_NOT_FOUND" and (found := re.search(r"data source: (\w+)", text)):
        close = find_close(found[1].lower(), _FORMATS)
        yield from (f"Did you mean {name}?" for name in [close] if name)
    if condition == "CANNOT_MERGE_SCHEMAS":
        yield from _name_unlike(text)
    if condition == "MALFORMED_PATTERN" and (found := _PATTERN_FAULT.search(text)):
        yield found[1]
    if condition in ("CANNOT_READ_FILE_FOOTER", "FAILED_READ_FILE", "CSV_HEADER", "PARQUET_COLUMN_DATA_TYPE_MISMATCH"):
        files = sorted({plain_path(name) for name in _FILE.findall(text)})
        yield from (f"File: {name}" for name in files[:3])
        if may_be_other_format(error):
            yield from _suggest_format(files, "orc" if "Malformed ORC" in text else "parquet")
    if condition == "ACCESS_DENIED":
        paths = [plain_path(path) for found in _DENIED.finditer(text) for path in found.groups() if path]
        yield from (f"Path: {redact(path)}" for path in dict.fromkeys(paths[:3]))
    if condition == "PATH_NOT_FOUND" and (found := _MISSING_PATH.search(text)):
        yield from (f"Or it is not seen: this user may not enter {folder}" for folder in _find_closed(found[1]))
    if condition in _SAYINGS_OF_EXPRESSIONS:  # which of those that an expression is made of
        contexts = error.getQueryContext() if hasattr(error, "getQueryContext") else []  # Spark 4's
        yield from (f"Part: {context.fragment()}" for context in contexts[:1] if context.contextType().name == "SQL")


def _suggest_format(files: Sequence[str], configured: str) -> Iterator[str]:
    """Say of which format files are by their names, where all say the same and another one than is configured."""
    formats = {format_of_ending(name) for name in files}
    yield from (f'By its name it is {name}: set `[corpus] format = "{name}"`' for name in formats - {configured, None})


def _find_closed(path: str) -> Iterator[str]:
    """Give the folder above a local path that this user may not enter; Spark says then that there is nothing."""
    folders = [folder for folder in reversed(PurePosixPath(path).parents) if os.path.isdir(folder)]
    yield from (str(folder) for folder in folders[-1:] if not os.access(folder, os.X_OK))


def _name_unlike(text: str) -> Iterator[str]:
    """Name the columns of which Spark says that two schemas have them of types that cannot be merged."""
    schemas = (body.replace(" NOT NULL", "") for body in re.findall(r'"STRUCT<(.*)>"', text)[:2])
    first, other = (dict(re.findall(r"(`[^`]*`|\w+): (.*?)(?=, (?:`[^`]*`|\w+): |$)", body)) for body in schemas)
    for name in first:
        if first[name] != other.get(name, first[name]):
            yield f"Column: {name}, {other[name]} for {first[name]}"
