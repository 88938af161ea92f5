"""The columns of a corpus in messages: listed once."""

from __future__ import annotations

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
