"""Write the report of a published run, one self-contained HTML file. The corpus is not read."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from biasspark.cli import Command, Outcome, Progress, flag, on_date, parse_count, parse_out
from biasspark.columns import ALL_ROWS, OVERALL
from biasspark.config import Config, load_config
from biasspark.errors import BiasSparkError, ConfigError, InputError, how_to_install, redact
from biasspark.report import report_data
from biasspark.report.text_formats import write_out
from biasspark.session import describe, run_side_by_side
from biasspark.session.files import check_file_system, replace_file
from biasspark.tables import schemas
from biasspark.tables.ledger import (
    LedgerRow,
    accepted_ids,
    by_publication,
    explain_no_run,
    latest_by,
    read_ledger,
    to_run,
)
from biasspark.tables.publish import describe_absence, read_rows
from biasspark.tables.runs import ACCEPT_RUN, ACCEPTED, read_config
from biasspark.tables.schemas import BIAS_ALERTS, BIAS_METRICS, LABEL_BALANCE, LOSS_BY_SEGMENT, MODEL_SUMMARY, Table
from biasspark.tables.storage_errors import UNUSABLE_PATH, describe_cause
from biasspark.tables.store import Store, open_tables
from biasspark.text import format_count, list_first, show_value, show_visibly

JOB = "report"
MAX_RUNS = 30
MAX_LISTED = 5
FOLDER = "reports"
LIBRARIES = ("jinja2", "matplotlib")
BY_GATE, BY_PERSON, RUN_BEFORE = "the last accepted run", "the last accepted run, accepted by hand", "the run before"
"""Why a run is the baseline."""

_ALONE = (LOSS_BY_SEGMENT.job, schemas.PINNED_SKEW.job)
"""Jobs that have a report without a run of the main job."""
_NEEDED = (BIAS_METRICS, MODEL_SUMMARY, BIAS_ALERTS, schemas.COMPARISON_ALERTS)
"""Without the files of these tables, a page would have no numbers, or say that there is no gate."""
TABLES_READ = (
    *_NEEDED,
    *(schemas.THRESHOLD_SUMMARY, schemas.THRESHOLD_RATES, schemas.SCORE_HISTOGRAMS, LABEL_BALANCE),
    *(schemas.TEMPLATE_SCORES, schemas.PINNED_AUC, schemas.TRAINING_BALANCE, schemas.PINNED_SKEW),
    *(schemas.MODEL_COMPARISONS, schemas.ATTRIBUTION_SEGMENTS, schemas.ATTRIBUTION_SLICES, schemas.PAIR_SEGMENTS),
    *(schemas.AUC_CROSSES, LOSS_BY_SEGMENT, schemas.ATTRIBUTION_CORRELATIONS, schemas.NAMED_PAIRS),
)


def check_documents(page: Path | None, *more: object) -> None:
    """Raise `ConfigError` if no document is requested, the page is named as another kind, or libraries are missing."""
    if page and page.suffix.lower() in (".md", ".pdf"):
        raise ConfigError(f"--out: {show_value(str(page))}. The page is HTML. Name it so. --model-card is Markdown.")
    if not page and not any(more):
        raise ConfigError("--out: missing. A report needs a path. Give --out, --publish or --model-card.")
    if missing := [name for name in LIBRARIES if find_spec(name) is None]:
        raise ConfigError(
            f"report: not installed: {' and '.join(missing)}. To get what reports need, {how_to_install('report')}."
        )


def report_folder(config: Config) -> str:
    """Return the folder of published reports: that of ``[report]``, or else ``reports`` next to the tables."""
    if config.report.path:
        return config.report.path.rstrip("/")
    if config.output.path:
        return f"{config.output.path.rstrip('/')}/{FOLDER}"
    raise ConfigError(
        f"--publish: [output] catalog = {show_value(config.output.catalog)}, and no [report] path. A catalog has no "
        'folder for reports. Add [report] path = "...", a folder or a URI that Spark can write, or write to a file '
        "with --out."
    )


def read_report_data(
    spark: SparkSession, store: Store, run_date: date, corpus: str, n_runs: int = MAX_RUNS
) -> report_data.ReportData:
    """Read the data of a report: the latest run of each job for a run date, and earlier runs.

    The result grows with models, slices and runs, and has the rows of at most some 100 identities.
    Raises `InputError` if none is published, with the dates and corpora that exist, or if required files are gone.
    """
    with describe(spark, "report: ledger"):
        ledger = [row for row in read_ledger(spark, store) if row["corpus"] == corpus and row["run_date"] <= run_date]
    runs = latest_by_job(ledger, run_date)
    job = next((job for job in (BIAS_METRICS.job, *_ALONE) if job in runs), BIAS_METRICS.job)
    if job not in runs:
        raise explain_no_run(spark, store, job, run_date, corpus)
    main = runs[job]
    if job == BIAS_METRICS.job:  # runs without models are in no trend
        ledger = [row for row in ledger if row["job"] != job or row is main or to_run(row).wrote(BIAS_METRICS)]
    else:
        runs = {job: row for job, row in runs.items() if job in _ALONE}
    stored, lost = _read_tables(spark, store, runs)
    tables = report_data.filter_tables(stored, read_config(main))
    alerts = stored.get(BIAS_ALERTS.name, BIAS_ALERTS.arrow_schema.empty_table())
    has_metrics = BIAS_METRICS.name in stored
    before = [row for row in ledger if has_metrics and row["job"] == job and row["run_date"] < run_date]
    baseline_ids = set(alerts["baseline_run_id"].to_pylist())
    baseline, label = find_baseline(ledger, before, baseline_ids, has_gate=len(alerts) > 0)
    earlier = [row for _, row in sorted(latest_by(before, "run_date").items())][-n_runs:] if n_runs else []
    shown = sorted({row["identity"] for row in tables.get(BIAS_METRICS.name, ())})
    compared = [*earlier, *([baseline] if baseline else [])]
    past, metrics = _read_past_runs(spark, store, compared, shown, read_config(main))
    measured = report_data.list_identities(stored[BIAS_METRICS.name]) if has_metrics else set()
    if not measured:
        alone = [table.name for table in (LABEL_BALANCE, schemas.PINNED_SKEW) if table.name in stored]
        measured = {identity for name in alone for identity in stored[name]["identity"].to_pylist()} - {OVERALL}
    baseline_identities = report_data.list_identities(metrics, baseline["run_id"]) if baseline else set()
    return report_data.ReportData(
        corpus=corpus,
        run_date=run_date,
        run={**main, "warnings": [*(main["warnings"] or ()), *lost.values(), *_warn_of_lost_runs(past.values())]},
        tables=tables,
        counts=report_data.count_rows(stored),
        lost=lost,
        runs={job: row["run_id"] for job, row in runs.items()},
        configs={job: read_config(row) for job, row in runs.items()},
        history=[past[row["run_id"]] for row in earlier],
        has_earlier_runs=bool(before),
        baseline=past[baseline["run_id"]] if baseline else None,
        baseline_label=label,
        acceptances=list_acceptances(ledger),
        n_identities=len(measured),
        new_identities=sorted(measured - baseline_identities),
        missing_identities=sorted(baseline_identities - measured),
    )


def latest_by_job(ledger: Iterable[LedgerRow], run_date: date) -> dict[str, LedgerRow]:
    """Return the run of each job that readers see for a date: the one that was published last."""
    runs = (row for row in ledger if row["run_date"] == run_date and row["job"] != ACCEPT_RUN)
    return latest_by(runs, "job")


def list_acceptances(ledger: Sequence[LedgerRow]) -> list[LedgerRow]:
    """Return the rows by which people accepted published runs; for a run that was accepted twice, the last one."""
    run_ids = {row["run_id"] for row in ledger}
    rows = (row for row in ledger if row["job"] == ACCEPT_RUN and row["accepts_run_id"] in run_ids)
    missing = {"accepted_by": "someone", "acceptance_note": "no reason given"}
    latest = latest_by(rows, "accepts_run_id").values()
    return [row | {name: row[name] or text for name, text in missing.items()} for row in latest]


def find_baseline(
    ledger: Sequence[LedgerRow], before: Sequence[LedgerRow], baseline_ids: Collection[str], has_gate: bool
) -> tuple[LedgerRow | None, str]:
    """Return which of the runs for earlier dates to compare with, and why it was chosen; None without one.

    It is the last run that the gate compared with, or its last copy; else the last that the gate or a person accepted;
    else, without a gate, the last one.
    """
    accepted = accepted_ids(ledger)
    originals = {_original_id(row) for row in before if row["run_id"] in baseline_ids}
    candidates = [row for row in before if _original_id(row) in originals]
    candidates = candidates or [row for row in before if row["run_id"] in accepted]
    if not candidates and (has_gate or not before):
        return None, ""
    row = max(candidates or before, key=lambda row: (row["run_date"], *by_publication(row)))
    is_by_person = row["status"] != ACCEPTED and row["run_id"] in accepted
    return row, (BY_PERSON if is_by_person else BY_GATE) if candidates else RUN_BEFORE


def _original_id(row: LedgerRow) -> object:
    """Return the id of the run of which a run is a copy, or its own."""
    return row["copied_from_run_id"] or row["run_id"]


def _read_tables(
    spark: SparkSession, store: Store, runs: Mapping[str, LedgerRow]
) -> tuple[dict[str, pa.Table], dict[str, str]]:
    """Return the tables of some runs by name, and the faults of tables whose files are missing."""
    run_of = {job: to_run(row) for job, row in runs.items()}
    tables = [table for table in TABLES_READ if table.job in runs and run_of[table.job].wrote(table)]

    def read(table: Table) -> pa.Table | None:
        with describe(spark, f"report: {table.name}"):
            rows, available = read_rows(spark, store, table, [run_of[table.job]])
        return schemas.sort_rows(table, rows) if available else None

    read_tables = dict(zip(tables, run_side_by_side(spark, [partial(read, table) for table in tables]), strict=True))
    faults = {
        table: describe_absence(store, table, run_of[table.job]) for table, rows in read_tables.items() if rows is None
    }
    if needed := [fault for table, fault in faults.items() if table in _NEEDED]:
        raise InputError(*needed)
    stored = {table.name: rows for table, rows in read_tables.items() if rows is not None}
    return stored, {table.name: fault for table, fault in faults.items()}


def _read_past_runs(
    spark: SparkSession, store: Store, rows: Sequence[LedgerRow], shown: Sequence[str], config: Mapping[str, Any]
) -> tuple[dict[str, report_data.PastRun], pa.Table]:
    """Return earlier runs by id, reduced to some identities, and the whole ``bias_metrics`` of these runs."""
    by_id = {row["run_id"]: row for row in rows}
    runs = list(map(to_run, by_id.values()))
    with describe(spark, "report: earlier runs"):
        metrics, with_metrics = read_rows(spark, store, BIAS_METRICS, runs)
        summaries, with_summaries = read_rows(spark, store, MODEL_SUMMARY, runs)
    lost = {run.run_id for run in runs if run not in with_metrics or run not in with_summaries}
    shown_rows = report_data.keep(metrics, slice=[ALL_ROWS], identity=shown).to_pylist()
    metrics_of = report_data.group_rows(shown_rows, "run_id")
    summaries_of = report_data.group_rows(report_data.keep(summaries, slice=[ALL_ROWS]).to_pylist(), "run_id")
    return {
        run_id: report_data.PastRun(
            run_date=row["run_date"],
            run_id=run_id,
            metrics=metrics_of.get((run_id,), ()),
            summaries=summaries_of.get((run_id,), ()),
            is_lost=run_id in lost,
            differences=report_data.list_config_differences(config, read_config(row), ("now", "then")),
        )
        for run_id, row in by_id.items()
    }, metrics


def _warn_of_lost_runs(runs: Iterable[report_data.PastRun]) -> list[str]:
    lost = sorted((run for run in runs if run.is_lost), key=lambda run: run.run_date, reverse=True)
    if not lost:
        return []
    shown = [f"{run.run_id} of {run.run_date}" for run in lost]
    return [
        f"{BIAS_METRICS.name}, {MODEL_SUMMARY.name}: files of {format_count(len(shown), 'earlier run')} are gone: "
        f"{list_first(shown, MAX_LISTED)}. Trends and changes lack them. Restore them, or measure these dates again."
    ]


def write_documents(
    spark: SparkSession, report: report_data.ReportData, page: Path | None, folder: str | None, model_card: Path | None
) -> list[str]:
    """Write the requested documents, and return their paths. A later page of a run replaces the published one."""
    # Imported here, since its libraries are an extra.
    from biasspark.report.page import write_model_card, write_page  # noqa: PLC0415

    written = []
    if page or folder:
        html = write_page(report)
        if page:
            write_out(page, html)
            written.append(str(page))
        if folder:
            date_folder = f"{folder}/run_date={report.run_date.isoformat()}"
            written.append(_publish(spark, date_folder, f"{report.run['run_id']}.html", html))
    if model_card:
        write_out(model_card, write_model_card(report))
        written.append(str(model_card))
    return written


def _publish(spark: SparkSession, folder: str, name: str, page: str) -> str:
    """Write a page atomically, and return its address. Raises `BiasSparkError` if a retry may succeed."""
    address = redact(f"{folder}/{name}")
    try:
        replace_file(spark, folder, name, page.encode())
    except BiasSparkError:
        raise
    except Exception as error:
        cause = describe_cause(error)
        kind = ConfigError if isinstance(error, OSError) or UNUSABLE_PATH.search(cause) else BiasSparkError
        raise kind(
            f'--publish: "{show_visibly(address)}", {cause}. It could not be written. Fix the cause, then run again.'
        ) from error
    return address


# ---- the command line

EXAMPLES = """\
examples:
  %(prog)s --config conf/demo.toml --run-date 2026-03-31 --out report.html
  %(prog)s --config conf/demo.toml --run-date 2026-03-31 --publish --model-card card.md
"""


def main(arguments: argparse.Namespace) -> Outcome:
    """Write the requested documents."""
    config, run_date, progress = load_config(arguments.config, arguments.overrides), arguments.run_date, Progress()
    folder = report_folder(config) if arguments.publish else None
    check_documents(arguments.out, arguments.model_card, folder)
    with open_tables(JOB, config, progress) as (spark, store):
        if folder:
            check_file_system(spark, ("report" if config.report.path else "output", "path"), folder)
        progress.stage(f"reading {config.corpus.name} of {run_date}")
        report = read_report_data(spark, store, run_date, config.corpus.name, arguments.nights)
        progress.stage("drawing")
        # Inside the session, which removes the zips of --py-files when it stops: drawing imports from them.
        written = write_documents(spark, report, arguments.out, folder, arguments.model_card)
    warnings = report.run["warnings"]
    outcome = next((row["outcome"] for row in report.alerts()), None)
    summary = {"job": JOB, "run_id": report.run["run_id"], "run_date": run_date}
    summary |= {"outcome": outcome, "written": written, "warnings": warnings}
    return progress.end(Outcome(summary=summary, text="\n".join(f"warning: {text}" for text in warnings)))


FLAGS = (
    *on_date("the run date to show"),
    flag("--out", type=parse_out, metavar="FILE", help="the page to write, replaced if it exists"),
    flag("--publish", action="store_true", help="write it to the folder of [report] path (reports/ next to tables)"),
    flag("--model-card", type=parse_out, metavar="FILE", help="the Markdown fragment for a model card to write"),
    flag("--nights", type=parse_count, default=MAX_RUNS, metavar="N", help=f"earlier runs to read ({MAX_RUNS})"),
)
COMMAND = Command(__doc__, EXAMPLES, FLAGS, main)
