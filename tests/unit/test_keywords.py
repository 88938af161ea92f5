"""The keywords of the public functions: their signatures, their short forms and their faults. No JVM is started."""

from __future__ import annotations

import inspect
import re
from inspect import Parameter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest

import biasspark
from biasspark.api.keywords import MAIN_KEYS, PATHS, Keywords, RankingEngine, Unannotated
from biasspark.api.measured import check_document
from biasspark.config import Identities, Measures
from biasspark.config.configuration import ENGINES
from biasspark.config.identities import UNANNOTATED
from biasspark.errors import ConfigError, Fault, InputError
from biasspark.report.page import Document
from tests.harness.broken_configurations import ASKED

OF_NO_CORPUS = {"side_by_side", "local", "metric_table", "night_report"}
FUNCTIONS = [name for name in biasspark.__all__ if name[0].islower() and name not in OF_NO_CORPUS]
ROOT = Path(__file__).parents[2]
NO_FRAME: Any = SimpleNamespace(sparkSession=None)


def parameters_of(name: str) -> dict[str, Parameter]:
    return dict(inspect.signature(getattr(biasspark, name)).parameters)


def measures_of(**given: Any) -> Measures:
    return Keywords(ASKED | given).measures()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_name_every_keyword(name: str) -> None:
    df, *keywords = parameters_of(name).values()
    assert df.name == "df"
    assert all(keyword.kind is Parameter.KEYWORD_ONLY for keyword in keywords)
    assert {"label", "label_threshold", "label_positive", "slices", "ranges", "level"} <= {
        keyword.name for keyword in keywords
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_keywords_of_one_name_are_the_same_everywhere(name: str) -> None:
    of_measure, keywords = parameters_of("measure"), parameters_of(name)
    shared = set(of_measure) & set(keywords) - {"models"}  # optional in label_balance
    shared -= {"identities"} if name == "model_summary" else set()  # also optional
    assert {key: keywords[key] for key in shared} == {key: of_measure[key] for key in shared}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstrings_explain_every_keyword(name: str) -> None:
    assert explained_by(name) >= set(parameters_of(name)) - {"df"}


def explained_by(name: str) -> set[str]:
    """Return the keywords explained by a docstring, or by that of the function to which it refers."""
    docstring = inspect.getdoc(getattr(biasspark, name)) or ""
    section = docstring.partition("Parameters\n----------\n")[2]
    lines = [line for line in section.partition("\n\n")[0].split("\n") if line[:1] != " "]
    referred = re.search(r"eywords.* those\s+of\s+`(\w+)`", docstring)
    words = {word for line in lines for word in re.findall(r"\w+", line.partition(":")[0])}
    return words | (explained_by(referred[1]) if referred else set())


def test_words_and_defaults_are_those_of_the_configuration() -> None:
    assert (get_args(RankingEngine), get_args(Unannotated)) == (ENGINES, UNANNOTATED)
    defaults = {
        name: keyword.default
        for name, keyword in parameters_of("measure").items()
        if keyword.default is not Parameter.empty
    }
    assert measures_of(**defaults) == measures_of()


def test_a_keyword_that_there_is_not_is_a_type_error() -> None:
    keywords: dict[str, Any] = ASKED | {"rank_bins": 1}
    with pytest.raises(TypeError, match="rank_bins"):
        biasspark.bias_metrics(NO_FRAME, **keywords)
    with pytest.raises(TypeError, match="identities"):
        biasspark.bias_metrics(NO_FRAME, models="new", label="toxic")  # type: ignore[call-arg]  # the fault to test


@pytest.mark.parametrize(
    "df", [SimpleNamespace(to_spark=None), SimpleNamespace(collect=None), pd.Series([1]), {"x": [1]}, [1], 1, None]
)
def test_what_is_no_frame_is_a_type_error(df: Any) -> None:
    with pytest.raises(TypeError, match=r"^df: it must be .* not .*\. (Convert it[:,] |Give one ).*\.$"):
        biasspark.bias_metrics(df, **ASKED)
    with pytest.raises(TypeError, match=r"^metrics: it must be"):
        biasspark.side_by_side(df, "new", "old")


def test_a_measured_corpus_is_told_to_give_its_metrics() -> None:
    measured: Any = SimpleNamespace(bias_metrics=None)
    with pytest.raises(TypeError, match=r"bias_metrics\(\)"):
        biasspark.side_by_side(measured, "new", "old")


def test_a_frame_without_metrics_is_an_input_error() -> None:
    frame: Any = SimpleNamespace(sparkSession=None, columns=["model", "slice", "bpsn_auc"])
    with pytest.raises(InputError, match=r"^metrics: .* identity, "):
        biasspark.side_by_side(frame, "new", "old")
    wrong: tuple[Any, ...] = (-1, True, "30")
    for min_rows in wrong:
        with pytest.raises(ConfigError, match="min_rows"):
            biasspark.side_by_side(frame, "new", "old", min_rows=min_rows)


def test_the_guide_names_every_keyword_that_is_a_key_of_another_name() -> None:
    guide = (ROOT / "docs" / "notebook.md").read_text(encoding="utf-8")
    renamed = {keyword for keyword, path in PATHS.items() if keyword != path[-1]}
    assert {keyword for keyword in renamed if f"`{keyword}`" not in guide} == set()


@pytest.mark.parametrize(
    "identities",
    [
        "male",
        ["male"],
        ("male",),
        {"columns": ["male"], "threshold": 0.5},
        Identities(columns=("male",)),
        pd.Index(["male"]),
        {"columns": np.array(["male"])},
    ],
)
def test_identities_in_any_form(identities: Any) -> None:
    assert measures_of(models="m", identities=identities).identities == Identities(columns=("male",))


@pytest.mark.parametrize(
    ("models", "expected"),
    [("a", {"a": "a"}), (["a", "b"], {"a": "a", "b": "b"}), (("a",), {"a": "a"}), ({"new": "a"}, {"new": "a"})],
)
def test_models_in_any_form(models: Any, expected: dict[str, str]) -> None:
    measures = measures_of(models=models, identities="male", identity_threshold=0.7)
    assert (measures.models, measures.identities.threshold) == (expected, 0.7)


def test_values_may_be_arrays() -> None:
    arrays = measures_of(thresholds=np.linspace(0, 1, 3), label_balance={"length": "n", "buckets": range(10, 30, 10)})
    assert arrays == measures_of(thresholds=[0, 0.5, 1], label_balance={"length": "n", "buckets": [10, 20]})


class SparkColumn:
    """As a Column of Spark: it has any attribute, and no truth value."""

    def __getattr__(self, name: str) -> SparkColumn:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __eq__(self, other: object) -> SparkColumn:  # type: ignore[override]
        return self

    def __bool__(self) -> bool:
        raise ValueError("no truth value")

    __hash__ = object.__hash__


@pytest.mark.parametrize(
    "column",
    [pd.Series(["secret", None]), pd.Series([0.25, 0.9]), pd.Series([True, None]), np.array([0.25]), SparkColumn()],
)
def test_a_column_in_place_of_a_name_or_another_value_is_one_fault_that_does_not_show_it(column: Any) -> None:
    for keyword in (
        *({"models": {"new": column}}, {"models": column}, {"label": column}, {"slices": {"a": column}}),
        {"identities": {"columns": ["g"]}, "identity_threshold": column},
        {"identities": {"predicates": {"a": column}}},
        *({"engine": column}, {"pinned_auc": column}),
    ):
        with pytest.raises(ConfigError) as caught:
            biasspark.measure(NO_FRAME, **ASKED | keyword)
        assert len(caught.value.messages) == 1
        assert not re.search("true|secret|0.25", str(caught.value))


def test_the_advice_for_a_wrong_type_is_accepted_in_turn() -> None:
    for keyword, value in (("at", float("nan")), ("compare", 5), ("label", np.int64(3))):
        part = {"at": "thresholds", "compare": "attribution"}.get(keyword, "")
        with pytest.raises(ConfigError, match=keyword) as caught:
            Keywords(ASKED | {keyword: value}, part).measures()
        assert not re.search(r"\[(nan|5)\]|frame", str(caught.value))


@pytest.mark.parametrize("name", MAIN_KEYS)
def test_a_value_stands_for_a_table_of_the_configuration(name: str) -> None:
    value: Any = {"thresholds": [0.5], "label_balance": "text", "templates": "t"}.get(name, 3)
    assert measures_of(**{name: value}) == measures_of(**{name: {MAIN_KEYS[name]: value}})
    assert measures_of(**{name: False}) == measures_of(**{name: None}) == measures_of()
    if name not in ("thresholds", "templates", "evidence"):  # without a default
        assert measures_of(**{name: True}) == measures_of(**{name: {}}) != measures_of()


def test_a_report_may_be_in_the_folder_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    check_document("~/x.html", "title")
    Document("title", "page").save("~/x.html")
    assert (tmp_path / "x.html").read_text("utf-8") == "page"
    with pytest.raises(TypeError, match=r"^path: "):
        Document("title", "page").save(3)  # type: ignore[arg-type]


def test_an_error_of_the_rows_names_keywords_too() -> None:
    keywords = Keywords(ASKED)
    with pytest.raises(InputError) as caught, keywords.name_faults():
        raise InputError(Fault(("label", "column"), "toxic", "There is no such column.", "Name one that there is."))
    assert str(caught.value).startswith('label = "toxic". ')
