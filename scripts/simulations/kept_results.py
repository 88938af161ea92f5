"""The command line of the simulations, and the files of their results.

Used by scripts/simulations/interval_coverage.py and the other simulations.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def parse_options(description: str | None, result: str, *, runs: int = 1000, quick: int, seed: int = 20190513) -> Any:
    """Read the command line: ``runs`` of each setting (`quick` with --quick), ``seed`` and ``out``."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, help=f"of each setting (default {runs})")
    parser.add_argument("--seed", type=int, default=seed)
    parser.add_argument("--out", type=Path, help="default: below scripts/simulations/results")
    parser.add_argument("--quick", action="store_true", help=f"a smoke test: by default {quick} runs")
    options = parser.parse_args()
    options.out = options.out or (RESULTS / "quick" if options.quick else RESULTS) / result
    options.runs = options.runs or (quick if options.quick else runs)
    return options


def run_simulation(
    options: Any, simulate: Callable[..., dict[str, object]], cases: Iterable[tuple[object, ...]], **head: object
) -> None:
    """Simulate all cases, each with a seed of its own; print the results, and save them with their settings."""
    results = []
    for number, case in enumerate(cases):
        results.append(simulate(*case, options.runs, [options.seed, number]))
        print("  ".join(f"{name} {value}" for name, value in results[-1].items()), flush=True)
    settings = {**head, "runs": options.runs, "seed": options.seed}
    write_results(options.out, {"settings": settings}, results)


def write_results(out: Path, head: Mapping[str, object], results: Sequence[object]) -> None:
    """Write JSON: the entries of the head, and one line per result."""
    lines = ",\n  ".join(map(json.dumps, results))
    text = "".join(f'"{name}": {json.dumps(value)},\n ' for name, value in head.items())
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(f'{{{text}"results": [\n  {lines}\n ]}}\n', encoding="utf-8")
