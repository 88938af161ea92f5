"""Write the references in docs/ from the declarations: every table and column, every key of a configuration.

Used by scripts/docs.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import dedent, fill

from biasspark.config import Config
from biasspark.config.declaration import REQUIRED, Declaration, Section, declarations
from biasspark.tables import schemas
from biasspark.tables.schemas import TABLES, WINDOW_TABLES, Column, Table
from biasspark.text import show_value

DOCS = Path(__file__).resolve().parents[2] / "docs"
BEGIN, END = "<!-- {}: written by {} -->\n", "<!-- /{} -->"
HEAD, KEY_HEAD = ("column", "type", "meaning"), ("key", "type", "default", "meaning")
WIDTH = 120
INTERVAL_END = re.compile(
    r"(Lower|Upper) end of [^.]*\bat the configured level(, 0\.95 unless given)?(, by Newcombe)?\. "
    r"-?[\d.]+ (or more|or less|to -?[\d.]+)\. NULL [^.]*\."
)
"""The usual comment of an end of an interval, which the page explains once for all."""

_USES = Counter(
    column for table in TABLES.values() if table not in WINDOW_TABLES.values() for column in (*table.key, *table.values)
)
_MOST_USED = {column.name: column for column, _ in reversed(_USES.most_common())}
COMMON = tuple(
    column
    for column, count in _USES.items()
    if count > 1 and column == _MOST_USED[column.name] and not INTERVAL_END.fullmatch(column.comment)
)
"""The columns that several tables declare alike, one of each name."""

WRITERS = {
    "bias_runs": "every job that publishes, accepts or compacts a run",
    "training_balance": "`jobs/mitigation_experiment.py`",
}
"""What writes a table, if it is not just the job whose runs its views show."""


def main() -> None:
    for name, (page, text) in REFERENCES.items():
        path = DOCS / page
        path.write_text(put_between(path.read_text("utf-8"), name, text()), "utf-8")
        print(f"docs/{page}: {name}")


def put_between(page: str, name: str, text: str, script: str = "scripts/docs") -> str:
    """Replace the text between the two comments of that name, which say that a script writes it."""
    before, begin, rest = page.partition(BEGIN.format(name, script))
    _, end, after = rest.partition(END.format(name))
    if not (begin and end):
        raise SystemExit(f"docs: the comments of {name} are missing.")
    return before + begin + text + end + after


def describe_tables() -> str:
    """Return the reference of every table, in the order of the declarations."""
    shared = (schemas.RUN_DATE, schemas.CORPUS, schemas.RUN_ID)
    common, everywhere = (lay_out(list_columns(columns), HEAD) for columns in (COMMON, shared))
    parts = [f"\n## In every table\n\n{everywhere}\n\n## In several tables\n\n{common}\n"]
    parts += [describe_table(table) for table in TABLES.values() if table not in WINDOW_TABLES.values()]
    return "".join(parts) + describe_windows()


def describe_table(table: Table) -> str:
    """Return the reference of a table: what a row is, its key, the job that writes it, and its columns."""
    key = ", ".join(f"`{name}`" for name in table.key_columns)
    unique = "" if table.unique else ", which may repeat"
    writer = WRITERS.get(table.name, f"`jobs/{table.job}.py`")
    text = fill(f"{table.comment} Key: {key}{unique}. Written by {writer}.", WIDTH)
    if common := [f"`{column.name}`" for column in table.values if column in COMMON]:
        text += "\n\n" + fill(f"As [in several tables](#in-several-tables): {', '.join(common)}.", WIDTH)
    rows = lay_out(list_columns(column for column in (*table.key, *table.values) if column not in COMMON), HEAD)
    return f"\n## {table.name}\n\n{text}\n\n{rows}\n"


def describe_windows() -> str:
    """Return the reference of the tables of windows, which have the columns of those of a run."""
    names = ", ".join(f"`{window.name}`" for window in WINDOW_TABLES.values())
    rows = lay_out(list_columns((schemas.WINDOW_START, schemas.N_RUNS)), HEAD)
    key = f"`{schemas.WINDOW_START.name}` and the key of that table"
    text = f"{names}: the columns of the table of a run, and two more. Key: {key}. Written by `jobs/window_metrics.py`."
    return f"\n## window_...\n\n{fill(text, WIDTH)}\n\n{rows}\n\n"


def list_columns(columns: Iterable[Column]) -> Iterator[tuple[str, ...]]:
    """Yield names, type and comment of columns; columns whose comments differ in one name, X, share a row.

    The ends of an interval, and the value of the background, are in the row of their value: the page explains them
    once.
    """
    declared = {column.name: column for column in columns}
    following = {
        name: value
        for name, column in declared.items()
        for value in (re.sub("_(low|high)$", "", name), name.removeprefix("background_"))
        if value in declared and follows(column, declared[value])
    }
    rows: dict[tuple[str, str], list[Column]] = {}
    for column in declared.values():
        if column.name not in following:
            rows.setdefault((column.type, generalize(column)), []).append(column)
    for (kind, comment), alike in rows.items():
        values = [column.name for column in alike]
        names = [name for name in declared if name in values or following.get(name) in values]
        yield ", ".join(f"`{name}`" for name in names), f"`{kind}`", comment if len(alike) > 1 else alike[0].comment


def follows(column: Column, value: Column) -> bool:
    """Return whether a column is merely an end of the interval of a value, or the value of the background."""
    of_background = value.comment.replace("the identity", "the background")
    return column != value and (column.comment == of_background or bool(INTERVAL_END.fullmatch(column.comment)))


def generalize(column: Column) -> str:
    """Return the comment of a column with X for the longest beginning of its name that occurs in it."""
    text = re.sub(r"\bno_\w+(, no_\w+)+", "no_ and the name of an empty cell", column.comment)
    words = column.name.split("_")
    for count in range(len(words), 0, -1):
        begins = "_".join(words[:count])
        comment = re.sub(rf"(?<!\w){begins}(?![a-z])", "X", text)
        if comment != text:
            return comment
    return text


# ---- keys of the configuration


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
    yield "\n" + lay_out(rows, KEY_HEAD)
    for key, entry in keys.items():
        if entry.kind.section:
            inner = f"{title.strip('[]')}.{key}"
            yield from describe_section(f"[[{inner}]]" if entry.kind.title == "tables" else f"[{inner}]", entry, "")


def lay_out(rows: Iterable[tuple[str, ...]], head: tuple[str, ...]) -> str:
    escaped = ([cell.replace("|", r"\|") for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *escaped))


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


REFERENCES = {"tables": ("tables.md", describe_tables), "keys": ("configuration.md", describe_keys)}

if __name__ == "__main__":
    main()
