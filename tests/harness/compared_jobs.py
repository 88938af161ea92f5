"""A corpus of secrets for jobs that are disturbed, and what they published, to compare it to the last bit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from biasspark.tables.schemas import Table, tables_of
from tests.harness.main_job import RUN_DATE, make_rows, write_config, write_parquet
from tests.harness.sample_run import read_latest
from tests.harness.submitting import ROOT

JOB = str(ROOT / "jobs" / "bias_metrics.py")
CANARY = "canary7e2d"
N_ROWS = 400
PARTS: dict[str, Any] = {
    "corpus": {"options": {"password": CANARY}},
    "models": {"m": None, "one": "score", "two": "score_text"},
    "identities": {
        "columns": ["male", "female"],
        "terms": {"column": "comment_text", "list": ["gay", "christian: christian, catholic"]},
        "crossed": {"pairs": True, "min_rows": 10},
    },
    "slices": {"short": "length < 100", "mentions": "comment_text LIKE '%gay%'"},
    "thresholds": {"at": [0.5]},
    "histograms": {"bins": 20},
    "label_balance": {"text": "comment_text", "buckets": [5, 20, 50]},
    "pinned_auc": {"trials": 5},
    "privacy": {"min_group_rows": 5},
    "gate": {
        "rule": [
            {"name": "floor", "metric": "bpsn_auc", "min": 0.01},
            {"name": "no step back", "metric": "auc", "max_drop": 0.1},
        ]
    },
}


@dataclass(frozen=True)
class Place:
    """A folder with a corpus and the warehouses of the jobs."""

    folder: Path

    def flags(self, warehouse: str, **tables: Any) -> list[str]:
        """Return the flags of a job with every part that writes into a warehouse; `tables` replace tables."""
        config = write_config(self.folder, **PARTS | {"output": {"path": str(self.folder / warehouse)}} | tables)
        return ["--config", str(config), "--run-date", RUN_DATE]


def make_place(folder: Path) -> Place:
    """Make a corpus of two files whose text, and a column that nothing asks for, hold a secret in every row."""
    rows, rng = make_rows(N_ROWS, seed=23), np.random.default_rng(23)
    rows["score"][7::50] = [math.nan] * (N_ROWS // 50)
    rows["score_text"] = [f"{CANARY}!" if number % 50 == 9 else str(number % 7) for number in range(N_ROWS)]
    words = rng.choice(["gay", "Christian", "a catholic", "nobody"], N_ROWS)
    rows["comment_text"] = [f"{word}, {CANARY} {number}" for number, word in enumerate(words)]
    rows["author"] = [f"{CANARY}@example.org"] * N_ROWS
    write_parquet(folder / "corpus", rows)
    return Place(folder)


def tables_there(warehouse: Path) -> list[Table]:
    """Return the tables of the job that a run wrote: those of parts that are off are not there."""
    return [table for table in tables_of("bias_metrics") if (warehouse / table.name).is_dir()]


def read_tables(warehouse: Path) -> dict[str, list[str]]:
    """Return the latest rows of every table, less the run's columns, doubles written out to the last bit."""
    return {
        table.name: [repr(row) for row in read_latest(warehouse, ", ".join(table.value_columns), table=table.name)]
        for table in tables_there(warehouse)
    }


def list_runs(warehouse: Path) -> list[str]:
    return [run_id for (run_id,) in read_latest(warehouse, "DISTINCT run_id")]


def read_pages(warehouse: Path) -> dict[str, list[bytes]]:
    """Return the files of every table, byte for byte, up to the footer.

    In the footer Parquet lists the encodings of a column in an order that differs from one JVM to the next. Its length
    stands in the four bytes before the closing magic ones.
    """
    return {
        table.name: [
            data[: -8 - int.from_bytes(data[-8:-4], "little")]
            for data in (file.read_bytes() for file in sorted((warehouse / table.name).glob("*/*/*.parquet")))
        ]
        for table in tables_there(warehouse)
    }
