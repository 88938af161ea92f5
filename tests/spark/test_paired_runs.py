"""Runs that score the same ids: their kept statistics, and the paired test of a change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from biasspark.cli import Progress
from biasspark.config import load_config
from biasspark.tables.ledger import find_published
from biasspark.tables.publish import read_run
from biasspark.tables.runs import new_run
from biasspark.tables.schemas import U_STATISTICS
from biasspark.tables.store import PathStore
from biasspark.workflows.corpus_job import RunContext
from biasspark.workflows.judge import judge
from tests.harness.main_job import run as run_job
from tests.harness.main_job import write_config
from tests.harness.running_jobs import Done, ask
from tests.oracle.suite import PAIRS

N_ROWS = 2400
KEY = ("rule", "slice", "identity")
ALERT = (*KEY, "outcome", "baseline_run_id", "change", "change_low", "change_high", "paired", "message")
ON_GAY = {"identity": "gay", "model": "m"}
RULES = [
    {"name": "bpsn", "metric": "bpsn_auc", "max_drop": 0.01, **ON_GAY},
    {"name": "gap", "metric": "negative_aeg", "max_rise": 0.01, "model": "m"}
    | {"slices": ["all", "even"], "crossed": True, "severity": "warn"},
    {"name": "auc", "metric": "auc", "max_drop": 0.04, "model": "m"},
    {"name": "floor", "metric": "subgroup_auc", "min": 0.6, "identity": "gay"},
]


def draw_rows() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    toxic, number = rng.random(N_ROWS) < 0.4, np.arange(N_ROWS)
    rows = pd.DataFrame({"id": 7 * number, "number": number, "toxic": toxic, "gay": rng.random(N_ROWS) < 0.3})
    rows["male"], rows["few"] = rng.random(N_ROWS) < 0.5, number % 145 == 6
    rows["score"] = np.round(rng.normal(np.where(toxic, 1.5, 0), 1), 2)
    rows.loc[number % 11 == 3, "score"] = np.nan
    return rows


def rescore(rows: pd.DataFrame) -> pd.DataFrame:
    """Harmless comments about the identity score a little higher, and a few labels are corrected."""
    rng = np.random.default_rng(5)
    score = rows["score"] + 0.2 * (rows["gay"] & ~rows["toxic"]) + rng.normal(0, 0.05, N_ROWS)
    return rows.assign(score=score.round(2), toxic=rows["toxic"] ^ (rows["number"] % 400 == 9))


@dataclass(frozen=True)
class Runs:
    """The first run, and one with new scores."""

    config: Path
    first: Done
    rescored: Done

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        return ask(self.config.parent / "warehouse", query)

    def alerts(self, done: Done) -> pd.DataFrame:
        run_id = done.summary["run_id"]
        rows = self.ask(f"SELECT {', '.join(ALERT)} FROM bias_alerts WHERE run_id = '{run_id}'")
        return pd.DataFrame(rows, columns=list(ALERT)).set_index(list(KEY)).sort_index()

    def judge_unpaired(self, spark: SparkSession, done: Done) -> pd.DataFrame:
        """Judge a run again, without the ids of its rows."""
        config = load_config(self.config, ["gate.paired=false"])
        store = PathStore(f"{self.config.parent}/warehouse")
        run = find_published(spark, store, "bias_metrics", date.fromisoformat(done.summary["run_date"]), "fixed")
        tables = {U_STATISTICS: read_run(spark, store, U_STATISTICS, run)}
        next_run = new_run(run.run_date + timedelta(days=1), "fixed", "bias_metrics")
        verdict = judge(tables, None, (), RunContext(spark, config, store, next_run, Progress()))
        assert verdict.alerts is not None
        alerts: pd.DataFrame = verdict.alerts.select(list(ALERT)).to_pandas()
        return alerts.set_index(list(KEY)).sort_index()


@pytest.fixture(scope="module")
def runs(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("paired")
    base = draw_rows()
    for name, of_date in {"base": base, "rescored": rescore(base)}.items():
        (folder / name).mkdir()
        pq.write_table(pa.Table.from_pandas(of_date, preserve_index=False), folder / name / "part-0.parquet")
    config = write_config(
        folder,
        corpus={"name": "fixed", "path": f"{folder}/base", "duplicates": "allow"},
        label={"column": "toxic", "threshold": None},
        models={"untouched": "score"},
        slices={"even": "number % 2 = 0"},
        identities={"columns": ["gay", "male", "few"], "crossed": {"pairs": True, "min_rows": 50}},
        gate={"paired": True, "rule": RULES},
    )
    return Runs(config, first=run(config, 1, "base"), rescored=run(config, 2, "rescored"))


def run(config: Path, day: int, corpus: str, *changes: str) -> Done:
    flags = [part for change in (f"corpus.path={config.parent}/{corpus}", *changes) for part in ("--set", change)]
    return run_job(config, *flags, run_date=f"2026-01-0{day}")


# ---- what is kept


def test_what_is_left_without_each_group_is_kept_of_what_rules_on_changes_look_at(runs: Runs) -> None:
    pairs = runs.ask(
        "SELECT DISTINCT slice, identity, low_cell, high_cell FROM latest_jackknife_statistics WHERE model = 'm' AND "
        "run_date = '2026-01-01'",
    )
    gaps = {"gay", "male", "few", "gay & male"}  # the other pairs have too few rows
    named = {cells: metric for metric, cells in PAIRS.items()} | {("negative", "positive"): "auc"}
    found = {(part, identity, named[low, high]) for part, identity, low, high in pairs}
    kept = {("(overall)", "auc"), *((name, metric) for name in gaps for metric in ("bpsn_auc", "negative_aeg"))}
    assert found == {(part, *row) for part in ("all", "even") for row in kept}
    assert runs.ask("SELECT count(*) FROM latest_jackknife_statistics WHERE model <> 'm'") == [(0,)]


@pytest.mark.slow
def test_the_engine_of_windows_keeps_the_same(runs: Runs, tmp_path: Path) -> None:
    done = run(runs.config, 1, "base", "ranking.engine=windows", f"output.path={tmp_path}")
    assert done.code == 0, done.err
    query = "SELECT * EXCLUDE (run_id) FROM latest_jackknife_statistics WHERE run_date = '2026-01-01' ORDER BY ALL"
    assert ask(tmp_path, query) == runs.ask(query)


# ---- how changes are judged


def test_a_first_run_has_nothing_to_be_paired_with(runs: Runs) -> None:
    assert runs.first.code == 0, runs.first.err
    assert runs.first.summary["status"] == "accepted"
    assert runs.alerts(runs.first)["paired"].isna().all()


def test_the_same_ids_show_what_other_ids_could_not(spark: SparkSession, runs: Runs) -> None:
    assert runs.rescored.code == 5, runs.rescored.err
    both_ways = (runs.alerts(runs.rescored), runs.judge_unpaired(spark, runs.rescored))
    shown, added = (alerts.loc[[("bpsn", "all", "gay")]].iloc[0] for alerts in both_ways)
    assert (shown["outcome"], added["outcome"]) == ("fail", "insufficient_evidence")
    assert (shown["paired"], added["paired"]) == (True, False)
    assert shown["baseline_run_id"] == added["baseline_run_id"] == runs.first.summary["run_id"]
    assert shown["change"] == pytest.approx(added["change"], abs=1e-12)
    width, width_added = (alerts["change_high"] - alerts["change_low"] for alerts in (shown, added))
    assert width < width_added / 4
    assert "paired by id" in shown["message"]
    assert f"fail: bpsn, m, all: {shown['message']}" in runs.rescored.out
    assert "paired by id" not in added["message"]
