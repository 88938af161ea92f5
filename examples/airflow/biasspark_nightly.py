"""Every night: measure yesterday's comments, write the report, keep the tables in order, and hold what the gate holds.

For Airflow 3 with apache-airflow-providers-apache-spark. Put the two folders below where the workers see them, and
declare the connection ``spark_default``; its ``deploy-mode`` must be ``client``, since in cluster mode YARN and
Kubernetes only tell success from failure.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, CronDataIntervalTimetable, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

BIASSPARK = "/opt/biasspark"  # jobs/, and dist/ of scripts/package
CONFIG = "/opt/biasspark-conf/civil.toml"  # with [report] path where the tables are in a catalog

DONE, WRONG_CONFIG, PUBLISHED_BY_ANOTHER, GATE_FAILED = 0, 2, 4, 5
SPARK = {"spark.yarn.maxAppAttempts": "1"}  # Airflow is the one that tries again; settings of Delta or Iceberg go here


class BiasSparkOperator(SparkSubmitOperator):
    """A job of biasspark on the night that Airflow runs for; its result is the exit code, where the night is there."""

    def __init__(self, job: str, flags: tuple[str, ...] = (), **settings: Any) -> None:
        super().__init__(
            application=f"{BIASSPARK}/jobs/{job}.py",
            application_args=["--config", CONFIG, "--run-date", "{{ ds }}", *flags],
            py_files=f"{BIASSPARK}/dist/biasspark.zip",
            name=f"biasspark {job}",
            conf=SPARK,
            **settings,
        )

    def execute(self, context: Any) -> int:
        """Submit the job, and tell failures that Airflow should try again from those that it should not."""
        try:
            super().execute(context)
        except AirflowException as error:
            code = read_exit_code(error)
            if code == WRONG_CONFIG:
                raise AirflowFailException("the configuration is wrong: to try again would not help") from error
            # 4 comes where an earlier try went on after Airflow had given it up: the night is there, and whole.
            if code not in (PUBLISHED_BY_ANOTHER, GATE_FAILED):
                raise
            self.log.warning("The night is published, exit code %d", code)
            return code
        return DONE


def read_exit_code(error: AirflowException) -> int | None:
    """Read spark-submit's exit code from what the provider's hook says about a failure."""
    found = re.search(r"Error code is: (\d+)", str(error))
    return int(found[1]) if found else None


@task(retries=0)
def gate(code: int) -> None:
    """Fail where the gate of biasspark failed: what must not launch on such numbers comes after this task."""
    if code == GATE_FAILED:
        raise AirflowFailException("a rule of [gate] failed: see the report, or latest_bias_alerts")
    if code == PUBLISHED_BY_ANOTHER:
        raise AirflowSkipException("another run published this night: its status stands in bias_runs")


with DAG(
    dag_id="biasspark_nightly",
    description=__doc__,
    # ds is the day whose data have come in: the night of the 15th runs on the 16th at half past two.
    schedule=CronDataIntervalTimetable("30 2 * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1),
    catchup=False,  # jobs/bias_metrics.py --run-date A..B --only-missing fills gaps in one session
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=10)},
) as dag:
    measure = BiasSparkOperator(task_id="measure", job="bias_metrics")
    report = BiasSparkOperator(task_id="report", job="report", flags=("--publish",))
    maintain = BiasSparkOperator(task_id="maintain", job="maintain")
    measure >> [report, maintain]  # nothing waits for the report
    gate(measure.output)
