"""The part ``[gate]`` of a configuration: the rules that a night must not break."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from biasspark.columns import ALL_ROWS, FAIL, OVERALL_METRIC, PAIR, PASS, RATE_GAPS, RATES, SUITE_AUCS, SUITE_GAPS, WARN
from biasspark.config.compare import Compare
from biasspark.config.faults import Faults
from biasspark.config.identities import Identities
from biasspark.config.section import Section, find_repeated, guess, keys_of
from biasspark.config.wording import list_choices, quote, show_value

AUCS = (*SUITE_AUCS, OVERALL_METRIC)
SUITE_METRICS = (*AUCS, *SUITE_GAPS)
AT_THRESHOLDS = (*RATES, *RATE_GAPS)
METRICS = (*SUITE_METRICS, *AT_THRESHOLDS)
SEVERITIES = (FAIL, WARN)
COUNTS_AS = (PASS, WARN, FAIL)
"""What a check without enough evidence may count as, the default first."""
BOUNDS = ("min", "max", "max_abs", "max_drop", "max_rise")
CHANGES = ("max_drop", "max_rise")
MOST_RULES = 200
_SINGULAR = {"identity": "identities", "slice": "slices", "model": "models"}
GAPS = (*SUITE_GAPS, *RATE_GAPS)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule: a metric, where the rule applies, and one bound.

    Attributes
    ----------
    name
        What the alerts call it.
    metric
        A metric of the suite; ``auc``, the AUC of a whole slice; or a rate at a threshold, or the gap of such a rate.
    threshold
        The threshold of a rate or its gap. Other metrics have none.
    models
        Models the rule applies to.
    slices
        Slices the rule applies to.
    baseline
        The model to compare with, on the same rows; None where the rule looks at one model at a time.
    identities
        Identities the rule applies to; by default all configured ones.
    crossed
        Whether this default includes crossed pairs.
    min, max, max_abs
        Bounds of the value. ``max_abs`` bounds the size of a gap, whatever its sign.
    max_drop, max_rise
        Bounds of the change since the last accepted run, or from the baseline. ``max_drop``: how far an AUC or a rate
        may fall. ``max_rise``: how far a rate may rise, or a gap move away from 0.
    worst
        Whether there is also a verdict on the worst identity.
    severity
        What happens if the rule is broken: ``fail`` or ``warn``.
    insufficient
        What insufficient evidence counts as for this rule, in place of what ``[gate]`` says.
    """

    name: str
    metric: str
    threshold: float | None = None
    models: tuple[str, ...]
    slices: tuple[str, ...] = (ALL_ROWS,)
    baseline: str | None = None
    identities: tuple[str, ...] | None = None
    crossed: bool = False
    min: float | None = None
    max: float | None = None
    max_abs: float | None = None
    max_drop: float | None = None
    max_rise: float | None = None
    worst: bool = False
    severity: str = SEVERITIES[0]
    insufficient: str | None = None

    @property
    def kind(self) -> str:
        """Which of the bounds it has."""
        return next(kind for kind in BOUNDS if getattr(self, kind) is not None)

    @property
    def bound(self) -> float:
        """The bound."""
        return float(getattr(self, self.kind))

    @property
    def is_change(self) -> bool:
        """Whether the bound is one of a change: since the last accepted run, or from the baseline."""
        return self.kind in CHANGES

    @property
    def is_gap(self) -> bool:
        """Whether the metric is a gap, which has a sign."""
        return self.metric in GAPS

    @property
    def of_size(self) -> bool:
        """Whether the bound is on a change of the size of a gap, whatever its sign."""
        return self.is_change and self.is_gap


@dataclass(frozen=True, kw_only=True)
class Gate:
    """The rules that a night must keep.

    Attributes
    ----------
    alpha
        The level of significance, for p-values adjusted over the rows of a rule.
    paired
        Whether changes of AUCs since the last accepted run are judged on rows paired by their ids.
    insufficient
        What insufficient evidence counts as: ``pass`` lets the run be accepted, ``warn`` does so with a warning, and
        ``fail`` fails the gate. A rule may say otherwise.
    rule
        The rules.
    """

    alpha: float = 0.05
    paired: bool = False
    insufficient: str = COUNTS_AS[0]
    rule: tuple[Rule, ...] = ()

    @property
    def of_nights(self) -> tuple[Rule, ...]:
        """The rules on a night by itself and since the last accepted run: ``jobs/bias_metrics.py`` judges them."""
        return tuple(rule for rule in self.rule if rule.baseline is None)

    @property
    def of_changes(self) -> tuple[Rule, ...]:
        """The rules on a change of an AUC since the last accepted run, or of the size of its gap."""
        return tuple(rule for rule in self.of_nights if rule.is_change and rule.threshold is None)

    @property
    def of_rate_changes(self) -> tuple[Rule, ...]:
        """The rules on a change of a rate since the last accepted run, or of the size of its gap."""
        return tuple(rule for rule in self.of_rates if rule.is_change)

    @property
    def of_rates(self) -> tuple[Rule, ...]:
        """The rules on rates at thresholds and on their gaps."""
        return tuple(rule for rule in self.of_nights if rule.threshold is not None)

    @property
    def of_comparisons(self) -> tuple[Rule, ...]:
        """The rules on a model against a baseline: ``jobs/compare_models.py`` judges them."""
        return tuple(rule for rule in self.rule if rule.baseline is not None)


def read_gate(value: object, measures: Mapping[str, Any], faults: Faults) -> Gate | None:
    """Read ``[gate]``; ``measures`` are the parts that name models, identities, slices, and what is compared."""
    if value is None:
        return None
    section = Section("[gate]", value, keys_of(Gate), faults)
    alpha = section.number("alpha", Gate.alpha)
    if not 0 < alpha < 0.5:
        section.refuse("alpha", "It must lie between 0 and 0.5, both excluded.", "Write, for example, alpha = 0.05.")
    given = section.table.get("rule", [])
    if section.usable and not given:
        section.complain("", "there is no rule. At least one is required. Write, for example, [[gate.rule]] below it.")
    entries = given if isinstance(given, list | tuple) else [given]
    if len(entries) > MOST_RULES:
        section.complain(
            "", f"{len(entries)} rules. At most {MOST_RULES} are allowed. Let one rule cover more identities."
        )
    rules = [_read_rule(entry, place, measures, faults) for place, entry in enumerate(entries, 1)]
    for name in find_repeated([rule.name for rule in rules if rule.name]):
        section.complain("", f"two rules are named {quote(name)}. Alerts tell rules by name. Rename one.")
    gate = Gate(
        alpha=alpha,
        paired=section.flag("paired", Gate.paired),
        insufficient=section.choice("insufficient", COUNTS_AS),
        rule=tuple(rules),
    )
    if gate.paired:
        _check_paired(section, gate, measures)
    return gate


def _check_paired(section: Section, gate: Gate, measures: Mapping[str, Any]) -> None:
    """Refuse to pair nights where nothing would be paired, or where that tells what is withheld of groups."""
    on_aucs = [rule for rule in gate.of_nights if rule.threshold is None]
    changes = {kind for rule in on_aucs for kind in CHANGES if getattr(rule, kind) is not None}
    if gate.rule and not changes:
        rule = "No rule is on a change of an AUC since the last accepted run."
        section.refuse("paired", rule, "Remove the line, or write one with max_drop or max_rise.")
    if measures["ranking"].engine == "binned":
        what = 'the engine is "binned", and bins hold no single rows'
        section.complain("paired", f'{what}. Set [ranking] engine = "blocks", or remove the line.')
    if measures["privacy"]:
        section.note(
            "[privacy] and [gate] paired are both given. Pairs are counted without one group of rows after another, "
            "which reveals single rows. Remove one of them."
        )


def _read_rule(value: object, place: int, measures: Mapping[str, Any], faults: Faults) -> Rule:
    given = value.get("name") if isinstance(value, Mapping) else None
    where = f"[[gate.rule]] {quote(given) if isinstance(given, str) else place}"
    section = Section(where, value, (*keys_of(Rule), *_SINGULAR), faults, 'name = "bpsn", metric = "bpsn_auc"')
    metric = _read_metric(section)
    models, slices = tuple(measures["models"]), (ALL_ROWS, *measures["slices"])
    baseline, compare = section.optional_text("baseline", 'baseline = "old"'), measures["compare"]
    rule = Rule(
        name=section.text("name", "bpsn"),
        metric=metric,
        threshold=_read_threshold(section, metric, measures),
        models=_read_names(section, "model", models) or (compare.models if baseline and compare else models),
        slices=_read_names(section, "slice", slices) or Rule.slices,
        baseline=baseline,
        identities=_read_names(section, "identity"),
        crossed=section.flag("crossed", Rule.crossed),
        worst=section.flag("worst", Rule.worst),
        severity=section.choice("severity", SEVERITIES),
        insufficient=section.choice("insufficient", COUNTS_AS) if "insufficient" in section.table else None,
        **_read_bound(section, metric, baseline is not None),
    )
    _check_baseline(section, rule, measures)
    _check_identities(section, rule, measures)
    return rule


def _read_metric(section: Section) -> str:
    metric = section.text("metric", "bpsn_auc")
    if metric and metric not in METRICS:
        compared = "baseline" in section.table
        known = SUITE_METRICS if compared else METRICS
        rule, mend = f"It must be one of {list_choices(known)}.", guess(metric, known, "Correct it.")
        if metric == "pinned_auc":
            verb = "compared" if compared else "judged by the gate"
            rule, mend = f"Pinned AUC is not {verb}. {rule}", "Name one of them."
        section.refuse("metric", rule, mend)
    return metric


def _read_threshold(section: Section, metric: str, measures: Mapping[str, Any]) -> float | None:
    """Read at which of the thresholds a rate or its gap is looked at; None of another metric."""
    if metric not in AT_THRESHOLDS:
        if "threshold" in section.table and metric in METRICS:
            section.refuse("threshold", f"{metric} has no threshold.", f"Remove it, or take {RATE_GAPS[1]}.")
        return None
    known = measures["thresholds"].at if measures["thresholds"] else ()
    threshold = _read_number(section, "threshold", known[0] if known else 0.5)
    if "threshold" not in section.table:
        section.complain("threshold", f"missing. {metric} needs one. Write threshold = 0.5.")
    elif not section.faults.lie_in("thresholds") and threshold not in known:
        there = f"[thresholds] has {list_choices(known)}" if known else "[thresholds] is missing"
        section.refuse("threshold", f"{there}.", f"Write [thresholds] at = [{show_value(threshold)}] or the like.")
    return threshold


def _read_names(section: Section, singular: str, known: Collection[str] | None = None) -> tuple[str, ...] | None:
    """Read what a selector names, by its singular or plural key; None where it has neither."""
    plural = _SINGULAR[singular]
    if singular in section.table and plural in section.table:
        section.complain("", f"{singular} and {plural} are both given. They mean the same. Remove one.")
    if singular in section.table:
        name = section.optional_text(singular, f'{singular} = "..."')
        names: tuple[str, ...] = () if name is None else (name,)
    elif plural in section.table:
        names = section.names(plural)
        if section.table[plural] in ([], ()):
            section.refuse(plural, "At least one is required.", "Remove the line for the default.")
    else:
        return None
    section.refuse_repeated(plural, names)
    for name in dict.fromkeys(names):
        if known and name not in known:  # where there is no model at all, that is mended first
            what = f"there is no such {singular}. The {plural} are {list_choices(known)}. {guess(name, tuple(known))}"
            section.complain(f"{singular}: {quote(name)}", what)
    return names


def _read_bound(section: Section, metric: str, compared: bool) -> dict[str, float]:
    """Read the one bound of a rule, and whether it is one that the rule may have."""
    given = [kind for kind in BOUNDS if kind in section.table]
    wrong = {kind: fault for kind in BOUNDS if (fault := _find_wrong_bound(metric, kind, compared))}
    if section.usable and len(given) != 1:
        _refuse_number_of_bounds(section, given, [kind for kind in BOUNDS if kind not in wrong], metric)
    found = {kind: _read_number(section, kind, 0.1) for kind in given}
    for kind, bound in found.items():
        if kind in wrong:
            if len(given) == 1:
                section.refuse(kind, *wrong[kind])
            continue
        low, high = _find_span(metric, kind)
        ends = "the lower end included" if kind in CHANGES else "both excluded"
        if not (low < bound < high or (kind in CHANGES and bound == low)):
            rule = f"It must lie between {show_value(low)} and {show_value(high)}, {ends}."
            section.refuse(kind, rule, "At the ends every value would pass, or none. Correct it.")
    return found


def _refuse_number_of_bounds(section: Section, given: Sequence[str], known: Sequence[str], metric: str) -> None:
    """Refuse several bounds, or none, naming those that the rule may have."""
    listed = " or ".join(filter(None, (", ".join(known[:-1]), known[-1])))
    example = "min = 0.8" if "min" in known and metric not in GAPS else f"{known[-1]} = 0.1"
    what = f"{' and '.join(given)} are given" if given else "there is no bound"
    mend = "Write one, or split the rule." if given else f"Write, for example, {example}."
    section.complain("", f"{what}. A rule has exactly one bound: {listed}. {mend}")


def _read_number(section: Section, key: str, example: float) -> float:
    """Read a number that has no default; where it is none, the example takes its place and a fault says so."""
    found = section.optional_number(key, f"Write, for example, {key} = {show_value(example)}.")
    return example if found is None else found


def _find_span(metric: str, kind: str) -> tuple[float, float]:
    """Return between what a bound of this kind must lie."""
    widest = 0.5 if metric in SUITE_GAPS else 1.0
    return (-widest if metric in GAPS and kind in ("min", "max") else 0.0), widest


def _find_wrong_bound(metric: str, kind: str, compared: bool) -> tuple[str, str] | None:
    """Say why a rule cannot have a bound of this kind, and which is meant; None where it may have it."""
    if compared and kind not in CHANGES and metric not in AT_THRESHOLDS:
        right = "max_rise" if metric in SUITE_GAPS else "max_drop"
        rule = "A rule with a baseline bounds how much worse a model is than it."
        return rule, f"Write {right} in its place, or remove baseline."
    meant: dict[str, str] = {}  # of an unknown metric, which is mended first
    if metric in GAPS:
        meant = {"max_drop": "max_rise"}
    elif metric in METRICS:
        meant = {"max_abs": "max"} | ({} if metric in RATES else {"max_rise": "max_drop"})
    return (f"{metric} cannot have this bound.", f"Write {meant[kind]} in its place.") if kind in meant else None


def _check_baseline(section: Section, rule: Rule, measures: Mapping[str, Any]) -> None:
    """Refuse a baseline that ``[compare]`` does not hold the models against."""
    name, compare, models = rule.baseline, measures["compare"], tuple(measures["models"])
    if name is None:
        return
    if rule.metric in AT_THRESHOLDS:
        what = "jobs/compare_models.py compares AUCs and their gaps alone. Remove it, or take another metric."
        section.complain("baseline", what)
        return
    if not models:
        return  # which is mended first
    if name not in models:
        what = f"there is no such model. The models are {list_choices(models)}. {guess(name, models)}"
        section.complain(f"baseline: {quote(name)}", what)
    elif {"model", "models"} & set(section.table) and name in rule.models:
        what = "it is also the model. A model is compared with a different one. Name another."
        section.complain(f"baseline: {quote(name)}", what)
    elif compare is None:
        example = f"[compare] baseline = {quote(name)}"
        what = f"[compare] is missing. jobs/compare_models.py judges the rule by it. Write, for example, {example}."
        section.complain("baseline", what)
    elif not section.faults.lie_in("compare"):
        _check_compared(section, rule, compare)


def _check_compared(section: Section, rule: Rule, compare: Compare) -> None:
    """Refuse what ``[compare]`` does not compare: one fault for the baseline, or one for all models."""
    if rule.baseline != compare.baseline:
        right = f"baseline = {quote(compare.baseline)}"
        what = f"baseline = {show_value(rule.baseline)}, but [compare] baseline is {quote(compare.baseline)}"
        section.complain("", f"{what}. Write {right}, or change [compare].")
    elif others := [model for model in rule.models if model not in compare.models]:
        what = f"[compare] compares {list_choices(compare.models)} with {quote(compare.baseline)}, and nothing else"
        section.complain(f"models: {list_choices(others)}", f"{what}. Name what it compares, or change [compare].")


def _check_identities(section: Section, rule: Rule, measures: Mapping[str, Any]) -> None:
    """Refuse identities that nothing in ``[identities]`` can give, and selectors that mean nothing."""
    given = {key for key, value in section.table.items() if value is not False}
    asked = {"identity", "identities", "crossed", "worst"} & given
    if rule.metric == OVERALL_METRIC and asked:
        section.complain(
            " and ".join(sorted(asked)), "auc is the AUC of a whole slice. Remove it, or take another metric."
        )
        return
    if section.faults.lie_in("identities"):
        return  # why a name is unknown, and mended first
    for name in rule.identities or ():
        if what := _say_unknown(name, measures["identities"]):
            section.complain(f"identity: {quote(name)}", what)


def _say_unknown(name: str, identities: Identities) -> str:
    """Say why nothing gives an identity, or a pair of that name; nothing where it may be there."""
    both = identities.list_sides(name)
    if identities.can_give(name) or any(identities.may_precede(*sides) for sides in both):
        return ""
    if both:
        one, other = both[0]
        if one == other:
            return f"a pair joins two different identities. Write {quote(one)}, or name another one."
        return f"a pair is named in the order of [identities]. Write {quote(f'{other}{PAIR}{one}')}."
    known = identities.shown_names
    return f"nothing in [identities] gives it. There is {', '.join(known) or 'none'}. {guess(name, known)}"
