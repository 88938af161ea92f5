"""Run the job for a month of dates, kill it at random moments, and compare what it published with an oracle.

    .venv/bin/python -m scripts.dev.soak_test [--dates N] [--rows N] [--seed S] [--out DIR]

Each date has its own corpus. The job runs through spark-submit, and sometimes its driver or one of its Python workers
is killed at a random moment; a job that died is started again. After every attempt the tables must show all earlier
dates unchanged, and this one whole or not at all. At the end numpy, SciPy and scikit-learn compute each date again
from the definitions: every row and number of `u_statistics`, `bias_metrics`, `model_summary`, `pinned_auc`,
`threshold_rates`, `threshold_summary`, `score_histograms` and `label_balance`, in every slice. The gate is not
checked. Takes about half a minute per date. Exit code 1 if anything is lost or wrong, or no run was killed.

Supports docs/faults.md: a month of runs with random kills agrees with the oracle.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from biasspark.synthetic.chunks import make_table
from biasspark.synthetic.civil import CivilRequest
from scripts.dev.proof import ProofError, prove

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "conf" / "demo.toml"
FIRST_DATE = date(2026, 1, 1)
MAX_KILLS = 3
PUBLISHED = (0, 5)
"""Exit codes: published, and published although the gate failed."""
SURVIVED = "not killed"
STAGE = re.compile(r"^\[ *[\d.]+ s\] (?:still )?(\w+)", re.MULTILINE)
COUNTS = (
    "SELECT run_date, run_id, count(*) AS n, sum(hash(t)) AS checksum FROM latest_{} AS t GROUP BY ALL ORDER BY ALL"
)

Snapshot = dict[str, list[tuple[object, ...]]]
"""For each table the published dates: date, run, number of rows, checksum."""


@dataclass
class SoakTest:
    """The state of the test: its folder, and how often a run met each fate."""

    folder: Path
    random: random.Random
    fates: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    """Seconds that a run takes; 0 before the first run, which is not killed."""

    @property
    def warehouse(self) -> Path:
        """The folder of the tables."""
        return self.folder / "warehouse"

    def corpus(self, run_date: date) -> Path:
        """Return the file of the comments of a date."""
        return self.folder / "corpus" / f"{run_date}.parquet"

    def run(self, run_dates: Sequence[date], rows: int) -> None:
        """Run the dates in order, each until it is published."""
        for number, run_date in enumerate(run_dates):
            write_corpus(self.corpus(run_date), rows, seed=number)
            before = read_snapshot(self.warehouse)
            for kills_left in reversed(range(MAX_KILLS + 1)):
                code, fate = self.attempt(run_date, may_kill=kills_left > 0)
                published = check_snapshots(before, read_snapshot(self.warehouse), run_date)
                print(f"{run_date}: {fate}, exit code {code}, {'' if published else 'not '}published", flush=True)
                if published:
                    break
                if code in PUBLISHED or kills_left == 0:
                    sys.exit(f"{run_date}: the job ended with {code} and published nothing.")

    def attempt(self, run_date: date, *, may_kill: bool) -> tuple[int, str]:
        """Run the job once, and kill its driver, a worker or nothing; return its exit code and what was killed."""
        log = self.folder / "job.log"
        settings = {"corpus.path": self.corpus(run_date), "output.path": self.warehouse}
        overrides = [word for key, path in settings.items() for word in ("--set", f"{key}={json.dumps(str(path))}")]
        command = [f"{ROOT}/scripts/submit", "--master", "local[2,4]", f"{ROOT}/jobs/bias_metrics.py"]
        command += ["--config", str(CONFIG), "--run-date", str(run_date), *overrides]
        victim = self.random.choice(["nobody", "driver", "driver", "worker"]) if may_kill and self.seconds else "nobody"
        started, moment, fate = time.monotonic(), self.random.uniform(1, max(self.seconds, 2)), SURVIVED
        with log.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                process.wait(None if victim == "nobody" else moment)
            except subprocess.TimeoutExpired:
                stages = STAGE.findall(log.read_text("utf-8", errors="replace"))
                fate = f"{self.kill(process.pid, victim)} killed while {stages[-1] if stages else 'starting'}"
            code = process.wait()
        self.fates[fate] += 1
        if fate == SURVIVED and code in PUBLISHED:
            self.seconds = time.monotonic() - started
        return code, fate

    def kill(self, leader: int, victim: str) -> str:
        """Kill a Python worker of a session, or all of its processes; return which."""
        find_workers = ["pgrep", "--session", str(leader), "--full", "pyspark.daemon"]  # and the one that forks them
        workers = subprocess.run(find_workers, capture_output=True, text=True, check=False).stdout.split()
        if victim == "worker" and workers:
            os.kill(int(self.random.choice(workers)), signal.SIGKILL)
            return victim
        os.killpg(leader, signal.SIGKILL)
        return "driver"


def write_corpus(path: Path, rows: int, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(make_table(CivilRequest(rows, seed)), path)


def read_snapshot(warehouse: Path) -> Snapshot:
    """Return what readers of the tables see."""
    views = warehouse / "views.duckdb.sql"
    if not views.exists():
        return {}
    with duckdb.connect() as connection:
        connection.execute(views.read_text("utf-8"))
        names = connection.execute("SELECT view_name FROM duckdb_views() WHERE view_name LIKE 'latest_%'").fetchall()
        latest = (name.removeprefix("latest_") for (name,) in names)
        tables = sorted(name for name in latest if not name.startswith("accepted_"))
        return {table: connection.execute(COUNTS.format(table)).fetchall() for table in tables}


def check_snapshots(before: Snapshot, after: Snapshot, run_date: date) -> bool:
    """Check that earlier dates are unchanged, and return whether this one is published, by one run in all tables."""
    runs = set()
    for table, rows in after.items():
        if [row for row in rows if row[0] != run_date] != before.get(table, []):
            sys.exit(f"{table}: an earlier date has changed.")
        runs |= {row[1] for row in rows if row[0] == run_date}
    if len(runs) > 1:
        sys.exit(f"{run_date}: the tables show rows of {len(runs)} runs.")
    return bool(runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dates", type=int, default=30, help="number of dates (30)")
    parser.add_argument("--rows", type=int, default=20_000, help="comments per date (20000)")
    parser.add_argument("--seed", type=int, default=1, help="of the kills (1)")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "soak_test", help="an empty folder")
    arguments = parser.parse_args()
    if arguments.out.exists() and any(arguments.out.iterdir()):
        parser.error(f"--out {arguments.out} is not empty. Remove it, or name another folder.")
    arguments.out.mkdir(parents=True, exist_ok=True)
    test = SoakTest(arguments.out.resolve(), random.Random(arguments.seed))
    run_dates = [FIRST_DATE + timedelta(days=number) for number in range(arguments.dates)]
    test.run(run_dates, arguments.rows)
    if set(test.fates) == {SURVIVED}:
        sys.exit("No run was killed, so nothing is shown. Ask for more dates.")
    try:
        proof = prove(test.warehouse, {run_date: test.corpus(run_date) for run_date in run_dates}, CONFIG)
    except ProofError as error:
        sys.exit(str(error))
    fates = (f"| {fate} | {times} |" for fate, times in sorted(test.fates.items()))
    print("\n| attempts | times |\n| --- | ---: |", *fates, sep="\n")
    counts = (f"| {table} | {n_numbers:,} |" for table, n_numbers in proof.numbers.items())
    print("\n| table | numbers proved |\n| --- | ---: |", *counts, sep="\n")
    digits = "0" if proof.worst == 0 else f"1e{math.ceil(math.log10(proof.worst))}"
    total = proof.numbers.total()
    print(f"\n{len(run_dates)} dates are published, each once. {total:,} numbers agree with the oracle to {digits}.")


if __name__ == "__main__":
    main()
