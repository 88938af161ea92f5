"""Write the references in docs/ from the declarations: every table and column, every key of a configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

from biasspark.tables.schemas import (
    CORPUS,
    N_NIGHTS,
    RUN_DATE,
    RUN_ID,
    TABLES,
    WINDOW_START,
    WINDOW_TABLES,
    Column,
    Table,
)
from scripts.dev.configuration_reference import describe_keys

DOCS = Path(__file__).resolve().parents[2] / "docs"
BEGIN, END = "<!-- {}: written by scripts/docs -->\n", "<!-- /{} -->"
HEAD = ("column", "type", "meaning")
WIDTH = 120


def main() -> None:
    """Write both references."""
    for name, (page, text) in REFERENCES.items():
        path = DOCS / page
        path.write_text(put_between(path.read_text("utf-8"), name, text()), "utf-8")
        print(f"docs/{page}: {name}")


def put_between(page: str, name: str, text: str) -> str:
    """Replace what is between the two comments of that name by a text."""
    before, begin, rest = page.partition(BEGIN.format(name))
    _, end, after = rest.partition(END.format(name))
    if not (begin and end):
        raise SystemExit(f"docs: the comments of {name} are missing.")
    return before + begin + text + end + after


def describe_tables() -> str:
    """Return the reference of every table, in the order of the declarations."""
    shared = "\n".join(lay_out(list_columns((RUN_DATE, CORPUS, RUN_ID)), HEAD))
    parts = [f"\n## In every table\n\n{shared}\n"]
    parts += [describe_table(table) for table in TABLES.values() if table not in WINDOW_TABLES.values()]
    return "".join(parts) + describe_windows()


def describe_table(table: Table) -> str:
    """Return the reference of a table: what a row is, its key, the job that writes it, and its columns."""
    key = ", ".join(f"`{name}`" for name in table.key_columns)
    unique = "" if table.unique else ", which need not tell every two rows apart"
    job = f"`jobs/{table.job}.py`" if table.job != "(every job)" else "every job"
    rows = lay_out(list_columns((*table.key, *table.values)), HEAD)
    text = fill(f"{table.comment} Key: {key}{unique}. Written by {job}.", WIDTH)
    return f"\n## {table.name}\n\n{text}\n\n" + "\n".join(rows) + "\n"


def describe_windows() -> str:
    """Return the reference of the tables of windows, which have the columns of those of a night."""
    names = ", ".join(f"`{window.name}`" for window in WINDOW_TABLES.values())
    rows = "\n".join(lay_out(list_columns((WINDOW_START, N_NIGHTS)), HEAD))
    key = f"`{WINDOW_START.name}` and the key of that table"
    text = (
        f"{names}: the columns of the table of a night, and two more. Key: {key}. Written by `jobs/window_metrics.py`."
    )
    return f"\n## window_...\n\n{fill(text, WIDTH)}\n\n{rows}\n\n"


def list_columns(columns: tuple[Column, ...]) -> Iterator[tuple[str, ...]]:
    """Return name, type and comment of columns."""
    return ((f"`{column.name}`", f"`{column.type}`", column.comment) for column in columns)


def lay_out(rows: Iterator[tuple[str, ...]], head: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of a table of Markdown."""
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for row in rows:
        cells = (cell.replace("|", r"\|") for cell in row)
        yield f"| {' | '.join(cells)} |"


REFERENCES = {"tables": ("tables.md", describe_tables), "keys": ("configuration.md", describe_keys)}

if __name__ == "__main__":
    main()
