"""Where EXAMPLES keeps what, and what everything is called."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from itertools import combinations

import pytest

from biasspark.columns import ROW_REASONS, SCORE_REASONS
from biasspark.corpus.codebook import WORD_BITS, Codebook, Source, Tally, any_term
from tests.ranking_without_spark import array, category, codebook_of, flags


def mixed(*, crossed: bool = False) -> Codebook:
    """Sources 0 and 2 can be unknown, 1 cannot."""
    return codebook_of(
        flags("a", "b"), flags("p", nullable=False, name="predicates"), category("c", "x"), crossed=crossed
    )


def test_identities_are_numbered_in_order_and_pairs_follow() -> None:
    codebook = mixed(crossed=True)
    assert codebook.singles == ("a", "b", "p", "c=x")
    assert codebook.names == (
        *("(overall)", "a", "b", "p", "c=x"),
        *("a & b", "a & p", "a & c=x", "b & p", "b & c=x", "p & c=x"),
    )
    assert codebook.number == {"a": 1, "b": 2, "p": 3, "c=x": 4}
    assert codebook.first_pair == 5
    assert codebook.pairs == tuple(combinations(range(1, 5), 2))
    assert codebook.source_of == (-1, 0, 0, 1, 2)


def test_without_crossing_there_are_no_pairs() -> None:
    assert mixed().pairs == ()
    assert mixed().names == ("(overall)", "a", "b", "p", "c=x")


def test_a_base_is_where_a_source_is_known_and_of_a_pair_where_either_is() -> None:
    bits = {"columns": 1, "c": 2, "every row": 0}
    masks = dict(zip(mixed(crossed=True).names, mixed(crossed=True).base_masks, strict=True))
    assert masks == {
        "(overall)": bits["every row"],
        "a": bits["columns"],
        "b": bits["columns"],
        "p": bits["every row"],
        "c=x": bits["c"],
        "a & b": bits["columns"],
        "a & p": bits["every row"],
        "a & c=x": bits["columns"] | bits["c"],
        "b & p": bits["every row"],
        "b & c=x": bits["columns"] | bits["c"],
        "p & c=x": bits["every row"],
    }


@pytest.mark.parametrize("n_identities", [1, 20, 62, 63, 64, 200])
def test_fields_never_overlap_nor_touch_the_sign(n_identities: int) -> None:
    codebook = codebook_of(flags(*(f"i{n}" for n in range(n_identities))), models=7, slices=9)
    taken: set[tuple[int, int]] = set()
    for field in codebook.fields.values():
        bits = {(field.word, bit) for bit in range(field.shift, field.shift + field.width)}
        assert not bits & taken
        assert max(bit for _, bit in bits) < WORD_BITS
        taken |= bits
    assert len(codebook.word_columns) == 1 + max(word for word, _ in taken)
    wanted = {"label": 1, "row_reason": 1, "annotation": 1, "score_reason": 7, "slice": 8, "known": 1}
    wanted |= {"member": n_identities, "unknown": n_identities}
    found = [what for what, _ in codebook.fields]
    assert {what: found.count(what) for what in wanted} == wanted


def test_reasons_fit_their_fields() -> None:
    fields = mixed().fields
    assert 2 ** fields["row_reason", 0].width > len(ROW_REASONS)
    assert 2 ** fields["score_reason", 0].width > len(SCORE_REASONS)


def test_only_sources_that_can_be_unknown_have_bits_for_it() -> None:
    fields = mixed().fields
    assert [number for what, number in fields if what == "unknown"] == [1, 2]
    assert [number for what, number in fields if what == "known"] == [0, 1]
    assert [number for what, number in fields if what == "member"] == [1, 2, 3]


def test_columns_of_examples() -> None:
    codebook = codebook_of(flags("a"), category("c", "x"), array("groups", "u"), models=2)
    assert codebook.score_columns == ("score_0", "score_1")
    assert codebook.value_columns == {1: "values_1", 2: "values_2"}
    assert codebook.word_columns == ("word_0",)


def test_a_tally_reads_back_what_was_counted() -> None:
    codebook = Codebook(("m", "n"), ("all",), (flags("a", "b"),), crossed=True, texts=("a", "b"))
    counts = {("rows", 0): 100, ("unreadable", 1): 7, ("rejected", 0): 8, ("annotation", 0): 3}
    counts |= {("row_reason", 2): 2, ("row_reason", 4): 5}
    counts |= {("score_reason", 0): 4, ("score_reason", 4 + 0): 1, ("score_reason", 4 + 2): 6, ("pair", 3): 50}
    read = codebook.read_tally([counts.get(tally, 0) for tally in codebook.tallies])
    assert read.rejected_scores == {"m": {"null_score": 4}, "n": {"null_score": 1, "nan_score": 6}}
    assert read == Tally(
        n_rows=100,
        n_rejected=8,
        rejects={"null_id": 2, "null_label": 5, "null_score": 5, "nan_score": 6, "annotation_out_of_range": 3},
        n_eligible={"m": 100 - 7 - 4, "n": 100 - 7 - 7},
        unreadable={"b": 7},
    )


def test_a_tally_wants_a_count_for_everything() -> None:
    with pytest.raises(ValueError, match="zip"):
        mixed().read_tally([1, 2, 3])


def test_crossed_pairs_are_listed_where_they_have_enough_rows() -> None:
    codebook = replace(mixed(crossed=True), min_rows=3)
    assert codebook.tallies[codebook.first_pair_tally] == ("pair", codebook.first_pair)
    counts = [0] * codebook.first_pair_tally + [3, 2, 0, 4, 0, 3]
    assert codebook.list_identities(counts) == [0, 1, 2, 3, 4, 5, 8, 10]
    uncrossed = mixed()
    assert uncrossed.list_identities([0] * len(uncrossed.tallies)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("terms", "text", "found"),
    [
        (("gay",), "a Gay man", "Gay"),
        (("gay",), "gays, gayest, ngay, gay_1, gay1", None),
        (("african", "african american"), "an African American", "African American"),
        (("a", "ab", "abc"), "abc", "abc"),
        (("c++", "c"), "C++!", "C++"),
        (("#blm",), "say #BLM", "#BLM"),
        (("#blm",), "say x#blm", None),
        (("a.b",), "a-b", None),
        (("köln",), "in KÖLN.", "KÖLN"),
        (("köln",), "kölner", None),
    ],
)
def test_terms_are_whole_words_the_longest_first(terms: tuple[str, ...], text: str, found: str | None) -> None:
    match = re.search(rf"(?<!\w){any_term(terms)}(?!\w)", text, re.IGNORECASE)
    assert (match and match[0]) == found


def test_it_travels_as_it_was_made_whatever_was_asked_of_it() -> None:
    """Under Connect a function that pickles differently is another plan, and what Spark keeps of the first is lost."""
    codebook = mixed(crossed=True)
    before = pickle.dumps(codebook)
    codebook.read_tally([0] * len(codebook.tallies))
    assert codebook.names
    assert pickle.dumps(codebook) == before
    assert pickle.loads(before) == codebook


def test_sources_that_are_never_unknown_leave_no_pattern() -> None:
    codebook = codebook_of(Source("p", "flags", False, ("p",)), category("c", "x", nullable=False))
    assert codebook.nullable_sources == ()
    assert codebook.base_masks == (0, 0, 0)
