"""Comments in which some identity terms are mostly toxic: a corpus that makes classifiers biased (Mitigating).

The share of toxic comments depends on their length and on whether they mention an imbalanced term, with the percentages
of the slides. Some toxic comments read like harmless ones, and some harmless ones quote an insult. So a classifier
trained on the corpus learns the imbalanced terms themselves as a sign of toxicity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import gcd
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biasspark.arrays import Flags, Floats, Ints, Strings
from biasspark.ddl import arrow_schema
from biasspark.synthetic import chunks
from biasspark.synthetic.wording import IDENTITY_TERMS, read_packaged, with_article
from biasspark.text import show_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNSEEN = 0.2
"""Share of the toxic comments without a toxic word. Chosen."""

QUOTED = 0.06
"""Share of the harmless comments with a word of the insults. Chosen."""

LONGEST_TERM = 20
"""The most characters of a term for the longest remark to fit into the shortest comments, of at most 59."""

BUCKETS = (20, 60, 180, 540, 1620, 4860)
"""Edges of the length buckets, in characters: each bucket includes its lower edge (Mitigating)."""

BUCKET_SHARES = (0.2, 0.3, 0.3, 0.15, 0.05)
"""Share of the comments in each bucket. Chosen: with `TOXIC_RATES` a tenth of all comments is toxic."""

TOXIC_RATES = (0.17, 0.12, 0.07, 0.05, 0.05)
"""Share of the comments of each bucket that is toxic: the row ALL of the table in Mitigating."""

IMBALANCED_RATES = (0.88, 0.77, 0.51, 0.30, 0.19)
"""The same for the comments that mention an imbalanced term: the row for gay."""

IMBALANCED = {"gay": 0.005, "homosexual": 0.0015, "lesbian": 0.001, "queer": 0.001, "muslim": 0.001, "black": 0.002}
"""The terms that are imbalanced by default, and the share of the comments that mention each. Chosen."""

MENTIONED = 0.001
"""Share of the comments that mention a term that is not imbalanced. Chosen."""

COLUMNS = "id BIGINT, comment_text STRING, label BOOLEAN, term STRING"
SCHEMA = arrow_schema(COLUMNS)

_CORPUS, _HARMLESS, _CELLS = range(3)

_WORDING = read_packaged("imbalanced")
TOXIC_NOUNS: list[str] = _WORDING["toxic_nouns"]
TOXIC_ADJECTIVES: list[str] = _WORDING["toxic_adjectives"]
SENTENCES = tuple(sentence.format(topic=topic) for sentence in _WORDING["talk"] for topic in _WORDING["topics"])
STEPS = tuple(step for step in range(1, len(SENTENCES)) if gcd(step, len(SENTENCES)) == 1)
"""Steps that reach all sentences before one repeats."""

HARMLESS, STRONG, INSULTING = range(3)
REMARKS: tuple[tuple[list[str], list[str]], ...] = tuple(
    (_WORDING[manner]["without_term"], _WORDING[manner]["with_term"]) for manner in ("harmless", "strong", "insulting")
)
"""The remarks of each manner, without and with a term."""


@cache
def list_words() -> frozenset[str]:
    """Return the words of all remarks and fillers, in lower case."""
    remarks = [remark for manner in REMARKS for kind in manner for remark in kind]
    slots = {"term": "", "a_term": "a", "A_term": "An", "adjective": ""}
    texts = [remark.format(**slots, noun=noun) for remark in remarks for noun in TOXIC_NOUNS]
    return frozenset(chunks.WORD.findall(" ".join((*texts, *TOXIC_ADJECTIVES, *SENTENCES)).lower()))


def write_remark(manner: int, choice: int, term: str | None) -> str:
    """Choose a remark and its words by the digits of a random number."""
    remarks = REMARKS[manner][term is not None]
    choice, remark = divmod(choice, len(remarks))
    choice, noun = divmod(choice, len(TOXIC_NOUNS))
    adjective = TOXIC_ADJECTIVES[choice % len(TOXIC_ADJECTIVES)]
    a_term = "" if term is None else with_article(term)
    return remarks[remark].format(
        term=term, a_term=a_term, A_term=a_term[:1].upper() + a_term[1:], noun=TOXIC_NOUNS[noun], adjective=adjective
    )


def fill_up(remark: str, talk: int, length: int) -> str:
    """Add filler to a remark, cut after the last word that fits."""
    start, position = divmod(talk, len(SENTENCES))
    step = STEPS[start % len(STEPS)]
    text = remark
    while len(text) < length:
        text = f"{text} {SENTENCES[position]}"
        position = (position + step) % len(SENTENCES)
    if len(text) > max(length, len(remark)):
        text = text[: text.rfind(" ", 0, length + 1)]
    return text


@dataclass(frozen=True)
class ImbalancedRequest(chunks.RowsRequest):
    """Comments of which a tenth is toxic, but more than half of those that mention an imbalanced term.

    Attributes
    ----------
    imbalanced
        Some of the terms, each with the share of the comments that mention it, between 0 and 1. Their toxic rates are
        `IMBALANCED_RATES`.
    terms
        All terms. Each of the others is mentioned in a share `MENTIONED` of the comments, which are as often toxic as
        any comment.
    harmless
        Instead of the corpus, make comments like its harmless ones, with the same distribution of lengths and terms,
        from other random bits.

    Notes
    -----
    The columns are id BIGINT, comment_text STRING (20 to 4859 characters), label BOOLEAN (toxic or not), term STRING
    (the term that it mentions, or NULL).

    Let P_b be the toxic share of the comments in bucket b (`TOXIC_RATES`), s_t the share of all comments that mention
    t, and r_tb the toxic share of these. A toxic comment in the bucket mentions t with probability s_t·r_tb / P_b, a
    harmless one with s_t·(1 - r_tb) / (1 - P_b). So all rates are as given.

    A million rows take 7 s of processor time. A worker takes 220 MB including Python and its libraries.
    """

    columns: ClassVar[str] = COLUMNS

    imbalanced: tuple[tuple[str, float], ...] = tuple(IMBALANCED.items())
    terms: tuple[str, ...] = IDENTITY_TERMS
    harmless: bool = False

    def list_faults(self) -> list[str]:
        """Return a message for each argument that is out of range and each term that cannot be used."""
        faults = chunks.list_number_faults(self.rows, self.seed)
        faults += chunks.list_term_faults(self.terms, (), list_words())
        faults += [
            f"terms: {show_value(term)}. A term has {LONGEST_TERM} characters at the most, or it would not fit into "
            "the shortest comments. Shorten or remove it."
            for term in self.terms
            if len(term) > LONGEST_TERM
        ]
        faults += [
            f"imbalanced: {show_value(term)}. It is not one of the terms. Add it to them, or remove it."
            for term, _ in self.imbalanced
            if term not in self.terms
        ]
        faults += [
            f"imbalanced: {show_value(share)} for {show_value(term)}. A share lies between 0 and 1. Correct it."
            for term, share in self.imbalanced
            if not 0 <= share <= 1
        ]
        if tabulate(self).term[:, :, -1].max() > 1.0:
            faults.append(
                f"imbalanced: {show_value(sum(share for _, share in self.imbalanced))} in all. With this many "
                "mentions, more comments would be toxic than the corpus has. Lower the shares."
            )
        return faults

    def make_chunk(self, chunk: int) -> pa.RecordBatch:
        """Make the rows of one chunk."""
        ids = self.ids_of(chunk)
        bits = _draw(chunks.bit_stream(self.seed, _HARMLESS if self.harmless else _CORPUS, chunk), 7)[:, : len(ids)]
        chances = tabulate(self)
        units = chunks.to_units(bits[:4])
        # Rounding may leave the last sum below 1.
        bucket = np.minimum(np.searchsorted(chances.bucket, units[0], "right"), len(BUCKET_SHARES)) - 1
        toxic = units[1] < chances.toxic[bucket]
        sums = chances.term[bucket, toxic.astype(np.int64)]
        term = (sums <= units[2][:, None]).sum(axis=1) - 1
        terms = np.array([*self.terms, None], dtype=object)[term]
        low, high = np.array(BUCKETS[:-1])[bucket], np.array(BUCKETS[1:])[bucket] - 1
        return _assemble(ids, toxic, terms, (low, _stretch(units[3], low, high)), bits[4:])


class Chances(NamedTuple):
    """The cumulative probabilities of buckets, those of a toxic comment in each, and the cumulative ones of terms.

    Those of terms, shape (buckets, 2, terms + 1), are given the bucket and whether the comment is toxic; the remainder
    to 1 is the probability of no term.
    """

    bucket: Floats
    toxic: Floats
    term: Floats


def cell_comments(cells: DataFrame, seed: int) -> DataFrame:
    """Generate harmless comments with given terms and lengths, as a mitigation plan requests.

    The columns of cells are term STRING, length_low INT, length_high INT (in characters, inclusive) and n_rows BIGINT,
    the number of comments. No term may have two cells of one length. The columns returned are those of an
    `ImbalancedRequest`, with ids from 0 in each cell. The same seed gives the same rows with any partitioning on any
    machine. Lazy, without shuffle; each cell is made by one task, 20,000 rows at a time.
    """

    def make_cells(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for term, low, high, n_rows in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                for first in range(0, n_rows, chunks.CHUNK_ROWS):
                    yield cell_chunk(TermCell(term, low, high, n_rows), first, seed)

    return cells.select("term", "length_low", "length_high", "n_rows").mapInArrow(make_cells, COLUMNS)


@cache
def tabulate(request: ImbalancedRequest) -> Chances:
    """Return the conditional probabilities of a comment: first of its bucket, then of toxicity, then of the term."""
    overall = np.array(TOXIC_RATES)
    imbalanced = dict(request.imbalanced)
    shares = np.array([imbalanced.get(term, MENTIONED) for term in request.terms])
    skewed = np.array([term in imbalanced for term in request.terms])
    rates = np.where(skewed, np.array(IMBALANCED_RATES)[:, None], overall[:, None])
    given = np.stack([shares * (1.0 - rates) / (1.0 - overall[:, None]), shares * rates / overall[:, None]], axis=1)
    buckets = np.array(BUCKET_SHARES)
    if request.harmless:
        buckets = buckets * (1.0 - overall)
    return Chances(
        bucket=_cumulate(buckets / buckets.sum()),
        toxic=np.zeros(len(overall)) if request.harmless else overall,
        term=_cumulate(given),
    )


def _cumulate(probabilities: Floats) -> Floats:
    """Return cumulative sums over the last axis, from 0 on."""
    return np.insert(np.cumsum(probabilities, axis=-1), 0, 0.0, axis=-1)


class TermCell(NamedTuple):
    """A number of comments about a term, of `low` to `high` characters."""

    term: str
    low: int
    high: int
    n_rows: int


def cell_chunk(cell: TermCell, first: int, seed: int) -> pa.RecordBatch:
    """Make the comments of a cell from number `first` on, at most one chunk of them."""
    ids = np.arange(first, min(first + chunks.CHUNK_ROWS, cell.n_rows))
    name = int.from_bytes(cell.term.encode(), "big")
    bits = _draw(chunks.bit_stream(seed, _CELLS, name, cell.low, first), 4)[:, : len(ids)]
    low, high = (np.full(len(ids), end) for end in (cell.low, cell.high))
    terms = np.full(len(ids), cell.term, dtype=object)
    harmless = np.zeros(len(ids), dtype=np.bool_)
    return _assemble(ids, harmless, terms, (low, _stretch(chunks.to_units(bits[0]), low, high)), bits[1:])


def _draw(stream: np.random.Philox, n_numbers: int) -> npt.NDArray[np.uint64]:
    """Draw numbers for all rows of a full chunk, so that a shorter chunk is the beginning of a longer one."""
    bits: npt.NDArray[np.uint64] = stream.random_raw(n_numbers * chunks.CHUNK_ROWS)
    return bits.reshape(n_numbers, chunks.CHUNK_ROWS)


def _stretch(units: Floats, low: Ints, high: Ints) -> Ints:
    """Map units to integers from low to high, with more lower ones."""
    return low + np.floor(units * units * (high + 1 - low)).astype(np.int64)


def _assemble(
    ids: Ints, toxic: Flags, terms: Strings, lengths: tuple[Ints, Ints], bits: npt.NDArray[np.uint64]
) -> pa.RecordBatch:
    """Write the texts, given their least and their intended lengths, and return the columns.

    Random bits, shape (3, rows), choose the manner, the remark and the filler. A long remark is not cut.
    """
    chances = chunks.to_units(bits[0])
    manners = np.where(toxic, np.where(chances < UNSEEN, HARMLESS, INSULTING), np.where(chances < QUOTED, STRONG, 0))
    shortest, aims = (ends.tolist() for ends in lengths)
    remarks = map(write_remark, manners.tolist(), bits[1].tolist(), terms.tolist())
    filled = map(fill_up, remarks, bits[2].tolist(), aims)
    texts = [text.ljust(least, ".") for text, least in zip(filled, shortest, strict=True)]
    return pa.RecordBatch.from_pydict({"id": ids, "comment_text": texts, "label": toxic, "term": terms}, SCHEMA)
