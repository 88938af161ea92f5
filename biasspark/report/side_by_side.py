"""Two models side by side: every identity with the metrics of both, and by how much the second differs.

The form of Tables 3 and 6 of "Nuanced Metrics".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from biasspark.columns import ALL_ROWS, SUMMARIZED_AUCS, SUMMARIZED_GAPS
from biasspark.errors import ConfigError, InputError
from biasspark.report.cells import WIDE, Row, format_decimal
from biasspark.report.definitions import SUITE, SUITE_TITLES
from biasspark.tables.runs import Run
from biasspark.text import format_count, list_choices, show_value

WORST_AUC = "worst_auc"
"""The lowest of an identity's subgroup, BPSN and BNSP AUC."""

SORT_KEYS = (WORST_AUC, *SUITE)
_SIDES = ("first", "second")
_PARTS = ("_low", "_high", "_reason")

KEY = ("run_date", "corpus", "slice", "identity", "crossed", "run_id")
"""The columns that identify a row, as far as the metrics have them."""

NEEDED = (
    *("model", "slice", "identity", "n_subgroup_negative", "n_subgroup_positive", "subgroup_positive_rate"),
    *(f"{name}{part}" for name in SUITE for part in ("", *_PARTS)),
)
"""The columns of ``bias_metrics`` that every comparison needs."""

NAMED = ("bias", "bias_size")
"""Columns of ``bias_metrics`` that older runs lack."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """The two models A and B to compare, and the rows to show.

    Without ``slices`` all are shown, ``all`` first; without ``limit`` all rows of a slice; ``crossed`` adds crossed
    pairs; identities with fewer rows than ``min_rows`` in either model are left out. ``sort`` is one of `SORT_KEYS`, of
    A: the lowest AUC first, or the gap farthest from 0. Raises as `check_models`.
    """

    models: tuple[str, str]
    slices: tuple[str, ...] = ()
    sort: str = WORST_AUC
    crossed: bool = False
    min_rows: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        """Refuse to compare a model with itself."""
        check_models(*self.models)


class SliceRows(NamedTuple):
    """The shown rows of one slice, the worst first, how many identities it has, and how many have too few rows."""

    name: str
    rows: Sequence[Row]
    n_identities: int
    n_small: int = 0


@dataclass(frozen=True, kw_only=True)
class SideBySide:
    """The rows of each slice with their columns, from one published run."""

    request: Request
    run: Run
    columns: tuple[str, ...]
    slices: tuple[SliceRows, ...]

    @property
    def source(self) -> str:
        """The run of the numbers."""
        return f"corpus {self.run.corpus}, {self.run.run_date}, run {self.run.run_id}"

    def describe_size(self, part: SliceRows) -> str:
        """Return how many identities of a slice are shown, and in what order."""
        sort = self.request.sort
        title = SUITE_TITLES.get(sort, "AUC")
        worst = f"largest |{title}|" if sort in SUMMARIZED_GAPS else f"lowest {title}"
        size = format_count(part.n_identities, "identity", "identities")
        n_large = part.n_identities - part.n_small
        hidden = ["--limit shows more"] if len(part.rows) < n_large else []
        if part.n_small:
            hidden.append(f"{part.n_small:,} left out for under {format_count(self.request.min_rows, 'row')}")
        if hidden:
            size = f"{len(part.rows):,} of {size} ({', '.join(hidden)})"
        return f"{size}, those with the {worst} of A first"


def check_models(first: str, second: str) -> None:
    """Refuse to compare a model with itself.

    Raises `ConfigError` if both names are the same.
    """
    if first == second:
        raise ConfigError(f"models: {show_value(first)} twice. Two models stand side by side. Name two different ones.")


def side_by_side(metrics: pa.Table, first: str, second: str) -> pa.Table:
    """Put the metrics of two models on one row for each slice and identity, with their differences.

    The metrics have the columns `NEEDED` of ``bias_metrics``, and any of `KEY`. There is a row for each key that either
    model has, sorted: the key, ``first_model, second_model``; for either side (here the first) ``n_subgroup_first``,
    the rows in the identity, ``positive_rate_first``, the share of positives among them, and ``worst_auc_first``, the
    lowest of subgroup, BPSN and BNSP AUC; ``worst_auc_difference``, and ``worse``, whether that is below 0; for each X
    of the three AUCs and the two gaps ``X_difference`` and for either side ``X_first, X_first_low, X_first_high,
    X_first_reason``; if the metrics have them ``bias_first, bias_size_first``; last ``run_id``.

    A difference of AUCs is second - first, -1 to 1, below 0 if the second is worse. Of gaps it is |second| - |first|,
    -0.5 to 0.5, above 0 if the second is worse. It is NULL if either value is. ``X_doubtful`` says whether either value
    rests on too few rows: its interval is missing or wider than `WIDE`. Raises `InputError` if a model has several rows
    of one key, as in the metrics of several nights without their ``run_date``.
    """
    key = [name for name in KEY if name in metrics.column_names]
    _check_unique(metrics.filter(pc.is_in(pc.field("model"), pa.array([first, second]))), ["model", *key])
    sides = [_side(metrics.filter(pc.field("model") == model), key) for model in (first, second)]
    left, right = (f"_{side}" for side in _SIDES)
    both = sides[0].join(sides[1], key, join_type="full outer", left_suffix=left, right_suffix=right)
    both = both.sort_by([(name, "ascending") for name in key])
    columns = {name: both[name] for name in key if name != "run_id"}
    columns |= {
        f"{side}_model": pa.array([name] * len(both), pa.string())
        for side, name in zip(_SIDES, (first, second), strict=True)
    }
    for name in ("n_subgroup", "positive_rate", WORST_AUC, *SUITE):
        columns |= {f"{name}_{side}": both[f"{name}_{side}"] for side in _SIDES}
        if name in SORT_KEYS:
            columns[f"{name}_difference"] = _difference(both, name)
        if name == WORST_AUC:
            columns["worse"] = pc.less(columns[f"{name}_difference"], 0.0)
        elif name in SUITE:
            columns[f"{name}_doubtful"] = pc.or_(*(_is_doubtful(both, name, side) for side in _SIDES))
            columns |= {f"{name}_{side}{part}": both[f"{name}{part}_{side}"] for side in _SIDES for part in _PARTS}
    named = [f"{name}_{side}" for name in NAMED if name in metrics.column_names for side in _SIDES]
    columns |= {name: both[name] for name in named}
    return pa.table(columns | {name: both[name] for name in key if name == "run_id"})


def _check_unique(metrics: pa.Table, key: Sequence[str]) -> None:
    n_rows = metrics.group_by(key, use_threads=False).aggregate([([], "count_all")])
    repeated = n_rows.filter(pc.field("count_all") > 1).to_pylist()
    if repeated:
        example = ", ".join(f"{name} {show_value(repeated[0][name])}" for name in key if repeated[0][name] is not None)
        raise InputError(
            f"metrics: {format_count(len(repeated), 'key')} of several rows, such as {example}. Each model has one row "
            "for each slice and identity of a run. Choose one run, or keep the columns run_date, corpus and run_id."
        )


def list_without_value(metrics: pa.Table, models: Sequence[str]) -> tuple[str, ...]:
    """Return those of some models of which no row has any metric."""
    by_model = {model: metrics.filter(pc.field("model") == model) for model in models}
    return tuple(model for model, rows in by_model.items() if all(rows[name].null_count == len(rows) for name in SUITE))


def _side(metrics: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return what one model has for each key."""
    columns = {name: metrics[name] for name in key}
    columns["n_subgroup"] = pc.add(metrics["n_subgroup_negative"], metrics["n_subgroup_positive"])
    columns["positive_rate"] = metrics["subgroup_positive_rate"]
    columns[WORST_AUC] = pc.min_element_wise(*(metrics[name] for name in SUMMARIZED_AUCS))
    named = [name for name in NAMED if name in metrics.column_names]
    values = (*named, *(f"{name}{part}" for name in SUITE for part in ("", *_PARTS)))
    return pa.table(columns | {column: metrics[column] for column in values})


def _difference(both: pa.Table, name: str) -> pa.ChunkedArray:
    first, second = both[f"{name}_first"], both[f"{name}_second"]
    return pc.subtract(pc.abs(second), pc.abs(first)) if name in SUMMARIZED_GAPS else pc.subtract(second, first)


def _is_doubtful(both: pa.Table, name: str, side: str) -> pa.ChunkedArray:
    """Return whether a value is there, and rests on too few rows."""
    width = pc.subtract(both[f"{name}_high_{side}"], both[f"{name}_low_{side}"])
    return pc.and_(pc.is_valid(both[f"{name}_{side}"]), pc.fill_null(pc.greater(width, WIDE), fill_value=True))


def leave_out_small(compared: pa.Table, min_rows: int) -> pa.Table:
    """Return what `side_by_side` returns without the identities that have fewer rows in either model."""
    sizes = [pc.fill_null(compared[f"n_subgroup_{side}"], 0) for side in _SIDES]
    return compared.filter(pc.greater_equal(pc.min_element_wise(*sizes), min_rows))


def compare_side_by_side(metrics: pa.Table, run: Run, request: Request) -> SideBySide:
    """Return what is asked for of the ``bias_metrics`` of one run.

    Raises `InputError` if the run lacks a model or a slice, with those that it has.
    """
    slices = _choose_slices(metrics, request)
    chosen = metrics.filter(pc.is_in(metrics["slice"], pa.array(slices)))
    if not request.crossed:
        chosen = chosen.filter(~pc.field("crossed"))
    compared = side_by_side(chosen, *request.models)
    n_all = Counter(compared["slice"].to_pylist())
    rows = _sort_worst_first(leave_out_small(compared, request.min_rows).to_pylist(), request.sort)
    parts = []
    for name in slices:
        large = [row for row in rows if row["slice"] == name]
        parts.append(SliceRows(name, large[: request.limit], n_all[name], n_all[name] - len(large)))
    return SideBySide(request=request, run=run, columns=tuple(compared.column_names), slices=tuple(parts))


def _sort_worst_first(rows: Sequence[Row], sort: str) -> list[Row]:
    """Return rows by a metric of the first model: the lowest AUC or the largest gap first, NULL last, then by name."""

    def order(row: Row) -> tuple[bool, float, str]:
        value = row[f"{sort}_first"] or 0.0
        return row[f"{sort}_first"] is None, -abs(value) if sort in SUMMARIZED_GAPS else value, row["identity"]

    return sorted(rows, key=order)


def _choose_slices(metrics: pa.Table, request: Request) -> tuple[str, ...]:
    """Check the names of a request against a run, and return the slices to show."""
    models, slices = (sorted(pc.unique(metrics[name]).to_pylist()) for name in ("model", "slice"))
    asked = (("models", request.models, models), ("slice", request.slices, slices))
    if faults := [
        f"{key}: {show_value(name)}. The published run has {list_choices(known) or 'none'}. Name one that it has."
        for key, names, known in asked
        for name in names
        if name not in known
    ]:
        raise InputError(*faults)
    return tuple(dict.fromkeys(request.slices or sorted(slices, key=lambda name: (name != ALL_ROWS, name))))


def is_worse(row: Row, name: str, digits: int) -> bool:
    """Return whether B is worse than A in a metric, as far as the shown digits tell."""
    difference = row[f"{name}_difference"]
    if difference is None:
        return False
    shown = float(format_decimal(difference, digits))
    return shown > 0 if name in SUMMARIZED_GAPS else shown < 0
