"""The values that the authors of the metrics published for TOXICITY@1 and TOXICITY@6, through the public functions."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

import biasspark

MODELS = ("toxicity_1", "toxicity_6")
METRICS = ("subgroup_auc", "bpsn_auc", "bnsp_auc", "negative_aeg", "positive_aeg")
TERMS = (
    *("lesbian", "gay", "queer", "straight", "bisexual", "homosexual", "heterosexual", "cis", "trans", "nonbinary"),
    *("black", "white"),
)
TOLERANCE = 1e-9


def published(shared_data: Path, name: str) -> dict[str, dict[str, float]]:
    with (shared_data / "madlibs_scored" / name).open(newline="") as file:
        rows = {row.pop("subgroup"): row for row in csv.DictReader(file)}
    return {subgroup: {name: float(value) for name, value in row.items()} for subgroup, row in rows.items()}


@pytest.fixture(scope="module")
def measured(spark_session: SparkSession, shared_data: Path) -> dict[tuple[str, str], Row]:
    """The suite of 12 terms and their pairs, by model and identity."""
    sentences = spark_session.read.parquet(str(shared_data / "madlibs_scored" / "madlibs_scored.parquet"))
    identities = {
        "terms": {"column": "phrase", "list": list(TERMS)},
        "crossed": {"pairs": True, "min_rows": 50},
    }
    suite = biasspark.bias_metrics(sentences, models=MODELS, label="label", identities=identities)
    return {(row.model, row.identity): row for row in suite.collect()}


def assert_as_published(measured: dict[tuple[str, str], Row], identity: str, wanted: dict[str, float]) -> None:
    for model in MODELS:
        row = measured[model, identity]
        assert row.n_subgroup_negative + row.n_subgroup_positive == wanted["subset_size"]
        for metric in METRICS:
            assert row[metric] == pytest.approx(wanted[f"{model}_{metric}"], abs=TOLERANCE, rel=0), (identity, metric)


def test_single_terms(measured: dict[tuple[str, str], Row], shared_data: Path) -> None:
    expected = published(shared_data, "expected_single_terms.csv")
    assert sorted(expected) == sorted(TERMS)
    for term, wanted in expected.items():
        assert_as_published(measured, term, wanted)


def test_pairs_of_terms(measured: dict[tuple[str, str], Row], shared_data: Path) -> None:
    expected = published(shared_data, "expected_term_pairs.csv")
    assert len(expected) == 20
    for pair, wanted in expected.items():
        one, other = sorted(re.split(r"\s+", pair), key=TERMS.index)
        assert_as_published(measured, f"{one} & {other}", wanted)


def test_the_new_model_is_the_fairer_one(measured: dict[tuple[str, str], Row]) -> None:
    """The finding of the paper: TOXICITY@1 scores harmless sentences high for what they mention, TOXICITY@6 less so."""
    worst = {model: min(measured[model, term].bpsn_auc for term in TERMS) for model in MODELS}
    assert worst["toxicity_1"] < 0.7
    assert worst["toxicity_6"] > 0.9
