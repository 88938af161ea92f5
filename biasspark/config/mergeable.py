"""What two nights must agree in for their scores to be merged, and how they differ, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from biasspark.config.wording import show_key, show_value

_ABSENT = object()


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
