"""The oracle of published tables by hand, and that the proof finds whatever is changed in a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import pytest

from biasspark.tables.schemas import TABLES
from scripts.dev.proof import Proof, ProofError, compare_row, compare_rows
from tests.oracle.run_tables import KEYS, Tables, compute_tables

CONFIG: dict[str, Any] = {
    "label": {"column": "target", "threshold": 0.5},
    "models": {"m": "score"},
    "identities": {"columns": ["a", "nobody"], "threshold": 0.5},
    "slices": {"short": "length < 100"},
    "thresholds": {"at": [0.5]},
    "histograms": {"bins": 4},
    "label_balance": {"length": "length"},
}
# Of `a`: a negative at 0.6 and a positive at 0.9; not of it: negatives at 0.2 and 0.6, a positive at 0.7; nobody was
# asked about the last two, and the very last has no label.
COLUMNS = {
    "target": [0.0, 1.0, 0.2, 0.0, 0.5, 1.0, None],
    "score": [0.6, 0.9, 0.2, 0.6, 0.7, 0.1, 0.3],
    "a": [1.0, 0.5, 0.0, 0.4, 0.0, None, None],
    "nobody": [0.0, 0.0, 0.0, 0.0, 0.0, None, None],
    "length": [30, 30, 70, 30, 200, 30, 30],
}
UNPROVED = {"crossed", "reason", "sampled_mean", "sampled_sd", "trials"}


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    path = tmp_path_factory.mktemp("drill") / "corpus.parquet"
    pd.DataFrame(COLUMNS).to_parquet(path)
    return compute_tables(path, CONFIG)


def publish(expected: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as it is published, with one of the names that tie."""
    return {name: min(value) if isinstance(value, frozenset) else value for name, value in expected.items()}


@pytest.mark.parametrize("name", KEYS)
def test_whatever_changes_in_a_row_is_found(wanted: Tables, name: str) -> None:
    expected = next(iter(wanted[name].values()))
    right = publish(expected)
    compare_row(Proof(), "", name, right, expected)
    for column, value in right.items():
        changed = value + 1e-9 if isinstance(value, float) else value + 1 if isinstance(value, int) else "changed"
        for wrong in (changed, math.nan, *([] if value is None else [None])):
            with pytest.raises(ProofError, match=rf": {column} is"):
                compare_row(Proof(), "", name, right | {column: wrong}, expected)
        with pytest.raises(ProofError, match=f"lacks {column}"):
            compare_row(Proof(), "", name, {k: v for k, v in right.items() if k != column}, expected)


@pytest.mark.parametrize("name", KEYS)
def test_a_missing_row_is_found(wanted: Tables, name: str) -> None:
    published = {key: publish(values) for key, values in wanted[name].items()}
    compare_rows(Proof(), "", name, published, wanted[name])
    published.popitem()
    with pytest.raises(ProofError, match="the same rows"):
        compare_rows(Proof(), "", name, published, wanted[name])


@pytest.mark.parametrize("name", KEYS)
def test_every_number_is_proved_or_said(wanted: Tables, name: str) -> None:
    """A column that is added to a table is added to the oracle, or to those that are not proved."""
    proved = {column for row in wanted[name].values() for column in row}
    columns = {column.name for column in TABLES[name].values} - proved - UNPROVED
    assert [column for column in sorted(columns) if not column.endswith("_reason")] == []
