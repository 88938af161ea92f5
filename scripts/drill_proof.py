"""What a warehouse publishes, compared with the drill's oracle: every row of a table, and every number of a row.

Not proved are reasons, and the other tables, such as that of the gate.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from scripts.drill_oracle import KEYS, Values, compute_night

TOLERANCE = 1e-12
ROWS = "SELECT * FROM latest_{} WHERE run_date = ?"
ENDS = ("", "_at_least", "_at_most")
"""A value stands in three columns, which are the same unless scores were binned."""


class ProofError(Exception):
    """A published table is not what the oracle says."""


@dataclass
class Proof:
    """How many numbers of each table agree with the oracle, and by how much they differ at most."""

    numbers: Counter[str] = field(default_factory=Counter)
    worst: float = 0.0


def prove(warehouse: Path, corpora: Mapping[date, Path], config: Path) -> Proof:
    """Compute every night once more from its corpus, and compare.

    Raises
    ------
    ProofError
        At the first row that is one too many or missing, and the first value that differs by more than `TOLERANCE`, or
        at all where it is a count or a name.
    """
    proof, settings = Proof(), tomllib.loads(config.read_text("utf-8"))
    with duckdb.connect() as connection:
        connection.execute((warehouse / "views.duckdb.sql").read_text("utf-8"))
        for night, corpus in corpora.items():
            for table, wanted in compute_night(corpus, settings).items():
                found = read_rows(connection, table, night)
                if found.keys() != wanted.keys():
                    odd = sorted(map(str, found.keys() ^ wanted.keys()))
                    raise ProofError(f"{night}: {table} and the oracle do not have the same rows: {odd[:5]}.")
                for key, values in wanted.items():
                    compare_row(proof, f"{night}: {table}, {', '.join(map(str, key))}", table, found[key], values)
    return proof


def read_rows(connection: duckdb.DuckDBPyConnection, table: str, night: date) -> dict[tuple[Any, ...], Values]:
    """Read the published rows of a night by their keys."""
    result = connection.execute(ROWS.format(table), [night])
    names = [column[0] for column in result.description]
    rows = [dict(zip(names, values, strict=True)) for values in result.fetchall()]
    found = {tuple(row[name] for name in KEYS[table]): row for row in rows}
    if len(found) != len(rows):
        raise ProofError(f"{night}: {table} has two rows of one key.")
    return found


def compare_row(proof: Proof, where: str, table: str, found: Values, wanted: Values) -> None:
    """Compare the values that the oracle has, and count the numbers among them."""
    for name, value in ((name + end, value) for name, value in wanted.items() for end in ENDS):
        if name not in found:
            continue
        apart = differ(found[name], value)
        if not apart <= TOLERANCE:
            raise ProofError(f"{where}: {name} is {found[name]}, the oracle says {value}.")
        proof.worst = max(proof.worst, apart)
        proof.numbers[table] += isinstance(value, int | float)


def differ(found: Any, wanted: Any) -> float:
    """Say by how much a published value differs: a count, a name or NULL is the same, or is infinitely wrong."""
    if isinstance(wanted, frozenset):
        return 0.0 if found in wanted else math.inf
    if isinstance(wanted, float) and isinstance(found, float):
        return abs(found - wanted)
    return 0.0 if found == wanted and isinstance(found, int | str | Decimal | None) else math.inf
