"""The memory need of the embedded engine is compared with the free memory. No engine is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from biasspark.errors import InputError
from biasspark.session import engines

GIB = 2**30


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 8 GiB free, and no container."""
    (tmp_path / "meminfo").write_text(f"MemTotal: {16 * 2**20} kB\nMemAvailable: {8 * 2**20} kB\n", "ascii")
    monkeypatch.setattr(engines, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(engines, "_CONTAINER", tmp_path)
    return tmp_path


def test_what_is_left(machine: Path) -> None:
    assert engines.available_memory() == 8 * GIB
    (machine / "memory.stat").write_text(f"anon {GIB}\nfile {5 * GIB}\n", "ascii")
    (machine / "memory.max").write_text("max\n", "ascii")
    assert engines.available_memory() == 8 * GIB
    (machine / "memory.max").write_text(f"{4 * GIB}\n", "ascii")
    assert engines.available_memory() == 3 * GIB
    (machine / "meminfo").unlink()
    assert engines.available_memory() is None


def test_a_run_that_does_not_fit_is_refused_on_the_embedded_engine_alone(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = object()
    monkeypatch.setattr(engines, "is_embedded", lambda session: session is spark)
    engines.refuse_too_many(spark, 18_000_000, 2)  # type: ignore[arg-type]
    engines.refuse_too_many(None, 10**12, 2)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"400,000,000 rows and 2 models .* 8\.0 GiB"):
        engines.refuse_too_many(spark, 400_000_000, 2)  # type: ignore[arg-type]
