"""Does the corpus have what the configuration names? All faults at once, before any row is read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import pyspark.sql.functions as F
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegralType,
    MapType,
    NumericType,
    StringType,
    StructType,
)

from biasspark.columns import MALFORMED
from biasspark.config import Label, Measures, find_close, show_value
from biasspark.corpus.plain_words import input_faults
from biasspark.corpus.values import analyse_condition
from biasspark.errors import InputError

MOST_CATEGORICAL = 58
_UNRESOLVED = re.compile(r"Column: `([^`.]*)`\.$")
_SEPARATORS = {";": ";", "\t": "\\t", "|": "|"}  # besides commas, and how TOML writes them
_SINGLE = ((), "a single value")
_NUMBER = ((NumericType, StringType), "a number, or a text that holds one")
_FRACTION = ((BooleanType, NumericType, StringType), "a boolean, a number, or a text that holds either")


def check_schema(
    corpus: DataFrame,
    measures: Measures,
    id_column: str | None = None,
    mend: str = "Name one that it has.",
    surely_there: Iterable[str | None] | None = None,
) -> None:
    """Raise `InputError` with every column that is missing or mistyped, and every predicate that does not fit.

    Parameters
    ----------
    mend
        What may be done where a column is missing and none that is there is named nearly so.
    surely_there
        Names, besides those that are needed, of which one that is there shows that the others are no data: see
        `show_columns`. All columns unless given.

    Notes
    -----
    Looks at the schema only: no row is read, no job is run.
    """
    corpus = corpus.drop(MALFORMED)
    schema = corpus.schema
    configured: set[str | None] = {name for _, name, _, _ in _needed(measures, id_column)}
    configured.update(schema.names if surely_there is None else surely_there)
    shown = show_columns(schema.names, configured)
    faults = list(_column_faults(schema, measures, id_column, configured, mend))
    faults += _predicate_faults(corpus, measures, shown)
    if faults:
        raise InputError(*list_columns_once(faults, schema.names))


def list_columns_once(faults: Sequence[str], there: Sequence[str]) -> list[str]:
    """Return faults of one corpus, of which only the first says which columns it has, or how many."""
    shorter = list(faults)
    for shown in (f" {_list_columns(there)}", f" {_count_columns(there)}"):
        first = next((place for place, fault in enumerate(shorter) if shown in fault), len(shorter))
        shorter[first + 1 :] = [fault.replace(shown, "") for fault in shorter[first + 1 :]]
    return shorter


def suggest_column(name: str, there: Sequence[str], configured: Collection[str | None], mend: str) -> str:
    """Say which columns a corpus has and which of them is probably meant, or how else to mend that one is missing.

    Where only their number is said, since they may be data, none is suggested but one that differs in case alone.
    """
    by_lower = {column.lower(): column for column in there}
    is_listed = not set(configured).isdisjoint(there)
    close = find_close(name.lower(), tuple(by_lower)) if is_listed or name.lower() in by_lower else None
    hint = f"Did you mean '{by_lower[close]}'?" if close else mend
    return f"{show_columns(there, configured)} {hint}".rstrip()


def show_columns(there: Sequence[str], configured: Collection[str | None]) -> str:
    """Say which columns a corpus has; only how many they are where none of the configured ones is there.

    Of a CSV file without a header line Spark takes the first row for the names, and no fault shows a row.
    """
    if not set(configured).isdisjoint(there):
        return _list_columns(there)
    return _count_columns(there)


def _count_columns(there: Sequence[str]) -> str:
    if len(there) != 1:
        return (
            f"It has {len(there)} columns, not named here since the names may be data: a CSV without a header line "
            "needs `options = { header = false }` and a `schema`."
        )
    separator = next((written for text, written in _SEPARATORS.items() if text in there[0]), "")
    if separator:
        return (
            f'It has 1 column, with "{separator}" in its header line. A CSV whose fields are separated otherwise than '
            f'by commas needs `options = {{ sep = "{separator}" }}`.'
        )
    return (
        "It has 1 column, not named here since the name may be data: a CSV without a header line needs `options = { "
        'header = false }` and a `schema`, one that is separated otherwise than by commas `options = { sep = ";" }`.'
    )


def _list_columns(there: Sequence[str]) -> str:
    return f"It has: {', '.join(there)}."


def _column_faults(
    schema: StructType, measures: Measures, id_column: str | None, configured: Collection[str | None], mend: str
) -> Iterator[str]:
    mend = "" if set(configured).isdisjoint(schema.names) else mend
    for where, name, kinds, rule in _needed(measures, id_column):
        twins = [other for other in schema.names if other.lower() == name.lower()]
        if name not in twins:
            hint = suggest_column(name, schema.names, configured, mend)
            yield f"{where}: the corpus has no column '{name}'. {hint}"
        elif len(twins) > 1:
            yield (
                f"{where}: the corpus has the columns {', '.join(map(repr, twins))}, which Spark cannot tell apart. "
                "Rename one of them."
            )
        elif not _fits(schema[name].dataType, kinds):
            found = schema[name].dataType.simpleString()
            yield f"{where}: column '{name}' is of type {found}. It must be {rule}. Name another column, or cast it."
    if len(measures.identities.categorical) > MOST_CATEGORICAL:
        yield (
            f"[identities] categorical: {len(measures.identities.categorical)} columns. {MOST_CATEGORICAL} are the "
            "most, since what is known on a row travels as the bits of one word. Measure them in several runs."
        )
    if measures.label.column in schema.names:
        yield from _label_faults(measures.label, schema[measures.label.column].dataType)


def _needed(measures: Measures, id_column: str | None) -> Iterator[tuple[str, str, tuple[type[DataType], ...], str]]:
    identities = measures.identities
    if id_column:
        yield "[corpus] id", id_column, *_SINGLE
    yield "[label] column", measures.label.column, *_FRACTION
    for model, name in measures.models.items():
        yield f"[models] {model}", name, *_NUMBER
    for name in identities.columns:
        yield "[identities] columns", name, *_FRACTION
    for name in identities.categorical:
        yield "[identities] categorical", name, *_SINGLE
    if identities.array:
        yield "[identities] array", identities.array, (ArrayType,), "an array of strings"
    if identities.terms:
        yield "[identities] terms.column", identities.terms.column, (StringType,), "a text"
    if measures.label_balance and measures.label_balance.text:
        yield "[label_balance] text", measures.label_balance.text, (StringType,), "a text"
    if measures.label_balance and measures.label_balance.length:
        yield "[label_balance] length", measures.label_balance.length, *_NUMBER
    if measures.templates:
        yield "[templates] column", measures.templates.column, *_SINGLE
    if measures.compare and measures.compare.cluster:
        yield "[compare] cluster", measures.compare.cluster, *_SINGLE
    for name in measures.attribution.numeric if measures.attribution else ():
        yield "[attribution] numeric", name, *_NUMBER
    for name in measures.attribution.categorical if measures.attribution else ():
        yield "[attribution] categorical", name, *_SINGLE


def _fits(kind: DataType, kinds: tuple[type[DataType], ...]) -> bool:
    if not kinds:
        return not isinstance(kind, ArrayType | MapType | StructType | BinaryType)
    if isinstance(kind, ArrayType):
        return ArrayType in kinds and isinstance(kind.elementType, StringType)
    return isinstance(kind, kinds)


def _is_fraction(kind: DataType) -> bool:
    return isinstance(kind, NumericType) and not isinstance(kind, IntegralType)


def _label_faults(label: Label, kind: DataType) -> Iterator[str]:
    if label.positive is None and label.threshold is None and _is_fraction(kind):
        yield (
            f'[label] column = "{label.column}": it is of type {kind.simpleString()}, and there is no threshold. A '
            "number is a label only with one. Set `threshold` (0.5), or `positive` to the values that are positive."
        )
    if label.threshold is not None and isinstance(kind, BooleanType):
        yield (
            f"[label] threshold = {label.threshold}: column '{label.column}' is boolean. A boolean needs no threshold. "
            "Remove the line."
        )
    if label.positive is not None and not isinstance(kind, StringType):
        wants_bool = isinstance(kind, BooleanType)
        wrong = [value for value in label.positive if isinstance(value, str) or isinstance(value, bool) != wants_bool]
        if wrong:
            yield (
                f"[label] positive = {show_value(label.positive)}: column '{label.column}' is of type "
                f"{kind.simpleString()}. {show_value(wrong[0])} is never one of its values. Give values of that type."
            )


def find_predicate_fault(corpus: DataFrame, where: str, text: str, shown: str) -> str | None:
    """Return what is wrong with a predicate over the columns of a corpus, None where it fits; reads no row.

    Parameters
    ----------
    where
        Where the configuration has it.
    shown
        Which columns the corpus has, as `show_columns` says it.
    """
    place = f'{where} = "{text}"'
    try:
        with input_faults(place):
            kind = corpus.select(F.expr(text)).schema[0].dataType
            if isinstance(kind, BooleanType):
                analyse_condition(corpus, F.expr(text))
                return None
    except InputError as error:
        mend = _correct(str(error), corpus.columns, shown)
        return f"{error} It must be a Spark SQL predicate over the columns of the corpus. {shown} {mend}"
    return f"{place}: it is of type {kind.simpleString()}. It must be true or false. Compare it with a value."


def _correct(fault: str, there: Sequence[str], shown: str) -> str:
    """Say how to mend an expression: by the column that is probably meant where it names one that is not there."""
    unresolved = _UNRESOLVED.search(fault)
    if unresolved is None or shown != _list_columns(there):
        return "Correct it."
    by_lower = {column.lower(): column for column in there}
    close = find_close(unresolved[1].lower(), tuple(by_lower))
    return f"Did you mean '{by_lower[close]}'?" if close else "Correct it."


def _grouping_faults(corpus: DataFrame, groupings: Mapping[str, str], shown: str) -> Iterator[str]:
    for name, text in groupings.items():
        where = f'[attribution.groupings] {name} = "{text}"'
        try:
            with input_faults(where):
                kind = corpus.select(F.expr(text)).schema[0].dataType
                analyse_condition(corpus, F.expr(text).isNotNull())
        except InputError as error:
            mend = _correct(str(error), corpus.columns, shown)
            yield f"{error} It must be a column or a Spark SQL expression. {shown} {mend}"
        else:
            if not _fits(kind, ()):
                found = kind.simpleString()
                yield f"{where}: it is of type {found}. It must be a single value. Name another, or cast it."


def _predicate_faults(corpus: DataFrame, measures: Measures, shown: str) -> Iterator[str]:
    named = [(f"[slices] {name}", text) for name, text in measures.slices.items()]
    named += [(f"[identities] predicates.{name}", text) for name, text in measures.identities.predicates.items()]
    if measures.attribution:
        named += [(f"[attribution.segments] {name}", text) for name, text in measures.attribution.segments.items()]
        yield from _grouping_faults(corpus, measures.attribution.groupings, shown)
    for where, text in named:
        if fault := find_predicate_fault(corpus, where, text, shown):
            yield fault
