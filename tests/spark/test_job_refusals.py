"""Faults of the main job and their exit codes; nothing is changed."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from biasspark.session import is_connect
from biasspark.tables.publish import publish
from biasspark.tables.store import PathStore
from tests.conftest import ROOT
from tests.harness.main_job import (
    RUN_DATE,
    assert_refused,
    make_rows,
    run,
    untouched,
    write_config,
    write_parquet,
)
from tests.harness.running_jobs import Done
from tests.harness.sample_run import record_of, start_run, suite_tables


@pytest.fixture(scope="module")
def published(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus and a published run, which a failing run must not change."""
    folder = tmp_path_factory.mktemp("published")
    write_parquet(folder / "corpus", make_rows(100))
    publish(spark_session, suite_tables(), start_run("comments"), PathStore(f"{folder}/warehouse"), record_of())
    return folder


def test_a_wrong_configuration_ends_with_2_and_names_every_fault(published: Path) -> None:
    config = write_config(
        published,
        label={"column": "target", "threshold": "half", "colour": "red"},
        ranking={"engine": "fast"},
        slices={"all": "true"},
    )
    with untouched(published):
        done = run(config, "--set", "identities.threshold=lots", "--set", "nokey")
    assert_refused(
        done,
        2,
        '--set "nokey": ',
        "[label] colour: ",
        '[label] threshold = "half". ',
        '[identities] threshold = "lots". ',
        '[slices] all = "true". ',
        '[ranking] engine = "fast". ',
    )
    assert "starting the engine" not in done.err


def test_missing_and_mistyped_columns_end_with_3_all_at_once(published: Path) -> None:
    config = write_config(
        published,
        corpus={"id": "key", "run_date_column": "created", "filter": "lang = 'en'"},
        label={"column": "toxicity"},
        models={"m": "comment_text", "n": "Score"},
        identities={"columns": ["male", "jewish"]},
        slices={"a": "nope > 1", "b": "length"},
    )
    with untouched(published):
        done = run(config)
    assert_refused(
        done,
        3,
        '[corpus] run_date_column = "created". ',
        "[corpus] filter = \"lang = 'en'\". ",
        "[corpus] id: ",
        "[label] column: ",
        "[models] n: ",
        "[identities] columns: ",
        '[slices] a = "nope > 1". ',
        '[slices] b = "length". ',
    )
    assert done.err.count("\n") == 9  # and one line of progress: Spark's own warnings do not show


# ---- input that looks like a result


def test_a_run_that_means_nothing_ends_with_3_in_place_of_a_good_one(
    spark: SparkSession, published: Path, tmp_path: Path
) -> None:
    """The template is the text. test_mistakes.py has many more, without a job."""
    rows = make_rows(10_002)
    path = write_parquet(tmp_path / "corpus", rows | {"words": list(range(len(rows["id"])))})
    output = {"path": f"{published}/warehouse"}
    with untouched(published):
        done = run(write_config(tmp_path, corpus={"path": str(path)}, templates={"column": "words"}, output=output))
    assert_refused(done, 3, '[templates] column = "words". ')


# ---- files


def test_a_file_without_bytes_is_named_whatever_the_names_of_others(spark: SparkSession, tmp_path: Path) -> None:
    """Hive writes a colon in the value of a partition as %3A, so such names are common."""
    part = write_parquet(tmp_path / "corpus" / "at=2026-01-15 03%3A00", make_rows(100))
    (part / "part-1.parquet").rename(part / "a%20b é.parquet")
    (part / "_SUCCESS").touch()
    assert run(write_config(tmp_path), "--dry-run").code == 0
    empty = part / "c d%20e.parquet"
    empty.touch()
    done = run(write_config(tmp_path), "--dry-run")
    assert_refused(done, 3, f"corpus: path {tmp_path}/corpus: 1 file ")
    assert str(empty) in done.err


@pytest.mark.spark("names another file system")
def test_passwords_in_paths_are_not_shown(spark: SparkSession, published: Path) -> None:
    secret = "nofs://key:hunter2@bucket/x"
    done = run(write_config(published, corpus={"path": secret}))
    assert_refused(done, 3, "corpus: path nofs://(redacted)@bucket/x: ")
    assert "hunter2" not in done.err
    done = run(write_config(published, output={"path": secret}), "--dry-run")
    if is_connect(spark):
        assert_refused(done, 3, "nofs://(redacted)@bucket/x/u_statistics: ")
    else:
        assert_refused(done, 2, '[output] path = "nofs://(redacted)@bucket/x". ')
    assert "hunter2" not in done.err


# ---- where no job can work

OTHER_JOBS: dict[str, tuple[str, ...]] = {
    "bias_metrics": (),
    "compare_models": ("--set", "models.n=length", "--set", "compare.baseline=n"),
    "attribution": ("--set", 'attribution={numeric=["length"]}'),
    "pinned_skew": ("--set", "pinned_skew.identity=male"),
    "report": ("--out", "report.html"),
    "export": ("--table", "bias_metrics", "--out", "metrics.csv"),
    "side_by_side": ("--models", "m", "n"),
    "accept_run": ("--reason", "checked"),
    "maintain": (),
}


@pytest.mark.spark("names a catalog")
@pytest.mark.parametrize("name", [*OTHER_JOBS, "window_metrics"])
def test_a_catalog_that_the_session_lacks_ends_every_job_with_2_before_any_work(
    spark: SparkSession,
    tmp_path: Path,
    name: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The missing corpus is not read."""
    dates = ("--from", RUN_DATE, "--to", RUN_DATE) if name == "window_metrics" else ("--run-date", RUN_DATE)
    config = write_config(tmp_path, output={"path": None, "catalog": "nosuch.bias"})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [name, "--config", str(config), *dates, *OTHER_JOBS.get(name, ())])
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(str(ROOT / "jobs" / f"{name}.py"), run_name="__main__")
    done = Done(int(stop.value.code or 0), *capsys.readouterr())
    assert_refused(done, 2, '[output] catalog = "nosuch.bias". ')
    assert "spark.sql.catalog.nosuch" in done.err


@pytest.mark.spark("names a catalog")
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("key", "output"),
    [
        ("catalog", {"catalog": "SPARK_CATALOG.bias"}),
        ("views", {"catalog": "lake.bias", "format": "iceberg", "views": "spark_catalog.bias"}),
    ],
)
def test_a_catalog_that_ends_with_the_session_is_refused(tmp_path: Path, key: str, output: dict[str, str]) -> None:
    done = run(write_config(tmp_path, output={"path": None, **output}))
    assert_refused(done, 2, f'[output] {key} = "{output[key]}". ')
    assert "spark.sql.catalogImplementation=hive" in done.err
