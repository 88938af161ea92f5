"""Numbers as a report shows them: digits, intervals, colors, and tooltips."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from biasspark.columns import EVERY_LENGTH, OVERALL, SUMMARIZED_GAPS
from biasspark.report.definitions import METHODS, describe_reason
from biasspark.text import format_count, show_p_value

Row: TypeAlias = dict[str, Any]

WIDE = 0.1
"""A value with a wider interval rests on too few rows to act on."""

N_COLORS = 21
"""The number of colors of each scale."""

DASH = "–"
MINUS = "−"


@dataclass(frozen=True, kw_only=True)
class TableCell:
    """A number as a table shows it, or a dash.

    For a sum over identities, ``interval`` says how many of them rest on too few rows. ``difference``, from the
    background or from all rows, is shown after the number. ``color`` is a CSS class. ``note``, the tooltip, says why
    there is no value, or how the interval was computed. A ``weak`` value rests on too few rows: its interval, or that
    of a part of a sum, is missing or wide.
    """

    text: str
    difference: str = ""
    interval: str = ""
    color: str = ""
    value: float | None = None
    note: str = ""
    weak: bool = False

    @property
    def classes(self) -> str:
        """The CSS classes: the color, and ``w`` for a weak value, which leaves only an edge of the color."""
        return f"{self.color} w" if self.color and self.weak else self.color


def auc_color(value: float | None) -> str:
    """Return the class of an AUC: ``a0`` at 0.5 or below, the worst, to ``a20`` at 1."""
    return _color("a", None if value is None else 2 * value - 1)


def gap_color(value: float | None) -> str:
    """Return the class of a gap: ``g0`` at -0.5, ``g10`` at 0, ``g20`` at 0.5."""
    return _color("g", None if value is None else value + 0.5)


def share_color(value: float | None) -> str:
    """Return the class of a share: ``p0`` at 0, ``p20`` at 1."""
    return _color("p", value)


def root_share_color(value: float | None, largest: float) -> str:
    """Return the class of a share on a square-root scale, which separates small ones: ``p10`` at ``largest`` / 4."""
    return share_color(None if value is None else math.sqrt(value / largest) if largest else 0.0)


def _color(scale: str, position: float | None) -> str:
    return "" if position is None else f"{scale}{round((N_COLORS - 1) * min(max(position, 0.0), 1.0))}"


def format_decimal(value: float, digits: int, signed: bool = True) -> str:
    """Return a number with a fixed number of decimals in ASCII; zero never has a minus."""
    return f"{value:{'+' if signed else ''}z.{digits}f}"


def show_number(value: float | None, digits: int = 3, *, signed: bool = False) -> str:
    """Return a number with a fixed number of decimals and a typographic minus; a dash for None."""
    return DASH if value is None else format_decimal(float(value), digits, signed).replace("-", MINUS)


def show_count(value: int | Decimal | None) -> str:
    """Return a count with separators; a dash for None."""
    return DASH if value is None else f"{int(value):,}"


def show_labels(n_positive: int | Decimal | None, n_negative: int | Decimal | None) -> str:
    """Return the counts of both labels: ``1 positive, 1,200 negatives``."""
    counts = {"positive": n_positive, "negative": n_negative}
    return ", ".join(f"{DASH} {label}s" if n is None else format_count(int(n), label) for label, n in counts.items())


def show_percent(value: float | None, digits: int = 1) -> str:
    """Return a share as a percentage; a dash for None."""
    return DASH if value is None else f"{100 * value:.{digits}f}%"


def show_interval(low: float | None, high: float | None, *, signed: bool = False, digits: int = 3) -> str:
    """Return the ends of an interval, empty if either is missing."""
    if low is None or high is None:
        return ""
    return f"{show_number(low, digits, signed=signed)} to {show_number(high, digits, signed=signed)}"


def drop_zeros(text: str) -> str:
    """Drop leading zeros, so 0.868 becomes .868: columns of intervals are narrow."""
    return re.sub(r"(?<![\d.])0\.", ".", text)


def show_p(value: float | None) -> str:
    """Return a p-value with three decimals, a smaller one as ``< 0.001``."""
    return DASH if value is None else show_p_value(value, 3)


def interval_cell(  # noqa: PLR0913 - the parts of a cell
    value: float | None,
    low: float | None = None,
    high: float | None = None,
    *,
    signed: bool = False,
    color: str = "",
    note: str = "",
) -> TableCell:
    """Return a number with its interval as a cell, which is weak if the interval is missing or wide."""
    text, interval = show_number(value, signed=signed), show_interval(low, high, signed=signed)
    weak = is_imprecise(low, high)
    return TableCell(text=text, interval=interval, color=color, value=value, note=note, weak=weak)


def metric_cell(row: Row | None, name: str) -> TableCell:
    """Return a metric of the suite, or an overall AUC, as a cell; a dash without a row."""
    if not row:
        return TableCell(text=DASH, note="not measured")
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    is_gap = name in SUMMARIZED_GAPS
    if value is None:
        return TableCell(text=DASH, note=f"no value: {describe_reason(row[f'{name}_reason'])}", weak=True)
    color, note = gap_color(value) if is_gap else auc_color(value), METHODS.get(row.get(f"{name}_method") or "", "")
    return interval_cell(value, low, high, signed=is_gap, color=color, note=note)


def sum_cell(row: Row | None, column: str) -> TableCell:
    """Return a sum or mean over identities, marked if some of these rest on too few rows (see `count_parts`)."""
    if row is None:
        return TableCell(text=DASH)
    value, n_weak = row[column], row[f"{column}_weak"]
    counts = f"{n_weak:,} of {format_count(row[f'{column}_n'], 'identity', 'identities')}" if n_weak else ""
    note = f"{counts} rest on too few rows" if n_weak else ""
    return TableCell(text=show_number(value), value=value, interval=counts, note=note, weak=bool(n_weak))


def is_weak(row: Row, name: str) -> bool:
    """Return whether the interval of a column is missing or wide."""
    return is_imprecise(row[f"{name}_low"], row[f"{name}_high"])


def goodness(value: float, name: str) -> float:
    """Return a value such that lower is worse: an AUC as it is, or minus the size of a gap."""
    return -abs(value) if name in SUMMARIZED_GAPS else value


def is_imprecise(low: float | None, high: float | None) -> bool:
    """Return whether an interval is missing or wide."""
    return low is None or high is None or high - low > WIDE


def describe_outside(balance: Sequence[Row]) -> str:
    """Return a sentence on the rows of ``label_balance`` that are in no length bin; empty if none, or unknown."""
    counts = {row["bucket"]: row for row in balance if row["identity"] == OVERALL}
    whole, buckets = counts.pop(EVERY_LENGTH, {}).get("n_rows"), list(counts.values())
    sizes = [row["n_rows"] for row in buckets]
    if not sizes or None in (whole, *sizes) or whole == sum(sizes):
        return ""
    n_outside = whole - sum(sizes)
    low, high = min(row["length_low"] for row in buckets), max(row["length_high"] for row in buckets)
    are = "is" if n_outside == 1 else "are"
    return f"{n_outside:,} of {whole:,} rows {are} in no bucket: below {low:,}, above {high:,}, or unknown."
