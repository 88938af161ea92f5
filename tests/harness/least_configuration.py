"""The least configuration that is complete, the least rule of a gate, what a test changes, and what is then wrong."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from biasspark.config import Gate, parse_config
from biasspark.errors import BiasSparkError, ConfigError, Fault

LEAST: dict[str, Any] = {
    "corpus": {"name": "civil", "path": "/data/civil"},
    "label": {"column": "toxic"},
    "models": {"toxicity": "toxicity"},
    "identities": {"columns": ["male"]},
    "output": {"path": "/warehouse"},
}
MINIMAL_RULE = {"name": "floor", "metric": "bpsn_auc", "min": 0.8}


def changed(**tables: Any) -> dict[str, Any]:
    """Return the least configuration with some keys of some tables changed; None takes a table away."""
    table = copy.deepcopy(LEAST)
    for name, part in tables.items():
        if isinstance(part, dict) and isinstance(table.get(name), dict):
            table[name].update(part)
        else:
            table[name] = part
    return table


def gate_of(*rules: dict[str, Any], **tables: Any) -> Gate:
    """Return the gate of the least configuration with these rules and tables, which reads back from the ledger."""
    config = parse_config(changed(gate={"rule": list(rules)}, **tables), Path())
    assert parse_config(json.loads(config.json), Path()) == config
    assert config.gate is not None
    return config.gate


def raised_fault(error: type[BiasSparkError], act: Callable[..., object], *arguments: Any, **keywords: Any) -> Fault:
    """Return the one fault with which a call ends."""
    (fault,) = raised_faults(error, act, *arguments, **keywords)
    return fault


def raised_faults(
    error: type[BiasSparkError], act: Callable[..., object], *arguments: Any, **keywords: Any
) -> tuple[Fault, ...]:
    """Return the faults with which a call ends, none of which is a mere sentence."""
    with pytest.raises(error) as caught:
        act(*arguments, **keywords)
    faults = tuple(fault for fault in caught.value.faults if isinstance(fault, Fault))
    assert len(faults) == len(caught.value.faults)
    return faults


def faults_of(table: dict[str, Any], base: Path = Path()) -> tuple[Fault, ...]:
    """Return the faults of a configuration that has some."""
    return raised_faults(ConfigError, parse_config, table, base)


def key_of(fault: Fault) -> str:
    """Return the key of a fault, with dots: ``identities.columns.2``."""
    return ".".join(map(str, fault.path))


def keys_of(table: dict[str, Any]) -> list[str]:
    """Return the keys of all faults of a configuration."""
    return [key_of(fault) for fault in faults_of(table)]
