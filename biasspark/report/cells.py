"""How one number is shown: its digits, its interval, its place on a scale of colours, and what else is said of it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from biasspark.columns import SUMMARISED_GAPS
from biasspark.config import show_p_value, show_visibly
from biasspark.report.definitions import METHODS, say_reason
from biasspark.report.side_by_side_metrics import write_value

WIDE = 0.1
"""An interval wider than this says too little to act on."""

_MOST_DIGITS, _ROUNDING = 7, 1e-6

N_SHADES = 21
_LAST = N_SHADES - 1
DASH = "–"
MINUS = "−"


@dataclass(frozen=True, kw_only=True)
class TableCell:
    """A number as a table shows it.

    Attributes
    ----------
    text
        The number, or a dash where there is none.
    interval
        Its ends, empty where there are none; of what has no interval, its counts.
    shade
        The class of its colour, empty where there is none.
    value
        What rows are sorted by, None at the end.
    note
        What a hover says besides: why there is no value, or how the interval was made.
    bounds
        How far the number may lie from the exact one, empty where it is exact.
    weak
        Whether evidence is insufficient: no value, no interval, or a wide one. Of a sum, whether that of a part is.
    """

    text: str
    interval: str = ""
    shade: str = ""
    value: float | None = None
    note: str = ""
    bounds: str = ""
    weak: bool = False

    @property
    def classes(self) -> str:
        """The classes of the cell: its colour, and ``w`` where it rests on too few rows, which leaves an edge of it."""
        return f"{self.shade} w" if self.shade and self.weak else self.shade


def shade_auc(value: float | None) -> str:
    """Return the class of an AUC: ``a0`` at 0.5 or below, the worst, to ``a20`` at 1."""
    return "" if value is None else f"a{_place(2 * value - 1)}"


def shade_gap(value: float | None) -> str:
    """Return the class of a gap: ``g0`` at -0.5, ``g10`` at 0, ``g20`` at 0.5."""
    return "" if value is None else f"g{_place(value + 0.5)}"


def shade_share(value: float | None, most: float = 1.0) -> str:
    """Return the class of a share: ``p0`` at none, ``p20`` at ``most``."""
    return "" if value is None else f"p{_place(value / most if most else 0.0)}"


def shade_share_finely(value: float | None, most: float) -> str:
    """Return the class of a share by its square root, which tells small ones apart: ``p10`` at ``most`` / 4."""
    return "" if value is None else shade_share(math.sqrt(value), math.sqrt(most))


def _place(part: float) -> int:
    return round(_LAST * min(max(part, 0.0), 1.0))


def show_number(value: float | None, digits: int = 3, *, signed: bool = False) -> str:
    """Write a number with so many decimals and a true minus; a dash where there is none."""
    return DASH if value is None else write_value(float(value), digits, signed).replace("-", MINUS)


def show_count(value: int | Decimal | None) -> str:
    """Write a count with separators; a dash where there is none."""
    return DASH if value is None else f"{int(value):,}"


def show_percent(value: float | None, digits: int = 1) -> str:
    """Write a share as a percentage; a dash where there is none."""
    return DASH if value is None else f"{100 * value:.{digits}f} %"


def show_interval(low: float | None, high: float | None, *, signed: bool = False, digits: int = 3) -> str:
    """Write the ends of an interval, empty where either is missing."""
    if low is None or high is None:
        return ""
    return f"{show_number(low, digits, signed=signed)} to {show_number(high, digits, signed=signed)}"


def drop_zeros(text: str) -> str:
    """Write .868 for 0.868 all over a text: columns of intervals are many."""
    return re.sub(r"(?<![\d.])0\.", ".", text)


def show_p(value: float | None) -> str:
    """Write a p-value; below a thousandth only that it is."""
    return DASH if value is None else show_p_value(value, 3)


def show_name(name: object) -> str:
    """Write a name from the data, characters that no one sees spelt out."""
    return show_visibly(str(name))


def metric_cell(row: Mapping[str, Any], name: str, digits: int = 3) -> TableCell:
    """Return a metric of the suite, or an overall AUC, as a cell."""
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    is_gap = name in SUMMARISED_GAPS
    if value is None:
        return TableCell(text=DASH, note=f"no value: {say_reason(row[f'{name}_reason'])}", weak=True)
    return TableCell(
        text=show_number(value, digits, signed=is_gap),
        interval=show_interval(low, high, signed=is_gap, digits=digits),
        shade=shade_gap(value) if is_gap else shade_auc(value),
        value=value,
        note="; ".join(filter(None, (METHODS.get(row.get(f"{name}_method") or ""), say_bounds(row, name)))),
        bounds=show_bounds(row, name),
        weak=is_weak(low, high),
    )


def show_bounds(row: Mapping[str, Any], name: str) -> str:
    """Write by how much a value of a row may differ from the exact one at most; empty where it is exact."""
    reach = _find_reach(row, name)
    if not reach:
        return ""
    digits = _digits_of(reach)
    return f"±{math.ceil(reach * 10**digits - _ROUNDING) / 10**digits:.{digits}f}"


def say_bounds(row: Mapping[str, Any], name: str) -> str:
    """Say within what the exact value lies; empty where the value is exact."""
    reach = _find_reach(row, name)
    if not reach:
        return ""
    low, high = (row[f"{name}_at_{end}"] for end in ("least", "most"))
    return f"exact value {show_interval(low, high, signed=name in SUMMARISED_GAPS, digits=_digits_of(reach) + 1)}"


def _find_reach(row: Mapping[str, Any], name: str) -> float:
    """Return how far a value is from the farther of its bounds, 0 where it has none."""
    value, low, high = (row.get(f"{name}{end}") for end in ("", "_at_least", "_at_most"))
    return 0.0 if value is None or low is None or high is None else max(value - low, high - value)


def _digits_of(reach: float) -> int:
    """Return how many decimals show a difference: three, or up to its first digit."""
    return min(max(3, math.ceil(-math.log10(reach))), _MOST_DIGITS)


def sum_cell(row: Mapping[str, Any], name: str, n_weak: int, n: int) -> TableCell:
    """Return a sum or mean over identities, ``n_weak`` of which rest on too few rows."""
    value, of = row[name], f"{n_weak:,} of {n:,} identities"
    said = (f"{of} rest on too few rows" if n_weak else "", say_bounds(row, name))
    return TableCell(
        text=show_number(value),
        value=value,
        interval=of if n_weak else "",
        note="; ".join(filter(None, said)),
        bounds=show_bounds(row, name),
        weak=n_weak > 0,
    )


def is_weak(low: float | None, high: float | None) -> bool:
    """Say whether an interval is missing, or too wide to act on."""
    return doubt(low, high) > 0


def doubt(low: float | None, high: float | None) -> int:
    """Say how far a value is from evidence: 0 with an interval that tells, 1 with a wide one, 2 without any."""
    return 2 if low is None or high is None else int(high - low > WIDE)
