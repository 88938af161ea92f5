"""Lists of identity terms: one term a line, or a named group of terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from biasspark.config import kinds
from biasspark.config.declaration import REQUIRED, Kind, Section, Spot, broken_text_rule, setting
from biasspark.config.paths import URI_SCHEME, locate
from biasspark.config.toml_file import decode_utf8, describe_undecodable, describe_unreadable
from biasspark.errors import Line, type_of

_FORM = 'A line is one term, or a group as "name: a, b, c".'
_NONE = "It must hold at least one term."

Group = tuple[Spot, object, list[object]]
"""A group of terms before it is checked: where it is, its name, and its terms."""


def _read_file(spot: Spot) -> Any:
    """Read a file of terms, one per line; empty lines and lines that begin with ``#`` are passed over."""
    if rule := broken_text_rule(spot.value):
        return spot.refuse(rule)
    try:
        text = decode_utf8(_local_path(spot.value, spot.reader.base).read_bytes())
    except UnicodeDecodeError as error:
        return spot.refuse(f"In this file {describe_undecodable(error)}.", "Save the file as UTF-8.")
    except (OSError, ValueError) as error:
        rule = f"It must be a file that can be read: {describe_unreadable(error)}."
        return spot.refuse(rule, "It is looked up next to the configuration, then in the working folder.")
    lines = [spot.within(Line(number), line.strip()) for number, line in enumerate(text.split("\n"), 1)]
    groups = [(line, *_split(line.value)) for line in lines if line.value and not line.value.startswith("#")]
    return _check(groups) if groups else spot.refuse(_NONE, "Write one term per line.")


def _read_list(spot: Spot) -> Any:
    """Read the lines of such a file as a list, or a table of name = list of terms."""
    groups: list[Group] = []
    if isinstance(spot.value, Mapping):
        for name, terms in spot.value.items():
            groups.append((spot.within(name, terms), name, [*terms] if isinstance(terms, list | tuple) else [terms]))
    elif isinstance(spot.value, list | tuple):
        groups = [(spot.within(number, line), *_split(line)) for number, line in enumerate(spot.value, 1)]
    else:
        return spot.refuse(("It must be a list of terms, not ", type_of(spot.value), "."))
    return _check(groups) if groups else spot.refuse(_NONE)


@dataclass(frozen=True, kw_only=True)
class Terms(Section):
    """Identities found in text as whole words, any case.

    Once read, ``list`` maps each identity to its terms, of which one must be in the text, wherever they come from.
    """

    column: str = setting(REQUIRED, kinds.string(), example="comment_text")
    """The column of the text."""
    file: Any = setting(None, Kind("text", _read_file))
    """A file of terms, one per line, or `name: a, b, c` for a group. Give this or `list`."""
    list: dict[str, tuple[str, ...]] = setting(
        {}, Kind("list of text, or table", _read_list), example=["christian", "muslim"]
    )
    """The same lines, or name = list of terms."""

    def check(self, written: Spot) -> None:
        """Note the fault that both a file and a list are given, or neither."""
        written.need_one("file", "list", list=["christian", "muslim"])

    def resolve(self) -> Self:
        """Return the terms as a list."""
        return replace(self, list=self.file or self.list, file=None)


def _local_path(name: str, base: Path) -> Path:
    if URI_SCHEME.match(name):
        raise ValueError("a term list is read from a local file, not from a URI")
    return Path(locate(name, base))


def _split(line: object) -> tuple[object, list[object]]:
    """Split a line into the name of a group and its terms; a single term is both."""
    if not isinstance(line, str):
        return line, [line]
    name, colon, terms = line.partition(":")
    return (name.strip(), [term.strip() for term in terms.split(",")]) if colon else (line.strip(), [line.strip()])


def _check(groups: Iterable[Group]) -> dict[str, tuple[str, ...]]:
    """Return the groups of terms by name; note what is wrong with them."""
    checked: dict[str, tuple[str, ...]] = {}
    for spot, name, terms in groups:
        for text in [name, *(term for term in terms if terms != [name])]:
            if rule := broken_text_rule(text):
                replace(spot, value=text).refuse(rule, _FORM)
        if not terms:
            spot.refuse("A group has at least one term.", _FORM)
        if name in checked:
            spot.refuse("An earlier entry has the same name. Names must differ.", "Rename or remove one.")
        if isinstance(name, str):
            checked[name] = tuple(term for term in terms if isinstance(term, str))
    return checked
