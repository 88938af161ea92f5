"""The public functions of single tables, for notebooks: the job's tables of a frame of any kind.

Each ranks the rows when it is called: `biasspark.measure` ranks once for several. What it returns holds the rows of the
table, so nothing is ranked again. Each raises the errors of `biasspark.measure`, and gives its warnings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from biasspark.api.frame_kinds import collect_columns, hold, spark_rows, warn
from biasspark.api.keywords import (
    Engine,
    IdentitiesLike,
    Keywords,
    Models,
    Unannotated,
    identity_keywords,
    row_keywords,
)
from biasspark.api.measured import measure_corpus
from biasspark.api.record_batches import Frame
from biasspark.corpus.survey import check_identity
from biasspark.tables import schemas
from biasspark.workflows.measurement import balance_labels, measure, survey_for_ranking
from biasspark.workflows.pinned_skew import skew_classes, skew_only

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
    engine: Engine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    evidence: Mapping[str, Any] | int | None = None,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return the bias suite: one row a (model, slice, identity) with six metrics and their intervals.

    A metric compares two cells of an identity: the rows in it (subgroup) or known to be outside (background) with one
    label. Of a low cell of n rows and a high one of m,

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

    All are exact; a metric with an empty cell is NULL, with a reason.

    Parameters
    ----------
    df : Frame
        One row per comment: a DataFrame of Spark, pandas or Polars, an Arrow table, a relation of DuckDB or anything
        else with ``__arrow_c_stream__``, or the path of Parquet or CSV.
    narrow : bool, default False
        Return seven columns, as the well-known notebook on these metrics does: identity, subgroup_size and the five
        metrics. Before them stand model and slice, if several models or any slices are given.
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
        For a list of columns: a row is in the identity of a numeric column at or above it.
    unannotated : {"exclude", "background"}
        For a list of columns: what NULL in an identity's column means.
    slices : dict of str to str, optional
        Names and Spark SQL predicates of parts of the corpus that are measured, too.
    engine : {"blocks", "windows"}
        Sorted blocks in numpy, or rank windows in pure Spark SQL.
    ranges : int, default 0
        Into how many score ranges the ranking is cut; 0: chosen from the rows.
    level : float, default 0.95
        Of the intervals.
    evidence : int, or dict, optional
        How many rows each of the two cells of a metric needs for the metric to have a value, or a dict with the keys of
        ``[evidence]``.
    privacy : True, int, or dict, optional
        Below how many rows the numbers of a group are suppressed; True for 10.

    Returns
    -------
    Frame
        The columns of the table ``bias_metrics`` less the run's (run_date, corpus, run_id) and less ``X_method``, as a
        frame of the kind of ``df``: of paths, relations and streams an Arrow table. How an interval is made follows
        from the value and the counts. ``bias`` and ``bias_size`` name what the intervals show.

    Raises
    ------
    ConfigError
        With every fault of the keywords at once.
    InputError
        With every fault of the rows at once, or if a model has no usable score.

    Warns
    -----
    InputWarning
        Of what a person should look at: scores, identities and rejected rows that are peculiar.

    Examples
    --------
    >>> import biasspark  # doctest: +SKIP
    >>> biasspark.bias_metrics(
    ...     df, models=["toxicity_1", "toxicity_6"], label="target", label_threshold=0.5, identities=["male", "female"]
    ... ).show()  # doctest: +SKIP

    Notes
    -----
    The rows are scanned twice, for a survey and for the ranking, and shuffled once; with the engine "windows" they are
    scanned four times or more. Every other function does the same: `biasspark.measure` does it once for all tables.
    NaN and missing scores leave a row out for that model, a missing label for all.

    References
    ----------
    Borkan, Dixon, Sorensen, Thain and Vasserman, "Nuanced Metrics for Measuring Unintended Bias with Real Data for Text
    Classification", 2019. The intervals: docs/metrics.md.
    """
    rows = row_keywords(label, label_threshold, label_positive, slices, ranges, level)
    groups = identity_keywords(identities, identity_threshold, unannotated, engine)
    given = {"models": models, **rows, **groups, "evidence": evidence, "privacy": privacy}
    return measure_corpus(df, Keywords(given)).bias_metrics(narrow=narrow)


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
    engine: Engine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    evidence: Mapping[str, Any] | int | None = None,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return the integers from which every metric follows: six pairs of cells per identity.

    Of a low cell of n rows and a high one of m: n, m, twice their Mann-Whitney U, and the sums of squares of the
    placements that DeLong's variance takes, all exact. ``AUC = U / (n m)``.

    Keywords, errors, warnings and costs are those of `bias_metrics`.

    Returns
    -------
    Frame
        The columns of the table ``u_statistics`` less the run's.
    """
    rows = row_keywords(label, label_threshold, label_positive, slices, ranges, level)
    groups = identity_keywords(identities, identity_threshold, unannotated, engine)
    given = {"models": models, **rows, **groups, "evidence": evidence, "privacy": privacy}
    return measure_corpus(df, Keywords(given)).table(schemas.U_STATISTICS)


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
    engine: Engine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    evidence: Mapping[str, Any] | int | None = None,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return one row a (model, slice): overall AUC, and each metric's worst, best and mean over identities.

    Keywords, errors, warnings and costs are those of `bias_metrics`, but identities are not needed: without them there
    is the overall AUC alone.

    Returns
    -------
    Frame
        The columns of the table ``model_summary`` less the run's.
    """
    rows = row_keywords(label, label_threshold, label_positive, slices, ranges, level)
    groups: dict[str, Any] = {"engine": engine}
    if identities is not None:
        groups = identity_keywords(identities, identity_threshold, unannotated, engine)
    given = {"models": models, **rows, **groups, "evidence": evidence, "privacy": privacy}
    return measure_corpus(df, Keywords(given)).table(schemas.MODEL_SUMMARY)


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
    engine: Engine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    evidence: Mapping[str, Any] | int | None = None,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return the pinned AUC of every identity, with the four weights and the four AUCs of which it is made.

    The AUC, 0 to 1, of the subgroup and of as many rows drawn from the background. In the limit of many draws it is a
    mean of the AUCs of the four pairs of cells, weighted by their pairs. Its authors advise against it: it moves with
    the share of positives of an identity while the model stays the same. Decide by `bias_metrics`.

    The other keywords, errors, warnings and costs are those of `bias_metrics`.

    Parameters
    ----------
    trials : int, default 0
        How often the pinned set is also drawn, as it was published; each trial costs about as much as ranking it.
    seed : int, default 1
        Of the draws.
    include_subgroup_in_background : bool, default True
        Whether the background is drawn from all rows, as the papers say, or from those outside the identity.

    Returns
    -------
    Frame
        The columns of the table ``pinned_auc`` less the run's.

    Notes
    -----
    With trials the rows are scanned and shuffled once more.

    References
    ----------
    Borkan, Dixon, Li, Sorensen, Thain and Vasserman, "Limitations of Pinned AUC for Measuring Unintended Bias", 2019.
    """
    rows = row_keywords(label, label_threshold, label_positive, slices, ranges, level)
    groups = identity_keywords(identities, identity_threshold, unannotated, engine)
    given = {"models": models, **rows, **groups, "evidence": evidence, "privacy": privacy}
    pinned = {"trials": trials, "seed": seed, "include_subgroup_in_background": include_subgroup_in_background}
    return measure_corpus(df, Keywords(given, "pinned_auc", **pinned)).table(schemas.PINNED_AUC)


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
    engine: Engine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    evidence: Mapping[str, Any] | int | None = None,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return what the pinned AUC of an identity becomes when rows of one cell are dropped, and what the suite becomes.

    The model stays the same: subgroup, BPSN and BNSP AUC stand still, and the pinned AUC moves with the class balance.

    The other keywords, errors, warnings and costs are those of `bias_metrics`; it is an error, too, if there is no such
    identity, or a cell of it has no row.

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
    seed : int, default 1
        Of the draws: it fixes which rows are dropped, on any cluster.

    Returns
    -------
    Frame
        The columns of the table ``pinned_skew`` less the run's: one row for each (model, slice) and identity.
        Of the identities that lose no row of a cell of theirs there is the closed form alone.

    Notes
    -----
    Identities are ranked by the engine "blocks" whatever is given, crossed pairs left out. The rows are scanned three
    times, for a survey, the ranking, and to keep them packed for the ranking without the cell and the trials, and
    shuffled three times.

    References
    ----------
    "Limitations of Pinned AUC for Measuring Unintended Bias", 2019, section 3.
    """
    rows = row_keywords(label, label_threshold, label_positive, slices, ranges, level)
    groups = identity_keywords(identities, identity_threshold, unannotated, engine)
    given = {"models": models, **rows, **groups, "evidence": evidence, "privacy": privacy}
    skew = {"identity": identity, "cell": cell, "fraction": fraction, "trials": trials, "seed": seed}
    keywords = Keywords(given, "pinned_skew", **skew)
    with keywords.name_faults():
        measures = keywords.measures()
        with spark_rows(df) as corpus, survey_for_ranking(corpus, skew_only(measures)) as surveyed:
            check_identity(surveyed.survey, measures.identities, identity)
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
    engine: Engine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    evidence: Mapping[str, Any] | int | None = None,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return decisions, rates and their gaps to the background of every identity at every threshold.

    TPR, FPR, TNR, FNR, precision and selection rate, 0 to 1, from exact counts; a gap, -1 to 1, is the rate of the
    subgroup less that of the background, with Newcombe's interval for a difference of proportions.

    The other keywords, errors, warnings and costs are those of `bias_metrics`.

    Parameters
    ----------
    at : sequence of float, optional
        Thresholds; a row is decided positive where its score is at or above one.
    grid : mapping, optional
        Thresholds from ``low`` to ``high`` in so many ``steps``, by default 0, 1 and 100.

    Returns
    -------
    Frame
        The columns of the table ``threshold_rates`` less the run's.
    """
    rows = row_keywords(label, label_threshold, label_positive, slices, ranges, level)
    groups = identity_keywords(identities, identity_threshold, unannotated, engine)
    given = {"models": models, **rows, **groups, "evidence": evidence, "privacy": privacy}
    return measure_corpus(df, Keywords(given, "thresholds", at=at, grid=grid)).table(schemas.THRESHOLD_RATES)


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
    engine: Engine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    evidence: Mapping[str, Any] | int | None = None,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return the error rates of every slice at every threshold, and how unequal those of its identities are.

    The False Positive and False Negative Equality Difference (Dixon et al. 2018): the sum over identities of ``|rate of
    the identity - rate of the slice|``, 0 or more, 0 is best.

    Keywords, errors, warnings and costs are those of `threshold_rates`.

    Returns
    -------
    Frame
        The columns of the table ``threshold_summary`` less the run's.
    """
    rows = row_keywords(label, label_threshold, label_positive, slices, ranges, level)
    groups = identity_keywords(identities, identity_threshold, unannotated, engine)
    given = {"models": models, **rows, **groups, "evidence": evidence, "privacy": privacy}
    return measure_corpus(df, Keywords(given, "thresholds", at=at, grid=grid)).table(schemas.THRESHOLD_SUMMARY)


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
    engine: Engine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    evidence: Mapping[str, Any] | int | None = None,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return how many rows of every cell of every identity have a score in each of equal bins.

    The other keywords, errors, warnings and costs are those of `bias_metrics`.

    Parameters
    ----------
    bins : int, default 100
        Bins of [0, 1], or of the range of all scores of a model if some lie outside.

    Returns
    -------
    Frame
        The columns of the table ``score_histograms`` less the run's.
    """
    rows = row_keywords(label, label_threshold, label_positive, slices, ranges, level)
    groups = identity_keywords(identities, identity_threshold, unannotated, engine)
    given = {"models": models, **rows, **groups, "evidence": evidence, "privacy": privacy}
    return measure_corpus(df, Keywords(given, "histograms", bins=bins)).table(schemas.SCORE_HISTOGRAMS)


def label_balance(
    df: Frame,
    *,
    text: str | None = None,
    length: str | None = None,
    buckets: Sequence[int] | None = None,
    models: Models | None = None,  # noqa: ARG001 - the same keywords fit every function
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    identities: IdentitiesLike,
    identity_threshold: float = 0.5,
    unannotated: Unannotated = "exclude",
    slices: Mapping[str, str] | None = None,
    engine: Engine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return how often every identity is positive by text length, and how many negatives would balance it.

    The other keywords, errors and warnings are those of `bias_metrics`; it is an error, too, if no row has a label.

    Parameters
    ----------
    text, length : str, optional
        The column with the text, or the one with its length; without either, lengths do not count.
    buckets : sequence of int, optional
        Where lengths are cut; by default 20, 60, 180, 540, 1620, 4860.
    models : optional
        Not used, since scores do not count: the same keywords fit every function.

    Returns
    -------
    Frame
        The columns of the table ``label_balance`` less the run's.

    Notes
    -----
    The rows are scanned three times: for a survey, to count them, and for the table. Nothing is ranked.
    """
    rows = row_keywords(label, label_threshold, label_positive, slices, ranges, level)
    groups = identity_keywords(identities, identity_threshold, unannotated, engine)
    given = {**rows, **groups, "privacy": privacy}
    keywords = Keywords(given, "label_balance", text=text, length=length, buckets=buckets)
    with keywords.name_faults():
        measures = keywords.measures(scored=False)
        with spark_rows(df) as corpus, balance_labels(corpus, measures) as counted:
            balance, warnings = counted.balance, counted.warnings
    warn(warnings)
    return hold(df, schemas.LABEL_BALANCE, balance)


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
    engine: Engine = "blocks",
    ranges: int = 0,
    level: float = 0.95,
    evidence: Mapping[str, Any] | int | None = None,
    privacy: Mapping[str, Any] | int | bool | None = None,
) -> Frame:
    """Return the mean score of every template and identity: a fair model scores a template alike for all.

    The other keywords, errors, warnings and costs are those of `bias_metrics`.

    Parameters
    ----------
    template : str
        The column of the template from which a row was made.

    Returns
    -------
    Frame
        The columns of the table ``template_scores`` less the run's.

    Notes
    -----
    The rows are scanned once more.
    """
    rows = row_keywords(label, label_threshold, label_positive, slices, ranges, level)
    groups = identity_keywords(identities, identity_threshold, unannotated, engine)
    given = {"models": models, **rows, **groups, "evidence": evidence, "privacy": privacy}
    measured = measure_corpus(df, Keywords(given | {"template": template}))
    scores = collect_columns(measured.template_scores(), schemas.TEMPLATE_SCORES.arrow_schema, "template scores")
    if not len(scores):
        warn([f"template: no usable row has a value in '{template}', so the table is empty. Is it the right column?"])
    return hold(df, schemas.TEMPLATE_SCORES, scores)
