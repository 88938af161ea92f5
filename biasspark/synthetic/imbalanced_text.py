"""Comments of the imbalanced corpus in words: a short remark, then talk up to the length."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import gcd

import numpy as np
import numpy.typing as npt

from biasspark.synthetic import imbalanced_wording as wording
from biasspark.synthetic.draws import WORD, to_units
from biasspark.synthetic.madlibs_wording import with_article

UNSEEN = 0.2
"""Share of the toxic comments whose words do not show it. Chosen."""

QUOTED = 0.06
"""Share of the harmless comments that hold a word of the insults. Chosen."""

LONGEST_TERM = 20
"""Characters: with it the longest remark still fits into the shortest comments, those of 59 characters at the most."""

SENTENCES = tuple(sentence.format(topic=topic) for sentence in wording.TALK for topic in wording.TOPICS)
STEPS = tuple(step for step in range(1, len(SENTENCES)) if gcd(step, len(SENTENCES)) == 1)
"""Steps that reach all sentences before one comes again."""

HARMLESS, STRONG, INSULTING = range(3)
REMARKS = (
    (wording.REMARKS, wording.REMARKS_WITH_TERM),
    (wording.REMARKS_WITH_STRONG_WORDS, wording.REMARKS_WITH_STRONG_WORDS_AND_TERM),
    (wording.INSULTS, wording.INSULTS_WITH_TERM),
)
"""By manner, without a term and with one."""


@cache
def own_words() -> frozenset[str]:
    """The words of all remarks and of the talk, in lower case."""
    remarks = [remark for manner in REMARKS for kind in manner for remark in kind]
    slots = {"term": "", "a_term": "a", "A_term": "An", "adjective": ""}
    texts = [remark.format(**slots, noun=noun) for remark in remarks for noun in wording.TOXIC_NOUNS]
    return frozenset(WORD.findall(" ".join((*texts, *wording.TOXIC_ADJECTIVES, *SENTENCES)).lower()))


def write_comments(
    bits: npt.NDArray[np.uint64],
    toxic: Sequence[bool],
    terms: Sequence[str | None],
    shortest: Sequence[int],
    lengths: Sequence[int],
) -> list[str]:
    """Write comments.

    Parameters
    ----------
    bits
        Random, shape (3, rows): they choose the manner, the remark and the talk.
    toxic, terms
        What each comment is, and the term that it mentions, if any.
    shortest, lengths
        How many characters it must have, and about how many it has: at most these, unless the remark alone has more.
    """
    chances = to_units(bits[0])
    manners = np.where(toxic, np.where(chances < UNSEEN, HARMLESS, INSULTING), np.where(chances < QUOTED, STRONG, 0))
    remarks = map(write_remark, manners.tolist(), bits[1].tolist(), terms)
    filled = map(fill_up, remarks, bits[2].tolist(), lengths)
    return [text.ljust(least, ".") for text, least in zip(filled, shortest, strict=True)]


def write_remark(manner: int, choice: int, term: str | None) -> str:
    """Choose a remark and the words in it by the digits of a random number."""
    remarks = REMARKS[manner][term is not None]
    choice, remark = divmod(choice, len(remarks))
    choice, noun = divmod(choice, len(wording.TOXIC_NOUNS))
    adjective = wording.TOXIC_ADJECTIVES[choice % len(wording.TOXIC_ADJECTIVES)]
    a_term = "" if term is None else with_article(term)
    return remarks[remark].format(
        term=term,
        a_term=a_term,
        A_term=a_term[:1].upper() + a_term[1:],
        noun=wording.TOXIC_NOUNS[noun],
        adjective=adjective,
    )


def fill_up(remark: str, talk: int, length: int) -> str:
    """Add talk to a remark, cut after a word where the length is reached."""
    start, place = divmod(talk, len(SENTENCES))
    step = STEPS[start % len(STEPS)]
    text = remark
    while len(text) < length:
        text = f"{text} {SENTENCES[place]}"
        place = (place + step) % len(SENTENCES)
    if len(text) > max(length, len(remark)):
        text = text[: text.rfind(" ", 0, length + 1)]
    return text
