"""The name of a bias, one identity at a time and as docs/metrics.md says it. SciPy; nothing of biasspark computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scipy.stats import norm

MARGIN = 0.05


def name_bias(row: Mapping[str, Any]) -> dict[str, str | None]:
    """Name the bias of a row with the five metrics, the background AUC, and their ends; None where there is none."""
    if all(row[f"{name}"] is None for name in ("subgroup_auc", "bpsn_auc", "bnsp_auc", "negative_aeg", "positive_aeg")):
        return {"bias": None, "bias_size": None}
    lowered = {name for name in ("subgroup_auc", "bpsn_auc", "bnsp_auc") if is_lowered(row, name)}
    negatives = direction(row, "negative_aeg", lowers="up" if "bpsn_auc" in lowered else "")
    positives = direction(row, "positive_aeg", lowers="down" if "bnsp_auc" in lowered else "")
    name = by_shifts(negatives, positives, lowered)
    if any(is_spread(row, name) for name in lowered):
        name = "wide"
    size = "large" if lowered else "small"
    return {"bias": name, "bias_size": None if name == "no_evidence" else size}


def by_shifts(negatives: str, positives: str, lowered: set[str]) -> str:
    if negatives and negatives == positives:
        return f"shifted_{negatives}"
    if negatives and positives:
        if negatives == "down":
            return "farther_apart"
        return "poorly_separated" if "subgroup_auc" in lowered else "closer_together"
    if negatives or positives:
        return f"negatives_shifted_{negatives}" if negatives else f"positives_shifted_{positives}"
    if "subgroup_auc" in lowered:
        return "poorly_separated"
    return "wide" if lowered else "no_evidence"


def is_lowered(row: Mapping[str, Any], name: str) -> bool:
    """Whether an AUC is below that of the background by the margin, and the intervals do not overlap."""
    if row[f"{name}_high"] is None or row["background_auc_low"] is None:
        return False
    return bool(
        row[f"{name}_high"] < row["background_auc_low"] and round(row["background_auc"] - row[name], 12) >= MARGIN
    )


def direction(row: Mapping[str, Any], gap: str, lowers: str) -> str:
    """Where the scores of a label are shifted, if they are."""
    value, low, high = (row[f"{gap}{end}"] for end in ("", "_low", "_high"))
    if value is None or round(abs(value), 12) < MARGIN:
        return ""
    where = "up" if value > 0 else "down"
    is_sure = low is not None and (low > 0 or high < 0)
    return where if is_sure or where == lowers else ""


def is_spread(row: Mapping[str, Any], name: str) -> bool:
    """Whether an AUC loses more than shifts of equally spread scores explain, by more than the larger shift."""

    def probit(value: float) -> float:
        return float(norm.ppf(min(max(value, 1e-12), 1 - 1e-12)))

    shifts = {
        gap: tuple(probit(0.5 + row[f"{gap}_{end}"]) for end in ("low", "high"))
        for gap in ("negative_aeg", "positive_aeg")
        if row[f"{gap}_low"] is not None
    }
    needed = {"subgroup_auc": {*shifts, "negative_aeg", "positive_aeg"}, "bpsn_auc": {"negative_aeg"}}
    if not needed.get(name, {"positive_aeg"}) <= set(shifts):
        return False
    explained = 0.0
    if name != "bnsp_auc":
        explained += max(shifts["negative_aeg"][1], 0.0)
    if name != "bpsn_auc":
        explained += max(-shifts["positive_aeg"][0], 0.0)
    lost = probit(row["background_auc_low"]) - probit(row[f"{name}_high"])
    return lost - explained > max(abs(end) for ends in shifts.values() for end in ends)
