"""What the command lines of all jobs share: flags, exit codes, progress, and how results and failures are printed."""

from __future__ import annotations

import argparse
import datetime
import decimal
import json
import math
import numbers
import os
import re
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, SupportsFloat, TextIO

from biasspark.errors import INTERRUPTED, TERMINATED, BiasSparkError, find_error_condition
from biasspark.interrupts import Terminated, interrupted_by
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
exit codes:
  0    done
  1    unexpected failure
  2    wrong usage or configuration; every fault is listed
  3    the input breaks its contract: a column or path is missing, no usable row
  4    another run published the same date and corpus first
  5    done and published, but a gate failed
  130  interrupted (SIGINT)
  143  terminated (SIGTERM)
"""
NIGHTLY_EXAMPLES = """\
examples:
  %(prog)s --config conf/demo.toml --run-date 2026-03-31
  %(prog)s --config conf/demo.toml --run-date 2026-03-31 --dry-run
  %(prog)s --config conf/demo.toml --run-date 2026-03-31 \\
      --set label.threshold=0.8 --set 'slices."long ones"=comment_length > 500'
"""
_CONFIGURATIONS = "biasspark demo writes demo.toml and attribution.toml to begin with; more are in conf/ of a clone."
ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
WIDEST_CELL = 60
BAR_WIDTH = 24
REMINDER = 3.0
"""Seconds of a stage after which it is first said that it still runs."""
ERASE_LINE = "\r\x1b[K"
PACKAGE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a job says at its end: one line for machines, a table for people before it, and an exit code."""

    summary: Mapping[str, object]
    table: str = ""
    exit_code: int = 0


class _Parser(argparse.ArgumentParser):
    """Suggests a flag in place of one that there is not."""

    def error(self, message: str) -> NoReturn:
        unknown = message.split() if message.startswith("unrecognized arguments") else []
        flags = [flag for action in self._actions for flag in action.option_strings]
        meant = [closest_match(word.partition("=")[0], flags) for word in unknown if word.startswith("--")]
        hint = f". Did you mean {' and '.join(filter(None, meant))}?" if any(meant) else ""
        super().error(message + hint)


class Flag(NamedTuple):
    """A flag of a command, with the arguments of `argparse`."""

    name: str
    arguments: Mapping[str, Any]


def flag(name: str, **arguments: Any) -> Flag:
    """Declare a flag of a command."""
    return Flag(name, arguments)


def make_parser(
    description: str | None, epilog: str = "", flags: Iterable[Flag] = (), prog: str | None = None
) -> argparse.ArgumentParser:
    """Make a parser with these flags, ``--debug`` and the session, its help ending with examples and the exit codes.

    The program is called `prog`, or like the file that runs.
    """
    parser = _Parser(
        prog=prog,
        description=description,
        epilog="\n\n".join(filter(None, (epilog.rstrip(), _CONFIGURATIONS * ("conf/" in epilog), EXIT_CODES))),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--debug", action="store_true", help="on failure, print the traceback, which may show data")
    session = parser.add_argument_group("session", "one that is there already is used; else the first of these")
    session.add_argument("--remote", metavar="URL", help="a Spark Connect server, sc://host:port (SPARK_REMOTE)")
    session.add_argument("--master", metavar="URL", help="the master of a Spark that is started: local[4]")
    session.add_argument("--engine", choices=ENGINES, help="force one (embedded if it is installed, else local Spark)")
    for name, arguments in flags:
        parser.add_argument(name, **arguments)
    return parser


def parse_date(text: str) -> datetime.date:
    """Read a date as YYYY-MM-DD, the form of the tables' partitions; for argparse."""
    try:
        if ISO_DATE.fullmatch(text) and text >= "1900":  # Spark takes no date of the first centuries
            return datetime.date.fromisoformat(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(
        f"{show_value(text)}. It must be a date as YYYY-MM-DD, from 1900 on. Write, for example, 2026-03-31."
    )


_OVERRIDE = "override a configuration value for this run; read as TOML, else as text; can be repeated"
CONFIGURED = (
    flag("--config", required=True, type=Path, metavar="FILE", help="the configuration, a TOML file"),
    flag("--set", dest="overrides", action="append", default=[], metavar="TABLE.KEY=VALUE", help=_OVERRIDE),
)
DRY_RUN = flag("--dry-run", action="store_true", help="check configuration and schema, print the plan, and stop")


def on_night(run_date: str) -> tuple[Flag, ...]:
    """Return the flags of a job on one night: ``--config, --set, --run-date``; given is what the date is to the job."""
    return *CONFIGURED, flag("--run-date", required=True, type=parse_date, metavar="YYYY-MM-DD", help=run_date)


class Command(NamedTuple):
    """A command: ``parser`` makes its parser, given what the program is called, or nothing for the file that runs.

    ``main`` gets the parsed flags, and gives an `Outcome`, which is printed, or an exit code.
    """

    parser: Callable[..., argparse.ArgumentParser]
    main: Callable[[argparse.Namespace], Outcome | int]


def parse_count(text: str, least: int = 1) -> int:
    """Read a whole number, ``least`` or more; for argparse."""
    if re.fullmatch(r"0*[0-9]{1,9}", text, re.ASCII) and int(text) >= least:
        return int(text)
    raise argparse.ArgumentTypeError(
        f"{show_value(text)}. It must be a whole number, {least} or more, in at most nine digits. Write, for example, "
        "20."
    )


def parse_out(text: str) -> Path:
    """Read the name of a file to be written, in a folder that is there; for argparse."""
    path = Path(text)
    if not text or path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(
            f"{show_value(text)}. It must be a file path, new or existing, in an existing local folder. Make the "
            "folder, or name another file."
        )
    return path


def run_job(
    main: Callable[[argparse.Namespace], Outcome | int],
    parser: argparse.ArgumentParser,
    argv: Sequence[str] | None = None,
) -> int:
    """Parse the command line, run the ``main`` of a `Command`, print what came of it, and give the exit code.

    The flags are those of the process if None. Faults go to stderr, one per line. Of an unexpected failure only its
    kind and place are said: its message may quote values of the data. ``--debug`` prints the traceback as well.
    """
    _print_whatever_the_encoding()
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    try:
        request = SessionRequest(arguments.engine, arguments.remote, arguments.master)
        with interrupted_by(signal.SIGINT), interrupted_by(signal.SIGTERM, Terminated), session_requested(request):
            outcome = main(arguments)
        return outcome if isinstance(outcome, int) else print_outcome(outcome)
    except Terminated:
        print(f"{parser.prog}: error: terminated", file=sys.stderr)
        return TERMINATED
    except KeyboardInterrupt:
        print(f"{parser.prog}: error: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - nothing above would keep its message, and data, from showing
        exit_code, _ = print_failure(parser.prog, error, arguments.debug)
        return exit_code


def print_failure(who: str, error: Exception, debug: bool) -> tuple[int, Sequence[str]]:
    """Print on stderr why something failed, and give the exit code and the faults.

    Each line is a fault and begins with what failed. To debug, the traceback comes first, which may show data.
    """
    if debug:
        traceback.print_exception(error)
    known = error if isinstance(error, BiasSparkError) else BiasSparkError(describe_unexpected(error))
    for message in known.messages:
        print(f"{who}: error: {show_visibly(message)}", file=sys.stderr)
    return known.exit_code, known.messages


def describe_unexpected(error: BaseException) -> str:
    """Say what kind of failure this is and where, but nothing of its message, which may quote values of the data.

    It is the exception's class, Spark's error condition if there is one, and the last line of this package on the way.
    """
    condition = find_error_condition(error)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if PACKAGE in Path(frame.filename).parents]
    where = f" in {Path(frames[-1].filename).relative_to(PACKAGE.parent)}, line {frames[-1].lineno}" if frames else ""
    kind = f"{type(error).__name__}{f' {condition}' if condition else ''}"
    return f"unexpected {kind}{where}. Its message may quote data and is left out. Run again with --debug to see it."


class Progress:
    """Says on stderr what a job is doing, one line per stage with the time since the start; on a terminal also a bar.

    Another stream may take the place of stderr, another function that of the clock, in seconds.
    """

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._start = clock()
        self._redraws = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._stage, self._stage_start, self._next_reminder = "", 0.0, REMINDER
        self._lock = threading.Lock()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._start

    def stage(self, text: str) -> None:
        """Say that a stage begins: ``[  3.2 s] ranking: 2 models, 24 identities``."""
        with self._lock:
            self._stage, self._stage_start, self._next_reminder = show_visibly(text), self.seconds, REMINDER
            self._stream.write(f"{ERASE_LINE if self._redraws else ''}{_stamp(self._stage_start)} {self._stage}\n")
            self._stream.flush()

    @contextmanager
    def reminding(self, every: float = 0.5) -> Iterator[None]:
        """Say for a block that a long stage still runs: after 3 s, then each time it has taken twice as long."""
        stopped = threading.Event()

        def watch() -> None:
            while not stopped.wait(every):
                self.remind()

        watcher = threading.Thread(target=watch, name="remind-of-stages", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            stopped.set()
            watcher.join()

    def remind(self) -> None:
        """Say that the stage still runs, if it is time to."""
        with self._lock:
            seconds = self.seconds
            if seconds - self._stage_start >= self._next_reminder:
                self._next_reminder *= 2
                erase = ERASE_LINE if self._redraws else ""
                self._stream.write(f"{erase}{_stamp(seconds)} still {self._stage}\n")
                self._stream.flush()

    def end(self, outcome: Outcome) -> Outcome:
        """Say that the job is done, and add to its summary how many seconds it took."""
        self.stage("done")
        return self.time(outcome)

    def time(self, outcome: Outcome, begun: float = 0.0) -> Outcome:
        """Say in the summary how many seconds it took, of a part that was begun so many seconds after the start."""
        return replace(outcome, summary={**outcome.summary, "seconds": round(self.seconds - begun, 1)})

    def advance(self, done: int, total: int) -> None:
        """Draw how much of the stage is done, over the last such line; nothing where the stream is no terminal.

        With a total of 0 the bar is taken off. May be called from any thread.
        """
        if not self._redraws:
            return
        with self._lock:
            line = ""
            if total > 0:
                filled = BAR_WIDTH * min(done, total) // total
                bar = "#" * filled + "." * (BAR_WIDTH - filled)
                line = f"{_stamp(self.seconds)} [{bar}] {done}/{total} {self._stage}"
            self._stream.write(ERASE_LINE + line[: shutil.get_terminal_size().columns - 1])
            self._stream.flush()


def _stamp(seconds: float) -> str:
    return f"[{seconds:5.1f} s]"


def print_summary(summary: Mapping[str, object]) -> None:
    """Print the last line of a job on stdout: one line of JSON in ASCII, what is not finite as null."""
    write_stdout(json.dumps(_json_value(summary), allow_nan=False) + "\n")


def write_stdout(text: str) -> None:
    """Write on stdout at once; nothing from when its reader has gone, as `head` does: the work goes on all the same."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # what is still buffered would fail again at the exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def format_table(rows: Sequence[Mapping[str, object]], columns: Sequence[str], width: int | None = None) -> str:
    """Lay out dicts as a table with these keys as columns; a key that is missing counts as NULL.

    Numbers stand right-aligned, fractions with four decimals, or as 3.1e-09 where all of these are 0 and the number is
    not, and in columns of p-values, ``p_...``, as < 0.0001; NULL and NaN are ``-``; characters that a terminal would
    obey or hide are written out. Long text is cut; to fit into a width, the longest texts are, numbers never.
    """
    lines = [list(columns), *([_show_cell(row.get(column), column) for column in columns] for row in rows)]
    widths = [max(map(measure_width, cells)) for cells in zip(*lines, strict=True)]
    numeric = [all(_is_number_or_null(row.get(column)) for row in rows) for column in columns]
    if width is not None:
        widths = narrow_widths(widths, [not right for right in numeric], width - 2 * (len(columns) - 1))
    return "\n".join("  ".join(map(_pad, line, widths, numeric)).rstrip() for line in lines)


def print_outcome(outcome: Outcome) -> int:
    """Print what came of a job, or of a part of it, and give its exit code."""
    if outcome.table:
        write_stdout(f"{outcome.table}\n")
    print_summary(outcome.summary)
    return outcome.exit_code


def _print_whatever_the_encoding() -> None:
    """Keep a name that the terminal's encoding lacks from stopping a job that has published."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _json_value(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _json_value(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, decimal.Decimal):
        whole = value.is_finite() and value == value.to_integral_value()
        return int(value) if whole else _json_value(float(value))
    if value is None or isinstance(value, bool | str):
        return value
    return int(value) if isinstance(value, numbers.Integral) else str(value)


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


def _is_number_or_null(value: object) -> bool:
    return value is None or (isinstance(value, numbers.Number) and not isinstance(value, bool))


def _pad(cell: str, width: int, right: bool) -> str:
    cell = cut_to_width(cell, width)
    space = " " * (width - measure_width(cell))
    return space + cell if right else cell + space
