"""The published templated sentences: 1,514 about each of fifty terms, half of them toxic (Mitigating; Pinned)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import biasspark

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
    every = folder / "identity_terms.txt"
    asked, terms = {"list": FEW}, FEW
    if n_terms == N_TERMS:
        asked, terms = {"file": str(every)}, tuple(filter(None, every.read_text("utf-8").split("\n")))
    sentences = spark.read.parquet(str(folder / "madlibs_77k.parquet"))
    rows = biasspark.label_balance(sentences, label="label", identities={"terms": {"column": "text"} | asked}).collect()
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
