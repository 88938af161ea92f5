"""The runner of the matrix, without an environment: what is declared, chosen, counted, compared and said."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path

import pytest
from packaging.version import Version

from scripts import run_matrix
from scripts.run_matrix import Leg, NotHadError, Result, choose, compare_tables, count_tests, format_results, read_legs

ROOT = Path(__file__).resolve().parents[2]
DECLARED = tomllib.loads((ROOT / "scripts" / "matrix.toml").read_text("utf-8"))
LEGS = read_legs(DECLARED)


def names_of(*asked: str) -> list[str]:
    return [leg.name for leg in choose(LEGS, asked)]


def test_an_environment_is_all_its_sessions_and_a_name_with_one_is_that_one() -> None:
    assert names_of("pinned/connect", "spark-3.5") == ["pinned/connect", "spark-3.5"]
    assert names_of("spark-4.0") == ["spark-4.0", "spark-4.0/connect"]
    assert names_of() == [leg.name for leg in LEGS]
    with pytest.raises(SystemExit, match="spark-9 is not declared"):
        names_of("spark-9")


def test_the_lowest_environment_has_the_lowest_versions_that_are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["spark"]]
    declared += project["optional-dependencies"]["report"]
    floors = dict(requirement.partition(",")[0].split(">=") for requirement in declared)
    (lowest,) = choose(LEGS, ["lowest"])
    pinned = dict(package.split("==") for package in lowest.packages if "==" in package)
    assert {name: Version(one) for name, one in pinned.items()} == {name: Version(one) for name, one in floors.items()}


def test_parts_are_there() -> None:
    assert [path for part in DECLARED["parts"].values() for path in part if not (ROOT / path).exists()] == []


def test_what_cannot_be_had_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    leg = Leg("old", "classic", ("there-is-no-such-package==1",), newest_java=17)
    today = date(2026, 11, 23)
    monkeypatch.setattr(run_matrix, "find_java_version", lambda: 21)
    with pytest.raises(NotHadError, match="its Spark runs on Java 17 at the most, and JAVA_HOME has 21"):
        run_matrix.prepare(leg, today)
    monkeypatch.setattr(run_matrix, "find_java_version", lambda: 17)
    monkeypatch.setattr(run_matrix, "PLACE", tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(NotHadError, match="pip: ERROR: No matching distribution found for there-is-no-such-package==1"):
        run_matrix.prepare(leg, today)
    assert not (tmp_path / "old" / "built").exists()


def test_an_environment_of_any_version_is_built_anew_each_week_and_finds_a_moved_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    built: list[str] = []

    def build(leg: Leg) -> None:
        built.append(leg.environment)
        (tmp_path / leg.environment / "lib" / "python3.11" / "site-packages").mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(run_matrix, "PLACE", tmp_path)
    monkeypatch.setattr(run_matrix, "build", build)
    sunday, monday = date(2026, 11, 22), date(2026, 11, 23)
    for day in (sunday, sunday, monday, monday):
        for leg in choose(LEGS, ["pinned", "spark-4.2", "newest"]):
            run_matrix.prepare(leg, day)
    assert built == ["spark-4.2", "newest", "newest"]
    monkeypatch.setattr(run_matrix, "ROOT", tmp_path / "moved")
    run_matrix.prepare(choose(LEGS, ["spark-4.2"])[0], monday)
    (found,) = tmp_path.glob("spark-4.2/lib/python3.11/site-packages/biasspark.pth")
    assert found.read_text("utf-8") == f"{tmp_path / 'moved'}\n"
    assert built == ["spark-4.2", "newest", "newest"]


def test_tests_are_counted(tmp_path: Path) -> None:
    report = tmp_path / "tests.xml"
    report.write_text('<testsuites><testsuite tests="9" skipped="2" failures="1" errors="1"/></testsuites>')
    assert count_tests(report) == (5, 2, 2)
    assert count_tests(tmp_path / "missing.xml") == (0, 1, 0)


def test_tables_are_compared_byte_for_byte(tmp_path: Path) -> None:
    def write(night: str, **tables: str) -> Path:
        for name, text in tables.items():
            place = tmp_path / night / "night" / "tables"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{name}.csv").write_text(text)
        return tmp_path / night

    first = write("first", bias_metrics="0.5\n", u_statistics="3\n")
    assert compare_tables(first, None) == "the first"
    assert compare_tables(write("same", bias_metrics="0.5\n", u_statistics="3\n"), first) == "equal"
    assert compare_tables(write("other", bias_metrics="0.50\n", u_statistics="3\n"), first) == "differ: bias_metrics"
    assert compare_tables(write("fewer", bias_metrics="0.5\n"), first) == "differ: u_statistics"
    assert compare_tables(tmp_path / "nothing", first) == "none: see night.log"


def test_results_are_a_table(tmp_path: Path) -> None:
    versions = dict(zip(run_matrix.SHOWN, ("3.5.9", "3.11.7", "2.3.3", "2.4.6", "26.0.1"), strict=True))
    good = Result("spark-3.5", versions, passed=7, failed=0, skipped=1, tables="equal", seconds=60)
    assert format_results([good]).splitlines()[-1] == (
        "| spark-3.5 | 3.5.9 | 3.11.7 | 2.3.3 | 2.4.6 | 26.0.1 | 7 | 0 | 1 | equal |"
    )
    assert good.is_good
    assert not Result("no tests", versions, 0, 0, 1, "equal", 1).is_good
    assert not Result("other numbers", versions, 7, 0, 0, "differ: bias_metrics", 1).is_good
