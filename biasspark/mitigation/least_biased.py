"""Find the least biased model from the tables of the scored test set. No Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from biasspark.cli import Outcome, format_table
from biasspark.columns import ALL_ROWS, BETTER, EVERY_LENGTH, OVERALL, SUMMARIZED_AUCS, SUMMARIZED_GAPS, WORSE
from biasspark.config.mitigation_settings import MITIGATED, MODELS
from biasspark.errors import GATE_FAILED

JOB = "mitigation_experiment"
DIFFERENCE, LOWEST_BPSN, LARGEST_GAP = "pinned_auc_equality_difference", "bpsn_auc_min", "aeg_max_abs"
MEASURES = ("auc", DIFFERENCE, *(f"{name}_min" for name in SUMMARIZED_AUCS), LARGEST_GAP)
TERM = "bpsn_auc of"
MOST_TERMS = 10


def list_models(summary: pa.Table, training: pa.Table) -> list[dict[str, Any]]:
    """Return the `MEASURES` of each model over all rows, in the order of `MODELS`, from the table ``model_summary``.

    ``aeg_max_abs`` is the largest absolute Negative or Positive AEG. ``n_training`` and ``n_added`` are those of the
    table ``training_balance``.
    """
    rows = {row["model"]: row for row in summary.to_pylist() if row["slice"] == ALL_ROWS}
    for row in rows.values():
        gaps = (row[f"{name}_max_abs"] for name in SUMMARIZED_GAPS)
        row[LARGEST_GAP] = max((gap for gap in gaps if gap is not None), default=None)
    for row in training.to_pylist():
        if (row["identity"], row["bucket"]) == (OVERALL, EVERY_LENGTH):
            rows[row["model"]] |= {"n_training": row["n_rows"], "n_added": row["n_added"]}
    return [
        {name: rows[model].get(name) for name in ("model", "n_training", "n_added", *MEASURES)}
        for model in MODELS
        if model in rows
    ]


def list_terms(metrics: pa.Table, balance: pa.Table) -> list[dict[str, Any]]:
    """Return each model's BPSN AUC of the identities that lack the most negatives according to ``label_balance``.

    It is low where harmless mentions of the term score like toxic comments.
    """
    bpsn: dict[str, dict[str, Any]] = {}
    for row in metrics.to_pylist():
        if row["slice"] == ALL_ROWS:
            bpsn.setdefault(row["identity"], {})[row["model"]] = row["bpsn_auc"]
    lacking = {
        row["identity"]: row["n_negatives_to_add"] for row in balance.to_pylist() if row["bucket"] == EVERY_LENGTH
    }
    terms = sorted((term for term in bpsn if lacking.get(term)), key=lambda term: (-lacking[term], term))
    return [{TERM: term, "lacks": lacking[term]} | bpsn[term] for term in terms[:MOST_TERMS]]


def find_best(models: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the model that is better than all others by both measures of the experiment, or None.

    These are the pinned AUC equality difference, the measure of Mitigating, where lower is better, and the lowest BPSN
    AUC, where higher is better: mitigation is about harmless comments that score like toxic ones because of what they
    mention. If a value is missing, no model is the best.
    """
    if any(model[measure] is None for model in models for measure in (DIFFERENCE, LOWEST_BPSN)):
        return None
    best, *rest = sorted(models, key=lambda model: float(model[DIFFERENCE]))
    is_best = all(best[DIFFERENCE] < one[DIFFERENCE] and best[LOWEST_BPSN] > one[LOWEST_BPSN] for one in rest)
    return str(best["model"]) if is_best else None


def add_verdicts(models: Sequence[dict[str, Any]], comparisons: pa.Table) -> None:
    """Add in how many comparisons with the baseline, over all rows, each model is significantly better or worse.

    Those of background AUC count, as in the report and in the printed comparison.
    """
    verdicts = Counter((row["model"], row["verdict"]) for row in comparisons.to_pylist() if row["slice"] == ALL_ROWS)
    compared = {name for name, _ in verdicts}
    for model in models:
        if model["model"] in compared:
            model |= {verdict: verdicts[model["model"], verdict] for verdict in (BETTER, WORSE)}


def judge(
    measured: Outcome, compared: Outcome | None, models: Sequence[Mapping[str, Any]], terms: Sequence[Mapping[str, Any]]
) -> Outcome:
    """Return the outcome of the experiment, given those of the main job on the scored test set and of the comparison.

    Its exit code is 5 if the mitigated model is not the best by `find_best`, or if the gate failed. `models` are from
    `list_models` and `add_verdicts`, `terms` from `list_terms`.
    """
    best = find_best(models)
    known = [model for model in models if None not in (model[DIFFERENCE], model[LOWEST_BPSN])]
    by_measure = ""
    if len(known) > 1:
        by_difference = min(known, key=lambda model: float(model[DIFFERENCE]))["model"]
        by_bpsn = max(known, key=lambda model: float(model[LOWEST_BPSN]))["model"]
        by_measure = (
            f"By {DIFFERENCE}, the measure of the paper, the best is {by_difference}; by {LOWEST_BPSN} it is "
            f"{by_bpsn}. Neither has an interval: the comparison tells whether a difference is more than chance."
        )
    is_mitigated = best == MITIGATED
    marked = [{**model, "best": "best" if model["model"] == best else ""} for model in models]
    names = [str(model["model"]) for model in models]
    parts = (
        measured.table,
        format_table(marked, ("model", "n_training", "n_added", *MEASURES, BETTER, WORSE, "best")),
        "better, worse: in how many comparisons of all rows, background_auc included" if compared else "",
        format_table(terms, (TERM, "lacks", *names)) if terms else "",
        by_measure,
        f"The {MITIGATED} model is {'' if is_mitigated else 'NOT '}the least biased of the {len(models)}.",
    )
    summary = {**measured.summary, "job": JOB, "models": models, "best": best}
    code = measured.exit_code if is_mitigated else GATE_FAILED
    if compared:
        summary["comparison_run_id"], code = compared.summary["run_id"], max(code, compared.exit_code)
    return Outcome(summary=summary, table="\n\n".join(filter(None, parts)), exit_code=code)
