"""The sampled pinned AUC on Spark: the same bits however the rows lie, and on average the closed form."""

from __future__ import annotations

import math
import random
from itertools import product
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from biasspark.config import PinnedAuc, parse_measures
from biasspark.corpus.codebook import Codebook
from biasspark.corpus.examples import build_codebook, label_examples
from biasspark.corpus.survey import survey_corpus
from biasspark.errors import InputError
from biasspark.metrics.pinned import pinned_aucs
from biasspark.metrics.statistics import with_auc
from biasspark.ranking.block_engine import integer_statistics, rank_blocks, sort_into_parts
from biasspark.ranking.pinned_engine import sampled_pinned_auc
from biasspark.session import persisted
from tests.oracle.suite import pinned_auc, weighted_auc

SCHEMA = "id INT, toxic BOOLEAN, score DOUBLE, few DOUBLE, most DOUBLE, nobody DOUBLE, kind STRING"
MEASURES: dict[str, Any] = {
    "label": {"column": "toxic"},
    "models": {"model": "score"},
    "identities": {
        "columns": ["few", "most", "nobody"],
        "categorical": ["kind"],
        "predicates": {"thirds": "id % 3 = 0"},
        "crossed": {"pairs": True, "min_rows": 300},
    },
}
LEAST: dict[str, Any] = MEASURES | {"identities": {"columns": ["few", "most", "nobody"]}}
N_ROWS = 3000


def make_rows() -> list[tuple[Any, ...]]:
    """Scores of two digits, and identities that overlap, are unknown on every fourth row, and are wrongly scored."""
    rng = random.Random(3)
    rows = []
    for number in range(N_ROWS):
        toxic, known = rng.random() < 0.3, rng.random() < 0.75
        few, most = rng.random() < 0.1, rng.random() < 0.7
        score = round(min(max(rng.gauss(0.35 + 0.25 * toxic + 0.1 * few - 0.05 * most, 0.15), 0.0), 1.0), 2)
        annotations = (float(few), float(most) if rng.random() < 0.9 else None, 0.0) if known else (None, None, None)
        rows.append((number, toxic, score, *annotations, rng.choice(["a", "b", None])))
    return rows


def rank(corpus: DataFrame, table: dict[str, Any], ranges: int) -> tuple[DataFrame, DataFrame, Codebook]:
    measures = parse_measures(table)
    codebook = build_codebook(measures, survey_corpus(corpus, measures))
    cuts = np.arange(1, ranges) / ranges
    parts = sort_into_parts(label_examples(corpus, measures, codebook, None), codebook, [cuts])
    return parts, rank_blocks(parts, codebook), codebook


def by_key(sampled: DataFrame) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    assert sampled.columns == ["model", "slice", "identity", "sampled_mean", "sampled_sd"]
    rows = sampled.collect()
    keyed = {(row.slice, row.identity): (row.sampled_mean, row.sampled_sd) for row in rows}
    assert len(keyed) == len(rows)
    assert {row.model for row in rows} == {"model"}
    return keyed


@pytest.mark.slow
def test_partitions_ranges_and_order_change_no_bit(spark: SparkSession) -> None:
    rows, pinned, found = make_rows(), PinnedAuc(trials=6, seed=4), []
    for n_partitions, ranges in ((1, 1), (3, 7), (2, 24)):
        random.Random(ranges).shuffle(rows)
        corpus = spark.createDataFrame(rows, SCHEMA).repartition(n_partitions)
        found.append(by_key(sampled_pinned_auc(*rank(corpus, MEASURES, ranges), pinned)))
    assert found[0] == found[1] == found[2]
    measured = {name for (_, name), (mean, sd) in found[0].items() if mean and sd}
    assert {"few", "most", "kind=a", "kind=b", "thirds", "most & kind=a", "kind=b & thirds"} <= measured
    # Nobody is in these, or too few to be listed.
    assert not measured & {"nobody", "most & nobody", "few & kind=a", "kind=a & kind=b", "(overall)"}


@pytest.mark.slow
@pytest.mark.parametrize("include", [True, False], ids=["of all", "of the others"])
def test_the_mean_of_a_thousand_trials_is_the_closed_form(spark: SparkSession, include: bool) -> None:
    rows, n_trials = make_rows(), 1000
    pinned = PinnedAuc(trials=n_trials, include_subgroup_in_background=include)
    parts, ranked, codebook = rank(spark.createDataFrame(rows, SCHEMA).coalesce(1), MEASURES, 2)
    with persisted(ranked):
        sampled = sampled_pinned_auc(parts, ranked, codebook, pinned)
        found = pinned_aucs(with_auc(integer_statistics(ranked, codebook)), pinned, sampled).collect()
    measured = {row.identity: row for row in found}
    for name, row in measured.items():
        if "nobody" in name:
            assert (row.pinned_auc, row.sampled_mean, row.sampled_sd) == (None, None, None)
        else:
            assert abs(row.sampled_mean - row.pinned_auc) < 4 * row.sampled_sd / math.sqrt(n_trials)
            assert 0.001 < row.sampled_sd < 0.05
    assert {"few", "most", "nobody", "kind=a", "thirds", "most & kind=a"} <= measured.keys()
    _, toxic, score, *_ = zip(*rows, strict=True)
    for place, name in ((3, "few"), (4, "most")):
        state = np.array([math.nan if row[place] is None else row[place] for row in rows])
        assert measured[name].pinned_auc == pytest.approx(closed_form(score, toxic, state, include), abs=1e-12)


def closed_form(score: Any, toxic: Any, state: np.ndarray, include: bool) -> float:
    """Of the background alone, its rows weigh |Dg|/|B| and those of the subgroup 1."""
    if include:
        return pinned_auc(score, toxic, state)
    known, inside = ~np.isnan(state), state == 1
    weight = np.where(inside, 1.0, inside.sum() / (state == 0).sum())
    return weighted_auc(np.array(score)[known], np.array(toxic)[known], weight[known])


def test_empty_cells_and_a_single_trial(spark: SparkSession) -> None:
    corpus = spark.createDataFrame(make_rows()[:300], SCHEMA).coalesce(1)
    ranking = rank(corpus, LEAST | {"slices": {"none": "id < 0", "toxic": "toxic"}}, 1)
    found = by_key(sampled_pinned_auc(*ranking, PinnedAuc(trials=1)))
    # A slice without rows is missing.
    assert found.keys() == set(product(("all", "toxic"), ("few", "most", "nobody")))
    mean, sd = found["all", "few"]
    assert mean is not None
    assert 0 < mean < 1
    assert sd is None
    assert found["all", "nobody"] == (None, None)
    assert {found["toxic", name] for name in ("few", "most", "nobody")} == {(None, None)}


def test_a_corpus_that_changed_after_it_was_ranked_is_refused(spark: SparkSession) -> None:
    corpus = spark.createDataFrame(make_rows()[:300], SCHEMA).coalesce(1)
    _, ranked, codebook = rank(corpus, LEAST, 2)
    parts, *_ = rank(corpus.where("score < 0.5"), LEAST, 2)
    with pytest.raises(Exception, match="had none when it was ranked"):
        sampled_pinned_auc(parts, ranked, codebook, PinnedAuc(trials=1)).collect()


def test_more_trials_than_a_worker_holds_are_refused(spark: SparkSession) -> None:
    ranking = rank(spark.createDataFrame(make_rows()[:30], SCHEMA), LEAST, 1)
    with pytest.raises(InputError) as refused:
        sampled_pinned_auc(*ranking, PinnedAuc(trials=4_000_000))
    assert str(refused.value) == (
        "[pinned_auc] trials = 4,000,000 for 3 identities. At most 2,796,202 trials are allowed for so many. Take "
        "fewer."
    )
