"""Train classifiers on an imbalanced corpus, mitigate the bias of one by a plan, and measure what that changes."""

# imbalanced corpus --label balance--> plan --> added comments --> classifiers --> scored test set --main job--> tables

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial

import pyarrow as pa
from pyspark.ml.classification import LogisticRegressionModel
from pyspark.sql import DataFrame, SparkSession

from biasspark.cli import Command, Outcome, Progress, job_parser
from biasspark.config import parse_measures
from biasspark.errors import ConfigError
from biasspark.mitigation.classifier import hash_words, score_comments, train_classifier
from biasspark.mitigation.least_biased import judge, list_models, list_terms
from biasspark.mitigation.settings import (
    JOB,
    LABEL,
    MODELS,
    TEMPLATE,
    TEXT,
    Experiment,
    Mitigation,
    describe_experiment,
    load_experiment,
)
from biasspark.mitigation.training_data import generate_comments, list_cells, read_comments
from biasspark.session import describe, follow_tasks, is_embedded, job_session, kept
from biasspark.synthetic.chunks import generate
from biasspark.synthetic.imbalanced import BUCKETS
from biasspark.tables.frames import to_frame
from biasspark.tables.published import read_rows
from biasspark.tables.runs import new_run
from biasspark.tables.schemas import BIAS_METRICS, LABEL_BALANCE, MODEL_SUMMARY, TABLES
from biasspark.tables.spark_schemas import value_schema
from biasspark.tables.storage_errors import storage_errors
from biasspark.tables.store import open_store
from biasspark.workflows.balance_labels import balance_labels
from biasspark.workflows.measure import JOB as MAIN_JOB
from biasspark.workflows.measure import run_night
from biasspark.workflows.publish_run import RunContext


@dataclass(frozen=True)
class Folder:
    """The folder of the corpora of a run."""

    spark: SparkSession
    path: str

    def keep(self, name: str, rows: DataFrame) -> DataFrame:
        """Write rows as Parquet, where nothing is yet, and return them as they are read back."""
        path = f"{self.path}/{name}"
        with describe(self.spark, f"write {name}"), storage_errors(path, "written"):
            # Spark Connect knows errorifexists only as error.
            rows.write.mode("error").parquet(path)
            return self.spark.read.parquet(path)


def run_experiment(experiment: Experiment, run_date: date, dry_run: bool) -> Outcome:
    """Plan or run the experiment, publish the measured test set, and return what the job prints."""
    progress, settings, store = Progress(), experiment.mitigation, open_store(experiment.output)
    progress.stage("starting the engine")
    with job_session(f"biasspark {JOB}: {settings.corpus}") as spark:
        if is_embedded(spark):
            raise ConfigError("--engine embedded: it trains no classifiers. Run it on Spark: --engine spark.")
        comments = read_comments(spark, settings, run_date)
        store.check(spark, TABLES.values())
        if dry_run:
            summary = {"job": JOB, "status": "planned", "config_hash": experiment.hash}
            return Outcome(summary=summary, table=describe_experiment(experiment))
        run = new_run(run_date, settings.corpus, MAIN_JOB)
        with follow_tasks(spark, progress.advance):
            folder = Folder(spark, f"{experiment.corpus.path}/{run.partition}")
            scored, sizes = score_test_set(folder, settings, comments, progress)
            measured = run_night(scored, RunContext(spark, experiment, store, run, progress))
            summary, metrics = (read_rows(spark, store, table, [run])[0] for table in (MODEL_SUMMARY, BIAS_METRICS))
        models = [model | sizes[model["model"]] for model in list_models(summary)]
        return judge(measured, models, list_terms(metrics, tuple(settings.imbalanced)))


def score_test_set(
    folder: Folder, mitigation: Mitigation, comments: Mapping[str, DataFrame], progress: Progress
) -> tuple[DataFrame, dict[str, dict[str, int]]]:
    """Generate, plan, add, train and score.

    Returns the test set, with the columns id, comment_text, label, template, and a score for each of `MODELS`, and for
    each model ``n_training``, the comments that it was trained on, and ``n_added``, those not in the corpus.

    The folder gets `corpus` (the training data of all models), `plan` (its label balance), `control` and `mitigated`
    (the comments added for these models: those given, by model, or generated ones), `models` and `test_set`.
    """
    spark = folder.spark
    progress.stage(f"training corpus of {mitigation.rows:,} comments into {folder.path}")
    corpus = folder.keep("corpus", generate(spark, mitigation.training_request))
    progress.stage("label balance and mitigation plan")
    balance = balance_terms(corpus, mitigation)
    folder.keep("plan", to_frame(spark, balance, value_schema(LABEL_BALANCE)))
    added = {
        model: folder.keep(model, rows)
        for model, rows in (comments or generate_comments(spark, list_cells(balance), mitigation)).items()
    }
    models, sizes = train_models(folder, corpus, added, progress)
    progress.stage(f"scoring {mitigation.test_rows:,} templated sentences")
    sentences = generate(spark, mitigation.test_request).select("id", TEXT, LABEL, TEMPLATE)
    return folder.keep("test_set", score_comments(sentences, models)), sizes


def balance_terms(corpus: DataFrame, mitigation: Mitigation) -> pa.Table:
    """Return the label balance of the training corpus by term and length."""
    terms = {"column": TEXT, "list": {term: [term] for term in mitigation.terms}}
    table = {
        "label": {"column": LABEL},
        "identities": {"terms": terms},
        "label_balance": {"text": TEXT, "buckets": list(BUCKETS)},
    }
    balance, _ = balance_labels(corpus, parse_measures(table, scored=False))
    return balance


def train_models(
    folder: Folder, corpus: DataFrame, added: Mapping[str, DataFrame], progress: Progress
) -> tuple[dict[str, LogisticRegressionModel], dict[str, dict[str, int]]]:
    """Train the models one after the other, on the corpus and the comments added for each; return them and `sizes`."""
    n_common, models, sizes = corpus.count(), {}, {}
    with kept(hash_words(corpus)) as common:
        for name in MODELS:
            n_added = added[name].count() if name in added else 0
            sizes[name] = {"n_training": n_common + n_added, "n_added": n_added}
            progress.stage(f"training {name} on {n_common + n_added:,} comments")
            examples = common.unionByName(hash_words(added[name])) if name in added else common
            path = f"{folder.path}/models/{name}"
            with describe(folder.spark, f"train {name}"), storage_errors(path, "written"):
                models[name] = train_classifier(examples, n_common + n_added, path)
    return models, sizes


# ---- the command line

EXAMPLES = """\
examples:
  %(prog)s --config conf/mitigation.toml --run-date 2026-03-31
  %(prog)s --config conf/mitigation.toml --run-date 2026-03-31 --set mitigation.rows=20000

Comments of your own take the place of generated ones where [mitigation] debiasing and random name their files:
conf/mitigation.toml has an example.

The scored test set is measured as any corpus, into the tables of the job bias_metrics. The exit code is 5 unless the
mitigated model has the lowest pinned AUC equality difference of the three and the highest lowest BPSN AUC, and if a
rule of [gate] fails.
"""


def main(arguments: argparse.Namespace) -> Outcome:
    """Plan or run the experiment."""
    experiment = load_experiment(arguments.config, arguments.overrides)
    return run_experiment(experiment, arguments.run_date, arguments.dry_run)


RUN_DATE = "the night to publish the scored test set as"
COMMAND = Command(partial(job_parser, __doc__, EXAMPLES, run_date=RUN_DATE), main)
