"""The class-skew experiment with the public function, for any kind of identity, and as a job."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

import biasspark
from biasspark.config import PinnedSkew
from biasspark.tables.schemas import PINNED_SKEW
from biasspark.workflows import pinned_skew as job
from tests.fixtures.local_corpus import LocalCorpus
from tests.harness.least_configuration import raised_fault
from tests.harness.main_job import run as run_job
from tests.harness.main_job import write_config
from tests.harness.running_jobs import Done, ask
from tests.unit.test_pinned import make_corpus

N_ROWS = 160
ASKED: dict[str, Any] = {"identity": "g", "trials": 7, "seed": 3, "models": {"model 0": "score"}, "label": "label"}


def make_rows() -> pd.DataFrame:
    """Scores with many ties, labels, and an identity with another class balance, unknown on some rows."""
    score, label, inside = make_corpus()
    return pd.DataFrame({"id": range(N_ROWS), "score": score, "label": label, "g": inside, "h": 1.0 - (score > 0)})


def expect(rows: pd.DataFrame, skew: PinnedSkew, include_subgroup: bool = True) -> dict[str, Any]:
    """The expected row, from the same ranking and draws without Spark."""
    corpus = LocalCorpus(rows["score"], rows["label"], {"h": rows["h"], "g": rows["g"]})
    (row,) = corpus.pinned_skew(skew, include_subgroup).to_pylist()
    return dict(row)


def test_the_same_rows_in_any_order_and_partitions(spark: SparkSession) -> None:
    frame = spark.createDataFrame(make_rows()[::-1].assign(g=lambda rows: rows["g"].astype("Float64")))
    table: DataFrame = biasspark.pinned_skew(
        frame.repartition(3), **ASKED, identities=["h", "g"], slices={"high": "score > 0"}, ranges=3
    )
    assert tuple(table.columns) == PINNED_SKEW.value_columns
    rows = {(row["slice"], row["identity"]): row.asDict() for row in table.collect()}
    assert rows["all", "g"] == expect(make_rows(), PinnedSkew(identity="g", trials=7, seed=3))
    assert sorted(rows) == [(part, name) for part in ("all", "high") for name in ("g", "h")]
    assert {row["skewed_identity"] for row in rows.values()} == {"g"}
    change = {name: rows["all", name]["pinned_auc_skewed"] - rows["all", name]["pinned_auc"] for name in ("g", "h")}
    assert 0 < abs(change["h"]) < abs(change["g"])


@pytest.mark.parametrize("changes", [{"fraction": 1e-9}, {"cell": "subgroup_positive"}])
def test_a_fraction_without_a_row_is_refused(spark: SparkSession, changes: dict[str, Any]) -> None:
    frame = spark.createDataFrame(make_rows()).selectExpr("score", "label", "IF(label, 0, g) AS g")
    asked = ASKED | {"identities": ["g"]} | changes
    assert raised_fault(biasspark.InputError, biasspark.pinned_skew, frame, **asked).path[-1] == "fraction"


# ---- as a job


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("skew")
    rows = make_rows()
    rows.loc[3, "score"] = math.nan  # which the file holds as NULL
    (folder / "corpus").mkdir()
    rows.to_parquet(folder / "corpus" / "part.parquet")
    return folder


def run(folder: Path, *flags: str, **changes: Any) -> Done:
    tables: dict[str, Any] = {
        "label": {"column": "label", "threshold": None},
        "models": {"m": None, "model 0": "score"},
        "identities": {"columns": ["g", "h"]},
        "slices": {"high": "score > 0"},
        "pinned_auc": {"include_subgroup_in_background": False},
        "pinned_skew": {"identity": "g", "cell": "background_positive", "fraction": 0.25, "trials": 5},
    }
    return run_job(write_config(folder, **tables | changes), *flags, job=job)


def test_the_job_publishes_prints_and_is_read_by_its_view(spark: SparkSession, folder: Path) -> None:
    assert "fraction = 0.25\n" in run(folder, "--dry-run").out
    assert not (folder / "warehouse").exists()
    done = run(folder)
    assert done.code == 0, done.err
    summary = done.summary
    assert (summary["job"], summary["status"], summary["n_rows"]) == ("pinned_skew", "published", N_ROWS)
    assert (summary["tables"], summary["rejects"]) == ({"pinned_skew": 4}, {"null_score": 1})
    header, *lines = done.out.splitlines()[: 1 + 2 * 5]
    assert header.split() == ["model", "slice", "n_rows", "n_dropped", "metric", "before", "after", "sd", "change"]
    assert all(line.startswith("model 0") for line in lines)
    names = [name for name in PINNED_SKEW.value_columns if name != "slice"]
    columns = ", ".join(names)
    rows = ask(folder / "warehouse", f"SELECT {columns} FROM latest_pinned_skew WHERE slice = 'all' AND identity = 'g'")
    skew = PinnedSkew(identity="g", cell="background_positive", fraction=0.25, trials=5)
    expected = expect(make_rows().drop(3), skew, include_subgroup=False)
    assert dict(zip(names, rows[0], strict=True)) == {name: expected[name] for name in names}
    assert ask(folder / "warehouse", "SELECT job, n_rows, n_rejected FROM bias_runs") == [("pinned_skew", N_ROWS, 1)]


def test_the_job_needs_an_identity_that_is_there(spark: SparkSession, folder: Path) -> None:
    without = run(folder, "--set", f"corpus.path={folder}/nowhere", pinned_skew=None)
    assert (without.code, without.out, "[pinned_skew]" in without.err) == (2, "", True)
    missing = run(folder, "--set", 'identities={categorical=["h"]}', "--set", "pinned_skew.identity=h=2")
    assert (missing.code, missing.out, "h=0.0, h=1.0" in missing.err) == (3, "", True)
