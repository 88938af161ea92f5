"""The published templated sentences: 1,514 about each of fifty terms, half of them toxic (Mitigating; Pinned)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

import biasspark

ROWS, TOXIC = 76_564, 38_282
ROWS_A_TERM = 1_514
WITHIN_ANOTHER = {"african", "american"}
"""The words of "african american" are terms themselves, and so stand in its sentences, too."""


@pytest.fixture(scope="module")
def balance(spark_session: SparkSession, shared_data: Path) -> dict[str, Row]:
    """The label balance of all terms; without text or length there is one bucket."""
    folder = shared_data / "madlibs_77k"
    sentences = spark_session.read.parquet(str(folder / "madlibs_77k.parquet"))
    terms = {"column": "text", "file": str(folder / "identity_terms.txt")}
    rows = biasspark.label_balance(sentences, label="label", identities={"terms": terms}).collect()
    assert {(row.bucket, row.length_low, row.length_high) for row in rows} == {("(all)", None, None)}
    found = {row.identity: row for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.slow
def test_every_term_has_as_many_sentences(balance: dict[str, Row], shared_data: Path) -> None:
    terms = (shared_data / "madlibs_77k" / "identity_terms.txt").read_text("utf-8").split("\n")
    wanted = {term: ROWS_A_TERM * (2 if term in WITHIN_ANOTHER else 1) for term in filter(None, terms)}
    assert len(wanted) == 50
    assert {name: row.n_rows for name, row in balance.items()} == wanted | {"(overall)": ROWS}


def test_half_of_the_sentences_of_every_term_are_toxic(balance: dict[str, Row]) -> None:
    assert balance["(overall)"].n_positive == TOXIC
    for name, row in balance.items():
        assert 2 * row.n_positive == row.n_rows, name
        assert (row.positive_rate, row.overall_positive_rate, row.n_negatives_to_add) == (0.5, 0.5, 0), name
