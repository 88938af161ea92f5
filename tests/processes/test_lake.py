"""Delta and Iceberg with their real runtimes: the same protocol and the same results as on Parquet."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyspark
import pytest

from biasspark.tables.parquet import read_files
from biasspark.tables.schemas import PINNED_SKEW, U_STATISTICS
from scripts.dev.proof import prove
from tests.harness.lake_runs import (
    ANSWERED,
    COMPARED,
    DELTA_CORPUS,
    FORMATS,
    JOB_CONFIG,
    JOB_CORPUS,
    JOB_ROWS,
    LOST,
    QUESTION,
    STORES,
    WITH_JOB,
    delta_corpus_flags,
)
from tests.harness.running_jobs import ask
from tests.harness.sample_run import RUN_DATE
from tests.harness.spark_effort import MAX_SPARK_JOBS
from tests.harness.submitting import run_python
from tests.oracle.run_tables import KEYS

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow
BEFORE_LAST = [["2026-01-15", 0.7], ["2026-01-16", 0.9]]

Results = dict[str, Any]


@pytest.fixture(scope="module")
def life_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("life")


@pytest.fixture(scope="module")
def life(life_folder: Path) -> dict[str, Results]:
    """Run tests/harness/lake_runs.py in a process of its own; skip where its jars cannot be had."""
    if not (known := [kind for kind in STORES if kind.split()[0] in FORMATS]):
        return {}
    out = life_folder / "results.json"
    program = ("-m", "tests.harness.lake_runs", out, life_folder, *known)
    done = run_python(*program, SPARK_CONF_DIR=str(ROOT / "conf"))
    if "unresolved dependency" in done.stdout + done.stderr:
        pytest.skip("the jars of conf/lake-*.conf cannot be had here: no repository of Maven answers")
    assert done.returncode == 0, done.stderr[-5000:]
    return dict(json.loads(out.read_text("utf-8")))


def select(results: dict[str, Results], kind: str) -> Results:
    """Return the results of the runs on a kind of store; skip where its format has no runtime."""
    if kind not in results:
        pytest.skip(f"{kind}: no runtime is known for Spark {pyspark.__version__}")
    return results[kind]


@pytest.fixture(params=STORES)
def results(request: pytest.FixtureRequest, life: dict[str, Results]) -> Results:
    """What was seen of the life of one kind of store."""
    return select(life, request.param)


@pytest.fixture(params=WITH_JOB)
def jobs(request: pytest.FixtureRequest, life: dict[str, Results]) -> tuple[str, Results, Results]:
    """A kind of store, and the results of the job on it and on Parquet."""
    return request.param, select(life, request.param)["job"], life["parquet"]["job"]


def test_readers_see_the_latest_published_run_of_each_date_and_nothing_of_one_that_fails(results: Results) -> None:
    """Neither rows of a run that is published, nor what one left that died, are published with more rows."""
    assert results["latest"] == BEFORE_LAST
    assert results["rows"] == [["a", 0.7], ["b", 0.7]]
    assert results["broken"] == "BiasSparkError: bias_runs: broken"
    assert results["stored"] == sorted(results["runs"])
    assert "already" in results["published twice"]
    assert all(part in results["written twice"] for part in ("4 rows", "2 rows"))


def test_tables_say_what_they_hold_and_get_new_columns(results: Results) -> None:
    """The table was made without its last column, and got one more of a version to come. A misfit is refused."""
    comments = {column.name: column.comment for column in PINNED_SKEW.columns}
    assert results["comments"] == comments | {"of_tomorrow": None}
    assert results["comment"] == PINNED_SKEW.comment
    assert results["misfit"].startswith("InputError: ")
    assert all(part in results["misfit"] for part in ("pinned_skew", "corpus STRING, model STRING"))
    assert results["required"] == sorted(("run_date", "corpus", *PINNED_SKEW.key_columns, "run_id"))
    assert re.search("NOT.NULL|non-nullable field", results["null key"])  # the latter is Spark 3.5's own


def test_maintenance_removes_what_nobody_sees(results: Results) -> None:
    first, second, broken, dead, last = results["runs"]
    young = {run_id for run_id, _ in results["would remove while young"]}
    assert first in young
    assert not {broken, dead} & young
    removed = {tuple(removal) for removal in results["removed"]}
    assert removed >= {(first, "superseded"), (broken, "failed"), (dead, "failed")}
    assert results["kept"] == sorted((second, last))
    assert results["latest after"] == BEFORE_LAST
    assert results["ledger after"] == sorted((first, second, last))


def test_the_job_publishes_what_it_does_on_parquet(jobs: tuple[str, Results, Results]) -> None:
    _, job, on_parquet = jobs
    assert job.keys() == on_parquet.keys() == {"tables", "counted", "spark jobs"}, (job, on_parquet)
    assert job["counted"] == on_parquet["counted"]
    for table in COMPARED:
        assert len(on_parquet["tables"][table.name]) >= 4
        assert job["tables"][table.name] == on_parquet["tables"][table.name]


def test_a_run_takes_few_spark_jobs(jobs: tuple[str, Results, Results]) -> None:
    """The first of a warehouse, and the next. On Parquet and Delta in a folder of this machine no table costs any.

    On Iceberg one writes each table, one reads them back, and a few look at the ledger and at the run before, and add
    the row of the ledger. Delta by Spark alone reads the log of each table for itself, and makes none without a job;
    the number differs by a few from run to run.
    """
    kind, job, on_parquet = jobs
    n_written = sum(n_rows > 0 for n_rows in job["counted"].values())
    more = {"delta folder": 0, "delta by spark": 5 * (n_written + 1), "iceberg jdbc": n_written + 7}[kind]
    assert max(on_parquet["spark jobs"]) <= 7
    assert max(job["spark jobs"]) <= max(on_parquet["spark jobs"]) + more
    assert kind == "delta by spark" or max(job["spark jobs"]) <= MAX_SPARK_JOBS


def test_a_corpus_of_delta_is_measured_without_spark_as_with_it(life: dict[str, Results], life_folder: Path) -> None:
    by_spark = select(life, DELTA_CORPUS)
    assert 0 < by_spark["n_rows"] < JOB_ROWS
    flags = delta_corpus_flags(life_folder, "embedded")
    done = run_python("-m", "biasspark", "measure", "--engine", "embedded", *flags)
    if "it is not installed" in done.stderr or "pip install" in done.stderr:
        pytest.skip("the embedded engine or deltalake is not installed")
    assert done.returncode == 0, done.stderr
    stored = read_files(U_STATISTICS, (life_folder / "embedded" / "u_statistics").glob("*/*"))
    rows = stored.select(U_STATISTICS.value_columns).to_pylist()
    assert sorted(list(map(repr, row.values())) for row in rows) == by_spark["u"]


def test_a_question_is_asked_in_the_catalog_as_on_the_path(life: dict[str, Results], life_folder: Path) -> None:
    worst = select(life, "iceberg jdbc")["worst"]
    query = (ROOT / "conf" / "sql" / f"{QUESTION}.sql").read_text("utf-8").rstrip("\n;")
    rows = ask(life_folder / "parquet", f"SELECT {', '.join(ANSWERED)} FROM ({query})")
    assert worst == list(map(list, rows)) != []


def test_what_the_job_published_is_proved(life: dict[str, Results], life_folder: Path) -> None:
    """By an oracle, on a run that was really measured."""
    assert "fault" not in select(life, "parquet")["job"]
    proof = prove(life_folder / "parquet", {RUN_DATE: life_folder / JOB_CORPUS}, life_folder / JOB_CONFIG)
    assert proof.numbers.keys() == KEYS.keys()


def test_a_catalog_that_is_nowhere_is_named(life: dict[str, Results]) -> None:
    assert select(life, LOST)["fault"].startswith(f"BiasSparkError: catalog {LOST}: could not be opened, ")


@pytest.mark.parametrize(
    ("kind", "words"), [("delta by spark", "no_nan_from_fraction"), ("delta folder", "NaN in pinned_auc")]
)
def test_delta_refuses_nan(life: dict[str, Results], kind: str, words: str) -> None:
    assert words in select(life, kind)["nan"]
    assert select(life, "iceberg jdbc")["nan"] == "no error"


def test_iceberg_knows_the_key_and_keeps_few_files_of_metadata(life: dict[str, Results], life_folder: Path) -> None:
    properties = select(life, "iceberg jdbc")["properties"]
    (fields,) = re.findall(r"identifier-fields=\[(.*?)\]", properties)
    assert sorted(fields.split(",")) == sorted(("run_date", "corpus", *PINNED_SKEW.key_columns, "run_id"))
    assert "write.metadata.delete-after-commit.enabled=true" in properties
    assert len(list(life_folder.glob("lake/bias/pinned_skew/metadata/*.metadata.json"))) <= 11


def test_a_catalog_without_views_gets_their_sql(life: dict[str, Results]) -> None:
    (warning,) = select(life, "iceberg hadoop")["warnings"]
    assert warning.startswith("`plain`.`bias`: its catalog holds no views. Set [output] views")
    assert select(life, "iceberg hadoop, views elsewhere")["warnings"] == []
