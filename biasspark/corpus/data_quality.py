"""Warnings about scores, labels, identities and slices that are probably not what the user expects."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from biasspark.columns import ALL_ROWS, NOT_NUMERIC
from biasspark.expressions.sql import write_name
from biasspark.text import NUMBER_IN_TEXT, format_count, format_share, list_first, show_value

FEW_DISTINCT = 100
GIANT_TIE = 0.5
MANY_REJECTED = 0.01
FAR_ABOVE_1 = 2
"""Estimates of probabilities may be somewhat above 1, but not as far as this."""
FEW_ROWS = 30
"""Scores get no warnings with fewer rows in all, or of a label: what looks peculiar there may be chance."""
_NO_ROW = "{have} no usable row: {names}. Is a predicate misspelled?"
_OF_NAMES = {
    "identity unknown": "{be} unknown in every usable row: {names}. Is a column empty, or the wrong one named?",
    "identity without subgroup": (
        "{have} no usable row: {names}. Is a name, a term or a predicate misspelled, or the threshold too high?"
    ),
    "identity without background": (
        "{have} no background, since every usable row is inside: {names}. Of the suite, only Subgroup AUC has a value."
    ),
    "identity without background but NULL": (
        "{have} no background, since no usable row is outside: {names}. Of the suite, only Subgroup AUC has a "
        'value. Where NULL means outside, set `unannotated = "background"`. Values out of `range` are unknown.'
    ),
    "slice empty": _NO_ROW,
    "slice of one label": "{have} usable rows of one label alone, so no AUC: {names}. Does a predicate name the label?",
    "slice of all rows": "{have} every usable row, like `all`: {names}. Is that meant?",
    "segment empty": _NO_ROW,
    "pair empty": "{have} no usable row of one label or of either: {names}. Is a predicate misspelled?",
    "feature constant": (
        "{have} one value, or none, on all rows, so nothing is split on: {names}. Is it the right column?"
    ),
    "feature rare": (
        "{have} no value with `min_leaf` rows, so trees do not split on it: {names}. Lower it, or group the values."
    ),
    "grouping single": "{have} a single group: {names}. Is it the right column?",
}
"""The sentence on some of all identities, slices, and so on, by what they are and what is wrong with them."""

_OF_COUNTS = {
    "off scale": (
        "columns with a threshold between 0 and 1 have values outside of 0 to 1: {counts}. Are threshold and values on "
        "the same scale, or does a value such as -1 stand for a missing one? Values outside of `range` are left out."
    ),
    "unreadable annotation": (
        "identities: values that are neither numbers nor booleans count as missing: {counts}. If each value is an "
        "identity, name the column in `categorical`; if one is, write a predicate such as {first} = 'yes'. "
        "{number_in_text}"
    ),
    "unreadable feature": (
        "features: values that are not numbers count as missing: {counts}. If they are categories, name the column in "
        "`categorical`. {number_in_text}"
    ),
}
"""The sentence on the number of values in each of some columns, by what is wrong with them."""


@dataclass(frozen=True)
class ScoreProfile:
    """The scores of one model over all rows that count; None for what is not counted or not defined.

    `largest_tie` is the number of rows with the most frequent score, `overall_high` the upper end of the interval of
    the overall AUC, `subgroup_high` the largest of those of the Subgroup AUCs, `reason` says why there is no overall
    AUC, and `n_rarer_label` is the number of rows of the rarer label.
    """

    model: str
    n_rows: int
    n_distinct: int | None
    largest_tie: int | None
    lowest: float | None = None
    highest: float | None = None
    overall_auc: float | None = None
    overall_high: float | None = None
    subgroup_high: float | None = None
    reason: str | None = None
    n_rarer_label: int | None = None


def score_warnings(profiles: Iterable[ScoreProfile]) -> Iterator[str]:
    """Yield a sentence for each anomaly in each model's scores, with its probable cause."""
    return (f"model {profile.model}: {text}" for profile in profiles for text in _peculiarities(profile))


def reject_warnings(
    who: str, what: str, n_all: int, rejects: Mapping[str, int], hints: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield a sentence for each reason that rejects more than `MANY_REJECTED` of some rows or scores, with hints."""
    hints = {NOT_NUMERIC: NUMBER_IN_TEXT, **(hints or {})}
    for reason, count in rejects.items():
        if n_all >= FEW_ROWS and count > MANY_REJECTED * n_all:
            share, hint = format_share(count, n_all), f" {hints[reason]}" if reason in hints else ""
            yield f"{who}: {share} of its {n_all:,} {what} are counted as {reason}. Is that meant?{hint}"


def label_warnings(n_rows: int, n_positive: int) -> Iterator[str]:
    """Yield a sentence if a label has no or few rows, given all rows with a label and the positives among them."""
    label, n_rarer = min(("positive", n_positive), ("negative", n_rows - n_positive), key=lambda count: count[1])
    if n_rarer == 0:
        yield f"label: none of the {n_rows:,} rows with a label is {label}. Check the label."
    elif n_rarer < FEW_ROWS:
        yield (
            f"label: only {n_rarer:,} of the {n_rows:,} rows with a label {'is' if n_rarer == 1 else 'are'} {label}. "
            "Metrics of so few rows are mostly chance."
        )


def positive_value_warnings(positives: Mapping[object, tuple[bool, int]]) -> Iterator[str]:
    """Yield a sentence on each positive value that no row has, or that some have in another spelling (`Survey`)."""
    for value, (is_there, n_variants) in positives.items():
        if not is_there:
            yield f"label: no row has the positive value {show_value(value)}. Is it written as in the data?"
        if n_variants:
            rows, verb = format_count(n_variants, "row"), "counts" if n_variants == 1 else "count"
            yield (
                f"label: {rows} with the positive value {show_value(value)} in other case or with spaces around it "
                f"{verb} as negative. Is that meant?"
            )


def name_warnings(problem: str, names: Sequence[str], chosen: Collection[str]) -> Iterator[str]:
    """Yield a sentence of `_OF_NAMES` on the chosen ones of all names, in order; none if no name is chosen."""
    what, text = problem.split(maxsplit=1)[0], _OF_NAMES[problem]
    listed = [show_value(name) for name in names if name in chosen]
    if not listed:
        return
    plural = "identities" if what == "identity" else f"{what}s"
    be, have = ("is", "has") if len(listed) == 1 else ("are", "have")
    yield f"{plural}: {len(listed):,} of {len(names):,} {text.format(be=be, have=have, names=list_first(listed))}"


def count_warnings(problem: str, counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence of `_OF_COUNTS`, given the values with this problem by column; none if there are none."""
    if counts:
        shown = list_first([f"{count:,} of '{name}'" for name, count in counts.items()])
        first = write_name(next(iter(counts)))
        yield _OF_COUNTS[problem].format(counts=shown, first=first, number_in_text=NUMBER_IN_TEXT)


def column_warnings(uses: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Warn of each column with two uses, given (column, use). A model whose score is the label has an AUC of 1."""
    by_column: dict[str, list[str]] = {}
    for name, use in uses:
        by_column.setdefault(name, []).append(use)
    for name, (*before, last) in by_column.items():
        if before:
            yield f"column {show_value(name)} is used as {', '.join(before)} and {last}. Is that meant?"


def identity_warnings(identities: Sequence[str], sides: Sequence[tuple[int, int]], n_usable: int) -> Iterator[str]:
    """Yield a sentence on identities without a subgroup, a background, or both: their metrics have no value.

    `sides` are the usable rows in each identity and outside of it; the rest of `n_usable` are NULL.
    """
    lacking: dict[str, list[str]] = {problem: [] for problem in _OF_NAMES if problem.startswith("identity")}
    for name, (n_inside, n_outside) in zip(identities, sides, strict=True):
        if not n_outside:
            no_background = "identity without background" + " but NULL" * (n_inside < n_usable)
            lacking[no_background if n_inside else "identity unknown"].append(name)
        elif not n_inside:
            lacking["identity without subgroup"].append(name)
    for problem, names in lacking.items():
        yield from name_warnings(problem, identities, names)


def slice_warnings(slices: Sequence[str], labels: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yield sentences on slices without rows, of one label, and of all rows, given usable negatives and positives."""
    by_slice = dict(zip(slices, labels, strict=True))
    overall = by_slice.pop(ALL_ROWS)
    whole = [name for name, counts in by_slice.items() if counts == overall and all(counts)]
    empty, one_label = (
        [name for name, counts in by_slice.items() if sum(map(bool, counts)) == n_labels] for n_labels in (0, 1)
    )
    yield from name_warnings("slice empty", [*by_slice], empty)
    yield from name_warnings("slice of one label", [*by_slice], one_label)
    yield from name_warnings("slice of all rows", [*by_slice], whole)


def threshold_warnings(profiles: Iterable[ScoreProfile], thresholds: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """Yield a sentence on each model whose scores are probably not on the scale of its thresholds.

    All scores are on one side of them, so they decide nothing, or scores reach `FAR_ABOVE_1` and thresholds do not
    leave 0 to 1. A threshold of 0 alone may be one of log-odds.
    """
    for profile in profiles:
        if not (cuts := thresholds.get(profile.model)) or profile.n_rows < FEW_ROWS:
            continue
        problem, (lowest, highest), same = "", (min(cuts), max(cuts)), "so every row gets the same decision"
        if profile.highest is not None and profile.highest < lowest:
            problem = f"all its scores are below the lowest threshold, {lowest:g}, {same}"
        elif profile.lowest is not None and profile.lowest >= highest:
            problem = f"all its scores are at or above the highest threshold, {highest:g}, {same}"
        elif (profile.highest or 0) >= FAR_ABOVE_1 and lowest >= 0 and 0 < highest <= 1:
            problem = "some of its scores are far above 1, and all thresholds lie within 0 to 1"
        if problem:
            yield f"model {profile.model}: {problem}. Are thresholds and scores on the same scale?"


def _peculiarities(profile: ScoreProfile) -> Iterator[str]:
    if profile.n_rows == 0:
        yield "no row has a usable score. Check the score column and the label; rejected_rows gives the reasons."
        return
    if profile.reason in ("no_positives", "no_negatives"):
        label = profile.reason.removeprefix("no_").removesuffix("s")
        yield f"no row with a score is {label}, so no AUC has a value. Check the label."
    if profile.n_rows < FEW_ROWS:
        return
    if profile.lowest == profile.highest:
        yield f"all its {profile.n_rows:,} scores are the same value, so every AUC is 0.5. Is it the right column?"
        return
    if profile.n_distinct is not None and profile.n_distinct <= 2 and {profile.lowest, profile.highest} <= {0.0, 1.0}:
        yield "its scores are only 0 and 1, like decisions. An AUC of decisions says little. Use the scores."
    elif profile.n_distinct is not None and profile.n_distinct < FEW_DISTINCT < profile.n_rows:
        yield f"its {profile.n_rows:,} scores have only {profile.n_distinct} distinct values. Were they rounded?"
    if profile.largest_tie is not None and profile.largest_tie >= GIANT_TIE * profile.n_rows:
        share = format_share(profile.largest_tie, profile.n_rows)
        yield f"{share} of its scores are the same value. Is that a default for rows that were not scored?"
    lowest, highest = profile.lowest or 0.0, profile.highest or 0.0
    if lowest < 0 and lowest.is_integer() and highest <= 1:
        yield f"its scores range from {lowest:g} to {highest:g}. Does {lowest:g} stand for missing ones?"
    if profile.n_rarer_label is not None and profile.n_rarer_label < FEW_ROWS:
        return
    if profile.overall_auc == 1:
        yield "its AUC is 1: every positive scores higher than every negative. Was the score made from the label?"
    has_identities = profile.subgroup_high is not None
    high = profile.subgroup_high if has_identities else profile.overall_high
    if high is not None and high < 0.5:
        which = "subgroup AUC is below 0.5 for every identity" if has_identities else "AUC is below 0.5"
        yield f"the interval of its {which}. Does a higher score mean less likely positive?"
