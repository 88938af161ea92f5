"""The least that such a Spark job does: start a session, aggregate a column, map two in Python, write a file.

Run by spark-submit, at any checkout of the project: it imports nothing but the session.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyspark.sql.functions as F

from biasspark.session import build_session


def count_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.record_batch({"n_rows": pa.array([batch.num_rows])})


def main() -> None:
    """Run the floor, and write an outcome without metrics, as it computes none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--outcome", required=True, type=Path)
    arguments = parser.parse_args()
    spark = build_session("biasspark benchmark: floor")
    try:
        corpus = spark.read.parquet(arguments.corpus)
        (mean,) = corpus.agg(F.avg("target").alias("mean")).collect()
        counts = corpus.select("toxicity_1", "toxicity_6").mapInArrow(count_rows, "n_rows BIGINT")
        counts.agg(F.sum("n_rows").alias("n_rows")).write.parquet(str(arguments.outcome.with_name("floor")))
    finally:
        spark.stop()
    details = {"mean_target": mean["mean"]}
    arguments.outcome.write_text(json.dumps({"numbers": [], "seconds": None, "details": details}), "utf-8")


if __name__ == "__main__":
    main()
