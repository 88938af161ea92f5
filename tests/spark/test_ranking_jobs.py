"""Every ranking job on Spark gives what it gives without an engine, and row ranks are those of the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession

from biasspark.attribution.block_sums import CELLS_A_PART
from biasspark.columns import GROUP
from biasspark.config import PinnedAuc, PinnedSkew
from biasspark.corpus.encoding import Encoding
from biasspark.ranking.jackknife_replicates import count_replicates
from biasspark.ranking.kernels.codec import load
from biasspark.ranking.paired_placements import sum_paired_placements
from biasspark.ranking.range_job import gather_ranges, unhash
from biasspark.ranking.row_blocks import BLOCK, RowRanking
from biasspark.ranking.row_ranks import rank_rows
from biasspark.ranking.sampled_trials import sample_pinned_aucs, sum_kept_rows
from biasspark.session import kept
from tests.fixtures.ranked_rows import (
    DESCRIPTION,
    ENCODING,
    EXAMPLES,
    Ranked,
    blocks_of,
    cut_blocks,
    draw_two_models,
    list_rows,
    on_spark,
)
from tests.harness.ranking_without_spark import frame_of, rank_batches
from tests.oracle.suite import ordered_doubled
from tests.unit.test_measured_sets import compute_all, draw_models
from tests.unit.test_task_rows import random_corpus

SCHEMA = f"word_0 BIGINT, score_0 DOUBLE, score_1 DOUBLE, values_1 STRING, {GROUP} INT, row_id BIGINT"
Job = Callable[[DataFrame, Encoding], Any]
CUTS = [np.array([-0.5, 0.5]), np.array([0.0])]


def examples_of() -> tuple[Encoding, pa.RecordBatch, list[np.ndarray]]:
    corpus = random_corpus(21, crossed=False)
    chosen = corpus.usable.all(axis=0)
    both, numbers = corpus.batch.filter(pa.array(chosen)), np.arange(chosen.sum())
    both = both.append_column(GROUP, pa.array(numbers % 7, pa.int32())).append_column("row_id", pa.array(numbers))
    return corpus.encoding, both, [column[chosen] for column in (corpus.label, corpus.inside, *corpus.scores)]


@pytest.fixture(scope="module")
def examples(spark_session: SparkSession) -> DataFrame:
    _, batch, _ = examples_of()
    rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return spark_session.createDataFrame(rows, SCHEMA).repartition(3)


def sample(frame: DataFrame, encoding: Encoding) -> Any:
    counts = rank_batches([examples_of()[1]], encoding)
    return sample_pinned_aucs(frame, encoding, CUTS, counts, PinnedAuc(trials=4)).tolist()


def drop(frame: DataFrame, encoding: Encoding) -> Any:
    counts = rank_batches([examples_of()[1]], encoding)
    return sum_kept_rows(frame, encoding, CUTS, counts, PinnedSkew(identity="a", trials=4))


JOBS: dict[str, Job] = {
    "paired placements": lambda frame, encoding: sum_paired_placements(frame, encoding, CUTS, [0, 1, 2, 4]).tolist(),
    "replicates": lambda frame, encoding: count_replicates(frame, encoding, CUTS, [0, 1, 4], 7).to_pylist(),
    "pinned trials": sample,
    "class skew": drop,
}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_job_gives_what_it_gives_without_an_engine(examples: DataFrame, job: Job) -> None:
    encoding, batch, _ = examples_of()
    np.testing.assert_equal(job(examples, encoding), job(frame_of([batch]), encoding))


def test_rows_have_the_placements_of_the_oracle(examples: DataFrame) -> None:
    encoding, _, (label, short, *scores) = examples_of()
    in_slices = np.array([np.ones(len(label), bool), short == 1])
    labels = np.stack([[(in_slices & (label == value)).sum(axis=1)] * 2 for value in (0, 1)])
    rows = rank_rows(examples, encoding, CUTS, labels).collect()
    assert len(rows) == 2 * (len(label) + short.sum())
    with pytest.raises(Exception, match="other rows"):
        rank_rows(examples, encoding, CUTS, labels + 1).collect()
    for row in rows:
        inside = short.astype(bool) if row["slice"] != "all" else np.ones(len(label), bool)
        opposite = scores[encoding.models.index(row["model"])][inside & (label != row["label"])]
        pair = ([row["score"]], opposite) if not row["label"] else (opposite, [row["score"]])
        assert (row["n_opposite"], row["ordered_doubled"]) == (len(opposite), ordered_doubled(*pair).sum())
        assert row["score"] == scores[encoding.models.index(row["model"])][int(row["row_id"])]


@pytest.mark.spark("how Spark hashes and shuffles")
def test_every_task_gets_as_many_ranges(spark_session: SparkSession) -> None:
    for number in (0, 1, 2, 77, 1023, 2**31 - 1):
        assert spark_session.range(1).select(F.hash(F.lit(unhash(number)))).first() == (number,)
    ranges = [(model, name, n, 0, b"") for model in range(3) for name in range(4) for n in range(5) for _ in range(2)]
    parts = spark_session.createDataFrame(
        [(-1, 0, 0, 0, b""), *ranges], "model INT, slice INT, score_range INT, kind INT, data BINARY"
    )
    gathered = gather_ranges(parts, [np.arange(4.0)] * 3, 4).withColumn("task", F.spark_partition_id()).collect()
    tasks = {tuple(row[:3]): row["task"] for row in gathered}
    assert len({(*row[:3], row["task"]) for row in gathered}) == len(tasks) == 61
    assert set(Counter(task for key, task in tasks.items() if key[0] >= 0).values()) == {6}


# ---- row blocks


def test_rows_are_ranked_into_the_blocks_of_the_oracle(spark: SparkSession) -> None:
    """Those of models, and those of two models that are compared, either being the baseline."""
    (first, second, both), batch = draw_two_models(11, 250)
    frame = spark.createDataFrame(list(zip(*(column.to_pylist() for column in batch.columns), strict=True)), EXAMPLES)
    cuts = [np.array([0.3, 0.5]), np.array([0.4])]
    ranking = RowRanking(ENCODING, cuts, DESCRIPTION, [(0, 1), (1, 0)])
    reverse = [row.of_baseline._replace(baseline=row.score) for row in both.rows]
    with kept(ranking.place(frame.repartition(3), [])) as placed:
        rows = placed.where(f"chunk = {BLOCK}").union(ranking.compare(placed)).collect()
    blocks = {(row["model"], row["score_range"]): list_rows(load(row["data"])) for row in rows}
    models = [first.rows, second.rows, both.rows, reverse]
    expected = {
        (number, score_range): list_rows(block)
        for number, (model_rows, edges) in enumerate(zip(models, [*cuts, *cuts], strict=True))
        for score_range, block in cut_blocks(model_rows, edges.tolist()).items()
    }
    assert blocks == expected


def test_what_is_computed_of_blocks_is_what_it_is_without_an_engine(spark: SparkSession) -> None:
    blocks = blocks_of([Ranked(rows, [0.45, 0.55]) for rows in draw_models()])
    assert compute_all(on_spark(spark, blocks), [0.5], 2 * CELLS_A_PART) == compute_all(blocks, [0.5], 1)
