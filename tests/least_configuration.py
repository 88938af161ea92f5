"""The least configuration that is complete, and what a test changes in it."""

from __future__ import annotations

import copy
from typing import Any

LEAST: dict[str, Any] = {
    "corpus": {"name": "civil", "path": "/data/civil"},
    "label": {"column": "toxic"},
    "models": {"toxicity": "toxicity"},
    "identities": {"columns": ["male"]},
    "output": {"path": "/warehouse"},
}


def changed(**tables: Any) -> dict[str, Any]:
    """The least configuration with some keys of some tables changed; None takes a table away."""
    table = copy.deepcopy(LEAST)
    for name, part in tables.items():
        if isinstance(part, dict) and isinstance(table.get(name), dict):
            table[name].update(part)
        else:
            table[name] = part
    return table
