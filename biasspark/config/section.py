"""One table of the configuration, read key by key: what is wrong is noted beside the rest, not raised.

A reader asks for each key and gets a value of the right type, the default in place of a wrong one, so that all faults
of all tables are found in one go; the caller raises them together and uses no value if there are any.
"""

from __future__ import annotations

import difflib
import math
import numbers
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeGuard, TypeVar

from biasspark.config.faults import Faults
from biasspark.config.wording import describe_kind, list_choices, show_key, show_value

MOST_WHOLE = 2**63 - 1

Name = TypeVar("Name", str, float, tuple[str, str])


class Section:
    """A table of the configuration, its faults noted among those of all others.

    Parameters
    ----------
    where
        How messages name the table, ``[ranking]``.
    value
        What the configuration holds there; None where it holds nothing. A key whose value is None counts as absent.
    keys
        The keys that it may have.
    faults
        Where faults are noted.
    example
        For a table that is required: what could stand there.
    """

    def __init__(self, where: str, value: object, keys: Sequence[str], faults: Faults, example: str = "") -> None:
        self.where = where
        self.name = where.lstrip("[").partition("]")[0]
        self.faults = faults
        self.refused: set[object] = set()
        self.usable = isinstance(value, Mapping) or (value is None and not example)
        self.table = (
            {key: entry for key, entry in value.items() if entry is not None} if isinstance(value, Mapping) else {}
        )
        if value is None and example:
            self.note(f"{where}: missing. This table is required. Write, for example, {example}.")
        elif not self.usable:
            # The value is left out, as that of an unknown key is below: it may be a password in the wrong place.
            self.note(f"{where}: this is {describe_kind(value)}. It must be a table. {_mend(example)}")
        self._refuse_unknown(keys)

    def note(self, *texts: str) -> None:
        """Note faults of the table that say themselves where they are."""
        self.faults.note(self.name, *texts)

    def refuse(self, key: object, rule: str, mend: str) -> None:
        """Note that the value of a key breaks a rule; both are whole sentences. The key is ``refused`` from then on."""
        self.refused.add(key)
        self.note(f"{self.where} {show_key(key)} = {show_value(self.table[key])}. {rule} {mend}")

    def complain(self, where: str, what: str) -> None:
        """Note a fault of the table as a whole or, with ``where``, of a part of it."""
        self.note(f"{self.where}{where and ' ' + where}: {what}")

    def refuse_repeated(self, key: str, entries: Iterable[Name], mend: str = "Remove one.") -> None:
        """Note what a list holds more than once."""
        for entry in find_repeated(entries):
            self.complain(key, f"{show_value(entry)} is listed twice. {mend}")

    def require_one_of(self, first: str, second: str, example: str) -> None:
        """Note when both of two keys that exclude each other are given, or neither."""
        rule = "Exactly one of them is required."
        if first in self.table and second in self.table:
            self.complain("", f"{first} and {second} are both given. {rule} Remove one.")
        elif self.usable and first not in self.table and second not in self.table:
            self.complain("", f"neither {first} nor {second} is given. {rule} Write, for example, {example}.")

    def text(self, key: str, example: str) -> str:
        """Read text that must be there."""
        example = f"{key} = {show_value(example)}"
        if self.usable and key not in self.table:
            self.complain(key, f"missing. It is required. Write, for example, {example}.")
        return self.optional_text(key, example) or ""

    def optional_text(self, key: str, example: str = "", multiline: bool = False) -> str | None:
        """Read text that may be there: not empty, no control characters but, if ``multiline``, tabs and line ends."""
        value = self.table.get(key)
        broken_rule = find_broken_text_rule(value, multiline) if key in self.table else ""
        if broken_rule:
            self.refuse(key, broken_rule, _mend(example))
        return value if isinstance(value, str) and not broken_rule else None

    def choice(self, key: str, choices: Sequence[str]) -> str:
        """Read one of several words, the first of which is the default."""
        value = self.table.get(key, choices[0])
        if isinstance(value, str) and value in choices:
            return value
        mend = guess(value, choices, _mend_by_default(choices[0]))
        self.refuse(key, f"It must be one of {list_choices(choices)}.", mend)
        return choices[0]

    def flag(self, key: str, default: bool) -> bool:
        """Read true or false."""
        value = self.table.get(key, default)
        if isinstance(value, bool):
            return value
        self.refuse(key, f"It must be true or false, not {describe_kind(value)}.", _mend_by_default(default))
        return default

    def whole(self, key: str, default: int, most: int = MOST_WHOLE, least: int = 0) -> int:
        """Read a whole number from ``least`` to ``most``."""
        found = self._read_whole(key, self.table.get(key, default), (least, most), _mend_by_default(default))
        return default if found is None else found

    def optional_whole(self, key: str, least: int = 0) -> int | None:
        """Read a whole number, ``least`` or more, that may be there."""
        value = self.table.get(key)
        return None if value is None else self._read_whole(key, value, (least, MOST_WHOLE), _mend(""))

    def number(self, key: str, default: float) -> float:
        """Read a finite number."""
        found = self.optional_number(key, _mend_by_default(default))
        return default if found is None else found

    def optional_number(self, key: str, mend: str = "Correct it, or remove the line.") -> float | None:
        """Read a finite number that may be there."""
        value = self.table.get(key)
        if value is None or is_finite_number(value):
            return None if value is None else float(value)
        rule = "It must be finite." if is_number(value) else f"It must be a number, not {describe_kind(value)}."
        self.refuse(key, rule, mend)
        return None

    def fraction(self, key: str, default: float, *, with_0: bool = False) -> float:
        """Read a number between 0 and 1, 1 excluded."""
        found = self.number(key, default)
        if not (0 <= found < 1 if with_0 else 0 < found < 1):
            rule = f"It must lie between 0 and 1, {'1' if with_0 else 'both'} excluded."
            self.refuse(key, rule, f"Write, for example, {key} = {default or 0.01}.")
        return found

    def span(self, key: str) -> tuple[float, float] | None:
        """Read a closed interval, two finite numbers, the lower first."""
        value = self.table.get(key)
        if value is None:
            return None
        ends = [float(end) for end in value if is_finite_number(end)] if isinstance(value, list | tuple) else []
        match ends:
            case [low, high] if low < high and len(value) == len(ends):
                return low, high
        rule = "It must be a list of two finite numbers, the lower first."
        self.refuse(key, rule, f"Write, for example, {key} = [0.0, 1.0], or remove the line.")
        return None

    def numbers(self, key: str) -> tuple[float, ...]:
        """Read a list of finite numbers, in order; none where there is no list."""
        value = self.table.get(key, [])
        if not isinstance(value, list | tuple):
            rule = f"It must be a list of numbers, not {describe_kind(value)}."
            self.refuse(key, rule, f"Write, for example, {key} = [0.5, 0.8].")
            return ()
        wrong = [entry for entry in value if not is_finite_number(entry)]
        if wrong:
            self.refuse(key, f"{show_value(wrong[0])} is not a finite number.", "Correct or remove it.")
        return tuple(float(entry) + 0.0 for entry in value if is_finite_number(entry))

    def check_inside(self, threshold: float | None, span: tuple[float, float] | None) -> None:
        """Note when the key ``threshold`` lies outside the key ``range``."""
        if span and threshold is not None and not span[0] <= threshold <= span[1]:
            rule = f"it lies outside range = {show_value(span)}. Every row would fall on the same side."
            self.complain(f"threshold = {show_value(threshold)}", f"{rule} Change one of the two.")

    def names(self, key: str) -> tuple[str, ...]:
        """Read a list of texts, in order; none where there is no list."""
        value = self.table.get(key, [])
        if not isinstance(value, list | tuple):
            example = show_value([value] if isinstance(value, str) else ["...", "..."])
            self.refuse(key, f"It must be a list of text, not {describe_kind(value)}.", f"Write {key} = {example}.")
            return ()
        return tuple(
            entry for place, entry in enumerate(value, 1) if self._accept_entry(f"{key}, entry {place}", entry)
        )

    def texts_by_name(self, names: str, values: str, multiline: bool = False) -> dict[str, str]:
        """Read the whole table as name = text, in order; messages call the two sides ``names`` and ``values``."""
        accepted = {}
        for name, value in self.table.items():
            name_rule = find_broken_text_rule(name)
            value_rule = find_broken_text_rule(value, multiline)
            if name_rule:
                self.complain(show_key(name), f"this is {names}. {name_rule} Rename it.")
            if value_rule:
                self.refuse(name, value_rule, f"Write {values} in quotes, or remove the line.")
            if isinstance(name, str) and isinstance(value, str) and not name_rule and not value_rule:
                accepted[name] = value
        return accepted

    def _read_whole(self, key: str, value: object, span: tuple[int, int], mend: str) -> int | None:
        least, most = span
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            kind = "without a decimal point" if is_number(value) else f"not {describe_kind(value)}"
            self.refuse(key, f"It must be a whole number, {kind}.", mend)
        elif not least <= int(value) <= most:
            self.refuse(key, f"It must lie between {least} and {most}.", mend)
        else:
            return int(value)
        return None

    def _accept_entry(self, where: str, entry: object) -> bool:
        broken_rule = find_broken_text_rule(entry)
        if broken_rule:
            self.note(f"{self.where} {where} = {show_value(entry)}. {broken_rule} Correct or remove it.")
        return not broken_rule

    def _refuse_unknown(self, keys: Sequence[str]) -> None:
        if not keys:
            return
        for key in [key for key in self.table if key not in keys]:
            self.complain(
                show_key(key),
                f"there is no such key. The keys of {self.where} are {', '.join(keys)}. {guess(key, keys)}",
            )


def guess(word: object, known: Sequence[str], otherwise: str = "Remove it.") -> str:
    """Say how to mend an unknown word: by the known one that it is close to, else as the caller says."""
    close = find_close(word, known)
    return f"Did you mean {close}?" if close else otherwise


def find_close(word: object, known: Sequence[str]) -> str | None:
    """Find the known word that a word is closest to, None if it is close to none."""
    return next(iter(difflib.get_close_matches(word, known, 1)), None) if isinstance(word, str) else None


def is_number(value: object) -> bool:
    """Tell whether a value is a number; true and false are none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_finite_number(value: object) -> TypeGuard[float]:
    """Tell whether a value is a number that a double can hold."""
    try:
        return isinstance(value, numbers.Real) and is_number(value) and math.isfinite(value)
    except OverflowError:  # a whole number too large for a double
        return False


def keys_of(part: type[Any]) -> tuple[str, ...]:
    """Give the keys of a table: the fields of the dataclass that it becomes."""
    return tuple(key.name for key in fields(part))


def find_repeated(names: Iterable[Name]) -> list[Name]:
    """Give the names, or numbers, that occur more than once, each once, in order."""
    return [name for name, count in Counter(names).items() if count > 1]


def find_broken_text_rule(value: object, multiline: bool = False) -> str:
    """Give the rule that a value breaks as text, "" if none: text, not empty, no control characters."""
    if not isinstance(value, str):
        return f"It must be text, not {describe_kind(value)}."
    if not value.strip():
        return "It must not be empty."
    controls = [c for c in value if unicodedata.category(c) in ("Cc", "Cs") and not (multiline and c in "\t\r\n")]
    return "It must hold no control characters." if controls else ""


def _mend(example: str) -> str:
    return f"Write, for example, {example}." if example else "Correct it, or remove the line."


def _mend_by_default(default: object) -> str:
    return f"Remove the line to use the default, {show_value(default)}."
