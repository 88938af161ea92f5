"""Two models side by side: what is asked of a night, what came of it, and how values are written. No Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from biasspark.columns import SLICE, SUMMARISED_AUCS, SUMMARISED_GAPS
from biasspark.config import show_value
from biasspark.errors import ConfigError
from biasspark.tables.runs import Run

Row = Mapping[str, Any]

COMPARED = (*SUMMARISED_AUCS, *SUMMARISED_GAPS)
"""The metrics that stand side by side, in the order of the papers."""

TITLES = {
    "subgroup_auc": "Subgroup AUC",
    "bpsn_auc": "BPSN AUC",
    "bnsp_auc": "BNSP AUC",
    "negative_aeg": "Negative AEG",
    "positive_aeg": "Positive AEG",
}
"""The headings of `COMPARED`, as the papers have them."""

WORST_AUC = "worst_auc"
"""The lowest of an identity's subgroup, BPSN and BNSP AUC."""

SORTS = (WORST_AUC, *COMPARED)
"""What rows can be sorted by."""

UNPAIRED = "A and B count different numbers of rows: some lack a score"


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
class Comparison:
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
        worst = f"largest |{TITLES[sort]}|" if sort in SUMMARISED_GAPS else f"lowest {TITLES.get(sort, 'AUC')}"
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


def is_worse(row: Row, name: str, digits: int) -> bool:
    """Say whether B is worse than A in a metric, so far as the digits that are shown tell."""
    difference = row[f"{name}_difference"]
    if difference is None:
        return False
    shown = float(write_value(difference, digits))
    return shown > 0 if name in SUMMARISED_GAPS else shown < 0


def write_value(value: float, digits: int, signed: bool = True) -> str:
    """Write a number with so many decimals; zeros alone never have a minus."""
    return f"{value:{'+' if signed else ''}z.{digits}f}"


def write_metric(row: Row, name: str, side: str, digits: int) -> str | None:
    """Write a metric of one model, None where it is NULL: an AUC without a sign, a gap with it."""
    value = row[f"{name}_{side}"]
    return None if value is None else write_value(value, digits, signed=name in SUMMARISED_GAPS)


def say_reason(row: Row, name: str, side: str) -> str:
    """Say why a metric of one model is NULL; a dash for an identity that the model lacks."""
    return row[f"{name}_{side}_reason"] or "-"


def drop_leading_zero(number: str) -> str:
    """Write .868 for 0.868: no value here passes 1, and a line is short."""
    return re.sub(r"^([+-]?)0\.", r"\1.", number)
