"""The public functions of AUC attribution, for notebooks: the tables of its job on any DataFrame, on any session.

The method is that of "Attributing AUC-ROC to Analyze Binary Classifier Performance" (2022), with every pair of a corpus
counted, by ranking. All but `example_attributions`, whose table is as long as the corpus, compute when they are called
and return a DataFrame that holds its rows. Functions that search (`attribution_segments`, `attribution_slices`) and
those that add up exactly (`attribution_correlations`, `loss_by_segment`) keep the ranked rows while they run, and
release them. Each stops where a model has no usable score, and warns of many rejected rows, of labels that are all
alike, and of slices without a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from pyspark.sql import DataFrame

from biasspark.api.computed import compute, warn, write_warnings
from biasspark.api.keywords import ModelKeywords, parse_keywords, with_keywords
from biasspark.attribution import examples
from biasspark.maps.attribution import Attributed, attribute, check_rows, ranked_rows
from biasspark.maps.attribution_tables import cross_groups, list_tables, segment_pairs
from biasspark.tables.schemas import (
    ATTRIBUTION_CORRELATIONS,
    ATTRIBUTION_SEGMENTS,
    ATTRIBUTION_SLICES,
    LOSS_BY_SEGMENT,
    Table,
)


@with_keywords
def example_attributions(df: DataFrame, *, id: str, **measures: Unpack[ModelKeywords]) -> DataFrame:
    """Return every row's share of the AUC, exact: one row a (model, slice, row).

    Half the credit of each rightly ordered (positive, negative) pair goes to either of its rows, ties half. The
    attributions of all rows add up to AUC x positives x negatives; ``normalized_attribution``, 0 to 0.5, has the mean
    AUC / 2 over the positives and over the negatives.

    Parameters
    ----------
    df : DataFrame
        One row per example.
    id : str
        The column that identifies a row.
    models : str, list of str, or dict of str to str
        Score columns, or names and their score columns. Higher is more likely positive; any increasing scale.
    label : str
        The label's column: boolean, or numeric with `label_threshold`.
    label_threshold : float, optional
        A row is positive at or above it.
    label_positive : list, optional
        The values of the label's column that are positive, in place of a threshold.
    slices : dict of str to str, optional
        Names and Spark SQL predicates of parts of the rows that are ranked on their own, too.
    ranges : int, default 0
        Into how many score ranges the ranking is cut; 0 chooses.
    level : float, default 0.95
        Of intervals.

    Returns
    -------
    DataFrame
        The columns of the table ``example_attributions``, less run_date, corpus and run_id. Lazy: it is as long as
        the corpus.

    Raises
    ------
    ConfigError, InputError
        With all faults at once; also if a model has no usable score.

    Warns
    -----
    InputWarning
        Of what a person should look at: many rejected rows, labels that are all alike, slices without a row.

    Examples
    --------
    >>> import biasspark  # doctest: +SKIP
    >>> biasspark.example_attributions(
    ...     df, id="row_id", models=["score"], label="target", label_threshold=0.5
    ... ).orderBy("normalized_attribution").show()  # doctest: +SKIP

    Notes
    -----
    The rows are scanned three times, twice when the function is called, for a survey and to count them, and once when
    the table is computed, and shuffled once.
    """
    attributed = _attribute(df, id, {"write_examples": True}, measures)
    return examples.example_attributions(attributed.ranked)


@with_keywords
def attribution_correlations(
    df: DataFrame, *, id: str, link: str | Mapping[str, str] | None = None, **measures: Unpack[ModelKeywords]
) -> DataFrame:
    """Return how the attributions of rows correlate with their cross-entropy and Gini impurity.

    Takes what `example_attributions` takes besides ``link``: ``"logit"`` makes probabilities of scores that are
    log-odds, ``{"model": "logit"}`` of the scores of those models alone. Without, correlations of scores outside 0 to 1
    are NULL. Computed when called: three scans and a shuffle.
    """
    return _search(df, id, {"link": link}, ATTRIBUTION_CORRELATIONS, measures)


@with_keywords
def loss_by_segment(
    df: DataFrame,
    *,
    id: str,
    segments: Mapping[str, str] | None = None,
    link: str | Mapping[str, str] | None = None,
    **measures: Unpack[ModelKeywords],
) -> DataFrame:
    """Return cross-entropy, Gini impurity, AUC and mean attribution of named segments, and of all rows.

    ``segments`` gives their names and Spark SQL predicates. Takes what `attribution_correlations` takes besides.
    Computed when called: four scans and two shuffles, without segments three and one.
    """
    return _search(df, id, {"segments": segments, "link": link}, LOSS_BY_SEGMENT, measures)


@with_keywords
def attribution_segments(  # noqa: PLR0913 - the keys of the configuration
    df: DataFrame,
    *,
    id: str,
    numeric: Sequence[str] = (),
    categorical: Sequence[str] = (),
    targets: Sequence[str] = ("auc",),
    compare: Sequence[Sequence[str]] = (),
    tree: Mapping[str, Any] | None = None,
    link: str | Mapping[str, str] | None = None,
    **measures: Unpack[ModelKeywords],
) -> DataFrame:
    """Return the trees that find where models gain and lose their AUC, one row per node, with honest estimates.

    Parameters
    ----------
    numeric, categorical : list of str
        Columns to split on.
    targets : list of {"auc", "cross_entropy", "gini"}
        What trees predict.
    compare : list of (model, baseline)
        Models whose difference of attributions a tree predicts, too.
    tree : dict, optional
        ``max_depth, min_leaf, min_gain, max_bins, honest_fraction, seed``, as in the configuration.
    link : str or dict of str to str, optional
        As of `attribution_correlations`.
    **measures
        What `example_attributions` takes.

    Returns
    -------
    DataFrame
        The columns of the table ``attribution_segments`` less the run's. Computed when called.

    Notes
    -----
    Six scans, four of them to survey scores and columns and to count rows, and two shuffles; each pair of ``compare``
    ranks both models anew, a scan and a shuffle, and once more for every slice. Trees grow on what is kept.
    """
    part: dict[str, Any] = {"numeric": numeric, "categorical": categorical, "link": link}
    part |= {"targets": targets, "compare": compare, "tree": {} if tree is None else tree}
    return _search(df, id, part, ATTRIBUTION_SEGMENTS, measures)


@with_keywords
def attribution_slices(  # noqa: PLR0913 - the keys of the configuration
    df: DataFrame,
    *,
    id: str,
    numeric: Sequence[str] = (),
    categorical: Sequence[str] = (),
    slice_search: Mapping[str, Any] | None = None,
    tree: Mapping[str, Any] | None = None,
    **measures: Unpack[ModelKeywords],
) -> DataFrame:
    """Return the conjunctions of up to three conditions that lack most attribution, with honest estimates.

    Parameters
    ----------
    slice_search : dict, optional
        ``max_predicates, most, min_rows, max_bins``, as in the configuration.
    tree : dict, optional
        Of it ``honest_fraction, seed`` split the rows, and ``max_bins`` cuts the numeric columns.
    **measures
        What `example_attributions` takes.

    Returns
    -------
    DataFrame
        The columns of the table ``attribution_slices`` less the run's. Computed when called.

    Notes
    -----
    Six scans, four of them to survey scores and columns and to count rows, and two shuffles. Slices are searched in
    what is kept.
    """
    part = {
        "numeric": numeric,
        "categorical": categorical,
        "slice_search": {} if slice_search is None else slice_search,
    }
    return _search(df, id, part | {"tree": tree}, ATTRIBUTION_SLICES, measures)


@with_keywords
def pair_segments(
    df: DataFrame,
    *,
    id: str,
    numeric: Sequence[str] = (),
    categorical: Sequence[str] = (),
    pairs: Mapping[str, Any] | None = None,
    **measures: Unpack[ModelKeywords],
) -> DataFrame:
    """Return the tree over pairs that finds which positives a model fails to tell from which negatives.

    A pair counts 1 where the positive scores higher, 0 where the negative does, and one half where they tie. The tree
    explains these by least squares, so a tie pulls the mean of its node towards one half.

    Parameters
    ----------
    pairs : dict, optional
        ``positives, negatives, max_depth, min_leaf, min_side, seed``, as in the configuration. ``min_leaf``, the fewest
        pairs of a leaf, is a tenth of them unless given: lower it where groups are rare.
    **measures
        What `example_attributions` takes.

    Returns
    -------
    DataFrame
        The columns of the table ``pair_segments`` less the run's. Computed when called.

    Notes
    -----
    Five scans, four of them to survey scores and columns and to count rows, and a shuffle.
    """
    part = {"numeric": numeric, "categorical": categorical, "pairs": {} if pairs is None else pairs}
    attributed = _attribute(df, id, part, measures)
    return compute(df, attributed.expressions, lambda: segment_pairs(attributed))


@with_keywords
def auc_crosses(
    df: DataFrame, *, id: str, groupings: Mapping[str, str], **measures: Unpack[ModelKeywords]
) -> DataFrame:
    """Return AUC and headroom of every cross of groups: positives of one against negatives of another, all pairs.

    ``groupings`` gives names and columns, or Spark SQL expressions, whose values are the groups; of more than 200 the
    rest is one group. Takes what `example_attributions` takes besides. Computed when called: four scans, three of them
    for surveys and to count rows, and a shuffle.
    """
    attributed = _attribute(df, id, {"groupings": groupings}, measures)
    return compute(df, attributed.expressions, lambda: cross_groups(attributed))


def _search(df: DataFrame, id_column: str, part: Mapping[str, Any], table: Table, measures: ModelKeywords) -> DataFrame:
    """Rank, search, and return one of the tables that are computed on the way."""
    attributed = _attribute(df, id_column, part, measures)
    with ranked_rows(attributed) as losses:
        tables, warnings = list_tables(attributed, losses)
    warn(write_warnings(warnings))
    found = tables[table]
    return df.sparkSession.createDataFrame([], table.value_schema) if found is None else found


def _attribute(df: DataFrame, id_column: str, part: Mapping[str, Any], measures: ModelKeywords) -> Attributed:
    """Survey a corpus and plan its ranking, stop at faults of its rows, and give warnings of them."""
    attributed = attribute(df, parse_keywords(measures, {"attribution": part}), id_column)
    _, warnings = check_rows(attributed)
    warn(write_warnings(warnings))
    return attributed
