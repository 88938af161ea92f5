"""Chunks of the synthetic comment corpus: only numpy and pyarrow, one Arrow batch per chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biasspark.arrays import Flags, Floats, Ints
from biasspark.ddl import arrow_schema
from biasspark.synthetic import civil_model as model
from biasspark.synthetic.chunks import CHUNK_ROWS, RowsRequest, bit_stream, list_number_faults, to_units
from biasspark.synthetic.civil_model import IDENTITIES, IDENTITY_NAMES, MODELS, SHORT_LENGTH, TOXIC_SHARE
from biasspark.synthetic.civil_text import OPENING_ROOM, mention_room, write_comments

Words = npt.NDArray[np.uint32]

FIRST_DAY = 16_707
"""2015-09-29, in days since 1970-01-01: when the comments of the real corpus begin."""

DAYS = 775
"""Days of the real corpus, to 2017-11-11. Later days have more comments."""

UNTOUCHED = 0.76
"""Share of the comments below the threshold whose target is 0: 70 % of all comments. Chosen."""

ANNOTATORS = np.array([4] * 11 + [5, 6, 6, 10, 10], dtype=np.int64)
"""Annotators of a comment, drawn from sixteen equally likely entries. Chosen: mostly four, as in the real corpus."""

COMMON_NOISE, OWN_NOISE = 0.8, 0.6
"""Weights of the noise that both models share and of the noise of each. The squares add up to 1."""


@dataclass(frozen=True)
class CivilRequest(RowsRequest):
    """Comments like those of the Civil Comments corpus, with the scores of two biased models.

    Frequencies, toxic rates and biases are those of Nuanced, Tables 5 and 6, where these print them.
    `civil.toml` gives the source of each number.

    Attributes
    ----------
    unannotated
        Share of the comments whose 24 annotations are all NULL. It changes nothing else: comments that mention an
        identity are always annotated, so all mentions, scores and targets stay the same.
    text
        Whether to add `comment_text`, of exactly `comment_length` characters.

    Notes
    -----
    The columns are id BIGINT, created_date DATE, target DOUBLE (fraction of annotators who find the comment toxic, 8 %
    at 0.5 or more), 24 identities DOUBLE (fraction of annotators who see it, or NULL), comment_length INT (20 to 1000),
    toxicity_1 DOUBLE (strongly biased, most in short comments), toxicity_6 DOUBLE (mitigated), both in (0, 1) with
    eight digits; comment_text STRING on request.

    A million rows take 4 s of processor time, half of it to write Parquet; with text 2 s more. A worker takes 150 MB
    with Python and its libraries, 200 MB with text.
    """

    unannotated: float = 0.75
    text: bool = False

    @property
    def columns(self) -> str:
        """Its columns, as Spark SQL declares them."""
        annotations = ", ".join(f"{name} DOUBLE" for name in IDENTITY_NAMES)
        scores = ", ".join(f"{name} DOUBLE" for name in MODELS)
        columns = f"id BIGINT, created_date DATE, target DOUBLE, {annotations}, comment_length INT, {scores}"
        return f"{columns}, comment_text STRING" if self.text else columns

    def list_faults(self) -> list[str]:
        """Return a message for each of rows, seed and unannotated that is out of range."""
        most = model.unmentioned_share()
        faults = list_number_faults(self.rows, self.seed)
        if not 0.0 <= self.unannotated <= most:
            faults.append(
                f"unannotated: {self.unannotated}. Comments that mention an identity are annotated, "
                f"the others may not be. Give a share from 0 to {most:.3f}."
            )
        return faults

    def make_chunk(self, chunk: int) -> pa.RecordBatch:
        """Make the rows of one chunk. Annotations are NULL in all identities or in none.

        0.3 to 0.5 microseconds per row, with text 2 to 3; some 60 MB of memory, with text 110.
        """
        stream = bit_stream(self.seed, chunk)
        severity = draw_units(stream)
        toxic = severity >= 1.0 - TOXIC_SHARE
        words = draw_words(stream, len(IDENTITIES) + 4)
        counts, length_word, day_word, known_word = words[len(IDENTITIES) :]
        target, reading = draw_targets(severity, toxic, ANNOTATORS[counts & 15])
        annotations = draw_annotations(words, toxic, ANNOTATORS[(counts >> np.uint32(4)) & 15])
        lengths = draw_lengths(length_word, toxic, annotations.mentions)
        noise = COMMON_NOISE * normal_noise(reading)
        cell = toxic + 2 * (lengths < SHORT_LENGTH) + 4 * annotations.leading
        centres = model.score_centres()
        scores = [
            squash(of_model.take(cell) + noise + OWN_NOISE * normal_noise(draw_units(stream))) for of_model in centres
        ]
        # All that mention an identity have annotations, and the requested share of all rows.
        blank = round(self.unannotated / model.unmentioned_share() * 2**32)
        known = (annotations.leading > 0) | (known_word >= blank)
        first = chunk * CHUNK_ROWS
        columns = [
            pa.array(np.arange(first, first + CHUNK_ROWS)),
            pa.array(draw_days(day_word), pa.int32()).cast(pa.date32()),
            pa.array(target),
            *_nullable_columns(annotations.fractions, known),
            pa.array(lengths),
            *map(pa.array, scores),
        ]
        if self.text:
            columns.append(write_comments(draw_words(stream, 2), toxic, annotations.mentions, lengths))
        whole = pa.record_batch(columns, schema=arrow_schema(self.columns))
        return whole.slice(0, min(CHUNK_ROWS, self.rows - first))


def draw_units(stream: np.random.Philox) -> Floats:
    """Return a number in [0, 1) with 53 bits for each row of a chunk."""
    return to_units(stream.random_raw(CHUNK_ROWS))


def draw_words(stream: np.random.Philox, rows: int) -> Words:
    """Return numbers of 32 bits, shape (rows, CHUNK_ROWS); `rows` is even."""
    raw = stream.random_raw(rows * CHUNK_ROWS // 2).astype("<u8", copy=False)
    return raw.view("<u4").reshape(rows, CHUNK_ROWS)


class Annotations(NamedTuple):
    """Annotators' fractions of every identity, and where half of them or more agree."""

    fractions: Floats
    mentions: tuple[Ints, ...]
    leading: npt.NDArray[np.intp]


def annotator_share(unit: Floats, least: Ints, most: Ints, annotators: Ints) -> Floats:
    """Share k / annotators with k from least to most, all equally likely where `unit` is uniform in [0, 1)."""
    return (least + np.floor(unit * (most - least + 1))) / annotators


def draw_targets(unit: Floats, toxic: Flags, annotators: Ints) -> tuple[Floats, Floats]:
    """Return the fraction of annotators who find a comment toxic, and how toxic it reads on its side of the threshold.

    Of a uniform number in [0, 1) the upper `TOXIC_SHARE` is toxic. The reading is uniform in [0, 1) on either side; the
    target rises with it.
    """
    clean = 1.0 - TOXIC_SHARE
    reading = np.where(toxic, (unit - clean) / TOXIC_SHARE, unit / clean)
    half = (annotators + 1) // 2
    doubted = annotator_share((reading - UNTOUCHED) / (1.0 - UNTOUCHED), np.ones_like(half), half - 1, annotators)
    agreed = annotator_share(reading * reading, half, annotators, annotators)
    return np.where(toxic, agreed, np.where(reading < UNTOUCHED, 0.0, doubted)), reading


def draw_annotations(words: Words, toxic: Flags, annotators: Ints) -> Annotations:
    """Draw mentions of all identities, overlapping as `civil_model` says, and hints of mentions."""
    fractions = np.zeros((len(IDENTITIES), CHUNK_ROWS))
    mentions: list[Ints] = [np.empty(0, dtype=np.int64)] * len(IDENTITIES)
    for position in model.companions_first():
        word, stratum = words[position], toxic.astype(np.intp)
        companion = IDENTITIES[position].shares_with
        if companion is not None:
            stratum[mentions[IDENTITY_NAMES.index(companion)]] += 2
        limit = model.mention_limits()[position].take(stratum)
        seen = np.flatnonzero(word < limit)
        half = (annotators[seen] + 1) // 2
        fractions[position, seen] = annotator_share(word[seen] / limit[seen], half, annotators[seen], annotators[seen])
        mentions[position] = seen
        _add_hints(fractions[position], word, model.hint_limits()[position], annotators)
    leading = np.zeros(CHUNK_ROWS, dtype=np.intp)
    for position in model.strength_order():
        leading[mentions[position]] = 1 + position
    return Annotations(fractions, tuple(mentions), leading)


def _add_hints(fractions: Floats, word: Words, least: np.uint32, annotators: Ints) -> None:
    """Fill in, in place, the comments in which fewer than half of the annotators see the identity."""
    hinted = np.flatnonzero(word >= least)
    unit = (word[hinted] - least) / (2**32 - int(least))
    most = (annotators[hinted] + 1) // 2 - 1
    fractions[hinted] = annotator_share(unit, np.ones_like(most), most, annotators[hinted])


def draw_lengths(word: npt.NDArray[np.uint32], toxic: Flags, mentions: Sequence[Ints]) -> npt.NDArray[np.int32]:
    """Return the characters of each comment, with room for the words that its text must hold."""
    drawn = model.length_quantiles()[toxic.astype(np.intp), word >> np.uint32(20)]
    room = np.where(toxic, OPENING_ROOM, 0).astype(np.int32)
    for identity, seen in zip(IDENTITIES, mentions, strict=True):
        room[seen] += mention_room(identity)
    lengths: npt.NDArray[np.int32] = np.maximum(drawn, room)
    return lengths


def draw_days(word: npt.NDArray[np.uint32]) -> npt.NDArray[np.int32]:
    """Return days since 1970-01-01, with more and more comments per day."""
    elapsed: Floats = np.floor(DAYS * np.sqrt(word / 2.0**32))
    return (FIRST_DAY + elapsed).astype(np.int32)


def normal_noise(unit: Floats) -> Floats:
    """Return standard normal numbers, by linear interpolation in the table of quantiles."""
    table = model.normal_quantiles()
    position = unit * model.STEPS
    cell = position.astype(np.intp)
    lower = table.take(cell)
    return lower + (position - cell) * (table.take(cell + 1) - lower)


def squash(latent: Floats) -> Floats:
    """Return a score in (0, 1) with eight digits: 1/2 + z / (2 sqrt(1 + z^2)), which needs no exponential."""
    return np.rint((0.5 + 0.5 * latent / np.sqrt(1.0 + latent * latent)) * 1e8) / 1e8


def _nullable_columns(fractions: Floats, known: Flags) -> list[pa.Array]:
    """Return one Arrow column per identity. All share one validity bitmap."""
    if known.all():
        return [pa.array(column) for column in fractions]
    validity = pa.py_buffer(np.packbits(known, bitorder="little"))
    missing = len(known) - int(np.count_nonzero(known))
    return [
        pa.Array.from_buffers(pa.float64(), len(known), [validity, pa.py_buffer(column)], missing)
        for column in fractions
    ]
