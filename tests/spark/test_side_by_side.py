"""Two models side by side: the frame, the job on published tables, and the query that gives the same in SQL."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import pyspark.sql.functions as F
import pytest
from pyspark.sql import SparkSession

import biasspark
from biasspark.cli import run_job
from biasspark.errors import ConfigError
from biasspark.report.side_by_side import keep_worst, read_side_by_side
from biasspark.report.side_by_side_question import Question
from biasspark.tables.runs import Run
from biasspark.tables.schemas import BIAS_METRICS, BIAS_RUNS, Table
from biasspark.tables.store import CatalogStore, PathStore
from biasspark.tables.views import DUCKDB_FILE, SPARK_FILE, refresh_views
from jobs import side_by_side as job
from tests.sample_night import NIGHT, frame_of, run_at

QUERY = Path(__file__).resolve().parents[2] / "conf" / "sql" / "side_by_side.sql"
AUCS, GAPS = ("subgroup_auc", "bpsn_auc", "bnsp_auc"), ("negative_aeg", "positive_aeg")
HOSTILE = '=it\'s "a" | `b`; -- é'
LATEST = run_at(3, "r2_latest")

Rows = list[dict[str, Any]]
Values = tuple[float | None, ...]


def suite_row(
    model: str, cut: str, identity: str, values: Values, *, n_positive: int = 3, reason: str | None = None
) -> dict[str, Any]:
    """Give one row of bias_metrics: the three AUCs and the two gaps in order, of 10 rows in the identity."""
    row: dict[str, Any] = {"model": model, "slice": cut, "identity": identity, "crossed": " & " in identity}
    row |= {"n_subgroup_negative": 10 - n_positive, "n_subgroup_positive": n_positive}
    row |= {"subgroup_positive_rate": n_positive / 10}
    for name, value in zip((*AUCS, *GAPS), values, strict=True):
        row |= {name: value, f"{name}_reason": reason if value is None else None}
    return row


def night_rows() -> Rows:
    """Two models and one that is not asked for; equals, NULLs, an identity that one model lacks, a crossed pair."""
    none = (None,) * 5
    return [
        suite_row("toxicity_1", "all", "gay", (0.9, 0.5, 0.95, 0.4, -0.1)),
        suite_row("toxicity_6", "all", "gay", (0.8, 0.9, 0.99, -0.1, -0.3)),
        suite_row("toxicity_1", "all", HOSTILE, (0.5, 0.75, 1.0, 0.0, 0.25), n_positive=4),
        suite_row("toxicity_6", "all", HOSTILE, (0.25, 0.75, 1.0, 0.5, 0.25), n_positive=5),
        suite_row("toxicity_1", "all", "black", (0.99, 0.5, None, -0.45, None), reason="no_subgroup_positives"),
        suite_row("toxicity_6", "all", "black", (0.98, 0.75, None, 0.25, None), reason="no_subgroup_positives"),
        suite_row("toxicity_1", "all", "empty", none, n_positive=0, reason="no_subgroup_negatives"),
        suite_row("toxicity_6", "all", "empty", none, n_positive=0, reason="no_subgroup_negatives"),
        suite_row("toxicity_1", "all", "only_first", (0.3, 0.9, 0.9, 0.1, 0.1)),
        suite_row("toxicity_1", "all", "black & gay", (0.1, 0.2, 0.3, 0.4, 0.5)),
        suite_row("toxicity_6", "all", "black & gay", (0.2, 0.2, 0.2, 0.2, 0.2)),
        suite_row("toxicity_1", "short", "gay", (0.6, 0.7, 0.8, 0.1, 0.2)),
        suite_row("toxicity_6", "short", "gay", (0.7, 0.6, 0.8, -0.1, 0.1)),
        suite_row("another", "all", "gay", (0.0, 0.0, 0.0, 0.5, 0.5)),
        suite_row("another", "a & b", "gay", (0.0, 0.0, 0.0, 0.5, 0.5)),
    ]


def put_together(rows: Rows, run: Mapping[str, Any], with_crossed: bool = False) -> Rows:
    """Give the rows that are expected, by the words of the documentation; sorted as the query is."""
    models = {
        side: {(r["slice"], r["identity"]): r for r in rows if r["model"] == model} for side, model in SIDES.items()
    }
    found = []
    for cut, identity in models["first"] | models["second"]:
        sides = {side: models[side].get((cut, identity), {}) for side in SIDES}
        row = {name: run[name] for name in ("run_date", "corpus") if name in run}
        row |= {"slice": cut, "identity": identity, "crossed": " & " in identity}
        row |= {f"{side}_model": model for side, model in SIDES.items()}
        for side, own in sides.items():
            row[f"n_subgroup_{side}"] = 10 if own else None
            row[f"positive_rate_{side}"] = own.get("subgroup_positive_rate")
            row[f"worst_auc_{side}"] = min((own[name] for name in AUCS if own.get(name) is not None), default=None)
        for name in ("worst_auc", *AUCS, *GAPS):
            if name != "worst_auc":
                row |= {f"{name}_{side}": own.get(name) for side, own in sides.items()}
                row |= {f"{name}_{side}_reason": own.get(f"{name}_reason") for side, own in sides.items()}
            first, second = row[f"{name}_first"], row[f"{name}_second"]
            size = abs if name in GAPS else float
            row[f"{name}_difference"] = None if first is None or second is None else size(second) - size(first)
        row["worse"] = None if row["worst_auc_difference"] is None else row["worst_auc_difference"] < 0
        found.append(row | {name: run[name] for name in ("run_id",) if name in run})

    def place(row: dict[str, Any]) -> tuple[Any, ...]:
        worst = row["worst_auc_first"]
        return row["slice"] != "all", row["slice"], worst is None, worst or 0, row["identity"]

    return sorted((row for row in found if with_crossed or not row["crossed"]), key=place)


SIDES = {"first": "toxicity_1", "second": "toxicity_6"}
OF_RUN = {"run_date": NIGHT, "corpus": "civil", "run_id": "r2_latest"}


# ---- the frame


def test_rows_and_differences(spark: SparkSession) -> None:
    metrics = frame_of(spark, BIAS_METRICS, night_rows())
    found = biasspark.side_by_side(metrics, "toxicity_1", "toxicity_6")
    wanted = put_together(night_rows(), {}, with_crossed=True)
    assert sorted(found.columns) == sorted(wanted[0])
    rows = sorted((row.asDict() for row in found.collect()), key=lambda row: (row["slice"], row["identity"]))
    assert rows == sorted(wanted, key=lambda row: (row["slice"], row["identity"]))


def test_runs_are_kept_apart(spark: SparkSession) -> None:
    rows = [suite_row(model, "all", "gay", (0.9, 0.5, 0.9, 0.1, 0.1)) for model in SIDES.values()]
    night = frame_of(spark, BIAS_METRICS, rows).withColumns({"corpus": F.lit("civil"), "run_id": F.lit("r1")})
    other = night.withColumns({"bpsn_auc": F.lit(0.25), "run_id": F.lit("r2")})
    found = biasspark.side_by_side(night.unionByName(other), "toxicity_1", "toxicity_6")
    assert found.columns[:2] == ["corpus", "slice"]
    assert found.columns[-1] == "run_id"
    assert sorted((row["run_id"], row["bpsn_auc_first"], row["bpsn_auc_second"]) for row in found.collect()) == [
        ("r1", 0.5, 0.5),
        ("r2", 0.25, 0.25),
    ]


@pytest.mark.parametrize(
    ("sort", "identities"),
    [
        ("bnsp_auc", ["only_first", "gay", HOSTILE, "black", "empty"]),
        ("negative_aeg", ["black", "gay", "only_first", HOSTILE, "empty"]),
    ],
)
def test_the_worst_of_the_first_model_come_first(spark: SparkSession, sort: str, identities: list[str]) -> None:
    metrics = frame_of(
        spark, BIAS_METRICS, [row for row in night_rows() if row["slice"] == "all" and not row["crossed"]]
    )
    compared = biasspark.side_by_side(metrics, "toxicity_1", "toxicity_6")
    rows = keep_worst(compared, sort, limit=4).collect()
    assert [row["identity"] for row in sorted(rows, key=lambda row: row["place"])] == identities[:4]
    assert {row["n_identities"] for row in rows} == {5}


def test_a_model_is_not_compared_with_itself(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match='models: "m" twice'):
        biasspark.side_by_side(spark.range(1), "m", "m")


# ---- a published night


def add_run(spark: SparkSession, store: PathStore | CatalogStore, run: Run, rows: Rows, published: bool = True) -> None:
    """Write a run's rows of bias_metrics, and its row in the ledger a second after its start."""

    def write(table: Table, values: Rows) -> None:
        own = {"corpus": F.lit(run.corpus), "run_date": F.lit(run.run_date), "run_id": F.lit(run.run_id)}
        store.write(table, frame_of(spark, table, values).coalesce(1).withColumns(own), run)

    write(BIAS_METRICS, rows)
    if published:
        times = {"started_at": run.started_at, "published_at": run.started_at.replace(microsecond=1)}
        write(BIAS_RUNS, [{"job": run.job, "status": "published"} | times])


@pytest.fixture(scope="module")
def warehouse(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A night that was run again, a run that never finished, and another corpus."""
    folder = tmp_path_factory.mktemp("side_by_side")
    store = PathStore(str(folder))
    wrong = [row | dict.fromkeys(AUCS, 0.125) for row in night_rows()]
    add_run(spark_session, store, run_at(1, "rz_first"), wrong)
    add_run(spark_session, store, LATEST, night_rows())
    add_run(spark_session, store, run_at(5, "rz_crashed"), wrong, published=False)
    add_run(spark_session, store, run_at(6, "rz_wiki", "wiki"), wrong)
    assert refresh_views(spark_session, store) == ()
    return folder


class Done:
    """What a run of the job said."""

    def __init__(self, code: int, shown: Any) -> None:
        self.code, self.out, self.err = code, shown.out, shown.err


@pytest.fixture
def run(warehouse: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Give the job on that night as a function of its flags."""

    def run_it(*flags: str, corpus: str = "civil", run_date: date = NIGHT, folder: Path = warehouse) -> Done:
        config = tmp_path / "civil.toml"
        config.write_text(
            f'corpus = {{ name = "{corpus}", path = "/no/such/corpus" }}\nlabel = {{ column = "toxic" }}\n'
            'models = { toxicity_1 = "a" }\nidentities = { columns = ["gay"] }\n'
            f"output = {{ path = {json.dumps(str(folder))} }}\n",
            encoding="utf-8",
        )
        given = ["--config", str(config), "--run-date", run_date.isoformat(), *flags]
        return Done(run_job(job.main, job.comparison_parser(), given), capsys.readouterr())

    return run_it


MODELS = ("--models", "toxicity_1", "toxicity_6")


def read_csv(text: str) -> Rows:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def show_csv(rows: Rows, columns: Iterable[str]) -> Rows:
    """Give rows as CSV has them: text, NULL empty, and no formula."""

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
    assert lines[:2] == ["A: toxicity_1   B: toxicity_6", "corpus civil, 2026-01-15, run r2_latest"]
    assert [line for line in lines if line.startswith("slice ")] == [
        "slice short: 1 identity, those with the lowest AUC of A first",
        "slice all: 5 identities, those with the lowest AUC of A first",
    ]
    table = lines[lines.index("slice all: 5 identities, those with the lowest AUC of A first") + 4 :]
    assert [line.split()[:2] for line in table[:5]] == [
        *(["only_first", "10"], ["!", "=it's"], ["black", "10"], ["gay", "10"], ["empty", "10"])
    ]
    assert max(map(len, lines)) <= 120
    assert [line.split("] ")[1].split()[0] for line in done.err.splitlines()] == ["starting", "reading", "done"]


def test_csv_on_stdout_is_all_that_is_said(run: Any) -> None:
    done = run(*MODELS, "--crossed", "--format", "csv")
    assert (done.code, done.err) == (0, "")
    rows = read_csv(done.out)
    wanted = put_together(night_rows(), OF_RUN, with_crossed=True)
    assert rows == show_csv(wanted, rows[0])
    assert set(rows[0]) == set(wanted[0])


def test_a_file_in_place_of_stdout(run: Any, tmp_path: Path) -> None:
    out = tmp_path / "side_by_side.md"
    out.write_text("what was there before " * 1000)
    done = run(*MODELS, "--slice", "all", "--limit", "2", "--format", "markdown", "--out", str(out))
    assert done.code == 0, done.err
    (line,) = done.out.splitlines()
    assert (json.loads(line)["out"], json.loads(line)["rows"]) == (str(out), 2)
    text = out.read_text("utf-8")
    assert text.startswith("A: toxicity_1, B: toxicity_6; corpus civil, 2026-01-15, run r2_latest. Differences are ")
    assert "### Slice all\n\n2 of 5 identities (--limit shows more), those with the lowest AUC of A first.\n" in text
    assert [line.split(" | ")[1] for line in text.splitlines() if line.startswith("|")][2:] == [
        "only_first",
        '=it\'s "a" \\| \\`b\\`; -- é',
    ]


# ---- what is refused


def test_a_night_without_a_published_run(run: Any) -> None:
    done = run(*MODELS, run_date=date(2026, 1, 16))
    assert (done.code, done.out) == (3, "")
    assert (
        done.err.splitlines()[-1]
        .split("error: ")[1]
        .startswith('run_date: 2026-01-16, corpus "civil": no run of bias_metrics is published in ')
    )
    assert "Its last nights there: 2026-01-15. Corpora of this night: none." in done.err
    done = run(*MODELS, corpus="news")
    assert done.code == 3
    assert 'Its last nights there: none. Corpora of this night: "civil", "wiki". Name one of these' in done.err


def test_a_folder_without_tables(run: Any, tmp_path: Path) -> None:
    done = run(*MODELS, folder=tmp_path / "nothing")
    assert done.code == 3
    assert "Its last nights there: none. Corpora of this night: none." in done.err


def test_names_that_the_run_lacks(run: Any) -> None:
    done = run("--models", "toxicity_1", "toxicity_9", "--slice", "long")
    assert (done.code, done.out) == (3, "")
    assert [line.split("error: ")[1] for line in done.err.splitlines() if "error: " in line] == [
        'models: "toxicity_9". The published run has "another", "toxicity_1", "toxicity_6". Name one that it has.',
        'slice: "long". The published run has "a & b", "all", "short". Name one that it has.',
    ]


def test_files_that_are_gone(run: Any, spark: SparkSession, tmp_path: Path) -> None:
    store = PathStore(str(tmp_path / "warehouse"))
    times = {"started_at": LATEST.started_at, "published_at": datetime(2026, 1, 15, 4, tzinfo=UTC)}
    ledger = frame_of(spark, BIAS_RUNS, [{"job": "bias_metrics"} | times])
    store.write(BIAS_RUNS, ledger.withColumn("corpus", F.lit("civil")).coalesce(1), LATEST)
    done = run(*MODELS, folder=tmp_path / "warehouse")
    assert done.code == 3
    assert f"{store.place(BIAS_METRICS, LATEST)}: its files are gone. The ledger has the run." in done.err


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (("--models", "m", "m"), 'models: "m" twice. Two models stand side by side.'),
        (("--models", "m"), "argument --models: expected 2 arguments"),
        ((*MODELS, "--sort", "auc"), "argument --sort: invalid choice: 'auc'"),
        ((*MODELS, "--limit", "0"), 'argument --limit: "0". It must be a whole number, 1 or more'),
        ((*MODELS, "--digits", "9"), "argument --digits: invalid choice: 9"),
        ((*MODELS, "--out", "/no/such/folder/x.csv"), 'argument --out: "/no/such/folder/x.csv". It must be a file'),
        ((*MODELS, "--out", "/"), 'argument --out: "/". It must be a file'),
        ((*MODELS, "--dry-run"), "unrecognized arguments: --dry-run"),
    ],
)
def test_wrong_usage(run: Any, flags: tuple[str, ...], fault: str) -> None:
    done = run(*flags)
    assert (done.code, done.out) == (2, "")
    assert fault in done.err.splitlines()[-1]


# ---- the query


def plain(rows: Iterable[tuple[Any, ...]], names: Iterable[str]) -> Rows:
    columns = list(names)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def test_the_query_gives_the_same_in_spark_and_duckdb(run: Any, spark: SparkSession, warehouse: Path) -> None:
    for statement in (warehouse / SPARK_FILE).read_text("utf-8").split(";")[:-1]:
        spark.sql(statement)
    query = QUERY.read_text("utf-8")
    by_spark = spark.sql(query)
    with duckdb.connect() as connection:
        connection.execute((warehouse / DUCKDB_FILE).read_text("utf-8"))
        asked = connection.execute(query)
        by_duckdb = plain(asked.fetchall(), [column[0] for column in asked.description])
    found = plain(map(tuple, by_spark.collect()), by_spark.columns)
    assert found == by_duckdb
    civil = [row for row in found if row["corpus"] == "civil"]
    assert civil == put_together(night_rows(), OF_RUN)
    # The job's columns, in the job's order, and the job's rows in its order.
    listed = read_csv(run(*MODELS, "--format", "csv").out)
    assert list(listed[0]) == by_spark.columns
    assert listed == show_csv(civil, by_spark.columns)


# ---- a catalog


@pytest.mark.slow
def test_a_night_in_a_catalog(spark: SparkSession) -> None:
    store = CatalogStore(f"spark_catalog.side_{uuid4().hex[:8]}")
    try:
        add_run(spark, store, run_at(1, "rz_first"), [row | {"bpsn_auc": 0.0} for row in night_rows()])
        add_run(spark, store, LATEST, night_rows())
        question = Question(models=("toxicity_1", "toxicity_6"), sort="bpsn_auc", limit=1)
        found = read_side_by_side(spark, store, NIGHT, "civil", question)
    finally:
        spark.sql(f"DROP SCHEMA IF EXISTS {store.schema} CASCADE")
    assert found.run == LATEST
    assert [(part.name, part.n_identities) for part in found.slices] == [("all", 5), ("a & b", 0), ("short", 1)]
    assert [row["identity"] for part in found.slices for row in part.rows] == ["black", "gay"]
