"""The least configuration that is complete, what a test changes in it, and what is then wrong with it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from biasspark.config import parse_config
from biasspark.errors import ConfigError

LEAST: dict[str, Any] = {
    "corpus": {"name": "civil", "path": "/data/civil"},
    "label": {"column": "toxic"},
    "models": {"toxicity": "toxicity"},
    "identities": {"columns": ["male"]},
    "output": {"path": "/warehouse"},
}
TABLES = (
    "[corpus], [label], [models], [identities], [slices], [ranking], [intervals], [pinned_auc], [thresholds], "
    "[histograms], [label_balance], [templates], [pinned_skew], [attribution], [compare], [evidence], [privacy], "
    "[gate], [rejects], [state], [output], [report], [maintenance]"
)
"""All that a configuration may have, as messages list them."""


def changed(**tables: Any) -> dict[str, Any]:
    """The least configuration with some keys of some tables changed; None takes a table away."""
    table = copy.deepcopy(LEAST)
    for name, part in tables.items():
        if isinstance(part, dict) and isinstance(table.get(name), dict):
            table[name].update(part)
        else:
            table[name] = part
    return table


def faults_of(table: dict[str, Any], base: Path = Path()) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        parse_config(table, base)
    return caught.value.faults
