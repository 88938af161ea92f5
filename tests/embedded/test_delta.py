"""Delta tables in a folder, written and read without Spark; killed and concurrent jobs are processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from biasspark.tables.delta import DeltaFolder, DeltaLog
from biasspark.tables.parquet import read_files
from biasspark.tables.publish import publish, read_run
from biasspark.tables.schemas import BIAS_RUNS, REJECTED_ROWS, TABLES, Table
from tests.harness.main_job import RUN_DATE, closed, make_rows, write_config, write_parquet
from tests.harness.running_jobs import refuse_embedded as refuse
from tests.harness.running_jobs import run_embedded
from tests.harness.running_jobs import run_embedded_well as run
from tests.harness.sample_run import record_of, start_run, suite_tables

deltalake = pytest.importorskip("deltalake")

ROOT = Path(__file__).resolve().parents[2]
NEXT_DATE = "2026-01-16"
pytestmark = [pytest.mark.embedded, pytest.mark.usefixtures("spark_session")]
KILLED = """
import os, signal, sys

from biasspark.command import main
from biasspark.tables.delta import DeltaLog

commit = DeltaLog.commit


def die(log, files, run):
    if log.table.name == os.environ["DIES_AT"]:
        if os.environ["DIES"] == "after":
            commit(log, files, run)
        os.kill(os.getpid(), signal.SIGKILL)
    commit(log, files, run)


DeltaLog.commit = die
sys.exit(main(sys.argv[1:]))
"""


def start(*command: object, **changes: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | changes
    return subprocess.Popen(
        [sys.executable, *map(str, command)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def write_corpus(folder: Path) -> Path:
    rows = make_rows()
    rows["score"][:3] = [None, float("nan"), float("inf")]
    return write_parquet(folder / "corpus", rows)


def configure(folder: Path, output_format: str, **changes: Any) -> Path:
    """Write a configuration whose tables are in a folder of the name of their format."""
    output = {"path": str(folder / output_format), "format": output_format}
    return write_config(folder, output=output, **changes)


def log_of(folder: Path, table: Table) -> DeltaLog:
    return DeltaLog(folder / "delta" / table.name, table)


def published(folder: Path) -> dict[str, list[str]]:
    """Return by table the rows of the runs in the ledger."""
    ledger = log_of(folder, BIAS_RUNS).read() if (folder / "delta" / "bias_runs").is_dir() else None
    rows: dict[str, list[str]] = {}
    for row in [] if ledger is None else ledger.to_pylist():
        for name, n_rows in row["table_rows"]:
            if n_rows:
                stored = log_of(folder, TABLES[name]).read([row["run_date"]], [row["run_id"]])
                assert len(stored) == n_rows
                rows[name] = rows.get(name, []) + sorted(map(repr, stored.to_pylist()))
    return rows


def test_runs_have_the_same_bits_as_in_parquet(tmp_path: Path) -> None:
    """Two runs with every kind of table, one measured twice, maintained and merged into a window."""
    write_corpus(tmp_path)
    parts: dict[str, Any] = {
        "thresholds": {"at": [0.5]},
        "histograms": {"bins": 5},
        "state": {"keep": True},
        "gate": {"rule": [{"name": "drop", "metric": "auc", "max_drop": 0.1}]},
    }
    rows: dict[str, dict[str, pa.Table]] = {}
    for output_format in ("parquet", "delta"):
        config = configure(tmp_path, output_format, **parts)
        for run_date in (RUN_DATE, RUN_DATE, NEXT_DATE):
            run("measure", "--config", config, "--run-date", run_date)
        kept = ("--run-date", datetime.now(UTC).date(), "--keep-days", 0, "--grace-hours", 1)
        done = run("maintain", "--config", config, *kept)
        assert len(done["runs"]) == 1
        assert ("bias_metrics" in done["compacted"]) == (output_format == "delta")
        run("window", "--config", config, "--from", RUN_DATE, "--to", NEXT_DATE)
        rows[output_format] = {}
        for table in TABLES.values():
            folder = tmp_path / output_format / table.name
            if folder.is_dir() and table != BIAS_RUNS:
                is_delta = output_format == "delta"
                stored = log_of(tmp_path, table).read() if is_delta else read_files(table, folder.glob("*/*"))
                names = [name for name in table.names if name != "message" and not name.endswith("run_id")]
                stored = stored.select(names).sort_by(
                    [(name, "ascending") for name in ("run_date", *table.key_columns)]
                )
                rows[output_format][table.name] = stored.combine_chunks()
    assert {"rejected_rows", "score_blocks", "bias_alerts", "window_bias_metrics"} < rows["delta"].keys()
    assert rows["delta"].keys() == rows["parquet"].keys()
    assert [name for name, of_table in rows["delta"].items() if not of_table.equals(rows["parquet"][name])] == []
    assert "latest_bias_metrics" in (tmp_path / "delta" / "views.spark.sql").read_text("utf-8")
    run("report", "--config", config, "--run-date", NEXT_DATE, "--model-card", tmp_path / "card.md")
    assert run("measure", "--config", config, "--run-date", RUN_DATE, "--only-missing")["status"] == "skipped"


def test_a_table_of_another_job_that_cannot_be_read_is_a_warning(tmp_path: Path) -> None:
    """Its table is plain Parquet, so views cannot be written: the outcome of the gate is printed all the same."""
    write_corpus(tmp_path)
    config = configure(tmp_path, "delta", gate={"rule": [{"name": "floor", "metric": "auc", "min": 0.1}]})
    write_parquet(tmp_path / "delta" / "loss_by_segment", {"n": [1]})
    done = run_embedded("measure", "--config", config, "--run-date", RUN_DATE)
    assert done.code == 0, done.err
    assert "\ngate: " in done.out
    assert "delta/loss_by_segment" in done.summary["warnings"][-1]


@pytest.mark.parametrize(
    ("table", "moment"),
    [
        ("bias_metrics", "before"),
        *(pytest.param("bias_runs", moment, marks=pytest.mark.slow) for moment in ("before", "after")),
    ],
)
def test_a_killed_run_is_seen_whole_or_not_at_all(tmp_path: Path, table: str, moment: str) -> None:
    write_corpus(tmp_path)
    config = configure(tmp_path, "delta")
    flags = ("--engine", "embedded", "--config", config, "--run-date")
    run("measure", "--config", config, "--run-date", NEXT_DATE)
    before = published(tmp_path)
    killed = start("-c", KILLED, "measure", *flags, RUN_DATE, DIES_AT=table, DIES=moment)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    n_runs = 2 if (table, moment) == ("bias_runs", "after") else 1
    after = published(tmp_path)
    assert {name: len(rows) for name, rows in after.items()} == {n: n_runs * len(rows) for n, rows in before.items()}
    assert all(set(rows) <= set(after[name]) for name, rows in before.items())
    assert run("measure", "--config", config, "--run-date", RUN_DATE)["status"] == "published"
    assert len(published(tmp_path)["bias_metrics"]) == (n_runs + 1) * len(before["bias_metrics"])


@pytest.mark.slow
def test_two_jobs_at_once_publish_a_run_each_whole(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    config = configure(tmp_path, "delta")
    flags = ("-m", "biasspark", "measure", "--engine", "embedded", "--config", config, "--run-date", RUN_DATE)
    jobs = [start(*flags) for _ in range(2)]
    errors = [job.communicate()[1] for job in jobs]
    codes = sorted(job.returncode for job in jobs)
    assert set(codes) <= {0, 4}, errors  # those that come to the ledger at the same instant both count
    assert codes[0] == 0
    n_runs = len(log_of(tmp_path, BIAS_RUNS).read())
    assert n_runs == codes.count(0)
    (n_rows,) = {len(rows) for name, rows in published(tmp_path).items() if name == "bias_metrics"}
    assert n_rows == n_runs * 2


def test_a_corpus_of_delta_has_the_bits_of_its_rows_in_parquet(tmp_path: Path) -> None:
    """One partition, after rows were replaced, written with categories of pandas."""
    rows = pa.table(make_rows())
    kinds = pa.array(["a", "b", None, "it's"] * (len(rows) // 4)).dictionary_encode()
    rows = rows.append_column("kind", kinds)
    other = rows.set_column(rows.column_names.index("day"), "day", [[NEXT_DATE] * len(rows)])
    days = [
        part.set_column(part.column_names.index("day"), "day", part["day"].cast(pa.date32())) for part in (rows, other)
    ]
    folder = tmp_path / "delta corpus"
    for part in days:
        deltalake.write_deltalake(folder, part, mode="append", partition_by=["day"])
    deltalake.write_deltalake(folder, days[0].slice(3), mode="overwrite", predicate=f"day = '{RUN_DATE}'")
    write_parquet(tmp_path / "corpus", {name: rows.slice(3)[name] for name in rows.column_names})
    changes: dict[str, Any] = {"identities": {"columns": ["male"], "categorical": ["kind"]}}
    found: list[pa.Table] = []
    for corpus in ({}, {"path": str(folder), "format": "delta", "run_date_column": "day"}):
        out = tmp_path / f"out {len(found)}"
        config = write_config(tmp_path, corpus=corpus, output={"path": str(out)}, **changes)
        assert run("measure", "--config", config, "--run-date", RUN_DATE)["n_rows"] == len(rows) - 3
        stored = read_files(TABLES["bias_metrics"], (out / "bias_metrics").glob("*/*"))
        found.append(stored.drop_columns(["run_id"]))
    assert found[0].equals(found[1])


def test_a_file_of_the_log_that_is_missing_is_named(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "corpus", pa.table(make_rows()))
    (file,) = (tmp_path / "corpus").glob("*.parquet")
    file.unlink()
    config = write_config(tmp_path, corpus={"format": "delta"})
    assert str(file) in refuse("measure", "--config", config, "--run-date", RUN_DATE)


def test_a_folder_of_the_log_that_may_not_be_entered_is_named(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "corpus", pa.table(make_rows()), partition_by=["day"])
    (file,) = (tmp_path / "corpus").glob("day=*/*.parquet")
    config = write_config(tmp_path, corpus={"format": "delta"})
    with closed(file.parent):
        assert f"Path: {file}." in refuse("measure", "--config", config, "--run-date", RUN_DATE)


@pytest.mark.parametrize(
    "text", ["\u8a9e" * 60, "\u0939\u093f\u0902\u0926\u0940 " * 12, "\xa0\u2028\U0001f600/%=\u00e9"]
)
def test_a_long_value_of_a_partition(tmp_path: Path, text: str) -> None:
    """Escaped, it would be too long for the name of a folder. delta-rs cannot write it, and Spark can."""
    rows = pa.table(make_rows())
    rows = rows.append_column("lang", pa.array(["en"] * len(rows)))
    deltalake.write_deltalake(tmp_path / "corpus", rows, partition_by=["lang"])
    (log,) = (tmp_path / "corpus" / "_delta_log").glob("*.json")
    log.write_text(log.read_text("utf-8").replace('"en"', f'"{text}"'), "utf-8")
    config = write_config(tmp_path, corpus={"format": "delta", "filter": f"lang = '{text}'"})
    assert run("measure", "--config", config, "--run-date", RUN_DATE)["n_rows"] == len(rows)


def test_a_folder_of_parquet_is_no_output_and_delta_of_others_is_refused(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    config = configure(tmp_path, "delta")
    flags = ("measure", "--config", str(config), "--run-date", RUN_DATE)
    (tmp_path / "delta").symlink_to(tmp_path / "parquet")
    run("measure", "--config", configure(tmp_path, "parquet"), "--run-date", RUN_DATE)
    err = refuse(*flags)
    assert all(words in err for words in ("plain Parquet", 'Set it to "parquet"'))
    (tmp_path / "delta").unlink()
    run(*flags)
    deltalake.DeltaTable(tmp_path / "delta" / "u_statistics").alter.add_feature(
        deltalake.TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
    )
    assert "deletionVectors" in refuse(*flags)


JOBS = {
    "measure": (),
    "report": ("--out", "report.html"),
    "export": ("--table", "bias_metrics", "--out", "metrics.csv"),
    "accept": ("--reason", "known"),
    "maintain": (),
}


def test_a_folder_of_delta_is_no_output_of_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_corpus(tmp_path)
    monkeypatch.chdir(tmp_path)
    run("measure", "--config", configure(tmp_path, "delta"), "--run-date", RUN_DATE)
    (tmp_path / "parquet").symlink_to(tmp_path / "delta")
    config = configure(tmp_path, "parquet")
    for name, flags in JOBS.items():
        err = refuse(name, "--config", config, "--run-date", RUN_DATE, *flags)
        assert ("[output] format" in err, "delta" in err) == (True, True), err


def test_a_table_of_a_run_without_rows_is_not_lost(spark: SparkSession, tmp_path: Path) -> None:
    store = DeltaFolder(str(tmp_path))
    published_run = publish(spark, suite_tables(rejected=0), start_run(), store, record_of())
    assert len(read_run(spark, store, REJECTED_ROWS, published_run)) == 0


def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_corpus(tmp_path)
    monkeypatch.setitem(sys.modules, "deltalake", None)
    err = refuse("measure", "--config", configure(tmp_path, "delta"), "--run-date", RUN_DATE, code=2)
    assert "pip install '.[delta]'" in err
