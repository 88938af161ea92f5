"""The part ``[gate]`` of a configuration: the rules that a run must keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from biasspark.columns import ALL_ROWS, FAIL, OVERALL_METRIC, PASS, RATE_GAPS, RATES, SUITE_AUCS, SUITE_GAPS, WARN
from biasspark.config import kinds
from biasspark.config.declaration import REQUIRED, Kind, Section, Spot, setting, unknown, write
from biasspark.config.identities import Identities
from biasspark.config.optional_metrics import SUITE_METRICS, Compare
from biasspark.text import list_choices, quote

AUCS = (*SUITE_AUCS, OVERALL_METRIC)
AT_THRESHOLDS = (*RATES, *RATE_GAPS)
METRICS = (*SUITE_METRICS, *AT_THRESHOLDS)
GAPS = (*SUITE_GAPS, *RATE_GAPS)
COUNTS_AS = (PASS, WARN, FAIL)
"""The outcomes that a check without enough evidence may count as, the default first."""
BOUNDS = ("min", "max", "max_abs", "max_drop", "max_rise")
CHANGES = ("max_drop", "max_rise")
_SINGULAR = {"models": "model", "slices": "slice", "identities": "identity"}


def _read_metric(spot: Spot) -> Any:
    if spot.value == "pinned_auc":
        return spot.refuse("The gate does not judge pinned AUC.", f"Name one of {list_choices(METRICS)}.")
    return kinds.choice(*METRICS).read(spot)


@dataclass(frozen=True, kw_only=True)
class Rule(Section):
    """One rule: a metric, where the rule applies, and one bound."""

    name: str = setting(REQUIRED, kinds.string(), example="bpsn")
    """The name of the rule in alerts."""
    metric: str = setting(REQUIRED, Kind("text", _read_metric, ""), example="bpsn_auc")
    """A metric of the suite; `auc`, the AUC of a whole slice; or a rate at a threshold, or the gap of such a rate."""
    threshold: float | None = setting(None, kinds.number(), example=0.5)
    """The threshold of a rate or its gap. Other metrics have none."""
    models: tuple[str, ...] = setting((), kinds.list_of(nonempty=True), default_text="every one", single="model")
    """Models the rule applies to."""
    slices: tuple[str, ...] = setting((ALL_ROWS,), kinds.list_of(nonempty=True), single="slice")
    """Slices the rule applies to."""
    baseline: str | None = setting(None, kinds.string(), example="old")
    """The model to compare with, on the same rows. Leave it out in rules on a single model."""
    identities: tuple[str, ...] | None = setting(
        None, kinds.list_of(nonempty=True), default_text="every one", single="identity"
    )
    """Identities the rule applies to; by default all configured ones."""
    crossed: bool = setting(False, kinds.flag())
    """Whether this default includes crossed pairs."""
    min: float | None = setting(None, kinds.number(), example=0.1)
    """Bounds of the value. `max_abs` bounds the size of a gap, whatever its sign."""
    max: float | None = setting(None, kinds.number(), example=0.1)
    """See `min`."""
    max_abs: float | None = setting(None, kinds.number(), example=0.1)
    """See `min`."""
    max_drop: float | None = setting(None, kinds.number(), example=0.1)
    """Bounds of the change since the last accepted run, or from the baseline. `max_drop`: how far an AUC or a rate may
    fall. `max_rise`: how far a rate may rise, or a gap move away from 0."""
    max_rise: float | None = setting(None, kinds.number(), example=0.1)
    """See `max_drop`."""
    worst: bool = setting(False, kinds.flag())
    """Whether the worst identity is also judged."""
    severity: str = setting(FAIL, kinds.choice(FAIL, WARN))
    """The outcome of a broken rule: `fail` or `warn`."""
    insufficient: str | None = setting(None, kinds.choice(*COUNTS_AS), default_text="that of `[gate]`")
    """What insufficient evidence counts as for this rule, in place of that of `[gate]`."""

    @property
    def kind(self) -> str:
        """The kind of its bound."""
        return next(kind for kind in BOUNDS if getattr(self, kind) is not None)

    @property
    def bound(self) -> float:
        """The bound."""
        return float(getattr(self, self.kind))

    @property
    def is_change(self) -> bool:
        """Whether it bounds a change, since the last accepted run or from the baseline."""
        return any(getattr(self, kind) is not None for kind in CHANGES)

    @property
    def is_gap(self) -> bool:
        """Whether the metric is a gap, which has a sign."""
        return self.metric in GAPS

    @property
    def is_size_change(self) -> bool:
        """Whether it bounds a change of the absolute size of a gap."""
        return self.is_change and self.is_gap

    @property
    def allowed_bounds(self) -> list[str]:
        """The bounds that this metric may have. An unknown metric may have all."""
        forbidden = {"max_abs", "max_rise"} if self.metric in AUCS else {"max_abs"} if self.metric in RATES else set()
        forbidden |= {"max_drop"} if self.is_gap else set()
        forbidden |= set(BOUNDS) - set(CHANGES) if self._is_compared else set()
        return [bound for bound in BOUNDS if bound not in forbidden]

    @property
    def _is_compared(self) -> bool:
        return self.baseline is not None and self.metric not in AT_THRESHOLDS

    def check(self, written: Spot) -> None:
        """Report faults of the threshold, the selectors and the bound."""
        if "threshold" in written and self.metric in SUITE_METRICS:
            written["threshold"].refuse(f"{self.metric} has no threshold.", f"Remove it, or take {RATE_GAPS[1]}.")
        if "threshold" not in written and self.metric in AT_THRESHOLDS:
            written["threshold"].complain(f"missing. {self.metric} needs one.", written.write(threshold=0.5))
        keys = ("identity", "identities", "crossed", "worst")
        if self.metric == OVERALL_METRIC and (given := [key for key in keys if written.keys.get(key)]):
            what = f"it has {' and '.join(given)}, but auc is the AUC of a whole slice."
            written.complain(what, "Remove that, or take another metric.")
        bounds, allowed = [kind for kind in BOUNDS if kind in written], self.allowed_bounds
        if len(bounds) == 1 and bounds[0] in allowed:
            self._check_range(bounds[0], written)
        else:
            what = f"it has {' and '.join(bounds)}" if bounds else "there is no bound"
            subject = "A rule with a baseline" if self._is_compared else "A rule on this metric"
            example = {"min": 0.8} if "min" in allowed and not self.is_gap else {allowed[-1]: 0.1}
            fix = "Write one of these alone." if bounds else written.write(**example)
            written.complain(f"{what}. {subject} has exactly one bound: {' or '.join(allowed)}.", fix)

    def _check_range(self, kind: str, written: Spot) -> None:
        high = 0.5 if self.metric in SUITE_GAPS else 1.0
        low = -high if self.is_gap and kind in ("min", "max") else 0.0
        bound = getattr(self, kind)
        if written.sound(kind) and not (low < bound < high or (kind in CHANGES and bound == low)):
            excluded = f"{high} excluded" if kind in CHANGES else "both excluded"
            rule = f"It must lie between {low} and {high}, {excluded}. Otherwise every value would pass, or none."
            written[kind].refuse(rule, "Correct it.")

    def check_names(
        self, written: Spot, models: Sequence[str], slices: Sequence[str], identities: Identities | None
    ) -> None:
        """Report models, slices and identities that do not exist.

        Without any model, all names of models are accepted. `identities` is None if they have faults themselves.
        """
        for key, known in (("models", models), ("slices", (ALL_ROWS, *slices))):
            for name in [name for name in dict.fromkeys(getattr(self, key)) if known and name not in known]:
                written.refuse_entry(key, name, *unknown(_SINGULAR[key], name, known), _SINGULAR[key])
        if identities is not None and self.metric != OVERALL_METRIC:
            if not identities.sources:
                written["metric"].refuse("[identities] is missing, and this metric needs them.", "Name some.")
                return
            for name in dict.fromkeys(self.identities or ()):
                if explained := identities.explain_name(name):
                    written.refuse_entry("identities", name, *explained, _SINGULAR["identities"])

    def check_baseline(self, written: Spot, models: Sequence[str], compare: Compare | None, is_sound: bool) -> None:
        """Report a baseline with which ``[compare]``, if it has no fault, does not compare the models."""
        spot = written["baseline"]
        if self.metric in AT_THRESHOLDS:
            rule = "biasspark compare compares AUCs and their gaps only."
            spot.refuse(rule, "Remove it, or take another metric.")
        elif self.baseline not in models:
            spot.refuse(*unknown("model", self.baseline, models, "Name one of them."))
        elif self.baseline in self.models:
            spot.refuse("It is also the model. A model is compared with a different one.", "Name another.")
        elif is_sound and not (
            compare and self.baseline == compare.baseline and {*self.models} <= {*compare.compared(models)}
        ):
            rule = "[compare] does not compare these models with it, and biasspark compare judges the rule by it."
            wanted = {"baseline": self.baseline} | ({"models": self.models} if self.models else {})
            spot.refuse(rule, write(("compare",), wanted))


@dataclass(frozen=True, kw_only=True)
class Gate(Section):
    """The rules that a run must keep."""

    alpha: float = setting(0.05, kinds.number(0, 0.5))
    """The level of significance, for p-values adjusted over the rows of a rule."""
    paired: bool = setting(False, kinds.flag())
    """Whether changes of AUCs since the last accepted run are judged on rows paired by their ids."""
    insufficient: str = setting(COUNTS_AS[0], kinds.choice(*COUNTS_AS))
    """What insufficient evidence counts as: `pass` lets the run be accepted, `warn` does so with a warning, and `fail`
    fails the gate. A rule may say otherwise."""
    rule: tuple[Rule, ...] = setting(
        (),
        kinds.tables(Rule, 200, "Let one rule cover more identities."),
        default_text="required",
        example={"name": "bpsn", "metric": "bpsn_auc"},
    )
    """The rules."""

    @property
    def run_rules(self) -> tuple[Rule, ...]:
        """The rules on a run and on changes since the last accepted run, judged by ``biasspark measure``."""
        return tuple(rule for rule in self.rule if rule.baseline is None)

    @property
    def change_rules(self) -> tuple[Rule, ...]:
        """The rules on a change of an AUC, or of the size of its gap, since the last accepted run."""
        return tuple(rule for rule in self.run_rules if rule.is_change and rule.threshold is None)

    @property
    def rate_change_rules(self) -> tuple[Rule, ...]:
        """The rules on a change of a rate, or of the size of its gap, since the last accepted run."""
        return tuple(rule for rule in self.run_rules if rule.is_change and rule.threshold is not None)

    @property
    def comparison_rules(self) -> tuple[Rule, ...]:
        """The rules on a model and a baseline, judged by ``biasspark compare``."""
        return tuple(rule for rule in self.rule if rule.baseline is not None)

    def check(self, written: Spot) -> None:
        """Report missing rules, repeated names, and pairing without a rule for it."""
        if not self.rule:
            written.complain("there is no rule. At least one is required.", "Write [[gate.rule]] below it.")
        counts = Counter(rule.name for rule in self.rule if rule.name)
        for name in [name for name, count in counts.items() if count > 1]:
            written.complain(f"two rules are named {quote(name)}. Alerts identify rules by name.", "Rename one.")
        if self.paired and self.rule and not self.change_rules:
            rule = "No rule bounds a change of an AUC since the last accepted run."
            written["paired"].refuse(rule, "Leave it out, or write a rule with max_drop or max_rise.")
