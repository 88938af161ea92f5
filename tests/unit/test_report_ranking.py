"""Which numbers of a report stand first and which win, and that those of few rows are marked and never do."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from biasspark.report.balance import tabulate_balance
from biasspark.report.cells import metric_cell
from biasspark.report.charts import choose_identities
from biasspark.report.facts import NightFacts
from biasspark.report.model_card import write_model_card
from biasspark.report.overview import count_weak, list_worst, list_worst_pairs, summarise_models, tabulate_metrics
from biasspark.report.page import write_page
from biasspark.report.rates import list_rates
from tests.report_rows import EMPTY, MODELS, NAMES, write_undrawn

AUCS = ("subgroup_auc", "bpsn_auc", "bnsp_auc")


def test_worst_first(facts: NightFacts) -> None:
    worst = list_worst(facts, MODELS[0])
    assert (worst[0].identity, worst[0].metric) == ("gay", "bpsn_auc")
    assert [own.value for own in worst] == sorted(own.value for own in worst)
    assert next(iter(facts.identities())) == "gay"
    assert {row.identity for row in tabulate_metrics(facts, "short")} == {*NAMES, EMPTY}


def test_a_number_of_few_rows_is_marked_and_wins_nothing(facts: NightFacts) -> None:
    weak = {"subgroup_auc": 0.01, "subgroup_auc_low": None}
    rows = [row | weak if row["identity"] == "gay" else row for row in facts.rows("bias_metrics")]
    sums = [row | {"subgroup_auc_min": 0.01, "subgroup_auc_min_identity": "gay"} for row in facts.rows("model_summary")]
    tables = {**facts.tables, "bias_metrics": rows, "model_summary": sums}
    (found,) = (row for row in summarise_models(replace(facts, tables=tables)) if row.column == "subgroup_auc_min")
    assert [(own.cell.weak, own.best) for own in found.cells] == [(True, False)] * 2
    assert "◦\u00a00.010" in write_undrawn(replace(facts, tables=tables))


def test_the_worst_value_that_enough_rows_tell_of_stands_above_that_of_few(facts: NightFacts) -> None:
    weak = {"bpsn_auc": 0.01, "bpsn_auc_low": None}
    rows = [row | weak if row["identity"] == EMPTY else row for row in facts.rows("bias_metrics")]
    sums = [row | {"bpsn_auc_min": 0.01, "bpsn_auc_min_identity": EMPTY} for row in facts.rows("model_summary")]
    summed = [row | {"bpsn_auc_min_sure_identity": "gay"} for row in facts.rows("summed_aucs")]
    tables = {**facts.tables, "bias_metrics": rows, "model_summary": sums, "summed_aucs": summed}
    night = replace(facts, tables=tables)
    (found,) = (row for row in summarise_models(night) if row.column == "bpsn_auc_min")
    assert [(own.identity, own.cell.weak, own.best) for own in found.cells] == [("gay", False, False)] * 2
    assert [own.unsure and (own.unsure.identity, own.unsure.cell.text) for own in found.cells] == [(EMPTY, "0.010")] * 2
    assert f'<small class="unsure"><bdi>{EMPTY}</bdi> ◦\u00a00.010</small>' in write_undrawn(night)
    assert f"gay; 0.010 (too few rows) {EMPTY} |" in write_model_card(night).replace("\\", "")


def test_of_the_colour_of_few_rows_an_edge_is_left(facts: NightFacts) -> None:
    wide = facts.rows("bias_metrics")[0] | {"bpsn_auc": 0.5, "bpsn_auc_low": 0.3, "bpsn_auc_high": 0.7}
    assert metric_cell(wide, "bpsn_auc").classes == "a0 w"
    assert metric_cell(wide | {"bpsn_auc_low": 0.49, "bpsn_auc_high": 0.51}, "bpsn_auc").classes == "a0"
    assert metric_cell(wide | {"bpsn_auc": None}, "bpsn_auc").classes == ""
    page = write_undrawn(replace(facts, tables={**facts.tables, "bias_metrics": [wide]}))
    assert re.search('<td class="a0 w"[^>]*>◦\u00a00.500<small>.300 to .700</small></td>', page)


def of_few_rows(facts: NightFacts, identity: str, value: float = 0.01) -> NightFacts:
    """Give the night with the AUCs of an identity low, and without intervals."""
    weak = {name: own for auc in AUCS for name, own in ((auc, value), (f"{auc}_low", None), (f"{auc}_high", None))}
    rows = [row | weak if row["identity"] == identity else row for row in facts.rows("bias_metrics")]
    return replace(facts, tables={**facts.tables, "bias_metrics": rows})


def test_identities_of_few_rows_come_last(facts: NightFacts) -> None:
    weak = of_few_rows(facts, "gay")
    assert weak.identities()[-1] == "gay"
    for model in MODELS:
        worst = list_worst(weak, model, 20)
        assert [own.identity for own in worst if own.cell.weak] == ["gay"] == [worst[-1].identity]
    assert "gay" not in choose_identities(weak, 4)
    page = write_page(weak)
    cards = re.findall(r'<article class="card"><h3><bdi>(.*?)</bdi>', page)
    assert (len(cards), cards[-1]) == (8, "gay")
    (trends,) = re.findall(r'aria-label="Overall AUC and the worst.*?</svg>', page, flags=re.DOTALL)
    assert ", black<" in trends
    assert ", gay<" not in trends


def test_pairs_of_few_rows_come_last(facts: NightFacts) -> None:
    first, *_ = facts.rows("crossed_pairs", model=MODELS[0])
    wide = first | {"identity": "wide", "bpsn_auc": 0.3, "bpsn_auc_low": 0.1, "bpsn_auc_high": 0.5, "bnsp_auc": None}
    sure = wide | {"identity": "sure", "bpsn_auc": 0.8, "bpsn_auc_low": 0.79, "bpsn_auc_high": 0.81}
    found = list_worst_pairs(replace(facts, tables={**facts.tables, "crossed_pairs": [wide, sure]}))
    assert [own.identity for own in found[MODELS[0]]] == ["sure", "wide"]


def test_as_many_values_are_marked_as_are_counted(facts: NightFacts, page: str) -> None:
    n_weak, n = count_weak(facts)
    (table,) = re.findall(r"Slice <bdi>all</bdi>: .*?</table>", page, flags=re.DOTALL)
    cells = re.findall("<td.*?</td>", table)
    assert n == 5 * len(MODELS) * len(facts.identities()) == len(cells) - 2 * len(facts.identities())
    assert sum("◦" in cell for cell in cells) == n_weak > sum(">◦\u00a0–" in cell for cell in cells) > 0
    assert f"<li>{n_weak} of the {n} values below rest on too few rows" in page


def test_sums_say_how_many_of_their_identities_have_few_rows(facts: NightFacts, page: str) -> None:
    by_column = {row.column: row.cells[0].cell for row in summarise_models(facts)}
    mean = by_column["subgroup_auc_power_mean"]
    assert (mean.text, mean.interval, mean.weak) == ("0.900", "4 of 7 identities", True)
    (at,) = list_rates(facts)
    positive, negative = (at.totals[0].sums[f"false_{sign}_equality_difference"] for sign in ("positive", "negative"))
    assert (positive.interval, negative.interval) == ("5 of 8 identities", "4 of 7 identities")
    assert "False positive equality difference</a> ◦\u00a00.400 (◦ 5 of 8 identities)" in page
    assert "Pinned AUC equality difference</a>" in page
    assert page.count("◦\u00a00.400 (◦ 4 of 8 identities)") == len(MODELS)
    sure = replace(facts, tables={**facts.tables, "summed_aucs": [], "summed_rates": []})
    assert not any(row.cells[0].cell.weak for row in summarise_models(sure) if row.column.endswith("_mean"))


def test_shares_of_few_rows_come_last_and_are_marked(facts: NightFacts) -> None:
    def share(name: str, n: int, of: int) -> dict[str, Any]:
        counts = {"n_rows": of, "n_positive": n, "positive_rate": n / of if of else None, "n_negatives_to_add": 0}
        return {"identity": name, "bucket": "(all)", "length_low": None} | counts

    shares = [share("(overall)", 90, 1000), share("few", 5, 7), share("many", 300, 1000), share("none", 0, 0)]
    shares += [share("fewer", 1, 1), share("more", 40, 100)]
    found = tabulate_balance(replace(facts, tables={"label_balance": shares}))
    assert found is not None
    assert [row.identity for row in found.rows] == ["(overall)", "many", "few", "more", "fewer", "none"]
    assert [row.cells[0].weak for row in found.rows] == [False, False, True, True, True, False]
    assert found.rows[2].cells[0].note == "5 of 7 rows, 0.36 to 0.92"


def test_the_best_model_of_a_line_is_marked(facts: NightFacts) -> None:
    rows = {row.column: [own.best for own in row.cells] for row in summarise_models(facts)}
    assert rows["bpsn_auc_min"] == [False, True]
    assert rows["negative_aeg_max_abs"] == [False, True]
    assert rows["auc"] == [False, False]
