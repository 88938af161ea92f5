"""The corpora that `jobs/make_corpus.py` writes: the flags of each, and what they ask for."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from biasspark.config import parse_identities
from biasspark.synthetic.blocks import Request
from biasspark.synthetic.civil_rows import CivilShape
from biasspark.synthetic.heights import HeightsRequest
from biasspark.synthetic.imbalanced import ImbalancedRequest
from biasspark.synthetic.madlibs import MadlibsRequest
from biasspark.synthetic.madlibs_wording import IDENTITY_TERMS
from biasspark.synthetic.shapes import ROWS_PER_CELL, ShapesRequest


@dataclass(frozen=True)
class Kind:
    """A kind of corpus as the command line knows it.

    Attributes
    ----------
    help
        A line that says what it is.
    add_flags
        Adds its flags, `--seed` and `--out` among them, to its parser.
    read_flags
        Gives what they ask for.
    """

    help: str
    add_flags: Callable[[argparse.ArgumentParser], None]
    read_flags: Callable[[argparse.Namespace], Request]


def _add_seed_and_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", required=True, type=int, metavar="S", help="a whole number from 0")
    parser.add_argument("--out", required=True, metavar="DIR", help="a folder that does not exist yet, or a URI")


def _add_civil_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", required=True, type=int, metavar="N", help="how many comments")
    _add_seed_and_place(parser)
    parser.add_argument(
        "--unannotated", type=float, default=0.75, metavar="SHARE", help="of comments without annotations (0.75)"
    )
    parser.add_argument("--text", action="store_true", help="add comment_text")


def _read_civil_flags(flags: argparse.Namespace) -> Request:
    return CivilShape(flags.rows, flags.seed, flags.unannotated, flags.text)


def _add_cell_flags(parser: argparse.ArgumentParser, cells: str) -> None:
    parser.add_argument(
        "--rows-per-cell",
        type=int,
        default=ROWS_PER_CELL,
        metavar="N",
        help=f"scores in each {cells} ({ROWS_PER_CELL})",
    )
    _add_seed_and_place(parser)


def _read_shapes_flags(flags: argparse.Namespace) -> Request:
    return ShapesRequest(flags.seed, flags.rows_per_cell)


def _read_heights_flags(flags: argparse.Namespace) -> Request:
    return HeightsRequest(flags.seed, flags.rows_per_cell)


def _add_madlibs_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", required=True, type=int, metavar="N", help="how many sentences")
    _add_seed_and_place(parser)
    parser.add_argument(
        "--terms", type=Path, metavar="FILE", help="a list of terms (the fifty of conf/identity_terms.txt)"
    )


def _read_madlibs_flags(flags: argparse.Namespace) -> Request:
    return MadlibsRequest(flags.rows, flags.seed, IDENTITY_TERMS if flags.terms is None else read_terms(flags.terms))


def _add_imbalanced_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", required=True, type=int, metavar="N", help="how many comments")
    _add_seed_and_place(parser)
    parser.add_argument(
        "--harmless",
        action="store_true",
        help="only harmless comments, drawn like those of the corpus, but different ones",
    )


def _read_imbalanced_flags(flags: argparse.Namespace) -> Request:
    return ImbalancedRequest(flags.rows, flags.seed, harmless=flags.harmless)


def read_terms(path: Path) -> tuple[str, ...]:
    """Read a list of terms as the configuration does; the terms of its groups count one by one.

    Raises
    ------
    ConfigError
        With every fault, one per line.
    """
    terms = parse_identities({"terms": {"column": "comment_text", "file": str(path)}}).terms
    assert terms is not None
    return tuple(dict.fromkeys(term for _, spelt in terms.terms for term in spelt))


CORPORA = {
    "civil": Kind("comments with 24 identities and two models' scores", _add_civil_flags, _read_civil_flags),
    "shapes": Kind(
        "scores in eight shapes, none to G, that show what each metric sees",
        partial(_add_cell_flags, cells="of the four cells of a shape"),
        _read_shapes_flags,
    ),
    "heights": Kind(
        "scores of tall, average and short people, that show what an AUC within a group does not see",
        partial(_add_cell_flags, cells="of the six cells"),
        _read_heights_flags,
    ),
    "madlibs": Kind(
        "templated sentences about 50 identity terms, half of them toxic", _add_madlibs_flags, _read_madlibs_flags
    ),
    "imbalanced": Kind(
        "comments in which some identity terms are mostly toxic, to train a biased classifier on",
        _add_imbalanced_flags,
        _read_imbalanced_flags,
    ),
}
"""By the name of the subcommand."""
