"""Jobs that measure a corpus for one run date or a range of dates: plan, run and publish."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache, partial
from typing import NamedTuple, TypeVar

from pyspark.sql import DataFrame, SparkSession

from biasspark import cli
from biasspark.command import name_command
from biasspark.config import FILTER, Config, Corpus, Measures, load_config, write_toml
from biasspark.corpus.csv_rows import TYPES_PASS
from biasspark.corpus.encoding import RowCounts
from biasspark.corpus.read import IDS_PASS, list_row_dates, read_corpus
from biasspark.corpus.survey import SURVEY_PASS
from biasspark.errors import GATE_FAILED, BiasSparkError, ConfigError, Fault, NoRows
from biasspark.gate.gate_result import GateResult
from biasspark.interrupts import raise_earlier_interrupt
from biasspark.session import engine_of, engine_version, find_session, starting_workers
from biasspark.tables.ledger import list_published
from biasspark.tables.publish import Rows, publish
from biasspark.tables.runs import Run, RunRecord, new_run
from biasspark.tables.schemas import BIAS_RUNS, Table, tables_of
from biasspark.tables.store import Store, open_tables
from biasspark.tables.views import refresh_views
from biasspark.text import format_count, list_first, show_value, show_visibly
from biasspark.workflows.corpus_steps import SurveyedCorpus, survey_for_ranking

K = TypeVar("K")
T = TypeVar("T")


class Plan(NamedTuple):
    """The plan of a run, for ``--dry-run``: passes over the surveyed corpus, tables, and warnings before any work."""

    passes: Sequence[str]
    tables: Sequence[Table]
    warnings: Sequence[str] = ()


def configured(parts: Mapping[K, object]) -> list[K]:
    """Return the passes or tables whose part of the configuration is there and not empty."""
    return [key for key, part in parts.items() if part]


def describe_plan(plan: Plan, config: Config, session: str, dates: Mapping[str, Sequence[date]]) -> str:
    """Format a plan: the configuration with its defaults, the engine, run dates by state, tables, passes."""
    corpus = config.corpus
    counted = (
        f"{len(days):,} {what.replace('_', ' ')}: {list_first(list(map(str, days)))}"
        for what, days in dates.items()
        if days
    )
    passes = [TYPES_PASS] if corpus.is_untyped and config.expressions else []
    passes += [SURVEY_PASS, *([IDS_PASS] if corpus.duplicates == "reject" else []), *plan.passes]
    tables = ", ".join(table.name for table in (*plan.tables, BIAS_RUNS))
    indent = f"\n{'':10}"
    return (
        f"{write_toml(config.resolved())}\n\nsession:  {session}\ndates:    {indent.join(counted)}\n"
        f"tables:   {tables}\npasses:   {indent.join(passes)}"
    )


@dataclass(frozen=True)
class RunContext:
    """The session, configuration, store, run and progress display of a job, and the runs that a window merges."""

    spark: SparkSession
    config: Config
    store: Store
    run: Run
    progress: cli.Progress
    merged_run_ids: Sequence[str] | None = None

    def survey(self, corpus: DataFrame, measures: Measures | None = None) -> AbstractContextManager[SurveyedCorpus]:
        """Check and survey the corpus for some measures, by default for all that are configured."""
        source = self.config.corpus
        self.progress.stage(f"surveying {source.name}")
        return survey_for_ranking(corpus, measures or self.config, source.id, source.duplicates, self.config.rejects)

    def publish(
        self,
        tables: Mapping[Table, Rows],
        counts: RowCounts,
        warnings: Sequence[str],
        show: Callable[[], str],
        gate_result: GateResult | None = None,
    ) -> cli.Outcome:
        """Publish the tables and the alerts of the run. Any failure after publication becomes a warning."""
        spark, config, store, run = self.spark, self.config, self.store, self.run
        judged = gate_result or GateResult()
        if judged.alerts is not None:
            tables = {**tables, judged.table: judged.alerts}
        self.progress.stage(f"publishing {format_count(len(tables), 'table')} as {run.run_id}")
        record = RunRecord(
            n_rows=counts.n_rows,
            n_rejected=counts.n_rejected,
            rejects=counts.rejects,
            warnings=(*warnings, *judged.warnings),
            config=config.json,
            config_hash=config.hash,
            spark_version=engine_version(spark),
            status=judged.status,
            merged_run_ids=self.merged_run_ids,
        )
        published = publish(spark, tables, run, store, record)
        messages, text = list(record.warnings), ""
        with _failing_as_warning(run, messages):
            messages += refresh_views(spark, store)
        with _failing_as_warning(run, messages):
            text = "\n\n".join(filter(None, [show(), judged.show()]))
        summary = {"job": run.job, "status": judged.status, "run_id": run.run_id, "run_date": run.run_date}
        summary |= {"engine": engine_of(spark)}
        summary |= {"n_rows": counts.n_rows, "n_rejected": counts.n_rejected, "rejects": counts.rejects}
        summary |= {"warnings": messages, "tables": published.table_rows, "output": store.root}
        summary |= {"gate": gate_result.outcome} if gate_result else {}
        text += "".join(f"\nwarning: {warning}" for warning in messages)
        return cli.Outcome(summary=summary, text=text, exit_code=judged.exit_code)


@contextmanager
def _failing_as_warning(run: Run, warnings: list[str]) -> Iterator[None]:
    """Turn any failure of a block into a warning: the run is published, whatever happens here."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - see above
        faults = " ".join(cli.without_data(error).messages)
        warnings.append(f"{run.run_id} is published, but a later step failed: {faults}")


MAX_DATES = 3660


def list_dates(first: date, last: date) -> list[date]:
    """Return all dates from the first to the last."""
    return [first + timedelta(days=day) for day in range((last - first).days + 1)]


def describe_no_rows(corpus: Corpus, run_date: date, read_dates: Callable[[], list[date]]) -> Fault:
    """Return the fault of a run date without rows. It shows no value but dates.

    If a column has the dates of rows, the first, the last and the nearest of those that are listed are named.
    """
    if corpus.run_date_column is None:
        key, source = ("table", corpus.table) if corpus.table else ("path", corpus.path)
        path, value = (FILTER, corpus.filter) if corpus.filter else (("corpus", key), source)
        return Fault(path, value, "It gives no row to measure.", f"Check the {key} and the filter.")
    rule = f"There is no row of {run_date}."
    try:
        if dates := read_dates():
            nearest = min(dates, key=lambda day: abs(day - run_date))
            listed = f"{format_count(len(dates), 'date')}, from {dates[0]} to {dates[-1]}; the nearest is {nearest}"
            rule += f" There are rows of {listed}."
        else:
            rows = "No row that passes the filter" if corpus.filter else "No row"
            rule += f" {rows} has a date. A date in a text column must read YYYY-MM-DD."
    except Exception:  # noqa: BLE001 - this date has no rows, whatever is wrong with the files of other dates
        pass
    fix = "Name another date by --run-date, or check the column, the filter and the path."
    return Fault(("corpus", "run_date_column"), corpus.run_date_column, rule, fix)


def parse_run_dates(text: str) -> date | tuple[date, date]:
    """Parse ``DATE``, or ``DATE..DATE`` as the first and the last; for argparse."""
    written_first, is_range, written_last = text.partition("..")
    if not is_range:
        return cli.parse_date(text)
    ends = [cli.parse_date(written) for written in (written_first, written_last) if written]
    if len(ends) < 2 or not 0 <= (ends[1] - ends[0]).days < MAX_DATES:
        raise argparse.ArgumentTypeError(
            f"{show_value(text)}. It must be a first and a later last date, at most {MAX_DATES:,} dates. Write, for "
            "example, 2026-01-01..2026-03-31."
        )
    return ends[0], ends[1]


def list_days(run_date: date | tuple[date, date], config: Config) -> list[date]:
    """Return the run dates to measure. Raises `ConfigError` for a range if the corpus has no column of dates."""
    if isinstance(run_date, date):
        return [run_date]
    if config.corpus.run_date_column is None:
        raise ConfigError(
            f"--run-date {run_date[0]}..{run_date[1]}: [corpus] run_date_column is missing. Without it every date has "
            "the same rows. Name the column with the date of a row, or measure one date."
        )
    return list_dates(*run_date)


def require(part: T | None, table: str, example: str) -> T:
    """Return a part of the configuration; raise `ConfigError`, with an example, if it is missing."""
    if part is None:
        raise ConfigError(
            f"[{table}]: missing. This job needs it. Below a line [{table}] write, for example, {example}."
        )
    return part


_RUN_DATE = "the run date to measure, or the first and last of a range"
BACKFILL = (
    *cli.CONFIGURED,
    cli.flag("--run-date", required=True, type=parse_run_dates, metavar="DATE[..DATE]", help=_RUN_DATE),
    cli.DRY_RUN,
    cli.flag("--only-missing", action="store_true", help="skip dates that already have a published run"),
)
"""The flags of a job that measures one run date or a range."""


class CorpusJob(NamedTuple):
    """A job that measures and publishes the corpus of a run date. ``measures`` selects, and requires, what it needs."""

    name: str
    measures: Callable[[Config], Measures]
    plan: Callable[[Config], Plan]
    run: Callable[[DataFrame, RunContext], cli.Outcome]


def plan_or_run(job: CorpusJob, arguments: argparse.Namespace) -> cli.Outcome:
    """Read the corpus and check existing tables; then print the plan, or measure the run dates."""
    config = load_config(arguments.config, arguments.overrides)
    if config.mitigation:
        raise ConfigError(
            "[mitigation]: this job measures the rows of [corpus], which the experiment trains on. Run "
            f"{name_command('mitigation_experiment')}, or remove the table."
        )
    read = partial(read_corpus, corpus=config.corpus, measures=job.measures(config))
    plan = job.plan(config) if arguments.dry_run else None
    progress, days = cli.Progress(), list_days(arguments.run_date, config)
    for warning in plan.warnings if plan else ():  # a run prints them at its end
        cli.write_stderr(f"warning: {show_visibly(warning)}\n")
    starts_workers = not (plan or find_session()) and config.models and config.ranking.engine == "blocks"
    with open_tables(job.name, config, progress) as (spark, store), ExitStack() as stack:
        if starts_workers:
            stack.enter_context(starting_workers(spark, "biasspark.ranking.engine"))
        store.check(spark, (*tables_of(job.name), BIAS_RUNS))
        only_missing = vars(arguments).get("only_missing")
        ends = days[0], days[-1]
        published = list_published(spark, store, job.name, config.corpus.name, ends) if plan or only_missing else ()
        skipped = published if only_missing else ()
        if plan:
            read(spark, run_date=days[0])  # which checks the columns
            session = engine_of(spark)
            dates = {"to_measure": [day for day in days if day not in skipped]}
            dates["already_published"] = [day for day in days if day in published]
            summary = {"job": job.name, "status": "planned", "config_hash": config.hash, "engine": session}
            plan_text = describe_plan(plan, config, session, dates)
            return cli.Outcome(summary={**summary, "output": store.root, **dates}, text=plan_text)
        row_dates = cache(partial(list_row_dates, spark, config.corpus))

        def measure(day: date) -> cli.Outcome:
            run = new_run(day, config.corpus.name, job.name)  # first: rows that come later than this are not read
            corpus = read(spark, run_date=day)
            try:
                return job.run(corpus, RunContext(spark, config, store, run, progress))
            except NoRows:
                raise NoRows(describe_no_rows(config.corpus, day, row_dates)) from None

        return measure_dates(job.name, days, skipped, measure, progress, debug=arguments.debug)


def measure_dates(  # noqa: PLR0913 - what is measured, how, and what the user sees of it
    job: str,
    days: Sequence[date],
    skipped: Collection[date],
    measure: Callable[[date], cli.Outcome],
    progress: cli.Progress,
    *,
    debug: bool,
) -> cli.Outcome:
    """Measure run dates in order, and summarize which were published, skipped and failed.

    A single date raises its errors. Of a range, a date that fails does not stop the others, and the exit code is the
    lowest nonzero code of any date. Faults that several dates share, as that a date has no rows, are printed once. With
    `debug` the traceback of each is printed, which may show data.
    """
    wanted = [day for day in days if day not in skipped]
    if len(days) == 1 and wanted:
        return progress.end(measure(*wanted))
    outcomes, codes = [], []
    dates_of_faults: defaultdict[object, list[date]] = defaultdict(list)
    for number, day in enumerate(wanted, 1):
        progress.stage(f"{day}, date {number} of {len(wanted)}")
        start = progress.seconds
        try:
            outcome = measure(day)
        except Exception as error:  # noqa: BLE001 - the other dates are measured whatever has happened
            raise_earlier_interrupt(error)
            known = cli.without_data(error)
            kind = NoRows if isinstance(error, NoRows) else known.messages
            same = dates_of_faults[kind]
            shown = error if debug or not same else BiasSparkError(f"the same fault as on {same[0]}.")
            cli.print_failure(str(day), shown, debug)
            same.append(day)
            failure = {"job": job, "status": "failed", "run_date": day, "exit_code": known.exit_code}
            outcome = cli.Outcome(summary=failure | {"faults": known.messages}, exit_code=known.exit_code)
        outcomes.append(progress.time(outcome, start))
        codes.append(cli.print_outcome(outcomes[-1]))
    failed = [outcome.summary for outcome in outcomes if outcome.summary["status"] == "failed"]
    done = [outcome.summary for outcome in outcomes if outcome.summary["status"] != "failed"]
    gate_failed = [outcome.summary["run_date"] for outcome in outcomes if outcome.exit_code == GATE_FAILED]
    summary = {
        "job": job,
        "status": "failed" if failed else "published" if done else "skipped",
        "from": days[0],
        "to": days[-1],
        "dates": len(days),
        "published": [{key: run[key] for key in ("run_date", "run_id", "n_rows")} for run in done],
        "failed": [{key: run[key] for key in ("run_date", "exit_code")} for run in failed],
        "gate_failed": gate_failed,
        "skipped": [day for day in days if day in skipped],
    }
    no_rows = dates_of_faults[NoRows]
    unpublished = [run for run in failed if run["run_date"] not in no_rows]
    sections = {
        "no rows": list(map(str, no_rows)),
        "not published": [f"{run['run_date']} (exit code {run['exit_code']})" for run in unpublished],
        "published, but the gate failed": list(map(str, gate_failed)),
    }
    counted = ((what, format_count(len(dates), "date"), dates) for what, dates in sections.items() if dates)
    text = "\n".join(f"{what}: {count}, {list_first(dates)}" for what, count, dates in counted)
    exit_code = min(filter(None, codes), default=0)
    return progress.end(cli.Outcome(summary=summary, text=text, exit_code=exit_code))
