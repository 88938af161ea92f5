"""What must not leave: nothing listens to the network, no path leads out of the output, no record is quoted."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.harness.listening_sockets import find_descendants, find_listening
from tests.harness.main_job import RUN_DATE, run, run_well, write_config
from tests.harness.running_jobs import ask

CANARY = "canary-91ab"
VALUES = [
    "",
    "NULL",
    "null",
    "(null)",
    "007",
    "7",
    "../../x",
    "a/b=c",
    "run_date=2026-01-15",
    "*",
    "\u202egnp.exe",  # right to left from here on
    "\u200fx",
    "\u00e9",  # composed
    "e\u0301",  # decomposed
    "a\x00b",
    "a",
    " a",
    "A",
    "'; DROP TABLE x; --",
]
N_ROWS = 30 * len(VALUES)


# ---- sockets


@pytest.mark.classic("the server of Spark Connect may be elsewhere")
def test_nothing_listens_beyond_this_machine(spark: SparkSession) -> None:
    """A job runs: none of its processes listens beyond this machine."""
    assert spark.range(1).count() == 1
    addresses = find_listening(find_descendants(os.getpid()))
    assert addresses
    assert all(address.is_loopback for address in addresses), addresses


# ---- values that look like something else


def test_identities_of_any_characters_are_kept_apart_and_stay_in_their_folder(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Identities, a model and a corpus are named `../../x`, `NULL`, empty, with quotes, NUL, or marks that reverse the
    text direction: they stay distinct, and no file lies outside the output.

    Each value is an identity of its own, of a category and in an array, distinct byte by byte.
    """
    category = [VALUES[number % len(VALUES)] for number in range(N_ROWS)]
    tags = [[VALUES[number * 7 % len(VALUES)]] for number in range(N_ROWS)]
    rows = {
        "id": range(N_ROWS),
        "y": [number % 3 == 0 for number in range(N_ROWS)],
        "s": [number * 37 % 101 / 101 for number in range(N_ROWS)],
        "cat": category,
        "tags": tags,
    }
    (tmp_path / "lake" / "corpus").mkdir(parents=True)
    pq.write_table(pa.table(rows), tmp_path / "lake" / "corpus" / "a.parquet")
    warehouse = tmp_path / "lake" / "warehouse"
    config = write_config(
        tmp_path / "lake",
        corpus={"name": "../../x"},
        label={"column": "y", "threshold": None},
        models={"m": None, "../m": "s"},
        identities={"columns": None, "categorical": ["cat"], "array": "tags"},
    )
    done = run_well(config)
    assert json.loads(done.out.splitlines()[-1])["rejects"] == {}
    assert not any(character in done.out for character in "\u202e\u200f\x00")

    found = ask(warehouse, "SELECT identity, n_subgroup_negative + n_subgroup_positive FROM latest_bias_metrics")
    wanted = Counter(f"cat={value}" for value in category) + Counter(value for [value] in tags)
    assert dict(found) == dict(wanted)
    assert len(found) == 2 * len(VALUES)

    outside = {path for path in tmp_path.rglob("*") if path.is_file() and warehouse not in path.parents}
    assert outside == {config, tmp_path / "lake" / "corpus" / "a.parquet"}
    for file in warehouse.rglob("*.parquet"):
        table, run_date, run, _ = file.relative_to(warehouse).parts
        assert table.isidentifier()
        assert run_date == f"run_date={RUN_DATE}"
        assert run.startswith("run_id=r2")


# ---- records that an error would print


@pytest.mark.spark("reads a table of a catalog")
def test_a_table_that_fails_fast_does_not_print_the_record(spark: SparkSession, tmp_path: Path) -> None:
    """A table of the catalog fails on a bad record, which Spark would print: exit code 3, and the record is not shown.

    The configuration refuses the mode; a table of a catalog may have it all the same.
    """
    with (tmp_path / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([[1, "true", 0.5, 1.0], [CANARY, CANARY, CANARY, CANARY]])
    spark.sql(
        "CREATE TABLE fails_fast (id INT, y BOOLEAN, s DOUBLE, u DOUBLE) USING csv "
        f"OPTIONS (path '{tmp_path}/rows.csv', mode 'FAILFAST')"
    )
    try:
        config = write_config(
            tmp_path,
            corpus={"path": None, "table": "fails_fast"},
            label={"column": "y", "threshold": None},
            models={"m": "s"},
            identities={"columns": ["u"]},
        )
        done = run(config)
    finally:
        spark.sql("DROP TABLE fails_fast")
    assert done.code == 3
    assert CANARY not in done.out + done.err
    [fault] = [line for line in done.err.splitlines() if ": error: " in line]
    assert fault.partition(": error: ")[2].startswith("corpus: a record ")
    assert not (tmp_path / "warehouse").exists()
