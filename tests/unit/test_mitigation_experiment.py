"""The mitigation experiment without Spark: its configuration, its plan, and which model is the least biased."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from biasspark.cli import Outcome
from biasspark.config import parse_config
from biasspark.errors import ConfigError, Fault
from biasspark.mitigation.least_biased import TERM, find_best, judge, list_models, list_terms
from biasspark.mitigation.settings import MODELS, Mitigation, describe_experiment, load_experiment, parse_experiment
from biasspark.mitigation.training_data import list_cells
from biasspark.synthetic.imbalanced import TermCell
from biasspark.synthetic.madlibs_wording import IDENTITY_TERMS

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = {"path": "/warehouse"}


def keys_at_fault(tables: dict[str, Any]) -> list[tuple[str | int, ...]]:
    with pytest.raises(ConfigError) as caught:
        parse_experiment(tables, Path())
    return [fault.path for fault in caught.value.faults if isinstance(fault, Fault)]


# ---- configuration


def test_only_the_output_is_required() -> None:
    experiment = parse_experiment({"output": OUTPUT}, Path())
    assert experiment.mitigation == Mitigation()
    assert experiment.models == {model: model for model in MODELS}
    assert experiment.label.column == "label"
    assert experiment.identities.terms is not None
    assert experiment.identities.terms.list == {term: (term,) for term in IDENTITY_TERMS}
    assert (experiment.corpus.name, experiment.corpus.path) == ("mitigation", "/warehouse/mitigation")


def test_the_configuration_in_conf_has_the_defaults() -> None:
    experiment = load_experiment(ROOT / "conf" / "mitigation.toml")
    assert experiment.mitigation == Mitigation()
    assert experiment.templates is not None
    assert experiment.pinned_auc is not None


def test_every_key(tmp_path: Path) -> None:
    (tmp_path / "terms.txt").write_text("gay\nbelief: hindu, sikh\nMiddle Eastern\n", "utf-8")
    for name in ("chosen.parquet", "random.parquet"):
        (tmp_path / name).touch()
    config = tmp_path / "c.toml"
    config.write_text(
        '[mitigation]\ncorpus = "small"\nrows = 10\ntest_rows = 20\nseed = 3\nterms = "terms.txt"\n'
        'imbalanced = { sikh = 0.01 }\ndebiasing = "chosen.parquet"\nrandom = "random.parquet"\ntext = "comment"\n'
        'filter = "split <> \'test\'"\n[thresholds]\nat = [0.5]\n[output]\npath = "/warehouse"\n',
        "utf-8",
    )
    experiment = load_experiment(config, ["mitigation.rows=11"])
    assert experiment.mitigation == Mitigation(
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
    assert experiment.thresholds is not None
    assert {model: source.path for model, source in experiment.mitigation.files.items()} == {
        "control": str(tmp_path / "random.parquet"),
        "mitigated": str(tmp_path / "chosen.parquet"),
    }


def test_all_faults_come_at_once() -> None:
    mitigation = {"rows": 0, "seed": -1, "row": 5, "debiasing": "a.parquet", "imbalanced": {"gay": "often"}}
    tables = {
        "corpus": {"name": "c", "path": "/c"},
        "models": ["a"],
        "mitigation": mitigation,
        "ranking": {"engine": "fast"},
    }
    assert set(keys_at_fault(tables)) == {
        ("corpus",),
        ("models",),
        ("output",),
        ("ranking", "engine"),
        ("mitigation",),
        ("mitigation", "row"),
        ("mitigation", "rows"),
        ("mitigation", "seed"),
        ("mitigation", "imbalanced", "gay"),
    }


@pytest.mark.parametrize(
    ("mitigation", "key"),
    [
        ({"imbalanced": {}}, ("imbalanced",)),
        ({"imbalanced": ["gay"]}, ("imbalanced",)),
        ({"imbalanced": {"gay": 2}}, ("imbalanced", "gay")),
        ({"imbalanced": {"tall": 0.01}}, ("imbalanced",)),
        ({"terms": "none.txt"}, ("terms",)),
        ({"terms": ["gay", "teacher"], "imbalanced": {"gay": 0.01}}, ("terms",)),
        ({"text": "comment"}, ("text",)),
        ({"filter": "a = b"}, ("filter",)),
        ({"corpus": ""}, ("corpus",)),
    ],
    ids=str,
)
def test_wrong_values_are_refused(mitigation: dict[str, Any], key: tuple[str, ...]) -> None:
    assert keys_at_fault({"mitigation": mitigation, "output": OUTPUT}) == [("mitigation", *key)]


def test_corpora_need_a_folder() -> None:
    assert keys_at_fault({"output": {"catalog": "lake.bias"}}) == [("output", "catalog")]


def test_the_ledger_has_everything_except_passwords() -> None:
    paths = {"debiasing": "s3a://key:hunter2@b/x", "random": "s3a://key:hunter2@b/y"}
    experiment = parse_experiment({"mitigation": paths | {"seed": 7}, "output": OUTPUT}, Path())
    assert "hunter2" not in experiment.json + describe_experiment(experiment)
    tables = json.loads(experiment.json)
    assert tables["mitigation"]["seed"] == 7
    assert tables["mitigation"]["debiasing"] == "s3a://(redacted)@b/x"
    # The rest measures the scored test set again.
    main_job = {name: part for name, part in tables.items() if name != "mitigation"}
    assert parse_config(main_job, Path()).resolved() == main_job


# ---- plan


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


# ---- the least biased model


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
    models = list_models(pa.Table.from_pylist(rows))
    assert [(one["model"], one["auc"], one["aeg_max_abs"]) for one in models] == [
        ("baseline", 0.3, 0.5),
        ("control", 0.2, 0.25),
        ("mitigated", 0.1, None),
    ]
    metrics = [{"model": name, "slice": "all", "identity": "gay", "bpsn_auc": 0.5} for name in MODELS]
    assert list_terms(pa.Table.from_pylist(metrics), ["gay"]) == [{TERM: "gay"} | dict.fromkeys(MODELS, 0.5)]


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
    measured = Outcome(summary={"job": "bias_metrics", "run_id": "r1"}, table="worst")
    outcome = judge(measured, models, [{TERM: "gay"} | dict.fromkeys(MODELS, 0.5)])
    assert outcome.exit_code == (0 if best == "mitigated" else 5)
    assert outcome.summary == {"job": "mitigation_experiment", "run_id": "r1", "models": models, "best": best}
    assert outcome.table.startswith("worst\n")


@pytest.mark.parametrize(("mitigated", "gate", "exit_code"), [(4.07, 0, 0), (4.07, 5, 5), (7.0, 0, 5), (7.0, 5, 5)])
def test_a_failed_gate_stays_failed(mitigated: float, gate: int, exit_code: int) -> None:
    models = [model("baseline", 6.37, 0.5), model("control", 6.84, 0.5), model("mitigated", mitigated, 0.8)]
    measured = Outcome(summary={"gate": "fail" if gate else "pass"}, table="worst", exit_code=gate)
    outcome = judge(measured, models, [])
    assert outcome.exit_code == exit_code
    assert outcome.summary["gate"] == measured.summary["gate"]
