"""Which numbers of a report stand first and which win, and that those of few rows are marked and never do."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from biasspark.report.cells import is_weak, metric_cell
from biasspark.report.charts import choose_curves, draw_trends
from biasspark.report.metric_tables import (
    count_weak,
    list_metrics,
    list_rates,
    list_worst,
    summarize_models,
    tabulate_balance,
)
from biasspark.report.page import write_model_card
from biasspark.report.report_data import AUC_SUMS, ReportData, find_lowest
from tests.fixtures.made_up_report import EMPTY, MODELS, NAMES, page_without_charts, with_rows

AUCS = ("subgroup_auc", "bpsn_auc", "bnsp_auc")


def test_worst_first(report: ReportData) -> None:
    worst = list_worst(report, MODELS[0])
    assert (worst[0]["identity"], find_lowest(worst[0]).metric) == ("gay", "bpsn_auc")
    highs = [[row[f"{name}_high"] for name in AUCS] for row in worst]
    assert [find_lowest(row).high for row in worst] == sorted(min(filter(None, of_row)) for of_row in highs)
    assert next(iter(report.identities())) == "gay"
    assert list_metrics(report, "short").keys() == {*NAMES, EMPTY}


def test_a_number_of_few_rows_is_marked_and_wins_nothing(report: ReportData) -> None:
    weak = {name: {"subgroup_auc_low": None} | ({"subgroup_auc": 0.01} if name == "gay" else {}) for name in NAMES}
    metrics = [row | weak.get(row["identity"], {}) for row in report.rows("bias_metrics")]
    worst = {"subgroup_auc_min": 0.01, "subgroup_auc_min_identity": "gay"}
    data = with_rows(report, bias_metrics=metrics, model_summary=[row | worst for row in report.rows("model_summary")])
    row = summarize_models(data)["subgroup_auc_min"]
    assert [(one.identity, one.cell.weak, one.best) for one in row] == [("gay", True, False)] * 2
    assert "◦\u00a00.010" in page_without_charts(data)


def test_of_the_color_of_few_rows_an_edge_is_left(report: ReportData) -> None:
    wide = report.rows("bias_metrics")[0] | {"bpsn_auc": 0.5, "bpsn_auc_low": 0.3, "bpsn_auc_high": 0.7}
    assert metric_cell(wide, "bpsn_auc").classes == "a0 w"
    assert metric_cell(wide | {"bpsn_auc_low": 0.49, "bpsn_auc_high": 0.51}, "bpsn_auc").classes == "a0"
    assert metric_cell(wide | {"bpsn_auc": None}, "bpsn_auc").classes == ""
    page = page_without_charts(with_rows(report, bias_metrics=[wide]))
    assert re.search('<td class="a0 w"[^>]*>◦\u00a00.500<small>.300 to .700</small></td>', page)


def test_identities_without_intervals_come_last(report: ReportData) -> None:
    low = {f"{auc}{end}": value for auc in AUCS for end, value in (("", 0.01), ("_low", None), ("_high", None))}
    rows = [row | low if row["identity"] == "gay" else row for row in report.rows("bias_metrics")]
    weak = with_rows(report, bias_metrics=rows)
    assert weak.identities()[-1] == "gay"
    for model in MODELS:
        worst = list_worst(weak, model, 20)
        assert (
            [row["identity"] for row in worst if find_lowest(row).weakness == 2] == ["gay"] == [worst[-1]["identity"]]
        )
    assert "gay" not in choose_curves(weak)
    cards = re.findall(r'<article class="card"><h3><bdi>(.*?)</bdi>', page_without_charts(weak))
    assert (len(cards), cards[-1]) == (8, "gay")
    trends = draw_trends(weak)
    assert ", black<" in trends
    assert ", gay<" not in trends


def test_an_auc_that_is_surely_low_comes_first_however_wide_its_interval(report: ReportData) -> None:
    good = {f"{name}{end}": value for name in AUCS for end, value in (("", 0.9), ("_low", 0.88), ("_high", 0.92))}
    low = {"bpsn_auc": 0.4, "bpsn_auc_low": 0.3, "bpsn_auc_high": 0.5, "bnsp_auc": 0.1, "bnsp_auc_low": None}
    rows: dict[str, dict[str, Any]] = {
        "low": good | low | {"bnsp_auc_high": None},
        "sure": good | {"bpsn_auc": 0.8, "bpsn_auc_low": 0.79, "bpsn_auc_high": 0.81},
        "unsure": good | {"bpsn_auc": 0.3, "bpsn_auc_low": 0.05, "bpsn_auc_high": 0.85},
        "few": good | low | {"bnsp_auc_high": None, "n_subgroup_negative": 27, "n_subgroup_positive": 2},
    }
    first, *_ = report.rows("bias_metrics", slice="all", model=MODELS[0])
    enough = first | {"n_subgroup_negative": 28, "n_subgroup_positive": 2}
    listed = [enough | row | {"identity": name} for name, row in rows.items()]
    data = with_rows(report, bias_metrics=listed[::-1], crossed_pairs=listed)
    lowest = [(row, find_lowest(row).metric) for row in list_worst(data, MODELS[0])]
    assert [(row["identity"], name, is_weak(row, name)) for row, name in lowest] == [
        ("low", "bpsn_auc", True),
        ("sure", "bpsn_auc", False),
        ("unsure", "bpsn_auc", True),
        ("few", "bpsn_auc", True),
    ]
    assert data.identities() == ["low", "sure", "unsure", "few"]
    page = page_without_charts(data)
    assert "<strong><bdi>low</bdi></strong>" in page
    assert "2 other identities" in page  # unsure and few


def test_as_many_values_are_marked_as_are_counted(report: ReportData, page: str) -> None:
    n_weak, n = count_weak(report)
    (table,) = re.findall(r"Slice <bdi>all</bdi>: .*?</table>", page, flags=re.DOTALL)
    cells = re.findall("<td.*?</td>", table)
    assert n == 5 * len(MODELS) * len(report.identities()) == len(cells) - (2 + len(MODELS)) * len(report.identities())
    assert sum("◦" in cell for cell in cells) == n_weak > sum(">◦\u00a0–" in cell for cell in cells) > 0
    assert f"<li>{n_weak} of the {n} values" in page


def test_sums_say_how_many_of_their_identities_have_few_rows(report: ReportData, page: str) -> None:
    counts = {f"{name}_weak": 0 for name in AUC_SUMS}
    mean = summarize_models(report)["subgroup_auc_power_mean"][0].cell
    assert (mean.text, mean.interval, mean.weak) == ("0.900", "4 of 7 identities", True)
    ((_, totals),) = list_rates(report).values()
    positive, negative = (totals[0]["sums"][f"false_{sign}_equality_difference"] for sign in ("positive", "negative"))
    assert (positive.interval, negative.interval) == ("5 of 8 identities", "4 of 7 identities")
    assert "</a> ◦\u00a00.400 (◦ 5 of 8 identities)" in page
    assert "Pinned AUC equality difference</a>" in page
    assert page.count("◦\u00a00.400 (◦ 4 of 8 identities)") == len(MODELS)
    assert "(4 of 7 identities: too few rows)" in write_model_card(report)
    sure = with_rows(report, model_summary=[row | counts for row in report.rows("model_summary")])
    assert not any(row[0].cell.weak for column, row in summarize_models(sure).items() if column.endswith("_mean"))


def test_shares_of_few_rows_come_last_and_are_marked() -> None:
    def share(name: str, n: int, of: int) -> dict[str, Any]:
        counts = {"n_rows": of, "n_positive": n, "positive_rate": n / of if of else None, "n_negatives_to_add": 0}
        return {"identity": name, "bucket": "(all)", "length_low": None, "reason": None} | counts

    shares = [share("(overall)", 90, 1000), share("few", 5, 7), share("many", 300, 1000), share("none", 0, 0)]
    shares += [share("fewer", 1, 1), share("more", 10, 100), share("at least half", 39, 46)]
    balance = tabulate_balance(shares, 0.95, {})
    assert list(balance.rows) == ["(overall)", "at least half", "many", "more", "few", "fewer", "none"]
    assert balance.rows["few"][0].note == "5 of 7 rows, 0.36 to 0.92"
    weak = {name for name, (cell,) in balance.rows.items() if cell.weak}
    assert weak == {"few", "fewer", "more"}  # of fewer than ten rows, or wide and around the 9% of all rows


def test_the_best_model_of_a_line_is_marked(report: ReportData) -> None:
    rows = {column: [one.best for one in row] for column, row in summarize_models(report).items()}
    assert rows["bpsn_auc_min"] == [False, True]
    assert rows["negative_aeg_max_abs"] == [False, True]
    assert rows["auc"] == [False, False]


def test_a_report_of_mitigation_has_the_difference_by_which_models_are_judged(report: ReportData) -> None:
    column = "pinned_auc_equality_difference"
    assert column not in summarize_models(report)
    rows = [
        row | {column: 0.1 + MODELS.index(row["model"]), f"{column}_weak": 0} for row in report.rows("model_summary")
    ]
    run = report.run | {"config": '{"mitigation": {}}'}
    judged = replace(with_rows(report, model_summary=rows), run=run)
    assert [one.best for one in summarize_models(judged)[column]] == [True, False]
    assert "The experiment calls the mitigated model best" in page_without_charts(judged)


def test_the_bias_of_an_identity_has_a_name_everywhere(report: ReportData, page: str) -> None:
    """A shift down is never read as false alarms, however low its BPSN AUC is among its AUCs."""
    named = {"bias": "negatives_shifted_down", "bias_size": "small"}
    rows = [row | named if row["identity"] == "gay" else row for row in report.rows("bias_metrics")]
    other = with_rows(report, bias_metrics=rows)
    n = page_without_charts(other).count("negatives shifted down, small")
    assert n == 4 * len(MODELS)  # the verdict, the worst identities, and every identity of two slices
    assert write_model_card(other).count("| negatives shifted down, small |") == 2 * len(MODELS)
    assert page.count('<svg class="cells"') == 6
    assert 'aria-label="subgroup_negative and background_positive"'.replace("_", " ") in page
