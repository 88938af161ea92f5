"""Generate the reference of keys in docs/configuration.md from their declarations in biasspark/config.

Used by scripts/docs.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from textwrap import dedent, fill

from biasspark.config import Config
from biasspark.config.declaration import REQUIRED, Declaration, Section, declarations
from biasspark.text import show_value

HEAD = ("key", "type", "default", "meaning")
WIDTH = 120


def describe_keys() -> str:
    """Return a heading, a sentence and a table of keys for every table of the configuration."""
    meanings = attribute_docs(Config)
    parts: list[str] = []
    for name, declared in declarations(Config).items():
        parts += describe_section(f"[{name}]", declared, meanings.get(name, ""))
    return "\n".join(parts) + "\n\n"


def describe_section(title: str, declared: Declaration, meaning: str) -> Iterator[str]:
    """Yield the description and the keys of a table, then those of the tables in it."""
    section = declared.kind.section
    text = inspect.cleandoc(section.__doc__ or "").partition("\n\n")[0] if section else meaning
    yield f"\n### {title}\n\n{fill(' '.join(text.replace('``', '`').split()), WIDTH)}"
    if section is None:
        return
    keys, meanings = declarations(section), attribute_docs(section)
    rows = [(f"`{key}`", entry.kind.title, default_of(entry), meanings[key]) for key, entry in keys.items()]
    for key, entry in keys.items():
        if entry.single:
            rows.append((f"`{entry.single}`", "text", "-", f"In place of `{key}`, for a single name."))
    yield "\n" + "\n".join(lay_out(rows, HEAD))
    for key, entry in keys.items():
        if entry.kind.section:
            inner = f"{title.strip('[]')}.{key}"
            yield from describe_section(f"[[{inner}]]" if entry.kind.title == "tables" else f"[{inner}]", entry, "")


def lay_out(rows: Iterable[tuple[str, ...]], head: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of a table of Markdown."""
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for row in rows:
        cells = (cell.replace("|", r"\|") for cell in row)
        yield f"| {' | '.join(cells)} |"


def default_of(declared: Declaration) -> str:
    """Return the default of a key as TOML; a dash if there is none."""
    if declared.default is REQUIRED or declared.default_text:
        return declared.default_text or "required"
    has_none = declared.default in (None, (), {}) or isinstance(declared.default, Section)
    return "-" if has_none else f"`{show_value(declared.default)}`"


def attribute_docs(section: type[Section]) -> dict[str, str]:
    """Return the docstring of each field of a section, on one line."""
    docs: dict[str, str] = {}
    for owner in reversed([base for base in section.__mro__ if issubclass(base, Section)]):
        (tree,) = ast.parse(dedent(inspect.getsource(owner))).body
        assert isinstance(tree, ast.ClassDef)
        for field, text in zip(tree.body, tree.body[1:], strict=False):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(doc))):
                    docs[name] = " ".join(doc.split())
    return docs
