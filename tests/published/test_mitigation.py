"""The comments that the authors of the experiment added (Mitigating): they mitigate the terms they were chosen for."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

import biasspark
from biasspark.cli import Progress
from biasspark.config import parse_config
from biasspark.config.mitigation_settings import MODELS
from biasspark.workflows.mitigation_experiment import open_experiment, prepare_training, score_test_set

CHOSEN_FOR = {"gay": 0.03, "homosexual": 0.009, "lesbian": 0.006, "queer": 0.006}
NOT_CHOSEN = ("transgender", "bisexual", "straight", "american", "male", "young", "muslim", "black")
ADDED = 4_620
"""Comments that the slides say were added: the files' parts train and dev."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def summaries(
    spark_session: SparkSession, shared_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Row]:
    """The summary of each model, trained on a corpus whose imbalance is about what was added for it."""
    data = shared_data / "wiki_testsets"
    if not data.is_dir():
        pytest.skip(f"the authors' comments are not here: {data}")
    files = {
        "debiasing": str(data / "toxicity_debiasing_data.parquet"),
        "random": str(data / "toxicity_debiasing_data_random.parquet"),
        "text": "comment",
        "filter": "split <> 'test'",
    }
    generated = {"rows": 20_000, "test_rows": 4_800, "terms": [*CHOSEN_FOR, *NOT_CHOSEN], "imbalanced": CHOSEN_FOR}
    output = {"path": str(tmp_path_factory.mktemp("mitigation"))}
    config = parse_config({"mitigation": files | generated, "output": output}, Path())
    assert config.mitigation is not None
    experiment = open_experiment(spark_session, config, config.mitigation, date(2026, 1, 15))
    folder = f"{output['path']}/run"
    with prepare_training(spark_session, folder, experiment, Progress()) as training:
        scored = score_test_set(spark_session, folder, experiment, training, Progress())
    sizes = [row for row in training.by_model.to_pylist() if (row["identity"], row["bucket"]) == ("(overall)", "(all)")]
    assert {row["model"]: row["n_added"] for row in sizes} == {"baseline": 0, "control": ADDED, "mitigated": ADDED}
    terms = {"column": "comment_text", "list": list(config.terms)}
    summary = biasspark.model_summary(scored, models=MODELS, label="label", identities={"terms": terms})
    return {row.model: row for row in summary.collect()}


def test_chosen_comments_mitigate_and_random_ones_do_not(summaries: dict[str, Row]) -> None:
    """As printed: 6.37, with random comments 6.84, with chosen ones 4.07."""
    difference = {model: summaries[model].pinned_auc_equality_difference for model in MODELS}
    assert difference["mitigated"] < 0.7 * min(difference["baseline"], difference["control"])
    assert difference["control"] > 0.8 * difference["baseline"]


def test_harmless_mentions_are_taken_for_toxicity_less_often(summaries: dict[str, Row]) -> None:
    lowest = {model: summaries[model].bpsn_auc_min for model in MODELS}
    assert lowest["mitigated"] > max(lowest["baseline"], lowest["control"]) + 0.1
    assert summaries["baseline"].bpsn_auc_min_identity in CHOSEN_FOR


def test_nothing_is_lost_over_all(summaries: dict[str, Row]) -> None:
    assert summaries["mitigated"].auc >= summaries["baseline"].auc
