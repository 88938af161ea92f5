"""The night of the matrix, without Spark: what it runs, by which configurations, and how its tables are written."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from biasspark.config import load_config
from biasspark.tables.schemas import BIAS_RUNS, TABLES, TEMPLATE_SCORES
from scripts.matrix_night import N_ROWS, STEPS, Step, flags_of, format_rows, make_rows


def test_every_job_that_writes_tables_is_run() -> None:
    assert {step.job.JOB for step in STEPS} == {table.job for table in TABLES.values() if table != BIAS_RUNS}


@pytest.mark.parametrize("step", STEPS)
def test_configurations_and_flags_are_without_fault(step: Step, tmp_path: Path) -> None:
    arguments = step.make_parser().parse_args(flags_of(step, tmp_path))
    config = load_config(arguments.config, arguments.overrides)
    assert config.output.path == f"{tmp_path}/warehouse"


def test_both_nights_have_the_same_ids() -> None:
    nights: dict[object, set[object]] = {}
    for row in make_rows():
        nights.setdefault(row["day"], set()).add(row["id"])
    first, second = nights.values()
    assert first == second
    assert len(first) == N_ROWS


def write_out(**row: str) -> str:
    """Give the text of a table of one row, or of none where nothing is said of it."""
    cells = ", ".join(f"{row.get(name, 'NULL')} AS {name}" for name in TEMPLATE_SCORES.names)
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW template_scores AS SELECT {cells} WHERE {bool(row)}")
        return format_rows(connection, TEMPLATE_SCORES)


def test_tables_are_alike_where_all_but_the_attempt_is() -> None:
    one = write_out(run_id="'r20260115T123456123456_0a1b2c'", mean_score="0.1::DOUBLE + 0.2::DOUBLE")
    assert one == write_out(run_id="'r20260116T030000000001_ffffff'", mean_score="0.1::DOUBLE + 0.2::DOUBLE")
    assert one != write_out(run_id="'r20260115T123456123456_0a1b2c'", mean_score="0.3::DOUBLE")


def test_a_table_without_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="template_scores has no rows"):
        write_out()
