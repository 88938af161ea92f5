"""Measure one tiny night with everything turned on, and write its tables as text: ``matrix_night.py FOLDER``.

FOLDER/tables/*.csv are the same bytes wherever the numbers are the same bits.
"""

from __future__ import annotations

import csv
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from biasspark.cli import job_parser, run_job
from biasspark.pipeline import JOB
from biasspark.tables.schemas import TABLES, Table, tables_of
from biasspark.tables.views import duckdb_views
from jobs import bias_metrics

N_ROWS = 600
CONFIG = """
corpus = {{ name = "night", path = "{folder}/corpus", id = "id" }}
label = {{ column = "target", threshold = 0.5 }}
models = {{ one = "score", two = "rounded" }}
slices = {{ short = "length < 100" }}
output = {{ path = "{folder}/warehouse" }}
thresholds = {{ at = [0.4, 0.6] }}
histograms = {{ bins = 20 }}
label_balance = {{ length = "length", buckets = [50, 100, 150] }}
pinned_auc = {{ trials = 5 }}
templates = {{ column = "template" }}
state = {{ keep = true }}
[identities]
columns = ["male", "female"]
categorical = ["race"]
terms = {{ column = "comment_text", list = ["gay", "christian: christian, catholic"] }}
crossed = {{ pairs = true, min_rows = 20 }}
"""


def make_rows() -> Iterator[dict[str, object]]:
    """Give the comments. Python draws them, whose generator is the same in every version, unlike numpy's."""
    draw = random.Random(20260115)
    for number in range(N_ROWS):
        toxic, asked = draw.random() < 0.4, draw.random() < 0.8
        score = draw.gauss(0.6 if toxic else 0.4, 0.2)
        yield {
            "id": f"c{number}",
            "target": 0.9 if toxic else 0.2,
            "score": float("nan") if number % 97 == 5 else score,
            "rounded": round(score, 1),
            "male": draw.random() if asked else None,
            "female": draw.random() if asked else None,
            "race": draw.choice(("Asian", "Black", "Latino")) if asked else None,
            "length": draw.randrange(1, 200),
            "template": f"t{number % 7}",
            "comment_text": draw.choice(("gay", "Christian or gay", "a catholic", "nobody")),
        }


def write_corpus(folder: Path) -> None:
    """Write the comments as two files."""
    folder.mkdir(parents=True)
    table = pa.Table.from_pylist(list(make_rows()))
    for part in range(2):
        pq.write_table(table.slice(part * N_ROWS // 2, N_ROWS // 2), folder / f"{part}.parquet")


def write_tables(warehouse: Path, out: Path) -> None:
    """Write each published table, less the columns of the run, its rows sorted and its doubles to the last bit."""
    out.mkdir()
    with duckdb.connect() as connection:
        there = [table for table in TABLES.values() if list((warehouse / table.name).glob("*/*/*.parquet"))]
        connection.execute(duckdb_views(str(warehouse), there))
        for table in tables_of(JOB):
            write_csv(connection, table, out / f"{table.name}.csv")


def write_csv(connection: duckdb.DuckDBPyConnection, table: Table, target: Path) -> None:
    """Write the rows that readers see of one table."""
    # The names are this package's own.
    rows = connection.execute(f"SELECT {', '.join(table.value_columns)} FROM latest_{table.name}").fetchall()
    with target.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(table.value_columns)
        writer.writerows(sorted([["" if cell is None else repr(cell) for cell in row] for row in rows]))


def main(folder: Path) -> int:
    """Make the corpus, run the job on the session that the environment asks for, and write the tables as text."""
    write_corpus(folder / "corpus")
    (folder / "night.toml").write_text(CONFIG.format(folder=folder), encoding="utf-8")
    flags = ["--config", str(folder / "night.toml"), "--run-date", "2026-01-15"]
    code = run_job(bias_metrics.main, job_parser(""), [*flags, "--debug"])
    if code == 0:
        write_tables(folder / "warehouse", folder / "tables")
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
