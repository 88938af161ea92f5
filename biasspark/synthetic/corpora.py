"""The corpora that `jobs/make_corpus.py` writes: of each its flags, and what they ask for."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from biasspark.config import parse_identities
from biasspark.synthetic.civil import civil_corpus
from biasspark.synthetic.civil_rows import CivilShape, check_shape
from biasspark.synthetic.heights import HeightsRequest, check_heights, heights_corpus
from biasspark.synthetic.imbalanced import ImbalancedRequest, check_imbalanced, generate_comments
from biasspark.synthetic.madlibs import MadlibsRequest, check_madlibs, madlibs_corpus
from biasspark.synthetic.madlibs_wording import IDENTITY_TERMS
from biasspark.synthetic.shapes import ROWS_PER_CELL, ShapesRequest, check_shapes, score_shapes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Order:
    """A corpus that was asked for, all flags checked: how many rows, and how they are made once there is a session."""

    rows: int
    generate: Callable[[SparkSession], DataFrame]


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
        Checks them; raises ConfigError with all faults.
    """

    help: str
    add_flags: Callable[[argparse.ArgumentParser], None]
    read_flags: Callable[[argparse.Namespace], Order]


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


def _order_civil(flags: argparse.Namespace) -> Order:
    check_shape(CivilShape(flags.rows, flags.seed, flags.unannotated, flags.text))
    generate = partial(civil_corpus, rows=flags.rows, seed=flags.seed, unannotated=flags.unannotated, text=flags.text)
    return Order(flags.rows, generate)


def _add_cell_flags(parser: argparse.ArgumentParser, cells: str) -> None:
    parser.add_argument(
        "--rows-per-cell",
        type=int,
        default=ROWS_PER_CELL,
        metavar="N",
        help=f"scores in each {cells} ({ROWS_PER_CELL})",
    )
    _add_seed_and_place(parser)


def _order_shapes(flags: argparse.Namespace) -> Order:
    request = ShapesRequest(flags.seed, flags.rows_per_cell)
    check_shapes(request)
    return Order(request.rows, partial(score_shapes, seed=flags.seed, rows_per_cell=flags.rows_per_cell))


def _order_heights(flags: argparse.Namespace) -> Order:
    request = HeightsRequest(flags.seed, flags.rows_per_cell)
    check_heights(request)
    return Order(request.rows, partial(heights_corpus, seed=flags.seed, rows_per_cell=flags.rows_per_cell))


def _add_madlibs_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", required=True, type=int, metavar="N", help="how many sentences")
    _add_seed_and_place(parser)
    parser.add_argument(
        "--terms", type=Path, metavar="FILE", help="a list of terms (the fifty of conf/identity_terms.txt)"
    )


def _order_madlibs(flags: argparse.Namespace) -> Order:
    terms = IDENTITY_TERMS if flags.terms is None else read_terms(flags.terms)
    check_madlibs(MadlibsRequest(flags.rows, flags.seed, terms))
    return Order(flags.rows, partial(madlibs_corpus, rows=flags.rows, seed=flags.seed, terms=terms))


def _add_imbalanced_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", required=True, type=int, metavar="N", help="how many comments")
    _add_seed_and_place(parser)
    parser.add_argument(
        "--harmless",
        action="store_true",
        help="only harmless comments, drawn like those of the corpus, but different ones",
    )


def _order_imbalanced(flags: argparse.Namespace) -> Order:
    request = ImbalancedRequest(flags.rows, flags.seed, harmless=flags.harmless)
    check_imbalanced(request)
    return Order(flags.rows, partial(generate_comments, request=request))


def read_terms(path: Path) -> tuple[str, ...]:
    """Read a list of terms as the configuration does; the terms of its groups count one by one.

    Raises
    ------
    ConfigError
        With every fault, one a line.
    """
    terms = parse_identities({"terms": {"column": "comment_text", "file": str(path)}}).terms
    assert terms is not None
    return tuple(dict.fromkeys(term for _, spelt in terms.terms for term in spelt))


CORPORA = {
    "civil": Kind("comments with 24 identities and two models' scores", _add_civil_flags, _order_civil),
    "shapes": Kind(
        "scores in eight shapes, none to G, that show what each metric sees",
        partial(_add_cell_flags, cells="of the four cells of a shape"),
        _order_shapes,
    ),
    "heights": Kind(
        "scores of tall, average and short people, that show what an AUC within a group does not see",
        partial(_add_cell_flags, cells="of the six cells"),
        _order_heights,
    ),
    "madlibs": Kind(
        "templated sentences about 50 identity terms, half of them toxic", _add_madlibs_flags, _order_madlibs
    ),
    "imbalanced": Kind(
        "comments in which some identity terms are mostly toxic, to train a biased classifier on",
        _add_imbalanced_flags,
        _order_imbalanced,
    ),
}
"""By the name of the subcommand."""
