"""The part ``[compare]`` of a configuration: which models are compared with which, and how variances are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from biasspark.config import kinds
from biasspark.config.declaration import OR_REMOVE, REQUIRED, Section, Spot, setting
from biasspark.text import list_choices

JACKKNIFE = "jackknife"
COMPARE_METHODS = ("delong", JACKKNIFE)
FEWEST_GROUPS, GROUPS, MOST_GROUPS = 10, 100, 1000


@dataclass(frozen=True, kw_only=True)
class Compare(Section):
    """Which models are compared with a baseline."""

    baseline: str = setting(REQUIRED, kinds.string(), example="old")
    """The model to compare with: its values are subtracted."""
    models: tuple[str, ...] = setting(
        (),
        kinds.list_of(nonempty=True),
        default_text="all but the baseline",
        fix="Remove the line to compare all with the baseline.",
    )
    """Models to compare with the baseline, each on the rows that both score; by default all others."""
    method: str = setting(COMPARE_METHODS[0], kinds.choice(*COMPARE_METHODS))
    """How variances are made: `delong`, from the placements of rows, or `jackknife`, by leaving out one group of rows
    after another."""
    groups: int | None = setting(
        None, kinds.whole(FEWEST_GROUPS, MOST_GROUPS), default_text=f"{GROUPS} with the jackknife", example=GROUPS
    )
    """How many groups the jackknife divides the rows into, by a hash. `delong` has none."""
    cluster: str | None = setting(None, kinds.string(), example="author")
    """A column, such as the author: the jackknife keeps rows with equal values in one group, and takes a row on which
    it is NULL or NaN for independent of all others; left out where rows are independent."""

    def compared(self, models: Sequence[str]) -> tuple[str, ...]:
        """Return the models that are compared with the baseline, of all that there are."""
        return self.models or tuple(name for name in models if name != self.baseline)

    def check(self, written: Spot) -> None:
        """Note the faults of keys that the method does not use."""
        for key in ("groups", "cluster"):
            if key in written and self.method != JACKKNIFE and written.sound("method", key):
                fix = ('Set method = "jackknife"', OR_REMOVE)
                written[key].refuse("Only the jackknife uses it.", fix)

    def resolve(self) -> Self:
        """Return the settings with the number of groups, which only the jackknife has."""
        return replace(self, groups=(self.groups or GROUPS) if self.method == JACKKNIFE else None)

    def check_models(self, written: Spot, models: Sequence[str]) -> None:
        """Note the faults of models that do not exist."""
        candidates = [name for name in models if name != self.baseline]
        if self.baseline and self.baseline not in models:
            rule = f"It must be one of the models {list_choices(models)}."
            written["baseline"].refuse(rule, "Name one of them.")
        if "models" not in written and not candidates:
            written.complain("there is one model. A comparison needs two.", "Add another model.")
        for name in [name for name in dict.fromkeys(self.models) if name not in candidates]:
            known = f"one of {list_choices(candidates)}" if candidates else "one of the models"
            rule = f"It must be {known}, and not the baseline."
            written.refuse_entry("models", name, rule, "Correct or remove it.")
