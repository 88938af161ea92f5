"""Label balance as a heat map: identities down, buckets of text lengths across."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biasspark.columns import IDENTITY, OVERALL
from biasspark.report.cells import Cell, shade_share, show_count, show_percent
from biasspark.report.definitions import say_reason
from biasspark.report.facts import NightFacts, Row

_EVERY_LENGTH = "(all)"


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
    """Return the shares of positives by identity and bucket, the highest first; None where the night has none."""
    rows = facts.rows("label_balance")
    if not rows:
        return None
    lengths = {row["bucket"]: row["length_low"] for row in rows}
    buckets = sorted(lengths, key=lambda name: (name == _EVERY_LENGTH, lengths[name] or 0, name))
    by_key = {(row[IDENTITY], row["bucket"]): row for row in rows}
    names = sorted({row[IDENTITY] for row in rows}, key=lambda name: _place(by_key.get((name, _EVERY_LENGTH)), name))
    titles = ["every length" if name == _EVERY_LENGTH else name for name in buckets]
    return Balance(titles, [BalanceRow(n, [_cell(by_key.get((n, bucket))) for bucket in buckets]) for n in names])


def _place(row: Row | None, name: str) -> tuple[bool, float, str]:
    rate = row["positive_rate"] if row else None
    return name != OVERALL, -(rate if rate is not None else -1.0), name


def _cell(row: Row | None) -> Cell:
    if row is None or row["positive_rate"] is None:
        return Cell(text="–", note=say_reason(row["reason"]) if row and row.get("reason") else "no rows")
    add = row["n_negatives_to_add"]
    return Cell(
        text=show_percent(row["positive_rate"], 0),
        interval=f"+{show_count(add)}" if add else "",
        shade=shade_share(row["positive_rate"]),
        value=row["positive_rate"],
        note=f"{show_count(row['n_positive'])} of {show_count(row['n_rows'])} rows positive",
    )
