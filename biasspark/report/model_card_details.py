"""The rest of a model card: thresholds, templates, where AUC is lost, label balance, pinned AUC, nights and source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from biasspark.columns import ALL_ROWS, MODEL, OVERALL, RATES
from biasspark.report.attributions import DrawnNode, DrawnTree, list_heat_maps, list_pair_trees, list_segment_trees
from biasspark.report.balance import tabulate_balance
from biasspark.report.cells import TableCell, metric_cell, show_count, show_name, show_number
from biasspark.report.definitions import DECISIONS, TITLES, define
from biasspark.report.facts import NightFacts
from biasspark.report.overview import list_worst_pairs, sum_up_pinned
from biasspark.report.pinned import PARTS, tabulate_pinned
from biasspark.report.rates import IdentityRates, RateCell, list_rates
from biasspark.report.side_by_side_files import escape_markdown
from biasspark.report.template_means import tabulate_templates
from biasspark.report.verdict import say_date

MOST_CROSSES = 10

Part = list[str]
"""Lines that belong together."""


def write_details(facts: NightFacts) -> Iterator[Part]:
    """Write what a report shows below the tables of the suite; of a table that the night lacks, nothing."""
    yield from _write_pairs(facts)
    yield from _write_nights(facts)
    yield from _write_rates(facts)
    yield from _write_templates(facts)
    yield from _write_attribution(facts)
    yield from _write_balance(facts)
    yield from _write_pinned(facts)


def write_item(text: str) -> str:
    """Write a line of a list."""
    return f"- {escape_markdown(text)}"


def write_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Part:
    """Write a table; its first column is of text, the others are of numbers."""
    rule = ["---", *["--:"] * (len(heads) - 1)]
    lines = [list(map(escape_markdown, heads)), rule, *(list(map(escape_markdown, row)) for row in rows)]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def write_cell(cell: TableCell) -> str:
    """Write a number with its interval, or why there is none."""
    if cell.value is None:
        return cell.note or show_number(None)
    weak, bounds = " (too few rows)" if cell.weak else "", f" {cell.bounds}" if cell.bounds else ""
    return f"{cell.text}{bounds} ({cell.interval}){weak}" if cell.interval else f"{cell.text}{bounds}{weak}"


def _write_pairs(facts: NightFacts) -> Iterator[Part]:
    heads = ["Identities", "Lowest AUC", "Value", "Positives", "Negatives"]
    for model, pairs in list_worst_pairs(facts).items():
        rows = (
            [own.identity, TITLES[own.metric], write_cell(own.cell), *map(show_count, (own.n_positive, own.n_negative))]
            for own in pairs
        )
        yield [f"#### The worst crossed pairs of {escape_markdown(model)}"]
        yield write_table(heads, rows)


def _write_nights(facts: NightFacts) -> Iterator[Part]:
    if not facts.history:
        return
    nights = [(past.run_date, past.summaries) for past in facts.history]
    nights.append((facts.run_date, facts.rows("model_summary", slice=ALL_ROWS)))
    yield ["#### Overall AUC over nights"]
    rows = []
    for night, summaries in nights:
        cells = {row[MODEL]: write_cell(metric_cell(row, "auc")) for row in summaries}
        rows.append([say_date(night), *(cells.get(model, "–") for model in facts.models())])
    yield write_table(["Night", *facts.models()], rows)


def _write_rates(facts: NightFacts) -> Iterator[Part]:
    heads = ["Identity", "Model", *(TITLES[name] for name in DECISIONS), *(_title("threshold_rates", r) for r in RATES)]
    for at in list_rates(facts):
        yield [f"#### At threshold {at.threshold}"]
        yield [
            write_item(
                f"{total.model}: "
                + "; ".join(
                    f"{TITLES[name] if name in TITLES else _title('threshold_summary', name)} {write_cell(cell)}"
                    for name, cell in (*total.rates.items(), *total.sums.items())
                )
            )
            for total in at.totals
        ]
        yield write_table(heads, map(_list_rates, at.rows))


def _list_rates(row: IdentityRates) -> list[str]:
    return [row.identity, row.model, *row.counts, *(_write_rate(row.cells[rate]) for rate in RATES)]


def _write_rate(cell: RateCell) -> str:
    return f"{cell.rate}, gap {write_cell(cell.gap)}" if cell.gap.text else cell.gap.note or cell.rate


def _write_templates(facts: NightFacts) -> Iterator[Part]:
    found = tabulate_templates(facts)
    if found is None:
        return
    yield ["#### Templates"]
    yield [
        write_item(
            f"{own.model}: the identities are up to {own.size} apart, from {own.low}, {write_cell(own.cells[0])}, to "
            f"{own.high}, {write_cell(own.cells[1])}."
        )
        for own in found.spreads
    ]
    models = [own.model for own in found.spreads]
    heads = ["Identity", "Templates", "Rows"]
    heads += [f"{model}, {what}" for model in models for what in ("mean score", "difference")]
    counts = {row.identity: [show_count(row.n_templates), show_count(row.n_rows)] for row in found.rows}
    cells = {row.identity: [write_cell(cell) for m in models for cell in row.cells[m]] for row in found.rows}
    yield write_table(heads, ([name, *counts[name], *cells[name]] for name in counts))


def _write_attribution(facts: NightFacts) -> Iterator[Part]:
    trees = [*list_segment_trees(facts), *list_pair_trees(facts)]
    maps = list_heat_maps(facts)
    if trees or maps:
        yield ["#### Where the AUC is lost"]
    for own in maps:
        crosses = sorted(own.headroom, key=lambda key: (-(own.headroom[key].value or 0.0), key))[:MOST_CROSSES]
        yield [f"{escape_markdown(own.model)}, groups by {escape_markdown(own.grouping)}, most wrongly ordered first:"]
        yield write_table(
            ["Positives of", "Negatives of", "AUC", "Share of all wrongly ordered pairs, in %", "Pairs"],
            ([*key, write_cell(own.auc[key]), own.headroom[key].text, own.headroom[key].note] for key in crosses),
        )
    for tree in trees:
        yield [f"{escape_markdown(tree.title)} ({tree.best}):"]
        yield write_table(["Segment", "Mean", "Rows", "Adjusted p", "Verdict"], map(_list_leaf, _list_leaves(tree)))


def _list_leaves(tree: DrawnTree) -> Iterator[DrawnNode]:
    nodes = [tree.root]
    while nodes:
        node = nodes.pop(0)
        nodes[:0] = node.children
        if node.is_leaf:
            yield node


def _list_leaf(node: DrawnNode) -> list[str]:
    return [node.whole_rule, write_cell(node.cell), node.n, node.p, node.verdict]


def _write_balance(facts: NightFacts) -> Iterator[Part]:
    found = tabulate_balance(facts)
    if found is None:
        return
    yield ["#### Share of positives by length of the text"]
    rows = ([_name(row.identity), *map(_write_share, row.cells)] for row in found.rows)
    yield write_table(["Identity", *found.buckets], rows)


def _write_share(cell: TableCell) -> str:
    return f"{cell.text} ({cell.note})" if cell.value is not None else cell.note


def _write_pinned(facts: NightFacts) -> Iterator[Part]:
    found = tabulate_pinned(facts)
    if not found:
        return
    yield ["#### Pinned AUC"]
    yield ["**Do not base decisions on this.** Its authors advise against it: it changes with the share of positives."]
    title = _title("model_summary", "pinned_auc_equality_difference")
    yield [write_item(f"{model}: {title} {write_cell(cell)}") for model, cell in sum_up_pinned(facts).items()]
    rows = (
        [row.identity, row.model, *map(show_count, (row.n_positive, row.n_negative)), write_cell(row.cell)]
        + [f"{write_cell(cell)} × {weight}" if weight else cell.text for cell, weight in row.parts]
        for row in found
    )
    heads = [f"{TITLES[f'{part}_auc']} × weight" for part in PARTS]
    yield write_table(["Identity", "Model", "Positives", "Negatives", "Pinned AUC", *heads], rows)


def _title(table: str, column: str) -> str:
    return define(table, column).title


def _name(identity: str) -> str:
    return "All rows" if identity == OVERALL else show_name(identity)
