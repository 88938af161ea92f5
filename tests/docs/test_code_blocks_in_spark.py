"""The blocks of README.md and docs/ that take a session: every query in Spark SQL, and all Python, page by page.

What they find: a session `spark`, a DataFrame `df` of comments, the `warehouse` of a small published run, and a
`folder` to write into. The blocks of a page run one after another and see what those before them defined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from biasspark.session import is_connect
from biasspark.synthetic.chunks import make_table
from biasspark.synthetic.civil import CivilRequest
from biasspark.tables.schemas import BIAS_RUNS, TABLES
from biasspark.tables.views import spark_views
from tests.harness.documents import blocks_of, output_of
from tests.harness.example_run import write_run

N_ROWS = 4000
CLASSIC = {"docs/extending.md": "Connect lists no folders", "docs/faq.md": "Connect has other evaluators"}
PAGES, SLOW = (dict.fromkeys(block.page for block in blocks_of("python", remark)) for remark in ("", "slow"))
PROGRAMS = [pytest.param(page, ("",), id=page) for page in PAGES]
PROGRAMS += [pytest.param(page, ("", "slow"), id=f"{page} in full", marks=pytest.mark.slow) for page in SLOW]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warehouse")
    write_run(folder)
    return folder


@pytest.fixture
def given(
    spark: SparkSession, warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """What the blocks of a page find; the tables that they declare are forgotten after it."""
    comments = make_table(CivilRequest(rows=N_ROWS, seed=1, unannotated=0.3))
    toxic = pc.greater_equal(comments["target"], 0.5)
    pq.write_table(comments.append_column("toxic", toxic), tmp_path / "comments.parquet")
    df, before = spark.read.parquet(str(tmp_path / "comments.parquet")), dict(TABLES)
    (tmp_path / "comments").mkdir()  # as the README makes them
    pq.write_table(make_table(CivilRequest(rows=20_000, seed=1)), tmp_path / "comments" / "part.parquet")
    monkeypatch.chdir(tmp_path)
    yield {"__name__": "__main__", "spark": spark, "df": df, "folder": str(tmp_path), "warehouse": str(warehouse)}
    TABLES.clear()
    TABLES.update(before)


@pytest.mark.slow
@pytest.mark.spark("views for Spark")
def test_spark_answers(spark: SparkSession, warehouse: Path) -> None:
    """DuckDB answers all of them, too, in less time: test_code_blocks.py."""
    blocks = blocks_of("sql")
    asked = {table for block in blocks for table in re.findall(r"\blatest_(\w+)", block.text)}
    tables = [table for name, table in TABLES.items() if name in asked | {"bias_metrics"}]  # latest_suite is of these
    for statement in spark_views(str(warehouse), [*tables, BIAS_RUNS]).split(";")[:-1]:
        spark.sql(statement)
    assert [str(block) for block in blocks if not spark.sql(block.text).collect()] == []


@pytest.mark.parametrize(("page", "remarks"), PROGRAMS)
def test_python_runs(page: str, remarks: tuple[str, ...], given: dict[str, Any]) -> None:
    if is_connect(given["spark"]) and page in CLASSIC:
        pytest.skip(CLASSIC[page])
    for block in (block for block in blocks_of("python", *remarks) if block.page == page):
        above = "\n" * block.line  # a failure names the line of the page
        printed = StringIO()
        with redirect_stdout(printed):
            exec(compile(above + block.text, page, "exec"), given)
        there = {line.rstrip() for line in printed.getvalue().splitlines()}
        assert [line for line in output_of(block) if line not in there] == [], printed.getvalue()
