"""The notebooks: they run on the embedded engine, and print what is committed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from scripts.dev.notebooks import NOTEBOOKS, run_notebook


def texts(notebook: nbformat.NotebookNode) -> Iterator[tuple[int, str]]:
    """Yield the number of each cell with each text that it prints; pictures depend on fonts."""
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", ()):
            yield number, output.get("text") or output.data["text/plain"]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_is_committed(path: Path) -> None:
    committed = list(texts(nbformat.read(path, as_version=4)))
    assert committed
    assert list(texts(run_notebook(path))) == committed
