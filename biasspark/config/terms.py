"""Lists of identity terms: one term a line, or a named group of terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from biasspark.config.faults import Faults
from biasspark.config.section import Section, find_broken_text_rule
from biasspark.config.source import URI_SCHEME, decode_utf8, locate, say_undecodable, say_unreadable
from biasspark.config.wording import describe_kind, quote, show_key, show_value


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Identities found in text: of each its name and the terms of which one must stand in the text as whole words."""

    column: str
    terms: tuple[tuple[str, tuple[str, ...]], ...]


Entry = tuple[str, object, list[object]]
"""Where an identity of a term list stands, its name, and its terms, all still unchecked."""

FORM = 'A line is one term, or a group as "name: a, b, c".'


def read_terms(value: object, base: Path, faults: Faults) -> Terms | None:
    """Read ``[identities.terms]``: ``column``, and the terms in a ``file`` or a ``list``.

    A file holds one term a line, or ``name: a, b, c`` for a group; empty lines and lines that begin with ``#`` say
    nothing. A list holds the same lines, or is a table of name = list of terms.
    """
    if value is None:
        return None
    section = Section("[identities.terms]", value, ("column", "file", "list"), faults)
    section.require_one_of("file", "list", 'list = ["christian", "muslim"]')
    column = section.text("column", "comment_text")
    entries = [*_entries_of_file(section, base), *_entries_of_list(section)]
    return Terms(column=column, terms=tuple(_check_entry(entry, section) for entry in entries))


def _entries_of_file(section: Section, base: Path) -> Iterator[Entry]:
    named = section.optional_text("file")
    if named is None:
        return
    try:
        lines = decode_utf8(Path(_find_file(named, base)).read_bytes()).split("\n")
    except UnicodeDecodeError as error:
        section.refuse("file", f"In this file {say_undecodable(error)}.", "Save the file as UTF-8.")
        return
    except (OSError, ValueError) as error:
        rule = f"It must be a file that can be read: {say_unreadable(error)}."
        section.refuse("file", rule, "It is looked up beside the configuration, then in the working folder.")
        return
    terms = [(number, line.strip()) for number, line in enumerate(lines, 1)]
    terms = [(number, line) for number, line in terms if line and not line.startswith("#")]
    if not terms:
        section.refuse("file", "It must hold at least one term.", "Write one term per line.")
    for number, line in terms:
        yield f"{section.where} file {quote(named)}, line {number}", *_split_line(line)


def _find_file(named: str, base: Path) -> str:
    if URI_SCHEME.match(named):
        raise ValueError("a term list is read from a local file, not from a URI")
    return locate(named, base) or named


def _entries_of_list(section: Section) -> Iterator[Entry]:
    given = section.table.get("list")
    if given is None:
        return
    if not isinstance(given, list | tuple | Mapping):
        rule = f"It must be a list of terms, not {describe_kind(given)}."
        section.refuse("list", rule, 'Write, for example, list = ["christian", "muslim"].')
    elif not given:
        section.refuse("list", "It must hold at least one term.", 'Write, for example, list = ["christian", "muslim"].')
    elif isinstance(given, Mapping):
        for name, terms in given.items():
            members = list(terms) if isinstance(terms, list | tuple) else [terms]
            yield f"{section.where} list {show_key(name)}", name, members
    else:
        for place, line in enumerate(given, 1):
            where = f"{section.where} list, entry {place}"
            yield (where, *_split_line(line.strip())) if isinstance(line, str) else (where, line, [line])


def _split_line(line: str) -> tuple[object, list[object]]:
    name, colon, terms = line.partition(":")
    return (name.strip(), [term.strip() for term in terms.split(",")]) if colon else (line, [line])


def _check_entry(entry: Entry, section: Section) -> tuple[str, tuple[str, ...]]:
    where, name, terms = entry
    texts = [name] if terms == [name] else [name, *terms]
    broken = [(text, rule) for text in texts if (rule := find_broken_text_rule(text))]
    section.note(*(f"{where}: {show_value(text)}. {rule} {FORM}" for text, rule in broken))
    if not terms:
        section.note(f"{where}: no terms. A group needs at least one. {FORM}")
    return name if isinstance(name, str) else "", tuple(term for term in terms if isinstance(term, str))
