"""The views through which tables are read.

``<table>`` holds every run, ``latest_<table>`` of each night and corpus the run published last. Where the job has a
gate, ``latest_accepted_<table>`` holds the last run that the gate or a person accepted: a run that failed does not
replace it.

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
from biasspark.tables.runs import ACCEPT_RUN, ACCEPTED, RUN_ID_RULE
from biasspark.tables.schemas import BIAS_ALERTS, BIAS_RUNS, COMPARISON_ALERTS, TABLES, WINDOW_START, Table
from biasspark.tables.store import CatalogStore, DeltaFolder, PathStore, Store

SPARK_FILE, DUCKDB_FILE = "views.spark.sql", "views.duckdb.sql"

_GATED = frozenset((BIAS_ALERTS.job, COMPARISON_ALERTS.job))
"""The jobs with a gate: runs of others are never accepted."""

# In the words of Spark 3.5, and of Spark 4.
_HOLDS_NO_VIEWS = r"view is not supported by catalog|does not support views|MISSING_CATALOG_ABILITY"
_SPARK_LATEST = "max_by(run_id, struct(published_at, run_id))"
_DUCKDB_LATEST = "arg_max(run_id, {'published_at': published_at, 'run_id': run_id})"
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
        _spark_latest_views,
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
        _spark_latest_views,
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
        _duckdb_latest_views,
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


def _spark_latest_views(table: Table) -> list[str]:
    queries = _latest_queries(table, table.name, BIAS_RUNS.name, _SPARK_LATEST)
    return [f"CREATE OR REPLACE TEMPORARY VIEW {name} AS\n{query};" for name, query in queries.items()]


def _commented(table: Table) -> str:
    """Return the columns of a view with their comments, one per line."""
    return ",\n  ".join(f"{column.name} COMMENT {quote_string(column.comment)}" for column in table.columns)


def _latest_queries(table: Table, rows: str, ledger: str, latest: str) -> dict[str, str]:
    """Return the queries of the latest runs of a table by the name of their view.

    Parameters
    ----------
    rows, ledger : str
        The names of the table and of ``bias_runs``, quoted where they must be.
    latest : str
        The aggregate that gives the latest ``run_id`` of a group.
    """
    published = f"{ledger}\n  WHERE job = {quote_string(table.job)}"
    queries = {f"latest_{table.name}": _latest_query(table, rows, published, latest)}
    if table.job in _GATED:
        accepted = f"({_accepted_query(ledger, table.job)}\n  ) AS accepted\n  WHERE published_at IS NOT NULL"
        queries[f"latest_accepted_{table.name}"] = _latest_query(table, rows, accepted, latest)
    return queries


def _latest_query(table: Table, rows: str, runs: str, latest: str) -> str:
    """Return the join that a filter on run_date passes through into every scan.

    Of windows that end with the same night each has a latest run of its own.
    """
    each = ", ".join(["run_date", "corpus", *(column.name for column in table.key if column == WINDOW_START)])
    return (
        f"SELECT {', '.join(table.names)}\nFROM {rows}\nJOIN (\n"
        f"  SELECT run_date, corpus, {latest} AS run_id\n"
        f"  FROM {runs}\n  GROUP BY {each}\n"
        ") AS published\nUSING (run_date, corpus, run_id)"
    )


def _accepted_query(ledger: str, job: str) -> str:
    """Return the accepted runs of a job: of status accepted, or named by an accepted row of the job ``accept_run``.

    One scan: each row of the ledger is about a run, and the row that accepts one has its night and corpus. The
    ``config`` of that row is JSON, in which a quote within a text is escaped, so nothing but the key matches. Where it
    names a run of another job, ``published_at`` is NULL.
    """
    return f"""SELECT run_date, corpus, about AS run_id,
      max(CASE WHEN job = {quote_string(job)} THEN published_at END) AS published_at
    FROM (
      SELECT run_date, corpus, job, status, published_at,
        CASE
          WHEN job <> {quote_string(ACCEPT_RUN)} THEN run_id
          ELSE regexp_extract(config, '"accepted_run_id": *"({RUN_ID_RULE})"', 1)
        END AS about
      FROM {ledger}
      WHERE job IN ({quote_string(job)}, {quote_string(ACCEPT_RUN)})
    ) AS judged
    GROUP BY run_date, corpus, about
    HAVING bool_or(status = {quote_string(ACCEPTED)})"""


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


def _duckdb_latest_views(table: Table) -> list[str]:
    queries = _latest_queries(table, table.name, BIAS_RUNS.name, _DUCKDB_LATEST)
    return [f"CREATE OR REPLACE VIEW {name} AS\n{query};" for name, query in queries.items()]


def _assemble(
    tables: Sequence[Table], view: Callable[[Table], str], latest_views: Callable[[Table], list[str]], *notes: str
) -> str:
    """Return the text of a file: notes, a view of each table, and those of its latest runs."""
    comments = "\n".join(f"-- {note}" for note in notes)
    latest = (text for table in _with_latest(tables) for text in latest_views(table))
    return "\n\n".join((comments, *map(view, tables), *latest)) + "\n"


def _find_tables(spark: SparkSession, store: CatalogStore) -> list[Table]:
    return [table for table in TABLES.values() if store.has(spark, table)]


def _create_views(spark: SparkSession, store: CatalogStore) -> tuple[str, ...]:
    tables = _with_latest(_find_tables(spark, store))
    warnings = []
    for table in tables:
        for name, query in _catalog_queries(store, table).items():
            try:
                with named_fault(store.view_name(name), "created"):
                    _create_view(spark, store, table, name, query)
            except BiasSparkError as error:
                if re.search(_HOLDS_NO_VIEWS, str(error)):
                    return (_say_views(store, tables),)
                warnings.append(str(error))
    return tuple(warnings)


def _create_view(spark: SparkSession, store: CatalogStore, table: Table, name: str, query: str) -> None:
    view = store.view_name(name)
    if _is_current(spark, view, table):
        return
    if store.view_schema != store.schema:
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {store.view_schema}")
    kind = "published" if name == f"latest_{table.name}" else "accepted"
    comment = quote_string(f"{table.comment} The latest {kind} run of each night and corpus.")
    spark.sql(f"CREATE OR REPLACE VIEW {view} ({_commented(table)}) COMMENT {comment} AS {query}")


def _catalog_queries(store: CatalogStore, table: Table) -> dict[str, str]:
    return _latest_queries(table, store.name(table.name), store.name(BIAS_RUNS.name), _SPARK_LATEST)


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
        f"CREATE OR REPLACE TEMPORARY VIEW {name} AS\n{query};"
        for table in tables
        for name, query in _catalog_queries(store, table).items()
    ]
    return "\n\n".join(
        (
            f"{store.view_schema}: its catalog holds no views. Set [output] views to a catalog.schema that does, for "
            "example spark_catalog.bias, or make them in each session that reads:",
            *statements,
        )
    )
