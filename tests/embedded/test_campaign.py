"""A short run of the campaign that compares the embedded engine with Spark, whose answers are stored."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from scripts.dev.campaign_corpora import Case, make_case, write_case
from scripts.dev.engine_campaign import Answer, Engine, difference, outcome_of
from scripts.dev.predicate_answers import compare
from tests.harness.submitting import run_python

STORED = Path(__file__).with_name("campaign_answers.json")
pytestmark = pytest.mark.skipif(find_spec("pysail") is None, reason="pysail, the embedded engine, is not installed")


@pytest.mark.slow
def test_predicates_have_the_values_of_spark() -> None:
    """Stored by ``python -m scripts.dev.predicate_answers spark --store tests/embedded/predicate_answers.json``."""
    command = ("-m", "scripts.dev.predicate_answers", "embedded", "--share", "0.2", "--compare")
    done = run_python(*command, STORED.with_name("predicate_answers.json"))
    n_predicates, *_, differing = done.stdout.splitlines()
    assert int(n_predicates.split()[0].replace(",", "")) > 300, done.stderr
    assert (differing, done.returncode) == ("0 differ", 0), done.stdout


def test_a_predicate_that_is_not_stored_differs() -> None:
    answers = {"int": {"c > 0": "1", "c > 1": "2", "c > 2": "3", "c > 3": "error", "c > 4": "5"}}
    stored = {"int": {"c > 0": "1", "c > 1": "0", "c > 3": "4", "c > 4": "error"}}
    assert compare(answers, stored) == ["int: c > 1", "int: c > 2"]


def test_a_difference_that_is_explained_does_not_count_as_equal() -> None:
    stopped = Answer(3, ["label"], message="it fails on a row")
    assert difference(make_case(1, 1), stopped, Answer(0)) is None
    assert outcome_of(stopped, Answer(0)) == "explained"
    assert outcome_of(Answer(3), Answer(3, ["label"])) == "explained"
    assert outcome_of(stopped, Answer(3, ["label"])) == "exit 3"
    assert outcome_of(Answer(2, is_refused=True), Answer(0)) == "refused"


def die_of_the_first(cases: Sequence[Case], folders: Sequence[str]) -> list[Answer]:
    if "first" in folders:
        os._exit(1)
    return [Answer(0) for _ in cases]


def test_an_engine_that_dies_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.dev.engine_campaign._start_session", print)
    monkeypatch.setattr("scripts.dev.engine_campaign._answer_all", die_of_the_first)
    engine = Engine("embedded")
    answers = engine.ask([make_case(1, number) for number in range(3)], ["zero", "first", "second"])
    engine.close()
    assert [answer.exit_code for answer in answers] == [0, 1, 0]


@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_embedded_engine_answers_as_spark_did(tmp_path: Path, half: int) -> None:
    """Stored by ``python -m scripts.dev.engine_campaign --cases 72 --answers tests/embedded/campaign_answers.json``."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    wanted = dict(list(stored["answers"].items())[half::2])
    cases = [make_case(stored["seed"], int(number)) for number in wanted]
    folders = [tmp_path / str(case.number) for case in cases]
    for case, folder in zip(cases, folders, strict=True):
        write_case(case, folder)
    engine = Engine("embedded")
    answers = engine.ask(cases, list(map(str, folders)))
    engine.close()
    assert len(answers) >= 20
    assert {answer.exit_code for answer in answers} == {0, 3}
    digests = {str(case.number): answer.digest for case, answer in zip(cases, answers, strict=True)}
    assert digests == wanted
