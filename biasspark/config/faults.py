"""The faults of a configuration, each with the table that it lies in, noted while all tables are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Fault(NamedTuple):
    """One fault.

    Attributes
    ----------
    table
        The table that it lies in, by its dotted name: ``identities.terms``.
    text
        What a reader is told.
    """

    table: str
    text: str


class Faults:
    """All faults in the order in which they were found. Iterating gives their texts."""

    def __init__(self) -> None:
        self._found: list[Fault] = []

    def __iter__(self) -> Iterator[str]:
        return (fault.text for fault in self._found)

    def __len__(self) -> int:
        return len(self._found)

    def note(self, table: str, *texts: str) -> None:
        """Add faults of a table; "" where they lie in none, as what ``--set`` cannot set."""
        self._found += [Fault(table, text) for text in texts]

    def lie_in(self, table: str) -> bool:
        """Say whether there is a fault in a table or in one within it."""
        return any(fault.table == table or fault.table.startswith(f"{table}.") for fault in self._found)
