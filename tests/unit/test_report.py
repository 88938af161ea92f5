"""What a report says and draws, from made-up rows, without Spark and without a browser."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, date, datetime
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from biasspark.report.attributions import list_heat_maps, list_segment_trees
from biasspark.report.cells import metric_cell, shade_auc, shade_gap, shade_share, show_interval, show_number
from biasspark.report.definitions import list_definitions
from biasspark.report.distributions import draw_steps, merge_bins, read_histograms, trace_rates
from biasspark.report.facts import NightFacts, choose_thresholds
from biasspark.report.ledger import BY_GATE, BY_HAND, earlier_nights, find_baseline, latest_runs, list_overrides
from biasspark.report.model_card import write_model_card
from biasspark.report.overview import list_worst, summarise_models, tabulate_metrics
from biasspark.report.page import write_metric_page, write_page
from biasspark.report.shades import DARK, LIGHT, choose_ink, contrast, list_shades, luminance
from biasspark.report.verdict import describe_changes, reach_verdict
from tests.report_rows import EMPTY, IMAGE, MODELS, NAMES, NIGHT, SCRIPT, alert, night_facts

MEGABYTE = 1_000_000
SIGNED = "negative_aeg"


@pytest.fixture(scope="module")
def facts() -> NightFacts:
    return night_facts()


@pytest.fixture(scope="module")
def page(facts: NightFacts) -> str:
    return write_page(facts)


class Elements(HTMLParser):
    """The tags of a page with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


# ---- the page as a file


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
    names = [f"identity number {place}" for place in range(50)]
    assert len(write_page(night_facts(identities=names)).encode()) < MEGABYTE


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
    for sentence in (*FURTHER.values(), "<code>jobs/attribution.py</code> makes it", "there is no trend yet"):
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
    page = write_page(replace(facts, tables={**facts.tables, **tables, "score_histograms": histograms}))
    (table,) = re.findall(r'aria-label="Error rates at threshold 0.5">.*?</table>', page, flags=re.DOTALL)
    (row,) = re.findall(r"<tr><th scope=.row.><bdi>gay</bdi></th>(.*?)</tr>", table, flags=re.DOTALL)
    assert row.count('title="withheld: too few rows to be shown">–</td>') == 8
    assert "no value: withheld: too few rows to be shown" in page


def test_metric_table_stands_alone(facts: NightFacts) -> None:
    page = write_metric_page(facts.rows("bias_metrics", slice="short"), "short")
    assert "Slice <bdi>short</bdi>: 8 identities" in page
    assert page.count("<script>") == 1


# ---- the verdict


def with_alerts(facts: NightFacts, *alerts: dict[str, Any]) -> NightFacts:
    return replace(facts, tables={**facts.tables, "bias_alerts": alerts})


@pytest.mark.parametrize(
    ("outcomes", "outcome", "title"),
    [
        (["pass", "fail", "warn"], "fail", "The gate failed: 1 of 3 checks"),
        (["pass", "warn", "insufficient_evidence"], "warn", "The gate passed with warnings: 1 of 3 checks"),
        (["pass", "insufficient_evidence"], "insufficient_evidence", "Not enough evidence for 1 of 2 checks"),
        (["pass", "pass"], "pass", "The gate passed: all 2 checks"),
        (["pass"], "pass", "The gate passed: the only check"),
        ([], "no_gate", "No gate is configured"),
    ],
)
def test_the_worst_outcome_is_the_verdict(facts: NightFacts, outcomes: list[str], outcome: str, title: str) -> None:
    verdict = reach_verdict(with_alerts(facts, *map(alert, outcomes)))
    assert (verdict.outcome, verdict.title) == (outcome, title)
    assert [row["outcome"] for row in verdict.alerts][:1] == ([outcome] if outcomes else [])


def test_an_override_is_shown_for_its_own_run_alone(facts: NightFacts) -> None:
    own = {"accepted_run_id": "r_now", "reason": SCRIPT, "by": "Ada", "published_at": None}
    failed = with_alerts(facts, alert("fail"))
    shown = write_page(replace(failed, overrides=[own]))
    assert "Accepted by hand" in shown
    assert reach_verdict(replace(failed, overrides=[own | {"accepted_run_id": "r_other"}])).override is None


def test_changes_are_values_whose_intervals_are_apart(facts: NightFacts) -> None:
    sentences, moves = describe_changes(facts)
    assert sentences[0].startswith("Since 14 January 2026 (the night before) ")
    assert {(move.identity, move.metric, move.worse) for move in moves} == {("black", "bpsn_auc", True)}
    assert [move.model for move in moves] == [MODELS[0]]
    assert "toxicity_1: overall AUC 0.930, was 0.920." in sentences


def ran(
    run_id: str, day: int, status: str = "published", job: str = "bias_metrics", config: str = ""
) -> dict[str, Any]:
    """Give a row of the ledger; runs are published in the order of their ids."""
    published = datetime(2026, 1, 20, 0, int(run_id[1:]), tzinfo=UTC)
    row = {"run_id": run_id, "run_date": date(2026, 1, day), "status": status, "job": job, "config": config}
    return row | {"published_at": published, "started_at": published}


def accepts(run_id: str, own_id: str, reason: str = "known") -> dict[str, Any]:
    said = json.dumps({"accepted_run_id": run_id, "job": "bias_metrics", "reason": reason, "by": "Ada"})
    return ran(own_id, 15, "accepted", "accept_run", said)


TONIGHT = ran("r9", 15)


@pytest.mark.parametrize(
    ("ledger", "alerts", "found"),
    [
        ([], [], None),
        ([ran("r1", 13), ran("r2", 14)], [], ("r2", "the night before")),
        ([ran("r1", 13), ran("r2", 14), ran("r3", 14)], [], ("r3", "the night before")),
        ([ran("r1", 13), ran("r2", 14)], [alert("pass")], None),
        ([ran("r1", 13, "accepted"), ran("r2", 14)], [], ("r1", "the last accepted run")),
        ([ran("r1", 13, "accepted"), ran("r2", 14), ran("r3", 14, job="attribution")], [], ("r1", BY_GATE)),
        ([ran("r1", 13, "accepted"), ran("r2", 14), accepts("r2", "r3")], [], ("r2", BY_HAND)),
        ([ran("r1", 15, "accepted")], [alert("fail")], ("r1", BY_GATE)),
        (
            [ran("r1", 13, "accepted"), ran("r2", 14, "accepted")],
            [alert("fail", baseline_run_id="r1")],
            ("r1", BY_GATE),
        ),
    ],
)
def test_a_night_is_compared_with_the_last_accepted_run(
    ledger: list[dict[str, Any]], alerts: list[dict[str, Any]], found: tuple[str, str] | None
) -> None:
    baseline = find_baseline([*ledger, TONIGHT], TONIGHT, alerts)
    assert (baseline and (baseline.row["run_id"], baseline.standing)) == found


def test_readers_see_the_latest_run_of_each_job_and_night() -> None:
    ledger = [ran("r1", 13), ran("r3", 14, "accepted"), ran("r2", 14), ran("r4", 15), TONIGHT, accepts("r2", "r5")]
    assert {job: row["run_id"] for job, row in latest_runs(ledger, NIGHT).items()} == {"bias_metrics": "r9"}
    assert [row["run_id"] for row in earlier_nights(ledger, TONIGHT, 30)] == ["r1", "r3"]
    assert [row["run_id"] for row in earlier_nights(ledger, TONIGHT, 1)] == ["r3"]


def test_what_was_said_last_of_a_run_counts() -> None:
    (override,) = list_overrides([accepts("r1", "r7", "second"), accepts("r1", "r6", "first"), ran("r1", 14)])
    assert (override["accepted_run_id"], override["reason"], override["by"]) == ("r1", "second", "Ada")


# ---- numbers


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


# ---- tables and pictures


def test_worst_first(facts: NightFacts) -> None:
    worst = list_worst(facts, MODELS[0])
    assert (worst[0].identity, worst[0].metric) == ("gay", "bpsn_auc")
    assert [own.value for own in worst] == sorted(own.value for own in worst)
    assert next(iter(facts.identities())) == "gay"
    assert {row.identity for row in tabulate_metrics(facts, "short")} == {*NAMES, EMPTY}


def test_the_verdict_names_an_identity_that_enough_rows_tell_of(facts: NightFacts) -> None:
    rows = [
        row | {"bpsn_auc": 0.2, "bpsn_auc_low": None} if row["identity"] == EMPTY else row
        for row in facts.rows("bias_metrics")
    ]
    page = write_page(replace(facts, tables={**facts.tables, "bias_metrics": rows}))
    assert "Its lowest identity that enough rows tell of is <strong><bdi>gay</bdi></strong>" in page
    assert "1 with too few rows lies lower." in page
    assert "<bdi>toxicity_<wbr>1</bdi>" in page


def test_the_verdict_looks_past_a_weak_metric_of_an_identity_to_its_others(facts: NightFacts) -> None:
    """The lowest of its AUCs rests on too few rows, the next lowest does not."""
    low = {"subgroup_auc": 0.1, "subgroup_auc_low": None, "bpsn_auc": 0.2, "bpsn_auc_low": 0.17, "bpsn_auc_high": 0.23}
    rows = [row | low if row["identity"] == "muslim" else row for row in facts.rows("bias_metrics")]
    page = write_page(replace(facts, tables={**facts.tables, "bias_metrics": rows}))
    assert "that enough rows tell of is <strong><bdi>muslim</bdi></strong>: BPSN AUC <strong>0.200</strong>" in page


def test_a_number_of_few_rows_is_marked_and_wins_nothing(facts: NightFacts) -> None:
    weak = {"subgroup_auc": 0.01, "subgroup_auc_low": None}
    rows = [row | weak if row["identity"] == "gay" else row for row in facts.rows("bias_metrics")]
    sums = [row | {"subgroup_auc_min": 0.01, "subgroup_auc_min_identity": "gay"} for row in facts.rows("model_summary")]
    tables = {**facts.tables, "bias_metrics": rows, "model_summary": sums}
    (found,) = (row for row in summarise_models(replace(facts, tables=tables)) if row.column == "subgroup_auc_min")
    assert [(own.cell.weak, own.best) for own in found.cells] == [(True, False)] * 2
    assert "◦ 0.010" in write_page(replace(facts, tables=tables))


def test_identities_that_are_gone_are_named(facts: NightFacts) -> None:
    page, card = (write(replace(facts, gone=["black"])) for write in (write_page, write_model_card))
    assert "Identities no longer measured: black." in page
    assert "Identities no longer measured: black." in card


def test_the_best_model_of_a_line_is_marked(facts: NightFacts) -> None:
    rows = {row.column: [own.best for own in row.cells] for row in summarise_models(facts)}
    assert rows["bpsn_auc_min"] == [False, True]
    assert rows["negative_aeg_max_abs"] == [False, True]
    assert rows["auc"] == [False, False]


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


def test_of_many_thresholds_three_are_shown() -> None:
    assert choose_thresholds([{"threshold": at} for at in (0.8, 0.5, 0.8)]) == [0.5, 0.8]
    assert choose_thresholds([{"threshold": at / 100} for at in range(101)]) == [0.25, 0.5, 0.75]


def test_outlines_reach_as_high_as_their_peak() -> None:
    assert draw_steps([1, 2], 50) == "M0 50V25H100V0H200V50z"
    assert draw_steps([0, 0], 50) == ""
    assert merge_bins(range(1, 8), most=3) == [6, 15, 7]


def test_trees_say_what_a_split_adds_and_mark_false_discoveries(facts: NightFacts) -> None:
    tree, *_, difference = list_segment_trees(facts)
    young, older = tree.root.children
    assert (young.rule, young.found, older.rule) == ("age < 30", True, "age >= 30")
    doubtful, found = older.children
    assert doubtful.rule == f"group = '{SCRIPT}'"
    assert (doubtful.false_discovery, doubtful.found, found.false_discovery) == (True, False, False)
    assert difference.title == "toxicity_6 less toxicity_1, attribution"


def test_crosses_have_positives_down_and_negatives_across(facts: NightFacts) -> None:
    first = list_heat_maps(facts)[0]
    assert first.groups == ["</script><script>document.title='owned'</script>", "black", "others"]
    assert first.auc["others", "black"].text == "0.70"
    assert first.headroom["black", "black"].note == "300 of 600 pairs wrongly ordered"


def test_every_definition_is_a_comment_of_a_table() -> None:
    definitions = [found for listed in list_definitions().values() for found in listed]
    assert len({found.anchor for found in definitions}) == len(definitions) > 40
    assert all(found.text.endswith(".") for found in definitions)


def test_model_card_is_markdown_with_names_as_text(facts: NightFacts) -> None:
    card = write_model_card(with_alerts(facts, alert("fail")))
    assert card.startswith("### Unintended bias\n")
    assert "**The gate failed: 1 of 1 checks.**" in card
    assert "<script" not in card
    assert "<img" not in card
    tables = [line for line in card.split("\n") if line.startswith("| gay |")]
    assert len([line for line in tables if "▲" not in line]) == 4
    assert write_model_card(facts) == write_model_card(facts)
