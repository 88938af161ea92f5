"""What the ledger says of a run by bins, word for word."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import Row

from biasspark.metrics.doubt import say_doubt

BY_BINS = "ranking: approximate. Scores were sorted into about 4,096 bins"


@pytest.mark.parametrize(
    ("widest", "said"),
    [
        ({"n_values": 0}, f"{BY_BINS}, and no metric has a value."),
        ({"doubt": 0.0}, f"{BY_BINS}, which separate all of them: every metric is exact."),
        (
            {"doubt": 0.000456},
            f"{BY_BINS}. The tables give the smallest and the largest possible value of each metric, at most 0.00046 "
            'apart (bpsn_auc of m, all, a\\nb, 1,200 x 34 rows). For exact values set [ranking] engine = "blocks".',
        ),
    ],
    ids=["nothing", "no doubt", "doubt"],
)
def test_doubt(widest: dict[str, Any], said: str) -> None:
    row = {"doubt": None, "model": "m", "slice": "all", "identity": "a\nb", "metric": "bpsn_auc"}
    row |= {"n_low": 1200, "n_high": 34, "n_values": 3}
    assert say_doubt(Row(**(row | widest)), 4096) == said
