"""Run the main job for several dates in one Spark session, and time each: the first warms the session up.

Run by spark-submit, at any checkout of the project: the job is started as spark-submit starts it, with conf/demo.toml.
"""

from __future__ import annotations

import argparse
import json
import runpy
import statistics
import sys
import time
from datetime import date, timedelta
from pathlib import Path

from biasspark.session import build_session

FIRST_DATE = date(2026, 1, 1)
PUBLISHED = (0, 5)
"""Exit codes: published, and published although the gate failed."""


def time_run(root: Path, corpus: str, warehouse: Path, run_date: date) -> float:
    job = str(root / "jobs" / "bias_metrics.py")
    paths = ("--set", f"corpus.path='{corpus}'", "--set", f"output.path='{warehouse}'")
    sys.argv = [job, "--config", str(root / "conf" / "demo.toml"), "--run-date", str(run_date), *paths]
    started = time.perf_counter()
    try:
        runpy.run_path(job, run_name="__main__")
    except SystemExit as end:
        if end.code not in PUBLISHED:
            raise
    return time.perf_counter() - started


def main() -> None:
    """Run the dates, and write how long they took; their metrics are not compared."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", required=True, type=Path, help="the checkout of the project")
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--repeat", required=True, type=int)
    parser.add_argument("--outcome", required=True, type=Path)
    arguments = parser.parse_args()
    spark = build_session("biasspark benchmark: runs")
    run_dates = [FIRST_DATE + timedelta(days=number) for number in range(arguments.repeat + 1)]
    warehouse = arguments.outcome.resolve().with_name("warehouse")
    try:
        first, *following = (time_run(arguments.root, arguments.corpus, warehouse, run_date) for run_date in run_dates)
    finally:
        spark.stop()
    medians = {"first run": first, "another run": statistics.median(following)}
    details = {"seconds": {"another run": [first, *following]}, "medians": medians}
    outcome = {"numbers": [], "seconds": medians["another run"], "details": details}
    arguments.outcome.write_text(json.dumps(outcome), "utf-8")


if __name__ == "__main__":
    main()
