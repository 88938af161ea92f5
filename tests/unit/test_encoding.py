"""Where EXAMPLES keeps what, and what everything is called."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from itertools import combinations

import pytest

from biasspark.corpus.encoding import WORD_BITS, Encoding, RowCounts, Source, any_term

AB = Source("columns", "flags", True, ("a", "b"))
MIXED = Encoding(
    models=("m",),
    slices=("all",),
    sources=(AB, Source("predicates", "flags", False, ("p",)), Source("c", "category", True, ("c=x",), ("x",))),
    crossed=True,
    min_rows=3,
)
UNCROSSED = replace(MIXED, crossed=False)


def test_identities_are_numbered_in_order_and_pairs_follow() -> None:
    assert MIXED.singles == ("a", "b", "p", "c=x")
    pairs = ("a & b", "a & p", "a & c=x", "b & p", "b & c=x", "p & c=x")
    assert MIXED.names == ("(overall)", *MIXED.singles, *pairs)
    assert MIXED.number == {"a": 1, "b": 2, "p": 3, "c=x": 4}
    assert MIXED.first_pair == 5
    assert MIXED.pairs == tuple(combinations(range(1, 5), 2))
    assert MIXED.source_of == (-1, 0, 0, 1, 2)
    assert (UNCROSSED.pairs, UNCROSSED.names) == ((), ("(overall)", *MIXED.singles))


@pytest.mark.parametrize("n_identities", [1, 20, 62, 63, 64, 200])
def test_fields_never_overlap_nor_touch_the_sign(n_identities: int) -> None:
    models, slices = (tuple(f"{what} {n}" for n in range(size)) for what, size in (("m", 7), ("s", 9)))
    names = tuple(f"i{n}" for n in range(n_identities))
    encoding = Encoding(models, slices, (Source("columns", "flags", True, names),), fraction_columns=("label", *names))
    taken: set[tuple[int, int]] = set()
    for field in encoding.fields.values():
        bits = {(field.word, bit) for bit in range(field.shift, field.shift + field.width)}
        assert not bits & taken
        assert max(bit for _, bit in bits) < WORD_BITS
        taken |= bits
    assert len(encoding.word_columns) == 1 + max(word for word, _ in taken)
    for number in range(1, n_identities + 1):
        assert len({encoding.fields[what, number].word for what in ("member", "unknown", "off_scale")}) == 1


def test_a_term_or_a_predicate_named_like_the_label_is_no_column_of_fractions() -> None:
    terms = Source("terms", "terms", True, ("label",))
    encoding = replace(UNCROSSED, sources=(AB, terms), fraction_columns=("label", "b"))
    assert encoding.fraction_numbers == {"label": 0, "b": 2}
    assert {number for what, number in encoding.fields if what == "off_scale"} == {0, 2}


def test_row_counts_are_read_back() -> None:
    encoding = Encoding(("m", "n"), ("all",), (AB,), crossed=True, text_columns=("a", "b"))
    counts = {("rows", 0): 100, ("unreadable", 1): 7, ("rejected", 0): 8, ("annotation", 0): 3}
    counts |= {("row_reason", 2): 2, ("row_reason", 4): 5}
    counts |= {("score_reason", 0): 4, ("score_reason", 4 + 0): 1, ("score_reason", 4 + 2): 6, ("pair", 3): 50}
    row_counts = encoding.read_row_counts([counts.get(key, 0) for key in encoding.count_keys])
    assert row_counts.rejected_scores == {"m": {"null_score": 4}, "n": {"null_score": 1, "nan_score": 6}}
    assert row_counts == RowCounts(
        n_rows=100,
        n_rejected=8,
        rejects={"null_id": 2, "null_label": 5, "null_score": 5, "nan_score": 6, "annotation_out_of_range": 3},
        n_eligible={"m": 100 - 7 - 4, "n": 100 - 7 - 7},
        unreadable={"b": 7},
    )
    with pytest.raises(ValueError, match="zip"):
        MIXED.read_row_counts([1, 2, 3])


def test_crossed_pairs_are_listed_where_they_have_enough_rows() -> None:
    assert MIXED.count_keys[MIXED.first_pair_index] == ("pair", MIXED.first_pair)
    counts = [0] * MIXED.first_pair_index + [3, 2, 0, 4, 0, 3]
    assert MIXED.list_identities(counts) == [0, 1, 2, 3, 4, 5, 8, 10]
    assert UNCROSSED.list_identities([0] * len(UNCROSSED.count_keys)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("terms", "text", "word"),
    [
        (("african", "african american"), "an African American", "African American"),
        (("a", "ab", "abc"), "abc", "abc"),
        (("c++", "c"), "C++!", "C++"),
        (("a.b",), "a-b", None),
    ],
)
def test_of_terms_the_longest_is_found_first(terms: tuple[str, ...], text: str, word: str | None) -> None:
    match = re.search(any_term(terms), text, re.IGNORECASE)
    assert (match and match[0]) == word


def test_it_pickles_as_it_was_made_whatever_was_computed_from_it() -> None:
    """Under Connect a function that pickles differently is another plan, and what Spark keeps of the first is lost."""
    encoding = replace(MIXED)
    before = pickle.dumps(encoding)
    encoding.read_row_counts([0] * len(encoding.count_keys))
    assert encoding.names
    assert pickle.dumps(encoding) == before
    assert pickle.loads(before) == encoding
