"""The texts of comments: an insult if toxic, terms for the identities mentioned, harmless filler up to the length."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from biasspark.arrays import Flags, Ints
from biasspark.synthetic.civil_model import IDENTITIES, Identity
from biasspark.synthetic.wording import read_packaged

_TEXTS = read_packaged("civil")["texts"]

OPENINGS: list[str] = _TEXTS["openings"]
"""Mild insults, the only sign of toxicity in a text."""

JOINT = " and "

FILLER = "".join(f"{sentence} " for sentence in _TEXTS["filler"])
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
