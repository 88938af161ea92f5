"""The job that writes a synthetic corpus as Parquet, generated on the executors."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from biasspark.cli import Outcome, Progress
from biasspark.errors import ConfigError, has_condition
from biasspark.session import describe, follow_tasks, job_session
from biasspark.synthetic.chunks import Request, check_request, generate


def make_corpus(name: str, request: Request, path: str, max_files: int | None = None) -> Outcome:
    """Generate a corpus, write it where nothing is yet, and return what the job prints.

    Raises
    ------
    ConfigError
        If the request has faults, or there is something at the path. Faults are raised before Spark starts.
    """
    check_request(request)
    if max_files is not None and max_files < 1:
        raise ConfigError(f"files: {max_files}. A corpus has at least one file. Ask for 1 or more.")
    progress = Progress()
    progress.stage("starting Spark")
    with job_session("biasspark make_corpus") as spark, follow_tasks(spark, progress.advance):
        progress.stage(f"{name}: {request.rows:,} rows into {path}")
        corpus = generate(spark, request)
        _write_new(spark, corpus.coalesce(max_files) if max_files else corpus, path)
    return progress.end(Outcome(summary={"corpus": name, "rows": request.rows, "seed": request.seed, "path": path}))


def _write_new(spark: SparkSession, corpus: DataFrame, path: str) -> None:
    try:
        with describe(spark, f"corpus into {path}"):
            corpus.write.mode("errorifexists").parquet(path)
    except AnalysisException as error:
        if not has_condition(error, "PATH_ALREADY_EXISTS"):
            raise
        raise ConfigError(f"out: {path} exists. A corpus is never overwritten. Name a new folder.") from None
