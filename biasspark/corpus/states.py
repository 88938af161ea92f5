"""EXAMPLES read back in Spark SQL: the bit fields, and who is in which identity."""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column

from biasspark.corpus.codebook import Codebook, Source
from biasspark.corpus.identities import WORD_LETTER


def field(what: str, number: int, codebook: Codebook) -> Column:
    """Return the value of a bit field of EXAMPLES: see `Codebook.fields`."""
    place = codebook.fields[what, number]
    return F.shiftright(codebook.word_columns[place.word], place.shift).bitwiseAND(F.lit((1 << place.width) - 1))


def states(codebook: Codebook) -> list[Column]:
    """Return for every identity by number whether a row of EXAMPLES is in it: BOOLEAN, NULL where unknown.

    Spark's AND is that of three values: a crossed pair is out where one side is out, else unknown where one is unknown.
    """
    singles = single_states(codebook)
    return singles + [singles[a] & singles[b] for a, b in codebook.pairs]


def single_states(codebook: Codebook) -> list[Column]:
    """Return the same without crossed pairs; no row is in ``(overall)``, which has no subgroup."""
    singles = [F.lit(False)]
    for place, source in enumerate(codebook.sources):
        singles += _source_states(place, source, codebook)
    return singles


def name_of(number: Column, names: tuple[str, ...]) -> Column:
    """Return the name of a number."""
    return F.element_at(F.array(*map(F.lit, names)), number + 1)


def _source_states(place: int, source: Source, codebook: Codebook) -> list[Column]:
    if source.kind == "flags":
        known = [_flag_state(codebook.number[name], source, codebook) for name in source.identities]
    elif source.kind == "spellings":
        found = F.col(codebook.value_columns[place])
        known = [_any_is(found, pattern) for _, pattern in source.patterns]
    elif source.kind == "array":
        found = F.col(codebook.value_columns[place])
        # A null element says nothing, but would make array_contains NULL where the value is not there.
        known = [F.array_contains(F.array_compact(found), F.lit(value)) for value in source.values]
    else:
        known = [F.col(codebook.value_columns[place]) == F.lit(value) for value in source.values]
    return known if source.nullable else [F.coalesce(state, F.lit(False)) for state in known]


def _any_is(spellings: Column, pattern: str) -> Column:
    return F.exists(spellings, lambda text: text.rlike(f"(?iu)^{pattern}(?!{WORD_LETTER})"))


def _flag_state(number: int, source: Source, codebook: Codebook) -> Column:
    member = field("member", number, codebook) == 1
    if not source.nullable:
        return member
    bit = codebook.nullable_sources.index(codebook.sources.index(source))
    known = (field("known", bit, codebook) == 1) & (field("unknown", number, codebook) == 0)
    return F.when(known, member)
