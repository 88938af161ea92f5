"""The main job with other sources and stores: untyped text, tables, views, a catalog."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from biasspark.tables.publish import PublishedRun, publish
from biasspark.tables.runs import Run, new_run
from biasspark.tables.schemas import TABLES
from tests.harness.main_job import Rows, make_rows, run, run_well, write_config, write_parquet
from tests.harness.running_jobs import ask


def text_rows() -> Rows:
    """Rows of a file without types: numbers as text, and some texts that are no numbers."""
    rows = make_rows(400)
    rows = {name: [None if value is None else str(value) for value in values] for name, values in rows.items()}
    rows["score"][:5] = ["high", None, "NaN", "-Infinity", " 0.25 "]
    rows["target"][5] = "toxic"
    rows["id"][6] = None
    rows["day"][-40:] = ["2026-01-16"] * 39 + ["no date"]
    return rows


TEXT_REJECTS = dict.fromkeys(
    ("null_id", "null_label", "null_score", "score_not_numeric", "nan_score", "infinite_score"), 1
)


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    name = f"bias_{uuid4().hex}"
    yield name
    spark.sql(f"DROP SCHEMA IF EXISTS {name} CASCADE")


@pytest.mark.slow
@pytest.mark.spark("tables of a catalog")
def test_csv_and_json_give_the_same_numbers_on_a_path_and_in_a_catalog(
    spark: SparkSession, tmp_path: Path, schema: str
) -> None:
    rows = text_rows()
    records = list(zip(*rows.values(), strict=True))
    for kind in ("csv", "json"):
        (tmp_path / kind).mkdir()
    with (tmp_path / "csv" / "a.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([rows, *records])
    lines = (json.dumps(dict(zip(rows, record, strict=True))) for record in records)
    (tmp_path / "json" / "a.json").write_text("\n".join(lines), encoding="utf-8")
    source: dict[str, Any] = {"run_date_column": "day"}
    done = run_well(write_config(tmp_path, corpus=source | {"format": "csv", "path": f"{tmp_path}/csv"}))
    assert (done.summary["n_rows"], done.summary["rejects"]) == (360, TEXT_REJECTS)
    output = {"path": None, "catalog": f"spark_catalog.{schema}"}
    done = run_well(
        write_config(tmp_path, corpus=source | {"format": "json", "path": f"{tmp_path}/json"}, output=output)
    )
    assert (done.summary["rejects"], done.summary["warnings"]) == (TEXT_REJECTS, [])
    for table in ("bias_metrics", "u_statistics", "model_summary", "rejected_rows"):
        columns = ", ".join(TABLES[table].value_columns)
        in_catalog = [tuple(row) for row in spark.sql(f"SELECT {columns} FROM {schema}.latest_{table}").collect()]
        on_path = ask(tmp_path / "warehouse", f"SELECT {columns} FROM latest_{table}")
        assert len(on_path) > 0
        assert sorted(map(repr, in_catalog)) == sorted(map(repr, on_path))


@pytest.mark.slow
@pytest.mark.spark("tables of a catalog")
def test_peculiar_scores_and_repeated_ids_are_warned_of(spark: SparkSession, tmp_path: Path, schema: str) -> None:
    rows = make_rows(600)
    scores = rows["score"]
    rows |= {
        "id": [f"c{number % 400}" for number in range(600)],
        "inverted": [-score for score in scores],
        "rounded": [round(score) for score in scores],
        "tied": [0.0 if number % 5 < 3 else score for number, score in enumerate(scores)],
        "decided": [float(score > 0.5) for score in scores],
    }
    write_parquet(tmp_path / "corpus", rows)
    spark.sql(f"CREATE SCHEMA {schema}")
    spark.sql(f"CREATE TABLE {schema}.comments USING parquet LOCATION '{tmp_path}/corpus'")
    models = {name: name for name in ("inverted", "rounded", "tied", "decided")}
    done = run_well(write_config(tmp_path, corpus={"path": None, "table": f"{schema}.comments"}, models=models))
    warnings = done.summary["warnings"]
    subjects = ["corpus: about 33%", *(f"model {name}: " for name in (*models, "decided"))]
    assert [warning.startswith(subject) for warning, subject in zip(warnings, subjects, strict=True)] == [True] * 6
    assert [line for line in done.out.splitlines() if line.startswith("warning: ")] == [
        f"warning: {warning}" for warning in warnings
    ]
    assert ask(tmp_path / "warehouse", "SELECT warnings FROM bias_runs") == [(warnings,)]


@pytest.mark.slow
@pytest.mark.spark("tables of a catalog")
def test_of_two_runs_at_once_the_second_ends_with_4(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.createDataFrame(pd.DataFrame(make_rows(200))).createOrReplaceTempView("comments_of_a_notebook")
    config = write_config(tmp_path, corpus={"path": None, "table": "comments_of_a_notebook"})
    first: list[Run] = []

    def publish_second(spark: SparkSession, tables: Any, run: Run, store: Any, record: Any) -> PublishedRun:
        first.append(new_run(run.run_date, run.corpus, run.job))
        publish(spark, tables, first[0], store, record)
        return publish(spark, tables, run, store, record)

    monkeypatch.setattr("biasspark.workflows.corpus_job.publish", publish_second)
    done = run(config)
    assert (done.code, done.out) == (4, "")
    assert first[0].run_id in done.err
    ledger = spark.read.option("basePath", f"{tmp_path}/warehouse/bias_runs").parquet(f"{tmp_path}/warehouse/bias_runs")
    assert [row.run_id for row in ledger.collect()] == [first[0].run_id]
