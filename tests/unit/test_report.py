"""The page of a report and its model card, from made-up rows, without Spark and without a browser."""

from __future__ import annotations

import hashlib
import html
import json
import re
from base64 import b64encode
from dataclasses import replace
from html.parser import HTMLParser
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from biasspark.api.reports import metric_table
from biasspark.columns import SUMMARIZED_AUCS
from biasspark.errors import InputError
from biasspark.report.attributions import list_heat_maps, list_segment_trees
from biasspark.report.baseline_comparison import compare_with_baselines
from biasspark.report.cells import drop_zeros, metric_cell
from biasspark.report.definitions import SUITE, list_definitions
from biasspark.report.gate_summary import build_gate_summary
from biasspark.report.metric_tables import MAX_LACKING, list_rates, list_skewed, list_training
from biasspark.report.page import SECTIONS, RunReport, write_metric_page, write_model_card, write_page
from biasspark.report.report_data import ALERTS, OF_ATTRIBUTION, ReportData, filter_tables
from biasspark.report.text_formats import escape_markdown
from biasspark.tables.schemas import TABLES
from biasspark.workflows.write_report import TABLES_READ
from tests.fixtures.made_up_report import (
    IMAGE,
    MODELS,
    NAMES,
    RUN_DATE,
    SCRIPT,
    alert,
    full_report,
    make_report,
    page_without_charts,
    read_text,
    with_rows,
)

MEGABYTE = 1_000_000
ODD = ("a\ufffe\uffff",)


@pytest.fixture(scope="module")
def short_page() -> str:
    return write_page(make_report(identities=ODD))


class Elements(HTMLParser):
    """The tags of a page with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def test_page_loads_nothing_and_has_no_style_attributes(page: str) -> None:
    elements = Elements(page).elements
    assert {tag for tag, _ in elements} & {"img", "iframe", "object", "embed", "link", "base", "form"} == set()
    assert [attributes for _, attributes in elements if {"src", "style", "srcset"} & attributes.keys()] == []
    assert [a["href"] for _, a in elements if a.get("href") and not str(a["href"]).startswith("#")] == []
    assert [key for _, attributes in elements for key in attributes if key.startswith("on")] == []


def test_policy_names_style_and_script_by_their_hash(page: str) -> None:
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert "default-src &#39;none&#39;" in policy or "default-src 'none'" in policy
    for tag in ("style", "script"):
        (source,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, flags=re.DOTALL)
        assert f"{tag}-src 'sha256-{b64encode(hashlib.sha256(source.encode()).digest()).decode()}'" in policy


def test_groups_of_columns_cover_the_columns_of_their_table(page: str) -> None:
    tables = [table for table in re.findall("<table.*?</table>", page, flags=re.DOTALL) if "<colgroup" in table]
    assert len(tables) > 4
    for table in tables:
        spans = [int(span or 1) for span in re.findall(r'<colgroup(?: span="(\d+)")?>', table)]
        row = re.findall(r"<tr>(.*?)</tr>", table.partition("<tbody>")[2], flags=re.DOTALL)[0]
        assert sum(spans) == len(re.findall(r"<t[dh][ >]", row))


def test_every_table_that_a_section_shows_is_read() -> None:
    """Rows of examples are too many for a page, and alerts are in the summary of the gate."""
    shown = {name for section in SECTIONS for name in section.tables if name in TABLES} - {"example_attributions"}
    assert {table.name for table in TABLES_READ} == shown | set(ALERTS)


def test_names_are_text_everywhere(page: str) -> None:
    assert page.count("<script>") == 1
    assert SCRIPT not in page
    assert IMAGE not in page
    assert "\u202e" not in page
    assert "\\u202egnp.exe" in page
    assert "{{ 7 * 7 }}" in page


def test_invisible_characters_are_escaped_in_messages_and_rules(report: ReportData) -> None:
    tables = {
        "bias_alerts": [alert("fail", message="\u202e")],
        "pair_segments": [row | {"negative_rule": "\u202e"} for row in report.rows("pair_segments")],
        "loss_by_segment": [row | {"predicate": "\u202e"} for row in report.rows("loss_by_segment")],
    }
    assert "\u202e" not in page_without_charts(with_rows(report, **tables))


def test_a_name_may_have_characters_that_xml_forbids(short_page: str) -> None:
    assert "a\\ufffe\\uffff" in short_page
    assert not {"\ufffe", "\uffff"} & {*short_page}


def test_page_of_fifty_identities_and_two_models_is_small() -> None:
    report = full_report()
    assert (len(report.identities()), len(report.alerts()), len(report.history)) == (50, 200, 30)
    page = write_page(report)
    assert len(re.findall('aria-label="Rates at threshold', page)) == 3
    assert "Not measured" not in page
    assert len(page.encode()) < 1.17 * MEGABYTE


def test_slices_have_pictures_of_their_own_and_link_to_each_other(report: ReportData, page: str) -> None:
    for what in ("Intervals of", "Models side by side,", "Metrics of every identity,"):
        assert page.count(f'aria-label="{what} slice short"') == 1
    names = report.pictured()
    assert len(names) == 6
    titles = re.findall(r'aria-label="Scores of ([^"]*) by ([^"]*), slice short"', page)
    assert len(titles) == len({*titles}) == len(names) * len(MODELS)
    assert page.count('aria-label="Curves of equal rates of') == len(names)
    links = {a["href"] for _, a in Elements(page).elements if str(a.get("href")).endswith("-1")}
    assert links >= {"#models-1", "#slice-1", "#intervals-1"}
    assert "6 of 8 identities" in read_text(page)


@pytest.mark.slow
def test_with_many_slices_the_page_is_bounded_and_says_what_it_lacks() -> None:
    report = make_report(identities=[f"identity {number}" for number in range(30)], n_runs=1)
    run_tables = {
        name: pa.Table.from_pylist(
            [
                row | {"slice": cut} | lower(row, cut)
                for row in report.rows(name, slice="all")
                for cut in ("all", *(f"part {number:02}" for number in range(30)))
            ],
            TABLES[name].full_arrow_schema,
        )
        for name in ("bias_metrics", "model_summary", "score_histograms")
    }
    shown = replace(report, tables=filter_tables(run_tables, {"histograms": {"bins": 20}}))
    assert shown.slices() == ["all", *(f"part {number:02}" for number in range(3, 25, 3))]
    page = write_page(shown)
    text = read_text(page)
    shown_parts = "part 00 , part 01 , part 02 , part 04 ,"
    assert all(words in text for words in (shown_parts, "22 more", "28 identities", "; 3 more", "6 of 31", "20 of 31"))
    assert page.count("Curves of equal rates of") == 1  # 24 curves of 9 slices and 2 models
    assert len(page.encode()) < 1.5 * MEGABYTE


def lower(row: dict[str, Any], cut: str) -> dict[str, float]:
    """Return a low AUC with a narrow interval for an identity in every third part."""
    is_low = cut[-2:].isdigit() and int(cut[-2:]) % 3 == 0 and 0 < int(cut[-2:]) < 25
    if not is_low or row.get("identity") != "identity 7" or "bpsn_auc" not in row:
        return {}
    return {"bpsn_auc": 0.31, "bpsn_auc_low": 0.3, "bpsn_auc_high": 0.32}


def test_links_within_the_page_lead_somewhere(page: str) -> None:
    elements = Elements(page).elements
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    targets = {str(attributes["href"])[1:] for _, attributes in elements if attributes.get("href")}
    assert len(ids) == len(set(ids))
    assert targets - set(ids) == set()


OPTIONAL = {
    "score_histograms": "histograms",
    "threshold_rates": "thresholds",
    "template_means": "templates",
    "label_balance": "label_balance",
    "pinned_auc": "pinned_auc",
    "model_comparisons": "compare",
    "loss_by_segment": "attribution",
}


def test_a_run_without_optional_tables_says_in_one_line_what_is_not_measured() -> None:
    unmeasured = (*OPTIONAL, *OF_ATTRIBUTION, "pinned_skew", "threshold_summary", "training_balance")
    report = make_report(n_runs=1, without=unmeasured)
    page = page_without_charts(report)
    shown = {"models", "worst", "identities", "intervals", "source", "definitions"}
    assert {*re.findall(r'<section id="(.*?)"', page)} == shown - {"intervals"}
    assert {*re.findall(r'<li><a href="#(.*?)"', page)} == shown
    (line,) = re.findall(r"<dt>Not measured</dt><dd>(.*?)</dd>", page)
    assert {*re.findall(r"\[(\w+)\]", line)} == {*OPTIONAL.values()}
    assert "No gate is configured" in page
    targets = {*re.findall(r'href="#(def-.*?)"', page)}
    assert targets <= {*re.findall(r'<div id="(def-.*?)"', page)}
    assert "template" not in {*re.findall(r"<h3><code>(\w+)_", page)}


def test_what_was_measured_but_has_nothing_to_show_is_not_called_unmeasured() -> None:
    """As templates that are NULL on every usable row."""
    report = make_report(n_runs=1, without=("template_means", "label_balance", "training_balance"))
    page = page_without_charts(replace(report, run=report.run | {"config": '{"templates": {"column": "template"}}'}))
    (line,) = re.findall(r"<dt>Not measured</dt><dd>(.*?)</dd>", page)
    assert re.findall(r"<code>\[(.*?)\]", line) == ["label_balance"]


def test_tables_whose_files_are_gone_are_lost_and_not_unpublished() -> None:
    """Each optional table has a section that would otherwise be left out, as not measured."""
    names = {*OPTIONAL, "threshold_summary", "training_balance", "pinned_skew", *OF_ATTRIBUTION}
    report = make_report(n_runs=3, without=[*names])
    derived = {"template_means": "template_scores"}
    lost = {table: f"/lake/{table}: its files are gone." for name in names for table in [derived.get(name, name)]}
    past = [run._replace(is_lost=number == 0) for number, run in enumerate(report.history)]
    report = replace(report, lost=lost, history=past, baseline=past[0])
    page = page_without_charts(report)
    assert "Not measured" not in page
    assert all(page.count(fault) == 1 for fault in lost.values())
    assert page.count('class="warning lost"') == len(lost) + 1
    assert build_gate_summary(report).changes == []
    assert write_model_card(report).count("its files are gone") == len(lost)


def test_identities_without_rows_leave_no_table_and_no_heading_without_text(report: ReportData) -> None:
    emptied = dict.fromkeys(name + end for name in SUMMARIZED_AUCS for end in ("", "_low", "_high"))
    tables = {"bias_metrics": [row | emptied for row in report.rows("bias_metrics")]}
    tables["score_histograms"] = [row | {"n_rows": 0} for row in report.rows("score_histograms")]
    page = page_without_charts(replace(report, tables={**report.tables, **tables, "crossed_pairs": []}))
    worst, scores = (
        page.partition(f'<section id="{name}">')[2].partition("</section>")[0] for name in ("worst", "scores")
    )
    assert "<table" not in worst
    assert worst.count("no identity has an AUC") == len(MODELS)
    assert "<p>" in scores


def test_a_run_may_attribute_other_models_and_have_no_identities(report: ReportData) -> None:
    losses = [row | {"model": "other"} for row in report.rows("loss_by_segment")]
    summaries = [dict.fromkeys(row) | {"model": "m", "slice": "all"} for row in report.rows("model_summary")[:1]]
    tables = {"model_summary": summaries, "loss_by_segment": losses}
    alone = replace(report, tables=tables, history=(), baseline=None, n_identities=0)
    page = write_page(alone)
    assert "<bdi>other</bdi>" in page
    assert {*re.findall(r'<section id="(.*?)"', page)} == {"models", "attribution", "source", "definitions"}
    assert "<code>[identities]</code>" in page
    for text in (read_text(page), write_model_card(alone)):
        assert [words for words in ("values below", "worst identities", "Every identity") if words in text] == []


ALONE = {
    "attribution": (OF_ATTRIBUTION, [*MODELS], ["Worst identities", "gate rule", "Subgroup AUC"]),
    "pinned": (["pinned_skew"], [*MODELS, "Pinned AUC", "0.800 → 0.900", "base decisions"], ["Not measured"]),
    "balance": (
        ["label_balance"],
        ["Label balance", "Share of positives by length"],
        ["Models side by side", "Score distributions", "base decisions"],
    ),
}
"""Sections that a run may have alone: its tables, what page and model card say, and what they do not say."""


@pytest.mark.parametrize("section", ALONE)
def test_a_run_may_have_one_section_alone(report: ReportData, section: str) -> None:
    names, shown, hidden = ALONE[section]
    tables = {name: report.rows(name) for name in names}
    run = {**report.run, "job": "attribution"} if section == "attribution" else report.run
    alone = replace(report, tables=tables, history=(), baseline=None, run=run)
    page, card = page_without_charts(alone), html.unescape(write_model_card(alone).replace("\\", ""))
    links = re.findall(r'<a [^>]*href="#(.*?)"', page)
    assert {name for name in links if not name.startswith("def-")} == {section, "source", "definitions"}
    assert re.findall(r'<section id="(.*?)"', page) == [section, "source", "definitions"]
    assert {*links} <= {*re.findall(r' id="(.*?)"', page)}
    for text in (read_text(page), card):
        assert [words for words in shown if words not in text] == []
        assert [words for words in hidden if words in text] == []


def test_what_is_withheld_is_said_to_be(report: ReportData) -> None:
    kept = {"model", "slice", "identity", "threshold", "bucket", "length_low", "crossed"}

    def withhold(row: dict[str, Any]) -> dict[str, Any]:
        reasons = {name: "withheld" for name in row if name.endswith("reason")}
        return {name: row[name] if name in kept else None for name in row} | {"reason": "withheld"} | reasons

    names = ("bias_metrics", "threshold_rates", "label_balance", "pinned_auc")
    tables = {
        name: [withhold(dict(row)) if row["identity"] == "gay" else row for row in report.rows(name)] for name in names
    }
    histograms = [row for row in report.rows("score_histograms") if row["identity"] != "gay"]
    page = page_without_charts(with_rows(report, **tables, score_histograms=histograms))
    (table,) = re.findall(r'aria-label="Rates at threshold 0.5">.*?</table>', page, flags=re.DOTALL)
    rows = re.findall(r"<tr><th scope=.row.><bdi>gay</bdi></th>(.*?)</tr>", table, flags=re.DOTALL)
    assert [len(re.findall('title="withheld[^"]*">◦\u00a0–</td>', row)) for row in rows] == [6, 6]
    assert "no value: withheld" in page


def test_thresholds_without_identities_have_the_rates_on_all_rows() -> None:
    report = make_report(without=("threshold_rates",))
    page, card = page_without_charts(report), write_model_card(report)
    (section,) = re.findall(r'<section id="thresholds">.*?</section>', page, flags=re.DOTALL)
    assert [link for link in re.findall('href="#([^"]*)"', section) if f'id="{link}"' not in page] == []
    assert ["FPR</a> 0.100" in section, "<table" in section] == [True, False]
    assert "\n#### At threshold 0.5\n\n- toxicity_1: FPR 0.100" in card


def test_a_report_shows_itself_in_a_notebook(short_page: str) -> None:
    """And equal rows give equal bytes."""
    of_run = RunReport(make_report(identities=ODD))
    shown = of_run._repr_html_()
    title = f"Unintended bias, {RUN_DATE}"
    assert shown.startswith(f'<iframe sandbox="allow-scripts" title="{title}" width="100%" height="800" ')
    (inner,) = re.findall('srcdoc="([^"]*)"></iframe>$', shown)
    assert html.unescape(inner) == short_page
    assert repr(of_run) == f"RunReport(title='{title}', height=800)"


def test_a_model_card_takes_no_page(report: ReportData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("biasspark.report.page.write_page")
    assert RunReport(report).model_card() == write_model_card(report)


def test_metric_table_stands_alone(report: ReportData) -> None:
    page = write_metric_page(report.rows("bias_metrics", slice="short"), "short")
    assert "<bdi>short</bdi>: 8 " in page
    metrics = pa.Table.from_pylist(report.rows("bias_metrics"), TABLES["bias_metrics"].arrow_schema)
    assert page == metric_table(metrics, "short").html
    elements = Elements(page).elements
    targets = {str(attributes["href"])[1:] for _, attributes in elements if attributes.get("href")}
    assert targets
    assert targets <= {attributes["id"] for _, attributes in elements if "id" in attributes}
    assert "too few rows" in read_text(page)
    with pytest.raises(InputError, match="several rows"):
        metric_table(pa.concat_tables([metrics] * 2))


def test_rates_are_shown_before_the_counts_of_decisions() -> None:
    schema = TABLES["threshold_rates"].arrow_schema
    page = metric_table(pa.Table.from_pylist([dict.fromkeys(schema.names)], schema)).html.replace("<wbr>", "")
    assert page.index("selection_rate_gap_high") < page.index("n_true_positive")


def test_a_table_shown_in_a_notebook_has_the_title_of_all_its_columns() -> None:
    schema = TABLES["training_balance"].arrow_schema
    balance = pa.Table.from_pylist([dict.fromkeys(schema.names)], schema)
    assert metric_table(balance).title == "training_balance"
    assert metric_table(balance.to_pandas().assign(**{"x": 1}).rename(columns={"x": 7})).title == "training_balance"


def test_a_card_is_of_rows(report: ReportData) -> None:
    rows = [row for row in report.rows("score_histograms") if row["identity"] != "gay" or "background" in row["cell"]]
    page = page_without_charts(with_rows(report, score_histograms=rows))
    assert '<article class="card"><h3><bdi>gay' not in page


def test_identities_that_are_gone_are_named(report: ReportData) -> None:
    for write_text in (page_without_charts, write_model_card):
        assert "no longer measured: black" in write_text(replace(report, missing_identities=["black"]))


@pytest.mark.parametrize(
    ("above", "rule", "new"),
    [
        ("(genre is rock and roll is dead, soul or jazz)", "(genre is rock and roll is dead or soul)", None),
        ("(genre is soul, drum and bass or rock and roll)", "(genre is soul or rock and roll)", None),
        ("genre is not rock and all", "genre is rock and all", None),
        ("genre is rock and roll", "20 <= age < 30 and genre is rock and roll", "20 <= age < 30"),
        ("age < 30; age < 30 and a is b and c", "20 <= age < 30 and a is b and c", "20 <= age < 30"),
        ("age < 30", "age < 30 and (genre is not rock and roll or null)", "(genre is not rock and roll or null)"),
    ],
)
def test_no_value_is_cut_at_an_and_of_its_own(report: ReportData, above: str, rule: str, new: str | None) -> None:
    row, *_ = report.rows("attribution_segments", model="toxicity_1", baseline_model="", target="auc")
    rules = ["all rows", *above.split("; "), rule]
    (tree,) = list_segment_trees([row | {"node_id": 2**n, "rule": text} for n, text in enumerate(rules)])
    (*_, node) = tree.root.nodes()
    assert (node.whole_rule, node.rule) == (rule, new or rule)


def test_every_definition_is_a_comment_of_a_table() -> None:
    definitions = [one for listed in list_definitions().values() for one in listed]
    assert len({one.anchor for one in definitions}) == len(definitions) > 40
    assert all(one.text.endswith(".") for one in definitions)
    assert [one.title for one in definitions if re.search("auc|aeg|fpr|fnr", one.title)] == []


def test_model_card_is_markdown_with_names_as_text(report: ReportData) -> None:
    card = write_model_card(with_rows(report, bias_alerts=[alert("fail")]))
    assert card.startswith("### Unintended bias\n")
    assert "failed: 1 of 1 checks" in card
    assert "\n- Fail: bpsn floor, toxicity_1, all: 0.71 is below 0.8\n" in card.replace("\\", "")
    assert "<script" not in card
    assert "<img" not in card
    assert "  |" not in card
    tables = [line for line in card.split("\n") if line.startswith("| gay |")]
    assert len([line for line in tables if "▲" not in line]) == 13


def test_every_table_of_the_model_card_has_the_counts_of_its_model(report: ReportData) -> None:
    rows = [row | {"n_subgroup_positive": MODELS.index(row["model"]) + 1234} for row in report.rows("bias_metrics")]
    card = write_model_card(with_rows(report, bias_metrics=rows))
    tables = card.partition("#### Every identity")[2].partition("####")[0].split("| Bias |")[1:]
    assert [("1,234" in table, "1,235" in table) for table in tables] == [(True, False), (False, True)]


def test_a_table_of_the_model_card_is_one_in_markdown(report: ReportData) -> None:
    """The second line has the alignment of each column, with nothing escaped, and all lines have as many cells."""
    blocks = re.findall(r"^\|(?:.*\n\|)*.*", write_model_card(report), flags=re.MULTILINE)
    assert len(blocks) > 20
    for block in blocks:
        lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in block.split("\n")]
        assert [cell for cell in lines[1] if not re.fullmatch(" --[-:] ", cell)] == []
        assert {len(line) for line in lines} == {len(lines[0])}


@pytest.mark.parametrize("name", ["# new", "1. old", "12) old", "- x", "+ x", "---", "="])
def test_no_name_begins_a_block_of_markdown(name: str) -> None:
    escaped = escape_markdown(name)
    assert (escaped.replace("\\", ""), escaped.count("\\")) == (name, 1)
    assert [escape_markdown(text) for text in ("0.5", "+0.5", "1", "a-b", "#1")] == ["0.5", "+0.5", "1", "a-b", "#1"]


def test_the_model_card_says_what_the_report_says(report: ReportData) -> None:
    data = with_rows(report, bias_alerts=[alert("fail"), alert("pass", model=MODELS[1])])
    card, text = html.unescape(write_model_card(data).replace("\\", "")), read_text(page_without_charts(data))
    gate, (changed, *_) = build_gate_summary(data), compare_with_baselines(data)
    for sentence in (gate.title, *(one.sentence for one in gate.decisions), *gate.notes, changed.sentence):
        assert sentence in text
        assert sentence in card
    heads = [
        "Models",
        "Every identity",
        *(f"The worst {what} of toxicity_1" for what in ("identities", "crossed pairs")),
    ]
    heads += ["Overall AUC over time", "At threshold 0.5", "Templates", "Where the AUC is lost", "Pinned AUC"]
    for head in (*heads, "Definitions", "Share of positives by length"):
        assert f"\n#### {head}\n" in card
    rows = data.rows("bias_metrics", slice="all")
    cells = [cell for row, name in product(rows, SUITE) if (cell := metric_cell(row, name)).value is not None]
    trees = list_segment_trees(data.rows("attribution_segments"))
    cells += [node.cell for tree in trees for node in tree.root.children if node.row["is_leaf"]]
    cells += [cell for one in list_heat_maps(data.rows("auc_crosses")) for cell in one.auc.values()]
    ((rated, _),) = list_rates(data).values()
    cells += [replace(cell, text=cell.difference) for _, rates in rated for cell in rates.values() if cell.interval]
    assert len(cells) > 100
    missing = [cell for cell in cells if f"{cell.text} ({cell.interval}" not in card]
    assert missing == []
    rates = [cell.text for _, by_name in rated for cell in by_name.values()]
    assert [rate for rate in rates if rate != "–" and (rate not in card or drop_zeros(rate) not in text)] == []
    assert "base decisions" in card


def test_a_mitigation_experiment_shows_what_was_added() -> None:
    report = make_report()
    ((model, (whole, balance)),) = list_training(report).items()
    assert model == MODELS[1]
    assert whole["n_rows"] == whole["n_added"] == 93
    assert len(balance.rows) == 1 + min(len(NAMES), MAX_LACKING)
    assert {cells[-1].interval for cells in balance.rows.values()} == {"+93"}
    text = read_text(page_without_charts(report))
    assert "After comments were added" in text
    assert "93 comments, of which 93" in text
    assert "After comments were added" not in read_text(page_without_charts(make_report(without=["training_balance"])))
    assert "After comments were added" in read_text(page_without_charts(make_report(without=["label_balance"])))


def test_the_identity_that_loses_rows_comes_first() -> None:
    report = make_report(without=["pinned_auc"])
    listed = list_skewed(report)
    assert [one["loses_rows"] for one in listed] == [True] * 2 + [False] * (len(listed) - 2)
    assert listed[0]["shown"]["pinned_auc"] == ("0.800", "0.900")
    assert listed[-1]["shown"]["bpsn_auc"][1] == ""
    text = read_text(page_without_charts(report))
    assert "100 trials, 50%" in text
    assert "0.800 → 0.900" in text


def test_the_largest_change_among_identities_that_lose_no_rows_is_said() -> None:
    whole = make_report(without=["pinned_auc"])
    rows = [dict(row) for row in whole.tables["pinned_skew"]]
    row = next(row for row in rows if row["identity"] != row["skewed_identity"])
    row["pinned_auc_skewed"] = row["pinned_auc"] - 0.25
    report = with_rows(whole, pinned_skew=rows)
    first = next(one for one in list_skewed(report) if not one["loses_rows"])
    assert (first["identity"], first["model"], first["change"]) == (row["identity"], row["model"], -0.25)
    text = read_text(page_without_charts(report))
    assert re.search(rf"\b{re.escape(row['identity'])} ?, by −0\.250 with {row['model']}", text)


@pytest.mark.parametrize(
    ("config", "title"),
    [
        ({"label_balance": {"text": "comment_text"}}, "of comment_text in characters"),
        ({"mitigation": {"text": "comment"}}, "of comment in characters"),
        ({"label_balance": {"length": "n_words"}}, "by n_words"),
    ],
)
def test_shares_are_by_the_column_of_the_length_and_rows_in_no_bucket_are_counted(
    config: dict[str, dict[str, str]], title: str
) -> None:
    whole = make_report()
    run = whole.run | {"config": json.dumps(config)}
    report = replace(whole, tables={"label_balance": whole.tables["label_balance"]}, history=(), run=run)
    for text in (read_text(write_page(report)), write_model_card(report).replace("\\", "")):
        assert title in text
        assert "3 of 93 rows" in text
