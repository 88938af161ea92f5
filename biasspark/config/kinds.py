"""Kinds of values that a key of the configuration may hold: ``kinds.whole(1, 10)``."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections import Counter
from collections.abc import Mapping
from typing import Any

from biasspark.config.declaration import (
    CORRECT,
    Kind,
    Section,
    Spot,
    blank,
    broken_text_rule,
    guess,
    is_finite_number,
    is_number,
)
from biasspark.config.toml_file import locate
from biasspark.errors import ABSENT, Setting, Text, Value, Words
from biasspark.text import list_choices

MAX_WHOLE = 2**63 - 1


def string(*, multiline: bool = False, is_path: bool = False) -> Kind:
    """Nonempty text without control characters; if `multiline`, tabs and line ends are allowed."""

    def read(spot: Spot) -> Any:
        if rule := broken_text_rule(spot.value, multiline):
            return spot.refuse(rule)
        return locate(spot.value, spot.reader.base) if is_path else spot.value

    return Kind("text", read, "")


STRING = string()


def choice(*words: str) -> Kind:
    """One of several words."""

    def read(spot: Spot) -> Any:
        if isinstance(spot.value, str) and spot.value in words:
            return spot.value
        one_of = "one of " if len(words) > 1 else ""
        return spot.refuse(f"It must be {one_of}{list_choices(words)}.", guess(spot.value, words, spot.fix))

    return Kind(list_choices(words), read, "")


def flag() -> Kind:
    """A boolean."""

    def read(spot: Spot) -> Any:
        if isinstance(spot.value, bool):
            return spot.value
        is_word = isinstance(spot.value, str) and spot.value.lower() in ("true", "false")
        fix = ("Write ", Setting(spot.path, spot.value.lower() == "true"), ".") if is_word else spot.fix
        return spot.refuse_type(Words("true or false", "True or False"), fix)

    return Kind("true or false", read)


def whole(least: int = 0, most: int = MAX_WHOLE) -> Kind:
    """A whole number."""

    def read(spot: Spot) -> Any:
        if not is_number(spot.value):
            return spot.refuse_type("a whole number")
        if not isinstance(spot.value, numbers.Integral):
            return spot.refuse("It must be a whole number, without a decimal point.")
        if least <= int(spot.value) <= most:
            return int(spot.value)
        is_open = most == MAX_WHOLE and spot.value < least
        return spot.refuse(f"It must be {least} or more." if is_open else f"It must lie between {least} and {most}.")

    bounds = f" from {least} to {most}" if most < MAX_WHOLE else f", {least} or more" if least else ""
    return Kind(f"whole number{bounds}", read)


def number(low: float = -math.inf, high: float = math.inf, included: str = "") -> Kind:
    """A finite number between two ends. `included` names the ends that are allowed: "low", "high", "low high"."""
    ends = [end for name, end in (("low", low), ("high", high)) if name in included.split()]
    excluded = ", both excluded" if not ends else f", {high:g} excluded" if ends == [low] else ""

    def read(spot: Spot) -> Any:
        if not is_number(spot.value):
            return spot.refuse_type("a number")
        if not is_finite_number(spot.value):
            return spot.refuse("It must be finite.")
        if low < spot.value < high or spot.value in ends:
            return float(spot.value)
        return spot.refuse(f"It must lie between {low:g} and {high:g}{excluded}.")

    return Kind("number" if math.isinf(low) else f"number between {low:g} and {high:g}", read)


def span() -> Kind:
    """A closed interval: two finite numbers, the lower first."""

    def read(spot: Spot) -> Any:
        ends = spot.value if isinstance(spot.value, list | tuple) else ()
        if len(ends) == 2 and all(map(is_finite_number, ends)) and ends[0] < ends[1]:
            return float(ends[0]), float(ends[1])
        return spot.refuse("It must be a list of two finite numbers, the lower first.")

    return Kind("two numbers", read)


def list_of(entry: Kind = STRING, *, nonempty: bool = False) -> Kind:
    """A list of distinct entries, in order."""

    def read(spot: Spot) -> Any:
        if not isinstance(spot.value, list | tuple):
            is_text, is_numeric = entry.title == "text", entry.title.startswith("number")
            is_entry = (is_text and isinstance(spot.value, str)) or (is_numeric and is_finite_number(spot.value))
            entries = [part.strip(" []'\"") for part in spot.value.split(",")] if is_text and is_entry else [spot.value]
            fix = ("Write ", Setting(spot.path, entries), ".") if is_entry else spot.fix
            return spot.refuse_type("a list", fix)
        if nonempty and not spot.value:
            spot.refuse("At least one is required.")
        spots = []
        for number, value in enumerate(spot.value, 1):
            is_name = entry.title == "text" and is_number(value)  # of a column in pandas
            fix = ("Write ", Value(str(value)), ", or remove it.") if is_name else "Correct or remove it."
            spots.append(spot.within(number, value, fix))
        values = [(inner, value) for inner in spots if (value := entry.read(inner)) is not ABSENT]
        counts: Counter[Any] = Counter()
        for inner, value in values:
            counts[value] += 1
            if counts[value] == 2:
                inner.refuse("It is listed twice.", "Remove one.")
        return tuple(value for _, value in values)

    return Kind(f"list of {entry.title.replace('number', 'numbers')}", read, ())


def named(names: str, entry: Kind, values: str = "", *, nonempty: bool = False, most: float = math.inf) -> Kind:
    """A table of at most `most` keys that the user chooses. Messages call its keys `names` and its values `values`."""
    fix: Text = Words(f"Write {values} in quotes, or leave it out.", f"Write {values} as text.") if values else CORRECT

    def read(spot: Spot) -> Any:
        read_entries = {}
        given = spot.reader.mapping(spot)
        for name, value in (given or {}).items():
            inner = spot.within(name, value, fix)
            if rule := broken_text_rule(name):
                inner.complain((f"this is {names}. ", rule), "Rename it.")
            elif (read_value := entry.read(inner)) is not ABSENT:
                read_entries[name] = read_value
        if nonempty and given == {}:
            spot.complain("it has no entry. At least one is required.")
        if len(read_entries) > most:
            spot.complain(f"it has {len(read_entries)} entries. At most {most} are allowed.", "Use several runs.")
        return ABSENT if given is None else read_entries

    return Kind(f"table of {entry.title.replace('number', 'numbers')}", read, {})


def expressions(names: str, values: str = "the predicate", *, most: float = math.inf) -> Kind:
    """A table of names, each with a Spark SQL expression (see `named`)."""
    return named(names, string(multiline=True), values, most=most)


def table(section: type[Section], list_key: str = "") -> Kind:
    """A table with declared keys. With `list_key`, a list in its place is the value of that key."""

    def read(spot: Spot) -> Any:
        if list_key and isinstance(spot.value, list | tuple):
            spot = dataclasses.replace(spot, value={list_key: spot.value})
        return spot.reader.section(section, spot)

    return Kind("table", read, blank(section), section)


def tables(section: type[Section], most: int, fix_most: str) -> Kind:
    """A list of tables, which messages identify by their ``name``."""

    def read(spot: Spot) -> Any:
        if len(spot.entries) > most:
            spot.complain(f"there are {len(spot.entries)}. At most {most} are allowed.", fix_most)
        read_entries = []
        for number, entry in enumerate(spot.entries, 1):
            name = entry.get("name") if isinstance(entry, Mapping) else None
            inner = spot.within(name if isinstance(name, str) else number, entry)
            read_entries.append(spot.reader.section(section, inner))
        return tuple(read_entries)

    return Kind("tables", read, (), section)
