"""Two models side by side: what is asked of a night, and what came of it. No Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from biasspark.columns import SLICE, SUMMARISED_GAPS
from biasspark.config import show_value
from biasspark.errors import ConfigError
from biasspark.report.side_by_side_metrics import COMPARED, SUITE_TITLES, WORST_AUC, Row
from biasspark.tables.runs import Run

SORTS = (WORST_AUC, *COMPARED)
"""What rows can be sorted by."""


def check_models(first: str, second: str) -> None:
    """Refuse to compare a model with itself.

    Raises
    ------
    ConfigError
        If both names are the same.
    """
    if first == second:
        raise ConfigError(f"models: {show_value(first)} twice. Two models stand side by side. Name two different ones.")


@dataclass(frozen=True, kw_only=True)
class Question:
    """Which models, A and B, are compared, and which rows are wanted.

    Attributes
    ----------
    models
        Two different names.
    slices
        Names in the order of the tables; all slices if none is named, ``all`` first.
    sort
        One of `SORTS`: by which metric of A, the worst first. Of an AUC that is the lowest, of a gap the farthest from
        0.
    crossed
        Whether crossed pairs of identities are wanted, too.
    limit
        Rows a slice at most; all if None.

    Raises
    ------
    ConfigError
        If both models are the same.
    """

    models: tuple[str, str]
    slices: tuple[str, ...] = ()
    sort: str = WORST_AUC
    crossed: bool = False
    limit: int | None = None

    def __post_init__(self) -> None:
        """Refuse to compare a model with itself."""
        check_models(*self.models)


@dataclass(frozen=True, kw_only=True)
class SliceRows:
    """The rows of one slice, worst first, and how many identities it has where not all are here."""

    name: str
    rows: Sequence[Row]
    n_identities: int


@dataclass(frozen=True, kw_only=True)
class SideBySide:
    """The answer: the rows of each slice, with ``columns``, from one published run."""

    question: Question
    run: Run
    columns: tuple[str, ...]
    slices: tuple[SliceRows, ...]

    @property
    def n_rows(self) -> int:
        """How many rows there are, all slices together."""
        return sum(len(part.rows) for part in self.slices)

    @property
    def source(self) -> str:
        """Where the numbers come from, in words."""
        return f"corpus {self.run.corpus}, {self.run.run_date}, run {self.run.run_id}"

    def describe_extent(self, part: SliceRows) -> str:
        """Say how many identities of a slice there are, and in what order."""
        sort = self.question.sort
        title = SUITE_TITLES.get(sort, "AUC")
        worst = f"largest |{title}|" if sort in SUMMARISED_GAPS else f"lowest {title}"
        extent = "1 identity" if part.n_identities == 1 else f"{part.n_identities:,} identities"
        if len(part.rows) < part.n_identities:
            extent = f"{len(part.rows):,} of {extent} (--limit shows more)"
        return f"{extent}, those with the {worst} of A first"


def group_by_slice(rows: Iterable[Row], slices: Sequence[str]) -> tuple[SliceRows, ...]:
    """Sort rows that have ``place`` and ``n_identities`` into their slices; a slice without rows is there, too."""
    found: dict[str, list[Row]] = {name: [] for name in slices}
    for row in sorted(rows, key=lambda row: row["place"]):
        found[row[SLICE]].append(row)
    return tuple(
        SliceRows(name=name, rows=own, n_identities=own[0]["n_identities"] if own else 0) for name, own in found.items()
    )
