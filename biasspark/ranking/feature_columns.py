"""The attributes of rows other than scores: features, groups, segments and the split, surveyed, encoded and as cells.

The survey lists what the bins and the groups stand for; it runs Spark jobs when called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import BooleanType, DataType, IntegralType, StringType

from biasspark.arrays import Ints
from biasspark.columns import HONEST, NULL_GROUP, OTHER_GROUP
from biasspark.config import Attribution, Label, TreeSettings
from biasspark.corpus.eligibility import label_of
from biasspark.corpus.values import category, column, is_no_number, number, write_category, write_number
from biasspark.errors import ABSENT, Fault, InputError, Key, corpus_changed
from biasspark.features import DRAW, Feature, column_name, mark_rare
from biasspark.ranking.kernels.row_block import CellColumns, SmallInts, number_cells
from biasspark.ranking.task_rows import TaskRows
from biasspark.ranking.value_counts import MAX_CATEGORIES, ValueCounts, count_values
from biasspark.session import expression
from biasspark.text import NUMBER_IN_TEXT

VALUES_PASS = "survey the features and groupings"
MAX_GROUPS = 200
"""The number of most frequent values with a group each; all other values share one group."""

Grouping = tuple[str, ...]
"""The names of the groups by number: first `NULL_GROUP`, then the values by code points, and last `OTHER_GROUP`."""

_HASHES = 1 << 30


class SurveyedValues(NamedTuple):
    """The surveyed values of features and groupings.

    `tree_features` are the features of trees: values of fewer than ``tree.min_leaf`` rows are marked as rare.
    `unreadable` counts the rows whose text is not a number, by numeric feature of type text.
    """

    features: tuple[Feature, ...]
    tree_features: tuple[Feature, ...]
    groups: tuple[Grouping, ...]
    unreadable: Mapping[str, int]


def survey_values(corpus: DataFrame, attribution: Attribution) -> SurveyedValues:
    """Cut every feature into bins, numeric ones first, in the order of the configuration, and list groups.

    A numeric feature has a bin for each of its values, or where there are more than ``tree.max_bins`` of them, one from
    each exact quantile to the next: the value of row ``floor(k N / max_bins)`` of the N rows in order, for every k,
    begins a bin. A categorical feature has a bin for each value, in the order of code points.

    A grouping has a group for each of its 200 most frequent values; ties go to the first in order. A value that is
    itself written ``(null)`` or ``(other)`` belongs to the group of that name, NaN to the NULL group, and -0.0 is 0.0.
    Raises `InputError` if a categorical feature or a grouping has more than 1,000 values, or a numeric feature is text
    without a number.

    Runs one Spark job, a narrow scan; a second for features with more than a million distinct numbers. No result
    depends on partitions.
    """
    schema, groupings = corpus.schema, attribution.groupings
    numeric, categorical = (attribution.numeric, attribution.categorical) if attribution.searches else ((), ())
    text_columns = [name for name in numeric if isinstance(schema[name].dataType, StringType)]
    numbers = {("numeric", name): number(name, schema[name].dataType) for name in numeric}
    numbers |= {("unreadable", name): F.when(is_no_number(name), F.lit(1.0)) for name in text_columns}
    texts = {("categorical", name): _category(column(name), schema[name].dataType) for name in categorical}
    texts |= {("grouping", name): _category(*_grouping(corpus, text)) for name, text in groupings.items()}
    counted = count_values(corpus, numbers, texts, attribution.split.max_bins)
    groups = {name: dict(counted.texts["grouping", name]) for name in groupings}
    for counts in groups.values():
        counts.pop(NULL_GROUP, None), counts.pop(OTHER_GROUP, None)
    if faults := list(_list_faults(attribution, text_columns, counted, groups)):
        raise InputError(*faults)
    features = []
    for name in numeric:
        edges, has_null = counted.numbers["numeric", name].edges.tolist(), counted.has_null["numeric", name]
        features.append(Feature(name, write_number(name, schema[name].dataType), True, tuple(edges), has_null))
    tree_features, least = features.copy(), attribution.split.min_leaf if attribution.grows_trees else 0
    for name in categorical:
        counts, has_null = counted.texts["categorical", name], counted.has_null["categorical", name]
        values = tuple(sorted(counts))
        features.append(Feature(name, write_category(name, schema[name].dataType), False, values, has_null))
        tree_features.append(mark_rare(features[-1], [0, *map(counts.__getitem__, values)], least))
    unreadable = {name: counted.numbers["unreadable", name].n_known for name in text_columns}
    frequent = [sorted(counts, key=lambda value: (-counts[value], value))[:MAX_GROUPS] for counts in groups.values()]
    return SurveyedValues(
        features=tuple(features),
        tree_features=tuple(tree_features),
        groups=tuple((NULL_GROUP, *sorted(values), OTHER_GROUP) for values in frequent),
        unreadable={name: count for name, count in unreadable.items() if count},
    )


def _list_faults(
    attribution: Attribution, text_columns: Sequence[str], counted: ValueCounts, groups: Mapping[str, Mapping[str, int]]
) -> Iterator[Fault]:
    """Yield the faults of features, of which some numeric ones are strings, and of groupings."""
    for name in text_columns:
        if not counted.numbers["numeric", name].n_known:
            rule = f"'{name}' is of type string, and no row has a number in it."
            otherwise = f" if its values are categories, or name another. {NUMBER_IN_TEXT}"
            by_category = ("Name it in ", Key(("attribution", "categorical")), otherwise)
            yield Fault(("attribution", "numeric"), ABSENT, rule, by_category)
    for (kind, name), values in counted.texts.items():
        if kind == "categorical" and len(values) > MAX_CATEGORIES:
            rule = f"'{name}' has more than {MAX_CATEGORIES:,} distinct values. Segments of so few rows say nothing."
            fix = "Name another column, or cut it into groups by a view."
            yield Fault(("attribution", "categorical"), ABSENT, rule, fix)
    rule = f"It has more than {MAX_CATEGORIES:,} distinct values. It is probably an id, a number or the text itself."
    for name, counts in groups.items():
        if len(counts) > MAX_CATEGORIES:
            fix = "Name another column, or cut its values into fewer groups."
            yield Fault(("attribution", "groupings", name), attribution.groupings[name], rule, fix)


def _grouping(corpus: DataFrame, text: str) -> tuple[Column, DataType]:
    grouping = expression(corpus, text)
    return grouping, corpus.select(grouping).schema[0].dataType


def _category(value: Column, kind: DataType) -> Column:
    """Return a value as text, or as it is if its type is cheaper to transfer and Arrow writes the same text."""
    return value if isinstance(kind, IntegralType | BooleanType) else category(value, kind)


def row_columns(
    attribution: Attribution, features: Sequence[Feature], corpus: DataFrame, id_column: str, label: Label
) -> dict[str, Column]:
    """Return the columns from which rows are described, by name: see `RowDescription`."""
    columns: dict[str, Column] = {}
    for n, feature in enumerate(features):
        kind = corpus.schema[feature.name].dataType
        as_text = _category(column(feature.name), kind)
        columns[column_name("feature", n)] = number(feature.name, kind) if feature.numeric else as_text
    for n, text in enumerate(attribution.groupings.values()):
        value, kind = _grouping(corpus, text)
        is_text = isinstance(kind, StringType)
        columns[column_name("group", n)] = F.when(value != NULL_GROUP, value) if is_text else _category(value, kind)
    segments = attribution.segments.values()
    predicates = {column_name("segment", n): expression(corpus, text) for n, text in enumerate(segments)}
    for n, pair in enumerate(attribution.pairs_of.values()):
        negatives, positives = expression(corpus, pair.negatives), expression(corpus, pair.positives)
        predicates[column_name("pair", n)] = F.when(label_of(label, corpus.schema), positives).otherwise(negatives)
    # Rows for which a predicate is NULL are outside, as for predicates of identities.
    columns |= {name: F.coalesce(predicate, F.lit(False)) for name, predicate in predicates.items()}
    if attribution.splits_rows:
        columns[HONEST] = only_estimates(id_column, attribution.split)
    if attribution.pairs:
        seed = F.lit(attribution.pairs.seed).cast("bigint")
        columns[DRAW] = F.xxhash64(seed, column(id_column).cast("string"))
    return {name: value.alias(name) for name, value in columns.items()}


def only_estimates(id_column: str, split: TreeSettings) -> Column:
    """Return whether a row is in the estimation sample, not used to grow trees: by a seeded hash of its id as text."""
    hashed = F.pmod(F.xxhash64(F.lit(split.seed).cast("bigint"), column(id_column).cast("string")), F.lit(_HASHES))
    return hashed < F.lit(round(split.honest_fraction * _HASHES))


# ---- rows as cells


@dataclass(frozen=True)
class RowDescription:
    """How rows are described: from EXAMPLES, and from the additional columns of `row_columns`.

    Features are DOUBLE if numeric. Other features and the groups of each grouping are STRING, BOOLEAN or integers.
    Segments and named pairs are BOOLEAN, never NULL. If rows are split, a BOOLEAN column marks those of the estimation
    sample; if they are drawn, a BIGINT column holds the hashes by which they are sampled.
    """

    attribution: Attribution
    values: SurveyedValues
    n_slices: int

    @property
    def columns(self) -> CellColumns:
        """The columns of the cells. A named pair has two groups, outside and inside, behind those of groupings."""
        n_segments, n_features = len(self.attribution.segments), len(self.values.features)
        n_groupings = len(self.values.groups) + len(self.attribution.pairs_of)
        return CellColumns(self.n_slices, n_segments, n_features, n_groupings)

    @cached_property
    def readers(self) -> dict[str, Callable[[pa.Array], Ints]]:
        """How the additional columns of cells are read, by name and in their order."""
        readers: dict[str, Callable[[pa.Array], Ints]] = {HONEST: _flags} if self.attribution.splits_rows else {}
        readers |= {column_name("segment", n): _flags for n in range(len(self.attribution.segments))}
        for n, feature in enumerate(self.values.features):
            readers[column_name("feature", n)] = partial(cut_into_bins, feature=feature)
        for n, groups in enumerate(self.values.groups):
            readers[column_name("group", n)] = partial(find_groups, groups=groups)
        return readers | {column_name("pair", n): _flags for n in range(len(self.attribution.pairs_of))}

    @property
    def names(self) -> list[str]:
        """The additional columns that are read."""
        return [*self.readers, *[DRAW] * bool(self.attribution.pairs)]

    def describe(self, rows: TaskRows) -> tuple[SmallInts, SmallInts, Ints]:
        """Return the cell of each row, the cells (`number_cells`), and the hashes by which rows are sampled, if any."""
        columns = {name: read(rows.column(name)) for name, read in self.readers.items()}
        honest = columns.pop(HONEST, np.zeros(len(rows), np.int64))
        slices = (rows.read("slice", number) for number in range(1, self.n_slices))
        cell, values = number_cells([rows.label, honest, *slices, *columns.values()])
        draws = rows.column(DRAW).to_numpy() if self.attribution.pairs else np.zeros(0, np.int64)
        return cell, values, draws


def cut_into_bins(values: pa.Array, feature: Feature) -> Ints:
    """Return the bin of each value: see `Feature`. Raises `InputError` for a value that was not surveyed."""
    if feature.numeric:
        numbers = pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False)
        # NaN sorts above all numbers, as in Spark.
        bins: Ints = np.searchsorted(np.array(feature.values, np.float64), numbers, "right")
    else:
        bins = _find(values, feature.values) + 1
    is_known = _flags(values.is_valid())
    if (bins < is_known).any():
        raise corpus_changed(f"'{feature.name}' has a value that was not there when the corpus was surveyed")
    return bins * is_known


def find_groups(values: pa.Array, groups: Sequence[str]) -> Ints:
    """Return the group number of each value: the first group is NULL, the last holds all values not listed."""
    indices = _find(values, groups[1:-1])
    return np.where(_flags(values.is_null()) == 1, 0, np.where(indices < 0, len(groups) - 1, indices + 1))


def _find(values: pa.Array, known: Sequence[object]) -> Ints:
    """Return the index of each string in the list of known ones, -1 if it is not there."""
    indices = pc.index_in(values, value_set=pa.array(known, pa.string()).cast(values.type))
    return np.asarray(pc.fill_null(indices, -1).to_numpy(zero_copy_only=False), np.int64)


def _flags(values: pa.Array) -> Ints:
    return np.asarray(values.to_numpy(zero_copy_only=False), np.int64)
