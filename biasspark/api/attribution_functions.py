"""The public functions of AUC attribution, from a frame of any kind.

The method is that of "Attributing AUC-ROC to Analyze Binary Classifier Performance" (2022), with all pairs of rows
counted by ranking. `biasspark.attribute` returns several tables at the cost of one. All other functions return the
table of their name, without the run's columns, as a frame that holds its rows, except `example_attributions`, whose
table is as long as the corpus. Ranked rows are kept while a function runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from biasspark.api.frame_kinds import find_table, give, hold, spark_rows, warn
from biasspark.api.keywords import Keywords, Models
from biasspark.api.record_batches import Frame
from biasspark.corpus.encoding import RowCounts
from biasspark.errors import Fault
from biasspark.tables import schemas
from biasspark.tables.schemas import Table
from biasspark.workflows.attribute import attribute_rows, list_tables, rank_surveyed, survey_rows

_TURNED_ON_BY = {
    schemas.ATTRIBUTION_SEGMENTS: 'numeric=["age"], tree={}',
    schemas.ATTRIBUTION_SLICES: 'numeric=["age"], slice_search={}',
    schemas.PAIR_SEGMENTS: 'numeric=["age"], pairs={}',
    schemas.NAMED_PAIRS: 'pairs_of={"young, old": {"negatives": "age < 30", "positives": "age >= 30"}}',
    schemas.AUC_CROSSES: 'groupings={"language": "lang"}',
    schemas.EXAMPLE_ATTRIBUTIONS: "write_examples=True",
}


class AttributedCorpus:
    """A corpus whose AUC was attributed, as `attribute` returns it.

    Each method returns the table of that name in docs/tables.md, except the columns of a run, as a frame of the kind of
    the attributed frame.

    Attributes
    ----------
    n_rows : int
        The number of rows read.
    rejects : dict of str to int
        The number of rejected rows by reason.
    warnings : tuple of str
        Warnings to review.
    """

    def __init__(self, tables: Mapping[Table, Frame], counts: RowCounts, warnings: Sequence[str]) -> None:
        self.n_rows, self.rejects = counts.n_rows, dict(counts.rejects)
        self._tables, self.warnings = dict(tables), tuple(warnings)

    def loss_by_segment(self) -> Frame:
        """Return the AUC, losses and mean attribution of named segments and of all rows."""
        return self.table(schemas.LOSS_BY_SEGMENT)

    def attribution_correlations(self) -> Frame:
        """Return the correlations of the attributions of rows with their losses."""
        return self.table(schemas.ATTRIBUTION_CORRELATIONS)

    def attribution_segments(self) -> Frame:
        """Return the nodes of the trees that find where models gain and lose their AUC."""
        return self.table(schemas.ATTRIBUTION_SEGMENTS)

    def attribution_slices(self) -> Frame:
        """Return the conjunctions of up to three conditions that lose the most attribution."""
        return self.table(schemas.ATTRIBUTION_SLICES)

    def pair_segments(self) -> Frame:
        """Return the nodes of the trees over pairs: which positives a model confuses with which negatives."""
        return self.table(schemas.PAIR_SEGMENTS)

    def named_pairs(self) -> Frame:
        """Return the AUC of the negatives of each named pair against its positives."""
        return self.table(schemas.NAMED_PAIRS)

    def auc_crosses(self) -> Frame:
        """Return the AUC and headroom of every pair of groups."""
        return self.table(schemas.AUC_CROSSES)

    def example_attributions(self) -> Frame:
        """Return the share of every row in the AUC; lazy if the frame is a DataFrame of Spark."""
        return self.table(schemas.EXAMPLE_ATTRIBUTIONS)

    def table(self, table: Table | str) -> Frame:
        """Return one of the tables above by its name. Raises `ConfigError` if it was not requested."""
        return self._tables[find_table(table, self._tables, _TURNED_ON_BY, "attribute")]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(table.name for table in self._tables)}>"


def attribute(
    df: Frame,
    *,
    numeric: Sequence[str] = (),
    categorical: Sequence[str] = (),
    tree: Mapping[str, Any] | None = None,
    slice_search: Mapping[str, Any] | None = None,
    pairs: Mapping[str, Any] | None = None,
    targets: Sequence[str] = ("auc",),
    compare: Sequence[Sequence[str]] = (),
    groupings: Mapping[str, str] | None = None,
    pairs_of: Mapping[str, Mapping[str, str]] | None = None,
    segments: Mapping[str, str] | None = None,
    link: str | Mapping[str, str] | None = None,
    write_examples: bool = False,
    id: str,
    models: Models,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    slices: Mapping[str, str] | None = None,
    ranges: int = 0,
    level: float = 0.95,
) -> AttributedCorpus:
    """Rank the rows once, and find the rows, segments, groups and pairs by which the models lose AUC.

    The other keywords, errors and warnings are those of `bias_metrics`. Rows need not be comments.

    Parameters
    ----------
    id : str
        The column that identifies a row.
    numeric, categorical : list of str
        Columns that trees, slices and pairs may split on.
    tree : dict, optional
        Turns on `attribution_segments`: ``{}``, or some of ``max_depth, min_leaf, min_gain, max_bins, honest_fraction,
        seed``.
    slice_search : dict, optional
        Turns on `attribution_slices`: ``{}``, or some of ``max_predicates, most, min_rows, max_bins``.
    pairs : dict, optional
        Turns on `pair_segments`: ``{}``, or some of ``positives, negatives, max_depth, min_leaf, min_side, seed``.
    targets : list of {"auc", "cross_entropy", "gini"}
        The values that trees predict.
    compare : list of (model, baseline)
        Models whose difference of attributions is predicted by a tree as well.
    groupings : dict of str to str, optional
        Turns on `auc_crosses`: names and columns, or Spark SQL expressions.
    pairs_of : dict of str to dict, optional
        Turns on `named_pairs`: names, each with the Spark SQL predicates of its ``negatives`` and ``positives``.
    segments : dict of str to str, optional
        Names and Spark SQL predicates of segments in `loss_by_segment`.
    link : "logit", or dict of str to str, optional
        ``"logit"`` turns scores that are log-odds into probabilities, ``{"model": "logit"}`` only those of some models.
    write_examples : bool, default False
        Turns on `example_attributions`.

    Returns
    -------
    AttributedCorpus
        A method for each table, ``n_rows``, ``rejects`` and ``warnings``.

    Examples
    --------
    >>> attributed = biasspark.attribute(
    ...     df, id="id", models=["new", "old"], label="target", label_threshold=0.5, numeric=["comment_length"], tree={}
    ... )
    >>> attributed.attribution_segments()
    >>> attributed.loss_by_segment()

    Notes
    -----
    The rows are scanned three times, twice to survey them and once to rank them, and shuffled once; with ``compare``
    twice more, and once more for every further 16 nodes of a tree. Ranked rows are kept until the function returns.
    Each level of trees, and each added predicate of slices, reads them once.

    References
    ----------
    "Attributing AUC-ROC to Analyze Binary Classifier Performance", 2022.
    """
    return attribute_corpus(df, Keywords(locals(), "attribution"), with_losses=True)


def attribute_corpus(
    df: Frame, keywords: Keywords, *, with_losses: bool = False, faults: Sequence[Fault] = ()
) -> AttributedCorpus:
    """Survey, rank and search a corpus, and issue its warnings. The tables of losses are optional.

    Raises `ConfigError` with all faults of the keywords, also those given.
    """
    with keywords.name_faults():
        measures, id_column = keywords.measures(faults=faults), keywords.given["id"]
        with (
            spark_rows(df, measures, id_column) as corpus,
            survey_rows(corpus, measures, id_column, "estimate") as surveyed,
            rank_surveyed(surveyed, with_losses=with_losses) as ranked,
        ):
            tables, warnings = list_tables(surveyed, ranked)
            frames = {
                table: hold(df, table, rows) if isinstance(rows, pa.Table) else give(df, table, rows)
                for table, rows in tables.items()
            }
    warn(warnings)
    return AttributedCorpus(frames, ranked.counts.row_counts, warnings)


def _list_empty(keywords: Keywords, keyword: str, table: Table) -> list[Fault]:
    """Return the fault of a keyword that turns on a table, if it is empty."""
    value = keywords.tables["attribution"][keyword]
    fix = f"Give, for example, {_TURNED_ON_BY[table]}."
    is_empty = value is None or (isinstance(value, Mapping) and not value)
    return [Fault(("attribution", keyword), value, "It must not be empty.", fix)] if is_empty else []


def example_attributions(
    df: Frame,
    *,
    id: str,
    models: Models,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    slices: Mapping[str, str] | None = None,
    ranges: int = 0,
    level: float = 0.95,
) -> Frame:
    """Return the exact share of every row in the AUC, for each (model, slice, row).

    Each correctly ordered (positive, negative) pair gives 1/2 to each of its rows, and each tie gives 1/4 to each.
    With n+ positives and n- negatives, the attributions of all rows add up to AUC n+ n-. The
    ``normalized_attribution`` of a row, 0 to 1/2, is its attribution divided by the number of its pairs. Low is bad;
    the mean over the positives, and that over the negatives, is AUC / 2.

    Keywords, errors and warnings are those of `attribute`, except warnings about scores, which are not ranked yet.

    Returns
    -------
    Frame
        The columns of the table ``example_attributions`` less the run's, as a frame of the kind of ``df``. A frame
        of Spark is lazy, since it is as long as the corpus.

    Examples
    --------
    >>> biasspark.example_attributions(
    ...     df, id="row_id", models=["score"], label="target", label_threshold=0.5
    ... ).orderBy("normalized_attribution").show()

    Notes
    -----
    The rows are scanned three times: to survey and to count them when the function is called, and once more when the
    table is computed. They are shuffled once.
    """
    keywords = Keywords(locals() | {"write_examples": True}, "attribution")
    with keywords.name_faults():
        measures = keywords.measures()
        with spark_rows(df, measures, id) as corpus, survey_rows(corpus, measures, id, "estimate") as surveyed:
            rows, warnings = attribute_rows(surveyed)
            examples = give(df, schemas.EXAMPLE_ATTRIBUTIONS, rows)
    warn(warnings)
    return examples


def attribution_correlations(
    df: Frame,
    *,
    link: str | Mapping[str, str] | None = None,
    id: str,
    models: Models,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    slices: Mapping[str, str] | None = None,
    ranges: int = 0,
    level: float = 0.95,
) -> Frame:
    """Return the correlations of the attributions of rows with their cross-entropy and Gini impurity.

    They are Pearson's, -1 to 1: the covariance over all rows, divided by both standard deviations. The losses are those
    of `loss_by_segment`. NULL for scores outside 0 to 1 without a ``link``.

    Keywords, errors and warnings are those of `attribute`. The cost is two scans and one shuffle.
    """
    return attribute_corpus(df, Keywords(locals(), "attribution"), with_losses=True).attribution_correlations()


def loss_by_segment(
    df: Frame,
    *,
    segments: Mapping[str, str] | None = None,
    link: str | Mapping[str, str] | None = None,
    id: str,
    models: Models,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    slices: Mapping[str, str] | None = None,
    ranges: int = 0,
    level: float = 0.95,
) -> Frame:
    """Return the cross-entropy, Gini impurity, AUC and mean attribution of named segments and of all rows.

    With q the probability and y the label of a row, 1 or 0, both losses are means over rows, 0 is best:

        cross-entropy = -[y ln q + (1 - y) ln(1 - q)], 0 or more, q kept 1e-15 from 0 and 1;
        Gini impurity = 1 - probability of the true label, 0 to 1

    They are NULL for scores outside 0 to 1 without a ``link``. AUC, 0 to 1, is that within the segment; the mean
    normalized attribution, 0 to 1/2, compares with all rows.

    Keywords, errors and warnings are those of `attribute`. The cost is two scans and one shuffle.
    """
    return attribute_corpus(df, Keywords(locals(), "attribution"), with_losses=True).loss_by_segment()


def attribution_segments(
    df: Frame,
    *,
    numeric: Sequence[str] = (),
    categorical: Sequence[str] = (),
    targets: Sequence[str] = ("auc",),
    compare: Sequence[Sequence[str]] = (),
    tree: Mapping[str, Any] | None = None,
    link: str | Mapping[str, str] | None = None,
    id: str,
    models: Models,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    slices: Mapping[str, str] | None = None,
    ranges: int = 0,
    level: float = 0.95,
) -> Frame:
    """Return the trees that find where models gain and lose AUC, a row per node, with honest estimates.

    The estimate is the mean of the target over the rows that did not shape the tree: the normalized attribution, 0 to
    1/2, low is bad; its difference, -1/2 to 1/2; or a loss. Welch's test compares a leaf with the rows outside it, and
    ``p_chance`` with as many rows drawn at random; both are adjusted by Benjamini and Hochberg.

    Keywords, errors, warnings and costs are those of `attribute`.
    """
    keywords = Keywords(locals() | {"tree": {} if tree is None else tree}, "attribution")
    return attribute_corpus(df, keywords).attribution_segments()


def attribution_slices(
    df: Frame,
    *,
    numeric: Sequence[str] = (),
    categorical: Sequence[str] = (),
    slice_search: Mapping[str, Any] | None = None,
    tree: Mapping[str, Any] | None = None,
    id: str,
    models: Models,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    slices: Mapping[str, str] | None = None,
    ranges: int = 0,
    level: float = 0.95,
) -> Frame:
    """Return the conjunctions of up to three conditions that lose the most attribution, with honest estimates.

    The score of a slice is n (mean of all rows - its mean), above 0 to n/2, over its n training rows. The estimate is
    the mean normalized attribution of its other rows, 0 to 1/2, low is bad, with the tests of `attribution_segments`.

    Keywords, errors, warnings and costs are those of `attribute`. In ``tree``, ``honest_fraction`` and ``seed`` split
    the rows, and ``max_bins`` cuts the numeric columns.
    """
    keywords = Keywords(
        locals()
        | {"slice_search": {} if slice_search is None else slice_search, "targets": None if tree is None else ()},
        "attribution",
    )
    rule, fix = "It grows trees, not slices.", "Leave it out, or give it to biasspark.attribute."
    faults = [
        Fault(("attribution", "tree", key), tree[key], rule, fix)
        for key in ("max_depth", "min_leaf", "min_gain")
        if isinstance(tree, Mapping) and key in tree
    ]
    return attribute_corpus(df, keywords, faults=faults).attribution_slices()


def pair_segments(
    df: Frame,
    *,
    numeric: Sequence[str] = (),
    categorical: Sequence[str] = (),
    pairs: Mapping[str, Any] | None = None,
    id: str,
    models: Models,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    slices: Mapping[str, str] | None = None,
    ranges: int = 0,
    level: float = 0.95,
) -> Frame:
    """Return the tree over pairs that finds which positives a model confuses with which negatives.

    A pair counts 1 if the positive scores higher, 0 if the negative does, and one half for a tie. The tree predicts
    these values by least squares, so ties pull the mean of a node towards one half. The estimate is the AUC of a node
    over rows that did not shape the tree, 0 to 1, low is bad, with DeLong's interval, and the tests of
    `attribution_segments` by paired placements.

    Keywords, errors, warnings and costs are those of `attribute`. ``min_leaf`` of ``pairs``, the fewest pairs of a
    leaf, is by default a tenth of all pairs. Lower it if groups are rare.
    """
    keywords = Keywords(locals() | {"pairs": {} if pairs is None else pairs}, "attribution")
    return attribute_corpus(df, keywords).pair_segments()


def auc_crosses(
    df: Frame,
    *,
    groupings: Mapping[str, str],
    id: str,
    models: Models,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    slices: Mapping[str, str] | None = None,
    ranges: int = 0,
    level: float = 0.95,
) -> Frame:
    """Return the AUC and headroom of every cross of groups: all positives of one against all negatives of another.

    For m positives and n negatives, AUC = U / (n m), 0 to 1, with ties one half, and headroom = n m - U, 0 or more, the
    wrongly ordered pairs. ``headroom_share``, 0 to 1, is their share of those of the slice.

    Keywords, errors, warnings and costs are those of `attribute`. A grouping may have up to 1,000 values; all but the
    200 most frequent are combined into one group.
    """
    keywords = Keywords(locals(), "attribution")
    return attribute_corpus(df, keywords, faults=_list_empty(keywords, "groupings", schemas.AUC_CROSSES)).auc_crosses()


def named_pairs(
    df: Frame,
    *,
    pairs_of: Mapping[str, Mapping[str, str]],
    id: str,
    models: Models,
    label: str,
    label_threshold: float | None = None,
    label_positive: Sequence[Any] | None = None,
    slices: Mapping[str, str] | None = None,
    ranges: int = 0,
    level: float = 0.95,
) -> Frame:
    """Return the AUC of given negatives against given positives, over all their pairs, with its interval.

    Keywords, errors and warnings are those of `attribute`. The predicate of the negatives selects only negatives, that
    of the positives only positives. ``"true"`` selects all rows of a label. The cost is two scans and one shuffle.

    Returns
    -------
    Frame
        The columns of the table ``named_pairs``, except those of the run: a row per model, slice and name. ``auc`` is
        U/(n m), ties one half, in [0, 1], 1 is best, NULL without a pair. Its interval uses DeLong's variance.

    Examples
    --------
    >>> pairs_of = {"married, single": {"negatives": "married", "positives": "NOT married"}}
    >>> biasspark.named_pairs(df, pairs_of=pairs_of, id="id", models=["score"], label="rich").show()
    """
    keywords = Keywords(locals(), "attribution")
    return attribute_corpus(df, keywords, faults=_list_empty(keywords, "pairs_of", schemas.NAMED_PAIRS)).named_pairs()
