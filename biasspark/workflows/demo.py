"""Make a synthetic corpus, measure the bias of two models on it, check it by the rules of a gate, and write the report.

A second demo uses the existing corpus, and adds a run, which supersedes the first.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pyarrow as pa

from biasspark.cli import Command, Outcome, flag, parse_count, print_outcome, write_stderr
from biasspark.ddl import to_rows
from biasspark.errors import BiasSparkError, ConfigError, how_to_install
from biasspark.session import job_session
from biasspark.session.engines import is_spark_installed
from biasspark.session_request import SessionRequest, current_request, session_requested
from biasspark.tables.parquet import read_files
from biasspark.tables.schemas import BIAS_RUNS, TABLES, sort_rows
from biasspark.text import show_value
from biasspark.workflows import make_corpus, measure, write_report

RUN_DATE, NEXT_DATE = "2026-01-15", "2026-01-16"
SEED = 1
_MADE_OF = "_made_of"
"""A file in a corpus made by the demo. Readers skip names that begin with an underscore."""
_CONFIGURATIONS = "demo.toml", "attribution.toml"
_TEXT = """
The tables are in {warehouse}. Query them with any SQL, for example with DuckDB (pip install duckdb):

{python} -c 'import sys, duckdb; duckdb.execute(open(sys.argv[1]).read()); duckdb.sql(sys.argv[2]).show()' {views} \\
    "{query}"

There are also latest_suite, latest_threshold_rates, latest_score_histograms, latest_label_balance and others.

{report}
Changes need a second run, and attribution of the AUC takes longer. These commands run both, and write the report of the
second run:

{measure} --config {config} --run-date {next_date}
{attribute} --config {attribution} --run-date {next_date}
{report_command} --config {config} --run-date {next_date} --out {page}

Edit the configuration, {config}, or use it as a template for your own.
"""
_QUERY = (
    "SELECT identity, model, bpsn_auc, bpsn_auc_low, bpsn_auc_high FROM latest_bias_metrics "
    f"WHERE run_date = DATE '{RUN_DATE}' AND slice = 'all' ORDER BY bpsn_auc_high NULLS LAST LIMIT 10"
)


def find_command() -> list[str]:
    """Return the words of a shell that run this installation. The name alone may run another one."""
    script, on_path = Path(sys.executable).with_name("biasspark"), which("biasspark")
    if not script.exists():
        return [sys.executable, "-m", "biasspark"]
    return ["biasspark" if on_path and script.samefile(on_path) else str(script)]


def run_demo(folder: Path, rows: int, flags: Sequence[str], *, both: bool) -> Outcome:
    """Make the corpus unless it exists, measure it, write its report, and return the outcome.

    `flags` are added to the printed commands. If `both`, local Spark measures the corpus, too, and tables are compared.
    Raises `ConfigError` if the folder cannot be written to.
    """
    corpus, page = folder / "corpus", folder / "report.html"
    generator = sorted(files("biasspark.synthetic").iterdir(), key=lambda path: path.name)
    code = b"".join(path.read_bytes() for path in generator if path.name.endswith((".py", ".toml")))
    # A corpus of another generator is made again.
    made_of = f"{rows} rows, seed {SEED}, generator {zlib.crc32(code)}"
    try:
        if corpus.exists() and not (corpus / _MADE_OF).exists():
            raise ConfigError(f"--out: {corpus} was not made by a demo, and is not replaced. Name another folder.")
        folder.mkdir(parents=True, exist_ok=True)
        _write_configurations(folder)
    except OSError as error:
        raise ConfigError(f"--out {error.filename or folder}: {error.strerror}. Name another folder.") from error
    environment = dict(os.environ)  # before the embedded engine adds to it
    dated = ["--config", str(folder / _CONFIGURATIONS[0]), "--run-date", RUN_DATE]
    has_report = all(map(find_spec, write_report.LIBRARIES))
    codes = []
    with job_session("biasspark demo"):
        made_before = (corpus / _MADE_OF).read_text("utf-8") if corpus.exists() else ""
        if made_before != made_of:
            if made_before:
                write_stderr(f"The corpus in {corpus} is replaced. It was made of {made_before}.\n")
            codes.append(_make(corpus, rows, made_of))
        codes.append(_run("measure", measure.COMMAND, dated))
        if has_report:
            codes.append(_run("report", write_report.COMMAND, [*dated, "--out", str(page)]))
    n_equal = _compare_engines(folder, dated, environment) if both else None
    equal = f"\nThe embedded engine and local Spark have equal rows in all {n_equal} tables.\n" if both else ""
    report = (
        f"The report is one file. Open it in a browser:\n\n{page}\n"
        if has_report
        else (f"For the report, a page with pictures, {how_to_install('report')}.\n")
    )
    command = find_command()
    text = equal + _TEXT.format(
        warehouse=folder / "warehouse",
        python=shlex.quote(sys.executable),
        views=shlex.quote(str(folder / "warehouse" / "views.duckdb.sql")),
        query=_QUERY,
        report=report,
        measure=shlex.join([*command, "measure", *flags]),
        attribute=shlex.join([*command, "attribute", *flags]),
        report_command=shlex.join([*command, "report", *flags]),
        config=shlex.quote(str(folder / "demo.toml")),
        attribution=shlex.quote(str(folder / "attribution.toml")),
        next_date=NEXT_DATE,
        page=shlex.quote(str(page)),
    )
    summary = {"job": "demo", "rows": rows, "out": folder, "report": page if has_report else None}
    summary |= {"equal_tables": n_equal} if both else {}
    return Outcome(text=text, summary=summary, exit_code=min(filter(None, codes), default=0))


def _write_configurations(folder: Path) -> None:
    for name in _CONFIGURATIONS:
        text = files("biasspark.synthetic").joinpath(name).read_text("utf-8")
        for part in ("corpus", "warehouse"):
            path = json.dumps(str(folder / part), ensure_ascii=False)  # strings of JSON are valid in TOML
            text = text.replace(f'path = "build/demo/{part}"', f"path = {path}")
        (folder / name).write_text(text, "utf-8")


def _make(corpus: Path, rows: int, made_of: str) -> int:
    """Make the corpus in a temporary folder, then replace the older one, and return the exit code."""
    unfinished = corpus.with_name("corpus.partial")
    shutil.rmtree(unfinished, ignore_errors=True)
    flags = ["civil", "--rows", str(rows), "--seed", str(SEED), "--out"]
    _print_command("make-corpus", [*flags, str(corpus)])
    outcome = _call("make-corpus", make_corpus.COMMAND, [*flags, str(unfinished)])
    (unfinished / _MADE_OF).write_text(made_of, "utf-8")
    shutil.rmtree(corpus, ignore_errors=True)
    unfinished.rename(corpus)
    return print_outcome(replace(outcome, summary={**outcome.summary, "path": corpus}))


def _run(name: str, command: Command, flags: Sequence[str]) -> int:
    """Run a command, say which, and return its exit code."""
    _print_command(name, flags)
    return print_outcome(_call(name, command, flags))


def _call(name: str, command: Command, flags: Sequence[str]) -> Outcome:
    return command.main(command.parser(f"biasspark {name}").parse_args(flags))


def _print_command(name: str, flags: Sequence[str]) -> None:
    write_stderr(f"$ {shlex.join([*find_command(), name, *flags])}\n")


def _compare_engines(folder: Path, dated: Sequence[str], environment: Mapping[str, str]) -> int:
    """Measure the corpus on local Spark in another process, and return the number of tables, all with equal rows."""
    second = folder / "warehouse-spark"
    flags = [*dated, "--engine", "spark", "--set", f"output.path={json.dumps(str(second))}"]
    _print_command("measure", flags)
    command = [sys.executable, "-m", "biasspark", "measure", *flags]
    if code := subprocess.run(command, env=environment, check=False).returncode:
        raise BiasSparkError(f"demo: the run on local Spark ended with exit code {code}. Its fault is above.")
    embedded, spark = (_read_last_run(path) for path in (folder / "warehouse", second))
    if differing := [name for name in embedded.keys() | spark.keys() if embedded.get(name) != spark.get(name)]:
        raise BiasSparkError(
            f"demo: the two engines differ in {', '.join(sorted(differing))}. This is a defect of "
            "biasspark. Report it with the names of these tables."
        )
    return len(embedded)


def _read_last_run(warehouse: Path) -> dict[str, pa.Table]:
    """Return the tables of the last run by name, sorted by key, without run_date, corpus and run_id."""
    runs = list((warehouse / BIAS_RUNS.name / f"run_date={RUN_DATE}").iterdir())
    ledger = to_rows(read_files(BIAS_RUNS, runs).sort_by("published_at"))
    tables = {}
    for name in ledger[-1]["table_rows"]:
        table = TABLES[name]
        rows = read_files(table, [warehouse / name / f"run_date={RUN_DATE}" / f"run_id={ledger[-1]['run_id']}"])
        tables[name] = sort_rows(table, rows).select(table.value_columns)
    return tables


# ---- the command line

EXAMPLES = """\
examples:
  %(prog)s
  %(prog)s --rows 100000 --out /tmp/demo
  %(prog)s --both                          # needs Spark and Java as well
"""


def _parse_folder(text: str) -> Path:
    with suppress(OSError):  # as for a name that is too long
        if text and (Path(text).is_dir() or not Path(text).exists()):
            return Path(text)
    raise argparse.ArgumentTypeError(f"{show_value(text)}. It must be a folder, new or existing. Name another.")


def main(arguments: argparse.Namespace) -> Outcome:
    """Run the demo. Raises `ConfigError` if flags contradict each other."""
    if arguments.both and (arguments.remote or arguments.master or arguments.engine == "spark"):
        raise ConfigError(
            "--both: compares the embedded engine with local Spark. Leave out --engine, --remote and --master."
        )
    if arguments.both and not is_spark_installed():
        raise ConfigError(
            "--both: Spark is not installed, only its client. Use an environment with biasspark[connect] and pysail."
        )
    flags = [
        text
        for name in ("engine", "remote", "master")
        if (value := getattr(arguments, name))
        for text in (f"--{name}", value)
    ]
    request = SessionRequest("embedded") if arguments.both else current_request()
    with session_requested(request):
        return run_demo(arguments.out.absolute(), arguments.rows, flags, both=arguments.both)


_OUT = "the folder of corpus, tables and report (biasspark-demo)"
FLAGS = (
    flag("--rows", type=parse_count, default=1_800_000, metavar="N", help="comments of the corpus (1800000)"),
    flag("--out", type=_parse_folder, default=Path("biasspark-demo"), metavar="DIR", help=_OUT),
    flag("--both", action="store_true", help="measure on the embedded engine and on local Spark, and compare tables"),
)
COMMAND = Command(__doc__, EXAMPLES, FLAGS, main)
