"""How the suite grows: with rows, identities, models and slices, each while the others stay; what one session compares.

A case is named after what grows and how much of it there is, so that exponents can be read off the names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby

import numpy as np
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.synthetic.civil_shape import IDENTITY_NAMES, MODELS
from scripts.benchmarks.suite import suite
from scripts.benchmarks.task import THRESHOLD

Case = Callable[[], DataFrame]

FRACTIONS = (16, 4, 1)
SLICES, MODEL_COUNTS, PREDICATES_EACH = (1, 4, 16), (1, 2, 4, 8), 10


def growth_cases(corpus: DataFrame) -> Mapping[str, Case]:
    """Return the cases by name: all else is measured on the smallest part of the corpus.

    Notes
    -----
    Identities are predicates, so that 240 of them, each a tenth of the mentions of one of 24, need no other corpus. A
    model more is a mixture of both. A slice has a quarter of the rows.
    """
    parts = [_part(corpus, fraction) for fraction in FRACTIONS]
    few, usual = parts[0], list(IDENTITY_NAMES)
    models = {f"mixture_{place}": _mixture(place / 7) for place in range(max(MODEL_COUNTS))}
    mixed = few.withColumns(models)
    slices = {f"quarter_{place}": f"pmod(id + {place}, 16) < 4" for place in range(max(SLICES))}
    mentions = {name: f"`{name}` >= {THRESHOLD}" for name in IDENTITY_NAMES}
    tenths = {
        f"{name}_{part}": f"{mention} AND pmod(id, {PREDICATES_EACH}) = {part}"
        for name, mention in mentions.items()
        for part in range(PREDICATES_EACH)
    }
    identities = [dict(list(mentions.items())[:1]), mentions, tenths]
    return {
        **{f"rows: {part.count()}": lambda part=part: suite(part, columns=usual) for part in parts},
        **{
            f"identities: {len(predicates)}": lambda predicates=predicates: suite(few, predicates=predicates)
            for predicates in identities
        },
        **{
            f"models: {count}": lambda count=count: suite(mixed, models=list(models)[:count], columns=usual)
            for count in MODEL_COUNTS
        },
        **{
            f"slices: {count}": lambda count=count: suite(few, slices=dict(list(slices.items())[:count]), columns=usual)
            for count in SLICES
        },
    }


def exponents(medians: Mapping[str, float]) -> dict[str, float]:
    """Return with which power of each quantity the time grows: the slope of the logarithms, by least squares."""
    sized = [(name.partition(": "), seconds) for name, seconds in medians.items()]
    found = {}
    for what, own in groupby(sized, key=lambda case: case[0][0]):
        sizes, seconds = zip(*((int(size), seconds) for (_, _, size), seconds in own), strict=True)
        found[what] = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    return found


def _part(corpus: DataFrame, fraction: int) -> DataFrame:
    """Return the first so many files of a corpus, whose files are about equally large."""
    files = sorted(corpus.inputFiles())
    return corpus.sparkSession.read.parquet(*files[: -(-len(files) // fraction)])


def _mixture(share: float) -> Column:
    first, second = MODELS
    return F.col(first) * (1 - share) + F.col(second) * share
