"""The public functions that return one table of metrics, from a frame of any kind.

Each ranks the rows when it is called; `biasspark.measure` ranks once for several tables. The result holds the rows of
the table of the function's name, without the run's columns, so nothing is ranked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from biasspark.api.frame_kinds import hold, spark_rows, warn
from biasspark.api.keywords import IdentitiesLike, Keywords, Models, RankingEngine, Unannotated
from biasspark.api.measured import measure_corpus
from biasspark.api.record_batches import Frame, collect_columns
from biasspark.tables import schemas
from biasspark.workflows.corpus_steps import balance_labels, measure, survey_for_ranking
from biasspark.workflows.pinned_skew import check_identity, skew_classes, skew_only

Cell = Literal["subgroup_negative", "subgroup_positive", "background_negative", "background_positive"]


def bias_metrics(
    df: Frame,
    *,
    narrow: bool = False,
    models: Models,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    identities: IdentitiesLike,
    identity_threshold: float = 0.5,
    unannotated: Unannotated = "exclude",
    slices: Mapping[str, str] | None = None,
    engine: RankingEngine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    evidence: Mapping[str, Any] | int | None = None,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return the bias metrics: a row for each (model, slice, identity) with six metrics and their intervals.

    A metric compares two cells: the rows with one label that are in the identity (subgroup) or known to be outside
    (background). For a low cell of n rows and a high cell of m rows,

        AUC = U / (n m),    U = pairs in which the row of the high cell scores higher, ties one half (Mann-Whitney)

    ========================  ====================  ====================  ===================================
    metric                    low cell              high cell             range, and what is bad
    ========================  ====================  ====================  ===================================
    ``subgroup_auc``          subgroup negatives    subgroup positives    0 to 1, low
    ``bpsn_auc``              subgroup negatives    background positives  0 to 1, low: false alarms
    ``bnsp_auc``              background negatives  subgroup positives    0 to 1, low: misses
    ``background_auc``        background negatives  background positives  0 to 1, to compare with
    ``negative_aeg`` + 1/2    background negatives  subgroup negatives    gap from -1/2 to 1/2, far from 0
    ``positive_aeg`` + 1/2    background positives  subgroup positives    gap from -1/2 to 1/2, far from 0
    ========================  ====================  ====================  ===================================

    All values are exact. A metric with an empty cell is NULL, with a reason.

    Parameters
    ----------
    df : Frame
        One row per comment: a DataFrame of Spark, pandas or Polars, an Arrow table, a relation of DuckDB or anything
        else with ``__arrow_c_stream__``, or the path of Parquet or CSV.
    narrow : bool, default False
        Return seven columns, as the notebook of the FATES study does (docs/papers.md#notebook): identity, subgroup_size
        and the five metrics; preceded by model and slice, if several models or any slices are given.
    models : str, list of str, or dict of str to str
        Score columns, or names with their score columns. Higher is more likely positive, on any increasing scale.
    label : str
        The column of the label: boolean, or numeric with `label_threshold`.
    label_threshold : float, optional
        A row is positive if its label is at or above the threshold.
    label_positive : list, optional
        The positive values of the label, instead of a threshold.
    identities : str, list of str, dict, or Identities
        Columns of annotations, or a dict with the keys of ``[identities]`` in the configuration.
    identity_threshold : float, default 0.5
        For a list of columns: a row is in the identity of a numeric column if its value is at or above the threshold.
    unannotated : {"exclude", "background"}
        For a list of columns: whether a row with NULL is excluded, or belongs to the background.
    slices : dict of str to str, optional
        Names and Spark SQL predicates of parts of the corpus that are measured as well.
    engine : {"blocks", "windows"}
        Sorted blocks in numpy, or rank windows in pure Spark SQL.
    ranges : int, default 0
        The number of score ranges into which the ranking is split; 0 chooses it from the number of rows.
    level : float, default 0.95
        The level of the intervals.
    evidence : int, or dict, optional
        The fewest rows that each cell of a metric needs for the metric to have a value, or a dict with the keys of
        ``[evidence]``.
    privacy : True, int, or dict, optional
        The group size below which numbers are suppressed; True for 10.

    Returns
    -------
    Frame
        The columns of the table ``bias_metrics``, except those of the run (run_date, corpus, run_id) and ``X_method``.
        It is of the kind of ``df``; for paths, relations and streams, an Arrow table. The method of an interval follows
        from the value and the counts. ``bias`` and ``bias_size`` name what the intervals show.

    Raises
    ------
    TypeError
        If ``df`` is not a frame.
    ConfigError
        With all faults of the keywords.
    InputError
        With all faults of the rows, or if a model has no AUC: no usable score, or those of one label only.

    Warns
    -----
    InputWarning
        If scores, identities or rejected rows are to be reviewed.

    Examples
    --------
    >>> biasspark.bias_metrics(
    ...     df, models=["toxicity_1", "toxicity_6"], label="target", label_threshold=0.5, identities=["male", "female"]
    ... ).show()

    Notes
    -----
    The rows are scanned twice, for a survey and for the ranking, and shuffled once; with the engine "windows" they are
    scanned four times or more. Every function does this anew; `biasspark.measure` does it once for all tables. A row
    with a NaN or missing score is left out for that model, one with a missing label for all models.

    References
    ----------
    Borkan, Dixon, Sorensen, Thain and Vasserman, "Nuanced Metrics for Measuring Unintended Bias with Real Data for Text
    Classification", 2019. The intervals: docs/metrics.md.
    """
    return measure_corpus(df, Keywords(locals())).bias_metrics(narrow=narrow)


def u_statistics(
    df: Frame,
    *,
    models: Models,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    identities: IdentitiesLike,
    identity_threshold: float = 0.5,
    unannotated: Unannotated = "exclude",
    slices: Mapping[str, str] | None = None,
    engine: RankingEngine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    evidence: Mapping[str, Any] | int | None = None,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return the integers that determine every metric, for six pairs of cells per identity.

    For a low cell of n rows and a high cell of m rows these are n, m, twice their Mann-Whitney U, and the sums of
    squared placements for DeLong's variance, all exact. ``AUC = U / (n m)``.

    Keywords, errors, warnings and costs are those of `bias_metrics`.

    References
    ----------
    DeLong, DeLong and Clarke-Pearson, "Comparing the Areas under Two or More Correlated Receiver Operating
    Characteristic Curves: A Nonparametric Approach", 1988.
    """
    return measure_corpus(df, Keywords(locals())).table(schemas.U_STATISTICS)


def model_summary(
    df: Frame,
    *,
    models: Models,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    identities: IdentitiesLike | None = None,
    identity_threshold: float = 0.5,
    unannotated: Unannotated = "exclude",
    slices: Mapping[str, str] | None = None,
    engine: RankingEngine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    evidence: Mapping[str, Any] | int | None = None,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return a row for each (model, slice): the overall AUC, and the worst, best and mean of each metric.

    Over the n identities with a value x, crossed pairs left out, with the power p = -5, in which the worst weigh most:

        power mean = (sum of x^p / n)^(1/p), 0 if any x is 0
        competition score = (AUC + power means of subgroup, BPSN and BNSP AUC) / 4
        pinned AUC equality difference = sum of |AUC of the rows of known membership - pinned AUC|

    All are 0 to 1, 1 is best, except gaps (the largest |gap|, 0 to 1/2) and the difference (0 or more), where 0 is.
    Keywords, errors, warnings and costs are those of `bias_metrics`. Without identities, only the overall AUC is known.
    """
    arguments = dict(locals())
    if identities is None:
        del arguments["identities"]
    return measure_corpus(df, Keywords(arguments)).table(schemas.MODEL_SUMMARY)


def pinned_auc(
    df: Frame,
    *,
    trials: int = 0,
    seed: int = 1,
    include_subgroup_in_background: bool = True,
    models: Models,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    identities: IdentitiesLike,
    identity_threshold: float = 0.5,
    unannotated: Unannotated = "exclude",
    slices: Mapping[str, str] | None = None,
    engine: RankingEngine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    evidence: Mapping[str, Any] | int | None = None,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return the pinned AUC of every identity, with the four AUCs and weights that determine it.

    Pinned AUC, 0 to 1, is the AUC over the subgroup and an equal number of rows drawn from all rows, or from the
    background. The closed form is the AUC of all rows of known membership, each weighted by how often it is expected in
    that set: with s rows in the subgroup, b in the background and N = s + b, a row of the subgroup weighs s + N, and
    one of the background s; if rows are drawn from the background, b and s. So it is the mean of four AUCs, each
    weighted by the product of the total weights of its two cells. The mean over trials of a small identity differs,
    since rows are few and trials without both labels are left out.

    The authors of pinned AUC advise against it: it changes with the share of positives in an identity even if the model
    stays the same. Use `bias_metrics` for decisions.

    The other keywords, errors, warnings and costs are those of `bias_metrics`. With trials the rows are scanned and
    shuffled once more.

    Parameters
    ----------
    trials : int, default 0
        The number of times that the pinned set is also drawn, as in the publication. A trial costs about as much as
        ranking the set.
    seed : int, default 1
        The seed of the draws.
    include_subgroup_in_background : bool, default True
        Whether the background is drawn from all rows, as in the papers, or from those outside the identity.

    References
    ----------
    Borkan, Dixon, Li, Sorensen, Thain and Vasserman, "Limitations of Pinned AUC for Measuring Unintended Bias", 2019.
    """
    return measure_corpus(df, Keywords(locals(), "pinned_auc")).table(schemas.PINNED_AUC)


def pinned_skew(
    df: Frame,
    *,
    identity: str,
    cell: Cell = "subgroup_negative",
    fraction: float = 0.5,
    trials: int = 100,
    seed: int = 1,
    models: Models,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    identities: IdentitiesLike,
    identity_threshold: float = 0.5,
    unannotated: Unannotated = "exclude",
    slices: Mapping[str, str] | None = None,
    engine: RankingEngine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    evidence: Mapping[str, Any] | int | None = None,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return how pinned AUC and the other AUCs change when rows of one cell of an identity are dropped.

    The model stays the same, so subgroup, BPSN and BNSP AUC do not change, but pinned AUC moves with the class balance.

    The other keywords, errors, warnings and costs are those of `bias_metrics`. It is also an error if there is no such
    identity, or if one of its cells has no row.

    Parameters
    ----------
    identity : str
        The identity among ``identities``: ``column=value`` for a categorical column, the value for an array.
    cell : {"subgroup_negative", "subgroup_positive", "background_negative", "background_positive"}
        The cell whose rows are dropped.
    fraction : float, default 0.5
        The share of the cell that is dropped, between 0 and 1.
    trials : int, default 100
        The number of times that rows are dropped at random. A trial needs no new ranking.
    seed : int, default 1
        The seed that determines which rows are dropped, on any cluster.

    Returns
    -------
    Frame
        The columns of the table ``pinned_skew``, except those of the run: a row for each (model, slice) and identity.
        Identities that lose no row have only the closed form.

    Notes
    -----
    The engine is always "blocks", and crossed pairs are left out. The rows are scanned three times, for a survey, for
    the ranking, and to pack them for the ranking without the cell and for the trials, and shuffled three times.

    References
    ----------
    "Limitations of Pinned AUC for Measuring Unintended Bias", 2019, section 3.
    """
    keywords = Keywords(locals(), "pinned_skew")
    with keywords.name_faults():
        measures = keywords.measures()
        with spark_rows(df, measures) as corpus, survey_for_ranking(corpus, skew_only(measures)) as surveyed:
            check_identity(surveyed.encoding, identity)
            measurement = measure(surveyed)
            skewed = skew_classes(surveyed, measurement)
    warn(measurement.warnings)
    return hold(df, schemas.PINNED_SKEW, skewed)


def threshold_rates(
    df: Frame,
    *,
    at: Sequence[float] | None = None,
    grid: Mapping[str, float] | None = None,
    models: Models,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    identities: IdentitiesLike,
    identity_threshold: float = 0.5,
    unannotated: Unannotated = "exclude",
    slices: Mapping[str, str] | None = None,
    engine: RankingEngine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    evidence: Mapping[str, Any] | int | None = None,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return decisions, rates, and gaps of rates to the background, for every identity and threshold.

    From exact counts of true and false positives and negatives, all 0 to 1, NULL if the denominator is 0:

        TPR = TP / (TP + FN),   FPR = FP / (FP + TN),   precision = TP / (TP + FP),   TNR = 1 - FPR,   FNR = 1 - TPR,
        selection rate = (TP + FP) / (TP + FP + TN + FN)

    A gap, -1 to 1, is the rate of the subgroup minus that of the background, with Newcombe's interval for a difference
    of proportions.

    The other keywords, errors, warnings and costs are those of `bias_metrics`.

    Parameters
    ----------
    at : sequence of float, optional
        Thresholds, in units of the score. The decision is positive if the score is at or above the threshold.
    grid : mapping, optional
        Thresholds from ``low`` to ``high`` in a number of equal ``steps``, by default 0, 1 and 100. Give this,
        ``at``, or both.

    References
    ----------
    Newcombe, "Interval Estimation for the Difference between Independent Proportions", 1998, method 10.
    """
    return measure_corpus(df, Keywords(locals(), "thresholds")).table(schemas.THRESHOLD_RATES)


def threshold_summary(
    df: Frame,
    *,
    at: Sequence[float] | None = None,
    grid: Mapping[str, float] | None = None,
    models: Models,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    identities: IdentitiesLike,
    identity_threshold: float = 0.5,
    unannotated: Unannotated = "exclude",
    slices: Mapping[str, str] | None = None,
    engine: RankingEngine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    evidence: Mapping[str, Any] | int | None = None,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return the error rates of every slice at every threshold, and their equality differences over identities.

    The False Positive and False Negative Equality Difference is the sum over identities of ``|rate of the identity -
    rate of the slice|``, 0 or more, 0 is best.

    Keywords, errors, warnings and costs are those of `threshold_rates`.

    References
    ----------
    Dixon, Li, Sorensen, Thain and Vasserman, "Measuring and Mitigating Unintended Bias in Text Classification", 2018.
    """
    return measure_corpus(df, Keywords(locals(), "thresholds")).table(schemas.THRESHOLD_SUMMARY)


def score_histograms(
    df: Frame,
    *,
    bins: int = 100,
    models: Models,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    identities: IdentitiesLike,
    identity_threshold: float = 0.5,
    unannotated: Unannotated = "exclude",
    slices: Mapping[str, str] | None = None,
    engine: RankingEngine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    evidence: Mapping[str, Any] | int | None = None,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return the number of rows by bin of their score, for every cell of every identity.

    A bin is from ``bin_low``, inclusive, to ``bin_high``, exclusive except for the last one, in units of the score. It
    has 1 or more rows: empty bins are left out.

    The other keywords, errors, warnings and costs are those of `bias_metrics`.

    Parameters
    ----------
    bins : int, default 100
        The number of equal bins of [0, 1], or of the range of all scores of a model if some lie outside.
    """
    return measure_corpus(df, Keywords(locals(), "histograms")).table(schemas.SCORE_HISTOGRAMS)


def label_balance(
    df: Frame,
    *,
    text: str | None = None,
    length: str | None = None,
    buckets: Sequence[int] | None = None,
    models: Models | None = None,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    identities: IdentitiesLike,
    identity_threshold: float = 0.5,
    unannotated: Unannotated = "exclude",
    slices: Mapping[str, str] | None = None,
    engine: RankingEngine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return the share of positives of every identity by text length, and the negatives that would balance it.

    For an identity with n rows and P positives in a bucket that has n* rows and P* positives, the shares are P/n and
    P*/n*, 0 to 1, and

        n_negatives_to_add = the smallest a >= 0 with P / (n + a) <= P* / n*  =  max(0, ceil(P n* / P*) - n)

    It is NULL if P* is 0. For all lengths it is the sum over the buckets.

    The other keywords, errors and warnings are those of `bias_metrics`. It is also an error if no row has a label. The
    rows are scanned three times: for a survey, to count them, and for the table. Nothing is ranked.

    Parameters
    ----------
    text, length : str, optional
        The column with the text, or with its length. Without either, rows are not split by length.
    buckets : sequence of int, optional
        The edges of the length bins; by default 20, 60, 180, 540, 1620, 4860.
    models : optional
        Ignored. It is there so that the same keywords fit every function.

    References
    ----------
    Dixon, Li, Sorensen, Thain and Vasserman, "Measuring and Mitigating Unintended Bias in Text Classification", 2018.
    """
    arguments = dict(locals())
    del arguments["models"]
    keywords = Keywords(arguments, "label_balance")
    with keywords.name_faults():
        measures = keywords.measures(scored=False)
        with spark_rows(df, measures) as corpus, survey_for_ranking(corpus, measures) as surveyed:
            counted = balance_labels(surveyed)
    warn(counted.warnings)
    return hold(df, schemas.LABEL_BALANCE, counted.balance)


def template_scores(
    df: Frame,
    *,
    template: str,
    models: Models,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    identities: IdentitiesLike,
    identity_threshold: float = 0.5,
    unannotated: Unannotated = "exclude",
    slices: Mapping[str, str] | None = None,
    engine: RankingEngine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    evidence: Mapping[str, Any] | int | None = None,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return the mean score of every template and identity. A fair model scores a template equally for all identities.

    ``mean_score`` is in the units and the range of the scores, 0 to 1 for probabilities; ``sd_score`` is the standard
    deviation, with n - 1, 0 or more, NULL with one row.

    The other keywords, errors, warnings and costs are those of `bias_metrics`. The rows are scanned once more.

    Parameters
    ----------
    template : str
        The column with the template of each row.

    References
    ----------
    Dixon, Li, Sorensen, Thain and Vasserman, "Measuring and Mitigating Unintended Bias in Text Classification", 2018.
    """
    measured = measure_corpus(df, Keywords(locals()))
    scores = collect_columns(measured.template_scores(), schemas.TEMPLATE_SCORES.arrow_schema, "template scores")
    if not len(scores):
        warn([f"template: no usable row has a value in '{template}', so the table is empty. Is it the right column?"])
    return hold(df, schemas.TEMPLATE_SCORES, scores)
