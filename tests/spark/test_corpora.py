"""Every synthetic corpus on Spark: the same rows whatever the partitions, terms as the job finds them; and the job."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyspark.sql.functions as F
import pytest
from pyspark.sql import DataFrame, SparkSession

import biasspark
from biasspark.synthetic import chunks
from biasspark.synthetic.chunks import CHUNK_ROWS, Request, generate, make_table
from biasspark.synthetic.imbalanced import TermCell, cell_chunk, cell_comments
from biasspark.synthetic.madlibs import MadlibsRequest
from biasspark.synthetic.score_cells import ScoreDistributionsRequest
from biasspark.workflows import make_corpus as job
from tests.harness.main_job import untouched
from tests.harness.running_jobs import Done, run_main

OF_CELLS = ScoreDistributionsRequest(seed=11, rows_per_cell=50)
OF_ROWS = MadlibsRequest(rows=2 * CHUNK_ROWS + 5, seed=11, terms=("gay", "african", "african american", "american"))


def rows_of(frame: DataFrame, *order: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in frame.orderBy(*order).collect()]


def rows_in(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize("asked", [OF_CELLS, OF_ROWS], ids=lambda asked: type(asked).__name__)
def test_rows_do_not_depend_on_partitions(spark: SparkSession, asked: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of the five have no chunk. tests/unit/test_corpora.py makes the chunks of every corpus."""
    monkeypatch.setattr(chunks, "ROWS_PER_PARTITION", -(-asked.rows // 5))
    corpus, expected = generate(spark, asked), make_table(asked)
    assert corpus.columns == expected.column_names
    assert rows_of(corpus, "id") == rows_in(expected)


def test_comments_of_a_plan_are_the_same_in_any_partitions(spark: SparkSession) -> None:
    cells = [TermCell("gay", 20, 59, CHUNK_ROWS + 1), TermCell("gay", 60, 179, 4), TermCell("old", 20, 59, 0)]
    frame = spark.createDataFrame(cells, "term STRING, length_low INT, length_high INT, n_rows BIGINT")
    parts = [cell_chunk(cells[0], 0, 3), cell_chunk(cells[0], CHUNK_ROWS, 3), cell_chunk(cells[1], 0, 3)]
    wanted = sorted(rows_in(pa.Table.from_batches(parts)))
    assert rows_of(cell_comments(frame.repartition(3), 3), "id", "comment_text") == wanted


TERMS = ("gay", "african", "african american", "american", "Middle Eastern", "d'or `odd`, b.c")


def test_job_finds_the_terms_where_their_columns_are_1(spark: SparkSession) -> None:
    """Also those with spaces, quotes and dots in their names, and terms within terms."""
    corpus = generate(spark, MadlibsRequest(1_200, 5, TERMS)).withColumn("score", F.length("comment_text"))
    by_column, by_term = (
        biasspark.bias_metrics(corpus, models=["score"], label="label", identities=identities)
        for identities in ({"columns": TERMS}, {"terms": {"column": "comment_text", "list": list(TERMS)}})
    )
    rows = by_column.orderBy("identity").collect()
    assert rows == by_term.orderBy("identity").collect()
    sizes = {row.identity: (row.n_subgroup_negative, row.n_subgroup_positive) for row in rows}
    nested = dict.fromkeys(("african", "american"), (200, 200))
    assert {name: sizes[name] for name in TERMS} == dict.fromkeys(TERMS, (100, 100)) | nested


# ---- the job that writes corpora


def make(*flags: object) -> Done:
    return run_main(job.COMMAND, *flags)


@pytest.mark.parametrize(
    ("flags", "n_rows", "n_positive"),
    [
        (["shapes", "--rows-per-cell", "20"], 640, 330),
        (["heights", "--rows-per-cell", "20"], 120, 60),
        (["pinned", "--rows-per-cell", "20"], 160, 80),
        (["madlibs", "--rows", "1100"], 1100, 550),
        (["imbalanced", "--rows", "900", "--harmless"], 900, 0),
    ],
)
def test_writes_every_kind_once(
    spark: SparkSession, tmp_path: Path, flags: list[str], n_rows: int, n_positive: int
) -> None:
    flags = [*flags, "--seed", "7", "--out", str(tmp_path / "corpus")]
    summary = make(*flags).summary
    assert summary.pop("seconds") >= 0.0
    assert summary == {"corpus": flags[0], "rows": n_rows, "seed": 7, "path": str(tmp_path / "corpus")}
    query = "SELECT count(*), count(DISTINCT id), count_if(label) FROM read_parquet(?)"
    assert duckdb.execute(query, [f"{tmp_path}/corpus/*.parquet"]).fetchall() == [(n_rows, n_rows, n_positive)]
    with untouched(tmp_path):
        assert make(*flags).code == 2


def test_a_place_that_cannot_be_written_to_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    done = make("pinned", "--rows-per-cell", "20", "--seed", "7", "--out", str(tmp_path / "file" / "corpus"))
    assert done.code == 2
    assert f"{tmp_path}/file/corpus" in done.err


def test_a_file_is_refused_without_a_session(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    done = make("pinned", "--seed", "7", "--out", str(tmp_path / "file"))
    assert done.code == 2
    assert "starting the engine" not in done.err


def test_secrets_of_a_place_are_not_shown(spark: SparkSession) -> None:
    done = make("pinned", "--rows-per-cell", "20", "--seed", "7", "--out", "unknown://key:canary@bucket/corpus")
    assert done.code > 0
    assert "bucket/corpus" in done.err
    assert "canary" not in done.out + done.err


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (["civil", "--rows", "9", "--seed", "1", "--files", "0"], 'argument --files: "0".'),
        (["madlibs", "--rows", "9", "--seed", "1", "--terms", "none.txt"], "none.txt"),
    ],
)
def test_wrong_flags_are_refused_without_a_session(tmp_path: Path, flags: list[str], fault: str) -> None:
    done = make(*flags, "--out", tmp_path / "corpus")
    assert done.code == 2
    assert fault in done.err
    assert "starting the engine" not in done.err
    assert not (tmp_path / "corpus").exists()


def test_a_name_that_is_too_long_is_no_unexpected_failure(tmp_path: Path) -> None:
    done = make("shapes", "--seed", "1", "--rows-per-cell", "2", "--out", tmp_path / ("x" * 300))
    assert (done.code, "Name another folder" in done.err) == (2, True), done.err
