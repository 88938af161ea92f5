"""A short run of the campaign that compares the embedded engine with Spark, whose answers are stored."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from scripts.dev.campaign_corpora import make_case, write_case
from scripts.dev.engine_campaign import Engine
from tests.harness.submitting import run_python

STORED = Path(__file__).with_name("campaign_answers.json")
pytestmark = pytest.mark.skipif(find_spec("pysail") is None, reason="pysail, the embedded engine, is not installed")


@pytest.mark.slow
def test_predicates_have_the_values_of_spark() -> None:
    """Stored by ``predicate_answers spark --share 0.2 --store tests/embedded/predicate_answers.json``."""
    command = ("-m", "scripts.dev.predicate_answers", "embedded", "--share", "0.2", "--compare")
    done = run_python(*command, STORED.with_name("predicate_answers.json"))
    n_predicates, *_, differing = done.stdout.splitlines()
    assert int(n_predicates.split()[0].replace(",", "")) > 300, done.stderr
    assert (differing, done.returncode) == ("0 differ", 0), done.stdout


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
