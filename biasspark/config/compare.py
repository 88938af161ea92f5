"""The part ``[compare]`` of a configuration: which models are held against which, and how variances are made."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from biasspark.config.faults import Faults
from biasspark.config.section import Section, keys_of
from biasspark.config.wording import list_choices, show_value

JACKKNIFE = "jackknife"
COMPARE_METHODS = ("delong", JACKKNIFE)
FEWEST_GROUPS, GROUPS, MOST_GROUPS = 10, 100, 1000


@dataclass(frozen=True, kw_only=True)
class Compare:
    """Which models are compared with a baseline.

    Attributes
    ----------
    baseline
        The model to compare with: its values are subtracted.
    models
        Models to compare with the baseline, each on the rows that both score; by default all others.
    method
        How variances are made: ``delong``, from the placements of rows, or ``jackknife``, by leaving out one group of
        rows after another.
    groups
        How many groups the jackknife divides the rows into, by a hash. ``delong`` has none.
    cluster
        A column, such as the author: the jackknife keeps rows with equal values in one group, and takes a row on which
        it is NULL or NaN for independent of all others; None where rows are independent.
    """

    baseline: str
    models: tuple[str, ...]
    method: str = COMPARE_METHODS[0]
    groups: int | None = None
    cluster: str | None = None


def read_compare(value: object, models: Collection[str], faults: Faults) -> Compare:
    """Read ``[compare]``; ``models`` are the names of those that there are."""
    section = Section("[compare]", value, keys_of(Compare), faults, 'baseline = "old"')
    baseline = section.text("baseline", "old")
    if baseline and models and baseline not in models:
        section.refuse("baseline", f"It must be one of the models {list_choices(tuple(models))}.", "Name one of them.")
    method = section.choice("method", COMPARE_METHODS)
    for key in ("groups", "cluster"):
        if key in section.table and method != JACKKNIFE and "method" not in section.refused:
            section.refuse(key, "Only the jackknife uses it.", 'Add method = "jackknife", or remove the line.')
    return Compare(
        baseline=baseline,
        models=_read_models(section, baseline, models),
        method=method,
        groups=section.whole("groups", GROUPS, MOST_GROUPS, FEWEST_GROUPS) if method == JACKKNIFE else None,
        cluster=section.optional_text("cluster", 'cluster = "author"'),
    )


def _read_models(section: Section, baseline: str, models: Collection[str]) -> tuple[str, ...]:
    others = tuple(name for name in models if name != baseline)
    if "models" not in section.table:
        if section.usable and models and not others:
            section.complain("", "there is one model. A comparison takes two. Add another to [models].")
        return others
    found = section.names("models")
    if not found and section.table["models"] == []:
        section.refuse("models", "At least one is required.", "Remove the line to compare all with the baseline.")
    for name in dict.fromkeys(found):
        if name not in others:
            rule = f"It must be one of {list_choices(others) or 'the models'} and not the baseline."
            section.complain(f"models: {show_value(name)}", f"{rule} Correct or remove it.")
    section.refuse_repeated("models", found)
    return found
