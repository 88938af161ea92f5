"""The top of a report: what the gate says, and what changed since the last accepted run, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from biasspark.columns import (
    ALL_ROWS,
    CROSSED,
    FAIL,
    IDENTITY,
    INSUFFICIENT,
    MODEL,
    OUTCOMES,
    OVERALL,
    PASS,
    SUMMARISED_GAPS,
    WARN,
)
from biasspark.report.cells import show_count, show_interval, show_name, show_number
from biasspark.report.facts import (
    MOST_ALERTS,
    NightFacts,
    PastNight,
    Row,
    worst_outcome,
)
from biasspark.report.side_by_side_metrics import COMPARED

NO_GATE = "no_gate"
MOST_MOVES, MOST_BROKEN, MOST_RULES = 6, 12, 3
WORDS = {FAIL: "Fail", WARN: "Warning", INSUFFICIENT: "Not enough evidence", PASS: "Pass", NO_GATE: "No verdict"}
"""What a reader sees of an outcome."""


@dataclass(frozen=True, kw_only=True)
class Move:
    """A metric of one identity whose intervals of two nights do not overlap."""

    model: str
    identity: str
    metric: str
    worse: bool
    before: str
    after: str
    size: float


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What the gate says of one model: an outcome, and a sentence that the model's name begins."""

    model: str
    outcome: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class ShownVerdict:
    """What a reader sees first.

    Attributes
    ----------
    outcome
        One of the gate's outcomes, or ``no_gate``.
    title
        The outcome in words.
    decisions
        What the gate says of each model, in the order of their names; none without a gate.
    alerts, n_alerts
        The gate's rows, the worst first, and how many the night has.
    override
        Who accepted this run by hand and why, if anyone did.
    changes
        What changed, in sentences.
    moves
        The largest of the changes, those for the worse first.
    """

    outcome: str
    title: str
    decisions: Sequence[Decision]
    alerts: Sequence[Row]
    n_alerts: int
    override: Row | None
    changes: Sequence[str]
    moves: Sequence[Move]

    @property
    def broken(self) -> Sequence[Row]:
        """The alerts of rules that are broken, of many the worst."""
        return self._all_broken[:MOST_BROKEN]

    @property
    def broken_are_cut(self) -> bool:
        """Whether more rules are broken than those."""
        return len(self._all_broken) > MOST_BROKEN

    @property
    def _all_broken(self) -> Sequence[Row]:
        return [row for row in self.alerts if row["outcome"] in (FAIL, WARN)]

    @property
    def others(self) -> Sequence[Row]:
        """The other alerts, so far as they are shown."""
        return self.alerts[len(self.broken) : MOST_ALERTS]

    @property
    def n_unread(self) -> int:
        """How many alerts are not shown."""
        return max(self.n_alerts - MOST_ALERTS, 0)


def reach_verdict(facts: NightFacts) -> ShownVerdict:
    """Return what the gate says of a night, and what changed since the last accepted one."""
    alerts = facts.alerts()
    by_model = facts.count_outcomes()
    counted = sum(by_model.values(), Counter[str]())
    outcome = worst_outcome(alerts) or NO_GATE
    override = next((row for row in facts.overrides if row["accepted_run_id"] == facts.run["run_id"]), None)
    changes, moves = describe_changes(facts)
    return ShownVerdict(
        outcome=outcome,
        title=_say_title(outcome, counted),
        decisions=[]
        if outcome == NO_GATE
        else [decide(model, by_model[model], alerts) for model in sorted(by_model, key=str)],
        alerts=alerts,
        n_alerts=counted.total(),
        override=override,
        changes=changes,
        moves=moves,
    )


def _say_title(outcome: str, counted: Counter[str]) -> str:
    n, of = counted[outcome], f"of {counted.total():,} checks"
    titles = {
        FAIL: f"The gate failed: {n:,} {of}",
        WARN: f"The gate passed with warnings: {n:,} {of}",
        INSUFFICIENT: f"Not enough evidence for {n:,} {of}",
        PASS: f"The gate passed: {'the only check' if n == 1 else f'all {n:,} checks'}",
        NO_GATE: "No gate is configured",
    }
    return titles[outcome]


def decide(model: str, counted: Counter[str], alerts: Sequence[Row]) -> Decision:
    """Return what the gate says of a model, of whose checks so many have each outcome."""
    outcome = next((name for name in OUTCOMES if counted[name]), NO_GATE)
    own = [row for row in alerts if (row[MODEL], row["outcome"]) == (model, outcome)]
    rules = [] if outcome == PASS else list(dict.fromkeys(show_name(row["rule"]) for row in own))
    said = _say_outcome(outcome, counted, rules, "not shown to hold" if _are_undecided(own) else "shown to be broken")
    if outcome == FAIL and counted[WARN]:
        warned = [row for row in alerts if (row[MODEL], row["outcome"]) == (model, WARN)]
        verb, ending = ("is", "s") if counted[WARN] == 1 else ("are", "")
        what = "not shown to hold" if _are_undecided(warned) else "broken"
        said += f" {counted[WARN]:,} more {verb} {what}, but only warn{ending}."
    if counted[INSUFFICIENT] and outcome != INSUFFICIENT:
        said += f" There is not enough evidence for {counted[INSUFFICIENT]:,} more."
    return Decision(model=model, outcome=outcome, sentence=said)


def _are_undecided(alerts: Sequence[Row]) -> bool:
    """Say whether some fail or warn though the bound is not shown to be broken: for want of evidence or of scores."""
    return any(row.get("decided") is False for row in alerts)


def _say_outcome(outcome: str, counted: Counter[str], rules: Sequence[str], what: str) -> str:
    """Say the outcome of a model; ``what`` is said of the checks that fail or warn."""
    n, of = counted[outcome], counted.total()
    checks = "its only check" if of == 1 else f"{n:,} of {of:,} checks"
    broken = f"{checks} {'is' if n == 1 else 'are'} {what}"
    if rules:
        named = _name_rules(rules)
        broken, checks = f"{broken} ({named})", f"{checks} ({named})"
    return {
        FAIL: f"fails: {broken}.",
        WARN: f"passes with warnings: {broken}, but {'it only warns' if n == 1 else 'they only warn'}.",
        INSUFFICIENT: f"is undecided: no check is shown to be broken, but there is not enough evidence for {checks}.",
        PASS: f"passes: {'its only check is' if of == 1 else f'all {of:,} checks are'} shown to hold.",
        NO_GATE: "has no verdict: no rule of the gate applies to it.",
    }[outcome]


def _name_rules(rules: Sequence[str]) -> str:
    """Name rules, the first few of many."""
    more = f" and {len(rules) - MOST_RULES:,} more" if len(rules) > MOST_RULES else ""
    names = ", ".join(f"“{rule}”" for rule in rules[:MOST_RULES])
    return f"rule{'' if len(rules) == 1 else 's'} {names}{more}"


def is_undecided_among_many(row: Row, alpha: float) -> bool:
    """Say whether an alert is undecided though its own p-value is below the level, being one of many of its rule."""
    p_values = (row.get(f"p_{side}") for side in ("violation", "compliance"))
    return row["outcome"] == INSUFFICIENT and any(p is not None and p < alpha for p in p_values)


def describe_changes(facts: NightFacts) -> tuple[list[str], list[Move]]:
    """Say what changed since the last accepted run, or the night before where nothing was ever judged.

    A value changed where its intervals of both nights do not overlap. That asks more than a test of the difference:
    what is named changed, what is not may have.
    """
    baseline = facts.baseline
    if baseline is None:
        return [_say_nothing_before(facts)], []
    moves, n_compared = find_moves(facts.rows("bias_metrics", slice=ALL_ROWS), baseline.metrics)
    worse = sum(move.worse for move in moves)
    since = f"Since {say_date(baseline.run_date)} ({facts.standing})"
    if not n_compared:
        return [f"{since}, no value can be compared: the two nights share none with an interval."], []
    changed = f"{len(moves):,} of {n_compared:,} values" if moves else f"none of {n_compared:,} values"
    told = f"{since}, {changed} changed by more than their intervals"
    told += f": {worse:,} got worse, {len(moves) - worse:,} got better." if moves else "."
    return [told, *_say_overall(facts, baseline), *_say_identities(facts, baseline)], moves


def _say_nothing_before(facts: NightFacts) -> str:
    if facts.history:
        return "No earlier night of this corpus was accepted, so there is nothing to compare with."
    return "This is the first night of this corpus, so there is nothing to compare with."


def find_moves(now: Sequence[Row], then: Sequence[Row]) -> tuple[list[Move], int]:
    """Return the values whose intervals do not overlap, the worst first, and how many were compared."""
    before = {(row[MODEL], row[IDENTITY]): row for row in then if not row[CROSSED]}
    moves, n_compared = [], 0
    for row in now:
        earlier = before.get((row[MODEL], row[IDENTITY]))
        if earlier is None or row[CROSSED] or row[IDENTITY] == OVERALL:
            continue
        for name in COMPARED:
            ends = [one[f"{name}_{end}"] for one in (earlier, row) for end in ("low", "high")]
            if None in ends:
                continue
            n_compared += 1
            if ends[2] > ends[1] or ends[0] > ends[3]:
                moves.append(_describe_move(row, earlier, name))
    return sorted(moves, key=lambda move: (not move.worse, -move.size, move.model, move.identity)), n_compared


def _describe_move(row: Row, earlier: Row, name: str) -> Move:
    is_gap = name in SUMMARISED_GAPS
    worse = abs(row[name]) > abs(earlier[name]) if is_gap else row[name] < earlier[name]
    return Move(
        model=row[MODEL],
        identity=row[IDENTITY],
        metric=name,
        worse=worse,
        before=_show_with_interval(earlier, name),
        after=_show_with_interval(row, name),
        size=abs(row[name] - earlier[name]),
    )


def _show_with_interval(row: Mapping[str, Any], name: str) -> str:
    signed = name in SUMMARISED_GAPS
    interval = show_interval(row[f"{name}_low"], row[f"{name}_high"], signed=signed)
    return show_number(row[name], signed=signed) + (f" ({interval})" if interval else "")


def _say_overall(facts: NightFacts, baseline: PastNight) -> list[str]:
    before = {row[MODEL]: _show_with_interval(row, "auc") for row in baseline.summaries}
    return [
        f"{show_name(row[MODEL])}: overall AUC {_show_with_interval(row, 'auc')}, was {before[row[MODEL]]}."
        for row in facts.rows("model_summary", slice=ALL_ROWS)
        if row[MODEL] in before
    ]


def _say_identities(facts: NightFacts, baseline: PastNight) -> list[str]:
    """Say which identities came and went; of many only how many."""
    then = {row[IDENTITY] for row in baseline.metrics}
    new = set(facts.identities()) - then
    return [
        f"{what}: {', '.join(map(show_name, sorted(names))) if len(names) <= MOST_MOVES else show_count(len(names))}."
        for what, names in (("New identities", new), ("Identities no longer measured", facts.gone))
        if names
    ]


def say_date(night: date) -> str:
    """Write a date as people say it: 15 January 2026."""
    return f"{night.day} {night:%B %Y}"
