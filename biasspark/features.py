"""Binned features of rows, and conditions on their bins as data, as words and as SQL. No Spark.

A condition lists the allowed bins of some features. A row meets it if its bin of each of them is allowed. Leaves of
trees, slices and both sides of a pair are conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from biasspark.expressions.sql import write_text

Condition = Mapping[int, frozenset[int]]
"""The allowed bins by index of a feature. Other features are not restricted."""

NULL_BIN = 0
DRAW = "draw"
"""The column of hashes by which rows are sampled."""


def column_name(kind: str, number: int) -> str:
    """Return the column of a feature, a group, a segment, or a named pair."""
    return f"{kind}_{number}"


@dataclass(frozen=True)
class Feature:
    """One feature and its bins.

    ``sql`` is its value in Spark SQL, also valid in DuckDB if the name needs no quotes. A numeric feature has intervals
    as bins, any other feature values. Bin 0 is NULL; ``nullable`` says whether any row is in it. ``values`` describes
    the bins from 1 on: the text of each value, or the ascending, inclusive lower ends of intervals, of which the last
    may be NaN, above all numbers. ``rare`` are bins of values with too few rows to be named: splits keep them together,
    and rules name the values of the side without them, for either side.
    """

    name: str
    sql: str
    numeric: bool
    values: tuple[str, ...] | tuple[float, ...]
    nullable: bool
    rare: frozenset[int] = frozenset()

    @property
    def n_bins(self) -> int:
        """The number of bins, including that of NULL."""
        return len(self.values) + 1

    @property
    def bins(self) -> frozenset[int]:
        """The bins that have rows."""
        return frozenset(range(0 if self.nullable else 1, self.n_bins))


def mark_rare(feature: Feature, n_rows: Sequence[int], least: int) -> Feature:
    """Mark values with fewer rows than `least` as rare, given the rows of each bin. NULL and intervals never are."""
    rare = frozenset(bin_ for bin_ in range(1, feature.n_bins) if n_rows[bin_] < least and not feature.numeric)
    return replace(feature, rare=rare)


def describe_condition(condition: Condition, features: Sequence[Feature]) -> str:
    """Return a condition in words: ``age < 30 and (occupation is Sales, Tech-support or null)``.

    Alternatives are always in parentheses, so that the words for a feature do not depend on other features.
    """
    words = [_describe(features[index], bins) for index, bins in _restrictions(condition, features)]
    return " and ".join(words) or "all rows"


def write_predicate(condition: Condition, features: Sequence[Feature]) -> str:
    """Return a condition as SQL for Spark and DuckDB, true on exactly its rows and never NULL. Values are escaped."""
    predicates = [_write(features[index], bins) for index, bins in _restrictions(condition, features)]
    return " AND ".join(predicates) or "TRUE"


def list_rule(condition: Condition, features: Sequence[Feature], side: str = "") -> dict[str, str]:
    """Return the columns of a condition, in words and as SQL, with a prefix if it is on one side of a pair."""
    return {
        f"{side}rule": describe_condition(condition, features),
        f"{side}predicate": write_predicate(condition, features),
    }


def _restrictions(condition: Condition, features: Sequence[Feature]) -> list[tuple[int, frozenset[int]]]:
    return [(index, bins) for index, bins in sorted(condition.items()) if not bins >= features[index].bins]


def _describe(feature: Feature, bins: frozenset[int]) -> str:
    known, with_null = sorted(bins - {NULL_BIN}), NULL_BIN in bins and feature.nullable
    if not feature.numeric:
        few, is_in = _fewer(feature, known)
        names = [str(feature.values[bin_ - 1]) for bin_ in few]
        names += ["null"] if feature.nullable and with_null == is_in else []
        *first, last = names
        word = "is" if is_in else "is not"
        return f"({feature.name} {word} {', '.join(first)} or {last})" if first else f"{feature.name} {word} {last}"
    if not known:
        return f"{feature.name} is null"
    low, high = (
        None if end is None else f"{end:.16g}" if end.is_integer() else f"{end:.12g}"
        for end in _interval(feature, known)
    )
    if low and high:
        words = f"{low} <= {feature.name} < {high}"
    elif low:
        words = f"{feature.name} >= {low}"
    else:
        words = f"{feature.name} < {high}" if high else f"{feature.name} is not null"
    return f"({words} or null)" if with_null else words


def _write(feature: Feature, bins: frozenset[int]) -> str:
    known = sorted(bins - {NULL_BIN})
    if not known:
        return f"{feature.sql} IS NULL"
    if feature.numeric:
        low, high = _interval(feature, known)
        ends = [] if low is None else [f"{feature.sql} >= CAST('{low!r}' AS DOUBLE)"]
        ends += [] if high is None else [f"{feature.sql} < CAST('{high!r}' AS DOUBLE)"]
        predicate = " AND ".join(ends)
    else:
        few, is_in = _fewer(feature, known)
        values = ", ".join(write_text(str(feature.values[bin_ - 1])) for bin_ in few)
        predicate = f"{feature.sql} {'IN' if is_in else 'NOT IN'} ({values})" if few else ""
    if not predicate:
        return f"{feature.sql} IS NOT NULL"
    if not feature.nullable:
        return predicate
    suffix = f"OR {feature.sql} IS NULL" if NULL_BIN in bins else f"AND {feature.sql} IS NOT NULL"
    return f"({predicate} {suffix})"


def _fewer(feature: Feature, known: Sequence[int]) -> tuple[Sequence[int], bool]:
    """Return the allowed bins and True, or the others and False: those without rare bins, else the fewer."""
    out = [bin_ for bin_ in range(1, feature.n_bins) if bin_ not in set(known)]
    if feature.rare and feature.rare <= set(known):
        return out, False
    if feature.rare and feature.rare <= set(out):
        return known, True
    return (known, True) if len(known) <= len(out) else (out, False)


def _interval(feature: Feature, known: Sequence[int]) -> tuple[float | None, float | None]:
    """Return the ends of consecutive bins, None for an open end."""
    values = [float(value) for value in feature.values]
    low = None if known[0] == 1 else values[known[0] - 1]
    return low, None if known[-1] == len(values) else values[known[-1]]
