"""Which nights of a window do not merge, and in what they differ, in words. No Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from biasspark.config import list_differences, show_value
from biasspark.ranking.state_header import State, name_state

States = Mapping[date, Mapping[str, State]]
"""Of each night in order, by model."""

_MEND = "Nights merge that were measured alike. Measure those again: jobs/bias_metrics.py --run-date FIRST..LAST."


def find_disagreements(states: States, models: Sequence[str], rules: Mapping[str, Any]) -> list[str]:
    """Return every reason why the nights do not merge with the last of them, or are not what is asked for.

    Parameters
    ----------
    states
        Of one night at least.
    models, rules
        What is asked for: models, and what `config.merge_rules` says.
    """
    faults = [*_find_lacking(states, models), *_find_foreign(states), *_compare_with(rules, states)]
    for model in models:
        faults += _compare_nights(model, {day: own[model] for day, own in states.items() if model in own})
    return list(dict.fromkeys(faults))


def _find_lacking(states: States, models: Sequence[str]) -> list[str]:
    return [
        f"[models] {model}: not measured on {', '.join(lacking)}. Every night of a window has its models. Measure "
        "those nights again, or leave the model out."
        for model in models
        if (lacking := [str(day) for day, own in states.items() if model not in own])
    ]


def _find_foreign(states: States) -> list[str]:
    """Return whether the last night, with which all others are compared, has blocks as they are written here."""
    last = max(states)
    if all(state.key == name_state(state.header, state.boundaries) for state in states[last].values()):
        return []
    return [f"state: {last} was kept by another version of biasspark, which writes blocks in another format. {_MEND}"]


def _compare_with(rules: Mapping[str, Any], states: States) -> list[str]:
    """Compare the configuration with the last night."""
    last = max(states)
    found = next(iter(states[last].values())).header.rules
    differences = list_differences(rules, found, ("in the configuration", f"on {last}"))
    return [f"configuration: {last} was measured by another: {'; '.join(differences)}. {_MEND}"] if differences else []


def _compare_nights(model: str, states: Mapping[date, State]) -> list[str]:
    """Compare each night with the last; nights that are alike are one fault."""
    by_key: dict[str, list[date]] = {}
    for day, state in states.items():
        by_key.setdefault(state.key, []).append(day)
    last = max(states, default=None)
    return [
        _say_quarrel(model, days, (states[days[-1]], states[last]), last)
        for key, days in by_key.items()
        if last and key != states[last].key
    ]


def _say_quarrel(model: str, days: Sequence[date], pair: tuple[State, State], last: date) -> str:
    one, other = pair
    names = (f"on {days[-1]}", f"on {last}")
    differences = list_differences(one.header.agreement, other.header.agreement, names)
    if one.boundaries.tolist() != other.boundaries.tolist():
        differences.append(f"the boundaries of {show_value(model)} are others {names[0]} than {names[1]}")
    which = str(days[0]) if len(days) == 1 else f"{len(days)} nights from {days[0]} to {days[-1]}"
    return f"state: {which} and {last} do not merge: {'; '.join(differences) or 'their formats differ'}. {_MEND}"
