"""The layout of the bits and columns of EXAMPLES, shared by the corpus and the ranking. No Spark.

A row of EXAMPLES is narrow, because transferring rows to Python is most of the cost of ranking them: one score per
model, a few BIGINT words that pack label, reasons, slices and memberships, and one column of strings for each source
whose identities are data values (a categorical column, an array, the terms found in a text).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import combinations, product
from typing import Literal

import numpy as np

from biasspark.arrays import Ints
from biasspark.columns import ANNOTATION_OUT_OF_RANGE, OVERALL, PAIR, ROW_REASONS, SCORE_REASONS

WORD_BITS = 63  # the sign bit stays clear
_N_SCORE_REASONS = len(SCORE_REASONS)

WORD_LETTER, NO_WORD_LETTER = r"[\p{L}\p{N}_]", r"[^\p{L}\p{N}_]"
"""Python's `\\w` in Java syntax; Java's own, even with (?U), includes marks and excludes superscripts."""

SourceKind = Literal["flags", "category", "array", "terms"]
COLUMNS, PREDICATES, TERMS = "columns", "predicates", "terms"
"""Names of sources that are no column."""


@dataclass(frozen=True)
class Field:
    """A bit field of one word: ``(words[word] >> shift) & (2 ** width - 1)``."""

    word: int
    shift: int
    width: int = 1


@dataclass(frozen=True)
class Source:
    """Identities that are known or unknown together.

    `kind` is how membership is stored: as bits, the value of a category, the values of an array, or terms found in a
    text. If a source is not `nullable`, every row is in the known population of its identities.
    """

    name: str
    kind: SourceKind
    nullable: bool
    identities: tuple[str, ...]
    values: tuple[str, ...] = ()
    """Each identity's value, or the regular expression for any of its terms; () for flags."""


@dataclass(frozen=True)
class Encoding:
    """The dictionary encoding of EXAMPLES: names of models, slices and identities by number, and the bit positions.

    Identities are numbered: 0 is ``(overall)``, then the configured ones in their order, then the crossed pairs. The
    first slice has all rows.
    """

    models: tuple[str, ...]
    slices: tuple[str, ...]
    sources: tuple[Source, ...]
    crossed: bool = False
    """Whether pairs of identities are ranked."""
    min_rows: int = 0
    """The minimum number of rows for a pair to be listed."""
    n_length_bins: int | None = None
    """Bins of text lengths in which labels are counted; None if labels are not counted."""
    text_columns: tuple[str, ...] = ()
    """Text columns of annotations, in which unreadable values are counted."""
    fraction_columns: tuple[str, ...] = ()
    """Columns of annotations or of the label in which values outside of 0 to 1 are counted."""
    number_columns: Mapping[str, float] = field(default_factory=dict)
    """Columns of annotations that Python reads as numbers, and the lowest value of a member. The embedded engine would
    pack their bits several times slower than numpy."""
    keeps_sketches: bool = False
    """Whether the ranking returns its sorted blocks, to be merged with those of other runs."""

    def __getstate__(self) -> dict[str, object]:
        """Pickle only the fields: with cached properties, Spark's cache would not recognize an equal plan."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @cached_property
    def singles(self) -> tuple[str, ...]:
        """Names of the configured identities, crossed pairs left out."""
        return tuple(name for source in self.sources for name in source.identities)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Numbers of the two sides of every crossed pair."""
        return tuple(combinations(range(1, self.first_pair), 2)) if self.crossed else ()

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
        """Index in `sources` of every configured identity; entry 0, of ``(overall)``, is -1."""
        return (-1, *(index for index, source in enumerate(self.sources) for _ in source.identities))

    @cached_property
    def nullable_sources(self) -> tuple[int, ...]:
        """Indices of the sources that can be unknown on a row; bit k of a row's pattern is set if the k-th is known."""
        return tuple(index for index, source in enumerate(self.sources) if source.nullable)

    @cached_property
    def open_sources(self) -> tuple[int, ...]:
        """Indices of the sources whose identities are data values, so other runs may have more of them."""
        return tuple(index for index, source in enumerate(self.sources) if source.kind in ("category", "array"))

    @cached_property
    def known_masks(self) -> tuple[int, ...]:
        """For every identity, as bits, the nullable sources of which one is known on the rows of its known population.

        0 stands for all rows. A crossed pair is out if one side is known to be out, so its known population is the rows
        on which either source is known; if only one is known and that side is not out, the row is an unknown entry.
        """
        bit = {index: 1 << n for n, index in enumerate(self.nullable_sources)}
        masks = [bit.get(index, 0) for index in self.source_of]
        pairs = (masks[a] | masks[b] if masks[a] and masks[b] else 0 for a, b in self.pairs)
        return (*masks, *pairs)

    @cached_property
    def score_columns(self) -> tuple[str, ...]:
        """Score columns: DOUBLE, never NULL; the value of a rejected score is arbitrary."""
        return tuple(f"score_{n}" for n in range(len(self.models)))

    @cached_property
    def value_columns(self) -> dict[int, str]:
        """Column of strings by index in `sources`, for the sources whose identities are values."""
        return {index: f"values_{index}" for index, source in enumerate(self.sources) if source.kind != "flags"}

    @cached_property
    def word_columns(self) -> tuple[str, ...]:
        """BIGINT words of bit fields."""
        return tuple(f"word_{n}" for n in range(1 + max(item.word for item in self.fields.values())))

    @cached_property
    def numbers(self) -> dict[int, tuple[str, float]]:
        """The DOUBLE column and the lowest value of a member, by identity that Python reads from a number."""
        read = {self.number[name]: least for name, least in self.number_columns.items()}
        return {number: (f"number_{number}", least) for number, least in read.items()}

    @cached_property
    def packed_columns(self) -> tuple[str, ...]:
        """The words that Python receives, without the bits of `numbers`."""
        return tuple(f"packed_{n}" for n in range(len(self.word_columns))) if self.numbers else self.word_columns

    @cached_property
    def packed_fields(self) -> dict[tuple[str, int], Field]:
        """The bit fields of `packed_columns`."""
        number_keys = set(product(("member", "unknown", "off_scale"), self.numbers))
        return {key: item for key, item in self.fields.items() if key not in number_keys}

    @cached_property
    def read_columns(self) -> tuple[str, ...]:
        """All columns that Python reads."""
        numbers = (name for name, _ in self.numbers.values())
        return (*self.packed_columns, *numbers, *self.score_columns, *self.value_columns.values())

    @cached_property
    def fraction_numbers(self) -> dict[str, int]:
        """By column of `fraction_columns`, the number of its identity, 0 for the label."""
        flags = (source for source in self.sources if (source.name, source.kind) == (COLUMNS, "flags"))
        annotated = {name for source in flags for name in source.identities}
        return {name: self.number[name] if name in annotated else 0 for name in self.fraction_columns}

    @cached_property
    def fields(self) -> dict[tuple[str, int], Field]:
        """Every bit field by (what, number).

        ``label``, ``row_reason`` and ``annotation`` (out of its range); ``unreadable`` by text column; ``length_bin``
        of the text, from 1 on, 0 outside all; ``score_reason`` by model; ``slice`` by slice, the one of all rows left
        out; ``known`` by nullable source of values. By identity, next to each other: ``member``, ``unknown`` and
        ``off_scale``; the ``off_scale`` of the label has number 0. A source of flags is unknown on rows on which all
        its ``unknown`` bits are set.
        """
        off_scale = set(self.fraction_numbers.values())
        widths = {("label", 0): 1, ("row_reason", 0): len(ROW_REASONS).bit_length(), ("annotation", 0): 1}
        widths |= {("unreadable", n): 1 for n in range(len(self.text_columns))}
        widths |= {("off_scale", 0): 1} if 0 in off_scale else {}
        if self.n_length_bins:
            widths["length_bin", 0] = max(2, self.n_length_bins.bit_length())
        widths |= {("score_reason", n): _N_SCORE_REASONS.bit_length() for n in range(len(self.models))}
        widths |= {("slice", n): 1 for n in range(1, len(self.slices))}
        widths |= {("known", n): 1 for n, index in enumerate(self.nullable_sources) if index in self.value_columns}
        groups: list[dict[tuple[str, int], int]] = [{key: width} for key, width in widths.items()]
        for source in self.sources:
            for number in (self.number[name] for name in source.identities if source.kind == "flags"):
                bits = {"member": True, "unknown": source.nullable, "off_scale": number in off_scale}
                groups.append({(what, number): 1 for what, is_needed in bits.items() if is_needed})
        packed, word, shift = {}, 0, 0
        for group in groups:
            if shift + sum(group.values()) > WORD_BITS:
                word, shift = word + 1, 0
            for key, width in group.items():
                packed[key] = Field(word, shift, width)
                shift += width
        return packed

    def masks(self, *names: str) -> dict[int, int]:
        """Return, by word of `packed_columns`, the bits of all fields with these names."""
        bits: dict[int, int] = defaultdict(int)
        for (name, _), item in self.packed_fields.items():
            if name in names:
                bits[item.word] |= ((1 << item.width) - 1) << item.shift
        return dict(bits)

    @cached_property
    def count_keys(self) -> tuple[tuple[str, int], ...]:
        """Keys of the counts over all rows read, in order: what, and the number of the model, reason, column or pair.

        ``rejected`` rows count for no model, ``label`` ones are positive, scored or not, and ``scored_label`` ones are
        positive and count for a model.
        """
        return (
            *(("rows", 0), ("rejected", 0), ("annotation", 0), ("label", 0)),
            *(("scored_label", number) for number in range(len(self.models))),
            *(("row_reason", code) for code in range(1, len(ROW_REASONS) + 1)),
            *(("score_reason", number) for number in range(len(self.models) * _N_SCORE_REASONS)),
            *(("unreadable", n) for n in range(len(self.text_columns))),
            *(("off_scale", number) for number in self.fraction_numbers.values()),
            *(("pair", self.first_pair + n) for n in range(len(self.pairs))),
        )

    @cached_property
    def first_pair_index(self) -> int:
        """Index in `count_keys` of the first crossed pair; the pairs are the last, in their order."""
        return len(self.count_keys) - len(self.pairs)

    def list_identities(self, counts: Sequence[int] | Ints) -> list[int]:
        """Return the numbers of ``(overall)``, of all identities and of crossed pairs with `min_rows` rows or more.

        `counts` are over all rows read, in the order of `count_keys`.
        """
        n_rows = np.asarray(counts[self.first_pair_index :], np.int64)
        enough = np.flatnonzero(n_rows >= self.min_rows) + self.first_pair
        return [*range(self.first_pair), *enough.tolist()]

    def read_row_counts(self, counts: Sequence[int]) -> RowCounts:
        """Return the counts of all rows read, given in the order of `count_keys`, by name."""
        by_key = dict(zip(self.count_keys, map(int, counts), strict=True))
        by_reason = {reason: by_key["row_reason", code] for code, reason in enumerate(ROW_REASONS, 1)}
        by_model: dict[str, dict[str, int]] = {name: {} for name in self.models}
        for number, (name, reason) in enumerate(product(self.models, SCORE_REASONS)):
            by_model[name][reason] = by_key["score_reason", number]
        rejects = by_reason | {reason: sum(counts[reason] for counts in by_model.values()) for reason in SCORE_REASONS}
        rejects[ANNOTATION_OUT_OF_RANGE] = by_key["annotation", 0]
        n_labeled = by_key["rows", 0] - sum(by_reason.values())
        return RowCounts(
            n_rows=by_key["rows", 0],
            n_rejected=by_key["rejected", 0],
            rejects=_nonzero(rejects),
            n_eligible={name: n_labeled - sum(counts.values()) for name, counts in by_model.items()},
            rejected_scores={name: _nonzero(counts) for name, counts in by_model.items()},
            unreadable=_nonzero({name: by_key["unreadable", n] for n, name in enumerate(self.text_columns)}),
            off_scale=_nonzero({name: by_key["off_scale", n] for name, n in self.fraction_numbers.items()}),
            n_positive=by_key["label", 0],
            eligible_positives={name: by_key["scored_label", n] for n, name in enumerate(self.models)},
        )


@dataclass(frozen=True)
class RowCounts:
    """Rows read and rejected. Reasons that never apply are left out.

    `n_rejected` rows count for no model, and `n_eligible` count, by model. `rejects` are summed over models,
    `rejected_scores` are by model. On the rows that are not rejected for all models, `unreadable` has the annotations
    that are neither numbers nor booleans, and `off_scale` the values of fractions outside of 0 to 1, by column;
    `n_positive` of these rows are positive, and `eligible_positives` count as well, by model.
    """

    n_rows: int
    n_rejected: int
    rejects: dict[str, int]
    n_eligible: dict[str, int] = field(default_factory=dict)
    rejected_scores: dict[str, dict[str, int]] = field(default_factory=dict, compare=False)
    unreadable: dict[str, int] = field(default_factory=dict)
    off_scale: dict[str, int] = field(default_factory=dict)
    n_positive: int = field(default=0, compare=False)
    eligible_positives: dict[str, int] = field(default_factory=dict, compare=False)

    @property
    def n_labeled(self) -> int:
        """Rows that are not rejected for all models: those that only their scores can reject."""
        return self.n_rows - sum(self.rejects.get(reason, 0) for reason in ROW_REASONS)

    def count_rarer_label(self, model: str) -> int:
        """Return the number of rows of the rarer label that count for a model."""
        n_positive = self.eligible_positives.get(model, 0)
        return min(n_positive, self.n_eligible.get(model, 0) - n_positive)


def _nonzero(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


_EQUAL_LETTERS = {letter: f"[{pair}]" for pair in ("ßẞ", "ΐ\u1fd3", "ΰ\u1fe3", "ﬅﬆ") for letter in pair}
"""Letters that are equal in Python and Rust if case is ignored, but not in Java."""


def any_term(terms: Iterable[str]) -> str:
    """Return a regular expression for any of the terms, the longest first, for Python, and for Java by ``(?iu)``.

    Python's escapes are valid in Java, too: a backslash before characters other than letters and digits.
    """
    longest_first = sorted(set(terms), key=len, reverse=True)
    written = ("".join(_EQUAL_LETTERS.get(char, re.escape(char)) for char in term) for term in longest_first)
    return f"(?:{'|'.join(written)})"
