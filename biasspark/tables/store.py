"""Where tables live: a folder of plain Parquet, or a Spark catalog.

Both hold every run in a directory of its own, ``<table>/run_date=D/run_id=R``, written once and never touched again:
two writers into one directory lose rows of each other, and overwriting loses the old rows when a task fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Protocol

import pyspark.sql.functions as F
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from biasspark.config import Output, redact
from biasspark.errors import BiasSparkError, ConfigError, InputError
from biasspark.tables.runs import Run
from biasspark.tables.schemas import BIAS_RUNS, RUN_DATE, RUN_ID, Column, Table

PARTITION = (RUN_DATE.name, RUN_ID.name)
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"


class Store(Protocol):
    """What publishing needs of the place where tables live."""

    @property
    def root(self) -> str:
        """Where the tables live, as messages name it."""

    def check(self, spark: SparkSession, tables: Iterable[Table]) -> None:
        """Refuse tables that are there already with columns that do not fit; creates nothing.

        Raises
        ------
        InputError
            With one fault a table, listing its columns and those of the contract.
        """

    def place(self, table: Table, run: Run) -> str:
        """Return where the run's rows of one table are."""

    def write(self, table: Table, rows: DataFrame, run: Run) -> None:
        """Write the run's rows of one table; ``rows`` has the table's columns.

        Raises
        ------
        BiasSparkError
            If it cannot be written, naming the place and the cause.
        """

    def read(self, spark: SparkSession, table: Table, run: Run) -> DataFrame:
        """Return the run's rows of one table as readers get them, published or not."""

    def read_ledger(self, spark: SparkSession, run_date: date | None) -> DataFrame:
        """Return the ledger's rows of one night, or of all if None; none where there is no ledger yet."""


class PathStore:
    """Plain Parquet under one path, on any file system that Spark knows.

    Parameters
    ----------
    path : str
        The folder of the tables; made when the first table is written.

    Raises
    ------
    ConfigError
        If the path has characters that Spark and DuckDB read as a pattern of several paths.
    """

    def __init__(self, path: str) -> None:
        if found := sorted(set(re.findall(r"[*?\[\]{}\\\x00-\x1f]", path))):
            raise ConfigError(
                f"output.path: {path!r} has {' '.join(map(repr, found))}. Readers take such a path for a pattern. "
                "Choose a path without * ? [ ] { } \\ and control characters."
            )
        self.path = path.rstrip("/") or "/"

    @property
    def root(self) -> str:
        """See ``Store.root``."""
        return redact(self.path)

    @property
    def local_folder(self) -> Path | None:
        """The folder as Python sees it, None on another file system than this machine's."""
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", self.path) and not self.path.startswith("file:"):
            return None
        return Path(re.sub(r"^file:/*(?=/)", "", self.path)).absolute()

    def check(self, spark: SparkSession, tables: Iterable[Table]) -> None:
        """See ``Store.check``. Reads one footer a table."""
        _check_timestamps(spark)
        faults = []
        for table in tables:
            with named_fault(self._folder(table), "read"):
                found = _read_schema(spark, self._folder(table))
            faults += _find_misfits(self._folder(table), table, found)
        if faults:
            raise InputError(*faults)

    def place(self, table: Table, run: Run) -> str:
        """See ``Store.place``."""
        return f"{self._folder(table)}/{run.partition}"

    def write(self, table: Table, rows: DataFrame, run: Run) -> None:
        """See ``Store.write``. One job."""
        _write_directory(rows, self.place(table, run))

    def read(self, spark: SparkSession, table: Table, run: Run) -> DataFrame:
        """See ``Store.read``. Files of other types than the contract's cannot be read."""
        own = {RUN_DATE.name: F.lit(run.run_date), RUN_ID.name: F.lit(run.run_id)}
        schema = StructType([field for field in table.schema if field.name not in own])
        return spark.read.schema(schema).parquet(self.place(table, run)).withColumns(own)

    def read_ledger(self, spark: SparkSession, run_date: date | None) -> DataFrame:
        """See ``Store.read_ledger``. Lists the directories of that night alone."""
        ledger = self._folder(BIAS_RUNS)
        schema = StructType([field for field in BIAS_RUNS.schema if field.name != RUN_DATE.name])
        try:
            if run_date is None:
                rows = spark.read.schema(BIAS_RUNS.schema).parquet(ledger)
            else:
                night = f"{ledger}/{RUN_DATE.name}={run_date.isoformat()}"
                rows = spark.read.schema(schema).parquet(night).withColumn(RUN_DATE.name, F.lit(run_date))
            rows.schema  # noqa: B018 - Connect looks for the path only when the schema is asked for
            return rows
        except AnalysisException as error:
            if "PATH_NOT_FOUND" not in str(error):
                raise
            return no_rows(spark, BIAS_RUNS)

    def _folder(self, table: Table) -> str:
        return f"{self.path.rstrip('/')}/{table.name}"


class CatalogStore:
    """Parquet tables of a Spark catalog, each partitioned by run_date and run_id.

    Parameters
    ----------
    catalog : str
        ``schema`` or ``catalog.schema``, parts with other characters than letters, digits and ``_`` in backticks.

    Raises
    ------
    ConfigError
        If it is no such name.
    """

    def __init__(self, catalog: str) -> None:
        parts = re.findall(r"`(?:[^`]|``)+`|[^`.]+", catalog)
        if not parts or ".".join(parts) != catalog:
            raise ConfigError(
                f"output.catalog: {catalog!r} is no name of a catalog's schema. Write schema or catalog.schema."
            )
        self.schema = ".".join(part if part.startswith("`") else f"`{part}`" for part in parts)

    @property
    def root(self) -> str:
        """See ``Store.root``."""
        return self.schema

    def name(self, relation: str) -> str:
        """Return the quoted name of a table or view."""
        return f"{self.schema}.`{relation}`"

    def check(self, spark: SparkSession, tables: Iterable[Table]) -> None:
        """See ``Store.check``."""
        _check_timestamps(spark)
        faults = []
        for table in tables:
            name = self.name(table.name)
            with named_fault(name, "read"):
                if not spark.catalog.tableExists(name):
                    continue
                found, provider = spark.table(name).schema, self._describe(spark, table).get("Provider", "no table")
            if provider.lower() != "parquet":
                faults.append(f"{name}: it is {provider}. Tables are Parquet. Move it away, or choose another output.")
            faults += _find_misfits(name, table, found)
        if faults:
            raise InputError(*faults)

    def place(self, table: Table, run: Run) -> str:
        """See ``Store.place``; the directory itself is the catalog's to choose."""
        return f"{self.name(table.name)} {run.partition}"

    def write(self, table: Table, rows: DataFrame, run: Run) -> None:
        """See ``Store.write``. Makes schema and table where they are missing, and adds columns that are new."""
        spark = rows.sparkSession
        with named_fault(self.name(table.name), "created"):
            location = self._prepare(spark, table)
        _write_directory(rows, f"{location}/{run.partition}")
        with named_fault(self.place(table, run), "added as a partition"):
            night, attempt = f"DATE'{run.run_date.isoformat()}'", quote_string(run.run_id)
            spark.sql(f"ALTER TABLE {self.name(table.name)} ADD PARTITION (run_date = {night}, run_id = {attempt})")

    def read(self, spark: SparkSession, table: Table, run: Run) -> DataFrame:
        """See ``Store.read``. The types are those of the catalog."""
        return self._read_night(spark, table, run.run_date).where(F.col(RUN_ID.name) == F.lit(run.run_id))

    def read_ledger(self, spark: SparkSession, run_date: date | None) -> DataFrame:
        """See ``Store.read_ledger``."""
        if not spark.catalog.tableExists(self.name(BIAS_RUNS.name)):
            return no_rows(spark, BIAS_RUNS)
        return self._read_night(spark, BIAS_RUNS, run_date)

    def _read_night(self, spark: SparkSession, table: Table, run_date: date | None) -> DataFrame:
        # Another session may have added partitions since this one first looked.
        spark.catalog.refreshTable(self.name(table.name))
        rows = spark.table(self.name(table.name))
        return rows if run_date is None else rows.where(F.col(RUN_DATE.name) == F.lit(run_date))

    def _prepare(self, spark: SparkSession, table: Table) -> str:
        """Create the table or add its new columns, and return its location."""
        name = self.name(table.name)
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
        columns = ", ".join(map(define_column, table.columns))
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {name} ({columns}) USING parquet PARTITIONED BY ({', '.join(PARTITION)}) "
            f"COMMENT {quote_string(table.comment)}"
        )
        there = set(spark.table(name).columns)
        if new := [column for column in table.columns if column.name not in there]:
            spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({', '.join(map(define_column, new))})")
        return self._describe(spark, table)["Location"]

    def _describe(self, spark: SparkSession, table: Table) -> dict[str, str]:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {self.name(table.name)}").collect()
        # The details of the table come after its columns, and win over a column of the same name.
        return {row["col_name"]: row["data_type"] for row in rows}


def open_store(output: Output) -> PathStore | CatalogStore:
    """Return the store of the configured path or catalog; nothing is made or read yet."""
    if output.path is not None:
        return PathStore(output.path)
    assert output.catalog is not None  # the configuration has one of the two
    return CatalogStore(output.catalog)


def session_settings(output: Output) -> dict[str, str]:
    """Return what a session needs for that store: tables of a catalog must outlive the session."""
    return {} if output.path is not None else {"spark.sql.catalogImplementation": "hive"}


def quote_string(text: str) -> str:
    """Return a Spark SQL literal; what could end it or a statement is written as an escape."""
    return "'" + re.sub(r"[\x00-\x1f\x7f'\"\\;]", lambda found: f"\\u{ord(found[0]):04x}", text) + "'"


def define_column(column: Column) -> str:
    """Return a column as a CREATE statement wants it, with its comment."""
    return f"{column.name} {column.type} COMMENT {quote_string(column.comment)}"


def list_types(schema: StructType) -> list[tuple[str, str]]:
    """Return (name, type as Spark SQL writes it) of every column."""
    return [(field.name, field.dataType.simpleString().upper()) for field in schema]


def list_columns(schema: StructType) -> str:
    """Return the columns of a schema as a message lists them."""
    return ", ".join(f"{name} {kind}" for name, kind in list_types(schema)) or "no columns"


def has_columns(found: StructType, table: Table) -> bool:
    """Say whether a schema has all columns of a table; a newer version may have added others."""
    return set(list_types(table.schema)) <= set(list_types(found))


def _find_misfits(where: str, table: Table, found: StructType | None) -> list[str]:
    """Return a fault where a shared column has another type or the key is not there; new values may be missing."""
    if found is None:
        return []
    types = dict(list_types(found))
    wanted = [column for column in table.columns if column.name not in PARTITION]
    required = {"corpus", *table.key_columns}
    if all(types.get(c.name, None if c.name in required else c.type) == c.type for c in wanted):
        return []
    contract = StructType([column.field for column in wanted])
    return [
        f"{redact(where)}: its columns are not those of {table.name}. It has {list_columns(found)}. "
        f"The table has {list_columns(contract)}. Move it away, or choose another output."
    ]


def no_rows(spark: SparkSession, table: Table) -> DataFrame:
    """Return an empty table, without the Python worker that ``createDataFrame`` would start."""
    return spark.range(0).select(*(F.lit(None).cast(field.dataType).alias(field.name) for field in table.schema))


def _check_timestamps(spark: SparkSession) -> None:
    if (found := spark.conf.get(_TIMESTAMPS)) != "TIMESTAMP_MICROS":
        raise ConfigError(f"{_TIMESTAMPS}: {found}. The ledger's times are microseconds. Set it to TIMESTAMP_MICROS.")


def _read_schema(spark: SparkSession, path: str) -> StructType | None:
    """Return the columns of the Parquet files under a path, None where there are none."""
    try:
        return spark.read.parquet(path).schema
    except AnalysisException as error:
        if re.search(r"\b(PATH_NOT_FOUND|UNABLE_TO_INFER_SCHEMA)\b", str(error)):
            return None
        raise


def _write_directory(rows: DataFrame, place: str) -> None:
    with named_fault(place, "written"):
        # Spark Connect knows errorifexists by its other name alone.
        rows.drop(*PARTITION).write.mode("error").parquet(place)


@contextmanager
def named_fault(place: str, act: str) -> Iterator[None]:
    """Turn whatever stops a block into one sentence that names the place and the cause."""
    try:
        yield
    except BiasSparkError:
        raise
    except Exception as error:
        raise BiasSparkError(
            f"{redact(place)}: could not be {act}, {redact(_find_cause(error))}. Nothing was published. Mend the "
            "cause, then run again."
        ) from error


def _find_cause(error: Exception) -> str:
    """Return the innermost cause that the JVM reports, in one line."""
    lines = [
        line for line in str(error).splitlines() if line and not line.startswith("An error occurred while calling")
    ]
    causes = [line for line in lines if line.startswith("Caused by: ")] or lines[:1] or [type(error).__name__]
    return causes[-1].removeprefix("Caused by: ").removeprefix(": ").rstrip(".")
