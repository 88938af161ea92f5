"""The views through which tables are read: ``<table>`` holds every run, ``latest_<table>`` the last one published.

On plain paths they are two files of SQL beside the tables, one for Spark and one for DuckDB (of Delta tables the first
alone); a catalog holds the views itself, or another one does. The numbers are published without them, so what goes
wrong here is a warning.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from biasspark.errors import BiasSparkError, has_condition
from biasspark.expressions.sql import quote_string
from biasspark.tables.contract import has_columns, named_fault
from biasspark.tables.schemas import BIAS_RUNS, TABLES, WINDOW_START, Table
from biasspark.tables.store import CatalogStore, DeltaFolder, PathStore, Store

SPARK_FILE, DUCKDB_FILE = "views.spark.sql", "views.duckdb.sql"

# In the words of Spark 3.5, and of Spark 4.
_HOLDS_NO_VIEWS = r"view is not supported by catalog|does not support views|MISSING_CATALOG_ABILITY"
_FILES = "run_date=*/run_id=*/*.parquet"
_DUCKDB_TYPES = {
    "ARRAY<BIGINT>": "BIGINT[]",
    "ARRAY<DECIMAL(38,0)>": "DECIMAL(38,0)[]",
    "ARRAY<DOUBLE>": "DOUBLE[]",
    "ARRAY<STRING>": "VARCHAR[]",
    "BINARY": "BLOB",
    "MAP<STRING,BIGINT>": "MAP(VARCHAR, BIGINT)",
    "STRING": "VARCHAR",
    "TIMESTAMP": "TIMESTAMPTZ",
}


def refresh_views(spark: SparkSession, store: Store) -> tuple[str, ...]:
    """Make the views of all tables that are there, after a run is published.

    Returns
    -------
    tuple of str
        Warnings: the views that could not be made, and why.

    Notes
    -----
    On plain paths the files are replaced whole, in one step. In a catalog only a view that is missing or lacks columns
    is replaced.
    """
    if isinstance(store, PathStore):
        return _write_files(store)
    if isinstance(store, DeltaFolder):
        return _write_delta_file(spark, store)
    return _create_views(spark, store) if isinstance(store, CatalogStore) else ()


def spark_views(path: str, tables: Sequence[Table]) -> str:
    """Return SQL that makes temporary views of tables under a path, for ``spark-sql -i`` and notebooks.

    Parameters
    ----------
    path : str
        The folder of the tables, as Spark names it.
    tables : sequence of Table
        Those that are there.
    """
    return _assemble(
        tables,
        partial(_spark_files_view, path),
        _spark_latest_view,
        "Views of the tables in this folder for Spark, with the columns of biasspark.",
        "They list the files as they are now. To see a later night, run this file again.",
        "spark-sql -i views.spark.sql -e 'SELECT * FROM latest_bias_metrics'",
    )


def delta_views(store: DeltaFolder, tables: Sequence[Table]) -> str:
    """Return SQL that makes temporary views of Delta tables under a path, for a session that speaks Delta.

    Parameters
    ----------
    store : DeltaFolder
        The folder of the tables.
    tables : sequence of Table
        Those that are there.
    """
    return _assemble(
        tables,
        lambda table: _spark_view(table, store.name(table.name)),
        _spark_latest_view,
        "Views of the Delta tables in this folder for Spark, with the columns of biasspark.",
        "spark-sql --properties-file conf/lake-delta.conf -i views.spark.sql -e 'SELECT * FROM latest_bias_metrics'",
    )


def duckdb_views(folder: str, tables: Sequence[Table]) -> str:
    """Return SQL that makes views of tables under a folder in DuckDB.

    Parameters
    ----------
    folder : str
        The folder of the tables, where the variable ``warehouse`` names no other.
    tables : sequence of Table
        Those that are there.
    """
    return _assemble(
        tables,
        partial(_duckdb_files_view, folder),
        _duckdb_latest_view,
        "Views of the tables in this folder for DuckDB, with the columns of biasspark.",
        "Where the folder has moved, first: SET VARIABLE warehouse = 'its new path'",
        "duckdb -init views.duckdb.sql -c 'SELECT * FROM latest_bias_metrics'",
    )


def _write_files(store: PathStore) -> tuple[str, ...]:
    folder = store.local_folder
    if folder is None or not folder.is_dir():
        return (
            f"{SPARK_FILE}, {DUCKDB_FILE}: not written, {store.root} is no folder of this machine. "
            "biasspark.tables.views.spark_views and duckdb_views return their text.",
        )
    tables = [table for table in TABLES.values() if next((folder / table.name).glob(_FILES), None)]
    texts = {SPARK_FILE: spark_views(str(folder), tables), DUCKDB_FILE: duckdb_views(str(folder), tables)}
    return _replace_files(folder, texts)


def _write_delta_file(spark: SparkSession, store: DeltaFolder) -> tuple[str, ...]:
    folder = store.local_folder
    if folder is None or not folder.is_dir():
        return (
            f"{SPARK_FILE}: not written, {store.root} is no folder of this machine. biasspark.tables.views.delta_views "
            "returns its text.",
        )
    return _replace_files(folder, {SPARK_FILE: delta_views(store, _find_tables(spark, store))})


def _replace_files(folder: Path, texts: Mapping[str, str]) -> tuple[str, ...]:
    try:
        for name, text in texts.items():
            _replace_file(folder / name, text)
    except OSError as error:
        return (f"{error.filename or folder}: the views could not be written, {error.strerror or error}.",)
    return ()


def _replace_file(file: Path, text: str) -> None:
    """Put a text in place of a file in one step: a reader sees the old text or the new one."""
    draft = file.with_name(f".{file.name}.{uuid4().hex}")
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, file)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _with_latest(tables: Sequence[Table]) -> list[Table]:
    """Return the tables of which a run can be the latest: without a ledger none, and the ledger itself never."""
    return [table for table in tables if table != BIAS_RUNS and BIAS_RUNS in tables]


def _spark_files_view(path: str, table: Table) -> str:
    types = ", ".join(f"{column.name} {column.type}" for column in table.columns)
    location = quote_string(f"{path.rstrip('/')}/{table.name}")
    # A view of files puts the columns of the partition last and drops their comments, whatever is declared.
    return (
        f"CREATE OR REPLACE TEMPORARY VIEW {table.name}_files ({types})\n"
        f"USING parquet OPTIONS (path {location});\n\n{_spark_view(table, f'{table.name}_files')}"
    )


def _spark_view(table: Table, rows: str) -> str:
    return (
        f"CREATE OR REPLACE TEMPORARY VIEW {table.name} (\n  {_commented(table)}\n)\n"
        f"COMMENT {quote_string(table.comment)} AS\nSELECT {', '.join(table.names)}\nFROM {rows};"
    )


def _spark_latest_view(table: Table) -> str:
    query = _latest_query(table, table.name, BIAS_RUNS.name, "max_by(run_id, struct(published_at, run_id))")
    return f"CREATE OR REPLACE TEMPORARY VIEW latest_{table.name} AS\n{query};"


def _commented(table: Table) -> str:
    """Return the columns of a view with their comments, one per line."""
    return ",\n  ".join(f"{column.name} COMMENT {quote_string(column.comment)}" for column in table.columns)


def _latest_query(table: Table, rows: str, ledger: str, latest: str) -> str:
    """Return the join that a filter on run_date passes through into both scans.

    Of windows that end with the same night each has a latest run of its own.
    """
    each = ", ".join(["run_date", "corpus", *(column.name for column in table.key if column == WINDOW_START)])
    return (
        f"SELECT {', '.join(table.names)}\nFROM {rows}\nJOIN (\n"
        f"  SELECT run_date, corpus, {latest} AS run_id\n"
        f"  FROM {ledger}\n  WHERE job = {quote_string(table.job)}\n  GROUP BY {each}\n"
        ") AS published\nUSING (run_date, corpus, run_id)"
    )


def _duckdb_files_view(folder: str, table: Table) -> str:
    root = "'" + folder.rstrip("/").replace("'", "''") + "'"
    columns = "\n".join(
        f"    NULL::{_DUCKDB_TYPES.get(c.type, c.type)} AS {c.name},  -- {c.comment}" for c in table.columns
    )
    # The branch without rows gives order and types, also of columns that older files lack.
    return (
        f"CREATE OR REPLACE VIEW {table.name} AS\nSELECT {', '.join(table.names)}\nFROM (\n"
        f"  SELECT\n{columns}\n  WHERE false\n  UNION ALL BY NAME\n"
        f"  SELECT * FROM read_parquet(\n    coalesce(getvariable('warehouse'), {root}) || '/{table.name}/{_FILES}',\n"
        "    union_by_name = true, hive_partitioning = true,\n"
        "    hive_types = {'run_date': DATE, 'run_id': VARCHAR}\n  )\n);"
    )


def _duckdb_latest_view(table: Table) -> str:
    latest = "arg_max(run_id, {'published_at': published_at, 'run_id': run_id})"
    query = _latest_query(table, table.name, BIAS_RUNS.name, latest)
    return f"CREATE OR REPLACE VIEW latest_{table.name} AS\n{query};"


def _assemble(
    tables: Sequence[Table], view: Callable[[Table], str], latest_view: Callable[[Table], str], *notes: str
) -> str:
    """Return the text of a file: notes, a view of each table, and one of its latest runs."""
    comments = "\n".join(f"-- {note}" for note in notes)
    return "\n\n".join((comments, *map(view, tables), *map(latest_view, _with_latest(tables)))) + "\n"


def _find_tables(spark: SparkSession, store: CatalogStore) -> list[Table]:
    return [table for table in TABLES.values() if store.has(spark, table)]


def _create_views(spark: SparkSession, store: CatalogStore) -> tuple[str, ...]:
    tables = _with_latest(_find_tables(spark, store))
    warnings = []
    for table in tables:
        try:
            with named_fault(store.view_name(f"latest_{table.name}"), "created"):
                _create_view(spark, store, table)
        except BiasSparkError as error:
            if re.search(_HOLDS_NO_VIEWS, str(error)):
                return (_say_views(store, tables),)
            warnings.append(str(error))
    return tuple(warnings)


def _create_view(spark: SparkSession, store: CatalogStore, table: Table) -> None:
    view = store.view_name(f"latest_{table.name}")
    if _is_current(spark, view, table):
        return
    if store.view_schema != store.schema:
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {store.view_schema}")
    comment = quote_string(f"{table.comment} The latest published run of each night and corpus.")
    query = _catalog_query(store, table)
    spark.sql(f"CREATE OR REPLACE VIEW {view} ({_commented(table)}) COMMENT {comment} AS {query}")


def _catalog_query(store: CatalogStore, table: Table) -> str:
    latest = "max_by(run_id, struct(published_at, run_id))"
    return _latest_query(table, store.name(table.name), store.name(BIAS_RUNS.name), latest)


def _is_current(spark: SparkSession, view: str, table: Table) -> bool:
    try:
        return has_columns(spark.table(view).schema, table)
    except AnalysisException as error:
        # A view that no longer resolves is replaced, and so is one that is not there.
        if has_condition(error, "TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"):
            return False
        raise


def _say_views(store: CatalogStore, tables: Sequence[Table]) -> str:
    """Give the views of a catalog that holds none as SQL, for the session of whoever reads them."""
    statements = [
        f"CREATE OR REPLACE TEMPORARY VIEW latest_{table.name} AS\n{_catalog_query(store, table)};" for table in tables
    ]
    return "\n\n".join(
        (
            f"{store.view_schema}: its catalog holds no views. Set [output] views to a catalog.schema that does, for "
            "example spark_catalog.bias, or make them in each session that reads:",
            *statements,
        )
    )
