"""The sources of identities: columns, categories, an array, predicates and terms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from biasspark.config import Identities
from biasspark.corpus.encoding import COLUMNS, NO_WORD_LETTER, PREDICATES, TERMS, WORD_LETTER, Source, any_term
from biasspark.corpus.values import at_least, category, column, combine, outside
from biasspark.expressions.java_regex import EQUAL_TO_I
from biasspark.session import expression, is_embedded


def build_sources(identities: Identities, values: Mapping[str, Sequence[str]]) -> tuple[Source, ...]:
    """List the sources in the order of the configuration, given the values of each categorical or array column."""
    nullable = identities.unannotated == "exclude"
    sources = []
    if identities.columns:
        # An annotation out of its range is unknown, whatever a missing one means.
        is_nullable = nullable or identities.range is not None
        sources.append(Source(COLUMNS, "flags", is_nullable, identities.columns))
    for name in identities.categorical:
        names = tuple(f"{name}={value}" for value in values[name])
        sources.append(Source(name, "category", nullable, names, tuple(values[name])))
    if identities.array:
        names = tuple(values[identities.array])
        sources.append(Source(identities.array, "array", nullable, names, names))
    if identities.predicates:
        sources.append(Source(PREDICATES, "flags", nullable=False, identities=tuple(identities.predicates)))
    if identities.terms:
        patterns = tuple(map(any_term, identities.terms.list.values()))
        sources.append(Source(TERMS, "terms", nullable, tuple(identities.terms.list), patterns))
    return tuple(sources)


def flag_column(name: str, source: Source, identities: Identities, corpus: DataFrame) -> Column:
    """Return whether a row is in an identity of a source of flags: BOOLEAN, NULL if unknown."""
    if source.name == PREDICATES:
        return expression(corpus, identities.predicates[name])
    kind = corpus.schema[name].dataType
    is_member = at_least(name, kind, identities.threshold)
    if identities.range is None:
        return is_member
    if identities.unannotated == "background":
        is_member = F.coalesce(is_member, F.lit(False))
    return F.when(~outside(name, kind, identities.range), is_member)


def value_column(source: Source, identities: Identities, corpus: DataFrame) -> Column:
    """Return the strings from which the memberships of a source of values are read; NULL where they are unknown."""
    if source.kind == "category":
        return category(column(source.name), corpus.schema[source.name].dataType)
    if source.kind == "array":
        return column(source.name)
    assert identities.terms is not None
    text = column(identities.terms.column)
    terms = sorted({term for listed_terms in identities.terms.list.values() for term in listed_terms})
    if not is_embedded(corpus.sparkSession):
        # The longest term at each position, as spelled there. By the lookahead, a term within another is found as well.
        pattern = rf"(?iu)(?<!{WORD_LETTER})(?=({any_term(terms)})(?!{WORD_LETTER}))"
        return F.regexp_extract_all(text, F.lit(pattern), F.lit(1))
    # That engine has no lookahead. Each term, as configured, is looked for by itself: the memberships are the same.
    patterns = (re.sub(f"[{EQUAL_TO_I}]", f"[{EQUAL_TO_I}]", any_term([term])) for term in terms)
    listed = [
        F.when(text.rlike(rf"(?i)(^|{NO_WORD_LETTER}){pattern}({NO_WORD_LETTER}|\z)"), F.lit(term))
        for term, pattern in zip(terms, patterns, strict=True)
    ]
    return F.when(text.isNotNull(), F.array_compact(F.array(*listed)))


def annotation_out_of_range(identities: Identities, schema: StructType) -> Column:
    """Return whether any annotation of a row lies outside the configured range."""
    if identities.range is None or not identities.columns:
        return F.lit(False)
    ranged = [outside(name, schema[name].dataType, identities.range) for name in identities.columns]
    return combine(Column.__or__, ranged)
