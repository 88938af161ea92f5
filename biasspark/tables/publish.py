"""Publishing: a night's numbers appear all at once over all tables, or not at all.

A run only ever adds rows of its own. They are written, read back and compared with what was computed, and only then
does one row in the ledger publish them. Views show, for each night and corpus, the run that was published last, so a
crash at any instant leaves rows that no view shows, and a rerun supersedes a night without touching its bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial, reduce
from typing import NamedTuple

import pyspark.sql.functions as F
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Observation, SparkSession

from biasspark.config import redact
from biasspark.errors import BiasSparkError, PublishConflict
from biasspark.expressions.sql import quote_names
from biasspark.session import describe, run_side_by_side
from biasspark.tables.contract import list_columns, list_types, named_fault
from biasspark.tables.runs import Run, RunRecord, from_micros, is_copy, to_micros
from biasspark.tables.schemas import BIAS_RUNS, CORPUS, RUN_DATE, RUN_ID, Column, Table, tables_of
from biasspark.tables.store import Store


@dataclass(frozen=True)
class PublishedRun:
    """A run that readers see, when that was, and the rows it has in each table."""

    run: Run
    published_at: datetime
    n_rows: Mapping[str, int]


class _Fingerprint(NamedTuple):
    """What must agree between the rows that went into a file and the rows read back from it."""

    n_rows: int
    checksum: str


_NOTHING = _Fingerprint(0, "0")


class _Stored(NamedTuple):
    """What was read back of one table."""

    fingerprint: _Fingerprint
    n_keys: int
    n_nan: int


def publish(frames: Mapping[Table, DataFrame | None], run: Run, store: Store, record: RunRecord) -> PublishedRun:
    """Write all tables of a run, check what was written, and publish the run by one row in the ledger.

    Parameters
    ----------
    frames : mapping of Table to DataFrame
        The rows of every table of the job, with the table's ``value_columns`` in any order; None for a table that is
        empty without being computed. Each is evaluated once, its last stage by one task: what is costly belongs behind
        a shuffle or a cache.
    run : Run
        The attempt.
    store : Store
        Where the tables live.
    record : RunRecord
        What the ledger says of the run.

    Returns
    -------
    PublishedRun
        Published from that instant on.

    Raises
    ------
    PublishConflict
        If another run of the same date, corpus and job was published since this one started.
    BiasSparkError
        If frames and tables do not fit, a key repeats, a value is NaN, a place cannot be written, or what was read back
        is not what was written. Nothing was published.

    Notes
    -----
    For n tables n + 1 writes of one file each, a few at a time, one query that reads back those that were computed, and
    a read of the night's ledger.
    Rows are counted and hashed on their way into the file, so nothing is computed twice or kept.
    Two runs that come to the ledger within the same second may both be published; readers then see the later one whole.
    """
    _check_frames(frames, run)
    spark = next(frame for frame in frames.values() if frame is not None).sparkSession
    writes = [partial(_write, spark, table, frame, run, store) for table, frame in frames.items()]
    written = dict(zip(frames, run_side_by_side(spark, writes), strict=True))
    with describe(spark, "publish: read back and compare"), named_fault(store.root, "read back"):
        _check_written(spark, written, run, store)
    published_at = append_to_ledger(spark, run, store, record)
    return PublishedRun(run, published_at, {table.name: found.n_rows for table, found in written.items()})


def append_to_ledger(spark: SparkSession, run: Run, store: Store, record: RunRecord) -> datetime:
    """Add the row of a run to the ledger, and return when that was: from then on readers see the run.

    Raises
    ------
    PublishConflict
        If another run of the same date, corpus and job came to the ledger since this one started.
    BiasSparkError
        If it cannot be written.
    """
    with describe(spark, "publish: ledger"), named_fault(store.place(BIAS_RUNS, run), "written"):
        published_at = _choose_time(store.read_ledger(spark, run.run_date), run)
        _append_row(_ledger_row(spark, run, record, published_at), run, store)
    return published_at


def _check_frames(frames: Mapping[Table, DataFrame | None], run: Run) -> None:
    """Refuse a run that lacks a table of its job, has another's, or has columns that are not the table's."""
    wanted = {table.name for table in tables_of(run.job)}
    given = {table.name for table in frames}
    faults = []
    if given != wanted or not given:
        faults.append(
            f"{run.job}: its frames are {', '.join(sorted(given)) or 'none'}. A run writes every table of its job: "
            f"{', '.join(sorted(wanted)) or 'none is declared'}. Give each of them a frame, or None where it is empty."
        )
    for table, frame in frames.items():
        if frame is None:
            continue
        contract = table.value_schema
        if sorted(list_types(frame.schema)) != sorted(list_types(contract)):
            faults.append(
                f"{table.name}: the frame has {list_columns(frame.schema)}. The table has {list_columns(contract)}. "
                "Give the frame these columns."
            )
    if faults:
        raise BiasSparkError(*faults)


def _add_run(table: Table, frame: DataFrame, run: Run) -> DataFrame:
    """Return the frame with the run's columns, in the order of the contract and with its comments."""
    own = {RUN_DATE: run.run_date, CORPUS: run.corpus, RUN_ID: run.run_id}
    return frame.withColumns({column.name: F.lit(value) for column, value in own.items()}).to(table.schema)


def _with_comment(column: Column, value: SparkColumn) -> SparkColumn:
    return value.alias(column.name, metadata={"comment": column.comment})


def _write(spark: SparkSession, table: Table, frame: DataFrame | None, run: Run, store: Store) -> _Fingerprint:
    """Write the rows as one file, sorted so that equal runs write equal files, and say what went into it."""
    with describe(spark, f"publish: write {table.name}"):
        if frame is None:
            store.write_nothing(spark, table, run)
            return _NOTHING
        rows = _add_run(table, frame, run)
        rows = (rows if table.per_row else rows.coalesce(1)).sortWithinPartitions(*table.key_columns)
        seen = Observation()
        store.write(table, rows.observe(seen, F.count(F.lit(1)).alias("n_rows"), _checksum(_row_hash(table))), run)
        return _Fingerprint(**seen.get)


def _row_hash(table: Table) -> SparkColumn:
    return F.expr(f"xxhash64({quote_names(table.names)})").cast("decimal(38,0)")


def _checksum(hashes: SparkColumn) -> SparkColumn:
    """Return the sum of hashes as text; the decimal holds that of 5e18 rows."""
    return F.coalesce(F.sum(hashes), F.lit(0)).cast("string").alias("checksum")


def _check_written(spark: SparkSession, written: Mapping[Table, _Fingerprint], run: Run, store: Store) -> None:
    """Refuse to publish what is not, read back, the rows written, each with its own key. One query over all tables."""
    computed = {table: store.read(spark, table, run) for table, fingerprint in written.items() if fingerprint.n_rows}
    stored = _examine(computed) if computed else {}
    nothing = _Stored(_NOTHING, 0, 0)
    faults = [
        fault
        for table, fingerprint in written.items()
        for fault in _find_faults(table, redact(store.place(table, run)), fingerprint, stored.get(table.name, nothing))
    ]
    if faults:
        raise BiasSparkError(*faults)


def _examine(frames: Mapping[Table, DataFrame]) -> dict[str, _Stored]:
    """Return what is in each table; of those without rows nothing.

    All in one partition, so that grouping needs no shuffle: one file per table is read, none is large. But a table that
    grows with the corpus keeps its partitions.
    """
    small = [_hash_rows(table, frame) for table, frame in frames.items() if not table.per_row]
    large = [_hash_rows(table, frame) for table, frame in frames.items() if table.per_row]
    small = [reduce(DataFrame.unionByName, small).coalesce(1)] if small else []
    rows = reduce(DataFrame.unionByName, [*small, *large])
    by_key = rows.groupBy("name", "key").agg(
        F.count(F.lit(1)).alias("n_rows"), F.sum("hash").alias("hash"), F.count_if("has_nan").alias("n_nan")
    )
    found = by_key.groupBy("name").agg(
        F.sum("n_rows").alias("n_rows"),
        _checksum(F.col("hash")),
        F.count(F.lit(1)).alias("n_keys"),
        F.sum("n_nan").alias("n_nan"),
    )
    return {
        row["name"]: _Stored(_Fingerprint(row["n_rows"], row["checksum"]), row["n_keys"], row["n_nan"])
        for row in found.collect()
    }


def _hash_rows(table: Table, rows: DataFrame) -> DataFrame:
    """Return each row's key as text, none where keys repeat, the hash of all columns, and whether it holds a NaN."""
    doubles = [column.name for column in table.values if column.type == "DOUBLE"]
    has_nan = F.array_contains(F.expr(f"array({quote_names(doubles)})"), math.nan) if doubles else F.lit(False)
    return rows.select(
        F.lit(table.name).alias("name"),
        (F.to_json(F.struct(*table.key_columns)) if table.unique else F.lit("")).alias("key"),
        _row_hash(table).alias("hash"),
        F.coalesce(has_nan, F.lit(False)).alias("has_nan"),
    )


def _find_faults(table: Table, place: str, written: _Fingerprint, stored: _Stored) -> list[str]:
    """Return what is wrong with the rows that were read back."""
    faults, found = [], stored.fingerprint
    if found != written:
        faults.append(
            f"{place}: {found.n_rows} rows with checksum {found.checksum} were read back. {written.n_rows} rows with "
            f"checksum {written.checksum} were written. Nothing was published, run again."
        )
    if table.unique and stored.n_keys != found.n_rows:
        faults.append(
            f"{table.name}: {found.n_rows} rows have {stored.n_keys} keys. Each row has its own "
            f"{', '.join(table.key_columns)}. Nothing was published."
        )
    if stored.n_nan:
        faults.append(f"{table.name}: {stored.n_nan} rows hold NaN. An undefined value is NULL. Nothing was published.")
    return faults


def _choose_time(ledger: DataFrame, run: Run) -> datetime:
    """Return a time of publication later than all before it, unless a run was published since this one started.

    A copy is none: it has the numbers of a run that the ledger has as well.
    """
    same_window = F.col("window_start").eqNullSafe(F.lit(run.window_start).cast("date"))
    ours = (F.col("corpus") == F.lit(run.corpus)) & (F.col("job") == F.lit(run.job)) & same_window
    published = F.unix_micros("published_at").alias("published")
    before = ledger.where(ours).select("run_id", published, "warnings").collect()
    started = to_micros(run.started_at)
    others = [row for row in before if row["published"] > started and not is_copy(row["warnings"])]
    if others:
        last = max(others, key=lambda row: int(row["published"]))
        raise PublishConflict(
            f"bias_runs: run {last['run_id']} of {run.job} for {run.run_date}, corpus {run.corpus!r}, was published at "
            f"{from_micros(last['published'])}, after this one started at {run.started_at}. Of two runs of "
            "a night at once the first to publish counts. Nothing was published. Run again to supersede it."
        )
    latest = max((row["published"] for row in before), default=0)
    return max(datetime.now(UTC), from_micros(latest + 1))


def _append_row(row: DataFrame, run: Run, store: Store) -> None:
    """Publish. A write that fails when its row is there already, in marking itself done, has published all the same."""
    try:
        store.write(BIAS_RUNS, row.coalesce(1), run)
    except BiasSparkError:
        ledger = store.read_ledger(row.sparkSession, run.run_date)
        if ledger.where(F.col("run_id") == F.lit(run.run_id)).isEmpty():
            raise


def _ledger_row(spark: SparkSession, run: Run, record: RunRecord, published_at: datetime) -> DataFrame:
    """Return the one row that publishes a run.

    Made of literals: ``createDataFrame`` would start a Python worker for it.
    """
    values = {
        "run_date": F.lit(run.run_date),
        "corpus": F.lit(run.corpus),
        "job": F.lit(run.job),
        "status": F.lit(record.status),
        "n_rows": F.lit(record.n_rows),
        "n_rejected": F.lit(record.n_rejected),
        "rejects": F.create_map(*(F.lit(part) for item in record.rejects.items() for part in item)),
        "warnings": F.array(*map(F.lit, record.warnings)),
        "config": F.lit(record.config),
        "config_hash": F.lit(record.config_hash),
        "code_version": F.lit(record.code_version),
        "spark_version": F.lit(record.spark_version),
        # As a number, which no time zone of a session or a machine can shift.
        "started_at": F.timestamp_micros(F.lit(to_micros(run.started_at))),
        "published_at": F.timestamp_micros(F.lit(to_micros(published_at))),
        "window_start": F.lit(run.window_start),
        "merged_run_ids": F.lit(None) if record.merged_run_ids is None else F.array(*map(F.lit, record.merged_run_ids)),
        "run_id": F.lit(run.run_id),
    }
    return spark.range(1).select(
        *(_with_comment(column, values[column.name].cast(column.type)) for column in BIAS_RUNS.columns)
    )
