"""The public functions of AUC attribution, for notebooks: the tables of its job of a frame of any kind.

The method is that of "Attributing AUC-ROC to Analyze Binary Classifier Performance" (2022), with every pair of a corpus
counted, by ranking. `biasspark.attribute` gives several of the tables for the price of one. All but
`example_attributions`, whose table is as long as the corpus, return a frame that holds its rows. Ranked rows are kept
while a function runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from biasspark.api.attributed import attribute_corpus, list_examples
from biasspark.api.keywords import Keywords, Models, row_keywords
from biasspark.api.record_batches import Frame
from biasspark.errors import ConfigError, Fault


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
    """Return every row's share of the AUC, exact: one row a (model, slice, row).

    Half the credit of each rightly ordered (positive, negative) pair goes to either of its rows, half of that for a
    tie. Of n+ positives and n- negatives, the attributions of all rows add up to AUC n+ n-. A row's
    ``normalized_attribution``, 0 to 1/2, is its attribution over the number of its pairs: low is bad, and its mean over
    the positives, as over the negatives, is AUC / 2.

    Keywords, errors and warnings are those of `attribute`.

    Returns
    -------
    Frame
        The columns of the table ``example_attributions`` less the run's, as a frame of the kind of ``df``. Of Spark
        it is lazy, since it is as long as the corpus.

    Examples
    --------
    >>> import biasspark  # doctest: +SKIP
    >>> biasspark.example_attributions(
    ...     df, id="row_id", models=["score"], label="target", label_threshold=0.5
    ... ).orderBy("normalized_attribution").show()  # doctest: +SKIP

    Notes
    -----
    The rows are scanned three times: twice when the function is called, to survey and to rank them, and once when the
    table is computed. They are shuffled twice.
    """
    rows = row_keywords(label, label_threshold, label_positive, slices, ranges, level)
    keywords = Keywords({"id": id, "models": models, **rows}, "attribution", write_examples=True)
    return list_examples(df, keywords)


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
    """Return how the attributions of rows correlate with their cross-entropy and Gini impurity.

    Pearson's correlation, -1 to 1, over the rows of one label; NULL for scores outside 0 to 1 without a ``link``.

    Keywords, errors and warnings are those of `attribute`.

    Returns
    -------
    Frame
        The columns of the table ``attribution_correlations`` less the run's.

    Notes
    -----
    Two scans and one shuffle.
    """
    rows = row_keywords(label, label_threshold, label_positive, slices, ranges, level)
    keywords = Keywords({"id": id, "models": models, **rows}, "attribution", link=link)
    return attribute_corpus(df, keywords, with_losses=True).attribution_correlations()


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
    """Return cross-entropy, Gini impurity, AUC and mean attribution of named segments, and of all rows.

    Keywords, errors and warnings are those of `attribute`.

    Returns
    -------
    Frame
        The columns of the table ``loss_by_segment`` less the run's.

    Notes
    -----
    Two scans and one shuffle.
    """
    rows = row_keywords(label, label_threshold, label_positive, slices, ranges, level)
    keywords = Keywords({"id": id, "models": models, **rows}, "attribution", segments=segments, link=link)
    return attribute_corpus(df, keywords, with_losses=True).loss_by_segment()


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
    """Return the trees that find where models gain and lose their AUC, one row per node, with honest estimates.

    Keywords, errors and warnings are those of `attribute`.

    Returns
    -------
    Frame
        The columns of the table ``attribution_segments`` less the run's.

    Notes
    -----
    Three scans, two of them to survey scores and columns, and one shuffle, and one more for ``compare``.
    """
    rows = row_keywords(label, label_threshold, label_positive, slices, ranges, level)
    keys = {"numeric": numeric, "categorical": categorical, "targets": targets, "compare": compare, "link": link}
    keys |= {"tree": {} if tree is None else tree}
    keywords = Keywords({"id": id, "models": models, **rows}, "attribution", **keys)
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
    """Return the conjunctions of up to three conditions that lack most attribution, with honest estimates.

    Keywords, errors and warnings are those of `attribute`. Of ``tree``, ``honest_fraction`` and ``seed`` split the
    rows, and ``max_bins`` cuts the numeric columns.

    Returns
    -------
    Frame
        The columns of the table ``attribution_slices`` less the run's.

    Notes
    -----
    Three scans, two of them to survey scores and columns, and one shuffle.
    """
    rows = row_keywords(label, label_threshold, label_positive, slices, ranges, level)
    search = {} if slice_search is None else slice_search
    keys = {"numeric": numeric, "categorical": categorical, "slice_search": search, "tree": tree}
    keywords = Keywords({"id": id, "models": models, **rows}, "attribution", **keys)
    return attribute_corpus(df, keywords).attribution_slices()


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
    """Return the tree over pairs that finds which positives a model fails to tell from which negatives.

    A pair counts 1 where the positive scores higher, 0 where the negative does, and one half where they tie. The tree
    explains these by least squares, so a tie pulls the mean of its node towards one half.

    Keywords, errors and warnings are those of `attribute`. ``min_leaf`` of ``pairs``, the fewest pairs of a leaf, is a
    tenth of them unless given: lower it where groups are rare.

    Returns
    -------
    Frame
        The columns of the table ``pair_segments`` less the run's.

    Notes
    -----
    Three scans, two of them to survey scores and columns, and one shuffle.
    """
    rows = row_keywords(label, label_threshold, label_positive, slices, ranges, level)
    keys = {"numeric": numeric, "categorical": categorical, "pairs": {} if pairs is None else pairs}
    keywords = Keywords({"id": id, "models": models, **rows}, "attribution", **keys)
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
    """Return AUC and headroom of every cross of groups: positives of one against negatives of another, all pairs.

    Keywords, errors and warnings are those of `attribute`. Of more than 200 groups, the rest is one.

    Returns
    -------
    Frame
        The columns of the table ``auc_crosses`` less the run's.

    Notes
    -----
    Three scans, two of them to survey scores and groups, and one shuffle.
    """
    rows = row_keywords(label, label_threshold, label_positive, slices, ranges, level)
    keywords = Keywords({"id": id, "models": models, **rows}, "attribution", groupings=groupings)
    if not groupings:
        _refuse(keywords, "groupings", groupings, "It must name a grouping.", '{"language": "lang"}')
    return attribute_corpus(df, keywords).auc_crosses()


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
    """Return the AUC of given negatives against given positives, over all pairs of them, with its interval.

    Keywords, errors and warnings are those of `attribute`. A row counts by its own label: a negative that meets the
    predicate of the positives is left out. ``"true"`` are all rows of a label.

    Returns
    -------
    Frame
        The columns of the table ``named_pairs`` less the run's: one row per model, slice and name. ``auc`` is U/(n m),
        ties half, in [0, 1], 1 is best, and NULL without a pair; its interval is by DeLong's variance.

    Examples
    --------
    >>> import biasspark  # doctest: +SKIP
    >>> pairs_of = {"married, single": {"negatives": "married", "positives": "NOT married"}}
    >>> biasspark.named_pairs(df, pairs_of=pairs_of, id="id", models=["score"], label="rich").show()  # doctest: +SKIP

    Notes
    -----
    Two scans and one shuffle. Ranked rows are read once, whatever the number of pairs.
    """
    rows = row_keywords(label, label_threshold, label_positive, slices, ranges, level)
    keywords = Keywords({"id": id, "models": models, **rows}, "attribution", pairs_of=pairs_of)
    if not pairs_of:
        example = '{"young, old": {"negatives": "age < 30", "positives": "age >= 30"}}'
        _refuse(keywords, "pairs_of", pairs_of, "It must name a pair.", example)
    return attribute_corpus(df, keywords).named_pairs()


def _refuse(keywords: Keywords, key: str, value: object, rule: str, example: str) -> NoReturn:
    with keywords.name_faults():
        raise ConfigError(Fault(("attribution", key), value, rule, f"Give, for example, {example}."))
