"""How a key of the configuration is declared: its type, default, allowed values and meaning, in one place.

    max_depth: int = setting(4, kinds.whole(1, 10))
    '''Levels of splits.'''

A table of the configuration is a `Section`: a frozen dataclass of such fields. `Reader` reads it from TOML tables or
from keyword arguments, and scripts/docs writes its documentation. Faults are collected, not raised: an unusable value
is replaced by its default, so that all faults of all tables are reported at once.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeGuard, TypeVar

from biasspark.errors import ABSENT, ConfigError, Fault, Key, KeyPath, Setting, Text, Value, Words, type_of
from biasspark.text import closest_match, describe_type, list_choices, show_value

REQUIRED = ABSENT
CORRECT = "Correct it, or leave it out."
USE_DEFAULT = "Leave it out to use the default, "

AnySection = TypeVar("AnySection", bound="Section")


class Section:
    """A table of the configuration. Its fields are its keys, each a `setting`, in the order of the documentation."""

    def check(self, written: Spot) -> None:
        """Report faults that depend on several keys, given the table as it is written."""

    def resolve(self) -> Self:
        """Return the table with the values that follow from other keys."""
        return self

    @classmethod
    def explain_unknown(cls, path: KeyPath, key: str) -> Text:  # noqa: ARG003 - tables override it
        """Return the fix for an unknown key that resembles no known key."""
        return "Remove it."


@dataclass(frozen=True)
class Spot:
    """A value as it is written, with its path, the default fix of its faults, and the reader that collects them.

    If the value is a table, ``key in spot`` and ``spot[key]`` look up its keys. Keys whose value is None are absent.
    """

    path: KeyPath
    value: Any
    fix: Text
    reader: Reader

    def refuse(self, rule: Text, fix: Text = "") -> Any:
        """Report that the value breaks a rule. Return `ABSENT`."""
        self.reader.faults.append(Fault(self.path, self.value, rule, fix or self.fix))
        return ABSENT

    def complain(self, what: Text, fix: Text = "") -> Any:
        """Report a fault without showing the value. Return `ABSENT`."""
        return dataclasses.replace(self, value=ABSENT).refuse(what, fix)

    @property
    def keys(self) -> dict[str, Any]:
        """The keys and values of a table; empty for any other value."""
        table = self.value if isinstance(self.value, Mapping) else {}
        return {key: value for key, value in table.items() if value is not None}

    @property
    def entries(self) -> Sequence[Any]:
        """The entries of a list; any other value is a single entry."""
        return self.value if isinstance(self.value, list | tuple) else [self.value]

    def __contains__(self, key: str) -> bool:
        return key in self.keys

    def __getitem__(self, key: str) -> Spot:
        return self.within(key, self.keys.get(key, ABSENT))

    def sound(self, *keys: str) -> bool:
        """Return whether these keys, or without keys the whole value, have no fault so far."""
        paths = [(*self.path, key) for key in keys] or [self.path]
        return not any(fault.path[: len(path)] == path for fault in self.reader.faults for path in paths)

    def refuse_entry(self, key: str, entry: object, rule: Text, fix: Text, single: str = "") -> None:
        """Report a fault of an entry of a list, or of the key `single` that holds it in place of the list."""
        if single in self:
            self[single].refuse(rule, fix)
        else:
            listed = [tuple(value) if isinstance(value, list) else value for value in self.keys.get(key, ())]
            self[key].within(listed.index(entry) + 1, entry).refuse(rule, fix)

    def need_one(self, first: str, second: str, **example: object) -> None:
        """Report a fault unless exactly one of two keys is given."""
        rule = "Exactly one of them is required."
        if first in self and second in self:
            self.complain(f"{first} and {second} are both given. {rule}", "Remove one.")
        elif first not in self and second not in self:
            self.complain(f"neither {first} nor {second} is given. {rule}", self.write(**example))

    def write(self, **example: object) -> Text:
        """Return the advice to write some keys of this table."""
        return write(self.path, example)

    def within(self, key: object, value: object, fix: Text = "") -> Spot:
        """Return the spot of a key of this table, or of an entry of this list."""
        in_table = isinstance(self.value, Mapping)
        inner = key if isinstance(key, str) or (isinstance(key, int) and not in_table) else show_value(key)
        return Spot((*self.path, inner), value, fix or self.fix, self.reader)

    def refuse_type(self, expected: Text, fix: Text = "") -> Any:
        """Report a value of another type than expected. Return `ABSENT`."""
        is_shown = show_value(self.value) != describe_type(self.value)  # otherwise its type stands for it
        return self.refuse(("It must be ", expected, *((", not ", type_of(self.value)) if is_shown else ()), "."), fix)


@dataclass(frozen=True)
class Kind:
    """What a key may hold."""

    title: str
    """The name in the documentation."""
    read: Callable[[Spot], Any]
    """Reads a spot and reports its faults. Returns `ABSENT` if no part of the value is usable."""
    blank: Any = None
    """The placeholder of a required value that is missing."""
    section: type[Section] | None = None
    """The class of a table."""


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """The declaration of a key."""

    kind: Kind
    default: Any
    default_text: str = ""
    """The default in words, if it follows from other keys."""
    example: Any = None
    """An example value; for a table, some of its keys."""
    fix: Text = ""
    """The fix of a fault, if it is neither the example nor the default."""
    single: str = ""
    """Another key, which may hold a single entry in place of the list."""

    def suggest(self, path: KeyPath) -> Text:
        """Return the fix of a fault of this key."""
        if self.fix or self.example is not None:
            return self.fix or write(path, self.example)
        if self.default in (None, REQUIRED, (), {}) or isinstance(self.default, Section):
            return CORRECT
        return (USE_DEFAULT, Value(self.default), ".")


def setting(default: Any, kind: Kind, *, is_shown: bool = True, **more: Any) -> Any:
    """Declare a key as a dataclass field, with or without its value in ``repr``. For `more` see `Declaration`."""
    metadata = {"declaration": Declaration(kind=kind, default=default, **more)}
    optional: Any = {"default_factory": default.copy} if isinstance(default, dict) else {"default": default}
    return dataclasses.field(metadata=metadata, repr=is_shown, **{} if default is REQUIRED else optional)


def declarations(section: type[Section]) -> dict[str, Declaration]:
    """Return the keys of a table and their declarations, in order."""
    fields = dataclasses.fields(section)  # type: ignore[arg-type]  # only its subclasses are dataclasses
    return {field.name: field.metadata["declaration"] for field in fields}


def blank(section: type[AnySection]) -> AnySection:
    """Return a table with its defaults, and placeholders for required values."""
    required = {name: key.kind.blank for name, key in declarations(section).items() if key.default is REQUIRED}
    return section(**required)


def write(path: KeyPath, example: object) -> Text:
    """Return the advice to write a value, or some keys of a table."""
    return ("Write, for example, ", Setting(path, example), ".")


def guess(word: object, known: Iterable[str], otherwise: Text = "Remove it.") -> Text:
    """Return the advice to use the closest known word, or `otherwise` if none is close."""
    close = closest_match(word, tuple(known))
    return f"Did you mean {close}?" if close else otherwise


def unknown(what: str, name: str | None, known: Sequence[str], fix: Text = "Remove it.") -> tuple[Text, Text]:
    """Return the rule and the fix for the name of a model, a slice or a metric that does not exist."""
    rule = f"There is no {what} {show_value(name)}. The {what}s are {list_choices(known) or 'none'}."
    return rule, guess(name, known, fix)


# ---- values


def is_number(value: object) -> TypeGuard[numbers.Real]:
    """Return whether a value is a number. Booleans are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_finite_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a number that a double can hold."""
    try:
        return is_number(value) and math.isfinite(value)
    except OverflowError:  # an integer too large for a double
        return False


def broken_text_rule(value: object, multiline: bool = False) -> Text:
    """Return the rule that a value breaks: text, not empty, no control characters. "" if it breaks none."""
    if not isinstance(value, str):
        if hasattr(value, "dtype") and not is_number(value):  # an array, or a column of any library
            return "It must be text: columns are given by their names. Add new ones to the frame."
        return ("It must be text, not ", type_of(value), ".")
    if not value.strip():
        return "It must not be empty."
    controls = [c for c in value if unicodedata.category(c) in ("Cc", "Cs") and not (multiline and c in "\t\r\n")]
    return "It must not have control characters." if controls else ""


# ---- reading


class Reader:
    """Reads tables of a configuration and collects their faults.

    Relative paths are looked up in the folder `base` first. Required tables in `optional` may be missing.
    """

    def __init__(self, base: Path, optional: Collection[str] = (), faults: Iterable[Fault] = ()) -> None:
        self.base, self.optional, self.faults = base, optional, list(faults)

    def read(self, section: type[AnySection], given: Mapping[str, Any]) -> AnySection:
        """Read a whole configuration. Raises `ConfigError` with all faults, in the order of the tables."""
        read = self.section(section, Spot((), given, "", self))
        if self.faults:
            order = {name: index for index, name in enumerate(declarations(section))}
            raise ConfigError(*sorted(self.faults, key=lambda fault: order.get(str((*fault.path, "")[0]), -1)))
        return read

    def section(self, section: type[AnySection], spot: Spot) -> AnySection:
        """Read a table. If the value is not a table, return one with defaults only."""
        given, declared = self.mapping(spot), declarations(section)
        if given is None:
            return blank(section)
        known = (*declared, *(key.single for key in declared.values() if key.single))
        rule: Text = ("there is no such key. The keys of ", Key(spot.path), f" are {', '.join(known)}.")
        if not spot.path:
            rule = f"there is no such table. The tables are {', '.join(f'[{name}]' for name in known)}."
        for key in (key for key in given if key not in known):
            # The value is not shown: it may be a secret under a misspelled key.
            fix = guess(key, known, section.explain_unknown(spot.path, str(key)))
            spot.within(key, ABSENT).complain(rule, fix)
        values = {name: self._value(key, given, (*spot.path, name)) for name, key in declared.items()}
        read = section(**{name: value for name, value in values.items() if value is not ABSENT})
        read.check(Spot(spot.path, given, "", self))
        return read.resolve()

    def mapping(self, spot: Spot) -> dict[str, Any] | None:
        """Return the keys of a table whose value is not None. Report a fault and return None for any other value."""
        if isinstance(spot.value, Mapping):
            return spot.keys
        # The value is not shown: it may be a password in the wrong place.
        spot.complain(("this is ", type_of(spot.value), Words(". It must be a table.", ". It must be a dict.")))
        return None

    def _value(self, declared: Declaration, given: Mapping[str, Any], path: KeyPath) -> Any:
        """Return the value of a key, or `ABSENT` for its default."""
        name, single = path[-1], declared.single
        spot = Spot(path, given.get(str(name)), declared.suggest(path), self)
        value: Any = ABSENT
        if single and single in given:
            value = declared.kind.read(Spot(path, [given[single]], spot.fix, self))
            if name in given:
                both = f"{single} and {name} are both given. They mean the same."
                self.faults.append(Fault(path[:-1], ABSENT, both, "Remove one."))
        elif name in given:
            value = declared.kind.read(spot)
        elif declared.default is REQUIRED and path not in [(name,) for name in self.optional]:
            spot.complain("missing. It is required.")
        return declared.kind.blank if value is ABSENT and declared.default is REQUIRED else value


def plain(value: Any) -> Any:
    """Convert a part of the configuration to dicts, lists and scalars. Reading them gives an equal part."""
    if isinstance(value, Section):
        values = {name: getattr(value, name) for name in declarations(type(value))}
        return {name: plain(part) for name, part in values.items() if part is not None}
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    return [plain(entry) for entry in value] if isinstance(value, tuple) else value
