"""The declared tables, whose contract is docs/tables.md, and tables of them from arrays."""

from __future__ import annotations

import math
import re
import tomllib
import zlib
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from biasspark.tables import schemas
from biasspark.tables.schemas import TABLES, U_STATISTICS, Column, Masked, Table, columns, to_table
from biasspark.tables.spark_schemas import spark_schema

EVERY_TABLE = pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)


def test_names_types_order_and_keys_change_on_purpose_alone() -> None:
    """A change is one of the published contract, which is in docs/tables.md: add columns, rename or remove none."""
    lines = (f"{name} {t.name} {t.key_columns} {[(c.name, c.type) for c in t.columns]}" for name, t in TABLES.items())
    assert zlib.crc32("\n".join(lines).encode()) == 923237249


def test_only_rows_whose_ids_repeat_may_repeat_a_key() -> None:
    assert {table.name for table in TABLES.values() if not table.unique} == {"rejected_rows", "example_attributions"}


@EVERY_TABLE
def test_a_comment_is_a_sentence_that_every_metastore_keeps(table: Table) -> None:
    for comment in (table.comment, *(column.comment for column in table.columns)):
        assert comment.endswith("."), comment
        assert not set(";'\"\n\\") & set(comment), comment
        assert "  " not in comment, comment
    assert all(len(column.comment) <= 255 for column in table.columns)


@EVERY_TABLE
def test_the_schemas_of_spark_and_arrow_have_types_and_allow_null(table: Table) -> None:
    schema = spark_schema(table)
    assert [(f.name, f.dataType.simpleString().upper()) for f in schema] == [(c.name, c.type) for c in table.columns]
    assert [f.metadata for f in schema] == [{"comment": c.comment} for c in table.columns]
    assert all(f.nullable for f in schema)
    assert [field for field in table.full_arrow_schema if field.name in table.value_columns] == list(table.arrow_schema)


@EVERY_TABLE
def test_a_double_says_its_range_and_when_it_is_null(table: Table) -> None:
    for column in table.columns:
        if column.type == "DOUBLE":
            assert re.search(r"\d (to|or (more|less))", column.comment), column
            assert "NULL" in column.comment, column


def test_columns_reads_a_declaration_over_several_lines() -> None:
    declared = columns("""
        n BIGINT: Rows, and then
            some more.
        shares MAP<STRING,BIGINT>: By reason: all of them.
    """)
    assert declared == (
        Column("n", "BIGINT", "Rows, and then some more."),
        Column("shares", "MAP<STRING,BIGINT>", "By reason: all of them."),
    )


@pytest.mark.parametrize("declarations", ["    only words", "a INT: one.\nb int: two.", "a INT: one.\nmore"])
def test_columns_refuses_lines_that_declare_no_column(declarations: str) -> None:
    with pytest.raises(ValueError, match="declares no column"):
        columns(declarations)


def test_every_text_of_the_declarations_is_used() -> None:
    source = Path(schemas.__file__)
    declarations = source.with_name("tables.toml").read_text("utf-8")
    written = declarations + source.read_text("utf-8")
    texts = tomllib.loads(declarations)["texts"]
    assert [name for name in texts if not re.search(rf"\{{{name}[:}}]", written)] == []


COLUMNS = {
    "model": "m",
    "slice": ["all", "short", None],
    "identity": np.array(["a", "b", "c"], object),
    "low_cell": "negative",
    "high_cell": "positive",
    "crossed": np.array([True, False, False]),
    "n_low": np.array([1, 2, 3]),
    "n_high": Masked(np.array([1, 2, 3]), np.array([False, True, False])),
    "u_doubled": np.array([2**100, None, 0], object),
    "low_square_sum": Masked(np.array([2**120, 1, 2], object), np.array([False, False, True])),
    "high_square_sum": None,
    "auc": np.array([0.5, math.nan, -0.0]),
    "auc_variance": Masked([None, math.nan, 0.25], np.array([False, False, False])),
    "reason": Masked(np.array(["why"] * 3, object), np.array([True, False, True])),
}


def test_every_kind_of_column() -> None:
    table = to_table(U_STATISTICS, **COLUMNS)
    assert table.schema.equals(U_STATISTICS.arrow_schema)
    first, second, third = table.to_pylist()
    assert (first["model"], first["slice"], first["identity"], third["slice"]) == ("m", "all", "a", None)
    assert [row["n_high"] for row in (first, second, third)] == [1, None, 3]
    assert [row["u_doubled"] for row in (first, second, third)] == [Decimal(2**100), None, Decimal(0)]
    assert [row["low_square_sum"] for row in (first, second, third)] == [Decimal(2**120), Decimal(1), None]
    assert [row["auc"] for row in (first, second, third)] == [0.5, None, 0.0]
    assert math.copysign(1, third["auc"]) == 1
    assert [row["auc_variance"] for row in (first, second, third)] == [None, None, 0.25]
    assert [row["reason"] for row in (first, second, third)] == [None, "why", None]


def test_columns_must_be_those_that_are_declared() -> None:
    with pytest.raises(ValueError, match="further"):
        to_table(U_STATISTICS, **COLUMNS, further=1)
    with pytest.raises(ValueError, match="auc"):
        to_table(U_STATISTICS, **{name: column for name, column in COLUMNS.items() if name != "auc"})
