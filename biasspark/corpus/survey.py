"""One narrow pass over the corpus: what must be known before it is ranked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import NumericType, StringType, StructType

from biasspark.arrays import Floats
from biasspark.config import Measures
from biasspark.corpus.eligibility import known_score, row_reason
from biasspark.corpus.values import category, column
from biasspark.errors import InputError, NoRows

MOST_VALUES = 10_000
"""More distinct values than this are no identities; the column is probably an id."""

ROWS_A_RANGE = 500_000
MOST_CHOSEN_RANGES = 1024
MOST_ROWS_A_RANGE = 1 << 26
"""A range of more rows would reach 1 GiB in one worker."""

_SHARE, _SEED, _ACCURACY = 0.01, 2019, 10_000
_MOST_GROUPS = 100
_DUPLICATES_WORTH_A_WARNING = 0.02
_SKETCH_BITS = 16
"""Distinct ids within half a percent.

`approx_count_distinct` at that precision takes longer than the ranking: Spark compiles its 6,500 words of state.
"""


@dataclass(frozen=True)
class Survey:
    """What one pass over the corpus found.

    Attributes
    ----------
    n_rows
        Rows read.
    values
        Distinct values of every categorical column and of the array column, in order.
    quantiles
        For each model, scores that cut a sample into equal parts: as many as the configuration has ranges, or 1024.
    extremes
        For each model, the least and the greatest score of the rows with a label; none unless histograms are wanted.
    n_ids
        About how many distinct ids there are, within half a percent; None where nobody asked.
    texts
        Columns of annotations that are text.
    """

    n_rows: int
    values: dict[str, tuple[str, ...]]
    quantiles: tuple[Floats, ...]
    extremes: dict[str, tuple[float, float]] = field(default_factory=dict)
    n_ids: int | None = None
    texts: tuple[str, ...] = ()

    def boundaries(self, ranges: int) -> list[Floats]:
        """Return for each model where its ranges meet: `ranges` of them, or where that is 0 one for 500,000 rows.

        So many rows keep all sums of a range within 64 bits. Boundaries only balance the work.
        """
        ranges = self.count_ranges(ranges)
        return [_every(found, ranges) for found in self.quantiles]

    def count_ranges(self, ranges: int) -> int:
        """Return how many ranges there are where so many are asked for, or 0 to have them chosen."""
        ranges = ranges or self.chosen_ranges
        if self.n_rows > ranges * MOST_ROWS_A_RANGE:
            raise InputError(
                f"[ranking] ranges = {ranges} for {self.n_rows:,} rows. A range may hold {MOST_ROWS_A_RANGE:,} rows at "
                "the most, or it would not fit a worker. Remove the line, and ranges are chosen."
            )
        return ranges

    @property
    def chosen_ranges(self) -> int:
        """Into how many ranges so many rows are cut where the configuration does not say."""
        return min(max(-(-self.n_rows // ROWS_A_RANGE), 1), MOST_CHOSEN_RANGES)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should look at."""
        found = [
            f"identities: no row has a value in '{name}', so it gives no identity. Is it the right column?"
            for name, values in self.values.items()
            if not values
        ]
        found += [
            f"identities: '{name}' has values with bytes that are no UTF-8, shown as \ufffd. Of a CSV set `[corpus] "
            'options = { encoding = "ISO-8859-1" }`, or what it is written in.'
            for name, values in self.values.items()
            if any("\ufffd" in value for value in values)
        ]
        if self.n_ids is not None and self.n_ids < self.n_rows * (1 - _DUPLICATES_WORTH_A_WARNING):
            share = 1 - self.n_ids / self.n_rows
            found.append(
                f"corpus: about {share:.0%} of the rows repeat an id. Metrics count every row. "
                '`[corpus] duplicates = "reject"` finds and leaves out such rows.'
            )
        return tuple(found)


def survey_corpus(corpus: DataFrame, measures: Measures, id_column: str | None = None) -> Survey:
    """Count the rows, list the values of categorical identities and sample the scores, in one aggregate.

    Parameters
    ----------
    id_column : str, optional
        Given where repeated ids are to be estimated.

    Raises
    ------
    InputError
        If there is no row, or a column has too many values to be identities.

    Notes
    -----
    Runs one Spark job when called. The driver receives the values and 1023 doubles per model, never a sample. Of a
    column of too many values a task holds no more than a hundredth of the rows have, or its own rows.
    """
    # Bins are cut by a sample of their own.
    ranges = 1 if measures.ranking.bins else measures.ranking.ranges or MOST_CHOSEN_RANGES
    valued = list_valued(measures)
    narrow = _narrow(corpus, measures, id_column)
    parts: dict[str, Column] = {"n_rows": F.count_if("first")}
    whole = {"n_rows": F.coalesce(F.sum("n_rows"), F.lit(0))}
    for place in range(len(measures.models)):
        name = f"quantiles_{place}"
        parts[name], whole[name] = _quantiles(f"score_{place}", ranges), F.max(name)
        if measures.histograms:
            labelled = F.when(F.col("labelled") & F.col("first"), F.col(f"score_{place}"))
            lowest, highest = f"lowest_{place}", f"highest_{place}"
            parts |= {lowest: F.min(labelled), highest: F.max(labelled)}
            whole[f"extremes_{place}"] = F.array(F.min(lowest) + F.lit(0.0), F.max(highest) + F.lit(0.0))
    for place in range(len(valued)):
        name = f"values_{place}"
        parts[name] = F.slice(F.collect_set(f"value_{place}"), 1, MOST_VALUES + 1)
        whole[name] = F.slice(F.array_distinct(F.flatten(F.collect_list(name))), 1, MOST_VALUES + 1)
    if id_column:
        parts["n_ids"] = F.hll_sketch_agg(F.xxhash64("id"), F.lit(_SKETCH_BITS))
        whole["n_ids"] = F.hll_sketch_estimate(F.hll_union_agg("n_ids"))
    # Where no values are listed a task holds little, and all of them are one group.
    groups = [_group_tasks()] if valued else []
    found = _in_two_steps(narrow, groups, parts, whole).collect()[0].asDict()
    if found["n_rows"] == 0:
        raise NoRows("corpus: no rows. The path, the filter and the run date leave nothing to measure. Check them.")
    return _read_survey(found, measures, corpus.schema)


def _read_survey(found: Mapping[str, Any], measures: Measures, schema: StructType) -> Survey:
    """Name what the aggregate found."""
    values = {
        name: order_values(found[f"values_{place}"], name, isinstance(schema[name].dataType, NumericType))
        for place, name in enumerate(list_valued(measures))
    }
    quantiles = (np.array(found[f"quantiles_{place}"] or [], np.float64) for place in range(len(measures.models)))
    extremes = {name: found.get(f"extremes_{place}") for place, name in enumerate(measures.models)}
    return Survey(
        n_rows=found["n_rows"],
        values=values,
        quantiles=tuple(edges + 0.0 for edges in quantiles),
        extremes={name: (ends[0], ends[1]) for name, ends in extremes.items() if ends and ends[0] is not None},
        n_ids=found.get("n_ids"),
        texts=tuple(name for name in measures.identities.columns if isinstance(schema[name].dataType, StringType)),
    )


def list_valued(measures: Measures) -> tuple[str, ...]:
    """Return the columns whose values are identities: the categorical ones, and that of arrays."""
    identities = measures.identities
    return (*identities.categorical, identities.array) if identities.array else identities.categorical


def _narrow(corpus: DataFrame, measures: Measures, id_column: str | None) -> DataFrame:
    """Return what is surveyed of each row: its scores and whether they are sampled, its values and its id.

    A row with n values in its array becomes n rows, of which the first counts.
    """
    schema, identities = corpus.schema, measures.identities
    columns = [(F.rand(_SEED) < _SHARE).alias("sampled")]
    for place, name in enumerate(measures.models.values()):
        columns.append(known_score(name, schema).alias(f"score_{place}"))
    for place, name in enumerate(identities.categorical):
        columns.append(category(name, schema[name].dataType).alias(f"value_{place}"))
    if id_column:
        columns.append(column(id_column).alias("id"))
    if measures.histograms:
        columns.append((row_reason(measures.label, schema, None) == 0).alias("labelled"))
    if identities.array is None:
        return corpus.select(*columns, F.lit(True).alias("first"))
    each = F.posexplode_outer(F.array_distinct(column(identities.array))).alias(
        "place", f"value_{len(identities.categorical)}"
    )
    return corpus.select(*columns, each).withColumn("first", F.coalesce(F.col("place"), F.lit(0)) == 0)


def _group_tasks() -> Column:
    """Return the group of a row, so that no buffer ever holds every value of a column of ids.

    The sampled rows are a group of their own, since quantiles of several could not be put together.
    """
    task = F.pmod(F.spark_partition_id(), F.lit(_MOST_GROUPS))
    return F.when(F.col("sampled"), F.lit(-1)).otherwise(task).alias("group")


def _in_two_steps(
    narrow: DataFrame, groups: Sequence[Column], parts: Mapping[str, Column], whole: Mapping[str, Column]
) -> DataFrame:
    """Aggregate groups of rows, and then what was found of them."""
    found = narrow.groupBy(*groups).agg(*(value.alias(name) for name, value in parts.items()))
    return found.agg(*(value.alias(name) for name, value in whole.items()))


def _quantiles(score: str, parts: int) -> Column:
    """Cut the sampled scores of a model into equal parts; NULL where there is nothing to cut.

    Their shares are one text: every rule by which Spark plans the query would look at each of a thousand literals.
    """
    if parts == 1:
        return F.lit(None)
    shares = " ".join(repr(part / parts) for part in range(1, parts))
    listed = f"CAST(split('{shares}', ' ') AS ARRAY<DOUBLE>)"
    return F.expr(f"percentile_approx({score}, {listed}, {_ACCURACY}) FILTER (WHERE sampled AND first)")


def _every(quantiles: Floats, ranges: int) -> Floats:
    """Choose from the quantiles those that cut into so many ranges; fewer where scores repeat."""
    places = (np.arange(1, ranges) * (len(quantiles) + 1)) // ranges - 1
    return np.unique(quantiles[places]) if len(quantiles) else quantiles


def order_values(values: Iterable[str | None], name: str, numeric: bool) -> tuple[str, ...]:
    """Sort values as their column does: numbers by size, texts by code point."""
    known = [value for value in values if value is not None]
    if len(known) > MOST_VALUES:
        raise InputError(
            f"[identities] '{name}' has more than {MOST_VALUES:,} distinct values. Each value is an identity, and so "
            "many cannot be: the column is probably an id or a measurement. Name another column, or use predicates."
        )
    return tuple(sorted(known, key=lambda value: (float(value), value)) if numeric else sorted(known))
