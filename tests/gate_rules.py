"""Rules of a gate: the least one, what rules may be on, and what a configuration with some means or lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from biasspark.config import Gate, parse_config
from tests.least_configuration import changed, faults_of

LEAST_RULE = {"name": "floor", "metric": "bpsn_auc", "min": 0.8}
AUCS = '"subgroup_auc", "bpsn_auc", "bnsp_auc", "background_auc", "auc", "negative_aeg", "positive_aeg"'
RATES = '"tpr", "fpr", "tnr", "fnr", "precision", "selection_rate"'
METRICS = f'{AUCS}, {RATES}, "tpr_gap", "fpr_gap", "tnr_gap", "fnr_gap", "precision_gap", "selection_rate_gap"'


def gate_of(*rules: dict[str, Any], **tables: Any) -> Gate:
    gate = parse_config(changed(gate={"rule": list(rules)}, **tables), Path()).gate
    assert gate is not None
    return gate


def gate_faults(**tables: Any) -> tuple[str, ...]:
    return faults_of(changed(**tables))
