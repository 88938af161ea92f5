"""Text classifiers of Spark ML: which words a comment holds, hashed, and a logistic regression on them."""

from __future__ import annotations

from collections.abc import Mapping

import pyspark.sql.functions as F
from pyspark.ml.classification import LogisticRegression, LogisticRegressionModel
from pyspark.ml.feature import HashingTF, RegexTokenizer
from pyspark.ml.functions import vector_to_array
from pyspark.sql import DataFrame

from biasspark.mitigation.settings import LABEL, TEXT

WORDS, FEATURES = "words", "features"
OUTPUTS = ("rawPrediction", "probability", "prediction")

N_FEATURES = 2**18
"""Places that words are hashed to: among some thousand words few share one."""

PENALTY = 1e-4
"""Weight of the sum of squared coefficients. Chosen; with none, words of toxic comments alone would have no bound."""

MOST_STEPS = 50

ROWS_PER_PARTITION = 500_000
"""Examples that are trained on in one partition. Sums over one partition have one order."""


def hash_words(comments: DataFrame) -> DataFrame:
    """Add the column `features`: a 1 for each word of `comment_text`, in any case. Lazy, no shuffle."""
    tokenizer = RegexTokenizer(inputCol=TEXT, outputCol=WORDS, pattern=r"(?U)\W+", toLowercase=True)
    hashing = HashingTF(inputCol=WORDS, outputCol=FEATURES, numFeatures=N_FEATURES, binary=True)
    return hashing.transform(tokenizer.transform(comments)).drop(WORDS)


def train_classifier(examples: DataFrame, n_rows: int, place: str) -> LogisticRegressionModel:
    """Train a classifier and save it.

    Parameters
    ----------
    examples
        Columns id, comment_text, label BOOLEAN and features, as from `hash_words`.
    n_rows
        How many there are, about.
    place
        The folder that gets the model, where nothing is yet.

    Returns
    -------
    LogisticRegressionModel
        Maximises the likelihood less the penalty, by at most `MOST_STEPS` steps of L-BFGS.

    Notes
    -----
    Nothing is sampled. Rows are put into an order, in one partition for each `ROWS_PER_PARTITION`: so with up to that
    many the coefficients are the same to the last bit on any cluster, and with more but for the rounding of sums whose
    partitions finish in varying order. Cost: a shuffle of the features, and a Spark job over them for each step.
    """
    rows = examples.repartition(-(-n_rows // ROWS_PER_PARTITION), TEXT).sortWithinPartitions("id", TEXT, LABEL)
    regression = LogisticRegression(
        featuresCol=FEATURES, labelCol=LABEL, regParam=PENALTY, standardization=False, maxIter=MOST_STEPS
    )
    regression.fit(rows.select(FEATURES, F.col(LABEL).cast("double").alias(LABEL))).save(place)
    # A model just trained holds the session, which cannot be sent to executors; one that is loaded does not.
    return LogisticRegressionModel.load(place)


def score_comments(comments: DataFrame, models: Mapping[str, LogisticRegressionModel]) -> DataFrame:
    """Add for each model a DOUBLE column of its name: the probability, from 0 to 1, that the comment is toxic. Lazy."""
    scored = hash_words(comments)
    for name, model in models.items():
        scored = model.transform(scored).withColumn(name, vector_to_array(F.col("probability"))[1]).drop(*OUTPUTS)
    return scored.drop(FEATURES)
