"""The figures of `biasspark.plot`: what is drawn of a table, what is chosen, and what is said of what is not drawn."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch
from matplotlib.text import Text

from biasspark import plot
from biasspark.errors import InputError
from biasspark.report.cells import MINUS, show_number
from biasspark.report.charts import drawing, write_figure
from biasspark.report.definitions import SUITE
from biasspark.report.panels import LABEL_COLORS, SOFT, model_style, short_name
from biasspark.tables.schemas import TABLES
from biasspark.text import measure_width
from tests.fixtures.made_up_report import EMPTY, HOSTILE, MODELS, make_report

IDENTITIES = ("gay", "black", "muslim", *HOSTILE)
REPORT = make_report(identities=IDENTITIES, n_runs=1)
REPORT_GROUPS = sorted({row["positive_group"] for row in REPORT.tables["auc_crosses"]})


def table(name: str, **changes: Any) -> pa.Table:
    """Return a made-up table in the types of its schema, in the slices all and short."""
    rows = REPORT.tables[name]
    if "slice" in rows[0]:
        of_all = [row | {"crossed": False} for row in rows if row["slice"] == "all"]
        rows = [row | {"slice": cut} for cut in ("all", "short") for row in of_all]
    rows = [row | changes for row in rows]
    return pa.Table.from_pylist(rows, TABLES[name].arrow_schema)


class Measured:
    """Something measured, whose tables are methods."""

    def score_histograms(self) -> pa.Table:
        return table("score_histograms")

    def bias_metrics(self) -> pa.Table:
        return table("bias_metrics")


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.axison]


def stairs_of(axes: Axes, label: str) -> list[StepPatch]:
    """Return the outlines of a label, that of the identity first."""
    steps = [patch for patch in axes.patches if isinstance(patch, StepPatch) and not patch.get_fill()]
    return [step for step in steps if to_hex(step.get_edgecolor()) == LABEL_COLORS[label]]


def test_slices_and_models_are_small_multiples() -> None:
    """Table 7 of "Nuanced Metrics": an identity in two slices and two models."""
    figure = plot.histograms(table("score_histograms"), identities="gay", slices=["short", "all"])
    assert [text for text in texts(figure) if "gay" in text or text in MODELS] == [
        *(MODELS[0], "gay, short", MODELS[1]),
        *(MODELS[0], "gay, all", MODELS[1]),
    ]
    columns = {round(axes.get_position().x0, 3) for axes in panels(figure)}
    lines = {round(axes.get_position().y0, 3) for axes in panels(figure)}
    assert (len(panels(figure)), len(columns), len(lines)) == (4, 2, 2)


def test_one_identity_of_one_model_is_shown_slice_by_slice() -> None:
    """The pictures of Table 2 of "Nuanced Metrics"."""
    figure = plot.histograms(table("score_histograms"), identities="gay", models=MODELS[0])
    heights = {axes.get_position().y0 for axes in panels(figure)}
    assert (len(panels(figure)), len(heights)) == (2, 1)
    lines = plot.intervals(table("bias_metrics"), identities="gay")
    assert [label.get_text() for label in lines.axes[0].get_yticklabels()] == ["all", "short"]


def test_areas_are_the_counts_of_the_cells_each_to_its_own_peak() -> None:
    figure = plot.histograms(table("score_histograms"), identities="gay", models=MODELS[0], slices="all")
    (axes,) = panels(figure)
    rows = REPORT.rows("score_histograms", identity="gay", model=MODELS[0])
    for label in ("negative", "positive"):
        for step, side, base in zip(stairs_of(axes, label), ("subgroup", "background"), (0.0, 1.1), strict=True):
            counts = {row["bin"]: row["n_rows"] for row in rows if row["cell"] == f"{side}_{label}"}
            values, edges, _ = step.get_data()
            expected = [base + counts.get(number, 0) / max(counts.values()) for number in range(20)]
            assert values == pytest.approx(expected)
            assert (edges[0], edges[-1], len(edges)) == (0, 1, 21)
    (of_suite,) = REPORT.rows("bias_metrics", identity="gay", model=MODELS[0], slice="all")
    n = [of_suite[f"n_subgroup_{label}"] for label in ("positive", "negative")]
    assert f"{n[0]} positives, {n[1]} negatives" in texts(figure)


def test_more_than_fifty_bins_are_merged() -> None:
    few, many = table("score_histograms"), table("score_histograms").to_pylist()
    many = [row | {"bin": 4 * row["bin"], "bin_high": row["bin_low"] + 0.0125} for row in many]
    fine = pa.Table.from_pylist(many, TABLES["score_histograms"].arrow_schema)
    drawn = [texts(plot.histograms(one, identities="gay", models=MODELS[0])) for one in (few, fine)]
    assert [any("merged" in text for text in written) for written in drawn] == [False, True]
    odd = table("score_histograms", model="m", bin=50, bin_low=50 / 51, bin_high=1.0).slice(0, 1)
    (step, *_) = panels(plot.histograms(odd, identities=odd["identity"][0].as_py()))[0].findobj(StepPatch)
    assert step.get_data()[1][-2:] == pytest.approx([50 / 51, 1])


def test_curves_have_the_gap_of_the_metrics_or_about_their_area() -> None:
    (row,) = REPORT.rows("bias_metrics", identity="gay", model=MODELS[0], slice="all")
    gap = row["negative_aeg"]
    asked: dict[str, Any] = {"identities": "gay", "models": MODELS[0], "slices": "all"}
    exact = texts(plot.rate_curves(table("score_histograms"), table("bias_metrics"), **asked))
    assert show_number(gap, signed=True) in [text.removeprefix("◦ ") for text in exact]
    (about, *_) = [text for text in texts(plot.rate_curves(table("score_histograms"), **asked)) if text[0] == "≈"]
    assert float(about.removeprefix("≈ ").replace(MINUS, "-")) == pytest.approx(gap, abs=0.02)
    assert texts(plot.rate_curves(Measured(), **asked)) == exact
    of_one = table("bias_metrics").filter(pc.field("model") == MODELS[0])
    both = texts(plot.rate_curves(table("score_histograms"), of_one, **asked | {"models": MODELS}))
    assert [any("metrics=" in text for text in written) for written in (exact, both)] == [False, True]


def test_what_is_measured_is_drawn_worst_first_and_a_table_by_its_rows() -> None:
    worst = REPORT.identities()
    of_measured = texts(plot.histograms(Measured(), slices="all", models=MODELS[0], most=2))
    assert [text for text in of_measured if text in worst] == worst[:2]
    of_table = texts(plot.histograms(table("score_histograms"), slices="all", models=MODELS[0], most=3))
    assert {text for text in of_table if text in worst} == {"gay", "black", "muslim"}
    assert any(text.startswith(f"3 of {len(IDENTITIES) + 1} identities") for text in of_table)


@pytest.mark.parametrize(
    ("slices", "shown"), [(None, ["all", "short"]), ("short", ["short"]), (["short", "all"], ["short", "all"])]
)
def test_intervals_have_a_line_for_each_identity_and_panels_for_each_slice(slices: Any, shown: list[str]) -> None:
    figure = plot.intervals(table("bias_metrics"), slices=slices, most=4)
    assert len(panels(figure)) == 5 * len(shown)
    names = [[label.get_text() for label in axes.get_yticklabels()] for axes in figure.axes[::5]]
    assert names[0][:2] == REPORT.identities()[:2]
    assert names == [names[0]] * len(shown)
    assert [text for text in texts(figure) if text.startswith("slice ")] == [f"slice {name}" for name in shown]
    assert {*MODELS} <= set(texts(figure))


def test_slices_without_values_are_named_and_not_drawn() -> None:
    empty = table("bias_metrics", slice="none", **dict.fromkeys(SUITE))
    figure = plot.intervals(
        pa.concat_tables([table("bias_metrics").filter(pc.field("slice") == "all"), empty.slice(0, 1)])
    )
    assert len(panels(figure)) == 5
    assert any("slice none" in text for text in texts(figure))


def test_names_of_civil_comments_are_drawn_whole() -> None:
    name = "intellectual_or_learning_disability"
    assert name in texts(plot.intervals(table("bias_metrics", identity=name).slice(0, 1)))


@pytest.mark.parametrize("gap", [0.06, 0.185, 0.3, 0.42, 0.48])
def test_the_numbers_of_neighboring_panels_do_not_touch(gap: float) -> None:
    metrics = {f"{name}{end}": gap for name in ("negative_aeg", "positive_aeg") for end in ("", "_low", "_high")}
    figure = plot.intervals(table("bias_metrics", **metrics), slices="all")
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    (*_, last), (first, *_) = (
        [
            tick.label1.get_window_extent(canvas.get_renderer())
            for tick in axes.xaxis.get_major_ticks()
            if axes.get_xlim()[0] <= tick.get_loc() <= axes.get_xlim()[1]
        ]
        for axes in panels(figure)[-2:]
    )
    assert last.x1 + 6 < first.x0


def test_pinned_auc_is_drawn_and_what_has_none_is_counted() -> None:
    figure = plot.pinned_auc(table("pinned_auc"), table("bias_metrics"))
    (axes,) = panels(figure)
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert set(names) == {short_name(name) for name in REPORT.identities() if name != EMPTY}
    markers = [np.asarray(line.get_xydata()) for line in axes.lines if line.get_marker() == "o"]
    drawn = {tuple(points[0]) for points in markers if len(points)}
    (row,) = REPORT.rows("pinned_auc", identity=names[0], model=MODELS[0])
    assert (0, row["pinned_auc"]) in drawn
    assert any("1 identity has no" in text for text in texts(figure))
    assert axes.get_title(loc="left") == "Pinned AUC"
    assert any(line.get_alpha() == 0.4 for line in axes.lines)
    with pytest.raises(InputError, match="no identity"):
        plot.pinned_auc(table("pinned_auc", pinned_auc=None))


SURE = {f"{name}{end}": 0.9 for name in ("background_auc", *SUITE) for end in ("", "_low", "_high")}


@pytest.mark.parametrize(
    ("suite", "weights", "is_pale"),
    [({}, {}, False), ({"background_auc_low": None}, {}, True), ({"bpsn_auc_low": None}, {"bpsn_weight": 0.0}, False)],
)
def test_a_pinned_auc_is_pale_if_a_weighted_auc_rests_on_too_few_rows(
    suite: dict[str, Any], weights: dict[str, Any], is_pale: bool
) -> None:
    figure = plot.pinned_auc(table("pinned_auc", **weights), table("bias_metrics", **SURE | suite))
    assert any(text.startswith("Pale") for text in texts(figure)) == is_pale


def test_names_that_fit_below_pinned_aucs_are_level_and_few_take_little_width() -> None:
    for names, rotation in ((["gay"], 0.0), ([*REPORT.identities()[:1], "w" * 30], 60.0)):
        gay = [row | {"crossed": False} for row in REPORT.rows("pinned_auc", identity="gay")]
        rows = [row | {"identity": name} for name in names for row in gay]
        figure = plot.pinned_auc(pa.Table.from_pylist(rows, TABLES["pinned_auc"].arrow_schema))
        assert {label.get_rotation() for label in figure.axes[0].get_xticklabels()} == {rotation}
        assert figure.get_figwidth() < 8


def test_what_has_no_value_is_not_called_pale() -> None:
    bpsn = dict.fromkeys(("bpsn_auc", "bpsn_auc_low", "bpsn_auc_high"))
    written = [texts(plot.intervals(table("bias_metrics", **SURE | row))) for row in (bpsn, {"bpsn_auc_low": None})]
    assert [any(text.startswith("Pale") for text in of_figure) for of_figure in written] == [False, True]


def test_crosses_have_a_number_in_each_cell_and_the_colors_of_the_report() -> None:
    figure = plot.crosses(table("auc_crosses"), models=MODELS[0])
    (left, right) = panels(figure)
    rows = REPORT.rows("auc_crosses", model=MODELS[0])
    written = [text.get_text() for text in left.texts]
    for row in rows:
        assert any(text.endswith(show_number(row["auc"], 2).removeprefix("0")) for text in written)
    widths = [patch.get_width() for patch in left.patches if isinstance(patch, Rectangle) and patch.get_fill()]
    assert len(widths) == len(rows)
    assert max(widths) < 0.1  # all are weak
    assert right.get_title() == ""
    assert len(panels(plot.crosses(table("auc_crosses")))) == 4


def test_what_stands_beside_a_heat_map_of_short_names_overlaps_nothing() -> None:
    groups = {name: chr(ord("A") + number) for number, name in enumerate(REPORT_GROUPS)}
    rows = [
        row | {"positive_group": groups[row["positive_group"]], "negative_group": groups[row["negative_group"]]}
        for row in table("auc_crosses").to_pylist()
    ]
    figure = plot.crosses(pa.Table.from_pylist(rows, TABLES["auc_crosses"].arrow_schema), models=MODELS[0], slice="all")
    canvas: Any = FigureCanvasAgg(figure)
    renderer = canvas.get_renderer()
    ends = [0.0, *(axes.get_window_extent(renderer).x1 for axes in panels(figure))]
    for axes, end in zip(panels(figure), ends, strict=False):
        (corner,) = (text for text in axes.texts if "negatives →" in text.get_text())
        for text in (corner, *axes.get_yticklabels()):
            assert end < text.get_window_extent(renderer).x0
        first, second, *_ = (label.get_window_extent(renderer) for label in axes.get_yticklabels())
        assert first.y0 > second.y1


def test_trees_have_a_box_for_each_node() -> None:
    of_model = plot.tree(table("attribution_segments"), models=MODELS[0])
    boxes = [box for box in of_model.findobj(Rectangle) if box.get_linewidth() and to_hex(box.get_edgecolor()) == SOFT]
    assert len(boxes) == 5
    written = texts(of_model)
    assert "age < 30" in written
    assert any(text.startswith("Dashed, false discovery") for text in written)
    both = plot.tree(table("attribution_segments"))
    assert sum("attribution" in text for text in texts(both)) == 3
    pairs = texts(plot.tree(table("pair_segments")))
    assert "negatives: age < 30" in pairs
    assert "400 × 300 rows" in pairs


def test_a_title_is_whole_above_a_single_node() -> None:
    root = table("attribution_segments", is_leaf=True).filter(pc.field("node_id") == 1)
    canvas: Any = FigureCanvasAgg(plot.tree(root, models=MODELS[0], slice="all"))
    (title,) = (text for text in canvas.figure.findobj(Text) if "0.25 is chance" in text.get_text())
    assert title.get_window_extent(canvas.get_renderer()).x1 < canvas.get_width_height()[0]


def test_label_balance_has_a_number_in_each_cell() -> None:
    figure = plot.label_balance(table("label_balance"), identities=["black", "gay"])
    (axes,) = panels(figure)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["all rows", "black", "gay"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["20-99", "100-999", "1000-4999", "all lengths"]
    written = [text.get_text() for text in axes.texts]
    assert written.count("40%") == 2 * 3  # of few rows, and more than 10% for sure
    assert not any("2 of 6" in text for text in texts(figure))
    canvas: Any = FigureCanvasAgg(plot.label_balance(table("label_balance").filter(pc.field("bucket") == "(all)")))
    (title,) = (text for text in canvas.figure.findobj(Text) if text.get_text() == "Share of positives")
    assert title.get_window_extent(canvas.get_renderer()).x1 < canvas.get_width_height()[0]
    assert any("2 of 6" in text for text in texts(plot.label_balance(table("label_balance"), most=2)))


def test_figures_take_the_colors_of_a_page() -> None:
    """Light or dark: of areas, of cells and their lighter or darker ink; a cell without a color is of its paper."""
    empty = table("label_balance", n_rows=0, n_positive=0, positive_rate=None, n_negatives_to_add=None)
    full = table("label_balance", n_rows=1000, n_positive=900, positive_rate=0.9)
    drawn = [plot.histograms(table("score_histograms"), identities="gay"), *map(plot.label_balance, (full, empty))]
    for figure in drawn:
        figure.set_facecolor("none")
    with drawing("test"):
        areas, cells, empty_cells = (write_figure(figure, "") for figure in drawn)
    assert all(color in areas for color in ("var(--neg)", "var(--pos)"))
    assert set(re.findall(r'<g class="p[0-9]+" fill="([^"]*)"', cells)) == {"var(--cell)", "currentColor"}
    assert not re.search(r'"#[0-9a-f]{6}"', areas + cells + empty_cells)


DRAWINGS: Mapping[str, Callable[[Any], Figure]] = {
    "score_histograms": plot.histograms,
    "bias_metrics": plot.intervals,
    "pinned_auc": plot.pinned_auc,
    "auc_crosses": plot.crosses,
    "attribution_segments": plot.tree,
    "label_balance": plot.label_balance,
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_picture_is_the_same_of_pandas_and_shows_itself(name: str) -> None:
    rows = table(name)
    if "identity" in rows.column_names:
        rows = rows.filter(pc.is_in(rows["identity"], pa.array(["gay", HOSTILE[0]])))
    figures = [DRAWINGS[name](frame) for frame in (rows, rows.to_pandas())]
    assert texts(figures[0]) == texts(figures[1])
    assert figures[0]._repr_png_()[:4] == b"\x89PNG"  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", DRAWINGS)
def test_what_is_no_such_table_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"lacks .*biasspark.{name}"):
        DRAWINGS[name](pa.table({"model": ["m"]}))
    with pytest.raises(InputError, match="no row"):
        DRAWINGS[name](table(name).slice(0, 0))
    with pytest.raises(InputError, match="several rows"):
        DRAWINGS[name](pa.concat_tables([table(name)] * 2))
    with pytest.raises(TypeError, match=r"plot\."):
        DRAWINGS[name](3)


def test_names_that_there_are_not_are_refused_with_those_that_there_are() -> None:
    scores = table("score_histograms")
    wrong: list[dict[str, Any]] = [{"identities": "gya"}, {"models": ["toxicity_1", "x"]}, {"slices": "long"}]
    for asked in (*wrong, {"slices": []}):
        with pytest.raises(InputError, match="Name one"):
            plot.histograms(scores, **asked)
    for most in (0, 1.5, "a", True):
        with pytest.raises(InputError, match="most = "):
            plot.histograms(scores, most=most)  # type: ignore[arg-type]
    for level in (0, 2, "a"):
        with pytest.raises(InputError, match="level = "):
            plot.label_balance(table("label_balance"), level=level)  # type: ignore[arg-type]
    with pytest.raises(InputError) as caught:
        plot.intervals(table("bias_metrics"), identities=["zz", "yy"], models=["q"], slices=3)  # type: ignore[arg-type]
    faults = [re.search(r"(\w+) = ", str(fault)) for fault in caught.value.faults]
    assert [fault and fault[1] for fault in faults] == ["identities", "models", "slices"]
    assert all(name in str(caught.value) for name in ("zz", "yy", "q", "3"))
    for one_slice in (["all", "short"], ["all"]):
        with pytest.raises(InputError, match="slice = "):
            plot.pinned_auc(table("pinned_auc"), slice=one_slice)  # type: ignore[arg-type]
    two = pa.concat_tables([table("auc_crosses", slice=cut).slice(0, 9) for cut in ("a", "b")])
    with pytest.raises(InputError, match='"a", "b"'):
        plot.crosses(two)


def test_names_may_be_an_iterator() -> None:
    assert "gay" in texts(plot.pinned_auc(table("pinned_auc"), identities=iter(["gay"])))


@pytest.mark.parametrize("kept", [pc.field("is_leaf"), pc.field("node_id") != 2])
@pytest.mark.parametrize("name", ["attribution_segments", "pair_segments"])
def test_a_tree_without_some_nodes_is_refused(name: str, kept: pc.Expression) -> None:
    with pytest.raises(InputError, match="lacks nodes"):
        plot.tree(table(name).filter(kept))


@pytest.mark.parametrize(
    "kept",
    [
        pc.field("positive_group") == REPORT_GROUPS[0],
        (pc.field("positive_group") == REPORT_GROUPS[0]) & (pc.field("negative_group") == REPORT_GROUPS[1]),
        (pc.field("model") == MODELS[0]) | (pc.field("grouping") == "other"),
    ],
)
def test_a_grouping_without_some_crosses_is_refused(kept: pc.Expression) -> None:
    rows = [row | {"grouping": name} for name in ("language", "other") for row in table("auc_crosses").to_pylist()]
    crosses = pa.Table.from_pylist(rows, TABLES["auc_crosses"].arrow_schema)
    assert len(panels(plot.crosses(crosses))) == 8
    with pytest.raises(InputError, match="lacks crosses"):
        plot.crosses(crosses.filter(kept))


def test_faults_of_a_table_name_the_function() -> None:
    with pytest.raises(InputError, match=r"^plot\.intervals\(\) = "):
        plot.intervals("")
    with pytest.raises(InputError, match=r"^plot\.tree\(\) = "):
        plot.tree("")
    with pytest.raises(TypeError, match=r"as by pandas\.DataFrame\(\)"):
        plot.intervals([{}])


def test_a_stream_is_drawn() -> None:
    rows = table("attribution_segments")
    assert texts(plot.tree(rows.to_reader())) == texts(plot.tree(rows))


def test_an_identity_may_be_named_like_the_line_of_all_rows() -> None:
    rows = table("label_balance").to_pylist()
    rows = [row | {"identity": "all rows" if row["identity"] == "gay" else row["identity"]} for row in rows]
    assert {"(overall)", "all rows"} <= set(texts(plot.label_balance(pa.Table.from_pylist(rows))))


def test_a_picture_of_the_other_function_says_which_it_needs() -> None:
    for draw in (plot.crosses, plot.tree):
        with pytest.raises(TypeError, match=r"biasspark\.attribute"):
            draw(Measured())
    with pytest.raises(InputError, match="narrow=True"):
        plot.intervals(table("bias_metrics").drop_columns(["model"]))


def test_without_identities_or_scores_nothing_breaks() -> None:
    with pytest.raises(InputError, match=r"no identity.*privacy"):
        plot.intervals(table("bias_metrics", identity="(overall)").slice(0, 1))
    with pytest.raises(InputError, match="no identity"):
        plot.label_balance(table("label_balance").filter(pc.field("identity") == "(overall)"))
    with pytest.raises(InputError, match="no metric"):
        plot.intervals(table("bias_metrics", **dict.fromkeys(SUITE)))
    unscored = [
        row for row in table("score_histograms").to_pylist() if row["model"] == MODELS[0] or row["slice"] == "all"
    ]
    scores = pa.Table.from_pylist(unscored, TABLES["score_histograms"].arrow_schema)
    figure = plot.histograms(scores, slices="short", identities="gay")
    assert len(panels(figure)) == 2
    assert "0 positives, 0 negatives" in texts(figure)
    assert len(panels(plot.rate_curves(scores, slices="short", identities=EMPTY))) == 4


def test_crossed_pairs_are_drawn_where_they_are_asked_for() -> None:
    rows = [row for row in table("score_histograms").to_pylist() if row["identity"] in ("gay", "(overall)")]
    pairs = [row | {"identity": "gay & black", "crossed": True} for row in rows if row["identity"] == "gay"]
    scores = pa.Table.from_pylist(rows + pairs, TABLES["score_histograms"].arrow_schema)
    assert "gay & black" not in texts(plot.histograms(scores, slices="all", most=100))
    assert "gay & black" in texts(plot.histograms(scores, slices="all", identities="gay & black"))


def test_sixteen_models_are_told_apart_and_their_key_stays_above_the_panels() -> None:
    assert len(set(map(model_style, range(16)))) == 16
    for name, draw in (("bias_metrics", plot.intervals), ("pinned_auc", plot.pinned_auc)):
        rows = table(name).filter((pc.field("slice") == "all") & (pc.field("model") == MODELS[0])).to_pylist()
        several = [row | {"model": f"model {number}"} for number in range(9) for row in rows]
        figure: Any = draw(pa.Table.from_pylist(several, TABLES[name].arrow_schema))
        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
        (key,) = figure.legends
        boxes = [axes.get_tightbbox(canvas.get_renderer()) for axes in panels(figure)]
        assert key.get_window_extent(canvas.get_renderer()).y0 > max(box.y1 for box in boxes if box) - 8


def test_columns_that_no_figure_needs_may_have_no_type() -> None:
    metrics = table("bias_metrics").filter(pc.field("identity") == "gay").to_pandas()
    noted = metrics.assign(note=pd.Series([1, "a"] * len(metrics)).head(len(metrics)))
    assert texts(plot.intervals(noted)) == texts(plot.intervals(metrics))
    with pytest.raises(InputError, match="subgroup_auc"):
        plot.intervals(noted.assign(subgroup_auc=noted["note"]))


def test_long_titles_and_wide_rules_stay_within_their_figure() -> None:
    rows = table("attribution_segments", rule="lang = " + "\u8a9e" * 60)
    rows = rows.filter((pc.field("model") == MODELS[0]) & (pc.field("baseline_model") == ""))
    figure = plot.tree(rows.set_column(0, rows.schema.field(0), pa.array(["m" * 400] * len(rows))), slice="all")
    assert figure.get_size_inches()[0] < 20
    lines = [text for text in texts(figure) if "\u8a9e" in text]
    assert lines
    assert max(map(measure_width, lines)) <= 38
    crosses = table("auc_crosses").filter(pc.field("model") == MODELS[0])
    named = crosses.set_column(0, crosses.schema.field(0), pa.array(["m" * 400] * len(crosses)))
    assert crosses.column_names[0] == "model"
    assert plot.crosses(named, slice="all").get_size_inches()[0] < 30
