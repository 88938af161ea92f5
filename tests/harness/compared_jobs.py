"""A corpus of secrets for jobs that are disturbed, and what they published, to compare it to the last bit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from biasspark.tables.schemas import Table, tables_of
from tests.harness.main_job import RUN_DATE, write_config
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
    rng = np.random.default_rng(23)
    positive = rng.random(N_ROWS) < 0.4
    unasked = rng.random(N_ROWS) < 0.2
    words = rng.choice(["gay", "Christian", "a catholic", "nobody"], N_ROWS)
    table = pa.table(
        {
            "id": [f"c{number}" for number in range(N_ROWS)],
            "target": np.where(positive, 0.9, 0.2),
            "score": np.where(np.arange(N_ROWS) % 50 == 7, np.nan, np.round(rng.normal(positive, 1), 2)),
            "score_text": [f"{CANARY}!" if number % 50 == 9 else str(number % 7) for number in range(N_ROWS)],
            "male": pa.array(rng.random(N_ROWS), mask=unasked),
            "female": pa.array(rng.random(N_ROWS), mask=unasked),
            "length": rng.integers(1, 200, N_ROWS),
            "comment_text": [f"{word}, {CANARY} {number}" for number, word in enumerate(words)],
            "author": [f"{CANARY}@example.org"] * N_ROWS,
        }
    )
    (folder / "corpus").mkdir()
    for part in range(2):
        pq.write_table(table.slice(part * N_ROWS // 2, N_ROWS // 2), folder / "corpus" / f"part-{part}.parquet")
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

    In the footer Parquet lists the encodings of a column in an order that differs from one JVM to the next.
    """
    return {
        table.name: [
            without_footer(file.read_bytes()) for file in sorted((warehouse / table.name).glob("*/*/*.parquet"))
        ]
        for table in tables_there(warehouse)
    }


def without_footer(data: bytes) -> bytes:
    """Its length stands in the four bytes before the closing magic ones."""
    return data[: -8 - int.from_bytes(data[-8:-4], "little")]
