"""Two models side by side: every identity with the metrics of both, and by how much the second differs.

The form of Nuanced's Tables 3 and 6, as a frame of any metrics and as the rows of a published night.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, SparkSession, Window

from biasspark.columns import ALL_ROWS, CROSSED, IDENTITY, MODEL, SLICE, SUMMARISED_AUCS, SUMMARISED_GAPS
from biasspark.config import show_value
from biasspark.errors import InputError
from biasspark.report.side_by_side_metrics import COMPARED, WORST_AUC
from biasspark.report.side_by_side_question import Question, SideBySide, check_models, group_by_slice
from biasspark.session import describe
from biasspark.tables.published import find_published, read_published
from biasspark.tables.schemas import BIAS_METRICS, CORPUS, RUN_DATE, RUN_ID
from biasspark.tables.store import Store

_KEY = (RUN_DATE.name, CORPUS.name, SLICE, IDENTITY, CROSSED)


def side_by_side(metrics: DataFrame, first: str, second: str) -> DataFrame:
    """Put the metrics of two models on one row for each slice and identity, with their differences.

    Parameters
    ----------
    metrics : DataFrame
        ``bias_metrics``, with or without the columns of the run; ``latest_bias_metrics`` may hold many nights.
    first, second : str
        The names of two models. Differences say how the second departs from the first.

    Returns
    -------
    DataFrame
        One row for each slice and identity (and run_date, corpus and run_id, where there are such columns) that either
        model has: the key, ``first_model, second_model``; ``n_subgroup_first, n_subgroup_second``, the rows in the
        identity that count for each; ``positive_rate_first, positive_rate_second``, the positives among them, 0 to 1;
        ``worst_auc_first, worst_auc_second``, the lowest of its subgroup, BPSN and BNSP AUC that have a value, with
        ``worst_auc_difference``, and ``worse``, whether that is below 0; for each X of the three AUCs and the two gaps
        ``X_first, X_second, X_difference, X_first_reason, X_second_reason``; last ``run_id``. A difference of AUCs is
        second - first, -1 to 1, below 0 for the worse; of gaps |second| - |first|, -0.5 to 0.5, above 0 for the worse.
        It is NULL where either is.

    Raises
    ------
    ConfigError, InputError
        If both models are the same, or the frame lacks a column.

    Notes
    -----
    Lazy; one shuffle by the key. Differences are between published values. Where the two ``n_subgroup`` differ, some
    rows lack the score of one model, and part of a difference is theirs.
    """
    check_models(first, second)
    if lacking := [name for name in (MODEL, SLICE, IDENTITY, *COMPARED) if name not in metrics.columns]:
        raise InputError(
            f"metrics: there is no column {lacking[0]}. Give what bias_metrics returns, or the table or view of "
            "published runs."
        )
    key, last = ([name for name in names if name in metrics.columns] for names in (_KEY, (RUN_ID.name,)))
    sides = {"first": first, "second": second}
    both = metrics.where(F.col(MODEL).isin(first, second)).groupBy(*key, *last)
    return both.agg(*(_side(model).alias(side) for side, model in sides.items())).select(
        *key,
        *(F.lit(model).alias(f"{side}_model") for side, model in sides.items()),
        *_both("n_subgroup"),
        *_both("positive_rate"),
        *_both(WORST_AUC),
        _difference(WORST_AUC),
        (F.col(f"second.{WORST_AUC}") < F.col(f"first.{WORST_AUC}")).alias("worse"),
        *(column for name in COMPARED for column in (*_both(name), _difference(name), *_reasons(name))),
        *last,
    )


def read_side_by_side(spark: SparkSession, store: Store, run_date: date, corpus: str, question: Question) -> SideBySide:
    """Read two models side by side from the latest published run of a night.

    Raises
    ------
    InputError
        If no run is published, or it lacks a model or slice; with those that there are.

    Notes
    -----
    Three small jobs: the ledger of the night, the names in the run, and the rows, which come to the driver. They grow
    with identities, not with the corpus; ``question.limit`` bounds them.
    """
    run = find_published(spark, store, BIAS_METRICS.job, run_date, corpus)
    # One file: taken as one partition, nothing needs a shuffle.
    metrics = read_published(spark, store, BIAS_METRICS, run).coalesce(1)
    with describe(spark, "two models side by side"):
        there = [(row[MODEL], row[SLICE]) for row in metrics.select(MODEL, SLICE).distinct().collect()]
        slices = choose_slices(there, question)
        wanted = metrics.where(F.col(SLICE).isin(*slices))
        if not question.crossed:
            wanted = wanted.where(~F.col(CROSSED))
        compared = side_by_side(wanted, *question.models)
        rows = [row.asDict() for row in keep_worst(compared, question.sort, question.limit).collect()]
    return SideBySide(question=question, run=run, columns=tuple(compared.columns), slices=group_by_slice(rows, slices))


def keep_worst(compared: DataFrame, sort: str = WORST_AUC, limit: int | None = None) -> DataFrame:
    """Number the rows of each slice, the worst of the first model first, and keep so many.

    Parameters
    ----------
    compared : DataFrame
        One run of `side_by_side`.
    sort : str
        ``worst_auc`` or a metric: the lowest AUC is the worst, the gap farthest from 0. NULL is last, equals by name.
    limit : int, optional
        Rows a slice.

    Returns
    -------
    DataFrame
        With two more columns: ``place``, from 1, and ``n_identities``, the rows of the slice before some were left out.
    """
    value = F.col(f"{sort}_first")
    order = F.abs(value).desc_nulls_last() if sort in SUMMARISED_GAPS else value.asc_nulls_last()
    of_slice = Window.partitionBy(SLICE)
    place = F.row_number().over(of_slice.orderBy(order, IDENTITY))
    numbered = compared.withColumns({"place": place, "n_identities": F.count(F.lit(1)).over(of_slice)})
    return numbered if limit is None else numbered.where(F.col("place") <= limit)


def choose_slices(there: Iterable[tuple[str, str]], question: Question) -> tuple[str, ...]:
    """Check the names that are asked for against each (model, slice) of a run, and return the slices that are wanted.

    Raises
    ------
    InputError
        If the run lacks one, with all that it has.
    """
    pairs = set(there)
    models, slices = sorted({model for model, _ in pairs}), sorted({name for _, name in pairs})
    faults = [_describe_unknown("models", name, models) for name in question.models if name not in models]
    faults += [_describe_unknown("slice", name, slices) for name in question.slices if name not in slices]
    if faults:
        raise InputError(*faults)
    return tuple(dict.fromkeys(question.slices or sorted(slices, key=lambda name: (name != ALL_ROWS, name))))


def _describe_unknown(where: str, name: str, there: Sequence[str]) -> str:
    listed = ", ".join(map(show_value, there)) or "none"
    return f"{where}: {show_value(name)}. The published run has {listed}. Name one that it has."


def _side(model: str) -> Column:
    """Return what one model has, as a struct; of each key a model has one row or none."""
    values = (
        (F.col("n_subgroup_negative") + F.col("n_subgroup_positive")).alias("n_subgroup"),
        F.col("subgroup_positive_rate").alias("positive_rate"),
        F.least(*SUMMARISED_AUCS).alias(WORST_AUC),
        *(F.col(column) for name in COMPARED for column in (name, f"{name}_reason")),
    )
    return F.max(F.when(F.col(MODEL) == F.lit(model), F.struct(*values)))


def _both(name: str) -> tuple[Column, Column]:
    return F.col(f"first.{name}").alias(f"{name}_first"), F.col(f"second.{name}").alias(f"{name}_second")


def _reasons(name: str) -> tuple[Column, Column]:
    first, second = (F.col(f"{side}.{name}_reason") for side in ("first", "second"))
    return first.alias(f"{name}_first_reason"), second.alias(f"{name}_second_reason")


def _difference(name: str) -> Column:
    first, second = F.col(f"first.{name}"), F.col(f"second.{name}")
    if name in SUMMARISED_GAPS:
        first, second = F.abs(first), F.abs(second)
    return (second - first).alias(f"{name}_difference")
