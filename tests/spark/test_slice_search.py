"""Slices counted by Spark, against trying every conjunction; their sums, and the SQL of their conditions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession
from scipy.stats import false_discovery_control, ttest_ind

from biasspark.attribution import slice_kernel
from biasspark.attribution.slice_evidence import FoundSlice
from biasspark.attribution.slice_search import FoundSlices, search_slices
from biasspark.config.attribution_settings import SliceSearch
from biasspark.expressions.sql import write_name
from biasspark.features import Feature, write_predicate
from tests.oracle.slices import SearchedRow, search_by_force

AGES = (18.0, 25.0, 30.0, 45.5, 60.0, 71.25)
HOSTILE = ("it's", "\\", "a\\nb", "${x} $1", 'say "so"\n', "", "' OR 1=1 --", "null", "ünï 😀")
JOB = "job `of` 'last' year"
FEATURES = (
    Feature("age", "age", True, AGES, True),
    Feature(JOB, write_name(JOB), False, HOSTILE, True),
    Feature("size", "size", False, ("L", "M", "S"), False),
    Feature("same", "same", True, (1.0,), False),
)
COLUMNS = f"age DOUBLE, {write_name(JOB)} STRING, size STRING, same DOUBLE"
SCHEMA = (
    f"tree INT, label BOOLEAN, honest BOOLEAN, value DOUBLE, loss_doubled BIGINT, {COLUMNS}, "
    "bin_0 INT, bin_1 INT, bin_2 INT, bin_3 INT"
)
N_TREES, N_ROWS = 4, 400
"""Of the third tree there is no row, and in the last no value differs."""

SETTINGS = SliceSearch(max_predicates=3, most=9, min_rows=4, max_bins=3)


class Row(NamedTuple):
    tree: int
    honest: bool
    value: float
    loss_doubled: int
    age: float | None
    job: str | None
    size: str
    same: float

    @property
    def bins(self) -> tuple[int, ...]:
        age = 0 if self.age is None else sum(start <= self.age for start in AGES)
        job = 0 if self.job is None else HOSTILE.index(self.job) + 1
        return age, job, "LMS".index(self.size) + 1, 1

    @property
    def searched(self) -> SearchedRow:
        return SearchedRow(self.bins, self.honest, Fraction(self.value))


def make_rows() -> list[Row]:
    """Values with ties, in steps of 1/512, that are low at NULL, at some jobs and where two conditions meet."""
    rng = random.Random(17)
    rows = []
    for tree in (0, 1, 3, 4):  # the last is none of those that are searched
        for _ in range(N_ROWS):
            age, job = rng.choice([None, *AGES, 75.25]), rng.choice([None, *HOSTILE])
            size = rng.choice("LMSSS")
            lack = 40 * (age is None) + 60 * (job in HOSTILE[:2]) if tree else 90 * (job == "\\" and size == "S")
            lack += 50 * (size == "L" and (age or 0) > 50)
            value = 0.1 if tree == 3 else (rng.randrange(20) * 4 + 140 - lack) / 512
            rows.append(Row(tree, rng.random() < 0.5, value, rng.randrange(10**6), age, job, size, 1.0))
    rng.shuffle(rows)
    return rows


def frame_of(spark: SparkSession, rows: Sequence[Row]) -> DataFrame:
    return spark.createDataFrame([(row.tree, row.loss_doubled % 2 == 0, *row[1:], *row.bins) for row in rows], SCHEMA)


def search(rows: DataFrame, settings: SliceSearch = SETTINGS) -> FoundSlices:
    return search_slices(rows, N_TREES, FEATURES, settings, N_ROWS)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return make_rows()


def test_slices_are_those_of_all_conjunctions(spark: SparkSession, rows: list[Row]) -> None:
    """And no bit depends on the partitions."""
    frame = frame_of(spark, rows)
    found = search(frame.repartition(3, "value"))
    assert found == search(frame.coalesce(1).orderBy("loss_doubled"))
    assert found.warnings == {}
    assert {own.tree for own in found.slices} == {0, 1}
    for tree in (0, 1):
        own_rows = [row for row in rows if row.tree == tree]
        slices = [own for own in found.slices if own.tree == tree]
        expected = search_by_force([row.searched for row in own_rows], FEATURES, SETTINGS)
        assert [own.condition for own in slices] == [own.condition for own in expected]
        assert [own.score for own in slices] == [float(own.score) for own in expected]
        assert [own.rank for own in slices] == list(range(1, len(expected) + 1))
        assert {len(own.condition) for own in slices} >= {1, 2}
        check_evidence(slices, own_rows)
        check_predicates(slices, frame.where(F.col("tree") == tree))
    assert any(own.found for own in found.slices)
    assert any(1 in own.condition for own in found.slices)


def check_evidence(slices: Sequence[FoundSlice], rows: Sequence[Row]) -> None:
    """Against SciPy, from the rows."""
    p_values = []
    for own in slices:
        inside = [row for row in rows if all(row.bins[place] in bins for place, bins in own.condition.items())]
        train, honest = ([row.value for row in inside if row.honest == kind] for kind in (False, True))
        others = [row.value for row in rows if row.honest and row not in inside]
        assert (own.n_train, own.n_honest) == (len(train), len(honest))
        assert own.mean_train == float(sum(map(Fraction, train)) / len(train))
        assert own.mean_honest == float(sum(map(Fraction, honest)) / len(honest))
        lost = sum(row.loss_doubled for row in inside) / sum(row.loss_doubled for row in rows)
        assert own.loss_share == pytest.approx(lost, rel=1e-12)
        assert own.p_train_honest == pytest.approx(ttest_ind(train, honest, equal_var=False).pvalue, rel=1e-9)
        p_values.append(ttest_ind(honest, others, equal_var=False).pvalue)
        assert own.p_value == pytest.approx(p_values[-1], rel=1e-9)
    assert [own.p_adjusted for own in slices] == pytest.approx(list(false_discovery_control(p_values)), rel=1e-9)


def check_predicates(slices: Sequence[FoundSlice], frame: DataFrame) -> None:
    """A predicate selects the slice's rows, of either kind."""
    counts: list[Any] = []
    for place, own in enumerate(slices):
        inside = F.expr(write_predicate(own.condition, FEATURES))
        counts += [F.count_if(inside & ~F.col("honest")).alias(f"train_{place}")]
        counts += [F.count_if(inside & F.col("honest")).alias(f"honest_{place}")]
    expected = [n for own in slices for n in (own.n_train, own.n_honest)]
    assert list(frame.agg(*counts).collect()[0]) == expected


@pytest.mark.slow
def test_what_was_left_out_is_said(spark: SparkSession, rows: list[Row], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slice_kernel, "MOST_CANDIDATES", 3)
    found = search(frame_of(spark, [row for row in rows if row.tree == 0]).coalesce(1))
    assert list(found.warnings) == [0]
    text, missed = found.warnings[0], Fraction(found.warnings[0].split("up to ")[1].split(". Raise")[0])
    assert text.startswith("[attribution.slice_search]: more than ")
    every = search_by_force([row.searched for row in rows if row.tree == 0], FEATURES, SETTINGS)
    kept = [own.condition for own in found.slices]
    missing = [own.score for own in every if own.condition not in kept]
    assert missing
    assert max(missing) <= missed


def test_nothing_to_search(spark: SparkSession, rows: list[Row]) -> None:
    frame = frame_of(spark, rows[:1])
    assert search_slices(frame, N_TREES, (), SETTINGS, 1) == ([], {})
    assert search_slices(frame, 0, FEATURES, SETTINGS, 1) == ([], {})
