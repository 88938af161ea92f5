"""Publishing: a night's numbers appear all at once over all tables, or not at all.

A run only ever adds rows of its own. They are written, read back and compared with what was computed, and only then
does one row in the ledger publish them. Views show, for each night and corpus, the run that was published last, so a
crash at any instant leaves rows that no view shows, and a rerun supersedes a night without touching its bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial, reduce
from typing import NamedTuple

import pyspark.sql.functions as F
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from biasspark.errors import BiasSparkError, PublishConflict
from biasspark.session import describe, persisted
from biasspark.tables.runs import Run, RunRecord, new_run
from biasspark.tables.schemas import BIAS_RUNS, CORPUS, RUN_DATE, RUN_ID, TABLES, Column, Table
from biasspark.tables.store import Store, has_columns, list_columns, list_types, named_fault, redact

__all__ = ["PublishedRun", "Run", "RunRecord", "new_run", "publish"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class PublishedRun:
    """A run that readers see, when that was, and the rows it has in each table."""

    run: Run
    published_at: datetime
    n_rows: Mapping[str, int]


class _Examined(NamedTuple):
    """What must agree between the rows computed and the rows read back, and what no row may have."""

    name: str
    state: str
    n_rows: int
    checksum: Decimal | None
    n_keys: int | None
    n_nan: int | None


def publish(frames: Mapping[Table, DataFrame], run: Run, store: Store, record: RunRecord) -> PublishedRun:
    """Write all tables of a run, check what was written, and publish the run by one row in the ledger.

    Parameters
    ----------
    frames : mapping of Table to DataFrame
        The rows of every table of the job, empty ones too, with the table's ``value_columns`` in any order. Each is
        evaluated once.
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
    For n tables n + 1 writes of one file each, one query that reads the files back, and a read of the night's ledger.
    Two runs that come to the ledger within the same second may both be published; readers then see the later one whole.
    """
    _check_frames(frames, run)
    spark = next(iter(frames.values())).sparkSession
    rows = {table: _in_one_file(table, _add_run(table, frame, run)) for table, frame in frames.items()}
    with ExitStack() as stack:
        for frame in rows.values():
            stack.enter_context(persisted(frame))
        for table, frame in rows.items():
            with describe(spark, f"publish: write {table.name}"):
                store.write(table, frame, run)
        with describe(spark, "publish: read back and compare"), named_fault(store.root, "read back"):
            n_rows = _check_written(rows, run, store)
    with describe(spark, "publish: ledger"), named_fault(store.place(BIAS_RUNS, run), "written"):
        published_at = _choose_time(store.read_ledger(spark, run.run_date), run)
        _append_to_ledger(_ledger_row(spark, run, record, published_at), run, store)
    return PublishedRun(run, published_at, n_rows)


def _check_frames(frames: Mapping[Table, DataFrame], run: Run) -> None:
    """Refuse a run that lacks a table of its job, has another's, or has columns that are not the table's."""
    wanted = {table.name for table in TABLES.values() if table.job == run.job}
    given = {table.name for table in frames}
    faults = []
    if given != wanted or not given:
        faults.append(
            f"{run.job}: its frames are {', '.join(sorted(given)) or 'none'}. A run writes every table of its job: "
            f"{', '.join(sorted(wanted)) or 'none is declared'}. Give each of them a frame, an empty one if need be."
        )
    for table, frame in frames.items():
        contract = StructType([column.field for column in (*table.key, *table.values)])
        if sorted(list_types(frame.schema)) != sorted(list_types(contract)):
            faults.append(
                f"{table.name}: the frame has {list_columns(frame.schema)}. The table has {list_columns(contract)}. "
                "Give the frame these columns."
            )
    if faults:
        raise BiasSparkError(*faults)


def _add_run(table: Table, frame: DataFrame, run: Run) -> DataFrame:
    """Return the frame with the run's columns, in the order of the contract and with its comments."""
    own = {RUN_DATE: F.lit(run.run_date), CORPUS: F.lit(run.corpus), RUN_ID: F.lit(run.run_id)}
    return frame.select([_with_comment(column, own.get(column, F.col(column.name))) for column in table.columns])


def _with_comment(column: Column, value: SparkColumn) -> SparkColumn:
    return value.alias(column.name, metadata={"comment": column.comment})


def _in_one_file(table: Table, rows: DataFrame) -> DataFrame:
    """Return the rows as one partition, sorted so that equal runs write equal files.

    ``coalesce`` would leave the work beneath the rows to one task as well.
    """
    return rows.repartition(1).sortWithinPartitions(*table.key_columns)


def _check_written(rows: Mapping[Table, DataFrame], run: Run, store: Store) -> dict[str, int]:
    """Refuse to publish what is not, read back, the rows written, of the types declared, each with its own key.

    Returns the number of rows of each table. One query over all tables.
    """
    spark = next(iter(rows.values())).sparkSession
    stored = {table: store.read(spark, table, run) for table in rows}
    faults = [
        f"{redact(store.place(table, run))}: {list_columns(frame.schema)} were read back. {list_columns(table.schema)} "
        "were written. Nothing was published, run again."
        for table, frame in stored.items()
        if not has_columns(frame.schema, table)
    ]
    if faults:
        raise BiasSparkError(*faults)
    # One task a file, and so no shuffle.
    parts = [_examine(table, frame.coalesce(1)) for table, frame in stored.items()]
    parts += [_fingerprint(table, frame, "computed") for table, frame in rows.items()]
    together = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), parts).collect()
    found = {(row["name"], row["state"]): _Examined(**row.asDict()) for row in together}
    for table in rows:
        place = redact(store.place(table, run))
        faults += _find_faults(table, place, found[table.name, "computed"], found[table.name, "stored"])
    if faults:
        raise BiasSparkError(*faults)
    return {table.name: found[table.name, "stored"].n_rows for table in rows}


def _examine(table: Table, rows: DataFrame) -> DataFrame:
    """Return one row, an ``_Examined`` of rows that were read back."""
    doubles = F.array(F.lit(0.0), *(column.name for column in table.values if column.type == "DOUBLE"))
    return _fingerprint(
        table,
        rows,
        "stored",
        F.count_distinct(F.struct(*table.key_columns)).alias("n_keys"),
        F.count_if(F.array_contains(doubles, math.nan)).alias("n_nan"),
    )


def _fingerprint(table: Table, rows: DataFrame, state: str, *more: SparkColumn) -> DataFrame:
    """Return one row with the count and the checksum of the rows; decimals hold the sum of the hashes of 5e18 rows."""
    return rows.agg(
        F.lit(table.name).alias("name"),
        F.lit(state).alias("state"),
        F.count(F.lit(1)).alias("n_rows"),
        F.sum(F.xxhash64(*table.names).cast("decimal(38,0)")).alias("checksum"),
        *more,
    )


def _find_faults(table: Table, place: str, computed: _Examined, stored: _Examined) -> list[str]:
    """Return what is wrong with the rows that were read back."""
    faults = []
    if (stored.n_rows, stored.checksum) != (computed.n_rows, computed.checksum):
        faults.append(
            f"{place}: {stored.n_rows} rows with checksum {stored.checksum} were read back. {computed.n_rows} rows "
            f"with checksum {computed.checksum} were written. Nothing was published, run again."
        )
    if table.unique and stored.n_keys != stored.n_rows:
        faults.append(
            f"{table.name}: {stored.n_rows} rows have {stored.n_keys} keys. Each row has its own "
            f"{', '.join(table.key_columns)}. Nothing was published."
        )
    if stored.n_nan:
        faults.append(f"{table.name}: {stored.n_nan} rows hold NaN. An undefined value is NULL. Nothing was published.")
    return faults


def _choose_time(ledger: DataFrame, run: Run) -> datetime:
    """Return a time of publication later than all before it, unless a run was published since this one started."""
    ours = (F.col("corpus") == F.lit(run.corpus)) & (F.col("job") == F.lit(run.job))
    # As a number, which no time zone of a session or a machine can shift.
    published = F.unix_micros("published_at").alias("published")
    before = ledger.where(ours).select("run_id", "status", published).collect()
    started = (run.started_at - _EPOCH) // _MICROSECOND
    others = [row for row in before if row["status"] == "published" and row["published"] > started]
    if others:
        last = max(others, key=lambda row: int(row["published"]))
        raise PublishConflict(
            f"bias_runs: run {last['run_id']} of {run.job} for {run.run_date}, corpus {run.corpus!r}, was published at "
            f"{_EPOCH + last['published'] * _MICROSECOND}, after this one started at {run.started_at}. Of two runs of "
            "a night at once the first to publish counts. Nothing was published. Run again to supersede it."
        )
    latest = max((row["published"] for row in before), default=0)
    return max(datetime.now(UTC), _EPOCH + (latest + 1) * _MICROSECOND)


def _append_to_ledger(row: DataFrame, run: Run, store: Store) -> None:
    """Publish. A write that fails when its row is there already, in marking itself done, has published all the same."""
    try:
        store.write(BIAS_RUNS, row.coalesce(1), run)
    except BiasSparkError:
        ledger = store.read_ledger(row.sparkSession, run.run_date)
        if ledger.where(F.col("run_id") == F.lit(run.run_id)).isEmpty():
            raise


def _ledger_row(spark: SparkSession, run: Run, record: RunRecord, published_at: datetime) -> DataFrame:
    """Return the one row that publishes a run."""
    values = {
        "run_date": run.run_date,
        "corpus": run.corpus,
        "job": run.job,
        "status": record.status,
        "n_rows": record.n_rows,
        "n_rejected": record.n_rejected,
        "rejects": dict(record.rejects),
        "warnings": list(record.warnings),
        "config": record.config,
        "config_hash": record.config_hash,
        "code_version": record.code_version,
        "spark_version": record.spark_version,
        "started_at": run.started_at,
        "published_at": published_at,
        "run_id": run.run_id,
    }
    return spark.createDataFrame([tuple(values[name] for name in BIAS_RUNS.names)], BIAS_RUNS.schema)
