"""The mitigation experiment without Spark: its configuration, its plan, and which model is best."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from biasspark.cli import Outcome
from biasspark.config import FILTER, LabelBalance, Mitigation, load_config, parse_config
from biasspark.config.mitigation_settings import MODELS, ROWS
from biasspark.mitigation.classifier import Classifier, train_classifiers
from biasspark.mitigation.training_data import list_cells, list_lacking
from biasspark.synthetic.imbalanced import BUCKETS, TermCell
from biasspark.synthetic.wording import IDENTITY_TERMS
from biasspark.workflows.mitigation_experiment import (
    TERM,
    add_verdicts,
    find_best,
    list_models,
    list_terms,
    summarize,
    training_measures,
)
from tests.harness.least_configuration import keys_of

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = {"path": "/warehouse"}
MINE: dict[str, Any] = {
    "corpus": {"name": "mine", "path": "/train"},
    "label": {"column": "toxic", "threshold": 0.5},
    "identities": {"terms": {"column": "text", "list": ["gay", "belief: hindu, sikh"]}},
    "mitigation": {"text": "text", "pool": "/pool"},
    "output": OUTPUT,
}
"""An experiment on a corpus of one's own."""


# ---- configuration


def test_only_the_output_is_required() -> None:
    config = parse_config({"mitigation": {}, "output": OUTPUT}, Path())
    assert config.mitigation == Mitigation(rows=ROWS)
    assert config.models == {model: model for model in MODELS}
    assert config.label.column == "label"
    assert config.terms == IDENTITY_TERMS
    assert (config.corpus.name, config.corpus.path) == ("mitigation", "/warehouse/mitigation")
    assert config.label_balance == LabelBalance(text="comment_text", buckets=BUCKETS)
    assert config.compare is not None
    assert config.compare.models == MODELS[1:]
    assert load_config(ROOT / "conf" / "mitigation.toml").mitigation == config.mitigation


def test_every_key_of_the_generated_corpus(tmp_path: Path) -> None:
    (tmp_path / "terms.txt").write_text("gay\nbelief: hindu, sikh\nMiddle Eastern\n", "utf-8")
    for name in ("chosen.parquet", "random.parquet"):
        (tmp_path / name).touch()
    file = tmp_path / "c.toml"
    file.write_text(
        '[mitigation]\ncorpus = "small"\nrows = 10\ntest_rows = 20\nseed = 3\nterms = "terms.txt"\n'
        'imbalanced = { sikh = 0.01 }\ndebiasing = "chosen.parquet"\nrandom = "random.parquet"\ntext = "comment"\n'
        'filter = "split <> \'test\'"\n[output]\npath = "/warehouse"\n',
        "utf-8",
    )
    config = load_config(file, ["mitigation.rows=11"])
    assert config.mitigation == Mitigation(
        corpus="small",
        rows=11,
        test_rows=20,
        seed=3,
        terms=("gay", "hindu", "sikh", "Middle Eastern"),
        imbalanced={"sikh": 0.01},
        debiasing=str(tmp_path / "chosen.parquet"),
        random=str(tmp_path / "random.parquet"),
        text="comment",
        filter="split <> 'test'",
    )
    assert list(config.mitigation.files) == ["debiasing", "random"]
    assert config.mitigation.text_column == "comment_text"


def test_a_corpus_of_your_own() -> None:
    config = parse_config(MINE, Path())
    assert config.mitigation == Mitigation(text="text", pool="/pool")
    assert config.corpus.path == "/train"
    assert config.terms == ("gay", "hindu", "sikh")
    assert config.models == {model: model for model in MODELS}
    own_scores = {**MINE, "models": {"baseline": "a", "mitigated": "b"}, "compare": {"baseline": "mitigated"}}
    own_scores["mitigation"] = {"text": "text", "test_filter": "split = 'test'", "train": False}
    config = parse_config(own_scores, Path())
    assert config.models == {"baseline": "a", "mitigated": "b"}
    assert config.compare is not None
    assert config.compare.models == ("baseline",)


def test_a_filter_that_fails_on_the_training_corpus_can_be_named() -> None:
    config = parse_config({**MINE, "corpus": MINE["corpus"] | {"filter": "1 / n > 0"}}, Path())
    assert training_measures(config).expressions == {FILTER: "1 / n > 0"}


def test_all_faults_come_at_once() -> None:
    mitigation = {"rows": 0, "seed": -1, "row": 5, "debiasing": "a.parquet", "imbalanced": {"gay": "often"}}
    tables = {"label": {"column": "l"}, "models": ["a"], "mitigation": mitigation, "ranking": {"engine": "fast"}}
    in_mitigation = {f"mitigation.{key}" for key in ("row", "rows", "seed", "imbalanced.gay")}
    assert set(keys_of(tables)) == {"label", "models", "output", "ranking.engine", "mitigation"} | in_mitigation


@pytest.mark.parametrize(
    ("mitigation", "key"),
    [
        ({"imbalanced": {}}, "imbalanced"),
        ({"imbalanced": ["gay"]}, "imbalanced"),
        ({"imbalanced": {"gay": 2}}, "imbalanced.gay"),
        ({"imbalanced": {"tall": 0.01}}, "imbalanced"),
        ({"terms": "none.txt"}, "terms"),
        ({"terms": ["gay", "teacher"], "imbalanced": {"gay": 0.01}}, "terms"),
        ({"filter": "a = b"}, "filter"),
        ({"corpus": ""}, "corpus"),
        ({"pool": "a", "debiasing": "b", "random": "c"}, "pool"),
    ],
    ids=str,
)
def test_wrong_values_are_refused(mitigation: dict[str, Any], key: str) -> None:
    assert keys_of({"mitigation": mitigation, "output": OUTPUT}) == [f"mitigation.{key}"]


@pytest.mark.parametrize(
    ("tables", "keys"),
    [
        ({"mitigation": {}, "output": {"catalog": "lake.bias"}}, ["output.catalog"]),
        (MINE | {"mitigation": {"text": "text"}}, ["mitigation"]),
        (MINE | {"mitigation": {"pool": "a", "rows": 5, "terms": ["a"]}}, ["mitigation.rows", "mitigation.terms"]),
        (MINE | {"mitigation": {"train": False}}, ["mitigation.train", "models"]),
        (MINE | {"models": {"a": "a"}}, ["models"]),
        (MINE | {"models": {"a": "a"}, "mitigation": {"train": False, "test": "t"}}, ["compare.baseline", "models"]),
        (MINE | {"identities": {"columns": ["male"]}}, ["identities"]),
        (MINE | {"identities": {"terms": {"column": "text", "list": ["teacher"]}}}, ["identities"]),
        (MINE | {"privacy": {}}, ["privacy"]),
    ],
    ids=str,
)
def test_tables_that_do_not_fit_a_generated_corpus_or_one_of_your_own(tables: dict[str, Any], keys: list[str]) -> None:
    assert sorted(keys_of(tables)) == keys


def test_the_ledger_has_everything_except_passwords() -> None:
    paths = {"debiasing": "s3a://key:hunter2@b/x", "random": "s3a://key:hunter2@b/y"}
    config = parse_config({"mitigation": paths | {"seed": 7}, "output": OUTPUT}, Path())
    assert "hunter2" not in config.json
    tables = json.loads(config.json)
    assert tables["mitigation"]["seed"] == 7
    assert tables["mitigation"]["debiasing"] == "s3a://(redacted)@b/x"
    # The rest measures the scored test set again.
    main_job = {name: part for name, part in tables.items() if name != "mitigation"}
    assert parse_config(main_job, Path()).resolved() == main_job


def test_the_plan_has_what_terms_lack_by_length() -> None:
    columns = ("identity", "length_low", "length_high", "n_negatives_to_add")
    rows = [
        ("(overall)", 20, 59, 5),
        ("gay", None, None, 5),  # the sum over lengths
        ("gay", 20, 59, None),  # nothing is toxic
        ("gay", 60, 179, 0),
        ("gay", 180, 539, 7),
    ]
    balance = pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows])
    assert list_cells(balance) == [TermCell("gay", 180, 539, 7)]


def test_what_identities_lack_by_their_number_and_length_bin() -> None:
    planned = pa.table({"n_negatives_to_add": [5, 5, 5, 1, None, 1, 0, 7, 7]})
    assert list_lacking(planned, 2).tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 7]]
    assert list_lacking(planned.slice(0, 3), 0).tolist() == [[0], [5], [5]]


def test_a_classifier_learns_words_and_scores_any_order_alike() -> None:
    texts = ["you idiot", "what an Idiot", "a nice day", "nice people", "people", "day"] * 5
    labels = ["idiot" in text.lower() for text in texts]
    trained = dict(train_classifiers(texts, labels, {"all": range(30), "few": range(6)}))
    model = trained["all"]
    assert model.score(["idiot"]) > 0.9
    assert model.score(["nice", "day"]) < 0.1
    assert model.score(["nice", "idiot", "unknown"]) == model.score(["idiot", "unknown", "nice"])
    assert trained["few"] != model
    assert dict(train_classifiers(texts, labels, {"all": range(30)}))["all"] == model
    assert [Classifier({}, intercept).score(["word"]) for intercept in (0.0, 1000.0, -1000.0)] == [0.5, 1.0, 0.0]
    assert 0 < Classifier({}, -50.0).score([]) < Classifier({}, -40.0).score([]) < 1e-17  # no ties


# ---- the best model


def model(name: str, difference: float | None, lowest: float | None) -> dict[str, Any]:
    measures = dict.fromkeys(("auc", "subgroup_auc_min", "bnsp_auc_min", "aeg_max_abs"), 0.5)
    biases = {"model": name, "pinned_auc_equality_difference": difference, "bpsn_auc_min": lowest}
    return biases | measures | {"n_training": 10, "n_added": 0}


def test_models_and_terms_are_read_over_all_rows() -> None:
    names = ("auc", "pinned_auc_equality_difference", "subgroup_auc_min", "bpsn_auc_min", "bnsp_auc_min")
    rows = [
        {"model": name, "slice": part, **dict.fromkeys(names, number), "negative_aeg_max_abs": gap}
        | {"positive_aeg_max_abs": None}
        for name, number, gap in zip(reversed(MODELS), (0.1, 0.2, 0.3), (None, 0.25, 0.5), strict=True)
        for part in ("short", "all")
    ]
    sizes = [("baseline", "(overall)", "(all)", 10, 0), ("baseline", "gay", "(all)", 3, 0)]
    sizes += [("control", "(overall)", "(all)", 14, 4), ("mitigated", "(overall)", "20-59", 1, 1)]
    training = [dict(zip(("model", "identity", "bucket", "n_rows", "n_added"), row, strict=True)) for row in sizes]
    models = list_models(pa.Table.from_pylist(rows), pa.Table.from_pylist(training))
    assert [(one["n_training"], one["n_added"]) for one in models] == [(10, 0), (14, 4), (None, None)]
    measures = [(one["model"], one["auc"], one["aeg_max_abs"]) for one in models]
    assert measures == [("baseline", 0.3, 0.5), ("control", 0.2, 0.25), ("mitigated", 0.1, None)]


def test_the_terms_that_lack_most_come_first() -> None:
    names = ("gay", "old", "male")
    metrics = [
        {"model": name, "slice": part, "identity": term, "bpsn_auc": 0.5 if part == "all" else 0.1}
        for name in MODELS[::2]
        for term in names
        for part in ("short", "all")
    ]
    rows = [
        ("(overall)", "(all)", 0),
        ("male", "(all)", 0),
        ("gay", "(all)", 3),
        ("old", "(all)", 9),
        ("gay", "20-59", 90),
    ]
    balance = [dict(zip(("identity", "bucket", "n_negatives_to_add"), row, strict=True)) for row in rows]
    listed = list_terms(pa.Table.from_pylist(metrics), pa.Table.from_pylist(balance))
    both = {"baseline": 0.5, "mitigated": 0.5}
    assert listed == [{TERM: "old", "lacks": 9} | both, {TERM: "gay", "lacks": 3} | both]


def test_verdicts_are_counted_over_all_rows() -> None:
    rows = [
        ("mitigated", "all", "bpsn_auc", "better"),
        ("mitigated", "all", "background_auc", "better"),
        ("mitigated", "short", "bpsn_auc", "worse"),
        ("control", "all", "bpsn_auc", "no_evidence"),
    ]
    names = ("model", "slice", "metric", "verdict")
    models = [{"model": name} for name in MODELS]
    add_verdicts(models, pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows]))
    assert models == [
        {"model": "baseline"},
        {"model": "control", "better": 0, "worse": 0},
        {"model": "mitigated", "better": 2, "worse": 0},
    ]


@pytest.mark.parametrize(
    ("baseline", "control", "mitigated", "best"),
    [
        ((6.37, 0.5), (6.84, 0.5), (4.07, 0.8), "mitigated"),
        ((6.37, 0.5), (3.0, 0.9), (4.07, 0.8), "control"),
        ((6.37, 0.5), (6.84, 0.9), (4.07, 0.8), None),
        ((4.07, 0.5), (6.84, 0.5), (4.07, 0.8), None),
        ((6.37, 0.8), (6.84, 0.5), (4.07, 0.8), None),
        ((6.37, 0.5), (6.84, None), (4.07, 0.8), None),
        ((6.37, 0.5), (None, 0.5), (4.07, 0.8), None),
    ],
)
def test_the_best_model_wins_both_measures(
    baseline: tuple[Any, Any], control: tuple[Any, Any], mitigated: tuple[Any, Any], best: str | None
) -> None:
    models = [model("baseline", *baseline), model("control", *control), model("mitigated", *mitigated)]
    assert find_best(models) == best
    measured = Outcome(summary={"job": "bias_metrics", "run_id": "r1"}, text="worst")
    outcome = summarize(measured, None, models, [{TERM: "gay"} | dict.fromkeys(MODELS, 0.5)])
    assert outcome.exit_code == (0 if best == "mitigated" else 5)
    assert outcome.summary == {"job": "mitigation_experiment", "run_id": "r1", "models": models, "best": best}
    assert outcome.text.startswith("worst\n")


@pytest.mark.parametrize(
    ("mitigated", "gate", "comparison", "exit_code"),
    [(4.07, 0, 0, 0), (4.07, 5, 0, 5), (4.07, 0, 5, 5), (7.0, 0, 0, 5), (7.0, 5, 5, 5)],
)
def test_a_failed_gate_stays_failed(mitigated: float, gate: int, comparison: int, exit_code: int) -> None:
    models = [model("baseline", 6.37, 0.5), model("control", 6.84, 0.5), model("mitigated", mitigated, 0.8)]
    models[2] |= {"better": 20, "worse": 11}
    measured = Outcome(summary={"gate": "fail" if gate else "pass"}, text="worst", exit_code=gate)
    of_comparison = {"run_id": "r2", "gate": "fail" if comparison else "pass", "warnings": ["few rows"]}
    compared = Outcome(summary=of_comparison, text="fail: max_drop", exit_code=comparison)
    outcome = summarize(measured, compared, models, [])
    assert outcome.exit_code == exit_code
    assert outcome.summary["gate"] == measured.summary["gate"]
    assert {name: outcome.summary[f"comparison_{name}"] for name in of_comparison} == of_comparison
    assert compared.text in outcome.text
    *_, conclusion = outcome.text.splitlines()
    assert all(number in conclusion for number in ("20", "11"))
