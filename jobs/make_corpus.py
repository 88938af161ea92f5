"""Write a synthetic corpus as Parquet, the same rows for the same seed on any cluster."""

from __future__ import annotations

import argparse
import sys

from biasspark.cli import Outcome, make_parser, run_job
from biasspark.synthetic.corpora import CORPORA
from biasspark.workflows.make_corpus import make_corpus

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
    """Return the parser: one subcommand per kind of corpus."""
    parser = make_parser(__doc__ or "", EXAMPLES)
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


if __name__ == "__main__":
    sys.exit(run_job(main, corpus_parser()))
