"""Rows read and rejected, counted in Spark SQL."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.columns import SCORE_REASONS
from biasspark.corpus.codebook import Codebook
from biasspark.corpus.states import field, single_states, states
from biasspark.corpus.values import combine


def count_rows(examples: DataFrame, codebook: Codebook, further: Sequence[Column] = ()) -> DataFrame:
    """Return one row: `counts`, in the order of `Codebook.tallies`, and further aggregates."""
    counts = F.array(*(F.count(F.when(column, F.lit(1))) for column in _counted(codebook)))
    return examples.agg(counts.alias("counts"), *further)


def counts_for(models: Sequence[str], codebook: Codebook) -> Column:
    """Return whether a row of EXAMPLES counts for each of some models; of none, whether it has a label."""
    scores = [field("score_reason", codebook.models.index(name), codebook) for name in models]
    return reduce(Column.__and__, (reason == 0 for reason in [field("row_reason", 0, codebook), *scores]))


def count_positives(models: Sequence[str], codebook: Codebook) -> Column:
    """Return how many positive rows of EXAMPLES count for each of some models: an aggregate."""
    return F.count_if(counts_for(models, codebook) & (field("label", 0, codebook) == 1))


def count_sides(codebook: Codebook) -> Column:
    """Return for every single identity how many usable rows are in it, and how many outside: an aggregate."""
    usable = _is_usable(codebook)
    _, *members = single_states(codebook)
    sides = [(F.count_if(usable & state), F.count_if(usable & ~state)) for state in members]
    return F.array(*(F.struct(inside.alias("inside"), outside.alias("outside")) for inside, outside in sides))


def list_empty_slices(codebook: Codebook) -> Column:
    """Return the names of the slices that no usable row is in: an aggregate."""
    inside = [F.lit(True), *(field("slice", number, codebook) == 1 for number in range(1, len(codebook.slices)))]
    counts = [F.count_if(_is_usable(codebook) & each) for each in inside]
    empty = [F.when(count == 0, F.lit(name)) for name, count in zip(codebook.slices, counts, strict=True)]
    return F.array_compact(F.array(*empty))


def _is_usable(codebook: Codebook) -> Column:
    """Return whether a row of EXAMPLES counts for any model; where there are none, whether it has a label."""
    subsets: list[tuple[str, ...]] = [(name,) for name in codebook.models] or [()]
    return combine(Column.__or__, [counts_for(subset, codebook) for subset in subsets])


def _counted(codebook: Codebook) -> list[Column]:
    """Return the condition that each tally counts, in their order."""
    row_reason = field("row_reason", 0, codebook)
    stays = row_reason == 0
    reasons = [field("score_reason", n, codebook) for n in range(len(codebook.models))]
    fails_all = reduce(Column.__and__, (reason > 0 for reason in reasons)) if reasons else F.lit(False)
    by_number = states(codebook)
    conditions = {
        ("rows", 0): F.lit(True),
        ("rejected", 0): ~stays | fails_all,
        ("annotation", 0): stays & (field("annotation", 0, codebook) == 1),
    }
    for what, number in codebook.tallies:
        if what == "row_reason":
            conditions[what, number] = row_reason == number
        elif what == "score_reason":
            model, code = divmod(number, len(SCORE_REASONS))
            conditions[what, number] = stays & (reasons[model] == code + 1)
        elif what == "unreadable":
            conditions[what, number] = stays & (field(what, number, codebook) == 1)
        elif what == "pair":
            conditions[what, number] = by_number[number]
    return [conditions[tally] for tally in codebook.tallies]
