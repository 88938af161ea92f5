"""The table of survived faults: how it is written, and that each line is of a test that exists."""

from __future__ import annotations

import re
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from scripts.dev.fault_report import HEAD, PAGE, format_table, main, read_docstrings, read_results

FIRST = """<testsuites><testsuite>
<testcase classname="a" name="test_one_dies[x]"/>
<testcase classname="a" name="test_one_dies[y]"><failure message="no"/></testcase>
<testcase classname="a" name="test_all_is_well[x]"/>
<testcase classname="a" name="test_all_is_well[y]"/>
<testcase classname="b" name="test_a_small_disk"><skipped message="no disk can be mounted"/></testcase>
</testsuite></testsuites>"""
LATER = """<testsuites><testsuite><testcase classname="a" name="test_one_dies[y]"/></testsuite></testsuites>"""
DESCRIBED = {
    "test_one_dies": ("One dies", "The other lives."),
    "test_all_is_well": ("All is well", "So it stays."),
    "test_a_small_disk": ("The disk is small", "It is named."),
}


def test_a_line_for_each_test(tmp_path: Path) -> None:
    files = [tmp_path / "first.xml", tmp_path / "later.xml"]
    for file, text in zip(files, (FIRST, LATER), strict=True):
        file.write_text(text)
    others = (
        "| All is well | So it stays. | 2 | survived |\n"
        "| The disk is small | It is named. | 1 | 1 not run: no disk can be mounted |\n"
    )
    first = "| One dies | The other lives. | 2 | {} |\n"
    wanted = HEAD + first.format("1 survived, 1 NOT survived") + others
    assert format_table(read_results(files[:1]), DESCRIBED) == wanted
    assert format_table(read_results(files), DESCRIBED) == HEAD + first.format("survived") + others


def test_a_docstring_without_an_effect_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text('def test_b():\n    """Nothing."""\n')
    with pytest.raises(SystemExit, match="test_b"):
        read_docstrings(tmp_path)


def test_tests_that_did_not_run_to_the_end_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, results = tmp_path / "page.md", tmp_path / "faults.xml"
    monkeypatch.setattr("scripts.dev.fault_report.PAGE", page)
    monkeypatch.setattr("scripts.dev.fault_report.RESULTS", results)
    monkeypatch.setattr("sys.argv", ["fault_report"])
    monkeypatch.setattr("subprocess.run", lambda command, **_: CompletedProcess(command, 2))
    page.write_text("<!-- faults -->")
    results.write_text(FIRST)  # of an earlier run
    with pytest.raises(SystemExit, match="exit code 2"):
        main()
    assert page.read_text() == "<!-- faults -->"
    assert not results.exists()


def test_each_line_of_the_page_is_of_a_test() -> None:
    lines = re.findall(r"^\| (.+?) \| (.+?) \| \d+ \| .+ \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert lines
    assert set(lines) <= set(read_docstrings().values())
