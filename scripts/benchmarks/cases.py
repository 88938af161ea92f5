"""The cases that one Spark session compares, by group. A case computes something and drops it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import partial, reduce
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

import biasspark
from biasspark.cli import Progress
from biasspark.config import parse_config
from biasspark.synthetic.chunks import generate
from biasspark.synthetic.civil import CivilRequest
from biasspark.tables.runs import new_run
from biasspark.tables.store import open_store
from biasspark.workflows.corpus_job import RunContext
from biasspark.workflows.measure import JOB, publish_measurement
from biasspark.workflows.window import SETTINGS, find_window, merge_runs
from scripts.benchmarks.task import COLUMNS, IDENTITY_NAMES, LABEL, MODELS, SEED, THRESHOLD

Case = Callable[[], object]
Cases = Mapping[str, Case]

NAMES = list(IDENTITY_NAMES)
TASK: dict[str, Any] = {"label": LABEL, "label_threshold": THRESHOLD}
BY_ROW: dict[str, Any] = {"id": "id", "models": list(MODELS), **TASK}
PARTS = (16, 4, 1)
"""The denominators of the parts of the corpus that groups of growing rows measure."""
N_SLICES, N_MODELS, N_TENTHS, N_TEMPLATES, N_RUNS = (1, 4, 16), (1, 2, 4, 8), 10, 20, 7
SPLIT_NAMES = [f"{name}_{part}" for name in NAMES for part in range(N_TENTHS)]


def drain(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def suite(corpus: DataFrame, models: list[str] | None = None, slices: Any = None, **identities: Any) -> DataFrame:
    """Compute the suite over the identities of these keys of ``[identities]``."""
    identities = {"threshold": THRESHOLD, **(identities or {"columns": NAMES})}
    keywords = {"models": models or list(MODELS), "identities": identities, "slices": slices, **TASK}
    metrics: DataFrame = biasspark.bias_metrics(corpus, **keywords)
    return metrics


def sort(corpus: DataFrame, *more: Column) -> None:
    """Sort one row per (row, model): number of the model, score and label, the least that a ranking needs."""
    label = (F.col(LABEL) >= THRESHOLD).alias("label")
    rows = [
        corpus.select(F.lit(number).alias("model"), F.col(name).alias("score"), label, *more)
        for number, name in enumerate(MODELS)
    ]
    drain(reduce(DataFrame.unionAll, rows).orderBy("model", "score"))


def memberships() -> Column:
    """Return the identities of a row as bits."""
    bits = [F.when(F.col(name) >= THRESHOLD, 1 << bit).otherwise(0) for bit, name in enumerate(IDENTITY_NAMES)]
    return reduce(Column.bitwiseOR, bits).cast("bigint").alias("memberships")


def scan(corpus: DataFrame, *columns: str) -> None:
    """Read columns, by default those of the suite."""
    drain(corpus.select(*(columns or COLUMNS)))


def split_identities(corpus: DataFrame, folder: Path) -> DataFrame:
    """Write and read a corpus with ten identities in place of each; the hash of an id says to which a mention goes.

    It has both sets of identities, each as columns and as one array, so that all are read from files of one layout.
    """
    is_annotated = F.col(NAMES[0]).isNotNull()
    tenths = {name: F.pmod(F.xxhash64("id", F.lit(name)), F.lit(N_TENTHS)) for name in NAMES}
    columns = [
        F.when(is_annotated, F.when(tenths[name] == part, F.col(name)).otherwise(0.0)).alias(f"{name}_{part}")
        for name in NAMES
        for part in range(N_TENTHS)
    ]
    whole = {name: F.lit(name) for name in NAMES}
    split = {name: F.concat(F.lit(f"{name}_"), tenth.cast("string")) for name, tenth in tenths.items()}
    for array, names in (("groups", whole), ("split_groups", split)):
        mentioned = [F.when(F.col(column) >= THRESHOLD, name) for column, name in names.items()]
        columns.append(F.when(is_annotated, F.array_compact(F.array(*mentioned))).alias(array))
    return write(corpus.select(LABEL, *MODELS, *NAMES, *columns), folder)


def write(corpus: DataFrame, folder: Path) -> DataFrame:
    """Write a corpus, and return it as it is read."""
    path = str(folder / "corpus")
    corpus.write.parquet(path)
    return corpus.sparkSession.read.parquet(path)


def session_cases(corpus: DataFrame, _: Path) -> Cases:
    """The suite against a bare sort and a bare scan."""
    return {
        "suite": partial(suite, corpus),
        "sort": partial(sort, corpus),
        "sort with memberships": partial(sort, corpus, memberships()),
        "scan": partial(scan, corpus),
    }


def array_cases(corpus: DataFrame, folder: Path) -> Cases:
    """24 and 240 identities in an array, with the same number of mentions."""
    split = split_identities(corpus, folder)
    arrays = {"24 identities": "groups", "240 identities": "split_groups"}
    return {name: partial(suite, split, array=array) for name, array in arrays.items()}


def columns_cases(corpus: DataFrame, folder: Path) -> Cases:
    """24 and 240 columns of identities, with the same number of mentions."""
    split = split_identities(corpus, folder)
    return {
        "24 identities": partial(suite, split),
        "240 identities": partial(suite, split, columns=SPLIT_NAMES),
        "scan of 24": partial(scan, split),
        "scan of 240": partial(scan, split, LABEL, *MODELS, *SPLIT_NAMES),
    }


def unannotated_cases(corpus: DataFrame, folder: Path) -> Cases:
    """The corpus, and one with 75 % of its rows without annotations."""
    request = CivilRequest(corpus.count(), SEED, unannotated=0.75)
    unannotated = write(generate(corpus.sparkSession, request), folder)
    return {"all annotated": partial(suite, corpus), "75 % not": partial(suite, unannotated)}


def comparison_cases(corpus: DataFrame, _: Path) -> Cases:
    """Two models compared by DeLong and by the jackknife, against the suite."""
    identities = {"columns": NAMES, "threshold": THRESHOLD}
    compare = partial(biasspark.model_comparisons, corpus, baseline=MODELS[0], identities=identities, **BY_ROW)
    return {
        "comparison by DeLong": partial(compare, method="delong"),
        "comparison by the jackknife": partial(compare, method="jackknife"),
        "suite": partial(suite, corpus),
    }


def attribution_cases(corpus: DataFrame, _: Path) -> Cases:
    """The attribution of every row against a bare sort, and AUCs by pairs of 50 groups against the suite."""
    groups = {"part": "id % 50"}
    return {
        "attribution of every row": lambda: drain(biasspark.example_attributions(corpus, **BY_ROW)),
        "sort": partial(sort, corpus),
        "crosses of 50 groups": lambda: drain(biasspark.auc_crosses(corpus, groupings=groups, **BY_ROW)),
        "suite": partial(suite, corpus),
    }


def window_cases(corpus: DataFrame, folder: Path) -> Cases:
    """Publish runs that keep their scores, and return the cases: their merge, and a measurement of all rows.

    A row belongs to the run of its id modulo the number of runs.
    """
    spark, days = corpus.sparkSession, [date(2026, 1, 1) + timedelta(days=number) for number in range(N_RUNS)]
    table: dict[str, Any] = tomllib.loads((Path(__file__).parent / "job.toml").read_text("utf-8"))
    config = parse_config(table | {"state": {"keep": True}, "output": {"path": str(folder / "runs")}}, folder)
    store = open_store(config.output)
    for number, day in enumerate(days):
        run = new_run(day, config.corpus.name, JOB)
        rows = corpus.where(F.col("id") % N_RUNS == number)
        publish_measurement(rows, RunContext(spark, config, store, run, Progress()))

    def merge() -> object:
        ((size, batch),) = SETTINGS.items()
        before = spark.conf.get(size)
        spark.conf.set(size, batch)
        run = new_run(days[-1], config.corpus.name, "window_metrics", days[0])
        window = find_window(RunContext(spark, config, store, run, Progress()), allow_missing=False)
        tables = merge_runs(window, config).tables
        spark.conf.set(size, str(before))
        return tables

    return {"rescan": partial(suite, corpus), f"window of {N_RUNS} runs": merge}


# ---- growth: a case is named after the quantity that grows and its amount, from which exponents are read


def growth_cases(corpus: DataFrame, _: Path) -> Cases:
    """More rows, identities, models and slices, each while the others stay at the smallest part of the corpus.

    Identities are predicates, so that 240 of them, each a tenth of the mentions of one of 24, need no other corpus.
    Additional models are mixtures of both. A slice has a quarter of the rows.
    """
    parts = [_first_files(corpus, denominator) for denominator in PARTS]
    small = parts[0]
    first, second = MODELS
    shares = {f"mixture_{number}": number / 7 for number in range(max(N_MODELS))}
    mixtures = {name: F.col(first) * (1 - share) + F.col(second) * share for name, share in shares.items()}
    mixed = small.withColumns(mixtures)
    slices = {f"quarter_{number}": f"pmod(id + {number}, 16) < 4" for number in range(max(N_SLICES))}
    mentions = {name: f"`{name}` >= {THRESHOLD}" for name in IDENTITY_NAMES}
    tenths = {
        f"{name}_{part}": f"{mention} AND pmod(id, {N_TENTHS}) = {part}"
        for name, mention in mentions.items()
        for part in range(N_TENTHS)
    }
    predicates = (dict(list(mentions.items())[:1]), mentions, tenths)
    return {
        **{f"rows: {part.count()}": partial(suite, part) for part in parts},
        **{f"identities: {len(chosen)}": partial(suite, small, predicates=chosen) for chosen in predicates},
        **{f"models: {n}": partial(suite, mixed, models=list(mixtures)[:n]) for n in N_MODELS},
        **{f"slices: {n}": partial(suite, small, slices=dict(list(slices.items())[:n])) for n in N_SLICES},
    }


def template_cases(corpus: DataFrame, _: Path) -> Cases:
    """Scores of 20 templates by 24 identities in ever more rows. Nearly every row has its own score."""
    templates = corpus.withColumn("template", F.pmod(F.xxhash64("id"), F.lit(N_TEMPLATES)))
    identities = {"columns": NAMES, "threshold": THRESHOLD}
    keywords = {"models": list(MODELS), "identities": identities, "template": "template", **TASK}
    parts = [templates.where(F.pmod("id", F.lit(denominator)) == 0) for denominator in PARTS]
    return {f"rows: {part.count()}": partial(biasspark.template_scores, part, **keywords) for part in parts}


def exponents(medians: Mapping[str, float]) -> dict[str, float]:
    """Return the power of each quantity with which the time grows: the slope of the logarithms, by least squares."""
    sized = [(name.partition(": "), seconds) for name, seconds in medians.items()]
    powers = {}
    for quantity, cases in groupby(sized, key=lambda case: case[0][0]):
        amounts, seconds = zip(*((int(amount), seconds) for (_, _, amount), seconds in cases), strict=True)
        powers[quantity] = float(np.polyfit(np.log(amounts), np.log(seconds), 1)[0])
    return powers


def _first_files(corpus: DataFrame, denominator: int) -> DataFrame:
    """Return a part of a corpus, whose files are about equally large."""
    files = sorted(corpus.inputFiles())
    return corpus.sparkSession.read.parquet(*files[: -(-len(files) // denominator)])


GROUPS: dict[str, Callable[[DataFrame, Path], Cases]] = {
    "session": session_cases,
    "array": array_cases,
    "columns": columns_cases,
    "unannotated": unannotated_cases,
    "comparison": comparison_cases,
    "attribution": attribution_cases,
    "window": window_cases,
    "growth": growth_cases,
    "templates": template_cases,
}
"""Cases of a group by name, given the corpus and a folder for another corpus or for tables."""

GROWING = ("growth", "templates")
