"""Templated sentences about identities, half of them toxic whatever the identity (Mitigating: "bias madlibs").

The sentence of a row depends only on its id, the seed and the number of terms. Ids cycle through the terms; the rows of
a term alternate between harmless and toxic; those of one kind cycle through the templates in a random order; and the
fillings of a template are visited in steps that reach all of them before one repeats.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from biasspark.arrays import Ints
from biasspark.expressions.sql import quote_name
from biasspark.synthetic.chunks import WORD, RowsRequest, bit_stream, list_number_faults, list_term_faults
from biasspark.synthetic.wording import FILLERS, IDENTITY_TERMS, TEMPLATES, with_article

FIRST_COLUMNS = ("id", "comment_text", "label", "template")
SLOT = re.compile(r"\{(a )?(\w+)\}")
N_TEMPLATES = len(TEMPLATES[0])
"""Templates of either kind."""

TEMPLATE_IDS = tuple(f"{kind}_{n:02}" for kind in ("harmless", "toxic") for n in range(1, N_TEMPLATES + 1))
"""The ids of all templates, harmless ones first."""

N_WORDS = len(FILLERS[0]["name"])
"""The number of words for each slot."""

N_FILLINGS = N_WORDS**3
"""The number of distinct sentences of one template about one term."""

N_SENTENCES = 2 * N_TEMPLATES * N_FILLINGS
"""The number of distinct sentences about one term, half of them toxic. None repeats before all are used."""


@dataclass(frozen=True)
class MadlibsRequest(RowsRequest):
    """Templated sentences about identity terms, half of them toxic for every term.

    Attributes
    ----------
    terms
        The identities, preferably adjectives. No term may contain a word of the sentences themselves.

    Notes
    -----
    The columns are id BIGINT, comment_text STRING, label BOOLEAN (toxic or not), template STRING (`harmless_07`,
    `toxic_07`), and for each term an INT with its name: 1 if the text contains it as whole words, else 0.

    Sentences are spread evenly over the terms, and a term that is part of another (african, african american) is in
    the sentences of both. Half of the rows of a term are toxic, up to one row if their number is odd; for a term that
    is part of several others, up to one row for each.

    Sentences differ until all `N_SENTENCES` (884,736) about a term are used, 44 million with the 50 terms; then they
    repeat in the same order.
    """

    terms: tuple[str, ...] = IDENTITY_TERMS

    @property
    def columns(self) -> str:
        """The columns as DDL of Spark SQL."""
        flags = ", ".join(f"{quote_name(term)} INT" for term in self.terms)
        return f"id BIGINT, comment_text STRING, label BOOLEAN, template STRING, {flags}"

    def list_faults(self) -> list[str]:
        """Return a message for each argument that is out of range and each term that cannot be used."""
        return list_number_faults(self.rows, self.seed) + list_term_faults(self.terms, FIRST_COLUMNS, list_words())

    def make_chunk(self, chunk: int) -> pa.RecordBatch:
        """Make the rows of one chunk."""
        ids = self.ids_of(chunk)
        turn, term = np.divmod(ids, len(self.terms))
        toxic = (turn + first_labels(self.terms)[term]) % 2
        template, filling = choose_sentences(turn // 2, term, toxic, take_turns(len(self.terms), self.seed))
        flags = mentions(self.terms)
        columns = {
            "id": ids,
            "comment_text": write_sentences(self.terms, template, filling, term),
            "label": toxic == 1,
            "template": pa.array(TEMPLATE_IDS).take(pa.array(template)),
        }
        return pa.RecordBatch.from_pydict(columns | dict(zip(self.terms, flags[term].T, strict=True)))


class Turns(NamedTuple):
    """The order of sentences. Each array has shape (terms, 2, N_TEMPLATES), harmless and toxic on axis 1.

    `order` has the template of each turn; `start` and `step` have the first filling of each template and the step to
    the next one.
    """

    order: Ints
    start: Ints
    step: Ints


@cache
def list_words() -> frozenset[str]:
    """Return the words of all templates and fillers, in lower case."""
    texts = [SLOT.sub(" ", template) for kind in TEMPLATES for template in kind]
    texts += [with_article(word) for kind in FILLERS for words in kind.values() for word in words]
    return frozenset(word for text in texts for word in WORD.findall(text.lower()))


@cache
def mentions(terms: tuple[str, ...]) -> npt.NDArray[np.int32]:
    """Return which terms contain which, shape (terms, terms): [a, b] is 1 if b occurs in a.

    Whole words are matched, ignoring case, as for identities given as `terms` in a configuration.
    """
    patterns = [re.compile(rf"(?<!\w){re.escape(term)}(?!\w)", re.IGNORECASE) for term in terms]
    return np.array([[pattern.search(term) is not None for pattern in patterns] for term in terms], dtype=np.int32)


@cache
def first_labels(terms: tuple[str, ...]) -> Ints:
    """Return the kind of the first sentence of each term: 0 harmless, 1 toxic.

    Terms alternate, so that a small corpus is balanced. A term that is part of another begins with the opposite kind,
    so that the sentences that mention it are balanced if both have an odd number of sentences.
    """
    first = np.arange(len(terms)) % 2
    for longer, within in zip(*np.nonzero(mentions(terms)), strict=True):
        if longer != within:
            first[within] = 1 - first[longer]
    return first.astype(np.int64)


@cache
def take_turns(n_terms: int, seed: int) -> Turns:
    """Draw the order of sentences. Takes 0.2 s for a thousand terms."""
    bits = bit_stream(seed).random_raw(n_terms * 2 * 3 * N_TEMPLATES).reshape(n_terms, 2, 3, N_TEMPLATES)
    # A step that is coprime to the number of fillings reaches all of them.
    steps = np.flatnonzero(np.gcd(np.arange(N_FILLINGS), N_FILLINGS) == 1)
    return Turns(
        order=np.argsort(bits[:, :, 0], axis=-1, kind="stable"),
        start=(bits[:, :, 1] % np.uint64(N_FILLINGS)).astype(np.int64),
        step=steps[(bits[:, :, 2] % np.uint64(len(steps))).astype(np.int64)],
    )


def choose_sentences(number: Ints, term: Ints, toxic: Ints, turns: Turns) -> tuple[Ints, Ints]:
    """Return the template and filling of each sentence, given its number among those of its term and kind.

    These are positions among all templates, harmless ones first, and from 0 to `N_FILLINGS - 1`.
    """
    template = turns.order[term, toxic, number % N_TEMPLATES]
    begin, step = turns.start[term, toxic, template], turns.step[term, toxic, template]
    # The remainder is taken first, since the product would exceed 64 bits in a corpus of 1e16 rows.
    use = number // N_TEMPLATES % N_FILLINGS
    return toxic * N_TEMPLATES + template, (begin + use * step) % N_FILLINGS


def write_sentences(terms: Sequence[str], template: Ints, filling: Ints, term: Ints) -> pa.Array:
    """Fill the slots of each template: three by the digits of a filling in base `N_WORDS`, one by the term."""
    texts = []
    for number in np.unique(template).tolist():
        toxic, position = divmod(number, N_TEMPLATES)
        rows = np.flatnonzero(template == number)
        digits = iter(filling[rows] // N_WORDS**power % N_WORDS for power in range(3))
        beginning, *literals = SLOT.sub("\0", TEMPLATES[toxic][position]).split("\0")
        parts = [beginning]
        for (article, kind), literal in zip(SLOT.findall(TEMPLATES[toxic][position]), literals, strict=True):
            choices, chosen = (terms, term[rows]) if kind == "identity" else (FILLERS[toxic][kind], next(digits))
            words = pa.array([with_article(word) if article else word for word in choices], pa.string())
            parts += [words.take(pa.array(chosen)), literal]
        texts.append(pc.binary_join_element_wise(*parts, ""))
    by_template = np.argsort(template, kind="stable")
    return pa.concat_arrays(texts).take(pa.array(np.argsort(by_template)))
