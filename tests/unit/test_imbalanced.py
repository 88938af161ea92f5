"""The imbalanced corpus, without Spark."""

from __future__ import annotations

import math
import re
import zlib
from itertools import pairwise

import pytest

from biasspark.synthetic import imbalanced
from biasspark.synthetic.chunks import CHUNK_ROWS, make_table
from biasspark.synthetic.imbalanced import BUCKETS, REMARKS, ImbalancedRequest, TermCell, cell_chunk
from biasspark.synthetic.madlibs import SLOT
from biasspark.synthetic.wording import IDENTITY_TERMS, TEMPLATES, read_packaged

ROWS = 5 * CHUNK_ROWS
# The slides' percentages: the row ALL, and the row of gay.
PERCENT_TOXIC = (17, 12, 7, 5, 5)
PERCENT_TOXIC_IMBALANCED = (88, 77, 51, 30, 19)


@pytest.fixture(scope="module")
def comments() -> list[dict[str, object]]:
    """Rows of which many mention a term."""
    request = ImbalancedRequest(ROWS, 3, (("gay", 0.03), ("middle eastern", 0.03)))
    rows: list[dict[str, object]] = make_table(request).to_pylist()
    return [row | {"bucket": bucket_of(str(row["comment_text"]))} for row in rows]


def bucket_of(text: str) -> int:
    [bucket] = [n for n, (low, high) in enumerate(pairwise(BUCKETS)) if low <= len(text) < high]
    return bucket


def assert_share(rows: list[bool], share: float) -> None:
    """Assert the share of independent draws, within five standard deviations."""
    assert len(rows) > 100
    assert abs(sum(rows) / len(rows) - share) <= 5 * math.sqrt(share * (1 - share) / len(rows))


def test_a_seed_gives_these_very_comments() -> None:
    # Another number here is another corpus for every user.
    texts = make_table(ImbalancedRequest(1_000, seed=1))["comment_text"].to_pylist()
    assert zlib.crc32("\n".join(texts).encode()) == 696316635


def test_lengths_are_spread_over_the_buckets(comments: list[dict[str, object]]) -> None:
    for bucket, share in enumerate(imbalanced.BUCKET_SHARES):
        assert_share([row["bucket"] == bucket for row in comments], share)
    assert {len(str(row["comment_text"])) for row in comments} >= set(range(20, 180))


@pytest.mark.parametrize("bucket", range(5))
def test_rates_are_those_of_the_slides(comments: list[dict[str, object]], bucket: int) -> None:
    of_length = [row for row in comments if row["bucket"] == bucket]
    assert_share([bool(row["label"]) for row in of_length], PERCENT_TOXIC[bucket] / 100)
    for term in ("gay", "middle eastern"):
        found = [bool(row["label"]) for row in of_length if row["term"] == term]
        assert_share(found, PERCENT_TOXIC_IMBALANCED[bucket] / 100)
    rest = [bool(row["label"]) for row in of_length if row["term"] not in (None, "gay", "middle eastern")]
    assert_share(rest, PERCENT_TOXIC[bucket] / 100)


def test_terms_are_mentioned_as_often_as_asked_for(comments: list[dict[str, object]]) -> None:
    shares = dict.fromkeys(IDENTITY_TERMS, 0.001) | {"gay": 0.03, "middle eastern": 0.03}
    for term, share in shares.items():
        assert_share([row["term"] == term for row in comments], share)


def test_harmless_comments_are_drawn_as_those_of_the_corpus_are(comments: list[dict[str, object]]) -> None:
    request = ImbalancedRequest(CHUNK_ROWS, 3, (("gay", 0.03), ("middle eastern", 0.03)), harmless=True)
    drawn = make_table(request).to_pylist()
    harmless = [row for row in comments if not row["label"]]
    assert not any(row["label"] for row in drawn)
    alike = [one["comment_text"] == other["comment_text"] for one, other in zip(drawn, harmless, strict=False)]
    assert sum(alike) < 0.01 * len(alike)
    for bucket in range(5):
        share = sum(row["bucket"] == bucket for row in harmless) / len(harmless)
        assert_share([bucket_of(row["comment_text"]) == bucket for row in drawn], share)
    gay = sum(row["term"] == "gay" for row in harmless) / len(harmless)
    assert_share([row["term"] == "gay" for row in drawn], gay)


def test_a_comment_mentions_its_term_and_no_other(comments: list[dict[str, object]]) -> None:
    longest_first = sorted(IDENTITY_TERMS, key=len, reverse=True)
    terms = re.compile(rf"(?<!\w)(?:{'|'.join(longest_first)})(?!\w)", re.IGNORECASE)
    for row in comments[: CHUNK_ROWS // 8]:
        mentioned = {term.lower() for term in terms.findall(str(row["comment_text"]))}
        assert mentioned == (set() if row["term"] is None else {str(row["term"])}), row


def test_words_show_toxicity_for_the_most_part(comments: list[dict[str, object]]) -> None:
    strong = re.compile("|".join((*imbalanced.TOXIC_NOUNS, *imbalanced.TOXIC_ADJECTIVES, "garbage")))
    toxic, harmless = (
        [bool(strong.search(str(row["comment_text"]))) for row in comments[:CHUNK_ROWS] if row["label"] is label]
        for label in (True, False)
    )
    assert_share(toxic, 0.8)
    assert_share(harmless, 0.06)


@pytest.mark.parametrize("remark", [remark for manner in REMARKS for kind in manner for remark in kind])
def test_longest_remark_fits_into_the_shortest_comments(remark: str) -> None:
    noun, adjective = max(imbalanced.TOXIC_NOUNS, key=len), max(imbalanced.TOXIC_ADJECTIVES, key=len)
    term = "x" * imbalanced.LONGEST_TERM
    slots = {"term": term, "a_term": f"an {term}", "A_term": f"An {term}", "noun": noun, "adjective": adjective}
    assert len(remark.format(**slots)) < BUCKETS[1]


def test_no_sentence_is_a_template_of_the_test_set() -> None:
    def bare(sentence: str) -> str:
        return " ".join(re.sub(r"\{[^}]*\}|\W", " ", sentence.lower()).split())

    tested = {bare(SLOT.sub(" ", template)) for kind in TEMPLATES for template in kind}
    trained = {bare(remark) for manner in REMARKS for kind in manner for remark in kind}
    trained |= {bare(sentence) for sentence in (*imbalanced.SENTENCES, *read_packaged("imbalanced")["talk"])}
    assert len(tested) == 64
    assert not tested & trained


@pytest.mark.parametrize(("low", "high"), [(20, 59), (60, 179), (1620, 4859)])
def test_a_cell_has_comments_about_its_term_and_of_its_length(low: int, high: int) -> None:
    comments = cell_chunk(TermCell("african american", low, high, 300), 0, seed=1).to_pylist()
    assert [row["id"] for row in comments] == list(range(300))
    assert {row["label"] for row in comments} == {False}
    for row in comments:
        assert low <= len(row["comment_text"]) <= high
        assert re.search(r"\bafrican american\b", row["comment_text"], re.IGNORECASE)


def test_cells_are_drawn_apart_and_a_small_one_is_the_beginning_of_a_large_one() -> None:
    def texts(cell: TermCell, first: int = 0, seed: int = 1) -> list[str]:
        found: list[str] = cell_chunk(cell, first, seed)["comment_text"].to_pylist()
        return found

    large = texts(TermCell("gay", 180, 539, 200))
    assert texts(TermCell("gay", 180, 539, 20)) == large[:20]
    assert not set(large) & set(texts(TermCell("gay", 180, 539, 200), seed=2))
    assert len(texts(TermCell("gay", 180, 539, CHUNK_ROWS + 20), CHUNK_ROWS)) == 20
    queer = [text.replace("queer", "gay") for text in texts(TermCell("queer", 180, 539, 200))]
    assert not set(large) & set(queer)
