"""The pages, and every block of code in them as far as that takes no Spark: read, parsed, looked up, asked of DuckDB.

What takes Spark is in test_code_blocks_in_spark.py, and test_commands_in_full.py runs the commands themselves.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import runpy
import shlex
import tomllib
from contextlib import redirect_stdout, suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from itertools import dropwhile
from pathlib import Path
from typing import Any

import pytest

import biasspark
from biasspark.command import JOBS as JOBS_OF_COMMANDS
from biasspark.config import load_config, parse_config
from biasspark.errors import ConfigError
from biasspark.tables.schemas import TABLES
from scripts.dev.references import DOCS, REFERENCES, put_between
from tests.harness.documents import BLOCKS, PAGES, ROOT, Code, blocks_of, files_of, headings_of, read_commands
from tests.harness.example_run import write_run
from tests.harness.running_jobs import open_views

REMARKS = {
    "text": {"output", "leaves of the census"},
    "sql": {""},
    "toml": {"", "file", "added to"},
    "python": {"", "from", "slow", "elsewhere"},
    "sh": {"", "slow", "apart", "elsewhere"},
    "dockerfile": {"elsewhere"},
}
"""The languages that blocks have, and what may be said of them: of each kind there is a test."""

OTHER_TABLES = """
corpus = { name = "civil", path = "data/civil", id = "id" }
label = { column = "target", threshold = 0.5 }
models = { toxicity_1 = "toxicity_1", toxicity_6 = "toxicity_6", new = "new", old = "old" }
identities = { columns = ["black", "gay", "muslim", "male", "female"] }
output = { path = "warehouse" }
"""
"""The rest of a configuration of which a block shows a part."""


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert [str(block) for block in BLOCKS if block.remark not in REMARKS.get(block.language, ())] == []


def test_output_follows_commands() -> None:
    positions = {block: place for place, block in enumerate(BLOCKS)}
    before = [BLOCKS[positions[block] - 1] for block in blocks_of("text", "output")]
    assert before
    assert {block.language for block in before} == {"sh", "python"}


# ---- what is written by scripts/docs


@pytest.mark.parametrize("name", REFERENCES)
def test_what_is_committed_is_what_is_written(name: str) -> None:
    page, write = REFERENCES[name]
    text = (DOCS / page).read_text("utf-8")
    assert put_between(text, name, write()) == text, "run scripts/docs"


# ---- links


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    for path, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", text):
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.is_file(), path
        assert not anchor or anchor in headings_of(target), anchor


@pytest.mark.parametrize("page", PAGES)
def test_rows_of_tables_have_the_cells_of_their_head(page: str) -> None:
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1, table


def test_every_page_is_reached_from_the_readme() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert [page for page in PAGES[1:] if f"]({page})" not in text] == []


@pytest.mark.parametrize("page", ["docs/notebook.md", "docs/questions.md"])
def test_every_public_function_is_explained(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    functions = [name for name in biasspark.__all__ if name[0].islower()]
    assert [name for name in functions if not re.search(rf"`(biasspark\.)?{name}[`(]", text)] == []


def test_every_table_answers_a_question() -> None:
    text = (ROOT / "docs" / "questions.md").read_text("utf-8")
    tables = [name for name in TABLES if not name.startswith("window_")]
    assert [name for name in tables if f"`{name}`" not in text] == []


# ---- configurations


def read_whole(text: str) -> dict[str, Any]:
    """Give a configuration as TOML: the block alone where it has a corpus, else within its surroundings."""
    table = tomllib.loads(text)
    return table if "corpus" in table else tomllib.loads(OTHER_TABLES) | table


@pytest.mark.parametrize("block", blocks_of("toml"), ids=str)
def test_configurations_are_read(block: Code) -> None:
    parse_config(read_whole(block.text), ROOT)


OPTIONAL = [(block, line) for block in blocks_of("toml") for line in re.findall(r"^# \w+ = .*$", block.text, re.M)]


@pytest.mark.parametrize(("block", "line"), OPTIONAL, ids=str)
def test_lines_in_comments_name_keys_that_there_are(block: Code, line: str) -> None:
    """They may exclude what is written beside them, but they are no unknown keys."""
    text = block.text.replace(line, line.removeprefix("# "))
    with suppress(ConfigError):
        parse_config(read_whole(text), ROOT)
        return
    with pytest.raises(ConfigError) as caught:
        parse_config(read_whole(text), ROOT)
    assert "there is no such" not in str(caught.value)


# ---- excerpts


@pytest.mark.parametrize("block", blocks_of("python"), ids=str)
def test_python_is_python_and_excerpts_stand_where_they_are_from(block: Code) -> None:
    assert ast.parse(block.text).body
    if block.remark == "from":
        source = (ROOT / block.says).read_text("utf-8")
        assert " ".join(block.text.split()) in " ".join(source.split())


# ---- queries


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the commands find in a clone of the project whose demo was run, and the tutorial."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("conf", "jobs", "scripts", "biasspark", ".venv"):
        (folder / name).symlink_to(ROOT / name)
    write_run(folder / "build" / "demo" / "warehouse")
    (folder / "build" / "tutorial").symlink_to("demo")
    return folder


def test_duckdb_answers(workplace: Path) -> None:
    views = open_views(workplace / "build" / "demo" / "warehouse")
    assert [str(block) for block in blocks_of("sql") if not views.execute(block.text).fetchall()] == []


def test_the_first_rows_of_a_query_are_those_of_spark_and_of_duckdb() -> None:
    """Spark sorts NULL first, DuckDB last."""
    limited = [block for block in BLOCKS if re.search(r"ORDER BY.*LIMIT", block.text, re.DOTALL)]
    assert limited
    assert [str(block) for block in limited if "NULLS LAST" not in block.text] == []


# ---- commands

COMMANDS = [(block, words) for block in blocks_of("sh", "", "slow", "apart") for words in read_commands(block)]
NOT_OURS = {"git", "export", "mkdir", "pip", "python3"}
"""Commands that are not of this project."""


@pytest.mark.parametrize(("block", "words"), COMMANDS, ids=[f"{block} {words[0]}" for block, words in COMMANDS])
def test_commands_are_understood(
    block: Code, words: list[str], workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workplace)
    for name, text in files_of(block).items():
        (workplace / name).write_text(text, "utf-8")
    program, *arguments = dropwhile(re.compile(r"[A-Z_]+=").match, words)
    if program in NOT_OURS:
        return
    if Path(program).name == "biasspark":
        check_command(*arguments)
    elif program in ("python", ".venv/bin/python"):
        check_python(arguments)
    elif any(word.startswith("jobs/") for word in arguments):
        check_submission(program, arguments)
    else:
        check_script(program, arguments)


def check_python(words: list[str]) -> None:
    """Run code over the tables of the demo, and look up modules."""
    kind, what = words
    if kind == "-m":
        assert find_spec(what)
        return
    assert kind == "-c"
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(what, "-c", "exec"), {})
    assert printed.getvalue()


def check_submission(program: str, words: list[str]) -> None:
    """Check what spark-submit is told, and then what the job is told, by the job's own parser."""
    assert program in ("scripts/submit", "spark-submit")
    place = next(n for n, word in enumerate(words) if word.startswith("jobs/"))
    assert set(words[:place:2]) <= {
        "--master",
        "--deploy-mode",
        "--properties-file",
        "--py-files",
        "--archives",
        "--conf",
        "--files",
    }
    check_arguments(parser_of(words[place]).parse_args(words[place + 1 :]))


def check_command(name: str, *words: str) -> None:
    """Check a command of biasspark by its own parser."""
    command = import_module(f"biasspark.workflows.{JOBS_OF_COMMANDS[name].module}").COMMAND
    if words != ("--help",):
        check_arguments(command.parser(f"biasspark {name}").parse_args(words))


def check_arguments(arguments: argparse.Namespace) -> None:
    """Read the configuration that the arguments name."""
    if hasattr(arguments, "config") and hasattr(arguments, "overrides"):
        load_config(arguments.config, arguments.overrides)


@cache
def parser_of(job: str) -> argparse.ArgumentParser:
    """Give the parser with which a job is run, by running it up to where it would parse."""
    parsers: list[argparse.ArgumentParser] = []

    def run_job(main: object, parser: argparse.ArgumentParser, flags: object) -> int:
        parsers.append(parser)
        return 0

    with pytest.MonkeyPatch.context() as patch, suppress(SystemExit):
        patch.setattr("biasspark.command.run_job", run_job)
        runpy.run_path(str(ROOT / job), run_name="__main__")
    return parsers[0]


JOBS = sorted(f"jobs/{path.name}" for path in (ROOT / "jobs").glob("*.py"))


@pytest.mark.parametrize("job", JOBS)
def test_examples_of_help_can_be_run(job: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They name files that there are, and flags and keys that the job knows."""
    monkeypatch.chdir(tmp_path)
    for name in ("conf", "data", "build"):
        (tmp_path / name).symlink_to(ROOT / name)
    parser = parser_of(job)
    parser.prog = Path(job).name
    text = parser.format_help()
    assert [path for path in re.findall(r"\b(?:conf|data)/[\w./-]*\w", text) if not (ROOT / path).is_file()] == []
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.lstrip().startswith("spark-submit")]
    assert lines
    for line in lines:
        program, *words = shlex.split(line, comments=True)
        check_submission(program, words)


def check_script(program: str, words: list[str]) -> None:
    """Check that a script is there, and that its help knows its options."""
    assert re.fullmatch(r"scripts/[\w/]+", program)
    assert os.access(program, os.X_OK)
    text = Path(program).read_text("utf-8").split("\nset -", 1)[0]
    assert [word for word in words if word.startswith("--") and word not in text] == []


def test_scripts_that_are_mentioned_are_there() -> None:
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        for path in re.findall(r"(?<![\w/])((?:scripts|jobs|conf|tests|biasspark)/[\w/.-]*\w)", text):
            assert (ROOT / path).exists(), f"{page}: {path}"
