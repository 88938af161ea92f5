"""Time the cases of a group in one Spark session with the settings of the job: in turn, after one round to warm up."""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from biasspark.session import build_session, describe
from scripts.benchmarks.cases import GROUPS, GROWING, Cases, exponents, suite
from scripts.benchmarks.task import PAIRS, Number, Outcome

SETTINGS = ("spark.driver.memory", "spark.master", "spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled")


def time_cases(spark: SparkSession, cases: Cases, repeat: int) -> dict[str, list[float]]:
    """Run the cases in turn, and return the seconds of each, of the round to warm up first.

    The Spark jobs of the other rounds are tagged with the name of their case, for the event log.
    """
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(repeat + 1):
        for name, case in cases.items():
            spark.sparkContext.clearJobTags()
            if number:
                spark.sparkContext.addJobTag(name)
            started = time.perf_counter()
            with describe(spark, name):
                case()
            seconds[name].append(time.perf_counter() - started)
            print(f"{name}: {seconds[name][-1]:.2f} s", flush=True)
    spark.sparkContext.clearJobTags()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--group", required=True, choices=GROUPS)
    parser.add_argument("--corpus", required=True, help="a folder of Parquet files")
    parser.add_argument("--repeat", required=True, type=int)
    parser.add_argument("--outcome", required=True, type=Path)
    arguments = parser.parse_args()
    spark = build_session(f"biasspark benchmark: {arguments.group}")
    try:
        corpus, folder = spark.read.parquet(arguments.corpus), arguments.outcome.parent.resolve()
        seconds = time_cases(spark, GROUPS[arguments.group](corpus, folder), arguments.repeat)
        medians = {name: statistics.median(times[1:]) for name, times in seconds.items()}
        settings = {name: spark.conf.get(name, None) for name in SETTINGS}
        details: dict[str, Any] = {"seconds": seconds, "medians": medians, "settings": settings}
        if arguments.group in GROWING:
            details["exponents"] = exponents(medians)
        rows = suite(corpus).select("model", "identity", *PAIRS).collect()
        numbers = [Number(row["model"], row["identity"], metric, row[metric]) for row in rows for metric in PAIRS]
        Outcome(numbers, next(iter(medians.values())), details).write(arguments.outcome)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
