"""The class-skew experiment: against brute force, through the public function, and as a job."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

import biasspark
from biasspark.config import PinnedSkew, parse_measures
from biasspark.pipeline import Measurement, measure, ranked_once, skew_classes
from biasspark.tables.schemas import PINNED_SKEW
from jobs import pinned_skew as job
from tests.oracle.suite import (
    PAIRS,
    auc_by_pairs,
    cut_cells,
    pinned_auc,
    weighted_auc,
)
from tests.running_jobs import Done, ask, run_main

CELLS = ("subgroup_negative", "subgroup_positive", "background_negative", "background_positive")
SUITE = ("subgroup_auc", "bpsn_auc", "bnsp_auc")
TRIALS = 60
NIGHT = "2026-01-15"
Corpus = tuple[np.ndarray, np.ndarray, np.ndarray]


# ---- the experiment by its definitions


def make_corpus(n_rows: int = 400) -> Corpus:
    """Scores with many ties, labels, and an identity of another class balance, unknown on some rows."""
    rng = np.random.default_rng(41)
    inside = np.where(rng.random(n_rows) < 0.1, np.nan, rng.random(n_rows) < 0.4)
    label = rng.random(n_rows) < np.where(inside == 1, 0.35, 0.55)
    return np.round(rng.normal(label + 0.7 * (inside == 1), 1), 1), label, inside


def weigh_rows(corpus: Corpus, cell: str, share: float) -> np.ndarray:
    """Give the weight of every row where so much of a cell is left."""
    _, label, inside = corpus
    of_cell = (inside == float(cell.startswith("subgroup"))) & (label == cell.endswith("positive"))
    return np.where(of_cell, share, 1.0)


def weighted_pinned_auc(corpus: Corpus, weight: np.ndarray, include_subgroup: bool = True) -> float:
    """AUC of the subgroup and as many rows drawn from all, or from the background, where rows count so much."""
    score, label, inside = corpus
    known = ~np.isnan(inside)
    member, counts = inside[known] == 1, weight[known]
    drawn_from = np.ones(len(member)) if include_subgroup else 1.0 - member
    times_drawn = drawn_from * (counts * member).sum() / (counts * drawn_from).sum()
    return weighted_auc(score[known], label[known], counts * (member + times_drawn))


def measure_corpora(spark: SparkSession, corpora: dict[str, Corpus]) -> Measurement:
    """Rank the identity ``g`` of corpora under each other, each of them scored by the model of its name alone."""
    frames = [
        pd.DataFrame(
            {"label": label, "g": pd.array(inside, "Float64"), **dict.fromkeys(corpora, math.nan), name: score}
        )
        for name, (score, label, inside) in corpora.items()
    ]
    table = {"label": {"column": "label"}, "models": list(corpora), "identities": {"columns": ["g"]}}
    table["slices"] = {"nobody": "g > 1"}
    return measure(spark.createDataFrame(pd.concat(frames)), parse_measures(table), only="g")


def drop_rows(measurement: Measurement, **skew: Any) -> DataFrame:
    measures = replace(measurement.measures, pinned_skew=PinnedSkew(identity="g", **skew))
    return skew_classes(replace(measurement, measures=measures))


@pytest.fixture(scope="module")
def skewed(spark_session: SparkSession) -> dict[str, Row]:
    """Drop three tenths of each of the four cells."""
    measurement = measure_corpora(spark_session, {"m": make_corpus()})
    with ranked_once(measurement):
        frames = [drop_rows(measurement, cell=cell, fraction=0.3, trials=TRIALS) for cell in CELLS]
        rows = reduce(DataFrame.unionByName, frames).where(F.col("slice") == "all").collect()
        return {row["cell"]: row for row in rows}


@pytest.mark.parametrize("cell", CELLS)
def test_the_closed_form_is_pinned_auc_with_rows_that_weigh_less(skewed: dict[str, Row], cell: str) -> None:
    row, corpus = skewed[cell], make_corpus()
    assert row.n_rows == len(cut_cells(*corpus)[cell])
    assert row.n_dropped == math.floor(0.3 * row.n_rows + 0.5)
    left = weigh_rows(corpus, cell, 1 - row.n_dropped / row.n_rows)
    assert row.pinned_auc == pytest.approx(pinned_auc(*corpus), abs=1e-12, rel=0)
    assert row.pinned_auc_skewed == pytest.approx(weighted_pinned_auc(corpus, left), abs=1e-12, rel=0)


@pytest.mark.parametrize("cell", CELLS)
def test_trials_scatter_around_the_values_before(skewed: dict[str, Row], cell: str) -> None:
    """The seed is fixed; four standard errors of a mean are passed once in 16,000."""
    row, cells = skewed[cell], cut_cells(*make_corpus())
    n_kept = row.n_rows - row.n_dropped
    pinned_noise = row.pinned_auc_sampled_sd / math.sqrt(TRIALS)
    assert row.pinned_auc_sampled_mean == pytest.approx(row.pinned_auc_skewed, abs=4 * pinned_noise, rel=0)
    for name in SUITE:
        low, high = PAIRS[name]
        auc, mean, sd = row[name], row[f"{name}_sampled_mean"], row[f"{name}_sampled_sd"]
        assert auc == pytest.approx(auc_by_pairs(cells[low], cells[high]), abs=1e-12, rel=0)
        if cell not in (low, high):
            assert (mean, sd) == (auc, 0.0)
            continue
        other = cells[high] if cell == low else cells[low]
        placements = [
            auc_by_pairs([score], other) if cell == low else auc_by_pairs(other, [score]) for score in cells[cell]
        ]
        # A mean of n - d of n numbers, drawn without putting back.
        expected_sd = float(np.std(placements, ddof=1)) * math.sqrt(row.n_dropped / row.n_rows / n_kept)
        assert mean == pytest.approx(auc, abs=4 * expected_sd / math.sqrt(TRIALS), rel=0)
        assert sd == pytest.approx(expected_sd, rel=0.5)


@pytest.mark.slow
def test_cells_of_which_nothing_is_left(spark: SparkSession) -> None:
    """No subgroup negatives, one of them, which halves to none, and two."""
    score, label, inside = np.arange(8.0) / 8, np.arange(8) % 2 == 1, np.array([1, 1, 0, 1, 0, 0, 0, 0.0])
    corpora = {
        "none": (score, label, np.where(label, inside, 0.0)),
        "one": (score, label, inside),
        "two": (score, label, np.where(np.arange(8) == 6, 1.0, inside)),
    }
    found = drop_rows(measure_corpora(spark, corpora), trials=3).collect()
    for row in (row.asDict() for row in found if row["slice"] == "nobody"):
        assert (row["n_rows"], row["n_dropped"], row["trials"]) == (0, 0, 3)
        assert {value for name, value in row.items() if "_auc" in name} == {None}
    rows = {row["model"]: row for row in found if row["slice"] == "all"}
    assert len(found) == 2 * len(rows)
    assert {name: (row.n_rows, row.n_dropped) for name, row in rows.items()} == {
        "none": (0, 0),
        "one": (1, 1),
        "two": (2, 1),
    }
    for name in ("none", "one"):
        row = rows[name]
        for metric in ("subgroup_auc", "bpsn_auc"):
            assert (row[metric] is None) == (name == "none")
            assert row[f"{metric}_sampled_mean"] is row[f"{metric}_sampled_sd"] is None
        assert (row.bnsp_auc_sampled_mean, row.bnsp_auc_sampled_sd) == (row.bnsp_auc, 0.0)
        left = weigh_rows(corpora[name], CELLS[0], 0.0)
        assert row.pinned_auc_skewed == pytest.approx(weighted_pinned_auc(corpora[name], left), abs=1e-12)
        assert (row.pinned_auc_sampled_mean, row.pinned_auc_sampled_sd) == (row.pinned_auc_skewed, 0.0)
    # Of two negatives, scored 0 and 6/8, each trial keeps one: against positives of 1/8 and 3/8 its AUC is 1 or 0.
    assert rows["two"].subgroup_auc == 0.5
    assert rows["two"].subgroup_auc_sampled_mean in {0.0, 1 / 3, 2 / 3, 1.0}
    assert rows["two"].subgroup_auc_sampled_sd == pytest.approx(0.0) or (
        rows["two"].subgroup_auc_sampled_sd == pytest.approx(math.sqrt(1 / 3))
    )


@pytest.mark.slow
def test_as_many_rows_are_dropped_as_the_decimal_says_that_was_written(spark: SparkSession) -> None:
    """0.285 of 9,500 rows is 2,707.5, and rounds up; the binary number next to 0.285 gives a little less.

    All of them tie, so that a sum over any 6,792 of them, and over no other number, is the AUC that all have.
    """
    assert 0.285 * 9500 < 2707.5
    score, label = np.r_[np.zeros(9500), -1.0, 0.0, 1.0, 2.0, 2.0], np.r_[np.zeros(9500), np.ones(5)] == 1
    measurement = measure_corpora(spark, {"m": (score, label, np.ones(9505))})
    row, _ = sorted(drop_rows(measurement, fraction=0.285, trials=1).collect())
    assert (row.n_rows, row.n_dropped, row.trials) == (9500, 2708, 1)
    assert row.subgroup_auc == row.subgroup_auc_sampled_mean == row.pinned_auc_sampled_mean == 0.7
    assert row.subgroup_auc_sampled_sd is row.pinned_auc_sampled_sd is None
    assert row.bpsn_auc is row.bpsn_auc_sampled_mean is None


# ---- through the public function


def frame_of(spark: SparkSession, corpus: Corpus, order: np.ndarray) -> DataFrame:
    score, label, inside = (column[order] for column in corpus)
    data = {"score": score, "label": label, "g": pd.array(inside, "Float64"), "h": 1.0 - (score > 0)}
    return spark.createDataFrame(pd.DataFrame(data))


@pytest.mark.slow
def test_the_same_rows_in_any_order_and_partitions(spark: SparkSession) -> None:
    corpus = make_corpus(200)
    orders = [np.arange(200), np.random.default_rng(5).permutation(200)]
    one, other = (
        biasspark.pinned_skew(
            frame_of(spark, corpus, order).repartition(partitions),
            identity="g",
            trials=7,
            seed=3,
            models=["score"],
            label="label",
            identities=["h", "g"],
            slices={"high": "score > 0"},
            ranges=partitions,
        )
        for order, partitions in zip(orders, (1, 3), strict=True)
    )
    assert tuple(one.columns) == PINNED_SKEW.value_columns
    assert [f.dataType for f in one.schema] == [c.field.dataType for c in (*PINNED_SKEW.key, *PINNED_SKEW.values)]
    rows = sorted(map(tuple, one.collect()))
    assert rows == sorted(map(tuple, other.collect()))
    assert [row[:4] for row in rows] == [("score", cut, "g", "subgroup_negative") for cut in ("all", "high")]
    assert rows[0][8] == pytest.approx(pinned_auc(*corpus), abs=1e-12)


@pytest.mark.slow
def test_one_identity_of_any_source_is_measured_as_among_all(spark: SparkSession) -> None:
    rng = np.random.default_rng(8)
    rows = [
        (
            float(rng.integers(5)),
            bool(rng.integers(2)),
            [None, 0.2, 0.5, 0.9][rng.integers(4)],
            [None, "x", "y"][rng.integers(3)],
            [None, ["x"], ["y", "a=b"], []][rng.integers(4)],
            ["gay or trans", "Gay.", "straight", None][rng.integers(4)],
        )
        for _ in range(120)
    ]
    schema = "score double, label boolean, male double, race string, groups array<string>, text string"
    corpus = spark.createDataFrame(rows, schema)
    identities = {
        "columns": ["male"],
        "categorical": ["race"],
        "array": "groups",
        "predicates": {"low": "score < 2"},
        "terms": {"column": "text", "list": ["gay", "queer: trans, straight"]},
        "crossed": {"pairs": True, "min_rows": 1},
    }
    table = {"label": {"column": "label"}, "models": ["score"], "identities": identities}
    among_all = measure(corpus, parse_measures(table)).statistics.collect()
    of_array = ["a=b", "x", "y"]  # which may hold "race=y", too
    for name, ranked in {
        "male": ["male"],
        "race=y": ["race=x", "race=y", *of_array],
        "a=b": of_array,
        "queer": ["queer"],
    }.items():
        alone = measure(corpus, parse_measures(table), only=name)
        assert alone.codebook.singles == tuple(ranked)
        assert sorted(map(tuple, alone.statistics.collect())) == sorted(
            tuple(row) for row in among_all if row["identity"] in (*ranked, "(overall)")
        )


def test_an_identity_that_is_not_there_is_an_error_that_lists_those_that_are(spark: SparkSession) -> None:
    corpus = spark.createDataFrame(
        [(0.5, True, "Asian"), (0.2, False, "white")], "score double, label boolean, race string"
    )
    measured: dict[str, Any] = {"models": ["score"], "label": "label", "identities": {"categorical": ["race"]}}
    with pytest.raises(biasspark.InputError) as caught:
        biasspark.pinned_skew(corpus, identity="race=Asain", **measured)
    assert caught.value.faults == (
        'identity = "race=Asain". There is no such identity. There are race=Asian, race=white. '
        "Did you mean race=Asian?",
    )
    with pytest.raises(biasspark.ConfigError) as refused:
        biasspark.pinned_skew(corpus, identity="gay", cell="negative", trials=0, **measured)
    assert [fault.split(" =")[0] for fault in refused.value.faults] == [
        "cell",
        "trials",
        "identity",
    ]


# ---- as a job

CONFIG = """
[corpus]
name = "comments"
path = "{folder}/corpus"
id = "id"
[label]
column = "label"
[models]
m = "score"
[identities]
columns = ["g", "h"]
[slices]
high = "score > 0"
[pinned_auc]
trials = 20
include_subgroup_in_background = false
[pinned_skew]
identity = "g"
cell = "background_positive"
fraction = 0.25
trials = 5
[output]
path = "{folder}/warehouse"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("skew")
    score, label, inside = make_corpus()
    rows = pd.DataFrame({"score": score, "label": label, "g": inside, "h": 1.0 - (score > 0)})
    rows.loc[3, "score"] = math.nan  # which the file holds as NULL
    (folder / "corpus").mkdir()
    rows.assign(id=[f"c{n}" for n in range(len(rows))]).to_parquet(folder / "corpus" / "part.parquet")
    (folder / "job.toml").write_text(CONFIG.format(folder=folder), encoding="utf-8")
    return folder


def run(folder: Path, *flags: str) -> Done:
    return run_main(job.main, "--config", folder / "job.toml", "--run-date", NIGHT, *flags)


def test_the_job_publishes_prints_and_is_read_by_its_view(spark: SparkSession, folder: Path) -> None:
    code, out, err = run(folder)
    assert code == 0, err
    *table, last = out.splitlines()
    summary = json.loads(last)
    assert table[0].split() == ["model", "slice", "n_rows", "n_dropped", "metric", "before", "after", "sd", "change"]
    assert len(table) == 1 + 2 * 5 + len(summary["warnings"])
    assert {"job": "pinned_skew", "status": "published", "n_rows": 400, "tables": {"pinned_skew": 2}}.items() <= (
        summary.items()
    )
    assert summary["rejects"] == {"null_score": 1}
    stages = [line.split("] ", 1)[1] for line in err.splitlines()]
    assert "dropping 0.25 of background_positive of g, 5 times" in stages
    warehouse = folder / "warehouse"
    columns = "slice, cell, fraction, trials, pinned_auc, pinned_auc_skewed"
    rows = ask(warehouse, f"SELECT {columns} FROM latest_pinned_skew ORDER BY slice")
    ledger = ask(warehouse, "SELECT job, n_rows, n_rejected, config FROM bias_runs")
    assert [row[:4] for row in rows] == [(cut, "background_positive", 0.25, 5) for cut in ("all", "high")]
    usable = np.arange(400) != 3
    corpus = tuple(column[usable] for column in make_corpus())
    n_rows = len(cut_cells(*corpus)["background_positive"])
    left = weigh_rows(corpus, "background_positive", 1 - math.floor(0.25 * n_rows + 0.5) / n_rows)
    everyone = weighted_pinned_auc(corpus, np.ones(399), include_subgroup=False)
    assert rows[0][4:] == pytest.approx((everyone, weighted_pinned_auc(corpus, left, False)), abs=1e-12, rel=0)
    ((name, n_read, n_rejected, config),) = ledger
    assert (name, n_read, n_rejected) == ("pinned_skew", 400, 1)
    assert json.loads(config)["pinned_skew"]["cell"] == "background_positive"
    assert json.loads(config)["identities"]["columns"] == ["g", "h"]


def test_the_job_plans_one_identity_and_writes_nothing(spark: SparkSession, folder: Path) -> None:
    code, out, err = run(folder, "--dry-run", "--set", f"output.path={folder}/nowhere")
    assert code == 0, err
    plan = dict(line.split(":", 1) for line in out.splitlines()[:-1])
    assert plan["identities"].strip() == "1 column (g)"
    assert plan["engine"].strip() == "blocks"
    assert plan["scans"].strip() == "2 (survey, ranking)"
    assert plan["drops"].strip() == "0.25 of background_positive of g, 5 times"
    assert plan["tables"].strip() == f"pinned_skew, bias_runs in {folder}/nowhere"
    assert not (folder / "nowhere").exists()


def test_the_job_needs_its_table(folder: Path, tmp_path: Path) -> None:
    config = CONFIG.format(folder=folder).replace("[pinned_skew]", "[histograms]")
    for line in ('identity = "g"', 'cell = "background_positive"', "fraction = 0.25", "trials = 5"):
        config = config.replace(f"{line}\n", "")
    (tmp_path / "job.toml").write_text(config, encoding="utf-8")
    code, out, err = run(tmp_path)
    assert (code, out) == (2, "")
    assert (
        '[pinned_skew]: missing. This job requires the table. Write, for example, [pinned_skew] identity = "gay".'
        in err
    )


def test_the_job_refuses_a_value_that_no_row_has(spark: SparkSession, folder: Path) -> None:
    code, out, err = run(folder, "--set", 'identities={categorical=["h"]}', "--set", "pinned_skew.identity=h=2")
    assert (code, out) == (3, "")
    assert '[pinned_skew] identity = "h=2". There is no such identity. There are h=0.0, h=1.0.' in err
