"""The table of survived faults: how it is written, and that each line is of a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

from scripts.dev.fault_report import HEAD, PAGE, format_table, read_docstrings, read_results

FIRST = """<testsuites><testsuite>
<testcase classname="a" name="test_one_dies[x]"/>
<testcase classname="a" name="test_one_dies[y]"><failure message="no"/></testcase>
<testcase classname="a" name="test_all_is_well[x]"/>
<testcase classname="a" name="test_all_is_well[y]"/>
<testcase classname="b" name="test_a_small_disk"><skipped message="no disk | no mount"/></testcase>
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
    unchanged = (
        "| All is well | So it stays. | 2 | survived |\n"
        "| The disk is small | It is named. | 1 | 1 not run: no disk \\| no mount |\n"
    )
    first = "| One dies | The other lives. | 2 | {} |\n"
    wanted = HEAD + first.format("1 survived, 1 NOT survived") + unchanged
    assert format_table(read_results(files[:1]), DESCRIBED) == wanted
    assert format_table(read_results(files), DESCRIBED) == HEAD + first.format("survived") + unchanged


def test_each_line_of_the_page_is_of_a_test() -> None:
    lines = re.findall(r"^\| (.+?) \| (.+?) \| \d+ \| .+ \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert lines
    assert set(lines) <= set(read_docstrings().values())
