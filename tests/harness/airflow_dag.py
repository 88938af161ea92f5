"""Checks of the example for Airflow, run by Airflow's own Python: ``airflow_dag.py FOLDER [RUN]``.

RUN is a file of JSON: ``constants`` of the example to replace, the ``connection`` to Spark, and the date ``ds``. Its
tasks are run in order, with the spark-submit on the PATH; the last line printed is JSON, what each ended with.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType
from typing import Any

import pendulum  # type: ignore[import-not-found]  # in Airflow's Python alone
from airflow.sdk.exceptions import (  # type: ignore[import-not-found]
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
)
from airflow.timetables.interval import CronDataIntervalTimetable  # type: ignore[import-not-found]

EXITING = '#!/bin/sh\nexit "$EXIT_CODE"\n'
PUBLISHED, RETRIED, GIVEN_UP = (0, 4, 5), (1, 3), (2,)
CONNECTION = {"conn_type": "spark", "host": "spark://head", "port": 7077, "extra": {"deploy-mode": "client"}}


def load(file: Path, constants: Mapping[str, Any]) -> ModuleType:
    """Import a file in which some constants have other values."""
    source = file.read_text("utf-8")
    for name, value in constants.items():
        line = f"{name} = {value!r}".replace("\\", r"\\")
        source, count = re.subn(rf"(?m)^{name} = .*$", line, source)
        assert count == 1, f"{file}: {count} lines begin with {name} ="
    spec = importlib.util.spec_from_loader(file.stem, loader=None)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    exec(compile(source, file, "exec"), module.__dict__)
    return module


def connect(connection: Mapping[str, Any]) -> None:
    os.environ["AIRFLOW_CONN_SPARK_DEFAULT"] = json.dumps(connection)


def check_order(dag: Any) -> None:
    """Nothing waits for the report: the numbers are published without it."""
    assert {one.task_id: one.downstream_task_ids for one in dag.tasks} == {
        "measure": {"report", "maintain", "gate"},
        "report": set(),
        "maintain": set(),
        "gate": set(),
    }


def check_tasks(dag: Any) -> None:
    """The run at half past two on the 16th is that of the 15th."""
    timetable = CronDataIntervalTimetable(dag.timetable.expression, timezone=dag.timetable.timezone)
    interval = timetable.infer_manual_data_interval(run_after=pendulum.datetime(2026, 1, 16, 2, 30))
    assert interval.start == pendulum.datetime(2026, 1, 15, 2, 30)
    assert not dag.catchup


def execute(operator: Any) -> tuple[int | None, type[BaseException] | None]:
    """Run an operator; give what it returns, or what it raises."""
    try:
        return operator.execute({}), None
    except AirflowException as error:
        return None, type(error)


def check_exit_codes(dag: Any) -> None:
    """A run that is published goes on to its report; a fault of the configuration is not tried again."""
    path, operator = os.environ["PATH"], dag.get_task("measure")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "spark-submit"
        program.write_text(EXITING, encoding="utf-8")
        program.chmod(0o755)
        os.environ["PATH"] = f"{folder}:{path}"

        def end_with(code: int) -> tuple[int | None, type[BaseException] | None]:
            os.environ["EXIT_CODE"] = str(code)
            return execute(operator)

        assert [end_with(code) for code in PUBLISHED] == [(code, None) for code in PUBLISHED]
        assert [end_with(code) for code in RETRIED] == [(None, AirflowException)] * len(RETRIED)
        assert [end_with(code) for code in GIVEN_UP] == [(None, AirflowFailException)]
    os.environ["PATH"] = path
    assert [pass_gate(dag, code) for code in PUBLISHED] == [None, AirflowSkipException, AirflowFailException]


def pass_gate(dag: Any, code: int) -> type[BaseException] | None:
    """Run the task gate after a run that ended with a code; give what it raises."""
    try:
        dag.get_task("gate").python_callable(code)
    except AirflowException as error:
        return type(error)
    return None


def run_tasks(dag: Any, ds: str) -> dict[str, Any]:
    """Run all tasks of a run; give what each returned, or the name of what it raised."""
    ended: dict[str, Any] = {}
    for task_id in TopologicalSorter({one.task_id: one.upstream_task_ids for one in dag.tasks}).static_order():
        operator = dag.get_task(task_id)
        if task_id == "gate":
            raised = pass_gate(dag, ended["measure"])
        else:
            operator.render_template_fields({"ds": ds})
            ended[task_id], raised = execute(operator)
        ended[task_id] = raised.__name__ if raised else ended.get(task_id)
    return ended


def main(folder: str, run: str | None = None) -> None:
    example = Path(folder) / "biasspark_nightly.py"
    connect(CONNECTION)
    dag = load(example, {}).dag
    check_order(dag)
    check_tasks(dag)
    check_exit_codes(dag)
    if run:
        given = json.loads(Path(run).read_text("utf-8"))
        connect(given["connection"])
        print(json.dumps(run_tasks(load(example, given["constants"]).dag, given["ds"])))


if __name__ == "__main__":
    main(*sys.argv[1:])
