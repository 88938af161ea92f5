"""The simulations: that they run, and that a seed gives one outcome."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(path.stem for path in (ROOT / "scripts").glob("simulate_*.py")))
def test_the_same_seed_gives_the_same_file(script: str, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.json", "b.json")]
    for file in files:
        program = [sys.executable, "-m", f"scripts.{script}", "--quick", "--out", str(file)]
        subprocess.run(program, check=True, capture_output=True, timeout=300, cwd=ROOT)
    assert files[0].read_bytes() == files[1].read_bytes()
