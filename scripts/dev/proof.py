"""Compare published tables with the oracle: every row of a table, and every number of a row.

Reasons are not compared, nor the tables that the oracle does not compute, such as those of the gate.

Used by scripts/dev/soak_test.py.
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

from tests.oracle.run_tables import KEYS, Values, compute_tables

TOLERANCE = 1e-12

Rows = dict[tuple[Any, ...], Values]
"""Rows of a table by their keys."""


class ProofError(Exception):
    """A published table differs from the oracle."""


@dataclass
class Proof:
    """How many numbers of each table agree with the oracle, and their largest difference."""

    numbers: Counter[str] = field(default_factory=Counter)
    worst: float = 0.0


def prove(warehouse: Path, corpora: Mapping[date, Path], config: Path) -> Proof:
    """Compute every run from its corpus, and compare.

    Raises `ProofError` at the first missing or superfluous row, or the first value that differs: a float by more than
    `TOLERANCE`, counts and names at all.
    """
    proof, settings = Proof(), tomllib.loads(config.read_text("utf-8"))
    with duckdb.connect() as connection:
        connection.execute((warehouse / "views.duckdb.sql").read_text("utf-8"))
        for run_date, corpus in corpora.items():
            for table, expected in compute_tables(corpus, settings).items():
                published = read_rows(connection, table, run_date)
                compare_rows(proof, f"{run_date}: {table}", table, published, expected)
    return proof


def read_rows(connection: duckdb.DuckDBPyConnection, table: str, run_date: date) -> Rows:
    """Read the published rows of a date by their keys."""
    result = connection.execute(f"SELECT * FROM latest_{table} WHERE run_date = ?", [run_date])
    names = [column[0] for column in result.description]
    rows = [dict(zip(names, values, strict=True)) for values in result.fetchall()]
    by_key = {tuple(row[name] for name in KEYS[table]): row for row in rows}
    if len(by_key) != len(rows):
        raise ProofError(f"{run_date}: {table} has two rows of one key.")
    return by_key


def compare_rows(proof: Proof, where: str, table: str, published: Rows, expected: Rows) -> None:
    if published.keys() != expected.keys():
        odd = sorted(map(str, published.keys() ^ expected.keys()))
        raise ProofError(f"{where} and the oracle do not have the same rows: {odd[:5]}.")
    for key, values in expected.items():
        compare_row(proof, f"{where}, {', '.join(map(str, key))}", table, published[key], values)


def compare_row(proof: Proof, where: str, table: str, published: Values, expected: Values) -> None:
    """Compare the values that the oracle computes, and count the numbers among them."""
    for name, value in expected.items():
        if name not in published:
            raise ProofError(f"{where}: {table} lacks {name}.")
        difference = differ(published[name], value)
        if not difference <= TOLERANCE:
            raise ProofError(f"{where}: {name} is {published[name]}, the oracle says {value}.")
        proof.worst = max(proof.worst, difference)
        proof.numbers[table] += isinstance(value, int | float)


def differ(published: Any, expected: Any) -> float:
    """Return the difference of two values: 0 or infinity for counts, names and NULL."""
    if isinstance(expected, frozenset):
        return 0.0 if published in expected else math.inf
    if isinstance(expected, float) and isinstance(published, float):
        return abs(published - expected)
    return 0.0 if published == expected and isinstance(published, int | str | Decimal | None) else math.inf
