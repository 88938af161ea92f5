"""What the simulations share: how they are asked, and how their results are kept."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def ask_for_replicates(description: str | None, result: str, quick: int) -> argparse.Namespace:
    """Read the command line: ``replicates`` of each setting (`quick` with --quick), ``seed``, and ``out``."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=1000, help="of each setting (default %(default)s)")
    parser.add_argument("--seed", type=int, default=20190513)
    parser.add_argument("--out", type=Path, default=RESULTS / result)
    parser.add_argument("--quick", action="store_true", help=f"a smoke test: {quick} replicates")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.replicates = quick
    return arguments


def keep_results(out: Path, settings: Mapping[str, object], results: Sequence[Mapping[str, object]]) -> None:
    """Write JSON with one line per result."""
    lines = ",\n  ".join(map(json.dumps, results))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(f'{{"settings": {json.dumps(settings)},\n "results": [\n  {lines}\n ]}}\n', encoding="utf-8")
