"""Every fault, word for word, in what a configuration says of the ranking and of what is computed besides the suite."""

from __future__ import annotations

from typing import Any

import pytest

from tests.least_configuration import changed, faults_of


@pytest.mark.parametrize(
    ("tables", "fault"),
    [
        (
            {"ranking": {"engine": "fast"}},
            '[ranking] engine = "fast". It must be one of "blocks", "windows", "binned". '
            'Remove the line to use the default, "blocks".',
        ),
        (
            {"ranking": {"engin": "windows"}},
            "[ranking] engin: there is no such key. The keys of [ranking] are engine, ranges, bins. Did you mean "
            "engine?",
        ),
        (
            {"ranking": {"engine": "bined", "bins": 100}},
            '[ranking] engine = "bined". It must be one of "blocks", "windows", "binned". Did you mean binned?',
        ),
        (
            {"ranking": {"ranges": 4097}},
            "[ranking] ranges = 4097. It must lie between 0 and 4096. Remove the line to use the default, 0.",
        ),
        (
            {"ranking": {"ranges": True}},
            "[ranking] ranges = true. It must be a whole number, not true or false. "
            "Remove the line to use the default, 0.",
        ),
        (
            {"ranking": {"ranges": 1.0}},
            "[ranking] ranges = 1.0. It must be a whole number, without a decimal point. Remove the line to use the "
            "default, 0.",
        ),
        (
            {"ranking": "fast"},
            "[ranking]: this is text. It must be a table. Correct it, or remove the line.",
        ),
        (
            {"pinned_auc": {"trials": 10}, "ranking": {"engine": "windows"}},
            '[pinned_auc] trials = 10: the engine is "windows". Trials are drawn from sorted blocks. Remove the line '
            'to have the exact value alone, or set [ranking] engine = "blocks".',
        ),
        (
            {"pinned_auc": {"trials": 10}, "ranking": {"engine": "binned"}},
            '[pinned_auc] trials = 10: the engine is "binned". Trials are drawn from sorted blocks. Remove the line '
            'to have the value in the limit alone, or set [ranking] engine = "blocks".',
        ),
        (
            {"ranking": {"engine": "binned"}, "state": {"keep": True}},
            '[state] keep = true. The engine is "binned", which sorts no blocks. Set [ranking] engine = "blocks", or '
            "keep none.",
        ),
        (
            {"ranking": {"engine": "binned"}, "pinned_skew": {"identity": "male"}},
            '[pinned_skew]: the engine is "binned", and bins hold no single rows. Set [ranking] engine = "blocks", '
            "or keep [pinned_skew] in a configuration of its own.",
        ),
        (
            {"ranking": {"bins": 100}},
            '[ranking] bins = 100. The engine is "blocks", which has no bins. Write engine = "binned", or remove it.',
        ),
        (
            {"ranking": {"engine": "binned", "bins": 1}},
            "[ranking] bins = 1. It must lie between 2 and 65536. Remove the line to use the default, 4096.",
        ),
        (
            {"thresholds": {}},
            "[thresholds]: neither at nor grid is given. A threshold is required. Write, for example, at = [0.5].",
        ),
        (
            {"thresholds": {"at": []}},
            "[thresholds] at = []. At least one threshold is required. Write, for example, at = [0.5].",
        ),
        (
            {"thresholds": {"at": 0.5}},
            "[thresholds] at = 0.5. It must be a list of numbers, not a number. Write, for example, at = [0.5, 0.8].",
        ),
        (
            {"thresholds": {"at": [0.5, float("nan")]}},
            "[thresholds] at = [0.5, nan]. nan is not a finite number. Correct or remove it.",
        ),
        (
            {"thresholds": {"at": [0.5, 0.5]}},
            "[thresholds] at: 0.5 is listed twice. Thresholds must differ. Remove one.",
        ),
        (
            {"thresholds": {"grid": {"low": 1.0, "high": 0.0}}},
            "[thresholds.grid]: low = 1.0 is not below high = 0.0. Swap them.",
        ),
        (
            {"thresholds": {"grid": {"steps": 0}}},
            "[thresholds.grid] steps = 0. It must lie between 1 and 10000. Remove the line to use the default, 100.",
        ),
        (
            {"histograms": {"bins": 0}},
            "[histograms] bins = 0. It must lie between 1 and 10000. Remove the line to use the default, 100.",
        ),
        (
            {"label_balance": {"text": "comment", "length": "n"}},
            "[label_balance]: text and length are both given. A length comes from one of them. Remove one.",
        ),
        (
            {"label_balance": {"buckets": [20, 60]}},
            "[label_balance] buckets = [20, 60]. Without text or length nothing is put into them. Add text = "
            '"comment_text".',
        ),
        (
            {"label_balance": {"length": "n", "buckets": [60, 20]}},
            "[label_balance] buckets = [60, 20]. It must be a list of 2 to 100 whole numbers, not negative and "
            "ascending. Write, for example, buckets = [20, 60, 180].",
        ),
        (
            {"compare": {}, "models": {"a": "a", "b": "b"}},
            '[compare] baseline: missing. It is required. Write, for example, baseline = "old".',
        ),
        (
            {"compare": {"baseline": "c", "models": ["a"]}, "models": {"a": "a", "b": "b"}},
            '[compare] baseline = "c". It must be one of the models "toxicity", "a", "b". Name one of them.',
        ),
        (
            {"compare": {"baseline": "toxicity"}},
            "[compare]: there is one model. A comparison takes two. Add another to [models].",
        ),
        (
            {"compare": {"baseline": "a", "models": ["toxicity", "a"]}, "models": {"a": "a"}},
            '[compare] models: "a": It must be one of "toxicity" and not the baseline. Correct or remove it.',
        ),
        (
            {"compare": {"baseline": "a", "models": []}, "models": {"a": "a"}},
            "[compare] models = []. At least one is required. Remove the line to compare all with the baseline.",
        ),
        (
            {"compare": {"baseline": "a", "models": ["toxicity", "toxicity"]}, "models": {"a": "a"}},
            '[compare] models: "toxicity" is listed twice. Remove one.',
        ),
        (
            {"compare": {"baseline": "a", "cluster": "author"}, "models": {"a": "a"}},
            '[compare] cluster = "author". Only the jackknife uses it. Add method = "jackknife", or remove the line.',
        ),
        (
            {
                "compare": {"baseline": "a", "method": "jacknife", "groups": 50, "cluster": "author"},
                "models": {"a": "a"},
            },
            '[compare] method = "jacknife". It must be one of "delong", "jackknife". Did you mean jackknife?',
        ),
        (
            {"compare": {"baseline": "a", "method": "jackknife"}, "models": {"a": "a"}},
            '[corpus] id: missing. The jackknife of [compare] groups by it. Write, for example, id = "row_id".',
        ),
        (
            {"pinned_skew": {}},
            '[pinned_skew] identity: missing. It is required. Write, for example, identity = "gay".',
        ),
        (
            {"pinned_skew": {"identity": "mal"}},
            '[pinned_skew] identity = "mal". There is no such identity. There is male. Did you mean male?',
        ),
        (
            {
                "identities": {"columns": ["male", "female"], "categorical": ["race"], "crossed": {"pairs": True}},
                "pinned_skew": {"identity": "male & female"},
            },
            '[pinned_skew] identity = "male & female". There is no such identity. There are male, female, '
            "race=(a value). Did you mean female?",
        ),
        (
            {"pinned_skew": {"identity": "male", "cell": "none"}},
            '[pinned_skew] cell = "none". It must be one of "subgroup_negative", "subgroup_positive", '
            '"background_negative", "background_positive". Remove the line to use the default, "subgroup_negative".',
        ),
        (
            {"pinned_skew": {"identity": "male", "fraction": 1}},
            "[pinned_skew] fraction = 1. It must lie between 0 and 1, both excluded. Write, for example, "
            "fraction = 0.5.",
        ),
        (
            {"pinned_skew": {"identity": "male", "trials": 0}},
            "[pinned_skew] trials = 0. It must lie between 1 and 100000. Remove the line to use the default, 100.",
        ),
        (
            {"pinned_skew": {"identity": "male", "seed": -1}},
            "[pinned_skew] seed = -1. It must lie between 0 and 9223372036854775807. Remove the line to use the "
            "default, 1.",
        ),
        (
            {"templates": {}},
            '[templates] column: missing. It is required. Write, for example, column = "template".',
        ),
    ],
)
def test_each_fault_word_for_word(tables: dict[str, Any], fault: str) -> None:
    assert faults_of(changed(**tables)) == (fault,)


def test_what_does_not_depend_on_a_faulty_choice_is_said_beside_it() -> None:
    table = changed(ranking={"engine": "bined", "bins": 1}, state={"keep": True}, pinned_auc={"trials": 10})
    assert faults_of(table) == (
        '[ranking] engine = "bined". It must be one of "blocks", "windows", "binned". Did you mean binned?',
        "[ranking] bins = 1. It must lie between 2 and 65536. Remove the line to use the default, 4096.",
    )


def test_a_model_to_compare_that_is_listed_twice_and_unknown_is_unknown_once() -> None:
    assert faults_of(changed(compare={"baseline": "a", "models": ["b", "b"]}, models={"a": "a"})) == (
        '[compare] models: "b": It must be one of "toxicity" and not the baseline. Correct or remove it.',
        '[compare] models: "b" is listed twice. Remove one.',
    )


def test_faults_of_links_stand_beside_all_others() -> None:
    attribution = {"link": {"old": "logit", "toxicity": 1}, "targets": ["recall"], "tree": {}, "numeric": ["length"]}
    assert faults_of(changed(corpus={"id": "id"}, attribution=attribution, intervals={"level": 2})) == (
        "[intervals] level = 2. It must lie between 0 and 1, both excluded. Write, for example, level = 0.95.",
        '[attribution] targets: "recall": It must be one of "auc", "cross_entropy", "gini". Correct it.',
        "[attribution.link] toxicity = 1. It must be text, not a whole number. Write the link in quotes, or remove the "
        "line.",
        '[attribution.link] old: there is no such model. The models are "toxicity". Remove it.',
    )


def test_an_identity_that_is_faulty_is_mended_before_the_experiment() -> None:
    assert faults_of(changed(identities={"columns": ["male", ""]}, pinned_skew={"identity": "female"})) == (
        '[identities] columns, entry 2 = "". It must not be empty. Correct or remove it.',
    )


def test_single_rows_are_not_told_of_by_bins() -> None:
    table = changed(
        corpus={"id": "id"},
        models={"one": "f1", "two": "f2"},
        ranking={"engine": "binned"},
        attribution={"numeric": ["f1"]},
        compare={"baseline": "one"},
    )
    assert faults_of(table) == tuple(
        f'{part}: the engine is "binned", and bins hold no single rows. Set [ranking] engine = "blocks", or keep '
        f"{part} in a configuration of its own."
        for part in ("[attribution]", "[compare]")
    )
