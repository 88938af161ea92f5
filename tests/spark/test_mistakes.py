"""What people get wrong in a notebook: every public function stops at it, or warns of it, and none is silent."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any

import pandas as pd
import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession

import biasspark
from biasspark.errors import BiasSparkError, Fault, InputWarning

ASKED: dict[str, Any] = {"models": ["new", "old"], "label": "word", "label_positive": ["toxic"]}
WITH_IDENTITIES: dict[str, dict[str, Any]] = {
    "measure": {},
    "pinned_skew": {"trials": 2},
    "label_balance": {},
    "template_scores": {"template": "template"},
    "model_comparisons": {"baseline": "old"},
}
OF_ROWS: dict[str, dict[str, Any]] = {"example_attributions": {}, "loss_by_segment": {}}
PATHS = WITH_IDENTITIES | OF_ROWS
"""A function for each way through the code."""
LIKE_MEASURE: dict[str, dict[str, Any]] = {
    "bias_metrics": {},
    "bias_report": {},
    "u_statistics": {},
    "model_summary": {},
    "pinned_auc": {},
    "threshold_rates": {"at": [0.5]},
    "threshold_summary": {"at": [0.5]},
    "score_histograms": {"bins": 4},
}
LIKE_ATTRIBUTIONS: dict[str, dict[str, Any]] = {
    "attribute": {"numeric": ["words"], "tree": {}},
    "attribution_correlations": {},
    "attribution_segments": {"numeric": ["words"]},
    "attribution_slices": {"numeric": ["words"]},
    "pair_segments": {"numeric": ["words"]},
    "auc_crosses": {"groupings": {"by": "template"}},
    "named_pairs": {"pairs_of": {"p": {"negatives": "words > 1", "positives": "words > 1"}}},
}
OF_NO_CORPUS = {"side_by_side", "local", "metric_table", "night_report"}

SCORED = PATHS.keys() - {"label_balance"}
FAULTS: dict[str, tuple[dict[str, Any], tuple[str, ...], Iterable[str]]] = {
    "labels in words": ({"label_positive": None}, ("label", "column"), PATHS),
    "no label is positive": ({"label_positive": ["toxik"]}, ("label", "positive"), SCORED),
    "commas in scores": ({"models": ["comma", "old"]}, (), SCORED),
    "commas in labels": (
        {"label": "comma", "label_positive": None, "label_threshold": 0.5},
        ("label", "column"),
        {"measure", "label_balance"},
    ),
    "identities in words": ({"identities": ["race"]}, ("identities",), WITH_IDENTITIES),
    "a text as length": ({"length": "word"}, ("label_balance", "length"), {"label_balance"}),
    "lengths below 0": ({"length": "reversed"}, ("label_balance", "length"), {"label_balance"}),
    "an empty text": ({"text": "no_text"}, ("label_balance", "text"), {"label_balance"}),
    "a length among many tables": ({"label_balance": {"length": "reversed"}}, ("label_balance", "length"), {"measure"}),
    "no grouping": ({"groupings": {}}, ("attribution", "groupings"), {"auc_crosses"}),
    "a depth of slices": ({"tree": {"max_depth": 2}}, ("attribution", "tree", "max_depth"), {"attribution_slices"}),
    "no pair": ({"pairs_of": {}}, ("attribution", "pairs_of"), {"named_pairs"}),
}
"""What is wrong, the key of the fault, and the functions that it concerns."""

PECULIAR: dict[str, Any] = {
    "models": ["new", "old", "same", "reversed"],
    "label_positive": ["toxic", "toxik"],
    "slices": {"none": "words < 0"},
    "id": "repeated",
    "identities": ["male", "female", "nothing", "race", "new"],
    "segments": {"empty": "words < 0"},
}
OF_SCORES = ("model same: ", "model reversed: ")
OF_IDENTITIES = ('"nothing"', "'race'")
WARNINGS: dict[str, tuple[str, ...]] = {
    "measure": ('"toxik"', *OF_SCORES, *OF_IDENTITIES, '"none"', '"new"'),
    "pinned_skew": ('"toxik"', *OF_SCORES, '"none"'),
    "label_balance": ('"toxik"', *OF_IDENTITIES),
    "model_comparisons": ('"toxik"', *OF_SCORES, *OF_IDENTITIES, '"none"', '"new"', "repeat an id"),
    "example_attributions": ('"toxik"', '"none"', "repeat an id"),
    "loss_by_segment": ('"toxik"', *OF_SCORES, '"none"', "repeat an id", '"empty"'),
}
"""A word of each warning that a function gives of peculiar rows."""


@pytest.fixture(scope="module")
def corpus(spark_session: SparkSession) -> DataFrame:
    share = [F.pmod(F.xxhash64("id", F.lit(seed)), F.lit(1000)) / 1000 for seed in range(5)]
    rows = spark_session.range(120, numPartitions=1).select(
        "id",
        F.floor(F.col("id") / 2).alias("repeated"),
        share[0].alias("target"),
        ((share[0] + share[1]) / 2).alias("new"),
        ((share[0] + 2 * share[2]) / 3).alias("old"),
        (-share[0] - share[1] / 9).alias("reversed"),
        F.lit(0.25).alias("same"),
        share[3].alias("male"),
        share[4].alias("female"),
        F.when(share[0] < 0.5, "ok").otherwise("toxic").alias("word"),
        F.lit(None).cast("double").alias("nothing"),
        F.lit(None).cast("string").alias("no_text"),
        F.when(share[0] < 0.5, "ok").when(share[0] < 0.6, " Toxic").otherwise("toxic").alias("spelled"),
        F.when(F.col("id") < 29, 1).otherwise(0).alias("rare"),
        (share[0] * 100).alias("target_100"),
        (share[3] * 100).alias("male_100"),
        F.when(share[4] < 0.1, -1.0).otherwise(share[4]).alias("female_or_missing"),
        F.format_string("0,%d", (share[1] * 1000).cast("int")).alias("comma"),
        F.when(share[3] < 0.5, "Black").otherwise("Other").alias("race"),
        F.concat(F.lit("t"), F.col("id") % 3).alias("template"),
        (F.col("id") % 50).alias("words"),
        F.when(share[0] < 0.5, share[1] - 1).otherwise(share[1]).alias("perfect"),
    )
    return spark_session.createDataFrame(rows.collect(), rows.schema).coalesce(1)


def call(name: str, corpus: DataFrame, asked: Mapping[str, Any]) -> None:
    of_rows = name in OF_ROWS | LIKE_ATTRIBUTIONS
    extra: dict[str, Any] = {"id": "id"} if of_rows else {"identities": ["male", "female"]}
    extra |= (PATHS | LIKE_MEASURE | LIKE_ATTRIBUTIONS)[name]
    known = ASKED.keys() | extra.keys() | {"slices", "label_threshold"}
    known |= {
        "model_comparisons": {"id"},
        "loss_by_segment": {"segments"},
        "label_balance": {"text", "length"},
        "measure": {"label_balance"},
        "attribution_slices": {"tree"},
        "pair_segments": {"categorical"},
    }.get(name, set())
    keywords = ASKED | extra | {key: value for key, value in asked.items() if key in known}
    if name == "pinned_skew":
        keywords["identity"] = keywords["identities"][0]
    getattr(biasspark, name)(corpus, **keywords)


def listen(run: Callable[[], object]) -> tuple[tuple[Fault | str, ...], list[str]]:
    """Return the faults and the warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            run()
            faults: tuple[Fault | str, ...] = ()
        except BiasSparkError as error:
            faults = error.faults
    ours = [warning for warning in caught if issubclass(warning.category, InputWarning)]
    assert all(warning.filename == __file__ for warning in ours)  # the line of the user, not of the package
    return faults, [str(warning.message) for warning in ours]


def test_every_other_function_takes_the_way_of_one_that_is_tried(
    corpus: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = {name for name in biasspark.__all__ if name[0].islower()}
    assert PATHS.keys() | LIKE_MEASURE.keys() | LIKE_ATTRIBUTIONS.keys() | OF_NO_CORPUS == public

    class ReachedError(Exception):
        pass

    def reach(*_: object) -> None:
        raise ReachedError

    for module in ("metrics", "measured"):
        monkeypatch.setattr(f"biasspark.api.{module}.measure_corpus", reach)
    monkeypatch.setattr("biasspark.api.attribution_functions.survey_rows", reach)
    for name in ("template_scores", *LIKE_MEASURE, *OF_ROWS, *LIKE_ATTRIBUTIONS):
        with pytest.raises(ReachedError):
            call(name, corpus, {})


@pytest.mark.parametrize(("mistake", "function"), [(name, each) for name in FAULTS for each in sorted(FAULTS[name][2])])
def test_no_function_returns_a_table_that_means_nothing(mistake: str, function: str, corpus: DataFrame) -> None:
    asked, path, _ = deepcopy(FAULTS[mistake])
    faults, _ = listen(partial(call, function, corpus, asked))
    assert [fault.path for fault in faults if isinstance(fault, Fault)] == [path]
    assert asked == FAULTS[mistake][0]


@pytest.mark.usefixtures("corpus")  # a session
def test_a_column_that_pandas_lacks_or_mixes_is_one_fault() -> None:
    columns = {"y": [0, 1], "mixed": [1, "secret"], "empty": [None, None]}
    asked: dict[str, Any] = {
        "models": {"a": "mixed", "b": "mixed"},
        "label": "y",
        "identities": {"categorical": ["sex"], "terms": {"column": "empty", "list": ["x"]}},
        "slices": {"high": "mixed > 1"},
    }
    frame = pd.DataFrame(columns, index=pd.Index(["f", "m"], name="sex"))
    faults, _ = listen(partial(biasspark.bias_metrics, frame, **asked))
    fixes = {fault.path: str(fault.fix) for fault in faults if isinstance(fault, Fault)}
    assert [*fixes] == [("df", "mixed"), ("df", "sex"), ("df", "empty")]
    assert "to_numeric" in fixes["df", "mixed"]
    with pytest.raises(BiasSparkError, match=r'models\["a"\]'):
        biasspark.bias_metrics(frame, **asked)


@pytest.mark.parametrize("function", WARNINGS)
def test_no_function_is_silent_about_peculiar_rows(function: str, corpus: DataFrame) -> None:
    faults, warned = listen(partial(call, function, corpus, PECULIAR))
    assert faults == ()
    assert [word for word in WARNINGS[function] if not any(word in text for text in warned)] == [], warned


PECULIARITIES: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "a score made from the label, a slice of one label, annotations of 0 to 100 and of -1": (
        "measure",
        {
            "models": ["new", "perfect", "old"],
            "slices": {"toxic only": "word = 'toxic'"},
            "identities": ["male", "male_100", "female_or_missing"],
        },
        ("model perfect: ", '"toxic only"', "'male_100'", "'female_or_missing'"),
    ),
    "few positives": ("measure", {"label": "rare", "label_positive": [1]}, ("29 of the 120",)),
    "positives in another spelling": ("measure", {"label": "spelled"}, ('"toxic"',)),
    "labels of 0 to 100": (
        "measure",
        {"label": "target_100", "label_positive": None, "label_threshold": 0.9},
        ("'target_100'",),
    ),
    "labels that are all alike": ("label_balance", {"label_positive": ["toxik"]}, ('"toxik"', "none of the 120")),
    "a feature of one value": ("attribution_segments", {"numeric": ["same", "words"]}, ('"same"',)),
    "a feature without a value": ("pair_segments", {"categorical": ["no_text"], "numeric": ["words"]}, ('"no_text"',)),
    "a grouping of one value": ("auc_crosses", {"groupings": {"single": "same", "by": "template"}}, ('"single"',)),
    "a template without a value": ("template_scores", {"template": "no_text"}, ("no_text",)),
}
"""What is peculiar for a function, and a word of each warning."""


@pytest.mark.parametrize("peculiarity", PECULIARITIES)
def test_what_is_peculiar_is_warned_of(peculiarity: str, corpus: DataFrame) -> None:
    function, asked, words = PECULIARITIES[peculiarity]
    faults, warned = listen(partial(call, function, corpus, asked))
    assert faults == ()
    assert [word for word in words if not any(word in text for text in warned)] == [], warned


@pytest.mark.parametrize("inside", [(), ("y",)], ids=["overall", "in an identity"])
@pytest.mark.parametrize(("shift", "is_evident"), [(1.5, False), (50, True)])
def test_scores_are_called_reversed_only_with_evidence(
    shift: float, is_evident: bool, inside: tuple[str, ...], corpus: DataFrame
) -> None:
    rows = corpus.select(
        "id",
        (F.col("id") % 2).alias("y"),
        (F.col("id") - shift * (F.col("id") % 2)).alias("new"),
        (F.col("id") - shift * (F.col("id") % 2) + 1).alias("old"),
    )
    asked: dict[str, Any] = {"label_positive": [1], "label": "y"}
    identities = {"predicates": dict.fromkeys(inside, "id >= 0")} if inside else {"predicates": {"none": "id < 0"}}
    for name in ("measure", "model_comparisons"):
        _, warned = listen(partial(call, name, rows, asked | {"identities": identities}))
        assert sum("below 0.5" in text for text in warned) == 2 * is_evident, warned


def test_a_label_of_decimals_without_fractions_is_one_of_whole_numbers(corpus: DataFrame) -> None:
    label = (F.col("word") == "toxic").cast("int")
    rows = corpus.select("new", "male", label.alias("int"), label.cast("decimal(38,0)").alias("huge"))
    asked: dict[str, Any] = {"models": ["new"], "identities": ["male"]}
    by_label = [biasspark.bias_metrics(rows, **asked, label=name).collect() for name in ("int", "huge")]
    assert by_label[0] == by_label[1]


def test_metrics_without_a_value_do_not_stand_side_by_side_in_silence(corpus: DataFrame) -> None:
    metrics = biasspark.bias_metrics(corpus, **ASKED, identities=["male", "female"], evidence=1000)
    _, warned = listen(partial(biasspark.side_by_side, metrics, "new", "old"))
    assert [any(f'model "{name}"' in text for text in warned) for name in ("new", "old")] == [True, True]
