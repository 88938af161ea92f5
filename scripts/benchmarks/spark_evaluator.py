"""The suite with BinaryClassificationEvaluator of Spark ML, exact (no bins): a loop over identities and metrics.

It takes so long that only a few identities are measured. The time of all 24 is extrapolated.
"""

from __future__ import annotations

import time
from functools import reduce

import pyspark.sql.functions as F
from pyspark.ml.evaluation import BinaryClassificationEvaluator
from pyspark.sql import Column, DataFrame

from biasspark.session import build_session, persisted
from biasspark.synthetic.civil import IDENTITY_NAMES, MODELS
from scripts.benchmarks.task import LABEL, PAIRS, THRESHOLD, Number, Outcome, metric_of, parse_task

MEASURED = ("female", "muslim")


def measure_corpus(corpus: DataFrame, started: float) -> Outcome:
    """Measure a few identities on cached rows, and extrapolate to all."""
    rows = corpus.select((F.col(LABEL) >= THRESHOLD).alias("positive"), *MODELS, *MEASURED)
    numbers, seconds = [], []
    with persisted(rows):
        rows.count()
        ready = time.time() - started
        for identity in MEASURED:
            began = time.time()
            numbers += measure_identity(rows, identity)
            seconds.append(time.time() - began)
    extrapolated = ready + len(IDENTITY_NAMES) * sum(seconds) / len(seconds)
    details = {
        "extrapolated": True,
        "start_seconds": ready,
        "identity_seconds": dict(zip(MEASURED, seconds, strict=True)),
    }
    return Outcome(numbers, extrapolated, details)


def measure_identity(rows: DataFrame, identity: str) -> list[Number]:
    """Compute the six metrics of all models, without variances, which the evaluator does not compute."""
    numbers = []
    known = rows.where(F.col("positive").isNotNull()).withColumn("inside", F.col(identity) >= THRESHOLD)
    for model in MODELS:
        evaluator = BinaryClassificationEvaluator(rawPredictionCol=model, labelCol="high", numBins=0)
        for metric, (low, high) in PAIRS.items():
            both = known.where(in_cell(low) | in_cell(high)).withColumn("high", in_cell(high).cast("double"))
            numbers.append(Number(model, identity, metric, metric_of(metric, evaluator.evaluate(both))))
    return numbers


def in_cell(cell: str) -> Column:
    """Return whether a row is in a cell, such as subgroup_positive."""
    side, sign = cell.split("_")
    inside, positive = F.col("inside"), F.col("positive")
    return reduce(
        Column.__and__, [inside if side == "subgroup" else ~inside, positive if sign == "positive" else ~positive]
    )


def main() -> None:
    """Measure the corpus in a session of the job's settings."""
    started = time.time()
    arguments = parse_task(__doc__)
    spark = build_session("biasspark benchmark: evaluator")
    try:
        measure_corpus(spark.read.parquet(arguments.corpus), started).write(arguments.outcome)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
