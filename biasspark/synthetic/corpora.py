"""The kinds of corpora that `jobs/make_corpus.py` writes, with their flags."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from biasspark.config import parse_identities
from biasspark.synthetic.chunks import Request
from biasspark.synthetic.civil_rows import CivilRequest
from biasspark.synthetic.imbalanced import ImbalancedRequest
from biasspark.synthetic.madlibs import MadlibsRequest
from biasspark.synthetic.madlibs_wording import IDENTITY_TERMS
from biasspark.synthetic.pinned_balance import PinnedBalanceRequest
from biasspark.synthetic.score_distributions import ROWS_PER_CELL, ScoreDistributionsRequest
from biasspark.synthetic.tall_average_short import TallAverageShortRequest

Flags = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Kind:
    """A kind of corpus: a line of help, the request for the values of its flags, and the flags.

    These are besides ``--seed`` and ``--out``, each with the arguments of `argparse`.
    """

    help: str
    request: Callable[[argparse.Namespace], Request]
    flags: Flags


def read_terms(path: Path) -> tuple[str, ...]:
    """Read a list of terms as the configuration does, or raise ConfigError. The terms of groups count one by one."""
    terms = parse_identities({"terms": {"column": "comment_text", "file": str(path)}}).terms
    assert terms is not None
    return tuple(dict.fromkeys(term for spelt in terms.list.values() for term in spelt))


def _rows(what: str) -> Flags:
    return {"--rows": {"required": True, "type": int, "metavar": "N", "help": f"how many {what}"}}


def _rows_per_cell(cells: str, n_rows: int) -> Flags:
    text = f"scores in each of the {cells} ({n_rows})"
    return {"--rows-per-cell": {"type": int, "default": n_rows, "metavar": "N", "help": text}}


CORPORA = {
    "civil": Kind(
        "comments with 24 identities and two models' scores",
        lambda flags: CivilRequest(flags.rows, flags.seed, flags.unannotated, flags.text),
        {
            **_rows("comments"),
            "--unannotated": {
                "type": float,
                "default": 0.75,
                "metavar": "SHARE",
                "help": "share of comments without annotations (0.75)",
            },
            "--text": {"action": "store_true", "help": "add comment_text"},
        },
    ),
    "shapes": Kind(
        "scores in eight shapes, none to G, that show what each metric sees",
        lambda flags: ScoreDistributionsRequest(flags.seed, flags.rows_per_cell),
        _rows_per_cell("four cells of a shape", 20 * ROWS_PER_CELL),
    ),
    "heights": Kind(
        "scores of tall, average and short people, that show what an AUC within a group does not see",
        lambda flags: TallAverageShortRequest(flags.seed, flags.rows_per_cell),
        _rows_per_cell("six cells", ROWS_PER_CELL),
    ),
    "pinned": Kind(
        "scores of three groups that differ only in the balance of labels, which moves pinned AUC",
        lambda flags: PinnedBalanceRequest(flags.seed, flags.rows_per_cell),
        _rows_per_cell("two cells of the background; a group has twice as many", ROWS_PER_CELL),
    ),
    "madlibs": Kind(
        "templated sentences about 50 identity terms, half of them toxic",
        lambda flags: MadlibsRequest(
            flags.rows, flags.seed, read_terms(flags.terms) if flags.terms else IDENTITY_TERMS
        ),
        {
            **_rows("sentences"),
            "--terms": {
                "type": Path,
                "metavar": "FILE",
                "help": "a list of terms (the fifty of conf/identity_terms.txt)",
            },
        },
    ),
    "imbalanced": Kind(
        "comments in which some identity terms are mostly toxic, to train a biased classifier on",
        lambda flags: ImbalancedRequest(flags.rows, flags.seed, harmless=flags.harmless),
        {
            **_rows("comments"),
            "--harmless": {
                "action": "store_true",
                "help": "only harmless comments, drawn like those of the corpus, but different ones",
            },
        },
    ),
}
"""By the name of the subcommand."""
