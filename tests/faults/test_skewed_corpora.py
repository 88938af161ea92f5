"""Corpora out of balance: nearly all rows in one identity or at one score, thousands of identities, huge counts."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from biasspark.config import parse_measures
from biasspark.workflows.corpus_steps import measure, survey_for_ranking
from tests.oracle.counts import count_pair
from tests.oracle.suite import PAIRS, cut_cells

COUNTS = ["identity", "low_cell", "high_cell", "n_low", "n_high", "u_doubled", "low_square_sum", "high_square_sum"]


def statistics_of(corpus: DataFrame, **measures: Any) -> list[dict[str, Any]]:
    """Measure a corpus, and return the rows of ``u_statistics``."""
    measures = {"label": {"column": "y"}, "ranking": {"ranges": 8}} | measures
    with survey_for_ranking(corpus, parse_measures(measures)) as surveyed:
        return list(measure(surveyed).statistics.table().to_pylist())


def test_one_identity_and_one_score_with_99_rows_of_100(spark: SparkSession) -> None:
    """One identity, and one score, have 99 rows of 100: every number matches the definitions."""
    rng = np.random.default_rng(31)
    n_rows = 4_000
    label = rng.random(n_rows) < 0.3
    rows = {
        "y": label,
        "spread": rng.normal(label, 1).round(2),
        "tied": np.where(rng.random(n_rows) < 0.99, 0.5, rng.random(n_rows)),
        "nearly_all": (rng.random(n_rows) < 0.99).astype(float),
        "hardly_any": (rng.random(n_rows) < 0.01).astype(float),
    }
    identities = {name: rows[name] for name in ("nearly_all", "hardly_any")}
    wanted = {
        (model, "(overall)", "negative", "positive", *count_pair(rows[model][~label], rows[model][label]))
        for model in ("spread", "tied")
    }
    for model, (identity, inside) in product(("spread", "tied"), identities.items()):
        cells = cut_cells(rows[model], label, inside)
        wanted |= {(model, identity, low, high, *count_pair(cells[low], cells[high])) for low, high in PAIRS.values()}
    corpus = spark.createDataFrame(pd.DataFrame(rows)).repartition(4)
    statistics = statistics_of(corpus, models=["spread", "tied"], identities=list(identities))
    found = {(row["model"], *(row[name] for name in COUNTS)) for row in statistics}
    assert len(wanted) == 2 * (2 * 6 + 1)
    assert found == wanted


@pytest.mark.parametrize(("n_rows", "n_tags"), [(3_000, 1_300), pytest.param(30_000, 10_000, marks=pytest.mark.slow)])
def test_ten_thousand_identities(spark: SparkSession, n_rows: int, n_tags: int) -> None:
    """There are thousands of identities, up to ten thousand: every number matches the definitions.

    As many as a column may have.
    """
    rng = np.random.default_rng(37)
    first = np.arange(n_rows) % n_tags
    second = (first + 1 + rng.integers(0, n_tags - 1, n_rows)) % n_tags
    label, level = rng.random(n_rows) < 0.4, rng.integers(0, 500, n_rows)
    rows = pd.DataFrame(
        {"y": label, "s": level / 500, "tags": [[f"t{a}", f"t{b}"] for a, b in zip(first, second, strict=True)]}
    )
    statistics = statistics_of(spark.createDataFrame(rows), models=["s"], identities={"array": "tags"})
    of_tag = {f"t{tag}": np.flatnonzero((first == tag) | (second == tag)) for tag in range(n_tags)}
    wanted = {
        (tag, low, high): counts
        for tag, inside in of_tag.items()
        for (low, high), counts in count_pairs(level, label, inside).items()
    }
    by_key = {
        (row["identity"], row["low_cell"], row["high_cell"]): (row["n_low"], row["n_high"], int(row["u_doubled"]))
        for row in statistics
    }
    by_key.pop(("(overall)", "negative", "positive"))
    assert len(wanted) == 6 * n_tags
    assert by_key == wanted


def count_pairs(
    level: NDArray[np.intp], label: NDArray[np.bool_], inside: NDArray[np.intp]
) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Count the six pairs of one identity, given the index of each row's score among all scores."""
    member = np.zeros(len(level), bool)
    member[inside] = True
    at = {
        f"{side}_{name}": np.bincount(level[chosen & (label == positive)], minlength=level.max() + 1)
        for side, chosen in (("subgroup", member), ("background", ~member))
        for name, positive in (("negative", False), ("positive", True))
    }
    below = {name: np.cumsum(counts) - counts for name, counts in at.items()}
    return {
        (low, high): (at[low].sum(), at[high].sum(), int((at[high] * (2 * below[low] + at[low])).sum()))
        for low, high in PAIRS.values()
    }


@pytest.mark.slow
def test_sums_past_two_to_the_63(spark: SparkSession) -> None:
    """Sums of squares exceed 2^63: they are exact to the last digit.

    All rightly ordered: each doubled placement is twice the rows of the other side.
    """
    n_side = 1_400_000
    corpus = spark.range(2 * n_side).selectExpr(f"id >= {n_side} AS y", "id * 1.0D AS s", "true AS u")
    statistics = statistics_of(corpus, models=["s"], identities=["u"])
    squares = Decimal(n_side * (2 * n_side) ** 2)
    assert squares > 2**63
    found = {tuple(row[name] for name in COUNTS) for row in statistics if row["n_low"] and row["n_high"]}
    sums = (n_side, n_side, Decimal(2 * n_side**2), squares, squares)
    assert found == {
        ("(overall)", "negative", "positive", *sums),
        ("u", "subgroup_negative", "subgroup_positive", *sums),
    }
