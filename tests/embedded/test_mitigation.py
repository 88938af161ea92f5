"""The mitigation experiment with a given corpus on the embedded engine, from balance to report."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from biasspark.cli import Progress
from biasspark.config import load_config
from biasspark.config.mitigation_settings import CONTROL, LABEL, MITIGATED, TEXT
from biasspark.corpus.survey import Survey
from biasspark.errors import InputError, PublishConflict
from biasspark.mitigation.training_data import HarmlessComments, choose_comments, drop_repeats
from biasspark.synthetic.chunks import make_table
from biasspark.synthetic.imbalanced import ImbalancedRequest
from biasspark.synthetic.madlibs import MadlibsRequest
from biasspark.workflows.mitigation_experiment import TrainingData, train_models, training_measures
from tests.harness.main_job import RUN_DATE, write_config
from tests.harness.running_jobs import ask, refuse_embedded, run_embedded, run_embedded_well

pytestmark = [pytest.mark.embedded, pytest.mark.usefixtures("spark_session")]

TERMS = ("gay", "muslim", "old")
IMBALANCED = (("gay", 0.02), ("muslim", 0.02))


def write(folder: Path, name: str, request: ImbalancedRequest | MadlibsRequest) -> None:
    """Write comments whose label is a fraction, with other column names."""
    with duckdb.connect() as database:
        database.register("made", make_table(request))
        query = 'SELECT id, comment_text AS "comment.text", IF(label, 0.8, 0.1) AS toxicity FROM made'
        database.execute(f"COPY ({query}) TO '{folder}/{name}.parquet'")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mine")
    write(folder, "train", ImbalancedRequest(3_000, 2, IMBALANCED, TERMS))
    harmless = ImbalancedRequest(30_000, 3, (("gay", 0.05), ("muslim", 0.05)), TERMS, harmless=True)
    write(folder, "pool", harmless)
    write(folder, "test", MadlibsRequest(1_200, 1, TERMS))
    return folder


def configure(folder: Path, models: dict[str, str] | None = None, **mitigation: Any) -> tuple[object, ...]:
    config = write_config(
        folder,
        corpus={"name": "mine", "path": "train.parquet"},
        label={"column": "toxicity"},
        models=models and {"m": None} | models,
        identities={"columns": None, "terms": {"column": "comment.text", "list": list(TERMS)}},
        mitigation={"text": "comment.text", "test": "test.parquet"} | mitigation,
    )
    return "--config", config, "--run-date", RUN_DATE


def test_from_balance_to_report(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = configure(folder, pool="pool.parquet")
    assert run_embedded_well("mitigation", *flags, "--dry-run")["status"] == "planned"
    assert not (folder / "warehouse").exists()
    done = run_embedded_well("mitigation", *flags)
    assert done["best"] == "mitigated"
    assert (done["n_rows"], set(done["tables"])) == (
        1_200,
        {"u_statistics", "bias_metrics", "model_summary", "label_balance", "rejected_rows", "training_balance"},
    )
    warehouse = folder / "warehouse"
    query = """
        SELECT plan.identity, plan.n_negatives_to_add AS lacks, trained.n_added, trained.n_rows - plan.n_rows
        FROM latest_label_balance AS plan JOIN latest_training_balance AS trained USING (identity, bucket)
        WHERE trained.model = 'mitigated' AND bucket = '60-179' AND identity <> '(overall)' ORDER BY identity
    """
    plan = ask(warehouse, query)
    assert [name for name, *_ in plan] == sorted(TERMS)
    for name, lacks, added, more in plan:
        mentions = f"regexp_matches(text, '\\b{name}\\b', 'i') AND length(text) BETWEEN 60 AND 179"
        (n_fit,) = duckdb.execute(
            f"SELECT count(DISTINCT text) FROM '{folder}/pool.parquet' AS pool (id, text) WHERE {mentions}"
        ).fetchall()[0]
        assert added == more >= min(lacks, n_fit)  # what is added for one term may mention another
        assert added <= n_fit
    ((n_added, n_control),) = ask(
        warehouse,
        "SELECT max(n_added) FILTER (model = 'mitigated'), max(n_added) FILTER (model = 'control') "
        "FROM latest_training_balance WHERE identity = '(overall)'",
    )
    assert n_added == n_control == done["models"][2]["n_added"]
    page = folder / "page.html"
    run_embedded_well("report", *flags, "--out", page)
    assert "After comments were added" in page.read_text()
    assert "mitigated</bdi></span> against" in page.read_text()
    run_embedded_well("side-by-side", *flags, "--models", "baseline", "mitigated")
    run_embedded_well("export", *flags, "--table", "training_balance", "--out", tmp_path / "x.csv")
    with (tmp_path / "x.csv").open() as file:
        assert {row["model"] for row in csv.DictReader(file)} == {"baseline", "control", "mitigated"}
    assert "[mitigation]" in refuse_embedded("measure", *flags, code=2)

    # The same test set with the scores under names of one's own: the numbers are the same, and nothing is trained.
    (scored,) = (warehouse / "mitigation").glob("*/*/test_set")
    names = ["id", "comment.text", "toxicity", "old", "other", "new"]
    table = pq.read_table(scored, partitioning=None).rename_columns(names)
    pq.write_table(table, folder / "scored.parquet")
    own_scores = configure(folder, {"baseline": "old", "mitigated": "new"}, train=False, test="scored.parquet")
    again = run_embedded_well("mitigation", *own_scores, "--set", "corpus.name=own")
    for before, after in zip(done["models"][::2], again["models"], strict=True):
        assert {**before, "n_training": 3_000, "n_added": 0} == after

    # The comparison fails: the measurement is published, so its outcome is printed.
    def fail(*_: object) -> None:
        raise PublishConflict("compare_models: published")

    monkeypatch.setattr("biasspark.workflows.compare.publish_comparison", fail)
    failed = run_embedded("mitigation", *own_scores, "--set", "corpus.name=own", "--set", "compare.baseline=baseline")
    assert failed.code == 4, failed.err
    assert (failed.summary["job"], failed.summary["status"]) == ("bias_metrics", "published")


def test_a_repeated_text_counts_with_the_same_annotations(spark_session: SparkSession) -> None:
    rows = [("Thanks.", 1.0, ["a"]), ("Thanks.", None, ["b"]), ("Hi.", 0.0, None), ("Thanks.", 0.0, ["a", "b"])]
    for ordered in (rows, rows[::-1]):
        comments = spark_session.createDataFrame(ordered, "`comment.text` STRING, muslim DOUBLE, tags ARRAY<STRING>")
        kept = drop_repeats(comments.repartition(3), "comment.text").collect()
        assert sorted(map(tuple, kept)) == [("Hi.", 0.0, None), ("Thanks.", 0.0, ["a", "b"])]


def test_any_number_of_terms_may_lack_comments(folder: Path, spark_session: SparkSession) -> None:
    terms = [f"term{number}" for number in range(60)]
    _, config_path, *_ = configure(folder, pool="pool.parquet")
    config = load_config(str(config_path), [f"identities.terms.list={terms}"])
    assert config.mitigation is not None
    harmless = HarmlessComments(training_measures(config), Survey(0, {}, ()))
    lacking = np.ones((61, 1 + (harmless.encoding.n_length_bins or 0)), np.int64)
    lacking[0] = 0  # (overall)
    schema = f"`comment.text` STRING, {LABEL} BOOLEAN"
    pool = spark_session.createDataFrame([(f"All about {term}, in general.", False) for term in terms], schema)
    assert choose_comments(pool, harmless, lacking, config.mitigation)[MITIGATED].count() == 60


def test_a_training_corpus_without_a_text_is_refused(folder: Path, spark_session: SparkSession) -> None:
    _, config, *_ = configure(folder, pool="pool.parquet")
    rows, table = spark_session.createDataFrame([], f"{TEXT} STRING, {LABEL} BOOLEAN"), pa.table({})
    with pytest.raises(InputError, match="text"):
        train_models(load_config(str(config)), TrainingData(rows, {CONTROL: rows}, table, table, ()), Progress())


def test_a_training_corpus_without_a_word_is_refused(folder: Path, spark_session: SparkSession) -> None:
    _, config, *_ = configure(folder, pool="pool.parquet")
    rows = spark_session.createDataFrame([("!!!", True), ("🙂", False)], f"{TEXT} STRING, {LABEL} BOOLEAN")
    with pytest.raises(InputError, match="text"):
        train_models(load_config(str(config)), TrainingData(rows, {}, pa.table({}), pa.table({}), ()), Progress())


@pytest.mark.parametrize(("key", "value"), [("text", "texts"), ("pool", "nope.parquet"), ("test", "nope.parquet")])
def test_faults_name_the_key_that_is_written(folder: Path, key: str, value: str) -> None:
    flags = configure(folder, pool="pool.parquet")
    err = refuse_embedded("mitigation", *flags, "--dry-run", "--set", f"mitigation.{key}={value}")
    assert f"[mitigation] {key}" in err
    assert not any(words in err for words in ("corpus: ", "label_balance"))


def test_a_test_set_with_a_column_named_like_a_model_is_refused(folder: Path) -> None:
    test_set = pq.read_table(folder / "test.parquet")
    pq.write_table(test_set.append_column("Baseline", test_set["toxicity"]), folder / "with_baseline.parquet")
    flags = configure(folder, pool="pool.parquet", test="with_baseline.parquet")
    assert "Baseline" in refuse_embedded("mitigation", *flags, "--dry-run")
