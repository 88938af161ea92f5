"""Checks that enough of a corpus is usable: a run that lacks a label, a model or all identities is not a result.

Each check raises an `InputError`, which ends a job with exit code 3 before anything is published.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction

from biasspark.arrays import Ints
from biasspark.columns import NOT_NUMERIC, ROW_REASONS
from biasspark.config import Identities, Label, LabelBalance, Measures, Rejects
from biasspark.corpus.encoding import RowCounts
from biasspark.errors import ABSENT, Fault, InputError, Key, Setting, Text
from biasspark.text import NUMBER_IN_TEXT, format_count, list_first, show_value

_BOTH_LABELS = "An AUC needs positives and negatives."
A_LABEL = (
    "A label is a boolean, or 0 or 1, also as text; with a threshold, such as 0.5, it is a number, and with positive "
    f"values any value. {NUMBER_IN_TEXT}"
)
_NAME_LABELS: Text = (
    *("Name another column, or set ", Key(("label", "positive")), " to the positive values, as [2] of 1 and 2; "),
    *("if its values are shares, such as 1.0, set ", Setting(("label", "threshold"), 0.5), " instead."),
)


def list_missing_models(counts: RowCounts) -> tuple[str, ...]:
    """Return the models without any AUC: those without a usable score, and those whose usable rows have one label."""
    positives = counts.eligible_positives
    return tuple(model for model, n_rows in counts.n_eligible.items() if positives.get(model, 0) in (0, n_rows))


def check_usable(counts: RowCounts, measures: Measures, id_column: str | None, rejects: Rejects | None = None) -> None:
    """Stop a run that lacks a label or a model, or that rejects more than it may.

    Raises `InputError` if no row has a usable label, or all labels are equal; without models, as for label balance
    alone, one label may be missing. Otherwise raises it with a fault for each model without an AUC, unless missing
    models are allowed and another model is usable; and with a fault for the corpus and for each other model of which
    more than ``max_share`` is rejected. The share of a model is of its scores on the rows that are not rejected for all
    models. In a notebook there are no `rejects`, and every model is needed.
    """
    n_labeled = counts.n_labeled
    if not n_labeled:
        raise InputError(_no_usable_row(counts, measures.label, id_column))
    if measures.models and counts.n_positive in (0, n_labeled):
        raise InputError(_one_label(counts, measures.label))
    missing = list_missing_models(counts)
    faults: list[Fault | str] = []
    if not (rejects and rejects.allow_missing_models and len(missing) < len(counts.n_eligible)):
        faults += [_missing_model(model, measures.models[model], counts, rejects) for model in missing]
    if rejects and rejects.max_share is not None:
        scored = {model: column for model, column in measures.models.items() if model not in missing}
        faults[:0] = _excesses(counts, scored, rejects.max_share)
    if faults:
        raise InputError(*faults)


def _excesses(counts: RowCounts, columns: Mapping[str, str], max_share: float) -> Iterator[str]:
    """Yield a fault for the corpus, and for each model, given with its column, of which too much is rejected."""
    reasons = {reason: count for reason, count in counts.rejects.items() if reason in ROW_REASONS}
    reasons["no usable score"] = counts.n_rejected - sum(reasons.values())
    fix = "Check the input, [corpus] and [label], or raise max_share."
    parts = [("corpus", "rows", counts.n_rows, reasons, fix)]
    for model, column in columns.items():
        reasons = counts.rejected_scores.get(model, {})
        fix = f"Check the column, or raise max_share.{f' {NUMBER_IN_TEXT}' * (NOT_NUMERIC in reasons)}"
        parts.append((f"model {model}", f"scores in column '{column}'", counts.n_labeled, reasons, fix))
    for name, what, n_all, reasons, fix in parts:
        n = sum(reasons.values())
        # Compared with the decimal as written: 29 of 100 do not exceed 0.29, although its double may be smaller.
        if Fraction(n, n_all) > Fraction(repr(max_share)):
            yield (
                f"{name}: {n:,} of its {n_all:,} {what} are rejected ({_list_reasons(reasons)}). The share, "
                f"{n / n_all:.4g}, is more than [rejects] max_share = {max_share:g}. {fix}"
            )


def check_identities(
    identities: Identities, names: Sequence[str], unknown: Collection[str], unreadable: Mapping[str, int]
) -> None:
    """Raise `InputError` if every identity is unknown on every usable row: no identity would have any metric.

    `names` are the identities that the corpus has, `unknown` those that are unknown on every usable row, `unreadable`
    the number of annotations that are neither numbers nor booleans, by column.
    """
    if not identities.sources or not set(names) <= set(unknown):
        return
    shown = list_first([show_value(name) for name in names or identities.value_columns])
    if not names:
        problem = f"no row has a value in {shown}, so there is no identity."
    else:
        problem = f"no usable row says whether it is in an identity: {shown}."
    fix: Text = "Check the columns."
    if unreadable:
        columns = list_first([f"{count:,} values of '{name}'" for name, count in unreadable.items()])
        problem += f" {columns} are neither numbers nor booleans."
        fix = (
            *("If each value is an identity, name the column in ", Key(("identities", "categorical"))),
            f". {NUMBER_IN_TEXT}",
        )
    raise InputError(Fault(("identities",), ABSENT, problem, fix))


def check_lengths(labels: Ints, balance: LabelBalance) -> None:
    """Raise `InputError` if lengths are configured and none is in a bin, by the labels of `ranking.counts.Counts`."""
    key, name = ("length", balance.length) if balance.text is None else ("text", balance.text)
    if name is None or labels[0, 1:].any():
        return
    shortest, longest = balance.buckets[0], balance.buckets[-1] - 1
    rule = f"None of the {labels[0].sum():,} rows with a label has a length from {shortest:,} to {longest:,} there."
    of_text = ("; for the lengths of a text name it in ", Key(("label_balance", "text"))) if key == "length" else ""
    fix = ("Name another column, or change ", Key(("label_balance", "buckets")), of_text, ".")
    raise InputError(Fault(("label_balance", key), name, rule, fix))


def _no_usable_row(counts: RowCounts, label: Label, id_column: str | None) -> Fault:
    """Return the fault of a corpus without a usable label, by the reason that rejects most rows."""
    rule = f"Of {format_count(counts.n_rows, 'row')}, none can be used ({_list_reasons(counts.rejects)})."
    match max(ROW_REASONS, key=lambda reason: counts.rejects.get(reason, 0)):
        case "malformed_row":
            rule = f"the lines do not have the fields of the header line. {rule}"
            return Fault(("corpus", "options"), ABSENT, rule, "Set the separator of the fields, `sep`.")
        case "null_id" | "duplicate_id":
            fix = "Name the column that identifies a row."
            return Fault(("corpus", "id"), id_column, f"{rule} A row needs an id, and repeated ids are rejected.", fix)
        case "label_out_of_range":
            return Fault(("label", "range"), label.range, rule, "Correct it, or name another column.")
    if label.positive is not None:
        return Fault(("label", "column"), label.column, rule, "Name another column.")
    in_place = (" in place of ", Key(("label", "threshold")), ".")
    by_value = ("Name another column, or name the values that are positive in ", Key(("label", "positive")), in_place)
    fix_label = _NAME_LABELS if label.threshold is None else by_value
    return Fault(("label", "column"), label.column, f"{rule} {A_LABEL}", fix_label)


def _one_label(counts: RowCounts, label: Label) -> Fault:
    missing = "negative" if counts.n_positive else "positive"
    rule = f"Of {format_count(counts.n_labeled, 'label')} in column '{label.column}', none is {missing}. {_BOTH_LABELS}"
    if counts.rejects:
        rule += f" Rejected rows: {_list_reasons(counts.rejects)}."
    for key, value in (("positive", label.positive), ("threshold", label.threshold)):
        if value is not None:
            return Fault(("label", key), value, rule, "Correct it, or name another column.")
    if not counts.rejects.get("null_label"):
        return Fault(("label", "column"), label.column, rule, "Name another column.")
    return Fault(("label", "column"), label.column, f"{rule} {A_LABEL}", _NAME_LABELS)


def _missing_model(model: str, column: str, counts: RowCounts, rejects: Rejects | None) -> Fault:
    n_rows, reasons = counts.n_eligible[model], counts.rejected_scores.get(model, {})
    label = "negative" if counts.eligible_positives.get(model) else "positive"
    rejected = f" ({_list_reasons(reasons)})" if reasons else ""
    problem = f"model {model}: no row with a label has a usable score in column '{column}'{rejected}."
    if n_rows:
        what = f"none of the {n_rows:,} rows with a label and a usable score in column '{column}' is {label}"
        problem = f"model {model}: {what}{rejected}. {_BOTH_LABELS}"
    allowed = " To publish the other models without it, set [rejects] allow_missing_models = true."
    more = f" {NUMBER_IN_TEXT}" if NOT_NUMERIC in reasons else ""
    more += allowed if rejects and not rejects.allow_missing_models else ""
    return Fault((), ABSENT, problem, ("Check the column, or remove the model from ", Key(("models",)), f".{more}"))


def _list_reasons(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in counts.items() if count)
