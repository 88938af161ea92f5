"""What comes of one rule of the gate on a model and a baseline: evidence by paired rows. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from biasspark.config import Rule, show_visibly
from biasspark.metrics.comparisons.differences import LEAST_GROUPS, LEAST_ROWS, Paired, weigh, weigh_margin
from biasspark.metrics.comparisons.paired import LEAST_GROUPS_OF_A_CELL
from biasspark.metrics.gate.alerts import Alert, Key, Ruling, list_missing, name_metric, settle


@dataclass(frozen=True, kw_only=True)
class Contender:
    """What a rule looks at: a metric of the model and of the baseline; None where the run has no such row."""

    key: Key
    paired: Paired | None = None


def judge_contenders(ruling: Ruling, level: float, contenders: Sequence[Contender]) -> list[Alert]:
    """Return the alerts of a rule, in the order of model, slice and identity.

    Parameters
    ----------
    ruling : Ruling
        The rule, which names a baseline.
    level : float
        Of the intervals.
    contenders : sequence of Contender
        What the run has that the rule selects, each once. What the rule names and the run lacks is added.

    Returns
    -------
    list of Alert
        As of `biasspark.metrics.gate.night_rules.judge_candidates`. P-values are adjusted over all rows of the rule.
    """
    absent = [Contender(key=key) for key in list_missing(ruling.rule, [own.key for own in contenders])]
    return settle(ruling, [_describe(ruling.rule, level, own) for own in (*contenders, *absent)])


def _describe(rule: Rule, level: float, contender: Contender) -> Alert:
    """Return the alert with its evidence, or with why there is none."""
    alert, paired = Alert.of(rule, contender.key), contender.paired
    if paired is None:
        return replace(alert, message=f"{name_metric(alert)}: the run has no such row.")
    weighed, p_values = weigh(paired, level), weigh_margin(paired, rule.kind, rule.bound)
    alert = replace(
        alert,
        value=paired.value,
        baseline_value=paired.baseline_value,
        change=weighed.difference,
        change_low=weighed.low,
        change_high=weighed.high,
    )
    if p_values is None:
        return replace(alert, message=_say_insufficient(alert, paired))
    return replace(alert, p_violation=p_values[0], p_compliance=p_values[1])


def _say_insufficient(alert: Alert, paired: Paired) -> str:
    what = name_metric(alert)
    if alert.value is None:
        return (
            f"{what} has no value: its cells have {paired.n_low:,} and {paired.n_high:,} rows that both models score."
        )
    values = (
        f"{what} is {alert.value:.4f}, that of {show_visibly(str(alert.baseline_model))} {alert.baseline_value:.4f}"
    )
    return f"{values}: {_say_cause(paired)}"


def _say_cause(paired: Paired) -> str:
    """Say why there is no evidence on a difference that has a value."""
    rows = f"{paired.n_low:,} and {paired.n_high:,} rows"
    if min(paired.n_low, paired.n_high) < LEAST_ROWS:
        return f"its cells have {rows}, and a verdict takes {LEAST_ROWS} in each."
    if paired.n_groups is not None and paired.n_groups < LEAST_GROUPS:
        return f"the {rows} of its cells are in {paired.n_groups} groups, and a verdict takes {LEAST_GROUPS}."
    if paired.difference_variance is None:
        return f"its cells have {rows}, those of one in fewer than {LEAST_GROUPS_OF_A_CELL} groups."
    return f"by the {rows} of its cells the difference has no variance, so nothing tells how sure it is."
