"""Run the notebooks in examples/notebooks on the embedded engine, and write their outputs into them.

Used by scripts/docs.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples" / "notebooks").glob("*.ipynb"))


def run_notebook(path: Path) -> nbformat.NotebookNode:
    """Return a notebook with the outputs of a run in an empty folder."""
    notebook = nbformat.read(path, as_version=4)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    with TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=600, record_timing=False, resources={"metadata": {"path": folder}})
        client.execute(env=environment)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata.pop("language_info", None)  # names the version of Python
    return notebook


if __name__ == "__main__":
    for path in NOTEBOOKS:
        nbformat.write(run_notebook(path), path)
        print(f"examples/notebooks/{path.name}")
