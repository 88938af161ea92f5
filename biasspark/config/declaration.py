"""How a key of the configuration is declared, once: its type, its default, what it may hold, and what it means.

    max_depth: int = setting(4, kinds.whole(1, 10))
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
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeGuard, TypeVar

from biasspark.errors import ABSENT, Fault, KeyPath, Setting, Text, Value, Words, type_of
from biasspark.text import closest_match, show_value

if TYPE_CHECKING:
    from biasspark.config.reader import Reader

REQUIRED = ABSENT
CORRECT = Words("Correct it, or remove the line.", "Correct it, or leave it out.")
OR_REMOVE = Words(", or remove the line.", ", or leave it out.")

AnySection = TypeVar("AnySection", bound="Section")
Entry = TypeVar("Entry", bound=Hashable)


class Section:
    """A table of the configuration. Its fields are its keys, each a `setting`, in the order of the documentation."""

    def check(self, written: Spot) -> None:
        """Note the faults that lie in several keys together, by the table as it is written."""

    def resolve(self) -> Self:
        """Return the table with the values that follow from other keys."""
        return self

    @classmethod
    def explain_unknown(cls, path: KeyPath, key: str) -> Text:  # noqa: ARG003 - tables override it
        """Return what to do about an unknown key that resembles none."""
        return "Remove it."


@dataclass(frozen=True)
class Spot:
    """A value as it is written: where it is, what to do about its faults, and the reader, which notes them.

    Of a table, ``key in spot`` and ``spot[key]`` are its keys; those whose value is None are absent.
    """

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

    def note(self, fault: Fault) -> None:
        """Note a fault."""
        self.reader.faults.append(fault)

    @property
    def keys(self) -> dict[str, Any]:
        """Its keys and their values, none of what is not a table."""
        table = self.value if isinstance(self.value, Mapping) else {}
        return {key: value for key, value in table.items() if value is not None}

    @property
    def entries(self) -> Sequence[Any]:
        """Its entries; a value that is no list is a single one."""
        return self.value if isinstance(self.value, list | tuple) else [self.value]

    def __contains__(self, key: str) -> bool:
        return key in self.keys

    def __getitem__(self, key: str) -> Spot:
        return self.within(key, self.keys.get(key, ABSENT))

    def sound(self, *keys: str) -> bool:
        """Return whether no fault was noted in these keys; in the whole of it where none is given."""
        paths = [(*self.path, key) for key in keys] or [self.path]
        return not any(fault.path[: len(path)] == path for fault in self.reader.faults for path in paths)

    def refuse_entry(self, key: str, entry: object, rule: Text, fix: Text, single: str = "") -> None:
        """Note the fault of an entry of a list, or of the key that holds a single one in its place."""
        if single in self:
            self[single].refuse(rule, fix)
        else:
            listed = [tuple(value) if isinstance(value, list) else value for value in self.keys.get(key, ())]
            self[key].within(listed.index(entry) + 1, entry).refuse(rule, fix)

    def need_one(self, first: str, second: str, **example: object) -> None:
        """Note the fault that both of two keys are written, or neither."""
        rule = "Exactly one of them is required."
        if first in self and second in self:
            self.complain(f"{first} and {second} are both given. {rule}", "Remove one.")
        elif first not in self and second not in self:
            self.complain(f"neither {first} nor {second} is given. {rule}", self.write(**example))
            if any(closest_match(key, (first, second)) for key in self.keys if not self.sound(key)):
                self.reader.implied += self.reader.faults[-1:]  # by the key that is misspelled

    def write(self, **example: object) -> Text:
        """Return the advice to write some of its keys."""
        return write(self.path, example)

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


# ---- values


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
