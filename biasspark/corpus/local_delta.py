"""A Delta corpus in a local folder: the files and columns that its log lists, by delta-rs."""

from __future__ import annotations

from datetime import date
from importlib import import_module
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from biasspark.config import Corpus
from biasspark.delta_rs import list_features
from biasspark.errors import Fault, InputError, redact
from biasspark.session.spark_errors import condition_fault

VERSION = ("versionasof",)
"""The option that asks for an earlier version of the table."""
_READ = {"appendOnly", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
"""Table features that do not change how rows are read; tables that have deletion vectors are refused."""


class DeltaCorpus(NamedTuple):
    """The content of a table's log: all columns, those of partitions among them, and the files.

    Each file has the values of its partitions as Spark writes them in the names of folders, None for NULL.
    """

    schema: pa.Schema
    partitions: list[str]
    files: list[tuple[Path, tuple[str | None, ...]]]


def open_delta(corpus: Corpus, root: Path, run_date: date | None = None) -> DeltaCorpus:
    """Return the current files of a table, or those of the requested version.

    Given a run date, files of other dates are left out if a partition column is the run date. Raises `InputError` if
    there is no such table or version, or its files alone do not give its rows: columns are mapped to other names, or
    rows were deleted from them.
    """
    library, where = import_module("deltalake"), f"corpus: path {redact(str(corpus.path))}"
    version = next((value for key, value in corpus.options.items() if key.lower() in VERSION), None)
    try:
        log = library.DeltaTable(root, version=None if version is None else int(version))
        actions = pa.table(log.get_add_actions(flatten=True)).to_pylist()
    except library.exceptions.TableNotFoundError:
        condition = "UNABLE_TO_INFER_SCHEMA" if root.exists() else "PATH_NOT_FOUND"
        raise InputError(condition_fault(where, condition)) from None
    except (library.exceptions.DeltaError, ValueError):
        if version is None:
            raise
        rule = "The table has no such version."
        raise InputError(Fault(("corpus", "options"), f"versionAsOf = {version}", rule, "Correct it.")) from None
    if unknown := sorted(list_features(log, reading=True) - _READ):
        raise InputError(_fault(corpus, f"has {', '.join(unknown)}"))
    if pa.table(log.deletion_vectors()).num_rows:
        raise InputError(_fault(corpus, "has rows that are deleted by deletion vectors"))
    schema, names = pa.schema(log.schema().to_arrow()), log.metadata().partition_columns
    kinds = {name: schema.field(name).type for name in names}
    plain = (
        pa.types.is_string,
        pa.types.is_integer,
        pa.types.is_date,
        pa.types.is_boolean,
    )  # Python and Spark write these alike
    if unknown := [f"{name} {kind}" for name, kind in kinds.items() if not any(is_of(kind) for is_of in plain)]:
        raise InputError(_fault(corpus, f"has partitions of {', '.join(unknown)}"))
    files = []
    for action in actions:
        values = {name: action[f"partition.{name}"] for name in names}
        day = values.get(corpus.run_date_column or "")
        if run_date is None or not isinstance(day, date) or day == run_date:
            texts = tuple(None if value is None else str(value) for value in values.values())
            files.append((root / unquote(action["path"]), texts))
    return DeltaCorpus(schema, names, files)


def _fault(corpus: Corpus, problem: str) -> Fault:
    rule = f"The table {problem}, which the embedded engine does not read."
    return Fault(("corpus", "path"), redact(str(corpus.path)), rule, "Run it on Spark, or rewrite the table.")
