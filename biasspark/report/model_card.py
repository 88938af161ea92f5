"""The report as a Markdown fragment for a model card: what stands first in a report, then its details."""

from __future__ import annotations

from biasspark.columns import ALL_ROWS, BETTER, FAIL, WARN, WORSE
from biasspark.report.cells import show_count, show_name
from biasspark.report.comparisons import MOST_CHANGES, Against, Change, hold_against, name_whole, say_method
from biasspark.report.definitions import PROBLEMS, Definition, define, list_definitions
from biasspark.report.facts import NightFacts, Row
from biasspark.report.model_card_details import write_cell, write_details, write_item, write_table
from biasspark.report.overview import SummaryCell, Worst, list_worst, summarise_models, tabulate_metrics
from biasspark.report.side_by_side_files import escape_markdown
from biasspark.report.side_by_side_metrics import COMPARED, SUITE_TITLES
from biasspark.report.verdict import WORDS, Move, ShownVerdict, reach_verdict, say_date


def write_model_card(facts: NightFacts) -> str:
    """Write what a model card says of unintended bias, as Markdown that GitHub renders.

    Returns
    -------
    str
        Headings of the third level and below, to stand within a card. Names are text: nothing in them is obeyed as
        Markdown or HTML. Equal facts give equal text.
    """
    verdict = reach_verdict(facts)
    source = f"Corpus {facts.corpus}, {say_date(facts.run_date)}, run {facts.run['run_id']}"
    said = f"**{escape_markdown(verdict.title)}.**"
    if verdict.override:
        told = f"Accepted by hand by {verdict.override['by']}: {verdict.override['reason']}"
        said += f" {escape_markdown(told)}"
    parts = [
        ["### Unintended bias"],
        [
            escape_markdown(
                f"{source}: {show_count(facts.run['n_rows'])} rows, {show_count(facts.n_identities)} identities."
            )
        ],
        [said],
        [write_item(f"{WORDS[own.outcome]}: {own.model} {own.sentence}") for own in verdict.decisions],
        *_entitle("Rules that fail or warn:", list(map(_write_broken, _broken(verdict)))),
        *_entitle("What changed:", [*map(write_item, verdict.changes), *map(_write_move, verdict.moves)]),
        *(part for own in hold_against(facts) for part in _write_against(own, say_method(facts))),
        ["#### Models"],
        _write_summary(facts),
        *(part for model in facts.models() for part in _write_worst(facts, model)),
        ["#### Every identity"],
        *(_write_metrics(facts, model) for model in facts.models()),
        *write_details(facts),
        ["#### Definitions"],
        [_define(found) for listed in list_definitions().values() for found in listed],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _entitle(title: str, lines: list[str]) -> list[list[str]]:
    return [[title], lines] if lines else []


def _define(found: Definition) -> str:
    return f"- **{escape_markdown(found.title)}** (`{found.source}`): {escape_markdown(found.text)}"


def _broken(verdict: ShownVerdict) -> list[Row]:
    return [row for row in verdict.alerts if row["outcome"] in (FAIL, WARN)]


def _write_broken(row: Row) -> str:
    """Say where a rule is broken and how: a sentence of an alert names neither rule, model nor slice."""
    return write_item(f"{WORDS[row['outcome']]}: {row['rule']}, {row['model']}, {row['slice']}: {row['message']}")


def _write_move(move: Move) -> str:
    way = "Worse" if move.worse else "Better"
    whose = f"{show_name(move.model)}, {show_name(move.identity)}"
    return write_item(f"{way}: {whose}, {SUITE_TITLES[move.metric]} {move.after}, was {move.before}.")


def _write_against(own: Against, judged_by: str) -> list[list[str]]:
    heads = ["Identity", "Metric", "Difference", own.model, own.baseline, "Adjusted p", "Rows low, high"]
    parts = [
        [f"#### {escape_markdown(own.model)} against {escape_markdown(own.baseline)}"],
        [escape_markdown(f"{own.sentence} {judged_by}".rstrip())],
    ]
    for verdict, changes in ((WORSE, own.worse), (BETTER, own.better)):
        shown, n = changes[:MOST_CHANGES], own.counts[verdict]
        if shown:
            of = f", {len(shown):,} of {n:,}" if len(shown) < n else ""
            parts += [[f"Significantly {verdict}{of}:"], write_table(heads, map(_list_change, shown))]
    return parts


def _list_change(change: Change) -> list[str]:
    values = map(write_cell, (change.difference, change.value, change.baseline))
    return [name_whole(change.identity), change.title, *values, change.p, change.rows]


def _write_summary(facts: NightFacts) -> list[str]:
    heads = ["Measure, all rows", *facts.models()]
    rows = [
        [define("model_summary", row.column).title, *map(_write_summed, row.cells)] for row in summarise_models(facts)
    ]
    return write_table(heads, rows)


def _write_summed(own: SummaryCell) -> str:
    said = f"{write_cell(own.cell)} {own.identity}"
    return f"{said}; {write_cell(own.unsure.cell)} {own.unsure.identity}" if own.unsure else said


def _write_worst(facts: NightFacts, model: str) -> list[list[str]]:
    heads = ["Identity", "Lowest AUC", "Value", "Problem", "Positives", "Negatives"]
    return [
        [f"#### The worst identities of {escape_markdown(model)}"],
        write_table(heads, map(_list_worst, list_worst(facts, model))),
    ]


def _list_worst(worst: Worst) -> list[str]:
    counts = [show_count(worst.n_positive), show_count(worst.n_negative)]
    return [worst.identity, SUITE_TITLES[worst.metric], write_cell(worst.cell), PROBLEMS[worst.metric], *counts]


def _write_metrics(facts: NightFacts, model: str) -> list[str]:
    heads = [model, "Positives", "Negatives", *(SUITE_TITLES[name] for name in COMPARED)]
    rows = [
        [
            row.identity,
            show_count(row.n_positive),
            show_count(row.n_negative),
            *(write_cell(row.cells[name, model]) for name in COMPARED),
        ]
        for row in tabulate_metrics(facts, ALL_ROWS)
    ]
    return write_table(heads, rows)
