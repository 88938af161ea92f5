"""The public functions of single tables, for notebooks: the job's tables on any DataFrame, classic or Connect.

Each ranks for itself, when it is called: `biasspark.measure` ranks once for several. What comes back holds the rows of
the table, so nothing is ranked again. Each stops at the faults of `biasspark.measure`, and gives its warnings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Unpack

from pyspark.sql import DataFrame

from biasspark import pipeline
from biasspark.api.computed import compute, warn, write_warnings
from biasspark.api.keywords import GroupKeywords, Models, SuiteKeywords, parse_keywords, with_keywords
from biasspark.api.measured import CorpusTables, compute_ranked
from biasspark.maps.labels import balance_labels
from biasspark.tables.schemas import PINNED_SKEW


@with_keywords
def bias_metrics(df: DataFrame, **measures: Unpack[SuiteKeywords]) -> DataFrame:
    """Return the bias suite: one row a (model, slice, identity) with six metrics and their intervals.

    Subgroup, BPSN, BNSP and background AUC, and the Negative and Positive Average Equality Gap (Borkan et al. 2019,
    "Nuanced Metrics for Measuring Unintended Bias with Real Data for Text Classification"), each exact, or with the
    engine "binned" between bounds.

    Parameters
    ----------
    df : DataFrame
        One row per comment.
    models : str, list of str, or dict of str to str
        Score columns, or names and their score columns. Higher is more likely positive; any increasing scale.
    label : str
        The label's column: boolean, or numeric with `label_threshold`.
    label_threshold : float, optional
        A row is positive at or above it.
    label_positive : list, optional
        The values of the label's column that are positive, in place of a threshold.
    identities : str, list of str, dict, or Identities
        Columns of annotations, or a dict with the keys of ``[identities]`` of the configuration.
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
    evidence : int, or dict, optional
        How many rows each of the two cells of a metric needs for the metric to have a value, or a dict with the keys of
        ``[evidence]``.
    privacy : True, int, or dict, optional
        Below how many rows the numbers of a group are withheld; True for 10.

    Returns
    -------
    DataFrame
        The columns of the table ``bias_metrics``, less run_date, corpus and run_id. Computed when called.

    Raises
    ------
    TypeError
        For a keyword that there is not, or one that is missing.
    ConfigError, InputError
        With all other faults at once; also if a model has no usable score.

    Warns
    -----
    InputWarning
        Of what a person should look at, as `measure` does: scores, identities and rejected rows that are peculiar.

    Examples
    --------
    >>> import biasspark  # doctest: +SKIP
    >>> biasspark.bias_metrics(
    ...     df, models=["toxicity_1", "toxicity_6"], label="target", label_threshold=0.5, identities=["male", "female"]
    ... ).show()  # doctest: +SKIP

    Notes
    -----
    When called, the rows are scanned twice, for a survey and for the ranking, and shuffled once; with the engine
    "windows" they are scanned four times or more. So they are for every other table that is made by a function of its
    own: `biasspark.measure` does it once for all. NaN and missing scores leave a row out for that model, a missing
    label for all.
    """
    return _measure(df, measures, CorpusTables.bias_metrics)


@with_keywords
def u_statistics(df: DataFrame, **measures: Unpack[SuiteKeywords]) -> DataFrame:
    """Return the integers from which every metric follows: six pairs of cells per identity.

    Takes what `bias_metrics` takes, costs as much, and returns the columns of the table ``u_statistics`` less the
    run's.
    """
    return _measure(df, measures, CorpusTables.u_statistics)


@with_keywords
def model_summary(df: DataFrame, **measures: Unpack[SuiteKeywords]) -> DataFrame:
    """Return one row a (model, slice): overall AUC, and each metric's worst, best and mean over identities.

    Takes what `bias_metrics` takes, costs as much, and returns the columns of the table ``model_summary`` less the
    run's.
    """
    return _measure(df, measures, CorpusTables.model_summary)


@with_keywords
def pinned_auc(
    df: DataFrame,
    *,
    trials: int = 0,
    seed: int = 1,
    include_subgroup_in_background: bool = True,
    **measures: Unpack[SuiteKeywords],
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
        The columns of the table ``pinned_auc`` less the run's. Computed when called.

    Notes
    -----
    Costs as much as `bias_metrics`. With trials the rows are scanned and shuffled once more.
    """
    table = {
        "trials": trials,
        "seed": seed,
        "include_subgroup_in_background": include_subgroup_in_background,
    }
    return _measure(df, measures, CorpusTables.pinned_auc, pinned_auc=table)


@with_keywords
def pinned_skew(  # noqa: PLR0913 - the keys of the configuration's table
    df: DataFrame,
    *,
    identity: str,
    cell: str = "subgroup_negative",
    fraction: float = 0.5,
    trials: int = 100,
    seed: int = 1,
    **measures: Unpack[SuiteKeywords],
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
        What `bias_metrics` takes. The engine "windows" is taken as "blocks", and "binned" is refused.

    Returns
    -------
    DataFrame
        The columns of the table ``pinned_skew`` less the run's: one row for each (model, slice). Computed when called.

    Raises
    ------
    ConfigError, InputError
        With all faults at once; for an identity that is not there, with those that are.

    Notes
    -----
    One identity is ranked. The rows are scanned twice, for a survey and for the ranking, and shuffled once.
    """
    table = {"identity": identity, "cell": cell, "fraction": fraction, "trials": trials, "seed": seed}
    measurement = pipeline.measure(df, parse_keywords(measures, {"pinned_skew": table}), only=identity)
    return compute_ranked(measurement, lambda: pipeline.skew_classes(measurement).select(*PINNED_SKEW.value_columns))


@with_keywords
def threshold_rates(
    df: DataFrame,
    *,
    at: Sequence[float] | None = None,
    grid: Mapping[str, float] | None = None,
    **measures: Unpack[SuiteKeywords],
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
        The columns of the table ``threshold_rates`` less the run's. Computed when called.

    Notes
    -----
    Costs as much as `bias_metrics`.
    """
    return _measure(df, measures, CorpusTables.threshold_rates, thresholds={"at": at, "grid": grid})


@with_keywords
def threshold_summary(
    df: DataFrame,
    *,
    at: Sequence[float] | None = None,
    grid: Mapping[str, float] | None = None,
    **measures: Unpack[SuiteKeywords],
) -> DataFrame:
    """Return the error rates of every slice at every threshold, and how unequal those of its identities are.

    Takes what `threshold_rates` takes, costs as much, and returns the columns of the table ``threshold_summary`` less
    the run's.
    """
    return _measure(df, measures, CorpusTables.threshold_summary, thresholds={"at": at, "grid": grid})


@with_keywords
def score_histograms(df: DataFrame, *, bins: int = 100, **measures: Unpack[SuiteKeywords]) -> DataFrame:
    """Return the rows of every cell of every identity by equal bins of their scores.

    Bins span [0, 1], or all scores of a model if some lie outside. Takes what `bias_metrics` takes besides, costs as
    much, and returns the columns of the table ``score_histograms`` less the run's.
    """
    return _measure(df, measures, CorpusTables.score_histograms, histograms={"bins": bins})


@with_keywords
def label_balance(
    df: DataFrame,
    *,
    text: str | None = None,
    length: str | None = None,
    buckets: Sequence[int] | None = None,
    models: Models | None = None,  # noqa: ARG001 - the same keywords fit every function
    **measures: Unpack[GroupKeywords],
) -> DataFrame:
    """Return how often every identity is positive by text length, and how many negatives would balance it.

    Parameters
    ----------
    text, length : str, optional
        The column with the text, or the one with its length; without either, lengths do not count.
    buckets : sequence of int, optional
        Where lengths are cut; by default 20, 60, 180, 540, 1620, 4860.
    **measures
        What `bias_metrics` takes, but for evidence; ``models`` is not needed, since scores do not count.

    Returns
    -------
    DataFrame
        The columns of the table ``label_balance`` less the run's. Computed when called.

    Raises
    ------
    ConfigError, InputError
        With all faults at once; also if no row has a label.

    Warns
    -----
    InputWarning
        Of what a person should look at: labels that are all alike, identities without rows, many rejected rows.

    Notes
    -----
    When called, the rows are scanned three times: for a survey, to count them, and for the table. Nothing is ranked.
    """
    table = {"text": text, "length": length, "buckets": buckets}
    asked = parse_keywords(measures, {"label_balance": table}, scored=False)
    balance, warnings = balance_labels(df, asked)
    computed = compute(df, asked.expressions, lambda: balance)
    warn(write_warnings(warnings))
    return computed


@with_keywords
def template_scores(df: DataFrame, *, template: str, **measures: Unpack[SuiteKeywords]) -> DataFrame:
    """Return the mean score of every template and identity: a fair model scores a template alike for all.

    ``template`` is the column that says from which template a row was made. Takes what `bias_metrics` takes besides,
    and returns the columns of the table ``template_scores`` less the run's. Computed when called: costs as much as
    `bias_metrics`, which says what is wrong with the rows, and one more scan for the table.
    """
    scores = _measure(df, measures, CorpusTables.template_scores, templates={"column": template})
    if scores.isEmpty():
        warn([f"template: no usable row has a value in '{template}', so the table is empty. Is it the right column?"])
    return scores


def _measure(
    df: DataFrame,
    measures: SuiteKeywords,
    table: Callable[[CorpusTables], DataFrame],
    **parts: Mapping[str, Any],
) -> DataFrame:
    """Rank a corpus, and return one table, computed; ``parts`` are tables of the configuration."""
    measurement = pipeline.measure(df, parse_keywords(measures, parts))
    return compute_ranked(measurement, partial(table, CorpusTables(measurement)))
