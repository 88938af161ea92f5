"""What the runs of a benchmark come to: medians, agreement, ratios, and whether the targets are met."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scripts.benchmarks.candidates import CANDIDATES, Run
from scripts.benchmarks.task import Number

VARIANCE_TOLERANCE = 1e-9
"""Relative: variances are differences of nearly equal numbers."""

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Target:
    """A ratio of two figures, or one figure, that must not pass a limit at so many rows."""

    text: str
    figure: str
    per: str | None
    limit: float
    rows: int

    def value(self, figures: Figures) -> float | None:
        """Return the ratio, None if something was not measured."""
        if self.figure not in figures or (self.per and self.per not in figures):
            return None
        return figures[self.figure] / (figures[self.per] if self.per else 1)


TARGETS = (
    Target("job / pandas, seconds", "job seconds", "pandas seconds", 0.25, 1_800_000),
    Target("job / duckdb, seconds", "job seconds", "duckdb seconds", 1, 18_000_000),
    Target("job / duckdb, peak memory", "job peak_mb", "duckdb peak_mb", 1, 18_000_000),
    Target("job with further tables / job, seconds", "further seconds", "job seconds", 1.25, 18_000_000),
    Target("suite / sort", "session: suite", "session: sort", 0.5, 18_000_000),
    Target("suite / scan", "session: suite", "session: scan", 5, 18_000_000),
    Target(
        "every row's attribution / sort", "attribution: attribution of every row", "attribution: sort", 0.8, 18_000_000
    ),
    Target("crosses of 50 groups / suite", "attribution: crosses of 50 groups", "attribution: suite", 2, 18_000_000),
    Target("window / rescan", "window: window of 7 nights", "window: rescan", 0.6, 1_800_000),
    Target("largest Python worker in the session, MB", "session worker_mb", None, 1024, 18_000_000),
    Target("largest Python worker of the job, MB", "job worker_mb", None, 1024, 18_000_000),
    Target("Java heap of the job after collection, MB", "job heap_mb", None, 1024, 18_000_000),
    Target("240 / 24 identities in an array", "array: 240 identities", "array: 24 identities", 1.3, 18_000_000),
    Target("240 / 24 columns", "columns: 240 identities", "columns: 24 identities", 1.3, 18_000_000),
    Target("75 % unannotated / all annotated", "unannotated: 75 % not", "unannotated: all annotated", 1, 18_000_000),
)


def sum_up(runs: Mapping[str, Sequence[Run]], rows: int) -> dict[str, Any]:
    """Return what is kept of a benchmark as JSON."""
    figures = find_figures(runs)
    return {
        "candidates": {
            name: {
                "what": CANDIDATES[name].text,
                "runs": [_rounded(asdict(run.measured)) | {"counted": round(run.seconds, 3)} for run in done],
                "agreement": compare_numbers(name, runs),
                "details": done[0].outcome.details,
            }
            for name, done in runs.items()
        },
        "figures": _rounded(figures),
        "targets": [
            {"target": target.text, "value": round(value, 3), "limit": target.limit, "met": value <= target.limit}
            for target in TARGETS
            if rows >= target.rows and (value := target.value(figures)) is not None
        ],
    }


def find_figures(runs: Mapping[str, Sequence[Run]]) -> dict[str, float]:
    """Return medians of times and maxima of memory by name."""
    figures = {}
    for name, done in runs.items():
        figures[f"{name} seconds"] = statistics.median(run.seconds for run in done)
        figures[f"{name} cpu_seconds"] = statistics.median(run.measured.cpu_seconds for run in done)
        for peak in ("peak_mb", "worker_mb", "java_mb", "heap_mb"):
            if found := [value for run in done if (value := getattr(run.measured, peak))]:
                figures[f"{name} {peak}"] = max(found)
        for case, median in done[0].outcome.details.get("medians", {}).items():
            figures[f"{name}: {case}"] = median
    return figures


def compare_numbers(name: str, runs: Mapping[str, Sequence[Run]]) -> dict[str, Any]:
    """Compare all numbers of all runs of a candidate with those of the job, or else of the first that was run."""
    reference = "job" if "job" in runs else next(iter(runs))
    expected = {number.key: number for number in runs[reference][0].outcome.numbers}
    value = variance = 0.0
    for run in runs[name]:
        found = run.outcome.numbers
        if len(found) != len(expected) and not run.outcome.details.get("extrapolated"):
            value = math.inf
        value = max(value, *(_difference(number, expected[number.key]) for number in found))
        variance = max(variance, *(_variance_difference(number, expected[number.key]) for number in found))
    return {
        "with": reference,
        "numbers": len(runs[name][0].outcome.numbers),
        "largest_difference": value,
        "largest_relative_difference_of_variances": variance,
        "agrees": value <= CANDIDATES[name].tolerance and variance <= VARIANCE_TOLERANCE,
    }


def _difference(one: Number, other: Number) -> float:
    if one.value is None or other.value is None:
        return 0.0 if one.value is other.value else math.inf
    return abs(one.value - other.value)


def _variance_difference(one: Number, other: Number) -> float:
    """Compare variances, relatively; a candidate without any agrees."""
    if not one.variance or not other.variance:
        return 0.0
    return abs(one.variance / other.variance - 1)


def format_report(summary: Mapping[str, Any]) -> str:
    """Return the tables that are printed: candidates, cases of sessions, targets."""
    figures = summary["figures"]
    return "\n".join([*_format_candidates(summary), *_format_cases(figures), *_format_targets(summary["targets"])])


def _format_candidates(summary: Mapping[str, Any]) -> Iterator[str]:
    figures, job = summary["figures"], summary["figures"].get("job seconds")
    columns = ("seconds", "fastest", "slowest", "x job", "CPU s", "peak MB", "worker", "java", "heap", "differs by")
    yield _row("candidate", columns)
    for name, found in summary["candidates"].items():
        seconds = figures[f"{name} seconds"]
        counted = [run["counted"] for run in found["runs"]]
        memory = [figures.get(f"{name} {peak}") for peak in ("peak_mb", "worker_mb", "java_mb", "heap_mb")]
        agreement = found["agreement"]
        cells = [f"{value:.2f}" for value in (seconds, min(counted), max(counted))]
        cells.append(f"{seconds / job:.2f}" if job else "-")
        cells.append(f"{figures[f'{name} cpu_seconds']:.1f}")
        cells += ["-" if value is None else f"{value:.0f}" for value in memory]
        cells.append(f"{agreement['largest_difference']:.1e}" + ("" if agreement["agrees"] else "  MISMATCH"))
        yield _row(name, cells) + ("  extrapolated" if found["details"].get("extrapolated") else "")


def _format_cases(figures: Figures) -> Iterator[str]:
    cases = [name for name in figures if ": " in name]
    if cases:
        yield f"\n{'case (median of one session)':<40}{'seconds':>9}{'x first':>9}"
    for name in cases:
        first = next(other for other in cases if other.partition(": ")[0] == name.partition(": ")[0])
        yield f"{name:<40}{figures[name]:9.2f}{figures[name] / figures[first]:9.2f}"


def _format_targets(targets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if targets:
        yield f"\n{'target at this size':<46}{'value':>9}{'at most':>9}"
    for found in targets:
        yield f"{found['target']:<46}{found['value']:9.3g}{found['limit']:9.4g}  {'met' if found['met'] else 'MISSED'}"


def _row(name: str, cells: Sequence[str]) -> str:
    return f"{name:<12}" + "".join(f"{cell:>11}" for cell in cells)


def _rounded(values: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if value is None else round(value, 3) for name, value in values.items()}
