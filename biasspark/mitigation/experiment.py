"""The experiment of Mitigating: three classifiers from one imbalanced corpus, and which of them is the least biased."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.ml.classification import LogisticRegressionModel
from pyspark.sql import DataFrame, SparkSession

from biasspark.cli import Progress
from biasspark.mitigation.classifier import hash_words, score_comments, train_classifier
from biasspark.mitigation.settings import LABEL, MODELS, TEMPLATE, TEXT, Mitigation
from biasspark.mitigation.training_data import generate_additions, plan_mitigation
from biasspark.session import describe, persisted
from biasspark.synthetic.blocks import generate
from biasspark.tables.contract import named_fault


@dataclass(frozen=True)
class Folder:
    """Where a run keeps its corpora."""

    spark: SparkSession
    path: str

    def keep(self, name: str, rows: DataFrame) -> DataFrame:
        """Write rows as Parquet, where nothing is yet, and return them as they are read back."""
        place = f"{self.path}/{name}"
        with describe(self.spark, f"write {name}"), named_fault(place, "written"):
            # Spark Connect knows errorifexists by its other name alone.
            rows.write.mode("error").parquet(place)
            return self.spark.read.parquet(place)


@dataclass(frozen=True)
class Scored:
    """The test set with the scores of all models, and how many comments each model was trained on.

    Attributes
    ----------
    sizes
        For each model ``n_training``, the comments that it was trained on, and ``n_added``, those not in the corpus.
    """

    test_set: DataFrame
    sizes: dict[str, dict[str, int]]


def run_experiment(
    folder: Folder, mitigation: Mitigation, snippets: Mapping[str, DataFrame], progress: Progress
) -> Scored:
    """Generate, plan, add, train and score.

    Parameters
    ----------
    folder
        Gets `corpus` (what all models are trained on), `plan` (its label balance), `control` and `mitigated` (what
        these two are trained on besides), `models` and `test_set`.
    snippets
        The comments to add by model; empty to generate them.
    progress
        Is told of each step.

    Returns
    -------
    Scored
        With columns id, comment_text, label, template, and a score for each of `MODELS`.
    """
    spark = folder.spark
    progress.stage(f"training corpus of {mitigation.rows:,} comments into {folder.path}")
    corpus = folder.keep("corpus", generate(spark, mitigation.training_request))
    progress.stage("label balance and mitigation plan")
    plan = folder.keep("plan", plan_mitigation(corpus, mitigation))
    additions = snippets or generate_additions(plan, mitigation)
    added = {model: folder.keep(model, rows) for model, rows in additions.items()}
    models, sizes = train_models(folder, corpus, added, progress)
    progress.stage(f"scoring {mitigation.test_rows:,} templated sentences")
    sentences = generate(spark, mitigation.test_request)
    scored = score_comments(sentences.select("id", TEXT, LABEL, TEMPLATE), models)
    return Scored(folder.keep("test_set", scored), sizes)


def train_models(
    folder: Folder, corpus: DataFrame, added: Mapping[str, DataFrame], progress: Progress
) -> tuple[dict[str, LogisticRegressionModel], dict[str, dict[str, int]]]:
    """Train the models one after the other, each on the corpus and on what is added for it; return them and `sizes`."""
    common, n_common, models, sizes = hash_words(corpus), corpus.count(), {}, {}
    with persisted(common):
        for name in MODELS:
            n_added = added[name].count() if name in added else 0
            sizes[name] = {"n_training": n_common + n_added, "n_added": n_added}
            progress.stage(f"training {name} on {n_common + n_added:,} comments")
            examples = common.unionByName(hash_words(added[name])) if name in added else common
            place = f"{folder.path}/models/{name}"
            with describe(folder.spark, f"train {name}"), named_fault(place, "written"):
                models[name] = train_classifier(examples, n_common + n_added, place)
    return models, sizes
