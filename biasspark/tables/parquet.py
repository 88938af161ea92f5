"""Tables of plain Parquet, in a folder or in a Spark catalog.

Both hold every run in a directory of its own, ``<table>/run_date=D/run_id=R``, written once and never touched again:
two writers into one directory lose rows of each other, and overwriting loses the old rows when a task fails.

Small tables are Arrow: this process writes and reads their files itself where it sees the same folders as the session,
without a Spark job. Elsewhere Spark writes them, a job for each, and reads all of a run in one.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime
from functools import partial, reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark.sql.functions as F
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from biasspark.config import unusable_path
from biasspark.errors import ConfigError, Fault, InputError, KeyPath, has_condition, redact
from biasspark.expressions.sql import quote_name, quote_string
from biasspark.files import (
    check_file_system,
    delete_folder,
    list_folder,
    local_folder,
    replace_local_file,
    shared_folder,
    try_folder,
)
from biasspark.session import analyse, describe, is_embedded, run_side_by_side, sees_files
from biasspark.tables.runs import RUN_ID_RULE, Run
from biasspark.tables.schemas import BIAS_RUNS, RUN_DATE, RUN_ID, Table
from biasspark.tables.spark_schemas import (
    PARTITION,
    column_types,
    define_column,
    schema_faults,
    spark_field,
    spark_schema,
    to_arrow,
    to_frame,
)
from biasspark.tables.storage_errors import catalog_errors, describe_cause, refuse_embedded, storage_errors
from biasspark.text import format_count

_ABSENT = ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA", "DELTA_TABLE_NOT_FOUND")
_SCHEMA_FOR_SPARK = "org.apache.spark.sql.parquet.row.metadata"


@contextmanager
def absence(table: Table) -> Iterator[None]:
    """Raise `FileNotFoundError` where Spark says that a path or a table is not there."""
    try:
        yield
    except AnalysisException as error:
        if has_condition(error, *_ABSENT):
            raise FileNotFoundError(table.name) from error
        raise


def read_types(spark: SparkSession, path: str) -> dict[str, str] | None:
    """Return the columns of the Parquet files under a path, None where there are none."""
    if folder := shared_folder(spark, path):
        for file in find_data_files(folder):
            with storage_errors(str(file), "read"):
                return column_types(pq.read_schema(file))
        return None
    try:
        return column_types(spark.read.parquet(path).schema)
    except AnalysisException as error:
        if has_condition(error, *_ABSENT):
            return None
        raise


def list_visible(folder: Path) -> list[Path]:
    """Return what Spark sees in a folder of this machine, sorted; nothing where there is no folder.

    Raises `InputError` if this user may not read the folder, which ``Path.glob`` takes for an empty one, or not enter
    one above it.
    """
    with storage_errors(str(folder), "read"), suppress(FileNotFoundError, NotADirectoryError):
        return sorted(path for path in folder.iterdir() if not path.name.startswith(("_", ".")))
    return []


def find_data_files(folder: Path) -> Iterator[Path]:
    """Yield the Parquet files under a folder of this machine. Raises as ``list_visible``."""
    for path in list_visible(folder):
        if path.suffix == ".parquet":
            yield path
        elif path.is_dir():
            yield from find_data_files(path)


def write_directory(spark: SparkSession, table: Table, rows: pa.Table | DataFrame, path: str) -> None:
    """Write rows into a directory that is not there yet."""
    with storage_errors(path, "written"):
        if isinstance(rows, DataFrame):
            _write_files(rows, path)
            if not is_embedded(spark) or list_folder(spark, path):
                return
            rows = table.full_arrow_schema.empty_table()  # of no rows the embedded engine writes no file
        if folder := shared_folder(spark, path):
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir()
            replace_local_file(folder / "part-00000.parquet", _encode(table, rows))
        else:
            _write_files(to_frame(spark, rows, spark_schema(table)), path)


def _write_files(rows: DataFrame, path: str) -> None:
    # Spark Connect knows errorifexists by its other name alone. The ledger says what is whole, not a file
    # _SUCCESS in each directory.
    writer = rows.drop(*PARTITION).write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    writer.mode("error").parquet(path)


def stored_fields(table: Table) -> list[StructField]:
    """Return the columns that the files of a table have: those of partitions are in the names of directories."""
    return [field for field in spark_schema(table) if field.name not in PARTITION]


def _encode(table: Table, rows: pa.Table) -> bytes:
    """Return rows as a Parquet file, with what Spark reads comments from, and the checksums that it verifies."""
    columns = StructType(stored_fields(table))
    stored = rows.drop_columns(list(PARTITION)).replace_schema_metadata({_SCHEMA_FOR_SPARK: columns.json()})
    content = pa.BufferOutputStream()
    pq.write_table(stored, content, write_page_checksum=True)
    return bytes(content.getvalue().to_pybytes())


def read_files(table: Table, folders: Iterable[Path], *, skip_missing: bool = False) -> pa.Table:
    """Return the rows of a table in the directories of some runs; columns that files lack are NULL.

    Raises `FileNotFoundError` if a directory has no file, unless such are skipped; `InputError` if this user may not
    read a directory or a file; `BiasSparkError` if a file cannot be read, or is not as it was written.
    """
    parts: list[pa.Table] = []
    for folder in folders:
        files = [path for path in list_visible(folder) if path.suffix == ".parquet"]
        if not (files or skip_missing):
            raise FileNotFoundError(str(folder))
        run_date = date.fromisoformat(folder.parent.name.removeprefix("run_date="))
        partition = {"run_date": run_date, "run_id": folder.name.removeprefix("run_id=")}
        parts += [read_file(table, file, partition) for file in files]
    return join_files(table, parts)


def read_file(table: Table, file: Path, partition: Mapping[str, object]) -> pa.Table:
    """Return the rows of a file, with what the log or the directory gives; columns that it lacks are missing."""
    schema = table.full_arrow_schema
    with storage_errors(str(file), "read"):
        rows = pq.ParquetFile(file, page_checksum_verification=True).read()
    columns = {name: rows[name] for name in schema.names if name in rows.column_names}
    for name, values in columns.items():
        if "_view" in str(values.type):  # as delta-rs compacts texts
            columns[name] = values.cast(schema.field(name).type)
    columns |= {name: pa.array([value] * len(rows), schema.field(name).type) for name, value in partition.items()}
    return pa.table(columns)


def join_files(table: Table, parts: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of files, in the columns of the table; those that files lack are NULL."""
    empty = table.full_arrow_schema.empty_table()
    return pa.concat_tables([empty, *parts], promote_options="permissive").cast(empty.schema)


def collect_tables(frames: Mapping[Table, DataFrame]) -> dict[Table, pa.Table]:
    """Collect small tables by one job: the union of their rows, each a struct in the column of its table."""
    if not frames:
        return {}
    structs = [frame.select(F.struct(*table.names).alias(table.name)) for table, frame in frames.items()]
    union = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), structs)
    rows = union.collect()
    values = {table: [row[table.name].asDict() for row in rows if row[table.name] is not None] for table in frames}
    return {table: pa.Table.from_pylist(of_table, table.full_arrow_schema) for table, of_table in values.items()}


_NIGHT = re.compile(r"run_date=[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ATTEMPT = re.compile(rf"run_id=({RUN_ID_RULE})")
_UNWRITABLE = re.compile(r"Mkdirs failed|[Pp]ermission denied|AccessControl|AccessDenied|Read-only|not permitted")
_NO_FOLDER = (NotADirectoryError, FileNotFoundError, PermissionError)
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"


class ParquetStore:
    """What stores of plain Parquet share: each run has a directory of its own in the folder of a table."""

    def list_runs(self, spark: SparkSession, table: Table) -> set[tuple[date, str]]:
        """Return (run_date, run_id) of all that a table holds, whether published, superseded or left by a dead run.

        Lists directories, also those in which nothing was finished; names that no run could have are passed over.
        """
        folder = self._find_folder(spark, table)
        if folder is None:
            return set()
        with storage_errors(folder, "read"):
            return {
                (date.fromisoformat(night.removeprefix("run_date=")), run_id[1])
                for night in _list_nights(spark, folder)
                for entry in list_folder(spark, f"{folder}/{night}")
                if entry.is_folder and (run_id := _ATTEMPT.fullmatch(entry.name))
            }

    def file_sizes(self, spark: SparkSession, table: Table, run: Run) -> list[int]:
        """Return the bytes of each file that holds the run's rows; none where the format compacts them itself."""
        entries = list_folder(spark, f"{self._find_folder(spark, table)}/{run.partition}")
        return [entry.n_bytes for entry in entries if entry.name.endswith(".parquet")]

    def optimize(self, spark: SparkSession, table: Table, before: datetime) -> None:
        """Compact a table in the format's own way, and give up what only readers from before a time could need.

        Plain Parquet has no such way: files are never touched again.
        """

    def read_back(self, spark: SparkSession, tables: Sequence[Table], run: Run) -> dict[Table, pa.Table]:
        """Return the run's rows of several small tables. One job. Raises as ``read``."""
        return collect_tables({table: self.read(spark, table, run) for table in tables})

    @abstractmethod
    def read(self, spark: SparkSession, table: Table, *runs: Run) -> DataFrame:
        """Return the rows that some runs have, one at least, with the columns of the contract. Lazy."""

    @abstractmethod
    def _find_folder(self, spark: SparkSession, table: Table) -> str | None:
        """Return the folder of a table, None where there is no table."""


class PathStore(ParquetStore):
    """Plain Parquet in one folder, on any file system that Spark knows; it is made when the first table is written.

    Raises `ConfigError` if the path is the root of a file system, or Spark and DuckDB would read it as a pattern of
    several paths.
    """

    def __init__(self, path: str) -> None:
        rule, fix = unusable_path(path)
        if rule:
            raise ConfigError(Fault(("output", "path"), path, rule, fix))
        self.path = path.rstrip("/")

    @property
    def root(self) -> str:
        """Where the tables live, as messages name it."""
        return redact(self.path)

    @property
    def local_folder(self) -> Path | None:
        """The folder as Python sees it, None on another file system than this machine's."""
        return local_folder(self.path)

    def check(self, spark: SparkSession, tables: Iterable[Table]) -> None:
        """Refuse tables that are there already with columns that do not fit. Creates nothing.

        Reads one footer of each table, of its last night, however many it has. Raises `InputError` with one fault per
        table, listing its columns and those that are declared, and `ConfigError` if the session has no file system for
        the path, or the folder cannot be written to.
        """
        _check_timestamps(spark)
        check_file_system(spark, ("output", "path"), self.path)
        examined = run_side_by_side(spark, [partial(self._examine, spark, table) for table in tables])
        if faults := [fault for of_table in examined for fault in of_table]:
            raise InputError(*faults)
        self.refuse_unwritable(spark)

    def refuse_unwritable(self, spark: SparkSession) -> None:
        """Raise `ConfigError` unless the folder is there, or can be made, and takes a file; nothing under Connect."""
        if not sees_files(spark):
            return
        try:
            try_folder(spark, self.path)
        except Exception as error:
            cause = describe_cause(error)
            if not (isinstance(error, _NO_FOLDER) or _UNWRITABLE.search(cause)):
                with storage_errors(self.root, "written"):
                    raise
            shown = re.sub(r"^[\w.$]+: | \(exists=.*\)$", "", cause)
            raise ConfigError(
                f'[output] path = "{self.root}": nothing can be written there, {shown}. It must be a folder '
                "to which this user may write, or one that can be made. Name another, or change its permissions."
            ) from error

    def _examine(self, spark: SparkSession, table: Table) -> list[str]:
        """Return what is wrong with the columns of a table."""
        folder = self._folder(table)
        with describe(spark, f"check the columns of {table.name}"), storage_errors(folder, "read"):
            nights = _list_nights(spark, folder) if sees_files(spark) else []
            paths = [f"{folder}/{night}" for night in reversed(nights)] or [folder]
            types = next(filter(None, (read_types(spark, path) for path in paths)), None)
        return schema_faults(folder, table, types)

    def location(self, table: Table, run: Run) -> str:
        """Return where the run's rows of one table are."""
        return f"{self._folder(table)}/{run.partition}"

    def write(self, spark: SparkSession, table: Table, rows: pa.Table | DataFrame, run: Run) -> None:
        """Write the run's rows of one table, which have all its columns; of none, the table is there.

        Raises `BiasSparkError` if they cannot be written, naming the path and the cause.
        """
        write_directory(spark, table, rows, self.location(table, run))

    def read(self, spark: SparkSession, table: Table, *runs: Run) -> DataFrame:
        """Return the rows of one table that some runs have, one at least, published or not. Lazy.

        Files of other types than those that are declared cannot be read. Raises `FileNotFoundError` if files of one of
        the runs are gone.
        """
        if is_embedded(spark):  # it knows no basePath, and a path that is not there has no rows
            return reduce(DataFrame.unionByName, (self._read_run(spark, table, run) for run in runs))
        files = spark.read.schema(spark_schema(table)).option("basePath", self._folder(table))
        with absence(table):
            return analyse(files.parquet(*(self.location(table, run) for run in runs)))

    def _read_run(self, spark: SparkSession, table: Table, run: Run) -> DataFrame:
        """Return the rows of one run on the embedded engine."""
        folder = shared_folder(spark, self.location(table, run))
        if folder is None or not any(folder.glob("*.parquet")):
            raise FileNotFoundError(self.location(table, run))
        rows = spark.read.schema(StructType(stored_fields(table))).parquet(str(folder))
        partition = {RUN_DATE.name: F.lit(run.run_date), RUN_ID.name: F.lit(run.run_id)}
        return rows.withColumns(partition).select(*table.names)

    def read_rows(self, spark: SparkSession, table: Table, *runs: Run) -> pa.Table:
        """Return the rows of a small table that some runs have, one at least. Raises as ``read``."""
        if folder := shared_folder(spark, self._folder(table)):
            return read_files(table, [folder / run.partition for run in runs])
        return to_arrow(self.read(spark, table, *runs), table.full_arrow_schema)

    def read_back(self, spark: SparkSession, tables: Sequence[Table], run: Run) -> dict[Table, pa.Table]:
        """See `ParquetStore.read_back`. No job where this process sees the folder."""
        if shared_folder(spark, self.path):
            return {table: self.read_rows(spark, table, run) for table in tables}
        return super().read_back(spark, tables, run)

    def read_ledger(self, spark: SparkSession, run_date: date | None = None) -> pa.Table:
        """Return the ledger's rows of one night, or of all; none where there is no ledger yet.

        Lists the directories of that night alone. Raises `ConfigError` if the session has no file system for the path,
        and `InputError` if this user may not read a directory or a file of it: what cannot be read is not absent.
        """
        check_file_system(spark, ("output", "path"), self.path)
        night = f"run_date={run_date}"
        if folder := shared_folder(spark, self._folder(BIAS_RUNS)):
            nights = list_visible(folder) if run_date is None else [folder / night]
            runs = [run for path in nights if _NIGHT.fullmatch(path.name) for run in list_visible(path)]
            return read_files(BIAS_RUNS, [run for run in runs if _ATTEMPT.fullmatch(run.name)], skip_missing=True)
        files = spark.read.schema(spark_schema(BIAS_RUNS)).option("basePath", self._folder(BIAS_RUNS))
        path = self._folder(BIAS_RUNS) if run_date is None else f"{self._folder(BIAS_RUNS)}/{night}"
        try:
            with absence(BIAS_RUNS):
                return to_arrow(analyse(files.parquet(path)), BIAS_RUNS.full_arrow_schema)
        except FileNotFoundError:
            return BIAS_RUNS.full_arrow_schema.empty_table()

    def remove_run(self, spark: SparkSession, table: Table, run: Run) -> None:
        """Remove what a table holds of a run; nothing happens where that is nothing."""
        with storage_errors(self.location(table, run), "removed"):
            delete_folder(spark, self.location(table, run))

    def _folder(self, table: Table) -> str:
        return f"{self.path}/{table.name}"

    def _find_folder(self, spark: SparkSession, table: Table) -> str:  # noqa: ARG002 - a catalog is asked for it
        return self._folder(table)


class CatalogStore(ParquetStore):
    """Parquet tables of a Spark catalog, each partitioned by run_date and run_id. Its methods are those of `PathStore`.

    Given is the schema of the tables and, where it is another one, that of the views: ``schema`` or ``catalog.schema``,
    parts with other characters than letters, digits and ``_`` in backticks. Any other name is a `ConfigError`.
    """

    provider = "parquet"

    def __init__(self, catalog: str, views: str | None = None) -> None:
        self.names = catalog, views or catalog
        self.catalog, self.schema = _quote_schema(("output", "catalog"), self.names[0])
        self.view_catalog, self.view_schema = _quote_schema(("output", "views"), self.names[1])

    @property
    def root(self) -> str:
        """See `PathStore.root`."""
        return self.schema

    def name(self, table: str) -> str:
        """Return the quoted name of a table."""
        return f"{self.schema}.`{table}`"

    def view_name(self, view: str) -> str:
        """Return the quoted name of a view."""
        return f"{self.view_schema}.`{view}`"

    def has(self, spark: SparkSession, table: Table) -> bool:
        """Return whether a table is there. Raises `ConfigError` if the session does not have the catalog."""
        refuse_embedded(spark, ("output", "catalog"), self.names[0])
        with catalog_errors(spark, ("output", "catalog"), self.names[0], self.catalog):
            return bool(spark.catalog.tableExists(self.name(table.name)))

    def types(self, spark: SparkSession, table: Table) -> dict[str, str] | None:
        """Return the columns that a table has, None where there is no table. Raises as ``has``."""
        return column_types(spark.table(self.name(table.name)).schema) if self.has(spark, table) else None

    def check(self, spark: SparkSession, tables: Iterable[Table]) -> None:
        """See `PathStore.check`; refused as well are tables of another format.

        Raises `ConfigError` if the session does not have one of the catalogs.
        """
        self._refuse_session(spark)
        _check_timestamps(spark)
        if self.view_schema != self.schema:
            with catalog_errors(spark, ("output", "views"), self.names[1], self.view_catalog):
                spark.catalog.tableExists(self.view_name(BIAS_RUNS.name))
        if faults := [fault for table in tables for fault in self._examine(spark, table)]:
            raise InputError(*faults)

    def _refuse_session(self, spark: SparkSession) -> None:
        """Raise `ConfigError` for a session that cannot have such a store."""
        refuse_embedded(spark, ("output", "catalog"), self.names[0])

    def _examine(self, spark: SparkSession, table: Table) -> list[str]:
        """Return what is wrong with the format and the columns of a table."""
        name = self.name(table.name)
        with storage_errors(name, "read"):
            if (types := self.types(spark, table)) is None:
                return []
            provider = self._describe(spark, table).get("Provider", "no table")
        faults = schema_faults(name, table, types)
        if provider.lower() != self.provider:
            rule = f"Tables are {self.provider.title()}"
            faults.insert(0, f"{name}: it is {provider}. {rule}. Move it away, or choose another output.")
        return faults

    def location(self, table: Table, run: Run) -> str:
        """See `PathStore.location`; the directory itself is the catalog's to choose."""
        return f"{self.name(table.name)} {run.partition}"

    def write(self, spark: SparkSession, table: Table, rows: pa.Table | DataFrame, run: Run) -> None:
        """See `PathStore.write`. Makes schema and table where they are missing, and adds columns that are new.

        The directory of the run becomes a partition once it is whole.
        """
        with storage_errors(self.name(table.name), "created"):
            location = self._prepare(spark, table)
        write_directory(spark, table, rows, f"{location}/{run.partition}")
        with storage_errors(self.location(table, run), "added as a partition"):
            spark.sql(f"ALTER TABLE {self.name(table.name)} ADD PARTITION ({_partition(run)})")

    def read(self, spark: SparkSession, table: Table, *runs: Run) -> DataFrame:
        """See `PathStore.read`. Looks at no other night. The types are those of the catalog."""
        nights, ids = sorted({run.run_date for run in runs}), sorted({run.run_id for run in runs})
        return self._read_all(spark, table).where(F.col(RUN_DATE.name).isin(nights) & F.col(RUN_ID.name).isin(ids))

    def read_rows(self, spark: SparkSession, table: Table, *runs: Run) -> pa.Table:
        """See `PathStore.read_rows`. One job. Spark passes over a folder of a run that it may not enter."""
        rows = self.read(spark, table, *runs)
        with storage_errors(self.name(table.name), "read"):
            return to_arrow(rows, table.full_arrow_schema)

    def read_ledger(self, spark: SparkSession, run_date: date | None = None) -> pa.Table:
        """See `PathStore.read_ledger`. One job."""
        schema, name = BIAS_RUNS.full_arrow_schema, self.name(BIAS_RUNS.name)
        if not self.has(spark, BIAS_RUNS):
            return schema.empty_table()
        with storage_errors(name, "read"):
            # First, so that each has its row by the time rows are read.
            partitions = self._list_partitions(spark, BIAS_RUNS)
            rows = self._read_all(spark, BIAS_RUNS)
            if run_date is not None:
                rows = rows.where(F.col(RUN_DATE.name) == F.lit(run_date))
                partitions = {partition for partition in partitions if partition.startswith(f"run_date={run_date}/")}
            ledger = to_arrow(rows, schema)
        keys = zip(ledger[RUN_DATE.name].to_pylist(), ledger[RUN_ID.name].to_pylist(), strict=True)
        # Spark passes over a partition whose folder it may not enter.
        if missing := sorted(partitions - {f"run_date={night}/run_id={run_id}" for night, run_id in keys}):
            raise InputError(
                f"{name} {missing[0]}: its row could not be read ({format_count(len(missing), 'run')} of the ledger "
                "without one). Restore the files, or let the user of the job read them and enter the folders above."
            )
        return ledger

    def remove_run(self, spark: SparkSession, table: Table, run: Run) -> None:
        """See `PathStore.remove_run`. First its partition, so that no reader looks for files that are gone."""
        with storage_errors(self.location(table, run), "removed"):
            spark.sql(f"ALTER TABLE {self.name(table.name)} DROP IF EXISTS PARTITION ({_partition(run)})")
            delete_folder(spark, f"{self._describe(spark, table)['Location']}/{run.partition}")

    def _find_folder(self, spark: SparkSession, table: Table) -> str | None:
        return self._describe(spark, table)["Location"] if self.has(spark, table) else None

    def _read_all(self, spark: SparkSession, table: Table) -> DataFrame:
        """Return every row, as other sessions have left them; columns that the table does not have yet are NULL."""
        with absence(table):
            self._refresh(spark, table)
            rows = analyse(spark.table(self.name(table.name)))
        new = [spark_field(column) for column in table.columns if column.name not in rows.columns]
        return rows.select("*", *(F.lit(None).cast(field.dataType).alias(field.name) for field in new))

    def _refresh(self, spark: SparkSession, table: Table) -> None:
        """Have the session look at the table again."""
        spark.catalog.refreshTable(self.name(table.name))

    def _prepare(self, spark: SparkSession, table: Table) -> str:
        """Create the table or add its new columns, and return its location."""
        name = self.name(table.name)
        self._create_schema(spark)
        columns = ", ".join(map(define_column, table.columns))
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {name} ({columns}) USING parquet PARTITIONED BY ({', '.join(PARTITION)}) "
            f"COMMENT {quote_string(table.comment)}"
        )
        present = set(spark.table(name).columns)
        if new := [column for column in table.columns if column.name not in present]:
            spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({', '.join(map(define_column, new))})")
        return self._describe(spark, table)["Location"]

    def _list_partitions(self, spark: SparkSession, table: Table) -> set[str]:
        """Return the partitions that the catalog has of a table, each ``run_date=D/run_id=R``."""
        return {row["partition"] for row in spark.sql(f"SHOW PARTITIONS {self.name(table.name)}").collect()}

    def _create_schema(self, spark: SparkSession) -> None:
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")

    def _describe(self, spark: SparkSession, table: Table) -> dict[str, str]:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {self.name(table.name)}").collect()
        # The details of the table come after its columns, and win over a column of the same name.
        return {row["col_name"]: row["data_type"] for row in rows}


def _quote_schema(key: KeyPath, name: str) -> tuple[str, str]:
    """Return the catalog of a schema, and the quoted name of the schema."""
    parts = re.findall(r"`(?:[^`]|``)+`|[^`.]+", name)
    if not parts or ".".join(parts) != name:
        raise ConfigError(Fault(key, name, "It is not the name of a schema.", "Write schema or catalog.schema."))
    catalog = parts[0].strip("`") if len(parts) > 1 else "spark_catalog"
    return catalog, ".".join(part if part.startswith("`") else quote_name(part) for part in parts)


def _check_timestamps(spark: SparkSession) -> None:
    if (kind := spark.conf.get(_TIMESTAMPS)) != "TIMESTAMP_MICROS":
        raise ConfigError(f"{_TIMESTAMPS}: {kind}. The ledger's times are microseconds. Set it to TIMESTAMP_MICROS.")


def _partition(run: Run) -> str:
    return f"run_date = DATE'{run.run_date.isoformat()}', run_id = {quote_string(run.run_id)}"


def _list_nights(spark: SparkSession, folder: str) -> list[str]:
    """Return the names of the directories of nights, the first night first."""
    return sorted(entry.name for entry in list_folder(spark, folder) if _NIGHT.fullmatch(entry.name))
