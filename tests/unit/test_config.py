"""Values of configurations, read as a whole or in parts by the public functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from biasspark.config import (
    Attribution,
    Compare,
    Config,
    Corpus,
    Crossed,
    Histograms,
    Identities,
    Label,
    LabelBalance,
    Measures,
    Output,
    PinnedAuc,
    PinnedSkew,
    RankingSettings,
    Rejects,
    Terms,
    Thresholds,
    divide,
    parse_config,
    parse_identities,
    parse_measures,
)
from biasspark.errors import ConfigError
from tests.harness.least_configuration import LEAST, changed, faults_of, key_of, keys_of, raised_faults

BASE = Path()


def test_the_least_that_must_be_said() -> None:
    config = parse_config(LEAST, BASE)
    assert config == Config(
        corpus=Corpus(name="civil", path="/data/civil", duplicates="allow"),
        label=Label(column="toxic"),
        models={"toxicity": "toxicity"},
        identities=Identities(columns=("male",), threshold=0.5, unannotated="exclude"),
        output=Output(path="/warehouse"),
    )
    assert config.ranking == RankingSettings(engine="blocks", ranges=0)
    assert config.intervals.level == 0.95
    assert config.rejects == Rejects(max_rows=10_000, max_share=None, allow_missing_models=False)


@pytest.mark.parametrize("path", ["s3a://lake", "gs://lake/", "abfss://c@a.dfs.core.windows.net/", "file:/x", "/#"])
def test_tables_may_have_a_bucket_of_their_own(path: str) -> None:
    assert parse_config(changed(output={"path": path}), BASE).output.path == path


TWO: dict[str, Any] = {"models": {"a": "a"}, "corpus": {"id": "id"}}
THREE = TWO | {"models": {"a": "a", "b": "b"}}


@pytest.mark.parametrize(
    ("tables", "part"),
    [
        # An empty table turns its part on, with the defaults.
        ({"pinned_auc": {}}, PinnedAuc(trials=0, seed=1, include_subgroup_in_background=True)),
        ({"histograms": {}}, Histograms(bins=100)),
        ({"label_balance": {"text": "t"}}, LabelBalance(text="t", buckets=(20, 60, 180, 540, 1620, 4860))),
        # All other models are compared with the baseline.
        (THREE | {"compare": {"baseline": "a"}}, Compare(baseline="a", models=("toxicity", "b"))),
        (
            THREE | {"compare": {"baseline": "a", "method": "jackknife"}},
            Compare(baseline="a", models=("toxicity", "b"), method="jackknife", groups=100),
        ),
        # Repeated ids are estimated where there is an id.
        (TWO, Corpus(name="civil", path="/data/civil", id="id", duplicates="estimate")),
        # A share of rejects may be none or all.
        *(({"rejects": {"max_share": share}}, Rejects(max_share=share)) for share in (0.0, 0.5, 1.0)),
        # A link is that of all models, or of each that is named.
        (TWO | {"attribution": {"link": "logit"}}, Attribution(link={"toxicity": "logit", "a": "logit"})),
        (TWO | {"attribution": {"link": {"a": "logit"}}}, Attribution(link={"a": "logit"})),
        (TWO | {"attribution": {"link": None}}, Attribution(link={})),
        # Thresholds are those named and those of the grid, in order.
        (
            {"thresholds": {"at": [0.8, 0.33], "grid": {"low": 0.0, "high": 1.0, "steps": 10}}},
            Thresholds(at=(0.0, 0.1, 0.2, 0.3, 0.33, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
        ),
        # One value is positive, or each of a list of one kind.
        ({"label": {"positive": "x"}}, Label(column="toxic", positive=("x",))),
        ({"label": {"positive": ["x", ""]}}, Label(column="toxic", positive=("x", ""))),
        ({"label": {"positive": [1, 2.5]}}, Label(column="toxic", positive=(1, 2.5))),
        ({"label": {"positive": True}}, Label(column="toxic", positive=(True,))),
        ({"label_balance": {}}, LabelBalance()),
    ],
    ids=str,
)
def test_a_part_is_read_and_reads_back(tables: dict[str, Any], part: object) -> None:
    config = parse_config(changed(**tables), BASE)
    assert part in vars(config).values()
    assert parse_config(json.loads(config.json), BASE) == config


@pytest.mark.parametrize("identity", ["male", "race=Asian", "race=x=y", "old", "faith"])
def test_an_identity_is_found_in_its_source(identity: str) -> None:
    sources: dict[str, Any] = {"columns": ["male"], "categorical": ["race", "race=x"], "crossed": {"pairs": True}}
    sources |= {"predicates": {"young": "age < 30", "old": "age > 60"}}
    sources |= {"terms": {"column": "text", "list": {"gay": ["gay"], "faith": ["christian", "muslim"]}}}
    config = parse_config(changed(identities=sources, pinned_skew={"identity": identity}), BASE)
    assert config.pinned_skew == PinnedSkew(identity=identity)
    assert not config.identities.find_sources("race")
    assert Identities(array="groups", columns=("male",)).find_sources("gay")


def test_equal_parts_have_the_ends_that_people_write() -> None:
    assert divide(0.0, 1.0, 100) == tuple(hundredth / 100 for hundredth in range(101))
    assert divide(0.1, 0.7, 6) == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
    assert divide(-1.0, 0.5, 5) == (-1.0, -0.7, -0.4, -0.1, 0.2, 0.5)
    assert divide(0.5, 0.5, 3) == (0.5, 0.5)


def test_crossed_pairs_of_200_identities_are_allowed() -> None:
    names = [f"i{n}" for n in range(200)]
    identities = parse_config(changed(identities={"columns": names, "crossed": {"pairs": True}}), BASE).identities
    assert identities == Identities(columns=tuple(names), crossed=Crossed(pairs=True))


def test_evidence_is_in_the_order_of_the_suite() -> None:
    config = parse_config(changed(evidence={"metrics": {"positive_aeg": 3, "auc": 5}}), BASE)
    assert config.evidence is not None
    assert list(config.evidence.metrics) == ["auc", "positive_aeg"]
    assert [config.evidence.rows_needed(metric) for metric in ("auc", "bpsn_auc")] == [5, 0]


class TestApi:
    def test_identities_built_by_hand_are_checked_too(self) -> None:
        by_hand = Identities(columns=("a", "a"), threshold=2.0, range=(0.0, 1.0), unannotated="no")
        keys = [key_of(fault) for fault in raised_faults(ConfigError, parse_identities, by_hand)]
        assert keys == ["identities.columns.2", "identities.unannotated", "identities.threshold"]

    def test_measures_need_no_corpus_and_take_none_for_absent(self) -> None:
        tables = {"label": {"column": "y", "threshold": None}, "models": ["score"], "identities": ["male"]}
        measures = parse_measures(tables | {"slices": None, "ranking": {"engine": "windows"}})
        assert measures == Measures(
            label=Label(column="y"),
            models={"score": "score"},
            identities=Identities(columns=("male",)),
            ranking=RankingSettings(engine="windows"),
        )

    def test_measures_know_no_corpus(self) -> None:
        assert [key_of(fault) for fault in raised_faults(ConfigError, parse_measures, LEAST)] == ["corpus", "output"]

    def test_labels_alone_need_no_models(self) -> None:
        tables = {"label": {"column": "y"}, "identities": ["male"], "models": ["a"]}
        assert parse_measures(tables, scored=False).models == {}
        balance = changed(models=None, label_balance={"text": "t"})
        assert parse_config(balance, BASE).models == {}
        for wrong in (changed(models=None), balance | {"thresholds": {"at": [0.5]}}):
            assert keys_of(wrong) == ["models"]


# ---- any configuration is read as it was written, or refused with one line per fault

KEYS = [
    "corpus", "label", "models", "identities", "slices", "ranking", "intervals", "rejects", "output", "name", "path",
    "table", "options", "column", "threshold", "positive", "range", "columns", "predicates", "terms", "file", "list",
    "crossed", "pairs", "min_rows", "engine", "ranges", "level", "max_rows", "catalog", "duplicates", "id", "all",
]  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.binary(max_size=3), st.dates(),
    st.datetimes(), st.sampled_from([10**500, -(10**4000), "parquet", "reject", "(overall)", "a & b", 1j]),
)  # fmt: skip
JUNK = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4) | st.integers(), inner, max_size=5)
    ),
    max_leaves=30,
)


@given(table=st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), JUNK, max_size=9))
def test_junk_is_refused_with_one_line_a_fault(table: dict[str, Any]) -> None:
    for message in map(str, faults_of(table)):
        assert "\n" not in message
        assert all(character.isprintable() or not character.isascii() for character in message)


@given(part=st.sampled_from(sorted(LEAST)), junk=JUNK)
@settings(max_examples=300)
def test_junk_in_one_table_is_refused_or_read(part: str, junk: object) -> None:
    try:
        config = parse_config({**LEAST, part: junk}, Path())
    except ConfigError:
        return
    assert parse_config(json.loads(config.json), Path()).json == config.json


NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=6).filter(str.strip)
IDENTITY_NAMES = NAMES.filter(lambda name: name != "(overall)" and " & " not in name)


@given(
    names=st.lists(IDENTITY_NAMES, min_size=3, max_size=9, unique=True),
    models=st.dictionaries(NAMES, NAMES, min_size=1, max_size=3),
    terms=st.lists(NAMES, min_size=1, max_size=3),
    pairs=st.booleans(),
)
def test_what_is_valid_reads_back_equal(
    names: list[str], models: dict[str, str], terms: list[str], pairs: bool
) -> None:
    cut = len(names) // 3
    identities = Identities(
        columns=tuple(names[:cut]),
        predicates=dict.fromkeys(names[cut : 2 * cut], "x > 0"),
        terms=Terms(column="text", list=dict.fromkeys(names[2 * cut :], tuple(terms))),
        crossed=Crossed(pairs=pairs, min_rows=3),
    )
    measures = parse_measures({"label": {"column": "y"}, "models": models, "identities": identities})
    assert measures.identities == identities
    assert measures.identities.known_names == tuple(names)
    assert parse_measures(json.loads(measures.json)) == measures
