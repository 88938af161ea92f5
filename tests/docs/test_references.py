"""The written references: what is committed is what scripts/docs writes, and the reader of configurations agrees."""

from __future__ import annotations

import copy
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from biasspark.config import parse_config
from biasspark.errors import ConfigError
from scripts.references import DOCS, PARTS, REFERENCES, put_between
from tests.least_configuration import changed

BASE = Path("/nowhere")
GIVEN_NAMES = ("[models]", "[slices]")
"""Tables whose keys are the user's."""

COMPLETE: dict[str, Any] = {
    "pinned_skew": {"identity": "male"},
    "templates": {"column": "template"},
    "thresholds": {"at": [0.5]},
    "compare": {"baseline": "toxicity"},
    "attribution": {"tree": {}, "pairs": {}, "slice_search": {}, "numeric": ["age"]},
    "gate": {"rule": [{"name": "floor", "metric": "bpsn_auc", "min": 0.8}]},
}
"""What a table needs besides defaults."""


def sections() -> dict[str, list[list[str]]]:
    """Give the lines of each table of keys, cell by cell, by the table's name."""
    text = (DOCS / "configuration.md").read_text("utf-8")
    parts = re.split(r"^### (\[.*\])$", text, flags=re.MULTILINE)[1:]
    rows = {
        name: re.findall(r"^\| `.*$", body, re.MULTILINE) for name, body in zip(parts[::2], parts[1::2], strict=True)
    }
    return {name: [[cell.strip() for cell in row.strip("|").split("|")] for row in own] for name, own in rows.items()}


SECTIONS = sections()
DEFAULTS = [
    (name, key.strip("`"), value)
    for name, rows in SECTIONS.items()
    for key, _, default, *_ in rows
    for value in re.findall(r"^`(.*)`$", default)
]


@pytest.mark.parametrize("name", REFERENCES)
def test_what_is_committed_is_what_is_written(name: str) -> None:
    page, write = REFERENCES[name]
    text = (DOCS / page).read_text("utf-8")
    assert put_between(text, name, write()) == text, "run scripts/docs"


def configuration_of(name: str, key: str | None, value: Any) -> dict[str, Any]:
    """Give a complete configuration that has the table of that name, and in it the key unless None."""
    path = name.strip("[]").split(".")
    table = changed(corpus={"id": "id"}, models={"other": "other"})
    table |= {path[0]: table.get(path[0]) or copy.deepcopy(COMPLETE.get(path[0], {}))}
    place: Any = table
    for part in path:
        place = place.setdefault(part, {})
        place = place[0] if isinstance(place, list) else place
    if key is not None:
        place[key] = value
    return table


@pytest.mark.parametrize("name", [name for name in PARTS if name not in GIVEN_NAMES])
def test_the_keys_are_those_that_the_reader_knows(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(configuration_of(name, "no_such_key", 0), BASE)
    (known,) = re.findall(r"no_such_key: there is no such key\. The keys of .*? are (.*?)\. ", str(caught.value))
    assert {key.strip("`") for key, *_ in SECTIONS[name]} == set(known.split(", "))


def test_every_table_is_described() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(changed(no_such_table={}), BASE)
    (known,) = re.findall(r"The tables are (.*?)\. ", str(caught.value))
    assert {name.strip("[]").partition(".")[0] for name in SECTIONS} == {name.strip("[]") for name in known.split(", ")}
    assert list(SECTIONS) == list(PARTS)


def means(name: str, key: str | None, value: Any) -> dict[str, Any]:
    return parse_config(configuration_of(name, key, value), BASE).resolved()


@pytest.mark.parametrize(("name", "key", "default"), DEFAULTS)
def test_a_default_may_as_well_be_written(name: str, key: str, default: str) -> None:
    value = tomllib.loads(f"value = {default}")["value"]
    if (name, key) == ("[label_balance]", "buckets"):  # without lengths there are none to cut
        assert means(name, "text", "t")["label_balance"]["buckets"] == value
        return
    assert means(name, key, value) == means(name, None, None)


def test_there_are_defaults() -> None:
    assert len(DEFAULTS) > 40
