"""The published tables, which ``tables.toml`` declares: names, types, keys, and the meaning of every column."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from textwrap import dedent
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from biasspark.arrays import Flags
from biasspark.columns import BIASES
from biasspark.ddl import ARROW_TYPES


@dataclass(frozen=True)
class Column:
    """One column: its name, its type as Spark SQL writes it, and its meaning."""

    name: str
    type: str
    comment: str

    @property
    def arrow_type(self) -> pa.DataType:
        """The type in Arrow."""
        return ARROW_TYPES[self.type]


def columns(declarations: str) -> tuple[Column, ...]:
    """Parse lines ``name TYPE: comment``; indented lines continue a comment. Raises `ValueError` for others."""
    declared: list[Column] = []
    for line in filter(str.strip, dedent(declarations).splitlines()):
        if declared and line[0].isspace():
            last = declared.pop()
            declared.append(replace(last, comment=f"{last.comment} {line.strip()}"))
        elif match := re.fullmatch(r"(\w+) ([A-Z][A-Z0-9(),<>]+): (.+)", line.rstrip()):
            declared.append(Column(*match.groups()))
        else:
            raise ValueError(f"{line!r} declares no column. Write 'name TYPE: comment'.")
    return tuple(declared)


class _Text(str):
    """A text of ``tables.toml``, in which ``{name:a|b}`` stands for the text `name` with a and b for {0} and {1}."""

    def __format__(self, arguments: str) -> str:
        return self.format(*map(str.strip, arguments.split("|")), **_TEXTS)


_DECLARED = tomllib.loads(resources.files("biasspark.tables").joinpath("tables.toml").read_text("utf-8"))
_TEXTS = {"biases": ", ".join(BIASES)} | {name: _Text(text) for name, text in _DECLARED["texts"].items()}


def _read_columns(text: str) -> tuple[Column, ...]:
    return columns(f"{_Text(text)}")


RUN_DATE, CORPUS, RUN_ID = _read_columns("{run}")
WINDOW_START, N_RUNS = _read_columns("{window}")
MODEL, SLICE, IDENTITY, CROSSED = _read_columns("{model_slice_identity}\n{crossed}")


@dataclass(frozen=True)
class Table:
    """One published table. Its views show the latest published run of its ``job``.

    ``comment`` says what a row is. ``key`` identifies a row within a run, next to ``run_date`` and ``corpus``; only
    where the table is ``unique`` no two rows share it. A ``per_row`` table has rows for each row of the corpus, and so
    takes more than one file.
    """

    name: str
    job: str
    comment: str
    key: tuple[Column, ...]
    values: tuple[Column, ...]
    unique: bool = True
    per_row: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns in the order of the contract: run_date, corpus, the rest of the key, values, run_id."""
        return (RUN_DATE, CORPUS, *self.key, *self.values, RUN_ID)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(column.name for column in self.columns)

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The names of the columns that a stage computes: all but run_date, corpus and run_id."""
        return self.names[2:-1]

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The names of the key within one run."""
        return tuple(column.name for column in self.key)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns that a stage computes: all but run_date, corpus and run_id."""
        return pa.schema([(column.name, column.arrow_type) for column in self.columns[2:-1]])

    @property
    def full_arrow_schema(self) -> pa.Schema:
        """All columns."""
        return pa.schema([(column.name, column.arrow_type) for column in self.columns])


def _read_table(name: str, declared: dict[str, Any]) -> Table:
    comment = " ".join(declared["comment"].split())
    key, values = (_read_columns(declared.get(part, "")) for part in ("key", "values"))
    return Table(**declared | {"name": name, "comment": comment, "key": key, "values": values})


def _window_table(table: Table) -> Table:
    comment = f"A window of runs, merged: {table.comment[0].lower()}{table.comment[1:]}"
    key, values = (WINDOW_START, *table.key), (N_RUNS, *table.values)
    return Table(f"window_{table.name}", "window_metrics", comment, key, values)


TABLES = {name: _read_table(name, declared) for name, declared in _DECLARED["tables"].items()}
WINDOW_TABLES = {TABLES[name]: _window_table(TABLES[name]) for name in _DECLARED["of_windows"]}
"""The tables of windows, by the table of a single run."""
TABLES |= {table.name: table for table in WINDOW_TABLES.values()}
"""Every table by its name: in the order of the declarations, then those of windows."""

U_STATISTICS = TABLES["u_statistics"]
BIAS_METRICS = TABLES["bias_metrics"]
MODEL_SUMMARY = TABLES["model_summary"]
PINNED_AUC = TABLES["pinned_auc"]
THRESHOLD_RATES = TABLES["threshold_rates"]
THRESHOLD_SUMMARY = TABLES["threshold_summary"]
SCORE_HISTOGRAMS = TABLES["score_histograms"]
TEMPLATE_SCORES = TABLES["template_scores"]
LABEL_BALANCE = TABLES["label_balance"]
TRAINING_BALANCE = TABLES["training_balance"]
PINNED_SKEW = TABLES["pinned_skew"]
REJECTED_ROWS = TABLES["rejected_rows"]
BIAS_RUNS = TABLES["bias_runs"]
SCORE_BLOCKS = TABLES["score_blocks"]
MODEL_COMPARISONS = TABLES["model_comparisons"]
BIAS_ALERTS = TABLES["bias_alerts"]
JACKKNIFE_STATISTICS = TABLES["jackknife_statistics"]
COMPARISON_ALERTS = TABLES["comparison_alerts"]
EXAMPLE_ATTRIBUTIONS = TABLES["example_attributions"]
ATTRIBUTION_CORRELATIONS = TABLES["attribution_correlations"]
ATTRIBUTION_SEGMENTS = TABLES["attribution_segments"]
ATTRIBUTION_SLICES = TABLES["attribution_slices"]
PAIR_SEGMENTS = TABLES["pair_segments"]
AUC_CROSSES = TABLES["auc_crosses"]
NAMED_PAIRS = TABLES["named_pairs"]
LOSS_BY_SEGMENT = TABLES["loss_by_segment"]


# ---- using tables


def tables_of(job: str) -> tuple[Table, ...]:
    """Return the tables that a job writes, except the ledger."""
    return tuple(table for table in TABLES.values() if table.job == job)


def sort_rows(table: Table, rows: pa.Table) -> pa.Table:
    """Return the rows of a table in the order of its key."""
    return rows.sort_by([(name, "ascending") for name in table.key_columns])


class Masked(NamedTuple):
    """Values of a column, some of which are NULL."""

    values: Any
    is_null: Flags | None = None


def to_table(table: Table, **columns: Any) -> pa.Table:
    """Build the rows of a declared table, without run_date, corpus and run_id.

    Each column is an array, a list, `Masked` values, or one value for all rows. None and NaN become NULL, and -0.0
    becomes 0.0. Raises `ValueError` if a column is missing or not declared.
    """
    schema = table.arrow_schema
    if set(columns) != set(schema.names):
        raise ValueError(f"{table.name}: columns {sorted(set(columns) ^ set(schema.names))} do not fit.")
    given = {name: column if isinstance(column, Masked) else Masked(column) for name, column in columns.items()}
    n_rows = max((len(values) for values, _ in given.values() if isinstance(values, np.ndarray | list)), default=1)
    arrays = []
    for field in schema:
        values, is_null = given[field.name]
        if not isinstance(values, np.ndarray | list):
            values = [values] * n_rows
        if pa.types.is_floating(field.type):
            values = np.asarray(values, np.float64) + 0.0  # no -0.0
            is_null = np.isnan(values) if is_null is None else np.isnan(values) | is_null
        arrays.append(pa.array(values, field.type, mask=is_null))
    return pa.table(arrays, schema=schema)


def table_of_rows(table: Table, rows: Sequence[Mapping[str, Any]], **columns: Any) -> pa.Table:
    """Build a table as `to_table` does, from rows, and from `columns` for the values that the rows lack."""
    given = {name: [row[name] for row in rows] for name in table.value_columns if name not in columns}
    return to_table(table, **given, **columns)
