"""scripts/paper on the real data: it makes every exhibit, and docs/papers.md has what it makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.papers.__main__ import OVERVIEW, SOURCES
from tests.harness.submitting import run_python


@pytest.mark.slow
def test_the_page_is_what_is_made(shared_data: Path, tmp_path: Path) -> None:
    """In a process of its own, on the embedded engine."""
    numbers = tmp_path / "papers.md"
    options = ("--shared", shared_data.parent, "--out", tmp_path, "--docs", numbers)
    done = run_python("-m", "scripts.papers", "--engine", "embedded", "--all", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert numbers.read_text("utf-8") == OVERVIEW.read_text("utf-8"), "run scripts/paper --all --docs"
    pages = {key: (tmp_path / f"{key}.html").read_text("utf-8") for key in SOURCES}
    for key, source in SOURCES.items():
        assert [exhibit.slug for exhibit in source.exhibits if f'<section id="{exhibit.slug}">' not in pages[key]] == []
    assert pages["pinned"].count("<svg") >= len(SOURCES["pinned"].exhibits)
