"""How a key of the configuration is declared, once: its type, its default, what it may hold, and what it means.

    max_depth: int = setting(4, whole(1, 10))
    '''Levels of splits.'''

A table of the configuration is a `Section`: a frozen dataclass of such fields. `biasspark.config.reader` reads it from
TOML or from keyword arguments, and scripts/docs writes its documentation.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeGuard, TypeVar

from biasspark.config.paths import locate
from biasspark.errors import ABSENT, Fault, KeyPath, Setting, Text, Value, Words, type_of
from biasspark.text import closest_match, list_choices, show_value

if TYPE_CHECKING:
    from biasspark.config.reader import Reader, Written

MOST_WHOLE = 2**63 - 1
REQUIRED = ABSENT
CORRECT = Words("Correct it, or remove the line.", "Correct it, or leave it out.")
OR_REMOVE = Words(", or remove the line.", ", or leave it out.")

AnySection = TypeVar("AnySection", bound="Section")
Entry = TypeVar("Entry", bound=Hashable)


class Section:
    """A table of the configuration. Its fields are its keys, each a `setting`, in the order of the documentation."""

    def check(self, written: Written) -> Iterator[Fault]:  # noqa: ARG002 - for those that have something to check
        """Yield the faults that lie in several keys together."""
        yield from ()

    def resolve(self, written: Written) -> Self:  # noqa: ARG002
        """Return the table with the values that follow from other keys."""
        return self

    @classmethod
    def explain_unknown(cls, path: KeyPath, key: str) -> Text:  # noqa: ARG003
        """Return what to do about an unknown key that resembles none."""
        return "Remove it."


@dataclass(frozen=True)
class Spot:
    """A value that is being read: where it is, what to do about its faults, and the reader."""

    path: KeyPath
    value: Any
    fix: Text
    reader: Reader

    def refuse(self, rule: Text, fix: Text = "") -> Any:
        """Note that the value breaks a rule; return `ABSENT`."""
        self.reader.faults.append(Fault(self.path, self.value, rule, fix or self.fix))
        return ABSENT

    def complain(self, what: Text, fix: Text = "") -> Any:
        """Note a fault without showing the value; return `ABSENT`."""
        self.reader.faults.append(Fault(self.path, ABSENT, what, fix or self.fix))
        return ABSENT

    def within(self, key: object, value: object, fix: Text = "") -> Spot:
        """Return a key of the value, which is a table, or an entry of it, which is a list."""
        inner = key if isinstance(key, str | int) else show_value(key)
        return Spot((*self.path, inner), value, fix or self.fix, self.reader)


@dataclass(frozen=True)
class Kind:
    """What a key may hold."""

    title: str
    """Its name in the documentation."""
    read: Callable[[Spot], Any]
    """Returns the value of a spot, and notes its faults; `ABSENT` where nothing of it can be used."""
    blank: Any = None
    """What stands for a required value that is missing."""
    section: type[Section] | None = None
    """What a table becomes."""


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What is declared of a key."""

    kind: Kind
    default: Any
    default_text: str = ""
    """The default in words, where it follows from other keys."""
    example: Any = None
    """A value that it may have; of a table some of its keys."""
    fix: Text = ""
    """What to do about a fault, where it is neither to write the example nor to use the default."""
    single: str = ""
    """Another key, which holds a single entry of the list."""

    def suggest(self, path: KeyPath) -> Text:
        """Return what to do about a fault of this key."""
        if self.fix or self.example is not None:
            return self.fix or write(path, self.example)
        if self.default in (None, REQUIRED, (), {}) or isinstance(self.default, Section):
            return CORRECT
        return (Words("Remove the line", "Leave it out"), " to use the default, ", Value(self.default), ".")


def setting(default: Any, kind: Kind, *, is_shown: bool = True, **more: Any) -> Any:
    """Declare a key: a field of a dataclass, which ``repr`` shows or not. ``more`` goes to its `Declaration`."""
    metadata = {"declaration": Declaration(kind=kind, default=default, **more)}
    if default is REQUIRED:
        return dataclasses.field(metadata=metadata, repr=is_shown)
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=metadata, repr=is_shown)
    return dataclasses.field(default=default, metadata=metadata, repr=is_shown)


def declarations(section: type[Section]) -> dict[str, Declaration]:
    """Return the keys of a table and what is declared of them, in order."""
    return {field.name: field.metadata["declaration"] for field in dataclasses.fields(section)}  # type: ignore[arg-type]


def blank(section: type[AnySection]) -> AnySection:
    """Return a table with its defaults, and blanks for what is required."""
    required = {name: key.kind.blank for name, key in declarations(section).items() if key.default is REQUIRED}
    return section(**required)


def write(path: KeyPath, example: object) -> Text:
    """Return the advice to write a value, or some keys of a table."""
    return ("Write, for example, ", Setting(path, example), ".")


def guess(word: object, known: Iterable[str], otherwise: Text = "Remove it.") -> Text:
    """Return the advice to take the known word that a word resembles; ``otherwise`` if it resembles none."""
    close = closest_match(word, tuple(known))
    return f"Did you mean {close}?" if close else otherwise


# ---- what a key may hold


def string(*, multiline: bool = False, is_path: bool = False) -> Kind:
    """Return the kind of text: not empty, without control characters but, if ``multiline``, tabs and line ends."""

    def read(spot: Spot) -> Any:
        if rule := broken_text_rule(spot.value, multiline):
            return spot.refuse(rule)
        return locate(spot.value, spot.reader.base) if is_path else spot.value

    return Kind("text", read, "")


STRING = string()


def choice(*words: str) -> Kind:
    """Return the kind of one of several words."""

    def read(spot: Spot) -> Any:
        if isinstance(spot.value, str) and spot.value in words:
            return spot.value
        one_of = "one of " if len(words) > 1 else ""
        return spot.refuse(f"It must be {one_of}{list_choices(words)}.", guess(spot.value, words, spot.fix))

    return Kind(list_choices(words), read, "")


def flag() -> Kind:
    """Return the kind of true or false."""

    def read(spot: Spot) -> Any:
        if isinstance(spot.value, bool):
            return spot.value
        return spot.refuse((Words("It must be true or false, not ", "It must be True or False, not "), *_is(spot)))

    return Kind("true or false", read)


def whole(least: int = 0, most: int = MOST_WHOLE) -> Kind:
    """Return the kind of a whole number."""

    def read(spot: Spot) -> Any:
        if not is_number(spot.value):
            return spot.refuse(("It must be a whole number, not ", *_is(spot)))
        if not isinstance(spot.value, numbers.Integral):
            return spot.refuse("It must be a whole number, without a decimal point.")
        if least <= int(spot.value) <= most:
            return int(spot.value)
        is_open = most == MOST_WHOLE and spot.value < least
        return spot.refuse(f"It must be {least} or more." if is_open else f"It must lie between {least} and {most}.")

    bounds = f" from {least} to {most}" if most < MOST_WHOLE else f", {least} or more" if least else ""
    return Kind(f"whole number{bounds}", read)


def number(low: float = -math.inf, high: float = math.inf, included: str = "") -> Kind:
    """Return the kind of a finite number between two ends, which are ``included`` if it names them: "low high"."""
    ends = [end for name, end in (("low", low), ("high", high)) if name in included.split()]
    excluded = ", both excluded" if not ends else f", {high:g} excluded" if ends == [low] else ""

    def read(spot: Spot) -> Any:
        if not is_number(spot.value):
            return spot.refuse(("It must be a number, not ", *_is(spot)))
        if not is_finite_number(spot.value):
            return spot.refuse("It must be finite.")
        if low < spot.value < high or spot.value in ends:
            return float(spot.value)
        return spot.refuse(f"It must lie between {low:g} and {high:g}{excluded}.")

    return Kind("number" if math.isinf(low) else f"number between {low:g} and {high:g}", read)


def span() -> Kind:
    """Return the kind of a closed interval: two finite numbers, the lower first."""

    def read(spot: Spot) -> Any:
        ends = spot.value if isinstance(spot.value, list | tuple) else ()
        if len(ends) == 2 and all(map(is_finite_number, ends)) and ends[0] < ends[1]:
            return float(ends[0]), float(ends[1])
        return spot.refuse("It must be a list of two finite numbers, the lower first.")

    return Kind("two numbers", read)


def list_of(entry: Kind = STRING, *, nonempty: bool = False) -> Kind:
    """Return the kind of a list of different entries, in order."""
    title = f"list of {entry.title + 's' if entry.title.endswith('number') else entry.title}"

    def read(spot: Spot) -> Any:
        if not isinstance(spot.value, list | tuple):
            is_entry = entry.title == "text" and isinstance(spot.value, str)
            fix = ("Write ", Setting(spot.path, [spot.value]), ".") if is_entry else spot.fix
            return spot.refuse(("It must be a list, not ", *_is(spot)), fix)
        if nonempty and not spot.value:
            spot.refuse("At least one is required.")
        spots = [spot.within(number, value, "Correct or remove it.") for number, value in enumerate(spot.value, 1)]
        values = [(inner, value) for inner in spots if (value := entry.read(inner)) is not ABSENT]
        counts: Counter[Any] = Counter()
        for inner, value in values:
            counts[value] += 1
            if counts[value] == 2:
                inner.refuse("It is listed twice.", "Remove one.")
        return tuple(value for _, value in values)

    return Kind(title, read, ())


def named(names: str, entry: Kind, values: str = "", *, most: float = math.inf) -> Kind:
    """Return the kind of a table whose keys are names that the user gives.

    Parameters
    ----------
    names, values
        How messages call the two sides: ``a model's name``, ``the score column``.
    most
        The most names that are allowed.
    """
    fix: Text = (
        Words(f"Write {values} in quotes, or remove the line.", f"Write {values} as text.") if values else CORRECT
    )

    def read(spot: Spot) -> Any:
        read_entries = {}
        given = spot.reader.mapping(spot)
        for name, value in (given or {}).items():
            inner = spot.within(name, value, fix)
            if rule := broken_text_rule(name):
                inner.complain((f"this is {names}. ", rule), "Rename it.")
            elif (read_value := entry.read(inner)) is not ABSENT:
                read_entries[name] = read_value
        if len(read_entries) > most:
            spot.complain(f"it has {len(read_entries)} entries. At most {most} are allowed.", "Use several runs.")
        return ABSENT if given is None else read_entries

    return Kind(f"table of {entry.title + 's' if entry.title.endswith('number') else entry.title}", read, {})


def table(section: type[Section], list_key: str = "") -> Kind:
    """Return the kind of a table with declared keys; a list in its place, if allowed, is the value of ``list_key``."""

    def read(spot: Spot) -> Any:
        if list_key and isinstance(spot.value, list | tuple):
            spot = dataclasses.replace(spot, value={list_key: spot.value})
        return spot.reader.section(section, spot)

    return Kind("table", read, blank(section), section)


def tables(section: type[Section], most: int, fix_most: str) -> Kind:
    """Return the kind of a list of tables, which messages call by their ``name``."""

    def read(spot: Spot) -> Any:
        entries = spot.value if isinstance(spot.value, list | tuple) else [spot.value]
        if len(entries) > most:
            spot.complain(f"there are {len(entries)}. At most {most} are allowed.", fix_most)
        names = [entry.get("name") if isinstance(entry, Mapping) else None for entry in entries]
        keys = [name if isinstance(name, str) else number for number, name in enumerate(names, 1)]
        return tuple(
            spot.reader.section(section, spot.within(key, entry)) for key, entry in zip(keys, entries, strict=True)
        )

    return Kind("tables", read, (), section)


# ---- values


def _is(spot: Spot) -> tuple[Text, str]:
    return type_of(spot.value), "."


def is_number(value: object) -> bool:
    """Return whether a value is a number; true and false are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_finite_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a number that a double can hold."""
    try:
        return isinstance(value, numbers.Real) and is_number(value) and math.isfinite(value)
    except OverflowError:  # a whole number too large for a double
        return False


def broken_text_rule(value: object, multiline: bool = False) -> Text:
    """Return the rule that a value breaks as text, "" if none: text, not empty, no control characters."""
    if not isinstance(value, str):
        return ("It must be text, not ", type_of(value), ".")
    if not value.strip():
        return "It must not be empty."
    controls = [c for c in value if unicodedata.category(c) in ("Cc", "Cs") and not (multiline and c in "\t\r\n")]
    return "It must not have control characters." if controls else ""


def repeated(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries that occur more than once, each once, in order."""
    return [entry for entry, count in Counter(entries).items() if count > 1]
