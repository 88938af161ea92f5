"""The report as a Markdown fragment for a model card, in the order of the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from biasspark.columns import ALL_ROWS, BETTER, OVERALL, RATES, WORSE
from biasspark.report import attributions, baseline_comparison, metric_tables, optional_tables
from biasspark.report.cells import DASH, TableCell, metric_cell, show_count, show_name
from biasspark.report.definitions import DECISIONS, PROBLEMS, SUITE, SUITE_TITLES, TITLES, define, list_definitions
from biasspark.report.gate_summary import OUTCOME_TITLES, Change, GateSummary, build_gate_summary, format_date
from biasspark.report.report_data import ReportData
from biasspark.report.text_formats import escape_markdown, markdown_table

MAX_CROSSES = 10

Part = list[str]
"""Lines that belong together."""


def write_model_card(report: ReportData) -> str:
    """Return what a model card says about unintended bias, as Markdown that GitHub renders.

    Returns
    -------
    str
        Headings of the third level and below, to stand within a card. Names are text: nothing in them is Markdown or
        HTML. Equal data give equal text.
    """
    gate = build_gate_summary(report)
    parts = [
        *_gate(report, gate),
        *(
            part
            for comparison in baseline_comparison.compare_with_baselines(report)
            for part in _comparison(report, comparison)
        ),
        ["#### Models"],
        _table(["Measure, all rows", *report.models()], _summary_rows(report)),
        *_worst(
            "#### The worst identities of",
            {model: metric_tables.list_worst(report, model) for model in report.models()},
        ),
        ["#### Every identity"],
        *(_metrics(report, model) for model in report.models()),
        *_worst("#### The worst crossed pairs of", metric_tables.list_worst_pairs(report)),
        *_nights(report),
        *_rates(report),
        *_templates(report),
        *_attribution(report),
        *_balance(report),
        *_pinned(report),
        ["#### Definitions"],
        [
            f"- **{escape_markdown(one.title)}** (`{one.source}`): {escape_markdown(one.text)}"
            for definitions in list_definitions().values()
            for one in definitions
        ],
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


# ---- pieces


def _item(text: str) -> str:
    return f"- {escape_markdown(text)}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Part:
    """Return a table whose first column is text and whose others are numbers."""
    escaped = ([*map(escape_markdown, row)] for row in rows)
    return markdown_table([*map(escape_markdown, heads)], ["---", *["--:"] * (len(heads) - 1)], escaped)


def _cell(cell: TableCell) -> str:
    """Return a number with its interval, or why there is none."""
    if cell.value is None:
        return cell.note or DASH
    interval = f" ({cell.interval})" if cell.interval else ""
    return f"{cell.text}{interval}{' (too few rows)' if cell.weak else ''}"


def _title(table: str, column: str) -> str:
    return define(table, column).title


# ---- the top


def _gate(report: ReportData, gate: GateSummary) -> Iterator[Part]:
    source = f"Corpus {report.corpus}, {format_date(report.run_date)}, run {report.run['run_id']}"
    counts = f"{show_count(report.run['n_rows'])} rows, {show_count(report.n_identities)} identities"
    yield ["### Unintended bias"]
    yield [escape_markdown(f"{source}: {counts}.")]
    decision = f"**{escape_markdown(gate.title)}.**"
    if gate.acceptance:
        acceptance = f"Accepted by hand by {gate.acceptance['accepted_by']}: {gate.acceptance['acceptance_note']}"
        decision += f" {escape_markdown(acceptance)}"
    yield [decision]
    yield [_item(f"{OUTCOME_TITLES[one.outcome]}: {one.model} {one.sentence}") for one in gate.decisions]
    if gate.all_broken:
        yield ["Rules that fail or warn:"]
        yield [
            _item(f"{OUTCOME_TITLES[row['outcome']]}: {row['rule']}, {row['model']}, {row['slice']}: {row['message']}")
            for row in gate.all_broken
        ]
    yield ["What changed:"]
    yield [*map(_item, gate.notes), *map(_change, gate.changes)]


def _change(change: Change) -> str:
    subject = f"{show_name(change.model)}, {show_name(change.identity)}, {SUITE_TITLES[change.metric]}"
    return _item(f"{'Worse' if change.worse else 'Better'}: {subject} {change.after}, was {change.before}.")


def _comparison(report: ReportData, comparison: baseline_comparison.BaselineComparison) -> Iterator[Part]:
    heads = ["Identity", "Metric", "Difference", comparison.model, comparison.baseline, "Adjusted p", "Rows low, high"]
    yield [f"#### {escape_markdown(comparison.model)} against {escape_markdown(comparison.baseline)}"]
    yield [escape_markdown(f"{comparison.sentence} {baseline_comparison.describe_method(report)}".rstrip())]
    for verdict, differences in ((WORSE, comparison.worse), (BETTER, comparison.better)):
        shown, n = differences[: baseline_comparison.MAX_DIFFERENCES], comparison.counts[verdict]
        if shown:
            yield [f"Significantly {verdict}{f', {len(shown):,} of {n:,}' if len(shown) < n else ''}:"]
            yield _table(
                heads,
                (
                    [baseline_comparison.name_or_all_rows(one.identity), one.title]
                    + [_cell(cell) for cell in (one.difference, one.value, one.baseline)]
                    + [one.p, one.rows]
                    for one in shown
                ),
            )


# ---- the metrics


def _summary_rows(report: ReportData) -> Iterator[list[str]]:
    for row in metric_tables.summarize_models(report):
        yield [_title("model_summary", row.column), *map(_summary_cell, row.cells)]


def _summary_cell(one: metric_tables.SummaryCell) -> str:
    text = f"{_cell(one.cell)} {one.identity}"
    return f"{text}; {_cell(one.weak_worst.cell)} {one.weak_worst.identity}" if one.weak_worst else text


def _worst(heading: str, by_model: dict[str, list[metric_tables.WorstIdentity]]) -> Iterator[Part]:
    heads = ["Identity", "Lowest AUC", "Value", "Problem", "Positives", "Negatives"]
    for model, worst in by_model.items():
        yield [f"{heading} {escape_markdown(model)}"]
        yield _table(
            heads,
            (
                [one.identity, SUITE_TITLES[one.metric], _cell(one.cell), PROBLEMS[one.metric], *_counts(one)]
                for one in worst
            ),
        )


def _counts(row: metric_tables.WorstIdentity | metric_tables.MetricRow | optional_tables.PinnedRow) -> list[str]:
    return [show_count(row.n_positive), show_count(row.n_negative)]


def _metrics(report: ReportData, model: str) -> Part:
    heads = [model, "Positives", "Negatives", *(SUITE_TITLES[name] for name in SUITE)]
    rows = (
        [row.identity, *_counts(row), *(_cell(row.cells[name, model]) for name in SUITE)]
        for row in metric_tables.list_metrics(report, ALL_ROWS)
    )
    return _table(heads, rows)


def _nights(report: ReportData) -> Iterator[Part]:
    if not report.history:
        return
    nights = [(past.run_date, past.summaries) for past in report.history]
    nights.append((report.run_date, report.rows("model_summary", slice=ALL_ROWS)))
    yield ["#### Overall AUC over nights"]
    rows = []
    for night, summaries in nights:
        cells = {row["model"]: _cell(metric_cell(row, "auc")) for row in summaries}
        rows.append([format_date(night), *(cells.get(model, DASH) for model in report.models())])
    yield _table(["Night", *report.models()], rows)


# ---- optional metrics; nothing of a table that the night lacks


def _rates(report: ReportData) -> Iterator[Part]:
    heads = ["Identity", "Model", *(TITLES[name] for name in (*DECISIONS, *RATES))]
    for at in optional_tables.list_rates(report):
        yield [f"#### At threshold {at.threshold}"]
        totals = []
        for total in at.totals:
            cells = [*total.rates.items(), *total.sums.items()]
            values = (f"{TITLES.get(name) or _title('threshold_summary', name)} {_cell(cell)}" for name, cell in cells)
            totals.append(_item(f"{total.model}: {'; '.join(values)}"))
        yield totals
        yield _table(heads, map(_rate_row, at.rows))


def _rate_row(row: optional_tables.IdentityRates) -> list[str]:
    return [row.identity, row.model, *row.counts, *(_rate(row.cells[rate]) for rate in RATES)]


def _rate(cell: optional_tables.RateCell) -> str:
    return f"{cell.rate}, gap {_cell(cell.gap)}" if cell.gap.text else cell.gap.note or cell.rate


def _templates(report: ReportData) -> Iterator[Part]:
    scores = optional_tables.list_templates(report)
    if scores is None:
        return
    yield ["#### Templates"]
    yield [
        _item(
            f"{one.model}: the identities are up to {one.size} apart, from {one.low}, {_cell(one.cells[0])}, to "
            f"{one.high}, {_cell(one.cells[1])}."
        )
        for one in scores.spreads
    ]
    models = [one.model for one in scores.spreads]
    heads = [f"{model}, {what}" for model in models for what in ("mean score", "difference")]
    rows = (
        [row.identity, show_count(row.n_templates), show_count(row.n_rows)]
        + [_cell(cell) for model in models for cell in row.cells[model]]
        for row in scores.rows
    )
    yield _table(["Identity", "Templates", "Rows", *heads], rows)


def _attribution(report: ReportData) -> Iterator[Part]:
    trees, maps = (
        [*attributions.list_segment_trees(report), *attributions.list_pair_trees(report)],
        attributions.list_heat_maps(report),
    )
    if trees or maps:
        yield ["#### Where the AUC is lost"]
    for one in maps:
        pairs = sorted(one.headroom, key=lambda pair: (-(one.headroom[pair].value or 0.0), pair))[:MAX_CROSSES]
        yield [f"{escape_markdown(one.model)}, groups by {escape_markdown(one.grouping)}, most wrongly ordered first:"]
        yield _table(
            ["Positives of", "Negatives of", "AUC", "Share of all wrongly ordered pairs, in %", "Pairs"],
            ([*pair, _cell(one.auc[pair]), one.headroom[pair].text, one.headroom[pair].note] for pair in pairs),
        )
    for tree in trees:
        yield [f"{escape_markdown(tree.title)} ({tree.best}):"]
        yield _table(
            ["Segment", "Mean", "Rows", "Adjusted p", "Verdict"],
            ([leaf.whole_rule, _cell(leaf.cell), leaf.n, leaf.p, leaf.verdict] for leaf in tree.root.leaves()),
        )


def _balance(report: ReportData) -> Iterator[Part]:
    balance = optional_tables.list_balance(report)
    if balance is None:
        return
    yield ["#### Share of positives by length of the text"]
    rows = (
        ["All rows" if identity == OVERALL else show_name(identity)]
        + [f"{cell.text} ({cell.note})" if cell.value is not None else cell.note for cell in cells]
        for identity, cells in balance.rows
    )
    yield _table(["Identity", *balance.bins], rows)


def _pinned(report: ReportData) -> Iterator[Part]:
    pinned = optional_tables.list_pinned(report)
    if not pinned:
        return
    yield ["#### Pinned AUC"]
    yield ["**Do not base decisions on this.** Its authors advise against it: it changes with the share of positives."]
    title = _title("model_summary", "pinned_auc_equality_difference")
    yield [_item(f"{model}: {title} {_cell(cell)}") for model, cell in metric_tables.pinned_differences(report).items()]
    rows = (
        [row.identity, row.model, *_counts(row), _cell(row.cell)]
        + [f"{_cell(cell)} × {weight}" if weight else cell.text for cell, weight in row.parts]
        for row in pinned
    )
    heads = [f"{TITLES[f'{part}_auc']} × weight" for part in optional_tables.PINNED_PARTS]
    yield _table(["Identity", "Model", "Positives", "Negatives", "Pinned AUC", *heads], rows)
