"""jobs/attribution.py from its command line to SQL."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import SparkSession

from biasspark.ranking.feature_columns import VALUES_PASS
from biasspark.workflows import attribute as job
from tests.harness import main_job
from tests.harness.running_jobs import Done, ask

ATTRIBUTION: dict[str, Any] = {
    "write_examples": True,
    "numeric": ["age"],
    "categorical": ["job's"],
    "groupings": {"job": "`job's`"},
    "segments": {"old": "age >= 40"},
    "tree": {"max_depth": 1, "min_leaf": 5},
}


@pytest.fixture(scope="module")
def folder(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("attribution")
    rows = [
        (n, None if n == 3 else n % 3 == 0, n * 37 % 101 / 101, n * 37 % 101 / 10 - 5.0, n % 60, f"</b>'{n % 2}\\")
        for n in range(120)
    ]
    schema = "id INT, y BOOLEAN, s DOUBLE, odds DOUBLE, age INT, `job's` STRING"
    spark_session.createDataFrame(rows, schema).write.parquet(str(folder / "corpus"))
    return folder


def run_well(folder: Path, *flags: str, **tables: Any) -> Done:
    asked: dict[str, Any] = {
        "label": {"column": "y", "threshold": None},
        "models": {"m": "s", "odds": "odds"},
        "identities": None,
        "attribution": ATTRIBUTION,
    }
    return main_job.run_well(main_job.write_config(folder, **asked | tables), *flags, job=job)


@pytest.fixture(scope="module")
def searched(folder: Path) -> Done:
    """A run with all searches."""
    asked = ("compare=[['m', 'odds']]", "pairs={min_side=2, min_leaf=2}", "slice_search={min_rows=2}")
    return run_well(folder, *(part for key in asked for part in ("--set", f"attribution.{key}")))


def test_the_job_publishes_prints_and_is_read_by_its_views(spark: SparkSession, folder: Path, searched: Done) -> None:
    table, summary = searched.out.splitlines(), searched.summary
    assert table[1].split()[:5] == ["model", "slice", "node", "n_honest", "mean_honest"]
    assert {"job": "attribution", "status": "published", "n_rows": 120, "rejects": {"null_label": 1}}.items() <= (
        summary.items()
    )
    assert summary["tables"]["example_attributions"] == 2 * 119
    assert [text.split(":")[0] for text in summary["warnings"]] == ["model odds"]
    warehouse = folder / "warehouse"
    losses = ask(
        warehouse, "SELECT model, segment, n_rows, cross_entropy IS NULL FROM latest_loss_by_segment ORDER BY ALL"
    )
    nodes = ask(warehouse, "SELECT predicate, n_train + n_honest FROM latest_attribution_segments WHERE model = 'm'")
    old = sum(n % 60 >= 40 for n in range(120))
    assert losses == [
        ("m", "(overall)", 119, False),
        ("m", "old", old, False),
        ("odds", "(overall)", 119, True),
        ("odds", "old", old, True),
    ]
    corpus = spark.read.parquet(str(folder / "corpus")).where("y IS NOT NULL")
    assert nodes
    [counts] = corpus.select(*(F.expr(f"count_if({predicate})") for predicate, _ in nodes)).collect()
    assert list(counts) == [n_rows for _, n_rows in nodes]


def test_the_job_prints_the_worst_of_all_that_is_searched(folder: Path, searched: Done) -> None:
    blocks = [block.splitlines() for block in searched.out.partition("\nwarning: ")[0].split("\n\n")]
    leaves, differences, slices, pairs, crosses, segments, correlations = blocks
    for block, lines_of_a_row in ((leaves, 2), (differences, 2), (slices, 2), (pairs, 3), (segments, 1)):
        assert len(block) > 2 + lines_of_a_row - 1
        assert all(line.startswith("    ") == bool(n % lines_of_a_row) for n, line in enumerate(block[2:]))
    assert [line.split()[0] for line in crosses[2:]] == ["m"] * 4 + ["odds"] * 4
    shares = [float(line.split()[-1]) for line in crosses[2:6]]
    assert shares == sorted(shares, reverse=True)
    (largest,) = ask(folder / "warehouse", "SELECT max(headroom_share) FROM latest_auc_crosses WHERE model = 'm'")
    assert shares[0] == round(largest[0], 4)
    assert segments[1].split() == ["measure", "segment", "n_rows", "model", "m", "model", "odds"]
    assert correlations[1].split() == ["attribution", "loss", "model", "m"]  # odds has no losses


def test_columns_that_no_search_uses_are_a_warning_before_work(folder: Path) -> None:
    unsearched = ATTRIBUTION | {"tree": None}
    first = run_well(folder, "--dry-run", attribution=unsearched).err.splitlines()[0]
    assert first.startswith("warning: attribution, `numeric` and `categorical`: ")
    assert all(word in first for word in ('"age"', '"job\'s"', "`tree`", "`slice_search`", "`pairs`"))
    for asked in (".tree={}", ".slice_search={}", ".pairs={}", "={write_examples=true}"):
        assert (
            "warning" not in run_well(folder, "--dry-run", "--set", f"attribution{asked}", attribution=unsearched).err
        )


def test_the_job_prints_losses_where_nothing_was_searched(folder: Path, tmp_path: Path) -> None:
    unsearched = ATTRIBUTION | {"numeric": ["age", "job's"], "categorical": None, "groupings": None, "tree": None}
    _, out, err = run_well(folder, "--set", f"output.path={tmp_path}/warehouse", attribution=unsearched)
    assert out.splitlines()[1].split()[:3] == ["measure", "segment", "n_rows"]
    assert sum("`tree`" in text for text in json.loads(out.splitlines()[-1])["warnings"]) == 1
    assert "`tree`" not in err
    assert "searching" not in err


def test_the_job_plans_and_writes_nothing(folder: Path) -> None:
    _, out, _ = run_well(folder, "--dry-run", "--set", f"output.path={folder}/nowhere")
    assert tomllib.loads(out.partition("\n\nsession:")[0])["attribution"]["segments"] == {"old": "age >= 40"}
    assert "example_attributions, bias_runs\n" in out
    assert out.count(VALUES_PASS) == 1
    _, out, _ = run_well(folder, "--dry-run", "--set", "attribution={numeric=['age']}")
    assert "tables:   loss_by_segment, attribution_correlations, bias_runs\n" in out
    assert VALUES_PASS not in out
    assert not (folder / "nowhere").exists()
