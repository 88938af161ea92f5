"""What the classifiers are trained on: one imbalanced corpus, and the harmless comments that are added to it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pyspark.sql.functions as F
from pyspark.sql import Column, DataFrame, SparkSession

from biasspark.api.metrics import label_balance
from biasspark.columns import OVERALL
from biasspark.config import redact
from biasspark.corpus.check import show_columns
from biasspark.corpus.source import read_corpus
from biasspark.corpus.values import column
from biasspark.errors import InputError
from biasspark.mitigation.settings import LABEL, TEXT, Mitigation
from biasspark.synthetic.blocks import generate
from biasspark.synthetic.imbalanced import BUCKETS, cell_comments

LACKING = "n_negatives_to_add"


def read_snippets(spark: SparkSession, mitigation: Mitigation, run_date: date) -> dict[str, DataFrame]:
    """Return the comments of the configured files by the model that they are for: lazy; empty where there are none.

    Raises
    ------
    InputError
        With a fault for each file that cannot be read or has no such column.
    """
    found: dict[str, DataFrame] = {}
    faults: list[str] = []
    for model, source in mitigation.snippets.items():
        try:
            found[model] = _as_comments(read_corpus(spark, source, run_date), mitigation.text, source.path or "")
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    return found


def _as_comments(rows: DataFrame, text: str, path: str) -> DataFrame:
    if text not in rows.columns:
        raise InputError(
            f'[mitigation] text = "{text}": there is no such column in {redact(path)}. '
            f"{show_columns(rows.columns, rows.columns)} Name one that it has."
        )
    comments = rows.select(column(text).cast("string").alias(TEXT)).where(F.col(TEXT).isNotNull())
    return comments.select(_no("bigint", "id"), TEXT, F.lit(False).alias(LABEL), _no("string", "term"))


def _no(kind: str, name: str) -> Column:
    return F.lit(None).cast(kind).alias(name)


def plan_mitigation(corpus: DataFrame, mitigation: Mitigation) -> DataFrame:
    """Return the label balance of the training corpus, and in it how many harmless comments each term lacks. Lazy."""
    terms = {term: [term] for term in mitigation.terms}
    identities = {"terms": {"column": TEXT, "list": terms}}
    return label_balance(corpus, label=LABEL, identities=identities, text=TEXT, buckets=BUCKETS)


def plan_cells(plan: DataFrame) -> DataFrame:
    """Return what a plan asks for: term, length_low, length_high and n_rows, one row for each that lacks any."""
    lacks = (F.col("identity") != OVERALL) & F.col("length_low").isNotNull() & (F.col(LACKING) > 0)
    return plan.where(lacks).select(
        F.col("identity").alias("term"), "length_low", "length_high", F.col(LACKING).alias("n_rows")
    )


def generate_additions(plan: DataFrame, mitigation: Mitigation) -> dict[str, DataFrame]:
    """Generate the comments that are added, by the model that they are for.

    Parameters
    ----------
    plan
        As `plan_mitigation` returns it, best read back from a file: it is asked twice.

    Returns
    -------
    dict of str to DataFrame
        ``mitigated``: harmless comments about each term and of each length, as many as the plan asks for. ``control``:
        as many in all, drawn as the harmless ones of the training corpus are.

    Raises
    ------
    InputError
        If the plan asks for none: then there is no experiment.
    """
    cells = plan_cells(plan)
    n_rows = cells.agg(F.sum("n_rows").alias("n_rows")).collect()[0]["n_rows"]
    if not n_rows:
        raise InputError(
            f"[mitigation] rows = {mitigation.rows}: no term of this training corpus lacks harmless comments, so there "
            "is nothing to add. Ask for more rows, or raise the shares in [mitigation.imbalanced]."
        )
    harmless = replace(mitigation.training_request, rows=n_rows, harmless=True)
    return {
        "control": generate(plan.sparkSession, harmless),
        "mitigated": cell_comments(cells, mitigation.seed),
    }
