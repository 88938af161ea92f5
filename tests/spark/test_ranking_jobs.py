"""Every ranking job on Spark gives what it gives without an engine, and row ranks are those of the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from biasspark.columns import GROUP
from biasspark.config import PinnedAuc, PinnedSkew
from biasspark.corpus.encoding import Encoding
from biasspark.ranking.group_pair_counts import count_pairs_of_groups
from biasspark.ranking.jackknife_replicates import count_replicates
from biasspark.ranking.paired_placements import sum_paired_placements
from biasspark.ranking.row_ranks import rank_rows
from biasspark.ranking.sampled_trials import sample_pinned_aucs, sum_kept_rows
from tests.oracle.suite import ordered_doubled
from tests.ranking_without_spark import frame_of, rank_batches
from tests.unit.test_paired_placements import make_examples

SCHEMA = (
    "word_0 BIGINT, score_0 DOUBLE, score_1 DOUBLE, values_1 ARRAY<STRING>, " + f"{GROUP} INT, group_0 INT, row BIGINT"
)
Job = Callable[[DataFrame, Encoding], Any]
CUTS = [np.array([-0.5, 0.5]), np.array([0.0])]
GROUPINGS = {"g": ("g0", "g1", "g2")}


def examples_of(crossed: bool = False) -> tuple[Encoding, pa.RecordBatch, list[np.ndarray]]:
    encoding, batch, columns = make_examples(21, crossed)
    both = batch.filter(pa.array(columns[1]))
    numbers = np.arange(len(both))
    both = both.append_column(GROUP, pa.array(numbers % 7, pa.int32()))
    both = both.append_column("group_0", pa.array(numbers % 3, pa.int32()))
    return encoding, both.append_column("row", pa.array(numbers)), [column[columns[1]] for column in columns]


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
    "paired placements": lambda frame, encoding: sum_paired_placements(frame, encoding, CUTS, [0, 1, 2, 4]),
    "replicates": lambda frame, encoding: count_replicates(frame, encoding, CUTS, [0, 1, 4], 7).to_pylist(),
    "group pairs": lambda frame, encoding: count_pairs_of_groups(frame, encoding, CUTS, GROUPINGS),
    "pinned trials": sample,
    "class skew": drop,
}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_job_gives_what_it_gives_without_an_engine(examples: DataFrame, job: Job) -> None:
    encoding, batch, _ = examples_of()
    np.testing.assert_equal(job(examples, encoding), job(frame_of([batch]), encoding))


def test_rows_have_the_placements_of_the_oracle(examples: DataFrame) -> None:
    encoding, _, (label, _, short, *scores) = examples_of()
    rows = rank_rows(examples, encoding, CUTS, ["row"]).collect()
    assert len(rows) == 2 * (len(label) + short.sum())
    for row in rows:
        inside = short.astype(bool) if row["slice"] != "all" else np.ones(len(label), bool)
        opposite = scores[encoding.models.index(row["model"])][inside & (label != row["label"])]
        pair = ([row["score"]], opposite) if not row["label"] else (opposite, [row["score"]])
        assert (row["n_opposite"], row["ordered_doubled"]) == (len(opposite), ordered_doubled(*pair).sum())
        assert row["score"] == scores[encoding.models.index(row["model"])][row["row"]]
