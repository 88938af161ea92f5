"""What a report draws and sets in tables: trends, rates, curves, trees, heat maps and segments."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from biasspark.report.attributions import list_heat_maps, list_pair_trees, list_segment_trees, tabulate_segments
from biasspark.report.cells import shade_share_finely, show_interval, show_number
from biasspark.report.charts import choose_identities, draw_intervals, draw_pinned
from biasspark.report.distributions import Scale, draw_steps, merge_bins, read_histograms, trace_rates
from biasspark.report.facts import NightFacts, choose_thresholds
from biasspark.report.intervals import bound_share
from biasspark.report.pinned import tabulate_pinned
from biasspark.report.rate_curves import choose_curves
from biasspark.report.rates import list_rates
from biasspark.report.trends import draw_trends
from tests.report_rows import EMPTY, MODELS, NAMES, SCRIPT, night_facts, read_text, write_undrawn

SIGNED = "negative_aeg"


def test_trends_show_what_moved_before_what_is_worst(facts: NightFacts) -> None:
    def list_titles(night: NightFacts) -> list[str]:
        return re.findall(r">([\w ]+, [\w ]+)</text>", draw_trends(night) or "")

    assert list_titles(facts)[:2] == ["BPSN AUC, black", "BPSN AUC, gay"]
    assert list_titles(replace(facts, baseline=None))[:2] == ["BPSN AUC, gay", "BPSN AUC, black"]


def test_all_six_rates_are_shown_with_their_counts_gaps_and_intervals(facts: NightFacts, page: str) -> None:
    (at,) = list_rates(facts)
    assert [(row.identity, row.model) for row in at.rows[:2]] == [("gay", model) for model in MODELS]
    (row,) = facts.rows("threshold_rates", identity="gay", model=MODELS[0])
    first = at.rows[0]
    assert first.counts == [
        str(row[f"n_{kind}"]) for kind in ("true_positive", "false_negative", "false_positive", "true_negative")
    ]
    assert list(first.cells) == ["tpr", "fpr", "tnr", "fnr", "precision", "selection_rate"]
    for rate, cell in first.cells.items():
        assert (cell.rate, cell.gap.value) == (show_number(row[rate]), row[rate] - row[f"background_{rate}"])
        assert bool(cell.gap.interval) == (rate not in {"tpr", "tnr"})
    nobody = next(own for own in at.rows if own.identity == EMPTY)
    assert (nobody.cells["tpr"].rate, nobody.cells["tpr"].gap.note) == ("–", "no such rows in the identity")
    whole = at.totals[0].rates["fpr"]
    n = facts.rows("model_summary", slice="all")[0]["n_negative"]
    assert whole.interval == show_interval(*bound_share(round(0.1 * n), n, 0.95))
    for title in ("TPR", "FPR", "TNR", "FNR", "Precision", "Selected", "TP", "FN", "FP", "TN"):
        assert re.search(f'<th scope="col" class="n" data-place="[0-9]+" title="[^>]+">{title}</th>', page)


@pytest.mark.parametrize("n_names", [1, 3, 50])
def test_the_names_of_columns_lie_within_the_picture(n_names: int) -> None:
    picture = draw_pinned(night_facts(identities=[f"{place:02} {'w' * 60}" for place in range(n_names)], n_nights=1))
    root = ElementTree.fromstring(str(picture))
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    names = [own for own in root.iter("{http://www.w3.org/2000/svg}text") if "rotate(-60" in own.get("transform", "")]
    assert len(names) == n_names
    for own in names:
        ((x, y),) = [
            tuple(map(float, found)) for found in re.findall(r"rotate\(-60 (\S+) (\S+)\)", own.attrib["transform"])
        ]
        reach = 6.6 * len(own.text or "")
        assert x - reach * math.cos(math.radians(60)) > 0
        assert y + reach * math.sin(math.radians(60)) < height
        assert x < width


def test_pinned_auc_stands_with_its_counts_and_the_intervals_of_its_parts(facts: NightFacts, page: str) -> None:
    rows = {(row.identity, row.model): row for row in tabulate_pinned(facts)}
    gay, nobody = rows["gay", MODELS[0]], rows[EMPTY, MODELS[0]]
    (suite,) = facts.rows("bias_metrics", slice="all", identity="gay", model=MODELS[0])
    assert (gay.n_positive, gay.n_negative, gay.cell.weak, gay.cell.interval) == (60, 50, False, "")
    assert [(cell.interval, weight) for cell, weight in gay.parts] == [
        (show_interval(suite[f"{part}_auc_low"], suite[f"{part}_auc_high"]), "0.25")
        for part in ("background", "subgroup", "bpsn", "bnsp")
    ]
    assert (nobody.cell.text, nobody.cell.weak, nobody.cell.note) == ("–", True, "no positives in the identity")
    assert rows[NAMES[3], MODELS[0]].cell.weak
    assert "small figures are their 95 % intervals" in page
    picture = draw_pinned(facts)
    assert picture is not None
    assert 'opacity="0.4"' in picture


def test_a_wide_interval_does_not_squeeze_the_others(facts: NightFacts) -> None:
    def read_scale(low: float | None) -> list[str]:
        rows = [
            row | {"subgroup_auc_low": low} if row["identity"] == "gay" else row for row in facts.rows("bias_metrics")
        ]
        return re.findall(r">([\d.−]+)</text>", draw_intervals(replace(facts, tables={"bias_metrics": rows})))

    assert read_scale(0.0) == read_scale(None)
    assert "0.25" not in read_scale(0.0)


def test_histograms_become_outlines_and_curves(facts: NightFacts) -> None:
    scales, histograms = read_histograms(facts)
    assert scales[MODELS[0]].n_bins == 20
    cells = histograms[MODELS[0], "gay"]
    assert {cell: sum(counts) for cell, counts in cells.items()}["background_negative"] == 120
    curve = trace_rates(cells, "background_negative", "subgroup_negative")
    assert curve is not None
    assert (curve.background[0], curve.subgroup[0], curve.background[-1], curve.subgroup[-1]) == (0, 0, 1, 1)
    across, up = np.asarray(curve.background), np.asarray(curve.subgroup)
    area = np.diff(across) @ (up[1:] + up[:-1]) / 2
    (row,) = facts.rows("bias_metrics", slice="all", identity="gay", model=MODELS[0])
    assert area - 0.5 == pytest.approx(row[SIGNED], abs=0.02)
    assert trace_rates(histograms[MODELS[0], EMPTY], "background_positive", "subgroup_positive") is None


def test_pictures_say_of_whom_they_are_and_have_ticks(facts: NightFacts, page: str) -> None:
    names = choose_curves(facts)
    assert names == choose_identities(facts, 4)
    said = read_text(page)
    assert f"Shown are 4 of {len(facts.identities())} identities, as many as fit: {names[0]}" in said
    scale = Scale(-2.5, 4.5, 20)
    assert scale.ticks == ["−2.5", "1", "4.5"]
    assert page.count('<p class="ticks"><span>0</span><span>0.5</span><span>1</span></p>') == page.count('class="dist"')


def test_small_shares_of_headroom_are_told_apart(facts: NightFacts) -> None:
    assert [shade_share_finely(x, 0.4) for x in (0.0, 0.004, 0.1, 0.4, None)] == ["p0", "p2", "p10", "p20", ""]
    first = list_heat_maps(facts)[0]
    assert first.most_headroom == max(cell.value or 0 for cell in first.headroom.values())
    assert "on a square-root scale: the middle colour is" in write_undrawn(facts)


def test_of_many_thresholds_three_are_shown() -> None:
    assert choose_thresholds([{"threshold": at} for at in (0.8, 0.5, 0.8)]) == [0.5, 0.8]
    assert choose_thresholds([{"threshold": at / 100} for at in range(101)]) == [0.25, 0.5, 0.75]


def test_outlines_reach_as_high_as_their_peak() -> None:
    assert draw_steps([1, 2], 100) == "M0 100v-50h100v-50h100V100z"
    assert draw_steps([0, 3, 3, 1], 100) == "M0 100v0h50v-100h100v67h50V100z"
    assert draw_steps([0, 0], 100) == ""
    assert merge_bins(range(1, 8), most=3) == [6, 15, 7]


def test_trees_say_what_a_split_adds_and_mark_false_discoveries(facts: NightFacts) -> None:
    tree, *_, difference = list_segment_trees(facts)
    young, older = tree.root.children
    assert (young.rule, young.verdict, older.rule) == ("age < 30", "found, may be chance", "age >= 30")
    doubtful, found = older.children
    assert doubtful.rule == f"group = '{SCRIPT}'"
    assert (doubtful.verdict, found.verdict) == ("false discovery", "found")
    assert difference.title == "toxicity_6 minus toxicity_1, attribution"


def test_rules_of_pairs_name_their_side_once_whatever_is_in_a_value(facts: NightFacts) -> None:
    rows = [dict(row) for row in facts.rows("pair_segments") if row["model"] == "toxicity_1"]
    for row in rows[1:]:
        row["negative_rule"] = f"{row['negative_rule']} and job is Sales and marketing"
        row["positive_rule"] = "age < 50"
    (tree,) = list_pair_trees(replace(facts, tables={**facts.tables, "pair_segments": rows}))
    young, _ = tree.root.children
    assert young.rule == young.whole_rule == "negatives: age < 30 and job is Sales and marketing; positives: age < 50"
    assert tree.root.whole_rule == "all rows"


def test_crosses_have_positives_down_and_negatives_across(facts: NightFacts) -> None:
    first = list_heat_maps(facts)[0]
    assert first.groups == ["</script><script>document.title='owned'</script>", "black", "others"]
    assert first.auc["others", "black"].text == "0.70"
    assert first.headroom["black", "black"].note == "300 of 600 pairs"
    assert (first.n_positive["black"], first.n_negative["black"]) == (20, 30)


def test_crosses_have_intervals_in_the_cell_or_a_hover_away(facts: NightFacts) -> None:
    rows = [
        row | {"auc": None, "n_pairs": 0} if row["positive_group"] == "black" else row
        for row in facts.rows("auc_crosses")
    ]
    first = list_heat_maps(replace(facts, tables={"auc_crosses": rows}))[0]
    cell = first.auc["others", "black"]
    assert (cell.interval, cell.note, cell.weak) == ("0.60 to 0.80", "20 positives, 30 negatives", True)
    assert first.headroom["others", "black"].weak
    assert (first.auc["black", "black"].text, first.auc["black", "black"].weak) == ("–", False)
    many = list_heat_maps(night_facts(groups=[f"group {place}" for place in range(6)], n_nights=1))[0]
    cell = many.auc["group 3", "group 2"]
    assert (cell.interval, cell.note) == ("", "0.60 to 0.80")


def test_named_segments_have_intervals_where_their_run_made_them(facts: NightFacts) -> None:
    first, *_ = tabulate_segments(facts)
    cell = first["cells"][MODELS[0]]["mean_normalized_attribution"]
    assert (cell.text, cell.interval, cell.shade, cell.weak) == ("0.450", "0.430 to 0.470", "a16", False)
    older = [
        {k: v for k, v in row.items() if not k.endswith(("_low", "_high"))} for row in facts.rows("loss_by_segment")
    ]
    first, *_ = tabulate_segments(
        replace(facts, tables={"loss_by_segment": [row | {"gini_impurity": None} for row in older]})
    )
    cells = first["cells"][MODELS[0]]
    assert (cells["auc"].interval, cells["auc"].weak) == ("", True)
    assert (cells["gini_impurity"].text, cells["gini_impurity"].note) == ("–", "no rows, or no probabilities")
