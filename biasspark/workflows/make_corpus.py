"""Write a synthetic corpus as Parquet, the same rows for the same seed on any cluster."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from biasspark.cli import Command, Flag, Outcome, Progress, add_flags, flag, parse_count
from biasspark.config import parse_identities
from biasspark.errors import ConfigError, has_condition, redact
from biasspark.session import describe, job_session
from biasspark.session.files import local_folder
from biasspark.synthetic import score_cells
from biasspark.synthetic.chunks import Request, check_request, generate
from biasspark.synthetic.civil import CivilRequest
from biasspark.synthetic.imbalanced import ImbalancedRequest
from biasspark.synthetic.madlibs import MadlibsRequest
from biasspark.synthetic.wording import IDENTITY_TERMS
from biasspark.tables.storage_errors import UNUSABLE_PATH, describe_cause


class CorpusKind(NamedTuple):
    """A kind of corpus: its help, its request for parsed flags, and its flags."""

    help: str
    request: Callable[[argparse.Namespace], Request]
    flags: Sequence[Flag]


def read_terms(path: Path) -> tuple[str, ...]:
    """Read a list of terms as the configuration does, with groups split into terms. Raises `ConfigError`."""
    terms = parse_identities({"terms": {"column": "comment_text", "file": str(path)}}).terms
    assert terms is not None
    return tuple(dict.fromkeys(term for group in terms.list.values() for term in group))


def _rows(what: str) -> Flag:
    return flag("--rows", type=int, metavar="N", help=f"how many {what}", required=True)


def _rows_per_cell(cells: str, n_rows: int) -> Flag:
    text = f"scores in each of the {cells} ({n_rows})"
    return flag("--rows-per-cell", type=int, metavar="N", help=text, default=n_rows)


_SHARE = "share of comments without annotations (0.75)"
_HARMLESS = "only harmless comments, drawn like those of the corpus, but different ones"
_TERMS = "a list of terms (the fifty of conf/identity_terms.txt)"
CORPORA = {
    "civil": CorpusKind(
        "comments with 24 identities and two models' scores",
        lambda flags: CivilRequest(flags.rows, flags.seed, flags.unannotated, flags.text),
        (
            _rows("comments"),
            flag("--unannotated", type=float, metavar="SHARE", help=_SHARE, default=0.75),
            flag("--text", action="store_true", help="add comment_text", default=False),
        ),
    ),
    "shapes": CorpusKind(
        "scores in eight shapes, none to G, that show what each metric sees",
        lambda flags: score_cells.ScoreDistributionsRequest(flags.seed, flags.rows_per_cell),
        (_rows_per_cell("four cells of a shape", 20 * score_cells.ROWS_PER_CELL),),
    ),
    "heights": CorpusKind(
        "scores of tall, average and short people, that show what an AUC within a group misses",
        lambda flags: score_cells.TallAverageShortRequest(flags.seed, flags.rows_per_cell),
        (_rows_per_cell("six cells", score_cells.ROWS_PER_CELL),),
    ),
    "pinned": CorpusKind(
        "scores of three groups that differ only in the balance of labels, which moves pinned AUC",
        lambda flags: score_cells.PinnedBalanceRequest(flags.seed, flags.rows_per_cell),
        (_rows_per_cell("two cells of the background; a group has twice as many", score_cells.ROWS_PER_CELL),),
    ),
    "madlibs": CorpusKind(
        "templated sentences about 50 identity terms, half of them toxic",
        lambda flags: MadlibsRequest(
            flags.rows, flags.seed, read_terms(flags.terms) if flags.terms else IDENTITY_TERMS
        ),
        (_rows("sentences"), flag("--terms", type=Path, metavar="FILE", help=_TERMS, default=None)),
    ),
    "imbalanced": CorpusKind(
        "comments in which some identity terms are mostly toxic, to train a biased classifier on",
        lambda flags: ImbalancedRequest(flags.rows, flags.seed, harmless=flags.harmless),
        (_rows("comments"), flag("--harmless", action="store_true", help=_HARMLESS, default=False)),
    ),
}

FLAGS = (
    flag("--seed", required=True, type=int, metavar="S", help="a whole number from 0"),
    flag("--out", required=True, metavar="DIR", help="a folder that does not exist yet, or a URI"),
    flag("--files", type=parse_count, metavar="N", help="write at most N files (one per 500,000 rows)", default=None),
)

EXAMPLES = """\
examples:
  %(prog)s civil --rows 1800000 --seed 1 --out build/civil
  %(prog)s civil --rows 18000000 --seed 1 --out build/civil --unannotated 0 --text
  %(prog)s shapes --seed 1 --out build/shapes/corpus     # measured by conf/shapes.toml
  %(prog)s heights --seed 1 --out build/heights/corpus   # measured by conf/heights.toml
  %(prog)s pinned --seed 1 --out build/pinned/corpus     # measured by conf/pinned.toml
  %(prog)s madlibs --rows 77000 --seed 1 --out build/madlibs
  %(prog)s imbalanced --rows 127820 --seed 1 --out build/imbalanced

The flags of a corpus follow its name: see %(prog)s civil --help.
"""


class _CorpusCommand(Command):
    """A command with one subcommand per kind of corpus."""

    def parser(self, prog: str | None = None) -> argparse.ArgumentParser:
        parser = super().parser(prog)
        corpora = parser.add_subparsers(dest="corpus", required=True, metavar="CORPUS")
        for name, kind in CORPORA.items():
            # Without defaults, which would replace the flags of the session before the name.
            flags = corpora.add_parser(name, help=kind.help, allow_abbrev=False, argument_default=argparse.SUPPRESS)
            add_flags(flags, (*kind.flags, *FLAGS))
        return parser


def main(arguments: argparse.Namespace) -> Outcome:
    """Check the request before Spark starts, generate the corpus, and write it to a new path."""
    name, path, max_files = arguments.corpus, arguments.out, arguments.files
    request = CORPORA[name].request(arguments)
    check_request(request)
    progress, shown = Progress(), redact(path)
    exists = f"--out: {shown} exists. A corpus is never overwritten. Name a new folder."
    # An engine would take a file for the parent of its files.
    if (folder := local_folder(path)) and os.path.isfile(folder):
        raise ConfigError(exists)
    progress.stage("starting the engine")
    with progress.reminding(), job_session("biasspark make_corpus") as spark:
        progress.stage(f"{name}: {request.rows:,} rows into {shown}")
        corpus = generate(spark, request)
        try:
            with describe(spark, f"corpus into {shown}"):
                (corpus.coalesce(max_files) if max_files else corpus).write.mode("error").parquet(path)
        except Exception as error:
            if has_condition(error, "PATH_ALREADY_EXISTS") or "path already exists" in str(error):
                raise ConfigError(exists) from None
            if UNUSABLE_PATH.search(cause := describe_cause(error)):
                raise ConfigError(f"--out: {shown} could not be written, {cause}. Name another folder.") from error
            raise
    return progress.end(Outcome(summary={"corpus": name, "rows": request.rows, "seed": arguments.seed, "path": shown}))


COMMAND = _CorpusCommand(__doc__, EXAMPLES, (), main)
