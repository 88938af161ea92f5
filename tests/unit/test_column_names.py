"""The columns of a corpus in messages: listed once, and not at all where they may be data."""

from __future__ import annotations

import pytest

from biasspark.corpus.check import NAME_ANOTHER, ColumnNames
from biasspark.errors import ABSENT


def test_columns_are_listed_once() -> None:
    columns = ColumnNames(["id", "Score"])
    first, second = (columns.missing(("models", name), ABSENT, "Missing.", name) for name in ("scores", "x"))
    assert first.path == ("models", "scores")
    assert "id, Score" in str(first.rule)
    assert "'Score'" in str(first.fix)
    assert (second.rule, second.fix) == ("Missing.", NAME_ANOTHER)


def test_a_field_of_a_column_is_not_taken_for_another_column() -> None:
    fault = ColumnNames(["scores", "scores_lr"]).missing(("models", "lr"), ABSENT, "Missing.", "scores.lr")
    assert "'scores'" in str(fault.fix)
    assert "scores_lr" not in str(fault.fix)


def test_names_that_may_be_data_are_counted_and_suggested_only_if_they_differ_in_case() -> None:
    columns = ColumnNames(["secret one", "Day", "0.5"], are_certain=False)
    first = columns.missing(("corpus", "id"), ABSENT, "Missing.", "secret on")
    assert "3 columns" in str(first.rule)
    assert "header = false" in str(first.rule)
    assert "secret" not in str(first)
    assert first.fix == ""
    assert "'Day'" in str(columns.missing(("corpus", "id"), ABSENT, "Missing.", "day").fix)


@pytest.mark.parametrize(("separator", "written"), [(";", ";"), (",", ","), ("\t", "\\t"), ("|", "|"), (" ", ";")])
def test_one_column_suggests_another_separator(separator: str, written: str) -> None:
    columns = ColumnNames([f"secret{separator}day"], are_certain=False)
    fault = str(columns.missing(("models", "x"), ABSENT, "Missing.", "x"))
    assert f'options = {{ sep = "{written}" }}' in fault
    assert "secret" not in fault


def test_a_separator_that_is_configured_is_not_suggested() -> None:
    columns = ColumnNames(["secret"], are_certain=False, separator=";")
    assert "sep =" not in str(columns.missing(("models", "x"), ABSENT, "Missing.", "x"))
