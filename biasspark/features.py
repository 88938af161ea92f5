"""Features of rows, cut into bins, and conditions on their bins: as data, as words and as SQL. No Spark.

A condition names for some features the bins that are allowed; a row meets it if its bin of each of them is. Leaves of
trees, slices and either side of a pair are all conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from biasspark.expressions.sql import write_text

Condition = Mapping[int, frozenset[int]]
"""By index of a feature, the bins that are allowed. Other features are not restricted."""

NULL_BIN = 0


DRAW = "draw"
"""The column of hashes by which rows are drawn."""


def feature_name(number: int) -> str:
    """Return the column that holds the value of a feature."""
    return f"feature_{number}"


def group_name(number: int) -> str:
    """Return the column that holds the group of a row in a grouping, as text."""
    return f"group_{number}"


def segment_name(number: int) -> str:
    """Return the column that says whether a row is in a segment."""
    return f"segment_{number}"


def pair_name(number: int, label: bool) -> str:
    """Return the column that says whether a row, if it has this label, is in a named pair."""
    return f"{'positive' if label else 'negative'}_{number}"


@dataclass(frozen=True)
class Feature:
    """One feature, and what its bins stand for.

    Its value is Spark SQL, which DuckDB reads as well where the name needs no quotes. The bins are intervals if it is
    numeric; if not, each is a value. Bin 0 is NULL, and nullable is whether any row is in it. `values` is what the bins
    from 1 on stand for: the text of each value; or ascending where each interval begins, the start included; the last
    may be NaN, which is above all numbers. `rare` are bins of values that have too few rows to be named: splits keep
    them together, and rules say of the side without them what it is, of the side with them what it is not.
    """

    name: str
    sql: str
    numeric: bool
    values: tuple[str, ...] | tuple[float, ...]
    nullable: bool
    rare: frozenset[int] = frozenset()

    @property
    def n_bins(self) -> int:
        """How many bins there are, that of NULL included whether any row is in it or not."""
        return len(self.values) + 1

    @property
    def bins(self) -> frozenset[int]:
        """The bins in which rows are."""
        return frozenset(range(0 if self.nullable else 1, self.n_bins))


def mark_rare(feature: Feature, n_rows: Sequence[int], least: int) -> Feature:
    """Return a feature whose values with fewer rows than `least` are rare, given the rows of each bin.

    NULL is not, nor is any interval of a number.
    """
    rare = frozenset(bin_ for bin_ in range(1, feature.n_bins) if n_rows[bin_] < least and not feature.numeric)
    return replace(feature, rare=rare)


def describe_condition(condition: Condition, features: Sequence[Feature]) -> str:
    """Return a condition in words: ``age < 30 and (occupation is Sales, Tech-support or null)``.

    What "or" joins stands in parentheses, also alone: the words for a feature depend on no other feature.
    """
    words = [_describe(features[index], bins) for index, bins in _restrictions(condition, features)]
    return " and ".join(words) or "all rows"


def write_predicate(condition: Condition, features: Sequence[Feature]) -> str:
    """Return a condition as a predicate of Spark SQL that is true on exactly its rows, and NULL on none.

    Values of the data are written so that nothing in them ends the text or is an escape, in either dialect.
    """
    predicates = [_write(features[index], bins) for index, bins in _restrictions(condition, features)]
    return " AND ".join(predicates) or "TRUE"


def _restrictions(condition: Condition, features: Sequence[Feature]) -> list[tuple[int, frozenset[int]]]:
    """Return the features that a condition restricts, in order, each with the bins that are allowed."""
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
    low, high = (None if end is None else f"{end:.12g}" for end in _interval(feature, known))
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
    """Return the bins that are in with True, or those that are out with False: no rare ones, else the fewer."""
    out = [bin_ for bin_ in range(1, feature.n_bins) if bin_ not in set(known)]
    if feature.rare and feature.rare <= set(known):
        return out, False
    if feature.rare and feature.rare <= set(out):
        return known, True
    return (known, True) if len(known) <= len(out) else (out, False)


def _interval(feature: Feature, known: Sequence[int]) -> tuple[float | None, float | None]:
    """Return where consecutive bins begin and end; None where nothing lies beyond."""
    values = [float(value) for value in feature.values]
    low = None if known[0] == 1 else values[known[0] - 1]
    return low, None if known[-1] == len(values) else values[known[-1]]
