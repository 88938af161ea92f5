"""Benchmarks: the plan of a cluster, and the comparison of candidates."""

from __future__ import annotations

import json
from typing import Any

import pytest

from biasspark.synthetic import civil
from scripts.benchmarks.candidates import CANDIDATES, Run
from scripts.benchmarks.cluster import (
    GROWTH,
    JOBS,
    RESULTS,
    Cluster,
    Costs,
    describe_plan,
    fit_costs,
    fit_jobs,
    plan_run,
    read_costs,
    read_jobs,
)
from scripts.benchmarks.measured_process import Measured
from scripts.benchmarks.report import all_agree, format_report, summarize
from scripts.benchmarks.task import IDENTITY_NAMES, MODELS, Number, Outcome
from tests.harness.submitting import ROOT, run_python

COSTS = Costs(
    reading_row=1e-6,
    reading_score=2e-6,
    placing_score=5e-7,
    file_bytes=128e6 / 1e5,
    shuffled_bytes=10,
    fixed=30,
    worker_mb=400,
)


def test_the_documents_have_the_plan_that_kept_benchmarks_give() -> None:
    plan = describe_plan(read_costs(), Cluster(executors=100, cores=4, network=500), rows=1_000_000_000, models=2)
    assert f"\n{plan}\n" in (ROOT / "docs/planning.md").read_text(encoding="utf-8")


def test_the_plan_of_the_machine_that_was_measured_is_what_jobs_took_there() -> None:
    growth = json.loads((RESULTS / GROWTH).read_text(encoding="utf-8"))
    costs, alone = read_costs(), Cluster(executors=1, cores=growth["machine"]["cores_used"], network=500)
    kept = read_jobs()
    assert sorted(kept) == [1_800_000, 18_000_000, 100_000_000]
    planned = {rows: costs.fixed + plan_run(costs, alone, rows, models=2).seconds for rows in kept}
    assert planned == pytest.approx(kept, rel=0.15)
    page = (ROOT / "docs/planning.md").read_text(encoding="utf-8")
    for rows, seconds in sorted(kept.items()):
        assert f"| {rows / 1e6:g} million | {seconds:.0f} | {planned[rows]:.0f} |" in page
    # Also where the largest job is not known.
    largest = max(kept)
    fewer = fit_jobs(costs, alone, {rows: seconds for rows, seconds in kept.items() if rows != largest})
    assert fewer.fixed + plan_run(fewer, alone, largest, models=2).seconds == pytest.approx(kept[largest], rel=0.15)


def test_the_benchmarks_that_the_plan_takes_together_are_of_one_commit() -> None:
    kept = [json.loads((RESULTS / name).read_text(encoding="utf-8"))["machine"] for name in (GROWTH, *JOBS)]
    assert len({(machine["commit"], machine["cpu"], machine["cores_used"]) for machine in kept}) == 1


def test_the_tasks_of_the_suite_are_planned_as_they_were_measured() -> None:
    growth = json.loads((RESULTS / GROWTH).read_text(encoding="utf-8"))
    corpus, worker_mb = growth["corpus"], growth["figures"]["growth worker_mb"]
    found = growth["candidates"]["growth"]["details"]
    suite = fit_costs(found, corpus["bytes"] / corpus["rows"], worker_mb)
    plan = plan_run(suite, Cluster(1, growth["machine"]["cores_used"], 500), corpus["rows"], models=2)
    assert plan.seconds == pytest.approx(found["medians"]["rows: 100000000"], rel=0.15)
    assert worker_mb <= plan.worker_mb
    assert plan.heap_mb < 1074  # of which both had 1 GiB
    assert [of_kind["spilled_mb"] for of_kind in found["tasks"]["rows: 100000000"].values()] == [0, 0]


def test_a_run_that_the_job_refuses_is_planned_with_the_ranges_to_set() -> None:
    cluster = Cluster(executors=10, cores=4, network=500)
    most = 1024 * 2**26
    assert plan_run(COSTS, cluster, most, models=2).ranges_to_set is None
    plan = plan_run(COSTS, cluster, most + 1, models=2)
    assert (plan.ranges_to_set, plan.ranges) == (4096, 8192)
    assert "[ranking] ranges = 4096" in describe_plan(COSTS, cluster, rows=most + 1, models=2)
    assert "[ranking]" not in describe_plan(COSTS, cluster, rows=most, models=2)
    with pytest.raises(ValueError, match=r"\[ranking\] ranges"):
        plan_run(COSTS, cluster, 4096 * 2**26 + 1, models=1)


# ---- candidates


def test_the_task_adds_no_numpy_to_the_time_of_a_candidate_without_it() -> None:
    program = "import sys, scripts.benchmarks.task; assert not {'numpy', 'pyarrow'} & sys.modules.keys()"
    assert run_python("-c", program).stderr == ""
    assert (IDENTITY_NAMES, MODELS) == (civil.IDENTITY_NAMES, civil.MODELS)


def run_of(name: str, seconds: float, /, *values: float, **details: Any) -> Run:
    numbers = [Number("m", str(number), "bpsn_auc", value) for number, value in enumerate(values)]
    return measured_run(name, seconds, numbers, **details)


def measured_run(name: str, seconds: float, /, numbers: list[Number], **details: Any) -> Run:
    measured = Measured(seconds, 2 * seconds, 500.0, 100.0, 300.0, 50)
    return Run(CANDIDATES[name], measured, Outcome(numbers, details=details))


def test_targets_are_medians_of_the_ratios_by_round() -> None:
    cases = {"window of 7 runs": [9.0, 10.0, 13.0, 11.0], "rescan": [9.0, 15.0, 21.0, 22.0]}
    medians = {"window of 7 runs": 11.0, "rescan": 21.0}
    runs = {
        "job": [run_of("job", seconds, 0.5) for seconds in (14.0, 13.0, 20.0)],
        "floor": [run_of("floor", seconds) for seconds in (10.0, 11.0, 9.0)],
        "pandas": [run_of("pandas", seconds, 0.5) for seconds in (56.0, 52.0, 60.0)],
        "warm": [run_of("warm", 30.0, medians={"another run": 6.0})],
        "window": [run_of("window", 11.0, 0.5, seconds=cases, medians=medians)],
    }
    summary = summarize(runs, 1_800_000)
    found = {target["target"]: (target["value"], target["met"]) for target in summary["targets"]}
    assert found == {
        "job / floor": (1.4, False),
        "job / pandas loop": (0.25, False),
        "another run in a warm session, seconds": (6, False),
        "window / rescan": (0.619, False),
    }
    assert summarize(runs, 1_000)["targets"] == []
    report = format_report(summary)
    assert "job / floor" in report
    assert "warm: another run" in report


def test_numbers_that_differ_are_a_mismatch() -> None:
    def agree(*values: float) -> bool:
        return all_agree(
            summarize({"job": [run_of("job", 1.0, 0.5, 0.75)], "numpy": [run_of("numpy", 1.0, *values)]}, 1)
        )

    def variances_agree(variance: float | None, of_the_job: float) -> bool:
        numbers = {"numpy": variance, "job": of_the_job}
        runs = {name: Number("m", "a", "bpsn_auc", 0.5, variance) for name, variance in numbers.items()}
        return all_agree(summarize({name: [measured_run(name, 1.0, [number])] for name, number in runs.items()}, 1))

    assert agree(0.5, 0.75 + 1e-13)
    assert not agree(0.5, 0.75 + 1e-11)
    assert not agree(0.5)
    assert not variances_agree(0.0, 1e-5)
    assert not variances_agree(1e-5, 0.0)
    assert variances_agree(0.0, 0.0)
    assert variances_agree(None, 1e-5)
    assert all_agree(summarize({"floor": [run_of("floor", 1.0)]}, 1))
