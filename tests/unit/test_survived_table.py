"""The README's table of what was survived: how it is written, and that it speaks of tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from scripts.survived_table import BEGIN, END, ROOT, format_outcomes, put_between, read_results, sentence_of

RESULTS = """<testsuites><testsuite>
<testcase classname="a" name="test_one_dies[x]"/>
<testcase classname="a" name="test_one_dies[y]"><failure message="no"/></testcase>
<testcase classname="a" name="test_all_is_well[x]"/>
<testcase classname="a" name="test_all_is_well[y]"/>
<testcase classname="b" name="test_a_small_disk"><skipped message="no disk can be mounted"/></testcase>
</testsuite></testsuites>"""
LATER = """<testsuites><testsuite><testcase classname="a" name="test_one_dies[y]"/></testsuite></testsuites>"""


def test_a_line_for_each_test(tmp_path: Path) -> None:
    (tmp_path / "first.xml").write_text(RESULTS)
    (tmp_path / "later.xml").write_text(LATER)
    head = "| what was done | cases | outcome |\n| --- | ---: | --- |\n"
    others = "| All is well | 2 | survived |\n| A small disk | 1 | 1 not tried: no disk can be mounted |\n"
    found = read_results([tmp_path / "first.xml"])
    assert format_outcomes(found) == f"{head}| One dies | 2 | 1 survived, 1 NOT survived |\n{others}"
    found = read_results([tmp_path / "first.xml", tmp_path / "later.xml"])
    assert format_outcomes(found) == f"{head}| One dies | 2 | survived |\n{others}"


def test_the_table_stands_between_its_comments() -> None:
    assert put_between(f"a\n{BEGIN}\nold\n{END}\nb", "new\n") == f"a\n{BEGIN}\nnew\n{END}\nb"
    with pytest.raises(SystemExit, match="lacks the comments"):
        put_between("a\nb", "new\n")


def test_each_line_of_the_readme_names_a_test_that_exists() -> None:
    sources = [path.read_text("utf-8") for path in (ROOT / "tests" / "faults").glob("test_*.py")]
    names = {node.name for text in sources for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
    table = (ROOT / "README.md").read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
    lines = re.findall(r"^\| (.+?) \| \d+ \| .+ \|$", table, re.MULTILINE)
    assert lines
    assert set(lines) <= {sentence_of(name) for name in names if name.startswith("test_")}
