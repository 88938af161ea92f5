"""What a Python worker keeps from one task to the next, and how large the batches are that it returns."""

from __future__ import annotations

import importlib
import sys
import zipimport
from pathlib import Path
from typing import cast
from zipfile import ZipFile

import pytest

from biasspark.ranking import range_job
from biasspark.ranking.range_job import cut_batches
from biasspark.ranking.task_rows import Part
from tests.harness.ranking_without_spark import LocalFrame, frame_of


def test_batches_are_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_job, "_BATCH_BYTES", 100)
    parts = [Part(0, 0, number, 0, bytes(40)) for number in range(7)]
    [task] = cast("LocalFrame", cut_batches(frame_of([]), lambda _: parts)).tasks
    assert [len(batch) for batch in task] == [3, 3, 1]


def test_no_zip_file_is_read_anew_and_each_is_still_imported_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "of_a_test.zip"
    with ZipFile(archive, "w") as file:
        for name in ("one", "two", "later"):
            file.writestr(f"package_of_a_test/{name}.py", f"NAME = '{name}'")
        file.writestr("package_of_a_test/__init__.py", "")
    monkeypatch.syspath_prepend(str(archive))
    modules = [importlib.import_module(f"package_of_a_test.{name}") for name in ("one", "two")]

    def finders() -> set[str]:
        return {path for path in sys.path_importer_cache if path.startswith(str(archive))}

    assert len(finders()) == 2  # of the file itself, and of the package
    cut_batches(frame_of([]), lambda _: [])
    assert finders() == set()
    assert not any(isinstance(finder, zipimport.zipimporter) for finder in sys.path_importer_cache.values())
    modules.append(importlib.import_module("package_of_a_test.later"))
    assert [module.NAME for module in modules] == ["one", "two", "later"]
    for name in [name for name in sys.modules if name.startswith("package_of_a_test")]:
        monkeypatch.delitem(sys.modules, name)
    cut_batches(frame_of([]), lambda _: [])
