"""The one reader of configurations: from tables of TOML, or of keyword arguments, to frozen dataclasses.

Faults are noted, not raised: where a value cannot be used the default takes its place, so that all faults of all tables
come out at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from biasspark.config.declaration import REQUIRED, Declaration, Section, Spot, blank, declarations, guess
from biasspark.errors import ABSENT, ConfigError, Fault, Key, KeyPath, Words, type_of
from biasspark.text import closest_match

AnySection = TypeVar("AnySection", bound=Section)


class Reader:
    """Reads tables of a configuration, and notes their faults.

    Relative paths are looked up first in the folder ``base``. Required tables that are ``left_out`` need not be there.
    """

    def __init__(self, base: Path, left_out: Collection[str] = ()) -> None:
        self.base, self.left_out = base, left_out
        self.faults: list[Fault] = []
        self.implied: list[Fault] = []

    def read(self, section: type[AnySection], given: Mapping[str, Any]) -> AnySection:
        """Read a whole configuration.

        Raises `ConfigError` with every fault, in the order of the tables.
        """
        order = {name: index for index, name in enumerate(declarations(section))}
        top = Spot((), given, "", self)
        for name in [name for name in given if name not in order]:
            tables = ", ".join(f"[{known}]" for known in order)
            rule = f"there is no such table. The tables are {tables}."
            top.within(str(name), ABSENT).complain(rule, guess(name, order))
        read = self._build(section, top.keys, ())
        if self.faults:
            faults = [fault for fault in self.faults if fault not in self.implied]
            raise ConfigError(
                *sorted(faults, key=lambda fault: order.get(str(fault.path[0]), -1) if fault.path else -1)
            )
        return read

    def section(self, section: type[AnySection], spot: Spot) -> AnySection:
        """Read a table; what is not a table has defaults only."""
        given = self.mapping(spot)
        if given is None:
            return blank(section)
        known = _known_keys(section)
        for key in [key for key in given if key not in known]:
            # Its value is not shown: it may be a secret under a misspelt name.
            inner = spot.within(key, ABSENT)
            rule = ("there is no such key. The keys of ", Key(spot.path), f" are {', '.join(known)}.")
            inner.complain(rule, guess(key, known, section.explain_unknown(spot.path, str(key))))
        return self._build(section, given, spot.path)

    def mapping(self, spot: Spot) -> dict[str, Any] | None:
        """Return the keys of a table, less those whose value is None; None, and a fault, where it is not a table."""
        if isinstance(spot.value, Mapping):
            return spot.keys
        # Its value is not shown: it may be a password in the wrong place.
        spot.complain(("this is ", type_of(spot.value), Words(". It must be a table.", ". It must be a dict.")))
        return None

    def _build(self, section: type[AnySection], given: Mapping[str, Any], path: KeyPath) -> AnySection:
        known = _known_keys(section)
        meant = {closest_match(key, known) for key in given if key not in known}
        declared = declarations(section)
        values = {name: self._value(name, key, given, path, name in meant) for name, key in declared.items()}
        read = section(**{name: value for name, value in values.items() if value is not ABSENT})
        read.check(Spot(path, given, "", self))
        return read.resolve()

    def _value(
        self, name: str, declared: Declaration, given: Mapping[str, Any], path: KeyPath, is_misspelled: bool
    ) -> Any:
        """Return the value of a key; `ABSENT` for the default of its field.

        A required key that an unknown one probably means is missing to the checks alone: the unknown one has a fault.
        """
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
            self.implied += self.faults[-1:] if is_misspelled else []
        return declared.kind.blank if value is ABSENT and declared.default is REQUIRED else value


def _known_keys(section: type[Section]) -> tuple[str, ...]:
    """Return the keys of a table, and the names for a single one of a list."""
    declared = declarations(section)
    return (*declared, *(declaration.single for declaration in declared.values() if declaration.single))


def plain(value: Any) -> Any:
    """Return a part of the configuration as the dicts, lists and scalars that read back to it."""
    if isinstance(value, Section):
        values = {name: getattr(value, name) for name in declarations(type(value))}
        return {name: plain(part) for name, part in values.items() if part is not None}
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    return [plain(entry) for entry in value] if isinstance(value, tuple) else value
