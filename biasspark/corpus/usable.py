"""Whether enough of a corpus can be used: a score for every model, and no more rejects than are allowed. No Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction

from biasspark.columns import ROW_REASONS, SCORE_REASONS
from biasspark.config import Rejects
from biasspark.corpus.codebook import Tally
from biasspark.errors import InputError, no_usable_row

_ALL_REASONS = (*ROW_REASONS, *SCORE_REASONS)


def list_missing_models(tally: Tally) -> tuple[str, ...]:
    """Return the models without one usable score on the rows that count."""
    return tuple(model for model, n_rows in tally.n_eligible.items() if not n_rows)


def check_usable(tally: Tally, models: Mapping[str, str], rejects: Rejects | None = None) -> None:
    """Stop a run that lacks a model, or that rejects more than it may.

    Parameters
    ----------
    tally : Tally
        Rows read and rejected.
    models : mapping of str to str
        The score column of each model of the tally.
    rejects : Rejects, optional
        What the configuration allows. A notebook has no such table, and gives None: every model needs a score.

    Raises
    ------
    InputError
        If no row counts, whatever its scores. Else with a fault for each model without a usable score, unless missing
        models are allowed and another model has scores; and with a fault for the corpus and for each other model of
        which more than ``max_share`` is rejected. The share of a model is of its scores on the rows that are not
        rejected for all models. The corpus has no fault where the scores of the models with a fault are the reason.
    """
    of_scores = {model: sum(tally.rejected_scores.get(model, {}).values()) for model in tally.n_eligible}
    # Of every model the same number of rows: those that only its score can take away.
    n_scored = max(tally.n_eligible[model] + n_rejected for model, n_rejected in of_scores.items())
    if not n_scored:
        raise no_usable_row(tally.n_rows, f" ({_list_reasons(tally.rejects)})" if tally.rejects else "")
    missing, faults = list_missing_models(tally), []
    if not (rejects and rejects.allow_missing_models and len(missing) < len(of_scores)):
        faults += [_say_missing(model, models[model], tally, rejects) for model in missing]
    if rejects and rejects.max_share is not None:
        share = rejects.max_share
        there = {model: n_rejected for model, n_rejected in of_scores.items() if model not in missing}
        excessive = [model for model, n_rejected in there.items() if _exceeds(n_rejected, n_scored, share)]
        faults += [_say_excess_of_scores(model, models[model], tally, n_scored, share) for model in excessive]
        n_rejected, reasons = (tally.n_rows - n_scored, ROW_REASONS) if faults else (tally.n_rejected, _ALL_REASONS)
        if _exceeds(n_rejected, tally.n_rows, share):
            faults.insert(0, _say_excess_of_rows(n_rejected, tally, reasons, share))
    if faults:
        raise InputError(*faults)


def _say_missing(model: str, column: str, tally: Tally, rejects: Rejects | None) -> str:
    counts = tally.rejected_scores[model]
    fix = "Check the column, or remove the model from [models]."
    if rejects and not rejects.allow_missing_models:
        fix += " To publish the other models without it, set [rejects] allow_missing_models = true."
    return (
        f"model {model}: none of its {sum(counts.values()):,} scores in column '{column}' can be used "
        f"({_list_reasons(counts)}). A model needs a usable score on at least one row with a label. {fix}"
    )


def _say_excess_of_scores(model: str, column: str, tally: Tally, n_scored: int, max_share: float) -> str:
    counts = tally.rejected_scores[model]
    n_rejected = sum(counts.values())
    rejected = f"{n_rejected:,} of its {n_scored:,} scores in column '{column}' are rejected"
    return (
        f"model {model}: {rejected} ({_list_reasons(counts)}). The share, {n_rejected / n_scored:.4g}, is more than "
        f"[rejects] max_share = {max_share:g}. Check the column, or raise max_share."
    )


def _say_excess_of_rows(n_rejected: int, tally: Tally, reasons: Collection[str], max_share: float) -> str:
    counts = {reason: count for reason, count in tally.rejects.items() if reason in reasons}
    rejected = f"{n_rejected:,} of its {tally.n_rows:,} rows are rejected"
    return (
        f"corpus: {rejected} ({_list_reasons(counts)}). The share, {n_rejected / tally.n_rows:.4g}, is more than "
        f"[rejects] max_share = {max_share:g}. Check the input, [corpus] and [label], or raise max_share."
    )


def _exceeds(count: int, n_all: int, share: float) -> bool:
    """Compare with the decimal that was written: 29 of 100 are 0.29, and not more than the double next to it."""
    return count > Fraction(repr(share)) * n_all


def _list_reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in counts.items())
