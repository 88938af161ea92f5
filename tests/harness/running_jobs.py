"""A job run within the test's own process and session, and DuckDB asked for what it published."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
from pyspark.sql import SparkSession

from biasspark.cli import Command, run_job
from biasspark.command import run_command
from biasspark.tables.views import DUCKDB_FILE


class Done(NamedTuple):
    """What a job left: its exit code, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return found


def run_main(command: Command, *flags: object) -> Done:
    """Run a job with these arguments, as its file in jobs/ does; none prints a traceback."""
    return _record(lambda: run_job(command.main, command.parser(), list(map(str, flags))))


def run_embedded(name: str, *flags: object) -> Done:
    """Run a command on the embedded engine, in the session of this process."""
    return _record(lambda: run_command(name, ["--engine", "embedded", *map(str, flags)]))


def run_embedded_well(name: str, *flags: object) -> dict[str, Any]:
    """Run a command on the embedded engine, which must end well, and return its summary."""
    done = run_embedded(name, *flags)
    assert done.code == 0, done.err
    return done.summary


def refuse_embedded(name: str, *flags: object, code: int = 3) -> str:
    """Run a command on the embedded engine, which must end with this code, and return its messages."""
    done = run_embedded(name, *flags)
    assert done.code == code, done.err
    return done.err


def _record(run: Callable[[], int]) -> Done:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run()
    done = Done(code, out.getvalue(), err.getvalue())
    assert "Traceback" not in done.out + done.err
    return done


@contextmanager
def changed_settings(spark: SparkSession, changes: Mapping[str, str | None]) -> Iterator[None]:
    """Change settings of a session for a block; None unsets one."""
    before = {key: spark.conf.get(key, None) for key in changes}
    _set(spark, changes)
    try:
        yield
    finally:
        _set(spark, before)


def _set(spark: SparkSession, settings: Mapping[str, str | None]) -> None:
    for key, value in settings.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


def ask(warehouse: Path, query: str) -> list[tuple[Any, ...]]:
    """Ask DuckDB, by those of the views that a job wrote which the query needs."""
    head, *views = re.split(r"(?m)^(?=CREATE OR REPLACE VIEW )", (warehouse / DUCKDB_FILE).read_text("utf-8"))
    words, needed = set(re.findall(r"\w+", query)), list[str]()
    for view in reversed(views):  # a view follows those that it reads
        if view.split()[4] in words:
            words.update(re.findall(r"\w+", view))
            needed.insert(0, view)
    return _make_views(head + "".join(needed)).execute(query).fetchall()


def open_views(warehouse: Path) -> duckdb.DuckDBPyConnection:
    """Give a database with the views of a warehouse, as its file has them now."""
    return _make_views((warehouse / DUCKDB_FILE).read_text("utf-8"))


@lru_cache(maxsize=4)
def _make_views(views: str) -> duckdb.DuckDBPyConnection:
    """Make them once: that takes ten times longer than to ask them."""
    connection = duckdb.connect()
    connection.execute(views)
    return connection
