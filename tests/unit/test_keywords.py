"""The keywords of the public functions: what signatures show, and what is said of wrong ones. No JVM is started."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any, Required, get_args, get_origin, get_type_hints

import pandas as pd
import pytest

import biasspark
from biasspark.api.keywords import DEFAULTS, MAIN_KEYS, Engine, MeasureKeywords, Unannotated, parse_keywords
from biasspark.config import ENGINES, UNANNOTATED
from biasspark.config.model import Measures
from biasspark.errors import ConfigError

FUNCTIONS = [name for name in biasspark.__all__ if name[0].islower() and name != "side_by_side"]
ASKED: dict[str, Any] = {"models": ["new", "old"], "label": "toxic", "identities": ["gay"]}


def refuse(function: Callable[..., Any], **given: Any) -> list[str]:
    """Give the faults of a call; none reads a row, so there is no frame."""
    with pytest.raises(ConfigError) as caught:
        function(None, **given)
    return list(caught.value.faults)


# ---- signatures


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_name_every_keyword(name: str) -> None:
    parameters = inspect.signature(getattr(biasspark, name)).parameters
    assert {"label", "label_threshold", "label_positive", "slices", "ranges", "level"} <= set(parameters)
    assert not any(own.kind is Parameter.VAR_KEYWORD for own in parameters.values())
    assert all(own.annotation is not Parameter.empty for own in parameters.values())


def test_keywords_without_a_default_are_those_that_types_require() -> None:
    hints = get_type_hints(MeasureKeywords, include_extras=True)
    assert set(hints) == set(DEFAULTS)
    required = {name for name, hint in hints.items() if get_origin(hint) is Required}
    assert required == {name for name, default in DEFAULTS.items() if default is Parameter.empty}


def test_words_are_those_of_the_configuration() -> None:
    assert (get_args(Engine), get_args(Unannotated)) == (ENGINES, UNANNOTATED)
    assert set(MAIN_KEYS) <= set(inspect.signature(Measures).parameters)


def test_defaults_are_those_of_the_configuration() -> None:
    given = {name: value for name, value in DEFAULTS.items() if value is not Parameter.empty}
    assert parse_keywords(ASKED | given) == parse_keywords(ASKED)


def test_what_is_no_dataframe_of_spark_is_said() -> None:
    with pytest.raises(TypeError) as caught:
        biasspark.bias_metrics(pd.DataFrame(), **ASKED)  # type: ignore[arg-type]  # that is the fault
    assert str(caught.value) == "bias_metrics() measures a DataFrame of Spark. Give spark.createDataFrame(df)."


def test_help_shows_keywords() -> None:
    shown = str(inspect.signature(biasspark.threshold_rates))
    assert "identity_threshold: float = 0.5" in shown
    assert "engine: Literal['blocks', 'windows', 'binned'] = 'blocks'" in shown


# ---- wrong and missing keywords


def test_unknown_keywords_are_named_with_what_was_meant() -> None:
    with pytest.raises(TypeError) as caught:
        biasspark.label_balance(None, label="toxic", identites=["gay"], whatever=1)
    assert str(caught.value) == (
        "label_balance() has no keyword 'identites'. Did you mean identities?\n"
        "label_balance() has no keyword 'whatever'. Remove it.\n"
        "Its keywords are text, length, buckets, models, label, label_threshold, label_positive, identities, "
        "identity_threshold, unannotated, slices, engine, ranges, rank_bins, level, privacy."
    )


def test_missing_keywords_are_named_together() -> None:
    with pytest.raises(
        TypeError, match=r"^bias_metrics\(\) lacks models, label, identities\. Give each as a keyword\.$"
    ):
        biasspark.bias_metrics(None)
    with pytest.raises(TypeError, match=r"^auc_crosses\(\) lacks groupings\. Give it as a keyword\.$"):
        biasspark.auc_crosses(None, id="id", models="new", label="toxic")


# ---- short forms


def test_a_text_is_one_model_and_one_identity() -> None:
    short = parse_keywords({"models": "toxicity", "label": "toxic", "identities": "gay", "identity_threshold": 0.7})
    assert short.models == {"toxicity": "toxicity"}
    assert (short.identities.columns, short.identities.threshold) == (("gay",), 0.7)


def test_a_value_stands_for_a_table_of_the_configuration() -> None:
    short = {"thresholds": [0.5], "histograms": 7, "label_balance": "text", "templates": "t", "pinned_auc": 3}
    short |= {"evidence": 30, "privacy": True}
    long = {"thresholds": {"at": [0.5]}, "histograms": {"bins": 7}, "label_balance": {"text": "text"}}
    long |= {"templates": {"column": "t"}, "pinned_auc": {"trials": 3}, "evidence": {"min_rows": 30}}
    long |= {"privacy": {"min_group_rows": 10}}
    assert parse_keywords(ASKED | short) == parse_keywords(ASKED | long)
    assert parse_keywords(ASKED | dict.fromkeys(short, False)) == parse_keywords(ASKED)


# ---- faults speak of keywords


def test_faults_name_keywords() -> None:
    wrong = {"label_threshold": "x", "label_positive": [1], "rank_bins": 7, "level": 2, "privacy": 0, "evidence": -1}
    wrong |= {"identity_threshold": "x", "unannotated": "no"}
    assert refuse(biasspark.bias_metrics, **ASKED | wrong) == [
        'label_threshold = "x". It must be a number, not text. Correct it, or leave it out.',
        "label: label_threshold and label_positive are both given. A label is decided by one of them. Remove one.",
        'identity_threshold = "x". It must be a number, not text. Leave it out to use the default, 0.5.',
        'unannotated = "no". It must be one of "exclude", "background". Leave it out to use the default, "exclude".',
        'rank_bins = 7. The engine is "blocks", which has no bins. Write engine = "binned", or remove it.',
        "level = 2. It must lie between 0 and 1, both excluded. Write, for example, level = 0.95.",
        "evidence min_rows = -1. It must lie between 0 and 9223372036854775807. Leave it out to use the default, 0.",
        "privacy min_group_rows = 0. It must lie between 1 and 9223372036854775807. Leave it out to use the default, "
        "10.",
    ]


def test_faults_of_tables_keep_the_keys_of_the_tables() -> None:
    assert refuse(biasspark.bias_metrics, **ASKED | {"identities": {"colums": ["gay"], "threshold": "x"}}) == [
        "identities colums: there is no such key. The keys of identities are columns, threshold, range, unannotated, "
        "categorical, array, predicates, terms, crossed. Did you mean columns?",
        'identities threshold = "x". It must be a number, not text. Leave it out to use the default, 0.5.',
    ]
    assert refuse(biasspark.measure, **ASKED, histograms=0, templates=3) == [
        "histograms bins = 0. It must lie between 1 and 10000. Leave it out to use the default, 100.",
        'templates column = 3. It must be text, not a whole number. Write, for example, column = "template".',
    ]


@pytest.mark.parametrize(
    ("name", "wrong", "fault"),
    [
        ("threshold_rates", {"at": ["x"]}, 'at = ["x"]. "x" is not a finite number. Correct or remove it.'),
        (
            "threshold_rates",
            {"grid": {"hi": 3}},
            "grid hi: there is no such key. The keys of grid are low, high, steps. Did you mean high?",
        ),
        (
            "template_scores",
            {"template": ""},
            'template = "". It must not be empty. Write, for example, template = "template".',
        ),
        (
            "model_comparisons",
            {"baseline": "mid"},
            'baseline = "mid". It must be one of the models "new", "old". Name one of them.',
        ),
        (
            "model_comparisons",
            {"baseline": "old", "method": "jackknife"},
            "id: missing. The jackknife groups rows by it. Name the column that identifies a row.",
        ),
    ],
)
def test_keys_that_are_keywords_of_a_function_are_said_alone(name: str, wrong: dict[str, Any], fault: str) -> None:
    assert refuse(getattr(biasspark, name), **ASKED | wrong) == [fault]


def test_faults_of_attribution_name_its_keywords() -> None:
    asked = {"id": "id", "models": "new", "label": "toxic"}
    assert refuse(biasspark.attribution_segments, **asked, numeric=["age"], tree={"depth": 3}, link="x") == [
        'link = "x". It must be "logit". Correct it, or leave it out where there is none.',
        "tree depth: there is no such key. The keys of tree are max_depth, min_leaf, min_gain, max_bins, "
        "honest_fraction, seed. Did you mean max_depth?",
    ]
