"""Accepted runs: those whose gate found no rule broken, and those that a person accepted in spite of it.

Rows of the ledger are only ever added. So a person's word is a row of its own, of the job ``accept_run``, whose
``config`` names the run that it accepts, why, and who says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyspark.sql.functions as F
from pyspark.sql import DataFrame, SparkSession

from biasspark import __version__
from biasspark.config import show_value
from biasspark.errors import InputError
from biasspark.tables.publish import append_to_ledger
from biasspark.tables.runs import ACCEPT_RUN, ACCEPTED, Run, RunRecord, from_micros, new_run
from biasspark.tables.store import Store

MOST_BASELINES = 60
"""How many nights back a change is measured, of those that have an accepted run."""


@dataclass(frozen=True)
class Approval:
    """Why a run is accepted, and who says so."""

    reason: str
    by: str


@dataclass(frozen=True)
class AcceptedRun:
    """An accepted run, and the configuration that it had, as far as the ledger tells."""

    run: Run
    config: Mapping[str, Any]


def list_accepted(spark: SparkSession, store: Store, run: Run, most: int = MOST_BASELINES) -> list[AcceptedRun]:
    """Return the accepted runs of the nights before a run, of the same job and corpus, the latest first.

    They are those of the last ``most`` nights that have one, and of a night the one published last. A night that is run
    again is held against the nights before it, as it was the first time, and not against itself.

    Notes
    -----
    One job over the ledger, which has one small file per run.
    """
    ledger = store.read_ledger(spark, None).where(
        (F.col("corpus") == F.lit(run.corpus)) & (F.col("run_date") < F.lit(run.run_date))
    )
    by_gate = ledger.where((F.col("job") == F.lit(run.job)) & (F.col("status") == ACCEPTED)).select("run_id")
    accepted = F.broadcast(by_gate.unionByName(_accepted_by_people(ledger, run.job)))
    runs = ledger.where(F.col("job") == F.lit(run.job)).join(accepted, on="run_id", how="left_semi")
    shown = F.struct("run_id", F.unix_micros("started_at").alias("started"), "config")
    by_night = runs.groupBy("run_date").agg(F.max_by(shown, F.struct("published_at", "run_id")).alias("latest"))
    found = by_night.orderBy(F.desc("run_date")).limit(most).select("run_date", "latest.*").collect()
    return [
        AcceptedRun(
            Run(row["run_date"], run.corpus, run.job, row["run_id"], from_micros(row["started"])),
            json.loads(row["config"] or "{}"),
        )
        for row in found
    ]


def _accepted_by_people(ledger: DataFrame, job: str) -> DataFrame:
    approvals = ledger.where((F.col("job") == ACCEPT_RUN) & (F.col("status") == ACCEPTED))
    named = approvals.select(F.from_json("config", "accepted_run_id STRING, job STRING").alias("approval"))
    return named.where(F.col("approval.job") == F.lit(job)).select(F.col("approval.accepted_run_id").alias("run_id"))


def check_latest(spark: SparkSession, store: Store, latest: Run, run_id: str) -> None:
    """Refuse a run that is not the latest of its night, which readers see: only that one is accepted.

    Raises
    ------
    InputError
        If it is not published, or superseded.
    """
    if run_id == latest.run_id:
        return
    ours = [F.col(name) == F.lit(value) for name, value in (("job", latest.job), ("corpus", latest.corpus))]
    same_id = F.col("run_id") == F.lit(run_id)
    published = store.read_ledger(spark, latest.run_date).where(ours[0] & ours[1] & same_id)
    fault = f"no such run of {latest.job} is published" if published.isEmpty() else "a later one has superseded it"
    raise InputError(
        f"run_id: {show_value(run_id)}, {fault} for {latest.run_date}, corpus {show_value(latest.corpus)}. Only the "
        f"run that readers see is accepted. Leave --run-id out to accept {latest.run_id}."
    )


def accept(spark: SparkSession, store: Store, accepted: Run, approval: Approval) -> Run:
    """Add to the ledger that a person accepts a run, and return the row's own run.

    Accepting a run twice adds a second row, and means what the first one does.
    """
    said = {"accepted_run_id": accepted.run_id, "job": accepted.job, "reason": approval.reason, "by": approval.by}
    config = json.dumps(said, separators=(",", ":"))
    run = new_run(accepted.run_date, accepted.corpus, ACCEPT_RUN)
    record = RunRecord(
        n_rows=0,
        n_rejected=0,
        config=config,
        config_hash=hashlib.sha256(config.encode("ascii")).hexdigest(),
        code_version=__version__,
        spark_version=spark.version,
        status=ACCEPTED,
    )
    append_to_ledger(spark, run, store, record)
    return run
