"""The published statistics that the synthetic comment corpus follows, and what it is drawn from: lookup tables.

`civil.toml` holds the frequency, toxicity and bias of each identity, with the source of each number. The tables are
probabilities, comment lengths and score shifts.

Rows are made by comparing uniform numbers with these tables and by interpolating in them, once per process (30 ms). The
only arithmetic on rows is `+ - * /` and the square root, which IEEE 754 rounds alike everywhere, so that a seed gives
the same corpus on every machine and with every numpy. What needs a logarithm is tabulated here and rounded.

Strata: everything drawn for a comment depends on whether it is toxic (0 or 1), so marginal counts and toxic rates are
as given, whatever the overlaps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from biasspark.arrays import Floats
from biasspark.synthetic.wording import read_packaged

CORPUS_ROWS = 1_804_875
"""Comments in the real corpus (Nuanced, Table 5)."""

TOXIC_SHARE = 0.08
"""Share of comments with a target of at least 0.5 (Nuanced, Table 5)."""

SHORT_LENGTH = 100
"""Comments with fewer characters are *short* (Nuanced, section 4.5)."""

MODELS = ("toxicity_1", "toxicity_6")


class Identity(NamedTuple):
    """One annotated identity: its column, and words for it in a generated text.

    `mentions` are comments of `CORPUS_ROWS` in which at least half of the annotators see it, of which a percentage is
    toxic. `shares_with` is the identity that it is most often mentioned with, `shared` the share of its comments that
    mention both. `biased_like` is the row of `TABLE_6` that sets its score shifts; its own name unless given.
    """

    name: str
    mentions: int
    percent_toxic: float
    terms: Sequence[str]
    shares_with: str | None = None
    shared: float = 0.0
    biased_like: str = ""

    @property
    def table_6_row(self) -> str:
        """Name of the row of `TABLE_6` that this identity follows."""
        return self.biased_like or self.name


class Gaps(NamedTuple):
    """Average equality gaps of both models: (TOXICITY@1 negative, positive, TOXICITY@6 negative, positive)."""

    short: Sequence[float]
    every: Sequence[float]


_STATISTICS = read_packaged("civil")

IDENTITIES = tuple(Identity(**identity) for identity in _STATISTICS["identities"])
"""The 24 identities of Civil Comments, in the order of their columns."""

IDENTITY_NAMES = tuple(identity.name for identity in IDENTITIES)

TABLE_6 = {name: Gaps(**gaps) for name, gaps in _STATISTICS["table_6"].items()}
"""Nuanced, Table 6: gaps in short comments, and in all comments."""

STRATA = (1.0 - TOXIC_SHARE, TOXIC_SHARE)
STEPS = 4096
"""Cells of the quantile tables: twelve bits of a uniform number choose one."""

SHORTEST, LONGEST = 20, 1000
MEDIAN_LENGTH = (205.0, 170.0)
"""Median characters of a comment, not toxic and toxic. Chosen: toxic comments are a little shorter."""

LENGTH_SPREAD = 0.88
"""Standard deviation of the logarithm of the length. Chosen: a fifth of the comments is short."""

SEPARATION = (2.5, 2.6)
"""Distance of toxic from other comments in standard deviations, per model: AUCs of Phi(d / sqrt 2) = 0.961 and 0.967
where no identity is mentioned. Chosen: about what the AUCs of `TABLE_6` ask for, the later model a little better."""

CENTRE = -1.4
"""Where the scores of comments that are not toxic lie before squashing: a median score of 0.09."""

_NORMAL = NormalDist()


def mention_probability(identity: Identity, stratum: int) -> float:
    """P(mentioned | stratum), from the count and the toxic rate of the identity by Bayes' rule."""
    within = identity.percent_toxic / 100.0 if stratum else 1.0 - identity.percent_toxic / 100.0
    return identity.mentions / CORPUS_ROWS * within / STRATA[stratum]


def conditional_probability(identity: Identity, stratum: int, companion: bool) -> float:
    """P(mentioned | stratum, its companion is mentioned or is not).

    The companion is the identity it shares comments with. Both answers average to `mention_probability`, so an overlap
    changes no marginal. Without a companion both are that probability.
    """
    alone = mention_probability(identity, stratum)
    if identity.shares_with is None:
        return alone
    other = mention_probability(IDENTITIES[IDENTITY_NAMES.index(identity.shares_with)], stratum)
    return identity.shared * alone / other if companion else (1.0 - identity.shared) * alone / (1.0 - other)


@cache
def unmentioned_share() -> float:
    """P(a comment mentions no identity): the largest share of comments that can go without annotations."""
    return sum(
        STRATA[stratum] * math.prod(1.0 - conditional_probability(each, stratum, False) for each in IDENTITIES)
        for stratum in (0, 1)
    )


@cache
def companions_first() -> tuple[int, ...]:
    """Positions in `IDENTITIES`, each after that of the identity it shares comments with."""

    def depth(position: int) -> int:
        companion = IDENTITIES[position].shares_with
        return 0 if companion is None else 1 + depth(IDENTITY_NAMES.index(companion))

    return tuple(sorted(range(len(IDENTITIES)), key=depth))


@cache
def mention_limits() -> npt.NDArray[np.uint32]:
    """Bounds for 32-bit uniform numbers, shape (identities, 4): mentioned if below [toxic + 2 * companion]."""
    cases = [(toxic, companion) for companion in (False, True) for toxic in (0, 1)]
    limits = [[round(conditional_probability(each, *case) * 2**32) for case in cases] for each in IDENTITIES]
    return np.array(limits, dtype=np.uint32)


@cache
def hint_limits() -> npt.NDArray[np.uint32]:
    """A number at or above its identity's bound is a hint: some annotators see the identity, fewer than half.

    Chosen: as many hints as mentions.
    """
    return np.array([2**32 - round(each.mentions / CORPUS_ROWS * 2**32) for each in IDENTITIES], dtype=np.uint32)


@cache
def normal_quantiles() -> Floats:
    """Standard normal quantiles at k / STEPS, the two ends cut off at -4 and 4."""
    inner = [round(_NORMAL.inv_cdf(step / STEPS), 9) for step in range(1, STEPS)]
    return np.array([-4.0, *inner, 4.0])


@cache
def length_quantiles() -> npt.NDArray[np.int32]:
    """Characters of a comment, shape (2, STEPS): log-normal in each stratum, cut off at `SHORTEST` and `LONGEST`."""
    middles = [_NORMAL.inv_cdf((step + 0.5) / STEPS) for step in range(STEPS)]
    lengths = [[round(median * math.exp(LENGTH_SPREAD * z)) for z in middles] for median in MEDIAN_LENGTH]
    return np.array(lengths, dtype=np.int32).clip(SHORTEST, LONGEST)


@cache
def strength_order() -> tuple[int, ...]:
    """Positions in `IDENTITIES`, the least biased first (Negative AEG of the first model in short comments)."""
    return tuple(sorted(range(len(IDENTITIES)), key=lambda g: TABLE_6[IDENTITIES[g].table_6_row].short[0]))


def gap_shift(gap: float) -> float:
    """The shift that gives this equality gap between two normal distributions of variance 1: Phi(d / sqrt 2) - 1/2."""
    return math.sqrt(2.0) * _NORMAL.inv_cdf(0.5 + gap)


def gap_in_long(short: float, every: float, stratum: int) -> float:
    """The gap in long comments, where `every` is that of short and long ones together."""
    share = _NORMAL.cdf((math.log(SHORT_LENGTH) - math.log(MEDIAN_LENGTH[stratum])) / LENGTH_SPREAD)
    return (every - share * short) / (1.0 - share)


@cache
def score_centres() -> Floats:
    """Mean of the unsquashed scores, shape (models, 4 * (1 + identities)), at toxic + 2 * short + 4 * leading.

    `leading` is 0 for a comment without identity, else 1 + the position of its most biased identity: that one alone
    shifts the score, by what `TABLE_6` says about it.
    """
    centres = np.full((len(MODELS), 1 + len(IDENTITIES), 2, 2), CENTRE)
    centres[..., 1] += np.array(SEPARATION)[:, None, None]
    for position, identity in enumerate(IDENTITIES):
        gaps = TABLE_6[identity.table_6_row]
        for model in range(len(MODELS)):
            for toxic in (0, 1):
                short, every = gaps.short[2 * model + toxic], gaps.every[2 * model + toxic]
                centres[model, 1 + position, 0, toxic] += gap_shift(gap_in_long(short, every, toxic))
                centres[model, 1 + position, 1, toxic] += gap_shift(short)
    return np.round(centres.reshape(len(MODELS), -1), 9)
