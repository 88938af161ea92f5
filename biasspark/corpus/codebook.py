"""What the bits and columns of EXAMPLES mean: the agreement between the corpus and the ranking.

A row of EXAMPLES is narrow, because handing rows to Python is most of the cost of ranking them: one score per model,
a few BIGINT words that pack label, reasons, slices and memberships, and one column of strings for each source whose
identities are values of the data (a categorical column, an array, the terms found in a text).
No Spark here: the kernels on the executors read this, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import combinations
from typing import Literal

import numpy as np

from biasspark.arrays import Ints
from biasspark.columns import ANNOTATION_OUT_OF_RANGE, OVERALL, PAIR, ROW_REASONS, SCORE_REASONS

WORD_BITS = 63  # the sign bit stays clear

SourceKind = Literal["flags", "category", "array", "spellings"]


@dataclass(frozen=True)
class Field:
    """A bit field of one word: ``(words[word] >> shift) & (2 ** width - 1)``."""

    word: int
    shift: int
    width: int = 1


@dataclass(frozen=True)
class Source:
    """Identities that become known together: all are unknown on a row on which their source is.

    Attributes
    ----------
    kind
        How membership is told: by bits; by the one value of a category or the values of an array; by the spellings
        of terms that were found in a text.
    nullable
        Whether the source can be unknown on a row. If not, every row is in its base.
    values
        For a category or an array, identity name by value.
    patterns
        For terms, (identity name, regular expression for any of them) pairs.
    """

    name: str
    kind: SourceKind
    nullable: bool
    identities: tuple[str, ...]
    values: dict[str, str] = field(default_factory=dict)
    patterns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Codebook:
    """Names of models, slices and identities, and where EXAMPLES keeps what is known of them.

    Identities are numbered: 0 is ``(overall)``, then the configured ones in their order, then the crossed pairs.
    """

    models: tuple[str, ...]
    slices: tuple[str, ...]
    sources: tuple[Source, ...]
    crossed: bool = False
    min_rows: int = 0
    n_buckets: int | None = None
    """Buckets of text lengths in which labels are counted; None where they are not counted at all."""
    n_bins: tuple[int, ...] = ()
    """Of each model into how many bins its scores are cut; none where they are ranked exactly."""
    texts: tuple[str, ...] = ()
    """Columns of annotations that are text, of which those that cannot be read are counted."""
    keeps_state: bool = False
    """Whether the ranking gives back its sorted blocks, to be merged with those of other nights."""

    def __getstate__(self) -> dict[str, object]:
        """Travel as it was made: what was looked up meanwhile would make an equal plan look new to Spark's cache."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @cached_property
    def singles(self) -> tuple[str, ...]:
        """Names of the configured identities, crossed pairs left out."""
        return tuple(name for source in self.sources for name in source.identities)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Numbers of the two sides of every crossed pair."""
        return tuple(combinations(range(1, len(self.singles) + 1), 2)) if self.crossed else ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of every identity by number."""
        singles = (OVERALL, *self.singles)
        return singles + tuple(f"{singles[a]}{PAIR}{singles[b]}" for a, b in self.pairs)

    @cached_property
    def number(self) -> dict[str, int]:
        """Number of every configured identity by name."""
        return {name: number for number, name in enumerate(self.singles, 1)}

    @cached_property
    def first_pair(self) -> int:
        """Number of the first crossed pair."""
        return len(self.singles) + 1

    @cached_property
    def source_of(self) -> tuple[int, ...]:
        """Place in `sources` of every configured identity; entry 0, of ``(overall)``, is -1."""
        return (-1, *(place for place, source in enumerate(self.sources) for _ in source.identities))

    @cached_property
    def base_masks(self) -> tuple[int, ...]:
        """For every identity the nullable sources one of which must be known for a row to be in its base, as bits.

        0 stands for all rows. A crossed pair is decided (out) where one side is known to be out, so its base holds the
        rows on which either source is known; where the other side is not out, the row is an entry of kind unknown.
        """
        bit = {place: 1 << n for n, place in enumerate(self.nullable_sources)}
        masks = [bit.get(place, 0) for place in self.source_of]
        pairs = (masks[a] | masks[b] if masks[a] and masks[b] else 0 for a, b in self.pairs)
        return (*masks, *pairs)

    @cached_property
    def nullable_sources(self) -> tuple[int, ...]:
        """Places of the sources that can be unknown on a row; bit k of a row's pattern says that the k-th is known."""
        return tuple(place for place, source in enumerate(self.sources) if source.nullable)

    @cached_property
    def open_sources(self) -> tuple[int, ...]:
        """Places of the sources whose identities are the values that were seen, so that other nights may have more."""
        return tuple(place for place, source in enumerate(self.sources) if source.kind in ("category", "array"))

    @cached_property
    def score_columns(self) -> tuple[str, ...]:
        """DOUBLE, never NULL: what a rejected score holds is of no meaning."""
        return tuple(f"score_{n}" for n in range(len(self.models)))

    @cached_property
    def value_columns(self) -> dict[int, str]:
        """Column of strings by place in `sources`, for the sources whose identities are values."""
        return {place: f"values_{place}" for place, source in enumerate(self.sources) if source.kind != "flags"}

    @cached_property
    def word_columns(self) -> tuple[str, ...]:
        """BIGINT words of bit fields."""
        return tuple(f"word_{n}" for n in range(1 + max(item.word for item in self.fields.values())))

    @cached_property
    def fields(self) -> dict[tuple[str, int], Field]:
        """Every bit field by (what, number).

        ``label``, ``row_reason`` and ``annotation`` (out of its range); ``unreadable`` by text column; ``bucket`` of
        the text's length, from 1 on, 0 outside all; ``score_reason`` by model; ``slice`` by slice, the one of all rows
        left out; ``known`` by nullable source; ``member`` and ``unknown`` by identity. On a row on which its source is
        unknown, every ``unknown`` is set and says nothing.
        """
        flagged = [source for source in self.sources if source.kind == "flags"]
        wanted = [("label", 0, 1), ("row_reason", 0, len(ROW_REASONS).bit_length()), ("annotation", 0, 1)]
        wanted += [("unreadable", n, 1) for n in range(len(self.texts))]
        wanted += [("bucket", 0, max(2, self.n_buckets.bit_length()))] if self.n_buckets else []
        wanted += [("score_reason", n, len(SCORE_REASONS).bit_length()) for n in range(len(self.models))]
        wanted += [("slice", n, 1) for n in range(1, len(self.slices))]
        wanted += [("known", n, 1) for n in range(len(self.nullable_sources))]
        wanted += [("member", self.number[name], 1) for source in flagged for name in source.identities]
        wanted += [
            ("unknown", self.number[name], 1) for source in flagged if source.nullable for name in source.identities
        ]
        return _pack(wanted)

    @cached_property
    def tallies(self) -> tuple[tuple[str, int], ...]:
        """What is counted over all rows read, in order: (what, number of the model, reason code, column or pair)."""
        reasons = [("row_reason", code) for code in range(1, len(ROW_REASONS) + 1)]
        per_model = len(SCORE_REASONS)
        scores = [
            ("score_reason", model * per_model + code) for model in range(len(self.models)) for code in range(per_model)
        ]
        texts = [("unreadable", n) for n in range(len(self.texts))]
        pairs = [("pair", self.first_pair + n) for n in range(len(self.pairs))]
        return (("rows", 0), ("rejected", 0), ("annotation", 0), *reasons, *scores, *texts, *pairs)

    @cached_property
    def first_pair_tally(self) -> int:
        """Place in `tallies` of the first crossed pair; the pairs are the last of them, in their order."""
        return len(self.tallies) - len(self.pairs)

    def list_identities(self, counts: Sequence[int] | Ints) -> list[int]:
        """Return the numbers of ``(overall)``, of all identities and of crossed pairs with `min_rows` rows or more.

        `counts` are those of all rows read, in the order of `tallies`.
        """
        n_rows = np.asarray(counts[self.first_pair_tally :], np.int64)
        enough = np.flatnonzero(n_rows >= self.min_rows) + self.first_pair
        return [*range(self.first_pair), *enough.tolist()]

    def read_tally(self, counts: Sequence[int]) -> Tally:
        """Name the counts that an engine made, in the order of `tallies`."""
        by_name = dict(zip(self.tallies, map(int, counts), strict=True))
        per_model = len(SCORE_REASONS)
        rejects = {reason: by_name["row_reason", code] for code, reason in enumerate(ROW_REASONS, 1)}
        of_scores = {
            name: {reason: by_name["score_reason", n * per_model + code] for code, reason in enumerate(SCORE_REASONS)}
            for n, name in enumerate(self.models)
        }
        rejects |= {reason: sum(counts[reason] for counts in of_scores.values()) for reason in SCORE_REASONS}
        rejects[ANNOTATION_OUT_OF_RANGE] = by_name["annotation", 0]
        whole = sum(by_name["row_reason", code] for code in range(1, len(ROW_REASONS) + 1))
        eligible = {name: by_name["rows", 0] - whole - sum(counts.values()) for name, counts in of_scores.items()}
        of_scores = {name: _applied(counts) for name, counts in of_scores.items()}
        unreadable = _applied({name: by_name["unreadable", n] for n, name in enumerate(self.texts)})
        return Tally(by_name["rows", 0], by_name["rejected", 0], _applied(rejects), eligible, of_scores, unreadable)


@dataclass(frozen=True)
class Tally:
    """Rows read and rejected.

    Attributes
    ----------
    n_rows, n_rejected
        All rows read, and those that count for no model.
    rejects
        Rejects by reason, those of single models added up; reasons that never apply are left out.
    n_eligible
        Rows that count, by model.
    rejected_scores
        Why others have no score, by model: rejects by reason, again without those that never apply.
    unreadable
        Of rows that are not rejected for all models the annotations that are neither numbers nor booleans, by column.
    """

    n_rows: int
    n_rejected: int
    rejects: dict[str, int]
    n_eligible: dict[str, int] = field(default_factory=dict)
    rejected_scores: dict[str, dict[str, int]] = field(default_factory=dict, compare=False)
    unreadable: dict[str, int] = field(default_factory=dict)


def _applied(counts: dict[str, int]) -> dict[str, int]:
    return {reason: count for reason, count in counts.items() if count}


def _pack(wanted: list[tuple[str, int, int]]) -> dict[tuple[str, int], Field]:
    fields, word, shift = {}, 0, 0
    for what, number, width in wanted:
        if shift + width > WORD_BITS:
            word, shift = word + 1, 0
        fields[what, number] = Field(word, shift, width)
        shift += width
    return fields


def any_term(terms: Iterable[str]) -> str:
    """Return a regular expression for any of the terms, the longest first, for Python and Java alike.

    Python's way of escaping is Java's, too: a backslash before what is neither letter nor digit.
    """
    return f"(?:{'|'.join(re.escape(term) for term in sorted(set(terms), key=len, reverse=True))})"
