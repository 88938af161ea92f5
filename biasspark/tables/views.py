"""The views of the tables.

``<table>`` has all runs, ``latest_<table>`` the last published run of each run date and corpus. If the job has a gate,
``latest_accepted_<table>`` has the last run accepted by the gate or a person: a failed run does not replace it.
``latest_suite`` is ``latest_bias_metrics`` with the columns that most readers want, and ``latest_accepted_suite``
likewise.

In a folder, the views are two SQL files, one for Spark and one for DuckDB (only the first for Delta). In a catalog,
they are views of this catalog or another one. Runs are published without them, so a failure here is a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from biasspark.columns import SUITE_GAPS, SUMMARIZED_AUCS
from biasspark.errors import InputError, has_condition
from biasspark.expressions.sql import quote_string
from biasspark.replaced_files import replace_local_file
from biasspark.tables.parquet import find_data_files
from biasspark.tables.runs import ACCEPTED
from biasspark.tables.schemas import (
    BIAS_ALERTS,
    BIAS_METRICS,
    BIAS_RUNS,
    COMPARISON_ALERTS,
    TABLES,
    WINDOW_START,
    Column,
    Table,
    columns,
)
from biasspark.tables.storage_errors import describe_cause
from biasspark.tables.store import CatalogStore, DeltaFolder, Store

SPARK_FILE, DUCKDB_FILE = "views.spark.sql", "views.duckdb.sql"

# Messages of Spark 3.5 and Spark 4.
_NO_VIEWS = r"view is not supported by catalog|does not support views|MISSING_CATALOG_ABILITY"
_SPARK_LATEST = "max_by(run_id, struct(published_at, run_id))"
_DUCKDB_LATEST = "arg_max(run_id, {'published_at': published_at, 'run_id': run_id})"
_FILES = "run_date=*/run_id=*/*.parquet"
_DUCKDB_TYPES = {"BINARY": "BLOB", "STRING": "VARCHAR", "TIMESTAMP": "TIMESTAMPTZ"}

_SUITE = {f"{name}{end}" for name in (*SUMMARIZED_AUCS, *SUITE_GAPS) for end in ("", "_low", "_high")}
_NARROW = {"run_date", "corpus", "model", "slice", "identity", *_SUITE, "bias", "bias_size", "run_id"}
_N_ROWS, _N_POSITIVE = columns("""
    n_rows BIGINT: Rows of the identity. NULL where the group is too small to be shown.
    n_positive BIGINT: Positive rows of the identity. NULL where the group is too small to be shown.
""")


class View(NamedTuple):
    """A view of the latest runs of a table."""

    name: str
    columns: tuple[Column, ...]
    comment: str
    query: str

    def create(self, kind: str) -> str:
        """Return SQL that creates the view; the kind is ``VIEW`` or ``TEMPORARY VIEW``."""
        return f"CREATE OR REPLACE {kind} {self.name} AS\n{self.query};"


def refresh_views(spark: SparkSession, store: Store) -> tuple[str, ...]:
    """Create or replace the views of all existing tables, and return warnings of failures. Files change in one step."""
    try:
        if isinstance(store, CatalogStore) and not isinstance(store, DeltaFolder):
            return _create_views(spark, store)
        folder = store.local_folder
        if folder is None or not folder.is_dir():
            return (
                f"views: not written, {store.root} is not a folder of this machine. spark_views, delta_views and "
                "duckdb_views of biasspark.tables.views return their text.",
            )
        if isinstance(store, DeltaFolder):
            texts = {SPARK_FILE: delta_views(list_relations(spark, store))}
        else:
            tables = [table for table in TABLES.values() if next(find_data_files(folder / table.name), None)]
            texts = {SPARK_FILE: spark_views(str(folder), tables), DUCKDB_FILE: duckdb_views(str(folder), tables)}
    except InputError as error:
        return (f"views: not written. {error}",)
    try:
        for name, text in texts.items():
            replace_local_file(folder / name, text.encode())
    except OSError as error:
        return (f"{error.filename or folder}: the views could not be written, {error.strerror or error}.",)
    return ()


def spark_views(path: str, tables: Sequence[Table]) -> str:
    """Return SQL that creates temporary views of the tables in a folder, for ``spark-sql -i`` and notebooks."""

    def files_view(table: Table) -> str:
        types = ", ".join(f"{column.name} {column.type}" for column in table.columns)
        location = quote_string(f"{path.rstrip('/')}/{table.name}")
        # A view of files puts partition columns last and drops their comments.
        return (
            f"CREATE OR REPLACE TEMPORARY VIEW {table.name}_files ({types})\n"
            f"USING parquet OPTIONS (path {location});\n\n{_spark_view(table, f'{table.name}_files')}"
        )

    notes = """
-- Views of the tables in this folder for Spark, with the columns of biasspark.
-- They list the files as they are now. To see a later run, execute this file again.
-- spark-sql -i views.spark.sql -e 'SELECT * FROM latest_bias_metrics'
"""
    return _assemble(notes, {table: files_view(table) for table in tables}, _SPARK_LATEST, "TEMPORARY VIEW")


def delta_views(relations: Mapping[Table, str]) -> str:
    """Return SQL that creates temporary views of the `list_relations` of a Delta folder."""
    notes = """
-- Views of the Delta tables in this folder for Spark, with the columns of biasspark.
-- spark-sql --properties-file conf/lake-delta.conf -i views.spark.sql -e 'SELECT * FROM latest_bias_metrics'
"""
    table_views = {table: _spark_view(table, relation) for table, relation in relations.items()}
    return _assemble(notes, table_views, _SPARK_LATEST, "TEMPORARY VIEW")


def duckdb_views(folder: str, tables: Sequence[Table]) -> str:
    """Return SQL that creates DuckDB views of the tables in a folder. The variable ``warehouse`` overrides its path."""
    root = "'" + folder.rstrip("/").replace("'", "''") + "'"

    def files_view(table: Table) -> str:
        typed = "\n".join(f"    NULL::{_duckdb_type(c.type)} AS {c.name},  -- {c.comment}" for c in table.columns)
        # The branch without rows defines order and types, also for columns that older files lack.
        return (
            f"CREATE OR REPLACE VIEW {table.name} AS\nSELECT {', '.join(table.names)}\nFROM (\n"
            f"  SELECT\n{typed}\n  WHERE false\n  UNION ALL BY NAME\n"
            f"  SELECT * FROM read_parquet(\n    coalesce(getvariable('warehouse'), {root}) || "
            f"'/{table.name}/{_FILES}',\n    union_by_name = true, hive_partitioning = true,\n"
            "    hive_types = {'run_date': DATE, 'run_id': VARCHAR}\n  )\n);"
        )

    notes = """
-- Views of the tables in this folder for DuckDB, with the columns of biasspark.
-- Where the folder has moved, first: SET VARIABLE warehouse = 'its new path'
-- duckdb -init views.duckdb.sql -c 'SELECT * FROM latest_bias_metrics'
"""
    return _assemble(notes, {table: files_view(table) for table in tables}, _DUCKDB_LATEST, "VIEW")


def _assemble(notes: str, table_views: Mapping[Table, str], latest: str, kind: str) -> str:
    latest_views = _latest_views({table: table.name for table in table_views}, latest)
    return "\n\n".join((notes.strip(), *table_views.values(), *(view.create(kind) for view in latest_views))) + "\n"


def _spark_view(table: Table, rows: str) -> str:
    return (
        f"CREATE OR REPLACE TEMPORARY VIEW {table.name} (\n  {_with_comments(table.columns)}\n)\n"
        f"COMMENT {quote_string(table.comment)} AS\nSELECT {', '.join(table.names)}\nFROM {rows};"
    )


def _with_comments(declared: Sequence[Column]) -> str:
    return ",\n  ".join(f"{column.name} COMMENT {quote_string(column.comment)}" for column in declared)


def _duckdb_type(kind: str) -> str:
    if array := re.fullmatch(r"ARRAY<(.+)>", kind):
        return f"{_duckdb_type(array[1])}[]"
    if entries := re.fullmatch(r"MAP<(\w+),(\w+)>", kind):
        return f"MAP({_duckdb_type(entries[1])}, {_duckdb_type(entries[2])})"
    return _DUCKDB_TYPES.get(kind, kind)


# ---- the latest runs


def _latest_views(relations: Mapping[Table, str], latest: str) -> Iterator[View]:
    """Yield the views of tables, given as SQL relations. `latest` is the aggregate of the latest run_id of a group."""
    ledger = relations.get(BIAS_RUNS)
    for table, rows in relations.items():
        if table == BIAS_RUNS or ledger is None:
            continue
        kinds = {"published": ("latest", f"{ledger}\n  WHERE job = {quote_string(table.job)}")}
        if table.job in (BIAS_ALERTS.job, COMPARISON_ALERTS.job):  # runs of other jobs are never accepted
            kinds["accepted"] = "latest_accepted", _accepted_runs(ledger, table.job)
        for kind, (prefix, runs) in kinds.items():
            comment = f"{table.comment} The latest {kind} run of each run date and corpus."
            query = _latest_query(table, table.names, rows, runs, latest)
            yield View(f"{prefix}_{table.name}", table.columns, comment, query)
            if table == BIAS_METRICS:
                narrow = tuple(column for column in table.columns if column.name in _NARROW)
                narrow = (*narrow[:5], _N_ROWS, _N_POSITIVE, *narrow[5:])
                sizes = {"n_rows": "n_subgroup_negative + n_subgroup_positive", "n_positive": "n_subgroup_positive"}
                select = [f"{sizes[c.name]} AS {c.name}" if c.name in sizes else c.name for c in narrow]
                yield View(f"{prefix}_suite", narrow, comment, _latest_query(table, select, rows, runs, latest))


def _latest_query(table: Table, select: Sequence[str], rows: str, runs: str, latest: str) -> str:
    """Return a join through which a filter on run_date reaches both scans. Each window has a latest run of its own."""
    each = ", ".join(["run_date", "corpus", *(column.name for column in table.key if column == WINDOW_START)])
    return (
        f"SELECT {', '.join(select)}\nFROM {rows}\nJOIN (\n"
        f"  SELECT run_date, corpus, {latest} AS run_id\n"
        f"  FROM {runs}\n  GROUP BY {each}\n"
        ") AS published\nUSING (run_date, corpus, run_id)"
    )


def _accepted_runs(ledger: str, job: str) -> str:
    """Return a query of the accepted runs of a job: with status accepted, or accepted by another row.

    One scan: each row of the ledger is about a run, and a row that accepts a run has its date and corpus.
    """
    job, accepted = quote_string(job), quote_string(ACCEPTED)
    return f"""(
    SELECT run_date, corpus, about AS run_id, max(CASE WHEN job = {job} THEN published_at END) AS published_at
    FROM (
      SELECT run_date, corpus, job, status, published_at, coalesce(accepts_run_id, run_id) AS about
      FROM {ledger}
    ) AS judged
    GROUP BY run_date, corpus, about
    HAVING bool_or(status = {accepted})
  ) AS accepted
  WHERE published_at IS NOT NULL"""


# ---- in a catalog


def list_relations(spark: SparkSession, store: CatalogStore) -> dict[Table, str]:
    """Return existing tables as SQL relations. Columns that a table does not have yet are NULL."""
    relations = {}
    for table in TABLES.values():
        if present := store.types(spark, table):
            name = store.name(table.name)
            nulls = [f"CAST(NULL AS {c.type}) AS {c.name}" for c in table.columns if c.name not in present]
            relations[table] = f"(SELECT *, {', '.join(nulls)} FROM {name})" if nulls else name
    return relations


def _create_views(spark: SparkSession, store: CatalogStore) -> tuple[str, ...]:
    views = list(_latest_views(list_relations(spark, store), _SPARK_LATEST))
    warnings = []
    for view in views:
        try:
            _create_view(spark, store, view)
        except Exception as error:  # noqa: BLE001 - the run is published, whatever happens here
            cause = describe_cause(error)
            if re.search(_NO_VIEWS, cause):
                advice = (
                    f"{store.view_schema}: its catalog holds no views. Set [output] views to a catalog.schema that "
                    "does, for example spark_catalog.bias, or create them in each session that reads:"
                )
                return ("\n\n".join((advice, *(view.create("TEMPORARY VIEW") for view in views))),)
            warnings.append(f"{store.view_name(view.name)}: the view could not be created, {cause}.")
    return tuple(warnings)


def _create_view(spark: SparkSession, store: CatalogStore, view: View) -> None:
    name = store.view_name(view.name)
    text, comments = view.query, dict[str, str | None]()
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
        comments = {row["col_name"]: row["comment"] for row in rows}
        text = next((row["data_type"] for row in rows if row["col_name"] == "View Text"), text)
    except AnalysisException as error:
        # A missing view is created, and one that no longer resolves is replaced.
        if not has_condition(error, "TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"):
            raise
    # Some catalogs do not return the text or the comments of a view.
    has_comments = all(comments.get(column.name, "-") in (None, "", column.comment) for column in view.columns)
    if has_comments and text == view.query:
        return
    if store.view_schema != store.schema:
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {store.view_schema}")
    comment = quote_string(view.comment)
    spark.sql(f"CREATE OR REPLACE VIEW {name} ({_with_comments(view.columns)}) COMMENT {comment} AS {view.query}")
