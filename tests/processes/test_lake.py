"""Delta and Iceberg with their real runtimes: the same protocol and the same results as on Parquet."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest

from biasspark.tables.formats import DELTA, ICEBERG
from biasspark.tables.schemas import PINNED_SKEW, Table
from scripts.drill_oracle import KEYS
from scripts.drill_proof import prove
from tests.lake_nights import (
    ANSWERED,
    COMPARED,
    FORMATS,
    JOB_CONFIG,
    JOB_CORPUS,
    LOST,
    QUESTION,
    QUICK,
    SPARK_OF_THE_FILES,
)
from tests.running_jobs import ask
from tests.sample_night import NIGHT

ROOT = Path(__file__).resolve().parents[2]
NIGHTS = ROOT / "docs" / "nights.md"
FURTHER = ("delta catalog", "iceberg hadoop", "iceberg hadoop, views elsewhere", "iceberg hive")
BEFORE_LAST = [["2026-01-15", 0.7], ["2026-01-16", 0.9]]

Said = dict[str, Any]


def live(folder: Path, kinds: tuple[str, ...]) -> dict[str, Said]:
    """Live through the nights of tests/lake_nights.py in a process of its own; skip where its jars cannot be had."""
    if not (known := [kind for kind in kinds if kind.split()[0] in FORMATS]):
        return {}
    out = folder / "said.json"
    done = subprocess.run(
        [sys.executable, "-m", "tests.lake_nights", str(out), str(folder), *known],
        cwd=ROOT,
        env={
            name: value for name, value in os.environ.items() if not name.startswith(("SPARK_REMOTE", "SPARK_CONNECT"))
        }
        | {"SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if "unresolved dependency" in done.stdout + done.stderr:
        pytest.skip("the jars of conf/lake-*.conf cannot be had here: no repository of Maven answers")
    assert done.returncode == 0, done.stderr[-5000:]
    return dict(json.loads(out.read_text("utf-8")))


def told(found: dict[str, Said], kind: str) -> Said:
    """Give what came of the nights on a kind of store; skip where its format has no runtime."""
    if kind not in found:
        pytest.skip(f"{kind}: no runtime is known for Spark {pyspark.__version__}")
    return found[kind]


@pytest.fixture(scope="module")
def quick_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("quick")


@pytest.fixture(scope="module")
def quick(quick_folder: Path) -> dict[str, Said]:
    return live(quick_folder, QUICK)


@pytest.fixture(scope="module")
def further(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Said]:
    return live(tmp_path_factory.mktemp("further"), FURTHER)


@pytest.fixture(params=[*QUICK, *(pytest.param(kind, marks=pytest.mark.slow) for kind in FURTHER)])
def said(request: pytest.FixtureRequest) -> Said:
    """What came of the nights on one kind of store."""
    return dict(told(request.getfixturevalue("quick" if request.param in QUICK else "further"), request.param))


def test_readers_see_the_latest_published_run_of_each_night(said: Said) -> None:
    assert said["latest"] == BEFORE_LAST
    assert said["rows"] == [["a", 0.7], ["b", 0.7]]


def test_a_run_that_fails_before_the_ledger_is_seen_by_nobody(said: Said) -> None:
    assert said["broken"] == "BiasSparkError: bias_runs: broken"
    assert said["stored"] == sorted(said["runs"])


def test_rows_never_double(said: Said) -> None:
    assert "it has rows already. A run writes a table once." in said["written twice"]


def test_tables_say_what_they_hold(said: Said) -> None:
    wanted = {column.name: column.comment for column in PINNED_SKEW.columns}
    assert said["comments"] == wanted | {"of_tomorrow": None}
    assert said["comment"] == PINNED_SKEW.comment


def test_columns_are_added_and_a_misfit_is_refused_with_both_lists(said: Said) -> None:
    # The table was made without its last column, and got one more of a version to come.
    assert PINNED_SKEW.values[-1].name in said["comments"]
    assert said["misfit"].startswith("InputError: ")
    assert "its columns are not those of pinned_skew. It has " in said["misfit"]
    assert "The table has corpus STRING, model STRING" in said["misfit"]


def test_a_key_is_never_null(said: Said) -> None:
    assert said["required"] == sorted(("run_date", "corpus", *PINNED_SKEW.key_columns, "run_id"))
    assert re.search("NOT.NULL|non-nullable field", said["null key"])  # the latter is Spark 3.5's own


def test_maintenance_removes_what_nobody_sees(said: Said) -> None:
    first, again, dead, next_one = said["runs"]
    assert [first, "superseded"] in said["would remove while young"]
    assert dead not in {run_id for run_id, _ in said["would remove while young"]}
    assert {tuple(removal) for removal in said["removed"]} >= {(first, "superseded"), (dead, "failed")}
    assert said["kept"] == sorted((again, next_one))
    assert said["latest after"] == BEFORE_LAST
    assert said["ledger after"] == sorted((first, again, next_one))


@pytest.mark.parametrize("kind", QUICK)
@pytest.mark.parametrize("table", COMPARED, ids=lambda table: table.name)
def test_the_job_publishes_what_it_does_on_parquet(quick: dict[str, Said], kind: str, table: Table) -> None:
    found, wanted = told(quick, kind)["job"], told(quick, "parquet")["job"]
    assert found.keys() == wanted.keys() == {table.name for table in COMPARED}, (found, wanted)
    assert len(wanted[table.name]) >= 4
    assert found[table.name] == wanted[table.name]


def test_a_question_is_asked_in_the_catalog_as_on_the_path(quick: dict[str, Said], quick_folder: Path) -> None:
    worst = told(quick, "iceberg jdbc")["worst"]
    query = (ROOT / "conf" / "sql" / f"{QUESTION}.sql").read_text("utf-8").rstrip("\n;")
    rows = ask(quick_folder / "parquet", f"SELECT {', '.join(ANSWERED)} FROM ({query})")
    assert worst == list(map(list, rows)) != []


def test_what_the_job_published_is_proved(quick: dict[str, Said], quick_folder: Path) -> None:
    """The oracle of scripts/drill on a night that was really measured."""
    assert "fault" not in told(quick, "parquet")["job"]
    proof = prove(quick_folder / "parquet", {NIGHT: quick_folder / JOB_CORPUS}, quick_folder / JOB_CONFIG)
    assert proof.numbers.keys() == KEYS.keys()


def test_a_catalog_that_is_nowhere_is_named_with_its_settings(quick: dict[str, Said], quick_folder: Path) -> None:
    fault = told(quick, LOST)["fault"]
    assert fault.startswith("ConfigError: catalog lost: could not be opened, ")
    assert fault.endswith(
        f'It is where spark.sql.catalog.lost.uri = "jdbc:sqlite:{quick_folder}/nowhere/lake.db" and '
        'spark.sql.catalog.lost.warehouse = "build/lake" say; relative paths begin where the job is started. Give '
        "absolute paths, of folders that are there."
    )


def test_delta_refuses_nan(quick: dict[str, Said]) -> None:
    assert "no_nan_from_fraction" in told(quick, "delta folder")["nan"]


def test_iceberg_knows_the_key(quick: dict[str, Said]) -> None:
    (fields,) = re.findall(r"identifier-fields=\[(.*?)\]", told(quick, "iceberg jdbc")["properties"])
    assert sorted(fields.split(",")) == sorted(("run_date", "corpus", *PINNED_SKEW.key_columns, "run_id"))


@pytest.mark.slow
def test_a_catalog_without_views_gets_their_sql(further: dict[str, Said]) -> None:
    (warning,) = told(further, "iceberg hadoop")["warnings"]
    assert warning.startswith("`plain`.`bias`: its catalog holds no views. Set [output] views")
    assert told(further, "iceberg hadoop, views elsewhere")["warnings"] == []


def test_the_docs_name_the_runtimes_that_are_not_in_the_files() -> None:
    named = [
        artifact
        for kind in (DELTA, ICEBERG)
        for spark, artifact in kind.artifacts.items()
        if spark != SPARK_OF_THE_FILES
    ]
    assert [artifact for artifact in named if f"`{artifact}`" not in NIGHTS.read_text("utf-8")] == []


def test_the_docs_say_which_tables_refuse_what(quick: dict[str, Said]) -> None:
    rows = re.findall(r"^\| `(path|catalog) = .*\|$", NIGHTS.read_text("utf-8"), re.MULTILINE)
    assert rows == ["path", "path", "catalog", "catalog", "catalog"]
    for line in NIGHTS.read_text("utf-8").splitlines():
        if line.startswith("|") and 'format = "' in line:
            refused = line.split("|")[4].strip()
            assert refused == ("NULL in a key, NaN" if "delta" in line else "NULL in a key")
    assert told(quick, "iceberg jdbc")["nan"] == "no error"
