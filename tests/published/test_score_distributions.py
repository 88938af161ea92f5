"""Nuanced, Table 2 and section 3.3: what each metric sees of eight score distributions, and what it does not.

As far as the paper is true of the distributions of its own published demonstration:

- it cut AUCs off rather than rounding them: .9977 is printed .99;
- with A's parameters both AEGs are 0.498; the 0.42 that it prints belongs to a subgroup of means (0.3, 0.7);
- its two AEGs stand in varying order;
- F's truncation at [0, 1] makes true AEGs of 0.012 and -0.012.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow.compute as pc
import pytest

from biasspark.metrics.suite import SUITE
from biasspark.metrics.u_statistics import u_statistics
from biasspark.synthetic.chunks import make_table
from biasspark.synthetic.score_cells import DISTRIBUTIONS, ScoreDistribution, ScoreDistributionsRequest
from tests.fixtures.local_corpus import LocalCorpus

AUCS = ("subgroup_auc", "bpsn_auc", "bnsp_auc")
GAPS = ("negative_aeg", "positive_aeg")
PRINTED_A = ScoreDistribution("A as printed", (0.2, 0.6), (0.3, 0.7))
"""The distribution whose AEGs the paper prints in column A."""

CUT_OFF = 0.01


def measure(name: str) -> dict[str, tuple[float, float]]:
    """Return each metric of a distribution, at 1,000 rows a cell, with its standard error by DeLong."""
    rows = make_table(ScoreDistributionsRequest(1, distributions=(*DISTRIBUTIONS, PRINTED_A)))
    rows = rows.filter(pc.field("shape") == name)
    statistics = u_statistics(LocalCorpus(rows["score"], rows["label"], {"subgroup": rows["subgroup"]}).rank())
    return {
        metric.name: (
            float(statistics.auc[metric.pair, 1] - metric.offset),
            float(statistics.variance[metric.pair, 1] ** 0.5),
        )
        for metric in SUITE
    }


@pytest.mark.parametrize("column", "ABCDEFG")
def test_values_are_those_of_table_2(column: str, shared_data: Path) -> None:
    with (shared_data.parent / "papers" / "nuanced_table2_score_distributions.csv").open(newline="") as file:
        printed = next(row for row in csv.DictReader(file) if row["column"] == column)
    measured = measure(column)
    if column == "A":
        measured |= {gap: measure(PRINTED_A.name)[gap] for gap in GAPS}
    expected = {metric: float(printed[metric]) for metric in AUCS}
    aegs = sorted(float(printed[f"aegs_{position}"]) for position in ("first", "second"))
    expected |= zip(sorted(GAPS, key=measured.__getitem__), aegs, strict=True)
    for metric, value in expected.items():
        assert abs(measured[metric][0] - value) <= CUT_OFF + 4 * measured[metric][1], metric


def test_gaps_that_the_paper_misprints() -> None:
    measured = measure("A")
    assert [measured[gap][0] for gap in GAPS] == pytest.approx([0.498, 0.498], abs=0.002)
