"""Rows of CSV files: lines that do not have the fields of their header, and columns of numbers where SQL asks for them.

All columns are read as text. Of those that an expression of the configuration names, numbers and booleans are told from
the values: SQL would compare 10 and 9 as texts otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, DataFrameReader
from pyspark.sql.types import BooleanType, DataType, DoubleType, LongType, StringType, StructField, StructType

from biasspark.columns import MALFORMED
from biasspark.config import Attribution, Corpus, Measures
from biasspark.corpus.values import as_category, column
from biasspark.errors import InputError
from biasspark.expressions.sql import quote_name
from biasspark.session import describe

_WHOLE = "[+-]?(0|[1-9][0-9]*)"  # not 007, which is a code
_KINDS: tuple[tuple[str, DataType, str], ...] = (
    ("BIGINT", LongType(), _WHOLE),
    ("DOUBLE", DoubleType(), rf"({_WHOLE}([.][0-9]*)?|[+-]?[.][0-9]+)(e[+-]?[0-9]+)?|[+-]?inf(inity)?|nan"),
    ("BOOLEAN", BooleanType(), "true|false"),
)
_TEXT = "STRING"


def mark_malformed(reader: DataFrameReader, rows: DataFrame, path: str, corpus: Corpus) -> DataFrame:
    """Read CSV files again, and mark the lines that have more or fewer fields than the header line: `MALFORMED`.

    All that such a line holds is NULL, since nobody knows which field is whose, but for the id and the day. What types
    a `schema` has besides text a value may not fit, and Spark gives no other mark for that: then rows are as they are.

    Parameters
    ----------
    reader
        By which `rows` were read from the path.
    """
    has_types = corpus.schema and any(not isinstance(field.dataType, StringType) for field in rows.schema)
    if has_types or "columnnameofcorruptrecord" in map(str.lower, corpus.options):
        return rows
    schema = StructType([*rows.schema.fields, StructField(MALFORMED, StringType())])
    reader = reader.option("columnNameOfCorruptRecord", MALFORMED).option("columnPruning", "false")  # or none is found
    marked = reader.schema(schema).load(path)
    # Spark refuses queries that look at the mark alone. No length is below 0.
    never = F.octet_length(column(rows.schema.names[0])) < 0
    is_malformed = F.coalesce(F.col(MALFORMED).isNotNull() | never, F.lit(False))
    kept = (corpus.id, corpus.run_date_column)
    known = [
        column(name) if name in kept else F.when(~is_malformed, column(name)).alias(name) for name in rows.schema.names
    ]
    return marked.select(*known, is_malformed.alias(MALFORMED))


def type_columns(rows: DataFrame, corpus: Corpus, measures: Measures | None) -> DataFrame:
    """Return rows of text with numbers and booleans where an expression of the configuration names such columns.

    A column is one of numbers if each of its values is, but none begins with a zero that numbers do not have (007). A
    column whose text is meant, as of an id or a category, becomes one only if its numbers are written as in the text.

    Notes
    -----
    Runs one Spark job when called, a scan of the corpus, where an expression names a column.
    """
    texts = [*(measures.expressions.values() if measures else ()), corpus.filter or ""]
    mentioned = [
        field.name
        for field in rows.schema
        if isinstance(field.dataType, StringType) and _names(texts, field.name) and field.name != corpus.run_date_column
    ]
    if measures:
        mentioned = [name for name in mentioned if name not in _plain_texts(measures)]
    if not mentioned:
        return rows
    as_written, no_booleans = _written_names(corpus, measures), _number_columns(measures)
    asked = [
        _find_kind(name, name in as_written, name in no_booleans).alias(str(place))
        for place, name in enumerate(mentioned)
    ]
    with describe(rows.sparkSession, "tell numbers from texts"):
        found = dict(zip(mentioned, rows.agg(*asked).collect()[0], strict=True))
    return rows.select(
        *(
            _cast(name, found[name]).alias(name) if found.get(name, _TEXT) != _TEXT else column(name)
            for name in rows.schema.names
        )
    )


def refuse_unnamed(reader: DataFrameReader, rows: DataFrame, path: str) -> None:
    """Stop at a header line that repeats a name or leaves one empty: Spark makes up others, and refuses its own."""
    names = rows.schema.names
    if not any(name.endswith(str(place)) for place, name in enumerate(names)):
        return
    first = reader.option("header", "false").load(path).limit(1).collect()
    header = [(name or "").lower() for name in first[0]] if first else []
    for place, (name, written) in enumerate(zip(names, header, strict=False)):
        if not written and name == f"_c{place}":
            raise InputError(
                f"corpus: the header line of a CSV file has no name for column {place + 1}. Each column has one. Write "
                "the file anew (pandas: index=False), or set `options = { enforceSchema = true }`, and the column is "
                f"{name}."
            )
        if written in header[:place] and name.lower() == f"{written}{place}":
            raise InputError(
                f"corpus: the header line of a CSV file gives column {place + 1} the name of column "
                f"{header.index(written) + 1}. Each has a name of its own. Rename one of them."
            )


def _names(texts: Sequence[str], name: str) -> bool:
    """Say whether an expression may name a column."""
    word = re.compile(rf"(?<!\w){re.escape(name.replace('`', '``'))}(?!\w)", re.IGNORECASE)
    return any(map(word.search, texts))


def _plain_texts(measures: Measures) -> Collection[str | None]:
    """Return the columns that are used as texts and nothing else."""
    balance, terms = measures.label_balance, measures.identities.terms
    return {
        measures.label.column if measures.label.threshold is None else None,
        measures.identities.array,
        terms.column if terms else None,
        balance.text if balance else None,
        measures.templates.column if measures.templates else None,
    }


def _written_names(corpus: Corpus, measures: Measures | None) -> Collection[str | None]:
    """Return the columns whose values become names in tables."""
    if measures is None:
        return {corpus.id}
    attribution = measures.attribution or Attribution()
    grouped = (text.strip().strip("`") for text in attribution.groupings.values())
    cluster = measures.compare.cluster if measures.compare else None
    return {corpus.id, cluster, *measures.identities.categorical, *attribution.categorical, *grouped}


def _number_columns(measures: Measures | None) -> Collection[str | None]:
    """Return the columns that are used as numbers, of which no boolean is one."""
    if measures is None:
        return set()
    length = measures.label_balance.length if measures.label_balance else None
    numeric = measures.attribution.numeric if measures.attribution else ()
    return {measures.label.column, length, *measures.models.values(), *numeric}


def _cast(name: str, kind: str) -> Column:
    return F.expr(f"try_cast(trim({quote_name(name)}) AS {kind})")


def _find_kind(name: str, as_written: bool, no_boolean: bool) -> Column:
    """Return the first type that all values of a column have, as an aggregate; a column of NULLs is text."""
    chosen = F.lit(_TEXT)
    for kind, of_type, pattern in reversed(_KINDS[:-1] if no_boolean else _KINDS):
        value = _cast(name, kind)
        is_same = as_category(value, of_type).eqNullSafe(column(name)) if as_written else value.isNotNull()
        reads_so = F.trim(column(name)).rlike(rf"(?i)^({pattern})\z")
        fits = F.when(reads_so, is_same).otherwise(F.lit(False))  # Spark casts slowly what it cannot cast
        chosen = F.when(F.bool_and(F.when(column(name).isNotNull(), fits)), F.lit(kind)).otherwise(chosen)
    return chosen
