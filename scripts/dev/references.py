"""Write the references in docs/ from the declarations: every table and column, every key of a configuration.

Used by scripts/docs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import fill

from biasspark.tables.schemas import (
    CORPUS,
    N_RUNS,
    RUN_DATE,
    RUN_ID,
    TABLES,
    WINDOW_START,
    WINDOW_TABLES,
    Column,
    Table,
)
from scripts.dev.configuration_reference import WIDTH, describe_keys, lay_out

DOCS = Path(__file__).resolve().parents[2] / "docs"
BEGIN, END = "<!-- {}: written by {} -->\n", "<!-- /{} -->"
HEAD = ("column", "type", "meaning")
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


def main() -> None:
    """Write both references."""
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
    shared = (RUN_DATE, CORPUS, RUN_ID)
    common = "\n".join(lay_out(list_columns(COMMON), HEAD))
    everywhere = "\n".join(lay_out(list_columns(shared), HEAD))
    parts = [f"\n## In every table\n\n{everywhere}\n\n## In several tables\n\n{common}\n"]
    parts += [describe_table(table) for table in TABLES.values() if table not in WINDOW_TABLES.values()]
    return "".join(parts) + describe_windows()


def describe_table(table: Table) -> str:
    """Return the reference of a table: what a row is, its key, the job that writes it, and its columns."""
    key = ", ".join(f"`{name}`" for name in table.key_columns)
    unique = "" if table.unique else ", which may repeat"
    job = f"`jobs/{table.job}.py`" if table.job != "(every job)" else "every job"
    text = fill(f"{table.comment} Key: {key}{unique}. Written by {job}.", WIDTH)
    if common := [f"`{column.name}`" for column in table.values if column in COMMON]:
        text += "\n\n" + fill(f"As [in several tables](#in-several-tables): {', '.join(common)}.", WIDTH)
    rows = lay_out(list_columns(column for column in (*table.key, *table.values) if column not in COMMON), HEAD)
    return f"\n## {table.name}\n\n{text}\n\n" + "\n".join(rows) + "\n"


def describe_windows() -> str:
    """Return the reference of the tables of windows, which have the columns of those of a run."""
    names = ", ".join(f"`{window.name}`" for window in WINDOW_TABLES.values())
    rows = "\n".join(lay_out(list_columns((WINDOW_START, N_RUNS)), HEAD))
    key = f"`{WINDOW_START.name}` and the key of that table"
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


REFERENCES = {"tables": ("tables.md", describe_tables), "keys": ("configuration.md", describe_keys)}

if __name__ == "__main__":
    main()
