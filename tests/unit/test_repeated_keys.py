"""Keys and tables that a configuration gives twice, with their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from biasspark.config import load_config
from biasspark.errors import ConfigError


def fault_of(folder: Path, text: str) -> str:
    (folder / "c.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(folder / "c.toml")
    (message,) = caught.value.messages
    return message.removeprefix(f'"{folder}/c.toml": ')


def test_a_model_that_is_named_twice(tmp_path: Path) -> None:
    text = '[corpus]\nname = "civil"\n\n[models]\ntox = "a"\n# the new one\ntox = "b"\n\n[label]\ncolumn = "y"\n'
    fault = fault_of(tmp_path, text)
    assert fault.startswith("[models] tox is given in line 5 and again in line 7.")
    assert fault_of(tmp_path, text.replace("\n", "\r\n")) == fault


@pytest.mark.parametrize(
    ("text", "key", "lines"),
    [
        ("a = 1\na = 2", "a", (1, 2)),  # no newline at the end
        ("[m]\n\"x y\" = 1\n'x y' = 2\n", '[m] "x y"', (2, 3)),
        ("[m]\nx = [\n  1,\n]\ny = 1\nx = [\n  2,\n]\n[n]\n", "[m] x", (2, 6)),
        ('[m]\nx = """\nx = 1\n"""\nx = 2\n', "[m] x", (2, 5)),
        ("[m.n]\nx = 1\n[o]\n[m.q]\nx = 1\nx = 1\n", "[m.q] x", (5, 6)),
        ("[m]\nx.y = 1\nx.y = 2\n", "[m] x.y", (2, 3)),
        ("[[g.rule]]\nname = 1\n[[g.rule]]\nname = 2\nmin = 1\nname = 3\n", "[g.rule] name", (4, 6)),
        ("[m]\nx = 1\n[n]\ny = 1\n[m]\nz = 1\n", "[m]", (1, 5)),
        ("m.x = 1\n[m]\ny = 1\n", "[m]", (1, 2)),
    ],
)
def test_the_key_and_both_lines_are_named(tmp_path: Path, text: str, key: str, lines: tuple[int, int]) -> None:
    assert fault_of(tmp_path, text).startswith(f"{key} is given in line {lines[0]} and again in line {lines[1]}. ")


def test_a_key_of_a_table_within_a_line(tmp_path: Path) -> None:
    fault = fault_of(tmp_path, "[label]\ncolumn = { x = 1, x = 2 }\n")
    assert fault.startswith("line 2: the key 'x' is given twice")


@pytest.mark.parametrize("text", ["a = {}\n[a.b]\n", "a = { x = 1 }\na.y = 2\n", "a = 1\na.b = 2\n"])
def test_other_faults_are_said_as_tomllib_says_them(tmp_path: Path, text: str) -> None:
    fault = fault_of(tmp_path, text)
    assert "The configuration must be TOML" in fault
    assert "(at line 2" in fault
