"""The printed result of a gate: sentences of decided checks, and counts of undecided ones."""

from __future__ import annotations

from typing import Any

import pytest

from biasspark.columns import FAIL, INSUFFICIENT, PASS, WARN
from biasspark.gate.gate_result import MAX_SHOWN, GateResult
from biasspark.tables.schemas import BIAS_ALERTS, to_table
from tests.fixtures.made_up_report import alert


def result_of(*rows: dict[str, Any]) -> GateResult:
    return GateResult(
        to_table(BIAS_ALERTS, **{name: [row.get(name) for row in rows] for name in BIAS_ALERTS.value_columns})
    )


def alerts_of(outcome: str, number: int, *, decided: bool, rule: str = "floor") -> list[dict[str, Any]]:
    return [alert(outcome, rule=rule, identity=f"i{n}", message=f"{rule} {n}", decided=decided) for n in range(number)]


@pytest.mark.parametrize("outcome", [INSUFFICIENT, WARN, FAIL])
def test_checks_without_evidence_take_one_line_whatever_they_count_as(outcome: str) -> None:
    gate_result = result_of(
        *alerts_of(outcome, 24, decided=False),
        *alerts_of(outcome, 2, decided=False, rule="drop"),
        alert(PASS, decided=True),
    )
    counts, undecided = gate_result.show().splitlines()
    assert counts == f"gate: 26 {outcome}, 1 pass"
    assert undecided.startswith(f"{outcome}: 26 checks")
    assert "floor (24), drop (2)" in undecided
    assert gate_result.outcome == outcome
    assert gate_result.exit_code == (5 if outcome == FAIL else 0)


def test_each_violation_that_was_shown_has_its_sentence_and_the_first_of_many_do() -> None:
    lines = result_of(*alerts_of(FAIL, MAX_SHOWN + 1, decided=True)).show().splitlines()
    assert [line.rpartition(": ")[2] for line in lines[1:-1]] == [f"floor {n}" for n in range(MAX_SHOWN)]
    assert lines[-1] == "and 1 more"


def test_without_a_gate_nothing_is_shown() -> None:
    assert (GateResult().show(), GateResult().status, GateResult().outcome) == ("", "published", None)
