"""The slides' tall, average and short people (Mitigating): AUC .93 within each, .79 in all; pinned AUC .84, .84, .79.

The numbers in closed form. Scores of a cell are normal, all with standard deviation σ. For one cell with mean a and
another with mean b the difference of two scores is normal with mean b - a and standard deviation √2·σ, so

    AUC(a, b) = P(score of b > score of a) = Φ((b - a) / (√2·σ)).

Measure all means in units of √2·σ. Within a height positives lie d above negatives, so Φ(d) = .93 and d = 1.4758. The
tall and the average are not shifted, the short by 2.2. Of the negatives of one height and the positives of another
AUC = Φ(d + shift of the positives - shift of the negatives):

    negatives of \\ positives of    tall     average  short
    tall                           .9300    .9300    .9999
    average                        .9300    .9300    .9999
    short                          .2345    .2345    .9300

All six cells are equally large, so over all rows the AUC is the mean of the nine numbers, .7910. The pinned set of a
height holds as many of its rows as rows of all, so in expectation one of its rows stands in it 4/3 times and any other
1/3 times, and the pinned AUC is the mean of the nine numbers, weighted by the products of the rows' weights: .8431 of
the tall and the average, .7910 of the short.

The corpus has in each cell of n rows one from each of n equally likely parts of its distribution, so no share of rows
below a score is off by more than 1/n, and no AUC (nor a weighted mean of AUCs) by more than 2/n. Truncation to [0, 1],
five standard deviations away, adds less than a millionth.
"""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import NormalDist, fmean
from typing import Any

import numpy as np
import pytest

from biasspark.config import PinnedAuc
from biasspark.metrics.suite import bias_metrics
from biasspark.metrics.u_statistics import u_statistics
from biasspark.synthetic.chunks import make_table
from biasspark.synthetic.score_cells import TallAverageShortRequest
from tests.fixtures.local_corpus import LocalCorpus

SLIDE = Path(__file__).resolve().parents[3] / "shared" / "papers" / "slides_tall_average_short.csv"
ROWS_PER_CELL = 20_000
TOLERANCE = 2 / ROWS_PER_CELL + 1e-6
SHIFTS = {"tall": 0.0, "average": 0.0, "short": 2.2}
NORMAL = NormalDist()
Rows = dict[str, dict[str, Any]]


def crossed_auc(of_negatives: str, of_positives: str) -> float:
    return NORMAL.cdf(NORMAL.inv_cdf(0.93) + SHIFTS[of_positives] - SHIFTS[of_negatives])


def overall_auc() -> float:
    return fmean(crossed_auc(low, high) for low in SHIFTS for high in SHIFTS)


def pinned_auc(height: str) -> float:
    weight = {other: (4 if other == height else 1) / 3 for other in SHIFTS}
    pairs = {(low, high): weight[low] * weight[high] for low in SHIFTS for high in SHIFTS}
    return sum(pairs[pair] * crossed_auc(*pair) for pair in pairs) / sum(pairs.values())


@pytest.fixture(scope="module")
def corpus() -> LocalCorpus:
    rows = make_table(TallAverageShortRequest(1, ROWS_PER_CELL))
    height = np.array(rows["height"].to_pylist())
    return LocalCorpus(rows["score"], rows["label"], {name: (height == name).astype(float) for name in SHIFTS})


@pytest.fixture(scope="module")
def suite(corpus: LocalCorpus) -> Rows:
    return {row["identity"]: row for row in bias_metrics(u_statistics(corpus.rank()), 0.95).to_pylist()}


@pytest.fixture(scope="module")
def pinned(corpus: LocalCorpus) -> Rows:
    return {row["identity"]: row for row in corpus.pinned_auc(PinnedAuc(trials=20, seed=3)).to_pylist()}


def test_closed_form_is_what_the_slide_prints() -> None:
    """Down to two digits, cut off: .791 is printed .79, .843 is .84."""
    if not SLIDE.is_file():
        pytest.skip(f"the slide's table is not here: {SLIDE}")
    with SLIDE.open(newline="") as file:
        printed = {row["group"].lower(): row for row in csv.DictReader(file)}
    assert f"{overall_auc():.2f}" == printed.pop("combined")["auc"]
    assert set(printed) == set(SHIFTS)
    for height, row in printed.items():
        assert f"{crossed_auc(height, height):.2f}" == row["auc"]
        assert f"{pinned_auc(height):.2f}" == row["pinned_auc"]
    assert [round(pinned_auc(height), 3) for height in SHIFTS] == [0.843, 0.843, 0.791]
    assert round(overall_auc(), 3) == 0.791


def test_no_group_is_worse_within_itself(suite: Rows) -> None:
    assert set(suite) == set(SHIFTS)
    for height, row in suite.items():
        assert row["n_subgroup_negative"] == row["n_subgroup_positive"] == ROWS_PER_CELL
        assert row["n_background_negative"] == row["n_background_positive"] == 2 * ROWS_PER_CELL
        assert row["subgroup_auc"] == pytest.approx(0.93, abs=TOLERANCE), height


def test_other_metrics_see_the_shift(suite: Rows) -> None:
    for height, row in suite.items():
        others = [other for other in SHIFTS if other != height]
        wanted = {
            "bpsn_auc": fmean(crossed_auc(height, other) for other in others),
            "bnsp_auc": fmean(crossed_auc(other, height) for other in others),
            "background_auc": fmean(crossed_auc(low, high) for low in others for high in others),
            "negative_aeg": fmean(NORMAL.cdf(SHIFTS[height] - SHIFTS[other]) for other in others) - 0.5,
        }
        wanted["positive_aeg"] = wanted["negative_aeg"]  # both classes are shifted alike
        assert {metric: row[metric] for metric in wanted} == pytest.approx(wanted, abs=TOLERANCE), height


def test_pinned_aucs_are_those_of_the_slide(pinned: Rows) -> None:
    assert set(pinned) == set(SHIFTS)
    for height, row in pinned.items():
        assert row["overall_auc"] == pytest.approx(overall_auc(), abs=TOLERANCE)
        assert row["pinned_auc"] == pytest.approx(pinned_auc(height), abs=TOLERANCE), height
    assert [f"{pinned[height]['pinned_auc']:.3f}" for height in SHIFTS] == ["0.843", "0.843", "0.791"]
    assert [f"{row['overall_auc']:.3f}" for row in pinned.values()] == ["0.791"] * 3


def test_short_are_pinned_to_the_auc_of_all(pinned: Rows) -> None:
    """Of the short 4/3, of the others together 2/3: mixed pairs weigh 4/9 of all, as among all rows."""
    short = pinned["short"]
    assert short["pinned_auc"] == pytest.approx(short["overall_auc"], abs=2 * TOLERANCE)
    mixed, alike = short["bpsn_weight"] + short["bnsp_weight"], short["subgroup_weight"] + short["background_weight"]
    assert (mixed, alike) == pytest.approx((4 / 9, 5 / 9), abs=1e-12)


def test_sampling_gives_the_same_as_the_closed_form(pinned: Rows) -> None:
    """A ratio of sums over 80,000 rows: its bias is far below the standard error of the mean of 20 trials."""
    for height, row in pinned.items():
        assert row["trials"] == 20
        assert 0.0 < row["sampled_sd"] < 0.003, height
        assert abs(row["sampled_mean"] - row["pinned_auc"]) < 4.0 * row["sampled_sd"] / 20**0.5, height
