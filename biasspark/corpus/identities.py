"""Where identities come from: columns, categories, an array, predicates, terms; each in, out or unknown on a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyspark.sql.functions as F
from pyspark.sql import Column
from pyspark.sql.types import NumericType, StringType, StructType

from biasspark.config import Identities
from biasspark.corpus.codebook import Source, any_term
from biasspark.corpus.values import at_least, category, column, combine, outside

COLUMNS, PREDICATES, TERMS = "columns", "predicates", "terms"

WORD_LETTER = r"[\p{L}\p{N}_]"
"""What Python's `\\w` is, in Java; Java's own, even with (?U), takes marks for letters and leaves superscripts out."""


def build_sources(identities: Identities, values: Mapping[str, Sequence[str]]) -> tuple[Source, ...]:
    """List the sources in the order of the configuration.

    Parameters
    ----------
    values : mapping of str to sequence of str
        For each categorical column and the array column, its distinct values in order.
    """
    nullable = identities.unannotated == "exclude"
    sources = []
    if identities.columns:
        sources.append(Source(COLUMNS, "flags", nullable, identities.columns))
    for name in identities.categorical:
        named = {value: f"{name}={value}" for value in values[name]}
        sources.append(Source(name, "category", nullable, tuple(named.values()), named))
    if identities.array:
        named = {value: value for value in values[identities.array]}
        sources.append(Source(identities.array, "array", nullable, tuple(named.values()), named))
    if identities.predicates:
        sources.append(Source(PREDICATES, "flags", nullable=False, identities=tuple(identities.predicates)))
    if identities.terms:
        patterns = tuple((name, any_term(terms)) for name, terms in identities.terms.terms)
        sources.append(Source(TERMS, "spellings", nullable, tuple(name for name, _ in patterns), patterns=patterns))
    return tuple(sources)


def flag_columns(source: Source, identities: Identities, schema: StructType) -> dict[str, Column]:
    """Return the membership of each identity of a source of flags: BOOLEAN, NULL where it is unknown."""
    if source.name == PREDICATES:
        return {name: F.expr(predicate) for name, predicate in identities.predicates.items()}
    return {name: _annotated(name, identities, schema) for name in identities.columns}


def value_column(source: Source, identities: Identities, schema: StructType) -> Column:
    """Return the strings that tell the memberships of a source of values; NULL where it is unknown."""
    if source.kind == "category":
        return category(source.name, schema[source.name].dataType)
    if source.kind == "array":
        return column(source.name)
    assert identities.terms is not None
    every_term = tuple(term for _, terms in identities.terms.terms for term in terms)
    return spellings(column(identities.terms.column), every_term)


def spellings(text: Column, terms: tuple[str, ...]) -> Column:
    """Return the terms that stand in a text as whole words, as they are spelt there: of each place the longest.

    The search only looks ahead, so a term within another one is found as well.
    """
    found = rf"(?iu)(?<!{WORD_LETTER})(?=({any_term(terms)})(?!{WORD_LETTER}))"
    return F.regexp_extract_all(text, F.lit(found), F.lit(1))


def annotation_out_of_range(identities: Identities, schema: StructType) -> Column:
    """Return whether any annotation of a row lies outside the configured range."""
    ranged = [_out_of_range(name, identities, schema) for name in identities.columns if identities.range]
    return combine(Column.__or__, ranged or [F.lit(False)])


def _annotated(name: str, identities: Identities, schema: StructType) -> Column:
    inside = at_least(name, schema[name].dataType, identities.threshold)
    if identities.range is None:
        return inside
    return F.when(~_out_of_range(name, identities, schema), inside)


def _out_of_range(name: str, identities: Identities, schema: StructType) -> Column:
    kind = schema[name].dataType
    if identities.range is None or not isinstance(kind, NumericType | StringType):
        return F.lit(False)
    return outside(name, kind, identities.range)
