"""A small mitigation experiment: added comments mitigate the bias, as its measured test set shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from biasspark.config import Measures, Mitigation, parse_measures
from biasspark.errors import Fault, InputError
from biasspark.mitigation.training_data import generate_comments, read_comments, require_text
from biasspark.tables.schemas import LABEL_BALANCE
from biasspark.workflows import mitigation_experiment as job
from tests.harness.least_configuration import raised_fault
from tests.harness.main_job import RUN_DATE, write_config
from tests.harness.main_job import run as run_job
from tests.harness.running_jobs import Done, ask

TERMS = ("gay", "muslim", "old", "male")
IMBALANCED = ("gay", "muslim")
ROWS, TEST_ROWS = 3_000, 1_600


@dataclass(frozen=True)
class Experiment:
    """A run of the job, and the folders of its tables and corpora."""

    done: Done
    warehouse: Path

    @property
    def summary(self) -> dict[str, Any]:
        return self.done.summary

    @property
    def corpora(self) -> Path:
        return self.warehouse / "mitigation" / f"run_date={RUN_DATE}" / f"run_id={self.summary['run_id']}"

    def ask(self, query: str, corpus: str = "") -> list[tuple[Any, ...]]:
        """Query the tables, or one of the corpora, which replaces FROM it."""
        if not corpus:
            return ask(self.warehouse, query)
        with duckdb.connect() as database:
            files = f"read_parquet('{self.corpora / corpus}/*.parquet', hive_partitioning = false)"
            database.execute(f"CREATE VIEW it AS SELECT * FROM {files}")
            return database.execute(query).fetchall()


def run(folder: Path, *flags: str) -> Done:
    (folder / "terms.txt").write_text("\n".join(TERMS), "utf-8")
    (folder / "warehouse").mkdir(exist_ok=True)
    asked = {"rows": ROWS, "test_rows": TEST_ROWS, "seed": 2, "terms": "terms.txt"}
    asked["imbalanced"] = dict.fromkeys(IMBALANCED, 0.02)
    config = write_config(folder, corpus=None, label=None, models=None, identities=None, mitigation=asked)
    return run_job(config, *flags, job=job)


@pytest.fixture(scope="module")
def experiment(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    folder = tmp_path_factory.mktemp("mitigation")
    done = run(folder)
    assert done.code == 0, done.out + done.err
    return Experiment(done, folder / "warehouse")


def test_the_mitigated_model_is_less_biased_than_both_others(experiment: Experiment) -> None:
    found = experiment.ask("SELECT model, pinned_auc_equality_difference, bpsn_auc_min FROM latest_model_summary")
    difference, lowest_bpsn = ({row[0]: row[place] for row in found} for place in (1, 2))
    for other in ("baseline", "control"):
        assert difference["mitigated"] < 0.6 * difference[other]
        assert lowest_bpsn["mitigated"] > lowest_bpsn[other] + 0.1
    worst = experiment.ask("SELECT model, bpsn_auc_min_identity FROM latest_model_summary WHERE model <> 'mitigated'")
    assert {identity for _, identity in worst} <= set(IMBALANCED)


def test_the_job_says_what_the_tables_say(experiment: Experiment) -> None:
    assert experiment.summary["job"] == "mitigation_experiment"
    assert experiment.summary["best"] == "mitigated"
    assert "mitigated" in experiment.done.out.splitlines()[-2]
    columns = ("model", "auc", "pinned_auc_equality_difference", "subgroup_auc_min", "bpsn_auc_min", "bnsp_auc_min")
    printed = sorted(tuple(model[column] for column in columns) for model in experiment.summary["models"])
    assert printed == sorted(experiment.ask(f"SELECT {', '.join(columns)} FROM latest_model_summary"))
    [gap] = experiment.ask(
        "SELECT max(greatest(abs(negative_aeg), abs(positive_aeg))) FROM latest_bias_metrics WHERE model = 'control' "
        "AND identity <> '(overall)'"
    )
    assert gap == (next(m["aeg_max_abs"] for m in experiment.summary["models"] if m["model"] == "control"),)
    ledger = experiment.ask("SELECT job, corpus, n_rows, json_extract(config, '$.mitigation.seed')::INT FROM bias_runs")
    assert sorted(ledger) == [(job, "mitigation", TEST_ROWS, 2) for job in ("bias_metrics", "compare_models")]
    verdicts = experiment.ask(
        "SELECT model, count_if(verdict = 'better'), count_if(verdict = 'worse') FROM latest_model_comparisons "
        "GROUP BY model ORDER BY model"
    )
    assert verdicts == [(m["model"], m["better"], m["worse"]) for m in experiment.summary["models"][1:]]


def test_what_is_added_follows_the_plan(experiment: Experiment) -> None:
    ((n_added, n_toxic),) = experiment.ask("SELECT count(*), count_if(label) FROM it", "mitigated")
    assert n_toxic == 0
    ((planned, done),) = experiment.ask(
        "SELECT sum(plan.n_negatives_to_add), sum(trained.n_added) FROM latest_label_balance AS plan "
        "JOIN latest_training_balance AS trained USING (identity, bucket) "
        "WHERE trained.model = 'mitigated' AND bucket <> '(all)' AND identity <> '(overall)'"
    )
    assert planned == done == n_added
    balanced = experiment.ask(
        "SELECT trained.n_positive - plan.n_positive, trained.positive_rate <= plan.overall_positive_rate "
        "FROM latest_training_balance AS trained JOIN latest_label_balance AS plan USING (identity, bucket) "
        "WHERE trained.model = 'mitigated' AND identity = 'gay' AND bucket <> '(all)' AND plan.n_rows > 0"
    )
    assert set(balanced) == {(0, True)}
    sizes = [(model["n_training"], model["n_added"]) for model in experiment.summary["models"]]
    assert sizes == [(ROWS, 0), (ROWS + n_added, n_added), (ROWS + n_added, n_added)]
    assert experiment.ask("SELECT count(*), count_if(label) FROM it", "control") == [(n_added, 0)]
    assert experiment.ask("SELECT count(*) FROM it", "corpus") == [(ROWS,)]


def test_an_empty_plan_is_refused(spark: SparkSession) -> None:
    empty = LABEL_BALANCE.arrow_schema.empty_table()
    fault = raised_fault(InputError, generate_comments, spark, empty, Mitigation(rows=7))
    assert (fault.path, fault.value) == (("mitigation",), 7)


def write_comments(folder: Path, **columns: list[Any]) -> str:
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(pa.table(columns), path)
    return str(path)


def measures() -> Measures:
    terms = {"column": "comment_text", "list": ["gay"]}
    return parse_measures({"label": {"column": "label"}, "identities": {"terms": terms}}, scored=False)


def test_comments_of_files_are_those_of_the_column_and_the_filter(spark: SparkSession, tmp_path: Path) -> None:
    part = ["train", "train", "test"]
    chosen = write_comments(tmp_path, comment=["A gay choir.", None, "Left out."], split=part)
    random = write_comments(tmp_path, comment=["A choir.", "Another one.", "Left out."], split=part)
    files = Mitigation(rows=5, debiasing=chosen, random=random, text="comment", filter="split <> 'test'")
    comments = read_comments(spark, files, measures(), date(2026, 1, 15))
    assert {key: [(row.comment_text, row.label) for row in rows.collect()] for key, rows in comments.items()} == {
        "debiasing": [("A gay choir.", False)],
        "random": [("A choir.", False), ("Another one.", False)],
    }


def test_comments_that_are_no_text_are_refused(spark: SparkSession) -> None:
    fault = raised_fault(InputError, require_text, spark.createDataFrame([(1,)], "comment BIGINT"), "comment", "a")
    assert (fault.path, fault.value) == (("mitigation", "text"), "comment")


def test_files_that_do_not_fit_are_refused_together(spark: SparkSession, tmp_path: Path) -> None:
    chosen = write_comments(tmp_path, words=["A gay choir."])
    files = Mitigation(debiasing=chosen, random=str(tmp_path / "none.parquet"))
    with pytest.raises(InputError) as caught:
        read_comments(spark, files, measures(), date(2026, 1, 15))
    of_chosen, of_random = caught.value.faults
    assert "none.parquet" in str(of_random)
    assert isinstance(of_chosen, Fault)
    assert (of_chosen.path, of_chosen.value) == (("mitigation", "text"), "comment_text")
    assert chosen in str(of_chosen)
