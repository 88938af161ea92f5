"""The synthetic comment corpus, without Spark."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from sklearn.metrics import roc_auc_score

from biasspark.synthetic import civil
from biasspark.synthetic.chunks import CHUNK_ROWS, make_table
from biasspark.synthetic.civil import IDENTITIES, IDENTITY_NAMES, TABLE_6, TOXIC_SHARE, CivilRequest

ROWS = 600_000
BIASED_NAMES = ("homosexual_gay_or_lesbian", "muslim", "psychiatric_or_mental_illness", "transgender")


@pytest.fixture(scope="module")
def corpus() -> pa.Table:
    return make_table(CivilRequest(ROWS, seed=5, unannotated=0.0))


def numbers(table: pa.Table, name: str) -> npt.NDArray[np.float64]:
    values: npt.NDArray[np.float64] = table[name].to_numpy()
    return values


def checksum(table: pa.Table, names: Sequence[str], scale: float) -> int:
    """Of whole numbers, so that it does not depend on how a fraction is printed."""
    columns = [np.nan_to_num(numbers(table, name).astype(np.float64), nan=-1.0) for name in names]
    return zlib.crc32(np.rint(np.array(columns) * scale).astype("<i8").tobytes())


def test_a_seed_gives_these_very_numbers() -> None:
    # Found alike with numpy 1.26 and 2.4, with and without AVX. Another number here is another corpus for every user.
    table = make_table(CivilRequest(2 * CHUNK_ROWS, seed=1))
    days = table["created_date"].cast(pa.int32()).to_numpy().astype("<i8")
    assert zlib.crc32(days.tobytes()) == 3919865731
    assert checksum(table, ["id", "comment_length"], 1.0) == 205019354
    assert checksum(table, ["target", *IDENTITY_NAMES], 60.0) == 1448061220
    assert checksum(table, ["toxicity_1", "toxicity_6"], 1e8) == 4172372426


def test_mentions_are_as_frequent_as_in_the_real_corpus(corpus: pa.Table) -> None:
    for identity in IDENTITIES:
        expected = identity.mentions / civil.CORPUS_ROWS * ROWS
        found = np.count_nonzero(numbers(corpus, identity.name) >= 0.5)
        assert abs(found - expected) < 5.0 * math.sqrt(expected), identity.name


def test_toxic_rates_are_those_of_table_5(corpus: pa.Table) -> None:
    toxic = numbers(corpus, "target") >= 0.5
    assert abs(toxic.mean() - TOXIC_SHARE) < 5.0 * math.sqrt(TOXIC_SHARE * (1.0 - TOXIC_SHARE) / ROWS)
    for identity in IDENTITIES:
        member = numbers(corpus, identity.name) >= 0.5
        rate = identity.percent_toxic / 100.0
        assert abs(toxic[member].mean() - rate) < 5.0 * math.sqrt(rate * (1.0 - rate) / member.sum()), identity.name


def bpsn_auc(corpus: pa.Table, name: str, model: str, rows: npt.NDArray[np.bool_]) -> float:
    toxic, member = numbers(corpus, "target") >= 0.5, numbers(corpus, name) >= 0.5
    cell = rows & (toxic != member)
    return float(roc_auc_score(toxic[cell], numbers(corpus, model)[cell]))


@pytest.mark.parametrize("name", BIASED_NAMES)
def test_bias_is_strong_in_short_comments_and_mitigated_later(corpus: pa.Table, name: str) -> None:
    short = numbers(corpus, "comment_length") < 100
    before, after = (bpsn_auc(corpus, name, model, short) for model in ("toxicity_1", "toxicity_6"))
    assert before < after - 0.05
    assert before < bpsn_auc(corpus, name, "toxicity_1", ~short) - 0.05
    assert bpsn_auc(corpus, "christian", "toxicity_1", short) > 0.88


@pytest.mark.slow
def test_negative_gaps_are_near_table_6(corpus: pa.Table) -> None:
    short = numbers(corpus, "comment_length") < 100
    negative = numbers(corpus, "target") < 0.5
    for name in ("homosexual_gay_or_lesbian", "black", "muslim", "female", "christian"):
        member = numbers(corpus, name) >= 0.5
        for position, model in ((0, "toxicity_1"), (2, "toxicity_6")):
            for rows, gaps in ((short, TABLE_6[name]["short"]), (np.ones(ROWS, bool), TABLE_6[name]["every"])):
                cell = rows & negative
                gap = roc_auc_score(member[cell], numbers(corpus, model)[cell]) - 0.5
                assert gap == pytest.approx(gaps[position], abs=0.05), (name, model)


def test_annotations_are_missing_together_and_mentions_stay() -> None:
    every, quarter = (make_table(CivilRequest(200_000, 9, share)) for share in (0.0, 0.75))
    missing = quarter["male"].is_null().to_numpy()
    assert abs(missing.mean() - 0.75) < 0.01
    assert every["male"].null_count == 0
    for name in IDENTITY_NAMES:
        assert np.array_equal(quarter[name].is_null().to_numpy(), missing)
        assert np.array_equal(np.nan_to_num(numbers(quarter, name))[~missing], numbers(every, name)[~missing])
        assert not (numbers(every, name)[missing] >= 0.5).any()
    names = ["id", "created_date", "target", "comment_length", "toxicity_1", "toxicity_6"]
    assert quarter.select(names).equals(every.select(names))


def test_text_has_its_length_and_names_what_it_mentions() -> None:
    table = make_table(CivilRequest(CHUNK_ROWS, seed=2, text=True))
    texts = table["comment_text"].to_pylist()
    assert [len(text) for text in texts] == table["comment_length"].to_pylist()
    toxic = numbers(table, "target") >= 0.5
    insult = re.compile("|".join(map(re.escape, civil.OPENINGS)))
    assert [bool(insult.match(text)) for text in texts] == toxic.tolist()
    name_of = {term: identity.name for identity in IDENTITIES for term in identity.terms}
    named = [{name_of[word] for word in re.findall(r"\w+", text.lower()) if word in name_of} for text in texts]
    for name in IDENTITY_NAMES:
        mentioned = np.nan_to_num(numbers(table, name)) >= 0.5
        assert [name in names for names in named] == mentioned.tolist(), name


def test_text_changes_no_other_column() -> None:
    with_text, without = (make_table(CivilRequest(1_000, seed=2, text=text)) for text in (True, False))
    assert with_text.drop_columns(["comment_text"]).equals(without)


def test_rounded_tables_do_not_hang_on_a_last_bit() -> None:
    """No entry lies so near to a rounding boundary that another C library could round it the other way."""
    quantiles = [NormalDist().inv_cdf(step / civil.STEPS) for step in range(1, civil.STEPS)]
    margins = [abs(value * 1e9 % 1.0 - 0.5) for value in quantiles]
    assert min(margins) > 1e-5


def test_the_most_that_can_be_unannotated() -> None:
    most = make_table(CivilRequest(CHUNK_ROWS, 1, civil.UNMENTIONED_SHARE))
    mentions = np.any([np.nan_to_num(numbers(most, name)) >= 0.5 for name in IDENTITY_NAMES], axis=0)
    assert np.array_equal(most["male"].is_valid().to_numpy(), mentions)
