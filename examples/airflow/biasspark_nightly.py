"""Every night: measure yesterday's comments, write the report, maintain the tables, and stop at a failed gate.

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

BIASSPARK = "/opt/biasspark"  # has jobs/, and dist/ of scripts/package
CONFIG = "/opt/biasspark-conf/civil.toml"  # with [report] path if the tables are in a catalog

DONE, WRONG_CONFIG, PUBLISHED_BY_ANOTHER, GATE_FAILED = 0, 2, 4, 5
SPARK = {"spark.yarn.maxAppAttempts": "1"}  # only Airflow retries; settings of Delta or Iceberg go here


class BiasSparkOperator(SparkSubmitOperator):
    """A job of biasspark for the day that Airflow runs for. Its result is the exit code, if the run is published."""

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
        """Submit the job, and distinguish failures that Airflow should retry from those that it should not."""
        try:
            super().execute(context)
        except AirflowException as error:
            code = read_exit_code(error)
            if code == WRONG_CONFIG:
                raise AirflowFailException("the configuration is wrong: a retry would not help") from error
            # 4: an earlier try continued after Airflow had given it up, and published the run.
            if code not in (PUBLISHED_BY_ANOTHER, GATE_FAILED):
                raise
            self.log.warning("The run is published, exit code %d", code)
            return code
        return DONE


def read_exit_code(error: AirflowException) -> int | None:
    """Read spark-submit's exit code from the message of the provider's hook."""
    match = re.search(r"Error code is: (\d+)", str(error))
    return int(match[1]) if match else None


@task(retries=0)
def gate(code: int) -> None:
    """Fail if the gate of biasspark failed. Put tasks that must not run on such numbers after this task."""
    if code == GATE_FAILED:
        raise AirflowFailException("a rule of [gate] failed: see the report, or latest_bias_alerts")
    if code == PUBLISHED_BY_ANOTHER:
        raise AirflowSkipException("another run published this date: its status is in bias_runs")


with DAG(
    dag_id="biasspark_nightly",
    description=__doc__,
    # ds is the day of the data: the run for the 15th starts on the 16th at half past two.
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
