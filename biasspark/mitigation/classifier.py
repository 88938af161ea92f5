"""Text classifiers of Spark ML: a logistic regression on the hashed words of a comment."""

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
"""Number of hashed features: of some thousand words few share one."""

PENALTY = 1e-4
"""Weight of the sum of squared coefficients. Chosen. Without it, words only in toxic comments would have no bound."""

MOST_STEPS = 50

ROWS_PER_PARTITION = 500_000
"""Examples in one partition. Sums over one partition have one order."""


def hash_words(comments: DataFrame) -> DataFrame:
    """Add the column `features`: a 1 for each word of `comment_text`, in any case. Lazy, no shuffle."""
    tokenizer = RegexTokenizer(inputCol=TEXT, outputCol=WORDS, pattern=r"(?U)\W+", toLowercase=True)
    hashing = HashingTF(inputCol=WORDS, outputCol=FEATURES, numFeatures=N_FEATURES, binary=True)
    return hashing.transform(tokenizer.transform(comments)).drop(WORDS)


def train_classifier(examples: DataFrame, n_rows: int, path: str) -> LogisticRegressionModel:
    """Train a classifier and save it in a new folder: the likelihood less the penalty is maximized by L-BFGS.

    The columns of about `n_rows` examples are id, comment_text, label BOOLEAN and features, as from `hash_words`.

    Nothing is sampled. Rows are sorted, in one partition for each `ROWS_PER_PARTITION`. So with up to that many rows
    the coefficients are the same to the last bit on any cluster. With more, the order in which partitions finish
    changes the rounding of sums. Cost: a shuffle of the features, and a Spark job over them for each step.
    """
    rows = examples.repartition(-(-n_rows // ROWS_PER_PARTITION), TEXT).sortWithinPartitions("id", TEXT, LABEL)
    regression = LogisticRegression(
        featuresCol=FEATURES, labelCol=LABEL, regParam=PENALTY, standardization=False, maxIter=MOST_STEPS
    )
    regression.fit(rows.select(FEATURES, F.col(LABEL).cast("double").alias(LABEL))).save(path)
    # A model just trained holds the session, which cannot be sent to executors. A loaded one does not.
    return LogisticRegressionModel.load(path)


def score_comments(comments: DataFrame, models: Mapping[str, LogisticRegressionModel]) -> DataFrame:
    """Add for each model a DOUBLE column of its name: the probability, from 0 to 1, that the comment is toxic. Lazy."""
    scored = hash_words(comments)
    for name, model in models.items():
        scored = model.transform(scored).withColumn(name, vector_to_array(F.col("probability"))[1]).drop(*OUTPUTS)
    return scored.drop(FEATURES)
