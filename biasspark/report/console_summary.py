"""The summary that a job prints of its published tables: a few rows, the worst or most certain first."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from biasspark.cli import format_table
from biasspark.columns import ALL_ROWS, BETTER, EVERY_LENGTH, OVERALL, SUMMARIZED_AUCS, VERDICTS, WORSE
from biasspark.report.attributions import describe_zero, list_measures, subtract_overall
from biasspark.report.cells import Row, describe_outside
from biasspark.report.definitions import describe_bias
from biasspark.report.report_data import MIN_ROWS, find_lowest, group_rows
from biasspark.tables import schemas
from biasspark.tables.schemas import BIAS_METRICS, MODEL_COMPARISONS, MODEL_SUMMARY, Table
from biasspark.text import format_count, show_visibly

SCREEN_WIDTH, MAX_SHOWN, MAX_SKEWED, FEWEST_OF_MODEL = 120, 10, 5, 3
_WORST = ("model", "slice", "identity", "n_rows", "metric", "value", "low", "high")
_OVERALL = ("model", "slice", "n_rows", "auc", "auc_low", "auc_high")
_DIFFERENCE = ("difference", "difference_low", "difference_high", "p_adjusted")
_CHANGED = ("slice", "identity", "metric", "value", "baseline_value", *_DIFFERENCE)
_CHANGED_BY_SKEW = ("model", "slice", "n_rows", "n_dropped", "metric", "before", "after", "sd", "change")
_BALANCE = ("identity", "n_rows", "n_positive", "positive_rate", "overall_positive_rate", "n_negatives_to_add")


def show_worst_identities(metrics: pa.Table) -> str:
    """Return a table of each model's identities whose AUC is most certainly low, without crossed pairs.

    They are those of `_first_of_models`, in the order of ``conf/sql/worst_identities.sql``: by the upper end of
    `find_lowest`. A line below counts those that are left out, for fewer than `MIN_ROWS` rows, suppressed counts or no
    interval. The bias is never cut.
    """
    sizes = pc.add(metrics["n_subgroup_negative"], metrics["n_subgroup_positive"])
    singles = metrics.append_column("n_rows", sizes).filter(~pc.field("crossed")).to_pylist()
    lowest = [(row, find_lowest(row)) for row in singles]
    rows = [
        row | {"metric": auc.metric, "value": row[auc.metric], "low": row[f"{auc.metric}_low"], "high": auc.high}
        for row, auc in lowest
        if not auc.weakness
    ]
    rows.sort(key=lambda row: (row["model"], row["high"], row["slice"], row["identity"]))
    lines = []
    if rows := _first_of_models(rows, "model"):
        biases = ["bias", *map(describe_bias, rows)]
        table = format_table(rows, _WORST, _screen_width() - 2 - max(map(len, biases))).split("\n")
        of_models = " of each model" if rows[0]["model"] != rows[-1]["model"] else ""
        lines = [f"identities{of_models} by the upper end of the interval of their lowest AUC, lowest first:"]
        lines += [f"{line}  {bias}".rstrip() for line, bias in zip(table, biases, strict=True)]
    if n_left_out := sum(auc.weakness > 0 for _, auc in lowest):
        what = f"{n_left_out:,} of {format_count(len(lowest), 'row')} of {schemas.BIAS_METRICS.name} without pairs"
        lines.append(f"left out for under {MIN_ROWS} rows, suppressed counts or no interval: {what}")
    return "\n".join(lines)


def _first_of_models(rows: Iterable[Row], *columns: str) -> list[Row]:
    """Return the first rows by model: at most `MAX_SHOWN` in all, or `FEWEST_OF_MODEL` of each model if that is more.

    The columns are "model", and also "baseline_model" where rows compare two models.
    """
    groups = group_rows(rows, *columns)
    return [row for key in sorted(groups) for row in groups[key][: max(FEWEST_OF_MODEL, MAX_SHOWN // len(groups))]]


def _screen_width() -> int:
    """Return the width to which names are cut: that of a terminal, if it is more than `SCREEN_WIDTH`; else no limit.

    `format_table` always cuts names over 60 characters.
    """
    return max(SCREEN_WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else sys.maxsize


def show_suite(tables: Mapping[Table, pa.Table]) -> str:
    """Return the worst identities; without identities, the AUC of every model on all rows, then in slices."""
    metrics, summaries = tables[BIAS_METRICS], tables[MODEL_SUMMARY]
    if len(metrics):
        return show_worst_identities(metrics)
    rows = summaries.append_column("n_rows", pc.add(summaries["n_negative"], summaries["n_positive"])).to_pylist()
    rows.sort(key=lambda row: (row["slice"] != ALL_ROWS, row["slice"], row["model"]))
    n_more = len(rows) - MAX_SHOWN
    more = [_count_more(n_more, MODEL_SUMMARY)] if n_more > 0 else []
    return "\n".join(["overall AUC:", format_table(rows[:MAX_SHOWN], _OVERALL, _screen_width()), *more])


def show_balance(balance: pa.Table) -> str:
    """Return a table of the identities that lack the most negatives over all lengths, most first."""
    counts = balance.to_pylist()
    rows = [row for row in counts if row["bucket"] == EVERY_LENGTH and row["identity"] != OVERALL]
    rows.sort(key=lambda row: (-(row["n_negatives_to_add"] or 0), row["identity"]))
    title = "identities by the negatives that would balance them at every length, most first:"
    return "\n".join(filter(None, [title, format_table(rows[:MAX_SHOWN], _BALANCE), describe_outside(counts)]))


def show_changes(comparisons: pa.Table) -> str:
    """Return the metrics in which each model is significantly worse or better, and the number of each verdict.

    The most certain changes come first, but single identities before crossed pairs, and all rows before slices.
    Background AUC is left out: for a small identity it is nearly the AUC of all rows.
    """

    def most_certain_first(row: Row) -> tuple[Any, ...]:
        key = (row[name] for name in MODEL_COMPARISONS.key_columns)
        # Many p-values round to 0: the larger difference first.
        p_values = row["p_adjusted"], row["p_value"]
        return row["crossed"], row["slice"] != ALL_ROWS, *p_values, -abs(row["difference"]), *key

    rows = comparisons.to_pylist()
    changed = (row for row in rows if row["verdict"] in (WORSE, BETTER) and row["metric"] != "background_auc")
    changes = group_rows(changed, "model", "baseline_model", "verdict")
    parts = []
    for key in sorted(changes, key=lambda key: (*key[:2], key[2] != WORSE)):
        shown = sorted(changes[key], key=most_certain_first)
        title = show_visibly("{model} significantly {verdict} than {baseline_model}:".format_map(shown[0]))
        more = [f"and {len(shown) - MAX_SHOWN:,} more"] if len(shown) > MAX_SHOWN else []
        parts.append("\n".join([title, format_table(shown[:MAX_SHOWN], _CHANGED), *more]))
    note = (
        "Differences of AEGs are those of their sizes. All comparisons, also those of background_auc, are counted here "
        f"and in latest_{MODEL_COMPARISONS.name}."
    )
    return "\n\n".join([*parts, _show_verdicts(rows), note])


def show_skew(skewed: pa.Table) -> str:
    """Return where pinned AUC changes most before and after rows are dropped, then where else it changes most."""
    listed = [list(_skew_changes(row)) for row in skewed.to_pylist()]
    listed.sort(key=lambda changes: nulls_last(*(changes[0][name] for name in ("rank", "model", "slice", "identity"))))
    loses = [changes for changes in listed if changes[0]["identity"] == changes[0]["skewed_identity"]]
    stays = [changes[0] for changes in listed if changes[0]["identity"] != changes[0]["skewed_identity"]]
    text = format_table([change for changes in loses[:MAX_SKEWED] for change in changes], _CHANGED_BY_SKEW)
    if not stays:
        return text
    columns = ("model", "slice", "identity", "metric", "before", "after", "change")
    return f"{text}\n\nother identities, largest change first:\n{format_table(stays[:MAX_SKEWED], columns)}"


def _show_verdicts(rows: Sequence[Row]) -> str:
    """Return for each model and slice the number of rows that both models score, and that of each verdict."""
    lines: dict[tuple[str, bool, str], dict[str, Any]] = {}
    names = ("model", "baseline_model", "slice")
    for row in rows:
        line = {name: row[name] for name in names} | {"n_rows": None} | dict.fromkeys(VERDICTS, 0)
        line = lines.setdefault((row["model"], row["slice"] != ALL_ROWS, row["slice"]), line)
        line[row["verdict"]] += 1
        if row["identity"] == OVERALL:
            line["n_rows"] = row["n_low"] + row["n_high"]
    return format_table([lines[key] for key in sorted(lines)], [*names, "n_rows", *VERDICTS])


def _skew_changes(row: Row) -> Iterator[dict[str, Any]]:
    sampled = ("pinned_auc", *SUMMARIZED_AUCS)
    for metric, name, skewed, sd in (
        ("pinned_auc, closed form", "pinned_auc", "pinned_auc_skewed", None),
        *((f"{name}, mean of trials", name, f"{name}_sampled_mean", f"{name}_sampled_sd") for name in sampled),
    ):
        before, after = row[name], row[skewed]
        change = None if before is None or after is None else after - before
        shown = {"metric": metric, "before": before, "after": after, "sd": sd and row[sd], "change": change}
        yield {**row, **shown, "rank": None if change is None else -abs(change)}


def nulls_last(*values: Any) -> tuple[Any, ...]:
    """Return a sort key by which None comes last."""
    return tuple((value is None, 0 if value is None else value) for value in values)


_INDENT = " " * 4
_wrap = partial(textwrap.fill, width=SCREEN_WIDTH, break_long_words=False, break_on_hyphens=False)
_ESTIMATE = ("mean_honest", "mean_honest_low", "mean_honest_high", "p_adjusted", "found", "confirmed")
_HEADINGS = {
    "node_id": "node",
    "n_negatives_honest": "n_negatives",
    "n_positives_honest": "n_positives",
    "auc_low": "low",
    "auc_high": "high",
    "mean_honest_low": "low",
    "mean_honest_high": "high",
}


def show_lost(tables: Mapping[Table, pa.Table], rare: str = "") -> str:
    """Return tables of what loses most, of segments and correlations. ``rare`` is a note below the leaves of trees."""
    rows = defaultdict[Table, list[Row]](list, {table: values.to_pylist() for table, values in tables.items()})

    def sort(table: Table, by: Callable[[Row], Any], where: Callable[[Row], Any] = bool) -> list[Row]:
        """Return rows of a table by a value, None last, and ties in the order of the key."""
        chosen = (row for row in rows[table] if where(row))
        return sorted(chosen, key=lambda row: nulls_last(by(row), *(row[name] for name in table.key_columns)))

    def is_leaf(row: Row) -> bool:
        return (row["is_leaf"], row["target"]) == (True, "auc")

    mean = itemgetter("mean_honest")
    leaves = sort(schemas.ATTRIBUTION_SEGMENTS, mean, lambda row: is_leaf(row) and not row["baseline_model"])
    differences = sort(
        schemas.ATTRIBUTION_SEGMENTS,
        lambda row: None if mean(row) is None else -abs(mean(row)),
        lambda row: is_leaf(row) and row["baseline_model"],
    )
    trees = [
        _show_excerpt(
            "leaves by mean attribution, lowest of each model first; 0.5 is best, 0.25 is chance",
            schemas.ATTRIBUTION_SEGMENTS,
            leaves,
            ("model", "slice", "node_id", "n_honest", *_ESTIMATE),
            ("rule",),
        ),
        _show_excerpt(
            "leaves of model minus baseline, largest difference of each first; found: differs from the rest",
            schemas.ATTRIBUTION_SEGMENTS,
            differences,
            ("model", "baseline_model", "slice", "node_id", "n_honest", *_ESTIMATE, "interval"),
            ("rule",),
        ),
    ]
    excerpts = [
        _show_excerpt(
            "slices by size times loss, worst of each model first",
            schemas.ATTRIBUTION_SLICES,
            sort(schemas.ATTRIBUTION_SLICES, itemgetter("rank")),
            ("model", "slice", "rank", "n_honest", *_ESTIMATE),
            ("rule",),
        ),
        _show_excerpt(
            "leaves of pairs by AUC, lowest of each model first",
            schemas.PAIR_SEGMENTS,
            sort(schemas.PAIR_SEGMENTS, mean, itemgetter("is_leaf")),
            ("model", "slice", "node_id", "n_negatives_honest", "n_positives_honest", *_ESTIMATE),
            ("negative_rule", "positive_rule"),
        ),
        _show_excerpt(
            "AUC of these negatives against these positives, lowest of each model first",
            schemas.NAMED_PAIRS,
            sort(schemas.NAMED_PAIRS, itemgetter("auc")),
            ("model", "slice", "pair", "n_negative", "n_positive", "auc", "auc_low", "auc_high", "headroom_share"),
            ("negative_predicate", "positive_predicate"),
        ),
        _show_excerpt(
            "pairs of groups by share of all wrongly ordered pairs, largest of each model first",
            schemas.AUC_CROSSES,
            sort(schemas.AUC_CROSSES, lambda row: -row["headroom_share"], itemgetter("headroom_share")),
            ("model", "slice", "grouping", "positive_group", "negative_group", "n_pairs", "auc", "headroom_share"),
        ),
    ]
    note = _wrap(rare) if any(trees) else ""
    segments, correlations = (
        [row for row in rows[table] if row["slice"] == ALL_ROWS]
        for table in (schemas.LOSS_BY_SEGMENT, schemas.ATTRIBUTION_CORRELATIONS)
    )
    below = _put_models_side_by_side(
        "correlations of attributions with losses",
        [row for row in correlations if row["pearson"] is not None],
        ("attribution", "loss"),
        "pearson",
    )
    return "\n\n".join(filter(None, [*trees, note, *excerpts, _show_segments(segments), below]))


def _show_excerpt(
    title: str, table: Table, ranked: Sequence[Row], columns: Sequence[str], rules: Sequence[str] = ()
) -> str:
    """Return a table of the first rows of each model in slice `all`; empty if no slice has rows.

    The rules of each row are below it, wrapped but never cut, and a last line counts the rows that are left out.
    """
    models = [name for name in ("model", "baseline_model") if name in columns]
    if not (rows := _first_of_models((row for row in ranked if row["slice"] == ALL_ROWS), *models)):
        return f"{title}:\n{_count_more(len(ranked), table)}" if ranked else ""
    shown = [{_HEADINGS.get(name, name): value for name, value in row.items()} for row in rows]
    if "interval" in columns:
        shown = [{**row, "interval": describe_zero(full)} for row, full in zip(shown, rows, strict=True)]
    is_contradicted = ["found" in columns and bool(row["false_discovery"]) for row in rows]
    shown = [{**row, "found": "False*"} if marked else row for row, marked in zip(shown, is_contradicted, strict=True)]
    heading, *lines = format_table(shown, [_HEADINGS.get(name, name) for name in columns]).split("\n")
    texts = [f"{title}:", heading]
    for line, row in zip(lines, rows, strict=True):
        texts.append(line)
        for name in rules:
            side = "" if name == "rule" else f"{name.partition('_')[0]}s: "
            rule, next_indent = show_visibly(f"{side}{row[name] or 'all'}"), _INDENT + " " * max(len(side), 2)
            texts.append(_wrap(rule, initial_indent=_INDENT, subsequent_indent=next_indent))
    if any(is_contradicted):
        texts.append("* false_discovery: training and estimation rows disagree, so the segment is not found.")
    if n_more := len(ranked) - len(rows):
        texts.append(_count_more(n_more, table))
    return "\n".join(texts)


def _count_more(n_rows: int, table: Table) -> str:
    return f"and {n_rows:,} more in latest_{table.name}"


def _show_segments(rows: Sequence[Row]) -> str:
    """Return the measures of the named segments, each with its difference from all rows."""
    overall = {row["model"]: row for row in rows if row["segment"] == OVERALL}
    sizes = {
        segment: "/".join(map(str, sorted({row["n_rows"] for row in segment_rows})))
        for (segment,), segment_rows in group_rows(rows, "segment").items()
    }
    measured = []
    for measure, row in product(list_measures(rows), rows):
        difference = subtract_overall(row, overall[row["model"]], measure)
        shown = "-" if row[measure] is None else f"{row[measure]:.4f}"
        shown += "" if difference is None else f" {difference:+z.4f}"
        measured.append({**row, "measure": measure, "n_rows": sizes[row["segment"]], "shown": shown})
    title = "segments, and their difference from all rows"
    return _put_models_side_by_side(title, measured, ("measure", "segment", "n_rows"), "shown")


def _put_models_side_by_side(title: str, rows: Sequence[Row], key: Sequence[str], value: str) -> str:
    """Return a table with a line per key and a column per model; empty without rows."""
    lines = [
        dict(zip(key, values, strict=True)) | {f"model {row['model']}": row[value] for row in line_rows}
        for values, line_rows in group_rows(rows, *key).items()
    ]
    columns = (*key, *dict.fromkeys(f"model {row['model']}" for row in rows))
    return f"{title}:\n{format_table(lines, columns)}" if lines else ""
