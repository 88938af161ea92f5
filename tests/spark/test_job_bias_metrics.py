"""The main job in this process, from the command line to the tables: what it prints, publishes, counts and refuses."""

from __future__ import annotations

import csv
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from biasspark.cli import job_parser, run_job
from biasspark.session import is_connect
from biasspark.tables.publish import PublishedRun, publish
from biasspark.tables.runs import Run, RunRecord
from biasspark.tables.schemas import BIAS_RUNS, TABLES, Table, tables_of
from biasspark.tables.store import PathStore
from biasspark.tables.views import SPARK_FILE
from jobs import bias_metrics as job
from tests.conftest import compiling
from tests.oracle.suite import PAIRS, auc_by_pairs, cut_cells
from tests.running_jobs import Done, ask, open_views, run_main
from tests.sample_night import night_frames, read_latest, record_of, start_run
from tests.spark_versions import say_part

NIGHT = "2026-01-15"
CANARY = "canary-3f1c"
N_ROWS = 2_000
MOST_SPARK_JOBS = 55
WRITTEN = (*tables_of("bias_metrics"), BIAS_RUNS)

CORPUS = 'o\'brien "x" `y`; DROP TABLE z --\u202e'
MODEL = "model 'one' \\ `a.b`"
SCORE = 'score `one`.two "three"'
IDENTITY = 'it\'s `a` "b".c/d=e 😀'
PREDICATE = '"; DROP TABLE x; -- é'
RACE = "race `x`"
SLICE = "lang = 'en' \\"

FOREIGN = "(others' words)"
"""Stands in a message for what differs from run to run, or is said by Java in its own way."""
COLUMNS = "It has: id, target, score, male, female, length, day, comment_text."
PREDICATE_RULE = f"It must be a Spark SQL predicate over the columns of the corpus. {COLUMNS} Correct it."
MORE_ROWS = "it looks at more than its own row, as aggregates, windows and generators do."

Rows = dict[str, list[Any]]
Tables = dict[str, dict[str, Any]]


# ---- corpora and configurations


def make_rows(n_rows: int = N_ROWS, seed: int = 11) -> Rows:
    """Two identities as annotators' fractions, NULL where nobody was asked, and a score with ties."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n_rows) < 0.3
    unasked = rng.random(n_rows) < 0.2
    male, female = (np.where(unasked, None, rng.choice([0.0, 0.4, 0.5, 1.0], n_rows)) for _ in range(2))
    return {
        "id": [f"c{number}" for number in range(n_rows)],
        "target": [0.8 if is_positive else 0.1 for is_positive in positive],
        "score": np.round(rng.normal(positive, 1), 3).tolist(),
        "male": male.tolist(),
        "female": female.tolist(),
        "length": rng.integers(1, 200, n_rows).tolist(),
        "day": [NIGHT] * n_rows,
        "comment_text": [f"{CANARY} {number}" for number in range(n_rows)],
    }


def write_parquet(folder: Path, rows: Rows, files: int = 2) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.table(rows)
    step = -(-max(table.num_rows, 1) // files)
    for number in range(files):
        pq.write_table(table.slice(number * step, step), folder / f"part-{number}.parquet")
    return folder


def toml(value: Any) -> str:
    """Write a value as TOML, tables inline; the strings of JSON are TOML's, too."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key, ensure_ascii=False)} = {toml(v)}" for key, v in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def write_config(folder: Path, **tables: Any) -> Path:
    """Write a configuration of plain names over rows of `make_rows`, with the keys that a test changes."""
    base: Tables = {
        "corpus": {"name": "comments", "path": str(folder / "corpus"), "id": "id"},
        "label": {"column": "target", "threshold": 0.5},
        "models": {"m": "score"},
        "identities": {"columns": ["male", "female"]},
        "output": {"path": str(folder / "warehouse")},
    }
    for name, changes in tables.items():
        merged = base.get(name, {}) | changes
        base[name] = {key: value for key, value in merged.items() if value is not None}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{uuid4().hex}.toml"
    path.write_text("\n".join(f"{name} = {toml(table)}" for name, table in base.items()), encoding="utf-8")
    return path


# ---- running the job


def run(config: Path, *flags: str, run_date: str = NIGHT) -> Done:
    done = run_main(job.main, "--config", config, "--run-date", run_date, *flags)
    assert CANARY not in done.out + done.err
    return done


def run_well(config: Path, *flags: str) -> Done:
    done = run(config, *flags)
    assert done.code == 0, done.err
    return done


def assert_refused(done: Done, code: int, *faults: str) -> None:
    """Say that the job ended so, with these faults and no others, one a line, and printed no result.

    A fault may hold `FOREIGN` once.
    """
    assert done.code == code, done.err
    lines = [line.partition(": error: ")[2] for line in done.err.splitlines() if ": error: " in line]
    assert len(lines) == len(faults), done.err
    for line, fault in zip(lines, faults, strict=True):
        before, foreign, after = fault.partition(FOREIGN)
        assert (line[: len(before)], line[len(line) - len(after) :]) == (before, after) if foreign else line == fault
    assert done.out == ""


def list_files(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@contextmanager
def untouched(folder: Path) -> Iterator[None]:
    """Nothing under a folder is added, changed or removed by a block."""
    before = list_files(folder)
    yield
    assert list_files(folder) == before


# ---- what Spark did


@dataclass(frozen=True)
class Effort:
    n_jobs: int
    n_scans: int


@contextmanager
def watch(spark: SparkSession, n_rows: int, found: list[Effort]) -> Iterator[None]:
    """Count the Spark jobs of a block, and the scans of a corpus of so many rows.

    Spark knows of every stage how many records its tasks read, from files or from its cache. The corpus has more rows
    than all else that a night reads, so a stage that read as many has scanned it, whatever its plan looks like. Spark
    Connect tells nothing, and nothing is found.
    """
    if is_connect(spark):
        yield
        return
    context, group = spark.sparkContext, uuid4().hex
    context.setJobGroup(group, "watched")
    try:
        yield
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None clears it
    context._jsc.sc().listenerBus().waitUntilEmpty()
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(group)]
    stages = {stage for job in jobs if job for stage in job.stageIds if tracker.getStageInfo(stage)}
    n_scans = sum(store.lastStageAttempt(stage).inputRecords() // n_rows for stage in stages)
    found.append(Effort(len(jobs), n_scans))


# ---- a night with everything


@dataclass(frozen=True)
class Night:
    """A night of hostile names and bad rows, then the same night again from a clean corpus."""

    folder: Path
    rows: Rows
    clean: Rows
    first: Done
    second: Done
    efforts: list[Effort]

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"


def hostile_rows() -> Rows:
    rows = make_rows()
    rows[SCORE] = rows.pop("score")
    rows[IDENTITY] = rows.pop("male")
    rows[RACE] = ["O'Brien", 'a "b" `c`', None, "=x"] * (N_ROWS // 4)
    return rows


def spoil(rows: Rows) -> Rows:
    """Make bad rows, 40 to 47 each bad in its way; 46 and 47 count for no model, 48 and 49 lack an annotation."""
    rows = {name: list(values) for name, values in rows.items()}
    rows[SCORE][40:46] = [None, None, math.nan, math.inf, -math.inf, math.nan]
    rows["target"][46] = None
    rows["id"][47] = None
    return rows


@pytest.fixture(scope="module")
def night(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Night:
    folder = tmp_path_factory.mktemp("night")
    clean = hostile_rows()
    rows = spoil(clean)
    write_parquet(folder / "corpus", rows)
    write_parquet(folder / "clean", {name: values[:-100] for name, values in clean.items()})
    config = write_config(
        folder,
        corpus={"name": CORPUS},
        models={"m": None, MODEL: SCORE, "lengths": "length"},
        identities={"columns": [IDENTITY, "female"], "categorical": [RACE], "predicates": {PREDICATE: "length > 100"}},
        slices={SLICE: "length < 150"},
        thresholds={"at": [0.5, 1.0]},
        histograms={"bins": 10},
        label_balance={"length": "length", "buckets": [50, 100]},
        pinned_auc={},
    )
    efforts: list[Effort] = []
    with compiling(spark_session), watch(spark_session, N_ROWS, efforts):
        first = run_well(config)
    with watch(spark_session, N_ROWS - 100, efforts):
        second = run_well(config, "--set", f"corpus.path={folder}/clean", "--set", "identities.threshold=0.45")
    return Night(folder, rows, clean, first, second, efforts)


def expected_aucs(rows: Rows, inside: list[bool | None], use: Callable[[int], bool]) -> dict[str, float]:
    """The six metrics by their definitions, of the rows that count."""
    kept = [n for n in range(len(rows["id"])) if use(n)]
    cells = cut_cells(
        [rows[SCORE][n] for n in kept],
        [rows["target"][n] >= 0.5 for n in kept],
        [math.nan if inside[n] is None else float(bool(inside[n])) for n in kept],
    )
    found = {name: auc_by_pairs(cells[low], cells[high]) for name, (low, high) in PAIRS.items()}
    return found | {name: found[name] - 0.5 for name in ("negative_aeg", "positive_aeg")}


def test_a_night_prints_a_table_and_one_line_of_json(night: Night) -> None:
    *table, last = night.first.out.splitlines()
    summary = json.loads(last)
    assert last.isascii()
    assert table[0].split() == [
        *["model", "slice", "identity", "subgroup_auc", "bpsn_auc", "bnsp_auc", "negative_aeg", "positive_aeg"]
    ]
    assert len(table) == 11
    assert any(IDENTITY in line for line in table)
    assert summary.pop("seconds") > 0
    run_id = summary.pop("run_id")
    assert re.fullmatch(r"r\d{8}T\d{12}_[0-9a-f]{6}", run_id)
    n_identities = 2 + 3 + 1
    assert summary == {
        "job": "bias_metrics",
        "status": "published",
        "run_date": NIGHT,
        "n_rows": N_ROWS,
        "n_rejected": 2,
        "rejects": {"null_id": 1, "null_label": 1, "null_score": 2, "nan_score": 2, "infinite_score": 2},
        "warnings": [],
        "tables": {
            "u_statistics": 2 * 2 * (6 * n_identities + 1),
            "bias_metrics": 2 * 2 * n_identities,
            "model_summary": 4,
            "pinned_auc": 2 * 2 * n_identities,
            "threshold_rates": 2 * 2 * n_identities * 2,
            "threshold_summary": 2 * 2 * 2,
            "score_histograms": len(ask(night.warehouse, f"SELECT 1 FROM score_histograms WHERE run_id = '{run_id}'")),
            "template_scores": 0,
            "label_balance": (n_identities + 1) * 2,
            "bias_alerts": 0,
            "jackknife_statistics": 0,
            "score_blocks": 0,
            "rejected_rows": 8,
        },
        "output": str(night.warehouse),
        "gate": None,
    }
    stages = [line.split("] ", 1)[1].split()[0] for line in night.first.err.splitlines()]
    assert stages == ["starting", "surveying", "ranking", "publishing", "done"]


def test_the_numbers_are_those_of_the_definitions(night: Night) -> None:
    rows, usable = night.rows, set(range(N_ROWS)) - set(range(40, 48))
    annotated: list[bool | None] = [None if value is None else value >= 0.5 for value in rows[IDENTITY]]
    cases = {
        # A row is decided where any column of annotations is; these have NULL in the same rows.
        (IDENTITY, "all"): (annotated, lambda n: n in usable),
        (IDENTITY, SLICE): (annotated, lambda n: n in usable and rows["length"][n] < 150),
        (PREDICATE, "all"): ([length > 100 for length in rows["length"]], lambda n: n in usable),
        (f"{RACE}=O'Brien", "all"): (
            [None if race is None else race == "O'Brien" for race in rows[RACE]],
            lambda n: n in usable,
        ),
    }
    run_id = night.first.summary["run_id"]
    views = open_views(night.warehouse)
    for (identity, cut), (inside, use) in cases.items():
        found = views.execute(
            f"SELECT {', '.join(PAIRS)} FROM bias_metrics WHERE (run_id, model, identity, slice) = (?, ?, ?, ?)",
            [run_id, MODEL, identity, cut],
        ).fetchall()
        wanted = expected_aucs(rows, inside, use)
        assert found == [pytest.approx(tuple(wanted.values()), abs=1e-14)]


def test_hostile_names_come_back_as_they_are(night: Night) -> None:
    columns = "corpus, model, slice, identity"
    found = ask(night.warehouse, f"SELECT DISTINCT {columns} FROM latest_bias_metrics")
    races = [f"{RACE}={race}" for race in ("O'Brien", 'a "b" `c`', "=x")]
    assert set(found) == {
        (CORPUS, model, cut, identity)
        for model in (MODEL, "lengths")
        for cut in ("all", SLICE)
        for identity in (IDENTITY, "female", PREDICATE, *races)
    }
    assert set(ask(night.warehouse, "SELECT corpus, model, slice FROM latest_model_summary")) == {
        (CORPUS, model, cut) for model in (MODEL, "lengths") for cut in ("all", SLICE)
    }


def test_spark_pandas_and_duckdb_read_the_same_tables(spark: SparkSession, night: Night) -> None:
    for statement in (night.warehouse / SPARK_FILE).read_text(encoding="utf-8").split(";\n"):
        if statement.strip():
            spark.sql(statement)
    for table in WRITTEN:
        query = f"SELECT {', '.join(table.names)} FROM {table.name}"
        by_duckdb = ask(night.warehouse, query)
        assert len(by_duckdb) == len(pd.read_parquet(night.warehouse / table.name))
        if table.name not in ("bias_runs", "rejected_rows"):  # a map and NULLs, which do not sort
            by_spark = [tuple(row) for row in spark.sql(query).collect()]
            assert sorted(map(repr, by_spark)) == sorted(map(repr, by_duckdb))
    latest = spark.sql("SELECT DISTINCT run_id FROM latest_u_statistics").collect()
    assert [row["run_id"] for row in latest] == [night.second.summary["run_id"]]


def test_rejected_rows_are_kept_with_their_reasons_and_without_text(night: Night) -> None:
    run_id = night.first.summary["run_id"]
    kept = ask(night.warehouse, f"SELECT row_id, model, reason FROM rejected_rows WHERE run_id = '{run_id}'")
    assert sorted(kept, key=repr) == sorted(
        [
            ("c40", MODEL, "null_score"),
            ("c41", MODEL, "null_score"),
            ("c42", MODEL, "nan_score"),
            ("c43", MODEL, "infinite_score"),
            ("c44", MODEL, "infinite_score"),
            ("c45", MODEL, "nan_score"),
            ("c46", None, "null_label"),
            (None, None, "null_id"),
        ],
        key=repr,
    )
    ledger = ask(
        night.warehouse,
        "SELECT corpus, job, status, n_rows, n_rejected, rejects, warnings, run_id FROM bias_runs ORDER BY started_at",
    )
    counts = {"null_id": 1, "null_label": 1, "null_score": 2, "nan_score": 2, "infinite_score": 2}
    assert ledger == [
        (CORPUS, "bias_metrics", "published", N_ROWS, 2, counts, [], run_id),
        (CORPUS, "bias_metrics", "published", N_ROWS - 100, 0, {}, [], night.second.summary["run_id"]),
    ]


def test_no_text_of_a_comment_is_in_any_file(night: Night) -> None:
    secret = CANARY.encode()
    files = [path for path in night.warehouse.rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        assert secret not in path.read_bytes()
    for table in WRITTEN:  # pages are compressed
        assert CANARY not in repr(pd.read_parquet(night.warehouse / table.name).to_numpy().tolist())


def test_a_rerun_supersedes_the_night_and_overrides_hold(night: Night) -> None:
    run_id = night.second.summary["run_id"]
    for table in ("bias_metrics", "u_statistics", "model_summary"):
        assert ask(night.warehouse, f"SELECT DISTINCT run_id FROM latest_{table}") == [(run_id,)]
        assert len(ask(night.warehouse, f"SELECT DISTINCT run_id FROM {table}")) == 2
    assert ask(night.warehouse, "SELECT * FROM latest_rejected_rows") == []
    configs = [json.loads(row[0]) for row in ask(night.warehouse, "SELECT config FROM bias_runs ORDER BY started_at")]
    assert [config["identities"]["threshold"] for config in configs] == [0.5, 0.45]
    assert configs[1]["corpus"]["path"] == f"{night.folder}/clean"
    assert len(ask(night.warehouse, "SELECT DISTINCT config_hash FROM bias_runs")) == 2


@pytest.mark.classic("Spark Connect does not say what its jobs read")
def test_the_corpus_is_scanned_twice_and_once_more_for_rejects(night: Night) -> None:
    with_rejects, without = night.efforts
    assert with_rejects.n_scans == 3
    assert without.n_scans == 2


@pytest.mark.classic("Spark Connect does not say what its jobs read")
def test_a_night_is_a_fixed_number_of_spark_jobs(night: Night) -> None:
    """Two models, two slices and six identities: none of them may cost a job of its own."""
    assert max(effort.n_jobs for effort in night.efforts) <= MOST_SPARK_JOBS


@pytest.mark.slow
@pytest.mark.classic("Spark Connect does not say what its jobs read")
def test_repeated_ids_are_left_out_for_two_scans_more(spark: SparkSession, tmp_path: Path) -> None:
    rows = make_rows() | {"id": [f"c{number % 1950}" for number in range(N_ROWS)]}
    config = write_config(tmp_path, corpus={"duplicates": "reject"})
    write_parquet(tmp_path / "corpus", rows)
    efforts: list[Effort] = []
    with watch(spark, N_ROWS, efforts):
        done = run_well(config)
    assert done.summary["rejects"] == {"duplicate_id": 2 * (N_ROWS - 1950)}
    assert ask(tmp_path / "warehouse", "SELECT count(*), count(DISTINCT row_id) FROM latest_rejected_rows") == [
        (2 * (N_ROWS - 1950), N_ROWS - 1950)
    ]
    assert efforts[0].n_scans == 4  # survey, ids, ranking, rejects
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()


@pytest.mark.slow
def test_what_fails_after_a_night_is_published_is_a_warning(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError(CANARY)

    monkeypatch.setattr("biasspark.night.worst_identities", fail)
    write_parquet(tmp_path / "corpus", make_rows(200))
    done = run_well(write_config(tmp_path))
    assert done.summary["status"] == "published"
    [warning] = done.summary["warnings"]
    assert warning.startswith(f"{done.summary['run_id']} is published, but a later step failed: unexpected ValueError")
    assert ask(tmp_path / "warehouse", "SELECT count(*) > 0 FROM latest_bias_metrics") == [(True,)]


def test_a_dry_run_prints_the_plan_and_writes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    write_parquet(tmp_path / "corpus", make_rows(20))
    config = write_config(tmp_path, slices={"short": "length < 50"})
    with untouched(tmp_path):
        done = run_well(config, "--dry-run", "--set", "models.other=length", "--set", 'slices."a b"=length > 9')
    assert not (tmp_path / "warehouse").exists()
    assert done.summary["status"] == "planned"
    plan = dict(line.split(":", 1) for line in done.out.splitlines()[:-1])
    assert plan["corpus"].strip() == f"comments: {tmp_path}/corpus (8 columns)"
    assert plan["models"].strip() == "m = score, other = length"
    assert plan["identities"].strip() == "2 columns (male, female)"
    assert plan["slices"].strip() == "all, short: length < 50, a b: length > 9"
    assert all(table.name in plan["tables"] for table in WRITTEN)
    assert plan["scans"].strip().startswith("2 (survey, ranking)")
    assert plan["shuffles"].strip().startswith("1 of the corpus")


# ---- other sources and places


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


# ---- what is refused


@pytest.fixture(scope="module")
def published(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus and a night that is published, which no failing run may touch."""
    folder = tmp_path_factory.mktemp("published")
    write_parquet(folder / "corpus", make_rows(100))
    publish(night_frames(spark_session), start_run("comments"), PathStore(f"{folder}/warehouse"), record_of())
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
        '--set "nokey": this is not a dotted TOML key with a value. It must read table.key=value. Write, for example, '
        "--set label.threshold=0.5.",
        "[label] colour: there is no such key. The keys of [label] are column, threshold, positive, range. Did you "
        "mean column?",
        '[label] threshold = "half". It must be a number, not text. Correct it, or remove the line.',
        '[identities] threshold = "lots". It must be a number, not text. Remove the line to use the default, 0.5.',
        '[slices] all = "true". The slice all is always there and holds every row. Remove the line, or rename the '
        "slice.",
        '[ranking] engine = "fast". It must be one of "blocks", "windows", "binned". Remove the line to use the '
        'default, "blocks".',
    )
    assert "starting Spark" not in done.err


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (["--run-date", NIGHT], "the following arguments are required: --config"),
        (["--config", "x.toml"], "the following arguments are required: --run-date"),
        (
            ["--config", "x.toml", "--run-date", "15.1.2026"],
            'argument --run-date: "15.1.2026". It must be a date as YYYY-MM-DD, from 1900 on. Write, for example, '
            "2026-03-31.",
        ),
        (["--config", "x.toml", "--run-date", NIGHT, "--fast"], "unrecognized arguments: --fast"),
        (
            ["--config", "nowhere.toml", "--run-date", NIGHT],
            '"nowhere.toml": no such file or directory. The configuration is a TOML file. Name one by --config.',
        ),
    ],
    ids=["no config", "no date", "no such date", "no such flag", "no such file"],
)
def test_wrong_usage_ends_with_2(flags: list[str], fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_job(job.main, job_parser("Measure."), flags) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines()[-1].partition(": error: ")[2] == fault
    assert "Traceback" not in printed.err


def test_missing_and_mistyped_columns_end_with_3_all_at_once(published: Path) -> None:
    config = write_config(
        published,
        corpus={"id": "key", "run_date_column": "created", "filter": "lang = 'en'"},
        label={"column": "toxicity"},
        models={"m": "comment_text", "n": "Score"},
        identities={"columns": ["male", "jewish"], "categorical": ["race"], "array": "female"},
        slices={"a": "nope > 1", "b": "length", "c": "length >", "d": "max(length) > 1"},
    )
    with untouched(published):
        done = run(config)
    mend = "Name one that it has, or set `[corpus] options = { mergeSchema = true }` where only some files have it."
    rule = "It must be a Spark SQL predicate over the columns of the corpus."
    assert_refused(
        done,
        3,
        f'[corpus] run_date_column = "created": the corpus has no such column. {COLUMNS} Name one that it has, or '
        "remove the line to read all rows.",
        f"[corpus] filter = \"lang = 'en'\": a column that it names is not there. Column: `lang`. {rule} Did you mean "
        "'length'?",
        f"[corpus] id: the corpus has no column 'key'. {mend}",
        f"[label] column: the corpus has no column 'toxicity'. {mend}",
        "[models] n: the corpus has no column 'Score'. Did you mean 'score'?",
        f"[identities] columns: the corpus has no column 'jewish'. {mend}",
        f"[identities] categorical: the corpus has no column 'race'. {mend}",
        "[identities] array: column 'female' is of type double. It must be an array of strings. Name another column, "
        "or cast it.",
        f'[slices] a = "nope > 1": a column that it names is not there. Column: `nope`. {rule} Correct it.',
        '[slices] b = "length": it is of type bigint. It must be true or false. Compare it with a value.',
        f'[slices] c = "length >": this is not valid Spark SQL. {rule} Correct it.',
        f'[slices] d = "max(length) > 1": {MORE_ROWS} {rule} Correct it.',
    )
    assert done.err.count("\n") == 13  # and one line of progress: Spark's own warnings do not show


Damage = Callable[[Path], None]


def cut_short(folder: Path) -> None:
    os.truncate(folder / "part-1.parquet", 200)


def overwrite(text: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / "part-1.parquet").write_text(text)

    return damage


def make_empty(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def corrupt_pages(folder: Path) -> None:
    """Zero the pages and keep the footer, so that the schema can be read."""
    file = folder / "part-1.parquet"
    whole = bytearray(file.read_bytes())
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    whole[4:-footer] = bytes(len(whole) - footer - 4)
    file.write_bytes(whole)


def change_type(folder: Path) -> None:
    rows = make_rows(100)
    rows["score"] = [CANARY] * 100
    pq.write_table(pa.table(rows), folder / "part-1.parquet")


def remove_rows(folder: Path) -> None:
    for file in folder.iterdir():
        pq.write_table(pq.read_table(file).slice(0, 0), file)


def score_nothing(folder: Path) -> None:
    rows = make_rows(100)
    rows["score"] = [math.nan] * 99 + [math.inf]
    write_parquet(folder, rows)


def add_twin(folder: Path) -> None:
    write_parquet(folder, make_rows(100) | {"Score": [0.5] * 100})


NO_ROWS = "corpus: no rows. The path, the filter and the run date leave nothing to measure. Check them."
CORRUPT = "a file cannot be read. It is corrupt or of another format. Replace it."


DAMAGES: list[tuple[str, Damage, str]] = [
    (
        "columns that differ in case",
        add_twin,
        "corpus: path {path}: two of its columns differ in case alone. Spark cannot tell them apart. Rename one. "
        "Column: score.",
    ),
    ("corrupt pages", corrupt_pages, f"corpus: {CORRUPT} File: {{path}}/part-1.parquet."),
]
OF_THE_CORPUS: list[tuple[str, Damage, str]] = [
    ("empty folder", make_empty, "corpus: path {path}: there are no data files here. Check the path and the format."),
    (
        "zero-byte file",
        overwrite(""),
        "corpus: path {path}: 1 file has no bytes. Data files are never empty: a copy has failed. Replace or remove "
        "{path}/part-1.parquet.",
    ),
    ("garbage", overwrite(f"{CANARY} is no Parquet" * 20), f"corpus: {CORRUPT} File: {{path}}/part-1.parquet."),
    ("truncated file", cut_short, f"corpus: {CORRUPT} File: {{path}}/part-1.parquet."),
    (
        "another type in one file",
        change_type,
        "corpus: a column has another type in one file than in others. Write those of the wrong type anew, or have "
        "Spark 4 read numbers as the wider type by a `schema`. "
        "Column: score, BINARY for double. File: {path}/part-1.parquet.",
    ),
    ("no rows", remove_rows, NO_ROWS),
    (
        "no usable row",
        score_nothing,
        "corpus: none of its 100 rows can be used (nan_score 99, infinite_score 1). A row needs a label and a "
        "score. Check [label] and [models].",
    ),
]
"""What test_corpus.py tries without a job."""


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        *(pytest.param(*case, id=name) for name, *case in DAMAGES),
        *(pytest.param(*case, id=name, marks=pytest.mark.slow) for name, *case in OF_THE_CORPUS),
    ],
)
def test_input_that_cannot_be_read_ends_with_3(
    spark: SparkSession, published: Path, tmp_path: Path, damage: Damage, fault: str
) -> None:
    path = write_parquet(tmp_path / "corpus", make_rows(100))
    damage(path)
    config = write_config(tmp_path, corpus={"path": str(path)}, output={"path": f"{published}/warehouse"})
    with untouched(published):
        done = run(config)
    assert_refused(done, 3, fault.format(path=path))


NO_SUCH_FILES = "Spark cannot open such a path. Check its scheme and host, and the jars of the session."
SOURCES: list[tuple[dict[str, Any], str]] = [
    ({"path": "nofs://x/y"}, f"corpus: path nofs://x/y: {NO_SUCH_FILES}"),
    (
        {"path": None, "table": "nowhere.comments"},
        "corpus: table nowhere.comments: there is no such table. Check `[corpus] table` and the catalogs of the "
        "session.",
    ),
    (
        {"filter": "length"},
        '[corpus] filter = "length": it is of type bigint. It must be true or false. Compare it with a value.',
    ),
    (
        {"filter": "comment_text RLIKE '('"},
        f"[corpus] filter = \"comment_text RLIKE '('\": a regular expression is invalid. Correct it.{FOREIGN}",
    ),
]
SOURCES_OF_THE_CORPUS: list[tuple[dict[str, Any], str]] = [
    ({"path": "/nowhere/at all"}, "corpus: path /nowhere/at all: there is nothing at this path. Check the path."),
    (
        {"format": "iceburg"},
        "corpus: path {path}: Spark knows no such format. Check `[corpus] format` and the jars of the session. "
        "Format: iceburg. Did you mean iceberg?",
    ),
    ({"format": "orc"}, f"corpus: path {{path}}: {CORRUPT} File: {{path}}/part-{FOREIGN}.parquet."),
    ({"run_date_column": "day", "filter": "day < '2026'"}, NO_ROWS),
    (
        {"run_date_column": "night"},
        f'[corpus] run_date_column = "night": the corpus has no such column. {COLUMNS} Name one that it has, or remove '
        "the line to read all rows.",
    ),
    (
        {"run_date_column": "score"},
        '[corpus] run_date_column = "score": it is of type double. It must be a date, a time, or a text that holds a '
        "date. Name another column, or cast it.",
    ),
    ({"filter": "length >"}, f'[corpus] filter = "length >": this is not valid Spark SQL. {PREDICATE_RULE}'),
    (
        {"filter": "nope"},
        f'[corpus] filter = "nope": a column that it names is not there. Column: `nope`. {PREDICATE_RULE}',
    ),
    (
        {"filter": "comment_text > 5"},
        '[corpus] filter = "comment_text > 5": a text cannot be cast to the requested type. Use try_cast.'
        + say_part("comment_text > 5"),
    ),
    (
        {"filter": "1 / (length - length) > 1"},
        '[corpus] filter = "1 / (length - length) > 1": something is divided by zero. Use try_divide.'
        + say_part("1 / (length - length)"),
    ),
    (
        {"filter": "split(comment_text, ' ')[7] = ''"},
        "[corpus] filter = \"split(comment_text, ' ')[7] = ''\": an array has no such place. Use get."
        + say_part("split(comment_text, ' ')[7]"),
    ),
    (
        {"filter": "raise_error(comment_text) is null"},
        '[corpus] filter = "raise_error(comment_text) is null": an error is raised. Correct the expression.',
    ),
]
"""What test_corpus.py tries without a job."""


@pytest.mark.parametrize(
    ("corpus", "fault"),
    [*SOURCES, *(pytest.param(*case, marks=pytest.mark.slow) for case in SOURCES_OF_THE_CORPUS)],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_source_that_does_not_fit_ends_with_3(
    spark: SparkSession, published: Path, corpus: dict[str, str], fault: str
) -> None:
    with untouched(published / "warehouse"):
        done = run(write_config(published, corpus=corpus))
    assert_refused(done, 3, fault.replace("{path}", f"{published}/corpus"))


def test_a_file_without_bytes_is_told_from_others_whatever_their_names(spark: SparkSession, tmp_path: Path) -> None:
    """Hive writes the colon of a partition's value as %3A, so such names are common."""
    part = write_parquet(tmp_path / "corpus" / "at=2026-01-15 03%3A00", make_rows(100))
    (part / "part-1.parquet").rename(part / "a%20b é.parquet")
    (part / "_SUCCESS").touch()
    assert run(write_config(tmp_path), "--dry-run").code == 0
    empty = part / "c d%20e.parquet"
    empty.touch()
    done = run(write_config(tmp_path), "--dry-run")
    assert_refused(
        done,
        3,
        f"corpus: path {tmp_path}/corpus: 1 file has no bytes. Data files are never empty: a copy has failed. Replace "
        f"or remove {empty}.",
    )


def test_passwords_in_paths_are_not_shown(spark: SparkSession, published: Path) -> None:
    secret = "nofs://key:hunter2@bucket/x"
    done = run(write_config(published, corpus={"path": secret}))
    assert_refused(done, 3, f"corpus: path nofs://(redacted)@bucket/x: {NO_SUCH_FILES}")
    assert "hunter2" not in done.err
    done = run(write_config(published, output={"path": secret}), "--dry-run")
    place = f"nofs://(redacted)@bucket/x{'/u_statistics' if is_connect(spark) else ''}"
    assert_refused(
        done, 1, f"{place}: could not be read, {FOREIGN}. Nothing was published. Mend the cause, then run again."
    )
    assert "hunter2" not in done.err


def test_a_night_without_rows_ends_with_3(spark: SparkSession, published: Path) -> None:
    config = write_config(published, corpus={"run_date_column": "day"})
    with untouched(published):
        done = run(config, run_date="2026-01-16")
    assert_refused(done, 3, NO_ROWS)


def test_a_failure_that_nobody_foresaw_ends_with_1_and_quotes_nothing(
    spark: SparkSession, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError(CANARY)

    monkeypatch.setattr("biasspark.night.measure", fail)
    config = write_config(published)
    with untouched(published):
        done = run(config)
    assert_refused(
        done,
        1,
        f"unexpected ValueError in biasspark/night.py, line {FOREIGN}. Its message may quote data and is left out. Run "
        "again with --debug to see it.",
    )
