"""The configured folder of reports, and files written without the file systems of Hadoop."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from biasspark.config import parse_config
from biasspark.errors import ConfigError
from biasspark.session import files
from biasspark.workflows.write_report import check_documents, report_folder
from tests.harness.least_configuration import LEAST, changed, faults_of, key_of


@pytest.mark.parametrize(
    ("tables", "folder"),
    [
        ({}, "/warehouse/reports"),
        ({"output": {"path": "s3a://lake/bias/"}}, "s3a://lake/bias/reports"),
        ({"report": {"path": "/srv/reports/"}}, "/srv/reports"),
        (
            {"report": {"path": "hdfs:///bias/reports"}, "output": {"path": None, "catalog": "l.b"}},
            "hdfs:///bias/reports",
        ),
    ],
)
def test_the_folder_of_reports(tables: dict[str, Any], folder: str) -> None:
    assert report_folder(parse_config(changed(**tables), Path())) == folder


def test_a_relative_folder_is_looked_up_as_the_output_is(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    for base, above in ((tmp_path, tmp_path), (tmp_path / "elsewhere", Path.cwd())):
        config = parse_config(changed(report={"path": "reports"}), base)
        assert report_folder(config) == str(above / "reports")


def test_reports_are_no_rows_of_the_corpus() -> None:
    (fault,) = faults_of(
        changed(corpus={"path": "s3a://k:hunter2@lake/civil"}, report={"path": "s3a://k:hunter2@lake/civil/r"})
    )
    assert key_of(fault) == "report.path"
    assert "hunter2" not in str(fault)


@pytest.mark.parametrize("report", [{"folder": "/r"}, {"path": 3}, {"path": ""}, "/r"])
def test_what_is_no_folder_is_refused(report: Any) -> None:
    (fault,) = faults_of(changed(report=report))
    assert fault.path[0] == "report"


def test_a_report_without_a_document_is_refused() -> None:
    with pytest.raises(ConfigError, match="--out: missing"):
        check_documents(None, None, None)


@pytest.mark.parametrize("name", ["card.md", "report.PDF"])
def test_a_page_with_a_name_of_another_kind_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="The page is HTML"):
        check_documents(Path(name), None, None)


def test_where_reports_go_says_nothing_of_a_run() -> None:
    config = parse_config(changed(report={"path": "/srv/reports"}), Path())
    assert config.hash == parse_config(LEAST, Path()).hash
    assert "report" not in config.resolved()


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A session that is a Spark Connect session for functions on files."""
    monkeypatch.setattr(files, "is_connect", lambda _: True)
    return None


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_connect_writes_to_this_machine(connected: Any, scheme: str, tmp_path: Path) -> None:
    for content in (b"first", b"second"):
        files.replace_file(connected, f"{scheme}{tmp_path}/a b/c", "page.html", content)
        assert (tmp_path / "a b" / "c" / "page.html").read_bytes() == content
    assert os.listdir(tmp_path / "a b" / "c") == ["page.html"]


def test_connect_writes_nowhere_else(connected: Any) -> None:
    with pytest.raises(ConfigError, match=r"\"s3a://\(redacted\)@b/r\".*SPARK_REMOTE"):
        files.replace_file(connected, "s3a://k:hunter2@b/r", "page.html", b"")


def test_what_is_not_finished_is_removed(connected: Any, tmp_path: Path) -> None:
    (tmp_path / "page.html").mkdir()  # a file cannot replace it
    with pytest.raises(OSError, match=r"page\.html"):
        files.replace_file(connected, str(tmp_path), "page.html", b"x")
    assert os.listdir(tmp_path) == ["page.html"]
