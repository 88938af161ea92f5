"""Train classifiers on a corpus, mitigate the bias of one by a plan, and measure and compare them."""

# training corpus --label balance--> plan --> added comments --> classifiers --> scored test set --main job--> tables
#                                                                                              --compare--> comparisons

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

from biasspark.arrays import Ints
from biasspark.cli import DRY_RUN, Command, Outcome, Progress, format_table, on_date, print_outcome
from biasspark.columns import ALL_ROWS, BETTER, EVERY_LENGTH, OVERALL, SUMMARIZED_AUCS, SUMMARIZED_GAPS, WORSE
from biasspark.config import Config, Corpus, Crossed, Identities, Label, Mitigation, load_config, write_toml
from biasspark.config.mitigation_settings import CONTROL, FOLDER, LABEL, MITIGATED, MODELS, TEMPLATE, TEXT
from biasspark.corpus.eligibility import label_of, row_reason
from biasspark.corpus.read import read_corpus
from biasspark.corpus.values import column
from biasspark.errors import GATE_FAILED, InputError, explain_missing, redact
from biasspark.mitigation import training_data
from biasspark.mitigation.classifier import Classifier, score_comments, train_classifiers
from biasspark.session import describe
from biasspark.synthetic.chunks import generate
from biasspark.tables import schemas
from biasspark.tables.publish import read_run
from biasspark.tables.runs import new_run
from biasspark.tables.storage_errors import storage_errors
from biasspark.tables.store import open_tables
from biasspark.workflows import compare, measure
from biasspark.workflows.corpus_job import RunContext, require
from biasspark.workflows.corpus_steps import CountedLabels, balance_labels, rows_only, survey_for_ranking

JOB = "mitigation_experiment"
DIFFERENCE, LOWEST_BPSN, LARGEST_GAP = "pinned_auc_equality_difference", "bpsn_auc_min", "aeg_max_abs"
MEASURES = ("auc", DIFFERENCE, *(f"{name}_min" for name in SUMMARIZED_AUCS), LARGEST_GAP)
TERM = "bpsn_auc of"
MAX_TERMS = 10


def write_rows(rows: DataFrame, path: str) -> DataFrame:
    """Write rows to a new Parquet folder, and return them as they are read back."""
    spark = rows.sparkSession
    with describe(spark, f"write {path.rpartition('/')[2]}"), storage_errors(path, "written"):
        # Spark Connect knows the mode errorifexists only as error.
        rows.write.mode("error").parquet(path)
        return spark.read.parquet(path)


@dataclass(frozen=True)
class Experiment:
    """An experiment: its training corpus, test set, and files of harmless comments by key; None for generated data."""

    config: Config
    mitigation: Mitigation
    corpus: DataFrame | None
    test_set: DataFrame | None
    comments: Mapping[str, DataFrame]

    @property
    def measured(self) -> Config:
        """The configuration for the measurement of the test set."""
        config, mitigation = replace(self.config, label_balance=None), self.mitigation
        if not mitigation.train:
            return replace(config, corpus=source_of_test_set(config, mitigation))
        corpus = Corpus(name=config.corpus.name, path=f"{config.output.path}/{FOLDER}", id=config.corpus.id)
        if self.test_set is not None:
            return replace(config, corpus=replace(corpus, duplicates=config.corpus.duplicates))
        terms = Identities(terms=config.identities.terms, crossed=config.identities.crossed)
        corpus = replace(corpus, id="id", duplicates="allow")
        return replace(config, corpus=corpus, label=Label(column=LABEL), identities=terms)


@dataclass(frozen=True)
class TrainingData:
    """The labeled comments of the training corpus, lazy; the added ones by model; and the tables of label balances."""

    rows: DataFrame
    added: Mapping[str, DataFrame]
    balance: pa.Table
    by_model: pa.Table
    warnings: tuple[str, ...]


def open_experiment(spark: SparkSession, config: Config, mitigation: Mitigation, run_date: date) -> Experiment:
    """Read the given corpora and files. Lazy. Raises `InputError` if they do not fit the configuration."""
    corpus = test_set = None
    training = training_measures(config)
    if not mitigation.rows:
        with training_data.naming_keys(mitigation, config):
            corpus = read_corpus(spark, config.corpus, run_date, training)
        training_data.require_text(corpus, mitigation.text, config.corpus.path or str(config.corpus.table))
    if mitigation.has_test_set:
        source = source_of_test_set(config, mitigation)
        measured = replace(config, label_balance=None, models={} if mitigation.train else config.models)
        with training_data.naming_keys(mitigation, config, "test" if mitigation.test else ""):
            test_set = read_corpus(spark, source, run_date, measured)
        if mitigation.train:
            training_data.require_text(test_set, mitigation.text, source.path or str(source.table))
            if existing := [name for name in test_set.columns if name.lower() in map(str.lower, config.models)]:
                problem = "the test set already has such a column, and the scores of a model need this name."
                raise InputError(f"[mitigation] test: {', '.join(existing)}, {problem} Rename it.")
    comments = training_data.read_comments(spark, mitigation, training, run_date)
    return Experiment(config, mitigation, corpus, test_set, comments)


def training_measures(config: Config) -> Config:
    """Return the measures of the training corpus: its label balance."""
    identities = replace(config.identities, crossed=Crossed())
    return replace(rows_only(config), models={}, slices={}, identities=identities, label_balance=config.label_balance)


def source_of_test_set(config: Config, mitigation: Mitigation) -> Corpus:
    """Return the source of the test set."""
    chosen = replace(config.corpus, filter=mitigation.test_filter)
    return replace(chosen, path=mitigation.test, table=None) if mitigation.test else chosen


@contextmanager
def prepare_training(
    spark: SparkSession, folder: str, experiment: Experiment, progress: Progress
) -> Iterator[TrainingData]:
    """Yield the label balance of the training corpus, and the comments to add, which are written to the folder."""
    config, mitigation, corpus = experiment.config, experiment.mitigation, experiment.corpus
    if corpus is None:
        request = mitigation.training_request
        assert request is not None  # without [corpus]
        progress.stage(f"training corpus of {request.rows:,} comments into {redact(folder)}")
        corpus = write_rows(generate(spark, request), f"{folder}/corpus")
    progress.stage("label balance and mitigation plan")
    source, measures = config.corpus, training_measures(config)
    with survey_for_ranking(corpus, measures, source.id, source.duplicates, config.rejects) as surveyed:
        counted = balance_labels(surveyed)
        harmless = training_data.HarmlessComments(measures, surveyed.survey)
        chosen = added_comments(spark, experiment, counted, harmless)
        added = {model: write_rows(rows, f"{folder}/{model}") for model, rows in chosen.items()}
        labels = {
            model: harmless.count(added[model]) if model in added else 0 * counted.labels for model in config.models
        }
        rows = surveyed.corpus
        labeled = rows.where(row_reason(config.label, rows.schema, source.id) == 0)
        text, label = column(mitigation.text_column).alias(TEXT), label_of(config.label, rows.schema).alias(LABEL)
        yield TrainingData(
            rows=labeled.select(text, label).where(F.col(TEXT).isNotNull()),
            added={model: rows.select(text, LABEL) for model, rows in added.items()},
            balance=counted.balance,
            by_model=_balance_training(counted, labels),
            warnings=tuple(f"training corpus: {warning}" for warning in counted.warnings),
        )


def added_comments(
    spark: SparkSession, experiment: Experiment, counted: CountedLabels, harmless: training_data.HarmlessComments
) -> dict[str, DataFrame]:
    """Return the comments to add by model: from files, chosen from the pool, or generated. Lazy."""
    mitigation, comments = experiment.mitigation, experiment.comments
    if "pool" in comments:
        lacking = training_data.list_lacking(counted.balance, counted.surveyed.encoding.n_length_bins or 0)
        return training_data.choose_comments(comments["pool"], harmless, lacking, mitigation)
    if comments:
        return {CONTROL: comments["random"], MITIGATED: comments["debiasing"]}
    return training_data.generate_comments(spark, counted.balance, mitigation) if mitigation.rows else {}


def _balance_training(counted: CountedLabels, added: Mapping[str, Ints]) -> pa.Table:
    """Return the table ``training_balance``, given the labels added for each model."""
    tables = []
    for model, labels in added.items():
        balance, n_added = map(counted.tabulate, (counted.labels + labels, labels))
        balance = balance.append_column("model", pa.array([model] * len(balance)))
        tables.append(balance.append_column("n_added", n_added["n_rows"]))
    return pa.concat_tables(tables).select(schemas.TRAINING_BALANCE.value_columns)


def score_test_set(
    spark: SparkSession, folder: str, experiment: Experiment, data: TrainingData, progress: Progress
) -> DataFrame:
    """Return the test set with scores of each model: given, or of trained classifiers, in `test_set` of the folder."""
    mitigation, test_set, text = experiment.mitigation, experiment.test_set, experiment.mitigation.text_column
    if not mitigation.train and test_set is not None:
        return test_set
    models = train_models(experiment.config, data, progress)
    if test_set is None:
        progress.stage(f"scoring {mitigation.test_rows:,} templated sentences")
        sentences = generate(spark, mitigation.test_request(experiment.config.terms))
        test_set = sentences.select("id", F.col(TEXT).alias(text), LABEL, TEMPLATE)
    else:
        progress.stage("scoring the test set")
    return write_rows(score_comments(test_set, text, models), f"{folder}/test_set")


def train_models(config: Config, data: TrainingData, progress: Progress) -> dict[str, Classifier]:
    """Train each model on the corpus and its added comments, collected and sorted: no model depends on their order."""
    progress.stage("collecting the training corpus")
    comments: list[tuple[str, bool]] = []
    positions: dict[str, range] = {}
    for name, rows in {"": data.rows, **data.added}.items():
        with describe(rows.sparkSession, "collect the training corpus"):
            collected = sorted((row[TEXT], row[LABEL]) for row in rows.collect())
        positions[name] = range(len(comments), len(comments) + len(collected))
        comments += collected
    if not positions[""]:
        raise InputError("[mitigation] text: no labeled row of the training corpus has a text. Name another column.")
    texts, labels = zip(*comments, strict=True)
    if not any(re.search(r"\w", text) for text in texts):
        raise InputError("[mitigation] text: no comment of the training corpus has a word. Name another column.")
    if len(set(labels[: len(positions[""])])) < 2:
        raise InputError(
            "[label]: all comments of the training corpus with a text have one label. Nothing can be learned."
        )
    rows_of = {name: [*positions[""], *positions.get(name, ())] for name in config.models}
    progress.stage(f"training {', '.join(rows_of)} on {len(positions['']):,} comments and more")
    models = {}
    for name, model in train_classifiers(texts, labels, rows_of):
        progress.stage(f"{name} is trained on {len(rows_of[name]):,} comments")
        models[name] = model
    return models


# ---- the best model


def list_models(summary: pa.Table, training: pa.Table) -> list[dict[str, Any]]:
    """Return the `MEASURES` of each model over all rows, in the order of `MODELS`, and its numbers of comments."""
    rows = {row["model"]: row for row in summary.to_pylist() if row["slice"] == ALL_ROWS}
    for row in rows.values():
        gaps = (row[f"{name}_max_abs"] for name in SUMMARIZED_GAPS)
        row[LARGEST_GAP] = max((gap for gap in gaps if gap is not None), default=None)
    for row in training.to_pylist():
        if (row["identity"], row["bucket"]) == (OVERALL, EVERY_LENGTH):
            rows[row["model"]] |= {"n_training": row["n_rows"], "n_added": row["n_added"]}
    return [
        {name: rows[model].get(name) for name in ("model", "n_training", "n_added", *MEASURES)}
        for model in MODELS
        if model in rows
    ]


def list_terms(metrics: pa.Table, balance: pa.Table) -> list[dict[str, Any]]:
    """Return each model's BPSN AUC of the identities that lack the most negatives according to ``label_balance``."""
    bpsn: dict[str, dict[str, Any]] = {}
    for row in metrics.to_pylist():
        if row["slice"] == ALL_ROWS:
            bpsn.setdefault(row["identity"], {})[row["model"]] = row["bpsn_auc"]
    lacking = {
        row["identity"]: row["n_negatives_to_add"] for row in balance.to_pylist() if row["bucket"] == EVERY_LENGTH
    }
    terms = sorted((term for term in bpsn if lacking.get(term)), key=lambda term: (-lacking[term], term))
    return [{TERM: term, "lacks": lacking[term]} | bpsn[term] for term in terms[:MAX_TERMS]]


def find_best(models: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the model that is better than all others by both measures of the experiment, or None.

    These are the pinned AUC equality difference, the measure of Mitigating, where lower is better, and the lowest BPSN
    AUC, where higher is better: mitigation is about harmless comments that score like toxic ones because of what they
    mention. If a value is missing, no model is the best.
    """
    if any(model[measure] is None for model in models for measure in (DIFFERENCE, LOWEST_BPSN)):
        return None
    best, *rest = sorted(models, key=lambda model: float(model[DIFFERENCE]))
    is_best = all(best[DIFFERENCE] < model[DIFFERENCE] and best[LOWEST_BPSN] > model[LOWEST_BPSN] for model in rest)
    return str(best["model"]) if is_best else None


def add_verdicts(models: Sequence[dict[str, Any]], comparisons: pa.Table) -> None:
    """Add in how many comparisons, background AUC included, each model is significantly better or worse."""
    verdicts = Counter((row["model"], row["verdict"]) for row in comparisons.to_pylist() if row["slice"] == ALL_ROWS)
    compared = {name for name, _ in verdicts}
    for model in models:
        if model["model"] in compared:
            model |= {verdict: verdicts[model["model"], verdict] for verdict in (BETTER, WORSE)}


def summarize(
    measured: Outcome, compared: Outcome | None, models: Sequence[Mapping[str, Any]], terms: Sequence[Mapping[str, Any]]
) -> Outcome:
    """Return the outcome of the experiment: exit code 5 if the mitigated model is not the best, or if a gate failed."""
    best = find_best(models)
    is_mitigated = best == MITIGATED
    evidence = {
        model["model"]: f"; {model[BETTER]:,} of its comparisons are significantly better, {model[WORSE]:,} worse"
        for model in models
        if BETTER in model
    }
    marked = [{**model, "best": "best" if model["model"] == best else ""} for model in models]
    names = [str(model["model"]) for model in models]
    parts = (
        measured.text,
        compared.text if compared else "",
        format_table(marked, ("model", "n_training", "n_added", *MEASURES, BETTER, WORSE, "best")),
        "better, worse: in how many comparisons of all rows, background_auc included" if compared else "",
        format_table(terms, (TERM, "lacks", *names)) if terms else "",
        f"best: by {DIFFERENCE}, the measure of the paper, and by {LOWEST_BPSN}. Neither has an interval.",
        f"The {MITIGATED} model is {'' if is_mitigated else 'NOT '}best by both measures{evidence.get(MITIGATED, '')}.",
    )
    summary = {**measured.summary, "job": JOB, "models": models, "best": best}
    code = measured.exit_code if is_mitigated else GATE_FAILED
    if compared:
        summary |= {f"comparison_{name}": compared.summary[name] for name in ("run_id", "gate", "warnings")}
        code = max(code, compared.exit_code)
    return Outcome(summary=summary, text="\n\n".join(filter(None, parts)), exit_code=code)


# ---- the command line

EXAMPLES = """\
examples:
  %(prog)s --config conf/mitigation.toml --run-date 2026-03-31
  %(prog)s --config conf/mitigation.toml --run-date 2026-03-31 --set mitigation.rows=20000

With a [corpus] the experiment uses your own comments: docs/mitigation.md has an example.

The scored test set is measured like any corpus, into the tables of the job bias_metrics, and its models are compared
with the baseline, as by compare_models. The exit code is 5 if a rule of [gate] fails, or if the mitigated model does
not have both the lowest pinned AUC equality difference and the highest minimum of BPSN AUC.
"""


def main(arguments: argparse.Namespace) -> Outcome:
    """Plan or run the experiment, and publish the measured test set."""
    config, run_date = load_config(arguments.config, arguments.overrides), arguments.run_date
    mitigation = require(config.mitigation, "mitigation", 'pool = "harmless.parquet"')
    progress = Progress()
    if mitigation.train:
        try:
            import sklearn  # noqa: F401, PLC0415 - of an extra
        except ModuleNotFoundError as error:
            raise explain_missing(error) from None
    with open_tables(JOB, config, progress) as (spark, store):
        run, comparison = (new_run(run_date, config.corpus.name, job) for job in (measure.JOB, compare.JOB))
        experiment = open_experiment(spark, config, mitigation, run_date)
        store.check(spark, schemas.TABLES.values())
        if arguments.dry_run:
            summary = {"job": JOB, "status": "planned", "config_hash": config.hash}
            return Outcome(summary=summary, text=write_toml(config.resolved()))
        folder = f"{config.output.path}/{FOLDER}/{run.partition}"
        with prepare_training(spark, folder, experiment, progress) as data:
            test_set = score_test_set(spark, folder, experiment, data, progress)
            measured = experiment.measured
            tables = {schemas.LABEL_BALANCE: data.balance, schemas.TRAINING_BALANCE: data.by_model}
            context = RunContext(spark, measured, store, run, progress)
            measured_outcome = measure.publish_measurement(test_set, context, tables, data.warnings)
            comparing = replace(context, run=comparison)
            try:
                compared = compare.publish_comparison(test_set, comparing) if measured.compare else None
            except Exception:
                print_outcome(measured_outcome)  # it is published all the same
                raise
            models = list_models(read_run(spark, store, schemas.MODEL_SUMMARY, run), data.by_model)
            terms = list_terms(read_run(spark, store, schemas.BIAS_METRICS, run), data.balance)
            if compared:
                add_verdicts(models, read_run(spark, store, schemas.MODEL_COMPARISONS, comparing.run))
        return progress.end(summarize(measured_outcome, compared, models, terms))


FLAGS = (*on_date("the run date of the published test set"), DRY_RUN)
COMMAND = Command(__doc__, EXAMPLES, FLAGS, main)
