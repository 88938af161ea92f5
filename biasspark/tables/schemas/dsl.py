"""How a table is declared: its columns with types and comments, its key, and the job that writes it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import pyarrow as pa

from biasspark.ddl import ARROW_TYPES


@dataclass(frozen=True)
class Column:
    """One column: its name, its type as Spark SQL writes it, and what it means."""

    name: str
    type: str
    comment: str

    def __str__(self) -> str:
        return f"{self.name} {self.type}: {self.comment}"

    @property
    def arrow_type(self) -> pa.DataType:
        """Its type in Arrow."""
        return ARROW_TYPES[self.type]


def columns(declarations: str) -> tuple[Column, ...]:
    """Read columns from lines of ``name TYPE: comment``, as which a column is written; others continue a comment."""
    declared: list[Column] = []
    for line in filter(None, map(str.strip, declarations.splitlines())):
        if match := re.fullmatch(r"(\w+) ([A-Z][A-Z0-9(),<>]+): (.+)", line):
            declared.append(Column(*match.groups()))
        else:
            last = declared.pop()
            declared.append(replace(last, comment=f"{last.comment} {line}"))
    return tuple(declared)


RUN_DATE, CORPUS, RUN_ID = columns("""
    run_date DATE: The night that the run is for, as given to the job. A partition of the table.
    corpus STRING: The name of the corpus in the configuration.
    run_id STRING: The attempt that wrote the row, new for every attempt. A partition of the table. The row counts once
        bias_runs has the run.
""")


@dataclass(frozen=True)
class Table:
    """One published table; the latest published run of its ``job`` is what its views show.

    The ``comment`` says what a row is. The ``key`` tells rows of one run apart, after ``run_date`` and ``corpus``,
    every two where it is ``unique``. A table that is ``per_row`` has rows for each row of the corpus, and so takes more
    than one file.
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
        """The names that a stage computes: all but the run's own run_date, corpus and run_id."""
        return tuple(column.name for column in (*self.key, *self.values))

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The names of the key within one run."""
        return tuple(column.name for column in self.key)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns that a stage computes: all but the run's own run_date, corpus and run_id."""
        return pa.schema([(column.name, column.arrow_type) for column in (*self.key, *self.values)])

    @property
    def full_arrow_schema(self) -> pa.Schema:
        """All columns."""
        return pa.schema([(column.name, column.arrow_type) for column in self.columns])


MODEL, SLICE, IDENTITY, CROSSED = columns("""
    model STRING: The name of the model in the configuration. Higher scores mean more likely positive.
    slice STRING: The name of the slice, rows of the corpus that are measured on their own. all is every row.
    identity STRING: The identity: a column, column=value, a term or a group of terms, a predicate, or a & b for the
        rows in both.
    crossed BOOLEAN: True for a crossed pair of identities, which summaries over identities leave out.
""")

(WITHHELD,) = columns("""
    reason STRING: withheld where the rows are fewer than [privacy] min_group_rows. All numbers of the row are NULL
        then. NULL elsewhere.
""")
