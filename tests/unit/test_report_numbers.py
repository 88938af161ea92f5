"""The numbers of a report: signs, digits, bounds, intervals and shades."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from biasspark.report.cells import metric_cell, shade_auc, shade_gap, shade_share, show_interval, show_number
from biasspark.report.facts import NightFacts
from biasspark.report.intervals import bound_mean, bound_share
from biasspark.report.model_card import write_model_card
from biasspark.report.page import write_page
from biasspark.report.shades import DARK, LIGHT, choose_ink, contrast, list_shades, luminance
from biasspark.report.template_means import tabulate_templates
from tests.report_rows import EMPTY, MODELS


def test_numbers_have_true_signs_and_digits() -> None:
    assert [show_number(x, 2, signed=True) for x in (0.1, -0.1, -0.001, None)] == ["+0.10", "−0.10", "+0.00", "–"]
    assert show_interval(0.5, 0.75) == "0.500 to 0.750"
    assert show_interval(None, 0.75) == ""


def test_a_cell_says_why_it_is_empty_and_when_evidence_is_weak(facts: NightFacts) -> None:
    (row,) = facts.rows("bias_metrics", slice="all", identity=EMPTY, model=MODELS[0])
    assert metric_cell(row, "bnsp_auc").note == "no value: no positives in the identity"
    assert metric_cell(row, "bpsn_auc").value is not None
    wide = row | {"bpsn_auc_low": 0.5, "bpsn_auc_high": 0.9}
    assert metric_cell(wide, "bpsn_auc").weak
    assert not metric_cell(wide | {"bpsn_auc_low": 0.85}, "bpsn_auc").weak


def in_bins(row: dict[str, Any], **reach: float) -> dict[str, Any]:
    """Give a row some of whose values are known but for so much."""
    bounds = {name: (row[name] - 0.00012, row[name] + own) for name, own in reach.items()}
    return row | {
        f"{name}_at_{end}": own
        for name, ends in bounds.items()
        for end, own in zip(("least", "most"), ends, strict=True)
    }


def test_the_bounds_of_binned_numbers_stand_beside_them(facts: NightFacts, page: str) -> None:
    rows = [in_bins(row, bpsn_auc=0.00031, negative_aeg=0.02) for row in facts.rows("bias_metrics")]
    sums = [
        in_bins(row, auc=0.00001, competition_score=0.002) | {"bpsn_auc_min_contenders": ["black", "gay"]}
        for row in facts.rows("model_summary")
    ]
    (gay,) = (row for row in rows if (row["identity"], row["model"], row["slice"]) == ("gay", MODELS[0], "all"))
    gay |= {"bpsn_auc": 0.5, "bpsn_auc_at_least": 0.49988, "bpsn_auc_at_most": 0.50031}
    cell = metric_cell(gay, "bpsn_auc")
    assert (cell.bounds, cell.note) == ("±0.0004", "exact value 0.49988 to 0.50031")
    assert metric_cell(gay, "negative_aeg").bounds == "±0.020"
    assert metric_cell(gay, "positive_aeg").bounds == ""
    assert metric_cell(gay | {"bpsn_auc_at_least": 0.5, "bpsn_auc_at_most": 0.5}, "bpsn_auc").bounds == ""
    binned = replace(facts, tables={**facts.tables, "bias_metrics": rows, "model_summary": sums})
    shown, card = write_page(binned), write_model_card(binned)
    assert "± is the most by which a number can differ from the exact one" in shown
    assert shown.count("<small>±.0004</small>") >= 2 * len(MODELS) * len(facts.identities())
    assert "<bdi>gay</bdi>, or <bdi>black</bdi></span>" in shown
    assert "<strong>0.930</strong> ±0.0002 (0.920 to 0.940)" in shown
    assert "0.930 ±0.0002 (0.920 to 0.940)" in card.replace("\\", "")
    assert "±" not in page


def test_intervals_that_tables_lack_are_those_of_the_literature() -> None:
    # scipy.stats.binomtest(5, 7).proportion_ci(method="wilson"), and scipy.stats.t.interval of 1, 2, 3, 4
    assert bound_share(5, 7, 0.95) == pytest.approx((0.3589344518326193, 0.9177810759959432), abs=1e-12)
    assert bound_mean(2.5, math.sqrt(5 / 3), 4, 0.95) == pytest.approx(
        (0.4457397432391206, 4.55426025676088), abs=1e-12
    )
    assert bound_mean(2.5, None, 1, 0.95) == (None, None)
    assert bound_mean(2.5, math.sqrt(5 / 3), 4, 0.95, (0, 3)) == (pytest.approx(0.4457397432391206), 3)


@pytest.mark.parametrize(
    ("lowest", "interval", "departure"), [(0.0, "0.000 to 1.000", "−1.000 to +1.000"), (-0.1, "−0.478", "−2.395")]
)
def test_means_over_templates_of_few_are_marked_and_lie_where_means_can(
    facts: NightFacts, lowest: float, interval: str, departure: str
) -> None:
    """Of probabilities their intervals end at 0 and 1; scores below 0 are none."""
    row = facts.rows("template_means", model=MODELS[0], identity="gay")[0]
    few = row | {"n_templates": 2, "score_deviation": 0.12, "departure_deviation": 0.3, "lowest_score": lowest}
    found = tabulate_templates(replace(facts, tables={**facts.tables, "template_means": [few]}))
    assert found is not None
    score, apart = found.rows[0].cells[MODELS[0]]
    assert (score.weak, apart.weak) == (True, True)
    assert score.interval.startswith(interval)
    assert apart.interval.startswith(departure)


def test_shades_cover_the_scales_of_the_metrics() -> None:
    assert [shade_auc(x) for x in (0.2, 0.5, 0.75, 1.0)] == ["a0", "a0", "a10", "a20"]
    assert [shade_gap(x) for x in (-0.5, 0.0, 0.5, 0.9)] == ["g0", "g10", "g20", "g20"]
    assert [shade_share(x, 0.5) for x in (0.0, 0.25, 0.5)] == ["p0", "p10", "p20"]
    assert shade_auc(None) == ""


@pytest.mark.parametrize("scale", [LIGHT, DARK])
def test_shades_are_read_in_grey_and_their_text_has_contrast(scale: dict[str, tuple[str, ...]]) -> None:
    for name, anchors in scale.items():
        shades = list_shades(anchors)
        assert min(contrast(choose_ink(shade), shade) for shade in shades) >= 4.5
        grey = [luminance(shade) for shade in shades]
        halves = (grey[:11], grey[10:]) if name == "g" else (grey,)
        assert all(half in (sorted(half), sorted(half, reverse=True)) for half in halves)
        assert len(set(shades)) >= 20
