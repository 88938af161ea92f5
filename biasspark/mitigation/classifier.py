"""Text classifiers: a logistic regression on the words of a comment, trained on the driver.

Executors score with what they have anyway; only training requires scikit-learn, the extra ``mitigation``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, StructField, StructType

PENALTY = 1e-4
"""Weight of half the sum of squared coefficients in the mean loss. Without it, coefficients of words that occur only in
toxic comments would be unbounded."""

MAX_STEPS = 1000

_WORD = r"\w+"


@dataclass(frozen=True)
class Classifier:
    """A logistic regression: the coefficient of each word in lower case, and the intercept."""

    coefficients: Mapping[str, float]
    intercept: float

    def score(self, words: Iterable[str]) -> float:
        """Return the probability, from 0 to 1, that a comment with these words is toxic, in any order."""
        logit = math.fsum([self.intercept, *(self.coefficients.get(word, 0.0) for word in words)])
        return 1.0 / (1.0 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1.0 + math.exp(logit))


def train_classifiers(
    texts: Sequence[str], labels: Sequence[bool], rows_of: Mapping[str, Sequence[int]]
) -> Iterator[tuple[str, Classifier]]:
    """Train a classifier on each choice of texts, given by index, and yield it with its name.

    The features of a text are its words, ignoring case. L-BFGS minimizes the mean loss plus the penalty; nothing is
    sampled, so the same texts give the same classifier.
    """
    from sklearn.feature_extraction.text import CountVectorizer  # noqa: PLC0415 - of an extra
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - of an extra

    vectorizer = CountVectorizer(binary=True, token_pattern=_WORD)
    features, is_toxic = vectorizer.fit_transform(texts), np.array(labels)
    words = vectorizer.get_feature_names_out().tolist()
    for name, rows in rows_of.items():
        regression = LogisticRegression(C=1.0 / (PENALTY * len(rows)), max_iter=MAX_STEPS)
        regression.fit(features[rows], is_toxic[rows])
        coefficients = dict(zip(words, regression.coef_[0].tolist(), strict=True))
        yield name, Classifier(coefficients, float(regression.intercept_[0]))


def score_comments(comments: DataFrame, text: str, models: Mapping[str, Classifier]) -> DataFrame:
    """Add for each model a DOUBLE column of its name, its score of the column `text`; NULL for NULL text. Lazy."""
    schema, word = comments.schema, re.compile(_WORD)
    position, names = schema.names.index(text), [*schema.names, *models]

    def score(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            texts = batch.column(position).to_pylist()
            rows = [None if text is None else set(word.findall(text.lower())) for text in texts]
            scores = [
                pa.array([None if words is None else model.score(words) for words in rows], pa.float64())
                for model in models.values()
            ]
            yield pa.RecordBatch.from_arrays([*batch.columns, *scores], names)

    numbered = comments.toDF(*map(str, range(len(schema))))  # mapInArrow takes a dot in a name for that of a field
    return numbered.mapInArrow(score, StructType([*schema, *(StructField(name, DoubleType()) for name in models)]))
