"""The published templated sentences: the values that the authors give of TOXICITY@1 and @6, and their balance."""

from __future__ import annotations

import csv
import re
import zlib
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row, SparkSession

import biasspark
from biasspark.config import parse_measures
from biasspark.corpus.encode import build_encoding
from biasspark.corpus.survey import Survey
from biasspark.corpus.template_scores import template_scores

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
    identities = {"terms": {"column": "phrase", "list": list(TERMS)}, "crossed": {"pairs": True, "min_rows": 50}}
    suite = biasspark.bias_metrics(sentences, models=MODELS, label="label", identities=identities)
    return {(row.model, row.identity): row for row in suite.collect()}


@pytest.mark.parametrize(("name", "n"), [("single_terms", len(TERMS)), ("term_pairs", 20)])
def test_terms_and_pairs_of_them(measured: dict[tuple[str, str], Row], shared_data: Path, name: str, n: int) -> None:
    expected = published(shared_data, f"expected_{name}.csv")
    assert len(expected) == n
    for (terms, wanted), model in product(expected.items(), MODELS):
        row = measured[model, " & ".join(sorted(re.split(r"\s+", terms), key=TERMS.index))]
        assert row.n_subgroup_negative + row.n_subgroup_positive == wanted["subset_size"]
        for metric in METRICS:
            assert row[metric] == pytest.approx(wanted[f"{model}_{metric}"], abs=TOLERANCE, rel=0), (terms, metric)


# ---- 1,514 sentences about each of fifty terms, half of them toxic (Mitigating; Pinned)

ROWS, TOXIC = 76_564, 38_282
ROWS_A_TERM = 1_514
WITHIN_ANOTHER = {"african", "american"}
"""The words of "african american" are terms themselves, and so stand in its sentences, too."""

N_TERMS = 50
FEW = ("gay", "african american", "african", "american", "deaf")


@pytest.mark.parametrize("n_terms", [len(FEW), pytest.param(N_TERMS, marks=pytest.mark.slow)])
def test_every_term_has_as_many_sentences_half_of_them_toxic(
    spark: SparkSession, shared_data: Path, n_terms: int
) -> None:
    folder = shared_data / "madlibs_77k"
    terms = (folder / "identity_terms.txt").read_text("utf-8").split("\n") if n_terms == N_TERMS else FEW
    terms = [term for term in terms if term]
    sentences = spark.read.parquet(str(folder / "madlibs_77k.parquet"))
    identities = {"terms": {"column": "text", "list": terms}}
    rows = biasspark.label_balance(sentences, label="label", identities=identities).collect()
    # Without text or length there is one bucket.
    assert {(row.bucket, row.length_low, row.length_high) for row in rows} == {("(all)", None, None)}
    balance = {row.identity: row for row in rows}
    assert len(balance) == len(rows)

    wanted = {term: ROWS_A_TERM * (2 if term in WITHIN_ANOTHER else 1) for term in terms}
    assert len(wanted) == n_terms
    assert {name: row.n_rows for name, row in balance.items()} == wanted | {"(overall)": ROWS}
    assert balance["(overall)"].n_positive == TOXIC
    for name, row in balance.items():
        assert 2 * row.n_positive == row.n_rows, name
        assert (row.positive_rate, row.overall_positive_rate, row.n_negatives_to_add) == (0.5, 0.5, 0), name


@pytest.mark.slow
def test_all_sentences_of_a_template_have_their_deviation(
    spark: SparkSession, shared_data: Path, tmp_path: Path
) -> None:
    """A template has 72,000 of them, each with a score of its own. It takes seconds, and hours if it is quadratic."""
    sentences = pq.read_table(shared_data / "madlibs_77k" / "madlibs_77k.parquet")
    texts, templates = sentences["text"].to_pylist(), np.array(sentences["template"].to_pylist())
    scores = np.array([zlib.crc32(text.encode()) / 2**32 for text in texts])
    pq.write_table(sentences.append_column("score", pa.array(scores)), tmp_path / "scored.parquet")
    asked = {"models": ["score"], "label": {"column": "label"}, "templates": {"column": "template"}}
    measures = parse_measures({**asked, "identities": {"terms": {"column": "text", "list": list(FEW)}}})
    corpus = spark.read.parquet(str(tmp_path / "scored.parquet"))
    frame = template_scores(corpus, measures, build_encoding(measures, Survey(ROWS, {}, ())), "template")
    # Without the mean among the columns, Spark computes it where the deviation needs it.
    found = {(row.template, row.identity): (row.n_rows, row.sd_score) for row in frame.drop("mean_score").collect()}
    assert found["name_adj", "(overall)"][0] == 72_000
    for (template, identity), (n_rows, deviation) in found.items():
        inside = re.compile("" if identity == "(overall)" else rf"(?i)\b{identity}\b")
        chosen = scores[(templates == template) & [inside.search(text) is not None for text in texts]]
        assert n_rows == len(chosen)
        assert deviation == pytest.approx(chosen.std(ddof=1), rel=1e-12)
