"""Two models side by side: the public function, the job on published tables, and the equivalent query."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyspark.sql.functions as F
import pytest
from pyspark.sql import SparkSession

import biasspark
from biasspark.report.side_by_side import Request
from biasspark.tables.publish import publish
from biasspark.tables.schemas import BIAS_METRICS
from biasspark.tables.spark_schemas import to_frame, value_schema
from biasspark.tables.store import CatalogStore, PathStore
from biasspark.tables.views import refresh_views
from biasspark.workflows import print_side_by_side as job
from biasspark.workflows.print_side_by_side import read_side_by_side
from tests.fixtures.two_models import AUCS, Rows, metrics_table, put_together, run_rows
from tests.harness.example_run import add_run, write_table
from tests.harness.main_job import run as run_job
from tests.harness.main_job import write_config
from tests.harness.running_jobs import Done, open_views
from tests.harness.sample_run import RUN_DATE, record_of, run_at, start_run

QUERY = Path(__file__).resolve().parents[2] / "conf" / "sql" / "side_by_side.sql"
LATEST = run_at(3, "r2_latest")
OF_RUN = {"run_date": RUN_DATE, "corpus": "civil", "run_id": "r2_latest"}
MODELS = ("--models", "toxicity_1", "toxicity_6")


def test_the_frame_has_the_rows_of_both_models(spark: SparkSession) -> None:
    metrics = to_frame(spark, metrics_table(run_rows()), value_schema(BIAS_METRICS))
    metrics = metrics.withColumn("run_date", F.lit(RUN_DATE))
    compared = biasspark.side_by_side(metrics, "toxicity_1", "toxicity_6")
    expected = put_together(run_rows(), {"run_date": RUN_DATE}, with_crossed=True)
    rows = sorted((row.asDict() for row in compared.collect()), key=lambda row: (row["slice"], row["identity"]))
    assert rows == sorted(expected, key=lambda row: (row["slice"], row["identity"]))


def test_the_folder_of_a_published_table_has_its_runs(warehouse: Path) -> None:
    compared = biasspark.side_by_side(str(warehouse / "bias_metrics"), "toxicity_1", "toxicity_6").to_pylist()
    runs = {(row["run_date"], row["run_id"]) for row in compared}
    assert runs == {(RUN_DATE, run_id) for run_id in ("rz_first", "r2_latest", "rz_wiki", "rz_crashed")}
    expected = put_together(run_rows(), OF_RUN, with_crossed=True)
    latest = [row for row in compared if row["run_id"] == "r2_latest"]
    assert latest == sorted(expected, key=lambda row: [*map(str, (row["slice"], row["identity"]))])


# ---- a published run


@pytest.fixture(scope="module")
def warehouse(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A date that was run again, an unfinished run, and another corpus."""
    folder = tmp_path_factory.mktemp("side_by_side")
    wrong = [row | dict.fromkeys(AUCS, 0.125) for row in run_rows()]
    for run, rows in ((run_at(1, "rz_first"), wrong), (LATEST, run_rows()), (run_at(6, "rz_wiki", "wiki"), wrong)):
        add_run(folder, run, {"bias_metrics": rows})
    write_table(folder, BIAS_METRICS, wrong, run_at(5, "rz_crashed"))
    assert refresh_views(spark_session, PathStore(str(folder))) == ()
    return folder


@pytest.fixture
def run(warehouse: Path, tmp_path: Path) -> Callable[..., Done]:
    """Return a function that runs the job with flags."""

    def run_it(*flags: str, folder: Path = warehouse) -> Done:
        config = write_config(tmp_path, corpus={"name": "civil"}, output={"path": str(folder)})
        return run_job(config, *flags, run_date=RUN_DATE, job=job)

    return run_it


def read_csv(text: str) -> Rows:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def show_csv(rows: Rows, columns: Iterable[str]) -> Rows:
    """Return rows as in CSV: text, empty for NULL, and no formulas."""

    def show(value: Any) -> str:
        text = str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)
        return f"'{text}" if isinstance(value, str) and text.startswith("=") else text

    return [{name: show(row[name]) for name in columns} for row in rows]


def test_text_is_a_table_a_slice_and_one_line_of_json(run: Any) -> None:
    done = run(*MODELS, "--slice", "short", "--slice", "all", "--slice", "short")
    assert done.code == 0, done.err
    *lines, last = done.out.splitlines()
    summary = json.loads(last)
    assert summary.pop("seconds") >= 0
    assert summary == {
        "job": "side_by_side",
        "run_id": "r2_latest",
        "run_date": "2026-01-15",
        "models": ["toxicity_1", "toxicity_6"],
        "rows": 6,
        "slices": {"short": 1, "all": 5},
        "out": None,
    }
    starts = [number for number, line in enumerate(lines) if line.startswith("slice ")]
    assert [lines[start].split()[1:3] for start in starts] == [["short:", "1"], ["all:", "5"]]
    assert [line.split()[:2] for line in lines[starts[1] + 4 :][:5]] == [
        *(["only_first", "10"], ["!", "=it's"], ["black", "10"], ["gay", "10"], ["empty", "10"])
    ]
    assert max(map(len, lines)) <= 120
    assert [line.split("] ")[1].split()[0] for line in done.err.splitlines()] == ["starting", "reading", "done"]


def test_csv_on_stdout_stands_alone(run: Any) -> None:
    done = run(*MODELS, "--crossed", "--format", "csv")
    assert (done.code, done.err) == (0, "")
    rows = read_csv(done.out)
    expected = put_together(run_rows(), OF_RUN, with_crossed=True)
    assert rows == show_csv(expected, rows[0])
    assert set(rows[0]) == set(expected[0])


def test_a_file_in_place_of_stdout(run: Any, tmp_path: Path) -> None:
    out = tmp_path / "side_by_side.md"
    out.write_text("what was there before " * 1000)
    done = run(*MODELS, "--slice", "all", "--limit", "2", "--format", "markdown", "--out", str(out))
    assert done.code == 0, done.err
    (line,) = done.out.splitlines()
    assert (json.loads(line)["out"], json.loads(line)["rows"]) == (str(out), 2)
    text = out.read_text("utf-8")
    assert "### Slice all\n\n2 of 5 identities" in text
    assert [line.split(" | ")[1] for line in text.splitlines() if line.startswith("|")][2:] == [
        "only_first",
        '=it\'s "a" \\| \\`b\\`; -- é',
    ]


# ---- what is refused


def test_files_that_are_gone(run: Any, spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "warehouse"
    add_run(folder, LATEST, {}, gone=["bias_metrics"])
    done = run(*MODELS, folder=folder)
    assert (done.code, f"{folder}/bias_metrics/{LATEST.partition}" in done.err) == (3, True), done.err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--models", "m"), "--models"),
        ((*MODELS, "--sort", "auc"), "--sort"),
        ((*MODELS, "--limit", "0"), "--limit"),
        ((*MODELS, "--digits", "9"), "--digits"),
        ((*MODELS, "--out", "/"), "--out"),
        ((*MODELS, "--dry-run"), "--dry-run"),
    ],
)
def test_wrong_usage(run: Any, flags: tuple[str, ...], words: str) -> None:
    done = run(*flags)
    assert (done.code, done.out) == (2, "")
    assert words in done.err.splitlines()[-1]


# ---- the query


def test_the_query_gives_the_columns_and_rows_of_the_job(run: Any, warehouse: Path) -> None:
    """In their order. Spark gives what DuckDB does: test_queries.py."""
    by_query = open_views(warehouse).sql(QUERY.read_text("utf-8")).to_arrow_table()
    civil = [row for row in by_query.to_pylist() if row["corpus"] == "civil"]
    assert civil == put_together(run_rows(), OF_RUN)
    listed = read_csv(run(*MODELS, "--format", "csv").out)
    assert list(listed[0]) == by_query.column_names
    assert listed == show_csv(civil, by_query.column_names)


@pytest.mark.spark("writes to a catalog")
def test_a_run_in_a_catalog(spark: SparkSession, catalog: CatalogStore) -> None:
    _, latest = (
        publish(spark, {BIAS_METRICS: metrics_table(rows)}, start_run(), catalog, record_of())
        for rows in ([row | {"bpsn_auc": 0.0} for row in run_rows()], run_rows())
    )
    request = Request(models=("toxicity_1", "toxicity_6"), sort="bpsn_auc", limit=1)
    compared = read_side_by_side(spark, catalog, RUN_DATE, "civil", request)
    assert compared.run == latest
    assert [(part.name, part.n_identities) for part in compared.slices] == [("all", 5), ("a & b", 0), ("short", 1)]
    assert [row["identity"] for part in compared.slices for row in part.rows] == ["black", "gay"]
