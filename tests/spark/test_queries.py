"""The queries of conf/sql: one text each, run by Spark, by DuckDB, in the SQL shell and through the thrift server."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from biasspark.tables.runs import Run
from biasspark.tables.store import PathStore
from biasspark.tables.views import SPARK_FILE, refresh_views
from tests.harness.example_run import add_run
from tests.harness.running_jobs import open_views
from tests.harness.submitting import daemon, read_from, run_program, spark_home

FOLDER = Path(__file__).resolve().parents[2] / "conf" / "sql"
QUERIES = (
    "worst_identities",
    "identity_trend",
    "changed_since_accepted",
    "which_slice",
    "side_by_side",
    "stale_windows",
)
FIRST = date(2026, 1, 1)

Rows = list[dict[str, Any]]


def query_of(name: str, **edits: str) -> str:
    text = (FOLDER / f"{name}.sql").read_text("utf-8")
    for old, new in edits.items():
        assert f"'{old}'" in text
        text = text.replace(f"'{old}'", f"'{new}'")
    return text


def metrics_of(model: str, cut: str, identity: str, auc: float | None, width: float = 0.01) -> dict[str, Any]:
    """Give a row with a BPSN AUC and an interval about it, whose other metrics are as good as can be."""
    row: dict[str, Any] = {"model": model, "slice": cut, "identity": identity, "crossed": " & " in identity}
    row |= {"n_subgroup_negative": 60, "n_subgroup_positive": 40, "bias": "negatives_shifted_up", "bias_size": "large"}
    for name in ("subgroup_auc", "bnsp_auc"):
        row |= {name: 0.99, f"{name}_low": 0.98, f"{name}_high": 1.0}
    for name in ("negative_aeg", "positive_aeg"):
        row |= {name: 0.0, f"{name}_low": -0.01, f"{name}_high": 0.01}
    if auc is not None:
        row |= {"bpsn_auc": auc, "bpsn_auc_low": auc - width, "bpsn_auc_high": auc + width}
    return row


def rows_of_day(day: int) -> dict[str, Rows]:
    """Give two models and two slices: `gay` loses 0.01 a day, `few` is lower still and wide, `none` has no value."""
    rows = [
        metrics_of("new", "all", "gay", 0.9 - day / 100),
        metrics_of("new", "all", "male", 0.95),
        metrics_of("new", "all", "few", 0.5, width=0.45),
        metrics_of("new", "all", "none", None),
        metrics_of("new", "all", "gay & male", 0.2),
        metrics_of("new", "short", "gay", 0.6),
        metrics_of("new", "short", "male", 0.945),
        metrics_of("old", "all", "gay", 0.7),
        metrics_of("old", "all", "male", 0.96),
    ]
    return {"bias_metrics": rows}


def merge_of(folder: Path, run_id: str, hour: int, merged: list[str] | None) -> None:
    """Give the ledger a window of days 0 and 1."""
    run = run_of(1, run_id, hour, "window_metrics")
    add_run(folder, run, {}, window_start=FIRST, merged_run_ids=merged)


def run_of(day: int, run_id: str, hour: int = 1, job: str = "bias_metrics", corpus: str = "civil") -> Run:
    return Run(FIRST + timedelta(days=day), corpus, job, run_id, datetime(2026, 3, 1, hour, tzinfo=UTC))


@pytest.fixture(scope="module")
def warehouse(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Days 0, 1, 29 and 31: of 29 a person accepted the first of its two runs, of 31 the gate did, and 1 has none.

    A window merged the first run of day 1.
    """
    folder = tmp_path_factory.mktemp("queries") / "it's"
    add_run(folder, run_of(0, "r0"), rows_of_day(0), status="accepted")
    add_run(folder, run_of(1, "r1", 2), rows_of_day(1))
    merge_of(folder, "w1", 2, ["r0", "r1"])
    add_run(folder, run_of(1, "r1_again", 3), rows_of_day(2))
    add_run(folder, run_of(29, "r29"), rows_of_day(29))
    add_run(folder, run_of(29, "r29_failed", 2), rows_of_day(45))
    acceptance = {"status": "accepted", "accepts_run_id": "r29", "accepted_by": "Ada"}
    add_run(folder, run_of(29, "r_accepts", 3, "accept_run"), {}, **acceptance)
    add_run(folder, run_of(31, "r31"), rows_of_day(31), status="accepted")
    add_run(folder, run_of(31, "r31_failed", 2), rows_of_day(59))
    assert refresh_views(spark_session, PathStore(str(folder))) == ()
    return folder


def run_in_duckdb(folder: Path, *queries: str) -> list[Rows]:
    views, found = open_views(folder), list[Rows]()
    for query in queries:
        result = views.execute(query)
        names = [column[0] for column in result.description]
        found.append([dict(zip(names, values, strict=True)) for values in result.fetchall()])
    return found


def ask(spark: SparkSession, folder: Path, name: str) -> Rows:
    """Refresh the views of a folder, and ask one of the queries."""
    assert refresh_views(spark, PathStore(str(folder))) == ()
    (rows,) = run_in_duckdb(folder, TEXTS[name])
    return rows


EDITS = {
    "identity_trend": {"muslim": "gay", "toxicity_6": "new"},
    "side_by_side": {"toxicity_1": "old", "toxicity_6": "new"},
}
TEXTS = {name: query_of(name, **EDITS.get(name, {})) for name in QUERIES}


@pytest.fixture(scope="module")
def answers(warehouse: Path) -> dict[str, Rows]:
    return dict(zip(TEXTS, run_in_duckdb(warehouse, *TEXTS.values()), strict=True))


def test_every_query_is_tested() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.sql")) == sorted(QUERIES)


@pytest.mark.slow
@pytest.mark.spark("views for Spark")
def test_spark_gives_what_duckdb_gives(spark: SparkSession, warehouse: Path, answers: dict[str, Rows]) -> None:
    for statement in (warehouse / SPARK_FILE).read_text("utf-8").split(";")[:-1]:
        spark.sql(statement)
    assert {name: [row.asDict() for row in spark.sql(text).collect()] for name, text in TEXTS.items()} == answers


def test_worst_is_what_is_surely_low(answers: dict[str, Rows]) -> None:
    rows = [row for row in answers["worst_identities"] if (row["model"], row["slice"]) == ("new", "all")]
    # The point of `few` is lower, but it may as well be good; where a metric has no value the others count.
    assert [(row["place"], row["identity"], row["metric"]) for row in rows] == [
        (1, "gay", "bpsn_auc"),
        (2, "few", "bpsn_auc"),
        (3, "male", "bpsn_auc"),
        (4, "none", "bnsp_auc"),
    ]
    assert {row["run_date"] for row in answers["worst_identities"]} == {FIRST + timedelta(days=31)}
    assert (rows[0]["bias"], rows[0]["bias_size"], rows[0]["accepted"]) == ("negatives_shifted_up", "large", True)
    # Of the accepted run, and not of the later one that failed.
    assert rows[0]["value"] == pytest.approx(0.59, abs=1e-12)


def test_the_trend_has_the_runs_of_thirty_days(answers: dict[str, Rows]) -> None:
    rows = answers["identity_trend"]
    assert [(row["run_id"], row["accepted"]) for row in rows] == [("r29", True), ("r31", True)]
    assert [row["bpsn_auc"] for row in rows] == pytest.approx([0.61, 0.59], abs=1e-12)
    assert [row["bpsn_auc_change"] for row in rows] == [None, pytest.approx(-0.02, abs=1e-12)]
    assert rows[1]["subgroup_auc_change"] == 0


def test_changes_are_those_since_the_run_that_a_person_accepted(answers: dict[str, Rows]) -> None:
    rows = answers["changed_since_accepted"]
    assert {(row["accepted_run_id"], row["run_id"]) for row in rows} == {("r29", "r31_failed")}
    assert (rows[0]["identity"], rows[0]["slice"], rows[0]["model"]) == ("gay", "all", "new")
    assert rows[0]["most_worsened"] == pytest.approx(0.3, abs=1e-12)
    assert rows[0]["apart"] is True
    assert [row["apart"] for row in rows[1:]] == [False] * 7


@pytest.mark.parametrize(
    ("accepted", "latest", "apart"), [(-0.2, 0.18, False), (-0.2, 0.24, True), (0.2, -0.18, False), (0, 0.03, True)]
)
def test_a_gap_that_changes_its_sign_is_apart_if_it_is_farther_from_0(
    spark: SparkSession, tmp_path: Path, accepted: float, latest: float, apart: bool
) -> None:
    for day, gap in enumerate((accepted, latest)):
        interval = {"negative_aeg": gap, "negative_aeg_low": gap - 0.01, "negative_aeg_high": gap + 0.01}
        rows = {"bias_metrics": [metrics_of("new", "all", "gay", 0.9) | interval]}
        add_run(tmp_path, run_of(day, f"r{day}"), rows, status="published" if day else "accepted")
    (row,) = ask(spark, tmp_path, "changed_since_accepted")
    assert row["negative_aeg_change"] == pytest.approx(abs(latest) - abs(accepted), abs=1e-12)
    assert row["apart"] is apart


def test_without_an_accepted_run_there_is_nothing_to_compare_with(spark: SparkSession, tmp_path: Path) -> None:
    add_run(tmp_path, run_of(0, "r0"), rows_of_day(0))
    rows = ask(spark, tmp_path, "changed_since_accepted")
    assert len(rows) == 8
    assert {(row["accepted_run_id"], row["bpsn_auc_change"], row["apart"]) for row in rows} == {(None, None, False)}


def test_a_corpus_without_an_accepted_run_is_shown_as_such(spark: SparkSession, tmp_path: Path) -> None:
    """Without a gate no run is accepted, and a dashboard is not empty for it."""
    add_run(tmp_path, run_of(0, "r0"), rows_of_day(0))
    add_run(tmp_path, run_of(0, "r_wiki", corpus="wiki"), rows_of_day(0), status="accepted")
    for name in ("worst_identities", "identity_trend", "which_slice"):
        rows = ask(spark, tmp_path, name)
        assert {(row["corpus"], row["accepted"]) for row in rows} == {("civil", False), ("wiki", True)}


def test_a_date_that_was_accepted_and_run_again_is_not_compared_with_itself(
    spark: SparkSession, tmp_path: Path
) -> None:
    add_run(tmp_path, run_of(0, "r0"), rows_of_day(0), status="accepted")
    add_run(tmp_path, run_of(1, "r1", 2), rows_of_day(1), status="accepted")
    add_run(tmp_path, run_of(1, "r1_again", 3), rows_of_day(1))
    rows = ask(spark, tmp_path, "changed_since_accepted")
    assert {(row["accepted_run_id"], row["run_id"]) for row in rows} == {("r0", "r1_again")}
    assert rows[0]["most_worsened"] == pytest.approx(0.01, abs=1e-12)


def test_a_window_is_stale_once_a_date_of_it_was_run_again(
    spark: SparkSession, answers: dict[str, Rows], tmp_path: Path
) -> None:
    stale = [
        (row["window_start"], row["run_date"], row["stale_date"], row["merged_run_id"], row["run_id"])
        for row in answers["stale_windows"]
    ]
    second = FIRST + timedelta(days=1)
    assert stale == [(FIRST, second, second, "r1", "r1_again")]

    def ask_stale() -> list[tuple[str | None, str]]:
        return [(row["merged_run_id"], row["run_id"]) for row in ask(spark, tmp_path, "stale_windows")]

    def merge(merged: list[str] | None) -> list[tuple[str | None, str]]:
        hour = next(hours)
        merge_of(tmp_path, f"w{hour}", hour, merged)
        return ask_stale()

    hours = count(4)
    add_run(tmp_path, run_of(0, "r0"), {})
    add_run(tmp_path, run_of(1, "r1"), {})
    for hour, copy in enumerate(("copy", "copy_again"), 2):
        add_run(tmp_path, run_of(1, copy, hour), {}, copied_from_run_id="r1")
    for merged in ("r1", "copy", "copy_again"):  # the same rows
        assert merge(["r0", merged]) == []
    assert merge(["r0"]) == [(None, "copy_again")]  # a date that was late
    assert merge(None) == []  # of a window before the column, what was published later
    add_run(tmp_path, run_of(0, "late", 20), {})
    assert ask_stale() == [(None, "late")]


def test_slices_are_beside_the_whole(answers: dict[str, Rows]) -> None:
    first, *rest = answers["which_slice"]
    assert (first["slice"], first["identity"], first["metric"], first["apart"]) == ("short", "male", "bpsn_auc", False)
    assert first["difference"] == pytest.approx(-0.005, abs=1e-12)
    # The run's whole is worse for `gay` than the slice is.
    assert rest[-1]["identity"] == "gay"
    assert rest[-1]["difference"] == pytest.approx(0.01, abs=1e-12)


def test_slices_that_are_apart_are_before_those_that_prove_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """One has too few rows for an interval."""
    rows = [metrics_of("new", cut, identity, 0.9) for cut in ("all", "short") for identity in ("few", "gay")]
    rows[2] |= {"bpsn_auc": 0.5, "bpsn_auc_low": None, "bpsn_auc_high": None}
    rows[3] |= {"bpsn_auc": 0.8, "bpsn_auc_low": 0.79, "bpsn_auc_high": 0.81}
    add_run(tmp_path, run_of(0, "r0"), {"bias_metrics": rows})
    answered = [(row["identity"], row["apart"]) for row in ask(spark, tmp_path, "which_slice")]
    assert answered[:2] == [("gay", True), ("few", None)]


# ---- from the outside


SETTINGS = (
    *("--master", "local[1]", "--conf", "spark.ui.enabled=false"),
    *("--conf", "spark.sql.session.timeZone=UTC", "--conf", "spark.sql.shuffle.partitions=1"),
)


def script_of(folder: Path) -> str:
    """Give one file that makes the views and asks every query, a line of its name before each."""
    asked = (f"SELECT '== {name}';\n{text};" for name, text in TEXTS.items())
    return "\n".join(((folder / SPARK_FILE).read_text("utf-8"), *asked))


def count_rows(printed: str) -> dict[str, int]:
    parts = re.split(r"^.*== (\w+).*$", printed, flags=re.MULTILINE)[1:]
    lines = {
        name: [line for line in text.splitlines() if "civil" in line]
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }
    return {name: len(found) for name, found in lines.items()}


def run_queries(shell: Sequence[str], warehouse: Path, folder: Path) -> str:
    """Run the queries in one of Spark's shells, and give what it prints."""
    script = folder / "queries.sql"
    script.write_text(script_of(warehouse), "utf-8")
    program, *options = shell
    command = (spark_home() / "bin" / program, *options, "-f", script)
    done = run_program(*command, cwd=folder, SPARK_HOME=str(spark_home()))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_sql_shell_answers(warehouse: Path, answers: dict[str, Rows], tmp_path: Path) -> None:
    in_memory = ("--conf", "spark.sql.catalogImplementation=in-memory")
    printed = run_queries(["spark-sql", *SETTINGS, *in_memory], warehouse, tmp_path)
    assert count_rows(printed) == {name: len(rows) for name, rows in answers.items()}


@pytest.mark.slow
def test_the_thrift_server_answers_beeline(warehouse: Path, answers: dict[str, Rows], tmp_path: Path) -> None:
    """On loopback, at any port. Temporary views last as long as a connection: one beeline makes them and asks."""
    metastore = f"jdbc:derby:;databaseName={tmp_path}/metastore;create=true"
    hadoop = {
        "hive.server2.thrift.bind.host": "127.0.0.1",
        "hive.server2.thrift.port": "0",
        "javax.jdo.option.ConnectionURL": metastore,
    }
    flags = [word for key, value in hadoop.items() for word in ("--conf", f"spark.hadoop.{key}={value}")]
    server = ("--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", "spark-internal")
    submit = ("org.apache.spark.deploy.SparkSubmit", *SETTINGS, *flags, *server)
    with daemon(spark_home(), tmp_path / "server", *submit) as (_, log):
        port = read_from(log, r"ThriftBinaryCLIService on port (\d+)")
        url = f"jdbc:hive2://127.0.0.1:{port}/default"
        printed = run_queries(["beeline", "-u", url, "--outputformat=tsv2", "--silent=true"], warehouse, tmp_path)
    assert count_rows(printed) == {name: len(rows) for name, rows in answers.items()}
