"""Compare the configurations of two runs: whether their scores may be merged, or their numbers compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from biasspark.text import show_key, show_value

_REQUIRED = {"corpus", "label", "models", "identities", "slices"}
_SOURCES = (("identities", "predicates"), ("identities", "terms"), ("identities", "terms", "list"))
"""Tables of named identities. An identity that both runs have must be defined alike."""


def merge_rules(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a resolved configuration that must agree for runs to be merged.

    They define rows, label, identities and slices. Models are distinguished by name, and crossed pairs are filtered by
    ``min_rows`` after the merge.
    """
    identities = dict(resolved["identities"])
    identities["crossed"] = {"pairs": identities["crossed"]["pairs"]}
    corpus = resolved["corpus"]
    return {
        "corpus": {"filter": corpus.get("filter"), "rejects_duplicates": corpus["duplicates"] == "reject"},
        "label": resolved["label"],
        "identities": identities,
        "slices": dict(sorted(resolved["slices"].items())),
    }


def list_differences(left: Any, right: Any, names: tuple[str, str], path: tuple[str, ...] = ()) -> list[str]:
    """List the differences, one phrase per key: ``label.threshold is 0.5 in one, 0.8 in the other``.

    `names` are phrases for the two sides, such as ``in one``. The keys are below that at `path`.
    """
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        phrases = []
        if left.keys() == right.keys() and list(left) != list(right):
            phrases.append(_describe(".".join(path), list(left), list(right), names))
        for key in dict.fromkeys((*left, *right)):
            phrases += list_differences(left.get(key), right.get(key), names, (*path, show_key(key)))
        return phrases
    return [] if left == right else [_describe(".".join(path), left, right, names)]


@dataclass(frozen=True)
class ConfigDiff:
    """The differences between two runs, in phrases: overall, and by model and slice that both have."""

    overall: tuple[str, ...] = ()
    models: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    slices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def phrases(self) -> tuple[str, ...]:
        """The phrases of all differences: overall, by model and by slice."""
        by_name = (*self.models.values(), *self.slices.values())
        return (*self.overall, *(phrase for phrases in by_name for phrase in phrases))


def diff_config(left: Mapping[str, Any], right: Mapping[str, Any], names: tuple[str, str]) -> ConfigDiff:
    """Compare two resolved configurations. For `names` see `list_differences`.

    A model, slice or identity that only one run has is not a difference: it changes no other value. Parts that a ledger
    does not store are not compared.
    """
    if not all(side.keys() >= _REQUIRED for side in (left, right)):
        return ConfigDiff()
    shared = []
    for rules in map(merge_rules, (left, right)):  # those that apply to all models, slices and identities
        identities = {name: rules["identities"].get(name) for name in ("threshold", "range", "unannotated")}
        shared.append({"corpus": rules["corpus"], "label": rules["label"], "identities": identities})
    overall = list_differences(shared[0], shared[1], names)
    left_kinds, right_kinds = ({"identities": _list_kinds(side["identities"])} for side in (left, right))
    compared = [_compare_entries(left_kinds, right_kinds, ("identities",), names)]
    compared += [_compare_entries(left, right, path, names) for path in _SOURCES]
    overall += [phrase for entries in compared for phrases in entries.values() for phrase in phrases]
    models, slices = (_compare_entries(left, right, (part,), names) for part in ("models", "slices"))
    return ConfigDiff(tuple(overall), models, slices)


def _list_kinds(identities: Mapping[str, Any]) -> dict[str, str]:
    """Return the kind of each identity that a configuration names."""
    named = {
        "a column": identities.get("columns"),
        "a predicate": identities.get("predicates"),
        "a term": (identities.get("terms") or {}).get("list"),
    }
    return {name: kind for kind, identity_names in named.items() for name in identity_names or ()}


def _compare_entries(
    left: Mapping[str, Any], right: Mapping[str, Any], path: tuple[str, ...], names: tuple[str, str]
) -> dict[str, tuple[str, ...]]:
    """List by name the differences of the entries of the table at `path` that both sides have. Skip nested tables."""
    left_table, right_table = (reduce(lambda table, key: table.get(key) or {}, path, side) for side in (left, right))
    return {
        name: tuple(phrases)
        for name, entry in left_table.items()
        if name in right_table and not isinstance(entry, Mapping)
        if (phrases := list_differences(entry, right_table[name], names, (*path, show_key(name))))
    }


def _describe(key: str, left: Any, right: Any, names: tuple[str, str]) -> str:
    if isinstance(left, list) and isinstance(right, list):
        if sorted(map(str, left)) == sorted(map(str, right)):
            return f"{key} is in another order {names[0]} than {names[1]}"
        sides = ((names[0], left, right), (names[1], right, left))
        only = ((name, [entry for entry in side if entry not in other]) for name, side, other in sides)
        return f"{key} has " + " and ".join(f"{show_value(entries)} only {name}" for name, entries in only if entries)
    shown = ("not set" if value is None else show_value(value) for value in (left, right))
    return f"{key} is " + ", ".join(f"{value} {name}" for value, name in zip(shown, names, strict=True))
