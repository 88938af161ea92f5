"""A month of nights with random kills, after which what was published is proved against an oracle.

Each night has a corpus of its own. The job is started, and with luck it is left alone; else, at some instant, the whole
driver or one of its Python workers is killed, and a driver that died is started anew. After every attempt the tables
must show all earlier nights as they were, and this night whole or not at all. At the end numpy, SciPy and scikit-learn
compute it once more from the definitions: for every model, slice and identity each row and number of the tables of
the suite (drill_proof.py says what is not proved: the gate).
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

from biasspark.synthetic.blocks import make_table
from biasspark.synthetic.civil_rows import CivilShape
from scripts.drill_proof import ProofError, prove

ROOT = Path(__file__).resolve().parents[1]
FIRST_NIGHT = date(2026, 1, 1)
MOST_KILLS = 3
LEFT_ALONE = "left alone"
STAGE = re.compile(r"^\[ *[\d.]+ s\] (\w+)", re.MULTILINE)
COUNTED = (
    "SELECT run_date, run_id, count(*) AS n, sum(hash(t)) AS checksum FROM latest_{} AS t GROUP BY ALL ORDER BY ALL"
)
CONFIG = ROOT / "conf" / "demo.toml"

Seen = dict[str, list[tuple[object, ...]]]


@dataclass
class Drill:
    """What happened so far."""

    folder: Path
    chance: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    usual: float = 0.0
    """Seconds that a night takes; the first, which tells, is left alone."""

    @property
    def warehouse(self) -> Path:
        """Where the tables are."""
        return self.folder / "warehouse"

    def corpus(self, night: date) -> Path:
        """Where the comments of a night are."""
        return self.folder / "corpus" / f"{night}.parquet"


def run_drill(drill: Drill, nights: Sequence[date], rows: int) -> None:
    """Run the nights in order, each until it is published."""
    for number, night in enumerate(nights):
        write_corpus(drill.corpus(night), rows, seed=number)
        before = read_warehouse(drill.warehouse)
        for left in reversed(range(MOST_KILLS + 1)):
            code, fate = run_attempt(drill, night, may_be_killed=left > 0)
            after = read_warehouse(drill.warehouse)
            whole = check_tables(before, after, night)
            print(f"{night}: {fate}, exit code {code}, {'published' if whole else 'nothing of it is seen'}", flush=True)
            if whole:
                break
            if code == 0 or left == 0:
                sys.exit(f"{night}: the job ended with {code} and published nothing.")


def write_corpus(path: Path, rows: int, seed: int) -> None:
    """Write the comments of a night."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(make_table(CivilShape(rows, seed)), path)


def run_attempt(drill: Drill, night: date, *, may_be_killed: bool) -> tuple[int, str]:
    """Run the job once, and kill something of it or not; give its exit code and what was done to it."""
    drill.attempts += 1
    log = drill.folder / "job.log"
    settings = {"corpus.path": drill.corpus(night), "output.path": drill.warehouse}
    overrides = [word for key, path in settings.items() for word in ("--set", f"{key}={json.dumps(str(path))}")]
    command = [f"{ROOT}/scripts/submit", "--master", "local[2,4]", f"{ROOT}/jobs/bias_metrics.py"]
    command += ["--config", str(CONFIG), "--run-date", str(night), *overrides]
    victim = (
        drill.chance.choice(["nobody", "driver", "driver", "worker"]) if may_be_killed and drill.usual else "nobody"
    )
    begun, instant, fate = time.monotonic(), drill.chance.uniform(1, max(drill.usual, 2)), LEFT_ALONE
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            process.wait(None if victim == "nobody" else instant)
        except subprocess.TimeoutExpired:
            stage = find_stage(log)
            fate = f"{kill(process.pid, victim, drill.chance)} killed while {stage}"
        code = process.wait()
    if fate != LEFT_ALONE:
        drill.kills[fate] += 1
    elif code == 0:
        drill.usual = time.monotonic() - begun
    return code, fate


def find_stage(log: Path) -> str:
    """Read what the job said last that it was doing."""
    stages = STAGE.findall(log.read_text("utf-8", errors="replace"))
    return stages[-1] if stages else "starting"


def kill(leader: int, victim: str, chance: random.Random) -> str:
    """Kill a Python worker of a process group, or all of it; give who it was."""
    workers = [pid for pid in find_group(leader) if is_worker(pid)]
    if victim == "worker" and workers:
        os.kill(chance.choice(workers), signal.SIGKILL)
        return victim
    os.killpg(leader, signal.SIGKILL)
    return "driver"


def find_group(leader: int) -> list[int]:
    """List the processes whose session a process leads."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            session = int((entry / "stat").read_text().rpartition(")")[2].split()[3])
        except (OSError, IndexError):
            continue  # it has ended
        if session == leader:
            found.append(int(entry.name))
    return found


def is_worker(pid: int) -> bool:
    """Say whether a process is a Python worker of Spark, or the daemon that forks them."""
    try:
        return b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def read_warehouse(warehouse: Path) -> Seen:
    """Give for each table the nights that readers see: run, rows and a checksum of all that is in them."""
    views = warehouse / "views.duckdb.sql"
    if not views.exists():
        return {}
    with duckdb.connect() as connection:
        connection.execute(views.read_text("utf-8"))
        names = connection.execute("SELECT view_name FROM duckdb_views() WHERE view_name LIKE 'latest_%'").fetchall()
        latest = (name.removeprefix("latest_") for (name,) in names)
        tables = sorted(name for name in latest if not name.startswith("accepted_"))
        return {table: connection.execute(COUNTED.format(table)).fetchall() for table in tables}


def check_tables(before: Seen, after: Seen, night: date) -> bool:
    """Make sure that earlier nights are as they were, and say whether this night is there, of one run in all tables."""
    runs = set()
    for table, found in after.items():
        earlier = [row for row in found if row[0] != night]
        if earlier != before.get(table, []):
            sys.exit(f"{table}: an earlier night has changed.")
        runs |= {row[1] for row in found if row[0] == night}
    if len(runs) > 1:
        sys.exit(f"{night}: the tables show rows of {len(runs)} runs.")
    return bool(runs)


def main() -> None:
    """Run the drill and print what was survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nights", type=int, default=30, help="how many nights (30)")
    parser.add_argument("--rows", type=int, default=20_000, help="comments a night (20000)")
    parser.add_argument("--seed", type=int, default=1, help="of the kills (1)")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "drill", help="an empty folder (build/drill)")
    arguments = parser.parse_args()
    if arguments.out.exists() and any(arguments.out.iterdir()):
        parser.error(f"--out {arguments.out} is not empty. Remove it, or name another folder.")
    arguments.out.mkdir(parents=True, exist_ok=True)
    drill = Drill(arguments.out.resolve(), random.Random(arguments.seed))
    nights = [FIRST_NIGHT + timedelta(days=number) for number in range(arguments.nights)]
    run_drill(drill, nights, arguments.rows)
    try:
        proof = prove(drill.warehouse, {night: drill.corpus(night) for night in nights}, CONFIG)
    except ProofError as error:
        sys.exit(str(error))
    fates = {LEFT_ALONE: drill.attempts - drill.kills.total(), **dict(sorted(drill.kills.items()))}
    print("\n| what was done to the job | times |\n| --- | ---: |")
    for fate, times in fates.items():
        print(f"| {fate} | {times} |")
    print("\n| table | numbers proved |\n| --- | ---: |")
    for table, n_numbers in proof.numbers.items():
        print(f"| {table} | {n_numbers:,} |")
    digits = "0" if proof.worst == 0 else f"1e{math.ceil(math.log10(proof.worst))}"
    total = proof.numbers.total()
    print(f"\n{len(nights)} nights are published, each once. {total:,} numbers agree with the oracle to {digits}.")


if __name__ == "__main__":
    main()
