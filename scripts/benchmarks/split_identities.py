"""A corpus with ten identities in place of each, with the same number of mentions.

A mention goes to one of ten identities by a hash of the id of the comment. The new corpus has both sets of identities,
each as columns of fractions and as one array of strings, so that all are read from files of one layout.
"""

from __future__ import annotations

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from scripts.benchmarks.task import IDENTITY_NAMES, LABEL, MODELS, THRESHOLD

PARTS = 10
SPLIT_NAMES = tuple(f"{name}_{part}" for name in IDENTITY_NAMES for part in range(PARTS))


def split_identities(corpus: DataFrame) -> DataFrame:
    split = [_split(name, part) for name in IDENTITY_NAMES for part in range(PARTS)]
    named = [F.when(F.col(name) >= THRESHOLD, _part_name(name)) for name in IDENTITY_NAMES]
    whole = [F.when(F.col(name) >= THRESHOLD, F.lit(name)) for name in IDENTITY_NAMES]
    groups = [_known_groups(whole).alias("groups"), _known_groups(named).alias("split_groups")]
    return corpus.select(LABEL, *MODELS, *IDENTITY_NAMES, *split, *groups)


def _bucket(name: str) -> Column:
    return F.pmod(F.xxhash64(F.col("id"), F.lit(name)), F.lit(PARTS))


def _split(name: str, part: int) -> Column:
    fraction = F.when(_bucket(name) == part, F.col(name)).otherwise(0.0)
    return F.when(F.col(name).isNotNull(), fraction).alias(f"{name}_{part}")


def _part_name(name: str) -> Column:
    return F.concat(F.lit(f"{name}_"), _bucket(name).cast("string"))


def _known_groups(groups: list[Column]) -> Column:
    """Return the identities of a row as an array; NULL if it has no annotations."""
    return F.when(F.col(IDENTITY_NAMES[0]).isNotNull(), F.filter(F.array(*groups), lambda group: group.isNotNull()))
