"""What a report is drawn from: the rows of one night and of those before it, read once, without a session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple

from biasspark.columns import (
    ALL_ROWS,
    CROSSED,
    IDENTITY,
    MODEL,
    OUTCOMES,
    OVERALL,
    SLICE,
    SUMMARISED_AUCS,
    SUMMARISED_GAPS,
)
from biasspark.report.cells import doubt

Row = Mapping[str, Any]
Rows = Sequence[Row]

MOST_THRESHOLDS = 3
MOST_ALERTS = 200
"""Of either table are read, and of both are shown."""

MOST_WORSE = 500
"""Significant worsenings of either two models that are read beside those of the identities that are shown."""

WORST = {
    **{name: f"{name}_min" for name in SUMMARISED_AUCS},
    **{name: f"{name}_max_abs" for name in SUMMARISED_GAPS},
}
"""Of each metric the column of ``model_summary`` that has the worst value, and with ``_identity`` whose it is."""

SUMMED_AUCS = {
    "competition_score": {name: name for name in SUMMARISED_AUCS},
    **{f"{name}_power_mean": {name: name} for name in SUMMARISED_AUCS},
    "pinned_auc_equality_difference": {name: name for name in SUMMARISED_AUCS},
}
SUMMED_RATES = {
    "false_positive_equality_difference": {"fpr": "fpr_gap"},
    "false_negative_equality_difference": {"fnr": "fnr_gap"},
}
"""Sums over identities: the columns that an identity adds, each with the one whose interval says how sure it is."""

ALERTS = ("bias_alerts", "comparison_alerts")


class Lowest(NamedTuple):
    """The lowest AUC of an identity: its `doubt`, its value, and which it is; sorted, the worst comes first."""

    doubt: int
    value: float
    metric: str


_NO_VALUE = Lowest(3, 2.0, "")


@dataclass(frozen=True, kw_only=True)
class PastNight:
    """A run before, of the same corpus: its suite on all rows."""

    run_date: date
    run_id: str
    metrics: Rows
    summaries: Rows = ()


@dataclass(frozen=True, kw_only=True)
class NightFacts:
    """The rows of one night.

    Attributes
    ----------
    corpus, run_date
        Which night.
    run
        The ledger's row of the main job's run.
    tables
        By name the rows of each table, without crossed pairs; a table that the night lacks, or that is empty, is not
        there. Alerts have their ``excess`` besides, see `biasspark.report.narrowing.keep_worst_alerts`. Of no table of
        their own are: ``crossed_pairs``, which has the worst pairs of each model, rows of ``bias_metrics``, and
        ``template_means``, the mean scores over templates: ``model, identity, n_templates, n_rows, mean_score,
        score_deviation, mean_departure, departure_deviation, lowest_score, highest_score``, departures being from the
        mean of each template, deviations over templates, and the last two the ends of what its templates have;
        ``summed_aucs`` and ``summed_rates`` have for each model (and threshold) and each of `SUMMED_AUCS` and
        `SUMMED_RATES`, say X, how many identities are in the sum, ``X_n``, and how many of them have too few rows,
        ``X_weak``. The former also has of each metric of `WORST` the identity that is worst among those with enough
        rows, ``X_sure_identity``.
    counts
        Of tables of which only some rows are here, how many there are of each kind: ``n`` beside what tells the kinds
        apart.
    runs
        By job the run that the rows are of.
    configs
        By job the configuration of that run.
    history
        The nights before, oldest first, each with the run that readers see.
    baseline, standing
        The run that the night is compared with, None where there is none, and how it came to be it.
    overrides
        What people accepted by hand: ``accepted_run_id, reason, by, published_at``.
    n_identities
        How many identities were measured; the worst of them are here.
    gone
        Identities that the baseline has and the night has not, the first of many.
    """

    corpus: str
    run_date: date
    run: Row
    tables: Mapping[str, Rows]
    counts: Mapping[str, Rows] = field(default_factory=dict)
    runs: Mapping[str, str] = field(default_factory=dict)
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    history: Sequence[PastNight] = ()
    baseline: PastNight | None = None
    standing: str = ""
    overrides: Rows = ()
    n_identities: int = 0
    gone: Sequence[str] = ()

    def rows(self, table: str, **wanted: object) -> list[Row]:
        """Return the rows of a table whose columns have these values; none where the night lacks the table."""
        return [row for row in self.tables.get(table, ()) if all(row[name] == own for name, own in wanted.items())]

    def count(self, table: str, *by: str) -> Counter[tuple[Any, ...]]:
        """Return how many rows of each kind the run has of a table, also of those that are not here."""
        counted: Counter[tuple[Any, ...]] = Counter()
        for row in self.counts.get(table, self.rows(table)):
            counted[tuple(row[name] for name in by)] += row.get("n", 1)
        return counted

    def count_summed(self, table: str, total: str, **wanted: object) -> tuple[int, int]:
        """Return how many identities in a sum have too few rows, and how many are in it; 0 where nobody counted."""
        row: Row = next(iter(self.rows(table, **wanted)), {})
        return row.get(f"{total}_weak", 0), row.get(f"{total}_n", 0)

    def alerts(self) -> list[Row]:
        """Return the alerts of the night and of the comparison of its models, the worst first.

        Of equal outcomes the largest violation comes first, of a rule its verdict on the worst identity before it.
        """
        return sorted((row for name in ALERTS for row in self.rows(name)), key=_order_alert)

    def count_outcomes(self) -> dict[str, Counter[str]]:
        """Return by model how many alerts the night has of each outcome."""
        counted = {model: Counter[str]() for model in self.models()}
        for name in ALERTS:
            for (model, outcome), n in self.count(name, MODEL, "outcome").items():
                counted.setdefault(model, Counter())[outcome] += n
        return counted

    def models(self) -> list[str]:
        """Return the names of the models."""
        return sorted({row[MODEL] for name in ("model_summary", "bias_metrics") for row in self.rows(name)})

    def slices(self) -> list[str]:
        """Return the names of the slices, that of all rows first."""
        return sorted({row[SLICE] for row in self.rows("model_summary")}, key=lambda name: (name != ALL_ROWS, name))

    def identities(self, cut: str = ALL_ROWS) -> list[str]:
        """Return the names of the identities of a slice, the worst first: see `order_worst_first`."""
        return order_worst_first(self.rows("bias_metrics", slice=cut))


def _order_alert(row: Row) -> tuple[Any, ...]:
    excess = row["excess"]
    return OUTCOMES.index(row["outcome"]), excess is None, -(excess or 0.0), row["rule"], row["value"] is not None


def order_worst_first(metrics: Rows) -> list[str]:
    """Return the identities of rows of ``bias_metrics`` by their lowest AUC of any model, then by name.

    Those with enough rows come first, as `find_lowest` has it.
    """
    lowest: dict[str, Lowest] = {}
    for row in metrics:
        if row[IDENTITY] != OVERALL and not row[CROSSED]:
            own = find_lowest(row)
            lowest[row[IDENTITY]] = min(lowest.get(row[IDENTITY], own), own)
    return sorted(lowest, key=lambda name: (lowest[name][:2], name))


def find_lowest(row: Row) -> Lowest:
    """Return the lowest subgroup, BPSN or BNSP AUC of a row of ``bias_metrics``.

    It is the lowest with enough rows; else the lowest with an interval; else that without. An identity that
    has none comes last, and no metric is named.
    """
    there = (name for name in SUMMARISED_AUCS if row[name] is not None)
    found = (Lowest(doubt(row[f"{name}_low"], row[f"{name}_high"]), row[name], name) for name in there)
    return min(found, default=_NO_VALUE)


def worst_outcome(alerts: Rows) -> str | None:
    """Return the worst outcome among rows of ``bias_alerts``, None where there are none."""
    found = {row["outcome"] for row in alerts}
    return next((outcome for outcome in OUTCOMES if outcome in found), None)


def choose_thresholds(rows: Rows) -> list[float]:
    """Return the thresholds that are shown: all of a few, of a grid three of its inner ones."""
    found = sorted({row["threshold"] for row in rows})
    if len(found) <= MOST_THRESHOLDS:
        return found
    return [found[len(found) * quarter // 4] for quarter in (1, 2, 3)]
