"""The public functions that compare models, on the rows that both score, or metric by metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from biasspark.api.frame_kinds import hold, like, spark_rows, warn
from biasspark.api.keywords import IdentitiesLike, Keywords, Models, RankingEngine, Unannotated, check_whole
from biasspark.api.record_batches import Frame, collect_columns, list_columns, read_once
from biasspark.columns import MODEL
from biasspark.comparison.model_comparisons import model_comparisons as comparisons_table
from biasspark.config import JACKKNIFE
from biasspark.errors import ABSENT, ConfigError, Fault, InputError
from biasspark.report import side_by_side as comparison
from biasspark.tables.schemas import BIAS_METRICS, MODEL_COMPARISONS
from biasspark.text import list_first, show_value
from biasspark.workflows.compare import compared_only, prepare_comparison
from biasspark.workflows.corpus_steps import survey_for_ranking


def side_by_side(metrics: Frame, first: str, second: str, *, min_rows: int = 0) -> Frame:
    """Return two models side by side, a row per slice and identity: the five metrics of each, and their differences.

    The metrics are collected when the function is called.

    Parameters
    ----------
    metrics : Frame
        The result of `bias_metrics`, or the table or view of published runs.
    first, second : str
        Two of its models.
    min_rows : int, default 0
        Identities with fewer rows in either model are left out.

    Returns
    -------
    Frame
        For each metric X ``X_first, X_second`` and ``X_difference``: for AUCs second - first, -1 to 1, below 0 if the
        second is worse; for gaps |second| - |first|, -1/2 to 1/2, above 0 if the second is worse. ``X_doubtful`` says
        whether either value rests on too few rows: its interval is missing or wider than 0.1. Also the intervals, the
        rows in the identity, the share of positives among them, ``worst_auc``, the lowest of the three AUCs, and the
        ``bias`` by name.

    Raises
    ------
    TypeError
        If ``metrics`` is not a frame.
    ConfigError, InputError
        If both models are the same, ``min_rows`` is not an integer of 0 or more, the frame has no metrics, or none of
        one of the models, or a model has several rows for one slice and identity.

    Examples
    --------
    >>> metrics = spark.table("latest_bias_metrics").where("run_date = DATE'2026-01-15'")
    >>> biasspark.side_by_side(metrics, "toxicity_1", "toxicity_6").orderBy("worst_auc_first")
    """
    with Keywords({}).name_faults():
        wrong = check_whole("min_rows", min_rows, 0)
        if first == second:
            same = Fault(("second",), second, "It is first as well: a comparison takes two.", "Name another model.")
            raise ConfigError(same, *wrong)
        rows = _collect_metrics(metrics, wrong)
        models = sorted(set(rows[MODEL].drop_null().to_pylist()))
        listed = list_first([show_value(model) for model in models]) or "none"
        unknown = [
            Fault((side,), model, f"The metrics have no such model. They have {listed}.", "Name one that they have.")
            for side, model in (("first", first), ("second", second))
            if model not in models
        ]
        if unknown or wrong:
            raise (ConfigError if wrong else InputError)(*unknown, *wrong)
    warn(
        f"model {show_value(model)}: no metric has a value in these metrics. Their reasons say why, in columns such as "
        "subgroup_auc_reason."
        for model in comparison.list_without_value(rows, (first, second))
    )
    compared = comparison.leave_out_small(comparison.side_by_side(rows, first, second), min_rows)
    return like(metrics)(compared, from_arrow_schema(compared.schema))


def _collect_metrics(metrics: Frame, wrong: Sequence[Fault]) -> pa.Table:
    """Return the columns of metrics that a comparison needs. If some are missing, raises that and other faults."""
    metrics = read_once(metrics, "metrics")
    columns = list_columns(metrics)
    if missing := [name for name in comparison.NEEDED if name not in columns]:
        what = f"there {'is no column' if len(missing) == 1 else 'are no columns'} {list_first(missing)}."
        fix = "Give what bias_metrics returns without narrow=True, or the table or view of published runs."
        raise (ConfigError if wrong else InputError)(Fault(("metrics",), ABSENT, what, fix), *wrong)
    wanted = {*comparison.KEY, *comparison.NEEDED} & set(columns)
    schema = pa.schema([field for field in BIAS_METRICS.full_arrow_schema if field.name in wanted])
    return collect_columns(metrics, schema, "metrics")


def model_comparisons(
    df: Frame,
    *,
    baseline: str,
    method: Literal["delong", "jackknife"] = "delong",
    groups: int | None = None,
    cluster: str | None = None,
    id: str | None = None,
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
) -> Frame:
    """Return the differences between every model and a baseline, metric by metric, on the rows that both score.

    For AUCs the difference is model - baseline, -1 to 1, below 0 if the model is worse; for gaps |model| - |baseline|,
    -1/2 to 1/2, above 0 if the model is worse. Each has an interval, a two-sided p-value and a verdict.

    The variance of A ± B, of two AUCs, is DeLong's, the sum over both cells, each of m rows, of (S_AA + S_BB ± 2 S_AB)
    / m, with S the variances and covariance of placements as shares; or that of the jackknife, (G - 1) / G times the
    sum of squared deviations of the G replicates A_g ± B_g from their mean. Gaps are compared by s·gap - t·baseline gap
    for all signs s and t that their intervals allow, with the variance of A - B if s = t, else of A + B. The p-value is
    the largest, and the interval spans those of all, within minus the largest size in the interval of the baseline's
    gap, and the largest in that of the model's.

    The other keywords, errors and warnings are those of `bias_metrics`. The engine is always "blocks".

    Parameters
    ----------
    baseline : str
        The model of ``models`` with which the others are compared.
    method : {"delong", "jackknife"}
        Variances from the paired placements of rows, or from leaving out each group of rows in turn.
    groups : int, default 100
        The number of groups of the jackknife.
    cluster : str, optional
        A column such as the author: the jackknife keeps rows with the same value in one group. A row with NULL or NaN
        is a cluster of its own.
    id : str, optional
        The column that identifies a row, which the jackknife needs.

    Returns
    -------
    Frame
        The columns of the table ``model_comparisons``, except those of the run.

    Warns
    -----
    InputWarning
        Also about models that share no row with the baseline, or only rows of one label; about clusters in too few
        groups for a verdict; and about rows without a cluster.

    Notes
    -----
    The rows are scanned twice, for a survey and to count them. Then the jackknife scans and shuffles them once for each
    other model. DeLong's variances take a scan and two shuffles for each other model and every 32 identities, and a row
    8 bytes per identity. P-values are adjusted over each slice and pair of models, those of crossed pairs separately.

    References
    ----------
    DeLong, DeLong and Clarke-Pearson, "Comparing the Areas under Two or More Correlated Receiver Operating
    Characteristic Curves: A Nonparametric Approach", 1988.
    """
    arguments = dict(locals())
    if id is None:
        del arguments["id"]
    keywords = Keywords(arguments, "compare")
    with keywords.name_faults():
        measures = keywords.measures()
        if measures.compare and measures.compare.method == JACKKNIFE and id is None:
            why = "The jackknife groups rows without a cluster by it."
            raise ConfigError(f"id: missing. {why} Name the column that identifies a row.")
        with (
            spark_rows(df, measures, id) as corpus,
            survey_for_ranking(corpus, compared_only(measures), id, "estimate" if id else "allow") as surveyed,
        ):
            comparison = prepare_comparison(surveyed)
            compared = comparison.compute()
    warn(comparison.list_warnings(compared))
    return hold(df, MODEL_COMPARISONS, comparisons_table(compared, measures.intervals.level))
