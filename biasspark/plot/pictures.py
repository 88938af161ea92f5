"""The public functions, each from a table of biasspark or a measured corpus to a matplotlib figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, product
from numbers import Real
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.figure import Figure

from biasspark.api.keywords import Keywords, check_whole
from biasspark.api.record_batches import Frame, collect_columns, list_columns, read_once
from biasspark.columns import ALL_ROWS, OVERALL
from biasspark.errors import InputError
from biasspark.report.attributions import list_heat_maps, list_pair_trees, list_segment_trees
from biasspark.report.boxes import Grid, draw_heat_maps, draw_trees
from biasspark.report.cells import is_weak, show_count
from biasspark.report.definitions import SUITE
from biasspark.report.metric_panels import draw_intervals, draw_pinned
from biasspark.report.metric_tables import PINNED_WEIGHTS, is_pinned_weak, tabulate_balance
from biasspark.report.panels import notebook_style, short_name
from biasspark.report.report_data import SHOWN_COLUMNS, Rows, check_unique, group_rows, keep, order_worst_first
from biasspark.report.score_panels import MOST_BARS, arrange, by_panel, draw_curves, draw_histograms, read_histograms
from biasspark.tables import schemas
from biasspark.tables.schemas import Table
from biasspark.text import format_count, list_choices, list_first, show_value, show_visibly

Names = str | Iterable[str] | None
_COLUMNS = {
    "identities": "identity",
    "models": "model",
    "slices": "slice",
    "slice": "slice",
    "groupings": "grouping",
}
"""The column of each keyword that names its values."""
_MAX_LISTED = 6
_AREAS_OF_BINS = "≈ is the area of a curve of bins. With metrics= the exact gap is written, with its interval."
_PINNED = "Pinned AUC changes with the share of positives though the model stays the same: decide by other metrics."
_WEAK = "Pale points rest on too few rows: no interval, or one wider than 0.1, which may extend beyond it."
_PALE = "Pale points rest on an AUC with too few rows."
_FALSE = "Dashed, false discovery: the rows that grew the tree and the rows that give the values disagree."
_WEAK_CELLS = "◦ rests on too few rows: no interval, or one wider than 0.1."


def histograms(
    scores: Frame, *, identities: Names = None, models: Names = None, slices: Names = None, most: int = 8
) -> Figure:
    """Draw the score distributions of each identity, with its background above: negatives and positives of both.

    How to read it: an identity whose two areas are further to the right than those of the background is scored higher,
    and no single threshold suits both. If the two areas overlap, the model separates the labels poorly.

    Parameters
    ----------
    scores : Frame or MeasuredCorpus
        The result of `biasspark.score_histograms`, or a corpus measured with ``histograms=True``.
    identities, models, slices : str or list of str, optional
        The names to draw, in this order. By default all slices and models, and ``most`` of the identities: those with
        the lowest AUC of a measured corpus, else those with the most rows.
    most : int, default 8
        The most identities that are drawn by default.

    Returns
    -------
    matplotlib.figure.Figure
        Slices are stacked, models side by side. Each area is scaled to its own peak, so areas compare where
        rows are, not how many; the counts are below each panel. Of more than 50 bins, adjacent ones are merged.

    Examples
    --------
    The pictures of Table 7 of "Nuanced Metrics":

    >>> import biasspark  # doctest: +SKIP
    >>> measured = biasspark.measure(
    ...     df, models=["toxicity_1", "toxicity_6"], label="toxic", identities=["gay"],
    ...     slices={"short": "length(comment_text) < 100"}, histograms=True,
    ... )  # doctest: +SKIP
    >>> biasspark.plot.histograms(measured, identities="gay", slices=["short", "all"])  # doctest: +SKIP
    """
    known = _Rows.read(scores, schemas.SCORE_HISTOGRAMS, "plot.histograms()", most).without_pairs(identities)
    rows, shown, n_all = _choose_scores(known, known.suite_of(scores), (slices, identities, models), most)
    scales, cells_of = read_histograms(rows)
    is_merged = max((scale.n_bins for scale in scales.values()), default=0) > MOST_BARS
    merged = f"Adjacent bins are merged into at most {MOST_BARS}." if is_merged else ""
    notes = ["Each area is scaled to its own peak.", merged, _note_limit(len(shown[1]), n_all)]
    with notebook_style():
        return draw_histograms(arrange(*shown, n_columns=4), shown[2], scales, cells_of, notes)


def rate_curves(
    scores: Frame,
    metrics: Frame | None = None,
    *,
    identities: Names = None,
    models: Names = None,
    slices: Names = None,
    most: int = 4,
) -> Figure:
    """Draw the rates of each identity against those of its background, threshold by threshold.

    How to read it: each point is a threshold, with the share of rows at or above it in the background (x) and in the
    identity (y). The upper panel shows negatives (FPR), the lower one positives (TPR). On the diagonal both are treated
    equally. The shaded area is the AEG: above the diagonal the identity is scored higher.

    Parameters
    ----------
    scores : Frame or MeasuredCorpus
        The result of `biasspark.score_histograms`, or a corpus measured with ``histograms=True``.
    metrics : Frame, optional
        The result of `biasspark.bias_metrics` for the same rows: its exact AEGs with their intervals are written into
        the panels. Not needed for a measured corpus.
    identities, models, slices, most
        As in `histograms`.

    Returns
    -------
    matplotlib.figure.Figure
        Slices are stacked, models side by side. Curves have as many points as there are bins.

    Examples
    --------
    >>> biasspark.plot.rate_curves(measured, identities=["gay", "black"])  # doctest: +SKIP
    """
    known = _Rows.read(scores, schemas.SCORE_HISTOGRAMS, "plot.rate_curves()", most).without_pairs(identities)
    suite_rows = known.suite_of(scores, metrics)
    rows, shown, n_all = _choose_scores(known, suite_rows, (slices, identities, models), most)
    _, cells_of = read_histograms(rows)
    suite = by_panel(suite_rows)
    notes = ["" if cells_of.keys() <= suite.keys() else _AREAS_OF_BINS, _note_limit(len(shown[1]), n_all)]
    with notebook_style():
        return draw_curves(arrange(*shown, n_columns=8), shown[2], cells_of, suite, notes)


def intervals(
    metrics: Frame, *, identities: Names = None, models: Names = None, slices: Names = None, most: int = 30
) -> Figure:
    """Draw the five metrics of each identity with their intervals, a panel per metric, the models in each.

    How to read it: if two intervals on a line are far apart, the models differ; a wide interval means few rows. The
    line at the right of each AUC is 1 and the one in the middle of each AEG is 0: the best values.

    Parameters
    ----------
    metrics : Frame or MeasuredCorpus
        The result of `biasspark.bias_metrics`.
    identities, models, slices : str or list of str, optional
        The names to draw, in this order. By default all slices and models, and ``most`` of the identities: those for
        which a low AUC in any slice is most certain, the worst at the top: by the upper end of its interval.
    most : int, default 30
        The most identities that are drawn by default.

    Returns
    -------
    matplotlib.figure.Figure
        Slices are stacked, on the same scales. Those without any value are named below.

    Examples
    --------
    >>> biasspark.plot.intervals(measured, slices=["short", "all"])  # doctest: +SKIP
    """
    rows = _Rows.read(metrics, schemas.BIAS_METRICS, "plot.intervals()", most, SHOWN_COLUMNS).without_pairs(identities)
    known, shown_models, shown_slices = rows.names(identities=identities, models=models, slices=slices)
    kept = rows.keep(slice=shown_slices, identity=known, model=shown_models)
    parts = {}
    if len(known) == 1 < len(shown_slices):  # a line per slice
        parts[known[0]] = shown_slices, [row | {"identity": row["slice"]} for row in kept]
    else:
        ranked = known if identities is not None else order_worst_first(kept)[:most]
        for slice_name in shown_slices:
            heading = f"slice {slice_name}" if shown_slices != [ALL_ROWS] else ""
            parts[heading] = ranked, [row for row in kept if row["slice"] == slice_name and row["identity"] in ranked]
    empty = [
        heading
        for heading, (_, rows_of_part) in parts.items()
        if all(row[metric] is None for row, metric in product(rows_of_part, SUITE))
    ]
    if len(empty) == len(parts):
        raise rows.error("no metric has a value: rows of a label are missing, too few or withheld. Give others.")
    parts = {heading: part for heading, part in parts.items() if heading not in empty}
    drawn = [row for _, rows_of_part in parts.values() for row in rows_of_part]
    has_weak = any(row[metric] is not None and is_weak(row, metric) for row, metric in product(drawn, SUITE))
    notes = [_WEAK if has_weak else "", _note_limit(len({row["identity"] for row in drawn}), len(known))]
    notes += [f"No metric has a value: {', '.join(map(show_visibly, empty))}."] if empty else []
    with notebook_style():
        return draw_intervals(parts, shown_models, notes)


def pinned_auc(
    pinned: Frame,
    metrics: Frame | None = None,
    *,
    identities: Names = None,
    models: Names = None,
    slice: str | None = None,
    most: int = 60,
) -> Figure:
    """Draw the pinned AUC of each identity, one column each, and the AUC of the rows with known membership as a dash.

    How to read it: the distances between the points of a model and its line add up to its pinned AUC equality
    difference. Its authors advise against it: a point also moves with the share of positives in the identity.

    Parameters
    ----------
    pinned : Frame or MeasuredCorpus
        The result of `biasspark.pinned_auc`. Raises `InputError` if no row has a value.
    metrics : Frame, optional
        The result of `biasspark.bias_metrics` for the same rows: points are pale if an AUC of which they are the
        mean rests on too few rows, and identities with the lowest AUC come first. Not needed for a measured corpus.
    identities, models : str or list of str, optional
        The names to draw, in this order. By default all models, and ``most`` of the identities.
    slice : str, optional
        By default ``all``, or the only slice.
    most : int, default 60
        The most identities that are drawn by default.

    Returns
    -------
    matplotlib.figure.Figure
        A column per identity, with a point and a dash for each model.

    Examples
    --------
    >>> biasspark.plot.pinned_auc(measured)  # doctest: +SKIP
    """
    needed = ("model", "slice", "identity", "crossed", "pinned_auc", "known_auc", *PINNED_WEIGHTS.values())
    rows = _Rows.read(pinned, schemas.PINNED_AUC, "plot.pinned_auc()", most, needed).without_pairs(identities)
    slice, rows, (chosen, order) = rows.one_slice(slice, models=models, identities=identities)
    suite = rows.suite_of(pinned, metrics, "background_auc", "background_auc_low", "background_auc_high")
    suite_rows = [row for row in suite if row["slice"] == slice]
    if identities is None:
        worst = {identity: number for number, identity in enumerate(order_worst_first(suite_rows))}
        order.sort(key=lambda name: worst.get(name, len(worst)))
    drawn = [row for row in rows.keep(model=chosen, identity=order) if row["pinned_auc"] is not None]
    by_key = {(row["identity"], row["model"]): row for row in suite_rows}
    weak = {key for row in drawn if is_pinned_weak(row, by_key.get(key := (row["identity"], row["model"]), {}))}
    defined = {row["identity"] for row in drawn}
    names = [identity for identity in order if identity in defined]
    shown, n_undefined = names if identities is not None else names[:most], len(order) - len(names)
    if not shown:
        raise rows.error("no identity has a pinned AUC: each lacks positives or negatives. Give others.")
    notes = [
        _note_slice(slice),
        "Dashed: the AUC of the rows on which the identity is known.",
        _PINNED,
        _PALE if any((row["identity"], row["model"]) in weak for row in drawn if row["identity"] in shown) else "",
        f"{format_count(n_undefined, 'identity has', 'identities have')} no pinned AUC." if n_undefined else "",
        _note_limit(len(shown), len(names)),
    ]
    with notebook_style():
        return draw_pinned(drawn, shown, chosen, weak, notes)


def crosses(crosses: Frame, *, groupings: Names = None, models: Names = None, slice: str | None = None) -> Figure:
    """Draw two heat maps for each grouping and model: the AUC of groups against groups, and their headroom.

    How to read it: positives of the group at the left against negatives of the group above. At the left is how often
    they are ordered correctly, at the right what share of all wrongly ordered pairs they make up, in percent: a low AUC
    over few pairs costs little. Counts below names are positives at the left, and negatives above.

    Parameters
    ----------
    crosses : Frame or AttributedCorpus
        The result of `biasspark.auc_crosses`, or a corpus attributed with ``groupings``.
    groupings, models : str or list of str, optional
        The names to draw, in this order; by default all.
    slice : str, optional
        By default ``all``, or the only slice.

    Returns
    -------
    matplotlib.figure.Figure
        A line per grouping and model, of its 20 largest groups. Headroom is colored by its square root. AUCs have their
        intervals in a grouping of up to five groups.

    Examples
    --------
    >>> biasspark.plot.crosses(biasspark.auc_crosses(df, groupings={"by": "lang"}, **keywords))  # doctest: +SKIP
    """
    known = _Rows.read(crosses, schemas.AUC_CROSSES, "plot.crosses()")
    slice, rows, chosen = known.one_slice(slice, groupings=groupings, models=models)
    by_map = group_rows(rows.keep(), "grouping", "model")
    lines, n_hidden = [], 0
    for grouping, model in product(*chosen):
        pairs = [(row["positive_group"], row["negative_group"]) for row in by_map.get((grouping, model), ())]
        if len(pairs) < max(1, len({*chain(*pairs)}) ** 2):
            raise rows.error("a grouping lacks crosses, as after a filter. Give all rows of each grouping.")
        (heat_map,) = list_heat_maps(by_map[grouping, model])
        down = {group: show_count(heat_map.n_positive[group]) for group in heat_map.groups}
        across = {group: show_count(heat_map.n_negative[group]) for group in heat_map.groups}
        titles = f"{short_name(model)} by {short_name(grouping)}: AUC", "Share of all wrongly ordered pairs, in %"
        lines.append([Grid(titles[0], down, across, heat_map.auc), Grid(titles[1], down, across, heat_map.headroom)])
        n_hidden = max(n_hidden, heat_map.n_hidden)
    sides = "Positives at the left against negatives above. Shares are colored by their square root."
    hidden = f"{n_hidden:,} smaller groups are not drawn." if n_hidden else ""
    with notebook_style():
        return draw_heat_maps(lines, [_note_slice(slice), sides, _WEAK_CELLS, hidden], "negatives →\npositives ↓")


@Keywords({}).name_faults()
def tree(segments: Frame, *, models: Names = None, slice: str | None = None, pairs: bool = False) -> Figure:
    """Draw the trees of segments: where models gain and lose their AUC.

    How to read it: the root, at the left, has all rows; the children of a node are at its right, each with the added
    condition. The value comes from rows that did not grow the tree, with its interval. ``found`` means that the segment
    differs from the rest; a dashed box is a false discovery.

    Parameters
    ----------
    segments : Frame or AttributedCorpus
        The result of `biasspark.attribution_segments` or `biasspark.pair_segments`, or a corpus attributed with
        ``tree`` or ``pairs``.
    models : str or list of str, optional
        Whose trees are drawn, also those of their differences to a baseline; by default all.
    slice : str, optional
        By default ``all``, or the only slice.
    pairs : bool, default False
        For an attributed corpus, draw the trees of pairs instead of those of segments. Ignored for a frame.

    Returns
    -------
    matplotlib.figure.Figure
        Trees are stacked. Of a rule that is longer than five lines the first are drawn.

    Examples
    --------
    >>> biasspark.plot.tree(biasspark.attribution_segments(df, numeric=["age"], tree={}, **keywords))  # doctest: +SKIP
    """
    table, list_trees = schemas.ATTRIBUTION_SEGMENTS, list_segment_trees
    if not hasattr(type(segments), table.name):
        segments = read_once(_frame_of(segments, table, "plot.tree()"), "plot.tree()")
        pairs = "negative_rule" in list_columns(segments)
    if pairs:
        table, list_trees = schemas.PAIR_SEGMENTS, list_pair_trees
    known = _Rows.read(segments, table, "plot.tree()")
    slice, rows, (chosen,) = known.one_slice(slice, models=models)
    nodes = rows.keep(model=chosen)
    for group in group_rows(nodes, *(name for name in table.key_columns if name != "node_id")).values():
        inner = (row["node_id"] for row in group if not row["is_leaf"])
        if {1, *(child for node in inner for child in (2 * node, 2 * node + 1))} - {row["node_id"] for row in group}:
            raise rows.error("a tree lacks nodes, as after a filter. Give all rows of each tree.")
    trees = list_trees(nodes)
    shown = [node for tree in trees for node in tree.root.nodes()]
    weak = _WEAK_CELLS if any(node.cell.weak for node in shown) else ""
    dashed = _FALSE if any(node.is_contradicted for node in shown) else ""
    values = "Values are of rows that did not grow the tree, with their intervals."
    with notebook_style():
        return draw_trees(trees, [_note_slice(slice), values, dashed, weak])


def label_balance(balance: Frame, *, identities: Names = None, most: int = 30, level: float = 0.95) -> Figure:
    """Draw the share of positives of each identity by text length, and how many negatives would balance it.

    How to read it: the first line has all rows. If an identity is positive far more often than all rows at the same
    length, a classifier learns to treat it as positive. The small number is how many negatives bring a cell down to the
    share of all rows.

    Parameters
    ----------
    balance : Frame or MeasuredCorpus
        The result of `biasspark.label_balance`, or a corpus measured with it.
    identities : str or list of str, optional
        The names to draw in addition to all rows; by default ``most`` of them: those for which a high share is most
        certain, by the lower end of its interval, and last those with fewer than ten rows.
    most : int, default 30
        The most identities that are drawn by default.
    level : float, default 0.95
        The level of the intervals by which identities are sorted, and shares of too few rows marked.

    Returns
    -------
    matplotlib.figure.Figure
        One heat map: a line per identity, a column per length.

    Examples
    --------
    >>> biasspark.plot.label_balance(biasspark.label_balance(df, label="toxic", identities=["gay"]))  # doctest: +SKIP
    """
    rows = _Rows.read(balance, schemas.LABEL_BALANCE, "plot.label_balance()", most)
    given: object = level
    if not (isinstance(given, Real) and 0 < float(given) < 1):
        raise rows.error(f"level = {show_value(level)}. It must be a number above 0 and below 1.")
    asked = rows.of_identities().names(identities=identities)[0]
    shares = tabulate_balance(rows.keep(identity=[OVERALL, *asked]), level, config={})
    by_rank = [identity for identity in shares.rows if identity != OVERALL]
    shown = asked if identities is not None else by_rank[:most]
    titles = {OVERALL: OVERALL if "all rows" in shown else "all rows"} | {identity: identity for identity in shown}
    lines = {title: shares.rows[identity] for identity, title in titles.items() if identity in shares.rows}
    cells = {
        (title, column): cell for title, line in lines.items() for column, cell in zip(shares.bins, line, strict=True)
    }
    grid = Grid(shares.title, dict.fromkeys(lines, ""), dict.fromkeys(shares.bins, ""), cells)
    notes = [
        "+ is how many negatives would bring a cell down to the share of all rows; for all lengths, their sum.",
        "◦ rests on too few rows: under ten, or an interval wider than 0.1 that includes the share of all rows.",
        shares.outside,
    ]
    with notebook_style():
        return draw_heat_maps([[grid]], [*notes, _note_limit(len(shown), len(by_rank))])


# ---- the rows that a figure shows


class _Rows(NamedTuple):
    """The rows of a table that a figure may show, and the function that draws it, which messages name."""

    table: pa.Table
    caller: str

    @classmethod
    @Keywords({}).name_faults()
    def read(cls, given: Frame, table: Table, caller: str, most: int = 1, needed: Sequence[str] = ()) -> _Rows:
        """Read and check the needed columns, by default all, of a frame or of a measured corpus, and check `most`."""
        needed = needed or table.value_columns
        if wrong := check_whole("most", most, 1):
            raise InputError(*wrong)
        frame = read_once(_frame_of(given, table, caller), caller)
        known = list_columns(frame)
        missing = [column for column in needed if column not in known]
        if missing:
            returned = f"biasspark.{table.name}() returns{' without narrow=True' * (table is schemas.BIAS_METRICS)}"
            raise InputError(f"{caller}: the table lacks {list_first(missing, _MAX_LISTED)}. Give what {returned}.")
        schema = pa.schema([table.arrow_schema.field(column) for column in needed])
        rows = cls(collect_columns(frame, schema, caller), caller)
        if not len(rows.table):
            raise rows.error("the table has no row. Give one that has.")
        check_unique(rows.table, table.key_columns, caller)
        return rows

    def error(self, message: str) -> InputError:
        return InputError(f"{self.caller}: {message}")

    def filter(self, condition: pc.Expression) -> _Rows:
        return self._replace(table=self.table.filter(condition))

    def keep(self, **columns: Sequence[str]) -> Rows:
        rows: Rows = keep(self.table, **columns).to_pylist()
        return rows

    def names(self, **asked: Names) -> list[list[str]]:
        """Return the requested values by keyword, which must all occur; by default all, the slice ``all`` first."""
        chosen, faults = [], []
        for keyword, given in asked.items():
            known = list(dict.fromkeys(self.table[_COLUMNS[keyword]].to_pylist()))
            if given is None:
                values = sorted(known, key=lambda value: value != ALL_ROWS) if keyword in ("slice", "slices") else known
            else:
                is_list = hasattr(given, "__iter__") and not isinstance(given, str) and keyword != "slice"
                values = list(given) if is_list else [given]
            unknown = [value for value in values if value not in known]
            if unknown or not values:
                shown = show_value(unknown[0] if len(unknown) == 1 else unknown)
                fix = f"The table has {list_choices(known[:_MAX_LISTED])}. Name one that it has."
                faults.append(f"{self.caller}: {keyword} = {shown}. {fix}")
            else:
                chosen.append(list(dict.fromkeys(values)))
        if faults:
            raise InputError(*faults)
        return chosen

    def one_slice(self, asked: str | None, **names: Names) -> tuple[str, _Rows, list[list[str]]]:
        """Return the requested slice, by default ``all`` or the only slice, its rows, and its requested values."""
        known, *chosen = self.names(slice=asked, **names)
        if asked is None and known[0] != ALL_ROWS and len(known) > 1:
            raise self.error(f"the table has the slices {list_choices(known[:_MAX_LISTED])}. Name one.")
        rows = self.filter(pc.field("slice") == known[0])
        given = zip(names.items(), chosen, strict=True)  # each may be an iterator, which was read
        in_slice = {keyword: None if value is None else values for (keyword, value), values in given}
        return known[0], rows, rows.names(**in_slice)

    def of_identities(self) -> _Rows:
        """Return the rows of identities. There must be some."""
        kept = self.filter(pc.field("identity") != OVERALL)
        if not len(kept.table):
            raise self.error("the table has no identity. Measure some; privacy withholds those with few rows.")
        return kept

    def without_pairs(self, identities: Names) -> _Rows:
        """Return the rows of identities, without crossed pairs unless identities are requested. There must be some."""
        return (self if identities is not None else self.filter(~pc.field("crossed"))).of_identities()

    def suite_of(self, given: Frame, metrics: Frame | None = None, *more: str) -> Rows:
        """Return the given metrics, or those of a measured corpus, with some more columns; no rows without either."""
        has_metrics = hasattr(type(given), schemas.BIAS_METRICS.name)
        source, needed = given if metrics is None and has_metrics else metrics, (*SHOWN_COLUMNS, *more)
        return () if source is None else _Rows.read(source, schemas.BIAS_METRICS, self.caller, needed=needed).keep()


def _frame_of(given: Frame, table: Table, caller: str) -> Frame:
    """Return a given frame, or the table of a measured corpus. Raises `TypeError` for a corpus without such tables."""
    method = getattr(type(given), table.name, None)  # of the type, as a frame may have a column of that name
    if callable(method):
        return method(given)
    corpora = ((schemas.BIAS_METRICS, "attribute", "measure"), (schemas.LOSS_BY_SEGMENT, "measure", "attribute"))
    for other, needed, used in corpora:
        if hasattr(type(given), other.name):
            raise TypeError(f"{caller}: this picture needs the result of biasspark.{needed}, not of biasspark.{used}.")
    return given


def _choose_scores(
    rows: _Rows, suite: Rows, asked: tuple[Names, Names, Names], most: int
) -> tuple[Rows, tuple[list[str], list[str], list[str]], int]:
    """Return the histograms to draw, their slices, identities and models, and the number of all identities."""
    slices, identities, models = rows.names(slices=asked[0], identities=asked[1], models=asked[2])
    n_all = len(identities)
    if asked[1] is None:
        if suite:
            ranks = order_worst_first([row for row in suite if row["slice"] in slices and row["model"] in models])
        else:
            by_identity = rows.table.filter(pc.starts_with(pc.field("cell"), "subgroup")).group_by("identity")
            order = [("n_rows_sum", "descending"), ("identity", "ascending")]
            ranks = by_identity.aggregate([("n_rows", "sum")]).sort_by(order)["identity"].to_pylist()
        identities = [identity for identity in ranks if identity in set(identities)][:most] or identities[:most]
    return rows.keep(slice=slices, identity=identities, model=models), (slices, identities, models), n_all


def _note_slice(name: str) -> str:
    return "" if name == ALL_ROWS else f"Slice {show_visibly(name)}."


def _note_limit(n_shown: int, n_all: int) -> str:
    text = f"{n_shown:,} of {n_all:,} identities are drawn; identities= and most= choose others."
    return text if n_shown < n_all else ""
