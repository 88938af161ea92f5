"""What two nights must agree in for their scores to be merged, or compared, and how they differ, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from biasspark.config.wording import show_key, show_value

_ABSENT = object()
_TOLD = {"corpus", "label", "models", "identities", "slices"}
_OF_IDENTITIES = (("identities", "predicates"), ("identities", "terms"), ("identities", "terms", "list"))
"""The tables of which what both have must agree."""


def merge_rules(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a configuration that must agree, of what ``Config.resolved`` gives.

    Which rows count, what is positive, who is in which identity, and the slices. Models are told apart by name, and
    crossed pairs are filtered by ``min_rows`` once nights are merged.
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


def list_differences(one: Mapping[str, Any], other: Mapping[str, Any], names: tuple[str, str]) -> list[str]:
    """Say where two sets of rules differ, a phrase for each key: ``label.threshold is 0.5 in one, 0.8 in the other``.

    Parameters
    ----------
    names
        How the two sides are called, with their preposition.
    """
    return [_describe(key, values, names) for key, values in _compare(one, other, ())]


@dataclass(frozen=True)
class Otherwise:
    """In what two runs were measured differently, in phrases: all that they have, or a model or a slice of both."""

    everywhere: tuple[str, ...] = ()
    models: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    slices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def phrases(self) -> tuple[str, ...]:
        """All of them."""
        by_name = (*self.models.values(), *self.slices.values())
        return (*self.everywhere, *(said for found in by_name for said in found))


def find_otherwise(one: Mapping[str, Any], other: Mapping[str, Any], names: tuple[str, str]) -> Otherwise:
    """Say in what two runs were measured differently, by what ``Config.resolved`` gives of them.

    A model, slice or identity that only one of them has changes no value of the others, and is no difference; neither
    is what a ledger does not say. ``names`` are those of `list_differences`.
    """
    if not all(own.keys() >= _TOLD for own in (one, other)):
        return Otherwise()
    ours, theirs = (_rules_of_all(own) for own in (one, other))
    everywhere = list_differences(ours, theirs, names)
    for path in _OF_IDENTITIES:
        everywhere += [said for found in _compare_shared(one, other, path, names).values() for said in found]
    models, slices = (_compare_shared(one, other, (part,), names) for part in ("models", "slices"))
    return Otherwise(tuple(everywhere), models, slices)


def _rules_of_all(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rules that hold of all models, slices and identities, but not which of these there are."""
    rules = merge_rules(resolved)
    identities = {name: rules["identities"].get(name) for name in ("threshold", "range", "unannotated")}
    return {"corpus": rules["corpus"], "label": rules["label"], "identities": identities}


def _compare_shared(
    one: Mapping[str, Any], other: Mapping[str, Any], path: tuple[str, ...], names: tuple[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return by name how the entries differ that both have in the table at a path; a table in it has its own path."""
    ours, theirs = (reduce(lambda table, key: table.get(key) or {}, path, own) for own in (one, other))
    found = {
        name: tuple(
            _describe(key, values, names) for key, values in _compare(ours[name], theirs[name], (*path, show_key(name)))
        )
        for name in ours
        if name in theirs and not isinstance(ours[name], Mapping)
    }
    return {name: phrases for name, phrases in found.items() if phrases}


def _compare(one: Any, other: Any, path: tuple[str, ...]) -> Iterator[tuple[str, tuple[Any, Any]]]:
    if isinstance(one, Mapping) and isinstance(other, Mapping) and one.keys() | other.keys():
        if one.keys() == other.keys() and list(one) != list(other):
            yield ".".join(path), (list(one), list(other))
        for key in dict.fromkeys((*one, *other)):
            yield from _compare(one.get(key, _ABSENT), other.get(key, _ABSENT), (*path, show_key(key)))
    elif one != other:
        yield ".".join(path), (one, other)


def _describe(key: str, values: tuple[Any, Any], names: tuple[str, str]) -> str:
    one, other = values
    if isinstance(one, list) and isinstance(other, list) and sorted(map(str, one)) == sorted(map(str, other)):
        return f"{key} is in another order {names[0]} than {names[1]}"
    if isinstance(one, list) and isinstance(other, list):
        alone = ((name, [entry for entry in own if entry not in others]) for name, own, others in _sides(values, names))
        return f"{key} has " + " and ".join(f"{show_value(found)} {name} alone" for name, found in alone if found)
    return f"{key} is {_show(one)} {names[0]}, {_show(other)} {names[1]}"


def _sides(values: tuple[Any, Any], names: tuple[str, str]) -> Iterator[tuple[str, list[Any], list[Any]]]:
    yield names[0], values[0], values[1]
    yield names[1], values[1], values[0]


def _show(value: Any) -> str:
    return "not set" if value is _ABSENT or value is None else show_value(value)
