"""Crowds: of every identity and either label its members, its unknowns and its base. numpy and pyarrow only.

A placement among the background of an identity is that among its base, less those among members and unknowns. So all
cells of all identities follow from the placements among crowds, and these from one running count each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from biasspark.arrays import Flags, Ints
from biasspark.columns import LABEL
from biasspark.corpus.codebook import Codebook
from biasspark.ranking.blocks import split_by_code

KNOWN, ENTRIES = "known_sources", "entries"
MEMBER, UNKNOWN = 0, 1


@dataclass(frozen=True)
class Crowds:
    """Which crowds there are: negatives and positives of every base, then of every identity members, then unknowns.

    Attributes
    ----------
    identities
        Their numbers in the codebook, ascending.
    masks
        The sources one of which must be known for a row to be in a base, each set once; 0 stands for all rows.
    base_of
        For every identity the place of its base.
    """

    identities: tuple[int, ...]
    masks: tuple[int, ...]
    base_of: tuple[int, ...]

    @classmethod
    def of(cls, codebook: Codebook, identities: Sequence[int]) -> Crowds:
        """Return the crowds of some identities of a codebook."""
        masks = tuple(dict.fromkeys(codebook.base_masks[number] for number in identities))
        base_of = tuple(masks.index(codebook.base_masks[number]) for number in identities)
        return cls(tuple(identities), masks, base_of)

    @property
    def n_base_crowds(self) -> int:
        """How many of the crowds are bases."""
        return 2 * len(self.masks)

    @property
    def size(self) -> int:
        """How many crowds there are."""
        return self.n_base_crowds + 4 * len(self.identities)

    def base(self, place: int, label: int) -> int:
        """Return the number of the crowd that is the base of an identity, by its place."""
        return 2 * self.base_of[place] + label

    def entry(self, place: int, state: int, label: int) -> int:
        """Return the number of the crowd of the members of an identity, or of its unknowns."""
        return self.n_base_crowds + 4 * place + 2 * state + label

    @cached_property
    def _masks_of_crowds(self) -> Ints:
        of_identities = [self.masks[base] for base in self.base_of]
        return np.repeat(np.array([*self.masks, *of_identities]), [2] * len(self.masks) + [4] * len(of_identities))

    def asked(self, known: int, totals: Ints) -> list[int]:
        """Return the crowds that matter to rows on which these sources are known; empty ones do not."""
        masks = self._masks_of_crowds
        return [int(crowd) for crowd in np.flatnonzero(((masks == 0) | (masks & known > 0)) & (totals > 0))]


def find_crowds(table: pa.Table, crowds: Crowds) -> list[Ints]:
    """Return for every crowd which of the rows are in it."""
    positive, known = table.column(LABEL).to_numpy(), table.column(KNOWN).to_numpy()
    bases = [in_base(known, mask) for mask in crowds.masks]
    found = [np.flatnonzero(base & (positive == label)) for base in bases for label in (False, True)]
    lengths, codes = read_lists(table, ENTRIES)
    rows = np.repeat(np.arange(len(positive)), lengths)
    crowd = 2 * codes.astype(np.int64) + positive[rows]
    return found + [rows[entries] for entries in split_by_code(crowd, 4 * len(crowds.identities))]


def in_base(known: Ints, mask: int) -> Flags:
    """Return which rows are in the base of a mask, from the nullable sources that are known on them."""
    return known & mask > 0 if mask else np.ones(len(known), bool)


def read_lists(table: pa.Table, name: str) -> tuple[Ints, np.ndarray]:
    """Return the lengths of a column's lists, and their values one after another."""
    column = table.column(name)
    return pc.list_value_length(column).to_numpy().astype(np.int64), pc.list_flatten(column).to_numpy()
