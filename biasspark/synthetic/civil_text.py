"""The texts of comments: an insult if toxic, terms for the identities mentioned, harmless filler up to the length."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biasspark.arrays import Flags, Ints
from biasspark.synthetic.civil_statistics import IDENTITIES, Identity

OPENINGS = ("What an idiot. ", "How stupid. ", "You fool. ", "Utter moron. ")
"""Mild insults, the only sign of toxicity in a text."""

JOINT = " and "

FILLER = (
    "The council meets again on Tuesday to talk about the new bridge. "
    "Traffic on the ring road gets worse each winter and nobody plans ahead. "
    "I read the article twice and still wonder where the figures come from. "
    "Taxes pay for schools, parks and snow clearing, so a small rise seems fair. "
    "Our library was closed for repairs, yet the reading club went on in the cafe. "
    "The harbour ferry should run later on Fridays, as it did ten years ago. "
    "Farmers near the river lost half of their crop to the spring floods. "
    "Thanks for the careful reporting, it is good to see both sides explained. "
    "House prices here rise faster than wages, which worries young families. "
    "A cycle lane along the market street would help shops more than parking does. "
    "The team played well until the last quarter, then the defence fell apart. "
    "Voters will decide in autumn whether the hospital gets a second building. "
    "My neighbours planted forty trees last spring and most of them survived. "
    "Perhaps the editor could link the full report next time. "
    "It rained for nine days, the cellar is wet and the insurance does not answer. "
    "Solar panels on the school roof paid for themselves within eight years. "
)
"""Filler without insults and without any term for an identity. It is ASCII, so characters are bytes."""

_ENDLESS = FILLER * 3
_STARTS = tuple(end + 1 for end, letter in enumerate(FILLER) if letter == " " and FILLER[end - 1] == ".")[:-1]

OPENING_ROOM = max(map(len, OPENINGS))
"""Characters that the longest insult takes."""


def mention_room(identity: Identity) -> int:
    """Characters that the longest term of an identity takes, with what joins it to the rest."""
    return max(map(len, identity.terms)) + len(JOINT)


def write_comments(
    words: npt.NDArray[np.uint32], toxic: Flags, mentions: Sequence[Ints], lengths: npt.NDArray[np.int32]
) -> pa.Array:
    """Write texts of exactly the given lengths, about the identities whose rows are given in the order of `IDENTITIES`.

    Uniform 32-bit numbers, shape (2, rows), choose the terms and where the filler begins.
    """
    terms = _choose_terms(words[0], mentions)
    starts = (words[1] % np.uint32(len(_STARTS))).tolist()
    openings = np.where(toxic, 1 + words[1] // np.uint32(2**30), 0).tolist()
    texts = []
    for row, length in enumerate(lengths.tolist()):
        lead = ("", *OPENINGS)[openings[row]] + JOINT.join(terms[row]) if openings[row] or row in terms else ""
        start = _STARTS[starts[row]]
        texts.append(f"{lead} {_ENDLESS[start : start + length]}".lstrip()[: length - 1] + ".")
    return pa.array(texts, pa.string())


def _choose_terms(word: npt.NDArray[np.uint32], mentions: Sequence[Ints]) -> defaultdict[int, list[str]]:
    """Return for each row one term for each identity that it mentions."""
    terms: defaultdict[int, list[str]] = defaultdict(list)
    for identity, seen in zip(IDENTITIES, mentions, strict=True):
        for row, choice in zip(seen.tolist(), (word[seen] % len(identity.terms)).tolist(), strict=True):
            terms[row].append(identity.terms[choice])
    return terms
