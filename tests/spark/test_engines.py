"""Both engines on a corpus of everything, against each other, the definitions, and scikit-learn and SciPy."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from scipy.stats import mannwhitneyu, rankdata
from sklearn.metrics import roc_auc_score

import biasspark
from biasspark.columns import CELL_PAIRS, FOUR_CELLS, OVERALL
from biasspark.config import Measures, parse_measures
from biasspark.corpus.encode import build_encoding, encode_examples
from biasspark.corpus.survey import survey_corpus
from biasspark.ranking.counts import Counts
from biasspark.ranking.engine import rank
from tests.oracle.intervals import logit_interval
from tests.oracle.pairs import State, cross_all
from tests.oracle.suite import PAIRS, statistics_rows

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


def by_key(counts: Counts) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Everything that u_statistics holds but AUC and variance, by key."""
    found = {}
    for group, (*names, crossed) in enumerate(zip(*counts.groups, strict=True)):
        for pair, cells in enumerate(CELL_PAIRS):
            if names[-1] == OVERALL and cells != CELL_PAIRS[3]:
                continue
            sizes = (int(counts.cells[FOUR_CELLS.index(cell), group]) for cell in cells)
            shown = ("negative", "positive") if names[-1] == OVERALL else cells
            found[*names, *shown] = (bool(crossed), *sizes, *map(int, counts.sums[pair, :, group]))
    return found


def rank_rows(corpus: DataFrame, measures: Measures, engine: str, cuts: Sequence[float]) -> Counts:
    encoding = build_encoding(measures, survey_corpus(corpus, measures))
    examples = encode_examples(corpus, measures, encoding, None)
    return rank(examples, encoding, [np.array(cuts)] * len(measures.models), ranking_engine=engine)


# ---- the engines against the definitions


@pytest.mark.parametrize(
    ("engine", "models"),
    [
        ("blocks", {"tied": "s1", "smooth": "s2"}),
        ("windows", {"tied": "s1"}),
    ],
)
@pytest.mark.parametrize("unannotated", ["exclude", "background"])
def test_every_kind_of_identity_and_two_slices(
    spark: SparkSession, engine: str, models: dict[str, str], unannotated: str
) -> None:
    rows, identities = make_rows(), EVERY_KIND | {"unannotated": unannotated}
    measures = measures_of(identities, models=models)
    counts = rank_rows(spark.createDataFrame(rows, SCHEMA), measures, engine, [0.0, 0.5])
    assert by_key(counts) == want_statistics(rows, measures, list(states_of(rows[0], True)))


def test_crossed_pairs_tallies_and_profiles_of_both_engines(spark: SparkSession) -> None:
    """Sources that are unknown on different rows, one that never is, and pairs that are too small to be listed."""
    identities = {"columns": ["c1"], "categorical": ["cat"], "predicates": {"big": "k > 5"}}
    measures = measures_of(identities | {"crossed": {"pairs": True, "min_rows": 40}}, models={"tied": "s1"})
    rows, singles = make_rows(), ["c1", "cat=a", "cat=b c", "big"]
    corpus = spark.createDataFrame(rows, SCHEMA)
    blocks, windows = (
        rank_rows(corpus, measures, engine, cuts) for engine, cuts in (("blocks", [-0.1, 0.4]), ("windows", [0.0]))
    )
    wanted = want_statistics(rows, measures, singles)
    assert 0 < len({key[2] for key in wanted if " & " in key[2]}) < 6
    assert by_key(blocks) == by_key(windows) == wanted
    assert (blocks.row_counts, blocks.profiles) == (windows.row_counts, windows.profiles)
    assert blocks.row_counts.n_rows == len(rows)


def test_more_identities_than_are_combined_at_a_time(spark: SparkSession) -> None:
    n_rows, n_groups = 3000, 1300
    corpus = spark.range(n_rows, numPartitions=2).selectExpr(
        "id % 3 = 0 AS toxic",
        "pmod(xxhash64(id), 50) / 50.0D AS score",
        f"array(format_string('g%04d', id % {n_groups}), 'g0000') AS groups",
    )
    measures = measures_of({"array": "groups"}, label={"column": "toxic"}, models={"score": "score"}, slices={})
    found = by_key(rank_rows(corpus, measures, "blocks", [0.5]))
    assert len(found) == 1 + 6 * n_groups
    rows = corpus.collect()
    checked = {
        name: [float(name in row.groups) for row in rows] for name in ("g0000", "g0511", "g0512", "g1024", "g1299")
    }
    wanted = statistics_rows([row.score for row in rows], [row.toxic for row in rows], checked, ("score", "all"))
    assert {row[:5]: found[row[:5]] for row in wanted} == {row[:5]: row[5:] for row in wanted}


# ---- the same bits, however the rows lie


MEASURED: dict[str, Any] = {
    "models": ["tied", "smooth"],
    "label": "toxic",
    "identities": {"columns": ["male", "female"], "crossed": {"pairs": True, "min_rows": 10}},
}


def suite_rows(corpus: DataFrame, **changes: Any) -> list[Row]:
    metrics: DataFrame = biasspark.bias_metrics(corpus, **(MEASURED | changes))
    return metrics.orderBy("model", "slice", "identity").collect()


@pytest.fixture(scope="module")
def suite(spark_session: SparkSession, annotated_path: str) -> list[Row]:
    return suite_rows(spark_session.read.parquet(annotated_path))


@pytest.mark.parametrize(("partitions", "ranges"), [(3, 7), (1, 1), (17, 64)])
def test_partitions_and_ranges_change_no_bit(
    spark: SparkSession, annotated_path: str, suite: list[Row], partitions: int, ranges: int
) -> None:
    corpus = spark.read.parquet(annotated_path).repartition(partitions)
    assert suite_rows(corpus, ranges=ranges) == suite


def test_the_order_of_the_rows_changes_no_bit(spark: SparkSession, annotated_path: str, suite: list[Row]) -> None:
    corpus = spark.read.parquet(annotated_path).orderBy(F.xxhash64("id", F.lit("another order")))
    assert suite_rows(corpus, ranges=3) == suite


def test_a_sample_of_so_few_rows_still_cuts_ranges(spark: SparkSession, annotated_path: str) -> None:
    measures = parse_measures({"label": {"column": "toxic"}, "models": ["smooth"], "identities": ["male"]})
    [cuts] = survey_corpus(spark.read.parquet(annotated_path), measures).boundaries(64)
    assert 32 < len(cuts) < 64


def test_the_suite_agrees_with_scikit_learn_and_scipy(
    spark: SparkSession, annotated_path: str, suite: list[Row]
) -> None:
    corpus = spark.read.parquet(annotated_path).toPandas()
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
            if 0 < by_sklearn < 1 and variance > 0:
                ends = logit_interval(by_sklearn, variance)
                assert [row[f"{metric}_low"] + offset, row[f"{metric}_high"] + offset] == pytest.approx(ends, abs=1e-12)


def delong_variance_by_ranks(low: np.ndarray, high: np.ndarray) -> float:
    """DeLong's variance from mid-ranks, by the method of Sun and Xu 2014."""
    n, m, together = len(low), len(high), rankdata(np.r_[low, high])
    of_low = 1 - (together[:n] - rankdata(low)) / m
    of_high = (together[n:] - rankdata(high)) / n
    return float(np.var(of_low, ddof=1) / n + np.var(of_high, ddof=1) / m)
