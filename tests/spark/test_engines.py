"""Both engines on a corpus of everything, against each other, the definitions, and scikit-learn and SciPy."""

from __future__ import annotations

import io
import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from scipy.stats import mannwhitneyu, rankdata
from sklearn.metrics import roc_auc_score

import biasspark
from biasspark.config import Measures, parse_measures
from biasspark.corpus.examples import build_codebook, label_examples
from biasspark.corpus.survey import survey_corpus
from biasspark.pipeline import measure, ranked_once
from biasspark.ranking.engine import rank, read_overview
from biasspark.session import is_connect, persisted
from biasspark.tables.schemas import REJECTED_ROWS
from scripts.drill_intervals import logit_interval
from tests.oracle.pairs import State, cross_all
from tests.oracle.suite import PAIRS, statistics_rows
from tests.spark_versions import IS_3_5

pytestmark = pytest.mark.usefixtures("compiled")

SCHEMA = (
    "id INT, target DOUBLE, s1 DOUBLE, s2 DOUBLE, c1 DOUBLE, c2 DOUBLE, cat STRING, groups ARRAY<STRING>, "
    "text STRING, k INT"
)
TERMS = {"gay": ["gay", "lesbian"], "african american": ["african american"], "african": ["african"]}
WORDS = ("gay", "lesbian", "african", "american", "African-American", "African", "Gay", "gays", "x", "y", "the")
EVERY_KIND: dict[str, Any] = {
    "columns": ["c1", "c2"],
    "categorical": ["cat"],
    "array": "groups",
    "predicates": {"big": "k > 5"},
    "terms": {"column": "text", "list": TERMS},
}
N_ROWS = 20_000


def make_rows(n_rows: int = 400, seed: int = 5) -> list[tuple[Any, ...]]:
    """Ties, both zeros, scores and labels that are none, and annotations that are unknown by row and by identity."""
    rng = random.Random(seed)

    def fraction() -> float | None:
        return rng.choice([None, 0.0, 0.0, 0.3, 0.5, 0.8])

    rows = []
    for number in range(n_rows):
        annotated = rng.random() < 0.6
        rows.append(
            (
                number,
                rng.choice([0.0, 0.2, 0.5, 0.9]) if rng.random() < 0.9 else rng.choice([None, math.nan]),
                rng.choice([None, math.nan, math.inf, -0.0, 0.0, rng.random(), *[rng.randint(-4, 9) / 10] * 9]),
                rng.gauss(0, 100) if rng.random() < 0.95 else None,
                fraction() if annotated else None,
                fraction() if annotated else None,
                rng.choice(["a", "b c", None]),
                rng.choice([None, ["u"], ["u", "v", "u"], [], [None, "v"]]),
                " ".join(rng.choices(WORDS, k=4)) if rng.random() < 0.9 else None,
                rng.randint(0, 9),
            )
        )
    return rows


def measures_of(identities: dict[str, Any], **changes: Any) -> Measures:
    table = {
        "label": {"column": "target", "threshold": 0.5},
        "models": {"tied": "s1", "smooth": "s2"},
        "identities": identities,
        "slices": {"odd": "k % 2 = 1"},
    }
    return parse_measures(table | changes)


# ---- the oracle


def states_of(row: tuple[Any, ...], background: bool) -> dict[str, State]:
    """In, out or unknown for every single identity of a row, in the order of the configuration."""
    _, _, _, _, c1, c2, cat, groups, text, k = row

    def known(value: object, state: bool) -> State:
        return (False if background else None) if value is None else state

    found = {"c1": known(c1, bool(c1 and c1 >= 0.5)), "c2": known(c2, bool(c2 and c2 >= 0.5))}
    found |= {f"cat={value}": known(cat, cat == value) for value in ("a", "b c")}
    found |= {value: known(groups, value in (groups or [])) for value in ("u", "v")}
    found["big"] = k > 5
    for name, terms in TERMS.items():
        words = re.compile(rf"(?<!\w)({'|'.join(terms)})(?!\w)", re.IGNORECASE)
        found[name] = known(text, bool(words.search(text or "")))
    return found


def want_statistics(
    rows: list[tuple[Any, ...]], measures: Measures, names: Sequence[str]
) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Everything that u_statistics holds but AUC and variance, by key, counted pair by pair."""
    names, crossed = list(names), measures.identities.crossed
    background = measures.identities.unannotated == "background"
    singles = [[states_of(row, background)[name] for name in names] for row in rows]
    if crossed.pairs:
        names += [f"{one} & {other}" for place, one in enumerate(names) for other in names[place + 1 :]]
    every = [cross_all(states) if crossed.pairs else states for states in singles]
    states = np.array([[math.nan if state is None else float(state) for state in row] for row in every])
    listed = [n for n, name in enumerate(names) if " & " not in name or (states[:, n] == 1).sum() >= crossed.min_rows]
    columns = SCHEMA.replace(",", " ").split()[::2]
    wanted: list[tuple[Any, ...]] = []
    for model, column in measures.models.items():
        place = columns.index(column)
        usable = [is_number(row[1]) and is_number(row[place]) for row in rows]
        for name, inside in (("all", [True] * len(rows)), ("odd", [row[-1] % 2 == 1 for row in rows])):
            chosen = np.flatnonzero(np.array(usable) & np.array(inside))
            score, label = [rows[row][place] for row in chosen], [rows[row][1] >= 0.5 for row in chosen]
            wanted += statistics_rows(score, label, {names[n]: states[chosen, n] for n in listed}, (model, name))
    return {row[:5]: row[5:] for row in wanted}


def is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def by_key(statistics: DataFrame) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    integers = ("crossed", "n_low", "n_high", "u_doubled", "low_square_sum", "high_square_sum")
    found = statistics.select("model", "slice", "identity", "low_cell", "high_cell", *integers).collect()
    keyed = {tuple(row)[:5]: tuple(row)[5:] for row in found}
    assert len(keyed) == len(found)
    return keyed


# ---- the engines against the definitions


@pytest.mark.parametrize(
    ("engine", "models"),
    [
        ("blocks", {"tied": "s1", "smooth": "s2"}),
        pytest.param("windows", {"tied": "s1"}, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("unannotated", ["exclude", "background"])
def test_every_kind_of_identity_and_two_slices(
    spark: SparkSession, engine: str, models: dict[str, str], unannotated: str
) -> None:
    rows, identities = make_rows(), EVERY_KIND | {"unannotated": unannotated}
    measures = measures_of(identities, models=models, ranking={"engine": engine, "ranges": 3})
    statistics = measure(spark.createDataFrame(rows, SCHEMA), measures).statistics
    assert by_key(statistics) == want_statistics(rows, measures, list(states_of(rows[0], True)))


@pytest.mark.slow
def test_crossed_pairs_tallies_and_profiles_of_both_engines(spark: SparkSession) -> None:
    """Sources that are unknown on different rows, one that never is, and pairs that are too small to be listed."""
    identities = {"columns": ["c1"], "categorical": ["cat"], "predicates": {"big": "k > 5"}}
    measures = measures_of(identities | {"crossed": {"pairs": True, "min_rows": 40}}, models={"tied": "s1"})
    rows = make_rows()
    corpus = spark.createDataFrame(rows, SCHEMA)
    survey = survey_corpus(corpus, measures)
    codebook = build_codebook(measures, survey)
    examples = label_examples(corpus, measures, codebook, "id").persist()
    rankings = [
        rank(examples, codebook, [np.array(cut)], engine=engine)
        for engine, cut in zip(("blocks", "windows"), ([-0.1, 0.4], [0.0]), strict=True)
    ]
    wanted = want_statistics(rows, measures, codebook.singles)
    pairs = {key[2] for key in wanted if " & " in key[2]}
    assert 0 < len(pairs) < len(codebook.pairs)
    found = [by_key(ranking.statistics) for ranking in rankings]
    assert found == [wanted, wanted]
    blocks, windows = (read_overview(ranking.overview.collect(), codebook) for ranking in rankings)
    assert blocks == windows
    assert blocks[0].n_rows == len(rows)
    examples.unpersist()


@pytest.mark.slow
def test_more_identities_than_are_combined_at_a_time(spark: SparkSession) -> None:
    n_rows, n_groups = 3000, 1300
    corpus = spark.range(n_rows, numPartitions=2).selectExpr(
        "id % 3 = 0 AS toxic",
        "pmod(xxhash64(id), 50) / 50.0D AS score",
        f"array(format_string('g%04d', id % {n_groups}), 'g0000') AS groups",
    )
    statistics = biasspark.u_statistics(
        corpus, models=["score"], label="toxic", identities={"array": "groups"}, ranges=2
    )
    found = by_key(statistics)
    assert len(found) == 1 + 6 * n_groups
    rows = corpus.collect()
    checked = {
        name: [float(name in row.groups) for row in rows] for name in ("g0000", "g0511", "g0512", "g1024", "g1299")
    }
    wanted = statistics_rows([row.score for row in rows], [row.toxic for row in rows], checked, ("score", "all"))
    assert {row[:5]: found[row[:5]] for row in wanted} == {row[:5]: row[5:] for row in wanted}


# ---- the same bits, however the rows lie


@pytest.fixture(scope="module")
def corpus_path(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A corpus of 20,000 rows in Parquet, three quarters of it without annotations."""
    digits = [F.pmod(F.xxhash64("id", F.lit(seed)), F.lit(1000)) / 1000 for seed in range(6)]
    annotated = digits[5] < 0.25
    corpus = spark_session.range(N_ROWS, numPartitions=2).select(
        "id",
        (digits[0] < 0.2).alias("toxic"),
        F.round(digits[1] + F.when(digits[0] < 0.2, 0.3).otherwise(0.0), 2).alias("tied"),
        ((digits[2] + digits[1]) * digits[0]).alias("smooth"),
        F.when(annotated, digits[3]).alias("male"),
        F.when(annotated, digits[4]).alias("female"),
    )
    path = str(tmp_path_factory.mktemp("corpus") / "rows.parquet")
    corpus.write.parquet(path)
    return path


MEASURED: dict[str, Any] = {
    "models": ["tied", "smooth"],
    "label": "toxic",
    "identities": {"columns": ["male", "female"], "crossed": {"pairs": True, "min_rows": 10}},
}


def suite_rows(corpus: DataFrame, **changes: Any) -> list[Row]:
    return biasspark.bias_metrics(corpus, **(MEASURED | changes)).orderBy("model", "slice", "identity").collect()


@pytest.fixture(scope="module")
def suite(spark_session: SparkSession, corpus_path: str) -> list[Row]:
    return suite_rows(spark_session.read.parquet(corpus_path))


@pytest.mark.parametrize(
    ("partitions", "ranges"), [(3, 7), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((1, 1), (17, 64)))]
)
def test_partitions_and_ranges_change_no_bit(
    spark: SparkSession, corpus_path: str, suite: list[Row], partitions: int, ranges: int
) -> None:
    corpus = spark.read.parquet(corpus_path).repartition(partitions)
    assert suite_rows(corpus, ranges=ranges) == suite


@pytest.mark.slow
def test_the_order_of_the_rows_changes_no_bit(spark: SparkSession, corpus_path: str, suite: list[Row]) -> None:
    corpus = spark.read.parquet(corpus_path).orderBy(F.xxhash64("id", F.lit("another order")))
    assert suite_rows(corpus, ranges=3) == suite


def test_a_sample_of_so_few_rows_still_cuts_ranges(spark: SparkSession, corpus_path: str) -> None:
    measures = parse_measures({"label": {"column": "toxic"}, "models": ["smooth"], "identities": ["male"]})
    [cuts] = survey_corpus(spark.read.parquet(corpus_path), measures).boundaries(64)
    assert 32 < len(cuts) < 64


def test_the_suite_agrees_with_scikit_learn_and_scipy(spark: SparkSession, corpus_path: str, suite: list[Row]) -> None:
    corpus = spark.read.parquet(corpus_path).toPandas()
    states = {name: corpus[name].astype("Float64") >= 0.5 for name in ("male", "female")}  # NA where it is unknown
    states["male & female"] = states["male"] & states["female"]
    assert {(row.model, row.identity) for row in suite} == set(product(("tied", "smooth"), states))
    for row in suite:
        state, scores, positive = states[row.identity], corpus[row.model].to_numpy(), corpus["toxic"].to_numpy()
        sides = {"subgroup": state.fillna(False).to_numpy(bool), "background": (~state).fillna(False).to_numpy(bool)}
        cells = {
            f"{side}_{label}": scores[chosen & (positive == (label == "positive"))]
            for side, chosen in sides.items()
            for label in ("negative", "positive")
        }
        assert [row[f"n_{cell}"] for cell in cells] == [len(found) for found in cells.values()]
        for metric, (low, high) in PAIRS.items():
            offset = 0.5 if metric.endswith("aeg") else 0.0
            labels = np.repeat([0, 1], [len(cells[low]), len(cells[high])])
            by_sklearn = roc_auc_score(labels, np.r_[cells[low], cells[high]])
            by_scipy = mannwhitneyu(cells[high], cells[low]).statistic / len(cells[low]) / len(cells[high])
            assert row[metric] + offset == pytest.approx(by_sklearn, abs=1e-12, rel=0)
            assert row[metric] + offset == pytest.approx(by_scipy, abs=1e-12, rel=0)
            variance = delong_variance_by_ranks(cells[low], cells[high])
            if row[f"{metric}_method"] == "logit_delong":
                ends = logit_interval(by_sklearn, variance)
                assert [row[f"{metric}_low"] + offset, row[f"{metric}_high"] + offset] == pytest.approx(ends, abs=1e-12)


def delong_variance_by_ranks(low: np.ndarray, high: np.ndarray) -> float:
    """DeLong's variance from mid-ranks, by the method of Sun and Xu 2014."""
    n, m, together = len(low), len(high), rankdata(np.r_[low, high])
    of_low = 1 - (together[:n] - rankdata(low)) / m
    of_high = (together[n:] - rankdata(high)) / n
    return float(np.var(of_low, ddof=1) / n + np.var(of_high, ddof=1) / m)


# ---- plans: what is scanned and what is moved


def plan_of(frame: DataFrame) -> str:
    text = io.StringIO()
    with redirect_stdout(text):
        frame.explain()
    return text.getvalue()


def count_nodes(plan: str, node: str) -> int:
    return len(re.findall(rf"^[ :*()0-9+-]*{node}\b", plan, re.MULTILINE))


def assert_no_window_over_everything(plan: str) -> None:
    lines = plan.splitlines()
    for place, line in enumerate(lines):
        if re.match(r"[ :*()0-9+-]*Window\b", line):
            exchange = next(below for below in lines[place:] if "Exchange" in below)
            assert "SinglePartition" not in exchange


def test_a_ranking_scans_once_and_shuffles_once(spark: SparkSession, corpus_path: str) -> None:
    ranked = measure(spark.read.parquet(corpus_path), measures_of_corpus()).ranking.ranked
    plan = plan_of(ranked)
    assert count_nodes(plan, "FileScan") == 1
    assert count_nodes(plan, "Exchange") == 1
    assert "Window" not in plan


@pytest.mark.slow
def test_every_table_comes_of_the_ranking_that_was_kept(spark: SparkSession, corpus_path: str) -> None:
    measurement = measure(spark.read.parquet(corpus_path), measures_of_corpus())
    with ranked_once(measurement) as (tally, _):
        found = {table.name: frame for table, frame in measurement.tables(tally, 100).items() if frame is not None}
        plans = {name: plan_of(frame) for name, frame in found.items()}
    assert set(plans) == {"u_statistics", "bias_metrics", "model_summary", *FURTHER_TABLES}
    assert all("InMemoryTableScan" in plan for plan in plans.values())
    for name in ("u_statistics", "bias_metrics", "model_summary"):
        assert_no_window_over_everything(plans[name])


@pytest.mark.slow
def test_windows_never_hold_a_whole_corpus(spark: SparkSession, corpus_path: str) -> None:
    measurement = measure(spark.read.parquet(corpus_path), measures_of_corpus({"engine": "windows"}))
    plan = plan_of(measurement.ranking.ranked)
    assert count_nodes(plan, "Window") >= 2
    assert_no_window_over_everything(plan)


def measures_of_corpus(ranking: dict[str, Any] | None = None) -> Measures:
    table = {**MEASURED, "label": {"column": "toxic"}, "identities": ["male", "female"]}
    further = {"pinned_auc": {}, "thresholds": {"at": [0.5]}, "histograms": {"bins": 5}, "label_balance": {}}
    return parse_measures(table | further | {"ranking": ranking or {}})


FURTHER_TABLES = ("pinned_auc", "threshold_rates", "threshold_summary", "score_histograms", "label_balance")
"""What else comes of the one ranking of `measures_of_corpus`."""


# ---- jobs: what was really read and moved


@dataclass
class Work:
    """What Spark did in a block."""

    queries: int = 0
    """Actions, whatever number of jobs Spark makes of one."""
    scans: int = 0
    """Stages that read every row of the corpus."""
    shuffles: int = 0
    """Of these stages, those that hand rows on to others."""
    driver_bytes: int = 0
    """What came back to the driver, a few kB of bookkeeping a task with it."""


Watch = Callable[[str], AbstractContextManager[Work]]


@pytest.fixture
def watch(spark: SparkSession) -> Watch:
    """Count what Spark does in a block that is given a name."""
    if is_connect(spark):
        pytest.skip("a client of Spark Connect is not told which stages its queries ran")
    context, queries = spark.sparkContext, spark._jsparkSession.sharedState().statusStore()

    def last_query() -> int:
        """Give the number of the last query. How many there were is not known: Spark keeps the last thousand."""
        context._jsc.sc().listenerBus().waitUntilEmpty()
        listed = queries.executionsList()
        return listed.last().executionId() if listed.size() else -1

    @contextmanager
    def watched(name: str) -> Iterator[Work]:
        work, before = Work(), last_query()
        context.setJobGroup(name, name)
        try:
            yield work
        finally:
            context.setJobGroup("", "")
        work.queries = last_query() - before
        tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
        jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(name))
        # Of a long session Spark forgets the stages that it skipped.
        numbers = {number for job in jobs if job for number in job.stageIds if tracker.getStageInfo(number)}
        stages = [store.lastStageAttempt(number) for number in numbers]
        scans = [stage for stage in stages if stage.inputRecords() >= N_ROWS]
        work.scans, work.shuffles = len(scans), sum(stage.shuffleWriteRecords() > 0 for stage in scans)
        work.driver_bytes = sum(stage.resultSize() for stage in stages)

    return watched


def test_the_corpus_is_scanned_twice_and_shuffled_once(spark: SparkSession, corpus_path: str, watch: Watch) -> None:
    corpus = spark.read.parquet(corpus_path)
    with watch("survey") as survey:
        measurement = measure(corpus, measures_of_corpus(), "id", "estimate")
    assert (survey.queries, survey.scans) == (1, 1)
    with watch("ranking") as ranking:
        kept = ranked_once(measurement)
        tally, _ = kept.__enter__()
    assert (ranking.queries, ranking.scans, ranking.shuffles) == (1, 1, 1)
    with watch("tables") as tables:
        found = {table.name: frame for table, frame in measurement.tables(tally, 100).items() if frame is not None}
        rows = {name: frame.collect() for name, frame in found.items()}
    kept.__exit__(None, None, None)
    assert not any(frame.storageLevel.useMemory for frame in measurement.kept)
    assert (tables.scans, tables.shuffles) == (0, 0)
    assert len(rows.pop("score_histograms")) > 2 * (2 + 2 * 4)
    assert {name: len(listed) for name, listed in rows.items()} == {
        "u_statistics": 2 * (1 + 2 * 6),
        "bias_metrics": 2 * 2,
        "model_summary": 2,
        "pinned_auc": 2 * 2,
        "threshold_rates": 2 * 2,
        "threshold_summary": 2,
        "label_balance": 1 + 2,
    }
    # Two columns of scores would be 320 kB. What tasks say of themselves is more with Spark 3.5.
    assert max(work.driver_bytes for work in (survey, ranking, tables)) < 120_000


def test_rejects_cost_one_more_scan(spark: SparkSession, corpus_path: str, watch: Watch) -> None:
    """No other table does: test_job_bias_metrics.py counts the scans of a whole night with rejects."""
    corpus = spark.read.parquet(corpus_path).withColumn("toxic", F.expr("nullif(toxic, id % 10 = 0)"))
    measurement = measure(corpus, measures_of_corpus(), "id", "allow")
    with ranked_once(measurement) as (tally, _), watch("rejects") as rejects:
        found = measurement.tables(tally, 7)[REJECTED_ROWS]
        assert found is not None
        assert len(found.collect()) == 7
    assert tally.rejects["null_label"] > 1000
    assert rejects.scans == 1


def test_to_find_repeated_ids_costs_one_more_scan(spark: SparkSession, corpus_path: str, watch: Watch) -> None:
    corpus = spark.read.parquet(corpus_path)
    with watch("survey before ids") as survey:
        measurement = measure(corpus, measures_of_corpus(), "id", "reject")
    with watch("ranking with ids") as ranking, ranked_once(measurement):
        pass
    assert (survey.scans, ranking.scans) == (1, 2)


def test_nothing_is_kept_after_a_failure(spark: SparkSession, corpus_path: str) -> None:
    measurement = measure(spark.read.parquet(corpus_path), measures_of_corpus())
    ranked = measurement.ranking.ranked

    def fail() -> None:
        with ranked_once(measurement):
            assert ranked.storageLevel.useMemory
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not ranked.storageLevel.useMemory
    assert not measurement.statistics.storageLevel.useMemory


@pytest.mark.parametrize(
    "in_few_parts",
    [pytest.param(True, marks=pytest.mark.skipif(IS_3_5, reason="some releases of 3.5 keep all partitions")), False],
)
def test_few_rows_are_kept_in_few_partitions_if_so_asked(spark: SparkSession, in_few_parts: bool) -> None:
    keys = ("spark.sql.shuffle.partitions", "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning")
    before = [spark.conf.get(key) for key in keys]
    for key, value in zip(keys, ("40", "false"), strict=True):
        spark.conf.set(key, value)
    try:
        counts = spark.range(400).groupBy((F.col("id") % 200).alias("key")).count()
        with persisted(counts, in_few_parts=in_few_parts):
            n_parts = counts.select(F.spark_partition_id()).distinct().count()
        assert spark.conf.get(keys[1]) == "false"
    finally:
        for key, value in zip(keys, before, strict=True):
            spark.conf.set(key, str(value))
    assert n_parts < 10 if in_few_parts else n_parts > 30
