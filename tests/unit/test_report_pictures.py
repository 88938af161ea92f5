"""What a report draws and sets in tables: trends, rates, curves, trees, heat maps and segments."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from biasspark.config.optional_metrics import divide
from biasspark.report.attributions import (
    list_correlations,
    list_heat_maps,
    list_named_pairs,
    list_named_segments,
    list_pair_trees,
    list_segment_trees,
    pick_ends,
    segment_cell,
)
from biasspark.report.cells import root_share_color, show_interval, show_number
from biasspark.report.charts import choose_curves, draw_intervals, draw_pinned, draw_trends
from biasspark.report.metric_tables import list_pinned, list_rates, share_interval
from biasspark.report.page import write_page
from biasspark.report.report_data import ReportData, choose_thresholds, merge_bins
from biasspark.report.score_panels import Scale, draw_cell, read_histograms, sum_bins
from tests.fixtures.made_up_report import (
    EMPTY,
    MODELS,
    NAMES,
    SCRIPT,
    make_report,
    page_without_charts,
    read_text,
    with_rows,
)


def list_titles(data: ReportData) -> list[str]:
    return re.findall(r">([\w ]+, [\w ]+)</text>", draw_trends(data))


def test_trends_show_what_moved_before_what_is_worst(report: ReportData) -> None:
    assert list_titles(report)[:2] == ["BPSN AUC, black", "BPSN AUC, gay"]
    assert list_titles(replace(report, baseline=None))[:2] == ["BPSN AUC, gay", "BPSN AUC, black"]


def test_the_ends_of_a_long_trend_have_years(report: ReportData) -> None:
    long_ago = [run._replace(run_date=run.run_date - timedelta(days=731)) for run in report.history]
    first, last = (f"{day:%b %Y}</text>" for day in (min(run.run_date for run in long_ago), report.run_date))
    assert not any(text in draw_trends(report) for text in (first, last))
    assert all(text in draw_trends(replace(report, history=long_ago)) for text in (first, last))


def test_the_trend_of_an_identity_stands_where_its_worst_model_does(report: ReportData) -> None:
    lows = {("muslim", MODELS[0]): 0.8, ("muslim", MODELS[1]): 0.1}
    rows = [
        row | {"bpsn_auc": low, "bpsn_auc_low": low - 0.01, "bpsn_auc_high": low + 0.01} if low else row
        for row in report.rows("bias_metrics")
        for low in [lows.get((row["identity"], row["model"]))]
    ]
    assert list_titles(replace(with_rows(report, bias_metrics=rows), baseline=None))[0] == "BPSN AUC, muslim"


def test_all_six_rates_are_shown_with_their_counts_gaps_and_intervals(report: ReportData, page: str) -> None:
    ((rated, totals),) = list_rates(report).values()
    assert [(shown["identity"], shown["model"]) for shown, _ in rated[:2]] == [("gay", model) for model in MODELS]
    (row,) = report.rows("threshold_rates", identity="gay", model=MODELS[0])
    _, first = rated[0]
    kinds = ("true_positive", "false_negative", "false_positive", "true_negative")
    assert "".join(f"<td>{row[f'n_{kind}']}</td>" for kind in kinds) in page
    assert list(first) == ["tpr", "fpr", "tnr", "fnr", "precision", "selection_rate"]
    for rate, cell in first.items():
        assert (cell.text, cell.value) == (show_number(row[rate]), row[rate] - row[f"background_{rate}"])
        assert bool(cell.interval) == (rate not in {"tpr", "tnr"})
    nobody = next(rates for shown, rates in rated if shown["identity"] == EMPTY)
    assert (nobody["tpr"].text, "no such rows" in nobody["tpr"].note) == ("–", True)
    whole = totals[0]["rates"]["fpr"]
    n = report.rows("model_summary", slice="all")[0]["n_negative"]
    assert whole.interval == show_interval(*share_interval(round(0.1 * n), n, 0.95))
    for title in ("TPR", "FPR", "TNR", "FNR", "Precision", "Selected", "TP", "FN", "FP", "TN"):
        assert re.search(f'<th scope="col" class="n" data-column="[0-9]+" title="[^>]+">{title}</th>', page)


@pytest.mark.parametrize("n_names", [1, 3, 50])
def test_the_names_of_columns_lie_within_the_picture(n_names: int) -> None:
    picture = draw_pinned(make_report(identities=[f"{number:02} {'w' * 60}" for number in range(n_names)], n_runs=1))
    root = ElementTree.fromstring(str(picture))
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    texts = root.iter("{http://www.w3.org/2000/svg}text")
    names = [text for text in texts if "rotate(-60" in text.get("transform", "")]
    assert len(names) == n_names
    for name in names:
        x, y = map(float, re.findall(r"rotate\(-60 (\S+) (\S+)\)", name.attrib["transform"])[0])
        reach = 6.6 * len(name.text or "")
        assert x - reach * math.cos(math.radians(60)) > 0
        assert y + reach * math.sin(math.radians(60)) < height
        assert x < width


def test_pinned_auc_stands_with_its_counts_and_the_intervals_of_its_parts(report: ReportData, page: str) -> None:
    rows = {(row["identity"], row["model"]): row for row in list_pinned(report)}
    gay, nobody = rows["gay", MODELS[0]], rows[EMPTY, MODELS[0]]
    (suite,) = report.rows("bias_metrics", slice="all", identity="gay", model=MODELS[0])
    assert (gay["cell"].weak, gay["cell"].interval) == (False, "")
    assert re.search('<bdi>gay</bdi></th><td class="t k0 s0">.{,60}</td><td>60</td><td>50</td>', page)
    assert [(cell.interval, weight) for cell, weight in gay["parts"]] == [
        (show_interval(suite[f"{part}_auc_low"], suite[f"{part}_auc_high"]), "0.25")
        for part in ("background", "subgroup", "bpsn", "bnsp")
    ]
    cell = nobody["cell"]
    assert (cell.text, cell.weak, "no positives" in cell.note) == ("–", True, True)
    assert rows[NAMES[3], MODELS[0]]["cell"].weak
    assert "95% intervals" in page
    picture = draw_pinned(report)
    assert picture is not None
    assert 'opacity="0.4"' in picture


def test_a_wide_interval_does_not_squeeze_the_others(report: ReportData) -> None:
    def read_scale(low: float | None) -> list[str]:
        rows = [
            row | {"subgroup_auc_low": low} if row["identity"] == "gay" else row for row in report.rows("bias_metrics")
        ]
        return re.findall(r">([\d.−]+)</text>", draw_intervals(with_rows(report, bias_metrics=rows)))

    assert read_scale(0.0) == read_scale(None)


def test_without_a_value_of_pinned_auc_there_is_no_picture() -> None:
    report = make_report(identities=["gay"], n_runs=1)
    report = with_rows(report, pinned_auc=[row | {"pinned_auc": None} for row in report.rows("pinned_auc")])
    assert draw_pinned(report) is None
    page = write_page(report)
    assert "Pinned AUC by identity" in page
    assert "Pinned AUC of every identity" not in page
    assert ">None<" not in page


def test_pictures_say_of_whom_they_are_and_have_ticks(report: ReportData, page: str) -> None:
    names = choose_curves(report)
    assert re.search(f"4 of {len(report.identities())} identities.*: {names[0]}", read_text(page))
    assert names == [name for name in report.identities() if name in names]
    scale = Scale(-2.5, 4.5, 20)
    assert scale.ticks == ["−2.5", "1", "4.5"]
    assert page.count('<p class="ticks"><span>0</span><span>0.5</span><span>1</span></p>') == page.count('class="dist"')


def test_scales_of_the_largest_scores_are_finite() -> None:
    """The range, the sum of its ends and all bins below the last one, added up, pass the largest double."""
    keys = {"slice": "all", "identity": "a", "model": "m", "cell": "subgroup_negative"}
    for ends in ((-1.75e308, 1.75e308), (1.2e308, 1.6e308)):
        width = ends[1] / 4 - ends[0] / 4
        rows = [keys | {"bin": 3, "bin_low": ends[1] - width, "bin_high": ends[1], "n_rows": 1}]
        scales, _ = read_histograms(rows)
        assert (scales["m"].low, scales["m"].high) == pytest.approx(ends)
        assert not any("inf" in tick for tick in scales["m"].ticks)


def scale_of(low: float, high: float, n_bins: int, n_merged: int = 1) -> Scale:
    """The scale of a model with rows in the first and the last of some equal bins."""
    edges = divide(low, high, n_bins)
    keys = {"slice": "all", "identity": "a", "model": "m", "cell": "subgroup_negative", "n_rows": 1}
    bins = [keys | {"bin": n, "bin_low": edges[n], "bin_high": edges[n + 1]} for n in {0, len(edges) - 2}]
    rows = merge_bins(pa.Table.from_pylist(bins), n_merged).to_pylist()
    return read_histograms(rows)[0]["m"]


def test_scales_span_0_to_1_for_probabilities_alone() -> None:
    assert scale_of(-0.04, 1.04, 10)[:2] == pytest.approx((-0.04, 1.04))
    assert scale_of(0.0, 1.04, 10)[:2] == pytest.approx((0.0, 1.04))
    assert [scale_of(0.0, 1.0, *bins) for bins in ((10, 1), (101, 2), (250, 3), (10_000, 100))] == [
        *(Scale(0.0, 1.0, 10), Scale(0.0, 1.0, 51), Scale(0.0, 1.0, 84), Scale(0.0, 1.0, 100))
    ]
    assert scale_of(5.0, 5.0, 10) == Scale(4.5, 5.5, 1)


def test_small_shares_of_headroom_are_told_apart(report: ReportData) -> None:
    assert [root_share_color(x, 0.4) for x in (0.0, 0.004, 0.1, 0.4, None)] == ["p0", "p2", "p10", "p20", ""]
    first = list_heat_maps(report.rows("auc_crosses"))[0]
    assert first.max_headroom == max(cell.value or 0 for cell in first.headroom.values())
    assert "square-root scale" in page_without_charts(report)


def test_of_many_thresholds_three_are_shown() -> None:
    assert choose_thresholds([{"threshold": at} for at in (0.8, 0.5, 0.8)]) == [0.5, 0.8]
    assert choose_thresholds([{"threshold": at / 100} for at in range(101)]) == [0.25, 0.5, 0.75]


def test_outlines_reach_as_high_as_their_peak() -> None:
    def draw(*counts: int) -> str:
        return draw_cell({"background_positive": counts}, "background", "positive")

    assert draw(1, 2) == "M0 100v-50h100v-50h100V100z"
    assert draw(0, 3, 3, 1) == "M0 100v0h50v-100h100v67h50V100z"
    assert draw(0, 0) == ""
    assert draw(*[0] * 26, 5) == "M0 100v0h193v-100h7V100z"
    assert sum_bins(range(1, 8), 3) == [6, 15, 7]


def test_trees_say_what_a_split_adds_and_mark_false_discoveries(report: ReportData) -> None:
    tree, *_, difference = list_segment_trees(report.rows("attribution_segments"))
    young, older = tree.root.children
    assert (young.rule, young.verdict, older.rule) == ("age < 30", "found, may be chance", "age >= 30")
    contradicted, kept = older.children
    assert contradicted.rule == f"group = '{SCRIPT}'"
    assert (contradicted.verdict, kept.verdict) == ("false discovery", "found")
    assert difference.title == "toxicity_6 minus toxicity_1, attribution"


def test_of_a_difference_what_differs_from_the_rest_need_not_differ_from_0(report: ReportData) -> None:
    verdicts = {}
    for low, high in ((0.1, 0.2), (-0.2, -0.1), (-0.1, 0.2), (None, None)):
        ends = {"mean_honest_low": low, "mean_honest_high": high}
        rows = [row | ends for row in report.rows("attribution_segments", baseline_model="toxicity_1")]
        changed = with_rows(report, attribution_segments=rows)
        (tree,) = list_segment_trees(rows)
        leaf = list(tree.root.leaves())[-1]
        page = page_without_charts(changed).partition("Pairs of segments")[0]
        bold = re.findall('class="found">(differs.*?)<', page)
        assert page.count('class="rule found"') == page.count('class="found"')  # not of false discoveries
        verdicts[leaf.verdict.partition("; interval ")[2]] = bool(bold)
        assert leaf.verdict.startswith("differs ")
    assert verdicts == {"above 0": True, "below 0": True, "includes 0": False, "missing": False}


def test_pairs_are_listed_from_either_end() -> None:
    assert pick_ends("abcdefgh") == list("abcfgh")
    assert [pick_ends("abcdef"[:n]) for n in (0, 2, 5)] == [[], ["a", "b"], list("abcde")]


def test_named_segments_keep_the_order_of_the_configuration(report: ReportData) -> None:
    rows = [
        row | {"segment": name, "auc": auc, "n_rows": n_rows}
        for (name, auc), n_rows in product([("a", 0.7), ("(overall)", 0.9), ("z", 0.95), ("b", None)], (7, 8))
        for row in report.rows("loss_by_segment", segment="(overall)", model=MODELS[n_rows - 7])
    ]
    configs = {"attribution": {"attribution": {"segments": {"z": "TRUE", "b": "TRUE", "a": "TRUE"}}}}
    changed = replace(with_rows(report, loss_by_segment=rows), configs=configs)
    segments = list_named_segments(changed)
    assert list(segments) == ["(overall)", "z", "b", "a"]
    assert page_without_charts(changed).count("<td>7/8</td>") == len(segments)
    overall = segments["(overall)"][MODELS[1]]
    cells = [segment_cell(by_model[MODELS[1]], "auc", overall) for by_model in segments.values()]
    shown = [(cell.text, cell.difference) for cell in cells]
    assert shown == [("0.900", ""), ("0.950", "+0.050"), ("–", ""), ("0.700", "−0.200")]


def test_named_pairs_have_models_side_by_side_in_the_order_of_the_configuration(report: ReportData) -> None:
    rows = [row | {"pair": name} for name in ("a", "b") for row in report.rows("named_pairs")]
    configs: dict[str, Any] = {"attribution": {"attribution": {"pairs_of": {"b": {}, "a": {}}}}}
    named = list_named_pairs(replace(with_rows(report, named_pairs=rows), configs=configs))
    assert {name: list(by_model) for name, by_model in named.items()} == {"b": [*MODELS], "a": [*MODELS]}
    _, auc, share = named["a"][MODELS[0]]
    assert (auc.text, auc.interval, share.note) == ("0.300", "0.200 to 0.400", "420 of 600 pairs")


def test_correlations_are_those_of_models_that_have_losses(report: ReportData) -> None:
    rows = [
        row | {"pearson": None if row["model"] == MODELS[0] else -0.25}
        for row in report.rows("attribution_correlations")
    ]
    correlations = list_correlations(with_rows(report, attribution_correlations=rows))
    assert {model for *_, model in correlations} == {MODELS[1]}
    assert correlations["total", "gini", MODELS[1]].text == "−0.250"
    assert list_correlations(with_rows(report, attribution_correlations=rows[::2])) == {}


def test_rules_of_pairs_name_their_side_once_whatever_is_in_a_value(report: ReportData) -> None:
    rows = [dict(row) for row in report.rows("pair_segments") if row["model"] == "toxicity_1"]
    for row in rows[1:]:
        row["negative_rule"] = f"{row['negative_rule']} and job is Sales and marketing"
        row["positive_rule"] = "age < 50"
    (tree,) = list_pair_trees(rows)
    young, _ = tree.root.children
    assert young.rule == young.whole_rule == "negatives: age < 30 and job is Sales and marketing; positives: age < 50"
    assert tree.root.whole_rule == "all rows"


def test_crosses_have_positives_down_and_negatives_across(report: ReportData) -> None:
    first = list_heat_maps(report.rows("auc_crosses"))[0]
    assert first.groups == ["</script><script>document.title='owned'</script>", "black", "others"]
    assert first.auc["others", "black"].text == "0.70"
    assert first.headroom["black", "black"].note == "300 of 600 pairs"
    assert (first.n_positive["black"], first.n_negative["black"]) == (20, 30)


def test_crosses_have_intervals_in_the_cell_or_a_hover_away(report: ReportData) -> None:
    rows = [
        row | {"auc": None, "n_pairs": 0} if row["positive_group"] == "black" else row
        for row in report.rows("auc_crosses")
    ]
    first = list_heat_maps(rows)[0]
    cell = first.auc["others", "black"]
    assert (cell.interval, cell.note, cell.weak) == ("0.60 to 0.80", "20 positives, 30 negatives", True)
    assert first.headroom["others", "black"].weak
    assert (first.auc["black", "black"].text, first.auc["black", "black"].weak) == ("–", False)
    many = list_heat_maps(make_report(groups=[f"group {number}" for number in range(6)], n_runs=1).rows("auc_crosses"))[
        0
    ]
    cell = many.auc["group 3", "group 2"]
    assert (cell.interval, cell.note) == ("", "0.60 to 0.80")


def test_named_segments_have_intervals_where_their_run_made_them(report: ReportData) -> None:
    row = list_named_segments(report)["(overall)"][MODELS[0]]
    cell = segment_cell(row, "mean_normalized_attribution", row)
    assert cell.difference == ""
    assert (cell.text, cell.interval, cell.color, cell.weak) == ("0.450", "0.430 to 0.470", "a16", False)
    ends = {f"auc_{end}": None for end in ("low", "high")}
    auc, gini = (segment_cell(row | ends | {"gini_impurity": None}, name, row) for name in ("auc", "gini_impurity"))
    assert (auc.interval, auc.weak) == ("", True)
    assert (gini.text, gini.note) == ("–", "no rows, or no probabilities")
