"""Published tables -> the rows of them that a report shows: chosen, counted and summed up by Spark. All lazy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, Window

from biasspark.columns import ALL_ROWS, CROSSED, IDENTITY, MODEL, OUTCOMES, OVERALL, SLICE, SUMMARISED_AUCS, WORSE
from biasspark.expressions.ordering import place_among
from biasspark.expressions.sums import add_up, add_up_about
from biasspark.report.cells import WIDE
from biasspark.report.facts import MOST_ALERTS, MOST_WORSE
from biasspark.tables.schemas import RUN_DATE, RUN_ID

MOST_PAIRS = 8
MOST_GONE = 50

_LOWEST = ("lowest_sure", "lowest_with_interval", "lowest")


def choose_worst(metrics: DataFrame, most: int) -> DataFrame:
    """Return the identities of all rows whose lowest AUC by any model is lowest; crossed pairs left out.

    Those with enough rows come first, as `biasspark.report.facts.find_lowest` has it.
    """
    lowest = [F.min(column).alias(name) for name, column in _lowest_aucs().items()]
    worst = _identities(metrics).groupBy(IDENTITY).agg(*lowest).orderBy(*_worst_first()).limit(most)
    return worst.select(IDENTITY)


def _lowest_aucs() -> dict[str, Column]:
    """Return the lowest of the AUCs with an interval that tells, of those with any interval, and of all."""
    sure, told = ([F.when(keep(name), F.col(name)) for name in SUMMARISED_AUCS] for keep in (_is_sure, _has_interval))
    return dict(zip(_LOWEST, (F.least(*sure), F.least(*told), F.least(*SUMMARISED_AUCS)), strict=True))


def _is_sure(name: str) -> Column:
    return _width(name) <= WIDE


def _has_interval(name: str) -> Column:
    return _width(name).isNotNull()


def _worst_first() -> list[Column]:
    return [*(F.col(name).asc_nulls_last() for name in _LOWEST), F.col(IDENTITY).asc()]


def count_identities(metrics: DataFrame) -> DataFrame:
    """Return how many identities all rows were measured for, crossed pairs left out: one row, ``n``."""
    return _identities(metrics).agg(F.count_distinct(IDENTITY).alias("n"))


def count_summed(
    frame: DataFrame, by: Sequence[str], sums: Mapping[str, Mapping[str, str]], further: Sequence[Column] = ()
) -> DataFrame:
    """Return how many identities of all rows are in each sum, as ``X_n``, and how many of few rows, as ``X_weak``.

    And what ``further`` aggregates say about the same identities.
    """
    counts = list(further)
    for total, parts in sums.items():
        there = [F.col(value).isNotNull() for value in parts]
        weak = [F.col(value).isNotNull() & _is_weak(interval) for value, interval in parts.items()]
        counts += [_count_any(there).alias(f"{total}_n"), _count_any(weak).alias(f"{total}_weak")]
    return _identities(frame).groupBy(*by).agg(*counts)


def find_sure_worst(columns: Mapping[str, str]) -> list[Column]:
    """Return aggregates: of each metric the identity of its worst value with enough rows, as in `WORST`."""
    found = []
    for name, column in columns.items():
        badness = -F.abs(name) if column.endswith("_max_abs") else F.col(name)
        own = F.min(F.when(_is_sure(name), F.struct(badness, IDENTITY)))
        found.append(own[IDENTITY].alias(f"{column}_sure_identity"))
    return found


def _count_any(conditions: Sequence[Column]) -> Column:
    return F.count_if(reduce(or_, conditions))


def _width(name: str) -> Column:
    return F.col(f"{name}_high") - F.col(f"{name}_low")


def _is_weak(name: str) -> Column:
    return ~F.coalesce(_is_sure(name), F.lit(False))


def find_gone(metrics: DataFrame, run_id: str) -> DataFrame:
    """Return the identities that other runs measured and this one did not, up to a bound."""
    is_there = F.max(F.col(RUN_ID.name) == F.lit(run_id))
    others = _identities(metrics).groupBy(IDENTITY).agg(is_there.alias("is_there")).where(~F.col("is_there"))
    return others.select(IDENTITY).orderBy(IDENTITY).limit(MOST_GONE)


def _identities(metrics: DataFrame) -> DataFrame:
    return keep_all_rows(metrics).where(~F.col(CROSSED) & (F.col(IDENTITY) != OVERALL))


def choose_worst_pairs(metrics: DataFrame) -> DataFrame:
    """Return of each model the crossed pairs with the lowest AUC that has an interval, with all their metrics.

    Those with enough rows come first.
    """
    pairs = keep_all_rows(metrics).where(F.col(CROSSED)).withColumns(_lowest_aucs())
    place = F.row_number().over(Window.partitionBy(MODEL).orderBy(*_worst_first()))
    kept = pairs.where(F.col("lowest_with_interval").isNotNull()).withColumn("place", place)
    return kept.where(F.col("place") <= MOST_PAIRS)


def keep_shown(frame: DataFrame, shown: Sequence[str]) -> DataFrame:
    """Return the rows of identities, of the slice of all rows where there are slices."""
    kept = keep_identities(frame, shown)
    return keep_all_rows(kept) if SLICE in frame.columns else kept


def keep_identities(frame: DataFrame, shown: Sequence[str]) -> DataFrame:
    """Return the rows of identities; no crossed pair is one."""
    return frame.where(F.col(IDENTITY).isin(*shown))


def keep_all_rows(frame: DataFrame) -> DataFrame:
    """Return the rows of the slice of all rows."""
    return frame.where(F.col(SLICE) == F.lit(ALL_ROWS))


def keep_comparisons(comparisons: DataFrame, shown: Sequence[str]) -> DataFrame:
    """Return what is compared of identities, and of whatever else got worse that with the smallest p-values."""
    compared = keep_all_rows(comparisons)
    is_shown = F.col(IDENTITY).isin(*shown)
    surest = Window.partitionBy(MODEL, "baseline_model").orderBy(
        "p_value", F.abs("difference").desc(), IDENTITY, "metric"
    )
    worse = compared.where(~is_shown & (F.col("verdict") == WORSE)).withColumn("place", F.row_number().over(surest))
    return compared.where(is_shown).unionByName(worse.where(F.col("place") <= MOST_WORSE).drop("place"))


def keep_worst_alerts(alerts: DataFrame) -> DataFrame:
    """Return the alerts with the worst outcomes, the largest violations first, each with its ``excess``.

    That is by how much the interval of the value, or of its change, lies beyond the bound: below 0 where it reaches
    within, NULL where there is none. A verdict on the worst identity has the largest of its rule.
    """
    own, is_whole = _excess(alerts.columns), F.col(IDENTITY) == F.lit(OVERALL)
    of_rule = Window.partitionBy(
        "rule", MODEL, SLICE, *(name for name in ("baseline_model",) if name in alerts.columns)
    )
    kept = alerts.withColumn("excess", F.coalesce(own, F.when(is_whole, F.max(own).over(of_rule))))
    rank = place_among(OUTCOMES, F.col("outcome"))
    order: tuple[Column | str, ...] = (rank, F.col("excess").desc_nulls_last(), "rule")
    return kept.orderBy(*order, MODEL, SLICE, IDENTITY).limit(MOST_ALERTS)


def _excess(columns: Sequence[str]) -> Column:
    """Return by how much the interval of an alert lies beyond its bound; a table may only know of changes."""
    names = ("value_low", "value_high", "change_low", "change_high")
    low, high, fall, rise = (F.col(name) if name in columns else F.lit(None).cast("double") for name in names)
    excess = {
        "min": -high,
        "max": low,
        "max_abs": F.greatest(low, -high),
        "max_drop": -rise,
        "max_rise": fall,
    }
    sizes = (F.when(F.col("bound_kind") == F.lit(kind), size) for kind, size in excess.items())
    return F.coalesce(*sizes) - F.when(F.col("bound_kind") == F.lit("min"), -F.col("bound")).otherwise(F.col("bound"))


def count_kinds(frame: DataFrame, by: Sequence[str]) -> DataFrame:
    """Return how many rows there are of each kind, as ``n``."""
    return frame.groupBy(*by).agg(F.count(F.lit(1)).alias("n"))


def mean_over_templates(scores: DataFrame, shown: Sequence[str]) -> DataFrame:
    """Return the mean score of each model and identity over its templates, and how far it departs from theirs.

    Every template counts the same; of both means there is the standard deviation over templates. Values are added up
    in the order of the templates, so that the bits depend on no partitioning. Beside them stand the lowest and the
    highest mean score of a template.
    """
    known = scores.where(F.col("mean_score").isNotNull())
    of_all = known.where(F.col(IDENTITY) == OVERALL).select(MODEL, "template", F.col("mean_score").alias("of_all"))
    own = keep_identities(known, shown).where(F.col(IDENTITY) != OVERALL).join(of_all, on=[MODEL, "template"])
    collected = F.sort_array(F.collect_list(F.struct("template", "mean_score", "of_all", "n_rows"))).alias("scores")
    terms: dict[str, Callable[[Column], Column]] = {
        "score": lambda one: one["mean_score"],
        "departure": lambda one: one["mean_score"] - one["of_all"],
    }
    means = (
        own.groupBy(MODEL, IDENTITY)
        .agg(collected)
        .withColumns({f"mean_{name}": _mean(term) for name, term in terms.items()})
    )
    return means.select(
        *(MODEL, IDENTITY),
        F.size("scores").alias("n_templates"),
        F.aggregate("scores", F.lit(0).cast("bigint"), lambda total, one: total + one["n_rows"]).alias("n_rows"),
        *(column for name, term in terms.items() for column in (f"mean_{name}", _deviation(term, name))),
        F.array_min("scores.mean_score").alias("lowest_score"),
        F.array_max("scores.mean_score").alias("highest_score"),
    )


def _mean(term: Callable[[Column], Column]) -> Column:
    return add_up("scores", term) / F.size("scores")


def _deviation(term: Callable[[Column], Column], name: str) -> Column:
    """Return the standard deviation (n - 1) of a term over templates; NULL of one template."""
    squares = add_up_about("scores", F.col(f"mean_{name}"), lambda one, mean: (term(one) - mean) ** 2)
    return F.sqrt(F.try_divide(squares, F.size("scores") - 1)).alias(f"{name}_deviation")


def merge_bins(frame: DataFrame, together: int) -> DataFrame:
    """Add up so many neighbouring bins: pictures are narrower than the finest histograms."""
    if together <= 1:
        return frame
    width = F.col("bin_high") - F.col("bin_low")
    low = F.col("bin_low") - (F.col("bin") % together) * width
    merged = frame.select(
        *(MODEL, SLICE, IDENTITY, "cell", "n_rows", RUN_DATE.name),
        F.floor(F.col("bin") / together).cast("int").alias("bin"),
        low.alias("bin_low"),
        (low + together * width).alias("bin_high"),
    )
    return merged.groupBy(MODEL, SLICE, IDENTITY, "cell", "bin", RUN_DATE.name).agg(
        F.sum("n_rows").alias("n_rows"), F.min("bin_low").alias("bin_low"), F.max("bin_high").alias("bin_high")
    )
