"""Templated sentences, without Spark."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from biasspark.arrays import Flags
from biasspark.errors import ConfigError
from biasspark.synthetic import madlibs
from biasspark.synthetic.chunks import WORD, make_table
from biasspark.synthetic.madlibs import N_TEMPLATES, SLOT, MadlibsRequest
from biasspark.synthetic.wording import FILLERS, IDENTITY_TERMS, TEMPLATES, with_article
from biasspark.workflows.make_corpus import read_terms

ROOT = Path(__file__).resolve().parents[2]
NESTED = ("gay", "african", "african american", "american", "Middle Eastern")


def flags(table: pa.Table, term: str) -> Flags:
    return np.asarray(table[term].to_numpy() == 1)


@pytest.fixture(scope="module")
def corpus() -> pa.Table:
    return make_table(MadlibsRequest(77_000, seed=1))


def test_terms_are_those_of_the_configured_list() -> None:
    assert len(IDENTITY_TERMS) == 50
    assert read_terms(ROOT / "conf" / "identity_terms.txt") == IDENTITY_TERMS


def test_a_seed_gives_these_very_sentences(corpus: pa.Table) -> None:
    # Another number here is another corpus for every user.
    assert zlib.crc32("\n".join(corpus["comment_text"].to_pylist()).encode()) == 2280105106


def test_wording_is_of_one_size_and_toxic_words_are_not_harmless() -> None:
    for kind in (0, 1):
        assert len(set(TEMPLATES[kind])) == len(TEMPLATES[kind]) == N_TEMPLATES
        for words in FILLERS[kind].values():
            assert len(set(words)) == len(words) == 24
    for slot in ("adjective", "verb"):
        assert set(FILLERS[0][slot]).isdisjoint(FILLERS[1][slot])


@pytest.mark.parametrize("template", [template for kind in TEMPLATES for template in kind])
def test_every_template_has_the_term_and_three_different_fillers(template: str) -> None:
    kinds = [kind for _, kind in SLOT.findall(template)]
    assert len(kinds) == len(set(kinds)) == 4
    assert "identity" in kinds
    assert set(kinds) <= {"identity", *FILLERS[0]}
    # Words stay whole, and no article is left to be put right.
    assert not re.search(r"\w\{|\}\w|\b[Aa]n? \{", template)
    assert re.match(r"\{name\}|[A-Z]", template)
    assert template[-1] in ".?"


def test_articles() -> None:
    words = ("old", "european", "lgbtq", "honest", "useless", "gay", "Asian", "idiotic", "elderly")
    assert [with_article(word).split()[0] for word in words] == ["an", "a", "an", "an", "a", "a", "an", "an", "an"]


def test_sentences_have_their_words_in_place(corpus: pa.Table) -> None:
    texts = corpus["comment_text"].to_pylist()
    assert not [text for text in texts if re.search(r"[{}\0]|  ", text)]
    spoken = {found for text in texts for found in re.findall(r"\ba[n]? \w+", text)}
    assert not [found for found in spoken if with_article(found.split()[1]) != found]
    for row in (0, 1, 500, 76_999):
        text, template = texts[row], corpus["template"][row].as_py()
        kind, number = template.split("_")
        pattern = SLOT.sub("(.+)", TEMPLATES[kind == "toxic"][int(number) - 1].replace("?", r"\?"))
        assert re.fullmatch(pattern, text), (template, text)


def test_columns_say_which_terms_stand_in_the_text(corpus: pa.Table) -> None:
    texts = corpus["comment_text"].to_pylist()[::9]
    for term in IDENTITY_TERMS:
        found = re.compile(rf"\b{term}\b", re.IGNORECASE)
        assert [found.search(text) is not None for text in texts] == flags(corpus, term)[::9].tolist(), term
    both = flags(corpus, "african american")
    assert both.sum() == 1_540
    assert (flags(corpus, "african") & flags(corpus, "american")).tolist() == both.tolist()


@pytest.mark.parametrize("rows", [1, 49, 50, 75, 99, 100, 151, 1_037, 4_950])
def test_half_is_toxic_at_any_size(rows: int) -> None:
    table = make_table(MadlibsRequest(rows, seed=2))
    toxic = table["label"].to_numpy()
    assert abs(2 * toxic.sum() - rows) <= 3
    for term in IDENTITY_TERMS:
        member = flags(table, term)
        assert abs(2 * toxic[member].sum() - member.sum()) == member.sum() % 2, term


def test_label_is_that_of_the_template(corpus: pa.Table) -> None:
    toxic = [template.startswith("toxic_") for template in corpus["template"].to_pylist()]
    assert corpus["label"].to_pylist() == toxic
    counts = {entry["values"]: entry["counts"] for entry in corpus["template"].value_counts().to_pylist()}
    assert sorted(counts) == sorted(
        f"{kind}_{n:02}" for kind in ("harmless", "toxic") for n in range(1, N_TEMPLATES + 1)
    )
    assert max(counts.values()) - min(counts.values()) <= 50


def test_every_sentence_comes_before_one_comes_again() -> None:
    numbers = np.arange(madlibs.N_SENTENCES // 2 + 1)
    zeros, ones = np.zeros_like(numbers), np.ones_like(numbers)
    template, filling = madlibs.choose_sentences(numbers, zeros, ones, madlibs.take_turns(1, 7))
    assert template.min() == N_TEMPLATES
    sentences = template * madlibs.N_FILLINGS + filling
    assert len(np.unique(sentences[:-1])) == madlibs.N_SENTENCES // 2
    assert sentences[-1] == sentences[0]
    # Every template and every filler is used as often as any other.
    assert set(np.bincount(template[:-1])[N_TEMPLATES:]) == {madlibs.N_FILLINGS}


def test_own_terms() -> None:
    request = MadlibsRequest(1_000, 1, NESTED)
    table = make_table(request)
    assert table.column_names == ["id", "comment_text", "label", "template", *NESTED]
    assert flags(table, "Middle Eastern").sum() == 200
    assert flags(table, "african").sum() == 400
    first = dict(zip(NESTED, madlibs.first_labels(NESTED).tolist(), strict=True))
    assert first["african"] == first["american"] == 1 - first["african american"]


def test_no_word_of_the_sentences_is_in_a_term() -> None:
    assert madlibs.list_words().isdisjoint(word for term in IDENTITY_TERMS for word in WORD.findall(term))
    assert {"a", "an", "teacher", "alex", "imbecile"} <= madlibs.list_words()


def test_terms_of_groups_count_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "terms.txt").write_text("# ours\nfaith: sikh, hindu\ngay\nsikh\n")
    assert read_terms(tmp_path / "terms.txt") == ("sikh", "hindu", "gay")
    with pytest.raises(ConfigError, match="no such file"):
        read_terms(tmp_path / "missing.txt")
