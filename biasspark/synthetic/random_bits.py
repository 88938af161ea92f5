"""Seeded random bits that any executor can draw for its part of a corpus, and faults that requests have in common."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from biasspark.arrays import Floats
from biasspark.text import show_value

WORD = re.compile(r"\w+")


def bit_stream(seed: int, *key: int) -> np.random.Philox:
    """Return the stream of random bits of a key, independent of the streams of all other keys.

    The seed and the key, which says what the bits are for, are whole numbers from 0. Use only the `random_raw` of the
    stream: the 64-bit output of the Philox counter, which numpy keeps stable over versions and machines.
    """
    return np.random.Philox(np.random.SeedSequence(seed, spawn_key=key))


def to_units(bits: npt.NDArray[np.uint64]) -> Floats:
    """Return uniform numbers in [0, 1) of 53 random bits each."""
    units: Floats = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return units


def list_number_faults(rows: int, seed: int) -> list[str]:
    """Return the faults of a number of rows and a seed."""
    faults = []
    if rows < 1:
        faults.append(f"rows: {rows}. A corpus has at least one row. Ask for 1 or more.")
    if seed < 0:
        faults.append(f"seed: {seed}. A seed is a whole number from 0. Leave out the sign.")
    return faults


def list_term_faults(terms: Sequence[str], columns: Collection[str], words: Collection[str]) -> list[str]:
    """Return the faults of identity terms: no term may be another column, or contain a word of the generated texts.

    Columns and words are in lower case.
    """
    faults = [] if terms else ["terms: none. A sentence is about an identity. Name at least one."]
    seen = set(columns)
    for term in terms:
        clash = set(words).intersection(WORD.findall(term.lower()))
        if term != " ".join(term.split()) or not term:
            faults.append(f"terms: {show_value(term)}. A term is words with single spaces between. Correct it.")
        if term.lower() in seen:
            faults.append(f"terms: {show_value(term)}. Columns must differ in more than case. Remove or rename it.")
        if clash:
            faults.append(
                f"terms: {show_value(term)}. The sentences use {show_value(min(clash))} themselves, so they would "
                "mention the term where they are about another. Leave the word out, or the term."
            )
        seen.add(term.lower())
    return faults
