"""Lake table -> corpus: the rows that the configuration names, with every fault of the input in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date

import pyspark.sql.functions as F
from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import DateType, StringType, TimestampNTZType, TimestampType

from biasspark.config import FILTER, Corpus, Measures, redact
from biasspark.corpus.check import check_schema, find_predicate_fault, list_columns_once, show_columns, suggest_column
from biasspark.corpus.eligibility import DUPLICATE
from biasspark.corpus.files import (
    list_files,
    open_files,
    refuse_empty_files,
    refuse_records_of_many_lines,
    refuse_unread_files,
)
from biasspark.corpus.plain_words import input_faults
from biasspark.corpus.values import column
from biasspark.errors import InputError
from biasspark.expressions.sql import quote_name

# RFC 4180, where Spark's own default would split a text with quotes at its commas, and one with line ends into rows.
_DEFAULT_OPTIONS = {"csv": {"header": "true", "escape": '"', "multiLine": "true", "enforceSchema": "false"}}

_OTHER_DAY = "Name one that it has, or remove the line to read all rows."


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
        rows = _load(spark, corpus, run_date)
        rows.schema  # noqa: B018 - Connect looks at a table only when its schema is asked for
    faults: list[str] = []
    chosen = rows
    with _gathered(faults):
        chosen = _of_the_day(chosen, corpus, run_date)
    with _gathered(faults):
        chosen = _filtered(chosen, corpus)
    with _gathered(faults):
        if measures is not None:
            check_schema(rows, measures, corpus.id, _mend_missing(corpus))
    if faults:
        raise InputError(*list_columns_once(faults, rows.columns))
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
    if fault := find_predicate_fault(
        rows, FILTER, corpus.filter, show_columns(rows.columns, _surely_there(rows, corpus))
    ):
        raise InputError(fault)
    return rows.where(F.expr(corpus.filter))


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
        rows = reader.load(files.path)
        rows.schema  # noqa: B018 - Connect looks at options only when the schema is asked for
    except IllegalArgumentException:
        raise InputError(
            f"[corpus] options: Spark's reader of {corpus.format} refuses the value of one of "
            f"{', '.join(sorted(corpus.options)) or 'none'}. Correct it."
        ) from None
    if names is not None:
        refuse_unread_files(rows, names, corpus)
    if corpus.format.lower() == "json":
        refuse_records_of_many_lines(spark, rows, corpus, files.path)
    return rows


def _reader(spark: SparkSession, corpus: Corpus) -> DataFrameReader:
    reader = spark.read.format(corpus.format)
    defaults, chosen = _DEFAULT_OPTIONS.get(corpus.format.lower(), {}), {key.lower() for key in corpus.options}
    # Of one option that is given twice, in small and in capital letters, Spark takes the last and Connect either.
    for key, value in ({key: defaults[key] for key in defaults if key.lower() not in chosen} | corpus.options).items():
        reader = reader.option(key, value)
    return reader.schema(corpus.schema) if corpus.schema else reader


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
