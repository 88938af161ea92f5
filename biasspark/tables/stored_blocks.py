"""The sketches that published nights keep in ``score_blocks``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

from biasspark.columns import HEADER_RANGE
from biasspark.tables.published import check_count
from biasspark.tables.runs import Run
from biasspark.tables.schema_check import no_rows
from biasspark.tables.schemas import SCORE_BLOCKS
from biasspark.tables.storage_errors import storage_errors
from biasspark.tables.store import Store


class StoredHeader(NamedTuple):
    """What the sketch of one model on one night says of itself."""

    state_key: str
    boundaries: tuple[float, ...]
    header: bytes


def read_blocks(spark: SparkSession, store: Store, runs: Sequence[Run]) -> DataFrame:
    """Return the rows of ``score_blocks`` of some runs, with the index of each run in the list as ``night``."""
    blocks = [_blocks_of(spark, store, run) for run in runs] or [no_rows(spark, SCORE_BLOCKS)]
    return reduce(DataFrame.unionByName, [rows.withColumn("night", F.lit(index)) for index, rows in enumerate(blocks)])


def check_counts(store: Store, blocks: DataFrame, runs: Sequence[Run]) -> None:
    """Compare the rows of each run with those that the ledger counts. One small Spark job.

    Raises
    ------
    InputError
        If a run has others, unless it has none: its files are gone then.
    """
    with storage_errors(f"{store.root}/{SCORE_BLOCKS.name}", "read"):
        counts = {row["night"]: row["count"] for row in blocks.groupBy("night").count().collect()}
    for index, n_rows in counts.items():
        check_count(store, SCORE_BLOCKS, runs[index], n_rows)


def read_headers(blocks: DataFrame, n_nights: int) -> list[dict[str, StoredHeader]]:
    """Return the headers of each night by model; none where a night keeps no sketch.

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
    headers: list[dict[str, StoredHeader]] = [{} for _ in range(n_nights)]
    for row in sorted(pieces, key=lambda piece: piece["part"]):
        of_night = headers[row["night"]]
        begun = of_night[row["model"]].header if row["model"] in of_night else b""
        header = begun + bytes(row["block"])
        of_night[row["model"]] = StoredHeader(row["state_key"], tuple(row["boundaries"]), header)
    return headers


def _blocks_of(spark: SparkSession, store: Store, run: Run) -> DataFrame:
    """Return the blocks of a run; none where they are gone, or were never there."""
    try:
        return store.read(spark, SCORE_BLOCKS, run)
    except FileNotFoundError:
        return no_rows(spark, SCORE_BLOCKS)
