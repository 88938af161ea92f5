"""EXAMPLES in Spark SQL: its bit fields, memberships, and counts of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame

from biasspark.arrays import Ints
from biasspark.columns import MODEL, SCORE_REASONS
from biasspark.corpus.encoding import NO_WORD_LETTER, Encoding, Source
from biasspark.corpus.values import combine


def field(what: str, number: int, encoding: Encoding) -> Column:
    """Return the value of a bit field of EXAMPLES: see `Encoding.fields`."""
    item = encoding.fields[what, number]
    return F.shiftright(encoding.word_columns[item.word], item.shift).bitwiseAND(F.lit((1 << item.width) - 1))


def name_of(number: Column, names: tuple[str, ...]) -> Column:
    """Return the name of a number."""
    return F.element_at(F.array(*map(F.lit, names)), number + 1)


def each_present(rows: DataFrame, name: str, values: Sequence[Column]) -> DataFrame:
    """Return each row once for every value that is not NULL, with that value in a new column."""
    # Filtered after the array is exploded: otherwise Spark would infer a filter for non-empty arrays, and compute the
    # elements a second time for it, in interpreted code.
    return rows.select("*", F.explode(F.array(*values)).alias(name)).where(F.col(name).isNotNull())


def scored_by(number: int, encoding: Encoding, *fields: Column) -> Column:
    """Return a structure of a model's number and its score, and of more fields; NULL on rows that it does not score."""
    # The score is nullable as well: in an array, DataFusion takes structures with a nullable and with a non-nullable
    # field for two types, and panics.
    is_scored = field("score_reason", number, encoding) == 0
    score = F.when(is_scored, F.col(encoding.score_columns[number]) + F.lit(0.0))
    return F.when(is_scored, F.struct(F.lit(number).alias(MODEL), score.alias("score"), *fields))


def states(encoding: Encoding) -> list[Column]:
    """Return for every identity by number whether a row of EXAMPLES is in it: BOOLEAN, NULL if unknown."""
    singles = single_states(encoding)
    # Spark's AND is three-valued: a crossed pair is out if one side is out, else unknown if one is unknown.
    return singles + [singles[a] & singles[b] for a, b in encoding.pairs]


def single_states(encoding: Encoding) -> list[Column]:
    """Return `states` without crossed pairs; no row is in ``(overall)``, which has no subgroup."""
    singles = [F.lit(False)]
    for index, source in enumerate(encoding.sources):
        known = _source_states(index, source, encoding)
        singles += known if source.nullable else [F.coalesce(state, F.lit(False)) for state in known]
    return singles


def _source_states(index: int, source: Source, encoding: Encoding) -> list[Column]:
    if source.kind == "flags":
        return [_flag_state(encoding.number[name], encoding) for name in source.identities]
    values = F.col(encoding.value_columns[index])
    if source.kind == "terms":
        return [_any_is(values, pattern) for pattern in source.values]
    if source.kind == "array":
        # Null elements are ignored; they would make array_contains NULL if the value is absent.
        return [F.array_contains(F.array_compact(values), F.lit(value)) for value in source.values]
    return [values == F.lit(value) for value in source.values]


def _any_is(terms: Column, pattern: str) -> Column:
    return F.exists(terms, lambda term: term.rlike(rf"(?iu)^{pattern}({NO_WORD_LETTER}|\z)"))


def _flag_state(number: int, encoding: Encoding) -> Column:
    member = field("member", number, encoding) == 1
    if ("unknown", number) not in encoding.fields:
        return member
    return F.when(field("unknown", number, encoding) == 0, member)


def count_rows(examples: DataFrame, encoding: Encoding, more: Sequence[Column] = ()) -> DataFrame:
    """Return one row: `counts`, in the order of `Encoding.count_keys`, and more aggregates."""
    counts = F.array(*(F.count(F.when(condition, F.lit(1))) for condition in _conditions(encoding)))
    return examples.agg(counts.alias("counts"), *more)


def counts_for(models: Sequence[str], encoding: Encoding) -> Column:
    """Return whether a row of EXAMPLES counts for each of the models; without models, whether it has a label."""
    scores = [field("score_reason", encoding.models.index(name), encoding) for name in models]
    return combine(Column.__and__, [reason == 0 for reason in [field("row_reason", 0, encoding), *scores]])


def count_sides(encoding: Encoding) -> Column:
    """Return the usable rows in and outside of every identity except crossed pairs: an aggregate."""
    usable = _is_usable(encoding)
    _, *members = single_states(encoding)
    return F.array(*(F.array(F.count_if(usable & state), F.count_if(usable & ~state)) for state in members))


def count_slices(encoding: Encoding, *models: str) -> Column:
    """Return the negatives and positives of every slice that count for some models, or for any: an aggregate."""
    inside = [F.lit(True), *(field("slice", number, encoding) == 1 for number in range(1, len(encoding.slices)))]
    usable = counts_for(models, encoding) if models else _is_usable(encoding)
    return _count_by_label([usable & each for each in inside], encoding)


def list_score_bounds(encoding: Encoding) -> Column:
    """Return the lowest and the highest score of each model, on the rows that count for it: an aggregate."""
    scores = [
        F.when(counts_for((model,), encoding), F.col(name) + F.lit(0.0))  # -0.0 becomes 0.0
        for model, name in zip(encoding.models, encoding.score_columns, strict=True)
    ]
    return F.array(*(F.array(F.min(score), F.max(score)) for score in scores))


def count_labels(examples: DataFrame, encoding: Encoding) -> Ints:
    """Return `biasspark.ranking.counts.Counts.labels`. Runs one Spark action, which scans the corpus."""
    n_bins = encoding.n_length_bins or 0
    _, *members = single_states(encoding)
    length_bin = field("length_bin", 0, encoding) if n_bins else F.lit(0)
    labeled = examples.where(field("row_reason", 0, encoding) == 0).groupBy(length_bin.cast("int").alias("length_bin"))
    labels = np.zeros((encoding.first_pair, n_bins + 1, 2), np.int64)
    for row in labeled.agg(_count_by_label([F.lit(True), *members], encoding).alias("labels")).collect():
        labels[:, row["length_bin"]] = row["labels"]
    return labels


def _count_by_label(conditions: Sequence[Column], encoding: Encoding) -> Column:
    """Return the negatives and positives for which each condition is true: an aggregate."""
    is_positive = field("label", 0, encoding) == 1
    return F.array(*(F.array(F.count_if(each & ~is_positive), F.count_if(each & is_positive)) for each in conditions))


def _is_usable(encoding: Encoding) -> Column:
    """Return whether a row of EXAMPLES counts for any model; without models, whether it has a label."""
    subsets: list[tuple[str, ...]] = [(name,) for name in encoding.models] or [()]
    return combine(Column.__or__, [counts_for(subset, encoding) for subset in subsets])


def _conditions(encoding: Encoding) -> list[Column]:
    """Return the condition on a row of each count, in the order of `Encoding.count_keys`."""
    row_reason, by_number = field("row_reason", 0, encoding), states(encoding)
    stays = row_reason == 0
    reasons = [field("score_reason", n, encoding) for n in range(len(encoding.models))]

    conditions: dict[str, Callable[[int], Column]] = {
        "rows": lambda _: F.lit(True),
        "rejected": lambda _: ~_is_usable(encoding),
        "row_reason": lambda code: row_reason == code,
        "score_reason": lambda n: stays & (reasons[n // len(SCORE_REASONS)] == n % len(SCORE_REASONS) + 1),
        "scored_label": lambda model: stays & (field("label", 0, encoding) == 1) & (reasons[model] == 0),
        "pair": lambda pair: by_number[pair],
    }
    return [
        conditions[what](number) if what in conditions else stays & (field(what, number, encoding) == 1)
        for what, number in encoding.count_keys
    ]
