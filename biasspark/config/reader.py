"""The one reader of configurations: from tables of TOML, or of keyword arguments, to frozen dataclasses.

Faults are noted, not raised: where a value cannot be used the default takes its place, so that all faults of all tables
come out at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from biasspark.config.declaration import REQUIRED, Declaration, Section, Spot, blank, declarations, guess, write
from biasspark.errors import ABSENT, ConfigError, Fault, Key, KeyPath, Text, Words, type_of

AnySection = TypeVar("AnySection", bound=Section)


class Faults(list[Fault]):
    """Faults in the order in which they were noted."""

    def within(self, path: KeyPath) -> bool:
        """Return whether there is a fault at a path or within it."""
        return any(fault.path[: len(path)] == path for fault in self)


class Written:
    """A table as it is written: its keys, less those whose value is None, and which of them have faults."""

    def __init__(self, keys: Mapping[str, Any], path: KeyPath, faults: Faults) -> None:
        self.keys, self.path, self._faults = keys, path, faults

    def __contains__(self, key: str) -> bool:
        return key in self.keys

    def sound(self, *keys: str) -> bool:
        """Return whether no fault was noted in these keys; in the whole table where none is given."""
        paths = [(*self.path, key) for key in keys] or [self.path]
        return not any(map(self._faults.within, paths))

    def table(self, key: str, name: str | int = "", index: int = 0) -> Written:
        """Return a table within it, an empty one where there is none; of a list of tables the one at an index."""
        value = self.keys.get(key)
        if name and isinstance(value, list | tuple):
            value = value[index]
        path = (*self.path, key, name) if name else (*self.path, key)
        return Written(_without_none(value) if isinstance(value, Mapping) else {}, path, self._faults)

    def fault(self, key: str, rule: Text, fix: Text) -> Fault:
        """Return the fault of a key, with its value."""
        return Fault((*self.path, key), self.keys.get(key, ABSENT), rule, fix)

    def entry_fault(self, key: str, entry: object, rule: Text, fix: Text, single: str = "") -> Fault:
        """Return the fault of an entry of a list, or of the key that holds a single one in its place."""
        if single in self:
            return self.fault(single, rule, fix)
        listed = [tuple(value) if isinstance(value, list) else value for value in self.keys.get(key, ())]
        return Fault((*self.path, key, listed.index(entry) + 1), entry, rule, fix)

    def complain(self, key: str, what: Text, fix: Text) -> Fault:
        """Return the fault of a key, without its value, or of the whole table where the key is ""."""
        return Fault((*self.path, key) if key else self.path, ABSENT, what, fix)

    def need_one(self, first: str, second: str, **example: object) -> Iterable[Fault]:
        """Yield the fault that both of two keys are written, or neither."""
        rule = "Exactly one of them is required."
        if first in self and second in self:
            yield self.complain("", f"{first} and {second} are both given. {rule}", "Remove one.")
        elif first not in self and second not in self:
            yield self.complain("", f"neither {first} nor {second} is given. {rule}", self.write(**example))

    def write(self, **example: object) -> Text:
        """Return the advice to write some of its keys."""
        return write(self.path, example)


class Reader:
    """Reads tables of a configuration, and notes their faults.

    Parameters
    ----------
    base
        The folder in which relative paths are looked up first.
    left_out
        Required tables that need not be there.
    """

    def __init__(self, base: Path, left_out: Collection[str] = ()) -> None:
        self.base, self.left_out, self.faults = base, left_out, Faults()

    def read(self, section: type[AnySection], given: Mapping[str, Any]) -> AnySection:
        """Read a whole configuration.

        Raises
        ------
        ConfigError
            With every fault, in the order of the tables.
        """
        order = {name: index for index, name in enumerate(declarations(section))}
        for name in [name for name in given if name not in order]:
            tables = ", ".join(f"[{known}]" for known in order)
            rule = f"there is no such table. The tables are {tables}."
            self.faults.append(Fault((str(name),), ABSENT, rule, guess(name, order)))
        read = self._build(section, _without_none(given), ())
        if self.faults:
            raise ConfigError(
                *sorted(self.faults, key=lambda fault: order.get(str(fault.path[0]), -1) if fault.path else -1)
            )
        return read

    def section(self, section: type[AnySection], spot: Spot) -> AnySection:
        """Read a table; what is not a table has defaults only."""
        given = self.mapping(spot)
        if given is None:
            return blank(section)
        declared = declarations(section)
        known = (*declared, *(declaration.single for declaration in declared.values() if declaration.single))
        for key in [key for key in given if key not in known]:
            # Its value is not shown: it may be a secret under a misspelt name.
            inner = spot.within(key, ABSENT)
            rule = ("there is no such key. The keys of ", Key(spot.path), f" are {', '.join(known)}.")
            inner.complain(rule, guess(key, known, section.explain_unknown(spot.path, str(key))))
        return self._build(section, given, spot.path)

    def mapping(self, spot: Spot) -> dict[str, Any] | None:
        """Return the keys of a table, less those whose value is None; None, and a fault, where it is not a table."""
        if isinstance(spot.value, Mapping):
            return _without_none(spot.value)
        # Its value is not shown: it may be a password in the wrong place.
        spot.complain(("this is ", type_of(spot.value), Words(". It must be a table.", ". It must be a dict.")))
        return None

    def _build(self, section: type[AnySection], given: Mapping[str, Any], path: KeyPath) -> AnySection:
        values = {name: self._value(name, declared, given, path) for name, declared in declarations(section).items()}
        read = section(**{name: value for name, value in values.items() if value is not ABSENT})
        written = Written(given, path, self.faults)
        for fault in read.check(written):  # one by one: a check may ask which faults there are
            self.faults.append(fault)
        return read.resolve(written)

    def _value(self, name: str, declared: Declaration, given: Mapping[str, Any], path: KeyPath) -> Any:
        """Return the value of a key; `ABSENT` for the default of its field."""
        key, single = (*path, name), declared.single
        spot = Spot(key, given.get(name), declared.suggest(key), self)
        value: Any = ABSENT
        if single and single in given:
            value = declared.kind.read(Spot(key, [given[single]], spot.fix, self))
            if name in given:
                what = f"{single} and {name} are both given. They mean the same."
                Spot(path, None, "Remove one.", self).complain(what)
        elif name in given:
            value = declared.kind.read(spot)
        elif declared.default is REQUIRED and not (path == () and name in self.left_out):
            spot.complain("missing. It is required.")
        return declared.kind.blank if value is ABSENT and declared.default is REQUIRED else value


def plain(value: Any) -> Any:
    """Return a part of the configuration as the dicts, lists and scalars that read back to it."""
    if isinstance(value, Section):
        values = {name: getattr(value, name) for name in declarations(type(value))}
        return {name: plain(part) for name, part in values.items() if part is not None}
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    return [plain(entry) for entry in value] if isinstance(value, tuple) else value


def _without_none(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}
