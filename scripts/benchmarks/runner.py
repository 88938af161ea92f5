"""Run the candidates side by side, compare their numbers, and keep the times; started by scripts/bench."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.benchmarks.candidates import CANDIDATES, Candidate, Run, Setting
from scripts.benchmarks.corpora import BUILD, civil_corpus, describe_corpus, read_once, split_corpus
from scripts.benchmarks.machine import describe_machine
from scripts.benchmarks.measured_process import CandidateError
from scripts.benchmarks.report import format_report, sum_up
from scripts.benchmarks.task import whole

RESULTS = Path(__file__).parent / "results"
UNANNOTATED = 0.75
USUAL = [name for name in CANDIDATES if name != "evaluator"]


def parse_arguments() -> argparse.Namespace:
    """Read the command line; scripts/bench says what it means."""
    parser = argparse.ArgumentParser(prog="scripts/bench", add_help=False, allow_abbrev=False)
    parser.add_argument("--rows", type=whole)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--unannotated-corpus", type=Path)
    parser.add_argument("--only", type=_names, default=USUAL)
    parser.add_argument("--repeat", type=whole, default=3)
    parser.add_argument("--cores", type=whole, default=2)
    parser.add_argument("--driver-memory", default="1g")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.rows and arguments.corpus:
        parser.error("--rows and --corpus: one of them says what is measured. Leave one out.")
    for corpus in (arguments.corpus, arguments.unannotated_corpus):
        if corpus and not any(corpus.glob("*.parquet")):
            parser.error(f"{corpus} has no Parquet files. Name a folder that jobs/make_corpus.py wrote.")
    if arguments.cores > len(os.sched_getaffinity(0)):
        parser.error(f"--cores {arguments.cores}: there are {len(os.sched_getaffinity(0))}. Ask for fewer.")
    return arguments


def _names(text: str) -> list[str]:
    unknown = [name for name in text.split(",") if name not in CANDIDATES]
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)} is unknown. Known: {', '.join(CANDIDATES)}.")
    return [name for name in CANDIDATES if name in text.split(",")]


def prepare(arguments: argparse.Namespace) -> Setting:
    """Find or make the corpora, and read them once."""
    rows = arguments.rows or 1_800_000
    corpora = {"": arguments.corpus or civil_corpus(rows, 0.0)}
    if wanted := {"array", "columns"}.intersection(arguments.only):
        corpora |= dict.fromkeys(wanted, split_corpus(corpora[""]))
    if "unannotated" in arguments.only:
        rows = describe_corpus(corpora[""])["rows"]
        corpora["unannotated"] = arguments.unannotated_corpus or civil_corpus(rows, UNANNOTATED)
    for corpus in corpora.values():
        read_once(corpus)
    return Setting(
        {name: corpus.resolve() for name, corpus in corpora.items()}, arguments.repeat, arguments.driver_memory
    )


def run_in_turn(candidates: Sequence[Candidate], setting: Setting) -> dict[str, list[Run]]:
    """Run A B C, A B C, ..., so that whatever the machine does besides meets them alike."""
    runs: dict[str, list[Run]] = {candidate.name: [] for candidate in candidates}
    for number in range(setting.repeat):
        for candidate in candidates:
            if candidate.has_cases and number:
                continue
            run = candidate.run(setting, number)
            runs[candidate.name].append(run)
            print(f"{candidate.name}: {run.seconds:.2f} s, {run.measured.peak_mb:.0f} MB", file=sys.stderr, flush=True)
    return runs


def main() -> int:
    """Run the benchmark, print its tables, keep its JSON; 1 if any numbers differ or a candidate fails."""
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # as Ctrl-C does: what runs is ended, too
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.cores])
    machine = describe_machine()
    BUILD.mkdir(parents=True, exist_ok=True)
    try:
        setting = prepare(arguments)
        runs = run_in_turn([CANDIDATES[name] for name in arguments.only], setting)
    except (CandidateError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    corpus = describe_corpus(setting.corpora[""])
    rows = corpus["rows"]
    head = {"machine": machine, "corpus": corpus, "repeat": setting.repeat, "driver_memory": setting.driver_memory}
    summary: dict[str, Any] = head | sum_up(runs, rows)
    named = [] if arguments.only == USUAL else arguments.only
    out = arguments.out or RESULTS / f"{'-'.join(['civil', str(rows), *named])}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    print(f"{rows:,} rows, {machine['cores_used']} cores of {machine['cpu']}, {out}\n\n{format_report(summary)}")
    return 0 if all(found["agreement"]["agrees"] for found in summary["candidates"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
