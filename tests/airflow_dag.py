"""What holds of the example for Airflow, run by Airflow's own Python: ``airflow_dag.py FOLDER``. Prints how many calls.

spark-submit is a script that notes how it was called and ends with the exit code that it is told.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pendulum
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from airflow.timetables.interval import CronDataIntervalTimetable

SPARK_SUBMIT = """#!{python}
import json, os, sys
with open(os.environ["CALLS"], "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
sys.exit(int(os.environ["EXIT_CODE"]))
"""
PUBLISHED, RETRIED, GIVEN_UP = (0, 4, 5), (1, 3), (2,)


def load(file: Path) -> ModuleType:
    found = importlib.util.spec_from_file_location(file.stem, file)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def fake_spark_submit(folder: Path) -> Path:
    """Put a spark-submit before all others on the PATH, and give the file of its calls."""
    program, calls = folder / "spark-submit", folder / "calls"
    program.write_text(SPARK_SUBMIT.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    os.environ.update(PATH=f"{folder}:{os.environ['PATH']}", CALLS=str(calls))
    os.environ["AIRFLOW_CONN_SPARK_DEFAULT"] = json.dumps(
        {"conn_type": "spark", "host": "spark://head", "port": 7077, "extra": {"deploy-mode": "client"}}
    )
    return calls


def execute(operator: Any, code: int) -> tuple[int | None, type[BaseException] | None]:
    """Run an operator whose job ends with an exit code; give what it returns, or what it raises."""
    os.environ["EXIT_CODE"] = str(code)
    try:
        return operator.execute({}), None
    except AirflowException as error:
        return None, type(error)


def check_order(dag: Any) -> None:
    assert {one.task_id: one.downstream_task_ids for one in dag.tasks} == {
        "measure": {"report", "gate"},
        "report": {"maintain"},
        "maintain": set(),
        "gate": set(),
    }


def check_night(dag: Any) -> None:
    """The run at half past two on the 16th is that of the 15th."""
    timetable = CronDataIntervalTimetable(dag.timetable.expression, timezone=dag.timetable.timezone)
    interval = timetable.infer_manual_data_interval(run_after=pendulum.datetime(2026, 1, 16, 2, 30))
    assert interval.start == pendulum.datetime(2026, 1, 15, 2, 30)
    assert not dag.catchup


def check_calls(dag: Any, calls: Path) -> None:
    """Every job is called on the night, with the zip."""
    for task_id, job, more in (
        ("measure", "bias_metrics", []),
        ("report", "report", ["--publish"]),
        ("maintain", "maintain", []),
    ):
        operator = dag.get_task(task_id)
        operator.render_template_fields({"ds": "2026-01-15"})
        assert execute(operator, 0) == (0, None)
        call = json.loads(calls.read_text("utf-8").splitlines()[-1])
        options, (program, *flags) = call[: call.index(operator.application)], call[call.index(operator.application) :]
        assert program == f"/opt/biasspark/jobs/{job}.py"
        assert flags == ["--config", "/opt/biasspark-conf/civil.toml", "--run-date", "2026-01-15", *more]
        pairs = list(pairwise(options))
        assert ("--master", "spark://head:7077") in pairs
        assert ("--deploy-mode", "client") in pairs
        assert ("--py-files", "/opt/biasspark/dist/biasspark.zip") in pairs


def check_exit_codes(dag: Any) -> None:
    """A night that is there goes on to its report; a fault of the configuration is not tried again."""
    operator = dag.get_task("measure")
    assert [execute(operator, code) for code in PUBLISHED] == [(code, None) for code in PUBLISHED]
    assert [execute(operator, code) for code in RETRIED] == [(None, AirflowException)] * len(RETRIED)
    assert [execute(operator, code) for code in GIVEN_UP] == [(None, AirflowFailException)]
    hold = dag.get_task("gate").python_callable
    assert hold(0) is None
    for code, raised in ((5, AirflowFailException), (4, AirflowSkipException)):
        try:
            hold(code)
        except raised:
            continue
        raise AssertionError(f"the gate lets {code} pass")


def main(folder: Path) -> None:
    dag = load(folder / "biasspark_nightly.py").dag
    with tempfile.TemporaryDirectory() as place:
        calls = fake_spark_submit(Path(place))
        check_order(dag)
        check_night(dag)
        check_calls(dag, calls)
        check_exit_codes(dag)
        print(f"{len(calls.read_text('utf-8').splitlines())} calls of spark-submit as they should be")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
