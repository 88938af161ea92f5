"""The blocks of README.md and docs/ that take a session: every query in Spark SQL, and all Python, page by page.

What they find: a session `spark`, a DataFrame `df` of comments, and in the working folder a `warehouse` with a small
published night. The blocks of a page run one after another and see what those before them defined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from biasspark.synthetic.civil_rows import CivilShape, civil_block
from biasspark.tables.schemas import BIAS_RUNS, TABLES
from biasspark.tables.views import spark_views
from tests.documents import blocks_of
from tests.example_night import write_night

N_ROWS = 4000
PROGRAMS = {
    page: [block for block in blocks_of("python", "") if block.page == page]
    for page in dict.fromkeys(block.page for block in blocks_of("python", ""))
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    write_night(folder / "warehouse")
    comments = pa.Table.from_batches([civil_block(0, CivilShape(rows=N_ROWS, seed=1, unannotated=0.3))])
    toxic = pc.greater_equal(comments["target"], 0.5)
    pq.write_table(comments.append_column("toxic", toxic), folder / "comments.parquet")
    return folder


@pytest.fixture
def df(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.parquet(str(folder / "comments.parquet"))


@pytest.fixture
def declared() -> Iterator[None]:
    """What a page declares is forgotten after it."""
    before = dict(TABLES)
    yield
    TABLES.clear()
    TABLES.update(before)


def test_spark_answers(spark: SparkSession, folder: Path) -> None:
    blocks = blocks_of("sql")
    asked = {table for block in blocks for table in re.findall(r"\blatest_(\w+)", block.text)}
    tables = [TABLES[name] for name in sorted(asked)]
    for statement in spark_views(str(folder / "warehouse"), [*tables, BIAS_RUNS]).split(";")[:-1]:
        spark.sql(statement)
    assert [str(block) for block in blocks if not spark.sql(block.text).collect()] == []


@pytest.mark.usefixtures("declared")
@pytest.mark.parametrize("page", PROGRAMS)
def test_python_runs(
    page: str, spark: SparkSession, df: DataFrame, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {"__name__": "__main__", "spark": spark, "df": df}
    for block in PROGRAMS[page]:
        above = "\n" * block.line  # a failure names the line of the page
        exec(compile(above + block.text, page, "exec"), names)
