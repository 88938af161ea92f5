"""What people get wrong in a notebook: every public function stops at it, or warns of it, and none is silent."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession

import biasspark
from biasspark.errors import BiasSparkError, InputWarning

ASKED: dict[str, Any] = {"models": ["new", "old"], "label": "target", "label_threshold": 0.5}
IDENTITIES = ["male", "female"]
WITH_IDENTITIES: dict[str, dict[str, Any]] = {
    "measure": {},
    "bias_metrics": {},
    "u_statistics": {},
    "model_summary": {},
    "pinned_auc": {},
    "pinned_skew": {"trials": 2},
    "threshold_rates": {"at": [0.5]},
    "threshold_summary": {"at": [0.5]},
    "score_histograms": {"bins": 4},
    "label_balance": {},
    "template_scores": {"template": "template"},
    "model_comparisons": {"baseline": "old"},
}
OF_ROWS: dict[str, dict[str, Any]] = {
    "example_attributions": {},
    "attribution_correlations": {},
    "loss_by_segment": {},
    "attribution_segments": {"numeric": ["words"]},
    "attribution_slices": {"numeric": ["words"]},
    "pair_segments": {"numeric": ["words"]},
    "auc_crosses": {"groupings": {"by": "template"}},
}
FUNCTIONS = WITH_IDENTITIES | OF_ROWS
OF_NO_CORPUS = {"side_by_side"}


class Mistake(NamedTuple):
    """What is wrong with a corpus or a call, which functions it concerns, and a word of what must be said."""

    asked: Mapping[str, Any]
    word: str
    functions: Mapping[str, Mapping[str, Any]] = FUNCTIONS
    is_fault: bool = False
    where: str = "TRUE"


AT_THRESHOLDS = {name: own for name, own in WITH_IDENTITIES.items() if "at" in own}
RANKING = {name: own for name, own in FUNCTIONS.items() if name != "label_balance"}
MISTAKES = {
    "text labels": Mistake({"label": "word", "label_threshold": None}, "null_label", is_fault=True),
    "misspelled positive": Mistake({"label": "word", "label_threshold": None, "label_positive": ["Toxic"]}, "positive"),
    "labels from 1 to 2": Mistake({"label": "grade", "label_threshold": None}, "negative"),
    "threshold below all labels": Mistake({"label": "grade"}, "negative"),
    "one class": Mistake({"label_threshold": 7}, "positive"),
    "labels all NULL": Mistake({"label": "nothing"}, "null_label", is_fault=True),
    "commas in scores": Mistake({"models": ["comma", "old"]}, "score_not_numeric", RANKING, is_fault=True),
    "no score at all": Mistake({"models": ["nothing", "old"]}, "null_score", RANKING, is_fault=True),
    "no row": Mistake({}, "no rows", is_fault=True, where="FALSE"),
    "identities in words": Mistake({"identities": ["male", "race"]}, "neither numbers nor booleans", WITH_IDENTITIES),
    "identity all NULL": Mistake({"identities": ["male", "nothing"]}, "nothing", WITH_IDENTITIES),
    "slice without a row": Mistake({"slices": {"none": "words < 0"}}, "none", RANKING),
    "thresholds on another scale": Mistake({"at": [50]}, "threshold", AT_THRESHOLDS),
    "no template": Mistake({"template": "nothing"}, "nothing", {"template_scores": {}}),
    "threshold above all annotations": Mistake({"identity_threshold": 50}, "no usable row", WITH_IDENTITIES),
}
ALIKE = (
    *("misspelled positive", "labels from 1 to 2", "threshold below all labels", "labels all NULL"),
    *("no score at all", "threshold above all annotations"),
)
"""What takes the same way through the code as another one."""


@pytest.fixture(scope="module")
def kept_corpus(spark_session: SparkSession) -> DataFrame:
    share = [F.pmod(F.xxhash64("id", F.lit(seed)), F.lit(1000)) / 1000 for seed in range(5)]
    corpus = spark_session.range(120, numPartitions=1).select(
        "id",
        share[0].alias("target"),
        ((share[0] + share[1]) / 2).alias("new"),
        ((share[0] + 2 * share[2]) / 3).alias("old"),
        share[3].alias("male"),
        share[4].alias("female"),
        F.when(share[0] < 0.5, "ok").otherwise("toxic").alias("word"),
        F.when(share[0] < 0.5, 1).otherwise(2).alias("grade"),
        F.lit(None).cast("double").alias("nothing"),
        F.format_string("0,%d", (share[1] * 1000).cast("int")).alias("comma"),
        F.when(share[3] < 0.5, "Black").otherwise("Other").alias("race"),
        F.concat(F.lit("t"), F.col("id") % 3).alias("template"),
        (F.col("id") % 50).alias("words"),
    )
    return spark_session.createDataFrame(corpus.collect(), corpus.schema).coalesce(1)


def call(name: str, corpus: DataFrame, asked: Mapping[str, Any]) -> None:
    beside: dict[str, Any] = {"id": "id"} if name in OF_ROWS else {"identities": IDENTITIES}
    keywords = ASKED | beside | FUNCTIONS[name] | asked
    if name == "pinned_skew":
        keywords["identity"] = keywords["identities"][-1]
    returned = getattr(biasspark, name)(corpus, **keywords)
    if name == "measure":
        returned.close()


def listen(run: Callable[[], None]) -> tuple[list[str], list[str]]:
    """Give the faults and the warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            run()
            faults: list[str] = []
        except BiasSparkError as error:
            faults = list(error.faults)
    ours = [one for one in caught if issubclass(one.category, InputWarning)]
    assert all(one.filename == __file__ for one in ours)  # the line of the user, not of the package
    return faults, [str(one.message) for one in ours]


def test_every_function_is_tried() -> None:
    public = {name for name in biasspark.__all__ if name[0].islower()}
    assert set(FUNCTIONS) | OF_NO_CORPUS == public


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in ALIKE)) for name in MISTAKES])
def test_no_function_is_silent(name: str, kept_corpus: DataFrame) -> None:
    mistake = MISTAKES[name]
    for function in mistake.functions:
        faults, warned = listen(partial(call, function, kept_corpus.where(mistake.where), mistake.asked))
        assert bool(faults) == mistake.is_fault, (function, faults, warned)
        assert any(mistake.word in said for said in faults or warned), (function, faults, warned)
