"""The messages of the configuration in the words of a notebook: `engine` for `[ranking] engine`, a dict for a table."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from biasspark.config import Identities, show_value

TABLES = (
    *("corpus", "label", "models", "identities", "slices", "ranking", "intervals", "evidence", "privacy"),
    *("thresholds", "histograms", "label_balance", "templates", "pinned_auc", "pinned_skew", "compare", "attribution"),
)
RENAMED = {
    ("corpus", "id"): "id",
    ("label", "column"): "label",
    ("label", "threshold"): "label_threshold",
    ("label", "positive"): "label_positive",
    ("identities", "threshold"): "identity_threshold",
    ("identities", "unannotated"): "unannotated",
    ("ranking", "engine"): "engine",
    ("ranking", "ranges"): "ranges",
    ("ranking", "bins"): "rank_bins",
    ("intervals", "level"): "level",
    ("templates", "column"): "template",
}
"""Keys of the configuration that are keywords of another name, or of a table that is none."""

MAIN_KEYS = {
    "evidence": "min_rows",
    "privacy": "min_group_rows",
    "thresholds": "at",
    "histograms": "bins",
    "label_balance": "text",
    "templates": "column",
    "pinned_auc": "trials",
}
"""Tables of the configuration that are keywords, and the key that is meant where no table is given."""

_MEANT_KEYS = MAIN_KEYS | {"models": "columns", "identities": "columns"}
_PLACE = re.compile(rf"\[({'|'.join(TABLES)})(?:\.(\w+))?\](?: (\w+))?")
_KEY_OF_LABEL = re.compile(r"\b(column|threshold|positive)\b(?=`| = | and positive| are both)")
_EXAMPLE = re.compile(r"(Write(?:, for example,)?) ((?:\w+ )*\w+) = (.+?)(?=(?:, or [a-z ]+)?\.$)")
_OWN_FILE = re.compile(r", or keep \w+ in a configuration of its own(?=\.$)")
_NO_DICT = "It must be a dict. Correct it, or leave it out."
_PHRASES = {
    "Remove the line": "Leave it out",
    "remove the line": "leave it out",
    "This table is required": "It is required",
    "must be a table": "must be a dict",
    "not a table.": "not a dict.",
    " = a table.": " = a dict.",
    "corpus: no rows. The path, the filter and the run date leave nothing to measure. Check them.": (
        "df: no rows, so there is nothing to measure."
    ),
}
"""What is said of a file, and what a notebook says for it."""

_TEXTS = dict.fromkeys(("slices", "segments", "predicates"), '{"short": "length(text) < 100"}')
_TEXTS["groupings"] = '{"language": "lang"}'
_DICTS = _TEXTS | {
    "terms": '{"column": "text", "list": ["gay", "muslim"]}',
    "crossed": '{"pairs": True}',
    "grid": '{"steps": 100}',
    "tree": '{"max_depth": 3}',
    "pairs": '{"max_depth": 3}',
    "slice_search": '{"max_predicates": 2}',
}
"""What could stand where a dict is wanted; first those whose values are texts."""


def find_keywords(key: str, keywords: Collection[str]) -> list[str]:
    """Find the keywords that stand for a key of the configuration: of another name, or tables by their main key."""
    renamed = [keyword for (_, own), keyword in RENAMED.items() if own == key]
    tables = [table for table, own in MAIN_KEYS.items() if own == key]
    return [keyword for keyword in (*renamed, *tables) if keyword in keywords]


def name_keywords(fault: str, keywords: Collection[str], given: Mapping[str, Any]) -> str:
    """Return a fault of a configuration as one of the keywords of a function.

    Parameters
    ----------
    fault
        One of a `ConfigError` or an `InputError`.
    keywords
        Those that the function has.
    given
        What it was called with.
    """
    call, start = _Call(keywords, given), _PLACE.match(fault)
    said = _PLACE.sub(call.name_place, fault)
    for written, instead in _PHRASES.items():
        said = said.replace(written, instead)
    said = _OWN_FILE.sub("", said)
    if not start:
        return said
    table, part, key = start.groups()
    if table == "label":
        return _KEY_OF_LABEL.sub(lambda found: RENAMED["label", found[1]], said)
    if table == "models":
        said = said.replace("must be a dict", "must be text, a list or a dict")
    if table == "identities" and not part and "there is no such key" in said and key:
        said = said.replace("Remove it.", call.mend_identity(key))
    path = [table, part] if part else [table]
    return _EXAMPLE.sub(partial(call.write_example, path), said.replace(_NO_DICT, call.mend_dict(path)))


@dataclass(frozen=True)
class _Call:
    """The keywords of a function, and what it was called with."""

    keywords: Collection[str]
    given: Mapping[str, Any]

    def name_place(self, found: re.Match[str]) -> str:
        """Name the keyword of a table of the configuration, or of a key of one."""
        table, part, key = found.groups()
        if keyword := self._find_keyword(table, key):
            return keyword
        if part in self.keywords:
            return f"{part} {key}" if key else str(part)
        if table not in self.keywords and key in self.keywords:
            return str(key)
        return " ".join(filter(None, (table, part, key)))

    def write_example(self, path: Sequence[str], found: re.Match[str]) -> str:
        """Write what could stand in a table as the keyword, or the key of a dict, that a notebook has for it."""
        start, words, value = found.groups()
        *outer, key = words.split()
        if path[0] == "models":
            return f"{start} models = [{value}]"
        if keyword := self._find_keyword(path[0], key):
            return f"{start} {keyword} = {value}"
        return found[0] if key in self.keywords else f"{start} {self._write((*(outer or path), key), value)}"

    def mend_dict(self, path: Sequence[str]) -> str:
        """Say what to write where no dict is given; a text that is given becomes the value of one."""
        value: Any = self.given
        for name in self._within(path):
            value = value.get(name) if isinstance(value, Mapping) else None
        text = value[0] if isinstance(value, list | tuple) and value else value
        if path[-1] in _TEXTS and isinstance(text, str):
            return f"It must be a dict. Write {self._write((*path, 'name'), show_value(text))}."
        example = _DICTS.get(path[-1])
        return f"It must be a dict. Write, for example, {self._write(path, example)}." if example else _NO_DICT

    def mend_identity(self, name: str) -> str:
        """Say how to name an identity where it was taken for a key."""
        given = self.given["identities"].get(name)
        predicate = show_value(given) if isinstance(given, str) else '"..."'
        return f"For an identity of that name write {self._write(('identities', 'predicates', name), predicate)}."

    def _write(self, path: Sequence[str], value: str) -> str:
        """Write the value of a key within dicts, the first of them a keyword."""
        first, *inner = self._within(path)
        for name in reversed(inner):
            value = f'{{"{name}": {value}}}'
        return f"{first} = {value}"

    def _within(self, path: Sequence[str]) -> Sequence[str]:
        """Return the part of a path that begins with a keyword; its end where it has none."""
        return path[next((place for place, name in enumerate(path) if name in self.keywords), len(path) - 1) :]

    def _find_keyword(self, table: str, key: str | None) -> str | None:
        """Find the keyword of another name that a key has, or that of its table where no table is given.

        Where identities are a table, they have keys of their own.
        """
        keyword = RENAMED.get((table, str(key)))
        if keyword in self.keywords and (table != "identities" or keyword in self.given):
            return keyword
        is_short = table in self.keywords and not isinstance(self.given.get(table), Mapping | Identities)
        return table if is_short and key and key == _MEANT_KEYS.get(table) else None
