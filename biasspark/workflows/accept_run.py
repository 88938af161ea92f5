"""The job by which a person accepts a published run, so that later runs are compared with it."""

from __future__ import annotations

import getpass
from datetime import date

from biasspark.cli import Outcome, Progress
from biasspark.config import Config
from biasspark.session import job_session
from biasspark.tables.ledger import accept, check_latest, find_published
from biasspark.tables.runs import ACCEPT_RUN
from biasspark.tables.schemas import BIAS_METRICS, BIAS_RUNS
from biasspark.tables.store import open_store, session_settings


def accept_run(
    config: Config, run_date: date, reason: str, by: str | None = None, run_id: str | None = None
) -> Outcome:
    """Add to the ledger that the latest run of a night is accepted, and return what the job prints.

    Parameters
    ----------
    by : str, optional
        Who accepts it; the user who runs this if None.
    run_id : str, optional
        The only run to accept.

    Raises
    ------
    InputError
        If no run of the night is published, or ``run_id`` is not the latest.
    """
    progress = Progress()
    store, person = open_store(config.output), by or user_name()
    progress.stage("starting Spark")
    with job_session(f"biasspark {ACCEPT_RUN}: {config.corpus.name}", session_settings(config.output)) as spark:
        store.check(spark, (BIAS_RUNS,))
        latest = find_published(spark, store, BIAS_METRICS.job, run_date, config.corpus.name)
        check_latest(spark, store, latest, run_id or latest.run_id)
        run = accept(spark, store, latest, reason, person)
    summary = {"job": ACCEPT_RUN, "status": "accepted", "run_id": run.run_id, "run_date": run.run_date}
    summary |= {"accepted_run_id": latest.run_id, "reason": reason, "by": person, "output": store.root}
    return progress.end(Outcome(summary=summary, table=f"{latest.run_id} is accepted by {person}: {reason}"))


def user_name() -> str:
    """Return the name of the user, which a container may lack."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
