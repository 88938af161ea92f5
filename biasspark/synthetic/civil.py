"""The synthetic comment corpus: the published statistics that it follows, its texts, and its chunks of rows.

`civil.toml` holds the frequency, toxicity and bias of each identity, with the source of each number. From these follow
tables of probabilities, comment lengths and score shifts, computed once per process.

Rows are made by comparing uniform numbers with these tables and by interpolating in them. The only arithmetic on rows
is `+ - * /` and the square root, which IEEE 754 rounds alike everywhere, so a seed gives the same corpus on every
machine and with every version of numpy. Values that need a logarithm are tabulated and rounded.

Strata: everything drawn for a comment depends on whether it is toxic (0 or 1), so marginal counts and toxic rates are
as given, whatever the overlaps.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biasspark.arrays import Flags, Floats, Ints
from biasspark.ddl import arrow_schema
from biasspark.synthetic.chunks import CHUNK_ROWS, RowsRequest, bit_stream, list_number_faults, to_units
from biasspark.synthetic.wording import read_packaged

CORPUS_ROWS = 1_804_875
"""Comments in the real corpus (Nuanced, Table 5)."""

TOXIC_SHARE = 0.08
"""Share of comments with a target of at least 0.5 (Nuanced, Table 5)."""

SHORT_LENGTH = 100
"""Comments with fewer characters are *short* (Nuanced, section 4.5)."""

MODELS = ("toxicity_1", "toxicity_6")

Words = npt.NDArray[np.uint32]
_NORMAL = NormalDist()


class Identity(NamedTuple):
    """One annotated identity: its column, and words for it in a generated text.

    `mentions` is the number of comments among `CORPUS_ROWS` in which at least half of the annotators see it;
    `percent_toxic` of these are toxic. `shares_with` is the identity with which it is most often mentioned, `shared`
    the share of its comments that mention both.
    """

    name: str
    mentions: int
    percent_toxic: float
    terms: Sequence[str]
    shares_with: str | None = None
    shared: float = 0.0


_STATISTICS = read_packaged("civil")

IDENTITIES = tuple(
    Identity(name, **counts, **_STATISTICS["overlaps"].get(name, {}))
    for name, counts in _STATISTICS["identities"].items()
)
"""The 24 identities of Civil Comments, in the order of their columns."""

IDENTITY_NAMES = tuple(identity.name for identity in IDENTITIES)

TABLE_6: dict[str, dict[str, list[float]]] = _STATISTICS["table_6"]
"""Nuanced, Table 6: average equality gaps in ``short`` comments, and in ``every`` comment: TOXICITY@1 negative and
positive, then TOXICITY@6."""

STRATA = (1.0 - TOXIC_SHARE, TOXIC_SHARE)
STEPS = 4096
"""Cells of the quantile tables: twelve bits of a uniform number select one."""

SHORTEST, LONGEST = 20, 1000
MEDIAN_LENGTH = (205.0, 170.0)
"""Median number of characters of a comment, not toxic and toxic. Chosen: toxic comments are a little shorter."""

LENGTH_SPREAD = 0.88
"""Standard deviation of the logarithm of the length. Chosen: a fifth of the comments is short."""

SEPARATION = (2.5, 2.6)
"""Distance of toxic from other comments in standard deviations, per model: AUCs of Phi(d / sqrt 2) = 0.961 and 0.967
where no identity is mentioned. Chosen to fit the AUCs of `TABLE_6`, with the later model a little better."""

CENTER = -1.4
"""The mean score of comments that are not toxic, before squashing: a median score of 0.09."""


def mention_probability(identity: Identity, stratum: int) -> float:
    """Return P(mentioned | stratum), from the count and the toxic rate of the identity by Bayes' rule."""
    within = identity.percent_toxic / 100.0 if stratum else 1.0 - identity.percent_toxic / 100.0
    return identity.mentions / CORPUS_ROWS * within / STRATA[stratum]


def conditional_probability(identity: Identity, stratum: int, companion: bool) -> float:
    """Return P(mentioned | stratum, whether its companion is mentioned).

    The companion is the identity with which it shares comments. Both cases average to `mention_probability`, so an
    overlap changes no marginal. Without a companion both are that probability.
    """
    alone = mention_probability(identity, stratum)
    if identity.shares_with is None:
        return alone
    other = mention_probability(IDENTITIES[IDENTITY_NAMES.index(identity.shares_with)], stratum)
    return identity.shared * alone / other if companion else (1.0 - identity.shared) * alone / (1.0 - other)


UNMENTIONED_SHARE = sum(
    STRATA[stratum] * math.prod(1.0 - conditional_probability(each, stratum, False) for each in IDENTITIES)
    for stratum in (0, 1)
)
"""P(a comment mentions no identity): the largest share of comments that may lack annotations."""


def _depth(position: int) -> int:
    companion = IDENTITIES[position].shares_with
    return 0 if companion is None else 1 + _depth(IDENTITY_NAMES.index(companion))


COMPANIONS_FIRST = tuple(sorted(range(len(IDENTITIES)), key=_depth))
"""Positions in `IDENTITIES`, each after that of its companion."""

_CASES = [(toxic, companion) for companion in (False, True) for toxic in (0, 1)]
MENTION_LIMITS = np.array(
    [[round(conditional_probability(each, *case) * 2**32) for case in _CASES] for each in IDENTITIES], dtype=np.uint32
)
"""Bounds for 32-bit uniform numbers, shape (identities, 4): mentioned if below [toxic + 2 * companion]."""

HINT_LIMITS = np.array([2**32 - round(each.mentions / CORPUS_ROWS * 2**32) for each in IDENTITIES], dtype=np.uint32)
"""A number at or above the bound of an identity is a hint: some annotators see it, but fewer than half. Chosen: as many
hints as mentions."""

NORMAL_QUANTILES = np.array([-4.0, *(round(_NORMAL.inv_cdf(step / STEPS), 9) for step in range(1, STEPS)), 4.0])
"""Standard normal quantiles at k / STEPS, with both ends set to -4 and 4."""

_MIDDLES = [_NORMAL.inv_cdf((step + 0.5) / STEPS) for step in range(STEPS)]
LENGTH_QUANTILES = np.array(
    [[round(median * math.exp(LENGTH_SPREAD * z)) for z in _MIDDLES] for median in MEDIAN_LENGTH], dtype=np.int32
).clip(SHORTEST, LONGEST)
"""Characters of a comment, shape (2, STEPS): log-normal in each stratum, clipped to `SHORTEST` and `LONGEST`."""

GAPS = tuple(TABLE_6[_STATISTICS["biased_like"].get(name, name)] for name in IDENTITY_NAMES)
"""The row of `TABLE_6` that sets the score shifts of each of the `IDENTITIES`."""

STRENGTH_ORDER = tuple(sorted(range(len(IDENTITIES)), key=lambda position: GAPS[position]["short"][0]))
"""Positions in `IDENTITIES`, the least biased first (Negative AEG of the first model in short comments)."""


def gap_shift(gap: float) -> float:
    """Return the shift that gives a gap between two normal distributions of variance 1: Phi(d / sqrt 2) - 1/2."""
    return math.sqrt(2.0) * _NORMAL.inv_cdf(0.5 + gap)


@cache
def score_centers() -> Floats:
    """Return the means of the unsquashed scores, shape (models, 4 * (1 + identities)).

    The index is toxic + 2 * short + 4 * leading. `leading` is 0 for a comment without identity, else 1 + the position
    of its most biased identity, which alone shifts the score, by the gaps of `TABLE_6`. The gap of long comments is
    such that short and long ones together have that of all.
    """
    centers = np.full((len(MODELS), 1 + len(IDENTITIES), 2, 2), CENTER)
    centers[..., 1] += np.array(SEPARATION)[:, None, None]
    for toxic, median in enumerate(MEDIAN_LENGTH):
        share = _NORMAL.cdf((math.log(SHORT_LENGTH) - math.log(median)) / LENGTH_SPREAD)
        for (position, gaps), model in product(enumerate(GAPS), range(len(MODELS))):
            short, every = gaps["short"][2 * model + toxic], gaps["every"][2 * model + toxic]
            centers[model, 1 + position, 0, toxic] += gap_shift((every - share * short) / (1.0 - share))
            centers[model, 1 + position, 1, toxic] += gap_shift(short)
    return np.round(centers.reshape(len(MODELS), -1), 9)


# ---- texts: an insult if toxic, a term for each mentioned identity, and harmless filler up to the length

OPENINGS: list[str] = _STATISTICS["texts"]["openings"]
"""Mild insults, the only sign of toxicity in a text."""

JOINT = " and "

FILLER = "".join(f"{sentence} " for sentence in _STATISTICS["texts"]["filler"])
"""Filler without insults and without any term for an identity. It is ASCII, so characters are bytes."""

_ENDLESS = FILLER * 3
_STARTS = tuple(end + 1 for end, letter in enumerate(FILLER) if letter == " " and FILLER[end - 1] == ".")[:-1]


def write_comments(words: Words, toxic: Flags, mentions: Sequence[Ints], lengths: npt.NDArray[np.int32]) -> pa.Array:
    """Write texts of exactly the given lengths, given the rows that mention each of the `IDENTITIES`.

    Uniform 32-bit numbers, shape (2, rows), choose the terms and the start of the filler.
    """
    terms: defaultdict[int, list[str]] = defaultdict(list)
    for identity, seen in zip(IDENTITIES, mentions, strict=True):
        for row, choice in zip(seen.tolist(), (words[0, seen] % len(identity.terms)).tolist(), strict=True):
            terms[row].append(identity.terms[choice])
    starts = (words[1] % np.uint32(len(_STARTS))).tolist()
    openings = np.where(toxic, 1 + words[1] // np.uint32(2**30), 0).tolist()
    texts = []
    for row, length in enumerate(lengths.tolist()):
        lead = ("", *OPENINGS)[openings[row]] + JOINT.join(terms[row])
        start = _STARTS[starts[row]]
        texts.append(f"{lead} {_ENDLESS[start : start + length]}".lstrip()[: length - 1] + ".")
    return pa.array(texts, pa.string())


# ---- chunks of rows: only numpy and pyarrow, one Arrow batch per chunk

FIRST_DAY = 16_707
"""2015-09-29, in days since 1970-01-01: when the comments of the real corpus begin."""

DAYS = 775
"""Days of the real corpus, to 2017-11-11. Later days have more comments."""

UNTOUCHED = 0.76
"""Share of the comments below the threshold whose target is 0: 70% of all comments. Chosen."""

ANNOTATORS = np.array([4] * 11 + [5, 6, 6, 10, 10], dtype=np.int64)
"""Numbers of annotators of a comment, sixteen equally likely entries. Chosen: mostly four, as in the real corpus."""

COMMON_NOISE, OWN_NOISE = 0.8, 0.6
"""Weights of the noise that both models share and of the noise of each. Their squares add up to 1."""


@dataclass(frozen=True)
class CivilRequest(RowsRequest):
    """Comments like those of the Civil Comments corpus, with the scores of two biased models.

    Frequencies, toxic rates and biases are those of Nuanced, Tables 5 and 6, if given there. `civil.toml` has the
    source of each number.

    Attributes
    ----------
    unannotated
        Share of the comments whose 24 annotations are all NULL. It changes nothing else: comments that mention an
        identity are always annotated, so all mentions, scores and targets stay the same.
    text
        Whether to add `comment_text` with exactly `comment_length` characters.

    Notes
    -----
    The columns are id BIGINT, created_date DATE, target DOUBLE (fraction of annotators who find the comment toxic, 8%
    at 0.5 or more), 24 identities DOUBLE (fraction of annotators who see it, or NULL), comment_length INT (20 to 1000),
    toxicity_1 DOUBLE (strongly biased, most in short comments), toxicity_6 DOUBLE (mitigated), both in (0, 1) with
    eight digits; comment_text STRING on request.

    A million rows take 4 s of processor time, half of it to write Parquet, and 2 s more with text. A worker takes
    150 MB including Python and its libraries, or 200 MB with text.
    """

    unannotated: float = 0.75
    text: bool = False

    @property
    def columns(self) -> str:
        """The columns as DDL of Spark SQL."""
        annotations = ", ".join(f"{name} DOUBLE" for name in IDENTITY_NAMES)
        scores = ", ".join(f"{name} DOUBLE" for name in MODELS)
        columns = f"id BIGINT, created_date DATE, target DOUBLE, {annotations}, comment_length INT, {scores}"
        return f"{columns}, comment_text STRING" if self.text else columns

    def list_faults(self) -> list[str]:
        """Return a message for each of rows, seed and unannotated that is out of range."""
        faults = list_number_faults(self.rows, self.seed)
        if not 0.0 <= self.unannotated <= UNMENTIONED_SHARE:
            faults.append(
                f"unannotated: {self.unannotated}. Comments that mention an identity are annotated, "
                f"the others may not be. Give a share from 0 to {UNMENTIONED_SHARE:.3f}."
            )
        return faults

    def make_chunk(self, chunk: int) -> pa.RecordBatch:
        """Make the rows of one chunk. Annotations are NULL in all identities or in none.

        Takes 0.3 to 0.5 microseconds per row, 2 to 3 with text, and about 60 MB of memory, 110 with text.
        """
        stream = bit_stream(self.seed, chunk)
        severity = to_units(stream.random_raw(CHUNK_ROWS))
        toxic = severity >= 1.0 - TOXIC_SHARE
        words = draw_words(stream, len(IDENTITIES) + 4)
        counts, length_word, day_word, known_word = words[len(IDENTITIES) :]
        target, reading = draw_targets(severity, toxic, ANNOTATORS[counts & 15])
        fractions, mentions, leading = draw_annotations(words, toxic, ANNOTATORS[(counts >> np.uint32(4)) & 15])
        lengths = draw_lengths(length_word, toxic, mentions)
        noise = COMMON_NOISE * normal_noise(reading)
        cell = toxic + 2 * (lengths < SHORT_LENGTH) + 4 * leading
        scores = [
            squash(centers.take(cell) + noise + OWN_NOISE * normal_noise(to_units(stream.random_raw(CHUNK_ROWS))))
            for centers in score_centers()
        ]
        # The requested share of all rows lacks annotations, but none that mentions an identity.
        blank = round(self.unannotated / UNMENTIONED_SHARE * 2**32)
        is_blank = (leading == 0) & (known_word < blank)
        days = FIRST_DAY + np.floor(DAYS * np.sqrt(day_word / 2.0**32))  # more and more comments per day
        first = chunk * CHUNK_ROWS
        columns = [
            pa.array(np.arange(first, first + CHUNK_ROWS)),
            pa.array(days.astype(np.int32)).cast(pa.date32()),
            pa.array(target),
            *(pa.array(column, mask=is_blank) for column in fractions),
            pa.array(lengths),
            *map(pa.array, scores),
        ]
        if self.text:
            columns.append(write_comments(draw_words(stream, 2), toxic, mentions, lengths))
        whole = pa.record_batch(columns, schema=arrow_schema(self.columns))
        return whole.slice(0, min(CHUNK_ROWS, self.rows - first))


def draw_words(stream: np.random.Philox, rows: int) -> Words:
    """Draw numbers of 32 bits, shape (rows, CHUNK_ROWS); `rows` is even."""
    raw = stream.random_raw(rows * CHUNK_ROWS // 2).astype("<u8", copy=False)
    return raw.view("<u4").reshape(rows, CHUNK_ROWS)


def annotator_share(unit: Floats, least: Ints, most: Ints, annotators: Ints) -> Floats:
    """Return k / annotators with k from least to most, all equally likely if `unit` is uniform in [0, 1)."""
    return (least + np.floor(unit * (most - least + 1))) / annotators


def draw_targets(unit: Floats, toxic: Flags, annotators: Ints) -> tuple[Floats, Floats]:
    """Return the fraction of annotators who find a comment toxic, and how toxic it reads within its stratum.

    The upper `TOXIC_SHARE` of uniform numbers in [0, 1) is toxic. The reading is uniform in [0, 1) in both strata, and
    the target rises with it.
    """
    clean = 1.0 - TOXIC_SHARE
    reading = np.where(toxic, (unit - clean) / TOXIC_SHARE, unit / clean)
    half = (annotators + 1) // 2
    doubted = annotator_share((reading - UNTOUCHED) / (1.0 - UNTOUCHED), np.ones_like(half), half - 1, annotators)
    agreed = annotator_share(reading * reading, half, annotators, annotators)
    return np.where(toxic, agreed, np.where(reading < UNTOUCHED, 0.0, doubted)), reading


def draw_annotations(words: Words, toxic: Flags, annotators: Ints) -> tuple[Floats, list[Ints], npt.NDArray[np.intp]]:
    """Draw mentions of all identities, which overlap as in `conditional_probability`, and hints of mentions.

    Returns the fraction of annotators who see each identity, the rows that mention it, and the leading identity of each
    row (see `score_centers`).
    """
    fractions = np.zeros((len(IDENTITIES), CHUNK_ROWS))
    mentions: list[Ints] = [np.empty(0, dtype=np.int64)] * len(IDENTITIES)
    for position in COMPANIONS_FIRST:
        word, stratum = words[position], toxic.astype(np.intp)
        companion = IDENTITIES[position].shares_with
        if companion is not None:
            stratum[mentions[IDENTITY_NAMES.index(companion)]] += 2
        limit = MENTION_LIMITS[position].take(stratum)
        seen = np.flatnonzero(word < limit)
        half = (annotators[seen] + 1) // 2
        fractions[position, seen] = annotator_share(word[seen] / limit[seen], half, annotators[seen], annotators[seen])
        mentions[position] = seen
        least = HINT_LIMITS[position]
        hinted = np.flatnonzero(word >= least)
        unit, most = (word[hinted] - least) / (2**32 - int(least)), (annotators[hinted] + 1) // 2 - 1
        fractions[position, hinted] = annotator_share(unit, np.ones_like(most), most, annotators[hinted])
    leading = np.zeros(CHUNK_ROWS, dtype=np.intp)
    for position in STRENGTH_ORDER:
        leading[mentions[position]] = 1 + position
    return fractions, mentions, leading


def draw_lengths(word: Words, toxic: Flags, mentions: Sequence[Ints]) -> npt.NDArray[np.int32]:
    """Draw the number of characters of each comment, with room for the insult and the terms in its text."""
    drawn = LENGTH_QUANTILES[toxic.astype(np.intp), word >> np.uint32(20)]
    room = np.where(toxic, max(map(len, OPENINGS)), 0).astype(np.int32)
    for identity, seen in zip(IDENTITIES, mentions, strict=True):
        room[seen] += max(map(len, identity.terms)) + len(JOINT)
    lengths: npt.NDArray[np.int32] = np.maximum(drawn, room)
    return lengths


def normal_noise(unit: Floats) -> Floats:
    """Return standard normal numbers, by linear interpolation in the table of quantiles."""
    position = unit * STEPS
    cell = position.astype(np.intp)
    lower: Floats = NORMAL_QUANTILES.take(cell)
    return lower + (position - cell) * (NORMAL_QUANTILES.take(cell + 1) - lower)


def squash(latent: Floats) -> Floats:
    """Return a score in (0, 1) with eight digits: 1/2 + z / (2 sqrt(1 + z^2)), which needs no exponential."""
    return np.rint((0.5 + 0.5 * latent / np.sqrt(1.0 + latent * latent)) * 1e8) / 1e8
