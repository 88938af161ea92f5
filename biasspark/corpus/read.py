"""Lake table -> corpus: the rows that the configuration selects, with a plain message for every input fault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date

import pyspark.sql.functions as F
from pyspark.errors import IllegalArgumentException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import DateType, LongType, StringType, TimestampNTZType, TimestampType

from biasspark.columns import MALFORMED
from biasspark.config import FILTER, Corpus, Measures
from biasspark.corpus.check import ColumnNames, check_schema, expression_fault
from biasspark.corpus.csv_rows import mark_malformed, refuse_unknown_header, type_columns
from biasspark.corpus.eligibility import DUPLICATE
from biasspark.corpus.input_files import CORRUPT, list_files, refuse_records_of_many_lines, refuse_skipped_files
from biasspark.corpus.local_files import read_local_files
from biasspark.corpus.values import column, try_cast
from biasspark.errors import ABSENT, Fault, InputError
from biasspark.expressions.sql import quote_name
from biasspark.session import analyze, describe, expression, is_embedded, kept
from biasspark.session.spark_errors import translate_spark_errors

IDS_PASS = "find repeated ids (shuffles the ids)"
# RFC 4180; Spark's defaults would split a quoted text at its commas and line ends.
_CSV_DEFAULTS = {"header": "true", "escape": '"', "multiLine": "true", "enforceSchema": "false"}


def read_corpus(spark: SparkSession, corpus: Corpus, run_date: date, measures: Measures | None = None) -> DataFrame:
    """Return the corpus of a run: lazy, all columns of the source, the configured rows.

    Unless ``options`` says otherwise, a CSV file has a header line and follows RFC 4180. Its columns are read as text
    and cast where they are used, so a bad value only costs its own row; those that an expression names are typed
    (`type_columns`, one more scan). Lines with too many or too few fields are marked (`mark_malformed`). Raises
    `InputError` if the source cannot be found or opened or has an empty file; else with every missing or mistyped
    column, as measures need them, and every predicate that does not fit.
    """
    with translate_spark_errors(corpus.location):
        rows = (read_local_files if is_embedded(spark) else _load)(spark, corpus, run_date, measures)
        if corpus.is_untyped:
            rows = type_columns(rows, corpus, measures)
        analyze(rows)
    plain = rows.drop(MALFORMED)
    columns = ColumnNames(plain.columns)
    faults: list[Fault | str] = []
    if corpus.run_date_column and (fault := _run_date_fault(plain, corpus.run_date_column, columns)):
        faults.append(fault)
    if corpus.filter and (fault := expression_fault(plain, FILTER, corpus.filter, columns)):
        faults.append(fault)
    if measures:
        try:
            check_schema(rows, measures, corpus.id, columns)
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    if corpus.run_date_column:
        rows = rows.where(_day(rows, corpus.run_date_column) == F.lit(run_date))
    if corpus.filter:
        is_chosen = expression(plain, corpus.filter)
        if is_embedded(spark):  # it would keep partitions for which the filter is NULL
            is_chosen = F.coalesce(is_chosen, F.lit(False))
        # It is unknown whether the filter would choose an unreadable record, so it is kept and counted.
        rows = rows.where(F.col(MALFORMED) | is_chosen if MALFORMED in rows.columns else is_chosen)
    return rows


@contextmanager
def duplicates_marked(corpus: DataFrame, id_column: str | None, duplicates: str) -> Iterator[DataFrame]:
    """Yield the rows with repeated ids marked, if these are rejected; the list of such ids is cached within the block.

    It costs one scan and a shuffle of the ids alone. Rows are shuffled only if the list is too long to be broadcast.
    """
    if duplicates != "reject" or id_column is None:
        yield corpus
        return
    ids = corpus.select(column(id_column).alias("_biasspark_id")).groupBy("_biasspark_id").count()
    with kept(ids.where("count > 1").select("_biasspark_id", F.lit(True).alias(DUPLICATE))) as repeated:
        is_repeated = column(id_column) == F.col("_biasspark_id")
        yield corpus.join(repeated, is_repeated, "left").drop("_biasspark_id")


def list_row_dates(spark: SparkSession, corpus: Corpus) -> list[date]:
    """Return the dates of the rows that the filter chooses, in order.

    Runs one Spark job when called, a scan of the columns of the run date and of the filter; `type_columns` may run one
    more. Files are not checked.
    """
    assert corpus.run_date_column is not None
    if is_embedded(spark):
        rows = read_local_files(spark, corpus)
    else:
        rows = spark.table(corpus.table) if corpus.table else _reader(spark, corpus).load(corpus.path)
    if corpus.is_untyped:
        rows = type_columns(rows, corpus, None)
    day = _day(rows, corpus.run_date_column)
    is_chosen = day.between(date(1900, 1, 1), date.max)
    if corpus.filter:
        is_chosen &= expression(rows, corpus.filter)
    # The embedded engine would keep partitions for which the condition is NULL.
    dates = rows.where(F.coalesce(is_chosen, F.lit(False))).select(day.alias("day")).distinct()
    with describe(spark, "list the dates of the corpus"):
        return sorted(row["day"] for row in dates.collect())


def _day(rows: DataFrame, name: str) -> Column:
    """Return the day of each row as a date; NULL for text that is not a date."""
    if not isinstance(rows.schema[name].dataType, StringType):
        return F.to_date(column(name))
    if not is_embedded(rows.sparkSession):
        return try_cast(name, "DATE")
    # The embedded engine cannot parse a date that is followed by a time.
    day = f"regexp_replace(trim({quote_name(name)}), '^([+-]?[0-9]+-[0-9]+-[0-9]+)[ T].*$', '$1')"
    return F.expr(f"try_cast({day} AS DATE)")


def _load(spark: SparkSession, corpus: Corpus, run_date: date, measures: Measures | None) -> DataFrame:
    if corpus.table is not None:
        return spark.table(corpus.table)
    assert corpus.path is not None
    names, path = list_files(spark, corpus, run_date)
    reader = _reader(spark, corpus)
    if path != corpus.path:
        reader = reader.option("basePath", corpus.path)
    try:
        rows = analyze(reader.load(path))
    except IllegalArgumentException:
        options = ", ".join(sorted(corpus.options)) or "none"
        problem = f"Spark's reader of {corpus.format} refuses the value of one of {options}."
        raise InputError(Fault(("corpus", "options"), ABSENT, problem, "Correct it.")) from None
    refuse_skipped_files(rows, names, corpus)
    if corpus.file_format == "json":
        refuse_records_of_many_lines(rows, corpus, path)
        if CORRUPT in rows.columns and not corpus.schema:
            return rows.withColumn(MALFORMED, F.col(CORRUPT).isNotNull())
    if corpus.file_format == "csv":
        refuse_unknown_header(corpus, rows.columns, measures)
        return mark_malformed(reader, rows, path, corpus)
    return rows


def _reader(spark: SparkSession, corpus: Corpus) -> DataFrameReader:
    given, options = corpus.lower_options, corpus.options
    if corpus.file_format == "csv":
        quote = {"escape": given["quote"]} if len(given.get("quote", "")) == 1 else {}
        defaults = _CSV_DEFAULTS | quote
        options = {name: defaults[name] for name in defaults if name.lower() not in given} | options
    reader = spark.read.format(corpus.format).options(**options)  # as written: options of Hadoop are case-sensitive
    return reader.schema(corpus.schema) if corpus.schema else reader


def _run_date_fault(rows: DataFrame, name: str, columns: ColumnNames) -> Fault | None:
    path = ("corpus", "run_date_column")
    if name not in rows.columns:
        fix = "Name one that it has, or leave it out to read all rows."
        return columns.missing(path, name, "The corpus has no such column.", name, fix)
    kind = rows.schema[name].dataType
    if isinstance(kind, DateType | TimestampType | TimestampNTZType | StringType):
        return None
    problem = f"It is of type {kind.simpleString()}. It must be a date, a time, or a string that holds a date."
    fix = "Name another column, or cast it."
    if isinstance(kind, LongType):
        fix += " Times in nanoseconds are read as bigint: write microseconds, in pandas by dt.as_unit('us')."
    return Fault(path, name, problem, fix)
