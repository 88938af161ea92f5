"""The summary at the top of a report: what the gate decided, and what changed since the baseline, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import product
from typing import NamedTuple

from biasspark import columns
from biasspark.report import cells, report_data
from biasspark.report.cells import Row, TableCell, goodness
from biasspark.report.definitions import SUITE
from biasspark.report.report_data import ReportData, Rows
from biasspark.text import list_first, show_visibly

NO_GATE = "no_gate"
MAX_CHANGES, MAX_BROKEN, MAX_RULES = 6, 12, 3
OUTCOME_TITLES = {
    columns.FAIL: "Fail",
    columns.WARN: "Warning",
    columns.INSUFFICIENT: "Not enough evidence",
    columns.PASS: "Pass",
    NO_GATE: "No verdict",
}


class Change(NamedTuple):
    """A change of a metric of one identity whose intervals in two runs do not overlap."""

    model: str
    identity: str
    metric: str
    worse: bool
    before: str
    after: str
    size: float


class Decision(NamedTuple):
    """The outcome of one model, and a sentence that continues the model's name."""

    model: str
    outcome: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class GateSummary:
    """What a reader sees first: the outcome, overall and for each model, and what changed.

    ``outcome`` is an outcome of the gate or ``no_gate``. ``broken`` are the alerts that fail or warn, the worst first.
    Below the first `MAX_BROKEN` of them are ``other_alerts``, and ``n_hidden`` are not shown. ``acceptance`` is the row
    of the ledger by which a person accepted this run.
    """

    outcome: str
    title: str
    decisions: Sequence[Decision]
    broken: Rows
    other_alerts: Rows
    n_hidden: int
    acceptance: Row | None
    notes: Sequence[str]
    changes: Sequence[Change]


def build_gate_summary(report: ReportData) -> GateSummary:
    """Return what the gate decided on a run, and what changed since the baseline."""
    alerts = report.alerts()
    by_model = {model: Counter[str]() for model in report.models()}
    for name in report_data.ALERTS:
        for (model, outcome), n in report.counts.get(name, {}).items():
            by_model.setdefault(model, Counter())[outcome] += n
    counts = sum(by_model.values(), Counter[str]())
    outcome = alerts[0]["outcome"] if alerts else NO_GATE
    n, of_all = counts[outcome], f"of {counts.total():,} checks"
    titles = {
        columns.FAIL: f"The gate failed: {n:,} {of_all}",
        columns.WARN: f"The gate passed with warnings: {n:,} {of_all}",
        columns.INSUFFICIENT: f"Not enough evidence for {n:,} {of_all}",
        columns.PASS: f"The gate passed: {'the only check' if n == 1 else f'all {n:,} checks'}",
        NO_GATE: f"No {'rule of the gate was evaluated' if report.config.get('gate') else 'gate is configured'}",
    }
    models = [] if outcome == NO_GATE else sorted(by_model, key=str)
    notes, changes = describe_changes(report)
    broken = [row for row in alerts if row["outcome"] in (columns.FAIL, columns.WARN)]
    return GateSummary(
        outcome=outcome,
        title=titles[outcome],
        decisions=[decide(model, by_model[model], alerts) for model in models],
        broken=broken,
        other_alerts=alerts[min(len(broken), MAX_BROKEN) : report_data.MAX_ALERTS],
        n_hidden=max(counts.total() - report_data.MAX_ALERTS, 0),
        acceptance=next((row for row in report.acceptances if row["accepts_run_id"] == report.run["run_id"]), None),
        notes=notes,
        changes=changes,
    )


def decide(model: str, counts: Counter[str], alerts: Rows) -> Decision:
    """Return the decision on a model, given the number of its checks by outcome, and all alerts."""
    outcome = next((name for name in columns.OUTCOMES if counts[name]), NO_GATE)
    by_outcome = report_data.group_rows((row for row in alerts if row["model"] == model), "outcome")
    sentence = _describe_outcome(outcome, counts, by_outcome.get((outcome,), ()))
    if outcome == columns.FAIL and counts[columns.WARN]:
        verb, ending = ("is", "s") if counts[columns.WARN] == 1 else ("are", "")
        state = _describe_state(by_outcome.get((columns.WARN,), ()), "broken")
        sentence += f" {counts[columns.WARN]:,} more {verb} {state}, but only warn{ending}."
    if counts[columns.INSUFFICIENT] and outcome != columns.INSUFFICIENT:
        sentence += f" There is not enough evidence for {counts[columns.INSUFFICIENT]:,} more."
    return Decision(model, outcome, sentence)


def _describe_state(alerts: Rows, if_decided: str) -> str:
    """Return the state of alerts in words; some may fail or warn only because the evidence is insufficient."""
    return "not shown to hold" if any(row.get("decided") is False for row in alerts) else if_decided


def _describe_outcome(outcome: str, counts: Counter[str], alerts: Rows) -> str:
    """Return the sentence on a model's outcome, given its alerts with that outcome."""
    n, total = counts[outcome], counts.total()
    checks = "its only check" if total == 1 else f"{n:,} of {total:,} checks"
    rules = list(dict.fromkeys(f"“{show_visibly(row['rule'])}”" for row in alerts))
    names = f" (rule{'' if len(rules) == 1 else 's'} {list_first(rules, MAX_RULES)})" if rules else ""
    broken = f"{checks} {'is' if n == 1 else 'are'} {_describe_state(alerts, 'shown to be broken')}{names}"
    return {
        columns.FAIL: f"fails: {broken}.",
        columns.WARN: f"passes with warnings: {broken}, but {'it only warns' if n == 1 else 'they only warn'}.",
        columns.INSUFFICIENT: "is undecided: no check is shown to be broken, but there is not enough evidence for "
        f"{checks}{names}.",
        columns.PASS: f"passes: {'its only check is' if total == 1 else f'all {total:,} checks are'} shown to hold.",
        NO_GATE: "has no verdict: no rule of the gate applies to it.",
    }[outcome]


def alert_cell(row: Row) -> TableCell:
    """Return the value of an alert, or its change if the bound is on that."""
    what = "value" if row.get("change") is None else "change"
    signed = what == "change" or row["metric"] in (*columns.SUITE_GAPS, *columns.RATE_GAPS)
    value, low, high = (row.get(name) for name in (what, f"{what}_low", f"{what}_high"))
    return replace(cells.interval_cell(value, low, high, signed=signed), weak=False)


def is_undecided_among_many(alert: Row, alpha: float) -> bool:
    """Return whether an alert is undecided only after correction for the tests of its rule."""
    p_values = (alert.get(f"p_{side}") for side in ("violation", "compliance"))
    is_undecided = alert["outcome"] == columns.INSUFFICIENT or alert.get("decided") is False
    return is_undecided and any(p is not None and p < alpha for p in p_values)


def describe_changes(report: ReportData) -> tuple[list[str], list[Change]]:
    """Return what changed since the baseline, in sentences and values.

    A value counts as changed if its intervals in both runs do not overlap. This is stricter than a test of the
    difference: a value that is not listed may have changed as well.
    """
    baseline = report.baseline
    if baseline is None:
        which = "was accepted" if report.has_earlier_runs else "is published"
        return [f"No run of an earlier date {which}, so there is nothing to compare with."], []
    changes, n_compared = find_changes(report.rows("bias_metrics", slice=columns.ALL_ROWS), baseline.metrics)
    since = f"Since {format_date(baseline.run_date)} ({report.baseline_label})"
    if baseline.is_lost:
        return [f"{since}, nothing can be compared: files of that run are gone."], []
    if not n_compared:
        return [f"{since}, no value can be compared: the two runs share none with an interval."], []
    n_changed = f"{len(changes):,}" if changes else "none"
    note = f"{since}, {n_changed} of {n_compared:,} values shown here changed by more than their intervals"
    if changes:
        n_worse = sum(change.worse for change in changes)
        note += f": {n_worse:,} got worse, {len(changes) - n_worse:,} got better"
    before = {row["model"]: _with_interval(row, "auc") for row in baseline.summaries}
    notes = [f"{note}."] + [
        f"{show_visibly(model)}: overall AUC {_with_interval(row, 'auc')}, was {before[model]}."
        for model, row in report.summaries().items()
        if model in before
    ]
    if baseline.differences:
        notes.insert(1, f"That run was measured differently: {'; '.join(baseline.differences)}.")
    new, missing = report.new_identities, report.missing_identities
    for title, names in (("New identities", new), ("Identities no longer measured", missing)):
        shown = ", ".join(map(show_visibly, names)) if len(names) <= MAX_CHANGES else f"{len(names):,}"
        notes += [f"{title}: {shown}."] if names else []
    return notes, changes


def describe_other_runs(report: ReportData) -> str:
    """Return a sentence on the earlier runs of the trends that were measured differently; empty without any."""
    differing = [run for run in report.history if run.differences]
    if not differing:
        return ""
    which = f"{len(differing)} of {len(report.history)} earlier runs {'was' if len(differing) == 1 else 'were'}"
    last = differing[-1]
    return f"{which} measured differently, the last on {format_date(last.run_date)}: {'; '.join(last.differences)}."


def find_changes(metrics: Rows, earlier: Rows) -> tuple[list[Change], int]:
    """Return the changes of values whose intervals do not overlap, and the number of compared values."""
    before = {(row["model"], row["identity"]): row for row in earlier}
    changes, n_compared = [], 0
    for row, name in product(metrics, SUITE):
        past = before.get((row["model"], row["identity"]), {})
        past_low, past_high, low, high = (run.get(f"{name}_{end}") for run in (past, row) for end in ("low", "high"))
        if past_low is None or past_high is None or low is None or high is None:
            continue
        n_compared += 1
        if low > past_high or high < past_low:
            worse, size = goodness(row[name], name) < goodness(past[name], name), abs(row[name] - past[name])
            values = _with_interval(past, name), _with_interval(row, name)
            changes.append(Change(row["model"], row["identity"], name, worse, *values, size))
    changes.sort(key=lambda change: (not change.worse, -change.size, change.model, change.identity))
    return changes, n_compared


def _with_interval(row: Row, name: str) -> str:
    cell = cells.metric_cell(row, name)
    return f"{cell.text} ({cell.interval})" if cell.interval else cell.text


def format_date(day: date) -> str:
    """Return a date as text: 15 January 2026."""
    return f"{day.day} {day:%B %Y}"
