"""The public functions, for notebooks: the job's tables on any DataFrame, on any session, classic or Connect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from biasspark.config import Identities, Measures, PinnedAuc, parse_measures
from biasspark.errors import ConfigError
from biasspark.maps.comparisons import compare
from biasspark.metrics import suite, summary
from biasspark.metrics.statistics import in_table
from biasspark.pipeline import Measurement, balance_labels, measure, skew_classes
from biasspark.report import side_by_side as comparison
from biasspark.tables.schemas import (
    PINNED_AUC,
    PINNED_SKEW,
    SCORE_HISTOGRAMS,
    TEMPLATE_SCORES,
    THRESHOLD_RATES,
    THRESHOLD_SUMMARY,
    U_STATISTICS,
    Table,
)


def bias_metrics(df: DataFrame, **measures: Any) -> DataFrame:
    """Return the bias suite: one row a (model, slice, identity) with six metrics and their intervals.

    Subgroup, BPSN, BNSP and background AUC, and the Negative and Positive Average Equality Gap (Borkan et al. 2019,
    "Nuanced Metrics for Measuring Unintended Bias with Real Data for Text Classification"), each exact, or with the
    engine "binned" between bounds.

    Parameters
    ----------
    df : DataFrame
        One row a comment.
    models : list of str, or dict of str to str
        Score columns, or names and their score columns. Higher is more likely positive; any monotone scale.
    label : str
        The label's column: boolean, or numeric with `label_threshold`.
    label_threshold : float, optional
        A row is positive at or above it.
    label_positive : list, optional
        The values of the label's column that are positive, in place of a threshold.
    identities : list of str, or dict, or Identities
        Columns of annotations, or the whole ``[identities]`` table of the configuration.
    identity_threshold : float, default 0.5
        A row is in the identity of a numeric column at or above it; for a list of columns.
    unannotated : {"exclude", "background"}
        What NULL in an identity's column means; for a list of columns.
    slices : dict of str to str, optional
        Names and Spark SQL predicates of parts of the corpus to be measured, too.
    engine : {"blocks", "windows", "binned"}
        Sorted blocks in numpy, or rank windows in pure Spark SQL; or counts by bin, approximate, with the least and the
        most that each value may be in ``_at_least`` and ``_at_most``.
    ranges : int, default 0
        Into how many score ranges the ranking is cut; 0 chooses.
    rank_bins : int, default 4096
        Of the engine "binned": into about how many bins the scores of a model are cut.
    level : float, default 0.95
        Of the intervals.

    Returns
    -------
    DataFrame
        The columns of the table ``bias_metrics``, less run_date, corpus and run_id. Lazy; persist it to use it twice.

    Raises
    ------
    ConfigError, InputError
        With all faults at once.

    Examples
    --------
    >>> import biasspark  # doctest: +SKIP
    >>> biasspark.bias_metrics(
    ...     df, models=["toxicity_1", "toxicity_6"], label="target", label_threshold=0.5, identities=["male", "female"]
    ... ).show()  # doctest: +SKIP

    Notes
    -----
    The corpus is scanned twice, once right away for a survey, and shuffled once. NaN and missing scores leave a row
    out for that model, a missing label for all.
    """
    measurement = _measure(df, **measures)
    return suite.bias_metrics(measurement.statistics, measurement.measures.intervals)


def u_statistics(df: DataFrame, **measures: Any) -> DataFrame:
    """Return the integers from which every metric follows: six pairs of cells an identity.

    Takes what `bias_metrics` takes, and returns the columns of the table ``u_statistics`` less the run's.
    """
    return in_table(_measure(df, **measures).statistics, U_STATISTICS)


def model_summary(df: DataFrame, **measures: Any) -> DataFrame:
    """Return one row a (model, slice): overall AUC, and each metric's worst, best and mean over identities.

    Takes what `bias_metrics` takes, and returns the columns of the table ``model_summary`` less the run's.
    """
    measurement = _measure(df, **measures)
    return summary.model_summary(measurement.statistics, measurement.measures.intervals, PinnedAuc())


def pinned_auc(
    df: DataFrame,
    *,
    trials: int = 0,
    seed: int = 1,
    include_subgroup_in_background: bool = True,
    **measures: Any,
) -> DataFrame:
    """Return the pinned AUC of every identity, with the four weights and the four AUCs of which it is made.

    Its authors advise against it: it moves with the share of positives of an identity while the model stays the same
    ("Limitations of Pinned AUC for Measuring Unintended Bias", 2019). Decide by `bias_metrics`.

    Parameters
    ----------
    trials : int, default 0
        How often the pinned set is also drawn, as it was published; each trial costs about as much as ranking it.
    seed : int
        Of the draws.
    include_subgroup_in_background : bool
        Whether the background is drawn from all rows, as the papers say, or from those outside the identity.
    **measures
        What `bias_metrics` takes.

    Returns
    -------
    DataFrame
        The columns of the table ``pinned_auc`` less the run's.
    """
    table = {
        "trials": trials,
        "seed": seed,
        "include_subgroup_in_background": include_subgroup_in_background,
    }
    return _further(df, PINNED_AUC, {"pinned_auc": table}, **measures)


def pinned_skew(  # noqa: PLR0913 - the keys of the configuration's table
    df: DataFrame,
    *,
    identity: str,
    cell: str = "subgroup_negative",
    fraction: float = 0.5,
    trials: int = 100,
    seed: int = 1,
    **measures: Any,
) -> DataFrame:
    """Return what the pinned AUC of an identity becomes when rows of one cell are dropped, and what the suite becomes.

    The experiment of "Limitations of Pinned AUC for Measuring Unintended Bias" (2019), section 3: the model stays the
    same, subgroup, BPSN and BNSP AUC stand still, and the pinned AUC moves with the class balance.

    Parameters
    ----------
    identity : str
        Its name among ``identities``; of a categorical column ``column=value``, of an array the value.
    cell : {"subgroup_negative", "subgroup_positive", "background_negative", "background_positive"}
        Of which rows are dropped.
    fraction : float, default 0.5
        How much of the cell is dropped, between 0 and 1.
    trials : int, default 100
        How often other rows are dropped at random; a trial ranks nothing anew.
    seed : int
        Of the draws: it fixes which rows are dropped, on any cluster.
    **measures
        What `bias_metrics` takes; the engine is always "blocks".

    Returns
    -------
    DataFrame
        The columns of the table ``pinned_skew`` less the run's: one row for each (model, slice).

    Raises
    ------
    ConfigError, InputError
        With all faults at once; for an identity that is not there, with those that are.
    """
    table = {"identity": identity, "cell": cell, "fraction": fraction, "trials": trials, "seed": seed}
    found = _read({"pinned_skew": table}, **measures)
    return skew_classes(measure(df, found, only=identity)).select(*PINNED_SKEW.value_columns)


def threshold_rates(
    df: DataFrame, *, at: Sequence[float] | None = None, grid: Mapping[str, float] | None = None, **measures: Any
) -> DataFrame:
    """Return decisions, rates and their gaps to the background of every identity at every threshold.

    Parameters
    ----------
    at : sequence of float, optional
        Thresholds; a row is decided positive where its score is at or above one.
    grid : mapping, optional
        Thresholds from ``low`` to ``high`` in so many ``steps``, by default 0, 1 and 100.
    **measures
        What `bias_metrics` takes.

    Returns
    -------
    DataFrame
        The columns of the table ``threshold_rates`` less the run's.
    """
    return _further(df, THRESHOLD_RATES, {"thresholds": {"at": at, "grid": grid}}, **measures)


def threshold_summary(
    df: DataFrame, *, at: Sequence[float] | None = None, grid: Mapping[str, float] | None = None, **measures: Any
) -> DataFrame:
    """Return the error rates of every slice at every threshold, and how unequal those of its identities are.

    Takes what `threshold_rates` takes, and returns the columns of the table ``threshold_summary`` less the run's.
    """
    return _further(df, THRESHOLD_SUMMARY, {"thresholds": {"at": at, "grid": grid}}, **measures)


def score_histograms(df: DataFrame, *, bins: int = 100, **measures: Any) -> DataFrame:
    """Return the rows of every cell of every identity by equal bins of their scores.

    Bins span [0, 1], or all scores of a model where some lie outside. Takes what `bias_metrics` takes besides, and
    returns the columns of the table ``score_histograms`` less the run's.
    """
    return _further(df, SCORE_HISTOGRAMS, {"histograms": {"bins": bins}}, **measures)


def side_by_side(metrics: DataFrame, first: str, second: str) -> DataFrame:
    """Return two models side by side, one row a (slice, identity): the five metrics of each, and their differences.

    Parameters
    ----------
    metrics : DataFrame
        What `bias_metrics` returns, or the table or view of published runs.
    first, second : str
        Two models in it.

    Returns
    -------
    DataFrame
        For each X of the suite ``X_first, X_second`` and ``X_difference``: of AUCs second - first, below 0 for the
        worse; of gaps |second| - |first|, above 0 for the worse. Also the rows in the identity, the positives among
        them, and ``worst_auc``, the lowest of the three AUCs. Lazy.

    Raises
    ------
    ConfigError
        If both models are the same.

    Examples
    --------
    >>> import biasspark  # doctest: +SKIP
    >>> metrics = spark.table("latest_bias_metrics").where("run_date = DATE'2026-01-15'")  # doctest: +SKIP
    >>> biasspark.side_by_side(metrics, "toxicity_1", "toxicity_6").orderBy("worst_auc_first")  # doctest: +SKIP
    """
    return comparison.side_by_side(metrics, first, second)


def model_comparisons(  # noqa: PLR0913 - the keys of the configuration's table
    df: DataFrame,
    *,
    baseline: str,
    method: str = "delong",
    groups: int | None = None,
    cluster: str | None = None,
    id: str | None = None,
    **measures: Any,
) -> DataFrame:
    """Return by how much every model differs from a baseline, metric by metric, on the rows that both score.

    Parameters
    ----------
    baseline : str
        The model that the others of ``models`` are compared with.
    method : {"delong", "jackknife"}
        Variances from the paired placements of rows (DeLong, DeLong and Clarke-Pearson 1988), or from leaving out one
        group of rows after another.
    groups : int, default 100
        Of the jackknife.
    cluster : str, optional
        A column whose equal values, such as an author's rows, the jackknife keeps in one group.
    id : str, optional
        The column that identifies a row; the jackknife needs it.
    **measures
        What `bias_metrics` takes; ``engine`` is always blocks here.

    Returns
    -------
    DataFrame
        The columns of the table ``model_comparisons`` less the run's: of AUCs model - baseline, more is better; of gaps
        |model| - |baseline|, less is better; each with interval, p-value and verdict. Lazy.

    Notes
    -----
    The rows are scanned four times, twice of them right away, and shuffled twice, with the jackknife once. A row takes
    8 bytes for each identity along. P-values are adjusted over one (slice, pair of models), crossed pairs apart.
    """
    table = {"baseline": baseline, "method": method, "groups": groups, "cluster": cluster}
    return compare(df, _read({"compare": table}, **measures), id).table


def label_balance(
    df: DataFrame,
    *,
    text: str | None = None,
    length: str | None = None,
    buckets: Sequence[int] | None = None,
    **measures: Any,
) -> DataFrame:
    """Return how often every identity is positive by text length, and how many negatives would balance it.

    Parameters
    ----------
    text, length : str, optional
        The column with the text, or the one with its length; without either, lengths do not count.
    buckets : sequence of int, optional
        Where lengths are cut; by default 20, 60, 180, 540, 1620, 4860.
    **measures
        What `bias_metrics` takes; ``models`` is not needed, since scores do not count.

    Returns
    -------
    DataFrame
        The columns of the table ``label_balance`` less the run's.
    """
    table = {"text": text, "length": length, "buckets": buckets}
    return balance_labels(df, _read({"label_balance": table}, False, **measures))


def template_scores(df: DataFrame, *, template: str, **measures: Any) -> DataFrame:
    """Return the mean score of every template and identity: a fair model scores a template alike for all.

    ``template`` is the column that says from which template a row was made. Takes what `bias_metrics` takes besides,
    and returns the columns of the table ``template_scores`` less the run's.
    """
    return _further(df, TEMPLATE_SCORES, {"templates": {"column": template}}, **measures)


def _further(df: DataFrame, table: Table, part: Mapping[str, Any], /, **measures: Any) -> DataFrame:
    """Measure a part that a configuration turns on by a table of its own."""
    return measure(df, _read(part, **measures)).further_tables()[table].select(*table.value_columns)


def _measure(df: DataFrame, **measures: Any) -> Measurement:
    return measure(df, _read({}, **measures))


def _read(  # noqa: PLR0913 - the public functions' keywords, named once
    part: Mapping[str, Any],
    scored: bool = True,
    /,
    *,
    label: str,
    identities: Sequence[str] | Mapping[str, Any] | Identities,
    models: Sequence[str] | Mapping[str, str] | None = None,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    identity_threshold: float = 0.5,
    unannotated: str = "exclude",
    slices: Mapping[str, str] | None = None,
    engine: str = "blocks",
    ranges: int = 0,
    rank_bins: int | None = None,
    level: float = 0.95,
) -> Measures:
    if not isinstance(identities, Mapping | Identities):
        identities = {"columns": identities, "threshold": identity_threshold, "unannotated": unannotated}
    elif (identity_threshold, unannotated) != (0.5, "exclude"):
        raise ConfigError(
            f"identity_threshold = {identity_threshold}, unannotated = {unannotated!r}: identities is a whole table "
            "here, which has its own threshold and unannotated. Set them there."
        )
    table = {
        "label": {"column": label, "threshold": label_threshold, "positive": label_positive},
        "models": models,
        "identities": identities,
        "slices": slices,
        "ranking": {"engine": engine, "ranges": ranges, "bins": rank_bins},
        "intervals": {"level": level},
        **part,
    }
    return parse_measures(table, scored=scored)
