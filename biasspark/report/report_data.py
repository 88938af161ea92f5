"""What a report shows: the rows of one night and of the runs before it, read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple, TypeAlias

from biasspark.columns import ALL_ROWS, OUTCOMES, OVERALL, SUMMARIZED_AUCS, SUMMARIZED_GAPS
from biasspark.report.cells import Row, imprecision
from biasspark.report.run_history import read_config
from biasspark.tables.schemas import LOSS_BY_SEGMENT, PINNED_SKEW, TABLES

Rows: TypeAlias = Sequence[Row]

MAX_THRESHOLDS = 3
MAX_ALERTS = 200

WORST = {
    **{name: f"{name}_min" for name in SUMMARIZED_AUCS},
    **{name: f"{name}_max_abs" for name in SUMMARIZED_GAPS},
}
"""The column of ``model_summary`` with the worst value of each metric; with ``_identity``, the name of its identity."""

OF_ATTRIBUTION = tuple(name for name, table in TABLES.items() if table.job == LOSS_BY_SEGMENT.job)
"""The tables of attribution."""

ALERTS = ("bias_alerts", "comparison_alerts")
COUNTED_BY = {
    **dict.fromkeys(ALERTS, ("model", "outcome")),
    "model_comparisons": ("slice", "model", "baseline_model", "verdict"),
}
"""Tables of which a report shows some rows and counts all, and by which columns."""


class Lowest(NamedTuple):
    """The lowest AUC of an identity: its `imprecision`, value and name. The minimum is the worst identity."""

    imprecision: int
    value: float
    metric: str


_NO_VALUE = Lowest(3, 2.0, "")


class PastRun(NamedTuple):
    """An earlier run of the same corpus: its suite on all rows, and whether files of it are gone."""

    run_date: date
    run_id: str
    metrics: Rows
    summaries: Rows = ()
    is_lost: bool = False

    def summary_of(self, model: str) -> Row | None:
        """Return the row of a model on all rows."""
        return next((row for row in self.summaries if row["model"] == model), None)


@dataclass(frozen=True, kw_only=True)
class ReportData:
    """The rows of one night, ``run_date`` of a ``corpus``.

    Attributes
    ----------
    run, acceptances
        The ledger's row of the main job's run, or without one of the attribution, and those by which people accepted
        runs; of a frame that was measured in Python, what there is of it.
    tables
        The shown rows by table (`biasspark.report.filters.filter_tables`), without those that are empty.
    counts
        How many rows the run has of a table of `COUNTED_BY`, by the values of these columns.
    lost
        The tables of the night whose files are gone, each with the fault: the ledger counts their rows.
    runs, configs
        The run of each job, and its configuration.
    history
        The nights before, oldest first, each with the run that readers see.
    baseline, baseline_label
        The run that the night is compared with, None without one, and why it was chosen.
    n_identities
        How many identities were measured. The worst of them are shown.
    missing_identities
        Identities that the baseline has and the night has not; the first of many.
    """

    corpus: str
    run_date: date
    run: Row
    tables: Mapping[str, Rows]
    counts: Mapping[str, Mapping[tuple[Any, ...], int]] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, str] = field(default_factory=dict)
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    history: Sequence[PastRun] = ()
    baseline: PastRun | None = None
    baseline_label: str = ""
    acceptances: Rows = ()
    n_identities: int = 0
    missing_identities: Sequence[str] = ()

    @property
    def is_night(self) -> bool:
        """Whether it is of a published night, which has a gate, a history and a configuration."""
        return "run_id" in self.run

    @property
    def has_suite(self) -> bool:
        """Whether models were measured: else there is no verdict, but attribution, an experiment or labels alone."""
        return bool(self.tables.get("model_summary"))

    @property
    def subject(self) -> str:
        """What the report is about, as its title."""
        if self.has_suite:
            return "Unintended bias"
        names = {"loss_by_segment": "Lost AUC", "pinned_skew": "Pinned AUC", "label_balance": "Label balance"}
        return next((title for name, title in names.items() if self.tables.get(name)), "Unintended bias")

    def defined_tables(self) -> set[str]:
        """Return the published tables that the report shows, or would if they were not lost."""
        names = {*(name for name, rows in self.tables.items() if rows), *self.lost, "bias_runs"}
        return names | ({"template_scores"} if "template_means" in names else set())

    def rows(self, table: str, **values: object) -> list[Row]:
        """Return the rows of a table that have these values; none if the night lacks the table."""
        return [row for row in self.tables.get(table, ()) if all(row[name] == value for name, value in values.items())]

    def count(self, table: str) -> Counter[tuple[Any, ...]]:
        """Return how many rows a table of `COUNTED_BY` has by the values of these columns, shown or not."""
        counted = {key: len(rows) for key, rows in group_rows(self.rows(table), *COUNTED_BY[table]).items()}
        return Counter(self.counts.get(table, counted))

    def alerts(self) -> list[Row]:
        """Return the alerts of the night and of the comparison of its models, the worst first.

        Alerts of equal outcome are sorted by the size of their violation. Verdicts on the worst identity come before
        the alert of that identity.
        """
        return sorted((row for name in ALERTS for row in self.rows(name)), key=_alert_order)

    def count_outcomes(self) -> dict[str, Counter[str]]:
        """Return by model how many alerts have each outcome."""
        counts = {model: Counter[str]() for model in self.models()}
        for name in ALERTS:
            for (model, outcome), n in self.count(name).items():
                counts.setdefault(model, Counter())[outcome] += n
        return counts

    def models(self) -> list[str]:
        """Return the names of the models."""
        suite, without_suite = ("model_summary", "bias_metrics"), (LOSS_BY_SEGMENT.name, PINNED_SKEW.name)
        shown = suite if any(map(self.tables.get, suite)) else without_suite
        return sorted({row["model"] for name in shown for row in self.rows(name)})

    def slices(self) -> list[str]:
        """Return the names of the slices that are shown, all rows first."""
        return sorted({row["slice"] for row in self.rows("model_summary")}, key=lambda name: (name != ALL_ROWS, name))

    def other_slices(self) -> list[tuple[int, str]]:
        """Return the slices that are shown beside all rows, each with its number in anchors."""
        return [(number, name) for number, name in enumerate(self.slices()) if name != ALL_ROWS]

    def pictured(self) -> list[str]:
        """Return the identities whose scores are shown in other slices, the worst in any slice first."""
        drawn = {row["identity"] for row in self.rows("score_histograms") if row["slice"] != ALL_ROWS}
        return [name for name in order_worst_first(self.rows("bias_metrics")) if name in drawn]

    def identities(self, slice_name: str = ALL_ROWS) -> list[str]:
        """Return the names of the identities of a slice, the worst first (see `order_worst_first`)."""
        return order_worst_first(self.rows("bias_metrics", slice=slice_name))

    def nights(self) -> list[PastRun]:
        """Return the nights before and this one, oldest first."""
        summaries = self.rows("model_summary", slice=ALL_ROWS)
        return [*self.history, PastRun(self.run_date, self.run["run_id"], self.rows("bias_metrics"), summaries)]

    def suite(self, slice_name: str = ALL_ROWS) -> dict[tuple[str, str], Row]:
        """Return the rows of ``bias_metrics`` on a slice, by model and identity."""
        return {(row["model"], row["identity"]): row for row in self.rows("bias_metrics", slice=slice_name)}

    def summaries(self, slice_name: str = ALL_ROWS) -> dict[str, Row]:
        """Return the rows of ``model_summary`` on a slice, by model."""
        return {row["model"]: row for row in self.rows("model_summary", slice=slice_name)}

    @property
    def level(self) -> float:
        """The level of the run's intervals."""
        return self._setting("intervals", "level", 0.95)

    @property
    def alpha(self) -> float:
        """The significance level of the run's gate."""
        return self._setting("gate", "alpha", 0.05)

    def _setting(self, part: str, key: str, default: float) -> float:
        return float((read_config(self.run).get(part) or {}).get(key, default))


def group_rows(rows: Iterable[Row], *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by their values of some columns, in their order."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in columns), []).append(row)
    return groups


def _alert_order(row: Row) -> tuple[Any, ...]:
    excess = row["excess"]
    return OUTCOMES.index(row["outcome"]), excess is None, -(excess or 0.0), row["rule"], row["value"] is not None


def order_worst_first(metrics: Rows) -> list[str]:
    """Return the identities of rows of ``bias_metrics`` by their lowest AUC of any model, then by name."""
    lowest: dict[str, Lowest] = {}
    for row in metrics:
        if row["identity"] != OVERALL and not row["crossed"]:
            lowest[row["identity"]] = min(lowest.get(row["identity"], _NO_VALUE), find_lowest(row))
    return sorted(lowest, key=lambda name: (lowest[name][:2], name))


def find_lowest(row: Row) -> Lowest:
    """Return the lowest subgroup, BPSN or BNSP AUC of a row of ``bias_metrics``.

    AUCs with a narrow interval come first, then those with any interval, then the others. Without any AUC, no metric is
    named.
    """
    defined = [name for name in SUMMARIZED_AUCS if row[name] is not None]
    return min(
        (Lowest(imprecision(row[f"{name}_low"], row[f"{name}_high"]), row[name], name) for name in defined),
        default=_NO_VALUE,
    )


def worst_outcome(alerts: Rows) -> str | None:
    """Return the worst outcome of alerts, None if there are none."""
    outcomes = {row["outcome"] for row in alerts}
    return next((outcome for outcome in OUTCOMES if outcome in outcomes), None)


def choose_thresholds(rows: Rows) -> list[float]:
    """Return the thresholds to show: all of a few, three inner ones of a grid."""
    thresholds = sorted({row["threshold"] for row in rows})
    if len(thresholds) <= MAX_THRESHOLDS:
        return thresholds
    return [thresholds[len(thresholds) * quarter // 4] for quarter in (1, 2, 3)]
