"""The suite in pandas, scikit-learn and SciPy: a loop over models and identities, each metric by its definition."""

from __future__ import annotations

import pandas as pd
from scipy.stats import mannwhitneyu
from sklearn.metrics import roc_auc_score

from scripts.benchmarks.task import COLUMNS, IDENTITY_NAMES, LABEL, MODELS, THRESHOLD, Number, Outcome, parse_task


def measure_corpus(corpus: str) -> Outcome:
    """Compute the suite of all models; without variances, which neither library has."""
    rows = pd.read_parquet(corpus, columns=list(COLUMNS))
    numbers = []
    for identity in IDENTITY_NAMES:
        known = rows.loc[rows[identity].notna() & rows[LABEL].notna(), [LABEL, identity, *MODELS]]
        positive, inside = known[LABEL] >= THRESHOLD, known[identity] >= THRESHOLD
        for model in MODELS:
            values = measure_identity(known[model], positive, inside)
            numbers += [Number(model, identity, metric, value) for metric, value in values.items()]
    return Outcome(numbers)


def measure_identity(
    score: pd.Series[float], positive: pd.Series[bool], inside: pd.Series[bool]
) -> dict[str, float | None]:
    outside = ~inside
    return {
        "subgroup_auc": auc(score, positive, inside),
        "bpsn_auc": auc(score, positive, (inside & ~positive) | (outside & positive)),
        "bnsp_auc": auc(score, positive, (outside & ~positive) | (inside & positive)),
        "background_auc": auc(score, positive, outside),
        "negative_aeg": gap(score[inside & ~positive], score[outside & ~positive]),
        "positive_aeg": gap(score[inside & positive], score[outside & positive]),
    }


def auc(score: pd.Series[float], positive: pd.Series[bool], chosen: pd.Series[bool]) -> float | None:
    if positive[chosen].nunique() < 2:
        return None
    return float(roc_auc_score(positive[chosen], score[chosen]))


def gap(subgroup: pd.Series[float], background: pd.Series[float]) -> float | None:
    """Return how much more often than half a subgroup's row scores above a background's."""
    if subgroup.empty or background.empty:
        return None
    u = mannwhitneyu(subgroup, background, method="asymptotic").statistic
    return float(u / (len(subgroup) * len(background)) - 0.5)


if __name__ == "__main__":
    arguments = parse_task(__doc__)
    measure_corpus(arguments.corpus).write(arguments.outcome)
