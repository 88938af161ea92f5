"""U statistics that R's `wilcox.test` gave, as scipy's tests keep them, through the kernels."""

from __future__ import annotations

import csv
from pathlib import Path

from tests.harness.ranking_without_spark import encoding_of, flags, pack, rank_batches, six_pairs


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_u_of_every_case_in_either_order(shared_data: Path) -> None:
    samples: dict[tuple[str, str], list[float]] = {}
    for row in rows_of(shared_data / "mann_whitney_vectors" / "samples.csv"):
        samples.setdefault((row["case"], row["sample"]), []).append(float(row["value"]))
    expected = rows_of(shared_data / "mann_whitney_vectors" / "expected.csv")
    assert len(expected) == 13
    for row in expected:
        # u_first counts the pairs in which the first sample is the larger: it is the high cell.
        high, low = samples[row["case"], row["first"]], samples[row["case"], row["second"]]
        assert u_doubled(low, high) / 2 == float(row["u_first"])


def u_doubled(low: list[float], high: list[float]) -> int:
    """Rank two samples as the negatives and the positives of a corpus, cut into ranges in the midst of them."""
    encoding, scores = encoding_of(flags("a")), low + high
    label = [False] * len(low) + [True] * len(high)
    boundaries = sorted(set(scores))[1::3]
    ranked = rank_batches([pack(encoding, {("label", 0): label}, [scores])], encoding, [boundaries])
    overall = six_pairs(ranked, 0)[3]
    assert overall[:2] == (len(low), len(high))
    return overall.u_doubled
