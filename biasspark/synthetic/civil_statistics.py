"""The published statistics that the synthetic comment corpus follows: frequency, toxicity and bias of each identity.

`civil.toml` holds them, with the source of each number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from biasspark.synthetic.packaged import read_packaged

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
