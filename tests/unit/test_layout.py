"""The layout of the code: the stages form a line, and what would break a promise of the design is nowhere.

Each rule is a function from one source file to its faults. It is tried on bad snippets first, so that a rule that
finds nothing is known to look.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

STAGES = ("corpus", "ranking", "metrics", "attribution", "tables", "report")
GROUND_FLOOR = (
    *("arrays", "columns", "config", "ddl", "distributions", "errors", "expressions", "features", "session", "startup"),
    *("files", "tables.schemas"),
)
MAPS = (
    "pipeline",
    *("maps.attribution", "maps.attribution_tables", "maps.comparisons", "maps.gate", "maps.jackknife"),
    *("maps.labels", "maps.night_state", "maps.windows"),
    *("api.measured", "api.attribution"),
)
OF_JOBS = ("cli", "night", "backfill", "highlights")
"""What the jobs share: it calls the maps, and what these say is printed by it."""
KERNEL_STAGES = ("ranking", "metrics", "attribution")
SAYS_NO_SPARK = re.compile(r"no Spark|numpy( and \w+)? (only|alone)", re.IGNORECASE)
"""What the docstring of a kernel says: it is tested without Spark, and loads none."""
MAY_BE_CLASSIC = ("biasspark/session.py", "biasspark/files.py")
CLASSIC_ONLY = {"rdd", "sparkContext", "_jvm", "_jdf", "_jsparkSession", "_sc"}
NEWER_THAN_3_5 = {"applyInArrow", "toArrow", "try_cast", "arrow_udf", "mergeInto", "array_position"}
"""The last finds literals alone in 3.5: `biasspark.expressions.ordering` has one for columns."""
OF_MANY_BITS = {"log", "log2", "log10", "log1p", "exp", "expm1", "sin", "cos", "tan", "arctan", "tanh", "cbrt", "power"}
"""Functions of numpy that differ from version to version in their last bits, which tables must not."""
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
MOST_LINES = {"biasspark": 400, "jobs": 80}

Rule = Callable[[str, str], Iterator[str]]


# ---- reading the source


def module_of(path: str) -> str:
    """Give the module below biasspark, for example tables.schemas; empty for the package itself."""
    parts = Path(path).with_suffix("").parts[1:]
    return ".".join(part for part in parts if part != "__init__")


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def imports(source: str) -> Iterator[tuple[int, str]]:
    """Give the line and the dotted name of all that is imported anywhere in the source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def own_imports(source: str) -> Iterator[tuple[int, str]]:
    """Give the imports of the project's own modules, without the leading biasspark."""
    for line, name in imports(source):
        if name.startswith("biasspark."):
            yield line, name.removeprefix("biasspark.")


def stage_of(module: str) -> str | None:
    """Give the stage to which a module belongs; none for the ground floor and what is no stage."""
    first = module.partition(".")[0]
    return first if first in STAGES and not is_on_ground_floor(module) else None


def is_on_ground_floor(module: str) -> bool:
    return any(is_within(module, ground) for ground in GROUND_FLOOR)


# ---- the rules


def stages_import_backwards_by_one(path: str, source: str) -> Iterator[str]:
    stage = stage_of(module_of(path)) if path.startswith("biasspark/") else None
    if stage is None:
        return
    allowed = {stage, STAGES[max(STAGES.index(stage) - 1, 0)]}
    for line, name in own_imports(source):
        if name.partition(".")[0] in {place.partition(".")[0] for place in MAPS}:
            yield f"{path}:{line}: stage {stage} imports {name}. A stage is called by the map, never the reverse."
        if stage_of(name) not in {None, *allowed}:
            yield f"{path}:{line}: stage {stage} imports {name}. Allowed: the ground floor, the stage before."


def only_maps_join_stages(path: str, source: str) -> Iterator[str]:
    module = module_of(path)
    if not path.startswith("biasspark/") or stage_of(module) or module in MAPS:
        return
    if is_on_ground_floor(module):
        for line, name in own_imports(source):
            if not is_on_ground_floor(name):
                yield f"{path}:{line}: the ground floor imports {name}. It may import the ground floor only."
        return
    stages = {stage for _, name in own_imports(source) if (stage := stage_of(name))}
    if len(stages) > 1:
        yield f"{path}: imports the stages {', '.join(sorted(stages))}. Only jobs/ and {', '.join(MAPS)} do."


def stages_and_maps_know_no_jobs(path: str, source: str) -> Iterator[str]:
    module = module_of(path)
    if not path.startswith("biasspark/") or not (stage_of(module) or module in MAPS):
        return
    for line, name in own_imports(source):
        if any(is_within(name, place) for place in OF_JOBS):
            yield f"{path}:{line}: imports {name}. What jobs share calls the maps, never the reverse."


def only_session_builds_sessions(path: str, source: str) -> Iterator[str]:
    if path == "biasspark/session.py":
        return
    for node in ast.walk(ast.parse(source)):
        if (isinstance(node, ast.Attribute) and node.attr in {"builder", "getOrCreate"}) or (
            isinstance(node, ast.Call) and ast.unparse(node.func) in {"SparkSession", "SparkContext"}
        ):
            yield f"{path}:{node.lineno}: builds a session. Only biasspark/session.py does: call build_session."


def only_session_is_classic(path: str, source: str) -> Iterator[str]:
    if path in MAY_BE_CLASSIC:
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in CLASSIC_ONLY:
            yield f"{path}:{node.lineno}: uses {node.attr}, which Spark Connect lacks. session.py and files.py may."


def nothing_newer_than_3_5(path: str, source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in NEWER_THAN_3_5:
            yield f"{path}:{node.lineno}: uses {node.attr}, which PySpark 3.5 lacks."


def numbers_are_the_same_bits_everywhere(path: str, source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name("np"), attr=name) if name in OF_MANY_BITS:
                yield f"{path}:{node.lineno}: uses np.{name}, of which versions of numpy differ. Take that of math."


def is_kernel(source: str) -> bool:
    """Say whether the docstring of a module promises that it needs no Spark."""
    return bool(SAYS_NO_SPARK.search(ast.get_docstring(ast.parse(source)) or ""))


def kernels_import_no_spark(path: str, source: str) -> Iterator[str]:
    for line, name in imports(source) if is_kernel(source) else ():
        if is_within(name, "pyspark"):
            yield f"{path}:{line}: imports {name}. Its docstring says that it needs no Spark."


def what_imports_no_spark_says_so(path: str, source: str) -> Iterator[str]:
    """So a module is made a kernel, or is one no more, by a line that a reviewer sees."""
    in_stage = Path(path).parts[:1] == ("biasspark",) and stage_of(module_of(path)) in KERNEL_STAGES
    if not in_stage or not source or path.endswith("__init__.py") or is_kernel(source):
        return
    if not any(is_within(name, "pyspark") for _, name in imports(source)):
        yield f"{path}: imports no Spark. Say so in its docstring, numpy only or No Spark, and it is kept to it."


def nothing_imports_tests(path: str, source: str) -> Iterator[str]:
    for line, name in imports(source):
        if not path.startswith("tests/") and is_within(name, "tests"):
            yield f"{path}:{line}: imports {name}. Tests use the project, never the reverse."


def nothing_is_overwritten(path: str, source: str) -> Iterator[str]:
    """A failed task in Spark's static overwrite loses the old table."""
    for node in ast.walk(ast.parse(source)):
        value = ast.unparse(node.value) if isinstance(node, ast.keyword) and node.arg == "overwrite" else None
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if value == "True" or text.lower() == "overwrite" or text.lower().lstrip().startswith("insert overwrite"):
            place = getattr(node, "lineno", 0)
            yield f"{path}:{place}: overwrites. Tables are only ever added to."


def names_say_content(path: str, _: str) -> Iterator[str]:
    for part in Path(path).with_suffix("").parts:
        if part in VAGUE_NAMES:
            yield f"{path}: {part} says nothing of the content. Name it in the words of the field."


def files_are_short(path: str, source: str) -> Iterator[str]:
    most = MOST_LINES.get(Path(path).parts[0], sys.maxsize)
    n_lines = len(source.splitlines())
    if n_lines > most:
        yield f"{path}: {n_lines} lines. At most {most} are allowed."


PRODUCT_RULES: tuple[Rule, ...] = (
    stages_import_backwards_by_one,
    only_maps_join_stages,
    stages_and_maps_know_no_jobs,
    only_session_builds_sessions,
    only_session_is_classic,
    nothing_newer_than_3_5,
    numbers_are_the_same_bits_everywhere,
    kernels_import_no_spark,
    what_imports_no_spark_says_so,
    nothing_imports_tests,
    nothing_is_overwritten,
    files_are_short,
)


# ---- the rules find what they are for

BAD = [
    (stages_import_backwards_by_one, "biasspark/corpus/read.py", "from biasspark.ranking import engine"),
    (stages_import_backwards_by_one, "biasspark/metrics/suite.py", "import biasspark.corpus.read"),
    (stages_import_backwards_by_one, "biasspark/metrics/suite.py", "from biasspark import tables"),
    (stages_import_backwards_by_one, "biasspark/metrics/suite.py", "def f():\n    from biasspark.tables import store"),
    (stages_import_backwards_by_one, "biasspark/tables/store.py", "from biasspark.pipeline import measure"),
    (stages_import_backwards_by_one, "biasspark/tables/store.py", "from biasspark import maps"),
    (stages_import_backwards_by_one, "biasspark/tables/store.py", "from biasspark.maps.windows import merge_nights"),
    (only_maps_join_stages, "biasspark/cli.py", "import biasspark.corpus.read\nfrom biasspark.metrics import suite"),
    (only_maps_join_stages, "biasspark/maps/x.py", "import biasspark.corpus.a\nfrom biasspark.metrics import b"),
    (only_maps_join_stages, "biasspark/config/model.py", "from biasspark.corpus import read"),
    (only_maps_join_stages, "biasspark/session.py", "from biasspark.maps.gate import judged"),
    (only_maps_join_stages, "biasspark/tables/schemas/suite.py", "from biasspark.tables import store"),
    (stages_and_maps_know_no_jobs, "biasspark/maps/gate.py", "from biasspark.cli import GATE_FAILED"),
    (stages_and_maps_know_no_jobs, "biasspark/report/publishing.py", "from biasspark.cli import write_out"),
    (stages_and_maps_know_no_jobs, "biasspark/pipeline.py", "from biasspark import night"),
    (only_session_builds_sessions, "jobs/bias_metrics.py", "spark = SparkSession.builder.appName('x')"),
    (only_session_builds_sessions, "biasspark/api/metrics.py", "spark = SparkSession(context)"),
    (only_session_is_classic, "biasspark/api/metrics.py", "df.rdd.count()"),
    (only_session_is_classic, "biasspark/api/metrics.py", "df.sparkSession.sparkContext"),
    (only_session_is_classic, "jobs/bias_metrics.py", "spark._jvm.java.lang"),
    (only_session_is_classic, "biasspark/api/metrics.py", "df._jdf"),
    (nothing_newer_than_3_5, "biasspark/ranking/engine.py", "df.groupBy('a').applyInArrow(f, s)"),
    (numbers_are_the_same_bits_everywhere, "biasspark/metrics/evidence.py", "np.log(a / (1 - a))"),
    (kernels_import_no_spark, "biasspark/ranking/blocks.py", '"""Blocks. numpy only."""\nimport pyspark'),
    (kernels_import_no_spark, "biasspark/features.py", '"""No Spark."""\nfrom pyspark.sql import functions as F'),
    (what_imports_no_spark_says_so, "biasspark/ranking/blocks.py", '"""Blocks."""\nimport numpy'),
    (nothing_imports_tests, "scripts/simulations.py", "from tests.conftest import compiling"),
    (nothing_is_overwritten, "biasspark/tables/store.py", "df.write.mode('overwrite').parquet(p)"),
    (nothing_is_overwritten, "biasspark/tables/store.py", "df.write.parquet(p, mode='Overwrite')"),
    (nothing_is_overwritten, "biasspark/tables/store.py", "df.write.insertInto(t, overwrite=True)"),
    (nothing_is_overwritten, "biasspark/tables/store.py", "spark.sql(f'INSERT OVERWRITE {t} SELECT 1')"),
    (names_say_content, "biasspark/utils.py", ""),
    (names_say_content, "biasspark/common/read.py", ""),
    (names_say_content, "tests/unit/helpers.py", ""),
    (files_are_short, "jobs/bias_metrics.py", "x = 1\n" * 81),
    (files_are_short, "biasspark/api/metrics.py", "x = 1\n" * 401),
]

GOOD = [
    (stages_import_backwards_by_one, "biasspark/corpus/read.py", "from biasspark.corpus import codebook"),
    (stages_import_backwards_by_one, "biasspark/ranking/engine.py", "from biasspark.corpus.codebook import Codebook"),
    (stages_import_backwards_by_one, "biasspark/metrics/suite.py", "from biasspark.config import Intervals"),
    (stages_import_backwards_by_one, "biasspark/metrics/suite.py", "from biasspark.tables import schemas"),
    (stages_import_backwards_by_one, "biasspark/metrics/suite.py", "from biasspark.tables.schemas import COLUMNS"),
    (only_maps_join_stages, "biasspark/pipeline.py", "from biasspark.corpus import a\nfrom biasspark.metrics import b"),
    (only_maps_join_stages, "biasspark/maps/gate.py", "import biasspark.corpus.a\nfrom biasspark.metrics import b"),
    (only_maps_join_stages, "biasspark/cli.py", "from biasspark.tables import store, schemas"),
    (stages_and_maps_know_no_jobs, "biasspark/maps/gate.py", "from biasspark.errors import GATE_FAILED"),
    (stages_and_maps_know_no_jobs, "biasspark/night.py", "from biasspark.cli import Outcome"),
    (only_session_builds_sessions, "biasspark/session.py", "SparkSession.builder.getOrCreate()"),
    (only_session_is_classic, "biasspark/session.py", "spark.sparkContext"),
    (numbers_are_the_same_bits_everywhere, "biasspark/metrics/evidence.py", "np.sqrt(math.log(a) * F.log(b))"),
    (kernels_import_no_spark, "biasspark/ranking/engine.py", '"""Kernels are numpy alone."""\nimport numpy'),
    (what_imports_no_spark_says_so, "biasspark/ranking/blocks.py", '"""Blocks. numpy and pyarrow only."""'),
    (what_imports_no_spark_says_so, "biasspark/ranking/engine.py", "import pyspark.sql.functions as F"),
    (nothing_imports_tests, "tests/unit/test_growth.py", "from tests.conftest import compiling"),
    (nothing_is_overwritten, "biasspark/tables/store.py", '"""Never overwrite."""\ndf.write.mode("errorifexists")'),
    (files_are_short, "jobs/bias_metrics.py", "x = 1\n" * 80),
]


@pytest.mark.parametrize(("rule", "path", "source"), BAD)
def test_a_rule_finds_what_is_bad(rule: Rule, path: str, source: str) -> None:
    assert [fault for fault in rule(path, source) if fault.startswith(path)]


@pytest.mark.parametrize(("rule", "path", "source"), GOOD)
def test_a_rule_leaves_the_rest_alone(rule: Rule, path: str, source: str) -> None:
    assert list(rule(path, source)) == []


# ---- the project keeps them


def files_under(*folders: str) -> list[str]:
    found = (path.relative_to(ROOT).as_posix() for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return sorted(found)


@pytest.mark.parametrize("rule", PRODUCT_RULES)
def test_product_keeps_rule(rule: Rule) -> None:
    paths = files_under("biasspark", "jobs")
    assert paths
    assert [fault for path in paths for fault in rule(path, (ROOT / path).read_text("utf-8"))] == []


def test_names_say_content() -> None:
    paths = files_under("biasspark", "jobs", "scripts", "tests")
    assert [fault for path in paths for fault in names_say_content(path, "")] == []


def test_tests_are_imported_by_tests_alone() -> None:
    paths = files_under("scripts", "examples")
    assert [fault for path in paths for fault in nothing_imports_tests(path, (ROOT / path).read_text("utf-8"))] == []


def test_kernels_load_without_spark() -> None:
    """What they import, and the packages that they lie in, import no Spark either."""
    kernels = [path for path in files_under("biasspark") if is_kernel((ROOT / path).read_text("utf-8"))]
    assert {stage_of(module_of(path)) for path in kernels} >= set(KERNEL_STAGES)
    modules = ["biasspark", *(path.removesuffix(".py").replace("/", ".") for path in kernels)]
    program = f"import sys, {', '.join(modules)}; print(*sorted({{'pyspark', 'py4j'}} & sys.modules.keys()))"
    loaded = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []
