"""Which runs of a window do not merge, and how they differ. No Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from biasspark.config import list_differences
from biasspark.text import show_value
from biasspark.windows.sketch import Sketch, hash_agreement

Sketches = Mapping[date, Mapping[str, Sketch]]
"""The sketches of each night, in order, by model."""

_FIX = "Nights merge that were measured alike. Measure those again: jobs/bias_metrics.py --run-date FIRST..LAST."


def list_disagreements(sketches: Sketches, models: Sequence[str], rules: Mapping[str, Any]) -> list[str]:
    """Return every reason why nights do not merge with the last one, or do not match the configuration.

    There is at least one night. Models and rules are those configured, the latter as in `config.merge_rules`.
    """
    last = max(sketches)
    faults = [
        f"[models] {model}: not measured on {', '.join(lacking)}. Every night of a window has its models. Measure "
        "those nights again, or leave the model out."
        for model in models
        if (lacking := [str(day) for day, by_model in sketches.items() if model not in by_model])
    ]
    if any(one.key != hash_agreement(one.header, one.boundaries) for one in sketches[last].values()):
        faults.append(
            f"state: {last} was kept by another version of biasspark, which writes blocks in another format. {_FIX}"
        )
    measured = next(iter(sketches[last].values())).header.rules
    if differences := list_differences(rules, measured, ("in the configuration", f"on {last}")):
        faults.append(f"configuration: {last} was measured by another: {'; '.join(differences)}. {_FIX}")
    for model in models:
        faults += _compare_nights(
            model, {day: of_night[model] for day, of_night in sketches.items() if model in of_night}
        )
    return list(dict.fromkeys(faults))


def _compare_nights(model: str, sketches: Mapping[date, Sketch]) -> list[str]:
    """Compare each night with the last; nights that differ from it in the same way share one fault."""
    by_key: dict[str, list[date]] = {}
    for day, sketch in sketches.items():
        by_key.setdefault(sketch.key, []).append(day)
    last = max(sketches, default=None)
    return [
        _describe(model, days, sketches, last) for key, days in by_key.items() if last and key != sketches[last].key
    ]


def _describe(model: str, days: Sequence[date], sketches: Mapping[date, Sketch], last: date) -> str:
    earlier, latest = sketches[days[-1]], sketches[last]
    names = (f"on {days[-1]}", f"on {last}")
    differences = list_differences(earlier.header.agreement, latest.header.agreement, names)
    if earlier.boundaries.tolist() != latest.boundaries.tolist():
        differences.append(f"the boundaries of {show_value(model)} are others {names[0]} than {names[1]}")
    which = str(days[0]) if len(days) == 1 else f"{len(days)} nights from {days[0]} to {days[-1]}"
    return f"state: {which} and {last} do not merge: {'; '.join(differences) or 'their formats differ'}. {_FIX}"
