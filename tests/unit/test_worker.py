"""What a Python worker keeps from one task to the next: no finder that would read a zip file anew."""

from __future__ import annotations

import importlib
import sys
import zipimport
from pathlib import Path
from zipfile import ZipFile

import pytest

from biasspark.ranking.worker import forget_zip_files


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
    forget_zip_files()
    assert finders() == set()
    assert not any(isinstance(own, zipimport.zipimporter) for own in sys.path_importer_cache.values())
    modules.append(importlib.import_module("package_of_a_test.later"))
    assert [module.NAME for module in modules] == ["one", "two", "later"]
    for name in [name for name in sys.modules if name.startswith("package_of_a_test")]:
        monkeypatch.delitem(sys.modules, name)
    forget_zip_files()
