"""The slides' tall, average and short people (Mitigating): AUC .93 within each, .79 in all; pinned AUC .84, .84, .79.

Each cell of the corpus has one row from each of n equally likely parts of its distribution, so no AUC is off by more
than 2/n.
"""

from __future__ import annotations

import numpy as np
import pytest

from biasspark.config import PinnedAuc
from biasspark.synthetic.chunks import make_table
from biasspark.synthetic.score_cells import TallAverageShortRequest
from tests.fixtures.local_corpus import LocalCorpus

PINNED = {"tall": 0.8431, "average": 0.8431, "short": 0.7910}
"""The values of the distributions, of which the slide prints two digits."""


def test_aucs_are_those_of_the_slide() -> None:
    rows = make_table(TallAverageShortRequest(1, rows_per_cell=20_000))
    height = np.array(rows["height"].to_pylist())
    corpus = LocalCorpus(rows["score"], rows["label"], {name: (height == name).astype(float) for name in PINNED})
    for row in corpus.pinned_auc(PinnedAuc(trials=20, seed=3)).to_pylist():
        aucs = [row[name] for name in ("subgroup_auc", "overall_auc", "pinned_auc")]
        assert aucs == pytest.approx([0.93, 0.7910, PINNED[row["identity"]]], abs=2e-4)
        assert abs(row["sampled_mean"] - row["pinned_auc"]) < 4 * row["sampled_sd"] / 20**0.5
