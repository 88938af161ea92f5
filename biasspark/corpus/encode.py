"""Lake table -> EXAMPLES: every row with its label, scores and memberships, packed as the encoding says."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import FloatType, NumericType, StringType, StructType

from biasspark.columns import ALL_ROWS
from biasspark.config import Identities, LabelBalance, Measures, too_many_pairs
from biasspark.corpus.eligibility import known_score, label_of, row_reason, score_reason
from biasspark.corpus.encoding import PREDICATES, Encoding, Field, Source
from biasspark.corpus.identity_sources import annotation_out_of_range, build_sources, flag_column, value_column
from biasspark.corpus.survey import Survey
from biasspark.corpus.values import cast_like, column, combine, first_true, is_unreadable, number, outside
from biasspark.errors import ABSENT, Fault, InputError
from biasspark.session import expression, is_embedded


def build_encoding(measures: Measures, survey: Survey, corpus: DataFrame | None = None) -> Encoding:
    """Return the encoding of EXAMPLES. Raises `InputError` for repeated identities or too many crossed pairs.

    The columns of a `corpus` decide which of its annotations are checked, and how they are read.
    """
    identities, balance = measures.identities, measures.label_balance
    encoding = Encoding(
        models=tuple(measures.models),
        slices=(ALL_ROWS, *measures.slices),
        sources=build_sources(identities, survey.values),
        crossed=identities.crossed.pairs,
        min_rows=identities.crossed.min_rows,
        n_length_bins=len(list_length_bins(balance)) if balance else None,
    )
    if corpus is not None:
        texts = (name for name in identities.columns if isinstance(corpus.schema[name].dataType, StringType))
        encoding = replace(
            encoding,
            text_columns=tuple(texts),
            fraction_columns=tuple(_list_fractions(measures, corpus.schema)),
            number_columns=_list_numbers(identities, corpus.schema) if is_embedded(corpus.sparkSession) else {},
        )
    if fault := too_many_pairs(len(encoding.singles), identities.crossed):
        raise InputError(fault)
    if repeated := sorted(name for name, count in Counter(encoding.names).items() if count > 1):
        problem = f"{', '.join(map(repr, repeated[:10]))} would name more than one identity, a value in the corpus "
        problem += "among them. Each identity has a different name."
        fix = "Rename the column or predicate, or filter the value."
        raise InputError(Fault(("identities",), ABSENT, problem, fix))
    return encoding


def _list_fractions(measures: Measures, schema: StructType) -> Iterator[str]:
    """Yield the columns in which numbers are expected to be fractions: a threshold within 0 to 1 cuts them."""
    label, identities = measures.label, measures.identities
    names = identities.columns if 0 < identities.threshold <= 1 and identities.range is None else ()
    if label.threshold is not None and 0 < label.threshold < 1 and label.range is None:
        names = (label.column, *names)
    yield from (name for name in dict.fromkeys(names) if isinstance(schema[name].dataType, NumericType | StringType))


def _list_numbers(identities: Identities, schema: StructType) -> dict[str, float]:
    """Return the columns of annotations that Python may read as numbers, and the lowest value of a member."""
    kinds = {name: schema[name].dataType for name in identities.columns if identities.range is None}
    return {
        name: float(np.float32(identities.threshold)) if isinstance(kind, FloatType) else float(identities.threshold)
        for name, kind in kinds.items()
        if isinstance(kind, NumericType)
    }


def keep_scored(corpus: DataFrame, measures: Measures) -> DataFrame:
    """Return the rows that every model scores. Lazy."""
    scored = [score_reason(name, corpus.schema) == 0 for name in measures.models.values()]
    return corpus.where(combine(Column.__and__, scored))


def encode_examples(
    corpus: DataFrame, measures: Measures, encoding: Encoding, id_column: str | None, payload: Sequence[Column] = ()
) -> DataFrame:
    """Return EXAMPLES: the words, scores and values of the encoding, and `payload`, for each row of the corpus.

    Lazy, and computed in the JVM where the corpus is scanned. Text is read only if a predicate or a list of terms needs
    it, and only the terms found in it are kept.
    """
    schema = corpus.schema
    packed: dict[int, list[Column]] = defaultdict(list)
    number_bits: dict[int, list[Column]] = defaultdict(list)
    for key, value in _field_values(measures, encoding, corpus, id_column).items():
        packed[encoding.fields[key].word].append(_shift(value, encoding.fields[key]))
    for source in encoding.sources:
        for name in source.identities if source.kind == "flags" else ():
            bits = number_bits if name in encoding.number_columns else packed
            of_identity = _flag_bits(name, source, measures.identities, encoding, corpus)
            bits[encoding.fields["member", encoding.number[name]].word].append(of_identity)
    columns = {
        name: combine(Column.bitwiseOR, bits[index] or [F.lit(0)]).cast("bigint")
        for names, bits in (
            (encoding.word_columns, {n: packed[n] + number_bits[n] for n in range(len(encoding.word_columns))}),
            (encoding.packed_columns, packed),
        )
        for index, name in enumerate(names)
    }
    for name in encoding.number_columns:
        read_as, _ = encoding.numbers[encoding.number[name]]
        columns[read_as] = number(name, schema[name].dataType)
    for name, score in zip(encoding.score_columns, measures.models.values(), strict=True):
        # 0 where rejected: a column without NULL crosses to Python without a copy.
        columns[name] = known_score(score, schema).otherwise(F.lit(0.0))
    for index, name in encoding.value_columns.items():
        columns[name] = value_column(encoding.sources[index], measures.identities, corpus)
    return corpus.select(*(value.alias(name) for name, value in columns.items()), *payload)


def list_length_bins(balance: LabelBalance) -> tuple[tuple[int, int], ...]:
    """Return the minimum and maximum length of every bin; none if no length is configured."""
    if balance.text is None and balance.length is None:
        return ()
    return tuple((low, high - 1) for low, high in pairwise(balance.buckets))


def _length_bin(balance: LabelBalance, schema: StructType) -> Column:
    """Return the length bin of a row, counted from 1; 0 if its length is unknown or in no bin."""
    if balance.text is not None:
        length = F.char_length(column(balance.text))  # in Unicode code points
    else:
        assert balance.length is not None
        length = number(balance.length, schema[balance.length].dataType)
    return first_true([(length < edge, index) for index, edge in enumerate(balance.buckets)], 0)


def _field_values(
    measures: Measures, encoding: Encoding, corpus: DataFrame, id_column: str | None
) -> dict[tuple[str, int], Column]:
    """Return the value of every bit field of the encoding."""
    identities, schema = measures.identities, corpus.schema
    parts = {
        ("label", 0): label_of(measures.label, schema),
        ("row_reason", 0): row_reason(measures.label, schema, id_column),
        ("annotation", 0): annotation_out_of_range(identities, schema),
    }
    parts |= {
        ("unreadable", n): is_unreadable(name, identities.threshold) for n, name in enumerate(encoding.text_columns)
    }
    if ("off_scale", 0) in encoding.fields:
        parts["off_scale", 0] = outside(measures.label.column, schema[measures.label.column].dataType, (0.0, 1.0))
    if encoding.n_length_bins and measures.label_balance:
        parts["length_bin", 0] = _length_bin(measures.label_balance, schema)
    parts |= {("score_reason", n): score_reason(name, schema) for n, name in enumerate(measures.models.values())}
    parts |= {("slice", n): expression(corpus, predicate) for n, predicate in enumerate(measures.slices.values(), 1)}
    for index, source in enumerate(encoding.sources):
        if source.nullable and source.kind != "flags":
            known = value_column(source, identities, corpus).isNotNull()
            parts["known", encoding.nullable_sources.index(index)] = known
    return parts


def _flag_bits(name: str, source: Source, identities: Identities, encoding: Encoding, corpus: DataFrame) -> Column:
    """Return the bits of an identity of a source of flags: ``member``, ``unknown`` and ``off_scale``.

    One chain of comparisons gives all bits of a number: this is most of the code that Spark generates for a scan, and
    it is several times slower if HotSpot finds it too long to compile. For NULL no comparison is true; for NaN neither,
    as Spark's is greater than infinity.
    """
    schema = corpus.schema
    member, unknown, off_scale = (
        1 << item.shift if (item := encoding.fields.get((what, encoding.number[name]))) else 0
        for what in ("member", "unknown", "off_scale")
    )
    if source.name != PREDICATES and identities.range is None and isinstance(schema[name].dataType, NumericType):
        value = number(name, schema[name].dataType)
        if is_embedded(corpus.sparkSession):  # there a NaN with a sign is less than all numbers
            value = F.nanvl(value, F.lit(math.nan))
        threshold = cast_like(identities.threshold, schema[name].dataType)
        low = [(value < 0, off_scale)] if off_scale else []
        high = [(value <= 1, member)] if off_scale else []
        return first_true([*low, (value < threshold, 0), *high, (value <= math.inf, member | off_scale)], unknown)
    flag = flag_column(name, source, identities, corpus)
    bits = first_true([(flag, member), (flag.isNull(), unknown)], 0)
    if not off_scale:
        return bits
    return bits.bitwiseOR(first_true([(outside(name, schema[name].dataType, (0.0, 1.0)), off_scale)], 0))


def _shift(value: Column, item: Field) -> Column:
    """Move a value to its bits of the word; a condition that is NULL is false."""
    if item.width > 1:
        return F.shiftleft(value.cast("bigint"), item.shift)
    return F.when(value, F.lit(1 << item.shift)).otherwise(F.lit(0))
