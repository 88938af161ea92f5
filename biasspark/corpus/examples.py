"""Lake table -> EXAMPLES: every row with its label, scores and memberships, packed as the codebook says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from biasspark.columns import ALL_ROWS
from biasspark.config import Measures, find_too_many_pairs
from biasspark.corpus.buckets import bucket_ends, bucket_of
from biasspark.corpus.codebook import Codebook, Field
from biasspark.corpus.eligibility import known_score, label_of, row_reason, score_reason
from biasspark.corpus.identities import annotation_out_of_range, build_sources, flag_columns, value_column
from biasspark.corpus.survey import Survey
from biasspark.corpus.values import combine, is_unreadable
from biasspark.errors import InputError


def build_codebook(measures: Measures, survey: Survey) -> Codebook:
    """Settle the names and places of everything that EXAMPLES holds."""
    identities = measures.identities
    codebook = Codebook(
        models=tuple(measures.models),
        slices=(ALL_ROWS, *measures.slices),
        sources=build_sources(identities, survey.values),
        crossed=identities.crossed.pairs,
        min_rows=identities.crossed.min_rows,
        n_buckets=len(bucket_ends(measures.label_balance)) if measures.label_balance else None,
        texts=survey.texts,
    )
    if fault := find_too_many_pairs(len(codebook.singles), identities.crossed):
        raise InputError(fault)
    _refuse_names_twice(codebook)
    return codebook


def _refuse_names_twice(codebook: Codebook) -> None:
    twice = sorted(name for name, count in Counter(codebook.names).items() if count > 1)
    if twice:
        raise InputError(
            f"[identities]: {', '.join(map(repr, twice[:10]))} would name more than one identity, a value in the "
            "corpus among them. Each identity has its own name. Rename the column or predicate, or filter the value."
        )


def keep_scored(corpus: DataFrame, measures: Measures) -> DataFrame:
    """Return the rows that every model scores. Lazy."""
    scored = [score_reason(name, corpus.schema) == 0 for name in measures.models.values()]
    return corpus.where(combine(Column.__and__, scored))


def label_examples(
    corpus: DataFrame, measures: Measures, codebook: Codebook, id_column: str | None, also: Sequence[Column] = ()
) -> DataFrame:
    """Return EXAMPLES: the words, scores and values that the codebook describes, one row for each row of the corpus.

    Parameters
    ----------
    also : sequence of Column
        What else of a row goes along.

    Notes
    -----
    Lazy, and computed where the corpus is scanned: thresholds, predicates and regular expressions run in the JVM. Text
    is read only if a predicate or a list of terms needs it, and of a text only the terms found in it go on.
    """
    schema = corpus.schema
    parts = _field_values(measures, codebook, schema, id_column)
    words: list[Column] = []
    for number in range(len(codebook.word_columns)):
        shifted = [_shift(parts[key], place) for key, place in codebook.fields.items() if place.word == number]
        words.append(combine(Column.bitwiseOR, shifted).cast("bigint"))
    # 0 where rejected: what is never NULL crosses to Python as it is.
    scores = [known_score(name, schema).otherwise(F.lit(0.0)) for name in measures.models.values()]
    values = [value_column(codebook.sources[place], measures.identities, schema) for place in codebook.value_columns]
    columns = zip(
        [*words, *scores, *values],
        [*codebook.word_columns, *codebook.score_columns, *codebook.value_columns.values()],
        strict=True,
    )
    return corpus.select(*(value.alias(name) for value, name in columns), *also)


def _field_values(
    measures: Measures, codebook: Codebook, schema: StructType, id_column: str | None
) -> dict[tuple[str, int], Column]:
    """Return the value of every bit field of the codebook."""
    parts = {
        ("label", 0): label_of(measures.label, schema),
        ("row_reason", 0): row_reason(measures.label, schema, id_column),
        ("annotation", 0): annotation_out_of_range(measures.identities, schema),
    }
    for number, name in enumerate(codebook.texts):
        parts["unreadable", number] = is_unreadable(name, measures.identities.threshold)
    if codebook.n_buckets and measures.label_balance:
        parts["bucket", 0] = bucket_of(measures.label_balance, schema)
    for number, name in enumerate(measures.models.values()):
        parts["score_reason", number] = score_reason(name, schema)
    for number, predicate in enumerate(measures.slices.values(), 1):
        parts["slice", number] = F.expr(predicate)
    for place, source in enumerate(codebook.sources):
        if source.kind == "flags":
            flags = flag_columns(source, measures.identities, schema)
            known = combine(Column.__or__, [flag.isNotNull() for flag in flags.values()])
            for name, flag in flags.items():
                parts["member", codebook.number[name]] = flag
                parts["unknown", codebook.number[name]] = flag.isNull()
        else:
            known = value_column(source, measures.identities, schema).isNotNull()
        if source.nullable:
            parts["known", codebook.nullable_sources.index(place)] = known
    return parts


def _shift(value: Column, place: Field) -> Column:
    """Move a value to its place in the word; a condition that is NULL is false."""
    if place.width > 1:
        return F.shiftleft(value.cast("bigint"), place.shift)
    return F.when(value, F.lit(1 << place.shift)).otherwise(F.lit(0))
