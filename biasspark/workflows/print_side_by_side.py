"""The job that puts two models of a published night side by side; the corpus is not read."""

from __future__ import annotations

import io
from datetime import date
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from biasspark.cli import Outcome, Progress
from biasspark.config import Config
from biasspark.errors import InputError
from biasspark.report.side_by_side import Request, SideBySide, compare_side_by_side
from biasspark.report.side_by_side_text import FORMATS
from biasspark.report.text_formats import write_out
from biasspark.session import describe, job_session
from biasspark.tables.ledger import find_published
from biasspark.tables.published import describe_absence, read_rows
from biasspark.tables.schemas import BIAS_METRICS
from biasspark.tables.store import Store, open_store, session_settings

JOB = "side_by_side"


class Rendering(NamedTuple):
    """How the models are written: one of `FORMATS`, the decimals, and the file, None for stdout."""

    text_format: str
    digits: int
    path: Path | None


def print_side_by_side(config: Config, run_date: date, request: Request, rendering: Rendering) -> Outcome | str:
    """Read a night, lay the models out, and return what the job prints.

    Returns
    -------
    Outcome or str
        The document alone if it is for another program and goes to stdout: spark-submit joins stderr to it, so there
        must be nothing else, no progress either.
    """
    text_format, digits, path = rendering
    is_document = text_format != "text" and path is None
    progress = Progress(io.StringIO() if is_document else None)
    progress.stage("starting Spark")
    with job_session(f"biasspark {JOB}: {config.corpus.name}", session_settings(config.output)) as spark:
        progress.stage(f"reading {config.corpus.name} of {run_date}")
        compared = read_side_by_side(spark, open_store(config.output), run_date, config.corpus.name, request)
    document = FORMATS[text_format](compared, digits)
    if is_document:
        return document
    if path:
        write_out(path, document)
    summary = {"job": JOB, "run_id": compared.run.run_id, "run_date": run_date, "models": request.models}
    n_rows = {part.name: len(part.rows) for part in compared.slices}
    summary |= {"rows": sum(n_rows.values()), "slices": n_rows, "out": path}
    return progress.end(Outcome(summary=summary, table="" if path else document.rstrip("\n")))


def read_side_by_side(spark: SparkSession, store: Store, run_date: date, corpus: str, request: Request) -> SideBySide:
    """Read two models side by side from the latest published run of a night.

    Raises
    ------
    InputError
        If no run is published, or it lacks a model or slice; with those that there are.
    """
    run = find_published(spark, store, BIAS_METRICS.job, run_date, corpus)
    with describe(spark, "two models side by side"):
        metrics, available = read_rows(spark, store, BIAS_METRICS, [run])
    if not available:
        raise InputError(describe_absence(store, BIAS_METRICS, run))
    return compare_side_by_side(metrics, run, request)
