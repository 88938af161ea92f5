"""Features of rows, cut into bins, and conditions on their bins: as data, as words and as SQL. No Spark.

A condition names for some features the bins that are allowed; a row meets it if its bin of each of them is. Leaves of
trees, slices and either side of a pair are all conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from biasspark.expressions.sql import write_text

Condition = Mapping[int, frozenset[int]]
"""By place of a feature, the bins that are allowed. A feature that is not there is not restricted."""

NULL_BIN = 0
EVERYWHERE = "all rows"


def bin_name(place: int) -> str:
    """Return the column that holds the bin of a feature."""
    return f"bin_{place}"


def bin_names(n_features: int) -> list[str]:
    """Return the columns that hold the bins of all features."""
    return list(map(bin_name, range(n_features)))


@dataclass(frozen=True)
class Feature:
    """One feature, and what its bins stand for.

    Attributes
    ----------
    name
        The column.
    sql
        Its value as Spark SQL, which DuckDB reads as well where the name needs no quotes.
    numeric
        Whether its bins are intervals. If not, each bin is a value.
    values
        What the bins from 1 on stand for: the text of each value; or ascending where each interval begins, itself
        inside, and the last may be NaN, which is above all numbers. Bin 0 is NULL.
    nullable
        Whether any row is in bin 0.
    """

    name: str
    sql: str
    numeric: bool
    values: tuple[str, ...] | tuple[float, ...]
    nullable: bool

    @property
    def n_bins(self) -> int:
        """How many bins there are, that of NULL included whether any row is in it or not."""
        return len(self.values) + 1

    @property
    def bins(self) -> frozenset[int]:
        """The bins in which rows are."""
        return frozenset(range(0 if self.nullable else 1, self.n_bins))


def say_condition(condition: Condition, features: Sequence[Feature]) -> str:
    """Return a condition as words: ``age < 30 and (occupation is Sales, Tech-support or null)``.

    What is joined by "or" stands in parentheses, also alone: what is said of a feature depends on no other.
    """
    said = [_say(features[place], bins) for place, bins in sorted(condition.items())]
    return " and ".join(filter(None, said)) or EVERYWHERE


def write_predicate(condition: Condition, features: Sequence[Feature]) -> str:
    """Return a condition as a predicate of Spark SQL that is true on exactly its rows, and NULL on none.

    Values of the data are written so that nothing in them ends the text or is an escape, in either dialect.
    """
    written = [_write(features[place], bins) for place, bins in sorted(condition.items())]
    return " AND ".join(filter(None, written)) or "TRUE"


def _say(feature: Feature, bins: frozenset[int]) -> str:
    """Say a condition on one feature; nothing where it restricts nothing."""
    if bins >= feature.bins:
        return ""
    known, null = sorted(bins - {NULL_BIN}), NULL_BIN in bins and feature.nullable
    if not feature.numeric:
        return _say_values(feature, known, null)
    if not known:
        return f"{feature.name} is null"
    low, high = _ends(feature, known)
    low_text = None if low is None else _say_number(low)
    high_text = None if high is None else _say_number(high)
    if low_text and high_text:
        said = f"{low_text} <= {feature.name} < {high_text}"
    elif low_text:
        said = f"{feature.name} >= {low_text}"
    else:
        said = f"{feature.name} < {high_text}" if high_text else f"{feature.name} is not null"
    return f"({said} or null)" if null else said


def _say_values(feature: Feature, known: Sequence[int], null: bool) -> str:
    """Name the values that are in or those that are out, whichever are fewer."""
    others = [place for place in range(1, feature.n_bins) if place not in set(known)]
    few, word = (known, "is") if len(known) <= len(others) else (others, "is not")
    names = [str(feature.values[place - 1]) for place in few]
    if feature.nullable and null == (word == "is"):
        names.append("null")
    *first, last = names
    return f"({feature.name} {word} {', '.join(first)} or {last})" if first else f"{feature.name} {word} {last}"


def _write(feature: Feature, bins: frozenset[int]) -> str:
    if bins >= feature.bins:
        return ""
    known, null = sorted(bins - {NULL_BIN}), NULL_BIN in bins
    if not known:
        return f"{feature.sql} IS NULL"
    written = _write_interval(feature, known) if feature.numeric else _write_values(feature, known)
    if not feature.nullable:
        return written
    return f"({written} OR {feature.sql} IS NULL)" if null else f"({written} AND {feature.sql} IS NOT NULL)"


def _write_interval(feature: Feature, known: Sequence[int]) -> str:
    low, high = _ends(feature, known)
    ends = [] if low is None else [f"{feature.sql} >= CAST('{low!r}' AS DOUBLE)"]
    ends += [] if high is None else [f"{feature.sql} < CAST('{high!r}' AS DOUBLE)"]
    return " AND ".join(ends) or f"{feature.sql} IS NOT NULL"


def _write_values(feature: Feature, known: Sequence[int]) -> str:
    others = [place for place in range(1, feature.n_bins) if place not in set(known)]
    few, word = (known, "IN") if len(known) <= len(others) else (others, "NOT IN")
    if not few:
        return f"{feature.sql} IS NOT NULL"
    return f"{feature.sql} {word} ({', '.join(write_text(str(feature.values[place - 1])) for place in few)})"


def _ends(feature: Feature, known: Sequence[int]) -> tuple[float | None, float | None]:
    """Return where consecutive bins begin and end; None where nothing lies beyond."""
    values = [float(value) for value in feature.values]
    low = None if known[0] == 1 else values[known[0] - 1]
    return low, None if known[-1] == len(values) else values[known[-1]]


def _say_number(value: float) -> str:
    return f"{value:.12g}"
