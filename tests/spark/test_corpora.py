"""Every synthetic corpus on Spark: the same rows whatever the partitions, terms as the job finds them; and the job."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

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


@pytest.mark.parametrize(
    ("out", "words"),
    [("file/corpus", "{out}"), ("x" * 300, "Name another folder")],
    ids=["below a file", "a name that is too long"],
)
def test_a_folder_that_cannot_be_made_is_named(spark: SparkSession, tmp_path: Path, out: str, words: str) -> None:
    (tmp_path / "file").touch()
    done = make("pinned", "--rows-per-cell", "20", "--seed", "7", "--out", tmp_path / out)
    assert (done.code, words.format(out=tmp_path / out) in done.err) == (2, True), done.err


def test_secrets_of_a_place_are_not_shown(spark: SparkSession) -> None:
    done = make("pinned", "--rows-per-cell", "20", "--seed", "7", "--out", "unknown://key:canary@bucket/corpus")
    assert done.code > 0
    assert "bucket/corpus" in done.err
    assert "canary" not in done.out + done.err


@pytest.mark.parametrize(
    ("flags", "out", "fault"),
    [
        (["civil", "--rows", "9", "--files", "0"], "corpus", 'argument --files: "0".'),
        (["madlibs", "--rows", "9", "--terms", "none.txt"], "corpus", "none.txt"),
        (["pinned"], "file", "file exists"),
    ],
)
def test_wrong_flags_are_refused_without_a_session(tmp_path: Path, flags: list[str], out: str, fault: str) -> None:
    (tmp_path / "file").touch()
    with untouched(tmp_path):
        done = make(*flags, "--seed", "1", "--out", tmp_path / out)
    assert done.code == 2
    assert fault in done.err
    assert "starting the engine" not in done.err
