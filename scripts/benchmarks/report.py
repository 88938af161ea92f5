"""The summary of a benchmark: medians, agreement of numbers, ratios, and targets."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scripts.benchmarks.candidates import Run
from scripts.benchmarks.task import Number

TOLERANCE = 1e-12
"""The largest difference of a candidate's metrics from those of the job."""

VARIANCE_TOLERANCE = 1e-9
"""Relative: variances are differences of nearly equal numbers."""

PEAKS = ("peak_mb", "worker_mb", "java_mb", "heap_mb")

Figures = Mapping[str, Sequence[float]]
"""By name, the time of each round, or the largest memory of all rounds."""
Runs = Mapping[str, Sequence[Run]]


@dataclass(frozen=True)
class Target:
    """A ratio of two figures, or one figure, and its limit at this many rows or more.

    A ratio of times is the median of the ratios by round: both ran in turn, so a slow round slows both.
    """

    text: str
    figure: str
    per: str | None
    limit: float
    rows: int

    def value(self, figures: Figures) -> float | None:
        """Return the ratio or the figure; None if a figure was not measured."""
        if self.figure not in figures or (self.per and self.per not in figures):
            return None
        if not self.per:
            return statistics.median(figures[self.figure])
        pairs = zip(figures[self.figure], figures[self.per], strict=True)
        return statistics.median(value / base for value, base in pairs)


TARGETS = (
    Target("job / floor", "job seconds", "floor seconds", 1.35, 1_800_000),
    Target("job / pandas loop", "job seconds", "pandas seconds", 1 / 4.3, 1_800_000),
    Target("embedded / pandas loop", "embedded seconds", "pandas seconds", 1 / 12, 1_800_000),
    Target("attribution job, seconds", "attribute seconds", None, 30, 1_800_000),
    Target("attribution, embedded, seconds", "attribute_embedded seconds", None, 15, 1_800_000),
    Target("largest Python worker of the attribution job, MB", "attribute worker_mb", None, 1024, 18_000_000),
    Target("another run in a warm session, seconds", "warm: another run", None, 5, 1_800_000),
    Target("job / DuckDB", "job seconds", "duckdb seconds", 1, 18_000_000),
    Target("embedded / DuckDB", "embedded seconds", "duckdb seconds", 1, 18_000_000),
    Target("embedded / numpy by hand", "embedded seconds", "numpy seconds", 1, 18_000_000),
    Target("embedded, peak memory, MB", "embedded peak_mb", None, 2500, 18_000_000),
    Target("job / DuckDB, peak memory", "job peak_mb", "duckdb peak_mb", 1, 18_000_000),
    Target("job with further tables / job", "further seconds", "job seconds", 1.25, 18_000_000),
    Target("suite / sort", "session: suite", "session: sort", 0.4, 18_000_000),
    Target("suite / scan", "session: suite", "session: scan", 5, 18_000_000),
    Target(
        "attribution of every row / sort", "attribution: attribution of every row", "attribution: sort", 0.6, 18_000_000
    ),
    Target("crosses of 50 groups / suite", "attribution: crosses of 50 groups", "attribution: suite", 1.5, 18_000_000),
    Target("window / rescan", "window: window of 7 runs", "window: rescan", 0.6, 1_800_000),
    Target("largest Python worker in the session, MB", "session worker_mb", None, 1024, 18_000_000),
    Target("largest Python worker of the job, MB", "job worker_mb", None, 1024, 18_000_000),
    Target("Java heap of the job after collection, MB", "job heap_mb", None, 1024, 18_000_000),
    Target("240 / 24 identities in an array", "array: 240 identities", "array: 24 identities", 1.3, 18_000_000),
    Target("240 / 24 columns", "columns: 240 identities", "columns: 24 identities", 1.3, 18_000_000),
    Target("75 % unannotated / all annotated", "unannotated: 75 % not", "unannotated: all annotated", 1, 18_000_000),
)


def summarize(runs: Runs, rows: int) -> dict[str, Any]:
    """Return what is saved of a benchmark as JSON."""
    figures = list_figures(runs)
    return {
        "candidates": {
            name: {
                "what": done[0].candidate.text,
                "runs": [_rounded(asdict(run.measured)) | {"counted": round(run.seconds, 3)} for run in done],
                "agreement": compare_numbers(name, runs),
                "details": done[0].outcome.details,
            }
            for name, done in runs.items()
        },
        "figures": _rounded({name: statistics.median(values) for name, values in figures.items()}),
        "targets": [
            {
                "target": target.text,
                "value": round(value, 3),
                "limit": round(target.limit, 3),
                "met": value <= target.limit,
            }
            for target in TARGETS
            if rows >= target.rows and (value := target.value(figures)) is not None
        ],
    }


def list_figures(runs: Runs) -> Figures:
    """Return all figures; the first round of a session, to warm up, does not count."""
    figures: dict[str, list[float]] = {}
    for name, done in runs.items():
        figures[f"{name} seconds"] = [run.seconds for run in done]
        figures[f"{name} cpu_seconds"] = [run.measured.cpu_seconds for run in done]
        for peak in PEAKS:
            if amounts := [amount for run in done if (amount := getattr(run.measured, peak))]:
                figures[f"{name} {peak}"] = [max(amounts)]
        details = done[0].outcome.details
        for case, median in details.get("medians", {}).items():
            figures[f"{name}: {case}"] = details.get("seconds", {}).get(case, [])[1:] or [median]
    return figures


def compare_numbers(name: str, runs: Runs) -> dict[str, Any] | None:
    """Compare all numbers of all runs of a candidate with those of the job, or of the first candidate with numbers.

    None for a candidate without numbers.
    """
    if not runs[name][0].outcome.numbers:
        return None
    with_numbers = [other for other, done in runs.items() if done[0].outcome.numbers]
    reference = "job" if "job" in with_numbers else with_numbers[0]
    expected = {number.key: number for number in runs[reference][0].outcome.numbers}
    numbers = [number for run in runs[name] for number in run.outcome.numbers]
    pairs = [(number, expected[number.key]) for number in numbers]
    are_all = all(len(run.outcome.numbers) == len(expected) for run in runs[name])
    value = max(_difference(*pair) for pair in pairs) if are_all else math.inf
    variance = max(_variance_difference(*pair) for pair in pairs)
    return {
        "with": reference,
        "numbers": len(runs[name][0].outcome.numbers),
        "largest_difference": value,
        "largest_relative_difference_of_variances": variance,
        "agrees": value <= TOLERANCE and variance <= VARIANCE_TOLERANCE,
    }


def all_agree(summary: Mapping[str, Any]) -> bool:
    return all(entry["agreement"] is None or entry["agreement"]["agrees"] for entry in summary["candidates"].values())


def _difference(one: Number, two: Number) -> float:
    if one.value is None or two.value is None:
        return 0.0 if one.value is two.value else math.inf
    return abs(one.value - two.value)


def _variance_difference(one: Number, two: Number) -> float:
    """Return the difference relative to the second variance, 0 if a candidate has none."""
    if one.variance is None or two.variance is None or one.variance == two.variance:
        return 0.0
    return abs(one.variance / two.variance - 1) if two.variance else math.inf


def format_json(summary: Mapping[str, Any]) -> str:
    """Return a summary as JSON with a line for each entry and for each candidate."""

    def lines(part: Mapping[str, Any]) -> str:
        return ",\n ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in part.items())

    head = {key: value for key, value in summary.items() if key != "candidates"}
    return f'{{{lines(head)},\n "candidates": {{\n {lines(summary["candidates"])}\n}}}}\n'


def format_report(summary: Mapping[str, Any]) -> str:
    figures = summary["figures"]
    return "\n".join([*_format_candidates(summary), *_format_cases(figures), *_format_targets(summary["targets"])])


def _format_candidates(summary: Mapping[str, Any]) -> Iterator[str]:
    figures = summary["figures"]
    ratios = {name: figures.get(f"{name} seconds") for name in ("job", "floor", "pandas")}
    columns = ["seconds", "fastest", "slowest", "CPU s", *(f"x {name}" for name, base in ratios.items() if base)]
    yield _row("candidate", [*columns, "peak MB", "worker", "java", "heap", "differs by"])
    for name, entry in summary["candidates"].items():
        seconds, counted = figures[f"{name} seconds"], [run["counted"] for run in entry["runs"]]
        cells = [f"{value:.2f}" for value in (seconds, min(counted), max(counted))]
        cells.append(f"{figures[f'{name} cpu_seconds']:.1f}")
        cells += [f"{seconds / base:.2f}" for base in ratios.values() if base]
        cells += [f"{figures[f'{name} {peak}']:.0f}" if f"{name} {peak}" in figures else "-" for peak in PEAKS]
        agreement = entry["agreement"] or {"largest_difference": math.nan, "agrees": True}
        cells.append(f"{agreement['largest_difference']:.1e}".replace("nan", "-"))
        yield _row(name, cells) + ("" if agreement["agrees"] else "  MISMATCH")


def _format_cases(figures: Mapping[str, float]) -> Iterator[str]:
    cases = [name for name in figures if ": " in name]
    if cases:
        yield f"\n{'case (median of one session)':<40}{'seconds':>9}{'x first':>9}"
    for name in cases:
        first = next(case for case in cases if case.partition(": ")[0] == name.partition(": ")[0])
        yield f"{name:<40}{figures[name]:9.2f}{figures[name] / figures[first]:9.2f}"


def _format_targets(targets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if targets:
        yield f"\n{'target at this size':<46}{'value':>9}{'at most':>9}"
    for entry in targets:
        yield f"{entry['target']:<46}{entry['value']:9.3g}{entry['limit']:9.4g}  {'met' if entry['met'] else 'MISSED'}"


def _row(name: str, cells: Sequence[str]) -> str:
    return f"{name:<16}" + "".join(f"{cell:>11}" for cell in cells)


def _rounded(values: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if value is None else round(value, 3) for name, value in values.items()}
