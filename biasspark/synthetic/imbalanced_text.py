"""The texts of the imbalanced corpus, in the words of `imbalanced.toml`: a short remark, then filler to the length."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import gcd

import numpy as np
import numpy.typing as npt

from biasspark.synthetic.chunks import WORD, to_units
from biasspark.synthetic.wording import read_packaged, with_article

UNSEEN = 0.2
"""Share of the toxic comments without a toxic word. Chosen."""

QUOTED = 0.06
"""Share of the harmless comments with a word of the insults. Chosen."""

LONGEST_TERM = 20
"""Characters of a term with which the longest remark still fits into the shortest comments, of at most 59."""

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
"""By manner, without and with a term."""


@cache
def list_words() -> frozenset[str]:
    """Return the words of all remarks and fillers, in lower case."""
    remarks = [remark for manner in REMARKS for kind in manner for remark in kind]
    slots = {"term": "", "a_term": "a", "A_term": "An", "adjective": ""}
    texts = [remark.format(**slots, noun=noun) for remark in remarks for noun in TOXIC_NOUNS]
    return frozenset(WORD.findall(" ".join((*texts, *TOXIC_ADJECTIVES, *SENTENCES)).lower()))


def write_comments(
    bits: npt.NDArray[np.uint64],
    toxic: Sequence[bool],
    terms: Sequence[str | None],
    shortest: Sequence[int],
    lengths: Sequence[int],
) -> list[str]:
    """Write comments of at least `shortest` characters, and of `lengths` at most unless the remark alone has more.

    Random bits, shape (3, rows), choose the manner, the remark and the filler.
    """
    chances = to_units(bits[0])
    manners = np.where(toxic, np.where(chances < UNSEEN, HARMLESS, INSULTING), np.where(chances < QUOTED, STRONG, 0))
    remarks = map(write_remark, manners.tolist(), bits[1].tolist(), terms)
    filled = map(fill_up, remarks, bits[2].tolist(), lengths)
    return [text.ljust(least, ".") for text, least in zip(filled, shortest, strict=True)]


def write_remark(manner: int, choice: int, term: str | None) -> str:
    """Choose a remark and its words by the digits of a random number."""
    remarks = REMARKS[manner][term is not None]
    choice, remark = divmod(choice, len(remarks))
    choice, noun = divmod(choice, len(TOXIC_NOUNS))
    adjective = TOXIC_ADJECTIVES[choice % len(TOXIC_ADJECTIVES)]
    a_term = "" if term is None else with_article(term)
    return remarks[remark].format(
        term=term,
        a_term=a_term,
        A_term=a_term[:1].upper() + a_term[1:],
        noun=TOXIC_NOUNS[noun],
        adjective=adjective,
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
