"""Pinned AUC, rates, histograms, label balance and template scores as their definitions say; no code of the product.

Every function takes the rows of one slice that count for one model: `score`, `label` (whether positive) and `inside`
(1 in the identity, 0 outside, NaN where that is not known). What is undefined is None.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from tests.oracle.intervals import newcombe_gap
from tests.oracle.suite import PAIRS, auc_by_pairs

Scores = NDArray[np.floating[Any]]
Labels = NDArray[np.bool_]
Row = dict[str, Any]

RATES = {
    # rate: (what is counted, among what)
    "tpr": (("true_positive",), ("true_positive", "false_negative")),
    "fpr": (("false_positive",), ("false_positive", "true_negative")),
    "tnr": (("true_negative",), ("false_positive", "true_negative")),
    "fnr": (("false_negative",), ("true_positive", "false_negative")),
    "precision": (("true_positive",), ("true_positive", "false_positive")),
    "selection_rate": (
        ("true_positive", "false_positive"),
        ("true_positive", "false_positive", "true_negative", "false_negative"),
    ),
}
TERMS = ("background_auc", "subgroup_auc", "bpsn_auc", "bnsp_auc")


def defined(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


# ---- pinned AUC


def overall_auc(score: Scores, label: Labels) -> float | None:
    return defined(auc_by_pairs(score[~label], score[label]))


def pinned_auc(cells: Mapping[str, Scores], include_subgroup: bool = True) -> Row:
    """The AUC of rows with weights: how often each stands in the pinned set, in expectation.

    Half of it is the subgroup. As many rows are drawn from every row whose membership is known, or from those outside
    of the subgroup. With the AUC the share of each kind of pair in the weight, and an empty cell where there is no
    pair.
    """
    sizes = {cell: len(scores) for cell, scores in cells.items()}
    drawn = [cell for cell in cells if include_subgroup or cell.startswith("background")]
    n_subgroup, n_drawn = sizes["subgroup_negative"] + sizes["subgroup_positive"], sum(sizes[cell] for cell in drawn)
    chance = divide(n_subgroup, n_drawn) or 0.0
    weights = {cell: cell.startswith("subgroup") + chance * (cell in drawn) for cell in cells}
    totals = {cell: weights[cell] * size for cell, size in sizes.items()}
    pairs = {term: totals[PAIRS[term][0]] * totals[PAIRS[term][1]] * bool(n_drawn) for term in TERMS}
    row: Row = {"pinned_auc": None, "reason": next((f"no_{cell}s" for cell, size in sizes.items() if not size), None)}
    if sum(pairs.values()):
        labels = np.repeat([cell.endswith("positive") for cell in cells], list(sizes.values()))
        by_row = np.repeat(list(weights.values()), list(sizes.values()))
        value = roc_auc_score(labels, np.concatenate(list(cells.values())), sample_weight=by_row)
        row = {"pinned_auc": float(value), "reason": None}
    return row | {term.replace("_auc", "_weight"): divide(pairs[term], sum(pairs.values())) for term in TERMS}


# ---- rates at a threshold


def decide(score: Scores, threshold: float) -> Labels:
    """A float32 score is compared with the float32 that is written as the threshold is."""
    return np.asarray(score >= score.dtype.type(threshold), bool)


def count_decisions(score: Scores, label: Labels, threshold: float) -> dict[str, int]:
    decided = decide(score, threshold)
    counts = {"true_negative": ~decided & ~label, "false_positive": decided & ~label}
    counts |= {"false_negative": ~decided & label, "true_positive": decided & label}
    return {what: int(rows.sum()) for what, rows in counts.items()}


def fraction_of(counts: Mapping[str, int], rate: str) -> tuple[int, int]:
    counted, among = RATES[rate]
    return sum(counts[what] for what in counted), sum(counts[what] for what in among)


def divide(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def threshold_rates(score: Scores, label: Labels, inside: Scores, threshold: float, level: float = 0.95) -> Row:
    subgroup, background = (count_decisions(score[inside == side], label[inside == side], threshold) for side in (1, 0))
    row: Row = {f"n_{what}": count for what, count in subgroup.items()}
    row |= {f"background_n_{what}": count for what, count in background.items()}
    for rate in RATES:
        of_subgroup, of_background = fraction_of(subgroup, rate), fraction_of(background, rate)
        mine, theirs = divide(*of_subgroup), divide(*of_background)
        row |= {rate: mine, f"background_{rate}": theirs}
        row |= dict.fromkeys((f"{rate}_gap", f"{rate}_gap_low", f"{rate}_gap_high"))
        if mine is not None and theirs is not None:
            row[f"{rate}_gap"] = mine - theirs
            row[f"{rate}_gap_low"], row[f"{rate}_gap_high"] = newcombe_gap(of_subgroup, of_background, level)
    return row | {"reason": None}


def threshold_summary(score: Scores, label: Labels, identities: Mapping[str, Scores], threshold: float) -> Row:
    """Error rates of all rows, and the sum over identities of how far theirs are from them."""
    everyone = count_decisions(score, label, threshold)
    row: Row = {}
    for rate, name in (("fpr", "false_positive"), ("fnr", "false_negative")):
        overall = row[rate] = divide(*fraction_of(everyone, rate))
        rates = [
            divide(*fraction_of(count_decisions(score[inside == 1], label[inside == 1], threshold), rate))
            for inside in identities.values()
        ]
        found = [abs(overall - one) for one in rates if overall is not None and one is not None]
        row[f"{name}_equality_difference"] = sum(found) if found else None
    return row


# ---- histograms


def histogram_edges(scores: Iterable[float], bins: int) -> list[float]:
    """Where the bins of a model meet: of [0, 1], or from its least to its greatest score where one lies outside."""
    found = [float(score) for score in scores]
    low, high = (0.0, 1.0) if all(0 <= score <= 1 for score in found) else (min(found), max(found))
    return [low + (high - low) * place / bins for place in range(bins)] + [high]


def histogram(scores: Scores, edges: Sequence[float]) -> dict[int, Row]:
    """The bins that are not empty."""
    counts = np.histogram(scores, edges)[0].tolist()
    bins = [{"bin_low": low, "bin_high": high} for low, high in pairwise(edges)]
    return {place: bins[place] | {"n_rows": count} for place, count in enumerate(counts) if count}


# ---- label balance


def label_balance(
    label: Sequence[bool | None],
    length: Sequence[int | None] | None,
    inside: Iterable[float],
    edges: Sequence[int] = (),
) -> dict[str, Row]:
    """The buckets of one identity; `label` is None where it is unknown, `length` where there is no text."""
    known = np.array([one is not None for one in label], bool)
    positive, member = np.array(label)[known].astype(bool), np.asarray(inside)[known] == 1
    found: dict[str, Row] = {}
    if length is not None:
        lengths = np.array([math.nan if one is None else one for one in length], float)[known]
        for low, high in ((low, high - 1) for low, high in pairwise(edges)):
            within = (low <= lengths) & (lengths <= high)
            counts = balance_bucket(positive[member & within], positive[within])
            found[f"{low}-{high}"] = {"length_low": low, "length_high": high, **counts}
    everywhere = balance_bucket(positive[member], positive)
    if found and positive.any():
        everywhere["n_negatives_to_add"] = sum(row["n_negatives_to_add"] or 0 for row in found.values())
    found["(all)"] = {"length_low": None, "length_high": None, **everywhere}
    return found


def balance_bucket(members: Labels, everybody: Labels) -> Row:
    """Say what share of the rows of an identity is positive, and how many negatives bring it down to everybody's."""
    n_rows, n_positive = len(members), int(members.sum())
    n_all, all_positive = len(everybody), int(everybody.sum())
    enough = -(-n_positive * n_all // all_positive) if all_positive else None
    return {
        "n_rows": n_rows,
        "n_positive": n_positive,
        "positive_rate": divide(n_positive, n_rows),
        "overall_positive_rate": divide(all_positive, n_all),
        "n_negatives_to_add": None if enough is None else max(0, enough - n_rows),
        "reason": None,
    }


def template_scores(template: Sequence[Any], score: Scores, inside: Scores) -> dict[Any, Row]:
    """The mean score of the identity's rows by template; rows without a template are in none."""
    found: dict[Any, Row] = {}
    for name in set(template) - {None}:
        rows = zip(template, score.tolist(), inside.tolist(), strict=True)
        scores = [value for other, value, member in rows if other == name and member == 1]
        if scores:
            spread = stdev(scores) if len(scores) > 1 else None
            found[name] = {"n_rows": len(scores), "mean_score": fmean(scores), "sd_score": spread, "reason": None}
    return found
