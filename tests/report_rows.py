"""Made-up rows of a night and of those before it, as the published tables have them, for reports without Spark.

The scores of two models are drawn once, and the metrics counted from them plainly, pair by pair.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from unittest import mock

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from biasspark.columns import RATES
from biasspark.report.facts import SUMMED_AUCS, SUMMED_RATES, NightFacts, PastNight
from biasspark.report.page import write_page
from tests.oracle.suite import PAIRS

Row = dict[str, Any]
Scores = NDArray[np.float64]

NIGHT = date(2026, 1, 15)
MODELS = ("toxicity_1", "toxicity_6")
SCRIPT = "</script><script>document.title='owned'</script>"
IMAGE = "\"><img src=x onerror=document.title='owned'>"
HOSTILE = (SCRIPT, IMAGE, "$x$ {{ 7 * 7 }} \u202egnp.exe")
NAMES = (
    "gay",
    "black",
    "muslim",
    "a very long identity whose name goes on & on_without_end_or_space_anywhere",
    *HOSTILE,
)
SHIFTS = {"gay": 0.3, "black": 0.2, "muslim": 0.1}
EMPTY = "unmentioned"
"""An identity without positives."""


def night_facts(
    *,
    identities: Sequence[str] = NAMES,
    n_nights: int = 4,
    thresholds: Sequence[float] = (0.5,),
    groups: Sequence[str] = ("black", "others", SCRIPT),
    without: Sequence[str] = (),
) -> NightFacts:
    """Give a whole night; ``groups`` are crossed with each other, ``without`` names tables that it lacks."""
    cells = {(m, name): draw_cells(m, name) for m in MODELS for name in (*identities, EMPTY)}
    metrics = [measure_suite(model, name, own) for (model, name), own in cells.items()]
    tables: dict[str, list[Row]] = {
        "bias_metrics": [row | {"slice": cut} for cut in ("all", "short") for row in metrics],
        "model_summary": [sum_up(model, metrics) | {"slice": cut} for cut in ("all", "short") for model in MODELS],
        "score_histograms": [row for (m, name), own in cells.items() for row in count_bins(m, name, own)],
        "threshold_rates": [decide(m, name, own, at) for at in thresholds for (m, name), own in cells.items()],
        "threshold_summary": [decide_all(model, at) for at in thresholds for model in MODELS],
        "label_balance": [row for name in ("(overall)", *identities) for row in balance(name)],
        "pinned_auc": [pin(row) for row in metrics],
        "model_comparisons": list(compare_suites(metrics)),
        "crossed_pairs": [cross_identities(row) for row in metrics if row["identity"] in identities[:2]],
        "template_means": [average_templates(row) for row in metrics],
        **attribution_rows(groups),
    }
    tables["summed_aucs"] = count_summed(metrics, ("model",), SUMMED_AUCS)
    tables["summed_rates"] = count_summed(tables["threshold_rates"], ("model", "threshold"), SUMMED_RATES)
    history = [past_night(NIGHT - timedelta(days=back), metrics) for back in range(n_nights - 1, 0, -1)]
    return NightFacts(
        corpus=IMAGE,
        run_date=NIGHT,
        run=ledger_row(),
        tables={name: rows for name, rows in tables.items() if name not in without},
        runs={"bias_metrics": "r_now", "attribution": "r_attribution"},
        history=history,
        baseline=history[-1] if history else None,
        standing="the night before" if history else "",
        n_identities=len(identities) + 1,
    )


def write_undrawn(facts: NightFacts) -> str:
    """Write the page without its pictures, which take nearly all the time, for what its words say."""
    drawn = ("draw_intervals", "draw_pinned", "draw_rate_curves", "draw_trends")
    with mock.patch.multiple("biasspark.report.page", **dict.fromkeys(drawn, lambda *_: Markup("a picture"))):
        return write_page(facts)


def read_text(page: str) -> str:
    """Give the text of a page without tags, small figures behind what they stand below."""
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", page)).split())


def full_night() -> NightFacts:
    """Give fifty identities and two models with all that a page can have: a month, thresholds, alerts, heat maps."""
    names = [f"identity number {place}" for place in range(49)]
    facts = night_facts(identities=names, n_nights=31, thresholds=(0.2, 0.4, 0.6, 0.8), groups=names[:20])
    said = "bpsn_auc 0.710 (0.650 to 0.770): not shown to be below 0.800, nor to be at least 0.800 (p 0.010, 0.900)."
    own = [alert("insufficient_evidence", identity=name, message=said) for name in names for _ in range(2)]
    others = [alert_against("pass", identity=name, message=said) for name in names for _ in range(2)]
    rows = {"bias_alerts": [*own, alert("fail"), alert("warn")], "comparison_alerts": [*others, *others[:2]]}
    return replace(facts, tables={**facts.tables, **rows})


def count_summed(rows: Sequence[Row], by: Sequence[str], sums: Mapping[str, Mapping[str, str]]) -> list[Row]:
    """Count which identities are in a sum, and of which of them an interval is missing or wider than 0.1."""
    found = []
    for key in dict.fromkeys(tuple(row[name] for name in by) for row in rows):
        own = [row for row in rows if tuple(row[name] for name in by) == key]
        counts: Row = dict(zip(by, key, strict=True))
        for total, parts in sums.items():
            there = [
                [(r[f"{end}_low"], r[f"{end}_high"]) for name, end in parts.items() if r[name] is not None] for r in own
            ]
            weak = [any(low is None or high - low > 0.1 for low, high in ends) for ends in there]
            counts |= {f"{total}_n": sum(map(bool, there)), f"{total}_weak": sum(weak)}
        found.append(counts)
    return found


def ledger_row() -> Row:
    at = datetime(2026, 1, 15, 3, tzinfo=UTC)
    return {
        "run_id": "r_now",
        "n_rows": 12_345,
        "n_rejected": 6,
        "rejects": {"null_label": 6},
        "warnings": ["toxicity_1 has few distinct scores."],
        "config": '{"intervals": {"level": 0.95}, "corpus": {"name": "</pre><script>"}}',
        "config_hash": "ab" * 32,
        "code_version": "0.1.0",
        "spark_version": "4.1.4",
        "started_at": at,
        "published_at": at,
    }


def draw_cells(model: str, name: str) -> dict[str, Scores]:
    """Give the scores of the four cells of an identity; the new model shifts it half as far."""
    source = np.random.default_rng([len(name), *map(ord, name), MODELS.index(model)])
    shift = SHIFTS.get(name, 0.03) / (1 + MODELS.index(model))
    many = 0 if name == EMPTY else 60 if name in SHIFTS else 8
    middles = {"background_negative": (0.3, 120), "background_positive": (0.7, 90)}
    middles |= {"subgroup_negative": (0.3 + shift, 50), "subgroup_positive": (0.7 + shift / 2, many)}
    return {cell: np.clip(source.normal(at, 0.12, n), 0, 1).round(3) for cell, (at, n) in middles.items()}


def order_share(low: Scores, high: Scores) -> float | None:
    """Give how often the high cell scores above the low one, ties half; None where either is empty."""
    if not low.size or not high.size:
        return None
    difference = high[:, None] - low[None, :]
    return float(((difference > 0) + 0.5 * (difference == 0)).mean())


def measure_suite(model: str, name: str, cells: dict[str, Scores]) -> Row:
    row: Row = {"model": model, "slice": "all", "identity": name, "crossed": False, "run_id": "r_now"}
    row |= {f"n_{cell}": int(scores.size) for cell, scores in cells.items()}
    n = row["n_subgroup_negative"] + row["n_subgroup_positive"]
    row["subgroup_positive_rate"] = row["n_subgroup_positive"] / n
    for metric, (low, high) in PAIRS.items():
        share = order_share(cells[low], cells[high])
        half = 0.5 if metric.endswith("aeg") else 0.0
        width = 0.3 / min(cells[low].size, cells[high].size) ** 0.5 if share is not None else 0.0
        row[metric] = None if share is None else share - half
        row[f"{metric}_low"] = None if share is None else max(share - width, 0) - half
        row[f"{metric}_high"] = None if share is None else min(share + width, 1) - half
        row[f"{metric}_method"] = "none" if share is None else "logit_delong"
        row[f"{metric}_reason"] = "no_subgroup_positives" if share is None else None
    return row


def sum_up(model: str, metrics: Sequence[Row]) -> Row:
    own = [row for row in metrics if row["model"] == model]
    row: Row = {"model": model, "slice": "all", "n_negative": 900, "n_positive": 600, "auc": 0.93, "auc_reason": None}
    row |= {"auc_low": 0.92, "auc_high": 0.94, "auc_method": "logit_delong", "run_id": "r_now"}
    for name in ("subgroup_auc", "bpsn_auc", "bnsp_auc"):
        there = [(one[name], one["identity"]) for one in own if one[name] is not None]
        row |= {f"{name}_min": min(there)[0], f"{name}_min_identity": min(there)[1], f"{name}_power_mean": 0.9}
    for name in ("negative_aeg", "positive_aeg"):
        there = [(abs(one[name]), one["identity"]) for one in own if one[name] is not None]
        row |= {f"{name}_max_abs": max(there)[0], f"{name}_max_abs_identity": max(there)[1]}
    return row | {"competition_score": 0.91, "n_identities_undefined": 1, "pinned_auc_equality_difference": 0.4}


def count_bins(model: str, name: str, cells: dict[str, Scores]) -> Iterator[Row]:
    for cell, scores in cells.items():
        bins, counts = np.unique(np.minimum((scores * 20).astype(int), 19), return_counts=True)
        for place, n in zip(bins.tolist(), counts.tolist(), strict=True):
            ends = {"bin": place, "bin_low": place / 20, "bin_high": (place + 1) / 20}
            yield {"model": model, "slice": "all", "identity": name, "cell": cell, "n_rows": n, **ends}


def decide(model: str, name: str, cells: dict[str, Scores], threshold: float) -> Row:
    row: Row = {"model": model, "slice": "all", "identity": name, "threshold": threshold, "crossed": False}
    for prefix, whose in (("", "subgroup"), ("background_", "background")):
        positives, negatives = (cells[f"{whose}_{sign}"] for sign in ("positive", "negative"))
        tp, fp = int((positives >= threshold).sum()), int((negatives >= threshold).sum())
        counts = {"true_positive": tp, "false_positive": fp}
        counts |= {"true_negative": negatives.size - fp, "false_negative": positives.size - tp}
        row |= {f"{prefix}n_{kind}": n for kind, n in counts.items()}
        shares = {"tpr": (tp, positives.size), "fpr": (fp, negatives.size), "precision": (tp, tp + fp)}
        shares |= {"tnr": (negatives.size - fp, negatives.size), "fnr": (positives.size - tp, positives.size)}
        shares |= {"selection_rate": (tp + fp, positives.size + negatives.size)}
        row |= {f"{prefix}{rate}": n / of if of else None for rate, (n, of) in shares.items()}
    for rate in RATES:
        gap = None if row[rate] is None else row[rate] - row[f"background_{rate}"]
        width = 0.04 if name in SHIFTS else 0.08
        ends = (None, None) if gap is None else (gap - width, gap + width)
        row |= {f"{rate}_gap": gap, f"{rate}_gap_low": ends[0], f"{rate}_gap_high": ends[1]}
    return row


def decide_all(model: str, threshold: float) -> Row:
    differences = {"false_positive_equality_difference": 0.4, "false_negative_equality_difference": 0.2}
    return {"model": model, "slice": "all", "threshold": threshold, "fpr": 0.1, "fnr": 0.05, **differences}


def balance(name: str) -> Iterator[Row]:
    for bucket, low, n in (("(all)", None, 90), ("100-999", 100, 40), ("20-99", 20, 50), ("1000-4999", 1000, 0)):
        rate = 0.1 if name == "(overall)" else 0.4
        row: Row = {"identity": name, "bucket": bucket, "length_low": low, "n_rows": n, "n_positive": int(n * rate)}
        yield row | {"positive_rate": rate if n else None, "n_negatives_to_add": int(n * (rate - 0.1) * 10)}


def pin(metrics: Row) -> Row:
    row: Row = {"model": metrics["model"], "slice": "all", "identity": metrics["identity"], "overall_auc": 0.93}
    row |= {f"{name}_weight": 0.25 for name in ("background", "subgroup", "bpsn", "bnsp")}
    row |= {f"{name}_auc": metrics[f"{name}_auc"] for name in ("background", "subgroup", "bpsn", "bnsp")}
    value = None if row["subgroup_auc"] is None else sum(row[f"{n}_auc"] for n in ("subgroup", "bpsn", "bnsp")) / 3
    row |= {"pinned_auc": value, "sampled_mean": None, "sampled_sd": None, "trials": 0}
    return row | {"reason": metrics["subgroup_auc_reason"]}


def compare_suites(metrics: Sequence[Row]) -> Iterator[Row]:
    """Hold the second model against the first; verdicts by how large a difference is, too few rows without a value."""
    suites = {(row["model"], row["identity"]): row for row in metrics}
    names = sorted({row["identity"] for row in metrics})
    values = {(name, metric): [suites[m, name][metric] for m in MODELS] for name in names for metric in PAIRS}
    values["(overall)", "auc"] = [0.92, 0.93]
    for (name, metric), (old, new) in values.items():
        yield compare_values(name, metric, old, new)


def compare_values(name: str, metric: str, old: float | None, new: float | None) -> Row:
    row: Row = {"slice": "all", "identity": name, "metric": metric, "model": MODELS[1], "baseline_model": MODELS[0]}
    row |= {"crossed": False, "n_low": 50, "n_high": 8, "value": new, "baseline_value": old, "method": "paired_delong"}
    known = old is not None and new is not None
    is_gap = metric.endswith("aeg")
    change = (abs(new) - abs(old) if is_gap else new - old) if old is not None and new is not None else None
    gain = None if change is None else -change if is_gap else change
    verdict = "insufficient_data" if gain is None else "no_evidence"
    if gain is not None and abs(gain) > 0.03:
        verdict = "better" if gain > 0 else "worse"
    ends = (None, None) if change is None else (change - 0.03, change + 0.03)
    row |= {"difference": change, "difference_low": ends[0], "difference_high": ends[1], "verdict": verdict}
    p = None if not known else 0.5 if verdict == "no_evidence" else 0.0004
    return row | {"p_value": p, "p_adjusted": p}


def cross_identities(row: Row) -> Row:
    return row | {"identity": f"{row['identity']} & {SCRIPT}", "crossed": True}


def average_templates(row: Row) -> Row:
    departure = SHIFTS.get(row["identity"], 0.0) / (1 + MODELS.index(row["model"]))
    counts = {"n_templates": 12, "n_rows": 36, "mean_score": 0.3 + departure, "mean_departure": departure}
    counts |= {"score_deviation": 0.3, "departure_deviation": 0.05, "lowest_score": 0.01, "highest_score": 0.95}
    return {"model": row["model"], "identity": row["identity"], **counts}


def past_night(night: date, metrics: Sequence[Row]) -> PastNight:
    """Give a night on which `black` was better, and the rest the same."""
    rows = [row | {"run_date": night} for row in metrics]
    for row in rows:
        if row["identity"] == "black":
            row |= {"bpsn_auc": 0.99, "bpsn_auc_low": 0.985, "bpsn_auc_high": 0.995}
    summaries = [sum_up(model, rows) | {"auc": 0.92} for model in MODELS]
    return PastNight(run_date=night, run_id=f"r_{night:%Y%m%d}", metrics=rows, summaries=summaries)


# ---- attribution


def attribution_rows(groups: Sequence[str]) -> dict[str, list[Row]]:
    return {
        "auc_crosses": [cross(m, one, other, groups) for m in MODELS for one in groups for other in groups],
        "attribution_segments": [row for m in MODELS for row in tree(m, "")] + tree("toxicity_6", "toxicity_1"),
        "pair_segments": pair_tree("toxicity_1"),
        "attribution_slices": [estimates("age < 30", 0.2) | {"model": "toxicity_1", "slice": "all", "rank": 1}],
        "loss_by_segment": [segment(m, name) for name in ("(overall)", IMAGE) for m in MODELS],
    }


def cross(model: str, positive: str, negative: str, groups: Sequence[str]) -> Row:
    auc = min(0.5 + (0.6 * groups.index(positive) - 0.3 * groups.index(negative)) / len(groups), 1.0)
    row: Row = {"model": model, "slice": "all", "grouping": "mentions", "positive_group": positive}
    row |= {"negative_group": negative, "n_positive": 20, "n_negative": 30, "n_pairs": Decimal(600), "auc": auc}
    row |= {"auc_low": max(auc - 0.1, 0.0), "auc_high": min(auc + 0.1, 1.0)}
    return row | {"headroom_pairs": 600 * (1 - auc), "headroom_share": (1 - auc) / len(groups) ** 2}


def estimates(rule: str, mean: float) -> Row:
    return {
        "rule": rule,
        "predicate": rule.replace("and", "AND"),
        "n_train": 400,
        "mean_train": mean,
        "n_honest": 390,
        "mean_honest": mean,
        "mean_honest_low": mean - 0.02,
        "mean_honest_high": mean + 0.02,
        "p_value": 0.001,
        "p_adjusted": 0.0004,
        "p_train_honest": 0.5,
        "false_discovery": False,
        "found": True,
        "loss_share": 0.3,
        "confirmed": True,
    }


def node(number: int, rule: str, mean: float, *, is_leaf: bool = True, **changes: Any) -> Row:
    own = {"node_id": number, "parent_id": number // 2 or None, "depth": number.bit_length() - 1, "is_leaf": is_leaf}
    return estimates(rule, mean) | own | changes


def tree(model: str, baseline: str) -> list[Row]:
    nodes = [
        node(1, "", 0.4, is_leaf=False, found=None),
        node(2, "age < 30", 0.2, confirmed=False),
        node(3, "age >= 30", 0.45, is_leaf=False, found=None),
        node(6, f"age >= 30 and group = '{SCRIPT}'", 0.35, found=False, false_discovery=True, p_train_honest=0.01),
        node(7, f"age >= 30 and group <> '{SCRIPT}'", 0.48),
    ]
    return [row | {"model": model, "baseline_model": baseline, "slice": "all", "target": "auc"} for row in nodes]


def pair_tree(model: str) -> list[Row]:
    sides = ({"negative_rule": "", "positive_rule": ""}, {"negative_rule": "age < 30", "positive_rule": ""})
    sides = (*sides, {"negative_rule": "age >= 30", "positive_rule": ""})
    counts = {"n_negatives_honest": 400, "n_positives_honest": 300, "model": model, "slice": "all"}
    return [
        node(number, "", mean, is_leaf=number > 1)
        | counts
        | own
        | {f"{k[:-4]}predicate": v or "TRUE" for k, v in own.items()}
        for number, mean, own in zip((1, 2, 3), (0.9, 0.6, 0.95), sides, strict=True)
    ]


def segment(model: str, name: str) -> Row:
    row: Row = {
        "model": model,
        "slice": "all",
        "segment": name,
        "predicate": None if name == "(overall)" else "age < 30",
    }
    row |= {"n_rows": 800, "n_positive": 300, "auc": 0.9, "mean_normalized_attribution": 0.45}
    row |= {"cross_entropy": 0.3, "gini_impurity": 0.2}
    measures = ("auc", "mean_normalized_attribution", "cross_entropy", "gini_impurity")
    return row | {f"{own}_{end}": row[own] + step for own in measures for end, step in (("low", -0.02), ("high", 0.02))}


# ---- the gate


def alert(outcome: str, **changes: Any) -> Row:
    """Give a row of bias_alerts."""
    row: Row = {"rule": "bpsn floor", "model": "toxicity_1", "slice": "all", "identity": "gay", "metric": "bpsn_auc"}
    row |= {"value": 0.71, "value_low": 0.65, "value_high": 0.77, "bound": 0.8, "bound_kind": "min"}
    row |= {"baseline_run_id": None}
    row |= {
        "outcome": outcome,
        "message": "0.71 is below 0.8",
        "p_violation": 0.01,
        "p_compliance": 0.9,
        "p_violation_adjusted": 0.01,
        "p_compliance_adjusted": 0.9,
        "excess": 0.03,
    }
    return row | changes


def alert_against(outcome: str, **changes: Any) -> Row:
    """Give a row of comparison_alerts."""
    row = alert(outcome, rule="no worse", model=MODELS[1], baseline_model=MODELS[0], baseline_value=0.75, bound=0.02)
    row |= {"change": -0.04, "change_low": -0.06, "change_high": -0.02, "bound_kind": "max_drop"} | changes
    return {name: own for name, own in row.items() if name not in {"value_low", "value_high", "baseline_run_id"}}


def with_alerts(facts: NightFacts, *alerts: dict[str, Any]) -> NightFacts:
    return replace(facts, tables={**facts.tables, "bias_alerts": alerts})
