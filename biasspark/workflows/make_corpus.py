"""Write a synthetic corpus as Parquet, the same rows for the same seed on any cluster."""

from __future__ import annotations

import argparse

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from biasspark.cli import Command, Outcome, Progress, make_parser
from biasspark.errors import ConfigError, has_condition
from biasspark.session import describe, follow_tasks, job_session
from biasspark.synthetic.chunks import Request, check_request, generate
from biasspark.synthetic.corpora import CORPORA


def make_corpus(name: str, request: Request, path: str, max_files: int | None = None) -> Outcome:
    """Generate a corpus, write it where nothing is yet, and return what the job prints.

    Raises `ConfigError` before Spark starts if the request has faults, and then if there is something at the path.
    """
    check_request(request)
    if max_files is not None and max_files < 1:
        raise ConfigError(f"files: {max_files}. A corpus has at least one file. Ask for 1 or more.")
    progress = Progress()
    progress.stage("starting the engine")
    with progress.reminding(), job_session("biasspark make_corpus") as spark, follow_tasks(spark, progress.advance):
        progress.stage(f"{name}: {request.rows:,} rows into {path}")
        corpus = generate(spark, request)
        _write_new(spark, corpus.coalesce(max_files) if max_files else corpus, path)
    return progress.end(Outcome(summary={"corpus": name, "rows": request.rows, "seed": request.seed, "path": path}))


def _write_new(spark: SparkSession, corpus: DataFrame, path: str) -> None:
    try:
        with describe(spark, f"corpus into {path}"):
            corpus.write.mode("error").parquet(path)
    except AnalysisException as error:
        if not (has_condition(error, "PATH_ALREADY_EXISTS") or "path already exists" in str(error)):
            raise
        raise ConfigError(f"out: {path} exists. A corpus is never overwritten. Name a new folder.") from None


# ---- the command line

EXAMPLES = """\
examples:
  %(prog)s civil --rows 1800000 --seed 1 --out build/civil
  %(prog)s civil --rows 18000000 --seed 1 --out build/civil --unannotated 0 --text
  %(prog)s shapes --seed 1 --out build/shapes/corpus     # measured by conf/shapes.toml
  %(prog)s heights --seed 1 --out build/heights/corpus   # measured by conf/heights.toml
  %(prog)s pinned --seed 1 --out build/pinned/corpus     # measured by conf/pinned.toml
  %(prog)s madlibs --rows 77000 --seed 1 --out build/madlibs
  %(prog)s imbalanced --rows 127820 --seed 1 --out build/imbalanced
"""


def corpus_parser(prog: str | None = None) -> argparse.ArgumentParser:
    """Return the parser: one subcommand per kind of corpus."""
    parser = make_parser(__doc__, EXAMPLES, prog)
    corpora = parser.add_subparsers(dest="corpus", required=True, metavar="CORPUS")
    for name, kind in CORPORA.items():
        flags = corpora.add_parser(name, help=kind.help, formatter_class=parser.formatter_class)
        for flag, arguments in kind.flags.items():
            flags.add_argument(flag, **arguments)
        flags.add_argument("--seed", required=True, type=int, metavar="S", help="a whole number from 0")
        flags.add_argument("--out", required=True, metavar="DIR", help="a folder that does not exist yet, or a URI")
        flags.add_argument("--files", type=int, metavar="N", help="write at most N files (one per 500,000 rows)")
    return parser


def main(arguments: argparse.Namespace) -> Outcome:
    """Write the corpus that the flags ask for."""
    request = CORPORA[arguments.corpus].request(arguments)
    return make_corpus(arguments.corpus, request, arguments.out, arguments.files)


COMMAND = Command(corpus_parser, main)
