"""The oracle of published tables by hand, and that the proof finds whatever is changed in a run."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from biasspark.tables.schemas import BIAS_RUNS, TABLES
from biasspark.tables.views import duckdb_views
from scripts.dev.proof import Proof, ProofError, compare_row, prove
from tests.harness.example_run import ledger_of, write_table
from tests.harness.main_job import toml
from tests.oracle.run_tables import KEYS, Tables, compute_tables

RUN_DATE = date(2026, 1, 15)
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
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("drill") / "corpus.parquet"
    pd.DataFrame(COLUMNS).to_parquet(path)
    return path


@pytest.fixture(scope="module")
def wanted(corpus: Path) -> Tables:
    return compute_tables(corpus, CONFIG)


def publish(folder: Path, tables: Tables) -> Path:
    """Write what the oracle computes as a run of the job."""
    for name, keys in KEYS.items():
        rows = [dict(zip(keys, key, strict=True)) | plain(values) for key, values in tables[name].items()]
        write_table(folder, TABLES[name], rows, RUN_DATE, "r1")
    write_table(folder, BIAS_RUNS, [ledger_of("bias_metrics")], RUN_DATE, "r1")
    (folder / "views.duckdb.sql").write_text(
        duckdb_views(str(folder), [TABLES[name] for name in (*KEYS, BIAS_RUNS.name)]), "utf-8"
    )
    return folder


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as it is published, with one of the names that tie."""
    return {name: min(value) if isinstance(value, frozenset) else value for name, value in values.items()}


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("config") / "job.toml"
    path.write_text("\n".join(f"{name} = {toml(table)}" for name, table in CONFIG.items()), "utf-8")
    return path


def test_what_is_right_is_proved(corpus: Path, config: Path, wanted: Tables, tmp_path: Path) -> None:
    proof = prove(publish(tmp_path, wanted), {RUN_DATE: corpus}, config)
    assert proof.worst == 0
    numbers = {
        name: sum(isinstance(value, int | float) for row in rows.values() for value in plain(row).values())
        for name, rows in wanted.items()
    }
    assert proof.numbers == numbers


@pytest.fixture
def computed_once(wanted: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take what the oracle has computed of the corpus."""
    monkeypatch.setattr("scripts.dev.proof.compute_tables", lambda *_: wanted)


@pytest.mark.usefixtures("computed_once")
@pytest.mark.parametrize(
    "change",
    [
        ("u_statistics", "n_low", 7),
        ("u_statistics", "u_doubled", None),
        ("u_statistics", "low_square_sum", 6),
        ("bias_metrics", "n_subgroup_positive", 2),
        ("bias_metrics", "bpsn_auc", 1 - 1e-9),
        ("bias_metrics", "background_auc_low", 0.0),
        ("bias_metrics", "bpsn_auc_method", "wald"),
        ("model_summary", "auc_high", 1.0),
        ("model_summary", "bpsn_auc_power_mean", 0.999),
        ("model_summary", "negative_aeg_max_abs_identity", "nobody"),
        ("pinned_auc", "pinned_auc", 0.5),
        ("threshold_rates", "background_n_true_positive", 0),
        ("threshold_rates", "tpr_gap", float("nan")),
        ("threshold_rates", "selection_rate_gap_low", 0.0),
        ("threshold_summary", "false_negative_equality_difference", 1.0),
        ("score_histograms", "n_rows", 9),
        ("label_balance", "n_negatives_to_add", 1),
    ],
)
def test_a_changed_number_is_found(
    wanted: Tables, corpus: Path, config: Path, tmp_path: Path, change: tuple[str, str, Any]
) -> None:
    (table, column, value), changed = change, deepcopy(wanted)
    next(row for row in changed[table].values() if row[column] is not None)[column] = value
    publish(tmp_path, changed)
    with pytest.raises(ProofError, match=rf"^2026-01-15: {table}, .*: {column} is .*, the oracle says"):
        prove(tmp_path, {RUN_DATE: corpus}, config)


@pytest.mark.usefixtures("computed_once")
def test_a_missing_row_is_found(wanted: Tables, corpus: Path, config: Path, tmp_path: Path) -> None:
    changed = deepcopy(wanted)
    changed["score_histograms"].popitem()
    publish(tmp_path, changed)
    with pytest.raises(ProofError, match=r"score_histograms .*'nobody'"):
        prove(tmp_path, {RUN_DATE: corpus}, config)


def test_a_number_that_is_not_published_is_no_proof() -> None:
    with pytest.raises(ProofError, match="model_summary lacks auc"):
        compare_row(Proof(), "", "model_summary", {"n": 1}, {"n": 1, "auc": 0.5})


@pytest.mark.parametrize("name", KEYS)
def test_every_number_is_proved_or_said(wanted: Tables, name: str) -> None:
    """A column that is added to a table is added to the oracle, or to those that are not proved."""
    proved = {column for row in wanted[name].values() for column in row}
    columns = {column.name for column in TABLES[name].values} - proved - UNPROVED
    assert [column for column in sorted(columns) if not column.endswith("_reason")] == []
