"""Nights that do not merge, each reason in words."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np

from biasspark.ranking.state_agreement import find_disagreements
from biasspark.ranking.state_header import State, name_state
from tests.unit.test_state_header import EDGES, header, rules_of

MEND = " Nights merge that were measured alike. Measure those again: jobs/bias_metrics.py --run-date FIRST..LAST."
DAYS = [date(2026, 1, day) for day in range(1, 6)]


def state(edges: np.ndarray = EDGES, **parts: Any) -> State:
    return State(name_state(header(**parts), edges), edges, header(**parts))


def test_nights_that_agree() -> None:
    states = {day: {"m": state(n_rows=day.day), "more": state(EDGES[1:])} for day in DAYS}
    assert find_disagreements(states, ("m", "more"), rules_of()) == []


def test_nights_of_other_rules_are_one_fault() -> None:
    old = {"m": state(rules=rules_of(label={"threshold": 0.8}))}
    states = {day: old if day in DAYS[:3] else {"m": state()} for day in DAYS}
    assert find_disagreements(states, ("m",), rules_of()) == [
        "state: 3 nights from 2026-01-01 to 2026-01-03 and 2026-01-05 do not merge: "
        f"label.threshold is 0.8 on 2026-01-03, not set on 2026-01-05.{MEND}"
    ]


def test_rules_that_differ_are_said_once_for_all_models() -> None:
    old = state(rules=rules_of(slices={"short": "x < 9"}))
    states = {DAYS[0]: {"m": old, "more": old}, DAYS[1]: {"m": state(), "more": state()}}
    assert find_disagreements(states, ("m", "more"), rules_of()) == [
        "state: 2026-01-01 and 2026-01-02 do not merge: "
        f'slices.short is "x < 9" on 2026-01-01, not set on 2026-01-02.{MEND}'
    ]


def test_scores_that_were_cut_anew() -> None:
    states = {DAYS[0]: {"m": state(EDGES[1:])}, DAYS[1]: {"m": state()}}
    assert find_disagreements(states, ("m",), rules_of()) == [
        "state: 2026-01-01 and 2026-01-02 do not merge: "
        f'the boundaries of "m" are others on 2026-01-01 than on 2026-01-02.{MEND}'
    ]


def test_types_of_categories_and_models_that_a_night_lacks() -> None:
    states = {DAYS[0]: {"m": state(types={"race": "int"})}, DAYS[1]: {"m": state(), "more": state()}}
    assert find_disagreements(states, ("m", "more"), rules_of()) == [
        "[models] more: not measured on 2026-01-01. Every night of a window has its models. Measure those nights "
        "again, or leave the model out.",
        "state: 2026-01-01 and 2026-01-02 do not merge: "
        f'types.race is "int" on 2026-01-01, "string" on 2026-01-02.{MEND}',
    ]


def test_the_configuration_is_that_of_the_nights() -> None:
    asked = rules_of(identities={"unannotated": "background"})
    assert find_disagreements({day: {"m": state()} for day in DAYS}, ("m",), asked) == [
        "configuration: 2026-01-05 was measured by another: "
        f'identities.unannotated is "background" in the configuration, "exclude" on 2026-01-05.{MEND}'
    ]


def test_nights_of_another_format_are_refused_although_they_agree() -> None:
    states = {day: {"m": State("a key of before", EDGES, header())} for day in DAYS}
    assert find_disagreements(states, ("m",), rules_of()) == [
        f"state: 2026-01-05 was kept by another version of biasspark, which writes blocks in another format.{MEND}"
    ]
