"""Check that the corpus has what the configuration names: all faults at once, before any row is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import pyspark.sql.functions as F
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import types as T

from biasspark.columns import MALFORMED
from biasspark.config import FILTER, Attribution, Label, LabelBalance, Measures
from biasspark.errors import ABSENT, Fault, InputError, Key, KeyPath, Setting, Text, Words, find_error_condition
from biasspark.session import expression, is_embedded
from biasspark.session.spark_errors import TYPE_MISMATCH, translate_spark_errors
from biasspark.text import closest_match, show_value

_QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
MAX_CATEGORICAL = 58
NAME_ANOTHER = Words(
    "Name one that it has. If only some Parquet files have it, set `[corpus] options = { mergeSchema = true }`.",
    "Name one that it has.",
)

Use = Literal["category", "number", "fraction", "text", "array"]
_RULES: dict[Use, tuple[tuple[type[T.DataType], ...], str]] = {
    "category": ((), "a single value"),
    "number": ((T.NumericType, T.StringType), "a number, or a string that holds one"),
    "fraction": ((T.BooleanType, T.NumericType, T.StringType), "a boolean, a number, or a string that holds either"),
    "text": ((T.StringType,), "a string"),
    "array": ((T.ArrayType,), "an array of strings"),
}
_PLAIN_NAME = re.compile(r"\w+", re.ASCII)
_UNRESOLVED = re.compile(r"Column: `([^`.]*)`\.$")


class ConfiguredColumn(NamedTuple):
    """A column that a configuration names: its key, its name, and its use."""

    path: KeyPath
    name: str
    use: Use


def list_columns(measures: Measures, id_column: str | None) -> Iterator[ConfiguredColumn]:
    """Yield the columns that a configuration names outside of SQL."""
    identities, templates, compare = measures.identities, measures.templates, measures.compare
    balance, attribution = measures.label_balance or LabelBalance(), measures.attribution or Attribution()
    named: list[tuple[KeyPath, str | None, Use]] = [
        (("corpus", "id"), id_column, "category"),
        (("label", "column"), measures.label.column, "fraction"),
        *((("models", model), name, "number") for model, name in measures.models.items()),
        *((("identities", "columns"), name, "fraction") for name in identities.columns),
        *((("identities", "categorical"), name, "category") for name in identities.categorical),
        (("identities", "array"), identities.array, "array"),
        (("identities", "terms", "column"), identities.terms.column if identities.terms else None, "text"),
        (("label_balance", "text"), balance.text, "text"),
        (("label_balance", "length"), balance.length, "number"),
        (("templates", "column"), templates.column if templates else None, "category"),
        (("compare", "cluster"), compare.cluster if compare else None, "category"),
        *((("attribution", "numeric"), name, "number") for name in attribution.numeric),
        *((("attribution", "categorical"), name, "category") for name in attribution.categorical),
    ]
    yield from (ConfiguredColumn(path, name, use) for path, name, use in named if name)


class ColumnNames:
    """The columns of a corpus in messages, which list them once."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names, self._are_listed = names, False

    def list_after(self, rule: str) -> str:
        """Return a rule, the first time followed by all columns."""
        listed, self._are_listed = self._are_listed, True
        shown = [f"'{name}'" if name != name.strip() else name for name in self.names]
        return rule if listed else f"{rule} It has: {', '.join(shown)}."

    def missing(self, path: KeyPath, value: object, problem: str, name: str, fix: Text = NAME_ANOTHER) -> Fault:
        """Return the fault of a missing column, with the columns of the corpus and the one that is probably meant."""
        close, column = self.closest(name), name.partition(".")[0]
        hint = f"Did you mean '{close}'?" if close else fix
        if column != name and column in self.names:
            hint = f"A field of '{column}' is no column. Make it one, in a view or a copy."
        return Fault(path, value, self.list_after(problem), hint)

    def closest(self, name: str) -> str | None:
        """Return the column whose name is closest, ignoring case and spaces around it."""
        by_lower = {column.strip().lower(): column for column in self.names}
        close = closest_match(name.strip().lower(), tuple(by_lower))
        return by_lower[close] if close else None


def check_schema(
    corpus: DataFrame, measures: Measures, id_column: str | None = None, columns: ColumnNames | None = None
) -> None:
    """Raise `InputError` with every fault of the columns and expressions that a configuration names.

    `columns` are those in messages. Looks at the schema only: no row is read, no job is run.
    """
    corpus = corpus.drop(MALFORMED)
    columns = columns or ColumnNames(corpus.columns)
    faults = list(_column_faults(corpus, measures, id_column, columns))
    for path, text in measures.expressions.items():
        if path[0] != "corpus" and (fault := expression_fault(corpus, path, text, columns)):
            faults.append(fault)
    if faults:
        raise InputError(*faults)


def _column_faults(
    corpus: DataFrame, measures: Measures, id_column: str | None, columns: ColumnNames
) -> Iterator[Fault]:
    schema, on_embedded = corpus.schema, is_embedded(corpus.sparkSession)
    for path, name, use in list_columns(measures, id_column):
        types, rule = _RULES[use]
        is_written = on_embedded and use == "category" and path[0] != "identities"  # the survey checks identities
        like_named = [column for column in schema.names if column.lower() == name.lower()]
        if name not in like_named:
            fault = columns.missing(path, ABSENT, f"the corpus has no column '{name}'.", name)
            # The scores of another model are not those of this one.
            is_taken = path[0] == "models" and columns.closest(name) in measures.models.values()
            yield replace(fault, fix=NAME_ANOTHER) if is_taken else fault
        elif len(like_named) > 1:
            shown = ", ".join(map(repr, like_named))
            problem = f"the corpus has the columns {shown}, which Spark cannot tell apart."
            yield Fault(path, ABSENT, problem, "Rename one of them.")
        elif not _has_type(schema[name].dataType, types):
            problem = f"column '{name}' is of type {schema[name].dataType.simpleString()}. It must be {rule}."
            yield Fault(path, ABSENT, problem, _fix_of_type(path, schema[name].dataType))
        elif is_written and isinstance(schema[name].dataType, T.FloatType | T.DoubleType):
            rule = "The embedded engine writes floating-point numbers as text differently from Spark."
            yield Fault(path, name, rule, "Write the column as integers or text, or run it on Spark.")
    n_columns = len(measures.identities.categorical)
    if n_columns > MAX_CATEGORICAL and measures.identities.unannotated == "exclude":
        rule = f'{n_columns} columns. With `unannotated = "exclude"` a run measures at most {MAX_CATEGORICAL}.'
        yield Fault(("identities", "categorical"), ABSENT, rule, "Measure them in several runs.")
    if measures.label.column in schema.names:
        yield from _label_faults(measures.label, schema[measures.label.column].dataType)


def _fix_of_type(path: KeyPath, kind: T.DataType) -> Text:
    if isinstance(kind, T.BinaryType):
        return "Write its bytes as a string, such as hex digits."
    if path == ("attribution", "numeric") and _has_type(kind, ()):
        return ("Name it in ", Key(("attribution", "categorical")), " instead, or cast it to a number.")
    if path == ("label_balance", "text") and isinstance(kind, T.NumericType):
        return ("Name another column; for lengths that are counted already use ", Key(("label_balance", "length")), ".")
    if isinstance(kind, T.ArrayType) and path != ("identities", "array"):
        return "Name another column, or make one of an element of it."
    return f"Name another column, or cast it{' to int' if isinstance(kind, T.BooleanType) else ''}."


def _has_type(kind: T.DataType, types: tuple[type[T.DataType], ...]) -> bool:
    if not types:
        return not isinstance(kind, T.ArrayType | T.MapType | T.StructType | T.BinaryType)
    if isinstance(kind, T.ArrayType):
        return T.ArrayType in types and isinstance(kind.elementType, T.StringType)
    return isinstance(kind, types)


def _label_faults(label: Label, kind: T.DataType) -> Iterator[Fault]:
    is_fraction = isinstance(kind, T.FractionalType) and getattr(kind, "scale", 1) > 0
    if label.positive is None and label.threshold is None and is_fraction:
        rule = f"It is of type {kind.simpleString()}, and there is no threshold. A number is a label only with one."
        fix = ("Set ", Setting(("label", "threshold"), 0.5), ", or name values in ", Key(("label", "positive")), ".")
        yield Fault(("label", "column"), label.column, rule, fix)
    if label.threshold is not None and isinstance(kind, T.BooleanType):
        rule = f"Column '{label.column}' is boolean. A boolean needs no threshold."
        yield Fault(("label", "threshold"), label.threshold, rule, "Leave it out.")
    if label.positive is not None and not isinstance(kind, T.StringType):
        wants_bool = isinstance(kind, T.BooleanType)
        wrong = [value for value in label.positive if isinstance(value, str) or isinstance(value, bool) != wants_bool]
        if wrong:
            never = f"{show_value(wrong[0])} is never one of its values."
            rule = f"Column '{label.column}' is of type {kind.simpleString()}. {never}"
            yield Fault(("label", "positive"), label.positive, rule, "Give values of that type.")


def expression_fault(corpus: DataFrame, path: KeyPath, text: str, columns: ColumnNames) -> Fault | None:
    """Return the fault of an expression of the configuration over a corpus; None if it fits. Reads no row.

    Groupings have any atomic type, and all others are predicates. Each is deterministic, and depends on one row alone.
    """
    is_predicate, on_embedded = path[:2] != ("attribution", "groupings"), is_embedded(corpus.sparkSession)
    if path == FILTER and on_embedded and "->" in _QUOTED.sub(" ", text):
        rule = "The embedded engine filters by no function of an array's elements (->)."
        return Fault(path, text, rule, "Use array_contains or arrays_overlap, or run it on Spark.")
    try:
        with translate_spark_errors(path, text):
            kind = _analyze_expression(corpus, text, is_predicate)
    except InputError as error:
        (fault,) = error.faults
        assert isinstance(fault, Fault)
        expected = "a Spark SQL predicate over the columns of the corpus" if is_predicate else "a column or Spark SQL"
        return _explain_refusal(fault, Fault(path, text, f"It must be {expected}."), columns, on_embedded)
    except PySparkException as error:
        if not on_embedded:
            raise
        name = find_error_condition(error) or type(error).__name__  # not the error's text, which may quote values
        return Fault(path, text, f"The embedded engine cannot compute it ({name}).", "Correct it.")
    # The engines compute numbers of different types.
    type_text = "a number" if isinstance(kind, T.NumericType) else f"of type {kind.simpleString()}"
    problem = f"It is {type_text}. It must be"
    if is_predicate and not isinstance(kind, T.BooleanType):
        return Fault(path, text, f"{problem} true or false.", "Compare it with a value.")
    return None if _has_type(kind, ()) else Fault(path, text, f"{problem} a single value.", "Name another, or cast it.")


def _analyze_expression(corpus: DataFrame, text: str, is_predicate: bool) -> T.DataType:
    """Return the type of an expression. Raises what the engine raises for one that is random or needs other rows."""
    value = expression(corpus, text)
    # Within a call a word at the end is no alias: `a > 1 or` would be `a > 1 AS or`. The text may end in a comment.
    kind = corpus.select(value, expression(corpus, f"isnull({text}\n)")).schema[0].dataType
    if is_embedded(corpus.sparkSession):
        _plan(corpus, value)
    if isinstance(kind, T.BooleanType) or not is_predicate:
        condition = value if is_predicate else value.isNotNull()
        for frame in (corpus.where(condition), corpus.agg(F.max(condition))):
            _ = frame.schema  # Connect analyzes a frame when its schema is requested
    return kind


def _plan(corpus: DataFrame, value: Column) -> None:
    """Compute an expression of NULLs: the embedded engine has no plan for some that it analyzes, as NOT of a text."""
    nulls = [F.lit(None).cast(field.dataType).alias(field.name) for field in corpus.schema]
    try:
        corpus.sparkSession.range(1).select(*nulls).select(value).collect()
    except AnalysisException:
        raise
    except PySparkException:
        pass  # an expression that fails on a row is named when the corpus is read


def _explain_refusal(fault: Fault, expected: Fault, columns: ColumnNames, on_embedded: bool) -> Fault:
    """Return the fault of an expression that the engine refuses, with what is expected of it and the column meant."""
    if re.search(r"\w\.\w+\(", _QUOTED.sub(" ", str(expected.value))):  # a method of Python
        return replace(expected, rule=fault.rule, fix="Write it in SQL, which has no methods: x IS NULL, length(x).")
    if not fault.path:  # a limit of this engine, not of the expression
        return replace(expected, rule=fault.rule, fix=fault.fix)
    if on_embedded and str(fault.rule).startswith("Spark refuses it"):
        return replace(expected, rule="The embedded engine cannot compute it.", fix="Correct it, or run it on Spark.")
    unresolved = _UNRESOLVED.search(str(fault.rule))
    close = columns.closest(unresolved[1]) if unresolved else None
    unquoted_text = _QUOTED.sub(" ", str(fault.value))
    special = [name for name in columns.names if not _PLAIN_NAME.fullmatch(name) and name in unquoted_text]
    unquoted = [name for name in special if unresolved is None or unresolved[1] in name]
    rule = columns.list_after(f"{fault.rule} {expected.rule}")
    advice = f"Did you mean '{close}'?" if close else "Correct it."
    if on_embedded and TYPE_MISMATCH[1:] in rule:  # Spark converts more types
        advice = "Correct it, or run it on Spark."
    return replace(fault, rule=rule, fix=f"Write `{unquoted[0]}` in backquotes." if unquoted else advice)
