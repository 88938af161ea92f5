"""The public functions, for notebooks: the job's tables on any DataFrame, on any session, classic or Connect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from biasspark.config import Identities, Measures, parse_measures
from biasspark.errors import ConfigError
from biasspark.metrics import suite, summary
from biasspark.pipeline import Measurement, measure


def bias_metrics(df: DataFrame, **measures: Any) -> DataFrame:
    """Return the bias suite: one row a (model, slice, identity) with six metrics and their intervals.

    Subgroup, BPSN, BNSP and background AUC, and the Negative and Positive Average Equality Gap (Borkan et al. 2019,
    "Nuanced Metrics for Measuring Unintended Bias with Real Data for Text Classification"), each exact.

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
    engine : {"blocks", "windows"}
        Sorted blocks in numpy, or rank windows in pure Spark SQL.
    ranges : int, default 0
        Into how many score ranges the ranking is cut; 0 chooses.
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
    return _measure(df, **measures).statistics


def model_summary(df: DataFrame, **measures: Any) -> DataFrame:
    """Return one row a (model, slice): overall AUC, and each metric's worst, best and mean over identities.

    Takes what `bias_metrics` takes, and returns the columns of the table ``model_summary`` less the run's.
    """
    measurement = _measure(df, **measures)
    return summary.model_summary(measurement.statistics, measurement.measures.intervals)


def _measure(  # noqa: PLR0913 - the public functions' keywords, named once
    df: DataFrame,
    *,
    models: Sequence[str] | Mapping[str, str],
    label: str,
    identities: Sequence[str] | Mapping[str, Any] | Identities,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    identity_threshold: float = 0.5,
    unannotated: str = "exclude",
    slices: Mapping[str, str] | None = None,
    engine: str = "blocks",
    ranges: int = 0,
    level: float = 0.95,
) -> Measurement:
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
        "ranking": {"engine": engine, "ranges": ranges},
        "intervals": {"level": level},
    }
    measures: Measures = parse_measures(table)
    return measure(df, measures)
