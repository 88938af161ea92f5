"""What comes of one rule of the gate on a night: values and changes, and the evidence of each. No Spark.

A metric is an AUC, a rate at a threshold, or a gap of either. Where an AUC is only known between bounds, both p-values
are the largest that the bounds allow: what they leave open is no evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from biasspark.arrays import Flags, Floats
from biasspark.config import Rule
from biasspark.metrics.comparisons.differences import Paired, weigh, weigh_margin
from biasspark.metrics.evidence import (
    Aucs,
    Bounds,
    Estimates,
    compare_with_baseline,
    compare_with_bound,
    list_cases,
    weakest,
)
from biasspark.metrics.gate.alerts import Alert, Key, Ruling, list_missing, name_metric, settle
from biasspark.metrics.rates import RateGaps, Rates

_BOUNDED = ("at_least", "at_most", "variance_at_least", "variance_at_most")


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The AUC of two cells, a rate or a gap of rates in one night, with its interval; None where there is none.

    ``decisions`` is what a rate or its gap comes of: rows that are counted, of how many, in the subgroup and, of a gap,
    in the background. Those of an AUC are empty.
    """

    value: float | None = None
    variance: float | None = None
    n_low: int | None = None
    n_high: int | None = None
    low: float | None = None
    high: float | None = None
    by_logit: bool = False
    joined: bool = False
    at_least: float | None = None
    at_most: float | None = None
    variance_at_least: float | None = None
    variance_at_most: float | None = None
    decisions: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """What a rule looks at: a pair now, and in the run to compare with, if there is one that has an interval of it.

    ``paired`` is both values with variances by the rows of the same ids, None where these are not known. ``found`` is
    false where tonight has no row.
    """

    key: Key
    reason: str | None = None
    now: Pair = Pair()
    before: Pair = Pair()
    before_run_id: str | None = None
    paired: Paired | None = None
    found: bool = True


class _Ends(NamedTuple):
    """A value or the size of a gap with its interval, around what it may be."""

    low: float | None
    lowest: float
    value: float
    highest: float
    high: float | None

    @property
    def negated(self) -> _Ends:
        """The same with the sign turned."""
        return _Ends(_negate(self.high), -self.highest, -self.value, -self.lowest, _negate(self.low))

    @property
    def clipped(self) -> _Ends:
        """The same of a size, which is not below 0."""
        return self._replace(low=None if self.low is None else max(self.low, 0.0), lowest=max(self.lowest, 0.0))


def judge_candidates(ruling: Ruling, candidates: Sequence[Candidate]) -> list[Alert]:
    """Return the alerts of a rule, in the order of model, slice and identity.

    Parameters
    ----------
    ruling : Ruling
        The rule.
    candidates : sequence of Candidate
        What tonight has that the rule selects, each once. What the rule names and tonight lacks is added.

    Returns
    -------
    list of Alert
        One a candidate. A rule on the worst identity has one more for each (model, slice), of ``(overall)``: it fails
        where an identity fails, and passes where every one passes. No identity is chosen by its value, so that no
        estimate is the lowest of many.
    """
    missing = list_missing(ruling.rule, [row.key for row in candidates])
    rows = [*candidates, *(Candidate(key=key, found=False) for key in missing)]
    added = zip(rows, *_weigh(ruling.rule, rows), strict=True)
    return settle(ruling, [_describe_weighed(ruling, row, p_values) for row, *p_values in added])


def _weigh(rule: Rule, rows: Sequence[Candidate]) -> tuple[list[float | None], list[float | None]]:
    """Return the p-values of violation and of compliance of every row, None where there is no evidence."""
    now, in_doubt = _estimate(rule, [row.now for row in rows])
    if rule.is_change:
        before, before_in_doubt = _estimate(rule, [row.before for row in rows])
        in_doubt = in_doubt | before_in_doubt
        nights = product(now, before)
        found = [compare_with_baseline(*both, rule.kind, rule.bound, of_size=rule.of_size) for both in nights]
    else:
        offset = 0.5 if rule.is_gap and rule.kind != "max_abs" else 0.0
        found = [compare_with_bound(case, rule.kind, rule.bound + offset) for case in now]
    weighed = (weakest(p_values, in_doubt) for p_values in zip(*found, strict=True))
    violation, compliance = ([None if np.isnan(p) else float(p) for p in values] for values in weighed)
    return violation, compliance


def _estimate(rule: Rule, pairs: Sequence[Pair]) -> tuple[Sequence[Estimates], Flags]:
    """Return the estimates that a rule is on, as cases of what is only known between bounds, and where it is."""
    if rule.threshold is None:
        aucs, bounds = _aucs(pairs)
        return list_cases(aucs, bounds), bounds.in_doubt
    sides = 2 if rule.is_gap else 1
    decisions = np.array([pair.decisions or (np.nan,) * (2 * sides) for pair in pairs], float)
    own, *background = (Rates(*both) for both in decisions.reshape(-1, sides, 2).transpose(1, 2, 0))
    return [RateGaps(own, *background) if background else own], np.zeros(len(pairs), bool)


def _aucs(pairs: Sequence[Pair]) -> tuple[Aucs, Bounds]:
    def numbers(name: str) -> Floats:
        found = (getattr(pair, name) for pair in pairs)
        return np.array([np.nan if number is None else float(number) for number in found])

    auc, variance, n_low, n_high = (numbers(name) for name in ("value", "variance", "n_low", "n_high"))
    lowest, highest, *variances = map(numbers, _BOUNDED)
    in_doubt = (lowest < highest) | (variances[0] < variances[1])
    by_logit, joined = (np.array([getattr(pair, name) for pair in pairs], bool) for name in ("by_logit", "joined"))
    return Aucs(auc, variance, n_low, n_high, by_logit), Bounds(lowest, highest, variances[1], in_doubt, joined)


def _offset(rule: Rule) -> float:
    """Return what a metric is less than the value of its pair, which of a gap of scores is an AUC."""
    return 0.5 if rule.is_gap and rule.threshold is None else 0.0


def _describe_weighed(ruling: Ruling, row: Candidate, added: Sequence[float | None]) -> Alert:
    """Return the alert with its evidence, or with why there is none.

    Parameters
    ----------
    added
        Both p-values, of a change by the variances of both nights, added. Where the nights are paired, those count.
    """
    (violation, compliance), rule, alert = added, ruling.rule, _describe(ruling.rule, row)
    alert = replace(alert, p_violation=violation, p_compliance=compliance)
    if violation is None:
        return replace(alert, message=_say_missing(alert, row))
    if not rule.is_change:
        return alert
    by_id = {} if row.paired is None else _weigh_by_id(ruling, row, row.paired)
    return replace(alert, paired=bool(by_id), **by_id)


def _weigh_by_id(ruling: Ruling, row: Candidate, paired: Paired) -> dict[str, Any]:
    """Return the change with its interval and p-values by the same groups of ids; nothing where these are too few.

    The size of a gap rises by no more than all of it. So where gaps of two signs are possible, the size by itself is
    the evidence that the bound is kept.
    """
    rule, alone, found = ruling.rule, None, weigh(paired, ruling.level)
    if rule.of_size:
        alone = float(compare_with_bound(_aucs([row.now])[0], "max_abs", rule.bound)[1][0])
    p_values = weigh_margin(paired, rule.kind, rule.bound, alone)
    if p_values is None:
        return {}
    exact = dict.fromkeys(("change", "change_at_least", "change_at_most"), found.difference)
    ends = {"change_low": found.low, "change_high": found.high}
    return exact | ends | {"p_violation": p_values[0], "p_compliance": p_values[1]}


def _describe(rule: Rule, row: Candidate) -> Alert:
    """Return the alert with what is compared, before it is decided."""
    offset = _offset(rule)
    value, low, high = (_less(end, offset) for end in (row.now.value, row.now.low, row.now.high))
    alert = Alert.of(
        rule,
        row.key,
        value=value,
        value_low=low,
        value_high=high,
        value_at_least=_less(row.now.at_least, offset),
        value_at_most=_less(row.now.at_most, offset),
    )
    if not rule.is_change or row.before.value is None:
        return alert
    return replace(
        alert,
        baseline_run_id=row.before_run_id,
        baseline_value=row.before.value - offset,
        baseline_value_at_least=_less(row.before.at_least, offset),
        baseline_value_at_most=_less(row.before.at_most, offset),
        **_measure_change(rule, row),
    )


def _less(value: float | None, offset: float) -> float | None:
    return None if value is None else value - offset


def _measure_change(rule: Rule, row: Candidate) -> dict[str, Any]:
    """Return the change of a value, or of the size of a gap, its bounds, and the interval that its p-values invert."""
    if row.now.value is None or row.before.value is None:
        return {}
    now, before = _ends(rule, row.now), _ends(rule, row.before)
    found: dict[str, Any] = {
        "change": now.value - before.value,
        "change_at_least": now.lowest - before.highest,
        "change_at_most": now.highest - before.lowest,
    }
    if now.low is None or now.high is None or before.low is None or before.high is None:
        return found
    nows, befores = ((now, _ends(rule, row.now, turned=True)), (before, _ends(rule, row.before, turned=True)))
    return found | {
        "change_low": min(_lower_end(now, own) for own in befores),
        "change_high": max(_upper_end(own, before, may_be_0=rule.of_size and before.low == 0) for own in nows),
    }


def _lower_end(now: _Ends, before: _Ends) -> float:
    assert now.low is not None
    assert before.high is not None
    return float(now.lowest - before.highest - np.hypot(now.lowest - now.low, before.high - before.highest))


def _upper_end(now: _Ends, before: _Ends, *, may_be_0: bool) -> float:
    assert now.high is not None
    assert before.low is not None
    up = now.high - now.highest, before.lowest - before.low
    return float(now.highest - before.lowest + (sum(up) if may_be_0 else np.hypot(*up)))


def _ends(rule: Rule, pair: Pair, *, turned: bool = False) -> _Ends:
    """Return the ends of a value, or of the size of a gap; `turned`, of a gap to the other side of 0."""
    assert pair.value is not None
    lowest = pair.value if pair.at_least is None else pair.at_least
    highest = pair.value if pair.at_most is None else pair.at_most
    offset = _offset(rule)
    low, high = _less(pair.low, offset), _less(pair.high, offset)
    ends = _Ends(low, lowest - offset, pair.value - offset, highest - offset, high)
    if not rule.of_size:
        return ends
    size = ends if ends.value >= 0 else ends.negated
    return size.negated if turned else size.clipped


def _negate(end: float | None) -> float | None:
    return None if end is None else -end


def _say_missing(alert: Alert, row: Candidate) -> str:
    """Say why there is no evidence."""
    what = name_metric(alert)
    if not row.found:
        return f"{what}: the run has no such row."
    if alert.value is None:
        return f"{what} has no value: {row.reason}."
    if alert.value_low is None:
        return f"{what} is {alert.value:.4f}, without an interval: a cell has fewer than two rows."
    return f"{what} is {alert.value:.4f}: no accepted run before this one has an interval of it to compare with."
