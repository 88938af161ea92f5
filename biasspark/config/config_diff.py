"""How two runs were measured differently: whether their scores may be merged, or their numbers compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from biasspark.text import show_key, show_value

_ABSENT = object()
_REQUIRED = {"corpus", "label", "models", "identities", "slices"}
_SOURCES = (("identities", "predicates"), ("identities", "terms"), ("identities", "terms", "list"))
"""Tables of identities by name: an identity that both runs have must be the same."""


def merge_rules(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a configuration that must agree for runs to be merged, of what ``Config.resolved`` gives.

    They are which rows count, what is positive, who is in which identity, and the slices. Models are distinguished by
    name, and crossed pairs are filtered by ``min_rows`` once runs are merged.
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


def list_differences(left: Mapping[str, Any], right: Mapping[str, Any], names: tuple[str, str]) -> list[str]:
    """Return how two sets of rules differ, a phrase a key: ``label.threshold is 0.5 in one, 0.8 in the other``.

    The names are how the two sides are called, with their preposition.
    """
    return [_describe(key, values, names) for key, values in _compare(left, right, ())]


@dataclass(frozen=True)
class ConfigDiff:
    """How two runs were measured differently, in phrases: overall, and for models and slices that both have."""

    overall: tuple[str, ...] = ()
    models: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    slices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def phrases(self) -> tuple[str, ...]:
        """All phrases."""
        by_name = (*self.models.values(), *self.slices.values())
        return (*self.overall, *(phrase for phrases in by_name for phrase in phrases))


def diff_config(left: Mapping[str, Any], right: Mapping[str, Any], names: tuple[str, str]) -> ConfigDiff:
    """Return how two runs were measured differently, by what ``Config.resolved`` gives of them.

    A model, slice or identity that only one of them has changes no value of the others, and is no difference; neither
    is what a ledger does not hold. ``names`` are those of `list_differences`.
    """
    if not all(side.keys() >= _REQUIRED for side in (left, right)):
        return ConfigDiff()
    overall = list_differences(_shared_rules(left), _shared_rules(right), names)
    for path in _SOURCES:
        overall += [phrase for phrases in _compare_entries(left, right, path, names).values() for phrase in phrases]
    models, slices = (_compare_entries(left, right, (part,), names) for part in ("models", "slices"))
    return ConfigDiff(tuple(overall), models, slices)


def _shared_rules(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rules that hold for all models, slices and identities, but not which of these there are."""
    rules = merge_rules(resolved)
    identities = {name: rules["identities"].get(name) for name in ("threshold", "range", "unannotated")}
    return {"corpus": rules["corpus"], "label": rules["label"], "identities": identities}


def _compare_entries(
    left: Mapping[str, Any], right: Mapping[str, Any], path: tuple[str, ...], names: tuple[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return by name how entries differ that both have in the table at a path; tables in it have paths of their own."""
    left_table, right_table = (reduce(lambda table, key: table.get(key) or {}, path, side) for side in (left, right))
    phrases = {
        name: tuple(
            _describe(key, values, names) for key, values in _compare(entry, right_table[name], (*path, show_key(name)))
        )
        for name, entry in left_table.items()
        if name in right_table and not isinstance(entry, Mapping)
    }
    return {name: differences for name, differences in phrases.items() if differences}


def _compare(left: Any, right: Any, path: tuple[str, ...]) -> Iterator[tuple[str, tuple[Any, Any]]]:
    if isinstance(left, Mapping) and isinstance(right, Mapping) and left.keys() | right.keys():
        if left.keys() == right.keys() and list(left) != list(right):
            yield ".".join(path), (list(left), list(right))
        for key in dict.fromkeys((*left, *right)):
            yield from _compare(left.get(key, _ABSENT), right.get(key, _ABSENT), (*path, show_key(key)))
    elif left != right:
        yield ".".join(path), (left, right)


def _describe(key: str, values: tuple[Any, Any], names: tuple[str, str]) -> str:
    left, right = values
    if isinstance(left, list) and isinstance(right, list) and sorted(map(str, left)) == sorted(map(str, right)):
        return f"{key} is in another order {names[0]} than {names[1]}"
    if isinstance(left, list) and isinstance(right, list):
        sides = ((names[0], left, right), (names[1], right, left))
        only = ((name, [entry for entry in side if entry not in other]) for name, side, other in sides)
        return f"{key} has " + " and ".join(f"{show_value(entries)} only {name}" for name, entries in only if entries)
    return f"{key} is {_show(left)} {names[0]}, {_show(right)} {names[1]}"


def _show(value: Any) -> str:
    return "not set" if value is _ABSENT or value is None else show_value(value)
