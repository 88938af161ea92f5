"""What a measurement scans, shuffles and keeps: by what the jobs of Spark really did."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from biasspark.config import Config, parse_config, parse_measures
from biasspark.session import kept
from biasspark.tables.schemas import ATTRIBUTION_SEGMENTS
from biasspark.workflows import attribute as attribution
from biasspark.workflows import compare as compare_job
from biasspark.workflows import measure as measure_job
from biasspark.workflows import pinned_skew
from biasspark.workflows.attribute import list_tables, survey_rows
from biasspark.workflows.corpus_steps import measure, survey_for_ranking
from tests.harness.main_job import N_ROWS, make_rows, run_well, write_config, write_parquet
from tests.harness.running_jobs import changed_settings
from tests.harness.spark_effort import MAX_SPARK_JOBS, Effort, watch
from tests.spark.conftest import ANNOTATED_ROWS

pytestmark = pytest.mark.classic("Spark Connect tells of no stage")


def is_anything_persisted(spark: SparkSession) -> bool:
    return not spark._jsparkSession.sharedState().cacheManager().isEmpty()


def test_the_corpus_is_scanned_twice_and_shuffled_once(spark: SparkSession, annotated_path: str) -> None:
    """Every table comes from one survey and one ranking; nothing is kept."""
    corpus = spark.read.parquet(annotated_path)
    asked = {"models": ["tied", "smooth"], "label": {"column": "toxic"}, "identities": ["male", "female"]}
    optional = {"pinned_auc": {}, "thresholds": {"at": [0.5]}, "histograms": {"bins": 5}, "label_balance": {}}
    surveying = survey_for_ranking(corpus, parse_measures(asked | optional), "id", "estimate")
    with watch(spark, ANNOTATED_ROWS) as survey, surveying as surveyed:
        pass
    with watch(spark, ANNOTATED_ROWS) as ranking:
        measurement = measure(surveyed)
        assert not is_anything_persisted(spark)
    with watch(spark, ANNOTATED_ROWS) as tables:
        names = {table.name for table, rows in measurement.tables.items() if len(rows)}
        assert measurement.warnings is not None
    assert (survey.n_queries, survey.n_scans) == (1, 1)
    assert (ranking.n_queries, ranking.n_scans, ranking.n_shuffles) == (1, 1, 1)
    assert tables == Effort()
    assert {"bias_metrics", "pinned_auc", "threshold_rates", "score_histograms", "label_balance"} < names
    # Two columns of scores would be 320 kB. What tasks say of themselves is more with Spark 3.5.
    assert max(effort.driver_bytes for effort in (survey, ranking)) < 120_000


# ---- a whole run


def list_passes(config: Path, job: Any) -> list[str]:
    return run_well(config, "--dry-run", job=job).out.partition("\npasses:")[2].splitlines()[:-1]


def test_a_run_without_rejects_scans_the_corpus_twice(spark: SparkSession, tmp_path: Path) -> None:
    """Survey and ranking: no part, no rule, no table and no stored state costs another."""
    write_parquet(tmp_path / "corpus", make_rows())
    parts: dict[str, Any] = {"thresholds": {"at": [0.5]}, "histograms": {"bins": 5}, "label_balance": {}}
    rules = [{"name": "floor", "metric": "bpsn_auc", "min": 0.1}, {"name": "drop", "metric": "auc", "max_drop": 0.1}]
    efforts: list[Effort] = []
    for state in ({}, {"keep": True}):
        config = write_config(tmp_path, **parts, pinned_auc={}, gate={"rule": rules}, state=state)
        *planned, _ = list_passes(config, measure_job)  # and one for rejected rows, if there are any
        with watch(spark, N_ROWS) as effort:
            run_well(config)
        efforts.append(effort)
        assert len(planned) == effort.n_scans
        assert not is_anything_persisted(spark)
    assert [(effort.n_scans, effort.n_queries) for effort in efforts] == [(2, 2), (2, 4)]
    assert max(effort.n_jobs for effort in efforts) <= MAX_SPARK_JOBS


SLOW = pytest.mark.slow
REJECT: dict[str, Any] = {"corpus": {"duplicates": "reject"}}
EVERY_SCAN = REJECT | {
    "pinned_auc": {"trials": 2},
    "templates": {"column": "day"},
    "gate": {"paired": True, "rule": [{"name": "drop", "metric": "auc", "max_drop": 0.1}]},
}


@pytest.mark.parametrize(
    ("job", "parts"),
    [
        (measure_job, EVERY_SCAN),
        pytest.param(compare_job, REJECT | {"models": {"n": "length"}, "compare": {"baseline": "m"}}, marks=SLOW),
        pytest.param(attribution, REJECT | {"attribution": {"groupings": {"day": "day"}}}, marks=SLOW),
        pytest.param(pinned_skew, {"pinned_skew": {"identity": "male"}}, marks=SLOW),
    ],
)
def test_a_dry_run_lists_every_scan(spark: SparkSession, tmp_path: Path, job: Any, parts: dict[str, Any]) -> None:
    """Rejected rows are written by one."""
    rows = make_rows()
    write_parquet(tmp_path / "corpus", rows | {"score": [None, *rows["score"][1:]]})
    config = write_config(tmp_path, **parts)
    planned = list_passes(config, job)
    with watch(spark, N_ROWS) as effort:
        run_well(config, job=job)
    assert len(planned) == effort.n_scans


# ---- repeated ids that are rejected

JOINED_ROWS = 2_000
PARTS: dict[str, Any] = {
    "label": {"column": "y"},
    "models": {"old": "old", "new": "new"},
    "identities": {"columns": ["male"]},
    "output": {"path": "/warehouse"},
}


@pytest.fixture(scope="module")
def repeated(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A corpus of which two rows have one id."""
    path = str(tmp_path_factory.mktemp("scans") / "corpus")
    rows = spark_session.range(JOINED_ROWS).selectExpr(
        *(
            "CAST(greatest(id, 1) AS STRING) AS id",
            "id % 3 = 0 AS y",
            "pmod(id, 7) / 7 AS old",
            "pmod(id, 5) / 5 AS new",
        ),
        *("CAST(id % 2 AS DOUBLE) AS male", "id % 11 AS length", "concat('g', id % 4) AS colour"),
    )
    rows.coalesce(1).write.parquet(path)
    return path


def configure(corpus: str, **parts: Any) -> Config:
    return parse_config(PARTS | parts | {"corpus": {"name": "c", "path": corpus, "id": "id"}}, Path())


def test_repeated_ids_cost_one_more_scan(spark: SparkSession, repeated: str) -> None:
    with watch(spark, JOINED_ROWS) as survey:
        surveying = survey_for_ranking(spark.read.parquet(repeated), configure(repeated), "id", "reject")
        surveyed = surveying.__enter__()
    with watch(spark, JOINED_ROWS) as ranking:
        counts = measure(surveyed).counts.row_counts
    surveying.__exit__(None, None, None)
    assert (survey.n_scans, ranking.n_scans) == (1, 2)
    assert counts.rejects == {"duplicate_id": 2}
    assert not is_anything_persisted(spark)


SEARCHES: dict[str, Any] = {
    "numeric": ["length", "male"],
    "categorical": ["colour"],
    "groupings": {"colour": "colour"},
    "segments": {"short": "length < 3"},
    "compare": [["new", "old"]],
    "tree": {"max_depth": 3, "min_leaf": 20, "min_gain": 1e-9},
    "pairs": {},
    "slice_search": {"max_predicates": 2, "min_rows": 5},
}
MODELS = {"old": "old", "new": "new", "third": "old", "fourth": "new"}
N_SURVEYS = 2
"""Of scores, and of features and groupings."""


@pytest.mark.slow
def test_trials_cost_one_more_scan_and_shuffle(spark: SparkSession, repeated: str) -> None:
    surveying = survey_for_ranking(spark.read.parquet(repeated), configure(repeated, pinned_auc={"trials": 2}), "id")
    with surveying as surveyed, watch(spark, JOINED_ROWS) as effort:
        assert measure(surveyed).sampled is not None
    assert (effort.n_queries, effort.n_scans, effort.n_shuffles) == (2, 2, 2)


@pytest.mark.slow
def test_attribution_scans_and_shuffles_rows_once_after_its_surveys(spark: SparkSession, repeated: str) -> None:
    """All searches are a query for each level of the trees, which take slices along, two more, and one for min_gain."""
    searched = SEARCHES | {"targets": ["auc", "cross_entropy", "gini"]}
    config = configure(repeated, models=MODELS, slices={"long": "length > 5"}, attribution=searched)
    with ExitStack() as stack:
        with watch(spark, JOINED_ROWS) as survey:
            surveyed = stack.enter_context(survey_rows(spark.read.parquet(repeated), config, "id"))
        with watch(spark, JOINED_ROWS) as ranking:
            ranked = stack.enter_context(attribution.rank_surveyed(surveyed))
        with watch(spark, JOINED_ROWS) as searches:
            tables, _ = list_tables(surveyed, ranked)
    nodes = tables[ATTRIBUTION_SEGMENTS]
    assert isinstance(nodes, pa.Table)
    assert max(nodes["depth"].to_pylist()) == 3
    assert (survey.n_queries, survey.n_scans) == (N_SURVEYS, N_SURVEYS)
    assert (ranking.n_queries, ranking.n_scans, ranking.n_shuffles) == (1, 1, 1)
    n_levels = 3
    assert (searches.n_queries, searches.n_scans) == (n_levels + 3, 0)
    assert not is_anything_persisted(spark)


@pytest.mark.slow
def test_attribution_takes_a_job_for_each_level_whatever_the_models_and_targets(
    spark: SparkSession, repeated: str, tmp_path: Path
) -> None:
    """With every part, and without adaptive execution, which makes several jobs of one."""
    config = write_config(
        tmp_path,
        corpus={"path": repeated},
        label={"column": "y", "threshold": None},
        models={"m": None} | MODELS,
        identities=None,
        slices={"long": "length > 5"},
        attribution=SEARCHES | {"targets": ["auc", "cross_entropy", "gini"], "write_examples": True},
    )
    one_job_each = changed_settings(spark, {"spark.sql.adaptive.enabled": "false"})
    with one_job_each, watch(spark, JOINED_ROWS) as effort:
        run_well(config, job=attribution)
    assert 0 < effort.n_jobs <= 12 + SEARCHES["tree"]["max_depth"]


@pytest.mark.parametrize(
    "asked",
    [
        {"groupings": {"length": "length % 3"}},
        pytest.param({"numeric": ["length"], "pairs": {}}, marks=pytest.mark.slow),
    ],
)
def test_what_is_counted_while_rows_are_ranked_keeps_none(
    spark: SparkSession, repeated: str, asked: dict[str, Any]
) -> None:
    config = configure(repeated, attribution=asked)
    with (
        survey_rows(spark.read.parquet(repeated), config, "id") as surveyed,
        watch(spark, JOINED_ROWS) as effort,
        attribution.rank_surveyed(surveyed, with_losses=False) as ranked,
    ):
        assert not is_anything_persisted(spark)
        tables, _ = list_tables(surveyed, ranked)
    assert (effort.n_queries, effort.n_scans, effort.n_shuffles) == (1, 1, 1)
    assert len(tables) == 1  # there are no tables of losses


# ---- frames that are kept


def test_a_frame_is_released_after_a_failure(spark: SparkSession) -> None:
    def fail(frame: DataFrame) -> None:
        with kept(frame):
            raise KeyError

    with pytest.raises(KeyError):
        fail(spark.range(3))
    assert not is_anything_persisted(spark)
