"""The experiment of "Limitations of Pinned AUC", section 3, on the scores of TOXICITY@1 and @6 that were published.

The sentences are another set than the paper's 77,000, so its numbers differ by some hundredths; the finding does not.
Our numbers were computed by scikit-learn's weighted `roc_auc_score`: a row of the subgroup weighs 1 + s/N, one of the
background s/N, with s rows in the subgroup and N in all; rows of the halved cell weigh half, and s and N count them so.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from biasspark.config import PinnedAuc, PinnedSkew
from biasspark.metrics.pinned import pinned_skew
from biasspark.metrics.u_statistics import u_statistics
from biasspark.synthetic.chunks import make_table
from biasspark.synthetic.score_cells import GROUPS, PinnedBalanceRequest
from tests.fixtures.local_corpus import LocalCorpus

MODELS = ("toxicity_1", "toxicity_6")
Rows = dict[tuple[str, str], dict[str, Any]]
SUITE = ("subgroup_auc", "bpsn_auc", "bnsp_auc")
TABLE_2 = Path(__file__).resolve().parents[3] / "shared" / "papers" / "pinned_table2.csv"
NOISE = 5
"""Standard errors of a mean of 100 trials: passed once in two million, and the seed is fixed."""


@pytest.fixture(scope="module")
def halved(shared_data: Path) -> Rows:
    """Half of the negatives of "gay" dropped, and half of its positives, by (cell, model)."""
    sentences = pq.read_table(shared_data / "madlibs_scored" / "madlibs_scored.parquet")
    gay = [bool(re.search(r"\bgay\b", phrase, re.IGNORECASE)) for phrase in sentences["phrase"].to_pylist()]
    rows = {}
    for model in MODELS:
        corpus = LocalCorpus(sentences[model], sentences["label"], {"gay": np.array(gay, float)})
        for cell in ("subgroup_negative", "subgroup_positive"):
            skew = PinnedSkew(identity="gay", cell=cell, fraction=0.5, trials=100)
            (rows[cell, model],) = corpus.pinned_skew(skew).to_pylist()
    return rows


@pytest.mark.parametrize(
    ("cell", "pinned_auc", "skewed"), [("subgroup_negative", 0.876, 0.903), ("subgroup_positive", 0.876, 0.845)]
)
def test_pinned_auc_moves_with_the_class_balance(halved: Rows, cell: str, pinned_auc: float, skewed: float) -> None:
    row = halved[cell, "toxicity_1"]
    assert (row["n_rows"], row["n_dropped"], row["trials"]) == (900, 450, 100)
    assert row["pinned_auc"] == pytest.approx(pinned_auc, abs=0.0005)
    assert row["pinned_auc_skewed"] == pytest.approx(skewed, abs=0.0005)
    assert row["pinned_auc_sampled_mean"] == pytest.approx(skewed, abs=0.001)
    assert row["pinned_auc_sampled_sd"] < abs(skewed - pinned_auc) / 10


def test_the_suite_stands_still(halved: Rows) -> None:
    for (cell, model), row in halved.items():
        for name in SUITE:
            moved = abs(row[f"{name}_sampled_mean"] - row[name])
            assert moved <= NOISE * row[f"{name}_sampled_sd"] / 10, (model, cell, name)
            assert moved < abs(row["pinned_auc_skewed"] - row["pinned_auc"]) / 2, (model, cell, name)


def test_the_closed_form_is_the_mean_over_trials(halved: Rows) -> None:
    for row in halved.values():
        noise = row["pinned_auc_sampled_sd"] / 10
        assert row["pinned_auc_sampled_mean"] == pytest.approx(row["pinned_auc_skewed"], abs=NOISE * noise, rel=0)


def test_the_finding_of_the_paper(halved: Rows) -> None:
    """Fewer negatives of "gay" hide a part of the bias of both models, more of it with TOXICITY@1."""
    if not TABLE_2.is_file():
        pytest.skip(f"the tables of the papers are not here: {TABLE_2}")
    with TABLE_2.open(newline="") as file:
        (gay,) = [row for row in csv.DictReader(file) if row["term"] == "gay"]
    moved = {}
    for model in MODELS:
        name = model.replace("_", "")
        before, after = float(gay[f"original_pinned_auc_{name}"]), float(gay[f"skewed_pinned_auc_{name}"])
        row = halved["subgroup_negative", model]
        moved[model] = row["pinned_auc_sampled_mean"] - row["pinned_auc"]
        assert (moved[model] > 0) == (after > before)
        assert row["pinned_auc"] == pytest.approx(before, abs=0.03)
        assert row["pinned_auc_sampled_mean"] == pytest.approx(after, abs=0.03)
    assert moved["toxicity_1"] > 3 * moved["toxicity_6"]


@pytest.mark.parametrize("model", MODELS)
def test_the_other_terms_stand_still(shared_data: Path, model: str) -> None:
    """As printed, those of the other terms change by 0.01 at most, once rounded."""
    sentences = pq.read_table(shared_data / "madlibs_scored" / "madlibs_scored.parquet")
    phrases = sentences["phrase"].to_pylist()
    terms = ("gay", "homosexual", "lesbian", "transgender", "white")
    states = {
        term: np.array([bool(re.search(rf"\b{term}\b", text, re.I)) for text in phrases], float) for term in terms
    }
    scores, labels = (sentences[name].to_numpy() for name in (model, "label"))
    rest = ~((states["gay"] == 1) & ~labels.astype(bool))
    whole, without = (
        LocalCorpus(scores[rows], labels[rows], {term: state[rows] for term, state in states.items()}).rank()
        for rows in (rest | True, rest)
    )
    kept = {("model 0", "all"): (450, ())}
    skewed = pinned_skew(u_statistics(whole), kept, PinnedSkew(identity="gay"), without=without)
    change = {row["identity"]: row["pinned_auc_skewed"] - row["pinned_auc"] for row in skewed.to_pylist()}
    assert change.keys() == set(terms)
    assert max(abs(change[term]) for term in terms[1:]) < 0.01
    assert change["gay"] > 2 * max(abs(change[term]) for term in terms[1:])


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_scores_with_another_balance(seed: int) -> None:
    """Table 1: .94 is printed for A; B, with fewer negatives, is higher, and C lower."""
    rows = make_table(PinnedBalanceRequest(seed))
    groups = {name: rows[name].to_numpy().astype(float) for name in GROUPS}
    corpus = LocalCorpus(rows["score"].to_numpy(), rows["label"].to_numpy(), groups)
    table = corpus.pinned_auc(PinnedAuc(include_subgroup_in_background=False, trials=1)).to_pylist()
    pinned = {row["identity"]: row["pinned_auc"] for row in table}
    assert pinned == pytest.approx({"A": 0.940, "B": 0.968, "C": 0.904}, abs=0.002)
    for name in SUITE:
        first, *rest = (row[name] for row in table)
        assert rest == pytest.approx([first] * 2, abs=0.002)
