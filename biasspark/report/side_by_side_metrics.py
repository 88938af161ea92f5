"""The metrics of two models that stand side by side, and how their values are written. No Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from biasspark.columns import SUMMARISED_AUCS, SUMMARISED_GAPS

Row = Mapping[str, Any]

COMPARED = (*SUMMARISED_AUCS, *SUMMARISED_GAPS)
"""The metrics that stand side by side, in the order of the papers."""

SUITE_TITLES = {
    "subgroup_auc": "Subgroup AUC",
    "bpsn_auc": "BPSN AUC",
    "bnsp_auc": "BNSP AUC",
    "negative_aeg": "Negative AEG",
    "positive_aeg": "Positive AEG",
}
"""The headings of `COMPARED`, as the papers have them."""

WORST_AUC = "worst_auc"
"""The lowest of an identity's subgroup, BPSN and BNSP AUC."""

UNPAIRED = "A and B count different numbers of rows: some rows lack a score"


def is_worse(row: Row, name: str, digits: int) -> bool:
    """Say whether B is worse than A in a metric, so far as the digits that are shown tell."""
    difference = row[f"{name}_difference"]
    if difference is None:
        return False
    shown = float(write_value(difference, digits))
    return shown > 0 if name in SUMMARISED_GAPS else shown < 0


def write_value(value: float, digits: int, signed: bool = True) -> str:
    """Write a number with so many decimals; zeros alone never have a minus."""
    return f"{value:{'+' if signed else ''}z.{digits}f}"


def write_metric(row: Row, name: str, side: str, digits: int) -> str | None:
    """Write a metric of one model, None where it is NULL: an AUC without a sign, a gap with it."""
    value = row[f"{name}_{side}"]
    return None if value is None else write_value(value, digits, signed=name in SUMMARISED_GAPS)


def say_missing(row: Row, name: str, side: str) -> str:
    """Say why a metric of one model is NULL; a dash for an identity that the model lacks."""
    return row[f"{name}_{side}_reason"] or "-"


def drop_leading_zero(number: str) -> str:
    """Write .868 for 0.868: no value here passes 1, and a line is short."""
    return re.sub(r"^([+-]?)0\.", r"\1.", number)
