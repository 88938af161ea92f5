"""The command line of jobs: flags, exit codes, progress, and printing of results and failures."""

from __future__ import annotations

import argparse
import datetime
import decimal
import json
import math
import numbers
import os
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, SupportsFloat, TextIO, TypeAlias

from biasspark.errors import INTERRUPTED, TERMINATED, BiasSparkError, find_error_condition
from biasspark.interrupts import Terminated, interrupted_by, repeating
from biasspark.replaced_files import is_replaced
from biasspark.session_request import ENGINES, SessionRequest, session_requested
from biasspark.text import (
    closest_match,
    cut_to_width,
    measure_width,
    narrow_widths,
    show_p_value,
    show_value,
    show_visibly,
)

EXIT_CODES = """\
exit codes of all commands:
  0    done
  1    unexpected failure
  2    wrong usage or configuration; every fault is listed
  3    the input breaks its contract: a column or path is missing, no usable row
  4    another run published the same date and corpus first
  5    done and published, but a gate failed
  130  interrupted (SIGINT)
  143  terminated (SIGTERM, SIGHUP)
"""
_CONFIGURATIONS = "biasspark demo writes demo.toml and attribution.toml to begin with; more are in conf/ of a clone."
WIDEST_CELL = 60
REMINDER = 3.0
"""Seconds after which the first reminder of a running stage is printed."""
PACKAGE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a job: text, a summary printed after it as JSON unless it is empty, and an exit code."""

    summary: Mapping[str, object]
    text: str = ""
    exit_code: int = 0


class _Parser(argparse.ArgumentParser):
    """Suggests a known flag or choice for an unknown one; a subcommand refuses unknown flags itself."""

    def parse_known_args(self, *arguments: Any, **keywords: Any) -> Any:
        parsed, unknown = super().parse_known_args(*arguments, **keywords)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        unknown = message.split() if message.startswith("unrecognized arguments") else []
        flags = [flag for action in self._actions for flag in action.option_strings]
        meant = [closest_match(word.partition("=")[0], flags) for word in unknown if word.startswith("--")]
        if choice := re.match(r"argument (.+): invalid choice: '(.*)' \(choose from (.*)\)", message, re.DOTALL):
            meant = [closest_match(choice[2], re.findall(r"[\w.-]+", choice[3]))]
        hint = f". Did you mean {' and '.join(filter(None, meant))}?" if any(meant) else ""
        super().error(message + hint)


Flag: TypeAlias = tuple[str, Mapping[str, Any]]
"""A flag of a command, with its arguments for `argparse`."""


def flag(name: str, **arguments: Any) -> Flag:
    """Declare a flag of a command."""
    return name, arguments


_SESSION = "An active Spark session is used if there is one; otherwise the first of these options that is given."


@dataclass(frozen=True)
class Command:
    """A command. ``main`` takes the parsed flags, and returns an `Outcome` to print."""

    description: str | None
    examples: str
    flags: Sequence[Flag]
    main: Callable[[argparse.Namespace], Outcome]

    def parser(self, prog: str | None = None) -> argparse.ArgumentParser:
        """Return the parser of its flags and those of the session. Its help ends with examples and exit codes."""
        advice = _CONFIGURATIONS * ("conf/" in self.examples)
        parser = _Parser(
            prog=prog,
            description=self.description,
            epilog="\n\n".join(filter(None, (self.examples.rstrip(), advice, EXIT_CODES))),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        add_flags(parser, self.flags)
        return parser


def add_flags(parser: argparse.ArgumentParser, flags: Iterable[Flag]) -> None:
    """Add `flags` and those of the session to a parser."""
    parser.add_argument("--debug", action="store_true", help="on failure, print the traceback, which may show data")
    session = parser.add_argument_group("session", _SESSION)
    session.add_argument("--remote", metavar="URL", help="a Spark Connect server, sc://host:port (SPARK_REMOTE)")
    session.add_argument("--master", metavar="URL", help="the master of a Spark session to start: local[4]")
    session.add_argument("--engine", choices=ENGINES, help="force one (embedded if it is installed, else local Spark)")
    for name, arguments in flags:
        parser.add_argument(name, **arguments)


def parse_date(text: str) -> datetime.date:
    """Parse a date as YYYY-MM-DD, the form of partitions; for argparse."""
    rule = "It must be a date as YYYY-MM-DD, from 1900 on."
    # Spark does not support dates of the first centuries.
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) and text >= "1900":
        with suppress(ValueError):
            return datetime.date.fromisoformat(text)
        rule = "There is no such day."
    fix = "Write, for example, 2026-03-31. Only biasspark measure takes a range, 2026-01-01..2026-03-31."
    raise argparse.ArgumentTypeError(f"{show_value(text)}. {rule} {fix}")


_OVERRIDE = "override a configuration value for this run, in TOML or as plain text; can be repeated"
CONFIGURED = (
    flag("--config", required=True, type=Path, metavar="FILE", help="the configuration, a TOML file"),
    flag("--set", dest="overrides", action="append", default=[], metavar="TABLE.KEY=VALUE", help=_OVERRIDE),
)
DRY_RUN = flag("--dry-run", action="store_true", help="check configuration and schema, print the plan, and stop")


def dated_examples(config: str) -> str:
    """Return the examples of a job on one run date, with a configuration in ``conf/``."""
    example = f"  %(prog)s --config conf/{config} --run-date 2026-03-31"
    return f"""\
examples:
{example}
{example} --dry-run
{example} \\
      --set label.threshold=0.8 --set 'slices."long ones"=comment_length > 500'
"""


def on_date(run_date: str) -> tuple[Flag, ...]:
    """Return the flags of a job on one run date: ``--config, --set, --run-date``, with the help of the date."""
    return *CONFIGURED, flag("--run-date", required=True, type=parse_date, metavar="YYYY-MM-DD", help=run_date)


def parse_count(text: str, least: int = 1) -> int:
    """Parse a whole number, `least` or more; for argparse."""
    if re.fullmatch(r"0*[0-9]{1,9}", text, re.ASCII) and int(text) >= least:
        return int(text)
    raise argparse.ArgumentTypeError(
        f"{show_value(text)}. It must be a whole number, {least} or more, in at most nine digits. Write, for example, "
        "20."
    )


def parse_out(text: str) -> Path:
    """Parse the path of a file to write, in an existing folder; for argparse. ``-`` is no file."""
    path = Path(text)
    problem = (
        "It must be a file path, new or existing, in an existing local folder. Create the folder, or name another file."
    )
    if text == "-":
        problem = "It is not a file. Write /dev/stdout."
    elif text and not os.path.isdir(path) and os.path.isdir(path.parent):
        with suppress(OSError):  # as for a name that is too long
            is_denied = path.exists() and not os.access(path, os.W_OK)
            is_denied |= is_replaced(path) and not os.access(path.parent, os.W_OK)
            if not is_denied:
                return path
            problem = "It may not be written: permission is denied. Name another file."
    raise argparse.ArgumentTypeError(f"{show_value(text)}. {problem}")


def run_job(
    main: Callable[[argparse.Namespace], Outcome],
    parser: argparse.ArgumentParser,
    argv: Sequence[str] | None = None,
) -> int:
    """Parse the command line, run the ``main`` of a `Command`, print its outcome, and return the exit code.

    `argv` is by default that of the process. Faults go to stderr, one per line. For an unexpected failure only its type
    and location are printed: its message may quote data. ``--debug`` also prints the traceback.
    """
    for stream in (sys.stdout, sys.stderr):  # a name outside of the encoding must not stop a job that has published
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    try:
        request = SessionRequest(arguments.engine, arguments.remote, arguments.master)
        with (
            interrupted_by(signal.SIGINT),
            interrupted_by(signal.SIGTERM, Terminated),
            interrupted_by(signal.SIGHUP, Terminated),
            session_requested(request),
        ):
            outcome = main(arguments)
        return print_outcome(outcome)
    except KeyboardInterrupt as stop:
        is_terminated = isinstance(stop, Terminated)
        write_stderr(f"{parser.prog}: error: {'terminated' if is_terminated else 'interrupted'}\n")
        return TERMINATED if is_terminated else INTERRUPTED
    except Exception as error:  # noqa: BLE001 - uncaught, its message could show data
        return print_failure(parser.prog, error, arguments.debug)


def print_failure(who: str, error: Exception, debug: bool) -> int:
    """Print the faults of an error on stderr, one per line, and return the exit code.

    With `debug` the traceback is printed first, which may show data.
    """
    if debug:
        write_stderr("".join(traceback.format_exception(error)))
    known = without_data(error)
    write_stderr("".join(f"{who}: error: {show_visibly(message)}\n" for message in known.messages))
    return known.exit_code


def without_data(error: Exception) -> BiasSparkError:
    """Return an error whose messages may be shown: an unexpected one is described without its message."""
    return error if isinstance(error, BiasSparkError) else BiasSparkError(describe_unexpected(error))


def describe_unexpected(error: BaseException) -> str:
    """Describe an error by its class, Spark condition and line in this package: its message may quote data."""
    condition = find_error_condition(error)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if PACKAGE in Path(frame.filename).parents]
    where = f" in {Path(frames[-1].filename).relative_to(PACKAGE.parent)}, line {frames[-1].lineno}" if frames else ""
    kind = f"{type(error).__name__}{f' {condition}' if condition else ''}"
    return f"unexpected {kind}{where}. Its message may quote data and is left out. Run again with --debug to see it."


class Progress:
    """Prints the stages of a job on stderr, with the time since the start."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._start = clock()
        # On a terminal Spark draws a progress bar, which a line erases.
        self._erase = "\r\x1b[K" if self._stream.isatty() and os.environ.get("TERM") != "dumb" else ""
        self._stage, self._stage_start, self._next_reminder = "", 0.0, REMINDER
        self._lock = threading.Lock()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._start

    def stage(self, text: str) -> None:
        """Print the start of a stage: ``[  3.2 s] ranking: 2 models, 24 identities``."""
        with self._lock:
            self._stage, self._stage_start, self._next_reminder = show_visibly(text), self.seconds, REMINDER
            self._print(self._stage_start, self._stage)

    def reminding(self) -> AbstractContextManager[None]:
        """Print reminders of a long stage: after 3 s, then each time its duration has doubled."""
        return repeating(self.remind)

    def remind(self) -> None:
        """Print that the stage is still running, if it is due."""
        with self._lock:
            seconds = self.seconds
            if seconds - self._stage_start >= self._next_reminder:
                self._next_reminder *= 2
                self._print(seconds, f"still {self._stage}")

    def _print(self, seconds: float, text: str) -> None:
        with suppress(OSError):  # a full disk below stderr, or a closed terminal, stops no job
            _write(self._stream, f"{self._erase}[{seconds:5.1f} s] {text}\n")

    def end(self, outcome: Outcome) -> Outcome:
        """Print that the job is done, and add its duration to the summary."""
        self.stage("done")
        return self.time(outcome)

    def time(self, outcome: Outcome, start: float = 0.0) -> Outcome:
        """Add the duration since `start` to the summary."""
        return replace(outcome, summary={**outcome.summary, "seconds": round(self.seconds - start, 1)})


def write_stderr(text: str) -> None:
    """Write to stderr and flush. A closed pipe, or a full disk, does not change the exit code."""
    with suppress(OSError):
        _write(sys.stderr, text)


def _write(stream: TextIO, text: str) -> None:
    """Write and flush. If that fails, discard what is written from then on, and raise `OSError`."""
    try:
        stream.write(text)
        stream.flush()
    except OSError:  # the rest of the buffer would fail again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise


def format_table(rows: Sequence[Mapping[str, object]], columns: Sequence[str], width: int | None = None) -> str:
    """Format dicts as a table with these keys as columns. Missing keys are NULL.

    Numbers are right-aligned, with four decimals, or like 3.1e-09 if these are all 0. Small p-values, in columns
    ``p_...``, are < 0.0001. NULL and NaN are ``-``. Control characters are escaped. Long text is cut; to fit into
    `width`, the longest strings are cut, but no numbers.
    """
    lines = [list(columns), *([_show_cell(row.get(column), column) for column in columns] for row in rows)]
    widths = [max(map(measure_width, cells)) for cells in zip(*lines, strict=True)]
    values = [[value for row in rows if (value := row.get(column)) is not None] for column in columns]
    numeric = [all(isinstance(v, numbers.Number) and not isinstance(v, bool) for v in column) for column in values]
    if width is not None:
        widths = narrow_widths(widths, [not right for right in numeric], width - 2 * (len(columns) - 1))
    return "\n".join("  ".join(map(_pad, line, widths, numeric)).rstrip() for line in lines)


def print_outcome(outcome: Outcome) -> int:
    """Print an outcome, and return its exit code. The summary is a line of ASCII JSON.

    If stdout cannot be written, stderr says so, and the exit code is not 0. A closed pipe, as by `head`, is no failure.
    """
    summary = json.dumps(outcome.summary, default=str, allow_nan=False) if outcome.summary else ""
    try:
        with suppress(BrokenPipeError):
            _write(sys.stdout, "".join(f"{part}\n" for part in (outcome.text, summary) if part))
    except OSError as error:
        what = f"stdout could not be written: {error.strerror or error}. The outcome is not printed."
        write_stderr(f"{what} If a run was published, the ledger has it.\n")
        return outcome.exit_code or 1
    return outcome.exit_code


def _show_cell(value: object, column: str) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        return cut_to_width(show_visibly(str(value)), WIDEST_CELL)
    if isinstance(value, decimal.Decimal) and value == value.to_integral_value():
        return f"{value:f}"
    if isinstance(value, numbers.Integral):
        return str(value)
    number = float(value)
    if column.startswith("p_"):
        return show_p_value(number)
    shown = f"{number:z.4f}"
    return f"{number:.1e}" if number and not float(shown) else shown


def _pad(cell: str, width: int, right: bool) -> str:
    cell = cut_to_width(cell, width)
    space = " " * (width - measure_width(cell))
    return space + cell if right else cell + space
