"""The references in docs/, written from the declarations: every table and column, every key of a configuration."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from textwrap import fill
from typing import Any

from biasspark import config
from biasspark.columns import FOUR_CELLS
from biasspark.config.compare import COMPARE_METHODS
from biasspark.config.gate import COUNTS_AS, SEVERITIES
from biasspark.config.identities import UNANNOTATED
from biasspark.config.model import DUPLICATES, ENGINES, OUTPUT_FORMATS
from biasspark.config.reading import USUAL_BINS
from biasspark.config.wording import list_choices, show_value
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

DOCS = Path(__file__).resolve().parents[1] / "docs"
BEGIN, END = "<!-- {}: written by scripts/docs -->\n", "<!-- /{} -->"
HEAD = ("column", "type", "meaning")
WIDTH = 120


def main() -> None:
    """Write both references in place."""
    for name, (page, text) in REFERENCES.items():
        path = DOCS / page
        path.write_text(put_between(path.read_text("utf-8"), name, text()), "utf-8")
        print(f"docs/{page}: {name}")


def put_between(page: str, name: str, text: str) -> str:
    """Put a text in place of what stands between the two comments of that name."""
    before, begin, rest = page.partition(BEGIN.format(name))
    _, end, after = rest.partition(END.format(name))
    if not (begin and end):
        raise SystemExit(f"docs: the comments of {name} are missing.")
    return before + begin + text + end + after


# ---- tables


def describe_tables() -> str:
    """Return what is said about every table, in the order of the declarations."""
    shared = "\n".join(lay_out(list_columns((RUN_DATE, CORPUS, RUN_ID)), HEAD))
    parts = [f"\n## In every table\n\n{shared}\n"]
    parts += [describe_table(table) for table in TABLES.values() if table not in WINDOW_TABLES.values()]
    return "".join(parts) + describe_windows()


def describe_table(table: Table) -> str:
    """Return what is said about one table: what a row is, its key, who writes it, and its columns."""
    key = ", ".join(f"`{name}`" for name in table.key_columns)
    unique = "" if table.unique else ", which need not tell every two rows apart"
    job = f"`jobs/{table.job}.py`" if table.job != "(every job)" else "every job"
    rows = lay_out(list_columns((*table.key, *table.values)), HEAD)
    said = fill(f"{table.comment} Key: {key}{unique}. Written by {job}.", WIDTH)
    return f"\n## {table.name}\n\n{said}\n\n" + "\n".join(rows) + "\n"


def describe_windows() -> str:
    """Return what is said about the tables of windows, which have the columns of those of a night."""
    names = ", ".join(f"`{window.name}`" for window in WINDOW_TABLES.values())
    rows = "\n".join(lay_out(list_columns((WINDOW_START, N_NIGHTS)), HEAD))
    key = f"`{WINDOW_START.name}` and the key of that table"
    said = (
        f"{names}: the columns of the table of a night, and two more. Key: {key}. Written by `jobs/window_metrics.py`."
    )
    return f"\n## window_...\n\n{fill(said, WIDTH)}\n\n{rows}\n\n"


def list_columns(columns: tuple[Column, ...]) -> Iterator[tuple[str, ...]]:
    """Yield name, type and comment of columns."""
    return ((f"`{column.name}`", f"`{column.type}`", column.comment) for column in columns)


def lay_out(rows: Iterator[tuple[str, ...]], head: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of a table of Markdown."""
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for row in rows:
        cells = (cell.replace("|", r"\|") for cell in row)
        yield f"| {' | '.join(cells)} |"


# ---- configuration


@dataclass(frozen=True)
class Part:
    """A table of the configuration, and where its declaration does not say how it is written.

    Attributes
    ----------
    declared
        The dataclass that it becomes; None for a table of names that the user gives.
    says
        What it is, where the docstring of the dataclass is not what a reader wants.
    keys
        Key to type and meaning, in place of the fields of those names, or beside them.
    defaults
        Key to default in words.
    """

    declared: type[Any] | None = None
    says: str = ""
    keys: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)


ALIKE = "In place of the list, for a single name."
PARTS = {
    "[corpus]": Part(config.Corpus),
    "[label]": Part(config.Label),
    "[models]": Part(says="name = score column. Higher is more likely positive. At least one."),
    "[identities]": Part(config.Identities),
    "[identities.terms]": Part(
        says="Identities found in text as whole words, any case.",
        keys={
            "column": ("text", "The column of the text. Required."),
            "file": ("text", "A file of terms, one per line, or `name: a, b, c` for a group. Give this or `list`."),
            "list": ("list of text, or table", "The same lines, or name = list of terms."),
        },
    ),
    "[identities.crossed]": Part(config.Crossed),
    "[slices]": Part(says="name = predicate of Spark SQL. The slice `all` is always there."),
    "[ranking]": Part(config.RankingSettings, defaults={"bins": f'{USUAL_BINS} with `engine = "binned"`'}),
    "[intervals]": Part(config.Intervals),
    "[pinned_auc]": Part(config.PinnedAuc),
    "[thresholds]": Part(
        config.Thresholds,
        keys={
            "at": ("list of numbers", "Single thresholds. Give these, a grid, or both."),
            "grid": ("table", "`low` (0.0), `high` (1.0) and `steps` (100): both ends and what lies between."),
        },
        defaults={"at": "-"},
    ),
    "[histograms]": Part(config.Histograms),
    "[label_balance]": Part(config.LabelBalance),
    "[templates]": Part(config.Templates),
    "[pinned_skew]": Part(config.PinnedSkew),
    "[attribution]": Part(
        config.Attribution,
        keys={
            "link": (
                "text, or table of text",
                '`"logit"` where the scores of all models are log-odds, as the losses need probabilities; or model = '
                '`"logit"` for each model where they are.',
            ),
        },
    ),
    "[attribution.tree]": Part(config.TreeSettings),
    "[attribution.pairs]": Part(config.Pairs),
    "[attribution.slice_search]": Part(config.SliceSearch),
    "[compare]": Part(config.Compare, defaults={"models": "all but the baseline", "groups": "100 with the jackknife"}),
    "[evidence]": Part(config.EvidenceSettings),
    "[privacy]": Part(config.Privacy),
    "[gate]": Part(config.Gate, defaults={"rule": "required"}),
    "[[gate.rule]]": Part(
        config.Rule,
        keys=dict.fromkeys(("model", "slice", "identity"), ("text", ALIKE)),
        defaults={"models": "every one", "identities": "every one", "insufficient": "that of `[gate]`"},
    ),
    "[rejects]": Part(config.Rejects),
    "[state]": Part(config.StateSettings),
    "[output]": Part(config.Output),
    "[report]": Part(config.ReportSettings),
    "[maintenance]": Part(config.Maintenance),
}
CHOICES = {
    ("[corpus]", "duplicates"): DUPLICATES,
    ("[identities]", "unannotated"): UNANNOTATED,
    ("[ranking]", "engine"): ENGINES,
    ("[output]", "format"): OUTPUT_FORMATS,
    ("[compare]", "method"): COMPARE_METHODS,
    ("[pinned_skew]", "cell"): FOUR_CELLS,
    ("[gate]", "insufficient"): COUNTS_AS,
    ("[[gate.rule]]", "severity"): SEVERITIES,
    ("[[gate.rule]]", "insufficient"): COUNTS_AS,
}
TYPES = {
    "str": "text",
    "int": "whole number",
    "float": "number",
    "bool": "true or false",
    "tuple[str, ...]": "list of text",
    "tuple[int, ...]": "list of whole numbers",
    "tuple[float, ...]": "list of numbers",
    "tuple[float, float]": "two numbers",
    "tuple[tuple[str, str], ...]": "list of two models each",
    "tuple[str | bool | int | float, ...]": "list of values",
    "tuple[Rule, ...]": "tables",
    "dict[str, str]": "table of text",
    "dict[str, int]": "table of whole numbers",
}


def describe_keys() -> str:
    """Return what is said about every table of the configuration."""
    return "".join(f"\n### {name}\n\n{''.join(describe_part(name, part))}" for name, part in PARTS.items()) + "\n"


def describe_part(name: str, part: Part) -> Iterator[str]:
    """Yield what a table is, and its keys."""
    says, meanings = read_docstring(part.declared) if part.declared else (part.says, {})
    yield f"{part.says or says}\n"
    declared = {own.name: own for own in fields(part.declared)} if part.declared else {}
    keys = {**dict.fromkeys(declared), **dict.fromkeys(part.keys)}
    if not keys:
        return
    explained = bool(meanings) or bool(part.keys)
    rows = []
    for key in keys:
        kind, meaning = part.keys.get(key) or (type_of(name, declared[key]), meanings.get(key, ""))
        default = part.defaults.get(key) or (default_of(declared[key]) if key in declared else "-")
        rows.append((f"`{key}`", kind, default, *((meaning,) if explained else ())))
    head = ("key", "type", "default", *(("meaning",) if explained else ()))
    yield "\n" + "\n".join(lay_out(iter(rows), head)) + "\n"


def type_of(name: str, own: Field[Any]) -> str:
    """Return the type of a key in words, or what it may be."""
    if choices := CHOICES.get((name, own.name)):
        return list_choices(choices)
    return TYPES.get(str(own.type).removesuffix(" | None"), "table")


def default_of(own: Field[Any]) -> str:
    """Return the default of a key as TOML writes it; a dash where there is none."""
    if own.default is MISSING and own.default_factory is MISSING:
        return "required"
    plain = own.default is not MISSING and own.default is not None and not hasattr(own.default, "__dataclass_fields__")
    empty = own.default in ((), "")
    return f"`{show_value(own.default)}`" if plain and not empty else "-"


def read_docstring(declared: type[Any]) -> tuple[str, dict[str, str]]:
    """Return what a dataclass is, and the meanings of those attributes that it explains."""
    text = inspect.cleandoc(declared.__doc__ or "")
    says, _, attributes = text.partition("\nAttributes\n----------\n")
    meanings: dict[str, str] = {}
    for names, meaning in re.findall(r"^(\w[\w, ]*)\n((?: {4}.*\n?)+)", attributes, re.MULTILINE):
        first, *others = names.split(", ")
        meanings |= {first: " ".join(meaning.split()), **dict.fromkeys(others, f"See `{first}`.")}
    paragraphs = (fill(" ".join(paragraph.split()), WIDTH) for paragraph in literal(says).strip().split("\n\n"))
    return "\n\n".join(paragraphs), {name: literal(meaning) for name, meaning in meanings.items()}


def literal(text: str) -> str:
    """Return a docstring's text as Markdown has it, in the words of a configuration: what is None is left out."""
    text = text.replace("``", "`").replace(", or None", "").replace("None is", "left out, it is")
    return text.replace("None ", "left out ")


REFERENCES = {"tables": ("tables.md", describe_tables), "keys": ("configuration.md", describe_keys)}

if __name__ == "__main__":
    main()
