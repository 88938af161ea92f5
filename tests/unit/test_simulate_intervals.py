"""The simulation behind the choice of intervals: that it runs, and what it left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "simulate_intervals.py"
RESULTS = SCRIPT.parent / "results" / "interval_coverage.json"


def test_the_chosen_rule_covers_as_no_other_choice_does() -> None:
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    rules = kept["summary"]["assumed, small cell of 10 and more"]
    chosen = rules[kept["chosen"]]
    assert chosen["share_below_0.94"] == rules["both joined, the bound of every choice"]["share_below_0.94"] < 0.02
    assert chosen["min"] > 0.9
    assert chosen["median_width_over_wald_from_300_rows"] < 1.01


@pytest.mark.slow
def test_the_same_seed_gives_the_same_file(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.json", "b.json")]
    for file in files:
        subprocess.run([sys.executable, SCRIPT, "--quick", "--out", file], check=True, capture_output=True, timeout=300)
    assert files[0].read_bytes() == files[1].read_bytes()
