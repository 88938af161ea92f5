"""The layout of the code, as rules: each finds the faults of a source file, and is tried on a bad snippet first."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from tests.harness.submitting import ROOT, run_python

LAYERS = (
    *("", "expressions", "synthetic", "config", "session", "tables", "corpus", "ranking", "metrics", "comparison"),
    *("gate", "attribution", "windows", "mitigation", "report", "workflows", "api", "plot"),
)
"""The folders of ``biasspark/`` in the order of the data, after the modules that lie in none."""
ARITHMETIC = ("metrics", "comparison", "gate", "report", "plot", "ranking/kernels")
CLASSIC_ONLY = {"rdd", "sparkContext", "_jvm", "_jdf", "_jsparkSession", "_sc"}
NEWER_THAN_3_5 = {"applyInArrow", "try_cast", "arrow_udf", "mergeInto", "array_position"}
"""``toArrow`` is called where it is there, and ``array_position`` of 3.5 finds literals alone."""
OF_MANY_BITS = {"log", "log2", "log10", "log1p", "exp", "expm1", "sin", "cos", "tan", "arctan", "tanh", "cbrt", "power"}
"""Functions of numpy whose last bits differ between versions, so tables must not use them."""
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}

OLD_NAMES = {
    *("acceptable", "along", "around", "as_held", "beside", "carried", "codebook", "contender", "crowds"),
    *("culprits", "declaring", "doubt", "extent", "folded", "fullest", "further_tables", "hand_over", "highlights"),
    *("hygiene", "lopsided", "mark_scores", "marks", "mend", "mergeable", "moves", "nameless", "narrowing"),
    *("one_way", "others", "own", "places", "plain_words", "ruling", "said", "scattered", "settle", "shades"),
    *("standings", "surroundings", "tallies", "tally", "tidy", "told", "twins", "weigh_margin", "withholding"),
    *("base_masks", "further", "wrong_place"),
}
"""Names for which the field has a word, or which say nothing of what they hold."""
OLD_WORD, OLD_WORD_OF_USERS = re.compile(r"(^|_)night(?!ly)"), {"night_report", "nights"}
"""A run of a date is a run. These names are public: a function and its parameter."""

Rule = Callable[[str, str], Iterator[str]]


@lru_cache(1)
def nodes(source: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(source)))


def imports(source: str) -> Iterator[tuple[int, str]]:
    for node in nodes(source):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def attributes(source: str) -> Iterator[ast.Attribute]:
    return (node for node in nodes(source) if isinstance(node, ast.Attribute))


def kernels_import_numpy_only(path: str, source: str) -> Iterator[str]:
    if path.startswith("biasspark/ranking/kernels/"):
        for line, name in imports(source):
            is_kernel = name.startswith(("biasspark.ranking.kernels", "biasspark.arrays", "biasspark.columns"))
            if name.partition(".")[0] not in {"numpy", *sys.stdlib_module_names} and not is_kernel:
                yield f"{path}:{line}: imports {name}. A kernel imports numpy only."


def arithmetic_imports_no_spark(path: str, source: str) -> Iterator[str]:
    if path.startswith(tuple(f"biasspark/{folder}/" for folder in ARITHMETIC)):
        for line, name in imports(source):
            if name.partition(".")[0] == "pyspark":
                yield f"{path}:{line}: imports {name}. {', '.join(ARITHMETIC)} are functions of arrays."


def layer(name: str) -> int:
    """Return the number of the layer of a module with this dotted name."""
    folder = name.split(".")[1]
    return LAYERS.index(folder) if folder in LAYERS else 0


def nothing_imports_what_comes_later(path: str, source: str) -> Iterator[str]:
    if not path.startswith("biasspark/") or path == "biasspark/__init__.py":
        return
    module = path.removesuffix(".py").replace("/", ".")
    for line, name in imports(source):
        if name.startswith("biasspark.") and layer(name) > max(layer(module), LAYERS.index("expressions")):
            yield f"{path}:{line}: imports {name}, of a later layer. The data flow in one direction."


def only_session_builds_sessions(path: str, source: str) -> Iterator[str]:
    for node in () if path.startswith("biasspark/session/") else nodes(source):
        if (isinstance(node, ast.Attribute) and node.attr in {"builder", "getOrCreate"}) or (
            isinstance(node, ast.Call) and ast.unparse(node.func) in {"SparkSession", "SparkContext"}
        ):
            yield f"{path}:{node.lineno}: builds a session. Only biasspark/session/ does."


def every_session_has_what_is_used(path: str, source: str) -> Iterator[str]:
    for node in attributes(source):
        if node.attr in CLASSIC_ONLY and not path.startswith("biasspark/session/"):
            yield f"{path}:{node.lineno}: uses {node.attr}, which Spark Connect lacks."
        if node.attr in NEWER_THAN_3_5:
            yield f"{path}:{node.lineno}: uses {node.attr}, which PySpark 3.5 lacks."


def jobs_remind_of_long_stages(path: str, source: str) -> Iterator[str]:
    reminds = any(call in source for call in ("progress.reminding()", "open_tables("))
    if path.startswith("biasspark/workflows/") and "Progress(" in source and not reminds:
        yield f"{path}: shows progress without reminders. A long stage would seem to hang."


def numbers_are_the_same_bits_everywhere(path: str, source: str) -> Iterator[str]:
    for node in attributes(source):
        if isinstance(node.value, ast.Name) and node.value.id == "np" and node.attr in OF_MANY_BITS:
            yield f"{path}:{node.lineno}: uses np.{node.attr}. Its last bits differ between versions. Use math."


def nothing_is_overwritten(path: str, source: str) -> Iterator[str]:
    """A failed task in Spark's static overwrite loses the old table."""
    for node in nodes(source):
        value = ast.unparse(node.value) if isinstance(node, ast.keyword) and node.arg == "overwrite" else None
        text = node.value.lower().lstrip() if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if value == "True" or text == "overwrite" or text.startswith("insert overwrite"):
            yield f"{path}:{getattr(node, 'lineno', 0)}: overwrites. Tables are only ever added to."


def names_say_content(path: str, _: str) -> Iterator[str]:
    for part in VAGUE_NAMES & set(Path(path).with_suffix("").parts):
        yield f"{path}: {part} says nothing of the content. Use the words of the field."


def old_names_stay_away(path: str, source: str) -> Iterator[str]:
    for node in nodes(source):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                pass
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                pass
            case _:
                continue
        lower = name.strip("_").lower()
        if lower in OLD_NAMES or (OLD_WORD.search(lower) and lower not in OLD_WORD_OF_USERS):
            yield f"{path}:{node.lineno}: names something {name}. Use the field's term, or say what it holds."


def nothing_imports_tests(path: str, source: str) -> Iterator[str]:
    may_use_some = path.startswith(("scripts/dev/", "scripts/simulations/"))
    for line, name in () if path.startswith("tests/") else imports(source):
        if name.partition(".")[0] == "tests" and not (
            may_use_some and name.startswith(("tests.oracle.", "tests.harness."))
        ):
            yield f"{path}:{line}: imports {name}. Tests use the project, never the reverse."


BAD: list[tuple[Rule, str, str]] = [
    (kernels_import_numpy_only, "biasspark/ranking/kernels/blocks.py", "import pyarrow"),
    (kernels_import_numpy_only, "biasspark/ranking/kernels/blocks.py", "from biasspark.config import Ranking"),
    (arithmetic_imports_no_spark, "biasspark/metrics/suite.py", "def f():\n    from pyspark.sql import DataFrame"),
    (nothing_imports_what_comes_later, "biasspark/tables/store.py", "from biasspark.workflows import measure"),
    (nothing_imports_what_comes_later, "biasspark/text.py", "def f():\n    from biasspark.config import Config"),
    (only_session_builds_sessions, "jobs/bias_metrics.py", "spark = SparkSession.builder.appName('x')"),
    (only_session_builds_sessions, "biasspark/api/metrics.py", "spark = SparkSession(context)"),
    (every_session_has_what_is_used, "biasspark/api/metrics.py", "df.rdd.count()"),
    (jobs_remind_of_long_stages, "biasspark/workflows/measure.py", "progress = Progress(sys.stderr)"),
    (every_session_has_what_is_used, "biasspark/ranking/engine.py", "df.groupBy('a').applyInArrow(f, s)"),
    (numbers_are_the_same_bits_everywhere, "biasspark/metrics/suite.py", "np.log(a / (1 - a))"),
    (nothing_is_overwritten, "biasspark/tables/store.py", "df.write.mode('Overwrite').parquet(p)"),
    (nothing_is_overwritten, "biasspark/tables/store.py", "df.write.insertInto(t, overwrite=True)"),
    (nothing_is_overwritten, "biasspark/tables/store.py", "spark.sql(f'INSERT OVERWRITE {t} SELECT 1')"),
    (names_say_content, "biasspark/common/read.py", ""),
    (old_names_stay_away, "biasspark/corpus/read.py", "for own in rows: pass"),
    (old_names_stay_away, "biasspark/corpus/read.py", "def settle(rows): pass"),
    (old_names_stay_away, "biasspark/corpus/read.py", "def run_night(rows): pass"),
    (nothing_imports_tests, "scripts/docs.py", "from tests.conftest import spark"),
]
RULES = tuple(dict.fromkeys(rule for rule, *_ in BAD))


def files_under(*folders: str) -> list[str]:
    return sorted(path.relative_to(ROOT).as_posix() for folder in folders for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize(("rule", "path", "source"), BAD)
def test_a_rule_finds_what_is_bad(rule: Rule, path: str, source: str) -> None:
    assert [fault for fault in rule(path, source) if fault.startswith(path)]


@pytest.mark.parametrize(
    ("folders", "rules"),
    [
        (("biasspark", "jobs"), RULES),
        (("scripts", "examples", "tests"), (names_say_content, old_names_stay_away, nothing_imports_tests)),
    ],
    ids=["product", "rest"],
)
def test_code_keeps_the_rules(folders: tuple[str, ...], rules: tuple[Rule, ...]) -> None:
    sources = ((path, (ROOT / path).read_text()) for path in files_under(*folders))
    assert [fault for path, source in sources for rule in rules for fault in rule(path, source)] == []


def test_one_name_means_one_thing() -> None:
    names = Counter(Path(path).name for path in files_under("biasspark") if not path.endswith("__init__.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_arithmetic_loads_without_spark() -> None:
    """What it imports, and the packages that it lies in, import no Spark either."""
    paths = files_under(*(f"biasspark/{folder}" for folder in ARITHMETIC))
    modules = [path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in paths]
    program = f"import sys, {', '.join(modules)}; print(*sorted({{'pyspark', 'py4j'}} & sys.modules.keys()))"
    loaded = run_python("-c", program)
    assert (loaded.returncode, loaded.stdout.split()) == (0, []), loaded.stderr
