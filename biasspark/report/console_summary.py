"""What a job prints of the tables that it published: a few rows, the worst or the surest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from biasspark.cli import format_table
from biasspark.columns import ALL_ROWS, BETTER, EVERY_LENGTH, OVERALL, SUMMARIZED_AUCS, VERDICTS, WORSE
from biasspark.report.cells import Row, describe_outside, lacks_by_length
from biasspark.report.definitions import describe_bias
from biasspark.report.report_data import group_rows
from biasspark.tables.schemas import MODEL_COMPARISONS, MODEL_SUMMARY
from biasspark.text import format_count, show_visibly

SCREEN_WIDTH, MOST_SHOWN = 120, 10
MIN_ROWS = 30
_WORST = ("model", "slice", "identity", "n_rows", "metric", "value", "low", "high", "bias")
_OVERALL = ("model", "slice", "n_rows", "auc", "auc_low", "auc_high")
_DIFFERENCE = ("difference", "difference_low", "difference_high", "p_adjusted")
_CHANGED = ("slice", "identity", "metric", "value", "baseline_value", *_DIFFERENCE)
_CHANGED_BY_SKEW = ("model", "slice", "n_rows", "n_dropped", "metric", "before", "after", "sd", "change")
_BALANCE = ("identity", "n_rows", "n_positive", "positive_rate", "overall_positive_rate", "n_negatives_to_add")


def show_worst_identities(metrics: pa.Table, n: int = MOST_SHOWN) -> str:
    """Return a table of the identities whose AUC is most certainly low, without crossed pairs.

    The rule is that of ``conf/sql/worst_identities.sql``: of the subgroup, BPSN and BNSP AUC of an identity, the one
    whose interval ends lowest counts, and the lowest upper end comes first. Identities with fewer than `MIN_ROWS` rows
    or without an interval are left out, since the lowest of many such estimates is low by chance. A line below the
    table says how many they are.
    """
    lowest = [(row, _lowest_auc(row)) for row in metrics.to_pylist() if not row["crossed"]]
    rows = [{**row, **auc} for row, auc in lowest if auc is not None]
    rows.sort(key=lambda row: (row["high"], row["model"], row["slice"], row["identity"]))
    lines = [_describe_left_out([(row["identity"], auc is None) for row, auc in lowest])]
    if rows:
        title = "identities by the upper end of the interval of their lowest AUC, lowest first:"
        lines[:0] = [title, format_table(rows[:n], _WORST, SCREEN_WIDTH)]
    return "\n".join(filter(None, lines))


def show_suite(metrics: pa.Table, summaries: pa.Table) -> str:
    """Return the worst identities, or the overall AUC of every model where none is measured."""
    return show_worst_identities(metrics) if len(metrics) else show_overall(summaries)


def show_overall(summaries: pa.Table) -> str:
    """Return a table of the AUC of every model on all rows and then in its slices, which needs no identities."""
    rows = [{**row, "n_rows": _add(row["n_negative"], row["n_positive"])} for row in summaries.to_pylist()]
    rows.sort(key=lambda row: (row["slice"] != ALL_ROWS, row["slice"], row["model"]))
    n_more = len(rows) - MOST_SHOWN
    more = [f"and {n_more:,} more in latest_{MODEL_SUMMARY.name}"] if n_more > 0 else []
    return "\n".join(["overall AUC:", format_table(rows[:MOST_SHOWN], _OVERALL, SCREEN_WIDTH), *more])


def show_balance(balance: pa.Table) -> str:
    """Return a table of the identities that lack most negatives over all lengths, most first."""
    counts = balance.to_pylist()
    rows = [row for row in counts if row["bucket"] == EVERY_LENGTH and row["identity"] != OVERALL]
    rows.sort(key=lambda row: (-(row["n_negatives_to_add"] or 0), row["identity"]))
    shown = [
        {**row, "by_length": "by length" if lacks_by_length(row, row["overall_positive_rate"]) else ""}
        for row in rows[:MOST_SHOWN]
    ]
    columns = (*_BALANCE, "by_length") if any(row["by_length"] for row in shown) else _BALANCE
    lines = ["identities by the negatives that would balance them, most first:", format_table(shown, columns)]
    lines += ["by length: too few negatives at some lengths only"] if columns != _BALANCE else []
    lines += [outside] if (outside := describe_outside(counts)) else []
    return "\n".join(lines)


def show_changes(comparisons: pa.Table, n: int = MOST_SHOWN) -> str:
    """Return in which metrics each model is significantly worse or better, and how many comparisons have each verdict.

    The surest changes of single identities come before those of crossed pairs, and all rows before slices. Background
    AUC is left out: that of a small identity is nearly the AUC of all rows.
    """
    rows = comparisons.to_pylist()
    changed = (row for row in rows if row["verdict"] in (WORSE, BETTER) and row["metric"] != "background_auc")
    changes = group_rows(changed, "model", "baseline_model", "verdict")
    in_order = sorted(changes, key=lambda key: (*key[:2], key[2] != WORSE))
    shown = [_show_changed(sorted(changes[key], key=_surest_first), n) for key in in_order]
    everything = f"Counted, and in latest_{MODEL_COMPARISONS.name}, is every comparison, those of background_auc too."
    return "\n\n".join([*shown, _show_verdicts(rows), everything])


def show_skew(skewed: pa.Table, n: int = 5) -> str:
    """Return where pinned AUC changes most, one metric per row: its value before rows are dropped, and after.

    Below it stand the other identities whose pinned AUC changes most.
    """

    def order(row: Row) -> tuple[Any, ...]:
        before, after = row["pinned_auc"], row["pinned_auc_skewed"]
        size = None if before is None or after is None else -abs(after - before)
        return nulls_last(size, row["model"], row["slice"], row["identity"])

    rows = sorted(skewed.to_pylist(), key=order)
    loses = [row for row in rows if row["identity"] == row["skewed_identity"]]
    stays = [row for row in rows if row["identity"] != row["skewed_identity"]]
    text = format_table([change for row in loses[:n] for change in _skew_changes(row)], _CHANGED_BY_SKEW)
    if not stays:
        return text
    changes = [next(_skew_changes(row)) for row in stays[:n]]
    columns = ("model", "slice", "identity", "metric", "before", "after", "change")
    return f"{text}\n\nother identities, largest change first:\n{format_table(changes, columns)}"


def _lowest_auc(row: Row) -> dict[str, Any] | None:
    """Return the AUC of an identity whose interval ends lowest; None with too few rows or without an interval."""
    n_rows = _add(row["n_subgroup_negative"], row["n_subgroup_positive"])
    highs = [(row[f"{name}_high"], name) for name in SUMMARIZED_AUCS if row[f"{name}_high"] is not None]
    if not highs or n_rows is None or n_rows < MIN_ROWS:
        return None
    high, name = min(highs)
    interval = {"low": row[f"{name}_low"], "high": high, "bias": describe_bias(row)}
    return {"n_rows": n_rows, "metric": name, "value": row[name], **interval}


def _describe_left_out(identities: Sequence[tuple[str, bool]]) -> str:
    """Return how many identities have too few rows or no interval, everywhere or in some models and slices."""
    n_all, n_left_out = Counter(name for name, _ in identities), Counter(name for name, is_out in identities if is_out)
    n_everywhere = sum(n == n_all[name] for name, n in n_left_out.items())
    n_elsewhere = len(n_left_out) - n_everywhere
    of_all = f"of {format_count(len(n_all), 'identity', 'identities')}"
    parts = [f"{n_everywhere:,} {of_all}"] if n_everywhere else []
    if n_elsewhere:
        parts.append(f"{n_elsewhere:,} {'more' if parts else of_all} for some models or slices")
    return f"left out for under {MIN_ROWS} rows or no interval: {', '.join(parts)}" if parts else ""


def _surest_first(row: Row) -> tuple[Any, ...]:
    key = (row[name] for name in MODEL_COMPARISONS.key_columns)
    # Many p-values round to 0: the larger difference first.
    return row["crossed"], row["slice"] != ALL_ROWS, row["p_adjusted"], row["p_value"], -abs(row["difference"]), *key


def _show_changed(rows: Sequence[Row], n: int) -> str:
    title = show_visibly("{model} significantly {verdict} than {baseline_model}:".format_map(rows[0]))
    more = [f"and {len(rows) - n:,} more"] if len(rows) > n else []
    return "\n".join([title, format_table(rows[:n], _CHANGED), *more])


def _show_verdicts(rows: Sequence[Row]) -> str:
    """Return by model and slice the rows that both models score, and how many comparisons have each verdict."""
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
        yield {**row, "metric": metric, "before": before, "after": after, "sd": sd and row[sd], "change": change}


def _add(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def nulls_last(*values: Any) -> tuple[Any, ...]:
    """Return values as a key of a sort in which None comes last."""
    return tuple((value is None, 0 if value is None else value) for value in values)
