"""From keyword arguments of the public functions to checked measures, and faults in the words of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

from biasspark.config import Identities, Measures, parse_measures
from biasspark.config.declaration import broken_text_rule
from biasspark.errors import BiasSparkError, ConfigError, Fault, KeyPath, Language, Setting, Words

Models: TypeAlias = str | Sequence[str] | Mapping[str, str]
IdentitiesLike: TypeAlias = str | Sequence[str] | Mapping[str, Any] | Identities
Engine: TypeAlias = Literal["blocks", "windows"]
Unannotated: TypeAlias = Literal["exclude", "background"]

PATHS: dict[str, KeyPath] = {
    "id": ("corpus", "id"),
    "label": ("label", "column"),
    "label_threshold": ("label", "threshold"),
    "label_positive": ("label", "positive"),
    "identity_threshold": ("identities", "threshold"),
    "unannotated": ("identities", "unannotated"),
    "engine": ("ranking", "engine"),
    "ranges": ("ranking", "ranges"),
    "level": ("intervals", "level"),
    "template": ("templates", "column"),
}
"""Keywords that are keys of the configuration under another name. Any other keyword is a table of the same name."""
_OF_COLUMNS = {"identity_threshold": 0.5, "unannotated": "exclude"}
"""Keywords for a list of columns, and their defaults; identities that are a dict have these keys."""
MAIN_KEYS = {
    "evidence": "min_rows",
    "privacy": "min_group_rows",
    "thresholds": "at",
    "histograms": "bins",
    "label_balance": "text",
    "templates": "column",
    "pinned_auc": "trials",
}
"""Tables for which a single value may be given, and its key. True gives the table its defaults, False leaves it out."""


class Keywords(Language):
    """The keyword arguments of a call: the configuration that they stand for, and faults in their words.

    ``given`` are keywords that functions share; ``part`` is a table of the configuration whose ``keys`` are keywords of
    their own.
    """

    def __init__(self, given: Mapping[str, Any], part: str = "", **keys: Any) -> None:
        self.given = given
        self.tables: dict[str, Any] = {part: keys} if part else {}
        self.names: dict[KeyPath, str] = {("corpus", "path"): "df", **{(part, key): key for key in keys}}
        is_table = isinstance(given.get("identities"), Mapping | Identities)
        for keyword in [name for name in given if not (is_table and name in _OF_COLUMNS)]:
            path, value = _locate(keyword, given[keyword])
            self.names[path] = keyword
            if keyword in MAIN_KEYS and not isinstance(given[keyword], Mapping):
                self.names[keyword, MAIN_KEYS[keyword]] = keyword
            if len(path) == 2:
                self.tables.setdefault(str(path[0]), {})[path[1]] = value
            else:
                self.tables[keyword] = value

    def measures(self, *, scored: bool = True) -> Measures:
        """Return the checked measures; without models unless ``scored``, without identities where none are given.

        Raises `ConfigError` with every fault.
        """
        faults = []
        if "id" in self.given and (rule := broken_text_rule(self.given["id"])):
            faults.append(Fault(PATHS["id"], self.given["id"], rule, "Name the column that identifies a row."))
        for name, default in _OF_COLUMNS.items():
            if PATHS[name] not in self.names and self.given.get(name) not in (None, default):
                what = "Identities that are a dict have a threshold and unannotated of their own."
                faults.append(Fault((name,), self.given[name], what, "Set it there."))
        if faults:
            raise ConfigError(*faults)
        tables = {name: table for name, table in self.tables.items() if name != "corpus"}
        return parse_measures(tables, scored=scored, grouped="identities" in self.given)

    @contextmanager
    def name_faults(self) -> Iterator[None]:
        """Have the errors of a block name keywords in place of the configuration's keys."""
        try:
            yield
        except BiasSparkError as error:
            error.language = self
            raise

    def key(self, path: KeyPath) -> str:
        """Return a key as Python writes it: ``level``, ``identities["crossed"]["pairs"]``."""
        start = next((n for n in range(len(path), 0, -1) if path[:n] in self.names), 0)
        named, inner = (self.names[path[:start]], path[start:]) if start else (str((*path, "")[0]), path[1:])
        return named + "".join(f'["{key}"]' if isinstance(key, str) else f"[{key - 1}]" for key in inner)

    def near_key(self, key: KeyPath, path: KeyPath) -> str:  # noqa: ARG002 - a keyword is no shorter where it is near
        """Return a key."""
        return self.key(key)

    def setting(self, setting: Setting, path: KeyPath) -> str:
        """Return a keyword and its value."""
        value, key = setting.value, next(iter(setting.value)) if isinstance(setting.value, Mapping) else ""
        if isinstance(value, Mapping) and (*setting.path, key) in self.names:
            return self.setting(Setting((*setting.path, key), value[key]), path)
        if isinstance(value, Mapping):
            keys = ", ".join(f'"{name}": {self.value(inner)}' for name, inner in value.items())
            return f"{self.key(setting.path)} = {{{keys}}}"
        return f"{self.key(setting.path)} = {self.value(value)}"

    def value(self, value: object) -> str:
        """Return a value as Python writes it, or its type."""
        if isinstance(value, bool) or value is None:
            return str(value)
        return "a dict" if isinstance(value, Mapping) else super().value(value)

    def words(self, words: Words) -> str:
        """Return the words for a call."""
        return words.call


def _locate(keyword: str, value: Any) -> tuple[KeyPath, Any]:
    """Return the key of the configuration that a keyword is, and its value there."""
    if keyword == "identities" and not isinstance(value, Mapping | Identities):
        return ("identities", "columns"), [value] if isinstance(value, str) else value
    if keyword == "models":
        return ("models",), [value] if isinstance(value, str) else value
    if keyword in MAIN_KEYS and not isinstance(value, Mapping | bool | None):
        return (keyword, MAIN_KEYS[keyword]), value
    if keyword in MAIN_KEYS and isinstance(value, bool):
        return (keyword,), {} if value else None
    return PATHS.get(keyword, (keyword,)), value


def row_keywords(  # noqa: PLR0917 - in the order of the signatures
    label: str,
    label_threshold: float | None,
    label_positive: Sequence[Any] | None,
    slices: Mapping[str, str] | None,
    ranges: int,
    level: float,
) -> dict[str, Any]:
    """Return the keywords that every function has."""
    label_keywords = {"label": label, "label_threshold": label_threshold, "label_positive": label_positive}
    return {**label_keywords, "slices": slices, "ranges": ranges, "level": level}


def identity_keywords(
    identities: IdentitiesLike, identity_threshold: float, unannotated: Unannotated, engine: Engine
) -> dict[str, Any]:
    """Return the keywords of functions that look at identities."""
    of_identities = {"identity_threshold": identity_threshold, "unannotated": unannotated}
    return {"identities": identities, **of_identities, "engine": engine}
