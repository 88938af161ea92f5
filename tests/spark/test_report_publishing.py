"""Reports published next to tables, and to a folder of any file system that Spark can write."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from biasspark.tables.schemas import TABLES
from biasspark.workflows import write_report
from biasspark.workflows import write_report as report
from tests.fixtures.made_up_report import RUN_DATE, make_report
from tests.harness.example_run import write_table
from tests.harness.main_job import write_config
from tests.harness.running_jobs import Done, run_main

RUN_ID = "r_0"
PAGE = f"run_date={RUN_DATE}/{RUN_ID}.html"
classic = pytest.mark.classic("A session of Spark Connect writes files of this machine alone")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in a folder of tables."""
    folder = tmp_path_factory.mktemp("publishing")
    tables, now = make_report(identities=("gay",)).tables, datetime.now(UTC)
    run = {"job": "bias_metrics", "status": "published", "config": "{}", "n_rows": 9, "n_rejected": 0}
    ledger = run | {"started_at": now, "published_at": now, "rejects": {}, "warnings": []}
    rows = {name: tables[name] for name in ("bias_metrics", "model_summary")} | {"bias_runs": [ledger]}
    for name, of_table in rows.items():
        write_table(folder / "warehouse", TABLES[name], of_table, RUN_DATE, RUN_ID)
    return folder


@pytest.fixture
def publish(spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Publish the report with some settings of the configuration, in a session of its own."""
    is_running = False
    write = write_report.write_documents

    @contextmanager
    def lend(*_: object) -> Iterator[SparkSession]:
        nonlocal is_running
        is_running = True
        yield spark
        is_running = False

    def write_while_running(*arguments: Any) -> list[str]:
        assert is_running, "what is imported from a zip of --py-files is gone when the session has stopped"
        return write(*arguments)

    monkeypatch.setattr("biasspark.tables.store.job_session", lend)
    monkeypatch.setattr(write_report, "write_documents", write_while_running)

    def run(*settings: str, flags: tuple[str, ...] = ("--publish",)) -> Done:
        config = write_config(folder, corpus={"name": "civil"})
        overrides = [part for setting in settings for part in ("--set", setting)]
        arguments = ("--config", config, "--run-date", RUN_DATE, *flags, *overrides)
        return run_main(report.COMMAND, *arguments)

    return run


def setting(path: object) -> str:
    return f"report.path={json.dumps(str(path))}"


def test_a_page_lies_beside_tables_or_where_the_configuration_says(
    publish: Callable[..., Done], folder: Path, tmp_path: Path
) -> None:
    for settings, reports in (
        ((), folder / "warehouse" / "reports"),
        ((setting(tmp_path / "a b%20c"),), tmp_path / "a b%20c"),
    ):
        done = publish(*settings)
        assert (done.code, done.summary["written"]) == (0, [str(reports / PAGE)]), done.err
        assert "<svg" in (reports / PAGE).read_text("utf-8")
        assert [path for path in reports.rglob("*") if path.is_file()] == [reports / PAGE]


def test_a_uri_of_this_machine_is_a_folder_of_it(publish: Callable[..., Done], tmp_path: Path) -> None:
    assert publish(setting(f"file://{tmp_path}/reports/")).code == 0
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / "reports" / PAGE]


@pytest.fixture
def mount(spark: SparkSession, tmp_path: Path) -> Iterator[tuple[Any, str]]:
    """Return the settings and the URI of another file system, which Hadoop has not opened yet."""
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    lake, interface = f"lake-{uuid4().hex}", "fs.AbstractFileSystem.viewfs.impl"
    link, before = f"fs.viewfs.mounttable.{lake}.link./reports", settings.get(interface)
    (tmp_path / "lake").mkdir()
    settings.set(link, f"file://{tmp_path}/lake")
    yield settings, f"viewfs://{lake}/reports"
    settings.unset(link)
    settings.set(interface, before)


@classic
@pytest.mark.parametrize("has_both_interfaces", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_page_is_published_to_another_file_system_and_replaced(
    publish: Callable[..., Done], mount: tuple[Any, str], tmp_path: Path, has_both_interfaces: bool
) -> None:
    """Also to one with only the older of the two Hadoop interfaces."""
    settings, lake = mount
    if not has_both_interfaces:
        settings.unset("fs.AbstractFileSystem.viewfs.impl")
    page = tmp_path / "lake" / PAGE
    for _ in range(2):
        done = publish(setting(lake))
        assert (done.code, done.summary["written"]) == (0, [f"{lake}/{PAGE}"]), done.err
        assert page.read_text("utf-8").endswith("</html>")
        assert [path for path in page.parent.iterdir() if path.suffix != ".crc"] == [page]
        page.write_text("an earlier page", encoding="utf-8")
        page.with_name(f".{page.name}.crc").unlink()


@classic
def test_a_file_system_that_spark_does_not_know_is_a_fault_of_the_configuration(publish: Callable[..., Done]) -> None:
    done = publish(setting("nowhere://user:hunter2@lake/reports"))
    assert done.code == 2
    assert '[report] path = "nowhere://(redacted)@lake/reports". ' in done.err
    done = publish(setting("s3a://lake/reports"))
    assert done.code == 2
    assert "org.apache.hadoop:hadoop-aws:3." in done.err


def test_a_file_in_the_way_is_named(publish: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("", encoding="utf-8")
    done = publish(setting(tmp_path / "reports"))
    assert done.code == 2
    assert all(word in done.err for word in ("--publish", str(tmp_path / "reports")))


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object) -> None:
        pytest.fail("Spark is started")

    monkeypatch.setattr("biasspark.tables.store.job_session", start)


def test_tables_in_a_catalog_need_a_folder_for_reports(publish: Callable[..., Done], no_spark: None) -> None:
    done = publish('output={ catalog = "lake.bias", format = "iceberg" }')
    assert done.code == 2
    assert all(word in done.err for word in ("--publish", '"lake.bias"', "[report] path", "--out"))
