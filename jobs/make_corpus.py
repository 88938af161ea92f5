"""Write a synthetic corpus as Parquet, generated on the executors."""

from __future__ import annotations

import argparse
import sys

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from biasspark.cli import Outcome, Progress, make_parser, run_job
from biasspark.errors import ConfigError, has_condition
from biasspark.session import describe, follow_tasks, job_session
from biasspark.synthetic.blocks import check_request, generate
from biasspark.synthetic.corpora import CORPORA

EXAMPLES = """\
examples:
  spark-submit jobs/%(prog)s civil --rows 1800000 --seed 1 --out build/civil
  spark-submit jobs/%(prog)s civil --rows 18000000 --seed 1 --out build/civil --unannotated 0 --text
  spark-submit jobs/%(prog)s shapes --seed 1 --out build/shapes/corpus     # measured by conf/shapes.toml
  spark-submit jobs/%(prog)s heights --seed 1 --out build/heights/corpus   # measured by conf/heights.toml
  spark-submit jobs/%(prog)s madlibs --rows 77000 --seed 1 --out build/madlibs
  spark-submit jobs/%(prog)s imbalanced --rows 127820 --seed 1 --out build/imbalanced
"""


def corpus_parser() -> argparse.ArgumentParser:
    """Make the parser: one subcommand per kind of corpus."""
    parser = make_parser(
        "Write a synthetic corpus as Parquet, the same rows for the same seed on any cluster.", EXAMPLES
    )
    corpora = parser.add_subparsers(dest="corpus", required=True, metavar="CORPUS")
    for name, kind in CORPORA.items():
        flags = corpora.add_parser(name, help=kind.help, formatter_class=parser.formatter_class)
        kind.add_flags(flags)
        flags.add_argument("--files", type=int, metavar="N", help="write at most N files (one per 500,000 rows)")
    return parser


def make_corpus(arguments: argparse.Namespace) -> Outcome:
    """Generate and write the corpus that the flags ask for."""
    request = CORPORA[arguments.corpus].read_flags(arguments)
    check_request(request)
    if arguments.files is not None and arguments.files < 1:
        raise ConfigError(f"files: {arguments.files}. A corpus has at least one file. Ask for 1 or more.")
    progress = Progress()
    progress.stage("starting Spark")
    with job_session("biasspark make_corpus") as spark, follow_tasks(spark, progress.advance):
        progress.stage(f"{arguments.corpus}: {request.rows:,} rows into {arguments.out}")
        corpus = generate(spark, request)
        write_new(spark, corpus.coalesce(arguments.files) if arguments.files else corpus, arguments.out)
    summary = {"corpus": arguments.corpus, "rows": request.rows, "seed": arguments.seed, "path": arguments.out}
    return progress.end(Outcome(summary=summary))


def write_new(spark: SparkSession, corpus: DataFrame, path: str) -> None:
    """Write where nothing is yet; what is there stays untouched."""
    try:
        with describe(spark, f"corpus into {path}"):
            corpus.write.mode("errorifexists").parquet(path)
    except AnalysisException as error:
        if not has_condition(error, "PATH_ALREADY_EXISTS"):
            raise
        raise ConfigError(f"out: {path} exists. A corpus is never overwritten. Name a new folder.") from None


if __name__ == "__main__":
    sys.exit(run_job(make_corpus, corpus_parser()))
