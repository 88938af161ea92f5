"""The console command ``biasspark COMMAND ...``. The files of ``jobs/`` run the same commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from biasspark.cli import Outcome, print_outcome, run_job, write_stderr
from biasspark.errors import GET_AN_ENGINE, INTERRUPTED
from biasspark.text import closest_match

WRONG_USAGE = 2
HELP = """\
usage: biasspark COMMAND [OPTION ...]

Exact unintended-bias metrics of binary classifiers. To begin with:

  biasspark demo
  biasspark measure --config biasspark-demo/demo.toml --run-date 2026-01-16
  biasspark report --config biasspark-demo/demo.toml --run-date 2026-01-16 --out report.html

The first makes an example corpus, measures it for one date and writes its report. The others do the same for another
date, and for your own corpus once the configuration names it. Without Java they run on the embedded engine; with
--master or --remote, or by spark-submit jobs/..., on Spark.

commands:
"""


class _Job(NamedTuple):
    """A command: its module in ``biasspark.workflows``, its line in the list of commands, and the job it publishes."""

    module: str
    text: str
    job: str = ""


JOBS = {
    "demo": _Job("demo", "make a corpus, measure it and write its report: the quickest look"),
    "measure": _Job("measure", "rank every score of a corpus, and publish bias metrics", "bias_metrics"),
    "report": _Job("write_report", "write the report of a published run"),
    "make-corpus": _Job("make_corpus", "write a synthetic corpus"),
    "compare": _Job("compare", "compare models with a baseline by every metric", "compare_models"),
    "attribute": _Job("attribute", "attribute the AUC of models to rows, segments, groups and pairs", "attribution"),
    "window": _Job("window", "measure a window of published runs, without the corpus", "window_metrics"),
    "side-by-side": _Job("print_side_by_side", "put two models of a published run side by side"),
    "export": _Job("export_table", "write a table of a published run as CSV"),
    "accept": _Job("accept_run", "accept a published run despite its gate"),
    "maintain": _Job("maintain", "remove superseded and failed runs, and compact files"),
    "pinned-skew": _Job("pinned_skew", "show that pinned AUC moves with the class balance", "pinned_skew"),
    "mitigation": _Job("mitigation_experiment", "train, mitigate and measure classifiers", "mitigation_experiment"),
}


def name_command(job: str) -> str:
    """Return what runs a job, in the form in which the user runs this one: a file for spark-submit, or a command."""
    if Path(sys.argv[0]).parent.name == "jobs":
        return f"jobs/{job}.py"
    return next(f"biasspark {name}" for name, command in JOBS.items() if command.job == job)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command named by the arguments, by default those of the process, and return its exit code."""
    _open_closed_streams()
    name, *flags = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in ("--help", "-h", "--version"):
        listed = "".join(f"  {job:<14}{job_command.text}\n" for job, job_command in JOBS.items())
        explained = f"{HELP}{listed}\nbiasspark COMMAND --help explains the options of one."
        version = f"biasspark {import_module('biasspark').__version__}"
        return print_outcome(Outcome(summary={}, text=version if name == "--version" else explained))
    if name not in JOBS:
        meant = closest_match(name, tuple(JOBS))
        fix = f" Did you mean {meant}?" if meant else ""
        write_stderr(f"biasspark: error: there is no command {name!r}. Commands: {', '.join(JOBS)}.{fix}\n")
        return WRONG_USAGE
    return run_command(name, flags, f"biasspark {name}")


def run_command(name: str, flags: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Run one of `JOBS` with its flags, by default those of the process, and return its exit code.

    `prog` is the name of the program in messages; without it, the program is a file for spark-submit.
    """
    _open_closed_streams()
    if find_spec("pyspark") is None:
        write_stderr(f"biasspark: error: no engine is installed. {GET_AN_ENGINE}.\n")
        return WRONG_USAGE
    try:
        command = import_module(f"biasspark.workflows.{JOBS[name].module}").COMMAND
    except KeyboardInterrupt:
        write_stderr(f"{prog or name}: error: interrupted\n")
        return INTERRUPTED
    parser = command.parser(prog)
    if prog is None:
        parser.epilog = parser.epilog.replace("%(prog)s", "spark-submit jobs/%(prog)s")
    return run_job(command.main, parser, flags)


def _open_closed_streams() -> None:
    """Discard what is written to a stream that was closed before the start, as by ``2>&-``."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - until the end
