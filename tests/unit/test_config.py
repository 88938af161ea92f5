"""What a configuration says, as the product reads it: whole, or in parts from the public functions."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

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
from biasspark.config.identities import find_too_many_pairs
from biasspark.errors import ConfigError
from tests.least_configuration import LEAST, TABLES, changed


def test_the_least_that_must_be_said() -> None:
    config = parse_config(LEAST, Path())
    assert config == Config(
        corpus=Corpus(name="civil", path="/data/civil", duplicates="allow"),
        label=Label(column="toxic"),
        models={"toxicity": "toxicity"},
        identities=Identities(columns=("male",)),
        output=Output(path="/warehouse"),
    )
    assert config.identities.threshold == 0.5
    assert config.identities.unannotated == "exclude"
    assert config.ranking == RankingSettings(engine="blocks", ranges=0)
    assert config.intervals.level == 0.95
    assert config.rejects == Rejects(max_rows=10_000, max_share=None, allow_missing_models=False)


def test_duplicates_are_estimated_where_there_is_an_id() -> None:
    assert parse_config(changed(corpus={"id": "id"}), Path()).corpus.duplicates == "estimate"


@pytest.mark.parametrize("path", ["s3a://lake", "gs://lake/", "abfss://c@a.dfs.core.windows.net/", "file:/x", "/#"])
def test_a_bucket_may_be_a_place_of_its_own(path: str) -> None:
    assert parse_config(changed(output={"path": path}), Path()).output.path == path


def test_what_is_not_configured_is_not_measured() -> None:
    config = parse_config(LEAST, Path())
    further = ("pinned_auc", "thresholds", "histograms", "label_balance", "templates", "pinned_skew")
    assert [getattr(config, name) for name in further] == [None] * 6
    assert not set(further) & set(config.resolved())


def test_an_empty_table_turns_its_part_on() -> None:
    config = parse_config(changed(pinned_auc={}, histograms={}, label_balance={}), Path())
    assert config.pinned_auc == PinnedAuc(trials=0, seed=1, include_subgroup_in_background=True)
    assert config.histograms == Histograms(bins=100)
    assert config.label_balance == LabelBalance(buckets=(20, 60, 180, 540, 1620, 4860))


def test_all_other_models_are_compared_with_the_baseline() -> None:
    models = {"models": {"a": "a", "b": "b"}, "corpus": {"id": "id"}}
    config = parse_config(changed(compare={"baseline": "a"}, **models), Path())
    assert config.compare == Compare(baseline="a", models=("toxicity", "b"))
    jackknife = parse_config(changed(compare={"baseline": "a", "method": "jackknife"}, **models), Path())
    assert jackknife.compare == Compare(baseline="a", models=("toxicity", "b"), method="jackknife", groups=100)
    for one in (config, jackknife):
        assert parse_config(json.loads(one.json), Path()) == one


def test_a_link_is_that_of_all_models_or_of_each_that_is_named() -> None:
    models = {"models": {"a": "a", "b": "b"}, "corpus": {"id": "id"}}
    every = parse_config(changed(attribution={"link": "logit"}, **models), Path())
    some = parse_config(changed(attribution={"link": {"b": "logit"}}, **models), Path())
    none = parse_config(changed(attribution={"link": None}, **models), Path())
    assert every.attribution == Attribution(link={"toxicity": "logit", "a": "logit", "b": "logit"})
    assert some.attribution == Attribution(link={"b": "logit"})
    assert none.attribution == Attribution()
    for one in (every, some, none):
        assert parse_config(json.loads(one.json), Path()) == one


def test_the_experiment_of_an_identity_that_may_be_a_value() -> None:
    sources = {"columns": ["male"], "categorical": ["race", "race=x"], "array": None}
    for identity, kept in (
        ("male", Identities(columns=("male",))),
        ("race=Asian", Identities(categorical=("race",))),
        ("race=x=y", Identities(categorical=("race", "race=x"))),
    ):
        config = parse_config(changed(identities=sources, pinned_skew={"identity": identity}), Path())
        assert config.pinned_skew == PinnedSkew(identity=identity)
        assert config.identities.only(identity) == kept
    assert Identities(array="groups", columns=("male",)).only("gay") == Identities(array="groups")
    terms = Terms(column="text", terms=(("gay", ("gay",)), ("faith", ("christian", "muslim"))))
    predicates = {"young": "age < 30", "old": "age > 60"}
    everything = Identities(terms=terms, predicates=predicates, crossed=Crossed(pairs=True))
    assert everything.only("faith") == Identities(terms=Terms(column="text", terms=terms.terms[1:]))
    assert everything.only("old") == Identities(predicates={"old": "age > 60"})


def test_thresholds_are_those_named_and_those_of_the_grid_in_order() -> None:
    table = changed(thresholds={"at": [0.8, 0.33], "grid": {"low": 0.0, "high": 1.0, "steps": 10}})
    thresholds = parse_config(table, Path()).thresholds
    assert thresholds == Thresholds(at=(0.0, 0.1, 0.2, 0.3, 0.33, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0))
    assert parse_config(changed(thresholds={"at": list(thresholds.at)}), Path()).thresholds == thresholds


def test_equal_parts_have_the_ends_that_people_write() -> None:
    assert divide(0.0, 1.0, 100) == tuple(hundredth / 100 for hundredth in range(101))
    ends = divide(-1.7e308, 1.7e308, 3)
    assert (ends[0], ends[-1]) == (-1.7e308, 1.7e308)
    assert all(low < high for low, high in pairwise(ends))


def test_bins_are_those_of_the_engine_that_has_them() -> None:
    assert parse_config(changed(), Path()).ranking.bins is None
    assert parse_config(changed(ranking={"engine": "binned"}), Path()).ranking == RankingSettings(
        engine="binned", bins=4096
    )
    chosen = parse_config(changed(ranking={"engine": "binned", "bins": 300}), Path())
    assert chosen.resolved()["ranking"] == {"engine": "binned", "ranges": 0, "bins": 300}


def test_crossed_pairs_of_200_identities_are_allowed() -> None:
    names = [f"i{n}" for n in range(200)]
    identities = parse_config(changed(identities={"columns": names, "crossed": {"pairs": True}}), Path()).identities
    assert identities == Identities(columns=tuple(names), crossed=Crossed(pairs=True))
    assert find_too_many_pairs(200, identities.crossed) == ""
    assert " makes 19,900 pairs of 200 " in find_too_many_pairs(200, Crossed(pairs=True, max_pairs=19_899))
    assert " makes 20,100 pairs of 201 " in find_too_many_pairs(201, identities.crossed)


def test_positive_takes_one_value_or_a_list_of_one_kind() -> None:
    for given_value, read in (("x", ("x",)), (["x", ""], ("x", "")), ([1, 2.5], (1, 2.5)), (True, (True,))):
        assert parse_config(changed(label={"positive": given_value}), Path()).label.positive == read


class TestApi:
    def test_identities_as_list_dict_or_object(self) -> None:
        expected = Identities(columns=("male", "female"))
        assert parse_identities(["male", "female"]) == expected
        assert parse_identities({"columns": ["male", "female"]}) == expected
        assert parse_identities(expected) == expected

    def test_identities_built_by_hand_are_checked_too(self) -> None:
        with pytest.raises(ConfigError) as caught:
            parse_identities(Identities(columns=("a", "a"), threshold=2.0, range=(0.0, 1.0), unannotated="no"))
        assert caught.value.faults == (
            '[identities] unannotated = "no". It must be one of "exclude", "background". Remove the line to use the '
            'default, "exclude".',
            "[identities] threshold = 2.0: it lies outside range = [0.0, 1.0]. Every row would fall on the same side. "
            "Change one of the two.",
            '[identities] columns: "a" is named 2 times. Identities must differ. Remove or rename all but one.',
        )

    def test_known_names_are_in_the_order_of_the_sources(self) -> None:
        identities = parse_identities(
            {"terms": {"column": "t", "list": ["z"]}, "predicates": {"y": "1", "x": "2"}, "columns": ["w"]}
        )
        assert identities.known_names == ("w", "y", "x", "z")

    def test_models_as_list_or_dict(self) -> None:
        assert parse_measures({"label": {"column": "y"}, "identities": ["male"], "models": ["b", "a"]}).models == {
            "b": "b",
            "a": "a",
        }
        assert parse_measures({"label": {"column": "y"}, "identities": ["male"], "models": {"b": "x"}}).models == {
            "b": "x"
        }

    @pytest.mark.parametrize(
        ("value", "fault"),
        [
            (["a", "a"], '[models]: "a" is listed twice. Models must differ. Remove one.'),
            ([3], "[models] columns, entry 1 = 3. It must be text, not a whole number. Correct or remove it."),
            ([], '[models]: no model is named. At least one is required. Write, for example, toxicity = "toxicity".'),
        ],
    )
    def test_faulty_models(self, value: object, fault: str) -> None:
        with pytest.raises(ConfigError) as caught:
            parse_measures({"label": {"column": "y"}, "identities": ["male"], "models": value})
        assert caught.value.faults == (fault,)

    def test_measures_need_no_corpus_and_take_none_for_absent(self) -> None:
        measures = parse_measures(
            {
                "label": {"column": "y", "threshold": None},
                "models": ["score"],
                "identities": ["male"],
                "slices": None,
                "ranking": {"engine": "windows"},
            }
        )
        assert measures == Measures(
            label=Label(column="y"),
            models={"score": "score"},
            identities=Identities(columns=("male",)),
            ranking=RankingSettings(engine="windows"),
        )

    def test_measures_know_no_corpus(self) -> None:
        known = TABLES.removeprefix("[corpus], ").partition(", [gate]")[0]
        with pytest.raises(ConfigError) as caught:
            parse_measures({**LEAST, "corpus": None})
        assert caught.value.faults == tuple(
            f"[{name}]: there is no such table. The tables are {known}. Remove it." for name in ("corpus", "output")
        )

    def test_a_config_is_measures(self) -> None:
        assert isinstance(parse_config(LEAST, Path()), Measures)
