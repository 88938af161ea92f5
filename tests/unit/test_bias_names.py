"""The names of biases: of the shapes of Nuanced, Table 2, and that a name never contradicts a sign. No Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from biasspark.columns import BIASES, SUITE_AUCS, SUITE_GAPS, SUMMARIZED_AUCS
from biasspark.metrics.bias_names import MARGIN, name_bias
from biasspark.metrics.suite import bias_metrics
from biasspark.metrics.u_statistics import u_statistics
from biasspark.synthetic.chunks import make_table
from biasspark.synthetic.score_cells import DISTRIBUTIONS, ScoreDistribution, ScoreDistributionsRequest
from tests.fixtures.local_corpus import LocalCorpus
from tests.oracle import bias_names as oracle

PRINTED_A = ScoreDistribution("A as printed", (0.2, 0.6), (0.3, 0.7))
SHAPES = {
    "none": ("no_evidence", None),
    "A": ("shifted_up", "small"),
    "A as printed": ("shifted_up", "small"),
    "B": ("shifted_up", "large"),
    "C": ("shifted_up", "large"),
    "D": ("shifted_down", "large"),
    "E": ("poorly_separated", "large"),
    "F": ("no_evidence", None),
    "G": ("wide", "large"),
    "negatives up": ("negatives_shifted_up", "large"),
    "positives up": ("positives_shifted_up", "small"),
    "negatives down": ("negatives_shifted_down", "small"),
    "positives down": ("positives_shifted_down", "large"),
    "closer": ("closer_together", "small"),
    "apart": ("farther_apart", "small"),
}
SHIFTED = (
    ScoreDistribution("negatives up", (0.2, 0.6), (0.55, 0.6)),
    ScoreDistribution("positives up", (0.2, 0.6), (0.2, 0.8)),
    ScoreDistribution("negatives down", (0.3, 0.7), (0.1, 0.7)),
    ScoreDistribution("positives down", (0.3, 0.7), (0.3, 0.35)),
    ScoreDistribution("closer", (0.2, 0.7), (0.25, 0.65)),
    ScoreDistribution("apart", (0.4, 0.6), (0.3, 0.7)),
)
MIRRORED = {
    "shifted_up": "shifted_down",
    "negatives_shifted_up": "positives_shifted_down",
    "positives_shifted_up": "negatives_shifted_down",
}
MIRRORED |= {after: before for before, after in MIRRORED.items()}

Row = tuple[float, bool, int]


def measure(score: Any, label: Any, subgroup: Any) -> dict[str, Any]:
    (row,) = bias_metrics(u_statistics(LocalCorpus(score, label, {"g": subgroup}).rank()), 0.95).to_pylist()
    return dict(row)


@pytest.mark.parametrize("n_rows", [1_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_shapes_of_the_paper_have_their_names(n_rows: int) -> None:
    """Also with many rows, where the gaps of F and G, 0.012 and 0.035 by truncation, are sure."""
    shapes = (*DISTRIBUTIONS, PRINTED_A, *SHIFTED)
    rows = make_table(ScoreDistributionsRequest(1, n_rows, shapes))
    found = {}
    for shape in SHAPES:
        of_shape = rows.filter(pc.field("shape") == shape)
        row = measure(of_shape["score"], of_shape["label"], of_shape["subgroup"])
        found[shape] = (row["bias"], row["bias_size"])
    assert found == SHAPES


def test_pairs_of_the_same_spread_are_no_wide_scores() -> None:
    """Negatives shifted up by one and positives down by 0.7: what all three AUCs lose, the two shifts explain."""
    random = np.random.default_rng(7)
    means = np.repeat([0.0, 2.0, 1.0, 1.3], 3_000)
    label, subgroup = np.tile(np.repeat([0, 1], 3_000), 2), np.repeat([0, 1], 6_000)
    row = measure(random.normal(means), label, subgroup)
    assert all(row[name] < row["background_auc"] - MARGIN for name in SUMMARIZED_AUCS)
    assert (row["bias"], row["bias_size"]) == ("poorly_separated", "large")


def test_a_shift_down_is_no_false_alarm(shared_data: Path) -> None:
    """Of the census BPSN AUC is the lowest but one of Other's AUCs, 0.972, and its scores are shifted down."""
    census = pq.read_table(shared_data / "adult" / "adult_test_scored.parquet")
    subgroup = pc.cast(pc.equal(census["race"], "Other"), "int64").to_numpy()
    row = measure(census["score_lr"], census["label"], subgroup)
    assert row["bpsn_auc"] == pytest.approx(0.972, abs=0.0005)
    assert (row["bias"], row["bias_size"]) == ("shifted_down", "small")


CORPUS = st.lists(st.tuples(st.floats(-2, 2), st.booleans(), st.integers(0, 1)), min_size=4, max_size=60)


def measure_rows(rows: list[Row], turned: bool = False) -> dict[str, Any]:
    score, label, subgroup = zip(*rows, strict=True)
    sign = -1 if turned else 1
    return measure([sign * value for value in score], [int(one != turned) for one in label], subgroup)


TIED = [*[(0.0, False, 0)] * 2, *[(1.0, True, 1)] * 2, *[(-1.0, True, 1)] * 3]
TIED += [(score, True, 0) for score in (0.0, 2.0, 0.5, -2.0)]  # A positive AEG of exactly -0.05


@example(rows=TIED, k=20)
@given(rows=CORPUS, k=st.sampled_from([1, 20]))
def test_a_name_never_contradicts_a_sign(rows: list[Row], k: int) -> None:
    """Whatever the scores are, and labels and scores turned round turn it round; k times as many rows make intervals
    narrow.
    """
    row, turned = measure_rows(rows * k), measure_rows(rows * k, turned=True)
    name = row["bias"]
    assert (turned["bias"], turned["bias_size"]) == (MIRRORED.get(name, name), row["bias_size"])
    assert name is None or name in BIASES
    assert (row["bias_size"] is None) == (name in (None, "no_evidence"))
    labels = (
        ("negative", "positive") if name in ("shifted_up", "shifted_down") else (str(name).partition("s_shifted")[0],)
    )
    for sign, direction in ((1, "shifted_up"), (-1, "shifted_down")):
        if name and name.endswith(direction):
            assert all(round(sign * row[f"{label}_aeg"], 12) >= MARGIN for label in labels)
    if name in ("closer_together", "farther_apart"):
        sign = 1 if name == "closer_together" else -1
        assert round(sign * row["negative_aeg"], 12) >= MARGIN
        assert round(-sign * row["positive_aeg"], 12) >= MARGIN
    if row["bias_size"] == "large" or name in ("poorly_separated", "wide"):
        aucs = [row[auc] for auc in SUMMARIZED_AUCS if row[auc] is not None]
        assert round(row["background_auc"] - min(aucs), 12) >= MARGIN


def test_names_are_those_of_the_oracle() -> None:
    """Of values in hundredths, which often lie at the margin. One of ten is NULL with its ends, and in a row all."""
    rng, n_rows = np.random.default_rng(20261126), 3_000
    metrics: dict[str, Any] = {}
    for name in (*SUITE_AUCS, *SUITE_GAPS):
        value = rng.integers(0, 101, n_rows) / 100 if name in SUITE_AUCS else rng.integers(-50, 51, n_rows) / 100
        value[(rng.random(n_rows) < 0.1) | (np.arange(n_rows) == 0)] = np.nan
        metrics |= {
            f"{name}{end}": value + sign * rng.integers(0, 9, n_rows) / 100
            for end, sign in (("_low", -1), ("_high", 1))
        }
        metrics[name] = value
    named = list(zip(*name_bias(metrics), strict=True))
    for number, found in enumerate(named):
        row = {key: None if np.isnan(values[number]) else float(values[number]) for key, values in metrics.items()}
        assert dict(zip(("bias", "bias_size"), found, strict=True)) == oracle.name_bias(row)
    assert {name for name, _ in named} == {*BIASES, None}
