"""The README's table of what was survived: how it is written, and that it speaks of tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.survived_table import BEGIN, END, ROOT, format_outcomes, put_between, read_results, read_sayings

RESULTS = """<testsuites><testsuite>
<testcase classname="a" name="test_one_dies[x]"/>
<testcase classname="a" name="test_one_dies[y]"><failure message="no"/></testcase>
<testcase classname="a" name="test_all_is_well[x]"/>
<testcase classname="a" name="test_all_is_well[y]"/>
<testcase classname="b" name="test_a_small_disk"><skipped message="no disk can be mounted"/></testcase>
</testsuite></testsuites>"""
LATER = """<testsuites><testsuite><testcase classname="a" name="test_one_dies[y]"/></testsuite></testsuites>"""


SAYINGS = {
    "test_one_dies": ("One dies", "The other lives."),
    "test_all_is_well": ("All is well", "So it stays."),
    "test_a_small_disk": ("The disk is small", "It is named."),
}


def test_a_line_for_each_test(tmp_path: Path) -> None:
    (tmp_path / "first.xml").write_text(RESULTS)
    (tmp_path / "later.xml").write_text(LATER)
    head = "| what happens | what comes of it | cases | outcome |\n| --- | --- | ---: | --- |\n"
    others = (
        "| All is well | So it stays. | 2 | survived |\n"
        "| The disk is small | It is named. | 1 | 1 not tried: no disk can be mounted |\n"
    )
    found = read_results([tmp_path / "first.xml"])
    lines = "| One dies | The other lives. | 2 | 1 survived, 1 NOT survived |\n"
    assert format_outcomes(found, SAYINGS) == head + lines + others
    found = read_results([tmp_path / "first.xml", tmp_path / "later.xml"])
    assert format_outcomes(found, SAYINGS) == f"{head}| One dies | The other lives. | 2 | survived |\n{others}"


def test_a_docstring_says_what_happens_and_what_comes_of_it(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(
        'def test_b():\n    """A disk\n    is full: so: be it.\n\n    No: more.\n    """\n'
    )
    assert read_sayings(tmp_path) == {"test_b": ("A disk is full", "So: be it.")}
    (tmp_path / "test_a.py").write_text('def test_b():\n    """Nothing."""\n')
    with pytest.raises(SystemExit, match="test_b does not say"):
        read_sayings(tmp_path)


def test_the_table_stands_between_its_comments() -> None:
    assert put_between(f"a\n{BEGIN}\nold\n{END}\nb", "new\n") == f"a\n{BEGIN}\nnew\n{END}\nb"
    with pytest.raises(SystemExit, match="lacks the comments"):
        put_between("a\nb", "new\n")


def test_each_line_of_the_readme_is_what_a_test_says() -> None:
    table = (ROOT / "README.md").read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
    lines = re.findall(r"^\| (.+?) \| (.+?) \| \d+ \| .+ \|$", table, re.MULTILINE)
    assert lines
    assert set(lines) <= set(read_sayings().values())
