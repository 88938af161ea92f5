"""Conditions in words and in SQL, run by DuckDB on values with quotes and escapes, and on NaN and infinity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasspark.expressions.sql import write_name, write_text
from biasspark.features import NULL_BIN, Feature, describe_condition, mark_rare, write_predicate

AGE = Feature("age", "age", numeric=True, values=(17.0, 30.5, 65.0), nullable=True)
HOURS = Feature("hours", "hours", numeric=True, values=(1.0, 40.0), nullable=False)
WORK = Feature("work", "work", numeric=False, values=("Sales", "Craft", "Tech", "Farming"), nullable=True)
SEX = Feature("sex", "sex", numeric=False, values=("Female", "Male"), nullable=False)
FEATURES = (AGE, HOURS, WORK, SEX)

HOSTILE = (
    "it's", "'", "''", "\\", "\\'", "a\\nb", "a\nb", "\t", "${x}", "$1", "$$", "%_", "x' OR 1=1 --", 'say "so"', "`",
    "", " ", "null", "Ünïcödé 🙂", "chr(39)", ";",
)  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ({}, "all rows"),
        ({0: {0, 1}}, "(age < 30.5 or null)"),
        ({0: {1}}, "age < 30.5"),
        ({0: {2}}, "30.5 <= age < 65"),
        ({0: {3, 0}}, "(age >= 65 or null)"),
        ({0: {0}}, "age is null"),
        ({0: {1, 2, 3}}, "age is not null"),
        ({0: {0, 1, 2, 3}}, "all rows"),
        ({1: {2}}, "hours >= 40"),
        ({1: {1, 2}}, "all rows"),
        ({2: {1}}, "work is Sales"),
        ({2: {1, 2, 0}}, "(work is Sales, Craft or null)"),
        ({2: {1, 2, 3, 0}}, "work is not Farming"),
        ({2: {1, 2, 3}}, "(work is not Farming or null)"),
        ({2: {1, 2, 3, 4}}, "work is not null"),
        ({2: {0}}, "work is null"),
        ({3: {2}}, "sex is Male"),
        ({2: {3}, 0: {1}}, "age < 30.5 and work is Tech"),
        ({2: {1, 2}, 0: {0, 1}, 3: {2}}, "(age < 30.5 or null) and (work is Sales or Craft) and sex is Male"),
    ],
)
def test_words(condition: dict[int, set[int]], words: str) -> None:
    assert describe_condition({index: frozenset(bins) for index, bins in condition.items()}, FEATURES) == words


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1700000000123.0, 1700000000125.0, "1700000000123 <= t < 1700000000125"),
        (-5.0, 0.1 + 0.2, "-5 <= t < 0.3"),
        (1e16, 1e300, "1e+16 <= t < 1e+300"),
    ],
)
def test_whole_numbers_keep_their_digits(low: float, high: float, words: str) -> None:
    feature = Feature("t", "t", numeric=True, values=(-math.inf, low, high), nullable=False)
    assert describe_condition({0: frozenset({2})}, [feature]) == words


@pytest.mark.parametrize(
    ("bins", "words"),
    [
        ({1, 2}, "(work is Sales or Craft)"),
        ({3, 4}, "(work is not Sales, Craft or null)"),
        ({0, 1, 3, 4}, "work is not Craft"),
        ({1, 2, 3, 4}, "work is not null"),
        ({0, 1, 2}, "(work is Sales, Craft or null)"),
        ({4}, "work is Farming"),  # one of several rare ones, as a slice may be
    ],
)
def test_rare_values_are_not_named(database: duckdb.DuckDBPyConnection, bins: set[int], words: str) -> None:
    feature = mark_rare(WORK, [9, 9, 9, 1, 1], 2)
    assert feature.rare == {3, 4}
    assert describe_condition({0: frozenset(bins)}, [feature]) == words
    assert_selects(database, [None, *feature.values], feature, [frozenset(bins)])


def bin_of(feature: Feature, value: Any) -> int:
    if value is None:
        return NULL_BIN
    if not feature.numeric:
        return [*feature.values].index(value) + 1
    if math.isnan(value):
        return len(feature.values)
    return max(sum(bool(float(start) <= value) for start in feature.values), 1)


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def assert_selects(
    database: duckdb.DuckDBPyConnection, values: list[Any], feature: Feature, conditions: list[frozenset[int]]
) -> None:
    """Check that the predicate of each condition is true on exactly its rows, and never NULL."""
    column = "DOUBLE" if feature.numeric else "VARCHAR"
    database.execute(f"CREATE OR REPLACE TABLE corpus (number INT, {feature.sql} {column})")
    database.executemany("INSERT INTO corpus VALUES (?, ?)", list(enumerate(values)))
    for bins in conditions:
        predicate = write_predicate({0: bins}, [feature])
        selected = database.execute(f"SELECT ({predicate}) FROM corpus ORDER BY number").fetchall()
        assert [is_in for (is_in,) in selected] == [bin_of(feature, value) in bins for value in values], predicate


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("last", [0.1 + 0.2, math.inf, math.nan])
def test_intervals_select_exactly_their_rows(database: duckdb.DuckDBPyConnection, nullable: bool, last: float) -> None:
    starts = (-math.inf, -1e-300, 0.1, last)
    feature = Feature("x", "x", numeric=True, values=starts, nullable=nullable)
    below, above = math.nextafter(0.1, 0), 0.1 + 0.2
    values: list[float | None] = [-math.inf, -5.0, -1e-300, -0.0, 0.0, below, 0.1, 0.3, above, 1e300]
    values += [math.inf, math.nan, None] if nullable else [math.inf, math.nan]
    known = [frozenset(range(start, stop + 1)) for start in range(1, 5) for stop in range(start, 5)]
    with_null = [bins | {NULL_BIN} for bins in known] + [frozenset({NULL_BIN})]
    assert_selects(database, values, feature, known + with_null if nullable else known)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_values_select_exactly_their_rows(database: duckdb.DuckDBPyConnection, text: str) -> None:
    feature = Feature("v", "v", numeric=False, values=(text, "plain", "other"), nullable=True)
    conditions = [frozenset(bins) for size in (1, 2, 3) for bins in combinations(range(4), size)]
    assert_selects(database, [None, text, "plain", "other", text, None], feature, conditions)


@given(text=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_texts_read_back(database: duckdb.DuckDBPyConnection, text: str) -> None:
    assert database.execute(f"SELECT {write_text(text)}").fetchone() == (text,)


def test_neither_quotes_nor_escapes_nor_variables_stand_in_texts() -> None:
    """DuckDB and Spark interpret backslashes differently, and Spark substitutes variables for ${...}."""
    for text in HOSTILE:
        inside = "".join(write_text(text).split("'")[1::2])
        assert not set("'\\$") & set(inside)


@pytest.mark.parametrize(
    ("name", "written"),
    [("age", "age"), ("_a1", "_a1"), ("hours per week", "`hours per week`"), ("order", "`order`"), ("a`b", "`a``b`")],
)
def test_names_are_quoted_where_they_must_be(name: str, written: str) -> None:
    assert write_name(name) == written
