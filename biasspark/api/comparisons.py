"""The public functions that hold models against each other: on the rows that both score, or metric by metric."""

from __future__ import annotations

from typing import Literal, Unpack

from pyspark.sql import DataFrame

from biasspark.api.computed import compute, warn, write_warnings
from biasspark.api.keywords import ComparedKeywords, check_frame, parse_keywords, with_keywords
from biasspark.columns import MODEL
from biasspark.config import list_first, show_value
from biasspark.errors import InputError
from biasspark.maps.comparisons import compare
from biasspark.pipeline import warn_of_rejects
from biasspark.report import side_by_side as comparison
from biasspark.session import describe

MOST_NAMED = 10


def side_by_side(metrics: DataFrame, first: str, second: str) -> DataFrame:
    """Return two models side by side, one row per slice and identity: the five metrics of each, and their differences.

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
    ConfigError, InputError
        If both models are the same, or the frame holds no metrics, or none of one of the models.

    Examples
    --------
    >>> import biasspark  # doctest: +SKIP
    >>> metrics = spark.table("latest_bias_metrics").where("run_date = DATE'2026-01-15'")  # doctest: +SKIP
    >>> biasspark.side_by_side(metrics, "toxicity_1", "toxicity_6").orderBy("worst_auc_first")  # doctest: +SKIP

    Notes
    -----
    A small query lists the models of the frame when the function is called.
    """
    check_frame("side_by_side", metrics)
    compared = comparison.side_by_side(metrics, first, second)
    with describe(metrics.sparkSession, "list the models"):
        models = sorted(str(row[MODEL]) for row in metrics.select(MODEL).distinct().collect())
    listed = list_first([show_value(model) for model in models], MOST_NAMED) or "no row"
    if faults := [
        f"{side} = {show_value(model)}: the metrics have no such model. They have {listed}. Name one that they have."
        for side, model in (("first", first), ("second", second))
        if model not in models
    ]:
        raise InputError(*faults)
    return compared


@with_keywords
def model_comparisons(  # noqa: PLR0913 - the keys of the configuration's table
    df: DataFrame,
    *,
    baseline: str,
    method: Literal["delong", "jackknife"] = "delong",
    groups: int | None = None,
    cluster: str | None = None,
    id: str | None = None,
    **measures: Unpack[ComparedKeywords],
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
        A column whose equal values, such as an author's rows, the jackknife keeps in one group. A row on which it is
        NULL or NaN stands for itself.
    id : str, optional
        The column that identifies a row; the jackknife needs it.
    **measures
        What `bias_metrics` takes, but for evidence and privacy. The engine "windows" is taken as "blocks", and
        "binned" is refused.

    Returns
    -------
    DataFrame
        The columns of the table ``model_comparisons`` less the run's: of AUCs model - baseline, more is better; of gaps
        |model| - |baseline|, less is better; each with interval, p-value and verdict. Computed when called.

    Raises
    ------
    ConfigError, InputError
        With all faults at once; also if a model has no usable score.

    Warns
    -----
    InputWarning
        Of what a person should look at: models that share no row with the baseline, or rows of one label alone;
        clusters in fewer groups than a verdict takes; rows without a cluster, identities and slices without rows, and
        many rejected rows.

    Notes
    -----
    The rows are scanned twice, for a survey and to count them, and then once for every model beside the baseline and
    every 32 identities, and each time shuffled twice, by the jackknife once; a row takes 8 bytes for each identity
    along. P-values are adjusted over one (slice, pair of models), crossed pairs apart.
    """
    table = {"baseline": baseline, "method": method, "groups": groups, "cluster": cluster}
    compared = compare(df, parse_keywords(measures, {"compare": table}), id)
    warn(write_warnings((*compared.warnings, *warn_of_rejects(compared.tally))))
    return compute(df, compared.measures.expressions, lambda: compared.table)
