"""The time of a run on a cluster, from the cost of rows on one machine: a model, not a measurement.

A case of the saved benchmark read R rows and ranked P scores (rows times models). Its tasks that read took
``a + b R + c P`` seconds of a core, those after the shuffle ``d + e P``, and ``f P`` bytes were shuffled; least squares
give the costs. On a cluster tasks start in order, each as soon as a core is free (list scheduling). Ranges of scores
are distributed to tasks by a hash, so some tasks have more of them than others, which is simulated. Bytes from another
executor go through the network.

That benchmark is the suite alone, in a warm session. A job makes more tables, by Java code that is compiled less. So
its tasks are taken to be slower by one factor, which least squares give with the fixed cost, from whole jobs.

A task holds what it shuffles, and then what it sorts by range, in its share of the heap of the executor, of which Spark
reserves some megabytes and lends a fraction of the rest to its tasks: what does not fit is spilled. A Python worker
holds as much as the largest one of that benchmark, times the scores of a range relative to the scores there.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from biasspark.arrays import Floats
from biasspark.config.configuration import MAX_RANGES
from biasspark.corpus.survey import MAX_ROWS_A_RANGE, ROWS_A_RANGE, Survey
from biasspark.ranking.range_job import GROUPS_A_TASK
from biasspark.text import format_count
from scripts.benchmarks.event_log import PLACING, READING
from scripts.benchmarks.task import positive_int

RESULTS = Path(__file__).parent / "results"
GROWTH = "civil-100000000-growth.json"
JOBS = (
    "civil-1800000-job-pandas-numpy-duckdb.json",
    "civil-18000000-job-further-numpy-duckdb.json",
    "civil-100000000-job.json",
)
"""The kept benchmarks of growth and of whole jobs, made on one machine."""

SPLIT_MB = 128
"""The part of a file that Spark gives a task to read, by default."""

RESERVED_MB, LENT = 315, 0.6
"""What Spark reserves of a heap (300 MiB), and the part of the rest that it lends to tasks (spark.memory.fraction)."""

MEASURED = "24 identities, one slice, all rows annotated"
"""The benchmarks besides rows and models, and so the plan."""


@dataclass(frozen=True)
class Costs:
    """The cost of a row and of a score on one core of the measured machine."""

    reading_row: float
    reading_score: float
    placing_score: float
    """All three in seconds of a job: for a row and for a score while the corpus is read, twice, and for a score after
    the shuffle."""
    file_bytes: float
    """Of a row in the files of the corpus, which determine the number of tasks that read."""
    shuffled_bytes: float
    """Of a score with its memberships and counts, compressed."""
    fixed: float
    """Seconds of a job of any size: Java, Spark, cold code, tables written and checked."""
    worker_mb: float
    """Memory of the largest Python worker, with ranges of ``ROWS_A_RANGE`` scores."""


@dataclass(frozen=True)
class Cluster:
    """Executors, cores of each, and the network of each in MB per second."""

    executors: int
    cores: int
    network: int

    @property
    def slots(self) -> int:
        """Tasks that run at once."""
        return self.executors * self.cores


@dataclass(frozen=True)
class Plan:
    """The plan of a run."""

    reading_tasks: int
    ranges: int
    """The ranges of all models."""
    ranges_to_set: int | None
    """The ``[ranking] ranges`` without which the job would refuse so many rows; None if it chooses them itself."""
    reading: float
    network: float
    placing: float
    """All three in seconds."""
    shuffled_mb: float
    """Through the shuffle, in all."""
    range_mb: float
    """Scores of a range with their counts and memberships, as they arrive from the shuffle."""
    worker_mb: float
    """The largest memory of a Python worker."""
    heap_mb: float
    """The heap below which an executor spills."""

    @property
    def seconds(self) -> float:
        """The time without the fixed cost."""
        return self.reading + self.network + self.placing


def fit_costs(growth: Mapping[str, Any], file_bytes: float, worker_mb: float) -> Costs:
    """Return the costs of the suite in a warm session that fit the cases of rows and of models best."""
    cases, rows, scores = _sized_cases(growth)
    readers, placers = ([growth["tasks"][name][kind] for name in cases] for kind in (READING, PLACING))
    ones = np.ones(len(cases))
    reading = _solve([ones, rows, scores], [tasks["task_seconds"] for tasks in readers])
    placing = _solve([ones, scores], [tasks["task_seconds"] for tasks in placers])
    shuffled = _solve([ones, scores], [tasks["shuffled_mb"] * 1e6 for tasks in readers])
    return Costs(*map(float, (reading[1], reading[2], placing[1], file_bytes, shuffled[1], 0, worker_mb)))


def fit_jobs(suite: Costs, machine: Cluster, jobs: Mapping[int, float]) -> Costs:
    """Return the costs of a job: the fixed cost and the slowdown against the suite that fit whole jobs best.

    ``jobs`` are the seconds of jobs with two models, by their rows, on the measured machine.
    """
    planned = np.array([plan_run(suite, machine, rows, 2).seconds for rows in jobs])
    fixed, slower = map(float, _solve([np.ones(len(jobs)), planned], list(jobs.values())))
    slowed = {name: getattr(suite, name) * slower for name in ("reading_row", "reading_score", "placing_score")}
    return replace(suite, fixed=fixed, **slowed)


def plan_run(costs: Costs, cluster: Cluster, rows: int, models: int) -> Plan:
    """Plan a run on a cluster. Raises `ValueError` if the job would refuse so many rows, whatever ranges are set."""
    scores = rows * models
    reading_tasks = max(math.ceil(rows * costs.file_bytes / 1e6 / SPLIT_MB), 1)
    reading = (rows * costs.reading_row + scores * costs.reading_score) / reading_tasks
    ranges_to_set = _find_ranges_to_set(rows)
    ranges = (ranges_to_set or _choose_ranges(rows)) * models
    placing_tasks = math.ceil(ranges / GROUPS_A_TASK)
    ranges_of_tasks = np.bincount(np.random.default_rng(1).integers(0, placing_tasks, ranges), minlength=placing_tasks)
    a_range = scores / ranges
    shuffled = scores * costs.shuffled_bytes
    kept_by_a_task = max(shuffled / reading_tasks, float(ranges_of_tasks.max()) * a_range * costs.shuffled_bytes)
    elsewhere = shuffled * (1 - 1 / cluster.executors) / cluster.executors
    return Plan(
        reading_tasks=reading_tasks,
        ranges=ranges,
        ranges_to_set=ranges_to_set,
        reading=schedule([reading] * reading_tasks, cluster.slots),
        network=elsewhere / (cluster.network * 1e6),
        placing=schedule([count * a_range * costs.placing_score for count in ranges_of_tasks.tolist()], cluster.slots),
        shuffled_mb=shuffled / 1e6,
        range_mb=a_range * costs.shuffled_bytes / 1e6,
        worker_mb=costs.worker_mb * max(a_range / ROWS_A_RANGE, 1),
        heap_mb=RESERVED_MB + cluster.cores * kept_by_a_task / 1e6 / LENT,
    )


def schedule(tasks: Sequence[float], slots: int) -> float:
    """Return when the last task ends, if each starts as soon as a slot is free."""
    free = [0.0] * min(slots, len(tasks))
    for seconds in tasks:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def read_jobs() -> dict[int, float]:
    """Read the seconds of the kept benchmarks of the whole job, by its rows."""
    saved = [json.loads((RESULTS / name).read_text("utf-8")) for name in JOBS]
    return {result["corpus"]["rows"]: result["figures"]["job seconds"] for result in saved}


def read_costs() -> Costs:
    growth = json.loads((RESULTS / GROWTH).read_text("utf-8"))
    corpus, worker_mb = growth["corpus"], growth["figures"]["growth worker_mb"]
    suite = fit_costs(growth["candidates"]["growth"]["details"], corpus["bytes"] / corpus["rows"], worker_mb)
    machine = Cluster(executors=1, cores=growth["machine"]["cores_used"], network=1)
    return fit_jobs(suite, machine, read_jobs())


def describe_plan(costs: Costs, cluster: Cluster, rows: int, models: int) -> str:
    plan = plan_run(costs, cluster, rows, models)
    tasks = f"{format_count(plan.reading_tasks, 'task')} on {format_count(cluster.slots, 'core')}"
    ranges = f"{format_count(plan.ranges, 'range')} of {rows * models / plan.ranges:,.0f} scores"
    total, by_all = costs.fixed + plan.seconds, _show_mb(cluster.cores * plan.worker_mb)
    lines = [
        ("fixed, on the driver", f"{costs.fixed:.0f} s", ""),
        ("reading and sorting", f"{plan.reading:,.0f} s", tasks),
        ("through the network", f"{plan.network:,.1f} s", f"{_show_mb(plan.shuffled_mb)} shuffled"),
        ("placing", f"{plan.placing:,.0f} s", ranges),
        ("the run", f"{total:,.0f} s", f"{total / 60:,.0f} min" if total >= 90 else ""),
        ("shuffle files of an executor", _show_mb(plan.shuffled_mb / cluster.executors), "on its disk"),
        ("spilled", "nothing", f"with {plan.heap_mb / 1e3:,.1f} GB of heap or more in an executor"),
        ("a range as a worker receives it", _show_mb(plan.range_mb), ""),
        ("held by a worker", _show_mb(plan.worker_mb), f"at most; {by_all} by those of an executor"),
    ]
    table = [f"{what:<33}{amount:>10}   {detail}".rstrip() for what, amount, detail in lines]
    if plan.ranges_to_set:
        chosen, setting = _choose_ranges(rows), f"[ranking] ranges = {plan.ranges_to_set}"
        table += [
            f"refused unless you set {setting}, as planned here: the job chooses {chosen:,},",
            f"with {rows / chosen:,.0f} rows in a range, and a range may hold {MAX_ROWS_A_RANGE:,}",
        ]
    return "\n".join([*table, f"as measured: {MEASURED}"])


def _choose_ranges(rows: int) -> int:
    return Survey(rows, {}, ()).chosen_ranges


def _find_ranges_to_set(rows: int) -> int | None:
    """Return the number of ranges to set if the job refuses its own choice; None if it does not."""
    if rows <= _choose_ranges(rows) * MAX_ROWS_A_RANGE:
        return None
    if rows > MAX_RANGES * MAX_ROWS_A_RANGE:
        raise ValueError(
            f"{rows:,} rows. The job refuses more than {MAX_RANGES * MAX_ROWS_A_RANGE:,}: [ranking] ranges may be "
            f"{MAX_RANGES:,} at most, and a range may hold {MAX_ROWS_A_RANGE:,} rows. Plan several corpora."
        )
    return MAX_RANGES


def _show_mb(megabytes: float) -> str:
    return f"{megabytes:.0f} MB" if megabytes < 999.5 else f"{megabytes / 1e3:,.1f} GB"


def _sized_cases(growth: Mapping[str, Any]) -> tuple[list[str], Floats, Floats]:
    """Return the names of the cases of rows and of models, their rows, and their scores."""
    rows = {name: int(name.partition(": ")[2]) for name in growth["medians"] if name.startswith("rows: ")}
    fewest = min(rows.values())
    models = {name: int(name.partition(": ")[2]) for name in growth["medians"] if name.startswith("models: ")}
    sized = {name: (count, 2 * count) for name, count in rows.items()}
    sized |= {name: (fewest, fewest * count) for name, count in models.items()}
    sizes = np.array(list(sized.values()), float)
    return list(sized), sizes[:, 0], sizes[:, 1]


def _solve(columns: Sequence[Floats], values: Sequence[float]) -> Floats:
    """Least squares of relative errors, so that the largest case does not dominate."""
    weights = 1 / np.array(values)
    return np.asarray(
        np.linalg.lstsq(np.stack(columns, 1) * weights[:, None], np.ones(len(values)), rcond=None)[0], np.float64
    )


def main() -> None:
    """Print the plan; scripts/dev/plan describes the options."""
    parser = argparse.ArgumentParser(prog="scripts/dev/plan", add_help=False, allow_abbrev=False)
    parser.add_argument("--rows", type=positive_int, required=True)
    parser.add_argument("--models", type=positive_int, default=2)
    parser.add_argument("--executors", type=positive_int, required=True)
    parser.add_argument("--cores", type=positive_int, default=4)
    parser.add_argument("--network", type=positive_int, default=500)
    options = parser.parse_args()
    cluster = Cluster(options.executors, options.cores, options.network)
    try:
        print(describe_plan(read_costs(), cluster, options.rows, options.models))
    except ValueError as error:
        parser.error(f"--rows: {error}")


if __name__ == "__main__":
    main()
