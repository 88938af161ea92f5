"""What a source prints, as values: its tables and figures, and the numbers and pictures that are made for each."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

PRINTED = "printed"
ROUNDING = 1e-4
"""Of a unit of the last printed digit: the error of a difference of two doubles."""
SMALL = 0.001


@dataclass(frozen=True)
class Cell:
    """A printed value, as the source has it, next to ours. If the whole column is counts, ours has no decimals."""

    row: str
    column: str
    printed: str
    ours: float | None
    is_count: bool = False

    @cached_property
    def value(self) -> float | None:
        """The printed value as a number; None where the source prints a word or nothing."""
        try:
            return float(self.printed)
        except ValueError:
            return None

    @property
    def decimals(self) -> int:
        """Decimals of the printed value; two where it has one, since 0.3 is how the papers print 0.30."""
        n_decimals = len(self.printed.partition(".")[2])
        return 2 if n_decimals == 1 else n_decimals

    @property
    def difference(self) -> float | None:
        """Our value minus the printed one."""
        return None if self.value is None or self.ours is None else self.ours - self.value

    @property
    def n_shown(self) -> int:
        """Decimals of ours: one more than are printed, at most seven."""
        return min(self.decimals + 1, 7)

    @property
    def agrees(self) -> bool:
        """Whether the difference is at most one unit of the last printed digit, which may be rounded or cut off."""
        return self.difference is not None and abs(self.difference) <= 10.0**-self.decimals * (1 + ROUNDING)


@dataclass(frozen=True)
class Numbers:
    """A table of a source next to ours."""

    printed: pd.DataFrame
    """Values as printed, as text; empty where nothing is printed. Its index and columns are those of the table."""
    ours: pd.DataFrame
    """Ours: numbers, NaN where there is none."""
    title: str = ""
    """A title that distinguishes it from other tables of the same exhibit."""
    against: str = PRINTED
    """What `printed` is, if the source does not print it."""

    @cached_property
    def rows(self) -> list[tuple[str, list[Cell]]]:
        """The cells, row by row."""
        counts = {name for name, kind in self.ours.dtypes.items() if pd.api.types.is_integer_dtype(kind)}
        ours = self.ours.reindex(index=self.printed.index, columns=self.printed.columns).astype(float)
        rows = []
        for name, texts, values in zip(map(str, ours.index), self.printed.to_numpy(), ours.to_numpy(), strict=True):
            known = [None if np.isnan(value) else float(value) for value in values]
            cells = zip(ours.columns, texts, known, strict=True)
            rows.append((name, [Cell(name, str(key), text, value, key in counts) for key, text, value in cells]))
        return rows

    def __iter__(self) -> Iterator[Cell]:
        return (cell for _, cells in self.rows for cell in cells)


@dataclass(frozen=True)
class Picture:
    """A figure, and what it shows."""

    figure: Figure
    caption: str


Made: TypeAlias = Numbers | Picture
Make: TypeAlias = Callable[[Path], Iterable[Made]]
"""Makes what an exhibit shows, given the folder of the shared data."""


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of a source."""

    name: str
    """As the source calls it."""
    title: str
    """What it shows."""
    data: str = ""
    """The data of ours."""
    why: str = ""
    """Why ours differs, or why there is none."""
    make: Make | None = None
    """None where nothing is computed; `why` says why."""

    @property
    def slug(self) -> str:
        """The name on the command line, such as ``table-2``."""
        return self.name.lower().replace(" ", "-")


@dataclass(frozen=True)
class Source:
    """A paper, slides or a notebook, with all of its tables and figures in their order."""

    key: str
    citation: str
    notes: str = ""
    """What holds for all of its exhibits."""
    exhibits: list[Exhibit] = field(default_factory=list)

    def exhibit(self, name: str, title: str, *, data: str, why: str = "") -> Callable[[Make], Make]:
        """Register the function that makes a table or figure."""

        def register(make: Make) -> Make:
            self.exhibits.append(Exhibit(name, title, data, why, make))
            return make

        return register

    def leave_out(self, name: str, title: str, why: str) -> None:
        """Register a table or figure that is not made, and why."""
        self.exhibits.append(Exhibit(name, title, why=why))


def summarize(cells: Iterable[Cell]) -> str:
    """Return in a sentence how far our values are from those printed; empty if no two can be compared."""
    printed = [cell for cell in cells if cell.value is not None]
    compared = [(abs(cell.difference), cell) for cell in printed if cell.difference is not None]
    if not compared:
        return ""
    n_agree = sum(cell.agrees for _, cell in compared)
    median = statistics.median(difference for difference, _ in compared)
    largest, cell = max(compared, key=lambda one: one[0])
    sizes = f"median difference {_show_size(median)}, largest {_show_size(largest)} ({cell.row}, {cell.column})"
    if largest < SMALL:
        sizes = f"differences below {SMALL}"
    without = f"; {len(printed) - len(compared)} without ours" if len(printed) > len(compared) else ""
    return f"{n_agree} of {len(compared)} values within a unit of the last digit; {sizes}{without}."


def _show_size(difference: float) -> str:
    if difference < SMALL:
        return f"below {SMALL}"
    return f"{difference:.2g}" if difference < 100 else f"{difference:,.0f}"


def read_printed(shared: Path, name: str) -> pd.DataFrame:
    """Return a table of a source, all values as the text that is printed; the first column is the index."""
    return pd.read_csv(shared / "papers" / f"{name}.csv", dtype=str, keep_default_na=False, index_col=0)


def read_data(shared: Path, name: str) -> pd.DataFrame:
    """Return the rows of a Parquet file of the shared data."""
    return pd.read_parquet(shared / "data" / f"{name}.parquet")


def split_by_model(table: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
    """Return columns of a table of biasspark, a row for each identity, named ``<model>_<column>``."""
    wide = table.pivot(index="identity", columns="model", values=list(columns))
    wide.columns = wide.columns.map(lambda pair: f"{pair[1]}_{pair[0]}")
    return wide
