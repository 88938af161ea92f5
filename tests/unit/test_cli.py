from __future__ import annotations

import argparse
import csv
import datetime
import decimal
import errno
import io
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from biasspark import cli, interrupts
from biasspark.cli import Command, Outcome, Progress, format_table, print_outcome, run_job
from biasspark.errors import (
    BiasSparkError,
    ConfigError,
    InputError,
    PublishConflict,
    find_error_condition,
    has_condition,
)
from biasspark.report.text_formats import open_out, write_csv, write_out
from biasspark.text import closest_match, format_share, measure_width
from biasspark.workflows.write_report import COMMAND

FLAGS = ["--config", "c.toml", "--run-date", "2026-03-31"]
CANARY = "call me at 555-0100"


class SparkFailure(Exception):
    """Like exceptions of PySpark: the message quotes data, the condition does not."""

    def __init__(self, condition: str | None, message: str = f"[CAST_INVALID_INPUT] The value '{CANARY}'") -> None:
        super().__init__(message)
        self._condition = condition

    def getCondition(self) -> str | None:  # PySpark's name
        return self._condition


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Closed(Terminal):
    def write(self, _: str) -> int:
        raise BrokenPipeError


def fail_with(error: BaseException) -> Callable[[argparse.Namespace], Outcome]:
    def fail(_: argparse.Namespace) -> Outcome:
        raise error

    return fail


NEVER = fail_with(AssertionError())
FLAGS_OF_JOB = (*cli.on_date("the run date to measure"), cli.DRY_RUN)
PARSER = Command("Measures.", cli.dated_examples("demo.toml"), FLAGS_OF_JOB, NEVER).parser("job.py")
Run = Callable[..., tuple[int, str, str]]
"""Runs a job, and returns the exit code and what it printed on stdout and stderr."""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_and_read(
        main: Callable[[argparse.Namespace], Outcome] = NEVER,
        flags: list[str] = FLAGS,
        parser: argparse.ArgumentParser = PARSER,
    ) -> tuple[int, str, str]:
        return run_job(main, parser, flags), *capsys.readouterr()

    return run_and_read


class TestFlags:
    def test_what_a_job_gets(self) -> None:
        flags = PARSER.parse_args([*FLAGS, "--set", "a.b=1", "--set", 'c="x=y"', "--dry-run"])
        assert (flags.config, flags.run_date) == (Path("c.toml"), datetime.date(2026, 3, 31))
        assert flags.overrides == ["a.b=1", 'c="x=y"']
        assert (flags.dry_run, flags.debug) == (True, False)
        assert PARSER.parse_args(FLAGS).overrides == []  # nothing is left of one call for the next

    @pytest.mark.parametrize("dates", ["2026-03-01..2026-03-31", "2026-03-01:2026-03-31"])
    def test_a_range_is_for_the_job_that_measures(self, dates: str, run: Run) -> None:
        code, _, errors = run(flags=["--config", "c.toml", "--run-date", dates])
        assert (code, "biasspark measure" in errors) == (2, True)

    @pytest.mark.parametrize(
        "date", ["20260331", "2026-W14-2", "2026-02-30", "31.03.2026", "", "2026-3-1", "٢٠٢٦-٠٣-٣١"]
    )
    def test_a_date_is_year_month_day(self, date: str, run: Run) -> None:
        code, _, errors = run(flags=["--config", "c.toml", "--run-date", date])
        assert code == 2
        assert f'argument --run-date: "{date}". ' in errors
        assert ("as YYYY-MM-DD" in errors) == (date != "2026-02-30")  # no such day

    @pytest.mark.parametrize(
        ("flags", "meant"),
        [
            ([], ""),
            (["--config", "c.toml"], ""),
            ([*FLAGS, "--nonsense"], ""),
            ([*FLAGS[:2], "--run", "x"], ""),
            ([*FLAGS, "--engine", "embeded"], "embedded"),
            ([*FLAGS, "--card=x.md", "--zzz"], "--model-card"),
        ],
    )
    def test_wrong_usage_is_exit_2_with_a_suggestion_if_there_is_one(
        self, flags: list[str], meant: str, run: Run
    ) -> None:
        code, _, errors = run(flags=flags, parser=COMMAND.parser() if meant.startswith("-") else PARSER)
        assert code == 2
        assert errors.partition("Did you mean ")[2] == (f"{meant}?\n" if meant else "")

    @pytest.mark.parametrize(
        ("word", "meant"),
        [("term_gay", None), ("term_mael", "term_male"), ("cvs", "csv"), ("male & x", None), ("term", "term_male")],
    )
    def test_a_word_is_suggested_if_it_is_close(self, word: str, meant: str | None) -> None:
        assert closest_match(word, ("term_male", "csv", "json")) == meant

    @pytest.mark.parametrize("text", ["", "a table", "a long table " * 100_000])
    def test_a_closed_pipe_ends_quietly(self, text: str, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        with open(writing, "w", encoding="utf-8") as stdout:
            monkeypatch.setattr(sys, "stdout", stdout)
            assert run(lambda _: Outcome(summary={}, text=text, exit_code=5)) == (5, "", "")

    def test_help_has_examples_exit_codes_and_what_the_date_is(self, run: Run) -> None:
        code, shown, _ = run(flags=["--help"])
        assert code == 0
        assert all(part in shown for part in ("  job.py --config conf/demo.toml", "  4    ", "the run date to measure"))

    def test_a_parser_without_a_configuration(self, run: Run) -> None:
        parser = Command("Makes.", "examples:\n  make 100 % of it", (), NEVER).parser()
        assert [
            run(lambda flags: Outcome(summary={}, exit_code=flags.debug), flags, parser)[0]
            for flags in ([], ["--debug"])
        ] == [0, 1]
        shown = run(flags=["-h"], parser=parser)[1]
        assert all(part in shown for part in ("examples:\n  make 100 % of it\n\n", "\n  0    "))

    def test_a_count_is_a_whole_number_and_not_below_the_least(self) -> None:
        assert [cli.parse_count("1"), cli.parse_count("020"), cli.parse_count("999999999")] == [1, 20, 999_999_999]
        assert cli.parse_count("0", least=0) == 0
        for wrong in ("0", "-1", "1.5", "", "1e3", "٣", " 1", "1\n", "1000000000"):
            with pytest.raises(argparse.ArgumentTypeError, match="a whole number, 1 or more"):
                cli.parse_count(wrong)


class TestOut:
    def test_a_file_gets_the_text_as_it_stands(self, tmp_path: Path) -> None:
        out = cli.parse_out(str(tmp_path / "x.csv"))
        for text in ("a longer text than the next", "é,1\r\n"):
            write_out(out, text)
            assert out.read_bytes() == text.encode()

    def test_a_name_may_be_as_long_as_file_systems_allow(self, tmp_path: Path) -> None:
        out = cli.parse_out(str(tmp_path / ("報" * 85)))
        write_out(out, "text")
        assert out.read_text() == "text"

    def test_an_earlier_file_stays_if_writing_fails_and_keeps_its_permissions(self, tmp_path: Path) -> None:
        out = tmp_path / "x.csv"
        out.write_text("earlier")
        with pytest.raises(ConfigError, match="no space left"), open_out(out):
            raise OSError(errno.ENOSPC, "No space left on device")
        assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("x.csv", "earlier")]
        out.chmod(0o600)
        write_out(out, "later")
        assert (out.read_text(), out.stat().st_mode & 0o777) == ("later", 0o600)

    def test_what_a_link_names_is_written(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path / "file")
        write_out(tmp_path / "link", "text")
        assert (tmp_path / "file").read_text() == "text"
        assert (tmp_path / "link").is_symlink()

    @pytest.mark.parametrize("name", ["", ".", "no/such/folder/x.csv", "x" * 300, f"{'x' * 300}/x.csv"])
    def test_no_file_can_be_there(self, name: str, tmp_path: Path) -> None:
        with pytest.raises(argparse.ArgumentTypeError, match="file path"):
            cli.parse_out(name and str(tmp_path / name))

    def test_stdout_is_no_file(self) -> None:
        with pytest.raises(argparse.ArgumentTypeError, match="/dev/stdout"):
            cli.parse_out("-")
        assert cli.parse_out("/dev/stdout") == Path("/dev/stdout")

    def test_what_may_not_be_written_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        existing = tmp_path / "x.csv"
        existing.touch()
        (tmp_path / "link").symlink_to(existing)
        for denied, refused in ((tmp_path, {"x.csv", "new.csv"}), (existing, {"x.csv", "link"})):
            monkeypatch.setattr(os, "access", lambda path, _, denied=denied: path.resolve() != denied)
            for name in ("x.csv", "new.csv", "link"):
                with pytest.raises(argparse.ArgumentTypeError, match="denied") if name in refused else nullcontext():
                    cli.parse_out(str(tmp_path / name))

    def test_what_cannot_be_written(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError) as caught:
            write_out(tmp_path / "gone" / "x.csv", "")
        assert f'"{tmp_path}/gone"' in str(caught.value)

    def test_bytes_are_written_as_hexadecimal_digits(self) -> None:
        written = io.StringIO()
        write_csv(written, ["block"], [(b"\x00\xff",), (bytearray(b"\x01"),)])
        assert written.getvalue() == "block\r\n00ff\r\n01\r\n"

    def test_arrays_are_written_as_json(self) -> None:
        written = io.StringIO()
        write_csv(written, ["u_left", "edges"], [([decimal.Decimal(10**30), None], [0.1, 2.0])])
        assert list(csv.reader(io.StringIO(written.getvalue())))[1] == [f"[{10**30}, null]", "[0.1, 2.0]"]


class TestExit:
    def test_an_outcome_is_a_table_and_then_one_line_of_json_unless_that_is_empty(self, run: Run) -> None:
        outcome = Outcome(summary={"run_id": "r1"}, text="identity\nmale", exit_code=5)
        assert run(lambda _: outcome) == (5, 'identity\nmale\n{"run_id": "r1"}\n', "")
        document = Outcome(summary={}, text="identity,n", exit_code=3)
        assert run(lambda _: document) == (3, "identity,n\n", "")

    @pytest.mark.parametrize(
        ("error", "exit_code"), [(BiasSparkError, 1), (ConfigError, 2), (InputError, 3), (PublishConflict, 4)]
    )
    def test_faults_are_printed_one_a_line_without_traceback(
        self, error: type[BiasSparkError], exit_code: int, run: Run
    ) -> None:
        printed = "job.py: error: one.\njob.py: error: two\\x1b[2J.\n"
        assert run(fail_with(error("one.", "two\x1b[2J."))) == (exit_code, "", printed)

    @pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
    def test_a_signal_waits_for_grpc(self, signum: signal.Signals, code: int) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a session of Spark has its own, and a worker none
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
        handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
        ended: list[bool] = []
        kill = partial(os.kill, os.getpid(), signum)
        scope: dict[str, Any] = {"__name__": "grpc._channel", "time": time, "ended": ended, "kill": kill}
        exec("def call():\n    kill()\n    time.sleep(0.1)\n    ended.append(True)", scope)

        def work(_: argparse.Namespace) -> Outcome:
            scope["call"]()
            time.sleep(60)
            return Outcome(summary={})

        assert run_job(work, PARSER, FLAGS) == code
        assert ended == [True]
        assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == handlers

    def test_an_error_that_follows_an_interrupt_does_not_hide_it(self, run: Run) -> None:
        def work(_: argparse.Namespace) -> Outcome:
            try:
                raise KeyboardInterrupt
            finally:
                raise ValueError("the session is gone")

        assert run(work) == (130, "", "job.py: error: interrupted\n")

    def test_the_unexpected_is_one_line_without_its_message(self, run: Run) -> None:
        code, _, shown = run(fail_with(SparkFailure("CAST_INVALID_INPUT")))
        assert (code, shown.count("\n")) == (1, 1)
        assert shown.startswith("job.py: error: unexpected SparkFailure CAST_INVALID_INPUT in biasspark/cli.py, line ")
        assert CANARY not in shown

    def test_debug_shows_the_traceback_of_everything(self, run: Run) -> None:
        for error, exit_code in ((ValueError("detail"), 1), (InputError("detail"), 3)):
            code, _, shown = run(fail_with(error), [*FLAGS, "--debug"])
            assert code == exit_code
            assert "Traceback (most recent call last):" in shown
            assert "detail" in shown

    def test_an_encoding_that_lacks_a_name_stops_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        raw = io.BytesIO()
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, "ascii", line_buffering=True))
        assert run_job(lambda _: Outcome(summary={"é": 1}, text="é"), PARSER, FLAGS) == 0
        assert raw.getvalue() == b'\\xe9\n{"\\u00e9": 1}\n'


class TestUnexpected:
    def test_the_condition_is_that_of_spark_3_5_of_java_or_of_the_cause(self) -> None:
        old, of_java, of_cause, one, other = (ValueError(CANARY) for _ in range(5))
        old.getErrorClass = lambda: "DIVIDE_BY_ZERO"  # type: ignore[attr-defined]  # the name in Spark 3.5
        of_java.java_exception = SparkFailure("FAILED_READ_FILE.NO_HINT")  # type: ignore[attr-defined]  # as py4j has it
        of_cause.__cause__ = SparkFailure("OUTER.INNER")
        one.__cause__, other.__cause__ = other, one  # a ring
        errors = (SparkFailure("NOT_FOUND"), old, of_java, of_cause, one)
        conditions = ["NOT_FOUND", "DIVIDE_BY_ZERO", "FAILED_READ_FILE.NO_HINT", "OUTER.INNER", None]
        assert list(map(find_error_condition, errors)) == conditions

    def test_the_message_has_the_condition_only_if_the_error_has_none(self) -> None:
        missing = SparkFailure(None, "[PATH_NOT_FOUND] Path does not exist")
        assert has_condition(missing, "TABLE_OR_VIEW_NOT_FOUND", "PATH_NOT_FOUND")
        assert not has_condition(missing, "TABLE_OR_VIEW_NOT_FOUND")
        refused = SparkFailure("CAST_INVALID_INPUT", "[CAST_INVALID_INPUT] The value '[PATH_NOT_FOUND]'")
        assert has_condition(refused, "CAST_INVALID_INPUT")
        assert not has_condition(refused, "PATH_NOT_FOUND")

    @pytest.mark.parametrize("condition", [None, "", f"The value '{CANARY}'", "lower_case", "A..B"])
    def test_only_what_looks_like_a_condition_is_one(self, condition: str | None) -> None:
        assert find_error_condition(SparkFailure(condition)) is None
        assert cli.describe_unexpected(SparkFailure(condition)).startswith("unexpected SparkFailure. ")


class TestTable:
    def test_aligned(self) -> None:
        rows = [
            {"identity": "male", "n": 12, "bpsn_auc": 0.123456},
            {"identity": "日本", "n": 3_000_000_000, "bpsn_auc": None},
            {"identity": "é", "n": 0, "bpsn_auc": -1e-9},
        ]
        assert format_table([], ["identity", "n"]) == "identity  n"
        assert format_table(rows, ["identity", "n", "bpsn_auc"]).splitlines() == [
            "identity           n  bpsn_auc",
            "male              12    0.1235",
            "日本      3000000000         -",
            "é                  0  -1.0e-09",
        ]

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            (None, "-"),
            (float("nan"), "-"),
            (float("-inf"), "-inf"),
            (True, "True"),
            (decimal.Decimal(10**30), str(10**30)),
            (decimal.Decimal("0.25"), "0.2500"),
            (np.int64(7), "7"),
            (np.float32(0.5), "0.5000"),
            (datetime.date(2026, 3, 31), "2026-03-31"),
            # Only 0 is shown as 0.
            (0.0, "0.0000"),
            (-0.0, "0.0000"),
            (3.14e-9, "3.1e-09"),
            (-0.00004, "-4.0e-05"),
            (0.00006, "0.0001"),
            (5e-324, "4.9e-324"),
            (decimal.Decimal("1e-30"), "1.0e-30"),
            (np.float32(1e-9), "1.0e-09"),
        ],
    )
    def test_kinds_of_values(self, value: object, shown: str) -> None:
        assert format_table([{"v": value}], ["v", "absent"]).split() == ["v", "absent", shown, "-"]

    @pytest.mark.parametrize(
        ("p", "shown"),
        [(0.0, "< 0.0001"), (6.4e-311, "< 0.0001"), (0.000099, "< 0.0001"), (0.0001, "0.0001"), (1.0, "1.0000")],
    )
    def test_small_p_values_are_shown_alike(self, p: float, shown: str) -> None:
        table = format_table([{"p_adjusted": p}, {"p_adjusted": None}], ["p_adjusted"])
        assert table.splitlines() == ["p_adjusted", shown.rjust(10), "-".rjust(10)]

    def test_what_a_terminal_would_obey_is_written_out(self) -> None:
        shown = format_table([{"identity": "a\x1b[2J\n\u202eb\u200d"}], ["identity"])
        assert shown.splitlines()[1] == r"a\x1b[2J\n\u202eb\u200d"

    def test_long_names_are_cut(self) -> None:
        cut = format_table([{"identity": "x" * 61}, {"identity": "本" * 31}, {"identity": "y" * 60}], ["identity"])
        assert cut.splitlines()[1:] == ["x" * 57 + "...", "本" * 28 + "...", "y" * 60]

    def test_a_width_is_kept_by_cutting_the_longest_texts(self) -> None:
        row = {"model": "m" * 30, "identity": "宗" * 25, "n": 10**12, "slice": "all"}
        whole = format_table([row], list(row)).splitlines()
        assert format_table([row], list(row), max(map(measure_width, whole))).splitlines() == whole
        for width in (80, 60, 50):
            headings, line = format_table([row], list(row), width).splitlines()
            assert measure_width(headings) in (width, width - 1)  # half of a wide character does not fit
            assert headings.split() == list(row)
            assert line.split()[2:] == [str(10**12), "all"]
        narrowest = format_table([row], list(row), 1).splitlines()[1]
        assert narrowest.split() == ["m" * 9 + "...", "宗" * 4 + "...", str(10**12), "all"]

    @given(names=st.lists(st.text(max_size=80), max_size=5))
    def test_any_names_make_one_line_a_row_all_aligned(self, names: list[str]) -> None:
        lines = format_table([{"identity": name, "n": 1} for name in names], ["identity", "n"]).split("\n")
        assert len(lines) == len(names) + 1
        assert len({measure_width(line) for line in lines}) == 1


def test_a_full_disk_below_stdout_and_stderr_stops_no_job(capsys: pytest.CaptureFixture[str]) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    for code, shown in ((0, 1), (5, 5)):
        with pytest.MonkeyPatch.context() as patched, full.open("w") as stdout, full.open("w") as stderr:
            Progress(stderr).stage("ranking")
            patched.setattr(sys, "stdout", stdout)
            assert print_outcome(Outcome(summary={"n": 1}, exit_code=code)) == shown
    assert "stdout" in capsys.readouterr().err


def test_a_closed_pipe_below_stderr_keeps_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Closed())
    assert cli.print_failure("job", InputError("a fault"), debug=True) == 3
    assert run_job(fail_with(KeyboardInterrupt()), PARSER, FLAGS) == 130
    monkeypatch.setattr(sys, "stdout", Closed())
    assert print_outcome(Outcome(summary={"n": 1}, exit_code=5)) == 5


def test_the_summary_is_one_line_of_ascii_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_outcome(Outcome(summary={"text": "日本\n", "date": datetime.date(2026, 3, 31), "path": Path("a")}))
    line = capsys.readouterr().out
    assert (line.isascii(), line.count("\n")) == (True, 1)
    assert json.loads(line) == {"text": "日本\n", "date": "2026-03-31", "path": "a"}


class TestProgress:
    def test_a_line_a_stage(self) -> None:
        stream, times = io.StringIO(), iter([100.0, 100.0, 103.24, 1234.5])
        progress = Progress(stream, lambda: next(times))
        progress.stage("corpus")
        progress.stage("ranking: 2 models, 24 identities\x1b[2J")
        progress.stage("publish")
        assert stream.getvalue() == (
            "[  0.0 s] corpus\n[  3.2 s] ranking: 2 models, 24 identities\\x1b[2J\n[1134.5 s] publish\n"
        )

    def test_a_terminal_that_is_closed_stops_nothing(self) -> None:
        Progress(Closed()).stage("ranking")

    def test_a_long_stage_is_said_to_run_still(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """After 3 s, then whenever its duration has doubled; reset at the next stage."""
        now, stream = [0.0], io.StringIO()
        progress = Progress(stream, lambda: now[0])
        for second in range(30):
            now[0] = float(second)
            if second in {0, 20}:
                progress.stage("a" if second == 0 else "b")
            progress.remind()
        lines = [line.split("] ") for line in stream.getvalue().splitlines()]
        assert [(float(start.strip("[ s")), text) for start, text in lines] == [
            *[(0, "a"), (3, "still a"), (6, "still a"), (12, "still a")],
            *[(20, "b"), (23, "still b"), (26, "still b")],
        ]
        monkeypatch.setattr(interrupts, "REPEAT_SECONDS", 0.001)
        with progress.reminding():
            now[0], deadline = 100.0, time.monotonic() + 60
            while not stream.getvalue().endswith("[100.0 s] still b\n") and time.monotonic() < deadline:
                time.sleep(0.001)
        assert stream.getvalue().endswith("[100.0 s] still b\n")

    def test_a_line_erases_what_spark_draws_on_a_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for kind, stream in (("xterm", Terminal()), ("dumb", Terminal()), ("xterm", io.StringIO())):
            monkeypatch.setenv("TERM", kind)
            Progress(stream, lambda: 0.0).stage("ranking")
            erase = "\r\x1b[K" if kind == "xterm" and stream.isatty() else ""
            assert stream.getvalue() == f"{erase}[  0.0 s] ranking\n"


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(0, 7, "0%"), (1, 400, "< 1%"), (1, 3, "33%"), (1999, 2000, "> 99%"), (2000, 2000, "100%")],
)
def test_a_share_near_an_end_is_not_rounded_to_it(part: int, whole: int, text: str) -> None:
    assert format_share(part, whole) == text
