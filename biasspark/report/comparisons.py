"""Models against a baseline on the rows that both score: what is significantly worse, what better, and all else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from biasspark.columns import (
    ALL_ROWS,
    BETTER,
    CROSSED,
    IDENTITY,
    INSUFFICIENT_DATA,
    MODEL,
    NO_EVIDENCE,
    OVERALL,
    SUITE_AUCS,
    SUITE_GAPS,
    VERDICTS,
    WORSE,
)
from biasspark.config import JACKKNIFE
from biasspark.report.cells import (
    TableCell,
    is_weak,
    metric_cell,
    show_count,
    show_interval,
    show_name,
    show_number,
    show_p,
)
from biasspark.report.definitions import TITLES
from biasspark.report.facts import NightFacts, Row

METRICS = (*SUITE_AUCS, *SUITE_GAPS)
MOST_CHANGES = 12
_MARKS = {WORSE: "▼ ", BETTER: "▲ "}
_SIDES = {"negative": "n_low", "positive": "n_high"}
"""Of the rows of an identity, where comparisons of its Subgroup AUC count them."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """A metric of one identity that both models have, and by how much they differ.

    The two values have their intervals where the suite has them of the same rows. ``rows`` counts those of the cell
    that should score lower and of that which should score higher; of a gap, of background and subgroup.
    """

    identity: str
    metric: str
    value: TableCell
    baseline: TableCell
    difference: TableCell
    p: str
    rows: str

    @property
    def title(self) -> str:
        """The name of the metric."""
        return TITLES[self.metric]

    @property
    def size(self) -> float:
        """How far the models are apart."""
        return abs(self.difference.value or 0.0)


@dataclass(frozen=True, kw_only=True)
class Compared:
    """All that is compared of one identity, by metric, and how many positives and negatives of it there are."""

    identity: str
    n_positive: str
    n_negative: str
    changes: Mapping[str, Change]


@dataclass(frozen=True, kw_only=True)
class Against:
    """A model against a baseline.

    Attributes
    ----------
    counts
        How many comparisons of all rows have each verdict, also those that are not here.
    worse, better
        What changed significantly: of the identities that are shown, and what else got worse. The largest comes first,
        but of those with enough rows.
    overall
        The AUC of all rows.
    rows
        The identities that are shown.
    """

    model: str
    baseline: str
    counts: Mapping[str, int]
    worse: Sequence[Change]
    better: Sequence[Change]
    overall: Change | None
    rows: Sequence[Compared]

    @property
    def sentence(self) -> str:
        """Whether the model is significantly worse anywhere."""
        model, baseline, n = show_name(self.model), show_name(self.baseline), self.counts
        of = f"{sum(n.values()):,} comparisons on the same rows"
        rest = f"{_count(n[BETTER], 'is', 'are')} significantly better, {_count(n[NO_EVIDENCE], 'is', 'are')} not "
        rest += f"significant, {_count(n[INSUFFICIENT_DATA], 'has', 'have')} too little data."
        if not n[WORSE]:
            return f"{model} is not significantly worse than {baseline} in any of {of}; {rest}"
        most = ""
        if self.worse:
            lost, *_ = self.worse
            by = show_number(lost.difference.value, signed=True)
            most = f", most of all in {lost.title} of {name_whole(lost.identity)} ({by})"
        return f"{model} is significantly worse than {baseline} in {n[WORSE]:,} of {of}{most}; {rest}"


def say_method(facts: NightFacts) -> str:
    """Say how differences are judged: the method and groups that the rows have, and the run's column of clusters."""
    rows = facts.rows("model_comparisons", slice=ALL_ROWS)
    if not rows:
        return ""
    if all(row["method"] != JACKKNIFE for row in rows):
        return "Differences are judged by paired DeLong, which takes rows for independent."
    sizes = {row["n_groups"] for row in rows if row["p_value"] is not None}
    of = " to ".join(f"{n:,}" for n in sorted({min(sizes), max(sizes)})) + " groups" if sizes else "groups"
    said = f"Differences are judged by a jackknife over {of} of rows"
    cluster = (facts.configs.get("compare_models", {}).get("compare") or {}).get("cluster")
    if cluster is None:
        return f"{said}, which takes rows for independent."
    return (
        f"{said}, where rows with the same {show_name(cluster)} are in one group. The intervals of the values "
        "themselves take rows for independent."
    )


def hold_against(facts: NightFacts) -> list[Against]:
    """Return what is compared with a baseline, one entry for two models; none where the night compares none."""
    counted: dict[tuple[str, str], dict[str, int]] = {}
    kinds = facts.count("model_comparisons", "slice", MODEL, "baseline_model", "verdict")
    for (cut, model, baseline, verdict), n in sorted(kinds.items()):
        if cut == ALL_ROWS:
            counted.setdefault((model, baseline), dict.fromkeys(VERDICTS, 0))[verdict] = n
    return [_hold(facts, *pair, counts) for pair, counts in counted.items()]


def _hold(facts: NightFacts, model: str, baseline: str, counts: Mapping[str, int]) -> Against:
    rows = facts.rows("model_comparisons", slice=ALL_ROWS, model=model, baseline_model=baseline)
    suite = _find_values(facts)
    changes = {(row[IDENTITY], row["metric"]): (row, _describe(row, suite)) for row in rows}
    worse, better = (_sort_largest_first(changes.values(), verdict) for verdict in (WORSE, BETTER))
    _, overall = changes.get((OVERALL, "auc"), (None, None))
    there = {row[IDENTITY] for row in rows if not row[CROSSED]}
    return Against(
        model=model,
        baseline=baseline,
        counts=counts,
        worse=worse,
        better=better,
        overall=overall,
        rows=[
            _compare(name, {metric: changes[name, metric] for metric in METRICS if (name, metric) in changes})
            for name in facts.identities()
            if name in there
        ],
    )


def _compare(identity: str, changes: Mapping[str, tuple[Row, Change]]) -> Compared:
    of_subgroup, _ = changes.get("subgroup_auc", ({}, None))
    counts = {f"n_{sign}": show_count(of_subgroup.get(side)) for sign, side in _SIDES.items()}
    return Compared(identity=identity, changes={name: own for name, (_, own) in changes.items()}, **counts)


def _find_values(facts: NightFacts) -> dict[tuple[str, str, str], TableCell]:
    """Return by (model, identity, metric) what the suite has of the night."""
    rows = [*facts.rows("bias_metrics", slice=ALL_ROWS), *facts.rows("crossed_pairs")]
    found = {(row[MODEL], row[IDENTITY], name): metric_cell(row, name) for row in rows for name in METRICS}
    wholes = facts.rows("model_summary", slice=ALL_ROWS)
    return found | {(row[MODEL], OVERALL, "auc"): metric_cell(row, "auc") for row in wholes}


def _sort_largest_first(changes: Iterable[tuple[Row, Change]], verdict: str) -> list[Change]:
    found = [
        (is_weak(row["difference_low"], row["difference_high"]), -own.size, own.identity, own.metric, own)
        for row, own in changes
        if row["verdict"] == verdict
    ]
    return [own for *_, own in sorted(found, key=lambda one: one[:-1])]


def _describe(row: Row, suite: Mapping[tuple[str, str, str], TableCell]) -> Change:
    return Change(
        identity=row[IDENTITY],
        metric=row["metric"],
        value=_value_of(row, "value", row[MODEL], suite),
        baseline=_value_of(row, "baseline_value", row["baseline_model"], suite),
        difference=_cell(row),
        p=show_p(row["p_adjusted"]),
        rows=f"{show_count(row['n_low'])}, {show_count(row['n_high'])}",
    )


def _value_of(row: Row, column: str, model: str, suite: Mapping[tuple[str, str, str], TableCell]) -> TableCell:
    """Return a value on the rows that both models score, with its interval where the suite's is of the same rows."""
    value, own = row[column], suite.get((model, row[IDENTITY], row["metric"]))
    if value is not None and own is not None and own.value is not None and math.isclose(value, own.value, abs_tol=1e-9):
        return replace(own, shade="")
    return TableCell(text=show_number(value, signed=row["metric"] in SUITE_GAPS), value=value, weak=value is None)


def _cell(row: Row) -> TableCell:
    """Return a difference with its verdict, which a hover explains."""
    if row["difference"] is None:
        return TableCell(text="–", note="no rows in a cell", weak=True)
    verdict, rows = row["verdict"], f"{show_count(row['n_low'])} and {show_count(row['n_high'])} rows"
    weak = verdict == INSUFFICIENT_DATA
    evidence = "too little data to tell" if weak else f"adjusted p {show_p(row['p_adjusted'])}"
    return TableCell(
        text=_MARKS.get(verdict, "") + show_number(row["difference"], signed=True),
        interval=show_interval(row["difference_low"], row["difference_high"], signed=True),
        shade=verdict if verdict in _MARKS else "",
        value=row["difference"],
        note=f"{evidence}, {rows}",
        weak=weak,
    )


def name_whole(identity: str) -> str:
    """Name an identity, or all rows."""
    return "all rows" if identity == OVERALL else show_name(identity)


def _count(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"
