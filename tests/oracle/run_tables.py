"""What the tables of a run must say, from its corpus and the definitions: numpy, SciPy and scikit-learn.

Nothing of biasspark computes here. Every table follows from the scores of the cells of each identity, which a mask
picks out of the corpus; `u_statistics` counts pairs by looking every score up among the sorted ones of the other cell.
It knows what conf/demo.toml asks for: identities that are columns, rows without an annotation left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import pmean

from tests.oracle.bias_names import name_bias
from tests.oracle.intervals import auc_interval
from tests.oracle.optional_metrics import (
    TERMS,
    divide,
    histogram,
    label_balance,
    pinned_auc,
    threshold_rates,
    threshold_summary,
)
from tests.oracle.suite import PAIRS

OVERALL = "(overall)"
LENGTHS = (20, 60, 180, 540, 1620, 4860)
POWER = -5
LEVEL = 0.95
SUMMARIZED = {
    **dict.fromkeys(("subgroup_auc", "bpsn_auc", "bnsp_auc"), False),
    **dict.fromkeys(("negative_aeg", "positive_aeg"), True),
}
"""The metrics of which model_summary gives the worst, and whether that is the one furthest from 0."""

KEYS = {
    "u_statistics": ("model", "slice", "identity", "low_cell", "high_cell"),
    "bias_metrics": ("model", "slice", "identity"),
    "model_summary": ("model", "slice"),
    "pinned_auc": ("model", "slice", "identity"),
    "threshold_rates": ("model", "slice", "identity", "threshold"),
    "threshold_summary": ("model", "slice", "threshold"),
    "score_histograms": ("model", "slice", "identity", "cell", "bin"),
    "label_balance": ("identity", "bucket"),
}
"""The tables that are computed, and the key of a row of each."""

SAME = 1e-12
"""Two values that differ by less are equal where the worst identity is named."""

Scores = npt.NDArray[np.float64]
Cells = Mapping[str, Scores]
Values = dict[str, Any]
Tables = dict[str, dict[tuple[Any, ...], Values]]


def compute_tables(corpus: Path, config: Mapping[str, Any]) -> Tables:
    """Compute the rows of all tables of a run: by table and key, the columns. Where names tie, a set of them."""
    rows = pd.read_parquet(corpus)
    rows = rows[rows[config["label"]["column"]].notna()]
    slices = {"all": np.full(len(rows), True)}
    slices |= {name: rows.eval(condition).to_numpy(bool) for name, condition in config.get("slices", {}).items()}
    tables: Tables = {table: {} for table in KEYS}
    for (model, column), (cut, chosen) in product(config["models"].items(), slices.items()):
        for table, found in measure_slice(rows[chosen & rows[column].notna()], column, config).items():
            tables[table] |= {(model, cut, *key): values for key, values in found.items()}
    tables["label_balance"] = balance_labels(rows, config)
    return tables


def measure_slice(rows: pd.DataFrame, column: str, config: Mapping[str, Any]) -> Tables:
    """Compute the tables of one model and slice."""
    tables: Tables = defaultdict(dict)
    score, positive = rows[column], is_positive(rows, config)
    arrays, states = (score.to_numpy(), positive.to_numpy(bool)), dict[str, Scores]()
    whole = {"negative": np.sort(score[~positive]), "positive": np.sort(score[positive])}
    overall = compare_cells(whole["negative"], whole["positive"])
    tables["u_statistics"][OVERALL, "negative", "positive"] = overall
    tables["score_histograms"] |= count_bins(OVERALL, whole, config)
    for identity in config["identities"]["columns"]:
        known = rows[identity].notna()
        inside = rows.loc[known, identity] >= config["identities"]["threshold"]
        sides = (("subgroup", inside), ("background", ~inside))
        labels = (("negative", ~positive[known]), ("positive", positive[known]))
        cells = {
            f"{side}_{label}": np.sort(score[known][of_side & of_label])
            for (side, of_side), (label, of_label) in product(sides, labels)
        }
        pairs = {metric: compare_cells(cells[low], cells[high]) for metric, (low, high) in PAIRS.items()}
        tables["u_statistics"] |= {(identity, *PAIRS[metric]): pair for metric, pair in pairs.items()}
        metrics = measure_suite(pairs)
        tables["bias_metrics"][identity,] = count_cells(cells) | metrics | name_bias(metrics)
        of_known = (np.sort(score[known][labeled]) for _, labeled in labels)
        terms = {term: metrics[term] for term in TERMS}
        whole_aucs = {"overall_auc": overall["auc"], "known_auc": compare_cells(*of_known)["auc"]}
        tables["pinned_auc"][identity,] = pinned_auc(cells) | terms | whole_aucs
        tables["score_histograms"] |= count_bins(identity, cells, config)
        states[identity] = np.where(known, inside.reindex(rows.index, fill_value=False), np.nan)
    for threshold in config["thresholds"]["at"]:
        for identity, state in states.items():
            tables["threshold_rates"][identity, threshold] = threshold_rates(*arrays, state, threshold, LEVEL)
        tables["threshold_summary"][threshold,] = threshold_summary(*arrays, states, threshold)
    tables["model_summary"][()] = sum_up(overall, tables)
    return tables


def is_positive(rows: pd.DataFrame, config: Mapping[str, Any]) -> pd.Series[bool]:
    """Say of every row whether it is a positive."""
    found: pd.Series[bool] = rows[config["label"]["column"]] >= config["label"]["threshold"]
    return found


def compare_cells(low: Scores, high: Scores) -> Values:
    """Count the pairs of two sorted cells that are rightly ordered, ties half, and DeLong's variance of their share."""
    of_high = np.searchsorted(low, high, "left") + np.searchsorted(low, high, "right")
    of_low = 2 * len(high) - np.searchsorted(high, low, "left") - np.searchsorted(high, low, "right")
    variance = None
    if min(len(low), len(high)) > 1:
        parts = of_high / (2 * len(low)), of_low / (2 * len(high))
        variance = float(sum(np.var(part, ddof=1) / len(part) for part in parts))
    return {
        "n_low": len(low),
        "n_high": len(high),
        "u_doubled": int(of_high.sum()),
        "low_square_sum": int(of_low @ of_low),
        "high_square_sum": int(of_high @ of_high),
        "auc": divide(int(of_high.sum()), 2 * len(low) * len(high)),
        "auc_variance": variance,
    }


def measure_suite(pairs: Mapping[str, Values]) -> Values:
    """Give every metric of an identity: an AUC, or for a gap 1/2 less."""
    values: Values = {}
    for metric, pair in pairs.items():
        values |= enclose(metric, pair, 0.5 if metric.endswith("aeg") else 0.0)
    return values


def enclose(name: str, pair: Values, shift: float = 0.0) -> Values:
    """Give an AUC less a shift, its interval, and its method."""
    method, ends, auc = "none", None, pair["auc"]
    if auc is not None:
        method, ends = auc_interval(auc, pair["auc_variance"], pair["n_low"], pair["n_high"], LEVEL)
    value, low, high = (None if one is None else one - shift for one in (auc, *(ends or (None, None))))
    return {name: value, f"{name}_low": low, f"{name}_high": high, f"{name}_method": method}


def count_cells(cells: Cells) -> Values:
    """Give the size of every cell and of the subgroup, and of both sides the share of positives."""
    sizes = {f"n_{cell}": len(scores) for cell, scores in cells.items()}
    sizes["subgroup_size"] = sizes["n_subgroup_negative"] + sizes["n_subgroup_positive"]
    return sizes | {
        f"{side}_positive_rate": divide(
            sizes[f"n_{side}_positive"], sizes[f"n_{side}_negative"] + sizes[f"n_{side}_positive"]
        )
        for side in ("subgroup", "background")
    }


def count_bins(identity: str, cells: Cells, config: Mapping[str, Any]) -> dict[tuple[Any, ...], Values]:
    """Count the scores of every cell in bins from 0 to 1; an empty bin is none."""
    edges = np.linspace(0, 1, config["histograms"]["bins"] + 1).tolist()
    return {
        (identity, cell, place): row
        for cell, scores in cells.items()
        for place, row in histogram(scores, edges).items()
    }


def sum_up(overall: Values, tables: Tables) -> Values:
    """Sum the metrics up over identities."""
    metrics = {identity: row for (identity,), row in tables["bias_metrics"].items()}
    summary = {"n_negative": overall["n_low"], "n_positive": overall["n_high"]}
    summary |= {"auc_variance": overall["auc_variance"]} | enclose("auc", overall)
    for name, is_gap in SUMMARIZED.items():
        values = {identity: row[name] for identity, row in metrics.items() if row[name] is not None}
        if is_gap:
            sizes = {identity: abs(value) for identity, value in values.items()}
            summary[f"{name}_max_abs"] = max(sizes.values(), default=None)
            summary[f"{name}_max_abs_identity"] = name_lowest({one: -size for one, size in sizes.items()})
        else:
            summary |= {f"{name}_{end.__name__}": end(values.values(), default=None) for end in (min, max)}
            summary[f"{name}_min_identity"] = name_lowest(values)
            summary[f"{name}_power_mean"] = float(pmean(list(values.values()), POWER)) if values else None
    summary["n_identities_undefined"] = sum(any(row[name] is None for name in SUMMARIZED) for row in metrics.values())
    parts = [overall["auc"], *(summary[f"{name}_power_mean"] for name, is_gap in SUMMARIZED.items() if not is_gap)]
    summary["competition_score"] = None if None in parts else sum(parts) / 4
    pinned = [row for row in tables["pinned_auc"].values() if row["pinned_auc"] is not None]
    departures = [abs(row["known_auc"] - row["pinned_auc"]) for row in pinned]
    summary["pinned_auc_equality_difference"] = sum(departures) if pinned else None
    return summary


def name_lowest(values: Mapping[str, float]) -> frozenset[str] | None:
    """Name whoever has the least value."""
    if not values:
        return None
    return frozenset(name for name, value in values.items() if value <= min(values.values()) + SAME)


def balance_labels(rows: pd.DataFrame, config: Mapping[str, Any]) -> dict[tuple[Any, ...], Values]:
    """Count rows and positives of every identity by length, and the negatives that would balance them."""
    positive, length = is_positive(rows, config).tolist(), rows[config["label_balance"]["length"]].tolist()
    inside = {OVERALL: np.ones(len(rows))}
    for name in config["identities"]["columns"]:
        inside[name] = (rows[name] >= config["identities"]["threshold"]).to_numpy(float)
    return {
        (identity, bucket): {name: value for name, value in row.items() if name != "reason"}
        for identity, of_rows in inside.items()
        for bucket, row in label_balance(positive, length, of_rows, LENGTHS).items()
    }
