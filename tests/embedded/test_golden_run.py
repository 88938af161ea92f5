"""One run of each job but the experiment on 600 rows: its numbers are those of tests/fixtures/golden_run, bit by bit.

After a change of numbers that CHANGELOG.md names, renew them by ``python -m tests.embedded.test_golden_run``.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pytest

from biasspark.session import job_session
from biasspark.session_request import SessionRequest, session_requested
from biasspark.tables.schemas import EXAMPLE_ATTRIBUTIONS, SCORE_BLOCKS, SCORE_HISTOGRAMS, TABLES, WINDOW_TABLES
from biasspark.tables.views import duckdb_views
from biasspark.workflows import accept_run, export_table, maintain
from scripts.dev import matrix_tables as matrix
from scripts.dev.matrix_tables import EVERY_PART, FIRST, Step
from tests.harness.running_jobs import Done, run_main

pytestmark = pytest.mark.embedded

GOLDEN = Path(__file__).parents[1] / "fixtures" / "golden_run"
SMALLER = {
    "identities": 'columns = ["male"], categorical = ["race"], terms = { column = "comment_text", list = ["gay"] }, '
    "crossed = { pairs = true, min_rows = 90 }",
    "slices": "",
    "thresholds": "at = [0.6]",
    "histograms": "bins = 2",
    "templates": 'column = "race"',
}
LEFT_OUT = matrix.OF_THE_ATTEMPT | {"run_date", "run_id", "corpus", "code_version", "message", "warnings"}
"""What is the same in all rows, or differs from run to run, and sentences."""

LONG = {SCORE_BLOCKS, SCORE_HISTOGRAMS, EXAMPLE_ATTRIBUTIONS, *WINDOW_TABLES.values()}
"""Tables of which a digest is kept."""


def run(step: Step, folder: Path) -> Done:
    overrides = [word for name, table in SMALLER.items() for word in ("--set", f"{name}={{{table}}}")]
    done = run_main(step.job.COMMAND, *matrix.flags_of(step, folder), *overrides)
    assert done.code == 0, done.err
    return done


def run_every_job(folder: Path) -> None:
    matrix.write_corpus(folder / "corpus")
    for step in matrix.STEPS:
        if step.config == EVERY_PART and step.flags.endswith(str(FIRST)):
            run(step, folder)


def read_tables(warehouse: Path) -> dict[str, str]:
    written = [table for table in TABLES.values() if (warehouse / table.name).exists()]
    with duckdb.connect() as connection:
        connection.execute(duckdb_views(str(warehouse), written))
        texts = {table: matrix.format_rows(connection, table, LEFT_OUT) for table in written}
    return {
        table.name: hashlib.sha256(text.encode()).hexdigest() + "\n" if table in LONG else text
        for table, text in texts.items()
    }


@pytest.fixture(scope="module")
def golden(spark_session: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden")
    run_every_job(folder)
    return folder


def test_every_table_is_the_one_that_is_committed(golden: Path) -> None:
    committed = {path.stem: path.read_text("utf-8") for path in GOLDEN.iterdir()}
    assert read_tables(golden / "warehouse") == committed


def test_the_run_is_accepted_exported_and_maintained(golden: Path) -> None:
    of_first = f"--run-date {FIRST}"
    accepted = run(Step(accept_run, EVERY_PART, f"{of_first} --reason seen --by Ada"), golden)  # as the gate did
    assert accepted.summary["status"] == "already_accepted"
    export = Step(export_table, EVERY_PART, f"{of_first} --table rejected_rows --out {golden}/rejected.csv")
    assert run(export, golden).summary["rows"] > 0
    assert run(Step(maintain, EVERY_PART, of_first), golden).summary["status"] == "done"


if __name__ == "__main__":
    with (
        session_requested(SessionRequest("embedded")),
        job_session("golden run"),
        TemporaryDirectory() as temporary,
    ):
        run_every_job(Path(temporary))
        for table_name, table_text in read_tables(Path(temporary, "warehouse")).items():
            (GOLDEN / f"{table_name}.csv").write_text(table_text, "utf-8")
