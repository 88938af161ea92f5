"""What the simulations left behind in scripts/results."""

from __future__ import annotations

import json
from typing import Any

from scripts.simulations import RESULTS


def read_kept(result: str) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads((RESULTS / result).read_text(encoding="utf-8"))
    return kept
