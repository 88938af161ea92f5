"""The page of a report and its model card, from made-up rows, without Spark and without a browser."""

from __future__ import annotations

import hashlib
import html
import re
from base64 import b64encode
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from biasspark.report.attributions import list_heat_maps, list_segment_trees
from biasspark.report.cells import drop_zeros
from biasspark.report.comparisons import hold_against
from biasspark.report.definitions import list_definitions
from biasspark.report.facts import NightFacts
from biasspark.report.model_card import write_model_card
from biasspark.report.notebook import NightReport
from biasspark.report.overview import tabulate_metrics
from biasspark.report.page import write_metric_page, write_page
from biasspark.report.rates import list_rates
from biasspark.report.verdict import reach_verdict
from tests.report_rows import (
    IMAGE,
    MODELS,
    NIGHT,
    SCRIPT,
    alert,
    full_night,
    night_facts,
    read_text,
    with_alerts,
    write_undrawn,
)

MEGABYTE = 1_000_000


class Elements(HTMLParser):
    """The tags of a page with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_page_loads_nothing_and_has_no_style_attributes(page: str) -> None:
    elements = Elements(page).found
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


def test_names_are_text_everywhere(page: str) -> None:
    assert page.count("<script>") == 1
    assert SCRIPT not in page
    assert IMAGE not in page
    assert "\u202e" not in page
    assert "\\u202egnp.exe" in page
    assert "{{ 7 * 7 }}" in page


def test_equal_rows_give_equal_bytes(facts: NightFacts, page: str) -> None:
    assert write_page(facts) == page


def test_page_of_fifty_identities_and_two_models_is_small() -> None:
    facts = full_night()
    assert (len(facts.identities()), len(facts.alerts()), len(facts.history)) == (50, 200, 30)
    page = write_page(facts)
    assert len(re.findall('aria-label="Rates at threshold', page)) == 3
    assert "not published" not in page
    assert len(page.encode()) < 0.97 * MEGABYTE


def test_links_within_the_page_lead_somewhere(page: str) -> None:
    elements = Elements(page).found
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    targets = {str(attributes["href"])[1:] for _, attributes in elements if attributes.get("href")}
    assert len(ids) == len(set(ids))
    assert targets - set(ids) == set()


FURTHER = {
    "score_histograms": "Score distributions are not published",
    "threshold_rates": "Rates at thresholds are not published",
    "label_balance": "Shares of positives by length are not published",
    "pinned_auc": "Pinned AUC is not published",
}


def test_a_night_without_further_tables_says_which_job_makes_them() -> None:
    attribution = ("auc_crosses", "attribution_segments", "pair_segments", "attribution_slices", "loss_by_segment")
    page = write_page(night_facts(n_nights=1, without=(*FURTHER, *attribution)))
    for sentence in (*FURTHER.values(), "<code>jobs/attribution.py</code> computes it", "there is no trend yet"):
        assert sentence in page
    assert "No gate is configured" in page


def test_a_night_may_attribute_other_models_and_have_no_identities(facts: NightFacts) -> None:
    others = [row | {"model": "other"} for row in facts.rows("loss_by_segment")]
    summaries = [dict.fromkeys(row) | {"model": "m", "slice": "all"} for row in facts.rows("model_summary")[:1]]
    tables = {"model_summary": summaries, "loss_by_segment": others}
    page = write_page(replace(facts, tables=tables, history=(), baseline=None, n_identities=0))
    assert "<bdi>other</bdi>" in page
    assert "Slice <bdi>all</bdi>: 0 identities" in page


def test_what_is_withheld_is_said_to_be(facts: NightFacts) -> None:
    """Of a small group every number is NULL in every table."""
    kept = {"model", "slice", "identity", "threshold", "bucket", "length_low", "crossed"}

    def withhold(row: dict[str, Any]) -> dict[str, Any]:
        reasons = {name: "withheld" for name in row if name.endswith("reason")}
        return {name: row[name] if name in kept else None for name in row} | {"reason": "withheld"} | reasons

    names = ("bias_metrics", "threshold_rates", "label_balance", "pinned_auc")
    tables = {
        name: [withhold(dict(row)) if row["identity"] == "gay" else row for row in facts.rows(name)] for name in names
    }
    histograms = [row for row in facts.rows("score_histograms") if row["identity"] != "gay"]
    page = write_undrawn(replace(facts, tables={**facts.tables, **tables, "score_histograms": histograms}))
    (table,) = re.findall(r'aria-label="Rates at threshold 0.5">.*?</table>', page, flags=re.DOTALL)
    rows = re.findall(r"<tr><th scope=.row.><bdi>gay</bdi></th>(.*?)</tr>", table, flags=re.DOTALL)
    assert [row.count('title="withheld: too few rows to be shown">◦\u00a0–</td>') for row in rows] == [6, 6]
    assert "no value: withheld: too few rows to be shown" in page


def test_a_report_shows_itself_in_a_notebook(facts: NightFacts, page: str) -> None:
    shown = NightReport(facts)._repr_html_()
    title = f"Unintended bias, {NIGHT}"
    assert shown.startswith(f'<iframe sandbox="allow-scripts" title="{title}" width="100%" height="800" ')
    (inner,) = re.findall('srcdoc="([^"]*)"></iframe>$', shown)
    assert html.unescape(inner) == page


def test_metric_table_stands_alone(facts: NightFacts) -> None:
    page = write_metric_page(facts.rows("bias_metrics", slice="short"), "short")
    assert "Slice <bdi>short</bdi>: 8 identities" in page
    assert page.count("<script>") == 1


def test_a_card_is_of_rows(facts: NightFacts) -> None:
    rows = [row for row in facts.rows("score_histograms") if row["identity"] != "gay" or "background" in row["cell"]]
    page = write_undrawn(replace(facts, tables={**facts.tables, "score_histograms": rows}))
    assert '<article class="card"><h3><bdi>gay' not in page


def test_the_page_says_whether_numbers_are_exact(facts: NightFacts, page: str) -> None:
    assert "exact, scores are not binned" in page
    binned = write_undrawn(replace(facts, run={**facts.run, "config": '{"ranking": {"engine": "binned"}}'}))
    assert "approximate, from scores in bins" in binned


def test_identities_that_are_gone_are_named(facts: NightFacts) -> None:
    page, card = (write(replace(facts, gone=["black"])) for write in (write_undrawn, write_model_card))
    assert "Identities no longer measured: black." in page
    assert "Identities no longer measured: black." in card


@pytest.mark.parametrize(
    ("above", "rule", "new"),
    [
        ("(genre is soul, drum and bass or rock and roll)", "(genre is soul or rock and roll)", None),
        ("genre is not rock and all", "genre is rock and all", None),
        ("genre is rock and roll", "20 <= age < 30 and genre is rock and roll", "20 <= age < 30"),
        ("age < 30 and genre is rock and roll", "20 <= age < 30 and genre is rock and roll", "20 <= age < 30"),
        ("age < 30", "age < 30 and (genre is not rock and roll or null)", "(genre is not rock and roll or null)"),
    ],
)
def test_no_value_is_cut_at_an_and_of_its_own(facts: NightFacts, above: str, rule: str, new: str | None) -> None:
    rows = [dict(row) for row in facts.rows("attribution_segments", model="toxicity_1", baseline_model="")]
    rows = [row for row in rows if row["target"] == "auc"]
    for row in rows:
        row["rule"] = {3: above, 6: rule}.get(row["node_id"], row["rule"])
    (tree,) = list_segment_trees(replace(facts, tables={**facts.tables, "attribution_segments": rows}))
    node = tree.root.children[1].children[0]
    assert (node.whole_rule, node.rule) == (rule, new or rule)


def test_every_definition_is_a_comment_of_a_table() -> None:
    definitions = [found for listed in list_definitions().values() for found in listed]
    assert len({found.anchor for found in definitions}) == len(definitions) > 40
    assert all(found.text.endswith(".") for found in definitions)
    assert [found.title for found in definitions if re.search("auc|aeg|fpr|fnr", found.title)] == []


def test_model_card_is_markdown_with_names_as_text(facts: NightFacts) -> None:
    card = write_model_card(with_alerts(facts, alert("fail")))
    assert card.startswith("### Unintended bias\n")
    assert "**The gate failed: 1 of 1 checks.**" in card
    assert "\n- Fail: bpsn floor, toxicity_1, all: 0.71 is below 0.8\n" in card.replace("\\", "")
    assert "<script" not in card
    assert "<img" not in card
    tables = [line for line in card.split("\n") if line.startswith("| gay |")]
    assert len([line for line in tables if "▲" not in line]) == 10
    assert write_model_card(facts) == write_model_card(facts)


def test_the_model_card_says_what_the_report_says(facts: NightFacts) -> None:
    night = with_alerts(facts, alert("fail"), alert("pass", model=MODELS[1]))
    card, told = html.unescape(write_model_card(night).replace("\\", "")), read_text(write_page(night))
    verdict, (changed, *_) = reach_verdict(night), hold_against(night)
    for sentence in (verdict.title, *(own.sentence for own in verdict.decisions), *verdict.changes, changed.sentence):
        assert sentence in told
        assert sentence in card
    heads = ("Models", "The worst identities of toxicity_1", "Every identity", "The worst crossed pairs of toxicity_1")
    heads += (
        "Overall AUC over nights",
        "At threshold 0.5",
        "Templates",
        "Where the AUC is lost",
        "Pinned AUC",
        "Definitions",
    )
    for head in (*heads, "Share of positives by length of the text"):
        assert f"\n#### {head}\n" in card
    cells = [cell for row in tabulate_metrics(night, "all") for cell in row.cells.values() if cell.value is not None]
    cells += [node.cell for tree in list_segment_trees(night) for node in tree.root.children if node.is_leaf]
    cells += [cell for own in list_heat_maps(night) for cell in own.auc.values()]
    (at,) = list_rates(night)
    cells += [cell.gap for row in at.rows for cell in row.cells.values() if cell.gap.interval]
    assert len(cells) > 100
    missing = [cell for cell in cells if f"{cell.text} ({cell.interval})" not in card]
    assert missing == []
    rates = [cell.rate for row in at.rows for cell in row.cells.values()]
    assert [rate for rate in rates if rate != "–" and (rate not in card or drop_zeros(rate) not in told)] == []
    assert "Do not base decisions on this." in card
