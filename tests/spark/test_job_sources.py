"""The main job over other sources and into other places: text without types, tables, views, a catalog."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

from biasspark.tables.publish import PublishedRun, publish
from biasspark.tables.runs import Run, RunRecord
from biasspark.tables.schemas import TABLES, Table
from biasspark.tables.store import PathStore
from tests.main_job import FOREIGN, Rows, assert_refused, make_rows, run, run_well, write_config, write_parquet
from tests.running_jobs import ask
from tests.sample_night import night_frames, read_latest, record_of, start_run


def text_rows() -> Rows:
    """Rows as a file without types holds them: numbers as text, and in places no number."""
    rows = make_rows(400)
    rows = {name: [None if value is None else str(value) for value in values] for name, values in rows.items()}
    rows["score"][:5] = ["high", None, "NaN", "-Infinity", " 0.25 "]
    rows["target"][5] = "toxic"
    rows["id"][6] = None
    rows["day"][-40:] = ["2026-01-16"] * 39 + ["no date"]
    return rows


@pytest.fixture(scope="module")
def text_rejects() -> dict[str, int]:
    return {
        "null_id": 1,
        "null_label": 1,
        "null_score": 1,
        "score_not_numeric": 1,
        "nan_score": 1,
        "infinite_score": 1,
    }


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[str]:
    name = f"bias_{uuid4().hex}"
    yield name
    spark.sql(f"DROP SCHEMA IF EXISTS {name} CASCADE")


@pytest.mark.slow
def test_csv_and_json_give_the_same_numbers_on_a_path_and_in_a_catalog(
    spark: SparkSession, tmp_path: Path, schema: str, text_rejects: dict[str, int]
) -> None:
    rows = text_rows()
    records = [dict(zip(rows, values, strict=True)) for values in zip(*rows.values(), strict=True)]
    (tmp_path / "csv").mkdir()
    with (tmp_path / "csv" / "a.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([rows, *zip(*rows.values(), strict=True)])
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "a.json").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    source: dict[str, Any] = {"run_date_column": "day"}

    done = run_well(
        write_config(tmp_path, corpus=source | {"format": "csv", "path": f"{tmp_path}/csv"}),
    )
    assert done.summary["n_rows"] == 360
    assert done.summary["rejects"] == text_rejects

    done = run_well(
        write_config(
            tmp_path,
            corpus=source | {"format": "json", "path": f"{tmp_path}/json"},
            output={"path": None, "catalog": f"spark_catalog.{schema}"},
        ),
    )
    assert done.summary["rejects"] == text_rejects
    assert done.summary["warnings"] == []
    for table in ("bias_metrics", "u_statistics", "model_summary", "rejected_rows"):
        columns = ", ".join(TABLES[table].value_columns)
        in_catalog = [tuple(row) for row in spark.sql(f"SELECT {columns} FROM {schema}.latest_{table}").collect()]
        on_path = ask(tmp_path / "warehouse", f"SELECT {columns} FROM latest_{table}")
        assert len(on_path) > 0
        assert sorted(map(repr, in_catalog)) == sorted(map(repr, on_path))


@pytest.mark.slow
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
    models = ["inverted", "rounded", "tied", "decided"]
    done = run_well(
        write_config(
            tmp_path,
            corpus={"path": None, "table": f"{schema}.comments"},
            models=dict(zip(models, models, strict=True)),
        )
    )
    warnings = done.summary["warnings"]
    wanted = [
        r"corpus: about 33% of the rows repeat an id\.",
        r"model inverted: its subgroup AUC is below 0\.5 for every identity\.",
        r"model rounded: its 600 scores have \d distinct values\.",
        r"model tied: 60% of its scores are the same value\.",
        r"model decided: its scores are only 0 and 1, like decisions\.",
        r"model decided: \d\d% of its scores are the same value\.",
    ]
    assert len(warnings) == len(wanted)
    assert all(re.match(pattern, warning) for pattern, warning in zip(wanted, warnings, strict=True))
    assert [line for line in done.out.splitlines() if line.startswith("warning: ")] == [
        f"warning: {warning}" for warning in warnings
    ]
    assert ask(tmp_path / "warehouse", "SELECT warnings FROM bias_runs") == [(warnings,)]


@pytest.mark.slow
def test_of_two_runs_at_once_the_second_ends_with_4(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.createDataFrame(pd.DataFrame(make_rows(200))).createOrReplaceTempView("comments_of_a_notebook")
    config = write_config(tmp_path, corpus={"path": None, "table": "comments_of_a_notebook"})

    def publish_second(
        frames: Mapping[Table, DataFrame], run: Run, store: PathStore, record: RunRecord
    ) -> PublishedRun:
        publish(night_frames(spark, 0.7), start_run(run.corpus, run.run_date), store, record_of())
        return publish(frames, run, store, record)

    monkeypatch.setattr("biasspark.night.publish", publish_second)
    done = run(config)
    assert_refused(
        done,
        4,
        f"bias_runs: run {FOREIGN}. Of two runs of a night at once the first to publish counts. Nothing was published. "
        "Run again to supersede it.",
    )
    found = read_latest(tmp_path / "warehouse", "corpus, identity, subgroup_auc")
    assert found == [("comments", "female", 0.7), ("comments", "male", 0.7)]
