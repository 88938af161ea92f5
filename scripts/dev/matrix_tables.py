"""Run every job that writes tables on two tiny dates, and write the tables as text.

``python -m scripts.dev.matrix_tables FOLDER spark|embedded``

FOLDER/tables/*.csv are the same bytes if the numbers are the same bits.

Used by scripts/dev/matrix.
"""

from __future__ import annotations

import csv
import io
import random
import re
import sys
from collections.abc import Iterator, Mapping, Set
from datetime import date
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from biasspark.cli import run_job
from biasspark.session import job_session
from biasspark.session_request import Engine, SessionRequest, session_requested
from biasspark.tables.schemas import SCORE_BLOCKS, TABLES, TRAINING_BALANCE, Table
from biasspark.tables.views import duckdb_views
from biasspark.workflows import attribute, compare, measure, mitigation_experiment, pinned_skew, window

N_ROWS = 600
FIRST, SECOND = date(2026, 1, 15), date(2026, 1, 16)
COMMON = """
corpus = { name = "tiny", id = "id", run_date_column = "day" }
label = { column = "target", threshold = 0.5 }
models = { one = "score", two = "rounded" }
slices = { short = "length < 100" }
thresholds = { at = [0.4, 0.6] }
histograms = { bins = 20 }
[identities]
columns = ["male", "female"]
categorical = ["race"]
terms = { column = "comment_text", list = ["gay", "christian: christian, catholic"] }
crossed = { pairs = true, min_rows = 20 }

[[gate.rule]]
name = "no false alarms"
metric = "bpsn_auc"
min = 0.8
worst = true
severity = "warn"

[[gate.rule]]
name = "no step back"
metric = "negative_aeg"
max_rise = 0.05
severity = "warn"

[[gate.rule]]
name = "no more misses"
metric = "fnr"
threshold = 0.6
max_rise = 0.05
severity = "warn"
"""
EVERY_PART = (
    COMMON
    + """
[gate]
paired = true

[[gate.rule]]
name = "no worse than the old model"
metric = "bpsn_auc"
baseline = "one"
max_drop = 0.02
severity = "warn"

[pinned_auc]
trials = 5

[label_balance]
length = "length"
buckets = [50, 100, 150]

[templates]
column = "template"

[state]
keep = true

[pinned_skew]
identity = "male"
trials = 5

[compare]
baseline = "one"

[attribution]
write_examples = true
numeric = ["length"]
categorical = ["race", "template"]
groupings = { race = "race" }
segments = { long = "length > 150" }
pairs_of = { long = { negatives = "length > 100", positives = "length > 150" } }
compare = [["two", "one"]]
targets = ["auc", "cross_entropy", "gini"]
link = "logit"
tree = { max_depth = 2, min_leaf = 20 }
pairs = { max_depth = 2, min_leaf = 1000, min_side = 10 }
slice_search = { max_predicates = 2, min_rows = 20 }
"""
)
WINDOWS = (
    COMMON
    + """
[ranking]
engine = "windows"

[pinned_auc]
include_subgroup_in_background = false
"""
)
# Counts of the training corpus are compared; what scikit-learn makes of it has the bits of its version.
MITIGATION = """
corpus = { name = "tiny", id = "id", filter = "score IS NOT NULL" }
label = { column = "target", threshold = 0.5 }
identities = { terms = { column = "comment_text", list = ["gay", "catholic"] } }
label_balance = { text = "comment_text", buckets = [1, 5, 10, 20] }
mitigation = { text = "comment_text", test_rows = 200 }
"""


class Step(NamedTuple):
    """A job, its configuration, its other flags, and the names of its folders by their keys."""

    job: ModuleType
    config: str
    flags: str
    paths: Mapping[str, str] = MappingProxyType({"corpus.path": "corpus", "output.path": "warehouse"})


# The second date is compared with the first, which the gate has accepted.
STEPS = (
    Step(measure, EVERY_PART, f"--run-date {FIRST}"),
    Step(measure, WINDOWS, f"--run-date {SECOND}"),
    Step(window, EVERY_PART, f"--from {FIRST} --to {FIRST}"),
    Step(pinned_skew, EVERY_PART, f"--run-date {FIRST}"),
    Step(compare, EVERY_PART, f"--run-date {FIRST}"),
    Step(compare, EVERY_PART, f"--run-date {SECOND} --set compare.method=jackknife --set compare.cluster=author"),
    Step(attribute, EVERY_PART, f"--run-date {FIRST}"),
)
MITIGATED = Step(
    mitigation_experiment,
    MITIGATION,
    f"--run-date {FIRST}",
    paths={"corpus.path": "corpus", "mitigation.pool": "corpus", "output.path": "mitigated"},
)

RUN_ID = re.compile(r"r[0-9]{8}T[0-9]{12}_[0-9a-f]{6}")
OF_THE_ATTEMPT = {"config", "config_hash", "spark_version", "started_at", "published_at"}
"""Columns with the folder, Spark or the time. Run ids are the only other difference between attempts."""


def make_rows() -> Iterator[dict[str, object]]:
    """Yield the comments, drawn by Python, whose generator, unlike numpy's, is the same in every version."""
    rng = random.Random(20260115)
    for number in range(2 * N_ROWS):
        toxic, annotated = rng.random() < 0.4, rng.random() < 0.8
        score = rng.gauss(0.6 if toxic else 0.4, 0.2)
        yield {
            "id": f"c{number // 2}",
            "day": SECOND if number % 2 else FIRST,
            "target": 0.9 if toxic else 0.2,
            "score": float("nan") if number % 97 == 5 else score,
            "rounded": round(score + rng.gauss(0, 0.1), 1),
            "male": rng.random() if annotated else None,
            "female": rng.random() if annotated else None,
            "race": rng.choice(("Asian", "Black", "Latino")) if annotated else None,
            "length": rng.randrange(1, 200),
            "template": f"t{number % 7}",
            "author": f"a{number % 61}",
            "comment_text": rng.choice(("gay", "Christian or gay", "a catholic", "nobody")),
        }


def write_corpus(folder: Path) -> None:
    """Write the comments as two files, each with half of either date."""
    folder.mkdir(parents=True)
    table = pa.Table.from_pylist(list(make_rows()))
    for part in range(2):
        pq.write_table(table.slice(part * N_ROWS, N_ROWS), folder / f"{part}.parquet")


def flags_of(step: Step, folder: Path) -> list[str]:
    """Write the configuration of a job, and return its flags."""
    config = folder / "job.toml"
    config.write_text(step.config, encoding="utf-8")
    paths = [part for key, name in step.paths.items() for part in ("--set", f"{key}={folder / name}")]
    return ["--config", str(config), *paths, *step.flags.split(), "--debug"]


def write_tables(warehouse: Path, out: Path) -> None:
    """Write every table. Raises ValueError for one without rows, which would compare nothing."""
    with duckdb.connect() as connection:
        connection.execute(
            duckdb_views(str(warehouse), [table for table in TABLES.values() if table != TRAINING_BALANCE])
        )
        connection.execute(duckdb_views(str(warehouse.with_name("mitigated")), [TRAINING_BALANCE]))
        texts = {name: format_rows(connection, table) for name, table in TABLES.items()}
    out.mkdir()
    for name, text in texts.items():
        (out / f"{name}.csv").write_text(text, encoding="utf-8", newline="")


def format_rows(connection: duckdb.DuckDBPyConnection, table: Table, left_out: Set[str] = OF_THE_ATTEMPT) -> str:
    """Return a table as CSV, by default without columns of the attempt, with sorted rows and all digits of doubles."""
    columns = [name for name in table.names if name not in left_out]
    # The names are declared in biasspark.
    # The header of a sketch has quantiles of a sample, which depend on how rows are spread over tasks.
    where = " WHERE score_range >= 0" if table == SCORE_BLOCKS else ""
    rows = connection.execute(f"SELECT {', '.join(columns)} FROM {table.name}{where}").fetchall()
    if not rows:
        raise ValueError(f"{table.name} has no rows")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(
        sorted([["" if cell is None else RUN_ID.sub("a run", repr(cell)) for cell in row] for row in rows])
    )
    return text.getvalue()


def main(folder: Path, engine: Engine) -> int:
    write_corpus(folder / "corpus")
    with session_requested(SessionRequest(engine)), job_session("biasspark matrix"):
        for step in STEPS:
            if code := run_job(step.job.main, step.job.COMMAND.parser(), flags_of(step, folder)):
                return code
        parser = MITIGATED.job.COMMAND.parser()
        run_job(MITIGATED.job.main, parser, flags_of(MITIGATED, folder))  # its verdict is of no interest
    write_tables(folder / "warehouse", folder / "tables")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), "embedded" if sys.argv[2] == "embedded" else "spark"))
