"""The written references: what is committed is what scripts/docs writes, and the reader of configurations agrees."""

from __future__ import annotations

import copy
import re
import tomllib
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from biasspark.config import parse_config
from biasspark.tables.schemas import TABLES, WINDOW_TABLES, Table
from scripts.dev.references import DOCS, REFERENCES, put_between
from tests.harness.least_configuration import changed, keys_of

COMPLETE: dict[str, Any] = {
    "pinned_skew": {"identity": "male"},
    "templates": {"column": "template"},
    "thresholds": {"at": [0.5]},
    "compare": {"baseline": "toxicity"},
    "attribution": {"tree": {}, "pairs": {}, "slice_search": {}, "numeric": ["age"]},
    "gate": {"rule": [{"name": "floor", "metric": "bpsn_auc", "min": 0.8}]},
}
"""What a table needs besides defaults."""


def documented() -> dict[str, list[list[str]]]:
    """Return the rows of each table of keys in docs/configuration.md, cell by cell, by the table's name."""
    text = (DOCS / "configuration.md").read_text("utf-8")
    parts = re.split(r"^### (\[.*\])$", text, flags=re.MULTILINE)[1:]
    rows = {
        name: re.findall(r"^\| `.*$", body, re.MULTILINE) for name, body in zip(parts[::2], parts[1::2], strict=True)
    }
    return {name: [[cell.strip() for cell in row.strip("|").split("|")] for row in own] for name, own in rows.items()}


KEYS = documented()
DEFAULTS = [
    (name, key.strip("`"), value)
    for name, rows in KEYS.items()
    for key, _, default, *_ in rows
    for value in re.findall(r"^`(.*)`$", default)
]
assert len(DEFAULTS) > 40


@pytest.mark.parametrize("name", REFERENCES)
def test_what_is_committed_is_what_is_written(name: str) -> None:
    page, write = REFERENCES[name]
    text = (DOCS / page).read_text("utf-8")
    assert put_between(text, name, write()) == text, "run scripts/docs"


def test_generated_text_is_between_its_comments() -> None:
    page = "a\n<!-- t: written by x -->\n{}\n<!-- /t -->\nb"
    assert put_between(page.format("old"), "t", "new\n", "x") == page.format("new")
    with pytest.raises(SystemExit):
        put_between("a\nb", "t", "new\n")


@pytest.mark.parametrize(
    "table", [table for table in TABLES.values() if table not in WINDOW_TABLES.values()], ids=attrgetter("name")
)
def test_every_column_is_named_where_its_table_is(table: Table) -> None:
    text = (DOCS / "tables.md").read_text("utf-8")
    _, _, section = text.partition(f"\n## {table.name}\n")
    section = section.partition("\n## ")[0]
    common = text.partition("\n## In several tables\n")[2].partition("\n## ")[0]
    columns = [column.name for column in (*table.key, *table.values)]
    assert [name for name in columns if f"`{name}`" not in section] == []
    rows = [line.partition("` | ")[0] for line in (section + common).splitlines() if line.startswith("| `")]
    assert [name for name in columns if not any(f"`{name}`" in f"{row}`" for row in rows)] == []


def configuration_of(name: str, key: str | None, value: Any) -> dict[str, Any]:
    """Return a complete configuration that has the table of that name, and in it the key unless None."""
    path = name.strip("[]").split(".")
    table = changed(corpus={"id": "id"}, models={"other": "other"})
    if path == ["mitigation"]:  # which fills in what it needs
        table = {"output": table["output"]}
    table |= {path[0]: table.get(path[0]) or copy.deepcopy(COMPLETE.get(path[0], {}))}
    inner: Any = table
    for part in path:
        inner = inner.setdefault(part, {})
        inner = inner[0] if isinstance(inner, list) else inner
    if key is not None:
        inner[key] = value
    return table


@pytest.mark.parametrize("name", [name for name, rows in KEYS.items() if rows])
def test_any_other_key_is_a_fault(name: str) -> None:
    assert any(key.endswith("no_such_key") for key in keys_of(configuration_of(name, "no_such_key", 0)))


@pytest.mark.parametrize(("name", "key", "default"), DEFAULTS)
def test_a_default_may_as_well_be_written(name: str, key: str, default: str) -> None:
    value = tomllib.loads(f"value = {default}")["value"]
    tables = configuration_of(name, key, value)
    if key == "buckets":  # without lengths there are none to cut
        tables["label_balance"]["text"] = "t"
    without = copy.deepcopy(tables)
    if "rule" not in name:
        inner: Any = without
        for part in name.strip("[]").split("."):
            inner = inner[part]
        del inner[key]
    else:
        del without["gate"]["rule"][0][key]
    assert parse_config(tables, Path()).resolved() == parse_config(without, Path()).resolved()
