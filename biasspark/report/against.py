"""Models against a baseline on the rows that both score: what surely got worse, what better, and every difference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from biasspark.columns import ALL_ROWS, CROSSED, IDENTITY, MODEL, OVERALL, SUITE_AUCS, SUITE_GAPS
from biasspark.report.cells import Cell, is_weak, show_count, show_interval, show_name, show_number, show_p
from biasspark.report.definitions import TITLES
from biasspark.report.facts import NightFacts, Row

METRICS = (*SUITE_AUCS, *SUITE_GAPS)
WORSE, BETTER, NO_EVIDENCE, INSUFFICIENT = "worse", "better", "no_evidence", "insufficient_data"
VERDICTS = (WORSE, BETTER, NO_EVIDENCE, INSUFFICIENT)
MOST_CHANGES = 12
_MARKS = {WORSE: "▼ ", BETTER: "▲ "}


@dataclass(frozen=True, kw_only=True)
class Change:
    """A metric of one identity that both models have, and by how much they differ."""

    identity: str
    metric: str
    value: str
    baseline: str
    difference: Cell
    p: str

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
    """All differences of one identity, by metric."""

    identity: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True, kw_only=True)
class Against:
    """A model against a baseline.

    Attributes
    ----------
    counts
        How many comparisons of all rows have each verdict, also those that are not here.
    worse, better
        What surely changed: of the identities that are shown, and what else got worse. The largest comes first, but of
        those whose size enough rows tell.
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
        """Whether the model is surely worse anywhere."""
        model, baseline, n = show_name(self.model), show_name(self.baseline), self.counts
        of = f"{sum(n.values()):,} comparisons on the same rows"
        rest = f"{n[BETTER]:,} {'is' if n[BETTER] == 1 else 'are'} surely better, {n[NO_EVIDENCE]:,} not told from "
        rest += f"chance, {n[INSUFFICIENT]:,} of too few rows."
        if not n[WORSE]:
            return f"{model} is surely worse than {baseline} nowhere: of {of} {rest}"
        most = ""
        if self.worse:
            lost, *_ = self.worse
            by = show_number(lost.difference.value, signed=True)
            most = f", most in {lost.title} of {name_whole(lost.identity)} ({by})"
        return f"{model} is surely worse than {baseline} in {n[WORSE]:,} of {of}{most}; {rest}"


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
    changes = {(row[IDENTITY], row["metric"]): (row, _describe(row)) for row in rows}
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
            Compared(identity=name, cells={m: changes[name, m][1].difference for m in METRICS if (name, m) in changes})
            for name in facts.identities()
            if name in there
        ],
    )


def _sort_largest_first(changes: Iterable[tuple[Row, Change]], verdict: str) -> list[Change]:
    found = [
        (is_weak(row["difference_low"], row["difference_high"]), -own.size, own.identity, own.metric, own)
        for row, own in changes
        if row["verdict"] == verdict
    ]
    return [own for *_, own in sorted(found, key=lambda one: one[:-1])]


def _describe(row: Row) -> Change:
    signed = row["metric"] in SUITE_GAPS
    return Change(
        identity=row[IDENTITY],
        metric=row["metric"],
        value=show_number(row["value"], signed=signed),
        baseline=show_number(row["baseline_value"], signed=signed),
        difference=_cell(row, signed),
        p=show_p(row["p_adjusted"]),
    )


def _cell(row: Row, signed: bool) -> Cell:
    """Return a difference with its verdict, which a hover explains."""
    if row["difference"] is None:
        return Cell(text="–", note="no rows in a cell", weak=True)
    verdict, after = row["verdict"], (show_number(row[name], signed=signed) for name in ("value", "baseline_value"))
    rows = f"{show_count(row['n_low'])} and {show_count(row['n_high'])} rows"
    weak = verdict == INSUFFICIENT
    evidence = "too few rows to tell" if weak else f"adjusted p {show_p(row['p_adjusted'])}"
    return Cell(
        text=_MARKS.get(verdict, "") + show_number(row["difference"], signed=True),
        interval=show_interval(row["difference_low"], row["difference_high"], signed=True),
        shade=verdict if verdict in _MARKS else "",
        value=row["difference"],
        note=f"{' after '.join(after)}, {evidence}, {rows}",
        weak=weak,
    )


def name_whole(identity: str) -> str:
    """Name an identity, or all rows."""
    return "all rows" if identity == OVERALL else show_name(identity)
