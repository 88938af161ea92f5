"""Rules of a gate: the least one, and the gate of a configuration with some."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from biasspark.config import Gate, parse_config
from tests.harness.least_configuration import changed

MINIMAL_RULE = {"name": "floor", "metric": "bpsn_auc", "min": 0.8}


def gate_of(*rules: dict[str, Any], **tables: Any) -> Gate:
    """Return the gate of the least configuration with these rules and tables."""
    gate = parse_config(changed(gate={"rule": list(rules)}, **tables), Path()).gate
    assert gate is not None
    return gate
