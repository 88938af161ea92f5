"""Models against a baseline, crossed pairs and templates, as a report shows them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from biasspark.report.baseline_comparison import BaselineComparison, compare_with_baselines, describe_method
from biasspark.report.cells import show_interval, show_number
from biasspark.report.metric_tables import list_templates
from biasspark.report.page import write_model_card
from biasspark.report.report_data import ReportData
from biasspark.report.text_formats import escape_markdown
from tests.fixtures.made_up_report import (
    EMPTY,
    IMAGE,
    MODELS,
    NAMES,
    Row,
    compare_values,
    page_without_charts,
    read_text,
    with_rows,
)

OLD, NEW = MODELS


def compare(report: ReportData, *rows: Row) -> BaselineComparison:
    (pair,) = compare_with_baselines(with_rows(report, model_comparisons=list(rows)))
    return pair


def test_what_changed_significantly_is_listed_by_its_size(report: ReportData) -> None:
    pair = compare(
        report,
        compare_values("gay", "bpsn_auc", 0.9, 0.8),
        compare_values("black", "negative_aeg", -0.05, 0.3),
        compare_values("muslim", "positive_aeg", 0.3, -0.1),
        compare_values("gay", "bnsp_auc", 0.9, 0.91),
        compare_values(EMPTY, "bnsp_auc", None, None),
        compare_values("(overall)", "auc", 0.9, 0.95),
    )
    assert [(one.row["identity"], one.row["metric"], one.difference.text) for one in pair.worse] == [
        ("black", "negative_aeg", "▼ +0.250"),
        ("gay", "bpsn_auc", "▼ −0.100"),
    ]
    assert [(one.row["identity"], one.difference.text) for one in pair.better] == [
        ("muslim", "▲ −0.200"),
        ("(overall)", "▲ +0.050"),
    ]
    (loss, _) = pair.worse
    assert (loss.baseline.text, loss.value.text) == ("−0.050", "+0.300")
    assert (loss.baseline.interval, loss.value.interval) == ("", "")
    assert loss.difference.interval == "+0.220 to +0.280"
    assert pair.counts == {"worse": 2, "better": 2, "no_evidence": 1, "insufficient_data": 1}
    assert [
        text
        for text in (NEW, OLD, "in 2 of 6", "Negative AEG of black (+0.250, interval +0.220 to +0.280)")
        if text not in pair.sentence
    ] == []
    assert pair.overall is not None
    assert (pair.overall.value.text, pair.overall.baseline.text) == ("0.950", "0.900")


def test_the_difference_that_is_surely_the_largest_comes_first(report: ReportData) -> None:
    """However wide its interval is; those without one come last."""
    wide, none = {"difference_low": -0.5, "difference_high": -0.06}, {"difference_low": None, "difference_high": None}
    pair = compare(
        report,
        compare_values("none", "bpsn_auc", 0.9, 0.1) | none,
        compare_values("small", "bpsn_auc", 0.9, 0.82),
        compare_values("wide", "bpsn_auc", 0.9, 0.6) | wide,
        compare_values("many", "bpsn_auc", 0.9, 0.8),
        compare_values("gap", "negative_aeg", 0.1, -0.5) | {"difference_low": 0.1, "difference_high": 0.7},
    )
    assert [one.row["identity"] for one in pair.worse] == ["gap", "many", "wide", "small", "none"]
    assert "Negative AEG of gap (+0.400, interval +0.100 to +0.700)" in pair.sentence


def test_a_model_that_is_nowhere_worse_is_said_to_be(report: ReportData) -> None:
    pair = compare(report, compare_values("gay", "bpsn_auc", 0.8, 0.9), compare_values("gay", "bnsp_auc", 0.9, 0.91))
    assert all(f"{words} " in pair.sentence for words in (NEW, "not", OLD, "2"))


def test_compared_values_have_their_evidence_intervals_and_counts(report: ReportData) -> None:
    """Intervals where they are those of the suite, and so of all rows that it ranks."""
    (pair,) = compare_with_baselines(report)
    assert list(pair.rows) == report.identities()
    assert len(pair.rows["gay"]) == 6
    nothing = pair.rows[EMPTY]["bnsp_auc"].difference
    assert (nothing.text, nothing.weak) == ("–", True)
    (row,) = report.rows("bias_metrics", slice="all", identity="gay", model=OLD)
    compared = pair.rows["gay"]["bpsn_auc"]
    assert compared.difference.note == "adjusted p < 0.001, 50 and 8 rows"
    assert compared.baseline.text == show_number(row["bpsn_auc"])
    assert compared.baseline.interval == show_interval(row["bpsn_auc_low"], row["bpsn_auc_high"])
    page = page_without_charts(report)
    assert "<bdi>gay</bdi></th><td>8</td><td>50</td>" in page
    assert f"<small>{compared.value.text[1:]} vs {compared.baseline.text[1:]}</small></td>" in page
    assert "<td>&lt; 0.001</td><td>50, 8</td></tr>" in page


def test_every_pair_that_got_worse_is_on_the_page(report: ReportData) -> None:
    """Beyond the first twelve below a fold with their number; a pair has no row in the table of identities."""
    pairs = [f"gay & number {n:02}" for n in range(37)]
    crossed = [
        compare_values(pair, "bpsn_auc", 0.9, 0.7 - n / 100) | {"crossed": True}
        for n, pair in enumerate(reversed(pairs))
    ]
    against = compare(report, *crossed)
    assert ([one.row["identity"] for one in against.worse], against.rows) == (pairs, {})
    data = with_rows(report, model_comparisons=crossed)
    first, rest = page_without_charts(data).split("25 more of 37</summary>")
    assert "12 of 37</caption>" in first
    assert (first.count("gay &amp; number"), rest.count("gay &amp; number")) == (13, 25)  # the top names the largest
    assert "12 of 37:" in write_model_card(data)


def test_a_list_that_is_not_whole_says_of_how_many(report: ReportData) -> None:
    counts = {("all", NEW, OLD, "worse"): 1, ("all", NEW, OLD, "better"): 8, ("short", NEW, OLD, "worse"): 9}
    values = {"gay": (0.9, 0.8), "black": (0.8, 0.9)}
    rows = [compare_values(name, "bpsn_auc", *pair) for name, pair in values.items()]
    data = replace(with_rows(report, model_comparisons=rows), counts={"model_comparisons": counts})
    page, card = page_without_charts(data), write_model_card(data)
    assert compare_with_baselines(data)[0].counts["worse"] == 1
    assert "worse</caption>" in page
    assert "better: 1 of 8</caption>" in page
    assert "worse:\n" in card
    assert "better, 1 of 8:\n" in card
    without_better = replace(with_rows(data, model_comparisons=rows[:1]), counts=data.counts)
    assert "none of 8 " in page_without_charts(without_better)


def describe(report: ReportData, config: dict[str, Any], *n_groups: int | None) -> str:
    """Return how differences are tested, which the page and the card say alike."""
    rows = [compare_values(f"name {number}", "bpsn_auc", 0.9, 0.8) for number in range(len(n_groups))]
    method = "paired_delong" if None in n_groups else "jackknife"
    rows = [row | {"method": method, "n_groups": n} for row, n in zip(rows, n_groups, strict=True)]
    rows.append(compare_values(EMPTY, "bpsn_auc", None, None) | {"method": method, "n_groups": 0})
    data = replace(with_rows(report, model_comparisons=rows), configs={"compare_models": {"compare": config}})
    text = describe_method(data)
    assert text in read_text(page_without_charts(data))
    assert escape_markdown(text) in write_model_card(data)
    return text


def test_the_report_says_how_differences_are_tested(report: ReportData) -> None:
    assert "paired DeLong" in describe(report, {"baseline": OLD}, None)
    assert "jackknife over 100 groups" in describe(report, {"method": "jackknife", "groups": 100}, 100, 100)
    clustered = describe(report, {"cluster": f"by {IMAGE}"}, 97, 40)
    assert ["40 to 97 groups" in clustered, f"the same by {IMAGE}" in clustered] == [True, True]
    assert describe_method(replace(report, tables={})) == ""


def test_the_comparison_is_at_the_top_and_in_a_section(report: ReportData) -> None:
    page = page_without_charts(report)
    section = page.index('<section id="against">')
    assert page.index(f"{NEW} is significantly worse") < section
    assert page.index('<section id="models">') < section < page.index('<section id="worst">')
    assert f"differences for {len(NAMES) + 1} " in page
    card = write_model_card(report)
    assert card.index("#### toxicity_6 against toxicity_1") < card.index("#### Models")
    assert f"Negative AEG of {escape_markdown(IMAGE)}" in card
    values = "▲ +0.240 (+0.210 to +0.270) | 0.933 (0.890 to 0.975) | 0.693 (0.650 to 0.735)"
    assert f"| gay | BPSN AUC | {values} | &lt; 0.001 | 50, 8 |" in card


def test_templates_show_how_far_identities_are_apart(report: ReportData) -> None:
    scores = list_templates(report)
    assert list(scores)[:3] == ["gay", "black", "muslim"]
    card = write_model_card(report)
    for line in ("| gay | 12 | 36 | ", f"{escape_markdown(OLD)}: ", "0.300 apart"):
        assert line in card
    _, mean, departure = scores["gay"][NEW]
    assert (mean.text, mean.note, departure.text) == ("0.450", "36 rows of 12 templates", "+0.150")
    assert (mean.interval, departure.interval, departure.weak) == ("0.259 to 0.641", "+0.118 to +0.182", False)
    single = [{**row, "n_templates": 1, "departure_deviation": None} for row in report.rows("template_means")]
    _, _, departure = list_templates(with_rows(report, template_means=single))["gay"][NEW]
    assert (departure.interval, departure.weak) == ("", True)
