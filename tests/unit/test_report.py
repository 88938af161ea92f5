"""What a report says and draws, from made-up rows, without Spark and without a browser."""

from __future__ import annotations

import hashlib
import html
import json
import math
import re
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, date, datetime
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from biasspark.metrics.student import student_quantile
from biasspark.report.attributions import list_heat_maps, list_pair_trees, list_segment_trees, tabulate_segments
from biasspark.report.balance import tabulate_balance
from biasspark.report.cells import (
    drop_zeros,
    metric_cell,
    shade_auc,
    shade_gap,
    shade_share,
    shade_share_finely,
    show_interval,
    show_number,
)
from biasspark.report.charts import choose_curves, choose_identities, draw_intervals, draw_pinned, draw_trends
from biasspark.report.comparisons import hold_against
from biasspark.report.definitions import list_definitions
from biasspark.report.distributions import Scale, draw_steps, merge_bins, read_histograms, trace_rates
from biasspark.report.facts import NightFacts, choose_thresholds
from biasspark.report.intervals import bound_mean, bound_share
from biasspark.report.ledger import BY_GATE, BY_HAND, earlier_nights, find_baseline, latest_runs, list_overrides
from biasspark.report.model_card import write_model_card
from biasspark.report.notebook import NightReport
from biasspark.report.overview import count_weak, list_worst, list_worst_pairs, summarise_models, tabulate_metrics
from biasspark.report.page import write_metric_page, write_page
from biasspark.report.pinned import tabulate_pinned
from biasspark.report.rates import list_rates
from biasspark.report.shades import DARK, LIGHT, choose_ink, contrast, list_shades, luminance
from biasspark.report.template_means import tabulate_templates
from biasspark.report.verdict import describe_changes, reach_verdict
from tests.report_rows import (
    EMPTY,
    IMAGE,
    MODELS,
    NAMES,
    NIGHT,
    SCRIPT,
    alert,
    full_night,
    night_facts,
    write_undrawn,
)

MEGABYTE = 1_000_000
AUCS = ("subgroup_auc", "bpsn_auc", "bnsp_auc")
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
    facts = full_night()
    assert (len(facts.identities()), len(facts.alerts()), len(facts.history)) == (50, 200, 30)
    page = write_page(facts)
    assert len(re.findall('aria-label="Rates at threshold', page)) == 3
    assert "not published" not in page
    assert len(page.encode()) < 0.95 * MEGABYTE


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
    shown = write_undrawn(replace(failed, overrides=[own]))
    assert "Accepted by hand" in shown
    assert reach_verdict(replace(failed, overrides=[own | {"accepted_run_id": "r_other"}])).override is None


def test_changes_are_values_whose_intervals_are_apart(facts: NightFacts) -> None:
    sentences, moves = describe_changes(facts)
    assert sentences[0].startswith("Since 14 January 2026 (the night before), ")
    assert {(move.identity, move.metric, move.worse) for move in moves} == {("black", "bpsn_auc", True)}
    assert [move.model for move in moves] == [MODELS[0]]
    assert "toxicity_1: overall AUC 0.930 (0.920 to 0.940), was 0.920 (0.920 to 0.940)." in sentences


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
        ([ran("r1", 15, "accepted")], [alert("fail")], None),  # the night itself, run again since
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


@pytest.mark.parametrize("n", [2, 5, 30, 1000])
def test_the_interval_of_a_mean_has_the_quantile_of_the_comparisons(n: int) -> None:
    """Of which there are two, as executors need no SciPy."""
    half = student_quantile(0.9, n - 1) / math.sqrt(n)
    assert bound_mean(0.0, 1.0, n, 0.9) == pytest.approx((-half, half), rel=1e-11)


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
    page = write_undrawn(replace(facts, tables={**facts.tables, "bias_metrics": rows}))
    assert "Its worst identity with enough rows is <strong><bdi>gay</bdi></strong>" in page
    assert "1 identity with too few rows has a lower value." in page
    assert "<bdi>toxicity_<wbr>1</bdi>" in page


def test_the_verdict_looks_past_a_weak_metric_of_an_identity_to_its_others(facts: NightFacts) -> None:
    """The lowest of its AUCs rests on too few rows, the next lowest does not."""
    low = {"subgroup_auc": 0.1, "subgroup_auc_low": None, "bpsn_auc": 0.2, "bpsn_auc_low": 0.17, "bpsn_auc_high": 0.23}
    rows = [row | low if row["identity"] == "muslim" else row for row in facts.rows("bias_metrics")]
    page = write_undrawn(replace(facts, tables={**facts.tables, "bias_metrics": rows}))
    said = "with enough rows is <strong><bdi>muslim</bdi></strong>: <a [^>]*>BPSN AUC</a> <strong>0.200</strong>"
    assert re.search(said, page)


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


def test_trends_show_what_moved_before_what_is_worst(facts: NightFacts) -> None:
    def list_titles(night: NightFacts) -> list[str]:
        return re.findall(r">([\w ]+, [\w ]+)</text>", draw_trends(night) or "")

    assert list_titles(facts)[:2] == ["BPSN AUC, black", "BPSN AUC, gay"]
    assert list_titles(replace(facts, baseline=None))[:2] == ["BPSN AUC, gay", "BPSN AUC, black"]


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


def read_text(page: str) -> str:
    """Give the text of a page without tags, small figures behind what they stand below."""
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", page)).split())


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
