"""A Delta corpus: the files and columns in its log, and files with other rows than the table. No engine runs."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from biasspark.config import Corpus, parse_config
from biasspark.corpus.local_files import open_delta
from biasspark.errors import InputError
from tests.harness.least_configuration import changed
from tests.unit.test_delta_log import add_feature

deltalake = pytest.importorskip("deltalake")
RUN_DATE = date(2026, 1, 15)
CITIES = ("New York", "a/b", "x=1", "10:00", "%41", "é", None)


def corpus_of(folder: Path, **keys: Any) -> Corpus:
    return parse_config(changed(corpus={"path": str(folder), "format": "delta", **keys}), Path()).corpus


def write(folder: Path, n_rows: int = 7, **options: Any) -> Path:
    rows = {
        "id": [f"c{number}" for number in range(n_rows)],
        "city": [CITIES[number % 7] for number in range(n_rows)],
        "day": [RUN_DATE + timedelta(days=number % 2) for number in range(n_rows)],
    }
    deltalake.write_deltalake(folder, pa.table(rows), **options)
    return folder


def test_each_file_comes_with_the_values_of_its_partitions(tmp_path: Path) -> None:
    found = open_delta(corpus_of(write(tmp_path / "c", partition_by=["city", "day"])), tmp_path / "c")
    assert (found.schema.names, found.partitions) == (["id", "city", "day"], ["city", "day"])
    ids = {values: pq.ParquetFile(file).read(["id"])["id"].to_pylist() for file, values in found.files}
    days = [str(RUN_DATE), str(RUN_DATE + timedelta(days=1))]
    assert ids == {(city, days[number % 2]): [f"c{number}"] for number, city in enumerate(CITIES)}


def test_files_of_other_runs_are_left_out_where_a_partition_is_the_run(tmp_path: Path) -> None:
    root = write(tmp_path / "c", partition_by=["day"])
    for column, n_files in (("day", 1), ("city", 2), (None, 2)):
        found = open_delta(corpus_of(root, run_date_column=column), root, RUN_DATE)
        assert len(found.files) == n_files
    assert open_delta(corpus_of(root, run_date_column="day"), root, date(2026, 2, 1)).files == []


def test_files_that_were_replaced_are_of_an_earlier_version(tmp_path: Path) -> None:
    root = write(tmp_path / "c", 3)
    write(root, 5, mode="overwrite")

    def count(**keys: Any) -> int:
        files = open_delta(corpus_of(root, **keys), root).files
        return sum(pq.read_metadata(file).num_rows for file, _ in files)

    assert (count(), count(options={"versionAsOf": "0"}), count(options={"VERSIONASOF": "1"})) == (5, 3, 5)
    for version in ("2", "first"):
        with pytest.raises(InputError, match="no such version"):
            count(options={"versionAsOf": version})


def test_tables_whose_files_are_not_their_rows_are_refused(tmp_path: Path) -> None:
    mapped, by_number = write(tmp_path / "mapped"), tmp_path / "by number"
    add_feature(mapped, "ColumnMapping")
    deltalake.write_deltalake(by_number, pa.table({"id": ["a"], "share": [0.1]}), partition_by=["share"])
    for root, problem in ((mapped, "columnMapping"), (by_number, "partitions of share double")):
        with pytest.raises(InputError, match=problem):
            open_delta(corpus_of(root), root)


def test_a_table_that_may_have_deletion_vectors_and_has_none_is_read(tmp_path: Path) -> None:
    root = write(tmp_path / "c")
    add_feature(root, "DeletionVectors")
    assert len(open_delta(corpus_of(root), root).files) == 1


def test_deleted_rows_are_never_read(tmp_path: Path) -> None:
    """A deletion vector in the log deletes the first row of the file."""
    root = write(tmp_path / "c")
    (line,) = (line for line in (root / f"_delta_log/{0:020}.json").read_text("utf-8").splitlines() if '"add"' in line)
    add_feature(root, "DeletionVectors")
    action = json.loads(line)
    vector = {"storageType": "i", "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000005c8Xg00000"}
    action["add"]["deletionVector"] = vector | {"sizeInBytes": 34, "cardinality": 1}
    (root / f"_delta_log/{2:020}.json").write_text(json.dumps(action), "utf-8")
    with pytest.raises(InputError, match="deletion vectors"):
        open_delta(corpus_of(root), root)


def test_what_is_no_table_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing at this path"):
        open_delta(corpus_of(tmp_path / "c"), tmp_path / "c")
    with pytest.raises(InputError, match="no data files"):
        open_delta(corpus_of(tmp_path), tmp_path)
