"""A Delta table in a folder of this machine, by delta-rs (the package ``deltalake``): no Spark job, and no Java.

Data files are written as those of plain Parquet are, and delta-rs commits them: its own writer takes no rows with NULL
where Spark has made the check that no DOUBLE is NaN, and gives DECIMAL columns wrong statistics.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from biasspark.delta_rs import list_features
from biasspark.files import replace_local_file
from biasspark.tables.parquet_files import join_files, read_file
from biasspark.tables.runs import Run
from biasspark.tables.schema_check import column_types
from biasspark.tables.schemas import CORPUS, RUN_DATE, RUN_ID, Column, Table

_CONSTRAINT = "delta.constraints."
_NO_NAN = "no_nan_from_"
_FEATURES = {"appendOnly", "checkConstraints", "invariants"}
_MOST_RETRIES = 100
"""Of a commit before which another one came."""


def required_columns(table: Table) -> set[str]:
    """Return the columns that every row must have."""
    return {RUN_DATE.name, CORPUS.name, *(table.key_columns if table.unique else ()), RUN_ID.name}


def no_nan(columns: Sequence[Column]) -> dict[str, str]:
    """Return by its name the check that no DOUBLE of columns that came together is NaN; NULL passes with any engine."""
    doubles = [column.name for column in columns if column.type == "DOUBLE"]
    checks = " AND ".join(f"({name} IS NULL OR NOT isnan({name}))" for name in doubles)
    return {f"{_NO_NAN}{doubles[0]}": checks} if doubles else {}


@dataclass(frozen=True)
class DeltaLog:
    """A table of the contract in a folder, which may be there or not. Each method looks at the log as it is then."""

    folder: Path
    table: Table

    def types(self) -> dict[str, str] | None:
        """Return the columns of the table, None where there is none."""
        log = self._open()
        return None if log is None else column_types(pa.schema(log.schema().to_arrow()))

    def list_unsupported(self) -> list[str]:
        """Return what the table asks of those who write it that is not done here: features, and checks of others."""
        if (log := self._open()) is None:
            return []
        checks = {name for name in log.metadata().configuration if name.startswith(_CONSTRAINT)}
        return sorted(
            list_features(log) - _FEATURES | {name for name in checks if not name.startswith(_CONSTRAINT + _NO_NAN)}
        )

    def prepare(self) -> None:
        """Make the table where it is missing, and add columns and checks that are new."""
        for _ in range(_MOST_RETRIES):
            with suppress(import_module("deltalake.exceptions").CommitFailedError):  # another run changes it, too
                self._change()
                return
        self._change()

    def _change(self) -> None:
        log = self._open()
        if log is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            schema, night, comment = self._schema(self.table.columns), [RUN_DATE.name], self.table.comment
            library = import_module("deltalake")
            log = library.DeltaTable.create(self.folder, schema, "ignore", partition_by=night, description=comment)
        present = {field.name for field in log.schema().fields}
        if new := [column for column in self.table.columns if column.name not in present]:
            log.alter.add_columns(self._schema(new).fields)
        configuration = log.metadata().configuration
        checks = " ".join(text for name, text in configuration.items() if name.startswith(_CONSTRAINT))
        checked = set(re.findall(r"\w+", checks))
        for name, check in no_nan([column for column in self.table.columns if column.name not in checked]).items():
            log.alter.add_constraint({name: check})

    def append(self, rows: pa.Table, run: Run) -> None:
        """Write the rows of a run as one file, and commit it."""
        if len(rows):
            file = self.new_path(run, ".parquet")
            file.parent.mkdir(exist_ok=True)
            content = pa.BufferOutputStream()
            pq.write_table(rows.drop_columns([RUN_DATE.name]), content, write_page_checksum=True)
            replace_local_file(file, bytes(content.getvalue().to_pybytes()))
            self.commit([file], run)

    def new_path(self, run: Run, ending: str) -> Path:
        """Return where a file or a folder of files of a run may be written; nothing is there, and no log names it."""
        return self.folder / f"{RUN_DATE.name}={run.run_date}" / f"{run.run_id}-{uuid4().hex}{ending}"

    def commit(self, files: Sequence[Path], run: Run) -> None:
        """Add files of a run to the table in one commit. Does nothing without files.

        Raises `ValueError` if a row has NULL in the key, or NaN: the table refuses them.
        """
        library = import_module("deltalake")
        if files:
            retries = library.CommitProperties(max_commit_retries=_MOST_RETRIES)
            log, actions = self._open(), [self._add(file, run) for file in files]
            log.create_write_transaction(actions, "append", log.schema(), [RUN_DATE.name], commit_properties=retries)

    def read(self, nights: Collection[date] | None = None, run_ids: Collection[str] | None = None) -> pa.Table:
        """Return the rows of some nights and runs, or of all. Raises `FileNotFoundError` if there is no table."""
        files = self.list_files(nights, run_ids)
        rows = join_files(self.table, [read_file(self.table, file, {RUN_DATE.name: day}) for day, file in files])
        return rows if run_ids is None else rows.filter(pc.is_in(rows[RUN_ID.name], pa.array(sorted(run_ids))))

    def list_files(
        self, nights: Collection[date] | None = None, run_ids: Collection[str] | None = None
    ) -> list[tuple[date, Path]]:
        """Return the files that may have rows of some nights and runs, or of all, with nights. Raises as `read`."""
        if (log := self._open()) is None:
            raise FileNotFoundError(str(self.folder))
        files = []
        for action in pa.table(log.get_add_actions(flatten=True)).to_pylist():
            day = action[f"partition.{RUN_DATE.name}"]
            first, last = (action.get(f"{end}.{RUN_ID.name}") for end in ("min", "max"))
            is_known = run_ids is not None and first is not None and last is not None
            if (nights is None or day in nights) and (
                not is_known or any(first <= run_id <= last for run_id in run_ids or ())
            ):
                files.append((day, self.folder / action["path"]))
        return sorted(files)

    def list_runs(self) -> set[tuple[date, str]]:
        """Return (run_date, run_id) of all that the table holds. Reads one column of each file."""
        return {
            (day, run_id)
            for day, file in ([] if self._open() is None else self.list_files())
            for run_id in pq.ParquetFile(file).read([RUN_ID.name])[RUN_ID.name].unique().to_pylist()
        }

    def remove(self, run: Run) -> None:
        """Remove the rows of a run in one commit; the files go when `optimize` comes to them."""
        if (log := self._open()) is not None:
            predicate = f"{RUN_DATE.name} = DATE'{run.run_date}' AND {RUN_ID.name} = '{run.run_id}'"
            log.delete(predicate, writer_properties=_without_statistics())

    def optimize(self, before: datetime) -> None:
        """Compact the table, and delete the files that nothing but versions older than a time still names."""
        if (log := self._open()) is not None:
            log.optimize.compact(writer_properties=_without_statistics())
            hours = math.ceil(max((datetime.now(UTC) - before).total_seconds(), 0) / 3600)
            log.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)

    def _open(self) -> Any:
        """Return the table of the library, None where there is none."""
        library = import_module("deltalake")
        try:
            return library.DeltaTable(self.folder)
        except library.exceptions.TableNotFoundError:
            return None

    def _schema(self, columns: Sequence[Column]) -> Any:
        required = required_columns(self.table)
        fields = [pa.field(c.name, c.arrow_type, c.name not in required, {"comment": c.comment}) for c in columns]
        return import_module("deltalake").Schema.from_arrow(pa.schema(fields))

    def _add(self, file: Path, run: Run) -> Any:
        """Return the action that adds a file of a run. Its statistics are those by which readers find a run."""
        with pq.ParquetFile(file) as rows:
            for name in required_columns(self.table) - {RUN_DATE.name}:
                if rows.read([name])[name].null_count:
                    raise ValueError(f"NULL in {name}, which is NOT NULL")
            for column in self.table.columns:
                if column.type == "DOUBLE" and pc.any(pc.is_nan(rows.read([column.name])[column.name])).as_py():
                    raise ValueError(f"NaN in {column.name}, which the checks of the table exclude")
            n_rows = rows.metadata.num_rows
        ends = {RUN_ID.name: run.run_id}
        statistics = {"numRecords": n_rows, "minValues": ends, "maxValues": ends, "nullCount": {RUN_ID.name: 0}}
        return import_module("deltalake.transaction").AddAction(
            path=file.relative_to(self.folder).as_posix(),
            size=file.stat().st_size,
            partition_values={RUN_DATE.name: run.run_date.isoformat()},
            modification_time=time.time_ns() // 1_000_000,
            data_change=True,
            stats=json.dumps(statistics),
        )


def _without_statistics() -> Any:
    """Return how files are written anew: with statistics of ids alone, since the library's of DECIMAL are wrong."""
    library = import_module("deltalake")
    ids = {name: library.ColumnProperties(statistics_enabled="CHUNK") for name in (CORPUS.name, RUN_ID.name)}
    return library.WriterProperties(
        default_column_properties=library.ColumnProperties(statistics_enabled="NONE"), column_properties=ids
    )
