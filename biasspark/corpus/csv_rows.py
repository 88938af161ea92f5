"""Rows of CSV files, whose columns are all read as text: malformed lines, and typed columns for SQL expressions."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, DataFrameReader
from pyspark.sql.types import BooleanType, DataType, DoubleType, LongType, StringType, StructField, StructType

from biasspark.columns import MALFORMED
from biasspark.config import Attribution, Corpus, Measures
from biasspark.corpus.check import list_columns
from biasspark.corpus.values import category, column, try_cast
from biasspark.errors import ABSENT, Fault, InputError, Words
from biasspark.session import describe
from biasspark.text import format_count

TYPES_PASS = "read the types of the columns"
_WHOLE = "[+-]?(0|[1-9][0-9]*)"  # not 007, which is a code
_TYPES: tuple[tuple[str, DataType, str], ...] = (
    ("BIGINT", LongType(), _WHOLE),
    ("DOUBLE", DoubleType(), rf"({_WHOLE}([.][0-9]*)?|[+-]?[.][0-9]+)(e[+-]?[0-9]+)?|[+-]?inf(inity)?|nan"),
    ("BOOLEAN", BooleanType(), "true|false"),
)
_TEXT = "STRING"


def mark_malformed(reader: DataFrameReader, rows: DataFrame, path: str, corpus: Corpus) -> DataFrame:
    """Read CSV files again with their reader, and mark lines with more or fewer fields than the header: `MALFORMED`.

    Such a line holds NULL in every column but the id and the day, since its fields cannot be assigned to columns. Rows
    are not marked if a `schema` has types other than text: Spark marks a value that does not fit its type the same way.
    """
    has_types = corpus.schema and any(not isinstance(field.dataType, StringType) for field in rows.schema)
    if has_types or "columnnameofcorruptrecord" in corpus.lower_options:
        return rows
    schema = StructType([*rows.schema.fields, StructField(MALFORMED, StringType())])
    reader = reader.option("columnNameOfCorruptRecord", MALFORMED).option("columnPruning", "false")  # else no marks
    marked = reader.schema(schema).load(path)
    # Spark refuses queries that read only the corrupt-record column. No length is below 0.
    never = F.octet_length(column(rows.schema.names[0])) < 0
    is_malformed = F.coalesce(F.col(MALFORMED).isNotNull() | never, F.lit(False))
    values = {name: F.when(~is_malformed, column(name)).alias(name) for name in rows.schema.names}
    values |= {name: column(name) for name in (corpus.id, corpus.run_date_column) if name in values}
    return marked.select(*values.values(), is_malformed.alias(MALFORMED))


def type_columns(rows: DataFrame, corpus: Corpus, measures: Measures | None) -> DataFrame:
    """Cast columns of numbers and booleans that an expression names: otherwise SQL would compare 10 and 9 as text.

    A column is numeric if all its values are numbers and none has a leading zero (007). A column used as text, such as
    an id or a category, becomes numeric only if its numbers are written back as the same text.

    Runs one Spark job when called, a scan of the corpus, if an expression names a column.
    """
    expressions = "\n".join([*(measures.expressions.values() if measures else ()), corpus.filter or ""])
    texts, names, numbers = {corpus.run_date_column}, {corpus.id}, set[str]()
    if measures:
        by_use: dict[str, set[Any]] = {"text": texts, "array": texts, "category": names, "number": numbers}
        for configured in list_columns(measures, corpus.id):
            by_use.get(configured.use, set()).add(configured.name)
        names |= {text.strip().strip("`") for text in (measures.attribution or Attribution()).groupings.values()}
        (texts if measures.label.threshold is None else numbers).add(measures.label.column)
    candidates = [
        field.name
        for field in rows.schema
        if isinstance(field.dataType, StringType) and field.name not in texts
        if re.search(rf"(?i)(?<!\w){re.escape(field.name.replace('`', '``'))}(?!\w)", expressions)
    ]
    if not candidates:
        return rows
    kinds = [_common_type(name, name in names, name in numbers).alias(f"{n}") for n, name in enumerate(candidates)]
    with describe(rows.sparkSession, "tell numbers from strings"):
        types = dict(zip(candidates, rows.agg(*kinds).collect()[0], strict=True))
    typed = {name: try_cast(name, kind).alias(name) for name, kind in types.items() if kind != _TEXT}
    return rows.select(*(typed.get(name, column(name)) for name in rows.schema.names))


def refuse_unknown_header(corpus: Corpus, names: Sequence[str], measures: Measures | None) -> None:
    """Stop at CSV files without any configured column, whose header line is probably data, or of another format."""
    if corpus.schema or not measures or measures.label.column.lower() in map(str.lower, names):
        return
    configured = {each.name for each in list_columns(measures, corpus.id)}
    if configured & set(names):  # as written, since others may be data
        return
    first = names[0] if names else ""
    for separator in ("\t", ";", "|"):
        if configured & {name.strip('"') for name in first.split(separator)}:
            shown = json.dumps(separator)
            rule = f"{corpus.location}: the fields of its header line are separated by {shown}."
            fix = Words(
                f"Set `[corpus] options = {{ sep = {shown} }}`.",
                f"Read it with pandas.read_csv(path, sep={shown}), and pass the frame.",
            )
            raise InputError(Fault((), ABSENT, rule, fix))
    rule = (
        f"{corpus.location}: no configured column is in the header line. It has {format_count(len(names), 'column')}, "
        "not named here since names may be data. A CSV has a header line, commas and UTF-8, and if it is compressed a "
        "name such as rows.csv.gz."
    )
    fix = Words(
        'Otherwise set `format`, `options = { sep = ";" }` or, on Spark, `encoding`, or `header = false` and `schema`.',
        'Read other files with pandas, as by pandas.read_csv(path, sep=";"), and pass the frame.',
    )
    raise InputError(Fault((), ABSENT, rule, fix))


def _common_type(name: str, as_written: bool, no_boolean: bool) -> Column:
    """Return the first type that fits all values of a column, as an aggregate; a column of NULLs is text."""
    chosen = F.lit(_TEXT)
    for kind, data_type, pattern in reversed(_TYPES[:-1] if no_boolean else _TYPES):
        value = try_cast(name, kind)
        is_same = category(value, data_type).eqNullSafe(column(name)) if as_written else value.isNotNull()
        matches = F.trim(column(name)).rlike(rf"(?i)^({pattern})\z")
        fits = F.when(matches, is_same).otherwise(F.lit(False))  # failing casts are slow in Spark
        chosen = F.when(F.bool_and(F.when(column(name).isNotNull(), fits)), F.lit(kind)).otherwise(chosen)
    return chosen
