"""The numbers of a report: signs, digits, intervals and colors."""

from __future__ import annotations

import pytest

from biasspark.report.cells import (
    auc_color,
    gap_color,
    metric_cell,
    share_color,
    show_interval,
    show_labels,
    show_number,
)
from biasspark.report.metric_tables import list_templates
from biasspark.report.panels import DARK, LIGHT, interpolate, luminance, text_color
from biasspark.report.report_data import ReportData
from tests.fixtures.made_up_report import EMPTY, MODELS, with_rows


def test_numbers_have_true_signs_and_digits() -> None:
    assert [show_number(x, 2, signed=True) for x in (0.1, -0.1, -0.001, None)] == ["+0.10", "−0.10", "+0.00", "–"]
    assert [show_number(x) for x in (0.8684, -0.0004, -0.0006, 1.0)] == ["0.868", "0.000", "−0.001", "1.000"]
    assert show_interval(0.5, 0.75) == "0.500 to 0.750"
    assert show_interval(None, 0.75) == ""
    assert show_labels(1, 1200) == "1 positive, 1,200 negatives"
    assert show_labels(None, 0) == "– positives, 0 negatives"


def test_a_cell_says_why_it_is_empty_and_when_evidence_is_weak(report: ReportData) -> None:
    (row,) = report.rows("bias_metrics", slice="all", identity=EMPTY, model=MODELS[0])
    assert "no positives" in metric_cell(row, "bnsp_auc").note
    assert metric_cell(row, "bpsn_auc").value is not None
    wide = row | {"bpsn_auc_low": 0.5, "bpsn_auc_high": 0.9}
    assert metric_cell(wide, "bpsn_auc").weak
    assert not metric_cell(wide | {"bpsn_auc_low": 0.85}, "bpsn_auc").weak


@pytest.mark.parametrize(
    ("lowest", "interval", "departure"), [(0.0, "0.000 to 1.000", "−1.000 to +1.000"), (-0.1, "−0.478", "−2.395")]
)
def test_means_over_templates_of_few_are_marked_and_lie_where_means_can(
    report: ReportData, lowest: float, interval: str, departure: str
) -> None:
    """Of probabilities their intervals end at 0 and 1; scores below 0 are none."""
    row = report.rows("template_means", model=MODELS[0], identity="gay")[0]
    few = row | {"n_templates": 2, "score_deviation": 0.12, "departure_deviation": 0.3, "lowest_score": lowest}
    _, score, difference = list_templates(with_rows(report, template_means=[few]))["gay"][MODELS[0]]
    assert (score.weak, difference.weak) == (True, True)
    assert score.interval.startswith(interval)
    assert difference.interval.startswith(departure)


def test_colors_cover_the_scales_of_the_metrics() -> None:
    assert [auc_color(x) for x in (0.2, 0.5, 0.75, 1.0)] == ["a0", "a0", "a10", "a20"]
    assert [gap_color(x) for x in (-0.5, 0.0, 0.5, 0.9)] == ["g0", "g10", "g20", "g20"]
    assert [share_color(x) for x in (0.0, 0.5, 1.0)] == ["p0", "p10", "p20"]
    assert auc_color(None) == ""


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colors by WCAG 2: 1 for equal colors, 21 for black on white."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scale", [LIGHT, DARK])
def test_colors_read_in_gray_and_their_text_has_contrast(scale: dict[str, tuple[str, ...]]) -> None:
    for name, anchors in scale.items():
        colors = interpolate(anchors)
        assert min(contrast(text_color(color), color) for color in colors) >= 4.5
        gray = [luminance(color) for color in colors]
        halves = (gray[:11], gray[10:]) if name == "g" else (gray,)
        assert all(half in (sorted(half), sorted(half, reverse=True)) for half in halves)
        assert len(set(colors)) >= 20
