"""scripts/paper on the real data: it makes every exhibit, and docs/papers.md has what it makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.papers.__main__ import OVERVIEW, SOURCES
from tests.harness.submitting import run_python


def run_paper(shared_data: Path, folder: Path, *words: str) -> str:
    """Make exhibits in a process of its own, on the embedded engine, and give the numbers as Markdown."""
    numbers = folder / "papers.md"
    options = ("--shared", shared_data.parent, "--out", folder, "--docs", numbers)
    done = run_python("-m", "scripts.papers", "--engine", "embedded", *words, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    return numbers.read_text("utf-8")


def part_of(text: str, key: str) -> str:
    """Give what the page has of a source."""
    return text.partition(f"\n## {key.capitalize()}\n")[2].partition("\n## ")[0].rstrip()


@pytest.mark.slow
def test_numbers_of_one_source_are_those_of_the_page(shared_data: Path, tmp_path: Path) -> None:
    made = part_of(run_paper(shared_data, tmp_path, "pinned"), "pinned")
    assert made
    assert made == part_of(OVERVIEW.read_text("utf-8"), "pinned"), "run scripts/paper --all --docs"
    page = (tmp_path / "pinned.html").read_text("utf-8")
    assert page.count("<svg") >= len(SOURCES["pinned"].exhibits)


@pytest.mark.slow
def test_the_page_is_what_is_made(shared_data: Path, tmp_path: Path) -> None:
    assert run_paper(shared_data, tmp_path, "--all") == OVERVIEW.read_text("utf-8"), "run scripts/paper --all --docs"
    for key, source in SOURCES.items():
        page = (tmp_path / f"{key}.html").read_text("utf-8")
        assert [exhibit.slug for exhibit in source.exhibits if f'<section id="{exhibit.slug}">' not in page] == []
