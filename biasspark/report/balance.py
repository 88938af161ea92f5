"""Label balance as a heat map: identities down, buckets of text lengths across."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from biasspark.columns import EVERY_LENGTH, IDENTITY, OVERALL
from biasspark.report.cells import DASH, TableCell, is_weak, shade_share, show_count, show_interval, show_percent
from biasspark.report.definitions import say_reason
from biasspark.report.facts import NightFacts, Row
from biasspark.report.intervals import bound_share
from biasspark.report.ledger import read_level

_NO_ROWS = TableCell(text=DASH, note="no rows")


@dataclass(frozen=True)
class BalanceRow:
    """One identity with a cell per bucket."""

    identity: str
    cells: Sequence[TableCell]


@dataclass(frozen=True)
class Balance:
    """The heat map: its columns and its rows, all rows of the corpus first."""

    buckets: Sequence[str]
    rows: Sequence[BalanceRow]


def tabulate_balance(facts: NightFacts) -> Balance | None:
    """Return the shares of positives by identity and bucket; None where the night has none.

    The identities go by how high the share of every length is at least, those with enough rows first.
    """
    rows = facts.rows("label_balance")
    if not rows:
        return None
    lengths = {row["bucket"]: row["length_low"] for row in rows}
    buckets = sorted(lengths, key=lambda name: (name == EVERY_LENGTH, lengths[name] or 0, name))
    level = read_level(facts.run)
    cells = {(row[IDENTITY], row["bucket"]): _cell(row, level) for row in rows}
    lows = {row[IDENTITY]: _find_low(row, level) for row in rows if row["bucket"] == EVERY_LENGTH}
    names = sorted(
        {row[IDENTITY] for row in rows},
        key=lambda name: _place(cells.get((name, EVERY_LENGTH)), lows.get(name), name),
    )
    titles = ["all lengths" if name == EVERY_LENGTH else name for name in buckets]
    return Balance(titles, [BalanceRow(n, [cells.get((n, bucket), _NO_ROWS) for bucket in buckets]) for n in names])


def _find_low(row: Row, level: float) -> float | None:
    return None if row["positive_rate"] is None else bound_share(row["n_positive"], row["n_rows"], level)[0]


def _place(cell: TableCell | None, low: float | None, name: str) -> tuple[bool, bool, float, str]:
    own = cell or _NO_ROWS
    return name != OVERALL, own.weak or low is None, -(low or 0.0), name


def _cell(row: Row, level: float) -> TableCell:
    if row["positive_rate"] is None:
        return TableCell(text=DASH, note=say_reason(row["reason"])) if row.get("reason") else _NO_ROWS
    add, (low, high) = row["n_negatives_to_add"], bound_share(row["n_positive"], row["n_rows"], level)
    counted = f"{show_count(row['n_positive'])} of {show_count(row['n_rows'])}"
    return TableCell(
        text=show_percent(row["positive_rate"], 0),
        interval=f"+{show_count(add)}" if add else "",
        shade=shade_share(row["positive_rate"]),
        value=row["positive_rate"],
        note=f"{counted} rows, {show_interval(low, high, digits=2)}",
        weak=is_weak(low, high),
    )
