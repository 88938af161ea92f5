"""The published statistics that the synthetic comment corpus follows: frequency, toxicity and bias of each identity.

Sources of the numbers, field by field:

- `Identity.mentions` and `Identity.percent_toxic`: Nuanced (Borkan et al. 2019), Table 5, for male, female,
  transgender, heterosexual, homosexual_gay_or_lesbian and the whole corpus. For christian, jewish, muslim, black, white
  and psychiatric_or_mental_illness the figures usually quoted for the Kaggle edition of the corpus, not checked against
  a copy of it. All others are chosen, to give rarer identities of plausible size, down to a handful of comments.
- `TABLE_6`: Nuanced, Table 6, the Negative and Positive AEG of TOXICITY@1 and TOXICITY@6. The eleven identities that
  the table leaves out are chosen to behave like a related one (`Identity.biased_like`).
- `Identity.shares_with` and `Identity.shared`: chosen; the papers print no overlaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

CORPUS_ROWS = 1_804_875
"""Comments in the real corpus (Nuanced, Table 5)."""

TOXIC_SHARE = 0.08
"""Share of comments with a target of at least 0.5 (Nuanced, Table 5)."""

SHORT_LENGTH = 100
"""Comments with fewer characters are *short* (Nuanced, section 4.5)."""

MODELS = ("toxicity_1", "toxicity_6")


@dataclass(frozen=True)
class Identity:
    """One annotated identity.

    Attributes
    ----------
    name
        Its column.
    mentions
        Comments of `CORPUS_ROWS` in which at least half of the annotators see it.
    percent_toxic
        Percentage of those comments that are toxic.
    terms
        Words for it in a generated text.
    shares_with, shared
        The identity that it is most often mentioned with, and the share of its own comments that mention both.
    biased_like
        The row of `TABLE_6` that sets its score shifts; its own name unless given.
    """

    name: str
    mentions: int
    percent_toxic: float
    terms: tuple[str, ...]
    shares_with: str | None = None
    shared: float = 0.0
    biased_like: str = ""

    @property
    def table_6_row(self) -> str:
        """Name of the row of `TABLE_6` that this identity follows."""
        return self.biased_like or self.name


_GAY, _LEARNING = "homosexual_gay_or_lesbian", "intellectual_or_learning_disability"
_PSYCHIATRIC = "psychiatric_or_mental_illness"

IDENTITIES = (
    Identity("asian", 4_578, 12.0, ("asian", "chinese", "japanese"), "white", 0.2),
    Identity("atheist", 1_405, 14.0, ("atheist", "atheists"), "christian", 0.5),
    Identity("bisexual", 500, 27.0, ("bisexual",), _GAY, 0.7, "transgender"),
    Identity("black", 14_901, 31.0, ("black",), "white", 0.5),
    Identity("buddhist", 415, 11.0, ("buddhist", "buddhists"), "christian", 0.3, "christian"),
    Identity("christian", 40_423, 9.0, ("christian", "catholic", "church")),
    Identity("female", 53_429, 13.68, ("woman", "women", "female"), "male", 0.45),
    Identity("heterosexual", 1_291, 22.77, ("heterosexual", "straight"), _GAY, 0.6, "transgender"),
    Identity("hindu", 512, 13.0, ("hindu", "hindus"), "muslim", 0.3, "christian"),
    Identity(_GAY, 10_997, 28.38, ("gay", "lesbian", "homosexual"), "christian", 0.1),
    Identity(_LEARNING, 150, 25.0, ("autistic", "dyslexic"), _PSYCHIATRIC, 0.3, _PSYCHIATRIC),
    Identity("jewish", 7_651, 16.0, ("jewish", "jews"), "muslim", 0.2),
    Identity("latino", 2_004, 20.0, ("latino", "mexican", "hispanic"), "black", 0.3),
    Identity("male", 44_484, 15.03, ("man", "men", "male")),
    Identity("muslim", 21_006, 23.0, ("muslim", "muslims", "islam"), "christian", 0.1),
    Identity("other_disability", 20, 20.0, ("disabled",), _PSYCHIATRIC, 0.2, _PSYCHIATRIC),
    Identity("other_gender", 30, 20.0, ("nonbinary",), "transgender", 0.5, "transgender"),
    Identity("other_race_or_ethnicity", 900, 15.0, ("inuit", "aboriginal"), "white", 0.3, "latino"),
    Identity("other_religion", 250, 10.0, ("sikh", "mormon"), "christian", 0.3, "christian"),
    Identity("other_sexual_orientation", 40, 22.0, ("asexual", "queer"), _GAY, 0.5, "transgender"),
    Identity("physical_disability", 120, 16.0, ("wheelchair", "blind", "deaf"), _PSYCHIATRIC, 0.2, _PSYCHIATRIC),
    Identity(_PSYCHIATRIC, 4_889, 21.0, ("schizophrenic", "bipolar", "depressive")),
    Identity("transgender", 2_499, 21.29, ("transgender", "trans"), _GAY, 0.4),
    Identity("white", 25_082, 28.0, ("white",), "male", 0.15),
)
"""The 24 identities of Civil Comments, in the order of their columns."""

IDENTITY_NAMES = tuple(identity.name for identity in IDENTITIES)


class Gaps(NamedTuple):
    """Average equality gaps of both models: (TOXICITY@1 negative, positive, TOXICITY@6 negative, positive)."""

    short: tuple[float, float, float, float]
    every: tuple[float, float, float, float]


TABLE_6 = {
    "male": Gaps((0.13, -0.034, 0.12, -0.047), (0.13, -0.059, 0.13, -0.063)),
    "female": Gaps((0.17, -0.043, 0.18, -0.038), (0.12, -0.062, 0.14, -0.064)),
    "transgender": Gaps((0.34, -0.17, 0.27, -0.18), (0.21, -0.11, 0.14, -0.16)),
    _GAY: Gaps((0.43, 0.11, 0.3, -0.079), (0.3, -0.0064, 0.16, -0.14)),
    "christian": Gaps((0.12, -0.089, 0.092, -0.11), (0.061, -0.14, 0.058, -0.14)),
    "jewish": Gaps((0.34, -0.027, 0.33, -0.07), (0.2, -0.086, 0.24, -0.069)),
    "muslim": Gaps((0.34, -0.065, 0.26, -0.13), (0.24, -0.084, 0.2, -0.12)),
    "atheist": Gaps((0.23, -0.0043, 0.25, -0.05), (0.15, -0.095, 0.14, -0.11)),
    "black": Gaps((0.35, -0.047, 0.4, -0.021), (0.26, -0.063, 0.35, -0.012)),
    "white": Gaps((0.33, -0.056, 0.37, -0.081), (0.25, -0.062, 0.33, -0.061)),
    "asian": Gaps((0.14, -0.11, 0.21, -0.059), (0.078, -0.074, 0.16, -0.047)),
    "latino": Gaps((0.16, -0.1, 0.16, -0.1), (0.14, -0.095, 0.2, -0.068)),
    _PSYCHIATRIC: Gaps((0.36, -0.053, 0.29, -0.066), (0.17, -0.022, 0.16, -0.012)),
}
"""Nuanced, Table 6: gaps in short comments, and in all comments."""
