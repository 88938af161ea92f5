"""The configuration of the mitigation experiment, and its verdict, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from biasspark.cli import Outcome
from biasspark.config import Config, Terms, parse_config
from biasspark.errors import ConfigError
from biasspark.mitigation.comparison import find_best, judge
from biasspark.mitigation.settings import Mitigation, describe_experiment, load_experiment, parse_experiment
from biasspark.synthetic.madlibs_wording import IDENTITY_TERMS

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = {"path": "/warehouse"}


def faults_of(table: dict[str, Any]) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse_experiment(table, Path())
    return caught.value.faults


def test_only_the_output_must_be_said() -> None:
    experiment = parse_experiment({"output": OUTPUT}, Path())
    assert experiment.mitigation == Mitigation()
    assert (experiment.mitigation.rows, len(experiment.mitigation.terms)) == (127_820, 50)
    assert experiment.models == {"baseline": "baseline", "control": "control", "mitigated": "mitigated"}
    assert experiment.label.column == "label"
    assert experiment.identities.terms == Terms(
        column="comment_text", terms=tuple((term, (term,)) for term in IDENTITY_TERMS)
    )
    assert (experiment.corpus.name, experiment.corpus.path) == ("mitigation", "/warehouse/mitigation")


def test_the_configuration_in_conf_is_the_default_one() -> None:
    experiment = load_experiment(ROOT / "conf" / "mitigation.toml")
    assert experiment.mitigation == Mitigation()
    assert experiment.templates is not None
    assert experiment.pinned_auc is not None


def test_everything_that_can_be_said(tmp_path: Path) -> None:
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
    assert {model: source.path for model, source in experiment.mitigation.snippets.items()} == {
        "control": str(tmp_path / "random.parquet"),
        "mitigated": str(tmp_path / "chosen.parquet"),
    }


def test_all_faults_are_found_at_once() -> None:
    table = {
        "corpus": {"name": "c", "path": "/c"},
        "models": ["a"],
        "mitigation": {
            "rows": 0,
            "seed": -1,
            "row": 5,
            "debiasing": "a.parquet",
            "imbalanced": {"gay": "often"},
        },
        "ranking": {"engine": "fast"},
    }
    assert faults_of(table) == (
        "[mitigation] row: there is no such key. The keys of [mitigation] are corpus, rows, test_rows, seed, terms, "
        "imbalanced, debiasing, random, text, filter. Did you mean rows?",
        "[mitigation] rows = 0. It must lie between 1 and 9223372036854775807. Remove the line to use the default, "
        "127820.",
        "[mitigation] seed = -1. It must lie between 0 and 9223372036854775807. Remove the line to use the default, 1.",
        '[mitigation.imbalanced] gay = "often". It must be the share of the comments that mention the term. Write, for '
        "example, 0.005.",
        "[mitigation]: debiasing is given alone. The mitigated model and the control get comments of one kind. Name "
        "both.",
        "[corpus]: given. The experiment makes its own corpora and models. Remove the table.",
        "[models]: given. The experiment makes its own corpora and models. Remove the table.",
        '[ranking] engine = "fast". It must be one of "blocks", "windows", "binned". Remove the line to use the '
        'default, "blocks".',
        '[output]: missing. This table is required. Write, for example, [output] path = "warehouse".',
    )


@pytest.mark.parametrize(
    ("mitigation", "fault"),
    [
        (
            {"imbalanced": {}},
            "[mitigation.imbalanced]: no term is named. At least one is required. Write, for example, ",
        ),
        ({"imbalanced": ["gay"]}, "[mitigation.imbalanced]: this is a list. It must be a table. "),
        ({"imbalanced": {"gay": 2}}, '[mitigation] imbalanced: "gay" = 2.0. It is the share of the comments that '),
        ({"imbalanced": {"tall": 0.01}}, '[mitigation] imbalanced: "tall". It is not one of the terms. '),
        ({"terms": "none.txt"}, "[identities.terms] file = "),
        ({"text": "comment"}, '[mitigation] text = "comment". Without debiasing and random nothing is read. '),
        ({"filter": "a = b"}, '[mitigation] filter = "a = b". Without debiasing and random nothing is read. '),
        ({"corpus": ""}, '[mitigation] corpus = "". It must not be empty. '),
    ],
    ids=str,
)
def test_wrong_values_are_refused(mitigation: dict[str, Any], fault: str) -> None:
    [found] = faults_of({"mitigation": mitigation, "output": OUTPUT})
    assert found.startswith(fault)


def test_corpora_need_a_folder() -> None:
    assert faults_of({"output": {"catalog": "lake.bias"}}) == (
        '[output] catalog = "lake.bias". The corpora are written beside the tables, into a folder. Write, for example, '
        'path = "build/mitigation/warehouse".',
    )


def test_the_ledger_is_told_all_but_passwords() -> None:
    paths = {"debiasing": "s3a://key:hunter2@b/x", "random": "s3a://key:hunter2@b/y"}
    experiment = parse_experiment({"mitigation": paths | {"seed": 7}, "output": OUTPUT}, Path())
    assert "hunter2" not in experiment.json + describe_experiment(experiment)
    said = json.loads(experiment.json)
    assert said["mitigation"]["seed"] == 7
    assert said["mitigation"]["debiasing"] == "s3a://(redacted)@b/x"
    # The rest is the configuration of the night, which measures the scored test set again.
    night = parse_config({name: part for name, part in said.items() if name != "mitigation"}, Path())
    assert night == Config(**{name: getattr(experiment, name) for name in said if name != "mitigation"})


def model(name: str, difference: float | None, lowest: float | None) -> dict[str, Any]:
    measures = dict.fromkeys(("auc", "subgroup_auc_min", "bnsp_auc_min", "aeg_max_abs"), 0.5)
    own = {"model": name, "pinned_auc_equality_difference": difference, "bpsn_auc_min": lowest}
    return own | measures | {"n_training": 10, "n_added": 0}


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
    night = Outcome(summary={"job": "bias_metrics", "run_id": "r1"}, table="worst")
    outcome = judge(night, models, [{"bpsn_auc of": "gay", "baseline": 0.5, "control": 0.5, "mitigated": 0.8}])
    assert outcome.exit_code == (0 if best == "mitigated" else 5)
    assert outcome.summary == {"job": "mitigation_experiment", "run_id": "r1", "models": models, "best": best}
    verdict = "the" if best == "mitigated" else "NOT the"
    assert outcome.table.endswith(f"The mitigated model is {verdict} least biased of the three.")


@pytest.mark.parametrize(("mitigated", "gate", "exit_code"), [(4.07, 0, 0), (4.07, 5, 5), (7.0, 0, 5), (7.0, 5, 5)])
def test_a_gate_that_failed_is_not_made_good_by_the_verdict(mitigated: float, gate: int, exit_code: int) -> None:
    models = [model("baseline", 6.37, 0.5), model("control", 6.84, 0.5), model("mitigated", mitigated, 0.8)]
    night = Outcome(summary={"gate": "fail" if gate else "pass"}, table="worst", exit_code=gate)
    outcome = judge(night, models, [])
    assert outcome.exit_code == exit_code
    assert outcome.summary["gate"] == night.summary["gate"]
