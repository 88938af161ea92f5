"""The comments that are added to the training corpus: those of files, or generated ones as the plan asks for."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pyarrow as pa
import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

from biasspark.columns import IDENTITY, OVERALL
from biasspark.corpus.check import ColumnNames
from biasspark.corpus.read import read_corpus
from biasspark.corpus.values import column
from biasspark.errors import Fault, InputError, redact
from biasspark.mitigation.settings import CONTROL, LABEL, MITIGATED, TEXT, Mitigation
from biasspark.synthetic.chunks import generate
from biasspark.synthetic.imbalanced import TermCell, cell_comments


def read_comments(spark: SparkSession, mitigation: Mitigation, run_date: date) -> dict[str, DataFrame]:
    """Return the comments of the configured files by the model that they are for. Lazy; empty without files.

    Raises InputError with a fault for each file that cannot be read or has no such column.
    """
    comments: dict[str, DataFrame] = {}
    faults: list[Fault | str] = []
    for model, source in mitigation.files.items():
        try:
            rows = read_corpus(spark, source, run_date)
            if mitigation.text not in rows.columns:
                problem = f"There is no such column in {redact(source.path or '')}."
                path = ("mitigation", "text")
                raise InputError(ColumnNames(rows.columns).missing(path, mitigation.text, problem, mitigation.text))
        except InputError as error:
            faults += error.faults
        else:
            texts = rows.select(column(mitigation.text).cast("string").alias(TEXT)).where(F.col(TEXT).isNotNull())
            comments[model] = texts.select(
                F.lit(None).cast("bigint").alias("id"),
                TEXT,
                F.lit(False).alias(LABEL),
                F.lit(None).cast("string").alias("term"),
            )
    if faults:
        raise InputError(*faults)
    return comments


def list_cells(balance: pa.Table) -> list[TermCell]:
    """Return for each term and length how many harmless comments it lacks, by the table ``label_balance``."""
    return [
        TermCell(row[IDENTITY], row["length_low"], row["length_high"], row["n_negatives_to_add"])
        for row in balance.to_pylist()
        if row[IDENTITY] != OVERALL and row["length_low"] is not None and row["n_negatives_to_add"]
    ]


def generate_comments(spark: SparkSession, cells: list[TermCell], mitigation: Mitigation) -> dict[str, DataFrame]:
    """Return generated comments by the model that they are for. Lazy.

    Those for ``mitigated`` are harmless comments of each term and length, as many as the plan asks for; for ``control``
    the same number, drawn like the harmless ones of the training corpus. Raises InputError if the plan is empty.
    """
    n_rows = sum(cell.n_rows for cell in cells)
    if not n_rows:
        raise InputError(
            Fault(
                ("mitigation", "rows"),
                mitigation.rows,
                "No term of this training corpus lacks harmless comments, so there is nothing to add.",
                "Ask for more rows, or raise the shares in [mitigation.imbalanced].",
            )
        )
    columns = "term STRING, length_low INT, length_high INT, n_rows BIGINT"
    harmless = replace(mitigation.training_request, rows=n_rows, harmless=True)
    return {
        CONTROL: generate(spark, harmless),
        MITIGATED: cell_comments(spark.createDataFrame(cells, columns), mitigation.seed),
    }
