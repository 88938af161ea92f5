"""Lake table -> corpus: the rows that the configuration names, with every fault of the input in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date

import pyspark.sql.functions as F
from pyspark.errors import IllegalArgumentException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import DateType, StringType, TimestampNTZType, TimestampType

from biasspark.columns import MALFORMED
from biasspark.config import FILTER, Corpus, Measures, redact
from biasspark.corpus.check import check_schema, find_predicate_fault, list_columns_once, show_columns, suggest_column
from biasspark.corpus.csv_rows import mark_malformed, refuse_unnamed, type_columns
from biasspark.corpus.eligibility import DUPLICATE
from biasspark.corpus.files import (
    list_files,
    open_files,
    refuse_empty_files,
    refuse_records_of_many_lines,
    refuse_unread_files,
)
from biasspark.corpus.other_format import (
    find_named_file,
    may_be_no_csv,
    may_be_other_format,
    refuse_other_format,
)
from biasspark.corpus.plain_words import input_faults
from biasspark.corpus.values import column
from biasspark.errors import InputError
from biasspark.expressions.sql import quote_name
from biasspark.session import analyse, describe

# RFC 4180, where Spark's own default would split a text with quotes at its commas, and one with line ends into rows.
_DEFAULT_OPTIONS = {"csv": {"header": "true", "escape": '"', "multiLine": "true", "enforceSchema": "false"}}
_CORRUPT = "_corrupt_record"  # by which Spark marks lines of JSON that are none

_OTHER_DAY = "Name one that it has, or remove the line to read all rows."


def read_corpus(spark: SparkSession, corpus: Corpus, run_date: date, measures: Measures | None = None) -> DataFrame:
    """Return the corpus of a run: lazy, all columns of the source, the configured rows.

    Unless ``options`` says otherwise a CSV file has a header line, and is as RFC 4180 has it: quotes within quotes are
    doubled, and lines may end there. Its columns are read as text and cast where they are used, so that a bad value
    costs its own row and no other; those that an expression names are numbers there if all their values are
    (`type_columns`, one more scan). Lines with too many or too few fields are marked (`mark_malformed`).

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
        rows = _load(spark, corpus, run_date)
        if corpus.is_untyped:
            rows = type_columns(rows, corpus, measures)
        analyse(rows)
    faults: list[str] = []
    chosen = rows
    with _gathered(faults):
        chosen = _of_the_day(chosen, corpus, run_date)
    with _gathered(faults):
        chosen = _filtered(chosen, corpus)
    with _gathered(faults):
        if measures is not None:
            check_schema(rows, measures, corpus.id, _mend_missing(corpus), _surely_there(rows, corpus))
    if faults:
        raise InputError(*list_columns_once(faults, rows.drop(MALFORMED).columns))
    return chosen


def mark_duplicates(corpus: DataFrame, id_column: str | None, duplicates: str) -> tuple[DataFrame, list[DataFrame]]:
    """Mark every row whose id another row has, too, where these are rejected; return the rows, and the ids that repeat.

    Notes
    -----
    Cost: one more scan, of the ids alone, and a shuffle of them; persist the ids to use the rows twice. Rows are
    shuffled only where too many ids repeat for the list of them to be sent to every executor. Nothing is done where
    duplicates are not rejected.
    """
    if duplicates != "reject" or id_column is None:
        return corpus, []
    repeated = (
        corpus.select(column(id_column).alias("_biasspark_id"))
        .groupBy("_biasspark_id")
        .count()
        .where("count > 1")
        .select("_biasspark_id", F.lit(True).alias(DUPLICATE))
    )
    marked = corpus.join(repeated, column(id_column) == F.col("_biasspark_id"), "left").drop("_biasspark_id")
    return marked, [repeated]


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
    _need_column(rows.drop(MALFORMED), name, corpus)
    return rows.where(_day(rows, name) == F.lit(run_date))


def _day(rows: DataFrame, name: str) -> Column:
    """Return the day of each row as a date; NULL where a text holds none."""
    is_text = isinstance(rows.schema[name].dataType, StringType)
    return F.expr(f"try_cast({quote_name(name)} AS DATE)") if is_text else F.to_date(column(name))


def count_days(spark: SparkSession, corpus: Corpus) -> list[tuple[date, int, int]]:
    """Return the days that a corpus has, in order: each day, its rows, and how many of them the filter chooses.

    Notes
    -----
    Runs one Spark job when called: a scan of the run date's column and of what the filter reads, an aggregate, and a
    row per day on the driver. What else is wrong with the files is not looked for.
    """
    assert corpus.run_date_column is not None
    rows = spark.table(corpus.table) if corpus.table else _reader(spark, corpus).load(corpus.path)
    is_chosen = F.expr(corpus.filter) if corpus.filter else F.lit(True)
    days = rows.groupBy(_day(rows, corpus.run_date_column).alias("day")).agg(
        F.count(F.lit(1)).alias("n_rows"), F.count_if(is_chosen).alias("n_chosen")
    )
    with describe(spark, "list the dates of the corpus"):
        found = days.where(F.col("day").between(date(1900, 1, 1), date.max)).orderBy("day").collect()
    return [(row["day"], row["n_rows"], row["n_chosen"]) for row in found]


def _filtered(rows: DataFrame, corpus: Corpus) -> DataFrame:
    if corpus.filter is None:
        return rows
    own = rows.drop(MALFORMED)
    if fault := find_predicate_fault(own, FILTER, corpus.filter, show_columns(own.columns, _surely_there(own, corpus))):
        raise InputError(fault)
    is_chosen = F.expr(corpus.filter)
    # Nobody knows whether a record that cannot be read would be chosen: it stays, to be counted.
    return rows.where(F.col(MALFORMED) | is_chosen if MALFORMED in rows.columns else is_chosen)


def _load(spark: SparkSession, corpus: Corpus, run_date: date) -> DataFrame:
    if corpus.table is not None:
        return spark.table(corpus.table)
    assert corpus.path is not None
    files = open_files(spark, corpus, run_date)
    names = None if files.rows is None else list_files(files.rows)
    if files.rows is not None and names is not None:
        refuse_empty_files(files.rows, names, corpus.path)
    reader = _reader(spark, corpus)
    if files.path != corpus.path:
        reader = reader.option("basePath", corpus.path)
    try:
        rows = analyse(reader.load(files.path))
    except IllegalArgumentException:
        raise InputError(
            f"[corpus] options: Spark's reader of {corpus.format} refuses the value of one of "
            f"{', '.join(sorted(corpus.options)) or 'none'}. Correct it."
        ) from None
    except Exception as error:
        if names and may_be_other_format(error):
            refuse_other_format(spark, corpus, find_named_file(error, names))
        raise
    if names is not None:
        refuse_unread_files(rows, names, corpus)
    if names and (rows.columns == [_CORRUPT] or (corpus.format.lower() == "csv" and may_be_no_csv(rows.columns[0]))):
        refuse_other_format(spark, corpus, names[0])
    if corpus.format.lower() == "json":
        refuse_records_of_many_lines(spark, rows, corpus, files.path)
        if _CORRUPT in rows.columns and not corpus.schema:
            return rows.withColumn(MALFORMED, F.col(_CORRUPT).isNotNull())
    if corpus.format.lower() == "csv":
        if not corpus.schema and _has_checked_header(corpus):
            refuse_unnamed(_reader(spark, corpus), rows, files.path)
        return mark_malformed(reader, rows, files.path, corpus)
    return rows


def _reader(spark: SparkSession, corpus: Corpus) -> DataFrameReader:
    reader = spark.read.format(corpus.format)
    given = {key.lower(): value for key, value in corpus.options.items()}
    defaults = dict(_DEFAULT_OPTIONS.get(corpus.format.lower(), {}))
    if defaults and len(given.get("quote", "")) == 1:
        defaults["escape"] = given["quote"]
    # Of one option that is given twice, in small and in capital letters, Spark takes the last and Connect either.
    for key, value in ({key: defaults[key] for key in defaults if key.lower() not in given} | corpus.options).items():
        reader = reader.option(key, value)
    return reader.schema(corpus.schema) if corpus.schema else reader


def _has_checked_header(corpus: Corpus) -> bool:
    options = {key.lower(): value.lower() for key, value in corpus.options.items()}
    return options.get("header", "true") == "true" and options.get("enforceschema", "false") == "false"


def _need_column(rows: DataFrame, name: str, corpus: Corpus) -> None:
    if name not in rows.columns:
        raise InputError(
            f'[corpus] run_date_column = "{name}": the corpus has no such column. '
            + suggest_column(name, rows.columns, _surely_there(rows, corpus), _OTHER_DAY)
        )
    kind = rows.schema[name].dataType
    if not isinstance(kind, DateType | TimestampType | TimestampNTZType | StringType):
        raise InputError(
            f'[corpus] run_date_column = "{name}": it is of type {kind.simpleString()}. It must be a date, a time, or '
            "a text that holds a date. Name another column, or cast it."
        )


def _mend_missing(corpus: Corpus) -> str:
    """Say what may be done about a column that is missing: of files with schemas of their own the first may lack it."""
    of_files = corpus.path and corpus.format.lower() in ("parquet", "orc") and not corpus.schema
    if of_files and "mergeschema" not in map(str.lower, corpus.options):
        return "Name one that it has, or set `[corpus] options = { mergeSchema = true }` where only some files have it."
    return "Name one that it has."


def _surely_there(rows: DataFrame, corpus: Corpus) -> Sequence[str | None]:
    """Return names of which one that is there shows that the others are no data."""
    has_names = corpus.table is not None or corpus.format.lower() != "csv"
    return rows.columns if has_names else [corpus.id]
