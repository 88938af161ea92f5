"""The result of the gate on a run or a comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from biasspark.columns import FAIL, INSUFFICIENT, MODEL, OUTCOMES, SLICE, WARN
from biasspark.errors import GATE_FAILED
from biasspark.gate.alerts import alert_order
from biasspark.tables.runs import ACCEPTED, PUBLISHED
from biasspark.tables.schemas import BIAS_ALERTS, Table
from biasspark.text import format_count, list_first, show_visibly

MAX_SHOWN, MAX_RULES = 20, 5


@dataclass(frozen=True)
class GateResult:
    """The result of the gate on a run: the alerts, None without a gate, warnings, and the table of the alerts.

    ``note`` names the command that judges the other rules.
    """

    alerts: pa.Table | None = None
    warnings: tuple[str, ...] = ()
    table: Table = BIAS_ALERTS
    note: str = ""

    @property
    def outcome(self) -> str | None:
        """The worst outcome of any alert; None without a gate."""
        outcomes = [] if self.alerts is None else self.alerts["outcome"].to_pylist()
        return next((outcome for outcome in OUTCOMES if outcome in outcomes), None)

    @property
    def status(self) -> str:
        """The status in the ledger: accepted if there is a gate and it did not fail."""
        return PUBLISHED if self.outcome in (None, FAIL) else ACCEPTED

    @property
    def exit_code(self) -> int:
        """The exit code of the job: that of a failed gate, or 0."""
        return GATE_FAILED if self.outcome == FAIL else 0

    def show(self) -> str:
        """Format the number of alerts by outcome, a line per violation, the worst first, and undecided ones by rule."""
        if self.alerts is None or self.outcome is None:
            return self.note
        rows = sorted(self.alerts.to_pylist(), key=alert_order)
        counts = Counter(row["outcome"] for row in rows)
        violations = [row for row in rows if row["decided"] and row["outcome"] in (FAIL, WARN)]
        lines = [f"gate: {', '.join(f'{n} {outcome}' for outcome, n in counts.items())}"]
        lines += [
            f"{row['outcome']}: {row['rule']}, {row[MODEL]}, {row[SLICE]}: {row['message']}"
            for row in violations[:MAX_SHOWN]
        ]
        lines += [f"and {len(violations) - MAX_SHOWN} more"] if len(violations) > MAX_SHOWN else []
        for outcome in counts:
            undecided = Counter(row["rule"] for row in rows if row["outcome"] == outcome and not row["decided"])
            if undecided:
                rules = [f"{rule} ({n})" for rule, n in sorted(undecided.items(), key=lambda item: (-item[1], item[0]))]
                checks = f"{format_count(undecided.total(), 'check')}{' without evidence' * (outcome != INSUFFICIENT)}"
                by_rule = f"by rule: {list_first(rules, MAX_RULES)}"
                lines.append(f"{outcome}: {checks}, {by_rule}. latest_{self.table.name} says why.")
        return "\n".join(map(show_visibly, filter(None, (*lines, self.note))))


def summarize_alerts(table: Table, alerts: pa.Table, warnings: Sequence[str] = ()) -> GateResult:
    """Return the result of the gate with these alerts. A warning is added if some or all checks are undecided."""
    rows = alerts.to_pylist()
    problems = []
    if n_undecided := sum(row["outcome"] == WARN and not row["decided"] for row in rows):
        have = f"{format_count(n_undecided, 'check')} {'has' if n_undecided == 1 else 'have'}"
        problems.append(f'{have} insufficient evidence, which counts as a warning by `insufficient = "warn"`')
    if not any(row["decided"] for row in rows):
        problems.append("no check of the gate is decided")
    return GateResult(alerts, (*warnings, *([f"gate: {'; '.join(problems)}."] if problems else [])), table)
