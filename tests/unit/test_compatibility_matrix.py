"""The compatibility matrix, without an environment: legs, comparisons, and the jobs that it runs."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.version import Version

from biasspark.config import load_config
from biasspark.tables.schemas import BIAS_RUNS, TABLES
from scripts.dev import compatibility_matrix as matrix
from scripts.dev.compatibility_matrix import choose, compare_tables
from scripts.dev.matrix_tables import STEPS, Step, flags_of

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


def test_every_job_that_writes_tables_is_run() -> None:
    assert {step.job.JOB for step in STEPS} == {table.job for table in TABLES.values() if table != BIAS_RUNS}


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.job.JOB)
def test_configurations_and_flags_have_no_fault(step: Step, tmp_path: Path) -> None:
    arguments = step.job.COMMAND.parser().parse_args(flags_of(step, tmp_path))
    assert load_config(arguments.config, arguments.overrides).output.path == f"{tmp_path}/warehouse"
