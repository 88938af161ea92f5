"""Suites beside each other, and beside a sort and a scan, in one Spark session with the settings of the job.

Everything goes to Spark's noop sink. After one round to warm up, the cases run in turn; a suite's time includes its
survey.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from pathlib import Path
from typing import Any, Literal

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, SparkSession

import biasspark
from biasspark.session import build_session, describe
from biasspark.synthetic.civil_shape import IDENTITY_NAMES, MODELS
from scripts.benchmarks.growth import Case, exponents, growth_cases
from scripts.benchmarks.split_identities import SPLIT_NAMES
from scripts.benchmarks.suite import suite
from scripts.benchmarks.task import LABEL, NEEDED, PAIRS, THRESHOLD, Number, Outcome
from scripts.benchmarks.templates import template_cases
from scripts.benchmarks.windows import Nights

GROUPS = (
    "session",
    "binned",
    "array",
    "columns",
    "unannotated",
    "crossed",
    "comparison",
    "attribution",
    "window",
    "growth",
    "templates",
)
GROWING = {"growth": growth_cases, "templates": template_cases}
"""Groups whose cases are named after what grows."""
BY_ROW: dict[str, Any] = {"id": "id", "models": list(MODELS), "label": LABEL, "label_threshold": THRESHOLD}
SETTINGS = ("spark.driver.memory", "spark.master", "spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled")


def attributions(corpus: DataFrame) -> DataFrame:
    """Return every row of both models with its attribution."""
    return biasspark.example_attributions(corpus, **BY_ROW)


def crosses(corpus: DataFrame, n_groups: int) -> DataFrame:
    """Return the crosses of so many groups of about equally many rows."""
    return biasspark.auc_crosses(corpus, groupings={"part": f"id % {n_groups}"}, **BY_ROW)


def comparison(corpus: DataFrame, method: Literal["delong", "jackknife"]) -> DataFrame:
    """Return how the second model differs from the first, by all 24 identities."""
    identities = {"columns": list(IDENTITY_NAMES), "threshold": THRESHOLD}
    return biasspark.model_comparisons(corpus, baseline=MODELS[0], method=method, identities=identities, **BY_ROW)


def sort(corpus: DataFrame, *more: Column) -> DataFrame:
    """Sort one row per (row, model): the model's number, score and label, the least that a ranking can do with."""
    label = (F.col(LABEL) >= THRESHOLD).alias("label")
    rows = [
        corpus.select(F.lit(place).alias("model"), F.col(name).alias("score"), label, *more)
        for place, name in enumerate(MODELS)
    ]
    return reduce(DataFrame.unionAll, rows).orderBy("model", "score")


def memberships() -> Column:
    """Return who is in which identity, as bits."""
    bits = [F.when(F.col(name) >= THRESHOLD, 1 << place).otherwise(0) for place, name in enumerate(IDENTITY_NAMES)]
    return reduce(Column.bitwiseOR, bits).cast("bigint").alias("memberships")


def scan(corpus: DataFrame) -> DataFrame:
    """Read the columns that the suite needs."""
    return corpus.select(*NEEDED)


def make_cases(group: str, corpora: Sequence[DataFrame]) -> Mapping[str, Case]:
    """Return the cases of a group by name; each builds its frame anew, because building a suite runs its survey."""
    corpus, other = corpora[0], corpora[-1]
    whole, split = list(IDENTITY_NAMES), list(SPLIT_NAMES)
    groups: dict[str, dict[str, Case]] = {
        "session": {
            "suite": lambda: suite(corpus, columns=whole),
            "sort": lambda: sort(corpus),
            "sort with memberships": lambda: sort(corpus, memberships()),
            "scan": lambda: scan(corpus),
        },
        "binned": {
            "suite by bins": lambda: suite(corpus, "binned", columns=whole),
            "suite": lambda: suite(corpus, columns=whole),
            "scan": lambda: scan(corpus),
        },
        "array": {
            "24 identities": lambda: suite(other, array="groups"),
            "240 identities": lambda: suite(other, array="split_groups"),
        },
        "columns": {
            "24 identities": lambda: suite(other, columns=whole),
            "240 identities": lambda: suite(other, columns=split),
            "scan of 24": lambda: scan(other),
            "scan of 240": lambda: other.select(LABEL, *MODELS, *split),
        },
        "unannotated": {
            "all annotated": lambda: suite(corpus, columns=whole),
            "75 % not": lambda: suite(other, columns=whole),
        },
        "crossed": {
            "without pairs": lambda: suite(corpus, columns=whole),
            "with pairs": lambda: suite(corpus, columns=whole, crossed={"pairs": True, "min_rows": 1000}),
        },
        "comparison": {
            "comparison by DeLong": lambda: comparison(corpus, "delong"),
            "comparison by the jackknife": lambda: comparison(corpus, "jackknife"),
            "suite": lambda: suite(corpus, columns=whole),
        },
        "attribution": {
            "attribution of every row": lambda: attributions(corpus),
            "sort": lambda: sort(corpus),
            "crosses of 50 groups": lambda: crosses(corpus, 50),
            "suite": lambda: suite(corpus, columns=whole),
        },
    }
    return groups[group]


@contextmanager
def tag_jobs(spark: SparkSession, tag: str | None) -> Iterator[None]:
    """Give the Spark jobs within a tag, and those after it none."""
    spark.sparkContext.clearJobTags()
    if tag is not None:
        spark.sparkContext.addJobTag(tag)
    try:
        yield
    finally:
        spark.sparkContext.clearJobTags()


def time_cases(spark: SparkSession, cases: Mapping[str, Case], repeat: int) -> dict[str, list[float]]:
    """Run the cases in turn, and return the seconds of each, the round to warm up first.

    The Spark jobs of the rounds that count bear the name of their case as tag, for the event log.
    """
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(repeat + 1):
        for name, case in cases.items():
            begun = time.perf_counter()
            with tag_jobs(spark, name if number else None), describe(spark, name):
                case().write.format("noop").mode("overwrite").save()
            seconds[name].append(time.perf_counter() - begun)
            print(f"{name}: {seconds[name][-1]:.2f} s", flush=True)
    return seconds


def list_suite(metrics: DataFrame) -> list[Number]:
    """Return the values of the suite."""
    rows = metrics.select("model", "identity", *PAIRS).collect()
    return [Number(row["model"], row["identity"], metric, row[metric]) for row in rows for metric in PAIRS]


def hold_bounds(bounded: DataFrame, exact: Sequence[Number]) -> dict[str, float]:
    """Return how far the bounds of the engine binned are apart at most, and in the median of all numbers.

    Raises
    ------
    AssertionError
        If an exact number lies outside.
    """
    found, widths = {(row["model"], row["identity"]): row for row in bounded.collect()}, []
    for number in exact:
        row = found[number.model, number.identity]
        least, most = (row[f"{number.metric}_at_{end}"] for end in ("least", "most"))
        assert least <= number.value <= most, f"{number}: not from {least} to {most}"
        widths.append(most - least)
    return {"numbers": len(widths), "widest": max(widths), "median": statistics.median(widths)}


def main() -> None:
    """Run one group."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--group", required=True, choices=GROUPS)
    parser.add_argument("--corpus", required=True, action="append", help="one or two folders of Parquet files")
    parser.add_argument("--repeat", required=True, type=int)
    parser.add_argument("--outcome", required=True, type=Path)
    arguments = parser.parse_args()
    spark = build_session(f"biasspark benchmark: {arguments.group}")
    try:
        corpora = [spark.read.parquet(path) for path in arguments.corpus]
        if arguments.group == "window":
            nights = Nights.of(spark, corpora[0], arguments.outcome.parent.resolve())
            nights.publish()
            cases, numbers = nights.cases(), nights.merge
        else:
            growing = GROWING.get(arguments.group)
            cases = growing(corpora[0]) if growing else make_cases(arguments.group, corpora)
            numbers = partial(suite, corpora[0], columns=list(IDENTITY_NAMES))
        seconds = time_cases(spark, cases, arguments.repeat)
        medians = {name: statistics.median(times[1:]) for name, times in seconds.items()}
        settings = {name: spark.conf.get(name, None) for name in SETTINGS}
        details: dict[str, Any] = {"seconds": seconds, "medians": medians, "settings": settings}
        if arguments.group in GROWING:
            details["exponents"] = exponents(medians)
        exact = list_suite(numbers())
        if arguments.group == "binned":
            details["bounds"] = hold_bounds(suite(corpora[0], "binned", columns=list(IDENTITY_NAMES)), exact)
        Outcome(exact, next(iter(medians.values())), details).write(arguments.outcome)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
