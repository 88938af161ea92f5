"""One narrow pass over the corpus that collects what the ranking needs to know in advance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql.types import DoubleType, FloatType, NumericType, StringType, StructType

from biasspark.arrays import Floats
from biasspark.config import Label, Measures, divide
from biasspark.corpus.data_quality import FEW_ROWS, column_warnings, positive_value_warnings
from biasspark.corpus.eligibility import is_one_of, known_score, row_reason
from biasspark.corpus.values import category, column, combine
from biasspark.errors import ABSENT, Fault, InputError, NoRows, Words
from biasspark.session import is_embedded
from biasspark.text import format_count, format_share, show_value

SURVEY_PASS = "survey"
MAX_VALUES = 10_000
"""A column with more distinct values is refused for identities and templates; it is probably an id or free text."""

_MANY_VALUES = 100

ROWS_A_RANGE = 500_000
MAX_CHOSEN_RANGES = 1024
MAX_ROWS_A_RANGE = 1 << 26
"""A range of more rows would not fit a worker."""

_SHARE, _SEED = 0.01, 2019
_TASK_GROUP, _MAX_GROUPS = "task_group", 100
_MAX_SAMPLED = 2048
"""Rows that are sampled in one group of tasks."""
_COUNTED, _SKIPPED = 1 << 16, 1 << 10
"""A task counts its first 65,536 rows one by one; after that every 1,024th row stands for 1,024 rows."""
_POSITIONS = (1 << 33) - 1
"""The bits of `monotonically_increasing_id` that count the rows of a task."""
_DUPLICATES_WORTH_A_WARNING = 0.02
_NO_ROWS = Words(
    "corpus: no rows, so there is nothing to measure.",
    "df: no rows, so there is nothing to measure.",
)
_ID_SHARE = 16
"""Of large corpora, the ids of one hash in 16 are sampled: all rows of an id, or none."""
_SKETCH_BITS = 16
"""Estimates distinct ids to within half a percent.

`approx_count_distinct` at that precision takes longer than the ranking: Spark compiles its 6,500 words of state.
"""


@dataclass(frozen=True)
class Survey:
    """The results of one pass over the corpus."""

    n_rows: int
    """Rows read. If not `is_exact`, up to 1,023 more for each task."""
    values: dict[str, tuple[str, ...]]
    """Distinct values of every categorical column and of the array column, in order."""
    quantiles: tuple[Floats, ...]
    """For each model, scores that cut a sample into equal parts: as many as the configuration has ranges, or 1024."""
    extremes: dict[str, tuple[float, float]] = field(default_factory=dict)
    """For each model, the lowest and the highest score of rows that are not rejected; empty without histograms."""
    ids: tuple[int, int] | None = None
    """The rows whose ids were compared, and how many distinct ids they have, within half a percent; None if not
    requested. Of 65,536 rows or more, those of one id in 16 are compared."""
    positives: Mapping[object, tuple[bool, int]] = field(default_factory=dict)
    """By configured positive value of the label, whether a row has it, and how many rows of text have it in another
    case or with spaces around it."""
    n_templates: int = 0
    """Distinct templates."""
    column_uses: tuple[tuple[str, str], ...] = ()
    """Pairs of a column and its use, as label, model or identity."""
    is_exact: bool = True
    """Whether every row was counted."""

    @property
    def rows_text(self) -> str:
        """The number of rows in words."""
        if self.is_exact:
            return format_count(self.n_rows, "row")
        return f"about {int(float(f'{self.n_rows:.2g}')):,} rows"

    def boundaries(self, ranges: int) -> list[Floats]:
        """Return the boundaries of the score ranges of each model; fewer if scores repeat.

        Boundaries only balance the work. `ranges` is the number of ranges; 0 for one per 500,000 rows, which keeps all
        sums of a range within 64 bits. Raises `InputError` if a range would not fit a worker.
        """
        ranges = ranges or self.chosen_ranges
        if self.n_rows > ranges * MAX_ROWS_A_RANGE:
            problem = (
                f"The corpus has {self.n_rows:,} rows. A range may hold {MAX_ROWS_A_RANGE:,} rows at the most, or it "
                "would not fit a worker."
            )
            fix = "Leave it out, and ranges are chosen."
            raise InputError(Fault(("ranking", "ranges"), ranges, problem, fix))
        return [np.unique(quantiles_of(quantiles, ranges)) for quantiles in self.quantiles]

    @property
    def chosen_ranges(self) -> int:
        """The number of ranges if the configuration sets none."""
        return min(max(-(-self.n_rows // ROWS_A_RANGE), 1), MAX_CHOSEN_RANGES)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the user."""
        warnings = [
            *positive_value_warnings(self.positives),
            *column_warnings(self.column_uses),
        ]
        for name, values in self.values.items():
            if not values:
                warnings.append(
                    f"identities: no row has a value in '{name}', so it gives no identity. Is it the right column?"
                )
            if len(values) > _MANY_VALUES and self.n_rows < len(values) * FEW_ROWS:
                warnings.append(
                    f"identities: '{name}' has {len(values):,} values, on average with fewer than {FEW_ROWS} rows. "
                    "Is it an id, or a measurement?"
                )
            if any("\ufffd" in value for value in values):
                warnings.append(
                    f"identities: '{name}' has values that are not valid UTF-8, shown as \ufffd. For a CSV on Spark, "
                    'set `[corpus] options = { encoding = "ISO-8859-1" }`, or the encoding that it has.'
                )
        if self.n_templates > _MANY_VALUES and self.n_rows < 2 * self.n_templates:
            warnings.append(
                f"templates: {self.rows_text} have {self.n_templates:,} templates, on average fewer than 2 rows each. "
                "Is it the text itself, or an id?"
            )
        n_compared, n_distinct = self.ids or (0, 0)
        if n_distinct < n_compared * (1 - _DUPLICATES_WORTH_A_WARNING):
            share = format_share(n_compared - n_distinct, n_compared)
            about = "" if share[0] in "<>" else "about "
            warnings.append(
                f"corpus: {about}{share} of the rows repeat an id. Metrics count every row. Remove repeated rows if "
                'that is not meant. A job leaves them out by `[corpus] duplicates = "reject"`.'
            )
        return tuple(warnings)


def survey_corpus(
    corpus: DataFrame, measures: Measures, id_column: str | None = None, duplicates: str = "estimate"
) -> Survey:
    """Count the rows, list the values of categorical identities and sample the scores.

    If `duplicates` is "estimate", the number of repeated ids is estimated. Raises `InputError` if there is no row, if
    no row has a positive value, or if a column has too many values to be identities or templates.

    Runs one Spark job when called: a scan, an aggregate per group of tasks, of which there are 100 at the most, and an
    aggregate of the groups. No Python worker.

    Memory. A task that scans holds the distinct values of its rows in each column of values, a hundredth of their
    scores, and 128 KiB for ids. A task that aggregates holds the same of the tasks of its group, a hundredth of all,
    and passes on at most 10,001 values of a column and 2,048 scores of a model. The driver receives at most 10,001
    values of a column and 204,800 scores of a model.
    """
    # The embedded engine has few tasks, and numbering and grouping their rows would take longer than all else.
    groups = (
        {} if is_embedded(corpus.sparkSession) else {_TASK_GROUP: F.pmod(F.spark_partition_id(), F.lit(_MAX_GROUPS))}
    )
    narrow = dict(groups)
    if measures.histograms:
        narrow["stays"] = row_reason(measures.label, corpus.schema, id_column) == 0
    estimated = id_column if duplicates == "estimate" else None
    aggregates = _aggregates(measures, estimated, _MAX_SAMPLED if groups else _MAX_GROUPS * _MAX_SAMPLED)
    by_group = _narrow(corpus, measures, estimated, narrow).groupBy(*groups)
    parts = by_group.agg(*(part.alias(name) for name, (part, _) in aggregates.items()))
    (row,) = parts.agg(*(merge(name).alias(name) for name, (_, merge) in aggregates.items())).collect()
    if not row["n_rows"]:
        raise NoRows(Fault((), ABSENT, _NO_ROWS))
    if measures.templates and len(row["templates"]) > MAX_VALUES:
        problem = f"It has more than {MAX_VALUES:,} distinct values. It is probably an id or the text itself."
        fix = "Name the column with the template from which a row was made."
        raise InputError(Fault(("templates", "column"), measures.templates.column, problem, fix))
    survey = _read_survey(row, corpus, measures, has_ids=estimated is not None)
    if measures.models and survey.positives and not any(is_there for is_there, _ in survey.positives.values()):
        raise InputError(no_positive_fault(measures.label, survey.positives))
    return survey


def no_positive_fault(label: Label, positives: Mapping[object, tuple[bool, int]]) -> Fault:
    """Return the fault of positive values that no row has, given `Survey.positives`."""
    rule = f"No row has such a value in column '{label.column}'. An AUC needs positives and negatives."
    for value, (_, n) in positives.items():
        if n:
            have = f"{format_count(n, 'row')} {'has' if n == 1 else 'have'}"
            rule += f" {have} {show_value(value)} in other case or with spaces around it."
    fix = "List the distinct values of the column, and write it as there; or name another column."
    return Fault(("label", "positive"), label.positive, rule, fix)


def _read_survey(row: Row, corpus: DataFrame, measures: Measures, has_ids: bool) -> Survey:
    """Return the survey of a corpus, given the row of its aggregates (`_aggregates`)."""
    schema, ranges = corpus.schema, measures.ranking.ranges or MAX_CHOSEN_RANGES
    values = {
        name: order_values(row[f"values_{n}"], name, isinstance(schema[name].dataType, NumericType))
        for n, name in enumerate(measures.identities.value_columns)
    }
    if is_embedded(corpus.sparkSession):
        _refuse_exponents(values, schema)
    ids = None
    if has_ids:  # neither number depends on the partitions; rows without an id are not duplicates
        all_ids = row["n_rows"], row["n_ids"] + row["null_ids"]
        ids = all_ids if row["n_rows"] < _COUNTED else (row["n_sampled"], row["n_sampled_ids"])
    return Survey(
        n_rows=row["n_rows"],
        is_exact=row["n_rows"] < _COUNTED or not _is_sparse(corpus, measures),
        values=values,
        quantiles=tuple(
            quantiles_of(np.array(row[f"sample_{n}"], np.float64), ranges) for n in range(len(measures.models))
        ),
        extremes={
            model: (row[f"lowest_{n}"] + 0.0, row[f"highest_{n}"] + 0.0)  # -0.0 becomes 0.0
            for n, model in enumerate(measures.models)
            if measures.histograms and row[f"lowest_{n}"] is not None
        },
        ids=ids,
        positives={
            value: (bool(row[f"has_positive_{n}"]), row[f"variants_{n}"])
            for n, value in enumerate(measures.label.positive or ())
        },
        n_templates=len(row["templates"]) if measures.templates else 0,
        column_uses=(
            (measures.label.column, "the label"),
            *((name, f"the score of model {model}") for model, name in measures.models.items()),
            *((name, "an identity") for name in (*measures.identities.columns, *measures.identities.value_columns)),
        ),
    )


def _refuse_exponents(values: Mapping[str, Sequence[str]], schema: StructType) -> None:
    """Stop at floating-point categories that Spark alone, not this engine, writes with an exponent or as Infinity."""
    for name, known in values.items():
        sizes = map(abs, map(float, known if isinstance(schema[name].dataType, FloatType | DoubleType) else ()))
        if any(size and not 1e-3 <= size < 1e7 for size in sizes):
            rule = (
                "The embedded engine writes floating-point numbers below 0.001, and from 10 million on, in another way "
                "than Spark, and the values of an identity are its names."
            )
            fix = "Write the column as integers or text, or run it on Spark."
            raise InputError(Fault(("identities", "categorical"), name, rule, fix))


def _narrow(
    corpus: DataFrame, measures: Measures, id_column: str | None, more_columns: Mapping[str, Column]
) -> DataFrame:
    """Return the scores of the sampled rows, the values and ids of all, and `more_columns`.

    `rows` is how many rows a row stands for. A row with n values in its array becomes n rows: `rows` and the samples
    are NULL in all but the first. See `_is_sparse` for when only few rows are returned.
    """
    schema, identities = corpus.schema, measures.identities
    scores = {f"score_{n}": known_score(name, schema) for n, name in enumerate(measures.models.values())}
    columns = {**(scores if measures.histograms else {}), **more_columns}
    if scores:
        # A struct of aliases would lose their names next to a generator of rows.
        in_one = F.named_struct(*(part for name, score in scores.items() for part in (F.lit(name), score)))
        columns["sampled"] = F.when(F.rand(_SEED) < _SHARE, in_one)
    for n, name in enumerate(identities.categorical):
        columns[f"value_{n}"] = category(column(name), schema[name].dataType)
    if id_column:
        columns["id"] = hashed = F.when(column(id_column).isNotNull(), F.xxhash64(column(id_column)))
        columns["sampled_id"] = F.when(F.pmod(hashed, F.lit(_ID_SHARE)) == 0, hashed)
    if measures.templates:
        template = category(column(measures.templates.column), schema[measures.templates.column].dataType)
        columns["template"] = F.when(template.isNotNull(), F.xxhash64(template))
    label, positive = measures.label.column, measures.label.positive or ()
    for n, value in enumerate(positive):
        columns[f"is_positive_{n}"] = is_one_of((value,), label, schema[label].dataType)
        is_text = isinstance(schema[label].dataType, StringType) and isinstance(value, str)
        is_alike = F.lower(F.trim(column(label))) == F.lower(F.trim(F.lit(value)))
        columns[f"is_variant_{n}"] = is_alike & ~column(label).isin(*positive) if is_text else F.lit(False)
    narrow = [value.alias(name) for name, value in columns.items()]
    samples = [name for name in ("sampled", "sampled_id") if name in columns]
    if _is_sparse(corpus, measures):
        position = F.monotonically_increasing_id().bitwiseAND(F.lit(_POSITIONS))
        rows = F.when(position < _COUNTED, F.lit(1)).when(position % _SKIPPED == 0, F.lit(_SKIPPED))
        counted = corpus.select(*narrow, rows.alias("rows"))
        return counted.where(combine(Column.__or__, [F.col(name).isNotNull() for name in ("rows", *samples)]))
    if identities.array is None:
        return corpus.select(*narrow, F.lit(1).alias("rows"))
    values = F.posexplode_outer(F.array_distinct(column(identities.array)))
    exploded = corpus.select(*narrow, values.alias("position", f"value_{len(identities.categorical)}"))
    first = {"rows": F.lit(1)} | {name: F.col(name) for name in samples}
    is_first = F.coalesce(F.col("position"), F.lit(0)) == 0
    return exploded.withColumns({name: F.when(is_first, value) for name, value in first.items()})


def _is_sparse(corpus: DataFrame, measures: Measures) -> bool:
    """Return whether nothing but samples of scores and ids is surveyed.

    Spark aggregates lists without compiled code, which takes as long as the scan, so then only few rows are aggregated.
    """
    reads_all = measures.identities.value_columns or measures.templates or measures.label.positive
    return not (reads_all or measures.histograms or is_embedded(corpus.sparkSession)) and bool(measures.models)


def _aggregates(
    measures: Measures, id_column: str | None, most_sampled: int
) -> dict[str, tuple[Column, Callable[[str], Column]]]:
    """Return, by name, the aggregate of a group of tasks and the function that merges groups."""
    aggregates: dict[str, tuple[Column, Callable[[str], Column]]] = {"n_rows": (F.sum("rows"), F.sum)}
    # One list of rows, not one of scores for each model: adding a row to a list, even if it is NULL, is slow.
    rows = F.collect_list("sampled")
    step = F.greatest(F.ceil(F.size(rows) / most_sampled), F.lit(1))
    kept = F.filter(rows, lambda _, index: index % step == 0)
    for n in range(len(measures.models)):
        aggregates[f"sample_{n}"] = _list_field(kept, f"score_{n}"), _merge_lists
        if measures.histograms:
            score = F.when(F.col("stays"), F.col(f"score_{n}"))
            aggregates |= {f"lowest_{n}": (F.min(score), F.min), f"highest_{n}": (F.max(score), F.max)}
    for n in range(len(measures.identities.value_columns)):
        values = F.slice(F.collect_set(f"value_{n}"), 1, MAX_VALUES + 1)
        aggregates[f"values_{n}"] = values, _merge_values
    for n in range(len(measures.label.positive or ())):
        aggregates[f"has_positive_{n}"] = F.max(f"is_positive_{n}"), F.max
        aggregates[f"variants_{n}"] = F.count_if(F.col("rows").isNotNull() & F.col(f"is_variant_{n}")), F.sum
    if measures.templates:
        aggregates["templates"] = F.slice(F.collect_set("template"), 1, MAX_VALUES + 1), _merge_values
    if id_column:
        for name, hashes in (("n_ids", "id"), ("n_sampled_ids", "sampled_id")):
            sketch = F.hll_sketch_agg(hashes, F.lit(_SKETCH_BITS))
            aggregates[name] = sketch, lambda name: F.hll_sketch_estimate(F.hll_union_agg(name))
        aggregates["n_sampled"] = F.count("sampled_id"), F.sum
        # Rows without an id are not duplicates.
        aggregates["null_ids"] = F.count_if(F.col("rows").isNotNull() & F.col("id").isNull()), F.sum
    return aggregates


def _list_field(rows: Column, name: str) -> Column:
    return F.transform(rows, lambda row: row[name])


def _merge_lists(name: str) -> Column:
    return F.flatten(F.collect_list(name))


def _merge_values(name: str) -> Column:
    return F.slice(F.array_distinct(_merge_lists(name)), 1, MAX_VALUES + 1)


def quantiles_of(sample: Floats, parts: int) -> Floats:
    """Return the scores that cut a sample, in which NaN is no score, into equal parts; none if there is no score."""
    sample = sample[~np.isnan(sample)]
    index = np.ceil(np.arange(1, parts) * len(sample) / parts).astype(np.int64) - 1
    return np.sort(sample + 0.0)[np.maximum(index, 0)] if len(sample) else sample


def order_values(values: Iterable[str | None], name: str, numeric: bool) -> tuple[str, ...]:
    """Sort values: numbers by size, strings by code point. Raises `InputError` if there are too many."""
    known = [value for value in values if value is not None]
    if len(known) > MAX_VALUES:
        problem = (
            f"'{name}' has more than {MAX_VALUES:,} distinct values. Each value is an identity, and so many cannot "
            "be: the column is probably an id or a measurement."
        )
        raise InputError(Fault(("identities",), ABSENT, problem, "Name another column, or use predicates."))
    return tuple(sorted(known, key=lambda value: (float(value), value)) if numeric else sorted(known))


@dataclass(frozen=True)
class Cutpoints:
    """The cutpoints of one model."""

    thresholds: tuple[float, ...]
    """In the order of the configuration, each rounded to the type of the model's column."""
    bin_edges: tuple[float, ...]
    """One more than bins, ascending; empty without histograms."""

    @cached_property
    def scores(self) -> Floats:
        """All cutpoints, ascending, each once."""
        return np.unique(np.array([*self.thresholds, *self.bin_edges], np.float64))

    def index_of(self, cutpoints: Sequence[float]) -> list[int]:
        """Return the index in `scores` of some of the cutpoints."""
        index: list[int] = np.searchsorted(self.scores, cutpoints).tolist()
        return index


def choose_cutpoints(measures: Measures, survey: Survey, schema: StructType) -> dict[str, Cutpoints]:
    """Return the cutpoints of every model; an empty dict if neither thresholds nor histograms are configured.

    Bins span [0, 1], or, if a score of a row that is not rejected lies outside, the range from the lowest to the
    highest of these scores.
    """
    if measures.thresholds is None and measures.histograms is None:
        return {}
    at = measures.thresholds.at if measures.thresholds else ()
    cutpoints = {}
    for model, name in measures.models.items():
        is_single = isinstance(schema[name].dataType, FloatType)
        thresholds = tuple(float(np.float32(value)) if is_single else value for value in at)
        low, high = survey.extremes.get(model, (0.0, 1.0))
        ends = (low, high) if low < 0 or high > 1 else (0.0, 1.0)
        cutpoints[model] = Cutpoints(thresholds, divide(*ends, measures.histograms.bins) if measures.histograms else ())
    return cutpoints
