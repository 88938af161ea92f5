"""Jobs in the test's own process, over comments of plain names."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from errno import EACCES
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biasspark.workflows import measure
from tests.harness.running_jobs import Done, run_main

RUN_DATE = "2026-01-15"
CANARY = "canary-3f1c"
N_ROWS = 2_000

Rows = dict[str, list[Any]]
Tables = dict[str, dict[str, Any]]


def make_rows(n_rows: int = N_ROWS, seed: int = 11) -> Rows:
    """Two identities as annotators' fractions, NULL where nobody was asked, and a score with ties."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n_rows) < 0.3
    unasked = rng.random(n_rows) < 0.2
    male, female = (np.where(unasked, np.nan, rng.choice([0.0, 0.4, 0.5, 1.0], n_rows)).tolist() for _ in range(2))
    return {
        "id": [f"c{number}" for number in range(n_rows)],
        "target": [0.8 if is_positive else 0.1 for is_positive in positive],
        "score": np.round(rng.normal(positive, 1), 3).tolist(),
        "male": [None if math.isnan(share) else share for share in male],
        "female": [None if math.isnan(share) else share for share in female],
        "length": rng.integers(1, 200, n_rows).tolist(),
        "day": [RUN_DATE] * n_rows,
        "comment_text": [f"{CANARY} {number}" for number in range(n_rows)],
    }


def write_parquet(folder: Path, rows: Rows, files: int = 2) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.table(rows)
    step = -(-max(table.num_rows, 1) // files)
    for number in range(files):
        pq.write_table(table.slice(number * step, step), folder / f"part-{number}.parquet")
    return folder


def toml(value: Any) -> str:
    """Write a value as TOML, tables inline; the strings of JSON are TOML's, too."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key, ensure_ascii=False)} = {toml(v)}" for key, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def write_config(folder: Path, **tables: Any) -> Path:
    """Write a configuration of plain names over rows of `make_rows`, with the keys that a test changes.

    None takes a table or a key away.
    """
    base: Tables = {
        "corpus": {"name": "comments", "path": str(folder / "corpus"), "id": "id"},
        "label": {"column": "target", "threshold": 0.5},
        "models": {"m": "score"},
        "identities": {"columns": ["male", "female"]},
        "output": {"path": str(folder / "warehouse")},
    }
    for name, changes in tables.items():
        merged = base.pop(name, {}) | (changes or {})
        if changes is not None:
            base[name] = {key: value for key, value in merged.items() if value is not None}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{uuid4().hex}.toml"
    path.write_text("\n".join(f"{name} = {toml(table)}" for name, table in base.items()), encoding="utf-8")
    return path


def run(config: Path, *flags: object, run_date: object = RUN_DATE, job: Any = measure) -> Done:
    """Run the main job, or another."""
    done = run_main(job.COMMAND, "--config", config, "--run-date", run_date, *flags)
    assert CANARY not in done.out + done.err
    return done


def run_well(config: Path, *flags: object, run_date: object = RUN_DATE, job: Any = measure) -> Done:
    done = run(config, *flags, run_date=run_date, job=job)
    assert done.code == 0, done.err
    return done


def assert_refused(done: Done, code: int, *faults: str) -> None:
    """Assert that the job ended so, without a result, and with these faults and no others, one a line.

    Of a fault its beginning is enough: the key and its value.
    """
    assert done.code == code, done.err
    assert done.out == ""
    lines = [line.partition(": error: ")[2] for line in done.err.splitlines() if ": error: " in line]
    assert len(lines) == len(faults), done.err
    assert [line[: len(fault)] for line, fault in zip(lines, faults, strict=True)] == list(faults)


def list_files(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@contextmanager
def untouched(folder: Path) -> Iterator[None]:
    """Nothing under a folder is added, changed or removed by a block."""
    before = list_files(folder)
    yield
    assert list_files(folder) == before


@contextmanager
def closed(path: Path) -> Iterator[None]:
    """Refuse this process, which may be root's, a file, or a folder and what is in it."""
    access = os.access

    def is_within(other: object) -> bool:
        return path in Path(str(other)).parents

    def refusing(call: Callable[..., Any], is_refused: Callable[[Path], bool], place: int = 0) -> Callable[..., Any]:
        def refuse(*arguments: Any, **keywords: Any) -> Any:
            for asked in map(Path, map(str, arguments[place : place + 1])):
                if is_refused(asked):
                    raise PermissionError(EACCES, "Permission denied", str(asked))
            return call(*arguments, **keywords)

        return refuse

    with pytest.MonkeyPatch.context() as patch:
        for owner, name, place in ((Path, "iterdir", 0), (os, "scandir", 0), (pq.ParquetFile, "__init__", 1)):
            patch.setattr(owner, name, refusing(getattr(owner, name), path.__eq__, place))
        patch.setattr(Path, "stat", refusing(Path.stat, is_within))
        patch.setattr(os, "access", lambda file, mode: file != path and not is_within(file) and access(file, mode))
        yield
