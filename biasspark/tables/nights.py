"""Published nights, many at a time: which there are, and what they keep in ``score_blocks``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import reduce
from typing import Any, NamedTuple

import pyspark.sql.functions as F
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from biasspark.columns import HEADER_RANGE
from biasspark.errors import has_condition
from biasspark.session import analyse
from biasspark.tables.contract import no_rows
from biasspark.tables.runs import EPOCH, Run
from biasspark.tables.schemas import CORPUS, RUN_DATE, SCORE_BLOCKS
from biasspark.tables.store import Store


@dataclass(frozen=True)
class Night:
    """The run that readers see of one night, and what the ledger counts of it."""

    run: Run
    n_rows: int
    n_rejected: int
    rejects: Mapping[str, int]


class StoredHeader(NamedTuple):
    """What the state of one model on one night says of itself."""

    state_key: str
    boundaries: tuple[float, ...]
    header: bytes


class Series(NamedTuple):
    """A job on a corpus: what has one run per night."""

    job: str
    corpus: str


def list_nights(spark: SparkSession, store: Store, series: Series, first: date, last: date) -> dict[date, Night]:
    """Return the nights from the first to the last that are published, in order, each with its latest run.

    Notes
    -----
    One Spark job over the ledger.
    """
    own = _of_series(store.read_ledger(spark, None), series)
    between = own.where(F.col(RUN_DATE.name).between(F.lit(first), F.lit(last)))
    found = F.max_by(F.struct("run_id", "n_rows", "n_rejected", "rejects"), F.struct("published_at", "run_id"))
    rows = between.groupBy(RUN_DATE.name).agg(found.alias("latest")).collect()
    return {
        row[RUN_DATE.name]: Night(
            Run(row[RUN_DATE.name], series.corpus, series.job, row["latest"]["run_id"], EPOCH),
            row["latest"]["n_rows"],
            row["latest"]["n_rejected"],
            row["latest"]["rejects"],
        )
        for row in sorted(rows, key=lambda row: row[RUN_DATE.name])
    }


def list_configurations(spark: SparkSession, store: Store, series: Series) -> list[tuple[dict[str, Any], Run]]:
    """Return every configuration that a run was published with, and the last such run, the last first.

    Notes
    -----
    One Spark job over the ledger; the driver receives a row per configuration.
    """
    own = _of_series(store.read_ledger(spark, None), series)
    latest = F.max_by(F.struct(RUN_DATE.name, "run_id"), F.struct("published_at", "run_id"))
    by_config = own.groupBy("config").agg(latest.alias("latest"), F.max("published_at").alias("published_at"))
    rows = by_config.select("config", "latest.*", "published_at").collect()
    return [
        (json.loads(row["config"]), Run(row[RUN_DATE.name], series.corpus, series.job, row["run_id"], EPOCH))
        for row in sorted(rows, key=lambda row: (row["published_at"], row["run_id"]), reverse=True)
    ]


def read_blocks(spark: SparkSession, store: Store, runs: Sequence[Run]) -> DataFrame:
    """Return the rows of ``score_blocks`` of some runs, with the place of each run in the list as ``night``."""
    blocks = [_blocks_of(spark, store, run) for run in runs] or [no_rows(spark, SCORE_BLOCKS)]
    return reduce(DataFrame.unionByName, [own.withColumn("night", F.lit(place)) for place, own in enumerate(blocks)])


def read_headers(blocks: DataFrame, n_nights: int) -> list[dict[str, StoredHeader]]:
    """Return the headers of each night by model; none where a night keeps no state.

    Parameters
    ----------
    blocks : DataFrame
        What `read_blocks` returns.

    Notes
    -----
    One Spark job; the driver receives what grows with nights, models and identities, never with rows.
    """
    rows = blocks.where(F.col("score_range") == HEADER_RANGE)
    pieces = rows.select("night", "model", "part", "state_key", "boundaries", "block").collect()
    found: list[dict[str, StoredHeader]] = [{} for _ in range(n_nights)]
    for row in sorted(pieces, key=lambda piece: piece["part"]):
        before = found[row["night"]].get(row["model"])
        header = (before.header if before else b"") + bytes(row["block"])
        found[row["night"]][row["model"]] = StoredHeader(row["state_key"], tuple(row["boundaries"]), header)
    return found


def _of_series(ledger: DataFrame, series: Series) -> DataFrame:
    return ledger.where((F.col("job") == F.lit(series.job)) & (F.col(CORPUS.name) == F.lit(series.corpus)))


def _blocks_of(spark: SparkSession, store: Store, run: Run) -> DataFrame:
    """Return the blocks of a run; none where they are gone, or were never there."""
    try:
        return analyse(store.read(spark, SCORE_BLOCKS, run))
    except AnalysisException as error:
        if not has_condition(error, "PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND"):
            raise
        return no_rows(spark, SCORE_BLOCKS)
