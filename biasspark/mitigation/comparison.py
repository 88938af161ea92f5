"""Which of the three models is the least biased: the verdict of the experiment, from the tables of its night."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame

from biasspark.cli import Outcome, format_table
from biasspark.columns import ALL_ROWS, IDENTITY, MODEL, SLICE, SUMMARISED_AUCS, SUMMARISED_GAPS
from biasspark.errors import GATE_FAILED
from biasspark.mitigation.settings import MODELS

JOB = "mitigation_experiment"

DIFFERENCE, LOWEST_BPSN, LARGEST_GAP = "pinned_auc_equality_difference", "bpsn_auc_min", "aeg_max_abs"
MEASURES = ("auc", DIFFERENCE, *(f"{name}_min" for name in SUMMARISED_AUCS), LARGEST_GAP)
TERM = "bpsn_auc of"


def read_models(summary: DataFrame) -> list[dict[str, Any]]:
    """Return the `MEASURES` of each model over the whole test set, in the order of `MODELS`.

    Parameters
    ----------
    summary
        The table ``model_summary`` of the night. ``aeg_max_abs`` is the largest of all Negative and Positive AEGs.
    """
    gap = F.greatest(*(f"{name}_max_abs" for name in SUMMARISED_GAPS)).alias(LARGEST_GAP)
    rows = summary.where(F.col(SLICE) == ALL_ROWS).select(MODEL, *MEASURES[:-1], gap).collect()
    found = {row[MODEL]: row.asDict() for row in rows}
    return [found[model] for model in MODELS]


def read_terms(metrics: DataFrame, terms: Sequence[str]) -> list[dict[str, Any]]:
    """Return the BPSN AUC of each term with each model: how seldom a harmless mention is taken for toxicity.

    Parameters
    ----------
    metrics
        The table ``bias_metrics`` of the night.
    """
    rows = metrics.where((F.col(SLICE) == ALL_ROWS) & F.col(IDENTITY).isin(*terms))
    found = {(row[IDENTITY], row[MODEL]): row["bpsn_auc"] for row in rows.select(IDENTITY, MODEL, "bpsn_auc").collect()}
    return [{TERM: term} | {model: found[term, model] for model in MODELS} for term in terms]


def find_best(models: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the model that is better than each other one by both measures of the experiment, None if none is.

    Its pinned AUC equality difference, by which Mitigating judges, is lower, and its lowest BPSN AUC is higher: that
    harmless comments score like toxic ones for what they mention is what is to be mitigated. Where a value is missing,
    none is the best.
    """
    if any(model[measure] is None for model in models for measure in (DIFFERENCE, LOWEST_BPSN)):
        return None
    fairest, *others = sorted(models, key=lambda model: float(model[DIFFERENCE]))
    is_best = all(
        fairest[DIFFERENCE] < other[DIFFERENCE] and fairest[LOWEST_BPSN] > other[LOWEST_BPSN] for other in others
    )
    return str(fairest[MODEL]) if is_best else None


def judge(night: Outcome, models: Sequence[Mapping[str, Any]], terms: Sequence[Mapping[str, Any]]) -> Outcome:
    """Return what the job says at its end: what the night said, the models, the terms, and the verdict.

    Parameters
    ----------
    night
        Of the scored test set.
    models, terms
        As from `read_models`, with `n_training` and `n_added` of each, and from `read_terms`.

    Returns
    -------
    Outcome
        Exit code 5 if the mitigated model is not the best by `find_best`; otherwise that of the night, 5 if its gate
        failed.
    """
    best = find_best(models)
    mitigated = best == MODELS[-1]
    shown = [model | {"best": "best" if model[MODEL] == best else ""} for model in map(dict, models)]
    parts = (
        night.table,
        format_table(shown, (MODEL, "n_training", "n_added", *MEASURES, "best")),
        format_table(terms, (TERM, *MODELS)),
        f"The mitigated model is {'the' if mitigated else 'NOT the'} least biased of the three.",
    )
    summary = {**night.summary, "job": JOB, "models": models, "best": best}
    return Outcome(summary=summary, table="\n\n".join(parts), exit_code=night.exit_code if mitigated else GATE_FAILED)
