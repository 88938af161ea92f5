"""Benchmarks: exponents, times of tasks, the plan of a cluster, and the comparison of candidates."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from biasspark.synthetic import civil
from scripts.benchmarks.candidates import CANDIDATES, Run, Setting
from scripts.benchmarks.cases import exponents
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
    schedule,
)
from scripts.benchmarks.corpora import civil_corpus
from scripts.benchmarks.event_log import PLACING, READING, read_tasks
from scripts.benchmarks.measured_process import CandidateError, Measured
from scripts.benchmarks.report import all_agree, format_report, summarize
from scripts.benchmarks.runner import choose, parse_arguments
from scripts.benchmarks.task import IDENTITY_NAMES, MODELS, Number, Outcome

ROOT = Path(__file__).resolve().parents[2]

COSTS = Costs(
    reading_row=1e-6,
    reading_score=2e-6,
    placing_score=5e-7,
    file_bytes=128e6 / 1e5,
    shuffled_bytes=10,
    fixed=30,
    worker_mb=400,
)


def test_exponents_are_slopes_of_logarithms() -> None:
    found = exponents({"rows: 10": 3.0, "rows: 100": 30.0, "rows: 1000": 300.0, "models: 1": 5.0, "models: 4": 10.0})
    assert found == pytest.approx({"rows": 1, "models": 0.5})


def test_tasks_start_as_slots_become_free() -> None:
    assert schedule([3, 1, 1, 1, 2], 2) == 5  # 3 and 2; 1, 1 and 1
    assert schedule([3, 1], 10) == 3
    assert schedule([2.0] * 9, 4) == 6


def test_a_run_on_a_cluster() -> None:
    plan = plan_run(COSTS, Cluster(executors=10, cores=4, network=100), rows=40_000_000, models=2)
    assert (plan.reading_tasks, plan.ranges, plan.placing_tasks) == (400, 160, 27)
    assert plan.reading == pytest.approx(10 * 100_000 * 5e-6)  # ten waves of 100,000 rows
    assert plan.shuffled_gb == pytest.approx(0.8)
    assert plan.network == pytest.approx(0.8e9 * 0.9 / 10 / 100e6)
    assert plan.range_mb == pytest.approx(5)
    assert plan.worker_mb == pytest.approx(400)
    even = 160 / 27 * 500_000 * 5e-7
    assert even < plan.placing < 4 * even  # a hash deals ranges unevenly


def test_a_task_spills_what_its_share_of_the_heap_does_not_hold() -> None:
    # One range and one task after the shuffle: it sorts all of it, 4 MB, and a task that reads keeps 1 MB.
    plan = plan_run(COSTS, Cluster(executors=2, cores=3, network=100), rows=400_000, models=1)
    assert plan.heap_mb == pytest.approx(315 + 3 * 4 / 0.6)
    # Four tasks read as much of eight models, and there are two tasks after the shuffle.
    plan = plan_run(COSTS, Cluster(executors=2, cores=1, network=100), rows=400_000, models=8)
    assert 315 + 16 / 0.6 <= plan.heap_mb <= 315 + 32 / 0.6


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
    assert [own["spilled_mb"] for own in found["tasks"]["rows: 100000000"].values()] == [0, 0]


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


def test_tasks_are_added_up_by_case_and_kind(tmp_path: Path) -> None:
    def stage(number: int, tags: str) -> dict[str, Any]:
        properties = {"spark.job.tags": tags}
        return {"Event": "SparkListenerStageSubmitted", "Stage Info": {"Stage ID": number}, "Properties": properties}

    def task(number: int, run: int, written: int, fetched: int) -> dict[str, Any]:
        metrics = {
            "Executor Run Time": run,
            "Shuffle Write Metrics": {"Shuffle Bytes Written": written},
            "Shuffle Read Metrics": {"Local Blocks Fetched": fetched, "Remote Blocks Fetched": 0},
            "Disk Bytes Spilled": 500_000,
        }
        return {"Event": "SparkListenerTaskEnd", "Stage ID": number, "Task Metrics": metrics}

    own = "broadcast exchange (runId 3),spark-session-1-execution-root-id-2,rows: 10,spark-session-1"
    events = [
        stage(0, "spark-session-1"),
        task(0, 9_999, 0, 0),
        stage(1, own),
        task(1, 1_500, 2_000_000, 0),
        task(1, 500, 1_000_000, 0),
        stage(2, own),
        task(2, 250, 0, 4),
        {"Event": "SparkListenerApplicationEnd"},
    ]
    (tmp_path / "app").write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    assert read_tasks(tmp_path) == {
        "rows: 10": {
            READING: {"tasks": 2, "task_seconds": 2, "shuffled_mb": 3, "spilled_mb": 1},
            PLACING: {"tasks": 1, "task_seconds": 0.25, "shuffled_mb": 0, "spilled_mb": 0.5},
        }
    }


# ---- candidates


def test_the_task_adds_no_numpy_to_the_time_of_a_candidate_without_it() -> None:
    program = "import sys, scripts.benchmarks.task; assert not {'numpy', 'pyarrow'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
    assert (IDENTITY_NAMES, MODELS) == (civil.IDENTITY_NAMES, civil.MODELS)


def test_a_job_without_tables_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.benchmarks.candidates.BUILD", tmp_path)
    nothing = replace(CANDIDATES["job"], start=lambda *_: ["true"])
    with pytest.raises(CandidateError, match="no tables"):
        nothing.run(Setting({"": tmp_path}, 1, "1g"), 0)


def test_a_corpus_replaces_that_of_older_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.benchmarks.corpora.BUILD", tmp_path)
    monkeypatch.setattr("scripts.benchmarks.corpora.subprocess.run", lambda command, **_: command[-1].mkdir())
    monkeypatch.setattr("scripts.benchmarks.corpora.ROOT", tmp_path)
    (tmp_path / "jobs").mkdir()
    for name in ("civil-10-0-abc", "civil-100-0-abc", "civil-10-0.75-abc"):
        (tmp_path / name).mkdir()
    for code in ("a", "b"):
        (tmp_path / "jobs" / "make_corpus.py").write_text(code)
        made = civil_corpus(10, 0.0)
    kept = {made.name, "civil-100-0-abc", "civil-10-0.75-abc", "jobs"}
    assert {path.name for path in tmp_path.iterdir()} == kept


def test_a_corpus_is_named_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "civil").mkdir()
    (tmp_path / "civil" / "part-0.parquet").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["bench", "--corpus", "civil"])
    assert parse_arguments().corpus == tmp_path / "civil"
    monkeypatch.setattr("sys.argv", ["bench", "--unannotated-corpus", "civil", "--only", "job"])
    with pytest.raises(SystemExit):
        parse_arguments()


def run_of(name: str, seconds: float, /, *values: float, **details: Any) -> Run:
    numbers = [Number("m", str(number), "bpsn_auc", value) for number, value in enumerate(values)]
    return measured_run(name, seconds, numbers, **details)


def measured_run(name: str, seconds: float, /, numbers: list[Number], **details: Any) -> Run:
    measured = Measured(seconds, 2 * seconds, 500.0, 100.0, 300.0, 50)
    return Run(CANDIDATES[name], measured, Outcome(numbers, details=details))


def test_portable_candidates_run_at_another_checkout_in_turn(tmp_path: Path) -> None:
    chosen = choose(["job", "floor", "pandas"], tmp_path / "before")
    assert [one.name for one in chosen] == ["job", "job@before", "floor", "floor@before", "pandas"]
    assert chosen[1].root == tmp_path / "before"


def test_the_package_of_another_checkout_is_measured_there(tmp_path: Path) -> None:
    """Also where the benchmark is started in this one, whose package lies in the current folder."""
    (tmp_path / "biasspark").mkdir()
    (tmp_path / "biasspark" / "__init__.py").touch()
    (tmp_path / "biasspark" / "__main__.py").write_text("print('the other one')", encoding="utf-8")
    candidate = CANDIDATES["embedded"].at(tmp_path)
    command = candidate.start(candidate, Setting({"": tmp_path}, 1, "1g"), tmp_path)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        list(map(str, command)), env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "the other one\n"


def test_the_job_of_another_checkout_runs_with_the_packages_of_this_one(tmp_path: Path) -> None:
    candidate = CANDIDATES["job"].at(tmp_path)
    submit, *options = candidate.start(candidate, Setting({"": tmp_path}, 1, "1g"), tmp_path)
    assert submit == ROOT / "scripts" / "submit"
    assert tmp_path / "jobs" / "bias_metrics.py" in options


def test_a_folder_whose_name_has_a_blank_is_one_option_of_java(tmp_path: Path) -> None:
    candidate, folder = CANDIDATES["job"], tmp_path / "my work"
    command = map(str, candidate.start(candidate, Setting({"": tmp_path}, 1, "1g"), folder))
    (options,) = (part.partition("=")[2] for part in command if part.startswith("spark.driver.extraJavaOptions="))
    assert shlex.split(options) == [f"-Xlog:gc:file={folder}/gc.log"]


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
