"""Keyword arguments of the public functions: the configuration for which they stand, and faults in their terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

from biasspark.config import Identities, Measures, kinds, parse_measures
from biasspark.config.declaration import USE_DEFAULT, Reader, Spot, broken_text_rule
from biasspark.errors import BiasSparkError, Fault, KeyPath, Language, Setting, Text

Models: TypeAlias = str | Sequence[str] | Mapping[str, str]
IdentitiesLike: TypeAlias = str | Sequence[str] | Mapping[str, Any] | Identities
RankingEngine: TypeAlias = Literal["blocks", "windows"]
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
"""Keywords that are keys of the configuration under another name."""
_OF_COLUMNS = {"identity_threshold": 0.5, "unannotated": "exclude"}
"""Keywords for identities given as columns, and their defaults. Identities given as a dict have these keys."""
MAIN_KEYS = {
    "evidence": "min_rows",
    "privacy": "min_group_rows",
    "thresholds": "at",
    "histograms": "bins",
    "label_balance": "text",
    "templates": "column",
    "pinned_auc": "trials",
}
"""Tables that may be given by a single value, and its key. True stands for all defaults, False for no table."""
_ARRAYS: dict[str, type] = {
    **dict.fromkeys(("models", "identities", "numeric", "categorical", "targets"), str),
    **dict.fromkeys(("label_positive", "thresholds", "at", "buckets"), object),
}
"""Keywords that may be an array, and the type of its entries. Any other array has the values of a column."""
_SETTINGS: dict[str, type] = {"identities": str, "thresholds": object, "label_balance": object, "pairs": object}
"""Keywords that may be a dict with arrays in it, and the type of their entries."""
_SHARED = {"models", "identities", "slices", *PATHS, *MAIN_KEYS}
"""Keywords that mean the same in every function that has them."""


def check_whole(name: str, value: object, least: int) -> list[Fault]:
    """Return the faults of an argument that must be a whole number."""
    reader = Reader(Path())
    kinds.whole(least).read(Spot((name,), value, "Give one.", reader))
    return reader.faults


class Keywords(Language):
    """The keyword arguments of a public function: the configuration for which they stand, and faults in their terms.

    The arguments are those of ``locals()`` at the beginning of the function. Those that only this function has are keys
    of the table `part` of the configuration; without a `part` they are ignored.
    """

    is_call = True

    def __init__(self, arguments: Mapping[str, Any], part: str = "") -> None:
        arguments = {name: value if name == "df" else _with_lists(name, value) for name, value in arguments.items()}
        self.narrow = arguments.get("narrow", False)
        self.given = given = {name: value for name, value in arguments.items() if name in _SHARED}
        keys = {name: value for name, value in arguments.items() if name not in {"df", *given}} if part else {}
        self.tables: dict[str, Any] = {part: keys} if part else {}
        self.names: dict[KeyPath, str] = {("corpus", "path"): "df", **{(part, key): key for key in keys}}
        has_columns = "identities" in given and not isinstance(given["identities"], Mapping | Identities)
        for keyword in [name for name in given if has_columns or name not in _OF_COLUMNS]:
            path, value = _locate(keyword, given[keyword])
            self.names[path] = keyword
            if keyword in MAIN_KEYS and not isinstance(given[keyword], Mapping):
                self.names[keyword, MAIN_KEYS[keyword]] = keyword
            if len(path) == 2:
                self.tables.setdefault(str(path[0]), {})[path[1]] = value
            else:
                self.tables[keyword] = value

    def measures(self, *, scored: bool = True, faults: Sequence[Fault] = ()) -> Measures:
        """Return the checked measures. Raises `ConfigError` with all faults, also those given."""
        faults = [*faults]
        if "id" in self.given and (rule := broken_text_rule(self.given["id"])):
            faults.append(Fault(PATHS["id"], self.given["id"], rule, "Name the column that identifies a row."))
        if not isinstance(self.narrow, bool):
            faults.append(Fault(("narrow",), self.narrow, "It must be True or False.", "Correct it, or leave it out."))
        what, fix = "Identities that are a dict have a threshold and unannotated of their own.", "Set it there."
        if "identities" not in self.given:
            what, fix = "Only identities that are columns use it.", "Leave it out."
        for name, default in _OF_COLUMNS.items():
            value = self.given.get(name)
            is_default = value is None or (isinstance(value, type(default)) and value == default)
            if PATHS[name] not in self.names and not is_default:
                faults.append(Fault((name,), value, what, fix))
        tables = {name: table for name, table in self.tables.items() if name != "corpus"}
        return parse_measures(tables, scored=scored, grouped="identities" in self.given, faults=faults)

    @contextmanager
    def name_faults(self) -> Iterator[None]:
        """Let errors within the block name keywords instead of keys of the configuration."""
        try:
            yield
        except BiasSparkError as error:
            error.language = self
            raise

    def key(self, path: KeyPath) -> str:
        """Return a key as Python writes it: ``level``, ``identities["crossed"]["pairs"]``."""
        start = next((n for n in range(len(path), 0, -1) if path[:n] in self.names), 0)
        named, inner = (self.names[path[:start]], path[start:]) if start else (str((*path, "")[0]), path[1:])
        shown = (f'"{key}"' if isinstance(key, str) else key - 1 for key in inner)
        return named + "".join(f"[{key}]" for key in shown)

    def text(self, text: Text, path: KeyPath) -> str:
        """Format a string. True stands for the default of a table given by a value; without it there is no table."""
        is_table = self.names.get(path) in {*MAIN_KEYS} - {"evidence"}
        return "Write True to use the default, " if is_table and text == USE_DEFAULT else super().text(text, path)

    def near_key(self, key: KeyPath, path: KeyPath) -> str:  # noqa: ARG002 - a keyword has no shorter form
        """Return a key."""
        return self.key(key)

    def setting(self, setting: Setting, path: KeyPath) -> str:
        """Return a keyword and its value."""
        value, key = setting.value, next(iter(setting.value)) if isinstance(setting.value, Mapping) else ""
        if isinstance(value, Mapping) and (*setting.path, key) in self.names:
            return self.setting(Setting((*setting.path, key), value[key]), path)
        return f"{self.key(setting.path)} = {self._example(value)}"

    def _example(self, value: object) -> str:
        """Return an example value as Python writes it, dicts whole."""
        if isinstance(value, Mapping):
            keys = ", ".join(f'"{name}": {self._example(inner)}' for name, inner in value.items())
            return f"{{{keys}}}"
        return self.value(value)

    def value(self, value: object) -> str:
        """Return a value as Python writes it, or its type."""
        if isinstance(value, bool) or value is None:
            return str(value)
        if isinstance(value, Mapping):
            return "a dict" if value else "{}"
        return super().value(value)


def _with_lists(keyword: str, value: Any, entries: Mapping[str, type] = _ARRAYS) -> Any:
    """Return ranges, arrays of numpy, and indices of pandas that a keyword may have as lists, also within a dict."""
    if isinstance(value, Mapping):
        return {key: _with_lists(keyword, inner, _SETTINGS) for key, inner in value.items()}
    # A column of Spark seems to have any attribute, but not those with underscores. A Series has the values of rows.
    is_array = hasattr(value, "__array__") and getattr(value, "ndim", 0) == 1 and not hasattr(value, "index")
    if not is_array and not isinstance(value, range):
        return value
    values = value.tolist() if is_array else list(value)
    return values if all(isinstance(one, entries.get(keyword, ())) for one in values) else value


def _locate(keyword: str, value: Any) -> tuple[KeyPath, Any]:
    """Return the key of the configuration for which a keyword stands, and its value there."""
    if keyword == "identities" and not isinstance(value, Mapping | Identities):
        return ("identities", "columns"), [value] if isinstance(value, str) else value
    if keyword == "models":
        return ("models",), [value] if isinstance(value, str) else value
    is_number = keyword == "evidence" and value is True  # refused, since by default no rows are needed
    if keyword in MAIN_KEYS and (is_number or not isinstance(value, Mapping | bool | None)):
        return (keyword, MAIN_KEYS[keyword]), value
    if keyword in MAIN_KEYS and isinstance(value, bool):
        return (keyword,), {} if value else None
    return PATHS.get(keyword, (keyword,)), value
