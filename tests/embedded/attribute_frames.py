"""Attribution of pandas frames on the embedded engine: what is not a result is said, and what repeats is no harm."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import biasspark
from biasspark.corpus.survey import Survey, survey_corpus
from biasspark.errors import InputError
from biasspark.workflows import attribute as attribution

N_ROWS = 1200


def frame(**changes: Any) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    label = rng.random(N_ROWS) < 0.4
    columns = {"id": np.arange(N_ROWS), "y": label, "age": rng.integers(18, 70, N_ROWS)}
    scores = {name: np.clip(0.3 * label + 0.6 * rng.random(N_ROWS), 0, 1) for name in ("s", "t")}
    return pd.DataFrame(columns | scores | changes)


def attribute(df: pd.DataFrame, **asked: Any) -> tuple[biasspark.AttributedCorpus, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        keys: dict[str, Any] = {"id": "id", "models": ["s", "t"], "label": "y", "numeric": ["age"], "tree": {}}
        attributed = biasspark.attribute(df, **keys | asked)
    assert {warning.filename for warning in caught} <= {__file__}
    assert [str(warning.message) for warning in caught] == list(attributed.warnings)
    return attributed, list(attributed.warnings)


def test_texts_that_are_no_numbers_are_warned_of() -> None:
    texts = [f"{n % 50},5" if n % 3 == 0 else str(n % 50) for n in range(N_ROWS)]
    attributed, [text] = attribute(frame(age=texts))
    assert "400 of 'age'" in text
    assert (attributed.n_rows, attributed.rejects) == (N_ROWS, {})


def test_models_that_share_no_row_are_warned_of() -> None:
    df = frame()
    df.loc[::2, "s"], df.loc[1::2, "t"] = np.nan, np.nan
    attributed, texts = attribute(df, compare=[("s", "t")])
    assert any("s against t" in text for text in texts)
    assert (attributed.attribution_segments()["baseline_model"] == "").all()


def test_rows_of_one_id_are_not_split() -> None:
    _, texts = attribute(frame(id=7))
    assert sum("of s, t:" in text and "hash of the id" in text for text in texts) == 1


def test_missing_ids_do_not_repeat() -> None:
    ids = [n if n % 2 else None for n in range(N_ROWS)]
    _, texts = attribute(frame(id=pd.array(ids, "Int64")))
    assert not any("repeat an id" in text for text in texts)


@pytest.mark.parametrize("n_ids", [1, 5, N_ROWS])
def test_pairs_are_drawn_at_random_whatever_the_ids(n_ids: int) -> None:
    df = frame(id=np.arange(N_ROWS) % n_ids)
    with pytest.warns() if n_ids < N_ROWS else warnings.catch_warnings():
        rows = biasspark.pair_segments(
            df, id="id", models=["s"], label="y", numeric=["age"], pairs={"positives": 150, "negatives": 150}
        )
    root = rows[rows["node_id"] == 1].iloc[0]
    assert root["mean_honest"] == pytest.approx(roc_auc_score(df["y"], df["s"]), abs=0.07)


def test_rare_values_are_with_the_rest() -> None:
    """Of 30 cities two have many rows; the scores of one of these two are worse."""
    cities = np.array([f"c{n % 28}" if n % 4 == 0 else ("big", "huge")[n % 2] for n in range(N_ROWS)])
    rng = np.random.default_rng(5)
    df = frame(city=cities)
    df.loc[cities == "huge", "s"] = rng.random((cities == "huge").sum())
    asked = {"models": ["s"], "numeric": (), "categorical": ["city"]}
    attributed, texts = attribute(df, **asked, tree={"max_depth": 3, "min_leaf": 50})
    nodes = attributed.attribution_segments()
    assert set(nodes["rule"]) == {
        "all rows",
        "city is huge",
        "city is not huge",
        "city is big",
        "(city is not big or huge)",
    }
    assert texts == []
    _, texts = attribute(df, **asked, tree={"min_leaf": 700})
    assert any('"city"' in text for text in texts)


def test_searches_that_have_too_few_rows_say_so() -> None:
    searches = {"tree": {"min_leaf": 400}, "slice_search": {"min_rows": 700}, "pairs": {"min_side": 300}}
    _, texts = attribute(frame(), **searches)
    assert [text.split(":")[0] for text in texts] == [f"`{name}` of s, t" for name in searches]
    assert attribute(frame(), tree={}, slice_search={"min_rows": 50}, pairs={})[1] == []


def test_losses_are_warned_of_where_they_are_asked_for() -> None:
    df = frame()
    df["s"] *= 9
    _, texts = attribute(df, targets=["auc", "gini"])
    assert sum("no tree predicts them" in text for text in texts) == 1
    assert attribute(df)[1] == []
    for asked in ({"tree": None, "numeric": ()}, {"segments": {"young": "age < 30"}}):
        assert len(attribute(df, **asked)[1]) == 1


def test_trees_do_not_depend_on_how_many_rows_a_survey_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cuts of this tree tie: which one explains more depends on the unit to which values are rounded."""
    s, a, b, c = np.random.default_rng(3).integers(0, 3, (103, 60))[[49, 100, 101, 102]]
    df = pd.DataFrame({"id": range(60), "y": np.arange(60) % 2 == 0, "s": s / 4, "a": a, "b": b, "c": c})
    asked = {"models": ["s"], "numeric": ["a", "b", "c"], "tree": {"min_leaf": 3}}
    rules = [attribute(df, **asked)[0].attribution_segments()["rule"].tolist()]

    def survey_sparsely(*asked: Any) -> Survey:
        survey = survey_corpus(*asked)
        return replace(survey, n_rows=2 * survey.n_rows, is_exact=False)

    monkeypatch.setattr(attribution, "survey_corpus", survey_sparsely)
    rules.append(attribute(df, **asked)[0].attribution_segments()["rule"].tolist())
    assert rules[0] == rules[1]


def test_more_rows_of_a_label_than_squares_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("biasspark.ranking.row_blocks.MAX_OPPOSITE", 100)
    with pytest.raises(InputError):
        attribute(frame())


def test_named_pairs_without_a_row_are_warned_of() -> None:
    asked: dict[str, Any] = {"id": "id", "models": ["s"], "label": "y"}
    everybody = {"a": {"negatives": "true", "positives": "true"}}
    assert biasspark.named_pairs(frame(), pairs_of=everybody, **asked)["headroom_share"].tolist() == [1]
    with pytest.warns(match="no usable row"):
        biasspark.named_pairs(frame(), pairs_of={"a": {"negatives": "age < 0", "positives": "true"}}, **asked)
