"""The compatibility matrix, without an environment: legs, builds, counts and comparisons, and the jobs that it runs."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from packaging.version import Version

from biasspark.config import load_config
from biasspark.tables.schemas import BIAS_RUNS, TABLES, TEMPLATE_SCORES
from scripts.dev import compatibility_matrix as matrix
from scripts.dev.compatibility_matrix import Result, choose, compare_tables, count_tests
from scripts.dev.matrix_tables import STEPS, Step, flags_of, format_rows

ROOT = Path(__file__).resolve().parents[2]
DECLARED = tomllib.loads(matrix.DECLARED.read_text("utf-8"))
LEGS = matrix.read_legs(DECLARED)


def names_of(*names: str) -> list[str]:
    return [leg.name for leg in choose(LEGS, names)]


def test_an_environment_is_all_its_sessions_and_a_name_with_one_is_that_one() -> None:
    assert names_of("pinned/connect", "spark-3.5") == ["pinned/connect", "spark-3.5"]
    assert names_of("spark-4.0") == ["spark-4.0", "spark-4.0/connect"]
    assert names_of() == [leg.name for leg in LEGS]
    with pytest.raises(SystemExit, match="spark-9"):
        names_of("spark-9")


@pytest.mark.parametrize(("name", "engine"), [("lowest", "spark"), ("embedded-lowest", "embedded")])
def test_the_lowest_environments_have_the_lowest_declared_versions(name: str, engine: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"][engine]]
    declared += project["optional-dependencies"]["report"]
    floors = dict(requirement.partition(",")[0].split(">=") for requirement in declared)
    (lowest,) = choose(LEGS, [name])
    pinned = dict(package.split("==") for package in lowest.packages if "==" in package)
    assert {name: Version(one) for name, one in pinned.items()} == {name: Version(one) for name, one in floors.items()}


def test_parts_exist() -> None:
    assert [path for part in DECLARED["parts"].values() for path in part if not (ROOT / path).exists()] == []


def test_tests_are_counted(tmp_path: Path) -> None:
    report = tmp_path / "tests.xml"
    report.write_text('<testsuites><testsuite tests="9" skipped="2" failures="1" errors="1"/></testsuites>')
    assert count_tests(report) == (5, 2, 2)
    assert count_tests(tmp_path / "missing.xml") == (0, 1, 0)


def test_a_server_that_does_not_start_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "RESULTS", tmp_path)
    submit = tmp_path / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text("#!/bin/sh\nexit 1\n")
    submit.chmod(0o755)
    monkeypatch.setattr(matrix, "VERSIONS", f'print(\'{{"home": "{tmp_path}", "versions": {{}}}}\')')
    (leg,) = choose(LEGS, ["pinned/server"])
    assert not matrix.run(leg, [], None).is_good


def test_a_leg_without_tables_is_not_the_one_to_compare_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = {"pinned/connect": "none: see jobs.log", "pinned/server": "the first", "spark-3.5": "equal"}
    compared_with = []

    def run(leg: matrix.Leg, _: object, first: Path | None) -> Result:
        compared_with.append(first and first.name)
        return Result(leg.name, dict.fromkeys(matrix.SHOWN, "1"), 1, 0, 0, tables[leg.name], 1)

    monkeypatch.setattr(matrix, "RESULTS", tmp_path)
    monkeypatch.setattr(matrix, "run", run)
    monkeypatch.setattr("sys.argv", ["matrix", *tables])
    assert matrix.main() == matrix.FAILED
    assert compared_with == [None, None, "pinned-server"]


def test_a_python_of_pyenv_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "versions" / "3.99.1" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to("/bin/true")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert matrix.find_python("python3.99") == str(python)


def test_tables_are_compared_byte_for_byte(tmp_path: Path) -> None:
    def write(leg: str, **tables: str) -> Path:
        folder = tmp_path / leg / "jobs" / "tables"
        folder.mkdir(parents=True)
        for name, text in tables.items():
            (folder / f"{name}.csv").write_text(text)
        return tmp_path / leg

    first = write("first", bias_metrics="0.5\n", u_statistics="3\n")
    assert compare_tables(first, None) == "the first"
    assert compare_tables(write("same", bias_metrics="0.5\n", u_statistics="3\n"), first) == "equal"
    assert compare_tables(write("other", bias_metrics="0.50\n", u_statistics="3\n"), first) == "differ: bias_metrics"
    assert compare_tables(write("fewer", bias_metrics="0.5\n"), first) == "differ: u_statistics"
    assert compare_tables(tmp_path / "nothing", first) == "none: see jobs.log"


def test_a_result_is_good_if_tests_passed_and_tables_are_equal() -> None:
    good = Result(
        "spark-3.5", dict.fromkeys(matrix.SHOWN, "1"), passed=7, failed=0, skipped=1, tables="equal", seconds=60
    )
    assert good.is_good
    assert "| spark-3.5 | 1 |" in matrix.format_results([good])
    assert not replace(good, passed=0).is_good
    assert not replace(good, tables="differ: bias_metrics").is_good


# ---- the jobs


def test_every_job_that_writes_tables_is_run() -> None:
    assert {step.name for step in STEPS} == {table.job for table in TABLES.values() if table != BIAS_RUNS}


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_configurations_and_flags_have_no_fault(step: Step, tmp_path: Path) -> None:
    arguments = step.job.COMMAND.parser().parse_args(flags_of(step, tmp_path))
    assert load_config(arguments.config, arguments.overrides).output.path == f"{tmp_path}/warehouse"


def write_row(**row: str) -> str:
    """Return the text of a table of one row, or of none without values."""
    cells = ", ".join(f"{row.get(name, 'NULL')} AS {name}" for name in TEMPLATE_SCORES.names)
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW template_scores AS SELECT {cells} WHERE {bool(row)}")
        return format_rows(connection, TEMPLATE_SCORES)


def test_tables_are_equal_if_only_the_attempt_differs() -> None:
    one = write_row(run_id="'r20260115T123456123456_0a1b2c'", mean_score="0.1::DOUBLE + 0.2::DOUBLE")
    assert one == write_row(run_id="'r20260116T030000000001_ffffff'", mean_score="0.1::DOUBLE + 0.2::DOUBLE")
    assert one != write_row(run_id="'r20260115T123456123456_0a1b2c'", mean_score="0.3::DOUBLE")


def test_a_table_without_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="template_scores"):
        write_row()
