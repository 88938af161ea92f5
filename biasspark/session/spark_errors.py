"""Translate Spark errors: which file, column or expression is at fault, without values of rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.sql.functions as F
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame

from biasspark import errors
from biasspark.config import FILTER
from biasspark.session.engines import expression, is_embedded
from biasspark.session.spark_jobs import describe
from biasspark.text import closest_match

_CORRUPT: errors.Text = (
    "a file cannot be read. It is corrupt, or of another format",
    errors.Words(
        ' than is set (Parquet, unless another one is). Replace it, or set its format, as `[corpus] format = "csv"`',
        ". Replace it, or read it with pandas and pass the frame",
    ),
)
_UNREADABLE = "a column has a type that Spark cannot read. Write it as another type (times: microseconds)"
_OTHER_TYPE: errors.Text = (
    "a column has another type in one file than in others. Rewrite the files of the wrong type, or ",
    errors.Words(
        "let Spark 4 read numbers as the wider type with a `schema`", "read the files with pandas and pass one frame"
    ),
)
_NO_CATALOG = (
    "the session has no such catalog. Check `[corpus] table`, the catalogs of the session (spark.sql.catalog.NAME) and "
    "their jars"
)
_BAD_OPTION = "Spark refuses an option. Check `[corpus] options`"
TYPE_MISMATCH = "an operator or a function is given values of a type that it does not take. Cast them"
_MORE_ROWS = "it depends on more than its own row, as aggregates, windows and generators do"
_VALUE_EXPLANATIONS = {  # expressions that fail on a value
    "CAST_INVALID_INPUT": (
        "a string cannot be cast to the requested type. Use try_cast, which makes it NULL, replace(name, ',', '') if "
        "it is a number such as 1,000, or compare a column with values of its type"
    ),
    "CAST_OVERFLOW": "a number is cast to a type that is too narrow for it. Use try_cast",
    "ARITHMETIC_OVERFLOW": "a sum or product overflows. Use try_add, try_multiply or a wider type",
    "DIVIDE_BY_ZERO": "something is divided by zero. Use try_divide",
    "INVALID_ARRAY_INDEX": "an array has no such index. Use get",
    "USER_RAISED_EXCEPTION": "an error is raised. Correct the expression",
    "MALFORMED_PATTERN": "a regular expression is invalid. Correct it",
    "DATE_OUT_OF_RANGE": (
        "the embedded engine compares dates with times of the years 1678 to 2261 only. Compare them with dates, as "
        "current_date(), or run it on Spark"
    ),
    "CANNOT_PARSE_TIMESTAMP": "a string is not a date or time in that pattern. Use try_to_timestamp",
}
_EXPLANATIONS: dict[str, errors.Text] = {
    **_VALUE_EXPLANATIONS,
    "ACCESS_DENIED": "permission is denied. Let the user or role of the job read it, and enter the folders above it",
    "PATH_NOT_FOUND": (
        "there is nothing at this path, or this user may not enter a folder above it. Check the path",
        errors.Words("; a relative one is looked up next to the configuration, then in the working folder", ""),
    ),
    "UNABLE_TO_INFER_SCHEMA": "there are no data files here. Check the path and the format",
    "NO_FILE_SYSTEM": "Spark cannot open such a path. Check its scheme and host, and the jars of the session",
    "DATA_SOURCE_NOT_FOUND": (
        "Spark knows no such format. It reads parquet, orc, json and csv, and with their jars others, such as avro, "
        "delta and iceberg. Check `[corpus] format` and the jars of the session"
    ),
    "TABLE_OR_VIEW_NOT_FOUND": "there is no such table. Check `[corpus] table` and the catalogs of the session",
    "REQUIRES_SINGLE_PART_NAMESPACE": _NO_CATALOG,
    "CATALOG_NOT_FOUND": _NO_CATALOG,
    "MALFORMED_OPTION": _BAD_OPTION,
    "INVALID_DELIMITER_VALUE": _BAD_OPTION,
    "CHARSET": _BAD_OPTION,
    "UNSUPPORTED_DATATYPE": "the `schema` names a type that Spark does not have. Correct it",
    "COLUMN_ALREADY_EXISTS": "two of its columns have the same name. Spark ignores case. Rename one",
    "PARQUET_TYPE_ILLEGAL": _UNREADABLE,
    "UNSUPPORTED_TIME_TYPE": _UNREADABLE,
    "PARQUET_COLUMN_DATA_TYPE_MISMATCH": _OTHER_TYPE,
    "CANNOT_MERGE_SCHEMAS": _OTHER_TYPE,
    "CANNOT_READ_FILE_FOOTER": _CORRUPT,
    "FAILED_READ_FILE": _CORRUPT,
    "CSV_HEADER": (
        "the header line of a CSV file repeats a name or leaves one empty (pandas: write with index=False), as if the "
        "file had no header line; or it names other columns than that of the first file (or than the `schema`), or the "
        "same in another order, so values would end up in the wrong columns. Rewrite the file, or ",
        errors.Words(
            "on Spark set `options = { enforceSchema = true }` to identify columns by position",
            "read it with pandas and pass the frame",
        ),
    ),
    "MALFORMED_RECORD_IN_PARSING": "a record does not fit the table. Remove the mode FAILFAST from its options",
    "PARSE_SYNTAX_ERROR": "this is not valid Spark SQL",
    "CONFLICTING_PARTITION_COLUMN_NAMES": (
        "its folders are partitions of different columns, or of different depths. Make them uniform"
    ),
    "NOT_DETERMINISTIC": (
        "it is random, and the corpus is read more than once. Use a hash, as in pmod(xxhash64(id), 10) = 0"
    ),
    "UNRESOLVED_COLUMN": "it names a column that does not exist",
    "FIELD_NOT_FOUND": "it names a field that does not exist",
    "DATATYPE_MISMATCH": TYPE_MISMATCH,
    "WRONG_NUM_ARGS": "a function has too few or too many arguments",
    "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION": (
        "a number has more than 38 digits. Write it with fewer, or as a floating-point number, such as 1e40"
    ),
    "UNRESOLVED_ROUTINE": "it calls a function that does not exist",
    "INVALID_WHERE_CONDITION": _MORE_ROWS,
    "NESTED_AGGREGATE_FUNCTION": _MORE_ROWS,
    "UNSUPPORTED_GENERATOR": _MORE_ROWS,
}
_CONDITION_PATTERNS = {  # in errors without a condition, as in Spark 3.5 and in causes
    "CATALOG_NOT_FOUND": "catalog plugin class",
    "CANNOT_READ_FILE_FOOTER": "is not a Parquet file|Could not read footer|Malformed ORC file",
    "FAILED_READ_FILE": "Cannot read|Encountered error while reading file|Checksum error|Parquet (argument )?error: ",
    "PARQUET_COLUMN_DATA_TYPE_MISMATCH": "Parquet column cannot be converted in file",
    "PARQUET_TYPE_ILLEGAL": "Illegal Parquet type",
    "CONFLICTING_PARTITION_COLUMN_NAMES": "Conflicting partition column names",
    "CSV_HEADER": "CSV header does not conform|Number of column in CSV header",
    "DATA_SOURCE_NOT_FOUND": "Failed to find data source",
    # The embedded engine, which quotes the value.
    "UNRESOLVED_COLUMN": "cannot resolve attribute",
    "FIELD_NOT_FOUND": "missing or ambiguous field: ",
    "DATATYPE_MISMATCH": "Cannot coerce arithmetic expression|Cannot infer common argument type|can only be an? ",
    "WRONG_NUM_ARGS": r"one value expected: |requires \d+ arguments?, got \d",
    "PARSE_SYNTAX_ERROR": r"invalid argument: found .* expected ",
    "UNRESOLVED_ROUTINE": "unknown function: ",
    "CAST_INVALID_INPUT": "Cast error: |Cannot cast string |invalid timestamp: ",
    "DIVIDE_BY_ZERO": "(?i)(divide|division|remainder) by zero",
    "ARITHMETIC_OVERFLOW": r"Int\d+ overflow|Overflow happened on",
    "DATE_OUT_OF_RANGE": r"Date\d+ value -?\d+ to Timestamp\(\w+\): converted value exceeds",
    "NO_FILE_SYSTEM": (
        r"No FileSystem for scheme|ClassNotFoundException: Class org\.apache\.hadoop\.fs|UnknownHostException|"
        "URISyntaxException"
    ),
    "MALFORMED_OPTION": "flag can be true or false",
    "NOT_DETERMINISTIC": "eterministic expression",
    "INVALID_WHERE_CONDITION": "window functions inside WHERE|window function inside an aggregate",
    "MALFORMED_PATTERN": r"Regular expression did not compile|PatternSyntaxException|INVALID_PARAMETER_VALUE\.PATTERN",
}
_UNSPECIFIC = {"FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER"}
_FILE_CONDITIONS = _UNSPECIFIC | {"CSV_HEADER", "PARQUET_COLUMN_DATA_TYPE_MISMATCH"}
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+)(?:\.([A-Z][A-Z0-9_]+))?\]")
_DENIED = re.compile(  # the words of Java and of the file systems, and the path
    r"AccessDeniedException: (?P<local>/[^\n]*?)(?:: Permission denied)?(?=\n|$)"
    r"|AccessDeniedException: (?P<store>\w+://[^\s:]*)"
    r"|FileNotFoundException: (?P<file>[^\n]*?) \(Permission denied\)"
    r"|AccessControlException: Permission denied: [^\n]*?inode=\"(?P<inode>[^\"\n]*)\""
    r"|AccessDeniedException|AccessControlException|AuthorizationPermissionMismatch|403 Forbidden"
)
_FILE = re.compile(r"((?:file|hdfs|s3a?|gs|abfss?|wasbs?|dbfs):[^\s,\"']*[^\s,\"'.:;)\]])")
_DETAILS = {  # details in messages of Spark, and their form in a fault
    r"Parquet column \[(.*?)\]\. Expected Spark type (\w+), actual Parquet type (\w+)": "Column: {0}, {2} for {1}",
    r"Column: \[(.*?)\], Expected: (\w+), Found: (\w+)": "Column: {0}, {2} for {1}",
    r"The column `(.*?)` already exists": "Column: {0}",
    r"Illegal Parquet type: (.*?)\.(?: SQLSTATE|\s*\n|$)": "Type: {0}",
    r"The data type (\w+) is not supported": "Type: {0}",
    r"Failed to find (?:the )?data source: ([\w.]*\w)": "Format: {0}",
    r"with name (`.*?`) cannot be resolved": "Column: {0}",
    r'ObjectName\(\[Identifier\("([^"]*)"\)\]\) is missing': "Column: `{0}`",
    r'ObjectName\(\[Identifier\("([^"]*)"\), Identifier\("([^"]*)"\)\]\) is missing': "Column: `{0}`.`{1}`",
    r"No such struct field (`.*?`) in ": "Field: {0}",
    r"missing or ambiguous field: (\w+)": "Field: `{0}`",
    r"unknown function: (\w+)": "Function: {0}",
    r"PatternSyntaxException: ([A-Z][a-z ]+ near index \d+)": "{0}",
}
_FORMATS = ("parquet", "orc", "json", "csv", "avro", "delta", "iceberg")
_PYTHON_FAULTS = {  # on executors
    r'Cannot run program "([^"\n]+)"': "executors cannot run {0}",
    r"Python in worker has different version:? ([\d.]+) than that in driver:? ([\d.]+\d)": (
        "executors run Python {0}, and the driver runs {1}"
    ),
    r"ModuleNotFoundError: No module named '([\w.]+)'": "the Python of the executors lacks the package {0}",
}
_WORKER_DIED = re.compile(
    r"(?<!OutOf)MemoryError|[Cc]annot allocate memory|failed to map segment|Python worker exited unexpectedly"
    # Arrow imports pandas, and imports it again after the first import has run out of memory.
    r"|partially initialized module 'pandas'"
)


class ExpressionFault(errors.InputError):
    """An expression, probably a configured one, fails on a value."""


@contextmanager
def translate_spark_errors(where: str | errors.KeyPath, value: object = errors.ABSENT) -> Iterator[None]:
    """Translate Spark errors about the input to errors of this package, without the values that they quote.

    `where` is the input, such as ``corpus: path /data``, or a key of the configuration with its `value`. Raises
    `InputError`, in particular `ExpressionFault` if an expression fails on a value; `BiasSparkError` if a Python worker
    dies; and `ConfigError` if no worker can be started.
    """
    try:
        yield
    except Exception as error:
        if not is_of_spark(error):
            raise
        raise _translate(error, where, value) from None


@contextmanager
def translate_corpus_errors(corpus: DataFrame, expressions: Mapping[errors.KeyPath, str]) -> Iterator[None]:
    """Like `translate_spark_errors`, and name each expression that fails on a row.

    After a failure, the corpus is scanned once without expressions, and once for each expression. The embedded engine
    does not name a corrupt file, so pyarrow reads the files until one fails.
    """
    try:
        with translate_spark_errors("corpus"):
            yield
    except Exception as error:
        if error.__cause__ is not None:  # not of the corpus: a failure with tables, for example, is explained there
            raise
        is_of_file = re.search(_CONDITION_PATTERNS["FAILED_READ_FILE"], str(error.__context__))
        if is_of_file and is_embedded(corpus.sparkSession) and (file := _corrupt_file(corpus)):
            raise errors.InputError(condition_fault("corpus", "FAILED_READ_FILE", f"File: {file}.")) from None
        is_candidate = isinstance(error, ExpressionFault) or is_of_spark(error)
        # The embedded engine analyzes an expression again when it runs.
        is_candidate |= isinstance(error.__context__, AnalysisException) and is_embedded(corpus.sparkSession)
        faults = list(_failing_expressions(corpus, expressions)) if expressions and is_candidate else []
        if not faults:
            raise
        raise errors.InputError(*faults) from None


def condition_fault(where: str, condition: str, *details: str) -> errors.Fault:
    """Explain a condition of Spark that this package detects first."""
    return _fault(where, errors.ABSENT, _EXPLANATIONS[condition], details)


def _fault(
    where: str | errors.KeyPath, value: object, explanation: errors.Text, details: Sequence[str] = ()
) -> errors.Fault:
    """Return a fault of the input `where`, or of a key of the configuration, whose rule begins in upper case."""
    ending = " ".join((".", *details))
    if isinstance(where, str):
        return errors.Fault((), errors.ABSENT, (f"{where}: ", explanation, ending))
    text = errors.TOML.text(explanation, where)  # no expression depends on a file
    return errors.Fault(where, value, f"{text[0].upper()}{text[1:]}{ending}")


def is_of_spark(error: Exception) -> bool:
    """Return whether an exception comes from Spark or from its JVM."""
    return isinstance(error, PySparkException) or type(error).__name__ == "Py4JJavaError"


def plain_path(name: str) -> str:
    """Return a URI of a file, without the scheme if it is local."""
    return re.sub("^file:/+", "/", name)


def _translate(error: Exception, where: str | errors.KeyPath, value: object) -> Exception:
    """Return the error of this package for a Spark error; the Spark error itself if it is unknown."""
    text = str(error)
    if "biasspark.errors.InputError: " in text:  # raised by this package on an executor
        return errors.InputError(text.split("biasspark.errors.InputError: ", 1)[1].splitlines()[0])
    if _WORKER_DIED.search(text):
        advice = (
            "a Python worker has run out of memory, or was killed. Give workers more memory "
            "(spark.executor.pyspark.memory if it is set, else spark.executor.memoryOverhead), or increase "
            "{}, so that a task holds less"
        )
        explanation: errors.Text = errors.Words(advice.format("`[ranking] ranges`"), advice.format("`ranges`"))
        return errors.BiasSparkError(_fault(where, value, explanation))
    condition_of_value = errors.find_condition_of_a_value(text)
    for sentence, problem in () if condition_of_value else _PYTHON_FAULTS.items():
        if match := re.search(sentence, text):
            return errors.ConfigError(
                f"PYSPARK_PYTHON: {problem.format(*match.groups())}. Executors need the driver's version of Python, "
                "with numpy, pandas, pyarrow and biasspark. Set PYSPARK_PYTHON to one that all of them have, or ship "
                "one with the job: docs/platforms.md."
            )
    conditions = [name for pair in _CONDITION.findall(text) for name in reversed(pair)]
    conditions += [condition for condition, words in _CONDITION_PATTERNS.items() if re.search(words, text)]
    conditions += [condition_of_value or ("ACCESS_DENIED" if _DENIED.search(text) else "")]
    known = sorted(filter(_EXPLANATIONS.__contains__, conditions), key=_UNSPECIFIC.__contains__)
    is_refused = isinstance(error, AnalysisException | ParseException)
    if not (known or is_refused or condition_of_value):
        return error
    condition = known[0] if known else ""
    name = errors.find_error_condition(error) or condition_of_value or type(error).__name__
    explanation = _EXPLANATIONS.get(condition, f"Spark refuses it ({name})")
    details = [detail if detail.endswith("?") else f"{detail}." for detail in _details(condition, text, error)]
    is_of_value = condition in _VALUE_EXPLANATIONS or not (known or is_refused)
    return (ExpressionFault if is_of_value else errors.InputError)(_fault(where, value, explanation, details))


def _details(condition: str, text: str, error: Exception) -> Iterator[str]:
    for sentence, detail in _DETAILS.items():
        if match := re.search(sentence, text):
            yield detail.format(*match.groups())
            if detail.startswith("Format") and (close := closest_match(match[1].lower(), _FORMATS)):
                yield f"Did you mean {close}?"
    if condition in _FILE_CONDITIONS:
        files = sorted({plain_path(name) for name in _FILE.findall(text)})
        yield from (f"File: {name}" for name in files[:3])
    if condition == "ACCESS_DENIED":
        paths = [plain_path(path) for match in _DENIED.finditer(text) for path in match.groups() if path]
        yield from (f"Path: {errors.redact(path)}" for path in dict.fromkeys(paths[:3]))
    if condition in _VALUE_EXPLANATIONS and hasattr(error, "getQueryContext"):  # Spark 4's
        parts = [part for part in error.getQueryContext()[:1] if part.contextType().name == "SQL"]
        yield from (f"Part: {part.fragment()}" for part in parts)


def _corrupt_file(rows: DataFrame) -> Path | None:
    for name in sorted(rows.inputFiles()):
        file = Path(plain_path(unquote(name)))
        try:
            with pq.ParquetFile(file, page_checksum_verification=True) as source:
                for _ in source.iter_batches():
                    pass
        except (pa.ArrowException, OSError):
            return file.resolve() if file.is_symlink() else file  # Delta is read through links
    return None


def _failing_expressions(corpus: DataFrame, expressions: Mapping[errors.KeyPath, str]) -> Iterator[errors.Fault | str]:
    """Yield a fault for each expression that fails; or for the filter, if the rows fail without expressions."""
    with describe(corpus.sparkSession, "find the expression that fails"):
        try:
            with translate_spark_errors(FILTER, expressions.get(FILTER)):
                corpus.agg(F.max(F.lit(True))).collect()
        except ExpressionFault as error:
            yield from error.faults if FILTER in expressions else ()
            return
        except Exception:  # noqa: BLE001 - the rows cannot be read at all
            return
        for path, text in [(path, text) for path, text in expressions.items() if path != FILTER]:
            try:
                with translate_spark_errors(path, text):
                    corpus.agg(F.max(expression(corpus, text))).collect()
            except ExpressionFault as error:
                yield from error.faults
            except Exception as error:  # noqa: BLE001 - whatever it is, the rows can be read
                name = errors.find_error_condition(error)
                yield errors.Fault(path, text, f"It fails on a row{f' ({name})' if name else ''}.", "Correct it.")
