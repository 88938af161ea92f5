"""Which of the three models is the least biased, from the tables of the scored test set. No Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from biasspark.cli import Outcome, format_table
from biasspark.columns import ALL_ROWS, IDENTITY, MODEL, SLICE, SUMMARIZED_AUCS, SUMMARIZED_GAPS
from biasspark.errors import GATE_FAILED
from biasspark.mitigation.settings import JOB, MODELS

DIFFERENCE, LOWEST_BPSN, LARGEST_GAP = "pinned_auc_equality_difference", "bpsn_auc_min", "aeg_max_abs"
MEASURES = ("auc", DIFFERENCE, *(f"{name}_min" for name in SUMMARIZED_AUCS), LARGEST_GAP)
TERM = "bpsn_auc of"


def list_models(summary: pa.Table) -> list[dict[str, Any]]:
    """Return the `MEASURES` of each model over all rows, in the order of `MODELS`, from the table ``model_summary``.

    ``aeg_max_abs`` is the largest absolute Negative or Positive AEG.
    """
    rows = {row[MODEL]: row for row in summary.to_pylist() if row[SLICE] == ALL_ROWS}
    for row in rows.values():
        gaps = (row[f"{name}_max_abs"] for name in SUMMARIZED_GAPS)
        row[LARGEST_GAP] = max((gap for gap in gaps if gap is not None), default=None)
    return [{name: rows[model][name] for name in (MODEL, *MEASURES)} for model in MODELS]


def list_terms(metrics: pa.Table, terms: Sequence[str]) -> list[dict[str, Any]]:
    """Return the BPSN AUC of each term with each model, from the table ``bias_metrics``.

    It is low where harmless mentions of the term score like toxic comments.
    """
    rows = (row for row in metrics.to_pylist() if row[SLICE] == ALL_ROWS)
    bpsn = {(row[IDENTITY], row[MODEL]): row["bpsn_auc"] for row in rows}
    return [{TERM: term} | {model: bpsn[term, model] for model in MODELS} for term in terms]


def find_best(models: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the model that is better than each other one by both measures of the experiment, or None.

    These are the pinned AUC equality difference, by which Mitigating judges, where lower is better, and the lowest BPSN
    AUC, where higher is better: harmless comments that score like toxic ones for what they mention are what mitigation
    is about. If a value is missing, no model is the best.
    """
    if any(model[measure] is None for model in models for measure in (DIFFERENCE, LOWEST_BPSN)):
        return None
    best, *rest = sorted(models, key=lambda model: float(model[DIFFERENCE]))
    is_best = all(best[DIFFERENCE] < one[DIFFERENCE] and best[LOWEST_BPSN] > one[LOWEST_BPSN] for one in rest)
    return str(best[MODEL]) if is_best else None


def judge(measured: Outcome, models: Sequence[Mapping[str, Any]], terms: Sequence[Mapping[str, Any]]) -> Outcome:
    """Return the outcome of the experiment, given that of the main job on the scored test set.

    Its exit code is 5 if the mitigated model is not the best by `find_best`; otherwise that of the main job, which is 5
    if its gate failed. `models` are as from `list_models`, with `n_training` and `n_added` of each.
    """
    best = find_best(models)
    is_mitigated = best == MODELS[-1]
    marked = [{**model, "best": "best" if model[MODEL] == best else ""} for model in models]
    parts = (
        measured.table,
        format_table(marked, (MODEL, "n_training", "n_added", *MEASURES, "best")),
        format_table(terms, (TERM, *MODELS)),
        f"The mitigated model is {'the' if is_mitigated else 'NOT the'} least biased of the three.",
    )
    summary = {**measured.summary, "job": JOB, "models": models, "best": best}
    code = measured.exit_code if is_mitigated else GATE_FAILED
    return Outcome(summary=summary, table="\n\n".join(parts), exit_code=code)
