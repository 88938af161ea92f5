"""What goes along with each row to be attributed: its id, the part it plays, its bins and its segments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from biasspark.columns import HONEST, ROW_ID, SEGMENTS
from biasspark.config import Attribution, TreeSettings
from biasspark.corpus.features import bin_columns
from biasspark.corpus.values import column
from biasspark.expressions.conditions import MOST_BITS, meet
from biasspark.features import Condition, Feature, bin_name

_PARTS = 1 << 30


def carried_columns(
    attribution: Attribution, features: Sequence[Feature], schema: StructType, id_column: str
) -> dict[str, Column]:
    """Return what goes along with each row, by name: what something asks for, since every column is moved."""
    found = {bin_name(place): own for place, own in enumerate(bin_columns(features, schema))}
    if attribution.tree or attribution.slice_search:
        found[HONEST] = is_honest(id_column, attribution.split)
    if attribution.write_examples or attribution.pairs or attribution.compare:
        found[ROW_ID] = column(id_column)
    if attribution.segments:
        found[SEGMENTS] = pack(map(F.expr, attribution.segments.values()))
    return found


def is_honest(id_column: str, split: TreeSettings) -> Column:
    """Return whether a row only estimates: by a seeded hash of its id as text, so not by where the row lies."""
    part = F.pmod(F.xxhash64(F.lit(split.seed).cast("bigint"), column(id_column).cast("string")), F.lit(_PARTS))
    return part < F.lit(round(split.honest_fraction * _PARTS))


def mark_rows(
    corpus: DataFrame, features: Sequence[Feature], id_column: str, split: TreeSettings, conditions: Sequence[Condition]
) -> tuple[DataFrame, list[Column]]:
    """Return the corpus with marks on its rows, by names that no column of a lake has, and words of flags.

    Bit k of the first word is set where a row is honest and meets the k-th condition, up to the 63rd, and so on.
    """
    bins = {_reserved(bin_name(place)): own for place, own in enumerate(bin_columns(features, corpus.schema))}
    marked = corpus.withColumns(bins | {_reserved(HONEST): is_honest(id_column, split)})
    parts = [conditions[start : start + MOST_BITS] for start in range(0, len(conditions), MOST_BITS)]
    met = (F.when(F.col(_reserved(HONEST)), meet(part, features, list(map(F.col, bins)))) for part in parts)
    words = {_reserved(f"word {place}"): F.coalesce(word, F.lit(0)) for place, word in enumerate(met)}
    return marked.select("*", *(word.alias(name) for name, word in words.items())), list(map(F.col, words))


def pack(flags: Iterable[Column]) -> Column:
    """Return a word whose bit k is set where the k-th flag is; one that is NULL is false."""
    bits = (F.when(flag, F.lit(1 << place)).otherwise(F.lit(0)) for place, flag in enumerate(flags))
    return reduce(Column.bitwiseOR, bits, F.lit(0)).cast("bigint")


def _reserved(name: str) -> str:
    return f"biasspark {name}"
