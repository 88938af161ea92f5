"""The keywords of the public functions: what signatures show, and what is said of wrong ones. No JVM is started."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Required, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
import pytest

import biasspark
from biasspark.api.keyword_faults import MAIN_KEYS, RENAMED
from biasspark.api.keywords import DEFAULTS, Engine, MeasureKeywords, Unannotated, parse_keywords
from biasspark.config.identities import UNANNOTATED
from biasspark.config.model import ENGINES, Measures
from biasspark.corpus.one_identity import keep_identity
from biasspark.errors import ConfigError, InputError
from biasspark.maps.comparisons import compared_alone

FUNCTIONS = [name for name in biasspark.__all__ if name[0].islower() and name != "side_by_side"]
ROOT = Path(__file__).parents[2]
ASKED: dict[str, Any] = {"models": ["new", "old"], "label": "toxic", "identities": ["gay"]}


def refuse(function: Callable[..., Any], **given: Any) -> list[str]:
    """Give the faults of a call; none reads a row, so there is no true frame."""
    with pytest.raises(ConfigError) as caught:
        function(SimpleNamespace(sparkSession=None), **given)
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


@pytest.mark.parametrize(
    ("df", "mend"),
    [
        (pd.DataFrame(), "spark.createDataFrame(df)"),
        (SimpleNamespace(to_spark=None), "df.to_spark()"),
        (pd.Series([1]), "what spark.read or spark.createDataFrame returns"),
        ("data/civil", "what spark.read or spark.createDataFrame returns"),
        (None, "what spark.read or spark.createDataFrame returns"),
    ],
)
def test_what_is_no_dataframe_of_spark_is_said(df: Any, mend: str) -> None:
    for call in (lambda: biasspark.bias_metrics(df, **ASKED), lambda: biasspark.bias_metrics(df=df, **ASKED)):
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == f"bias_metrics() takes a DataFrame of Spark. Give {mend}."


def test_what_is_no_frame_of_metrics_is_said() -> None:
    with pytest.raises(TypeError, match=r"^side_by_side\(\) takes a DataFrame of Spark\. Give spark\.createDataFrame"):
        biasspark.side_by_side(pd.DataFrame(), "new", "old")  # type: ignore[arg-type]  # that is the fault
    frame: Any = SimpleNamespace(sparkSession=None, columns=["model", "slice", "bpsn_auc"])
    with pytest.raises(InputError, match=r"^metrics: there is no column identity\. Give what bias_metrics returns, or"):
        biasspark.side_by_side(frame, "new", "old")


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


@pytest.mark.parametrize(
    ("word", "mend"),
    [
        ("baseline", "model_comparisons() has it."),
        ("compare", "model_comparisons() has baseline."),
        ("cell", "pinned_skew() has it."),
        ("id", "attribution_correlations(), attribution_segments(), attribution_slices() and 5 more have it."),
        ("y_true", "Did you mean label?"),
        ("scores", "Did you mean models?"),
        ("sensitive_features", "Did you mean identities?"),
    ],
)
def test_keywords_of_other_functions_and_other_words_for_them(word: str, mend: str) -> None:
    with pytest.raises(TypeError) as caught:
        biasspark.measure(None, **ASKED, **{word: "x"})
    assert str(caught.value).splitlines()[0] == f"measure() has no keyword '{word}'. {mend}"


@pytest.mark.parametrize(
    ("name", "key", "mend"),
    [
        ("bias_metrics", "bins", "Did you mean rank_bins?"),
        ("bias_metrics", "threshold", "Did you mean label_threshold or identity_threshold?"),
        ("bias_metrics", "min_rows", "Did you mean evidence?"),
        ("measure", "bins", "Did you mean rank_bins or histograms?"),
        ("measure", "at", "Did you mean thresholds?"),
        ("template_scores", "column", "Did you mean label or template?"),
        ("attribution_slices", "bins", "score_histograms() has it."),
    ],
)
def test_keys_of_the_configuration_that_have_another_name(name: str, key: str, mend: str) -> None:
    with pytest.raises(TypeError) as caught:
        getattr(biasspark, name)(None, **{key: 1})
    assert str(caught.value).splitlines()[0] == f"{name}() has no keyword '{key}'. {mend}"


def test_the_guide_names_every_keyword_that_a_key_of_the_configuration_does_not() -> None:
    guide = (ROOT / "docs" / "notebook.md").read_text(encoding="utf-8")
    renamed = {keyword for (_, key), keyword in RENAMED.items() if keyword != key}
    assert {keyword for keyword in renamed if f"`{keyword}`" not in guide} == set()


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
        "evidence = -1. It must lie between 0 and 9223372036854775807. Leave it out to use the default, 0.",
        "privacy = 0. It must lie between 1 and 9223372036854775807. Leave it out to use the default, 10.",
    ]


def test_faults_of_tables_keep_the_keys_of_the_tables() -> None:
    assert refuse(biasspark.bias_metrics, **ASKED | {"identities": {"colums": ["gay"], "threshold": "x"}}) == [
        "identities colums: there is no such key. The keys of identities are columns, threshold, range, unannotated, "
        "categorical, array, predicates, terms, crossed. Did you mean columns?",
        'identities threshold = "x". It must be a number, not text. Leave it out to use the default, 0.5.',
    ]
    assert refuse(biasspark.measure, **ASKED, histograms={"bins": 0}, templates={"column": 3}) == [
        "histograms bins = 0. It must lie between 1 and 10000. Leave it out to use the default, 100.",
        'templates column = 3. It must be text, not a whole number. Write, for example, templates = {"column": '
        '"template"}.',
    ]


def test_faults_of_what_stands_for_a_table_name_the_keyword_alone() -> None:
    assert refuse(biasspark.measure, **ASKED, histograms=0, templates=True, thresholds=0.5) == [
        "thresholds = 0.5. It must be a list of numbers, not a number. Write, for example, thresholds = [0.5, 0.8].",
        "histograms = 0. It must lie between 1 and 10000. Leave it out to use the default, 100.",
        'templates: missing. It is required. Write, for example, templates = "template".',
    ]


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (
            {"identities": {"categorical": "sex"}},
            'identities categorical = "sex". It must be a list of text, not text. Write identities = {"categorical": '
            '["sex"]}.',
        ),
        (
            {"identities": pd.Index(["gay"])},
            'identities = an Index. It must be a list of text, not an Index. Write identities = ["...", "..."].',
        ),
        ({"identities": [1]}, "identities, entry 1 = 1. It must be text, not a whole number. Correct or remove it."),
        (
            {"identities": None},
            'identities: missing. It is required. Write, for example, identities = ["male", "female"].',
        ),
        (
            {"identities": {"gay": "sex <> 1"}},
            "identities gay: there is no such key. The keys of identities are columns, threshold, range, unannotated, "
            "categorical, array, predicates, terms, crossed. For an identity of that name write identities = "
            '{"predicates": {"gay": "sex <> 1"}}.',
        ),
        (
            {"identities": {"predicates": ["a > 1"]}},
            'identities predicates: this is a list. It must be a dict. Write identities = {"predicates": {"name": "a > '
            '1"}}.',
        ),
        (
            {"identities": {"terms": ["gay"]}},
            "identities terms: this is a list. It must be a dict. Write, for example, identities = "
            '{"terms": {"column": "text", "list": ["gay", "muslim"]}}.',
        ),
        ({"slices": ["a > 1"]}, 'slices: this is a list. It must be a dict. Write slices = {"name": "a > 1"}.'),
        ({"slices": "a > 1"}, 'slices: this is text. It must be a dict. Write slices = {"name": "a > 1"}.'),
        (
            {"slices": lambda row: row.a > 1},
            'slices: this is a function. It must be a dict. Write, for example, slices = {"short": "length(text) < '
            '100"}.',
        ),
        (
            {"models": {"new"}},
            'models: this is a set. It must be text, a list or a dict. Write, for example, models = ["toxicity"].',
        ),
        (
            {"label": {"column": "toxic"}},
            'label = a dict. It must be text, not a dict. Write, for example, label = "target".',
        ),
    ],
)
def test_faults_and_mends_are_in_the_words_of_python(wrong: dict[str, Any], fault: str) -> None:
    assert refuse(biasspark.bias_metrics, **ASKED | wrong) == [fault]


@pytest.mark.parametrize(
    ("name", "wrong", "fault"),
    [
        ("threshold_rates", {"at": ["x"]}, 'at = ["x"]. "x" is not a finite number. Correct or remove it.'),
        (
            "threshold_rates",
            {"at": np.array([0.5])},
            "at = a ndarray. It must be a list of numbers, not a ndarray. Write, for example, at = [0.5, 0.8].",
        ),
        ("threshold_rates", {"at": ()}, "at = []. At least one threshold is required. Write, for example, at = [0.5]."),
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
        (
            "model_comparisons",
            {"baseline": "old", "id": 3},
            "id = 3. It must be text, not a whole number. Name the column that identifies a row.",
        ),
    ],
)
def test_keys_that_are_keywords_of_a_function_are_said_alone(name: str, wrong: dict[str, Any], fault: str) -> None:
    assert refuse(getattr(biasspark, name), **ASKED | wrong) == [fault]


@pytest.mark.parametrize(
    ("name", "table", "own"),
    [("model_comparisons", "compare", {"baseline": "old"}), ("pinned_skew", "pinned_skew", {"identity": "gay"})],
)
def test_what_needs_single_rows_refuses_bins_and_takes_windows_for_blocks(
    name: str, table: str, own: dict[str, str]
) -> None:
    function = getattr(biasspark, name)
    assert 'The engine "windows" is taken as "blocks", and "binned" is refused.' in " ".join(function.__doc__.split())
    assert refuse(function, **ASKED, **own, engine="binned") == [
        f'{table}: the engine is "binned", and bins hold no single rows. Set engine = "blocks".'
    ]
    measures = parse_keywords(ASKED | {"engine": "windows"}, {table: own})
    alone = compared_alone(measures) if measures.compare else keep_identity(measures, "gay")
    assert alone.ranking.engine == "blocks"


def test_faults_of_attribution_name_its_keywords() -> None:
    asked = {"id": "id", "models": "new", "label": "toxic"}
    assert refuse(biasspark.attribution_segments, **asked, numeric=["age"], tree={"depth": 3}, link="x") == [
        'link = "x". It must be "logit". Correct it, or leave it out where there is none.',
        "tree depth: there is no such key. The keys of tree are max_depth, min_leaf, min_gain, max_bins, "
        "honest_fraction, seed. Did you mean max_depth?",
    ]
    assert refuse(biasspark.attribution_segments, **asked, numeric=["age"], categorical="sex", tree=3) == [
        'categorical = "sex". It must be a list of text, not text. Write categorical = ["sex"].',
        'tree: this is a whole number. It must be a dict. Write, for example, tree = {"max_depth": 3}.',
    ]
    assert refuse(biasspark.loss_by_segment, **asked, segments=["age > 9"]) == [
        'segments: this is a list. It must be a dict. Write segments = {"name": "age > 9"}.',
    ]
    assert refuse(biasspark.auc_crosses, **asked, groupings="lang") == [
        'groupings: this is text. It must be a dict. Write groupings = {"name": "lang"}.',
    ]
    assert refuse(biasspark.example_attributions, **asked | {"id": None}) == [
        "id = None. It must be text, not None. Name the column that identifies a row.",
    ]
