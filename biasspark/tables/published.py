"""What readers see of one night and corpus, without the views: the rows of the run that was published last."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pyspark.sql.functions as F
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from biasspark.config import redact, show_value
from biasspark.errors import InputError, has_condition
from biasspark.session import analyse
from biasspark.tables.runs import Run, from_micros
from biasspark.tables.schemas import CORPUS, RUN_DATE, Table
from biasspark.tables.store import Store

MOST_LISTED = 5


def find_published(spark: SparkSession, store: Store, job: str, run_date: date, corpus: str) -> Run:
    """Return the latest published run of a job for one night and corpus: the one that the views show.

    Raises
    ------
    InputError
        If there is none, naming the nights and corpora that there are.

    Notes
    -----
    One job over the night's ledger; two more over the whole of it where nothing is found.
    """
    own = store.read_ledger(spark, run_date).where((F.col("job") == F.lit(job)) & (F.col("corpus") == F.lit(corpus)))
    latest = F.max(F.struct("published_at", "run_id", F.unix_micros("started_at").alias("started"))).alias("latest")
    (found,) = own.agg(latest).select("latest.run_id", "latest.started").collect()
    if found["run_id"] is None:
        raise InputError(_describe_absence(spark, store, job, run_date, corpus))
    return Run(run_date, corpus, job, found["run_id"], from_micros(found["started"]))


def read_published(spark: SparkSession, store: Store, table: Table, run: Run) -> DataFrame:
    """Return the rows of a table that a published run has, with the columns of the contract.

    Raises
    ------
    InputError
        If the ledger has the run and its files are gone.
    """
    try:
        return analyse(store.read(spark, table, run))
    except AnalysisException as error:
        if not has_condition(error, "PATH_NOT_FOUND"):
            raise
        raise InputError(say_gone(store, table, run)) from None


def read_those_left(
    spark: SparkSession, store: Store, table: Table, runs: Sequence[Run]
) -> tuple[DataFrame | None, list[Run]]:
    """Return the rows of a table that some published runs have, None where there are no files, and the runs left.

    Notes
    -----
    One scan. Only where files of a run are gone is every run looked for.
    """
    if not runs:
        return None, []
    try:
        return analyse(store.read_runs(spark, table, runs)), list(runs)
    except AnalysisException as error:
        if not has_condition(error, "PATH_NOT_FOUND"):
            raise
        left = [run for run in runs if _is_left(spark, store, table, run)]
        return (store.read_runs(spark, table, left) if left else None), left


def _is_left(spark: SparkSession, store: Store, table: Table, run: Run) -> bool:
    """Say whether files of a published run are there; unlike a list of folders, Connect tells that, too."""
    try:
        read_published(spark, store, table, run)
    except InputError:
        return False
    return True


def say_gone(store: Store, table: Table, run: Run) -> str:
    """Say that the ledger has a run and its files are gone."""
    place = redact(store.place(table, run))
    return f"{place}: its files are gone. The ledger has the run. Restore them, or measure the night again."


def _describe_absence(spark: SparkSession, store: Store, job: str, run_date: date, corpus: str) -> str:
    """Say that nothing is published, and what is: the last nights of the corpus, and other corpora of the night."""
    ledger = store.read_ledger(spark, None).where(F.col("job") == F.lit(job))
    nights = ledger.where(F.col("corpus") == F.lit(corpus)).select(RUN_DATE.name).distinct()
    corpora = ledger.where(F.col(RUN_DATE.name) == F.lit(run_date)).select(CORPUS.name).distinct()
    last = [row[0].isoformat() for row in nights.orderBy(F.desc(RUN_DATE.name)).limit(MOST_LISTED).collect()]
    others = [show_value(row[0]) for row in corpora.orderBy(CORPUS.name).limit(MOST_LISTED).collect()]
    return (
        f"run_date: {run_date}, corpus {show_value(corpus)}: no run of {job} is published in {store.root}. Its last "
        f"nights there: {', '.join(last) or 'none'}. Corpora of this night: {', '.join(others) or 'none'}. Name one of "
        f"these, or run jobs/{job}.py first."
    )
