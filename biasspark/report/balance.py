"""Label balance as a heat map: identities down, buckets of text lengths across."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from biasspark.columns import IDENTITY, OVERALL
from biasspark.report.cells import Cell, is_weak, shade_share, show_count, show_interval, show_percent
from biasspark.report.definitions import say_reason
from biasspark.report.facts import NightFacts, Row

_EVERY_LENGTH = "(all)"
_Z = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class BalanceRow:
    """One identity with a cell a bucket."""

    identity: str
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Balance:
    """The heat map: its columns and its rows, all rows of the corpus first."""

    buckets: Sequence[str]
    rows: Sequence[BalanceRow]


def tabulate_balance(facts: NightFacts) -> Balance | None:
    """Return the shares of positives by identity and bucket; None where the night has none.

    The highest share of every length comes first, but of those that enough rows tell of.
    """
    rows = facts.rows("label_balance")
    if not rows:
        return None
    lengths = {row["bucket"]: row["length_low"] for row in rows}
    buckets = sorted(lengths, key=lambda name: (name == _EVERY_LENGTH, lengths[name] or 0, name))
    by_key = {(row[IDENTITY], row["bucket"]): row for row in rows}
    names = sorted({row[IDENTITY] for row in rows}, key=lambda name: _place(by_key.get((name, _EVERY_LENGTH)), name))
    titles = ["every length" if name == _EVERY_LENGTH else name for name in buckets]
    return Balance(titles, [BalanceRow(n, [_cell(by_key.get((n, bucket))) for bucket in buckets]) for n in names])


def _place(row: Row | None, name: str) -> tuple[bool, bool, float, str]:
    cell = _cell(row)
    return name != OVERALL, cell.weak or cell.value is None, -(cell.value or 0.0), name


def _cell(row: Row | None) -> Cell:
    if row is None or row["positive_rate"] is None:
        return Cell(text="–", note=say_reason(row["reason"]) if row and row.get("reason") else "no rows")
    add, (low, high) = row["n_negatives_to_add"], bound_share(row["n_positive"], row["n_rows"])
    counted = f"{show_count(row['n_positive'])} of {show_count(row['n_rows'])}"
    return Cell(
        text=show_percent(row["positive_rate"], 0),
        interval=f"+{show_count(add)}" if add else "",
        shade=shade_share(row["positive_rate"]),
        value=row["positive_rate"],
        note=f"{counted} rows, {show_interval(low, high, digits=2)}",
        weak=is_weak(low, high),
    )


def bound_share(n: int, of: int) -> tuple[float, float]:
    """Return the ends of the interval of a share at the level 0.95, by Wilson's score (JASA 22:209, 1927)."""
    middle, half = n + _Z**2 / 2, _Z * math.sqrt(n * (of - n) / of + _Z**2 / 4)
    return (middle - half) / (of + _Z**2), (middle + half) / (of + _Z**2)
