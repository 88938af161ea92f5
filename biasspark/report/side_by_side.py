"""Two models side by side: every identity with the metrics of both and their differences.

The layout is that of Tables 3 and 6 of "Nuanced Metrics", as text for a terminal of 120 columns, Markdown, or CSV.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from biasspark.columns import ALL_ROWS, SUMMARIZED_AUCS, SUMMARIZED_GAPS
from biasspark.errors import ConfigError, InputError
from biasspark.report.cells import WIDE, Row, drop_zeros, format_decimal, goodness, is_weak
from biasspark.report.definitions import SUITE, SUITE_TITLES, describe_bias
from biasspark.report.report_data import check_unique, keep
from biasspark.report.text_formats import escape_markdown, write_csv
from biasspark.tables.runs import Run
from biasspark.text import cut_to_width, format_count, list_choices, measure_width, show_value, show_visibly

WORST_AUC = "worst_auc"
"""The lowest of an identity's subgroup, BPSN and BNSP AUC."""

SORT_KEYS = (WORST_AUC, *SUITE)
_SIDES = ("first", "second")
_PARTS = ("_low", "_high", "_reason")

KEY = ("run_date", "corpus", "slice", "identity", "crossed", "run_id")
"""The columns that identify a row. The metrics need not have all of them."""

_VALUES = ("bias", "bias_size", *(f"{name}{part}" for name in SUITE for part in ("", *_PARTS)))
NEEDED = (
    *("model", "slice", "identity", "n_subgroup_negative", "n_subgroup_positive", "subgroup_positive_rate"),
    *_VALUES,
)
"""The columns of ``bias_metrics`` that every comparison needs."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """The models A and B to compare, and the rows to show: by default all slices, and all rows of each.

    Identities with fewer rows than ``min_rows`` in either model are left out. Rows are sorted by a metric of A, one of
    `SORT_KEYS`: the lowest AUC first, or the gap farthest from 0. Raises `ConfigError` if both models are the same.
    """

    models: tuple[str, str]
    slices: tuple[str, ...] = ()
    sort: str = WORST_AUC
    crossed: bool = False
    min_rows: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        """Refuse to compare a model with itself."""
        first, second = self.models
        if first == second:
            twice = f"models: {show_value(first)} twice. A comparison takes two models. Name two different ones."
            raise ConfigError(twice)


class SliceRows(NamedTuple):
    """The shown rows of a slice, the worst first, and the numbers of its identities and of those with too few rows."""

    name: str
    rows: Sequence[Row]
    n_identities: int
    n_small: int = 0


@dataclass(frozen=True, kw_only=True)
class SideBySide:
    """The comparison of two models in one published run, slice by slice."""

    request: Request
    run: Run
    columns: tuple[str, ...]
    slices: tuple[SliceRows, ...]

    @property
    def source(self) -> str:
        """The run in words."""
        return f"corpus {self.run.corpus}, {self.run.run_date}, run {self.run.run_id}"

    def describe_size(self, part: SliceRows) -> str:
        """Describe how many identities of a slice are shown, and in what order."""
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


def side_by_side(metrics: pa.Table, first: str, second: str) -> pa.Table:
    """Return the table of `biasspark.side_by_side`, from the columns `NEEDED` of ``bias_metrics`` and any of `KEY`.

    It has a row for each key of either model, sorted. ``worse`` says if ``worst_auc_difference`` is below 0. A
    difference is NULL if either value is. Raises `InputError` if a model has several rows of one key, as in the metrics
    of several runs without their ``run_date``.
    """
    key = [name for name in KEY if name in metrics.column_names]
    fix = "Keep one run, or keep the columns run_date, corpus and run_id."
    check_unique(keep(metrics, model=[first, second]), ["model", *key], "metrics", fix)
    a, b = (_side(metrics.filter(pc.field("model") == model), key) for model in (first, second))
    both = a.join(b, key, join_type="full outer", left_suffix="_first", right_suffix="_second")
    both = both.sort_by([(name, "ascending") for name in key])
    columns = {name: both[name] for name in key if name != "run_id"}
    columns |= {"first_model": pa.repeat(first, len(both)), "second_model": pa.repeat(second, len(both))}
    for name in ("n_subgroup", "positive_rate", WORST_AUC, *SUITE):
        value_a, value_b = (both[f"{name}_{side}"] for side in _SIDES)
        columns |= {f"{name}_first": value_a, f"{name}_second": value_b}
        if name in SUMMARIZED_GAPS:
            columns[f"{name}_difference"] = pc.subtract(pc.abs(value_b), pc.abs(value_a))
        elif name in SORT_KEYS:
            columns[f"{name}_difference"] = pc.subtract(value_b, value_a)
        if name == WORST_AUC:
            columns["worse"] = pc.less(columns[f"{name}_difference"], 0.0)
        elif name in SUITE:
            columns[f"{name}_doubtful"] = pc.or_(*(_is_doubtful(both, name, side) for side in _SIDES))
            columns |= {f"{name}_{side}{part}": both[f"{name}{part}_{side}"] for side in _SIDES for part in _PARTS}
    last = [f"{name}_{side}" for name in ("bias", "bias_size") for side in _SIDES]
    return pa.table(columns | {name: both[name] for name in (*last, *(name for name in key if name == "run_id"))})


def list_without_value(metrics: pa.Table, models: Sequence[str]) -> tuple[str, ...]:
    """Return the models without a value of any metric."""
    by_model = {model: metrics.filter(pc.field("model") == model) for model in models}
    return tuple(model for model, rows in by_model.items() if all(rows[name].null_count == len(rows) for name in SUITE))


def _side(metrics: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the columns of one model, by key."""
    columns = {name: metrics[name] for name in key}
    columns["n_subgroup"] = pc.add(metrics["n_subgroup_negative"], metrics["n_subgroup_positive"])
    columns["positive_rate"] = metrics["subgroup_positive_rate"]
    columns[WORST_AUC] = pc.min_element_wise(*(metrics[name] for name in SUMMARIZED_AUCS))
    return pa.table(columns | {name: metrics[name] for name in _VALUES})


def _is_doubtful(both: pa.Table, name: str, side: str) -> pa.ChunkedArray:
    """Return whether a value is known but rests on too few rows."""
    width = pc.subtract(both[f"{name}_high_{side}"], both[f"{name}_low_{side}"])
    return pc.and_(pc.is_valid(both[f"{name}_{side}"]), pc.fill_null(pc.greater(width, WIDE), fill_value=True))


def leave_out_small(compared: pa.Table, min_rows: int) -> pa.Table:
    """Remove identities with fewer rows in either model from the result of `side_by_side`."""
    sizes = [pc.fill_null(compared[f"n_subgroup_{side}"], 0) for side in _SIDES]
    return compared.filter(pc.greater_equal(pc.min_element_wise(*sizes), min_rows))


def compare_side_by_side(metrics: pa.Table, run: Run, request: Request) -> SideBySide:
    """Compare two models by the ``bias_metrics`` of one run. Raises `InputError` if it lacks a model or a slice."""
    slices = _choose_slices(metrics, request)
    chosen = metrics.filter(pc.is_in(metrics["slice"], pa.array(slices)))
    if not request.crossed:
        chosen = chosen.filter(~pc.field("crossed"))

    def worst_first(row: Row) -> tuple[bool, float, str]:
        value = row[f"{request.sort}_first"]
        return value is None, goodness(value or 0.0, request.sort), row["identity"]

    compared = side_by_side(chosen, *request.models)
    n_all = Counter(compared["slice"].to_pylist())
    rows = sorted(leave_out_small(compared, request.min_rows).to_pylist(), key=worst_first)
    parts = []
    for name in slices:
        large = [row for row in rows if row["slice"] == name]
        parts.append(SliceRows(name, large[: request.limit], n_all[name], n_all[name] - len(large)))
    return SideBySide(request=request, run=run, columns=tuple(compared.column_names), slices=tuple(parts))


def _choose_slices(metrics: pa.Table, request: Request) -> tuple[str, ...]:
    """Return the slices to show, after checking the names of a request against the run."""
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
    """Return whether B is worse than A in a metric, by the shown digits."""
    difference = row[f"{name}_difference"]
    if difference is None:
        return False
    shown = float(format_decimal(difference, digits))
    return shown > 0 if name in SUMMARIZED_GAPS else shown < 0


LINE_WIDTH = 120
NAME_WIDTH = 38
MAX_GAP = 3
_LEAD = "lead"
WORSE = "!"
WEAK, WEAK_IN_MARKDOWN = "?", "◦"
UNPAIRED = "A and B count different numbers of rows: some rows lack a score"

Block = list[str]
"""Lines of equal width that are put next to other blocks."""


# ---- for a terminal


def format_text(comparison: SideBySide, digits: int = 3) -> str:
    """Return a comparison as text: a table per slice with a row per identity, and a legend of the marks.

    If a row exceeds 120 columns in any slice, the gaps are below the AUCs. Long names are cut.
    """
    first, second = map(show_visibly, comparison.request.models)
    notes: dict[str, str] = {}
    blocks = [_make_blocks(part.rows, digits, notes) for part in comparison.slices]
    widths = [sum(measure_width(block[name][0]) + 1 for name in (_LEAD, *SUITE)) - 1 for block in blocks]
    groups = (SUITE,) if max(widths, default=0) <= LINE_WIDTH else (SUMMARIZED_AUCS, SUMMARIZED_GAPS)
    lines = [f"A: {first}   B: {second}", show_visibly(comparison.source), ""]
    for part, block in zip(comparison.slices, blocks, strict=True):
        lines.append(f"slice {show_visibly(part.name)}: {comparison.describe_size(part)}")
        named = (("bias",),) if any(_biases(row) != ["-", "-"] for row in part.rows) else ()
        for number, names in enumerate((*groups, *named) if part.rows else ()):
            lines += [*([""] if number else []), *_join([block[_LEAD], *(block[name] for name in names)])]
        lines.append("")
    shown = [row for part in comparison.slices for row in part.rows]
    has_weak = any(_is_weak(row, name, side) for row in shown for name in SUITE for side in _SIDES)
    lines += [
        "diff: B - A for an AUC (best is 1), |B| - |A| for a gap (AEG, best is 0). pos%: percent positive.",
        f"{WORSE} B is worse: after a difference, in that metric; before a name, in the lowest of the three AUCs.",
        *([f"{WEAK} its interval is missing or wider than {WIDE:g}: too few rows."] if has_weak else ()),
        *(f"{mark} {text}" for text, mark in notes.items()),
    ]
    return "".join(f"{line}\n" for line in lines)


def _mark(notes: dict[str, str], text: str) -> str:
    """Return the mark of a note below the tables, ``(a)`` for the first."""
    return notes.setdefault(text, f"({chr(ord('a') + len(notes))})")


def _make_blocks(rows: Sequence[Row], digits: int, notes: dict[str, str]) -> dict[str, Block]:
    """Return the blocks of a slice: the columns before the metrics, each metric, and the bias in words."""
    names = [cut_to_width(show_visibly(row["identity"]), NAME_WIDTH) for row in rows]
    names = [
        f"{WORSE if is_worse(row, WORST_AUC, digits) else ' '} {name}" for row, name in zip(rows, names, strict=True)
    ]
    counts = [n if n == other else f"{n} {_mark(notes, UNPAIRED)}" for n, other in map(_counts, rows)]
    lead = (["  identity", *names], ["rows", *counts], ["pos%", *map(_positive_rate, rows)])
    metrics = {name: _metric_block(rows, name, digits, notes) for name in SUITE}
    biases = list(zip(("A", "B"), *map(_biases, rows), strict=True))
    return {_LEAD: _block("", lead, "  ", n_left=1), **metrics, "bias": _block("bias", biases, "  ", n_left=2)}


def _metric_block(rows: Sequence[Row], name: str, digits: int, notes: dict[str, str]) -> Block:
    """Return the block of one metric: A, B, and the difference, marked if B is worse."""
    columns = [["A"], ["B"], ["diff"]]
    for row in rows:
        symbols = [WEAK if _is_weak(row, name, side) else "" for side in _SIDES]
        for column, (text, reason), mark in zip(columns, _metric_texts(row, name, digits), (*symbols, ""), strict=True):
            column.append(_mark(notes, reason) if reason else mark + drop_zeros(text or "-"))
    worse = [is_worse(row, name, digits) for row in rows]
    if any(worse):
        symbols = [WORSE if is_marked else " " for is_marked in (False, *worse)]
        columns[2] = [cell + mark for cell, mark in zip(columns[2], symbols, strict=True)]
    return _block(SUITE_TITLES[name], columns, " ")


def _biases(row: Row) -> list[str]:
    """Return the bias of A and of B in words, a dash for none."""
    return [describe_bias(row, f"_{side}") or "-" for side in _SIDES]


def _is_weak(row: Row, name: str, side: str) -> bool:
    """Return whether the metric of a model has a value that rests on too few rows."""
    return row[f"{name}_{side}"] is not None and is_weak(row, f"{name}_{side}")


def _block(title: str, columns: Sequence[Sequence[str]], between: str, n_left: int = 0) -> Block:
    """Return columns as a block with a title; their first cells are headings, and the first ``n_left`` left-aligned."""
    padded = []
    for number, column in enumerate(columns):
        width = max(map(measure_width, column))
        spaces = [" " * (width - measure_width(cell)) for cell in column]
        pairs = zip(column, spaces, strict=True) if number < n_left else zip(spaces, column, strict=True)
        padded.append(["".join(pair) for pair in pairs])
    lines = [between.join(cells) for cells in zip(*padded, strict=True)]
    width = max(map(measure_width, (title, *lines)))
    heads, *rows = (line + " " * (width - measure_width(line)) for line in lines)
    return [title.center(width), heads, "-" * width, *rows]


def _join(blocks: Sequence[Block]) -> list[str]:
    """Put blocks next to each other, at most `MAX_GAP` columns apart."""
    room = LINE_WIDTH - sum(measure_width(block[0]) for block in blocks)
    gap = max(1, min(MAX_GAP, room // (len(blocks) - 1)))
    return [(" " * gap).join(cells).rstrip() for cells in zip(*blocks, strict=True)]


# ---- for other programs


def format_markdown(comparison: SideBySide, digits: int = 3) -> str:
    """Return a comparison as Markdown that GitHub renders: for each slice a heading and a table.

    Differences are bold where B is worse. Names are escaped: nothing in them is Markdown or HTML.
    """
    first, second, source = map(escape_markdown, (*comparison.request.models, comparison.source))
    lines = [
        f"A: {first}, B: {second}; {source}. Differences are B - A for an AUC (best is 1) and \\|B\\| - \\|A\\| for a "
        "gap (AEG, best is 0). B is worse in a metric if the difference is bold, and in the lowest of the three AUCs "
        f"if the row has an exclamation mark. {WEAK_IN_MARKDOWN} marks a value whose interval is missing or wider than "
        f"{WIDE:g}: too few rows."
    ]
    head = ["", "identity", "rows", "positive", "bias A", "bias B"]
    for name in SUITE:
        head += [f"{SUITE_TITLES[name]} A", "B", "\\|B\\| - \\|A\\|" if name in SUMMARIZED_GAPS else "B - A"]
    rule = [":-:", "---", "--:", "--:", "---", "---", *["--:"] * (len(head) - 6)]
    for part in comparison.slices:
        heading, size = escape_markdown(part.name), escape_markdown(comparison.describe_size(part))
        lines += ["", f"### Slice {heading}", "", f"{size}."]
        if part.rows:
            table = (head, rule, *(_markdown_cells(row, digits) for row in part.rows))
            lines += ["", *(f"| {' | '.join(cells)} |" for cells in table)]
    return "".join(f"{line}\n" for line in lines)


def _markdown_cells(row: Row, digits: int) -> list[str]:
    first, second = _counts(row)
    rate = _positive_rate(row)
    cells = [
        WORSE if is_worse(row, WORST_AUC, digits) else "",
        escape_markdown(row["identity"]),
        first if first == second else f"{first} and {second} ({UNPAIRED})",
        rate if rate == "-" else f"{rate}%",
        *_biases(row),
    ]
    for name in SUITE:
        *values, (difference, _) = _metric_texts(row, name, digits)
        for side, (text, reason) in zip(_SIDES, values, strict=True):
            mark = f"{WEAK_IN_MARKDOWN} " if _is_weak(row, name, side) else ""
            cells.append(mark + escape_markdown(text or reason or "-"))
        cells.append(f"**{difference}**" if is_worse(row, name, digits) else difference or "-")
    return cells


def format_csv(comparison: SideBySide) -> str:
    """Return the rows of all slices as one CSV table with full precision (see `write_csv`)."""
    text = io.StringIO()
    rows = ([row[name] for name in comparison.columns] for part in comparison.slices for row in part.rows)
    write_csv(text, comparison.columns, rows)
    return text.getvalue()


def _metric_texts(row: Row, name: str, digits: int) -> list[tuple[str | None, str | None]]:
    """Return a metric of A, of B, and their difference, each as text, signed if it may be negative, or a reason."""
    return [
        (None, row.get(f"{name}_{side}_reason"))
        if row[f"{name}_{side}"] is None
        else (format_decimal(row[f"{name}_{side}"], digits, name in SUMMARIZED_GAPS or side == "difference"), None)
        for side in ("first", "second", "difference")
    ]


def _counts(row: Row) -> list[str]:
    counts = (row[f"n_subgroup_{side}"] for side in _SIDES)
    return ["-" if count is None else f"{count:,}" for count in counts]


def _positive_rate(row: Row) -> str:
    rate = row["positive_rate_first"]
    return "-" if rate is None else format_decimal(100 * rate, 1, signed=False)


FORMATS: dict[str, Callable[[SideBySide, int], str]] = {
    "text": format_text,
    "markdown": format_markdown,
    "csv": lambda comparison, _: format_csv(comparison),
}
